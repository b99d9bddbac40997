#!/usr/bin/python3
"""names_test.py - where a run's files go and who may read them: words in paths, group and mode, and whether there is room."""

import datetime
import grp
import json
import os
import signal

import h5py

from harness import Program, case, check, equal, experiment, main, run, run_fails, skip, wait_for

DETECTOR = {"frames": 20, "rows": 16, "columns": 16}


def nexus(path, **options):
    return [{"nexus": {"path": str(path), "dataset": "raw", "overwrite": False, **options}}]


def files_in(folder, pattern="**/*.nxs"):
    return sorted(str(path.relative_to(folder)) for path in folder.glob(pattern))


@case("words in paths: each run of a session has its own files, and the summary names them")
def _(folder):
    path = experiment(folder, detector=DETECTOR, sinks=nexus(folder / "data/{sample}/{run}_{date}T{time}.nxs", sample="a/b"))
    before = datetime.datetime.now(datetime.timezone.utc)
    equal(run("session", path, "--root", "runs", "--runs", 2, folder=folder).process.returncode, 0, "exit status")
    found = files_in(folder, "data/**/*.nxs")
    equal([name.partition("_2")[0] for name in found], ["data/a_b/000001", "data/a_b/000002"], "files")
    for number, name in enumerate(found, 1):
        moment = datetime.datetime.strptime(name[-19:-4], "%Y%m%dT%H%M%S").replace(tzinfo=datetime.timezone.utc)
        check(-2 < (moment - before).total_seconds() < 120, f"{name}: another time than {before}")
        result = json.loads((folder / f"runs/{number:06}/result.json").read_text())
        equal(result["sinks"][0]["where"], str(folder / name), "where, in the result")
        with h5py.File(folder / name) as file:
            equal(len(file["entry/data/data"]), 20, "images")
    stored = (folder / "runs/000001/experiment.yaml").read_text()
    check("{sample}/{run}_{date}T{time}.nxs" in stored, "the stored experiment has the path of one run")


@case("words in paths: values never lead to another folder")
def _(folder):
    path = experiment(folder, detector=DETECTOR, sinks=nexus("{sample}.nxs", sample=".."))
    equal(run("run", path, folder=folder).process.returncode, 0, "exit status")
    equal(files_in(folder), ["_..nxs"], "files")


@case("words in paths: unknown ones, {run} without run folders and two sinks that mean one file are refused, and nothing is begun")
def _(folder):
    wrong = experiment(folder, "wrong.yaml", detector=DETECTOR, sinks=nexus("{rum}.nxs"))
    for command in ("check", "run"):
        run_fails(command, wrong, folder=folder, says=["wrong.yaml:", "sinks[0].nexus.path: '{rum}' is no word; there are: {run}, {date}, {time}, {transfer}, {sample}"])
    run_fails("run", experiment(folder, detector=DETECTOR, sinks=nexus("{run}.nxs")), folder=folder, says=["nexus.path: '{run}.nxs': {run}: ", "--root DIR"])
    both = [*nexus("{sample}.nxs"), *nexus("unknown.nxs")]
    run_fails("run", experiment(folder, detector=DETECTOR, sinks=both), folder=folder, says=["is to be written twice"])
    equal(files_in(folder, "*.nxs*"), [], "files")


def who(path):
    return f"{path.stat().st_mode & 0o7777:04o}", path.stat().st_gid


def other_group():
    """A group of this user that new files do not get by themselves."""
    for group in sorted({*os.getgroups(), *((entry.gr_gid for entry in grp.getgrall()) if not os.geteuid() else ())}):
        if group != os.getegid():
            return group
    skip("this user is in one group alone")
    return None


@case("group and mode: the master and all data files have them, from the beginning on and after recover")
def _(folder):
    group = other_group()
    sinks = nexus("run.nxs", frames_per_file=5, flush_s=0.05, mode="0640", group=str(group))
    path = experiment(folder, detector=DETECTOR, sinks=sinks)
    equal(run("run", path, folder=folder).process.returncode, 0, "exit status")
    found = sorted(folder.glob("run*.*"))
    equal(len(found), 5, "files")
    equal({who(file) for file in found}, {("0640", group)}, "mode and group")
    for file in found:
        file.unlink()
    started = Program("run", experiment(folder, detector={**DETECTOR, "frames": 100000, "frame_rate_Hz": 100}, sinks=sinks), folder=folder)
    wait_for("a second data file", lambda: (folder / "run_data_000002.h5").exists() and (folder / "run.nxs").exists())
    equal({who(file) for file in folder.glob("run*.*")}, {("0640", group)}, "mode and group while it runs")
    started.send(signal.SIGKILL)
    started.wait()
    Program.end_all()
    equal(run("recover", "run.nxs", folder=folder).process.returncode, 0, "exit status of recover")
    equal({who(file) for file in folder.glob("run*.*") if not file.name.endswith((".unreadable", ".part"))}, {("0640", group)}, "mode and group after recover")


@case("group and mode: wrong ones are refused before anything begins")
def _(folder):
    for options, says in (({"mode": "0440"}, "nexus.mode: '0440'"), ({"mode": "rw"}, "nexus.mode: 'rw'"),
                          ({"group": "no-such-group"}, "nexus.group: this host has no group 'no-such-group'")):
        run_fails("run", experiment(folder, detector=DETECTOR, sinks=nexus("run.nxs", **options)), folder=folder, says=[says])
    equal(files_in(folder, "run*"), [], "files")


main()
