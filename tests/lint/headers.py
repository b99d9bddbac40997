#!/usr/bin/python3
"""headers.py - every header compiles alone, and twice in a row: whoever includes it needs to know nothing more."""

import os
import shlex
import subprocess
import sys

import lint

VENDOR = ["yaml-0.1", "libisal", "hdf5", "jansson", "nettle"]
CUDA = "/usr/local/cuda/include"
# Headers around what may be missing here, and is then missing in the build, too.
OPTIONAL = {"src/gpu/cuda/library.h": "cuda.h", "src/gpu/opencl/library.h": "CL/cl.h",
            "src/service/http/request.h": "microhttpd.h"}


def flags():
    """Where vendor headers are; a package that is missing here is missing in the build, too."""
    found = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter",
             "-Wno-unused-function", "-Wno-missing-field-initializers", "-fsyntax-only"]
    for package in VENDOR:
        run = subprocess.run(["pkg-config", "--cflags", package], capture_output=True, text=True, check=False)
        found += run.stdout.split()
    return found + (["-isystem", CUDA] if os.path.isdir(CUDA) else [])


def has(header, options):
    run = subprocess.run([*shlex.split(os.environ.get("CC", "cc")), *options, "-xc", "-"], input=f"#include <{header}>\n",
                         capture_output=True, text=True, check=False)
    return run.returncode == 0


def problems_of(root, path, options):
    """What the compiler says to a file that includes only this header, twice."""
    folder = path.relative_to(root).parts[0]
    name = path.relative_to(root if folder == "bench" else root / folder).as_posix()
    include = f"<{name}>" if folder == "include" else f'"{name}"'
    source = f"#include {include}\n#include {include}\nextern int not_empty;\n"
    where = [f"-I{root}/include", f"-I{root}/src", f"-I{root}"]
    run = subprocess.run([*shlex.split(os.environ.get("CC", "cc")), *options, *where, "-xc", "-"], input=source,
                         capture_output=True, text=True, check=False)
    return run.stderr.splitlines()[:8] or ["the compiler failed"] if run.returncode else []


def headers(root):
    return [path for path in lint.files(root, ".h") if path.relative_to(root).parts[0] in ("include", "src", "bench")]


def tree(root):
    options = flags()
    return [line for path in headers(root) for line in problems_of(root, path, options)]


def main():
    out = lint.tap.Writer()
    options = flags()
    for path in headers(lint.ROOT):
        wants = OPTIONAL.get(path.relative_to(lint.ROOT).as_posix())
        if wants and not has(wants, options):
            out.skip(lint.relative(path, lint.ROOT), f"no {wants} here")
            continue
        out.case(lint.relative(path, lint.ROOT), problems_of(lint.ROOT, path, options))
    out.case("finds a missing include", lint.finds(tree, {"src/base/a.h": "uint32_t f(void);\n"}, "uint32_t"))
    out.case("finds a missing guard", lint.finds(tree, {"include/sluice/a.h": "struct a {\n\tint b;\n};\n"}, "redef"))
    out.case("passes a good header", lint.finds(tree, {"src/base/a.h": "#ifndef A_H\n#define A_H\nint f(void);\n#endif\n"}))
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
