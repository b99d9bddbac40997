#!/usr/bin/python3
"""names_test.py - where a run's files go and who may read them: words in paths, group and mode, and whether there is room."""
# with sanitizers in check-long

import datetime
import grp
import json
import os
import re
import shlex
import signal
import subprocess

import h5py

from harness import RUN_DIR, SLUICE, Program, case, check, equal, experiment, main, run, run_fails, skip, wait_for

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


@case("missing folders are made, also one whose name has a single character")
def _(folder):
    equal(run("run", experiment(folder, detector=DETECTOR, sinks=nexus("a/b/run.nxs")), folder=folder).process.returncode, 0, "exit status")
    equal(files_in(folder), ["a/b/run.nxs"], "files")


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


@case("words in folders of a raw file: each run of a session has its own, a relative one in its run folder; commas in a value divide nothing")
def _(folder):
    raw = {"path": "{sample}.raw", "dataset": "raw", "folders": f"{folder}/disk 1/{{sample}}_{{run}}, {folder}/disk2/{{run}}, near"}
    path = experiment(folder, detector={**DETECTOR, "frames": 3000, "rows": 32, "columns": 32}, metadata={"sample": "a,b /c"}, sinks=[{"raw": raw}, "verify"])
    done = run("session", path, "--root", "runs", "--runs", 2, folder=folder)
    equal(done.process.returncode, 0, f"exit status: {done.err()}")
    for number in ("000001", "000002"):
        for place in (f"disk 1/a_b _c_{number}", f"disk2/{number}", f"runs/{number}/near"):
            check(list((folder / place).glob("a,b _c_raw_*.bin")), f"no data file in {place}: {files_in(folder, '**/*')}")
        done = run("convert", folder / f"runs/{number}/a,b _c.raw", folder / f"{number}.nxs", folder=folder)
        equal(done.process.returncode, 0, f"exit status of convert: {done.err()}")
        with h5py.File(folder / f"{number}.nxs") as file:
            equal(len(file["entry/data/data"]), 3000, "images")
    raw["folders"] = "{rum}"
    run_fails("check", experiment(folder, "wrong.yaml", detector=DETECTOR, sinks=[{"raw": raw}]), folder=folder, says=["raw.folders: '{rum}' is no word"])


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


BIG = {"rows": 512, "columns": 512, "frames": 60}  # an image of two modules takes 1 MiB


def small_disk(folder, megabytes):
    """A wrapper that runs the program with a tmpfs of this size at folder/disk, which no other program sees."""
    (folder / "disk").mkdir()
    script = f'mount -t tmpfs -o size={megabytes}m none {shlex.quote(str(folder / "disk"))} || exit 77; exec "$@"'
    for unshare in (["unshare", "-m"], ["unshare", "-rm"]):  # as root, or as root of a namespace of our own
        if Program(folder=folder, program="true", wrapper=[*unshare, "sh", "-c", script, "sh"]).wait() == 0:
            return [*unshare, "sh", "-c", script, "sh"]
    skip("neither root nor user namespaces may mount a small tmpfs here")
    return None


def forecast(folder, wrapper=(), **sections):
    """The program, and the forecast in its summary."""
    done = run("run", experiment(folder, **sections), "--summary", "summary.json", folder=folder, wrapper=wrapper)
    return done, json.loads((folder / "summary.json").read_text())["forecast"]


