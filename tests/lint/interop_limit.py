#!/usr/bin/python3
"""interop_limit.py - the time limit of check_interop.py's sessions, tested: a busy machine gets more time, a session that hangs ends,
and what was slow is said."""

import pathlib
import sys
import types

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import check_interop
import session_limit
import tap

LIMITS = [  # boot time, limit
    (None, 600), (0, 600), (1.5, 600), (6, 600), (6.6, 660), (12, 1200), (23.9, 2390), (24, 2400), (60, 2400), (1e9, 2400)]
LINES = [
    ("# 6.1.0-37-amd64 is up after 5.3 s\n", 5.3), ("# 6.12 is up after 17 s", 17), ("# boot 1: is up after 5.3 s", None),
    ("ok 1 - 6.1 is up after 5.3 s", None), ("# 6.1 is up after s", None), ("# 6.1 is up after 1.2.3 s", None), ("", None)]
# A session that prints these lines, and then hangs.
SESSION = """
import sys, time
for line in %r: print(line, flush=True)
time.sleep(60)
"""


def session_that_hangs(lines):
    """The cases of a session that prints these lines and then nothing, with limits of a second and less."""
    session = check_interop.Session.__new__(check_interop.Session)
    session.begin("6.1", [sys.executable, "-c", SESSION % (lines,)], {})
    short = types.SimpleNamespace(**{**vars(session_limit), "limit_s": lambda boot_s: 0.5 if boot_s is None else 1.5})
    used, check_interop.session_limit = check_interop.session_limit, short
    try:
        return session.run()
    finally:
        check_interop.session_limit = used


def explanations():
    """(name, problems) of what is said when the limit is reached."""
    text = session_limit.explain(12, [("a", 1), ("b", 30), ("c", 400), ("d", 2)], 77)
    wanted = ["1200 s", "12.0 s", "2.0 times", "77 s", "slowest: c (400 s), b (30 s), d (2 s)\n"]
    yield "what was slow is said", [f"'{word}' is not in {text!r}" for word in wanted if word not in text]
    text = session_limit.explain(None, [], 5)
    yield "a guest that did not boot is said", [] if text == "the limit is 600 s: the guest has not booted\n" else [text]


def main():
    out = tap.Writer()
    for boot_s, limit in LIMITS:
        is_ = session_limit.limit_s(boot_s)
        out.case(f"limit after a boot of {boot_s} s", [] if abs(is_ - limit) < 1e-6 else [f"{is_}, expected {limit}"])
    for line, seconds in LINES:
        is_ = session_limit.boot_seconds(line)
        out.case(f"boot time in '{line.strip()}'", [] if is_ == seconds else [f"{is_}, expected {seconds}"])
    for name, problems in explanations():
        out.case(name, problems)
    cases = session_that_hangs(["1..3", "# 6.1 is up after 12.0 s", "ok 1 - 6.1 first"])
    good = [(case.state, case.name) for case in cases] == [("passed", "6.1 first"), ("failed", "(timed out)")]
    out.case("a session that hangs is ended, and says what was slow",
             [] if good and "booted in 12.0 s" in cases[1].text and "6.1 first (" in cases[1].text else [str(cases)])
    cases = session_that_hangs([])
    out.case("a session that does not boot is ended, and says so",
             [] if len(cases) == 1 and "has not booted" in cases[0].text else [str(cases)])
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
