#!/usr/bin/python3
"""embed_web.py - the files of the page become one C file: a table of paths, types, tags and bytes, plain and packed by gzip.

  tools/embed_web.py FOLDER OUTPUT.c DEPFILE.d

A file changes its tag when its bytes change. The same files make the same bytes, wherever and whenever this runs. Files that begin with a
dot, end with '~' or '.md', and folders called test are left out. So are lines of scripts and styles that are comments, and indentation: the
lines themselves stay, so that numbers in messages of a browser are those of the file.
"""

import gzip
import hashlib
import pathlib
import re
import sys

TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8", ".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon",
    ".woff2": "font/woff2", ".webmanifest": "application/manifest+json", ".txt": "text/plain; charset=utf-8",
}
PER_LINE = 24


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".") and
                  not path.name.endswith(("~", ".md")) and "test" not in path.relative_to(folder).parts[:-1])


# A whole line: // ..., or a block that begins and ends with its line. No such line stands inside a text of several lines.
COMMENT = {".js": re.compile(rb"^[ \t]*(?://[^\n]*|/\*\*(?:[^*]|\*(?!/))*\*/)$", re.M), ".css": re.compile(rb"^[ \t]*/\*(?:[^*]|\*(?!/))*\*/$", re.M)}


def shown_to_browsers(path):
    data = path.read_bytes()
    if path.suffix not in COMMENT:
        return data
    data = COMMENT[path.suffix].sub(lambda found: b"\n" * found[0].count(b"\n"), data)
    return re.sub(rb"^[ \t]+", b"", data, flags=re.M)


def array(name, data):
    """Bytes as a C array; an empty one needs a byte all the same."""
    data = data or b"\0"
    lines = (",".join(map(str, data[at:at + PER_LINE])) for at in range(0, len(data), PER_LINE))
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"


def entry(folder, number, path, out):
    data = shown_to_browsers(path)
    packed = gzip.compress(data, 9, mtime=0)
    if len(packed) >= len(data):
        packed = b""
    kind = TYPES.get(path.suffix)
    if not kind:
        sys.exit(f"{path}: no media type is known for '{path.suffix}': add it to tools/embed_web.py")
    out.append(array(f"plain_{number}", data))
    if packed:
        out.append(array(f"packed_{number}", packed))
    tag = hashlib.sha256(data).hexdigest()[:24]
    packed_words = f"packed_{number}, {len(packed)}" if packed else "0, 0"
    return f'\t{{"{path.relative_to(folder).as_posix()}", "{kind}", "{tag}", plain_{number}, {len(data)}, {packed_words}}},\n'


def main(folder, output, depfile):
    folder = pathlib.Path(folder)
    files = files_of(folder)
    out = [f"/* Made of {folder.name}/ by tools/embed_web.py. */\n", '#include "service/http/assets.h"\n']
    entries = [entry(folder, number, path, out) for number, path in enumerate(files)]
    out.append("const struct sl_asset sl_assets[] = {\n" + "".join(entries) + "\t{0, 0, 0, 0, 0, 0, 0},\n};\n")
    pathlib.Path(output).write_text("\n".join(out))
    folders = sorted({path.parent for path in files} | {folder})
    pathlib.Path(depfile).write_text(f"{output}: " + " ".join(str(path).replace(" ", "\\ ") for path in [*files, *folders]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
