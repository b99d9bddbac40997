#!/usr/bin/python3
"""endless_test.py - runs without an end of their own (detector.frames: 0): a stop is how they end, and no reason to complain.
Native detectors that fall silent are waited for."""
# with sanitizers in check-long

import signal
import time

import h5py

from harness import (LONG, Program, case, check, equal, experiment, images_on_disk, intact, main, read_outcomes,
                     read_summary, receiver, wait_for)

ENDLESS = {**LONG, "frames": 0}


def ends_well(folder, started, modules=2):
    started.ends(0)
    summary = read_summary(folder)
    sent = summary["ledger"]["modules"][0]["sent"]
    intact(started, summary, sent, modules)
    equal(summary["stopped_by"], "SIGINT", "stopped_by")
    check("nded early" not in started.out(), "a stop is called early")
    equal(len(read_outcomes(folder)), modules * sent, "outcomes")
    with h5py.File(folder / "run.nxs", "r") as file:
        equal(file["entry/data/sequence"][()].tolist(), list(range(sent)), "images in the file")
    return sent


def stopped(name, **sections):
    @case(f"{name}: until it is stopped")
    def _(folder):
        started = receiver(folder, experiment(folder, detector=ENDLESS, **sections))
        wait_for("frames", lambda: images_on_disk(folder) > 3)
        started.send(signal.SIGINT)
        ends_well(folder, started)


stopped("udp", link={"kind": "udp"})
stopped("rc", link={"kind": "udp", "service": "rc"})
stopped("shm", link={"kind": "shm"})


@case("a native detector that falls silent is waited for, as long as it takes")
def _(folder):
    sections = {"link": {"kind": "sls", "payload": 1024}, "ring": {"slots": 1000},
                "control": {"silence_s": 1, "wait_s": 0.2}, "emulate": "none"}
    shape = {"rows": 64, "columns": 64, "frame_rate_Hz": 400}
    here = experiment(folder, detector={**shape, "frames": 0}, **sections)
    there = experiment(folder, "there.yaml", detector={**shape, "frames": 100}, **sections)
    started = receiver(folder, here)
    time.sleep(1)  # beyond wait_s
    check(started.running(), "it did not wait for the first frame")
    Program("emulate", there, folder=folder).ends(0)
    wait_for("the frames", lambda: "\n100 " in "\n" + started.err())
    time.sleep(2)  # beyond silence_s
    check(started.running(), "it did not wait for the next frame")
    started.send(signal.SIGINT)
    equal(ends_well(folder, started), 100, "frames")


@case("its truth is of the frames that were sent")
def _(folder):
    started = receiver(folder, experiment(folder, detector=ENDLESS), "--truth", "truth.h5")
    wait_for("frames", lambda: images_on_disk(folder) > 3)
    started.send(signal.SIGINT)
    sent = ends_well(folder, started)
    with h5py.File(folder / "truth.h5", "r") as file:
        equal(len(file["truth/frame_number"]), sent, "frames in the truth")


main()
