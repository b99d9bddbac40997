#!/usr/bin/python3
"""frontend_test.py - examples/frontend.py, a front end that shares nothing with ours, does what docs/how-to/connect.md says."""

import subprocess
import sys

import h5py
import numpy as np

from harness import RECEIVER, ROOT, SOURCE, TIMEOUT_S, Program, case, check, closes, equal, experiment, main, read_summary

DETECTOR = {"kind": "pattern", "modules": 1, "rows": 32, "columns": 100, "bits": 16, "frames": 20}


def front_end(*arguments):
    return subprocess.run([sys.executable, ROOT / "examples/frontend.py", "--receiver", RECEIVER, "--source", SOURCE,
                           "--rows", "32", "--columns", "100", "--frames", "20", *arguments], timeout=TIMEOUT_S,
                          capture_output=True, text=True, check=False)


def receiver(folder, **link):
    sinks = [{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw"}}]
    path = experiment(folder, detector=DETECTOR, link=link, stages=["copy"], sinks=sinks, emulate="none")
    program = Program("run", path, "--summary", folder / "summary.json", folder=folder)
    while "waiting for front ends" not in program.err():
        check(program.running(), "the receiver ended")
    return program


@case("the example front end: every pixel in the file, the ledger closes")
def _(folder):
    program = receiver(folder, pmtu=1024)
    sent = front_end()
    equal(sent.returncode, 0, f"its exit status ({sent.stderr})")
    program.ends(0)
    summary = read_summary(folder)
    closes(summary, 20)
    equal(set(summary["link"]["turned_away"].values()), {0}, "packets turned away")
    with h5py.File(folder / "run.nxs") as file:
        data = file["entry/data/data"][()]
    frame, row, column = np.indices((20, 32, 100))
    check((data == (row * 7 + column + frame & 0xFFFF)).all(), "a pixel is wrong")


@case("a front end of another shape is told why it is refused")
def _(folder):
    program = receiver(folder)
    sent = front_end("--rows", "31")
    check(sent.returncode != 0 and "blocks have" in sent.stderr, f"it heard: {sent.stderr}")
    equal(front_end().returncode, 0, "exit status of the right one")
    program.ends(0)


main()
