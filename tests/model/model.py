#!/usr/bin/python3
"""model.py - check the models of the hand-over protocol with spin, and that each of them can fail.

  tests/model/model.py ring.pml                 check one model
  tests/model/model.py ring.pml --show NO_WAIT  the steps by which a broken variant goes wrong
  tests/model/model.py                          the names of the invariants, here and in the code

A model's first comment says what there is to check:

  invariant NAME: text    what holds. An assertion names it: assert(!NAME || ...); where the text ends in "(end state)"
                          it is that the model does not stand still.
  config: -DX=1 ...       one size to search exhaustively; several lines, several searches.
  break NAME: INVARIANT   with -DBREAK_NAME a guard is missing, and spin must find that INVARIANT does not hold. Two
                          with a slash between them: either.
  known NAME: INVARIANT   with -DKNOWN_NAME the invariant is wanted in full, and spin finds that the code does not keep
                          it: a weakness that has a name. When spin finds it no more, this says so.
"""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import tap  # noqa: E402  (found through the line above)

COMPILER = shlex.split(os.environ.get("CC", "cc"))
MEMORY_MB, DEPTH = 1024, 100000
SEARCH_TIMEOUT_S = 240  # they take seconds; a busy machine may need more
END_STATE = "invalid end state"
CODE = (".c", ".h", ".cl", ".clh")
INVARIANT = re.compile(r"\binvariants? ([A-Z_]+(?:, [A-Z_]+)*)\b")


class Model:
    """A .pml file and what its first comment promises."""

    def __init__(self, path):
        self.path, self.text = path, path.read_text()
        head = self.text[:self.text.index("*/")]
        entries = re.split(r"\n \* (?=invariant|config|break|known)", head)[1:]
        self.invariants, self.configs, self.broken, self.known = {}, [], {}, {}
        self.found = {}  # states by config, of the searches so far
        for entry in entries:
            kind, rest = entry.split(None, 1)
            name, _, text = rest.partition(":")
            words = " ".join(text.replace("\n *", "\n").split())
            if kind == "config:":
                self.configs.append(rest.split("\n")[0].split())
            elif kind == "invariant":
                self.invariants[name] = words
            else:
                expected, _, why = words.partition(" ")
                (self.broken if kind == "break" else self.known)[name] = (expected.split("/"), why)

    def stands_still(self, invariant):
        return self.invariants[invariant].endswith("(end state)")


class Search:
    """What pan said of one variant of a model."""

    def __init__(self, model, options, optimize):
        self.output, self.trail, self.problems = "", [], []
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(model.path, folder)
            if not self.run(folder, "spin", *options, "-a", model.path.name) or not self.run(
                    folder, *COMPILER, optimize, "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MB}", "-o", "pan",
                    "pan.c"):
                return
            self.run(folder, "./pan", f"-m{DEPTH}")
            if (pathlib.Path(folder) / f"{model.path.name}.trail").exists():
                replay = subprocess.run(["spin", *options, "-t", "-p", "-g", model.path.name], cwd=folder,
                                        capture_output=True, text=True, timeout=SEARCH_TIMEOUT_S, check=False)
                self.trail = replay.stdout.splitlines()

    def run(self, folder, *command):
        try:
            done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=SEARCH_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            self.problems.append(f"{command[0]} took more than {SEARCH_TIMEOUT_S} s")
            return False
        self.output = done.stdout + done.stderr
        if done.returncode:
            self.problems.append(f"{command[0]} failed with status {done.returncode}:\n{self.output}")
        return not done.returncode

    def error(self):
        """The first error that was found: an assertion or an end state, as pan words it."""
        match = re.search(r"^pan:1: (.*) \(at depth", self.output, re.M)
        return match[1] if match else None

    def states(self):
        match = re.search(r"(\d+) states, stored", self.output)
        return int(match[1]) if match else 0

    def incomplete(self):
        """Why this search proves nothing, where it does not."""
        found = list(self.problems)
        if self.error():
            found.append(self.error())
        for sign in ("Search not completed", "max search depth too small", "out of memory", "truncated"):
            if sign in self.output:
                found.append(f"pan: {sign}")
        if not re.search(r"errors: 0$", self.output, re.M) and not found:
            found.append("pan did not say how it ended:\n" + self.output)
        return found

    def unreached(self):
        """Lines of the model at which no search has been."""
        return set(re.findall(r"^\t\S+:(\d+), state \d+, (?!\"-end-\")(.*)$", self.output, re.M))


