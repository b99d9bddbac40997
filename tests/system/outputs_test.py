#!/usr/bin/python3
"""outputs_test.py - the files that a run is told to write: none takes another's place, none is found to be unwritable
only when the run is over, and a result that could not be told is not called a success."""

import fcntl
import os
import signal
import stat
import subprocess

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
    spoilt("removed", WHICH, lambda part: part.unlink(), "is no longer at this name")
    spoilt("moved away", WHICH, lambda part: part.rename(part.with_name("moved")), "is no longer at this name")
    spoilt("replaced", WHICH, plant, "another file was put in its place")
    spoilt("emptied", WHICH, lambda part: os.truncate(part, 0), "run")
spoilt("removed", "run.nxs.part", lambda part: part.unlink(), "is no longer at this name", frames_per_file=0)
spoilt("emptied", "run.nxs.part", lambda part: os.truncate(part, 0), "is not what was written", frames_per_file=0)


@case("what an unfinished run left in PATH.part is kept under another name, and the run says so")
def _(folder):
    (folder / "run.nxs.part").write_text("rescued")
    (folder / "run.nxs.part.1").write_text("rescued before")
    program, summary = acquire(folder, sinks=[{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw", "overwrite": False}}, "verify"])
    equal((program.process.returncode, summary["result"]), (0, "intact"), "exit and result")
    equal([(folder / f"run.nxs.part.{n}").read_text() for n in (1, 2)], ["rescued before", "rescued"], "what was kept")
    check("run.nxs.part:" in program.err() and "run.nxs.part.2" in program.err(), "it does not say where")


@case("a picture replaces pictures and empty files, and nothing else")
def _(folder):
    path = experiment(folder)
    picture, victim = folder / "frame.png", folder / "victim"
    for before in (b"", None):  # None: the picture of the first time
        if before is not None:
            picture.write_bytes(before)
        equal(run("show", path, "--output", picture, folder=folder).process.returncode, 0, "exit status")
        equal(picture.read_bytes()[:4], b"\x89PNG", "the file")
    victim.write_text("precious")
    (folder / "link.png").symlink_to(victim)
    os.mkfifo(folder / "pipe")
    for place, says in ((victim, "is no PNG file"), (folder / "link.png", "symbolic link"), (folder / "pipe", "pipe"),
                        (folder / "nowhere.png/", "nowhere.png/")):
        run_fails("show", path, "--output", place if place.name != "nowhere.png" else f"{place}/", folder=folder, says=[says])
    equal(victim.read_text(), "precious", "the file that was there")
    check((folder / "pipe").is_fifo() and (folder / "link.png").is_symlink(), "the pipe or the link is gone")
    equal(sorted(p.name for p in folder.glob("*.part")), [], "files left behind")


@case("a picture that cannot be written leaves the one that was there, and devices")
def _(folder):
    path = experiment(folder, detector={"rows": 1024, "columns": 1024})
    picture = folder / "frame.png"
    equal(run("show", path, "--output", picture, folder=folder).process.returncode, 0, "exit status")
    before = picture.read_bytes()
    program = run("-c", f"ulimit -f 1; trap '' XFSZ; exec {SLUICE} show {path} --output {picture}", folder=folder, program="/bin/sh")
    equal(program.process.returncode, 1, "exit status")
    check(picture.read_bytes() == before, "the picture that was there is gone")
    if os.geteuid() == 0:
        os.mknod(folder / "null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        for words in (("show", path, "--output", "null"), ("calibrate", path, "--all", "--frames", "3", "--output", "null"),
                      ("run", path, "--outcomes", "null"), ("run", path, "--set", "frontend.fault_log=null",
                                                            "--set", "frontend.skip=0.2", "--set", "emulate=local")):
            run_fails(*words, folder=folder)
            check((folder / "null").is_char_device(), f"{words[0]} has replaced a device")


@case("a picture does not go into the file of a run that is under way")
def _(folder):
    path = experiment(folder, detector=LONG)
    started = receiver(folder, path)
    wait_for("frames", lambda: images_on_disk(folder) > 3)
    run_fails("show", path, "--output", "run.nxs.part", folder=folder, says=["run.nxs.part"])
    started.send(signal.SIGINT)
    started.ends(0)
    equal(read_summary(folder)["result"], "intact", "result")


@case("two runs with one summary or one outcome log: the second is refused")
def _(folder):
    started = receiver(folder, experiment(folder, detector=LONG))
    for option, name in (("--summary", "summary.json"), ("--outcomes", "outcomes.txt")):
        run_fails("run", experiment(folder, "other.yaml", sinks=["null"]), option, folder / name, "--set", "link.port=4810",
                  "--set", "control.port=0", folder=folder,
                  says=[name, "is being written by another run"])
    wait_for("frames", lambda: images_on_disk(folder) > 3)
    started.send(signal.SIGINT)
    started.ends(0)
    equal(read_summary(folder)["result"], "intact", "result")
    check(len((folder / "outcomes.txt").read_text().splitlines()) == read_summary(folder)["ledger"]["total"]["sent"],
          "the outcome log is not that of the first run")


def log_spoilt(name, spoil):
    @case(f"an outcome log that was {name} during the run is an error of the run")
    def _(folder):
        started = receiver(folder, experiment(folder, detector=LONG))
        wait_for("frames", lambda: images_on_disk(folder) > 3)
        spoil(folder / "outcomes.txt")
        started.send(signal.SIGINT)
        started.ends(1)
        check("outcomes.txt:" in started.err(), "it does not say what happened")


def replace(log):
    log.unlink()
    log.write_text("foreign")


log_spoilt("removed", lambda log: log.unlink())
log_spoilt("replaced", replace)
log_spoilt("lengthened", lambda log: log.write_text("x" * 10000000))


@case("an outcome log that was emptied during the run is an error of the run, although the run goes on writing to it")
def _(folder):
    # Outcomes of dark frames are written at once, others at the end.
    started = receiver(folder, experiment(folder, detector={"dark_frames": 600, "frames": 100000, "frame_rate_Hz": 400}))
    log = folder / "outcomes.txt"
    wait_for("outcomes", lambda: log.stat().st_size > 4000)
    os.truncate(log, 0)
    wait_for("outcomes after that", lambda: log.stat().st_size > 0)
    started.send(signal.SIGINT)
    started.ends(1)
    check("outcomes.txt: has " in started.err(), started.err())


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


@case("a pipe that is not read does not keep a run whose report it should take")
def _(folder):
    path = experiment(folder, detector={"frames": 10})
    ours, theirs = os.pipe()
    fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
    os.write(theirs, bytes(4096))
    done = subprocess.run([SLUICE, "run", path, "--still"], stdout=theirs, stderr=subprocess.PIPE, cwd=folder, timeout=60, check=False)
    os.close(ours)
    os.close(theirs)
    equal(done.returncode, 1, "exit status")
    check(b"stdout is not read" in done.stderr, f"it says {done.stderr}")
    check((folder / "run.nxs").exists(), "there is no file")


def contents(folder, pattern="run*"):
    return {file.name: file.read_bytes() for file in folder.glob(pattern)}


@case("overwrite replaces the data files of its own run, never those of a run with another ending")
def _(folder):
    def path_of(name):
        sink = {"path": str(folder / name), "dataset": "raw", "frames_per_file": 10, "overwrite": True}
        return experiment(folder, detector={"frames": 30}, sinks=[{"nexus": sink}, "verify"])

    equal(run("run", path_of("run.nxs"), folder=folder).process.returncode, 0, "exit status")
    before = contents(folder)
    check("run_data_000003.h5" in before, f"files: {sorted(before)}")
    for name in ("run.h5", "run_master.h5"):
        run_fails("run", path_of(name), folder=folder, says=["run_data_000001.h5: is a data file of run.nxs", "choose another path"])
        check(contents(folder) == before, f"a run to {name} has changed the files of another")
    equal(run("run", path_of("run.nxs"), folder=folder).process.returncode, 0, "exit status of its own run")
    check(contents(folder)["run_data_000001.h5"] != before["run_data_000001.h5"], "the files of its own run were not replaced")
    equal(sorted(contents(folder)), sorted(before), "files")
    (folder / "run.nxs").rename(folder / "away")
    run_fails("run", path_of("run.nxs"), folder=folder, says=["run_data_000001.h5: exists, and there is no run at"])


@case("a run that is killed while it waits for its first frame gives way to the run that it was to replace")
def _(folder):
    acquire(folder)
    before = contents(folder)
    started = receiver(folder, experiment(folder, emulate="none"))  # no front end comes
    wait_for("the master", lambda: (folder / "run.nxs.replaced").exists())
    run_fails("recover", folder / "run.nxs", folder=folder, says=["is being written by another run"])
    started.send(signal.SIGKILL)
    started.wait()
    run_fails("run", experiment(folder), folder=folder, says=["run.nxs.replaced: is of an earlier run", "sluice recover"])
    done = run("recover", folder / "run.nxs", folder=folder)
    equal(done.process.returncode, 0, f"exit status: {done.err()}")
    check("have their names again" in done.out(), f"it says: {done.out()}")
    check(contents(folder) == before, f"files: {sorted(contents(folder))}, before: {sorted(before)}")


@case("recover leaves the data files of another run alone")
def _(folder):
    acquire(folder)
    sink = {"path": str(folder / "other.nxs"), "dataset": "raw", "flush_s": 0.1}
    started = receiver(folder, experiment(folder, "other.yaml", detector=LONG, sinks=[{"nexus": sink}, "verify"]))
    wait_for("the file", lambda: (folder / "other.nxs").exists())
    started.send(signal.SIGKILL)
    started.wait()
    (folder / "other_data_000001.h5").unlink()
    for file in folder.glob("run_data_*"):
        file.rename(folder / file.name.replace("run_", "other_"))
    before = contents(folder, "other_data*")
    run_fails("recover", folder / "other.nxs", folder=folder, says=["other_data_000001.h5: is a data file of another run"])
    check(contents(folder, "other_data*") == before, "recover has changed them")


main()
