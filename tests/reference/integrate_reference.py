#!/usr/bin/python3
"""integrate_reference.py - profiles and cakes are pyFAI's: intensity and sigma to 1e-5, in every bin.

Images go through the program; pyFAI integrates those that are in its file, by the same geometry. Where the two cannot
agree to that, the cases keep away from it:

- pyFAI has the places of pixels as float32, so a pixel whose middle lies on the edge of two bins may count in either.
  Without split such pixels are given out as bad ones.
- Bins of pyFAI end at the next float32 above what is asked for: it is asked for a little less.
- pyFAI adds what is up to a bin below a given range, and what split pixels have beyond its ends, to the first and last
  bin; we leave it out. So these two are not compared where a range cuts the image.
- Shares of pixels follow from float32 places as well: bins of split pixels that hold fewer than five pixels in all are
  little but their rounding. They are those in the corners. For the same reason no image has bright spots or
  noisy pixels: of one that is a hundred times its ring, rounding a share is seen.

Cakes without split are those of pyFAI's histogram: its CSR matrix for them (0.21.3, calc_lut_2d) is made with half
widths of pixels that nobody has set, and is empty at times.
"""

import logging

import numpy as np
from reference import case, check, each_fails, emulate, main, near, note, process, write

logging.disable(logging.WARNING)  # pyFAI's about methods, and about pixels in the middle
from pyFAI.azimuthalIntegrator import AzimuthalIntegrator  # noqa: E402

BOUND = 1e-5
EPS32 = 1 + np.finfo(np.float32).eps
HC = 12.398419843320026e-10  # keV m
ENERGY_KEV, PIXEL_M, DISTANCE_M = 12.4, 75e-6, 0.05
UNITS = {"q_nm": "q_nm^-1", "tth_deg": "2th_deg", "r_mm": "r_mm"}
NONE, BBOX, HISTOGRAM = ("no", "csr", "cython"), ("bbox", "csr", "cython"), ("no", "histogram", "cython")


def integrator(row, column, distance=DISTANCE_M, pixel=PIXEL_M, energy=ENERGY_KEV):
    return AzimuthalIntegrator(dist=distance, poni1=row * pixel, poni2=column * pixel, pixel1=pixel, pixel2=pixel,
                               wavelength=HC / energy)


def poisson_images(rng, n, shape, row, column, dtype=np.uint16, mean=20):
    """Rings on a background, as a detector would count them."""
    rows, columns = np.indices(shape)
    r = np.hypot(rows + 0.5 - row, columns + 0.5 - column)
    expected = mean * (1 + np.exp(-r / 300) + 3 * np.exp(-((r % 60 - 30) / 4) ** 2))
    images = rng.poisson(expected, (n, *shape))
    return np.minimum(images, np.iinfo(dtype).max - 1).astype(dtype)


def near_edges(ai, shape, unit, low, high, bins, sectors=0):
    """Pixels whose middle is so near to the edge of a bin that float32 cannot tell."""
    place = (ai.center_array(shape, unit=UNITS[unit]).astype(np.float64) - low) / (high - low) * bins
    near_one = np.abs(place - np.rint(place)) < 3e-7 * bins + 1e-5
    if sectors:
        turn = (ai.chiArray(shape).astype(np.float64) + np.pi) / (2 * np.pi) * sectors
        near_one |= np.abs(turn - np.rint(turn)) < 3e-7 * sectors + 1e-5
    return near_one