@case("free space: a run that may not fit begins with a warning of both numbers, and two sinks of one disk count together")
def _(folder):
    wrapper = small_disk(folder, 40)
    done, (disk,) = forecast(folder, wrapper, detector=BIG, sinks=nexus(folder / "disk/a.nxs"))
    said = re.search(r"disk: 60 frames may need up to ([0-9.]+) MB, and ([0-9.]+) MB are free: about ([0-9]+) frames have room", done.err())
    check(said, f"it says: {done.err()}")
    needed, free, fit = float(said[1]), float(said[2]), int(said[3])
    check(63 < needed < 72 and 34 < free < 42.1 and 25 <= fit < 40, f"needed {needed} MB, free {free} MB, {fit} frames fit")
    stored = json.loads((folder / "summary.json").read_text())["ledger"]["total"]["outcomes"]["stored"] // 2
    check(abs(stored - fit) <= 3, f"{stored} frames had room, and the forecast was {fit}")
    equal((disk["path"], disk["fits"], disk["frames_fit"]), (str(folder / "disk"), False, fit), "forecast")
    check(abs(disk["needed_bytes"] - needed * 1e6) < 1e5 and abs(disk["free_bytes"] - free * 1e6) < 1e5, f"{disk}")
    both = [*nexus(folder / "disk/a.nxs"), *nexus(folder / "disk/b.nxs")]
    done, (sum_of,) = forecast(folder, wrapper, detector=BIG, sinks=both)
    equal(sum_of["frame_bytes"], 2 * disk["frame_bytes"], "bytes of a frame in two sinks")
    check(sum_of["frames_fit"] <= fit // 2 + 1, f"{sum_of}")


@case("free space: a disk without room for one frame is refused before the run, and nothing is left there")
def _(folder):
    wrapper = small_disk(folder, 39)
    huge = {"rows": 1024, "columns": 2048, "frames": 4}  # a frame has 8 MB; its mask, 16 MB, is in the master and in the first one
    run_fails("run", experiment(folder, detector=huge, sinks=nexus("disk/a.nxs")), folder=folder, wrapper=wrapper,
              says=["disk: not even one frame has room", "free some space"])


@case("free space: a disk without room for one frame of a sink that is not required is a warning, and the run is intact")
def _(folder):
    wrapper = small_disk(folder, 39)
    huge = {"rows": 1024, "columns": 2048, "frames": 4}
    done, _ = forecast(folder, wrapper, detector=huge, sinks=[*nexus("disk/a.nxs", required=False), *nexus("b.nxs")])
    equal(done.process.returncode, 0, f"exit status: {done.err()}")
    check("disk: not even one frame has room there in every sink" in done.err() and "not required" in done.err(), done.err())
    summary = json.loads((folder / "summary.json").read_text())
    equal([(sink["required"], sink["figures"]["frames"]) for sink in summary["sinks"]], [(False, 0), (True, 4)], "required, images")
    equal(summary["sinks"][0]["figures"]["frames_refused"], 4, "frames refused")


@case("free space: the forecast counts the columns of the audit")
def _(folder):
    sizes = []
    for audit in (True, False):
        _, (disk,) = forecast(folder, detector=DETECTOR, sinks=nexus(f"{audit}.nxs", audit=audit))
        sizes.append(disk["frame_bytes"])
    with h5py.File(folder / "True_data_000001.h5") as file:
        series = [item for item in file["entry/sluice/audit"].values() if item.maxshape and item.maxshape[0] is None]
        check(len(series) == 7, f"{len(series)} columns")
        equal(sizes[0] - sizes[1], sum(item.dtype.itemsize * (item.shape[1] if item.ndim > 1 else 1) for item in series), "bytes of a frame")


@case("free space: room enough is told in status and summary without a warning; an endless run says how many frames fit")
def _(folder):
    done, (disk,) = forecast(folder, detector=DETECTOR, sinks=nexus("a.nxs"))
    equal((disk["fits"], disk["path"]), (True, "."), "forecast")
    check("may need up to" not in done.err(), f"it warns: {done.err()}")
    session = Program("run", experiment(folder, detector={**DETECTOR, "frames": 0, "frame_rate_Hz": 100}, sinks=nexus("b.nxs")), folder=folder)

    def status():
        asked = subprocess.run([SLUICE, "ctl", "experiment", "--json"], capture_output=True, text=True, check=False,
                               env={**os.environ, "SLUICE_RUN_DIR": str(RUN_DIR)})
        document = json.loads(asked.stdout)["status"] if asked.returncode == 0 else None
        return document and document["frames"]["settled"] and document["forecast"]

    (disk,) = wait_for("frames, and a forecast", status)
    equal((disk["needed_bytes"], disk["fits"]), (None, None), "forecast of an endless run")
    check(disk["frames_fit"] > 100, f"{disk}")
    session.send(signal.SIGINT)
    session.ends(0)


main()
