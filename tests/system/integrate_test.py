#!/usr/bin/python3
"""integrate_test.py - profiles in the file are those that numpy makes of the images in it."""
# with sanitizers in check-long

import json

import h5py
import numpy as np

import results
from harness import case, check, equal, experiment, fewer, intact, main, read_summary, run, run_fails

BINS = 50


def profiles(images, row, column, radius, invalid):
    """Mean and error of what is at the same distance from the beam, in pixels."""
    rows, columns = np.indices(images.shape[1:])
    bins = (np.hypot(rows + 0.5 - row, columns + 0.5 - column) / radius * BINS).astype(int)
    for image in images.astype(float):
        use = (bins < BINS) & (image != invalid)
        total = np.bincount(bins[use], image[use], BINS)
        norm = np.bincount(bins[use], minlength=BINS)
        with np.errstate(invalid="ignore", divide="ignore"):
            yield total / norm, np.sqrt(total) / norm


@case("a camera's images: intensity and error of every bin of every frame")
def _(folder):
    frames = fewer(60, 20)
    path = experiment(folder, stages=[{"integrate": {"bins": BINS, "unit": "r_pixels", "high": 90, "solid_angle": False}}])
    sections = json.loads(path.read_text())
    sections["detector"] = {"kind": "camera", "height": 120, "width": 200, "frames": frames}
    path.write_text(json.dumps(sections))
    program = run("run", path, "--summary", folder / "summary.json", folder=folder)
    summary = read_summary(folder)
    intact(program, summary, frames, 1)
    with h5py.File(folder / "run.nxs") as file:
        images, found = file["entry/data/data"][()], results.profiles(file)["profile"]
        equal(file["entry/profile/intensity"].dtype, np.float32, "type of the profiles")
    equal(found.shape, (frames, 3, BINS), "shape of the profiles")
    invalid = np.iinfo(images.dtype).max
    for profile, (intensity, sigma) in zip(found, profiles(images, 60, 100, 90, invalid)):
        check(np.allclose(profile[0], (np.arange(BINS) + 0.5) * 90 / BINS), "middles of the bins")
        check(np.allclose(profile[1], intensity, rtol=1e-6, equal_nan=True), "intensities")
        check(np.allclose(profile[2], sigma, rtol=1e-6, equal_nan=True), "errors")


@case("a cake's images: every cell of every frame, its axes, and its norm by a flat")
def _(folder):
    frames, sectors = fewer(20, 8), 6
    flat = np.random.default_rng(1).uniform(0.5, 2, (120, 200)).astype(np.float32)
    flat[40:50, 60:90] = 0  # bad pixels
    flat.tofile(folder / "flat.raw")
    options = {"bins": BINS, "azimuth_bins": sectors, "unit": "r_pixels", "high": 90, "solid_angle": False,
               "flat": str(folder / "flat.raw")}
    path = experiment(folder, stages=[{"integrate": options}])
    sections = json.loads(path.read_text())
    sections["detector"] = {"kind": "camera", "height": 120, "width": 200, "frames": frames}
    path.write_text(json.dumps(sections))
    program = run("run", path, "--summary", folder / "summary.json", folder=folder)
    intact(program, read_summary(folder), frames, 1)
    with h5py.File(folder / "run.nxs") as file:
        images, found = file["entry/data/data"][()], results.profiles(file)
    equal({name: r.shape[1:] for name, r in found.items()},
          {"cake": (sectors, BINS), "cake_sigma": (sectors, BINS), "cake_radius": (BINS,), "cake_azimuth": (sectors,)},
          "results and their shapes")
    check(np.allclose(found["cake_azimuth"], np.arange(sectors) * 60 - 150), "middles of the sectors")
    rows, columns = np.indices(images.shape[1:])
    rows, columns = rows + 0.5 - 60, columns + 0.5 - 100
    bins = (np.hypot(rows, columns) / 90 * BINS).astype(int)
    cells = ((np.degrees(np.arctan2(rows, columns)) + 180) / 60).astype(int) * BINS + bins
    for k, image in enumerate(images.astype(float)):
        use = (bins < BINS) & (image != np.iinfo(images.dtype).max) & (flat > 0)
        total = np.bincount(cells[use], image[use], sectors * BINS)
        norm = np.bincount(cells[use], flat[use], sectors * BINS)
        with np.errstate(invalid="ignore", divide="ignore"):
            check(np.allclose(found["cake"][k].ravel(), total / norm, rtol=1e-6, equal_nan=True), "intensities")
            check(np.allclose(found["cake_sigma"][k].ravel(), np.sqrt(total) / norm, rtol=1e-6, equal_nan=True),
                  "errors")


@case("a flat of another shape is refused, and it says what would fit")
def _(folder):
    np.zeros(5, np.float32).tofile(folder / "flat.raw")
    path = experiment(folder, detector={"kind": "pattern", "frames": 3},
                      stages=["copy", {"integrate": {"unit": "r_pixels", "solid_angle": False,
                                                     "flat": str(folder / "flat.raw")}}])
    run_fails("run", path, folder=folder, says=("flat.raw", "2 modules of 64 x 64 pixels are 32768 as float32"))


@case("a flat that a sink would overwrite is spared")
def _(folder):
    np.ones(2 * 64 * 64, np.float32).tofile(folder / "run.nxs")
    path = experiment(folder, detector={"kind": "pattern", "frames": 3},
                      stages=["copy", {"integrate": {"unit": "r_pixels", "solid_angle": False,
                                                     "flat": str(folder / "run.nxs")}}])
    run_fails("run", path, folder=folder, says=("run.nxs", "is read, and would be overwritten"))
    equal((folder / "run.nxs").stat().st_size, 4 * 2 * 64 * 64, "size of the flat")


@case("without a distance there is no q, and it says what to do")
def _(folder):
    path = experiment(folder, detector={"kind": "pattern", "frames": 3}, stages=["integrate"])
    run_fails("run", path, folder=folder, says=("integrate", "r_pixels"))


@case("raw pixels that need a calibration are no image: integrate without correct is refused")
def _(folder):
    path = experiment(folder, stages=["integrate"], sinks=["null"])
    sections = json.loads(path.read_text())
    sections["detector"] = {"kind": "jungfrau", "frames": 3, "pool": 3}
    path.write_text(json.dumps(sections))
    run_fails("run", path, folder=folder, says=("integrate", "'image'", "no stage before it makes"))


main()
