#!/usr/bin/python3
"""extract.py PAGE.md LANGUAGE OUTPUT - the blocks of one language in a page, joined in their order: the pages of docs/
show files piece by piece, and the tests compile and run what the pages show.
"""

import pathlib
import sys


def blocks(text, language):
    """The fenced blocks marked with the language, as a list of texts."""
    found, block, fence = [], None, "```" + language
    for line in text.splitlines():
        if block is None and line == fence:
            block = []
        elif block is not None and line == "```":
            found.append("".join(part + "\n" for part in block))
            block = None
        elif block is not None:
            block.append(line)
    return found


def main():
    page, language, output = sys.argv[1:]
    pathlib.Path(output).write_text("\n".join(blocks(pathlib.Path(page).read_text(), language)))


if __name__ == "__main__":
    main()
