"""mutants.py - small wrong changes of C code, found by a tokenizer; tools/mutate.py builds and tests them.

Operators:

    comparison   < <=   > >=   == !=        each turned into its neighbour
    logic        && for ||, || for &&
    constant     0 and 1 exchanged, other numbers one more or one less, floats doubled
    drop         a call, an assignment, break or continue left out
    negate       the condition of an if or a while
    return       a return before a statement, with 0 where the function has a value

Comments, strings, preprocessor lines, static assertions, assertions, attributes, log calls and tables of options are left alone: what
they say is text, is checked by the compiler, or has a test of its own (docs/options). So are array sizes in declarations, and constants
that are times (their names end in _NS, _US, _MS or _S): no test depends on a timing. A mutant keeps the number of lines, so that
__LINE__ and messages of the compiler stay where they are.
"""

import re

OPERATORS = ("comparison", "logic", "constant", "drop", "negate", "return")
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
LOGIC = {"&&": "||", "||": "&&"}
TOKEN = re.compile(r"""
    (?P<space>\s+|\\\n)
  | (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S)
# A preprocessor line with its continuations; a comment that begins on it may go on below.
DIRECTIVE = re.compile(r"^[ \t]*#(?:/\*.*?\*/|\\\n|[^\n\\]|\\(?!\n))*", re.M | re.S)
LEFT_ALONE = re.compile(r"_Static_assert|static_assert|assert|__attribute__|_Alignas|__builtin_prefetch|sl_(log|error|warn|info|debug)"
                        r"|SL_(ARG|ARG_MEMORY|BOOL|CHOICE|F64|NATIVE_OPTIONS|OPTION_FIELD|OUTPUT|STRING|U32|U64|VECTORS_OPTION)")
TIME = re.compile(r"[A-Z0-9_]*_(NS|US|MS|S)")
BRANCHES = {"if", "for", "while", "switch"}
KEYWORDS = BRANCHES | {"do", "else", "return", "goto", "case", "default", "break", "continue", "sizeof"}
TYPES = {"auto", "bool", "char", "const", "double", "enum", "extern", "float", "int", "long", "register", "short", "signed", "size_t",
         "static", "struct", "typedef", "union", "unsigned", "void", "volatile", "_Atomic", "_Bool", "_Alignas", "_Thread_local",
         "_Static_assert", "static_assert"}
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


class Token:
    def __init__(self, kind, text, start):
        self.kind, self.text, self.start, self.end = kind, text, start, start + len(text)
        self.mate = None  # index of the bracket that belongs to this one
        self.block = False  # of {: statements follow, not values or members


class Mutant:
    """Edits of one file: [(start, end, text)], in order, none over another."""

    def __init__(self, operator, edits):
        self.operator, self.edits = operator, edits

    def apply(self, text):
        parts, at = [], 0
        for start, end, new in self.edits:
            parts += [text[at:start], new]
            at = end
        return "".join(parts) + text[at:]

    def line(self, text):
        return text.count("\n", 0, self.edits[0][0]) + 1

    def change(self, text):
        """The lines that differ, without what is around them: ((before, after), ...)."""
        pairs = zip(text.split("\n"), self.apply(text).split("\n"))
        return tuple((before.strip(), after.strip()) for before, after in pairs if before != after)


# ---- tokens ----

def tokens_of(text):
    """Words, numbers, strings and signs, with their brackets paired."""
    blank = DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), hide_comments(text))
    found = [Token(match.lastgroup, match[0], match.start()) for match in TOKEN.finditer(blank)
             if match.lastgroup not in ("space", "comment")]
    open_ones = []
    for i, token in enumerate(found):
        if token.kind != "sign":
            continue
        if token.text in OPENING:
            open_ones.append(i)
        elif token.text in CLOSING and open_ones:
            token.mate = open_ones.pop()
            found[token.mate].mate = i
    for i, token in enumerate(found):
        token.block = token.text == "{" and is_block(found, i)
    return found


def hide_comments(text):
    """Comments become blanks, so that no # of theirs is taken for a directive; strings stay."""
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
                  lambda match: re.sub(r"[^\n]", " ", match[0]) if match[0][0] == "/" else match[0], text, flags=re.S)


