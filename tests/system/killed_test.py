#!/usr/bin/python3
"""killed_test.py - a receiver that is killed: what was durable, and what lay below the watermark that it had published, is in its files, every
pixel of it, after `sluice recover`; data files that were closed are readable as they are; a file that is whole is left alone."""
# normal build only

import json
import os
import random
import signal
import subprocess
import time

import h5py
import numpy as np

import results
from harness import RUN_DIR, SLUICE, Program, case, check, equal, experiment, main, run, run_fails, wait_for

FRAMES = 600
DETECTOR = {"kind": "pattern", "modules": 2, "rows": 128, "columns": 128, "frames": FRAMES, "frame_rate_Hz": 300}
KILLS = 50


def experiment_of(folder, **nexus):
    sink = {"path": str(folder / "run.nxs"), "dataset": "raw", "frames_per_file": 40, "flush_s": 0.05, "overwrite": True, **nexus}
    return experiment(folder, detector=DETECTOR, sinks=[{"nexus": sink}, "verify"])


def promised():
    """What the status of the run says: rows that the sink calls durable, and the watermark, below which every frame is stored."""
    asked = subprocess.run([SLUICE, "ctl", "experiment", "--json"], capture_output=True, text=True, check=False,
                           env={**os.environ, "SLUICE_RUN_DIR": str(RUN_DIR)})
    if asked.returncode:
        return 0, 0
    status = json.loads(asked.stdout).get("status", {})
    rows = (addon["figures"].get("rows_durable", 0) for addon in status.get("addons", []) if addon["name"] == "nexus")
    return next(rows, 0), status.get("watermark", 0)


def kill(folder, path, delay_s, data_file=1):
    """Kill a run that long after this data file is there. What it had promised before."""
    for old in folder.glob("run*.*"):
        old.unlink()
    program = Program("run", path, folder=folder)
    wait_for("data", lambda: (folder / f"run_data_{data_file:06}.h5").exists() or not program.running())
    time.sleep(delay_s)
    promise = promised() if program.running() else (0, 0)
    program.send(signal.SIGKILL)
    program.wait()
    Program.end_all()
    return promise


def same_images(path, truth, promise):
    """All images of the file are those of the whole run, and what was promised is there; how many images there are."""
    durable, watermark = promise
    with h5py.File(path) as file:
        images, numbers = file["entry/data/data"], file["entry/data/frame_number"][()]
        rows = file["entry/sluice/frames/sequence"][()]
        check(len(rows) >= durable, f"{len(rows)} rows, and {durable} were durable")
        equal(rows.tolist(), list(range(len(rows))), "rows")
        equal(numbers.tolist(), list(range(len(rows))), "frame numbers")
        equal(images.shape[0], len(numbers), "images")
        # Every frame of these runs is kept: below the watermark each has its row, its image, and is stored.
        stored = [name.decode() for name in file["entry/sluice/frames/outcome_names"][()]].index("stored")
        outcome = file["entry/sluice/frames/outcome"][:watermark]
        check(min(len(rows), len(numbers)) >= watermark, f"{len(rows)} rows, {len(numbers)} images, and the watermark was {watermark}")
        check((outcome == stored).all(), f"below the watermark, {watermark}, a frame is not stored")
        if len(numbers):
            check((images[()] == truth[:len(numbers)]).all(), "other pixels")
        outcomes = file["entry/sluice/ledger/outcomes"][()]
        equal(outcomes.sum(), 2 * len(rows), "outcomes of the ledger")
        equal(file["entry/sluice/ledger/closed"][()], 0, "the ledger closes, although its end is not known")
        equal(file["entry/sluice/state"][()], b"recovered", "state")
        return len(numbers)


def whole_run(folder):
    path = experiment_of(folder)
    equal(run("run", path, folder=folder).process.returncode, 0, "exit status")
    with h5py.File(folder / "run.nxs") as file:
        equal(file["entry/sluice/state"][()], b"complete", "state")
        return path, file["entry/data/data"][()]


@case("killed at random moments, many times: what was durable or below the watermark is there, and all that is there is right")
def _(folder):
    path, truth = whole_run(folder)
    draw, most, watermarks = random.Random(7), 0, []
    for _ in range(KILLS if "SLUICE_LONG" in os.environ else 8):
        promise = kill(folder, path, draw.random() * 1.5)
        watermarks.append(promise[1])
        for file in sorted(folder.glob("run_data_*.h5"))[:-1]:  # closed ones need nothing
            with h5py.File(file) as closed:
                check((closed["entry/data/data"][()] == truth[closed["entry/data/frame_number"][()]]).all(), f"{file.name}: other pixels")
        if (folder / "run.nxs").exists():
            done = run("recover", folder / "run.nxs", folder=folder)
            equal(done.process.returncode, 0, f"exit status of recover: {done.err()}")
            if b"nothing to do" not in done.out().encode():
                most = max(most, same_images(folder / "run.nxs", truth, promise))
        else:
            equal(promise, (0, 0), "rows and watermark that were promised without a file")
    check(most > 40, f"at most {most} images were recovered: no test of several files")
    check(max(watermarks) > 20, f"watermarks were {watermarks}: no test of them")


