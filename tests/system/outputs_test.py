#!/usr/bin/python3
"""outputs_test.py - the files that a run is told to write: none takes another's place, none is found to be unwritable
only when the run is over, and a result that could not be told is not called a success."""

import os
import signal

import h5py

from harness import (LONG, SLUICE, Program, acquire, case, check, equal, experiment, images_on_disk, main, read_summary,
                     receiver, run, run_fails, skip, wait_for)


def nothing_ran(folder):
    check(not (folder / "run.nxs").exists() and not (folder / "run.nxs.part").exists(), "a file was begun")


@case("a summary that cannot be written is found out before anything begins")
def _(folder):
    run_fails("run", experiment(folder), "--summary", folder / "nowhere/summary.json", folder=folder,
              says=["nowhere/summary.json"])
    nothing_ran(folder)


@case("a summary never takes the place of a device or a folder")
def _(folder):
    for place in ("/dev/null", folder):
        run_fails("run", experiment(folder), "--summary", place, folder=folder, says=["is no ordinary file"])
    check(not os.path.isfile("/dev/null"), "/dev/null is an ordinary file now")
    nothing_ran(folder)


@case("nor does the NeXus file")
def _(folder):
    path = experiment(folder, sinks=[{"nexus": {"path": "/dev/null", "dataset": "raw"}}])
    run_fails("run", path, folder=folder, says=["/dev/null"])
    check(not os.path.isfile("/dev/null"), "/dev/null is an ordinary file now")


@case("what is read is not overwritten: experiment, replayed file, picture's file, dark images")
def _(folder):
    path = experiment(folder, detector={"frames": 10})
    equal(run("run", path, folder=folder).process.returncode, 0, "exit status")
    file, text = folder / "run.nxs", path.read_bytes()
    before = file.read_bytes()
    again = experiment(folder, "again.yaml",
                       detector={"kind": "replay", "file": str(folder / "run.*"), "rows": 0, "columns": 0, "frames": 10})
    dark = experiment(folder, "dark.yaml", detector={"rows": 64, "columns": 64, "dark_frames": 3, "frames": 1})
    for words in (("run", again), ("run", path, "--summary", path), ("show", path, "--output", path),
                  ("show", file, "--output", file), ("truth", path, "--output", path),
                  ("calibrate", dark, "--file", file, "--output", file), ("calibrate", path, "--all", "--output", path)):
        run_fails(*words, folder=folder, says=["is read, and would be overwritten"])
        check(file.read_bytes() == before and path.read_bytes() == text, f"{words[0]} changed what it reads")


@case("two results for one place are refused, by whatever name")
def _(folder):
    path = experiment(folder)
    (folder / "link").symlink_to(folder)
    for option in ("--summary", "--outcomes", "--port_file"):
        for place in ("run.nxs", "./run.nxs", "link/run.nxs"):
            run_fails("run", path, option, place, folder=folder, says=["is to be written twice"])
    run_fails("run", path, "--summary", "a", "--outcomes", "a", folder=folder, says=["is to be written twice"])
    nothing_ran(folder)


@case("a summary that was there before is replaced")
def _(folder):
    (folder / "summary.json").write_text("old")
    program, summary = acquire(folder)
    equal((program.process.returncode, summary["result"]), (0, "intact"), "exit and result")


@case("a killed run does not leave the summary of the run before as its own")
def _(folder):
    acquire(folder)
    started = receiver(folder, experiment(folder, detector=LONG))
    wait_for("frames", lambda: images_on_disk(folder) > 3)
    started.send(signal.SIGKILL)
    started.wait()
    check(not (folder / "summary.json").exists(), "the summary of the run before is still there")


@case("links at the names of results are not followed")
def _(folder):
    victim = folder / "victim"
    victim.write_text("precious")
    for name, options in (("run.nxs.part", ()), ("run.nxs", ()), ("s.json", ("--summary", "s.json")),
                          ("s.json.part", ("--summary", "s.json")), ("o.txt", ("--outcomes", "o.txt")),
                          ("p.txt", ("--port_file", "p.txt"))):
        (folder / name).symlink_to(victim)
        run_fails("run", experiment(folder), *options, folder=folder, says=["symbolic link"])
        (folder / name).unlink()
        equal(victim.read_text(), "precious", name)
    nothing_ran(folder)


