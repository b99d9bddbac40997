#!/usr/bin/python3
"""pace_test.py - a front end sends at its period and within its limit; a slow machine only makes it slower."""
# with sanitizers in check-long

import re

from harness import Program, acquire, case, check, closes, equal, experiment, main

SMALL = {"kind": "pattern", "modules": 2, "rows": 64, "columns": 256, "frames": 50}


@case("frames are sent at their period, not faster, and the front end says how late they were")
def _(folder):
    path = experiment(folder, detector={**SMALL, "frame_rate_Hz": 100}, emulate="none")
    receiver = Program("run", path, "--summary", folder / "summary.json", folder=folder)
    front_end = Program("emulate", path, "--once", folder=folder)
    receiver.ends(0)
    front_end.ends(0)
    late = re.search(r"after they were due by \(us\): p50 ([\d.]+), p99 ([\d.]+), max ([\d.]+)", front_end.err())
    check(late, "it does not say how late frames were")
    check(float(late[1]) <= float(late[2]) <= float(late[3]), f"percentiles out of order: {late[0]}")


@case("the period holds: 50 frames at 100 Hz take half a second, not a moment")
def _(folder):
    program, summary = acquire(folder, detector={**SMALL, "frame_rate_Hz": 100})
    equal(program.process.returncode, 0, "exit status")
    closes(summary, 100)
    # The receiver counts from the first frame that it has assembled, which may be late on a busy machine.
    check(summary["rates"]["seconds"] > 0.25, f"they took {summary['rates']['seconds']} s")


@case("the limit of a queue holds, whatever the link")
def _(folder):
    frames, limit = 60, 0.05
    bits = frames * 64 * 256 * 2 * 8  # of one module; each has its own queue
    for kind in ("udp", "shm"):
        program, summary = acquire(folder, detector={**SMALL, "frames": frames}, link={"kind": kind, "rate_limit": limit})
        equal(program.process.returncode, 0, f"exit status over {kind}")
        closes(summary, 2 * frames)
        least = bits / (limit * 1e9)
        check(summary["rates"]["seconds"] > 0.8 * least, f"{kind}: {summary['rates']['seconds']} s, at least {least} s")


@case("verdicts have a deadline: what is late is counted, and how long decisions took is told")
def _(folder):
    for deadline, late in ((1, 50), (600_000_000, 0)):
        program, summary = acquire(folder, detector={**SMALL, "frame_rate_Hz": 200}, unit={"kind": "cpu", "deadline_us": deadline})
        equal(program.process.returncode, 0, "exit status: late is not lost")
        equal((summary["frames"]["settled"], summary["frames"]["late"]), (50, late), f"frames, and late ones of {deadline} us")
        equal(summary["latency_us"]["decision"]["count"], 50, "decisions measured")
        check(f"verdicts due after {deadline} us: {late} of 50 frames were late" in program.out(), "the report does not say so")
    _, summary = acquire(folder, detector=SMALL)
    equal(("decision" in summary["latency_us"], summary["frames"]["late"]), (False, 0), "without a deadline")


main()