def is_of(model, error, invariants):
    """Whether this error says that one of the invariants does not hold."""
    for name in invariants:
        wanted = END_STATE if model.stands_still(name) else f"!({name})"
        if error and wanted in error:
            return True
    return False


def check_configs(out, model):
    never = None
    for config in model.configs:
        search = Search(model, config, "-O2")
        model.found[tuple(config)] = search.states()
        out.case(f"holds, {' '.join(config)}: {search.states()} states",
                 [*search.incomplete(), *search.trail[-60:]])
        never = search.unreached() if never is None else never & search.unreached()
    out.case("every line of it is reached", [f"line {line}: {what}" for line, what in sorted(never or ())])


def find(model, option):
    """Search one variant in the model's sizes, the quickest first, until one shows an error."""
    search = None
    for config in sorted(model.configs, key=lambda config: model.found.get(tuple(config), 0)):
        search = Search(model, [*config, f"-D{option}"], "-O0")
        if search.problems or search.error():
            break
    return search


def check_variants(out, model, variants, prefix, otherwise):
    for name, (expected, why) in variants.items():
        search = find(model, f"{prefix}_{name}")
        wrong = list(search.problems)
        if not search.error():
            wrong.append(otherwise)
        elif not is_of(model, search.error(), expected):
            wrong.append(f"expected {' or '.join(expected)}, found: {search.error()}")
        out.case(f"{prefix.lower()} {name}: {' or '.join(expected)} ({why})", wrong)


def check_promises(out, model):
    """The comment speaks of what is there."""
    used = set(re.findall(r"\bBREAK_(\w+)", model.text)) | set(re.findall(r"\bKNOWN_(\w+)", model.text))
    listed = set(model.broken) | set(model.known)
    broken = {name for expected, _ in model.broken.values() for name in expected}
    wrong = [f"{name} is listed and not used" for name in sorted(listed - used)]
    wrong += [f"{name} is used and not listed" for name in sorted(used - listed)]
    wrong += [f"no break shows that {name} can fail" for name in sorted(set(model.invariants) - broken)]
    wrong += [f"{name} is no invariant here" for name in sorted(broken - set(model.invariants))]
    if not model.configs:
        wrong.append("no config: nothing is searched")
    out.case("all that is in it is listed, and every invariant can fail", wrong)


def check_names(out):
    """The invariants of the models are those that the comments of the code name."""
    models = {name for path in HERE.glob("*.pml") for name in Model(path).invariants}
    code = {}
    for folder in ("include", "src"):
        for path in sorted(each for each in (ROOT / folder).rglob("*") if each.suffix in CODE):
            text = re.sub(r"\n\s*\* ?|\s+", " ", path.read_text())
            for name in ", ".join(INVARIANT.findall(text)).split(", "):
                code.setdefault(name, path.relative_to(ROOT).as_posix())
    code.pop("", None)  # of files that name none
    for name in sorted(models):
        out.case(f"{name} is named in the code: {code.get(name, 'nowhere')}",
                 [] if name in code else ["no comment in include/ or src/ says \"invariant " + name + "\""])
    out.case("no other is named there",
             [f"{code[name]} names {name}, which no model has" for name in sorted(set(code) - models)])


def show(model, name):
    """The steps of a counterexample."""
    search = find(model, ("BREAK_" if name in model.broken else "KNOWN_") + name)
    print("\n".join([*search.problems, *search.trail, "", f"{name}: {search.error() or 'nothing was found'}"]))
    return 0 if search.error() else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("model", nargs="?", help="a .pml file; none: check the names alone")
    parser.add_argument("--show", metavar="NAME", help="print how this break or known weakness goes wrong")
    arguments = parser.parse_args()
    out = tap.Writer()
    if not arguments.model:
        check_names(out)
        return out.done()
    missing = [tool for tool in ("spin", COMPILER[0]) if not shutil.which(tool)]
    if missing:
        out.skip(pathlib.Path(arguments.model).stem, f"{' and '.join(missing)} not installed")
        return out.done()
    path = pathlib.Path(arguments.model)
    model = Model(path if path.exists() else HERE / path)
    if arguments.show:
        return show(model, arguments.show)
    check_promises(out, model)
    check_configs(out, model)
    check_variants(out, model, model.broken, "BREAK", "spin finds nothing wrong without this guard")
    check_variants(out, model, model.known, "KNOWN", "spin finds it no more: the code keeps it now? Then say so here")
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
