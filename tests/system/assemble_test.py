#!/usr/bin/python3
"""assemble_test.py - modules put together by number or time, kept without the missing ones, lost for want of room, and
a module that goes and comes back: one outcome each, and no wrong pixel."""
# normal build only

import argparse
import importlib.util
import os
import signal
import struct

import h5py
import numpy as np

from harness import (LONG, RECEIVER, ROOT, SOURCE, Program, acquire, case, check, closes, equal, experiment, fewer,
                     images_on_disk, intact, main, read_outcomes, read_summary, receiver, run_fails, sink, wait_for)

NONE = {"emulate": "none"}
SMALL = {"kind": "pattern", "modules": 1, "rows": 32, "columns": 100, "bits": 16, "frames": 400}


@case("by frame number and by timestamp: the same frames as by sequence")
def _(folder):
    for align in ("frame", "timestamp"):
        done, summary = acquire(folder, ring={"align": align})
        intact(done, summary, 200)
        equal(summary["ended_early"], None, "ended early")


@case("with packets lost: the same outcomes, whatever frames are put together by")
def _(folder):
    seen = {}
    for align in ("sequence", "frame", "timestamp"):
        done, summary = acquire(folder, ring={"align": align}, frontend={"drop": 0.02, "fault_seed": 7},
                                detector={"frames": fewer(400, 200), "modules": 3})
        equal(done.process.returncode, 2, "exit status")
        closes(summary)
        seen[align] = read_outcomes(folder)
        equal(sink(summary, "verify")["pixels_mismatched"], 0, "wrong pixels")
    equal(seen["frame"], seen["sequence"], "outcomes by frame number")
    equal(seen["timestamp"], seen["sequence"], "outcomes by timestamp")
    check({"stored", "incomplete"} <= {outcome for outcome, _ in seen["frame"].values()}, "nothing was damaged")


@case("32 modules")
def _(folder):
    done, summary = acquire(folder, detector={"modules": 32, "rows": 16, "columns": 64, "frames": fewer(300, 100)},
                            ring={"align": "frame"}, stages=[], sinks=["null"])
    equal(done.process.returncode, 0, "exit status")
    closes(summary, 32 * fewer(300, 100))
    senders = os.environ.get("SLUICE_SENDERS", "")
    check(not senders or f"{senders} senders (as set)" in done.err(), f"the front end does not say that it has {senders} senders")


@case("incomplete frames are kept: a mask says what is missing, the rest is right, outcomes are as they were")
def _(folder):
    faults = {"drop": 0.02, "fault_seed": 3}
    detector = {"frames": 300, "modules": 3}
    acquire(folder, frontend=faults, detector=detector)
    before = read_outcomes(folder)
    done, summary = acquire(folder, frontend=faults, detector=detector, ring={"incomplete": "keep"})
    after = read_outcomes(folder)
    equal(done.process.returncode, 2, "exit status")
    closes(summary)
    equal(sink(summary, "verify")["pixels_mismatched"], 0, "wrong pixels")
    for key, outcome in before.items():
        wanted = ("stored", "none") if outcome == ("incomplete", "partner") else outcome
        if all(before[key[0], m][1] not in ("none", "partner") for m in range(3)):
            wanted = outcome
        equal(after[key], wanted, f"outcome of {key}")
    with h5py.File(folder / "run.nxs") as file:
        data, missing = file["entry/data/data"][()], file["entry/data/missing_modules"][()]
        sequence, rows = file["entry/data/sequence"][()], file["entry/sluice/frames"]
        check((missing != 0).any() and (missing == 0).any(), "nothing is missing, or everything")
        equal(int((rows["flags"][()] & 4 != 0).sum()), summary["frames"]["partial"], "frames that were kept")
        for image, mask, k in zip(data.reshape(len(data), 3, -1), missing.tolist(), sequence):
            equal(int(rows["missing"][int(k)]), int(mask), "the mask of a row")
            for m in range(3):
                equal(bool(mask >> m & 1), after[int(k), m][0] != "stored", f"the mask of {k}, module {m}")
                if mask >> m & 1:
                    check((image[m].view(np.uint8) == 255).all(), "a missing module has pixels")


