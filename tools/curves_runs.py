"""curves_runs.py - what stages make of frames whose truth is known, for tools/curves.py: each function runs the program,
reads its files and the emulator's truth, and gives a table of numbers. Everything is drawn from seeds: the same
program gives the same numbers."""

import json
import os
import pathlib
import subprocess

import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ["SLUICE_SITE"] = ""  # a site file of this host must not change the results
SLUICE = os.environ.get("SLUICE", str(ROOT / "build/sluice"))
ROWS, COLUMNS, ASIC = 512, 1024, 256  # of a Jungfrau module; of its ASICs, both ways
BAD = -32768
NOISE_ADU, GAIN = 23.9, (41.0, -1.439, -0.1145)  # as the emulator has them
LIMIT_S = 240  # of one run; far above what it takes


def sluice(folder, *arguments):
    done = subprocess.run([SLUICE, *map(str, arguments)], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise SystemExit(f"curves: 'sluice {arguments[0]}' ended with {done.returncode}:\n{done.stderr}")


def acquire(folder, detector, stages, sinks, **sections):
    """One run; its truth is in truth.h5, its figures in summary.json. Over shared memory, as nothing depends on the link."""
    experiment = {"detector": detector, "link": {"kind": "shm"}, "stages": stages, "sinks": sinks, "emulate": "local",
                  **sections}
    (folder / "experiment.yaml").write_text(json.dumps(experiment, indent=1) + "\n")
    sluice(folder, "run", "experiment.yaml", "--quiet", "--truth", "truth.h5", "--summary", "summary.json")


def agree(folder, counted):
    """What a tool has counted of the last run is what the sink `score` has: both tell found from true by the same rules."""
    sinks = json.loads((folder / "summary.json").read_text())["sinks"]
    figures = next(sink["figures"] for sink in sinks if sink["name"] == "score")
    for name, value in counted.items():
        if figures[name] != value:
            raise SystemExit(f"curves: {name}: {value}, but the sink score has counted {figures[name]}")


def jungfrau(frames, **options):
    """No frame comes twice: the pool is as large as the run, and odd, as the number of slots is not."""
    most = max(frames, options.get("dark_frames", 0))
    return {"kind": "jungfrau", "modules": 1, "frames": frames, "pool": most | 1, **options}


# ---- veto ----

VETO = {"hit_fraction": 0.3, "spots": 8, "spot_photons": 12, "seed": 7}


def veto(folder, frames, thresholds, kept_at=20):
    """Of each threshold: the pixels over it of hits and of blanks, as the stage counted them."""
    table = {}
    for threshold in thresholds:
        acquire(folder, jungfrau(frames, dark_frames=min(64, frames), **VETO),
                ["correct", {"veto": {"threshold": threshold, "min_pixels": kept_at}}], [{"nexus": {"path": "run.nxs", "overwrite": True}}])
        with h5py.File(folder / "truth.h5") as truth, h5py.File(folder / "run.nxs") as file:
            bright, hit = truth["truth/dark"][()] == 0, truth["truth/hit"][()] == 1
            rows = file["entry/sluice/frames"]
            score, keep = rows["score"][()], rows["keep"][()] == 1
        # The verdict is the score against min_pixels: so one run tells what any min_pixels would have kept.
        if not np.array_equal(keep[bright], score[bright] >= kept_at):
            raise SystemExit("curves: verdicts of veto are not what their scores say")
        table[threshold] = score[bright & hit], score[bright & ~hit]
    return table


def efficiency(scores, min_pixels):
    """Share of the hits that are kept."""
    return float((scores[0] >= min_pixels).mean())


def purity(scores, min_pixels):
    """Share of hits in what is kept; None when nothing is."""
    hits, blanks = ((part >= min_pixels).sum() for part in scores)
    return float(hits / (hits + blanks)) if hits + blanks else None


# ---- peaks and spots ----

PEAKS = {"modules": 2, "hit_fraction": 0.5, "spots": 150, "seed": 11}
SPOT_PIXELS = 15  # pixels that a spot's noise comes from: 4 pi times its width squared, which is 1.1 pixels on average
NEAR, FAR, APART = 2, 4, 10  # pixels: found; not a spot at all; spots that are this far from others are looked at


def rows_of(results, name):
    counts = results[f"{name}_rows"][()].astype(int)
    return np.split(results[name][()], np.cumsum(counts)[:-1])


def distances(points, others):
    """[points][others]; both are module, row, column. Those of another module are far away."""
    d = np.hypot(*(points[:, None, 1:3] - others[None, :, 1:3]).transpose(2, 0, 1))
    d[points[:, None, 0] != others[None, :, 0]] = np.inf
    return d


def nearest(points, others):
    return distances(points, others).min(axis=1, initial=np.inf)


def planted(path):
    """[frame][spot]: module, row, column and photons, of bright frames."""
    with h5py.File(path) as file:
        truth = {name: file["truth"][name][()] for name in ("dark", "first_row", "count")}
        table = np.stack([file["truth/table"][name][()] for name in ("module", "module_row", "module_column", "photons")], 1)
    table[:, 1:3] += 0.5  # the truth names a pixel; its middle
    return [table[first:first + count] for first, count, dark in zip(truth["first_row"], truth["count"], truth["dark"])
            if not dark]


def background_of(images):
    """Photons of a pixel without spots, from blank frames: the mean of the 9 x 9 pixels around it that are neither bad nor
    wide, [modules][rows][columns]."""
    mean = np.where(images == BAD, np.nan, images.astype(np.float32)).mean(axis=0).reshape(-1, ROWS, COLUMNS)
    for axis in (0, 1):
        edge = np.arange(mean.shape[1 + axis]) % ASIC
        wide = (edge == 0) | (edge == ASIC - 1)
        mean[(slice(None), wide) if axis == 0 else (slice(None), slice(None), wide)] = np.nan
    good = np.isfinite(mean)
    sums = [box(np.where(good, part, 0)) for part in (mean, 1.0)]
    return sums[0] / np.maximum(sums[1], 1)


def box(planes, reach=4):
    """Sums over the boxes about every pixel."""
    for axis in (1, 2):
        pad = [(0, 0)] * 3
        pad[axis] = (reach + 1, reach)
        total = np.cumsum(np.pad(planes, pad), axis=axis)
        size = planes.shape[axis]
        planes = (np.take(total, np.arange(size) + 2 * reach + 1, axis) - np.take(total, np.arange(size), axis))
    return planes


def on_wide(rows):
    """Which of them lie within two pixels of the edge between two ASICs."""
    off = [np.abs(rows[:, axis] / ASIC - np.clip(np.rint(rows[:, axis] / ASIC), 1, size / ASIC - 1)) * ASIC
           for axis, size in ((1, ROWS), (2, COLUMNS))]
    return np.minimum(*off) <= 2


def look(spots, found, background):
    """Of the spots of a frame that are away from others: their SNR, and by stage whether they were found; and, by stage,
    how many were found that are none, on wide pixels and elsewhere."""
    alone = np.sort(distances(spots, spots), axis=1)[:, 1] > APART if len(spots) > 1 else np.ones(len(spots), bool)
    chosen = spots[alone]
    module, row, column = chosen[:, :3].astype(int).T
    snr = chosen[:, 3] / np.sqrt(chosen[:, 3] + SPOT_PIXELS * background[module, row, column])
    seen = {name: nearest(chosen, rows) <= NEAR for name, rows in found.items()}
    wide = {name: on_wide(rows[nearest(rows, spots) > FAR]) for name, rows in found.items()}
    return snr, seen, {name: np.array([flags.sum(), (~flags).sum()]) for name, flags in wide.items()}


def peaks(folder, frames, background, spot_photons, options):
    """SNR of every planted spot, by stage whether it was found, and the false ones of a frame: on wide pixels, elsewhere."""
    acquire(folder, jungfrau(frames, dark_frames=64, background_photons=background, spot_photons=spot_photons, **PEAKS),
            ["correct", {"spots": {"min_spots": 0, **options.get("spots", {})}},
             {"peaks": {"min_peaks": 0, **options.get("peaks", {})}}], [{"nexus": {"path": "run.nxs", "overwrite": True}}])
    known = planted(folder / "truth.h5")
    with h5py.File(folder / "run.nxs") as file:
        images, results = file["entry/data/data"], file["entry/results"]
        found = {name: rows_of(results, name) for name in ("peaks", "spots")}
        around = background_of(np.stack([images[i] for i in range(len(known)) if not len(known[i])]))
    snr, seen, invented = [], {name: [] for name in found}, {name: np.zeros(2) for name in found}
    for i, spots in enumerate(known):
        part = look(spots, {name: rows[i] for name, rows in found.items()}, around)
        snr.append(part[0])
        for name in found:
            seen[name].append(part[1][name])
            invented[name] += part[2][name]
    return {"snr": np.concatenate(snr), "seen": {name: np.concatenate(parts) for name, parts in seen.items()},
            "false": {name: (counts / len(known)).tolist() for name, counts in invented.items()}}


# ---- pedestals ----

def read_pedestal(folder, gain):
    """The pedestals with which `correct` made the first image: raw ADU less what it made of them, times the gain. NaN
    where a pixel was bad or not in G0."""
    with h5py.File(folder / "raw.nxs") as file:
        raw = file["entry/data/data"][0].astype(np.float64)
    with h5py.File(folder / "image.nxs") as file:
        image = file["entry/data/data"][0].astype(np.float64)
    return np.where((raw < 1 << 14) & np.isfinite(image), raw - image * gain, np.nan)


def rms(values):
    return float(np.sqrt(np.nanmean(np.square(values))))


IMAGES = [{"nexus": {"path": "raw.nxs", "dataset": "raw", "overwrite": True}}, {"nexus": {"path": "image.nxs", "overwrite": True}}]
CALIBRATION = {"calibration": {"path": "calibration.h5"}}


def correct_with(darks):
    return ["copy", {"correct": {"output": "kev_f32", "darks": darks}}]


def true_pedestal(folder, seed):
    """The emulator's own pedestals, with which `correct` begins and stays when there are no dark frames; the gains; and
    which pixels are good."""
    acquire(folder, jungfrau(1, dark_frames=2, seed=seed), correct_with(2), [CALIBRATION])
    with h5py.File(folder / "calibration.h5") as file:
        gain, good = file["gain"][0].reshape(ROWS, COLUMNS).astype(np.float64), file["mask"][0] == 0
    acquire(folder, jungfrau(1, dark_frames=0, seed=seed), correct_with(2), IMAGES)
    return read_pedestal(folder, gain), gain, good


def pedestals(folder, counts, windows, seed=5):
    """RMS errors in ADU by window and number of dark frames, and those of the noise as the sink `calibration` measures it
    by number of dark frames."""
    truth, gain, good = true_pedestal(folder, seed)
    errors, noise = {window: {} for window in windows}, {}
    for count in counts:
        for window in windows:
            last = window == windows[-1]
            acquire(folder, jungfrau(1, dark_frames=count, seed=seed), correct_with(window), IMAGES + [CALIBRATION] * last)
            errors[window][count] = rms(np.where(good, read_pedestal(folder, gain) - truth, np.nan))
        if count > 1:
            with h5py.File(folder / "calibration.h5") as file:
                measured = file["rms"][0, 0].reshape(ROWS, COLUMNS)
            noise[count] = rms(np.where(good, measured - NOISE_ADU, np.nan))
    return {"errors": errors, "noise": noise}


# ---- pedestals that drift ----

SMALL = (64, 256)  # rows, columns of what is recorded


def record_drift(folder, frames, drift):
    """Dark frames as a Jungfrau has them, but for pedestals that rise from frame to frame; the last frame shows them as
    they are then. Gives that pedestal."""
    random = np.random.default_rng(3)
    start = random.normal(2446, 250, SMALL)
    with h5py.File(folder / "drift.h5", "w") as file:
        data = file.create_dataset("entry/data/data", (frames + 1, *SMALL), np.uint16, chunks=(1, *SMALL))
        for k in range(frames + 1):
            data[k] = np.rint(start + drift * k + random.normal(0, NOISE_ADU, SMALL))
    return start + drift * frames


def write_gains(path):
    """A calibration file of the emulator's mean gains, with pedestals that are of no use."""
    shape = (1, *SMALL)
    with h5py.File(path, "w") as file:
        for name, value in {"format": "sluice-calibration", "version": 1, "detector": "jungfrau", "modules": 1,
                            "rows": SMALL[0], "columns": SMALL[1], "cells": 1}.items():
            file.attrs[name] = value
        file["gain"] = np.stack([np.full(shape, gain, np.float32) for gain in GAIN])
        file["gain"].attrs["units"] = "ADU/keV"
        file["pedestal"] = np.stack([np.full(shape, value, np.float32) for value in (0, 13584, 14100)])[None]
        file["pedestal"].attrs["units"] = "ADU"


def drifts(folder, frames, rates, windows):
    """RMS errors in ADU by drift (ADU per dark frame) and window, after that many dark frames."""
    write_gains(folder / "gains.h5")
    errors = {rate: {} for rate in rates}
    for rate in rates:
        truth = record_drift(folder, frames, rate)
        for window in windows:
            detector = {"kind": "replay", "file": "drift.h5", "modules": 1, "dark_frames": frames, "frames": 1,
                        "origin": "jungfrau", "photon_energy_keV": 12.4}
            acquire(folder, detector, correct_with(window), IMAGES, calibration={"file": "gains.h5"})
            errors[rate][window] = rms(read_pedestal(folder, GAIN[0]) - truth)
    return errors
