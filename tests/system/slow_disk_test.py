#!/usr/bin/python3
"""slow_disk_test.py - a disk that is slower than the data (tests/lib/slow_disk.c), with each on_slow of the sink `nexus`: who waits is told,
what is left out has its outcome in file, ledger and log alike, a run that stops has stored what came; and the watermark of stored frames."""
# normal build only

import json
import os
import resource
import subprocess

import h5py
import numpy as np

from harness import RUN_DIR, SLUICE, Program, case, check, closes, equal, experiment, images_on_disk, main, read_outcomes, read_summary, run
from slow_disk import MB, on_slow_disk

FRAMES = 400
DETECTOR = {"kind": "pattern", "modules": 2, "rows": 256, "columns": 256, "frames": FRAMES}  # an image of two modules takes 256 KiB


def start(folder, bytes_per_s, detector=(), **nexus):
    """A run on a disk of that speed."""
    sink = {"path": str(folder / "run.nxs"), "dataset": "raw", "compression": "none", **nexus}
    path = experiment(folder, detector={**DETECTOR, **dict(detector)}, sinks=[{"nexus": sink}, "verify"])
    slow = on_slow_disk(bytes_per_s) if bytes_per_s else ()
    return Program("run", path, "--summary", folder / "summary.json", "--outcomes", folder / "outcomes.txt", folder=folder, wrapper=slow)


def nexus_of(summary):
    return next(sink for sink in summary["sinks"] if sink["name"] == "nexus")


def status():
    """The status of the run at hand, or None."""
    asked = subprocess.run([SLUICE, "ctl", "experiment", "--json"], capture_output=True, text=True, check=False,
                           env={**os.environ, "SLUICE_RUN_DIR": str(RUN_DIR)})
    return json.loads(asked.stdout).get("status") if asked.returncode == 0 else None


def check_rows(folder, summary, frames):
    """Rows of the file, log and ledger agree about every frame. {sequence: (outcome, cause)}"""
    log = read_outcomes(folder)
    with h5py.File(folder / "run.nxs") as file:
        rows = file["entry/sluice/frames"]
        outcomes, causes = [[name.decode() for name in rows[f"{kind}_names"][()]] for kind in ("outcome", "cause")]
        equal(rows["sequence"][()].tolist(), list(range(frames)), "rows")
        table = {(k, m): (outcomes[rows["outcome"][k, m]], causes[rows["cause"][k, m]]) for k in range(frames) for m in (0, 1)}
        check(table == log, "the file's rows are not those of the outcome log")
        stored = [k for k in range(frames) if table[k, 0] == ("stored", "none")]
        equal(file["entry/data/sequence"][()].tolist(), stored, "sequences of the images")
        equal(rows["image_index"][()].tolist(), [stored.index(k) if k in stored else -1 for k in range(frames)], "image_index")
        equal(set(rows["keep"][()].tolist()), {1}, "keep")
        ledger = file["entry/sluice/ledger"]
        for kind, key in (("outcome", "outcomes"), ("cause", "causes")):
            names = [name.decode() for name in ledger[f"{kind}_names"][()]]
            total = dict(zip(names, ledger[key][()].sum(axis=0).tolist(), strict=True))
            equal({name: n for name, n in total.items() if n and name != "none"},
                  {name: n for name, n in summary["ledger"]["total"][key].items() if n}, f"the file's {key}")
        equal(ledger["closed"][()], 1, "the file's ledger closed")
    counted = {name: sum(outcome == name for outcome, _ in log.values()) for name in outcomes[1:]}
    equal(counted, summary["ledger"]["total"]["outcomes"], "the ledger, beside the log")
    return {k: table[k, 0] for k in range(frames)}


def same_images(folder, truth):
    """Each image is that of the same sequence in a file that has all."""
    with h5py.File(folder / "run.nxs") as file, h5py.File(truth / "run.nxs") as whole:
        every = whole["entry/data/data"]
        for i, k in enumerate(file["entry/data/sequence"][()]):
            check(np.array_equal(file["entry/data/data"][i], every[k]), f"image {i} is not that of sequence {k}")


