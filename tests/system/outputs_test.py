#!/usr/bin/python3
"""outputs_test.py - the files that a run is told to write: none takes another's place, none is found to be unwritable
only when the run is over, and a result that could not be told is not called a success."""

import os

from harness import SLUICE, acquire, case, check, equal, experiment, main, run, run_fails, skip


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