class Setup:
    """One experiment: what the program and pyFAI are both told."""

    def __init__(self, folder, unit="q_nm", bins=200, low=0.0, high=None, split=False, sectors=0, shape=(301, 407),
                 dtype=np.uint16, frames=9, polarisation=0.0, solid_angle=True, dark=None, flat=None,
                 variance="at_least_one", seed=1, mean=20, photon=None):
        self.folder, self.unit, self.bins, self.low, self.split, self.sectors = folder, unit, bins, low, split, sectors
        self.polarisation, self.solid_angle, self.variance = polarisation, solid_angle, variance
        rng = np.random.default_rng(seed)
        self.row, self.column = shape[0] / 2, shape[1] / 2  # where replay has its beam
        self.ai = integrator(self.row, self.column)
        far = self.ai.center_array(shape, unit=UNITS[unit]).max()
        self.cut = high is not None or low > 0
        self.high = 1.02 * far if high is None else high * far
        self.low = low * far
        self.images = poisson_images(rng, frames, shape, self.row, self.column, dtype, mean)
        if dtype == np.int16:  # with noise, as `correct` leaves it
            self.images += rng.normal(0, 3, self.images.shape).astype(np.int16)
        self.bad, self.photon = np.iinfo(dtype).max, photon or 1
        self.images[:, rng.random(shape) < 0.01] = self.bad
        self.images[rng.random(self.images.shape) < 0.001] = self.bad
        if not split:
            self.images[:, near_edges(self.ai, shape, unit, self.low, self.high, bins, sectors)] = self.bad
        if photon:  # keV
            self.images = np.where(self.images == self.bad, np.inf, self.images * photon).astype(np.float32)
            self.bad = np.inf
        self.dark = None if dark is None else dark(rng, shape)
        self.flat = None if flat is None else flat(rng, shape)

    def options(self):
        options = {"bins": self.bins, "unit": self.unit, "low": self.low, "high": self.high,
                   "split": "bbox" if self.split else "none", "azimuth_bins": self.sectors,
                   "polarisation": self.polarisation, "solid_angle": self.solid_angle, "variance": self.variance}
        for name, field in (("dark", self.dark), ("flat", self.flat)):
            if field is not None:
                options[name] = write(self.folder, f"{name}.h5", field)
        return options

    def run(self):
        return process(self.folder, self.images, [{"integrate": self.options()}], distance_m=DISTANCE_M,
                       pixel_size_m=PIXEL_M, photon_energy_keV=ENERGY_KEV)

    def pyfai(self, image, method=None):
        """What pyFAI makes of it; its own Poisson model where it has one."""
        raw = np.where(image == self.bad, 0, image).astype(np.float64)
        variance = None
        if self.variance == "counts" or self.sectors or self.photon != 1:
            variance = np.maximum(raw, self.photon) if self.variance == "at_least_one" else raw
            variance = variance * self.photon
        # What is bad is said by a mask, not by a value: a dark or flat of that value would be bad, too.
        mask = (image == self.bad) | (self.ai.center_array(image.shape, unit=UNITS[self.unit]) < 0)
        if self.flat is not None:
            mask |= ~(np.isfinite(self.flat) & (self.flat > 0))
        same = {"unit": UNITS[self.unit], "correctSolidAngle": self.solid_angle, "mask": mask.astype(np.int8),
                "polarization_factor": self.polarisation or None, "dark": self.dark, "flat": self.flat,
                "radial_range": (self.low, self.high / EPS32), "variance": variance,
                "method": method or (BBOX if self.split else HISTOGRAM if self.sectors else NONE)}
        if self.sectors:
            return self.ai.integrate2d_ng(raw, self.bins, self.sectors, azimuth_range=(-180, 180 / EPS32), **same)
        return self.ai.integrate1d_ng(raw, self.bins, error_model=None if variance is not None else "poisson", **same)

    def wanted(self, image, method=None):
        """Middles of bins, intensity, sigma, and which cells can be compared."""
        result = self.pyfai(image, method)
        # The sigma of a histogram's cake lies the other way.
        intensity, sigma, count = (np.asarray(v, np.float64) if np.shape(v) == np.shape(result.intensity) else
                                   np.asarray(v, np.float64).T for v in (result.intensity, result.sigma, result.count))
        compare, empty = count > (5 if self.split else 0), count == 0
        if self.cut:
            compare[..., [0, -1]] = False
        values = [np.where(empty, np.nan, v) for v in (intensity, sigma)]
        return np.asarray(result.radial), *values, compare, empty

    def compare(self, middles, intensity, sigma, image, method=None):
        radial, want_intensity, want_sigma, compare, empty = self.wanted(image, method)
        near(middles, radial, BOUND, "middles of bins", absolute=1e-6)
        check(np.isnan(intensity[empty]).all() and np.isnan(sigma[empty]).all(), "a bin without a pixel has a number")
        check(compare.sum() > (0.4 if self.sectors else 0.9) * compare.size, f"only {compare.sum()} bins to compare")
        return (near(intensity[compare], want_intensity[compare], BOUND, "intensity"),
                near(sigma[compare], want_sigma[compare], BOUND, "sigma"))


