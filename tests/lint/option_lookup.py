#!/usr/bin/python3
"""option_lookup.py - what the pipeline must know of an add-on is a member of its descriptor: product code outside of add-ons and of
src/base never looks for an option of a given name."""

import re
import sys

import lint

ENDINGS = (".c", ".h")
# The machinery of options, and add-ons, which have the options.
MAY = ("src/base/", "src/detector/", "src/link/", "src/sink/", "src/stage/", "src/unit/")
FINDS = re.compile(r"\bsl_option_find\w*\s*\(")
DECLARES = re.compile(r"\bstruct sl_option \*(?:const )?(\w+)")
ADVICE = "ask the add-on's descriptor, or give it a member that answers"


def product(root):
    for path in lint.files(root, *ENDINGS):
        name = lint.relative(path, root)
        if name.startswith("src/") and not name.startswith(MAY) and not name.endswith(("_test.c", "/testing.h")):
            yield name, path


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def finds_by_name(root):
    problems = []
    for name, path in product(root):
        text = path.read_text(errors="replace")
        problems += [f"{name}:{line_of(text, m.start())}: looks for an option by its name: {ADVICE}" for m in FINDS.finditer(text)]
    return problems


def compares_names(root):
    """The same by hand: the name of a row is compared with a text."""
    problems = []
    for name, path in product(root):
        text = path.read_text(errors="replace")
        rows = "|".join(sorted(set(DECLARES.findall(text))))
        if not rows:
            continue
        compares = re.compile(rf'\bstr\w*cmp\(\s*(?:(?:{rows})(?:->|\[\w+\]\.)name,\s*"|"[^"]*",\s*(?:{rows})(?:->|\[\w+\]\.)name)')
        problems += [f"{name}:{line_of(text, m.start())}: compares the name of an option with a text: {ADVICE}"
                     for m in compares.finditer(text)]
    return problems


LOOP = 'static const struct sl_option *row(const struct sl_option *o)\n{\n\twhile (strcmp(o->name, "path"))\n\t\to++;\n}\n'
TURNED = 'void f(const struct sl_option *table)\n{\n\tif (!strcmp("path", table[i].name))\n\t\treturn;\n}\n'
HARMLESS = 'void f(const struct sl_sink *sink, const struct sl_option *o)\n{\n\tif (!strcmp(sink->name, "null"))\n\t\tputs(o->name);\n}\n'


def main():
    out = lint.tap.Writer()
    find = 'x = sl_option_find(e->link->options, "credits");\n'
    former = 'x =\n\tsl_option_find_former(options, "answers");\n'
    out.case("no option is looked for by name", finds_by_name(lint.ROOT))
    out.case("no option is looked for by name: finds one", lint.finds(
        finds_by_name, {"src/receiver/a.c": find, "src/cmd/run/b.c": former}, "src/receiver/a.c:1:", "src/cmd/run/b.c:2:"))
    out.case("no option is looked for by name: not in add-ons, base and tests", lint.finds(finds_by_name, {
        "src/link/udp/a.c": find, "src/base/config/b.c": former, "src/receiver/a_test.c": find, "src/experiment/testing.h": find,
        "bench/link/a.c": find, "tests/lib/rig.c": find}))
    out.case("no name of an option is compared with a text", compares_names(lint.ROOT))
    out.case("no name of an option is compared with a text: finds one", lint.finds(
        compares_names, {"src/cmd/a.c": LOOP, "src/cmd/b.c": TURNED}, "src/cmd/a.c:3:", "src/cmd/b.c:3:"))
    out.case("no name of an option is compared with a text: names of add-ons may be", lint.finds(compares_names, {"src/cmd/a.c": HARMLESS}))
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
