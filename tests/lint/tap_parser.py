#!/usr/bin/python3
"""tap_parser.py - the runner's counting, tested: a runner that miscounts makes every other test worthless."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap

# name, output, exit status, expected cases as (state, name)
SAMPLES = [
    ("all pass", "1..2\nok 1 - a\nok 2 - b\n", 0, [("passed", "a"), ("passed", "b")]),
    ("plan at the end", "ok 1 - a\n1..1\n", 0, [("passed", "a")]),
    ("a failure", "1..2\nok 1 - a\nnot ok 2 - b\n", 1, [("passed", "a"), ("failed", "b")]),
    ("a skip", "1..1\nok 1 - a # SKIP no card\n", 0, [("skipped", "a")]),
    ("a skip without a name", "1..1\nok 1 # SKIP no card\n", 0, [("skipped", "case 1")]),
    ("a skip by cmocka", "1..1\nnot ok 1 # SKIP name\n", 0, [("skipped", "name")]),
    ("a name that speaks of skipping", "1..1\nnot ok 1 - skips the rest\n", 1, [("failed", "skips the rest")]),
    ("noise between cases", "1..2\nhello\nok 1 - a\nokay\nok 2 - b\n# ok - g\n", 0, [("passed", "a"), ("passed", "b")]),
    ("two groups", "1..1\nok 1 - a\n1..1\nok 1 - b\n", 0, [("passed", "a"), ("passed", "b")]),
    ("set-up failed", "1..1\nnot ok 1 - a Could not run test: Test setup failed\n", 1,
     [("failed", "a Could not run test: Test setup failed")]),
    ("group set-up failed", "1..2\nnot ok 0 - g [  FAILED  ] GROUP SETUP\n# ok - g\n", 1,
     [("failed", "g [  FAILED  ] GROUP SETUP"), ("failed", "(cases missing)")]),
    ("group tear-down failed", "1..1\nok 1 - a\nnot ok 0 - g [  FAILED  ] GROUP TEARDOWN\n", 0,
     [("passed", "a"), ("failed", "g [  FAILED  ] GROUP TEARDOWN")]),
    ("fewer than planned", "1..2\nok 1 - a\n", 0, [("passed", "a"), ("failed", "(cases missing)")]),
    ("more than planned", "1..1\nok 1 - a\nok 2 - b\n", 0,
     [("passed", "a"), ("passed", "b"), ("failed", "(cases missing)")]),
    ("nothing at all", "", 0, [("failed", "(no plan)")]),
    ("no plan", "ok 1 - a\n", 0, [("passed", "a"), ("failed", "(no plan)")]),
    ("an unexplained exit status", "1..1\nok 1 - a\n", 66, [("passed", "a"), ("failed", "(exit status)")]),
    ("a crash", "1..2\nok 1 - a\n", -11, [("passed", "a"), ("failed", "(crashed)")]),
    ("a crash after the last case", "1..1\nok 1 - a\n", -6, [("passed", "a"), ("failed", "(crashed)")]),
    ("a time-out", "1..2\nok 1 - a\n", None, [("passed", "a"), ("failed", "(timed out)")]),
    ("bail out", "1..2\nok 1 - a\nBail out! no disk\n", 1, [("passed", "a"), ("failed", "(bailed out)")]),
    ("all skipped", "1..0 # SKIP no card\n", 0, [("skipped", "(all)")]),
    ("an empty plan", "1..0\n", 0, []),
]


def check_samples(out):
    for name, output, status, expected in SAMPLES:
        cases = [(case.state, case.name) for case in tap.read(output, status)]
        out.case(name, [] if cases == expected else [f"read {cases}", f"expected {expected}"])


def check_texts(out):
    cases = tap.read("1..2\nnot ok 1 - a\n# x != y\n# a.c:3: Failure!\nok 2 - b\n# later\n", 1)
    out.case("output of a failed case", [] if cases[0].text == "x != y\na.c:3: Failure!\n" else [cases])
    cases = tap.read("1..1\n# skip: no card here\nnot ok 1 # SKIP a\n")
    out.case("reason of a skip by cmocka", [] if cases[0].text == "no card here" else [cases])
    cases = tap.read("1..1\nok 1 - a # SKIP no card\n")
    out.case("reason of a skip", [] if cases[0].text == "no card" else [cases])


def main():
    out = tap.Writer()
    check_samples(out)
    check_texts(out)
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