# ---- no room ----

def open_loop(folder, ring, frames, stop=True):
    """A front end without credits sends all at once while the receiver stands still: more than four slots hold."""
    spec = importlib.util.spec_from_file_location("frontend", ROOT / "examples/frontend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class OpenLoop(module.FrontEnd):
        def take_credits(self):
            self.granted = 1 << 62

    pack = struct.pack

    def without_credit(format, *values):
        if format.startswith("<5H16sHHIIQ"):
            values = [*values[:9], 0, *values[10:]]
            values[10] = 0
        return pack(format, *values)

    sinks = [{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw"}}]
    path = experiment(folder, detector={**SMALL, "frames": frames}, stages=["copy"], sinks=sinks,
                      ring={"slots": 4, "late_frames": 2, **ring}, **NONE)
    program = receiver(folder, path)
    front_end = OpenLoop(argparse.Namespace(receiver=RECEIVER, port=47910, token_file=None, source=SOURCE, module=0, rows=32,
                                            columns=100, frames=frames))
    module.struct.pack = without_credit
    try:
        front_end.agree()
    finally:
        module.struct.pack = pack
    if stop:
        program.send(signal.SIGSTOP)
    for k in range(frames):
        front_end.send_frame(k)
    front_end.report(module.DONE, frames)
    program.send(signal.SIGCONT)
    return program


def overrun_of(folder, summary, frames):
    closes(summary, frames)
    outcomes = summary["ledger"]["total"]["outcomes"]
    check(outcomes["overrun"] > 0, "nothing was overrun")
    equal(outcomes["lost"] + outcomes["incomplete"] + outcomes["unproven"], 0, "module-frames lost or damaged")
    return outcomes


@case("no room, drop the newest: each has its outcome, however often the ring was lapped")
def _(folder):
    program = open_loop(folder, {"overrun": "drop_newest"}, 400)
    program.ends(2)
    summary = read_summary(folder)
    outcomes = overrun_of(folder, summary, 400)
    equal(summary["ledger"]["total"]["causes"]["no_slot"], outcomes["overrun"], "cause")
    equal(summary["ended_early"], None, "ended early")
    with h5py.File(folder / "run.nxs") as file:
        numbers = file["entry/data/frame_number"][()]
        row, column = np.indices((32, 100))
        for image, k in zip(file["entry/data/data"][()], numbers):
            check((image == (row * 7 + column + int(k) & 0xFFFF)).all(), f"frame {k} is wrong")


@case("no room, stop: the run ends, says why, and the ledger closes")
def _(folder):
    program = open_loop(folder, {"overrun": "stop"}, 300)
    program.ends(2)
    summary = read_summary(folder)
    overrun_of(folder, summary, 300)
    check(summary["ended_early"].startswith("overrun"), f"ended early: {summary['ended_early']}")
    check("turned away: stopping" in program.err() and "Ended early: overrun" in program.out(), "it does not say so")


@case("no room, policies that make no sense are refused with the reason")
def _(folder):
    path = experiment(folder, ring={"overrun": "drop_newest"}, **NONE)
    started = receiver(folder, path)
    run_fails("emulate", path, folder=folder, says=["the receiver refuses", "waits until there is room"])
    started.send(signal.SIGINT)
    started.wait()
    try:
        open_loop(folder, {"overrun": "pause"}, 10, stop=False)
    except (SystemExit, RuntimeError, OSError, AssertionError) as why:
        check("cannot be paused" in str(why), f"it heard: {why}")
    else:
        check(False, "a source that cannot be paused was taken")


@case("no room, drop the oldest: a slow sink does not hold the source back, and what was dropped has a name")
def _(folder):
    detector = {"rows": 1024, "columns": 512, "frames": fewer(200, 60)}
    done, summary = acquire(folder, detector=detector, ring={"slots": 4, "late_frames": 2, "overrun": "drop_oldest"},
                            unit={"batch": 1})
    closes(summary, 2 * detector["frames"])
    outcomes = summary["ledger"]["total"]["outcomes"]
    equal(outcomes["stored"] + outcomes["overrun"], 2 * detector["frames"], "stored or dropped")
    equal(summary["ledger"]["total"]["causes"]["oldest"], outcomes["overrun"], "cause")
    equal(done.process.returncode, 2 if outcomes["overrun"] else 0, "exit status")
    equal(sink(summary, "verify")["pixels_mismatched"], 0, "wrong pixels")
    with h5py.File(folder / "run.nxs") as file:
        equal(len(file["entry/sluice/frames/sequence"]), detector["frames"], "rows")


# ---- a module that goes and comes back ----

def comes_back(folder, link):
    frames, again = 350, 250
    path = experiment(folder, detector={**LONG, "frames": frames, "rows": 128, "columns": 128}, link={"kind": link},
                      ring={"align": "frame"}, **NONE)
    started = receiver(folder, path)
    first, second = (Program("emulate", path, "--modules", str(m), folder=folder) for m in (0, 1))
    wait_for("frames", lambda: images_on_disk(folder) > 5)
    second.send(signal.SIGKILL)
    second.wait()
    third = Program("emulate", path, "--modules", "1", "--first_frame", str(again), folder=folder)
    wait_for("it to be back", lambda: "module 1 is back" in started.err())
    first.ends(0)
    third.ends(0)
    started.ends(3)
    summary = read_summary(folder)
    closes(summary)
    equal(sink(summary, "verify")["pixels_mismatched"], 0, "wrong pixels")
    equal(sink(summary, "verify")["frames_with_wrong_records"], 0, "wrong records")
    modules = summary["ledger"]["modules"]
    equal(modules[0]["sent"], frames, "frames of the module that stayed")
    before = modules[1]["sent"] - (frames - again)
    check(5 < before < again, f"{before} frames before it went")
    outcomes = read_outcomes(folder)
    for k in range(frames):
        whole = k < before or k >= again
        equal(outcomes[k, 0], ("stored", "none") if whole else ("incomplete", "partner"), f"frame {k}, module 0")
    for k in range(modules[1]["sent"]):
        equal(outcomes[k, 1], ("stored", "none"), f"sequence {k} of module 1")
    with h5py.File(folder / "run.nxs") as file:
        equal(file["entry/data/frame_number"][()].tolist(), [*range(before), *range(again, frames)], "images")


@case("a module is killed and comes back while the other goes on: frames are whole again, the ledger closes")
def _(folder):
    comes_back(folder, "udp")


@case("the same over shm")
def _(folder):
    comes_back(folder, "shm")


@case("by sequence there is no place for it: turned away with the reason")
def _(folder):
    path = experiment(folder, detector={**LONG, "frames": 100}, **NONE)
    started = receiver(folder, path)
    first, second = (Program("emulate", path, "--modules", str(m), folder=folder) for m in (0, 1))
    wait_for("frames", lambda: images_on_disk(folder) > 2)
    second.send(signal.SIGKILL)
    second.wait()
    run_fails("emulate", path, "--modules", "1", folder=folder, says=["already started"])
    first.ends(0)
    started.ends(3)
    closes(read_summary(folder))


@case("interrupted before anything was sent: empty, not intact")
def _(folder):
    path = experiment(folder, detector={"frames": 10, "frame_rate_Hz": 0.001}, link={"kind": "udp"}, **NONE)
    started = receiver(folder, path)
    front_end = Program("emulate", path, folder=folder)
    wait_for("the start", lambda: "sending pattern" in front_end.err())
    started.send(signal.SIGINT)
    status = started.wait()
    summary = read_summary(folder)
    sent = summary["ledger"]["total"]["sent"]
    equal((status, summary["result"]), (0, "intact" if sent else "empty"), "result")
    equal(summary["ended_early"], "interrupted", "ended early")


main()
