#!/usr/bin/python3
"""demo_test.py - the example that users run first, shortened: detector to NeXus file, with nothing lost, and everything
that the file promises in it. Also under the guard that aborts when a data thread allocates, locks or logs."""
# with sanitizers in check-long

import atexit
import pathlib
import shutil
import tempfile

import h5py
import numpy as np

import results
from harness import (GUARDED, RECEIVER, ROOT, SOURCE, acquire, case, check, closes, equal, fewer, intact, main,
                     read_outcomes, read_summary, run, sink, skip)

EXAMPLE = ROOT / "examples/jungfrau-laptop.yaml"
DARKS, FRAMES = fewer(128, 8), fewer(300, 40)
POOL, HITS = 31, 2  # jungfrau renders 31 different frames, then they repeat; 5 % of them, rounded, are hits
THRESHOLD, MIN_PIXELS = 10, 20  # of the example's veto
DARK, COMPLETE = 1, 2  # flags of a frame
BAD = -32768  # a pixel that cannot be corrected


def demo(folder, program=None, **settings):
    settings = {"detector.dark_frames": DARKS, "detector.frames": FRAMES, "link.listen": RECEIVER,
                "link.source": SOURCE, "control.address": RECEIVER, "sinks.nexus.path": folder / "run.nxs",
                "ring.late_timeout_ms": 60000, **settings}
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    program = run("run", EXAMPLE, "--summary", folder / "summary.json", "--outcomes", folder / "outcomes.txt", *sets,
                  folder=folder, program=program)
    summary = read_summary(folder)
    intact(program, summary, DARKS + FRAMES)
    return program, summary


class Once:
    """The demo's run, shared by the cases that look at it."""

    file = summary = outcomes = out = err = None

    @classmethod
    def get(cls, _):
        if cls.file is None:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="demo-"))  # a case's own goes with the case
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            program, cls.summary = demo(folder)
            cls.out, cls.err = program.out(), program.err()
            cls.outcomes = read_outcomes(folder)
            cls.file = h5py.File(folder / "run.nxs", "r")
        return cls


def frames_of(file):
    return {name: dataset[()] for name, dataset in file["entry/sluice/frames"].items()}


@case("the demo ends well, its ledger closes, every frame is right")
def _(folder):
    once = Once.get(folder)
    total = once.summary["ledger"]["total"]
    equal(total["sent"], 2 * (DARKS + FRAMES), "sent")
    equal(total["causes"]["dark"], 2 * DARKS, "vetoed for being dark")
    equal(total["outcomes"]["vetoed"], total["causes"]["dark"] + total["causes"]["stage"], "vetoed")
    equal([m["source"] for m in once.summary["ledger"]["modules"]], ["done", "done"], "the sources")
    equal(set(once.summary["link"]["turned_away"].values()), {0}, "packets turned away")
    equal((once.summary["exit"], once.summary["stopped_by"]), (0, None), "exit and stopped_by")


@case("a report for people: ledger, latency per hop, result, where the file is")
def _(folder):
    once = Once.get(folder)
    for text in ("Ledger", "the ledger closes", "stored", "vetoed", "lost", "Latency per hop", "p50", "p99", "max",
                 "wire", "assemble", "process", "sink", "run.nxs", "Result: intact"):
        check(text in once.out, f"stdout does not say '{text}'")
    check(f"{DARKS + FRAMES} / {DARKS + FRAMES} frames" in once.err and "% kept" in once.err, "no progress on stderr")


@case("its file holds what the stages found: a profile and the peaks of every image, for people and for CrystFEL")
def _(folder):
    file = Once.get(folder).file
    images, found, peaks = len(file["entry/data/data"]), results.of_images(file), file["entry/peaks"]
    profile, rows = found["profile"], np.array([len(table) for table in found["peaks"]])
    equal(profile.shape, (images, 3, 500), "profiles")
    check(np.nanmax(profile[:, 1]) > 1 and np.all(profile[:, 2][np.isfinite(profile[:, 2])] >= 0), "profiles without photons")
    equal(len(rows), images, "lists of peaks")
    equal(len(file["entry/profile/intensity"]), FRAMES, "profiles of all frames, kept and rejected")
    check(np.nanmax(file["entry/profile/intensity"][file["entry/results/image_index"][()] < 0]) > 0.1, "profiles of rejected frames without photons")
    check(rows.min() >= 10, f"a kept image has {rows.min()} peaks")
    equal(peaks["nPeaks"][:].tolist(), rows.tolist(), "peaks for CrystFEL")
    # The brightest pixel of the first peak is where the list says.
    module, row, column, *_, top, _ = found["peaks"][0][0]
    image = file["entry/data/data"][0]
    near = image[int(row + 512 * module) - 3:int(row + 512 * module) + 4, max(0, int(column) - 3):int(column) + 4]
    check(top in near, f"a peak of {top} is not at {row}, {column} of module {module}")


