#!/usr/bin/python3
"""embed_text.py - a text file becomes a C file: `const char NAME[]` and `const size_t NAME_bytes`.

  tools/embed_text.py FILE NAME OUTPUT.c
"""

import pathlib
import sys


def quoted(line):
    """A line as a piece of a string literal; bytes that C may read in another way are octal."""
    return "".join(chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in line)


def main(source, name, output):
    text = pathlib.Path(source).read_bytes()
    lines = "\n".join(f'\t"{quoted(line)}"' for line in text.splitlines(keepends=True))
    pathlib.Path(output).write_text(f"/* {pathlib.Path(source).name} as text. */\n#include <stddef.h>\n\n"
                                    f"extern const char {name}[];\nextern const size_t {name}_bytes;\n"
                                    f"const char {name}[] =\n{lines};\nconst size_t {name}_bytes = sizeof({name}) - 1;\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
