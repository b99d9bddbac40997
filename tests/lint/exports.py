#!/usr/bin/python3
"""exports.py - what the libraries show to others: the headers of include/sluice, the list of them that is installed, and the public
symbols of src/libsluice.map and src/libsluice-client.map say the same; and a C++ compiler and CFFI can read the headers."""

import re
import shutil
import subprocess
import sys

import lint

# A declaration begins in the first column: "int sl_name(", "const struct sl_x sl_name[", "SL_PUBLIC int sl_name(".
DECLARED = re.compile(r"^(?!static|typedef|#|/?\s*\*|enum\s*\{|\s|struct \w+ \{)[\w\s*]*?\b(sl_\w+)\s*(?:\(|\[|;)", re.M)
# What a plug-in defines, not the library.
OF_PLUGINS = {"sl_plugin"}


def headers(root):
    return [path for path in lint.files(root, ".h") if lint.relative(path, root).startswith("include/sluice/")]


def declared(text):
    """Functions and data that a header declares and does not define."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    names = {match[1] for match in DECLARED.finditer(text) if not match[0].lstrip().startswith("typedef")}
    return {name for name in names if not re.search(rf"^struct {name};", text, re.M)}


def listed(root, script, version):
    """The names of that version in a version script."""
    text = re.sub(r"#.*", "", (root / script).read_text())
    return set(re.findall(r"\b(sl_\w+);", re.search(rf"\b{version} \{{(.*?)\n\}}", text, re.S)[1]))


CLIENT = ("client.h", "share.h")
# Version script, its public version, and which headers it is for.
LIBRARIES = [("src/libsluice.map", "SLUICE_1", lambda name: name not in CLIENT),
             ("src/libsluice-client.map", "SLUICE_CLIENT_1", lambda name: name in CLIENT)]


def symbols(root):
    problems = []
    for script, version, has in LIBRARIES:
        public = set().union(*(declared(path.read_text()) for path in headers(root) if has(path.name))) - OF_PLUGINS
        in_map = listed(root, script, version)
        problems += [f"{script}: {name} is declared in include/sluice: list it under {version}" for name in sorted(public - in_map)]
        problems += [f"{script}: no header of include/sluice declares {name}" for name in sorted(in_map - public)]
    return problems


def plus_plus(root):
    """What a C++ compiler has against a header."""
    compiler = shutil.which("clang++") or shutil.which("g++")
    problems = []
    for path in headers(root):
        done = subprocess.run([compiler, "-std=c++17", "-Wall", "-Wextra", f"-I{root}/include", "-fsyntax-only", "-xc++", "-"],
                              input=f"#include <sluice/{path.name}>\n", capture_output=True, text=True, check=False)
        problems += done.stderr.splitlines()[:4]
    return problems


def installed(root):
    here = {lint.relative(path, root / "include") for path in headers(root)}
    named = set(re.findall(r"'(sluice/\w+\.h)'", (root / "include/meson.build").read_text()))
    return ([f"include/meson.build: {name} is not installed" for name in sorted(here - named)] +
            [f"include/meson.build: there is no {name}" for name in sorted(named - here)])


def atomics(root):
    return [f"{lint.relative(path, root)}:{number}: no _Atomic in public headers: use a plain type and __atomic_load_n()"
            for path in headers(root) for number, line in lint.lines(path)
            if re.search(r"\b_Atomic\b|stdatomic\.h", line.split("/*")[0]) and not line.lstrip().startswith("*")]


GOOD = {
    "include/sluice/a.h": "#include <stdint.h>\n#define SL_PUBLIC\nstruct sl_b;\nextern const int sl_table[];\nint sl_a_do(int x,\n\t    int y);\n"
                          "static inline int sl_a_add(int x)\n{\n\treturn sl_a_do(x, 1);\n}\nSL_PUBLIC const char *sl_a_name(void);\n"
                          "typedef void sl_a_fn(void);\n",
    "include/meson.build": "install_headers('sluice/a.h', 'sluice/client.h', subdir: 'sluice')\n",
    "src/libsluice.map": "SLUICE_1 {\nglobal:\n\tsl_table;\n\tsl_a_do; # x\n\tsl_a_name;\nlocal:\n\t*;\n};\n",
    "include/sluice/client.h": "int sl_remote_do(int x);\n",
    "src/libsluice-client.map": "SLUICE_CLIENT_1 {\nglobal:\n\tsl_remote_do;\nlocal:\n\t*;\n};\n",
}
CHECKS = [
    ("public symbols are those that the headers declare", symbols,
     {"include/sluice/b.h": "void sl_new(void);\n", "src/libsluice.map": "SLUICE_1 {\nglobal:\n\tsl_gone;\n};\n"},
     ["list it under SLUICE_1", "declares sl_gone"]),
    ("public symbols of the client library are those of client.h", symbols,
     {"include/sluice/client.h": "void sl_remote_new(void);\n"}, ["list it under SLUICE_CLIENT_1", "declares sl_remote_do"]),
    ("every public header is installed", installed,
     {"include/sluice/b.h": "", "include/meson.build": "install_headers('sluice/c.h')\n"}, ["b.h is not installed", "no sluice/c.h"]),
    ("C++ programs can include public headers", plus_plus, {"include/sluice/b.h": "struct a { int new; };\n"}, ["error"]),
    ("no _Atomic in public headers", atomics, {"include/sluice/b.h": "#include <stdatomic.h>\n\t_Atomic int x;\n"}, ["b.h:1", "b.h:2"]),
]


def main():
    out = lint.tap.Writer()
    for name, check, bad, expected in CHECKS:
        if check is plus_plus and not shutil.which("clang++") and not shutil.which("g++"):
            out.skip(name, "no C++ compiler is installed")
            continue
        out.case(name, check(lint.ROOT))
        out.case(f"{name}: finds a breach", lint.finds(check, {**GOOD, **bad}, *expected))
        out.case(f"{name}: passes a good tree", lint.finds(check, GOOD))
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