def spoilt(name, which, spoil, says, **nexus):
    @case(f"a {which} that was {name} during the run is not called intact{' (one file)' if nexus else ''}")
    def _(folder):
        sink = {"path": str(folder / "run.nxs"), "dataset": "raw", **nexus}
        started = receiver(folder, experiment(folder, detector=LONG, sinks=[{"nexus": sink}, "verify"]))
        if nexus:
            wait_for("data", lambda: (folder / which).exists() and (folder / which).stat().st_size > 3000000)
        else:
            wait_for("frames", lambda: images_on_disk(folder) > 3)
        spoil(folder / which)
        wait_for("more frames", lambda: started.err().count("\n") > 0)
        started.send(signal.SIGINT)
        started.ends(2)
        summary = read_summary(folder)
        equal(summary["result"], "damaged", "result")
        outcomes = summary["ledger"]["total"]["outcomes"]
        check(outcomes["stored"] == 0 and outcomes["unwritten"] > 0, f"outcomes: {outcomes}")
        check(says in started.err(), "it does not say what happened")
        if (folder / "run.nxs").exists():
            with h5py.File(folder / "run.nxs", "r") as file:
                equal(file["entry/sluice/state"][()], b"writing", "state of the file")


def plant(part):
    part.unlink()
    part.write_text("planted")


for WHICH in ("run.nxs.part", "run_data_000001.h5"):
    spoilt("removed", WHICH, lambda part: part.unlink(), "was removed")
    spoilt("replaced", WHICH, plant, "another file was put in its place")
    spoilt("emptied", WHICH, lambda part: os.truncate(part, 0), "run")
spoilt("removed", "run.nxs.part", lambda part: part.unlink(), "was removed", frames_per_file=0)
spoilt("emptied", "run.nxs.part", lambda part: os.truncate(part, 0), "is not what was written", frames_per_file=0)


@case("of several runs with one file that start together one wins, and its file is whole")
def _(folder):
    sink = {"path": str(folder / "run.nxs"), "dataset": "raw", "overwrite": False}
    path = experiment(folder, detector={"frames": 200, "frame_rate_Hz": 1000}, sinks=[{"nexus": sink}, "verify"])
    for attempt in range(3):
        started = [Program("run", path, "--quiet", "--set", f"link.port={4800 + i}",
                           folder=folder) for i in range(4)]
        statuses = [program.wait() for program in started]
        check(statuses.count(0) >= 1 and set(statuses) <= {0, 1, 2}, f"exit statuses: {statuses}")
        won = [program for program, status in zip(started, statuses) if not status]
        for program, status in zip(started, statuses):
            if status:
                check(any(text in program.err() for text in ("being written by another run", "appeared while", "exists")), program.err())
        with h5py.File(folder / "run.nxs", "r") as file:
            equal(len(file["entry/data/data"]), 200, "images")
        check(won and not (folder / "run.nxs.part").exists() or 2 in statuses, "a part was left behind")
        for left in folder.glob("run*.*"):
            left.unlink()


@case("sinks whose path is empty or cannot be written are found out before anything begins")
def _(folder):
    run_fails("run", experiment(folder, sinks=[{"nexus": {"path": "", "dataset": "raw"}}]), folder=folder,
              says=["path is empty"])
    (folder / "plain").write_text("no folder")
    dark = {"rows": 64, "columns": 64, "dark_frames": 3, "frames": 1}
    run_fails("run", experiment(folder, detector=dark, sinks=[{"calibration": {"path": str(folder / "plain/c.h5")}}]),
              folder=folder, says=["plain/c.h5"])


@case("a report that nobody can read is no success")
def _(folder):
    if not os.path.exists("/dev/full"):
        skip("there is no /dev/full")
    experiment(folder)
    command = f"exec {SLUICE} run experiment.yaml >/dev/full"
    program = run("-c", command, folder=folder, program="/bin/sh")
    equal(program.process.returncode, 1, "exit status")
    check("report" in program.err(), "it does not say so")


main()