@case("the summary has latency percentiles per hop and rates")
def _(folder):
    summary = Once.get(folder).summary
    equal(sorted(summary["latency_us"]), ["assemble", "process", "sink", "total", "wire"], "hops")
    for hop, figures in summary["latency_us"].items():
        equal(figures["count"], DARKS + FRAMES, f"frames measured at {hop}")
        check(0 <= figures["p50"] <= figures["p99"] <= figures["p999"] <= figures["max"], f"{hop} is not in order")
    check(summary["rates"]["frames_per_s"] > 0 and summary["rates"]["GB_per_s"] > 0, "no rates")
    equal((summary["link"]["guard"], summary["link"]["proof"]), ("enforced, credited", "packet count"), "guard, proof")


@case("kept frames are exactly those with spots, and their count is stored")
def _(folder):
    once = Once.get(folder)
    rows = frames_of(once.file)
    bright = rows["flags"] & DARK == 0
    equal(int(bright.sum()), FRAMES, "bright frames")
    check(np.array_equal(rows["keep"] == 1, bright & (rows["score"] >= MIN_PIXELS)), "keep is not score >= min_pixels")
    # The frames repeat, so hits do, and there are as many of them in a pool as the share says.
    exposure = rows["frame_number"] % POOL
    hits = set(exposure[rows["keep"] == 1])
    equal(len(hits), HITS, "different frames that were kept")
    check(np.array_equal(rows["keep"] == 1, bright & np.isin(exposure, list(hits))), "a hit was kept once, then not")
    # Blanks and hits are far apart: nothing was decided by a hair.
    check(rows["score"][bright & (rows["keep"] == 0)].max() < MIN_PIXELS / 2, "a blank looks like a hit")
    check(rows["score"][rows["keep"] == 1].min() > MIN_PIXELS * 2, "a hit looks like a blank")
    equal(once.summary["ledger"]["total"]["outcomes"]["stored"], 2 * int(rows["keep"].sum()), "module-frames stored")
    equal(sink(once.summary, "nexus")["frames"], int(rows["keep"].sum()), "images in the file")


@case("images show the spots: enough bright pixels, and as many peaks as the score says")
def _(folder):
    file = Once.get(folder).file
    data = file["entry/data/data"]
    rows = frames_of(file)
    equal((data.shape, data.dtype), ((int(rows["keep"].sum()), 1024, 1024), np.dtype("<i2")), "shape and type")
    scores, found = rows["score"][rows["keep"] == 1], results.of_images(file)["peaks_found"]
    for i in range(min(len(data), 4)):
        image = data[i]
        check((image >= THRESHOLD).sum() >= MIN_PIXELS, f"image {i} has too few bright pixels")
        equal(int(found[i, 0]), int(scores[i]), f"peaks of image {i}")
        check(image.max() > 100, f"image {i} has no spot worth the name")
        background = np.clip(image[image != BAD], None, 5).mean()
        check(0.3 < background < 0.8, f"image {i} has {background} photons per pixel, expected about half a photon")


@case("a NeXus file: definition, classes, default plot, detector and beam")
def _(folder):
    file = Once.get(folder).file
    equal((file.attrs["NX_class"], file.attrs["default"]), ("NXroot", "entry"), "root")
    entry = file["entry"]
    equal((entry.attrs["NX_class"], entry.attrs["default"]), ("NXentry", "data"), "entry")
    equal(entry["definition"][()].decode(), "NXmx", "definition")
    equal((entry["data"].attrs["NX_class"], entry["data"].attrs["signal"]), ("NXdata", "data"), "data")
    for path, nx_class in {"instrument": "NXinstrument", "instrument/detector": "NXdetector",
                           "instrument/detector/module_00": "NXdetector_module",
                           "instrument/detector/module_15": "NXdetector_module", "instrument/beam": "NXbeam",
                           "sample": "NXsample", "source": "NXsource", "sluice": "NXcollection"}.items():
        equal(entry[path].attrs["NX_class"], nx_class, path)
    check(abs(entry["instrument/beam/incident_wavelength"][()] - 12.39842 / 12.4) < 1e-6, "wavelength")
    equal(entry["instrument/beam/incident_wavelength"].attrs["units"], "angstrom", "its unit")
    equal(entry["instrument/detector/data"].shape, entry["data/data"].shape, "the detector's link to the images")
    check(entry["start_time"][()].decode() <= entry["end_time"][()].decode(), "it ended before it began")


