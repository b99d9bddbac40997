#!/usr/bin/python3
"""python_cdef.py [--write] - what CFFI has to know of libsluice-client.so, taken from its headers: python/sluice/_cdef.py.

Prints it, or writes the file. CFFI reads plain C declarations: comments, the preprocessor's lines and `extern "C"` are left out.
tests/lint/python.py compares the file with the headers.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ("client.h", "share.h")
FILE = "python/sluice/_cdef.py"
HEAD = '''"""Declarations of libsluice-client.so for CFFI, out of its headers.

Written by tools/python_cdef.py --write: do not edit.
"""

CDEF = """
'''


def declarations(text):
    """The declarations of a header, one blank line between paragraphs."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.S)
    text = re.sub(r"^#.*\n", "", text, flags=re.M)
    lines = [line.rstrip() for line in text.splitlines()]
    return re.sub(r"\n{2,}", "\n", "\n".join(lines)).strip() + "\n"


def cdef(root):
    """The file's text."""
    parts = [declarations((root / "include/sluice" / name).read_text()) for name in HEADERS]
    return HEAD + "\n".join(parts) + '"""\n'


def main():
    text = cdef(ROOT)
    if sys.argv[1:] == ["--write"]:
        (ROOT / FILE).write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
