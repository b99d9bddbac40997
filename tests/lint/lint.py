"""lint.py - what the lints share.

A lint is a function from a tree to a list of problems ("path:line: what"). Each also runs on a small bad tree made for
it, where it must find what is wrong: a lint that cannot fail says nothing.
"""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tap  # noqa: E402  (found through the line above)

GENERATED = ("build", "demo-out", ".git")


def files(root, *endings):
    """The project's files below root: tracked, or new and not ignored; all files where there is no git."""
    listing = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
                             capture_output=True, text=True, check=False)
    if listing.returncode == 0 and (root / ".git").exists():
        found = [root / name for name in listing.stdout.split("\0") if name]
    else:
        found = [path for path in root.rglob("*")
                 if not path.relative_to(root).parts[0].startswith(GENERATED)]
    return sorted(path for path in set(found) if path.is_file() and path.name.endswith(endings))


def lines(path):
    """(number, line) of a file, bytes that are no text replaced."""
    return enumerate(path.read_text(errors="replace").splitlines(), 1)


def finds(lint, tree, *expected):
    """Run a lint on a small tree {path: text}; what it should have found and did not."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in tree.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        problems = lint(root)
    wrong = [f"did not find: {e}" for e in expected if not any(e in problem for problem in problems)]
    if not expected:
        wrong = [f"found what is not there: {problem}" for problem in problems]
    return wrong


def relative(path, root):
    return path.relative_to(root).as_posix()
