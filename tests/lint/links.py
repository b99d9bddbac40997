#!/usr/bin/python3
"""links.py - links in README.md and docs/ that point within the repository point to something."""

import re
import sys
import urllib.parse

import lint

LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\s*\[[^\]]+\]:\s*(\S+)")
CODE = re.compile(r"`[^`]*`")


def anchor_of(heading):
    """The anchor that GitHub gives a heading."""
    words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return words.replace(" ", "-")


def anchors(path):
    return {anchor_of(line.lstrip("#")) for _, line in lint.lines(path) if re.match(r"#{1,6} ", line)}


def links(path):
    """(line number, target) of every link outside code."""
    fenced = False
    for number, line in lint.lines(path):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced or line.startswith(("    ", "\t")):
            continue
        for match in LINK.finditer(CODE.sub("", line)):
            yield number, match[1] or match[2]


def broken(root):
    problems = []
    for path in lint.files(root, ".md"):
        for number, target in links(path):
            place, _, anchor = target.partition("#")
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            goal = (path.parent / urllib.parse.unquote(place)).resolve() if place else path
            where = f"{lint.relative(path, root)}:{number}"
            if not goal.exists():
                problems.append(f"{where}: {target}: no such file")
            elif not goal.is_relative_to(root.resolve()):
                problems.append(f"{where}: {target}: outside the repository")
            elif anchor and goal.suffix == ".md" and anchor not in anchors(goal):
                problems.append(f"{where}: {target}: no such heading")
    return problems


BAD = {"README.md": "see [a](docs/none.md) and [b](docs/b.md#nowhere) and ![c](x.png)\n[d]: docs/gone.md\n",
       "docs/b.md": "# Here\n[up](../../etc)\n"}
GOOD = {"README.md": "[b](docs/b.md), [s](docs/b.md#what-it-is), [w](https://x.org/y), `[c](no.md)`\n\n"
                     "```\n[d](no.md)\n```\n", "docs/b.md": "# B\n## What it is\n[top](#b) [up](../README.md)\n"}


def main():
    out = lint.tap.Writer()
    out.case("links point to something", broken(lint.ROOT))
    out.case("finds links that point nowhere",
             lint.finds(broken, BAD, "docs/none.md: no such file", "#nowhere: no such heading", "x.png: no such file",
                        "docs/gone.md: no such file", "../../etc"))
    out.case("passes good links", lint.finds(broken, GOOD))
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
