#!/usr/bin/python3
"""python.py - the Python package beside the C library: the declarations for CFFI are those of the headers, its version, the library's name
and the names of reasons are those of the C code, meson installs every module, mypy finds nothing, and everything public has a docstring."""

import ast
import re
import shutil
import subprocess
import sys

import lint

sys.path.insert(0, str(lint.ROOT / "tools"))
import python_cdef  # noqa: E402  (found through the line above)

PACKAGE = "python/sluice"


def declarations(root):
    path = root / python_cdef.FILE
    if path.read_text() == python_cdef.cdef(root):
        return []
    return [f"{python_cdef.FILE}: not what the headers of include/sluice say: run tools/python_cdef.py --write"]


def found(path, pattern):
    match = re.search(pattern, path.read_text(), re.M)
    return match[1] if match else None


def versions(root):
    """[(place, version)]"""
    return [("meson.build", found(root / "meson.build", r"^\s*version: '([^']+)'")),
            ("python/pyproject.toml", found(root / "python/pyproject.toml", r'^version = "([^"]+)"')),
            (f"{PACKAGE}/__init__.py", found(root / PACKAGE / "__init__.py", r'^__version__ = "([^"]+)"'))]


def same_version(root):
    (_, wanted), *others = versions(root)
    return [f"{place}: version {version}, and meson.build has {wanted}" for place, version in others if version != wanted]


def same_library(root):
    meson = re.search(r"shared_library\('sluice-client',(.*?)install: true\)", (root / "meson.build").read_text(), re.S)[1]
    wanted = f"libsluice-client.so.{re.search(r'soversion: .([0-9]+).', meson)[1]}"
    name = found(root / PACKAGE / "_library.py", r'^SONAME = "([^"]+)"')
    return [] if name == wanted else [f"{PACKAGE}/_library.py: SONAME is {name}, and meson.build makes {wanted}"]


def same_reasons(root):
    """The names of enum sl_reason in their order, beside REASONS."""
    enum = re.search(r"enum sl_reason \{(.*?)\n\};", (root / "include/sluice/frame.h").read_text(), re.S)[1]
    wanted = [name.lower() for name in re.findall(r"^\tSL_REASON_(\w+),", enum, re.M)]
    text = re.search(r"^REASONS = (\(.*?\))$", (root / PACKAGE / "_follow.py").read_text(), re.M | re.S)[1]
    names = list(ast.literal_eval(text))
    return [] if names == wanted else [f"{PACKAGE}/_follow.py: REASONS are {names}, and enum sl_reason has {wanted}"]


def installed(root):
    here = {path.relative_to(root / "python").as_posix() for path in (root / PACKAGE).iterdir() if path.suffix in (".py", ".typed") or path.name == "py.typed"}
    named = set(re.findall(r"'(sluice/[\w.]+)'", (root / "python/meson.build").read_text()))
    return ([f"python/meson.build: {name} is not installed" for name in sorted(here - named)] +
            [f"python/meson.build: there is no {name}" for name in sorted(named - here)])


def is_public(node):
    return not node.name.startswith("_")


def undocumented(root):
    problems = []
    for path in lint.files(root, ".py"):
        name = lint.relative(path, root)
        if not name.startswith(f"{PACKAGE}/"):
            continue
        tree = ast.parse(path.read_text())
        nodes = [tree] + [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and is_public(node)]
        for owner in list(nodes):
            if isinstance(owner, ast.ClassDef):
                nodes += [node for node in owner.body if isinstance(node, ast.FunctionDef) and is_public(node)]
        problems += [f"{name}:{getattr(node, 'lineno', 1)}: '{getattr(node, 'name', 'the module')}' has no docstring"
                     for node in nodes if not ast.get_docstring(node)]
    return problems


def untyped(root, cache="/dev/null"):
    done = subprocess.run([shutil.which("mypy"), "--strict", "--config-file", root / "python/pyproject.toml", "--cache-dir", str(cache),
                           "--python-executable", "/usr/bin/python3", root / PACKAGE],
                          cwd=root / "python", capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()[:40] if done.returncode else []


GOOD = {
    "include/sluice/client.h": "/* c */\n#include <x.h>\nint sl_remote_do(int x); /* y */\n",
    "include/sluice/share.h": "#ifdef __cplusplus\nextern \"C\" {\n#endif\nvoid sl_share_do(void);\n#ifdef __cplusplus\n}\n#endif\n",
    "include/sluice/frame.h": "enum sl_reason {\n\tSL_REASON_UNJUDGED, /* x */\n\tSL_REASON_DARK,\n\tSL_REASONS,\n};\n",
    "meson.build": "project('a', 'c',\n  version: '1.2',\n)\nx = shared_library('sluice-client',\n  soversion: '3',\n  install: true)\n",
    "python/pyproject.toml": '[project]\nversion = "1.2"\n[tool.mypy]\nstrict = true\n',
    "python/meson.build": "python.install_sources(\n  'sluice/__init__.py',\n  'sluice/_cdef.py',\n  'sluice/_follow.py',\n  'sluice/_library.py')\n",
    f"{PACKAGE}/__init__.py": '"""A package."""\n\n__version__ = "1.2"\n',
    f"{PACKAGE}/_library.py": '"""A module."""\n\nSONAME = "libsluice-client.so.3"\n',
    f"{PACKAGE}/_follow.py": '"""A module."""\n\nREASONS = ("unjudged", "dark")\n\n\ndef look(n: int) -> int:\n    """Look."""\n    return n\n',
    f"{PACKAGE}/_cdef.py": python_cdef.HEAD + "int sl_remote_do(int x);\n\nvoid sl_share_do(void);\n" + '"""\n',
}
CHECKS = [
    ("declarations for CFFI are those of the headers", declarations, {f"{PACKAGE}/_cdef.py": "CDEF = ''\n"}, ["_cdef.py: not what"]),
    ("the package has the project's version", same_version, {"python/pyproject.toml": 'version = "1.3"\n'}, ["pyproject.toml: version 1.3"]),
    ("the package loads the library that is built", same_library, {f"{PACKAGE}/_library.py": 'SONAME = "libsluice-client.so.2"\n'}, ["SONAME is"]),
    ("names of reasons are those of the C code", same_reasons, {f"{PACKAGE}/_follow.py": 'REASONS = ("dark",)\n'}, ["REASONS are"]),
    ("meson installs every module", installed, {f"{PACKAGE}/new.py": "", "python/meson.build": "'sluice/gone.py'\n"},
     ["new.py is not installed", "there is no sluice/gone.py"]),
    ("everything public has a docstring", undocumented, {f"{PACKAGE}/bad.py": "def f():\n    pass\n\n\nclass C:\n    def g(self):\n        pass\n"},
     ["'the module' has", "'f' has", "'C' has", "'g' has"]),
    ("mypy --strict finds nothing", untyped, {f"{PACKAGE}/bad.py": '"""Bad."""\n\n\ndef f(x):\n    """F."""\n    return x + 1\n'}, ["bad.py"]),
]


def main():
    out = lint.tap.Writer()
    for name, check, bad, expected in CHECKS:
        if check is untyped and not shutil.which("mypy"):
            out.skip(name, "mypy is not installed (Debian: mypy, python3-typeshed)")
            continue
        cache = lint.ROOT / "build/mypy"
        out.case(name, untyped(lint.ROOT, cache) if check is untyped else check(lint.ROOT))
        out.case(f"{name}: finds a breach", lint.finds(check, {**GOOD, **bad}, *expected))
        out.case(f"{name}: passes a good tree", lint.finds(check, GOOD))
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