def check_profiles(setup, what, method=None):
    """Every profile of a run; the worst errors."""
    file = setup.run()
    found = file.result("profile")
    check(len(found) == len(setup.images), "a frame has no profile")
    errors = [setup.compare(*profile, image, method) for profile, image in zip(found, setup.images)]
    worst = np.max(errors, axis=0) * BOUND
    note(f"{what}: intensity within {worst[0]:.1e}, sigma within {worst[1]:.1e}")
    return found


@case("no split: every unit, pyFAI's histogram and CSR")
def _(folder):
    for unit in UNITS:
        for method in (NONE, HISTOGRAM):
            check_profiles(Setup(folder, unit=unit, polarisation=0.95), f"{unit} {method[1]}", method)


@case("no split: a sigma from the counts alone, few counts, 8, 16 and 32 bits, a range")
def _(folder):
    for dtype in (np.uint8, np.uint16, np.uint32):
        for variance in ("counts", "at_least_one"):
            check_profiles(Setup(folder, dtype=dtype, mean=0.7, variance=variance, low=0.2, high=0.7),
                           f"{np.dtype(dtype)} {variance}")


@case("a comparison notices a bin's error of 3e-5, and a bin that is empty or is not")
def _(folder):
    setup = Setup(folder, frames=1)
    middles, intensity, sigma = check_profiles(setup, "unchanged")[0].astype(np.float64)
    changes = {}
    for name, k, factor in (("intensity", 0, 1 + 3e-5), ("sigma", 1, 1 - 3e-5), ("nan", 0, np.nan)):
        changed = [intensity.copy(), sigma.copy()]
        changed[k][120] *= factor
        changes[name] = changed
    each_fails(lambda result: setup.compare(middles, *result, setup.images[0]), changes)


@case("bounding boxes: every unit, polarisation, a range, 32 bits, few and many bins")
def _(folder):
    check_profiles(Setup(folder, split=True), "bbox q")
    check_profiles(Setup(folder, split=True, unit="tth_deg", polarisation=0.99), "bbox 2 theta")
    check_profiles(Setup(folder, split=True, unit="r_mm", solid_angle=False), "bbox r")
    check_profiles(Setup(folder, split=True, low=0.15, high=0.8, variance="counts"), "bbox, a range")
    check_profiles(Setup(folder, split=True, dtype=np.uint32, bins=20), "bbox, 32 bits, 20 bins")
    check_profiles(Setup(folder, split=True, bins=600), "bbox, 600 bins")


@case("int16 photons with noise, and keV: both splits, a profile and a cake")
def _(folder):
    for split in (False, True):
        check_profiles(Setup(folder, split=split, dtype=np.int16, mean=3), f"int16, split {split}")
        for variance in ("counts", "at_least_one"):
            check_profiles(Setup(folder, split=split, photon=ENERGY_KEV, variance=variance, mean=3),
                           f"keV, split {split}, {variance}")
        check_cakes(Setup(folder, split=split, photon=ENERGY_KEV, sectors=20, bins=50, frames=2), f"keV, split {split}")


def dark(rng, shape):
    return rng.uniform(0, 5, shape).astype(np.float32)


def flat(rng, shape):
    field = rng.uniform(0.7, 1.4, shape).astype(np.float32)
    field[rng.random(shape) < 0.01] = 0
    field[rng.random(shape) < 0.005] = np.nan
    return field