def is_block(tokens, i):
    """Whether the { at i begins statements."""
    before = tokens[i - 1] if i else None
    if before is None or before.text in ("else", "do", ";", "{", "}", ":"):
        return before is not None and not (before.text == "{" and not before.block)
    if before.text != ")" or before.mate is None or before.mate == 0:
        return False
    word = tokens[before.mate - 1]
    if word.text in BRANCHES:
        return True
    # name(...) {: a function, or a loop that is a macro. (type){ and call((type){ are values: no name stands before their parenthesis.
    return word.kind == "word" and word.text not in KEYWORDS


def left_alone(tokens):
    """Indices of tokens that no operator may touch."""
    alone = set()
    for i, token in enumerate(tokens):
        if token.kind == "word" and LEFT_ALONE.fullmatch(token.text) and i + 1 < len(tokens) and tokens[i + 1].mate:
            alone.update(range(i, tokens[i + 1].mate + 1))
    return alone


# ---- statements ----

def follows_condition(tokens, i):
    """Whether the token before i closes the parenthesis of an if, for, while or switch."""
    mate = tokens[i - 1].mate
    return tokens[i - 1].text == ")" and bool(mate) and tokens[mate - 1].text in BRANCHES


def functions_of(tokens):
    """(first, last, value) of function bodies: the indices of their braces, and whether they return a value."""
    depth_end = -1
    for i, token in enumerate(tokens):
        if i <= depth_end or token.text != "{" or token.mate is None:
            continue
        depth_end = token.mate
        if not token.block or tokens[i - 1].text != ")":
            continue
        name = tokens[i - 1].mate - 1
        head = name
        while head > 0 and tokens[head - 1].text not in (";", "}"):
            head -= 1
        words = [token.text for token in tokens[head:name]]
        yield i, token.mate, "void" not in words or "*" in words


def starts_of(tokens, first, last):
    """Indices where statements begin between the braces of a function; not those of conditions, labels and values."""
    i = first + 1
    while i < last:
        token = tokens[i]
        before = tokens[i - 1]
        begins = (before.text in (";", "else", "do") or (before.text == "{" and before.block) or follows_condition(tokens, i)
                  or (before.text == "}" and before.mate is not None and tokens[before.mate].block)
                  or (before.text == ":" and is_label(tokens, i - 1)))
        if begins:
            yield i
        if token.text in ("(", "[") or (token.text == "{" and not token.block):
            i = token.mate or i
        i += 1


def is_label(tokens, i):
    """Whether the colon at i ends a case or a label, and is not of a ?: ."""
    while i > 0 and tokens[i - 1].text not in (";", "{", "}", ":", "?"):
        i -= 1
    return tokens[i].text in ("case", "default") or (tokens[i + 1].text == ":" and tokens[i - 1].text != "?")


def end_of(tokens, i, last):
    """The semicolon of the statement that begins at i, or None."""
    while i < last and tokens[i].text != ";":
        if tokens[i].text in OPENING:
            if tokens[i].text == "{" and tokens[i].block:
                return None
            i = tokens[i].mate or last
        i += 1
    return i if i < last else None


def is_declaration(tokens, i):
    first, second = tokens[i], tokens[i + 1]
    if first.kind != "word":
        return False
    if first.text in TYPES or second.kind == "word":
        return True
    if second.text == "*":  # name *other, not *name = ... and not a product, which does nothing
        while tokens[i + 1].text == "*":
            i += 1
        return tokens[i + 1].kind == "word"
    return False


# ---- operators ----

