#!/usr/bin/python3
"""peer_numpy.py FOLDER FRAMES - correction and veto as one would write them in an evening, with numpy, on one core.

FOLDER is what `bench_stages EXPERIMENT dump FOLDER` wrote: the same pixels and tables. Prints one line of JSON; the
scores must be those of bench_stages, or the two did not do the same work.
"""

import json
import pathlib
import sys
import time

import numpy as np

OVERLOAD, BAD, THRESHOLD = 0xc000, (0xffff, 0x4000), 10
ALMOST_HALF = np.nextafter(np.float32(0.5), np.float32(0))  # with 0.5 itself the number below a half would be rounded up


def load(folder):
    about = json.loads((folder / "about.json").read_text())
    shape = about["pool"], about["pixels"]
    bright = np.fromfile(folder / "bright.u16", np.uint16).reshape(shape)
    dark = np.fromfile(folder / "dark.u16", np.uint16).reshape(shape)
    tables = np.fromfile(folder / "calibration.f32", np.float32).reshape(2, 3, about["pixels"])
    return about, bright, dark, tables


def measured_pedestal(dark, frames):
    """Mean of the pixel's dark samples that are in the highest gain; NaN where there is none."""
    total, samples = (np.zeros(dark.shape[1], np.float32) for _ in range(2))
    for i in range(frames):
        raw = dark[i % len(dark)]
        good = raw >> 14 == 0
        total += np.where(good, raw & 0x3fff, 0)
        samples += good
    with np.errstate(invalid="ignore"):
        return total / samples


class Correction:
    """Tables by gain code, so that the two upper bits of a pixel choose the row: 0, 1 and 3; 2 does not exist."""

    def __init__(self, pedestal, gain, energy_keV, mask=None):
        nothing = np.full(pedestal[0].size, np.nan, np.float32)
        with np.errstate(divide="ignore"):
            factor = (1 / (gain.astype(np.float64) * energy_keV)).astype(np.float32)
        factor[gain == 0] = np.nan
        if mask is not None:
            factor[:, mask != 0] = np.nan
        self.pedestal = np.concatenate([pedestal[0], pedestal[1], nothing, pedestal[2]])
        self.factor = np.concatenate([factor[0], factor[1], nothing, factor[2]])
        self.pixel = np.arange(nothing.size)

    def photons(self, raw):
        index = (raw >> 14).astype(np.intp) * raw.size + self.pixel
        photons = ((raw & 0x3fff) - self.pedestal[index]) * self.factor[index]
        bad = np.isnan(photons) | (raw == BAD[0]) | (raw == BAD[1])
        photons += np.copysign(ALMOST_HALF, photons)  # halves away from zero, as the stage has it
        np.trunc(photons, out=photons)
        np.clip(photons, -32767, 32766, out=photons)
        photons[bad] = -32768
        photons[raw == OVERLOAD] = 32767
        return photons.astype(np.int16)


def main():
    folder, frames = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    about, bright, dark, tables = load(folder)
    (_, *others), gain = tables
    correction = Correction([measured_pedestal(dark, about["dark_frames"]), *others], gain, about["photon_energy_keV"])
    score = [0] * len(bright)
    start = time.perf_counter()
    for i in range(frames):
        image = correction.photons(bright[i % len(bright)])
        score[i % len(bright)] = int(np.count_nonzero(image >= THRESHOLD))
    seconds = time.perf_counter() - start
    print(json.dumps({"GB_per_s": frames * bright[0].nbytes / seconds * 1e-9, "frames_per_s": frames / seconds,
                      "seconds": seconds, "scores": score}))


if __name__ == "__main__":
    main()