@case("a row about every frame: sequence, number, timestamp, verdict, outcome")
def _(folder):
    once = Once.get(folder)
    rows = frames_of(once.file)
    n = DARKS + FRAMES
    for name, column in rows.items():
        if not name.endswith("_names"):
            equal(len(column), n, f"rows of {name}")
    equal(rows["sequence"].tolist(), list(range(n)), "sequences")
    equal(rows["frame_number"].tolist(), list(range(n)), "frame numbers")
    equal(rows["timestamp"].tolist(), [k * 1000000 for k in range(n)], "timestamps")
    equal(rows["flags"].tolist(), [DARK | COMPLETE] * DARKS + [COMPLETE] * FRAMES, "flags")
    reasons = [name.decode() for name in rows["reason_names"]]
    wanted = ["dark"] * DARKS + ["peaks" if keep else "bright_pixels" for keep in rows["keep"][DARKS:]]
    check([reasons[r] for r in rows["reason"]] == wanted, "reasons: the last stage that decided, for each frame")
    kept = np.flatnonzero(rows["keep"])
    equal(rows["image_index"][kept].tolist(), list(range(len(kept))), "where the images of kept frames are")
    check((np.delete(rows["image_index"], kept) == -1).all(), "a frame that was not kept has an image")
    for name in ("frame_number", "timestamp", "sequence"):
        equal(once.file["entry/data"][name][()].tolist(), rows[name][kept].tolist(), f"{name} beside the images")
    names = [name.decode() for name in rows["outcome_names"]]
    causes = [name.decode() for name in rows["cause_names"]]
    table = {(k, m): (names[rows["outcome"][k, m]], causes[rows["cause"][k, m]]) for k in range(n) for m in (0, 1)}
    equal(table, once.outcomes, "outcomes in the file, beside the outcome log")


@case("the file holds the ledger, guard, proof and the experiment")
def _(folder):
    once = Once.get(folder)
    group = once.file["entry/sluice"]
    ledger = group["ledger"]
    equal(ledger["closed"][()], 1, "closed")
    equal(ledger["source_died"][()], 0, "sources that died")
    equal(ledger["sent"][()].tolist(), [DARKS + FRAMES] * 2, "sent")
    names = [name.decode() for name in ledger["outcome_names"]]
    for m, module in enumerate(once.summary["ledger"]["modules"]):
        there = dict(zip(names, ledger["outcomes"][m].tolist()))
        equal({name: there[name] for name in module["outcomes"]}, module["outcomes"], f"ledger of module {m}")
    for name in ("link", "guard", "proof"):
        wanted = once.summary["link"]["kind" if name == "link" else name]
        equal(group[name][()].decode(), wanted, name)
    check(f"frames: {FRAMES}" in group["experiment"][()].decode(), "overrides are not in the stored experiment")


@case("data threads never allocate, lock or log: udp")
def _(folder):
    if not GUARDED:
        skip("this build has a sanitizer, and room for one such guard only")
    demo(folder, program=GUARDED)


@case("data threads never allocate, lock or log: shm")
def _(folder):
    if not GUARDED:
        skip("this build has a sanitizer, and room for one such guard only")
    demo(folder, program=GUARDED, **{"link.kind": "shm"})


@case("data threads never allocate, lock or log: faults, checksums, two workers")
def _(folder):
    if not GUARDED:
        skip("this build has a sanitizer, and room for one such guard only")
    program, summary = acquire(folder, program=GUARDED, link={"crc": True, "pmtu": 256}, unit={"workers": 2},
                               detector={"frames": 400}, frontend={"drop": 0.005, "duplicate": 0.01, "corrupt": 0.005})
    equal(program.process.returncode, 2, "exit status")
    closes(summary, 800)


main()