@case("wait: the run waits for the disk and says so; the watermark follows what is on disk")
def _(folder):
    started = start(folder, 25 * MB)
    marks = []
    while started.running():
        now = status()
        if now and now["state"] == "running":
            marks.append(now["watermark"])
            check(now["watermark"] <= now["frames"]["settled"], "the watermark is ahead of the ledger")
            check(images_on_disk(folder) >= marks[-1] or not started.running(), "the watermark is ahead of the files")
    started.ends(0)
    summary = read_summary(folder)
    closes(summary, 2 * FRAMES)
    equal(marks, sorted(marks), "watermarks")
    check(any(0 < mark < FRAMES for mark in marks), f"watermarks: {marks}")
    equal((summary["result"], summary["watermark"]), ("intact", FRAMES), "result and watermark")
    pace = nexus_of(summary)["pace"]
    check(pace["waited_ns"] > 1e9, f"waited {pace['waited_ns']} ns")
    equal((pace["on_slow"], pace["left_out"], pace["factor"], pace["changes"]), ("wait", 0, 1, []), "pace")
    check(pace["waiting"]["most"] >= pace["mark"], f"most {pace['waiting']}, mark {pace['mark']}")
    for words in ("waits for nexus ", "cannot keep pace: the data waited for it "):
        check(words in started.err(), f"stderr does not say '{words}'")
    check("the data waited for nexus " in started.out(), "the report does not name the sink")
    check_rows(folder, summary, FRAMES)


@case("prescale: what is left out is unwritten, cause slow, alike in file, ledger and log; what is stored is right")
def _(folder):
    (folder / "truth").mkdir()
    start(folder / "truth", None).ends(0)
    started = start(folder, 10 * MB, {"frame_rate_Hz": 400}, on_slow="prescale", frames_per_file=30).ends(2)
    summary = read_summary(folder)
    closes(summary, 2 * FRAMES)
    rows = check_rows(folder, summary, FRAMES)
    left_out = sum(row == ("unwritten", "slow") for row in rows.values())
    check(0 < left_out < FRAMES, f"{left_out} of {FRAMES} frames were left out")
    equal(set(rows.values()), {("stored", "none"), ("unwritten", "slow")}, "outcomes that there are")
    equal((summary["result"], summary["exit"], summary["ended_early"], summary["watermark"]), ("damaged", 2, None, FRAMES), "result")
    equal(summary["frames"]["kept"], FRAMES, "frames.kept")
    pace, figures = nexus_of(summary)["pace"], nexus_of(summary)["figures"]
    equal((pace["left_out"], figures["frames"], figures["frames_refused"]), (left_out, FRAMES - left_out, 0), "frames left out, stored, refused")
    check(pace["factor_changes"] >= 1, "the factor never changed")
    equal(len(pace["changes"]), pace["factor_changes"], "changes")
    with h5py.File(folder / "run.nxs") as file:
        group = file["entry/sluice/on_slow"]
        equal((group["policy"][()].decode(), group["frames_left_out"][()], group["changes"][()]), ("prescale", left_out, pace["factor_changes"]),
              "what the file says of it")
        equal([{"sequence": int(k), "factor": int(n)} for k, n in zip(group["sequence"], group["factor"], strict=True)], pace["changes"],
              "changes, says the file")
    first = pace["changes"][0]["sequence"]
    equal({rows[k] for k in range(first)}, {("stored", "none")}, "outcomes before the first change")
    same_images(folder, folder / "truth")
    proven = run("audit", folder / "run.nxs", folder=folder)
    equal(proven.process.returncode, 0, f"exit status of sluice audit: {proven.out()}")
    check(f"nexus left out {left_out} kept frames (on_slow: prescale)" in started.out(), "the result does not say it")
    check(f"has left out {left_out}" in started.err(), "the progress line does not say it")
    check("one is stored" in started.err(), "the log does not warn")


def beside(folder, required):
    """A run with a slow nexus and a raw file beside it; returns its summary."""
    nexus = {"path": str(folder / "run.nxs"), "dataset": "raw", "compression": "none", "on_slow": "prescale", "required": required}
    path = experiment(folder, detector={**DETECTOR, "frame_rate_Hz": 400},
                      sinks=[{"nexus": nexus}, {"raw": {"path": str(folder / "run.raw"), "dataset": "raw"}}, "verify"])
    Program("run", path, "--summary", folder / "summary.json", "--outcomes", folder / "outcomes.txt", folder=folder,
            wrapper=on_slow_disk(10 * MB)).ends(2 if required else 0)
    return read_summary(folder)