@case("dark and flat, with both splits")
def _(folder):
    for split in (False, True):
        check_profiles(Setup(folder, split=split, dark=dark, mean=100), f"dark, split {split}")
        check_profiles(Setup(folder, split=split, flat=flat), f"flat, split {split}")
        check_profiles(Setup(folder, split=split, dark=dark, flat=flat, polarisation=0.9, mean=100, variance="counts"),
                       f"dark and flat, split {split}")


def check_cakes(setup, what):
    file = setup.run()
    cakes, sigmas = file.result("cake"), file.result("cake_sigma")
    errors = []
    for k, image in enumerate(setup.images):
        near(file.result("cake_azimuth")[k], setup.pyfai(image).azimuthal, BOUND, "azimuth", absolute=1e-4)
        errors.append(setup.compare(file.result("cake_radius")[k], cakes[k], sigmas[k], image))
    worst = np.max(errors, axis=0) * BOUND
    note(f"{what}: intensity within {worst[0]:.1e}, sigma within {worst[1]:.1e}")


@case("cakes without split, with polarisation, dark and flat")
def _(folder):
    check_cakes(Setup(folder, sectors=36, bins=60, polarisation=0.95, frames=3), "cake")
    check_cakes(Setup(folder, sectors=36, bins=60, frames=3, dark=dark, flat=flat, mean=100), "cake, dark and flat")


@case("cakes of bounding boxes")
def _(folder):
    check_cakes(Setup(folder, sectors=24, bins=60, split=True, frames=3, polarisation=0.95), "cake of boxes")
    check_cakes(Setup(folder, sectors=36, bins=80, split=True, frames=3, dark=dark, flat=flat, low=0.1, mean=100),
                "cake of boxes, dark and flat")


@case("a beam off the image: an Eiger module, its wide pixels masked by the flat")
def _(folder):
    bins, low, high, distance = 300, 10.0, 40.0, 0.1
    beam_x, beam_y = -700.3, 90.8
    ai = integrator(514 / 2 + beam_y, 1030 / 2 + beam_x, distance)
    # Four ASICs side by side and two above each other, two image pixels between them, which wide pixels cover.
    rows, columns = np.arange(512) + 2 * (np.arange(512) // 256), np.arange(1024) + 2 * (np.arange(1024) // 256)
    field = np.ones((512, 1024), np.float32)
    field[[255, 256]] = 0
    field[:, [255, 256, 511, 512, 767, 768]] = 0
    field[near_edges(ai, (514, 1030), "q_nm", low, high, bins)[np.ix_(rows, columns)]] = 0
    inside = slice(1, -1)  # see above: a range
    for split in (False, True):
        options = {"bins": bins, "unit": "q_nm", "low": low, "high": high, "split": "bbox" if split else "none",
                   "flat": write(folder, "wide.h5", field), "variance": "at_least_one", "polarisation": 0.99}
        file = emulate(folder, {"kind": "eiger", "frames": 4, "pool": 5, "hit_fraction": 0, "bad_pixels": 0,
                                "beam_x": beam_x, "beam_y": beam_y, "distance_m": distance,
                                "photon_energy_keV": ENERGY_KEV},
                       ["copy", {"integrate": options}], "raw")
        for image, (_, intensity, sigma) in zip(file.images, file.result("profile").astype(np.float64)):
            whole, bad = np.zeros((514, 1030)), np.ones((514, 1030), np.int8)
            whole[np.ix_(rows, columns)] = image
            bad[np.ix_(rows, columns)] = (image == 65535) | (field == 0)
            result = ai.integrate1d_ng(whole, bins, unit="q_nm^-1", mask=bad, error_model="poisson",
                                       radial_range=(low, high / EPS32), polarization_factor=0.99,
                                       method=BBOX if split else NONE)
            check((result.count[inside] > 1).all(), "a bin without pixels")
            near(intensity[inside], result.intensity[inside], BOUND, "intensity")
            near(sigma[inside], result.sigma[inside], BOUND, "sigma")


main()
