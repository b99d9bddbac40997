#!/usr/bin/python3
"""build.py - tools/build.sh configures a folder when that is needed, and only then: the first time, for other options, in a copied tree,
and when packages have come or gone. Nothing is compiled here."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import lint

OPTIONS = ("-Dtests=false", "-Dnvcc=disabled")


def copy_of(root, place):
    """The project's files without what was built."""
    for path in lint.files(root, ""):
        target = place / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


def configure(tree, *options):
    """What build.sh says, and when meson last ran there."""
    run = subprocess.run([tree / "tools/build.sh", "build", *options, "--", "configure"], cwd=tree, capture_output=True, text=True,
                         check=False)
    if run.returncode:
        return run.stdout + run.stderr, None
    return run.stdout, (tree / "build/build.ninja").stat().st_mtime_ns


def main():
    out = lint.tap.Writer()
    if not shutil.which("meson") and not pathlib.Path("/usr/bin/meson").exists():
        out.skip("a build folder is configured when that is needed", "meson is not installed")
        return out.done()
    with tempfile.TemporaryDirectory() as folder:
        tree, moved = pathlib.Path(folder) / "tree", pathlib.Path(folder) / "moved"
        copy_of(lint.ROOT, tree)
        text, first = configure(tree, *OPTIONS)
        out.case("the first time", [] if first else [text])
        text, again = configure(tree)
        out.case("not again, and no options mean those that it has", [] if first and again == first else [text])
        state = tree / "build/configured-for"
        state.write_text(state.read_text().replace("libisal ", "libisal 0.", 1))
        text, third = configure(tree)
        wrong = [] if "packages have changed" in text and third and third > first else [text]
        out.case("when packages have changed", wrong)
        text, fourth = configure(tree)
        out.case("once", [] if third and fourth == third else [text])
        state.unlink()
        text, made_by_hand = configure(tree)
        out.case("not a folder that was made with meson alone", [] if fourth and made_by_hand == fourth else [text])
        shutil.copytree(tree, moved, symlinks=True)
        text, fifth = configure(moved)
        wrong = [] if "copied or moved" in text and fifth else [text]
        wrong += [] if str(moved) in (moved / "build/configured-for").read_text() else ["it still names the other tree"]
        out.case("in a copied tree", wrong)
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
