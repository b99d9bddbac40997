#!/usr/bin/python3
"""sizes.py - folders and files that a reader can take in: a folder of src or bench has at most 32 product files, a product file at
most 500 lines. Tests do not count."""

import collections
import sys

import lint

FILES, LINES = 32, 500
ENDINGS = (".c", ".h", ".cl", ".clh", ".cu")


def product(root):
    for path in lint.files(root, *ENDINGS):
        name = lint.relative(path, root)
        if name.startswith(("src/", "bench/", "include/")) and not name.endswith(("_test.c", "/testing.h")):
            yield name, path


def long_files(root):
    problems = []
    for name, path in product(root):
        lines = len(path.read_text(errors="replace").splitlines())
        if lines > LINES:
            problems.append(f"{name}: {lines} lines, more than {LINES}: divide it by purpose")
    return problems


def crowded_folders(root):
    files = collections.Counter(name.rpartition("/")[0] for name, _ in product(root))
    return [f"{folder}: {n} product files, more than {FILES}: give some a folder of their own"
            for folder, n in sorted(files.items()) if n > FILES]


def main():
    out = lint.tap.Writer()
    out.case("no long product file", long_files(lint.ROOT))
    out.case("no long product file: finds one", lint.finds(long_files, {"src/a/b.c": "\n" * 501}, "src/a/b.c: 501"))
    out.case("no long product file: tests may be long", lint.finds(long_files, {"src/a/b_test.c": "\n" * 501, "src/a/b.c": "\n" * 500}))
    out.case("no crowded folder", crowded_folders(lint.ROOT))
    out.case("no crowded folder: finds one", lint.finds(crowded_folders, {f"src/a/{i}.c": "" for i in range(33)}, "src/a: 33"))
    out.case("no crowded folder: tests may be many", lint.finds(
        crowded_folders, {**{f"src/a/{i}_test.c": "" for i in range(33)}, **{f"src/a/{i}.c": "" for i in range(32)}}))
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