@case("results of rejected frames are as safe as images: what a killed run leaves agrees with itself and with a whole run")
def _(folder):
    # Hits are rare: a data file has many more rows of results than images.
    detector = {"kind": "jungfrau", "modules": 1, "rows": None, "columns": None, "dark_frames": 16, "frames": 300, "hit_fraction": 0.2, "pool": 21,
                "frame_rate_Hz": 150}
    sink = {"path": str(folder / "run.nxs"), "frames_per_file": 4, "flush_s": 0.05, "overwrite": True}
    path = experiment(folder, detector=detector, sinks=[{"nexus": sink}],
                      stages=["correct", {"veto": {}}, {"peaks": {"look": "all", "min_peaks": 0}}, {"integrate": {"bins": 40}}])
    equal(run("run", path, folder=folder).process.returncode, 0, "exit status")
    with h5py.File(folder / "run.nxs") as file:
        whole = results.of_results(file)
    equal(len(whole["sequence"]), 300, "rows of results")
    most = 0
    for data_file, delay_s in ((4, 0), (6, 0.1)):
        kill(folder, path, delay_s, data_file)
        equal(run("recover", folder / "run.nxs", folder=folder).process.returncode, 0, "exit status of recover")
        with h5py.File(folder / "run.nxs") as file:
            found, frames = results.of_results(file), file["entry/sluice/frames"]
            n, index = len(found["sequence"]), frames["result_index"][()]
            equal(index[index >= 0].tolist(), list(range(n)), "rows of results, by the rows of frames")
            equal(frames["sequence"][()][index >= 0].tolist(), found["sequence"].tolist(), "whose they are")
            equal(file["entry/data/sequence"][()].tolist(), found["sequence"][file["entry/data/result_index"][()]].tolist(), "by the images")
            equal(len(file["entry/hits/hit_rate"]), n // 100, "rows of hit rates: of blocks that were full")
        for name, value in found.items():
            check(all(np.array_equal(a, b, equal_nan=True) for a, b in zip(value, whole[name][:n], strict=True)), f"{name} is another")
        most = max(most, n)
    check(most > 50, f"at most {most} rows of results were recovered")


@case("a run that was killed before it had a master: recover clears the way for the next run, and leaves files of others alone")
def _(folder):
    master, data = folder / "run.nxs", folder / "run_data_000001.h5"
    data.write_bytes(b"half of a superblock")
    path = experiment(folder, detector={"frames": 5}, sinks=[{"nexus": {"path": str(master), "dataset": "raw", "overwrite": False}}])
    run_fails("run", path, folder=folder, says=["run_data_000001.h5: exists"])
    done = run("recover", master, folder=folder)
    equal(done.process.returncode, 0, f"exit status of recover: {done.err()}")
    check("nothing to recover" in done.out() and not data.exists(), done.out())
    equal((folder / "run_data_000001.h5.unreadable").read_bytes(), b"half of a superblock", "what was there")
    equal(run("run", path, folder=folder).process.returncode, 0, "exit status of the next run")
    master.rename(folder / "other.nxs")  # data files with rows, and those of another master, stay
    for name in ("run.nxs", "run.h5"):
        run_fails("recover", folder / name, folder=folder, says=[name])
    check(data.exists(), "a data file with rows is gone")


@case("recover: a whole file is left alone, a second time changes nothing, a run that writes is not touched, and others are refused")
def _(folder):
    path, truth = whole_run(folder)
    before = (folder / "run.nxs").read_bytes()
    check("nothing to do" in run("recover", folder / "run.nxs", folder=folder).out(), "it does not say so")
    check((folder / "run.nxs").read_bytes() == before, "it has changed a whole file")
    kill(folder, path, 1)
    check("recovered: " in run("recover", folder / "run.nxs", folder=folder).out(), "it does not say what there was")
    check("nothing to do" in run("recover", folder / "run.nxs", folder=folder).out(), "it does it twice")
    same_images(folder / "run.nxs", truth, (0, 0))
    for old in folder.glob("run*.*"):
        old.unlink()
    program = Program("run", path, folder=folder)
    wait_for("the file", lambda: (folder / "run.nxs").exists() or not program.running())
    run_fails("recover", folder / "run.nxs", folder=folder, says=["is being written by another run"])
    program.ends(0)
    run_fails("recover", folder / "none.nxs", folder=folder, says=["none.nxs"])
    (folder / "text.nxs").write_text("no HDF5 at all\n")
    run_fails("recover", folder / "text.nxs", folder=folder, says=["text.nxs"])
    run_fails("recover", folder=folder, says=["recover takes files of runs"])


@case("a run does not replace a file that is there, nor data files without one, unless it is told to")
def _(folder):
    path = experiment_of(folder, overwrite=False)
    equal(run("run", path, folder=folder).process.returncode, 0, "exit status")
    before = {file.name: file.read_bytes() for file in folder.glob("run*")}
    check(len(before) > 10, f"files: {sorted(before)}")
    run_fails("run", path, folder=folder, says=["run.nxs exists: move it away, choose another path, or set overwrite: true"])
    check({file.name: file.read_bytes() for file in folder.glob("run*")} == before, "files were changed")
    (folder / "run.nxs").rename(folder / "kept")
    run_fails("run", path, folder=folder, says=["run_data_000001.h5: exists"])
    check(not (folder / "run.nxs").exists(), "it left a file")
    run_fails("run", experiment_of(folder), folder=folder, says=["run_data_000001.h5: exists, and there is no run at"])
    (folder / "kept").rename(folder / "run.nxs")
    check({file.name: file.read_bytes() for file in folder.glob("run*")} == before, "files were changed")
    equal(run("run", experiment_of(folder, frames_per_file=400), folder=folder).process.returncode, 0, "exit status with overwrite")
    equal(sorted(file.name for file in folder.glob("run_*")), ["run_data_000001.h5", "run_data_000002.h5"], "data files")


main()
