#!/usr/bin/python3
"""integrate_test.py - profiles in the file are those that numpy makes of the images in it."""

import json

import h5py
import numpy as np

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
        images, found = file["entry/data/data"][()], file["entry/results/profile"][()]
        equal(file["entry/results/profile"].dtype, np.float32, "type of the profiles")
    equal(found.shape, (frames, 3, BINS), "shape of the profiles")
    invalid = np.iinfo(images.dtype).max
    for profile, (intensity, sigma) in zip(found, profiles(images, 60, 100, 90, invalid)):
        check(np.allclose(profile[0], (np.arange(BINS) + 0.5) * 90 / BINS), "middles of the bins")
        check(np.allclose(profile[1], intensity, rtol=1e-6, equal_nan=True), "intensities")
        check(np.allclose(profile[2], sigma, rtol=1e-6, equal_nan=True), "errors")


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