def signs(tokens, alone):
    for i, token in enumerate(tokens):
        if i in alone or token.kind != "sign":
            continue
        if token.text in COMPARISONS:
            yield Mutant("comparison", [(token.start, token.end, COMPARISONS[token.text])])
        if token.text in LOGIC:
            yield Mutant("logic", [(token.start, token.end, LOGIC[token.text])])


def other_numbers(text):
    """What a number is turned into."""
    number = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", text)
    if number:
        digits, suffix = number.groups()
        hexadecimal = digits[:2] in ("0x", "0X")
        value = int(digits, 16 if hexadecimal else 8 if digits[0] == "0" and len(digits) > 1 else 10)
        return [(f"{new:#x}" if hexadecimal else str(new)) + suffix for new in ((1,) if value == 0 else (value - 1, value + 1))]
    real = re.fullmatch(r"((?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)([fFlL]?)", text)
    if real and any(sign in text for sign in ".eE"):
        value = float(real[1])
        return [repr(value * 2 if value else 1.0) + real[2]]
    return []


def array_sizes(tokens, functions):
    """Indices within the brackets of declarations: a longer array is not wrong."""
    sizes = set()
    inside = set()
    for first, last, _ in functions:
        inside.update(range(first, last + 1))
        for i in starts_of(tokens, first, last):
            end = end_of(tokens, i, last)
            if end and is_declaration(tokens, i):
                sizes.update(brackets(tokens, i, end))
    for i, token in enumerate(tokens):
        if i not in inside and token.text == "[" and token.mate and tokens[i - 1].kind == "word":
            sizes.update(range(i, token.mate + 1))
    return sizes


def brackets(tokens, i, end):
    """Indices within [] up to the = of each declared name."""
    value = False
    while i < end:
        token = tokens[i]
        value = token.text == "=" or (value and token.text != ",")
        if token.text == "[" and token.mate and not value:
            yield from range(i, token.mate + 1)
        if token.text in OPENING:
            i = token.mate or i
        i += 1


def times(tokens):
    """Indices of the values of constants that are times."""
    for i, token in enumerate(tokens[:-1]):
        if TIME.fullmatch(token.text) and tokens[i + 1].text == "=":
            while tokens[i].text not in (",", "}", ";"):
                yield i
                i += 1


def constants(tokens, alone, functions):
    alone = alone | array_sizes(tokens, functions) | set(times(tokens))
    for i, token in enumerate(tokens):
        if token.kind == "number" and i not in alone:
            for new in other_numbers(token.text):
                yield Mutant("constant", [(token.start, token.end, new)])


def conditions(tokens, alone):
    for i, token in enumerate(tokens):
        if token.text in ("if", "while") and i not in alone and tokens[i + 1].text == "(" and tokens[i + 1].mate:
            opening, closing = tokens[i + 1], tokens[tokens[i + 1].mate]
            yield Mutant("negate", [(opening.end, opening.end, "!("), (closing.start, closing.start, ")")])


def statements(text, tokens, alone, functions):
    for first, last, value in functions:
        for i in starts_of(tokens, first, last):
            token = tokens[i]
            if i in alone or token.text in ("{", "}", ";", "else", "case", "default") or is_declaration(tokens, i):
                continue
            if tokens[i + 1].text == ":":  # a label
                continue
            end = end_of(tokens, i, last)
            if end and (token.text in ("break", "continue") or token.text not in KEYWORDS):
                lines = text.count("\n", token.start, tokens[end].start)
                yield Mutant("drop", [(token.start, tokens[end].end, ";" + "\n" * lines)])
            if token.text != "return" and tokens[i - 1].text in (";", "{", "}"):
                yield Mutant("return", [(token.start, token.start, "return 0; " if value else "return; ")])


def mutants_of(text):
    """All mutants of a C file."""
    tokens = tokens_of(text)
    alone = left_alone(tokens)
    functions = list(functions_of(tokens))
    return [*signs(tokens, alone), *constants(tokens, alone, functions), *conditions(tokens, alone),
            *statements(text, tokens, alone, functions)]
