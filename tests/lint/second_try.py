#!/usr/bin/python3
"""second_try.py - what check.py --again forgives, and what it does not."""

import contextlib
import io
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check
import tap

SOURCE = check.Build("source", ".", [])
PASSES, FAILS = "echo '1..1'; echo 'ok 1 - a'", "echo '1..1'; echo 'not ok 1 - a'; exit 1"


def tried(scripts):
    """Each script run once, then those that failed again: the tally, the exit status, and what was printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        tally = check.Tally(False)
        for name, script in scripts:
            build = check.Build(name, ".", []) if name == "fuzz" else SOURCE
            tally.add(check.run_tap(check.Job(build, name, ["sh", "-c", script], {}, 60)))
        tally.try_again()
        status = tally.finish()
    return tally, status, printed.getvalue()


def starved(folder):
    """Fails the first time and passes the second time."""
    return f"if mkdir {folder}/been 2> /dev/null; then {FAILS}; fi; {PASSES}"


def forgiven():
    with tempfile.TemporaryDirectory() as folder:
        tally, status, text = tried([("good", PASSES), ("starved", starved(folder))])
    problems = [] if status == 0 and len(tally.again) == 1 else [f"exit status {status}, {len(tally.again)} second tries passed"]
    wanted = "passed only at the second try:\n  source starved: a\n2 passed, 0 failed, 0 skipped\n"
    return problems + ([] if text.endswith(wanted) else [text])


def broken():
    tally, status, text = tried([("good", PASSES), ("broken", FAILS)])
    return [] if status and not tally.again and text.endswith("1 passed, 1 failed, 0 skipped\n") else [text]


def sanitizer():
    with tempfile.TemporaryDirectory() as folder:
        report = "echo 'WARNING: ThreadSanitizer: data race' >&2; "
        tally, status, text = tried([("race", report + starved(folder))])
    return [] if status and "second try" not in text else [text]


def fuzz():
    with tempfile.TemporaryDirectory() as folder:
        tally, status, text = tried([("fuzz", starved(folder))])
    return [] if status and "second try" not in text else [text]


def too_many():
    with tempfile.TemporaryDirectory() as folder:
        scripts = [(f"p{i}", starved(folder).replace("been", f"been{i}")) for i in range(check.MOST_AGAIN + 1)]
        tally, status, text = tried(scripts)
    return [] if status and "second try" not in text else [text]


def main():
    out = tap.Writer()
    for name, function in (("a starved program passes at its second try, and is named", forgiven), ("a broken one fails twice", broken),
                           ("reports of sanitizers are not forgiven", sanitizer), ("findings of fuzz targets are not forgiven", fuzz),
                           ("many failures are not forgiven", too_many)):
        out.case(name, function())
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
