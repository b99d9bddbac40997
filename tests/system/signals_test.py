#!/usr/bin/python3
"""signals_test.py - SIGINT and SIGTERM end a run properly: the front ends stop after their frame, all that was sent is
processed, the file is closed, the ledger printed. A second one gives up at once."""

import signal
import time

import h5py

from harness import (LONG, TIMEOUT_S, Program, both_ways, case, check, closes, equal, experiment, images_on_disk, intact, main,
                     read_outcomes, read_summary, receiver, wait_for)


def well_ended(folder, started, stopped_by):
    """Exit 0, everything accounted for and stored, and the file says the same."""
    started.ends(0)
    summary = read_summary(folder)
    sent = summary["ledger"]["modules"][0]["sent"]
    intact(started, summary, sent)
    equal(summary["stopped_by"], stopped_by, "stopped_by")
    check(3 < sent < LONG["frames"], f"{sent} frames were sent")
    for text in ("Ledger", "the ledger closes", "Result: intact"):
        check(text in started.out(), f"stdout does not say '{text}'")
    equal(len(read_outcomes(folder)), 2 * sent, "outcomes")
    with h5py.File(folder / "run.nxs", "r") as file:
        equal(file["entry/data/sequence"][()].tolist(), list(range(sent)), "images in the file")
        equal(file["entry/sluice/ledger/closed"][()], 1, "the file's ledger closed")
        check(file["entry/data/data"][sent - 1].any(), "the last image is empty")
    check(not (folder / "run.nxs.part").exists(), "the file still has its working name")


def local(name, number, link="udp"):
    @case(f"{name} to a run with a front end of its own, over {link}")
    def _(folder):
        started = receiver(folder, experiment(folder, detector=LONG, link={"kind": link}))
        wait_for("frames", lambda: images_on_disk(folder) > 3)
        started.send(number)
        well_ended(folder, started, name)
        check(f"{name}: stopping the front ends" in started.err(), "it does not say what it does")


local("SIGINT", signal.SIGINT)
local("SIGTERM", signal.SIGTERM)
local("SIGINT", signal.SIGINT, "shm")


def two_terminals(name, number):
    @case(f"{name} to a run whose front end is elsewhere: that one ends well, too")
    def _(folder):
        path = experiment(folder, detector=LONG, emulate="none")
        started = receiver(folder, path)
        front_end = Program("emulate", path, folder=folder)
        wait_for("frames", lambda: images_on_disk(folder) > 3)
        started.send(number)
        well_ended(folder, started, name)
        front_end.ends(0)


two_terminals("SIGINT", signal.SIGINT)
two_terminals("SIGTERM", signal.SIGTERM)


@both_ways("SIGINT to a run that is as fast as it can be")
def _(folder):
    started = receiver(folder, experiment(folder, detector={**LONG, "frame_rate_Hz": 0}))
    wait_for("frames", lambda: images_on_disk(folder) > 3)
    started.send(signal.SIGINT)
    well_ended(folder, started, "SIGINT")


@case("SIGINT to a run whose next frame is minutes away: it does not wait for it")
def _(folder):
    started = receiver(folder, experiment(folder, detector={**LONG, "frame_rate_Hz": 0.5 / TIMEOUT_S}))
    wait_for("the first frame", lambda: "\n1 / " in "\n" + started.err())
    started.send(signal.SIGINT)
    started.ends(0)
    summary = read_summary(folder)
    intact(started, summary, summary["ledger"]["modules"][0]["sent"])
    equal(summary["stopped_by"], "SIGINT", "stopped_by")


@both_ways("SIGINT to the front end: it says what it sent, and the run ends well")
def _(folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        path = experiment(folder, detector=LONG, emulate="none")
        started = receiver(folder, path)
        front_end = Program("emulate", path, folder=folder)
        wait_for("frames", lambda: images_on_disk(folder) > 3)
        front_end.send(number)
        front_end.ends(0)
        check("frames sent" in front_end.err(), "the front end does not say what it sent")
        well_ended(folder, started, None)
        for file in [folder / "run.nxs", *folder.glob("run_data_*.h5")]:
            file.unlink()


@case("SIGINT before a front end came: ends at once, leaves no file")
def _(folder):
    started = receiver(folder, experiment(folder, emulate="none"))
    started.send(signal.SIGINT)
    started.ends(1)
    check("stopped before it began" in started.err(), "it does not say why")
    equal([path.name for path in folder.glob("run.nxs*")], [], "files left behind")


@case("SIGINT to a front end that waits for its receiver: ends well")
def _(folder):
    front_end = Program("emulate", experiment(folder), folder=folder)
    wait_for("the front end to wait", lambda: "waiting for a receiver" in front_end.err())
    front_end.send(signal.SIGINT)
    front_end.ends(0)


@case("a second SIGINT gives up at once, with 130")
def _(folder):
    # A front end that stands still cannot stop: the first SIGINT would wait for it.
    path = experiment(folder, detector=LONG, emulate="none")
    started = receiver(folder, path)
    front_end = Program("emulate", path, "--once", folder=folder)
    wait_for("frames", lambda: images_on_disk(folder) > 3)
    front_end.send(signal.SIGSTOP)
    started.send(signal.SIGINT)
    wait_for("the first to be heard", lambda: "once more to give up at once" in started.err())
    check(started.running(), "the first one did not wait")
    time.sleep(0.5)  # two at once count as one: see the next case
    started.send(signal.SIGINT)
    started.ends(130)
    front_end.send(signal.SIGCONT)
    front_end.ends(1)
    with h5py.File(folder / "run.nxs", "r") as file:
        equal(file["entry/sluice/state"][()], b"writing", "state of a file that was not closed")


@case("SIGINT sent twice at once, as timeout(1) does, is one wish: drains, exit 0")
def _(folder):
    path = experiment(folder, detector=LONG)
    started = Program("run", path, "--summary", folder / "summary.json", folder=folder)
    wait_for("frames", lambda: images_on_disk(folder) > 3)
    started.send(signal.SIGINT)
    started.send(signal.SIGINT)
    started.ends(0)
    closes(read_summary(folder))


@case("SIGINT, then the front end is killed: the ledger still closes, with 3")
def _(folder):
    path = experiment(folder, detector=LONG, emulate="none")
    started = receiver(folder, path)
    front_end = Program("emulate", path, folder=folder)
    wait_for("frames", lambda: images_on_disk(folder) > 3)
    front_end.send(signal.SIGSTOP)
    started.send(signal.SIGINT)
    wait_for("it to be heard", lambda: "once more to give up at once" in started.err())
    front_end.send(signal.SIGKILL)
    started.ends(3)
    closes(read_summary(folder))
    equal(read_summary(folder)["stopped_by"], "SIGINT", "stopped_by")


main()
