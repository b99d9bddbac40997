#!/usr/bin/python3
"""disk_full_test.py - the sink runs out of space, or never had a place: the run goes on and ends with 2, what was
written before is safe and right, the rest is unwritten, and the ledger closes. HDF5 must not crash at exit."""

import resource

import h5py
import numpy as np

from harness import (LONG, Program, acquire, case, check, closes, equal, experiment, images_on_disk, intact, main,
                     read_outcomes, read_summary, receiver, run_fails, sink, wait_for, without_privilege)
from small_disk import small_disk

MB = 1000 * 1000
FRAMES = 60
DETECTOR = {"rows": 512, "columns": 512, "frames": FRAMES}  # an image of two modules takes 1 MiB


class Reference:
    """What the file holds when there is room."""

    images = None

    @classmethod
    def get(cls, folder):
        if cls.images is None:
            (folder / "reference").mkdir()
            intact(*acquire(folder / "reference", detector=DETECTOR), FRAMES)
            with h5py.File(folder / "reference/run.nxs", "r") as file:
                cls.images = file["entry/data/data"][()]
        return cls.images


def limit(megabytes):
    """No file of the program may grow beyond this."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (int(megabytes * MB), int(megabytes * MB)))


def ran_full(folder, started, file_folder, reason, least, most, frames=FRAMES):
    """Exit 2; the first frames are in the file, as they are without a limit; the rest is unwritten, and the ledger has
    them all. How many were stored."""
    started.ends(2)
    summary = read_summary(folder)
    closes(summary, 2 * frames)
    equal(summary["result"], "damaged", "result")
    total = summary["ledger"]["total"]
    stored = total["outcomes"]["stored"] // 2
    check(least <= stored <= most, f"{stored} frames stored, expected {least} to {most}")
    equal(total["outcomes"]["stored"] + total["outcomes"]["unwritten"], 2 * frames, "stored or unwritten")
    equal(total["causes"]["sink"], total["outcomes"]["unwritten"], "unwritten because of a sink")
    equal(sink(summary, "nexus")["frames"], stored, "images that the sink says it has")
    equal(sink(summary, "nexus")["frames_refused"], frames - stored, "frames that it refused")
    equal(sink(summary, "verify")["frames_compared"], frames, "frames that the other sink still had")
    outcomes = read_outcomes(folder)
    equal([outcomes[k, 0] for k in range(frames)],
          [("stored", "none")] * stored + [("unwritten", "sink")] * (frames - stored), "outcomes in order")
    check(reason in started.err(), f"stderr does not say '{reason}'")
    with h5py.File(file_folder / "run.nxs", "r") as file:
        equal(file["entry/data/sequence"][()].tolist(), list(range(stored)), "images in the file")
        check(np.array_equal(file["entry/data/data"][()], Reference.get(folder)[:stored]), "the images are others")
        equal(file["entry/sluice/frames/sequence"][()].tolist(), list(range(stored)), "rows about frames")
        equal(file["entry/sluice/frames_refused"][()], frames - stored, "frames refused, says the file")
        equal(file["entry/sluice/ledger/closed"][()], 1, "the file's ledger closed")
        equal(file["entry/sluice/ledger/outcomes"][()].sum(axis=1).tolist(), [frames, frames], "the file's ledger")
    return stored


def start(folder, path, **options):
    return Program("run", path, "--summary", folder / "summary.json", "--outcomes", folder / "outcomes.txt",
                   folder=folder, **options)


@case("a limit on the size of files (RLIMIT_FSIZE) in mid-run")
def _(folder):
    started = start(folder, experiment(folder, detector=DETECTOR), limit=limit(30))
    ran_full(folder, started, folder, "ulimit -f", 15, 28)


@case("the same, over shm")
def _(folder):
    # The ring is a file in memory, to which the limit applies, too.
    path = experiment(folder, detector=DETECTOR, link={"kind": "shm"}, ring={"slots": 12})
    started = start(folder, path, limit=limit(30))
    ran_full(folder, started, folder, "ulimit -f", 15, 28)


@case("room for hardly anything but the tables")
def _(folder):
    started = start(folder, experiment(folder, detector=DETECTOR), limit=limit(9))
    ran_full(folder, started, folder, "ulimit -f", 1, 6)


@case("no room even for an empty file: 1, and nothing is left behind")
def _(folder):
    run_fails("run", experiment(folder, detector=DETECTOR), folder=folder, limit=limit(0.1), says=["run.nxs", "space"])
    equal([path.name for path in folder.glob("run.nxs*")], [], "files left behind")


@case("frames are vetoed, lost or damaged as ever while the disk is full")
def _(folder):
    detector = {**DETECTOR, "frames": FRAMES - 10, "dark_frames": 10}
    path = experiment(folder, detector=detector, frontend={"drop": 0.001})
    started = start(folder, path, limit=limit(20)).ends(2)
    summary = read_summary(folder)
    closes(summary, 2 * FRAMES)
    total = summary["ledger"]["total"]["outcomes"]
    check(all(total[outcome] > 0 for outcome in ("stored", "unwritten", "vetoed", "incomplete")), f"{total}")
    equal(total["unwritten"], summary["ledger"]["total"]["causes"]["sink"], "unwritten because of a sink")
    with h5py.File(folder / "run.nxs", "r") as file:
        equal(len(file["entry/data/data"]), total["stored"] // 2, "images in the file")
    check("ulimit -f" in started.err(), "stderr does not say what to do")


@case("a file system that is full in mid-run (a small tmpfs)")
def _(folder):
    wrapper = small_disk(folder, 30)
    sinks = [{"nexus": {"path": str(folder / "disk/run.nxs"), "dataset": "raw"}}, "verify"]
    started = start(folder, experiment(folder, detector=DETECTOR, sinks=sinks), wrapper=wrapper)
    ran_full(folder, started, folder / "copy", "free some space", 5, 28)


@case("a file system that is full from the start: 1, and nothing is left behind")
def _(folder):
    wrapper = small_disk(folder, 1)
    sinks = [{"nexus": {"path": str(folder / "disk/run.nxs"), "dataset": "raw"}}, "verify"]
    run_fails("run", experiment(folder, detector=DETECTOR, sinks=sinks), folder=folder, wrapper=wrapper,
              says=["run.nxs", "space"])
    equal([path.name for path in (folder / "copy").iterdir()], [], "files left behind")


@case("the outcome log and the summary on a full disk: the run says so and does not crash")
def _(folder):
    wrapper = small_disk(folder, 1)
    path = experiment(folder, detector={"rows": 4, "columns": 4, "frames": 100, "dark_frames": 60000})
    started = Program("run", path, "--outcomes", folder / "disk/outcomes.txt", "--summary", folder / "disk/s.json",
                      folder=folder, wrapper=wrapper)
    started.ends(1)
    check("outcome log" in started.err() and "summary" in started.err(), "it does not say what could not be written")
    with h5py.File(folder / "run.nxs", "r") as file:
        equal(len(file["entry/data/data"]), 100, "images in the file")


@case("the file cannot get its name at the end: nothing counts as stored")
def _(folder):
    sinks = [{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw", "frames_per_file": 0}}, "verify"]
    started = receiver(folder, experiment(folder, detector={**LONG, "frames": 30}, sinks=sinks))
    wait_for("the file", lambda: (folder / "run.nxs.part").exists())
    (folder / "run.nxs").mkdir()  # another program was faster
    started.ends(2)
    summary = read_summary(folder)
    closes(summary, 60)
    total = summary["ledger"]["total"]
    equal((total["outcomes"]["stored"], total["outcomes"]["unwritten"]), (0, 60), "stored and unwritten")
    equal(total["causes"]["sink"], 60, "because of a sink")
    equal(set(read_outcomes(folder).values()), {("unwritten", "sink")}, "outcomes")
    check(summary["sinks"][0]["where"].endswith("run.nxs.part"), "the summary does not say where the data is")
    check(summary["sinks"][0]["error"], "the summary does not say what went wrong")
    with h5py.File(folder / "run.nxs.part", "r") as file:
        equal(len(file["entry/data/data"]), 30, "images that can be saved by hand")


@case("a folder that may not be written")
def _(folder):
    (folder / "locked").mkdir(mode=0o555)
    sinks = [{"nexus": {"path": str(folder / "locked/run.nxs"), "dataset": "raw"}}]
    run_fails("run", experiment(folder, sinks=sinks), folder=folder, wrapper=without_privilege(),
              says=["locked/run.nxs", "Permission denied"])


@case("a folder by the name of the file, a file by the name of its folder")
def _(folder):
    (folder / "folder.nxs").mkdir()
    (folder / "file").write_text("")
    for path, *says in [("folder.nxs", "directory"), ("file/run.nxs", "file", "Not a directory")]:
        sinks = [{"nexus": {"path": str(folder / path), "dataset": "raw"}}]
        run_fails("run", experiment(folder, sinks=sinks), folder=folder, says=says)
    equal(sorted(path.name for path in folder.rglob("*.part")), [], "files left behind")


@case("missing folders on the way to the file are created")
def _(folder):
    sinks = [{"nexus": {"path": str(folder / "a/b/c/run.nxs"), "dataset": "raw"}}, "verify"]
    intact(*acquire(folder, sinks=sinks), 200)
    check((folder / "a/b/c/run.nxs").exists(), "no file")


main()
