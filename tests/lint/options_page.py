#!/usr/bin/python3
"""options_page.py - docs/reference/options.md is what `sluice list --markdown` prints; states.md, errors.md and metrics.md are what
`sluice list states`, `sluice list errors` and `sluice list metrics` print.

The program is the one in the environment variable SLUICE, or build/sluice if it is newer than the sources.
"""

import difflib
import os
import pathlib
import subprocess
import sys

import lint

PAGE = "docs/reference/options.md"
OTHERS = {"docs/reference/states.md": "states", "docs/reference/errors.md": "errors", "docs/reference/metrics.md": "metrics"}
ABSENT = "(not in this program: "
GIVEN = os.environ.get("SLUICE")
PROGRAM = pathlib.Path(GIVEN or lint.ROOT / "build/sluice").resolve()


def why_not():
    """Why the page cannot be checked with this program; None: it can."""
    if not PROGRAM.exists():
        return f"{PROGRAM} is not built"
    built = PROGRAM.stat().st_mtime
    if not GIVEN and any(path.stat().st_mtime > built for path in lint.files(lint.ROOT, ".c", ".h", ".in")
                         if lint.relative(path, lint.ROOT).startswith(("src/", "include/"))):
        return f"{PROGRAM} is older than the sources"
    for line in reference().splitlines():
        if line.startswith(ABSENT):
            return f"something is {line.strip('()')}"
    return None


def reference():
    return subprocess.run([PROGRAM, "list", "--markdown"], capture_output=True, text=True, check=True).stdout


def others(root):
    """Pages that differ from what the program lists."""
    problems = []
    for page, word in OTHERS.items():
        listed = subprocess.run([PROGRAM, "list", word], capture_output=True, text=True, check=True).stdout
        if not (root / page).exists() or (root / page).read_text() != listed:
            problems.append(f"{page}: out of date; sluice list {word} > {page}")
    return problems


def outdated(root):
    page = root / PAGE
    if not page.exists():
        return [f"{PAGE}: missing; sluice list --markdown > {PAGE}"]
    difference = list(difflib.unified_diff(page.read_text().splitlines(), reference().splitlines(), PAGE,
                                           "sluice list --markdown", lineterm="", n=0))
    return [f"{PAGE}: out of date; sluice list --markdown > {PAGE}", *difference[:40]] if difference else []


def main():
    out = lint.tap.Writer()
    reason = why_not()
    if reason:
        out.skip("the page is what the program prints", reason)
        return out.done()
    page = reference()
    out.case("the page is what the program prints", outdated(lint.ROOT))
    out.case("states, errors and metrics are what the program lists", others(lint.ROOT))
    out.case("finds a page of states that is not", lint.finds(others, {"docs/reference/states.md": "\n"}, "states.md: out of date"))
    out.case("finds a changed page", lint.finds(outdated, {PAGE: page.replace("4791", "4792")}, "out of date", "+| `port`"))
    out.case("finds a missing page", lint.finds(outdated, {"docs/README.md": "\n"}, "missing"))
    out.case("passes a good page", lint.finds(outdated, {PAGE: page}))
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
