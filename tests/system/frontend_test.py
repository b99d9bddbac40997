#!/usr/bin/python3
"""frontend_test.py - examples/frontend.py, a front end that shares nothing with ours, does what docs/how-to/connect.md says."""
# with sanitizers in check-long

import argparse
import contextlib
import importlib.util
import io
import struct
import subprocess
import sys
import time

import h5py
import numpy as np

from harness import RECEIVER, ROOT, SOURCE, TIMEOUT_S, Program, case, check, closes, equal, experiment, main, read_summary

DETECTOR = {"kind": "pattern", "modules": 1, "rows": 32, "columns": 100, "bits": 16, "frames": 20}


def front_end(*arguments):
    return subprocess.run([sys.executable, ROOT / "examples/frontend.py", "--receiver", RECEIVER, "--source", SOURCE,
                           "--rows", "32", "--columns", "100", "--frames", "20", *arguments], timeout=TIMEOUT_S,
                          capture_output=True, text=True, check=False)


def in_process():
    """The example front end inside this program, so that what is seen after a message is seen at once."""
    spec = importlib.util.spec_from_file_location("frontend", ROOT / "examples/frontend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, module.FrontEnd(argparse.Namespace(receiver=RECEIVER, port=47910, token_file=None, source=SOURCE, module=0,
                                                      rows=32, columns=100, frames=20))


def receiver(folder, control=None, **link):
    sinks = [{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw"}}]
    path = experiment(folder, detector=DETECTOR, link=link, stages=["copy"], sinks=sinks, emulate="none", control=control or {})
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


@case("BYE comes after the file is closed and has its name")
def _(folder):
    program = receiver(folder)
    _, source = in_process()
    with contextlib.redirect_stdout(io.StringIO()):
        source.run()  # until BYE
    there, part = (folder / "run.nxs").exists(), (folder / "run.nxs.part").exists()
    program.ends(0)
    check(there and not part, f"at BYE: run.nxs {there}, run.nxs.part {part}")


@case("a front end that sends data and says nothing is alive")
def _(folder):
    program = receiver(folder, control={"silence_s": 1})
    module, source = in_process()
    source.agree()
    for k in range(20):
        source.send_frame(k)
        time.sleep(0.15)
    source.report(module.DONE, 20)
    source.control.receive({module.BYE})
    program.ends(0)
    closes(read_summary(folder), 20)


@case("a front end whose data stop and that says nothing is gone after control.silence_s")
def _(folder):
    program = receiver(folder, control={"silence_s": 1})
    _, source = in_process()
    source.agree()
    for k in range(5):
        source.send_frame(k)
    program.ends(3)
    check("nothing heard from it for 1 s" in program.err(), program.err())
    equal(read_summary(folder)["ledger"]["modules"][0]["sent"], 5, "frames that were seen")


@case("a front end whose counts contradict what arrived is named, and the run is not intact")
def _(folder):
    program = receiver(folder)
    module, source = in_process()
    source.agree()
    for k in range(20):
        source.send_frame(k)
    source.control.send(module.DONE, struct.pack("<HQQQ", source.plan["transfer"], 20, 10, 20 * source.plan["block_bytes"]))
    source.control.receive({module.BYE})
    program.ends(3)
    check("module 0: more frames arrived than the 10" in program.err(), program.err())
    summary = read_summary(folder)
    equal((summary["result"], summary["ledger"]["closed"]), ("unclosed", False), "result and ledger")


def with_record(module, change):
    """Frames whose record has other bytes."""
    record = module.record

    def changed(*arguments):
        body = bytearray(record(*arguments)[:60])
        change(body)
        return bytes(body) + struct.pack("<I", module.crc32c(bytes(body)))
    module.record = changed


def odd(name, change, says, key):
    @case(name)
    def _(folder):
        program = receiver(folder)
        module, source = in_process()
        with_record(module, change)
        with contextlib.redirect_stdout(io.StringIO()):
            source.run()
        program.ends(0)
        check(program.err().count(says) == 1, f"it does not warn once: {program.err()}")
        check(key[1] in program.out(), f"the report does not say so: {program.out()}")
        check(read_summary(folder)["frames"][key[0]] >= 19, "nor does the summary")


def dark(body):
    body[50:52] = struct.pack("<H", 1)


def stuck(body):
    body[8:16] = struct.pack("<Q", 7)


odd("more dark frames than the experiment has: a warning with numbers", dark, "20 of 20 frames were marked dark",
    ("dark", "20 frames were marked dark"))
odd("a frame number that stands still: a warning with numbers", stuck, "19 of 20 frames have the number of the frame before",
    ("repeated", "19 frames have the number"))


main()