@case("a raw file beside a nexus that leaves frames out has every image, and so has the file that it is converted to; nexus required or not")
def _(folder):
    (folder / "truth").mkdir()
    start(folder / "truth", None).ends(0)
    for required in (True, False):
        here = folder / f"required_{required}"
        here.mkdir()
        summary = beside(here, required)
        closes(summary, 2 * FRAMES)
        left_out = nexus_of(summary)["pace"]["left_out"]
        check(0 < left_out < FRAMES, f"{left_out} frames were left out")
        equal(summary["ledger"]["total"]["causes"]["slow"], 2 * left_out if required else 0, "the ledger's cause slow")
        raw = next(sink for sink in summary["sinks"] if sink["name"] == "raw")
        equal((raw["figures"]["frames"], raw["pace"]["left_out"]), (FRAMES, 0), "images in the raw file, left out")
        equal(run("convert", here / "run.raw", here / "out.nxs", folder=here).process.returncode, 0, "exit status of convert")
        with h5py.File(here / "out.nxs") as file, h5py.File(folder / "truth/run.nxs") as truth:
            rows = file["entry/sluice/frames"]
            equal(rows["image_index"][()].tolist(), list(range(FRAMES)), "image_index")
            equal(set(rows["keep"][()].tolist()), {1}, "keep")
            outcomes = [rows["outcome_names"][k].decode() for k in rows["outcome"][:, 0]]
            equal(outcomes, [read_outcomes(here)[k, 0][0] for k in range(FRAMES)], "outcomes, beside the log")
            check(np.array_equal(file["entry/data/data"][()], truth["entry/data/data"][()]), "an image is another")
        for name in ("run.nxs", "out.nxs"):
            proven = run("audit", here / name, folder=here)
            equal(proven.process.returncode, 0, f"exit status of sluice audit {name}: {proven.out()}")


@case("stop: the run ends, everything that was sent is stored, and the result says why")
def _(folder):
    started = start(folder, 10 * MB, {"frames": 100000, "frame_rate_Hz": 400}, on_slow="stop").ends(2)
    summary = read_summary(folder)
    closes(summary)
    total = summary["ledger"]["total"]
    frames = total["sent"] // 2
    check(0 < frames < 100000, f"{frames} frames were sent")
    equal(total["outcomes"]["stored"], total["sent"], "stored, beside sent")
    equal(summary["result"], "damaged", "result")
    equal(summary["ended_early"], "stopped: nexus could not keep pace with the data (on_slow: stop)", "ended_early")
    equal(summary["watermark"], frames, "watermark")
    equal(set(check_rows(folder, summary, frames).values()), {("stored", "none")}, "outcomes")
    check("The run stops (on_slow: stop)" in started.err(), "the log does not say why")
    check("the run was stopped because nexus could not keep pace" in started.out(), "the result does not say why")


@case("a disk that is fast enough: nothing is left out and nothing stops, with any policy")
def _(folder):
    for policy in ("prescale", "stop"):
        # Fewer frames than may wait for a sink: however busy this host is, it is not slow.
        start(folder, 2000 * MB, {"frames": 20, "frame_rate_Hz": 50}, on_slow=policy).ends(0)
        summary = read_summary(folder)
        equal(summary["result"], "intact", f"result with {policy}")
        equal(nexus_of(summary)["pace"]["left_out"], 0, "frames left out")
        with h5py.File(folder / "run.nxs") as file:
            check("on_slow" not in file["entry/sluice"], "the file says that frames were left out")


@case("required: false: a file that fails in mid-run only counts")
def _(folder):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20 * MB, 20 * MB))
    sink = {"path": str(folder / "run.nxs"), "dataset": "raw", "compression": "none", "required": False}
    path = experiment(folder, detector=DETECTOR, sinks=[{"nexus": sink}, "verify"])
    started = Program("run", path, "--summary", folder / "summary.json", folder=folder, limit=limit).ends(0)
    summary = read_summary(folder)
    closes(summary, 2 * FRAMES)
    equal((summary["result"], summary["ended_early"]), ("intact", None), "result")
    equal(summary["ledger"]["total"]["outcomes"]["stored"], 2 * FRAMES, "stored")
    nexus = nexus_of(summary)
    equal(nexus["required"], False, "required")
    check(nexus["figures"]["frames_refused"] > 0 and nexus["error"], f"nexus has failed: {nexus}")
    equal(nexus["figures"]["frames"] + nexus["figures"]["frames_refused"], FRAMES, "frames that it has or refused")
    check("nexus: FAILED (not required)" in started.out(), "the report does not say it")


if __name__ == "__main__":
    main()
