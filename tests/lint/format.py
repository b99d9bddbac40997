#!/usr/bin/python3
"""format.py - every C file is as clang-format 14 would write it, by the repository's .clang-format."""

import collections
import shutil
import subprocess
import sys

import lint

TOOL = "clang-format-14"
COLUMNS = 100


def unformatted(root, paths):
    """The files that clang-format would change, each with the first place."""
    style = f"--style=file:{lint.ROOT}/.clang-format"
    run = subprocess.run([TOOL, style, "--dry-run", "-Werror", *paths], capture_output=True, text=True, check=False)
    seen = {}
    for line in run.stderr.splitlines():
        if ": error: " in line:
            seen.setdefault(line.split(":")[0], line.split(": error: ")[0])
    problems = [place.replace(f"{root}/", "") + ": not as clang-format writes it (make format)"
                for place in seen.values()]
    if run.returncode and not problems:
        problems = [run.stderr]
    return problems


def long_lines(root):
    """clang-format leaves comments and strings as they are, however long."""
    return [f"{lint.relative(path, root)}:{number}: longer than {COLUMNS} columns"
            for path in lint.files(root, ".c", ".h")
            for number, line in lint.lines(path) if len(line.expandtabs(8)) > COLUMNS]


def folder(root):
    return unformatted(root, lint.files(root, ".c", ".h"))


def main():
    out = lint.tap.Writer()
    out.case("no long lines", long_lines(lint.ROOT))
    out.case("no long lines: finds one", lint.finds(long_lines, {"a.c": "\t/* " + 90 * "x" + " */\n"}, "a.c:1"))
    out.case("no long lines: passes a short one", lint.finds(long_lines, {"a.c": "\t/* " + 80 * "x" + " */\n"}))
    if not shutil.which(TOOL):
        out.skip("format", f"{TOOL} is not installed")
        return out.done()
    folders = collections.defaultdict(list)
    for path in lint.files(lint.ROOT, ".c", ".h"):
        folders[lint.relative(path.parent, lint.ROOT)].append(path)
    for name, paths in sorted(folders.items()):
        out.case(name, unformatted(lint.ROOT, paths))
    out.case("finds a badly formatted file", lint.finds(folder, {"a.c": "int  f( void ) { return 0; }\n"}, "a.c"))
    out.case("passes a good file", lint.finds(folder, {"a.c": "int f(void)\n{\n\treturn 0;\n}\n"}))
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
