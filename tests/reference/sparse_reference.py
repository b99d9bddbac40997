#!/usr/bin/python3
"""sparse_reference.py - backgrounds and picked pixels are those of pyFAI's sparsify; fabio makes the images of our files.

Backgrounds within 1e-4, the same pixels but for ties: a pixel that one of the two picks and the other does not must be as
near to the threshold as backgrounds may differ. pyFAI has the places of pixels as float32, so that one whose middle lies
on the edge of two bins may count in either: such pixels are given out as bad ones. fabio's compiled densify leaves out
pixels that are nearer to the beam than the middle of the first bin, where its own Python has the background of that bin:
these are not compared.
"""

import logging
import time

import h5py
import numpy as np
from reference import case, check, each_fails, equal, main, near, note, process, run, skip

logging.disable(logging.WARNING)
import fabio  # noqa: E402
from pyFAI.azimuthalIntegrator import AzimuthalIntegrator  # noqa: E402
from pyFAI.io.sparse_frame import save_sparse  # noqa: E402
from pyFAI.opencl import ocl  # noqa: E402

BOUND = 1e-4
BINS, PIXEL_M, DISTANCE_M = 300, 75e-6, 0.1
SHAPE = (613, 701)


def images_of(rng, n, dtype, bad, radius):
    """A falling background with a ring on it, spots of all heights, and pixels that are no measurement."""
    expected = 2 + 40 * np.exp(-radius / 6e-3) + 8 * np.exp(-((radius - 1.2e-2) / 2e-3) ** 2)
    images = rng.poisson(expected, (n, *SHAPE)).astype(np.float64)
    for image in images:
        for row, column in zip(rng.integers(3, SHAPE[0] - 3, 150), rng.integers(3, SHAPE[1] - 3, 150)):
            image[row - 1:row + 2, column - 1:column + 2] += rng.poisson(rng.exponential(60) + 5, (3, 3))
    images = images.astype(dtype)
    images[rng.random(images.shape) < 0.002] = bad
    return images


class Setup:
    """What the program and pyFAI are both told."""

    def __init__(self, folder, dtype=np.uint16, frames=4, seed=1, bins=BINS, **options):
        self.folder, self.options, self.bins = folder, options, bins
        rng = np.random.default_rng(seed)
        self.ai = AzimuthalIntegrator(dist=DISTANCE_M, poni1=SHAPE[0] / 2 * PIXEL_M, poni2=SHAPE[1] / 2 * PIXEL_M,
                                      pixel1=PIXEL_M, pixel2=PIXEL_M)
        self.radius = self.ai.center_array(SHAPE, unit="r_m")
        self.high = float(np.float32(1.02 * self.radius.max()))
        self.bad = np.iinfo(dtype).max if dtype != np.float32 else np.nan
        self.images = images_of(rng, frames, dtype, self.bad, self.radius)
        place = self.radius.astype(np.float64) / self.high * bins
        self.images[:, np.abs(place - np.rint(place)) < 3e-7 * bins + 1e-5] = self.bad

    def ours(self):
        """(index, value) of every frame, and backgrounds; the file has no images."""
        self.path = self.folder / "lists.nxs"
        stage = {"sparse": {"method": "radial", "unit": "r_mm", "bins": self.bins, "high": self.high * 1e3, **self.options}}
        images = self.folder / f"{len(list(self.folder.glob('*.yaml')))}.nxs"  # where process() looks for them
        sinks = [{"nexus": {"path": str(images), "dataset": "raw", "overwrite": True}},
                 {"nexus": {"path": str(self.path), "image": "none", "overwrite": True}}]
        process(self.folder, self.images, [stage], sections={"sinks": sinks}, distance_m=DISTANCE_M, pixel_size_m=PIXEL_M)
        with h5py.File(self.path) as file:
            group = file["entry/sparse_frames"]
            pointer = group["frame_ptr"][()]
            lists = [(group["index"][a:b], group["intensity"][a:b]) for a, b in zip(pointer[:-1], pointer[1:])]
            return lists, group["background_avg"][()], group["background_std"][()]

    def finder(self):
        from pyFAI.opencl.peak_finder import OCL_PeakFinder

        csr = self.ai.setup_CSR(SHAPE, self.bins, pos0_range=(0, self.high / (1 + np.finfo(np.float32).eps)), unit="r_m",
                                split="no", scale=False)
        return OCL_PeakFinder(csr.lut, image_size=self.radius.size, bin_centers=csr.bin_centers, radius=self.radius,
                              unit="r_m", ctx=ocl.create_context("all"))

    def pyfai(self):
        """Its frames, by what its own command line would say."""
        finder = self.finder()
        arguments = {"dummy": None if np.isnan(self.bad) else float(self.bad), "safe": False, "error_model": "poisson",
                     "cutoff_clip": self.options.get("cutoff_clip", 0), "cycle": self.options.get("cycle", 5),
                     "noise": self.options.get("noise", 1), "cutoff_pick": self.options.get("cutoff_pick", 3)}
        if self.options.get("solid_angle"):
            arguments["solidangle"] = self.ai.solidAngleArray(SHAPE)
        if self.options.get("polarisation"):
            arguments["polarization"] = self.ai.polarization(SHAPE, factor=self.options["polarisation"])
        began = time.perf_counter()
        frames = [finder.sparsify(image, **arguments) for image in self.images]
        self.norm = arguments.get("solidangle", 1) * arguments.get("polarization", np.ones(SHAPE))
        self.seconds = (time.perf_counter() - began) / len(frames)
        return frames

    def above(self, frame, k):
        """How far each pixel is above its threshold, by pyFAI's background in double precision: 0 is a tie."""
        average, sigma = (np.interp(self.radius, frame.radius, array.astype(np.float64))
                          for array in (frame.background_avg, frame.background_std))
        noise = self.options.get("noise", 1)
        margin = np.maximum(noise, self.options.get("cutoff_pick", 3) * np.hypot(sigma, noise))
        return ((self.images[k] / self.norm - average - margin) / (average + margin)).ravel()


def compare(setup, lists, average, sigma, frames):
    ties, picked = 0, 0
    near(average, np.stack([f.background_avg for f in frames]), BOUND, "background", absolute=1e-6)
    near(sigma, np.stack([f.background_std for f in frames]), BOUND, "deviation", absolute=1e-6)
    for k, ((index, value), frame) in enumerate(zip(lists, frames)):
        check((np.diff(index.astype(np.int64)) > 0).all(), f"frame {k}: the list is not in order")
        check((value == setup.images[k].ravel()[index]).all(), f"frame {k}: pixels are not as they were")
        either = np.setxor1d(index, frame.index)
        far = np.abs(setup.above(frame, k)[either]) > BOUND
        check(not far.any(), f"frame {k}: {far.sum()} pixels differ that are no ties, first {either[far][:5]}")
        ties += len(either)
        picked += len(index)
    check(picked > 100 * len(frames), f"only {picked} pixels were picked")
    return picked, ties


def compare_images(opened, path, inner):
    """fabio's images and those of densify; a rounding apart where floats may round either way."""
    with h5py.File(path) as file:
        equal(len(file["entry/data/data"]), opened.nframes, "frames")
        for k in range(opened.nframes):
            image, dense = opened.get_frame(k).data, file["entry/data/data"][k]
            equal(image.dtype, dense.dtype, "type")
            off = np.where(inner, 0, np.abs(image.astype(int) - dense))
            check(off.max() <= 1 and (off > 0).mean() < 1e-3, f"frame {k}: {(off > 0).sum()} pixels are not fabio's")


def compare_all(folder, **options):
    if ocl is None:
        skip("no OpenCL for pyFAI")
    setup = Setup(folder, **options)
    lists, average, sigma = setup.ours()
    frames = setup.pyfai()
    picked, ties = compare(setup, lists, average, sigma, frames)
    note(f"{picked} pixels of {len(frames)} frames, {ties} ties; pyFAI took {setup.seconds * 1e3:.0f} ms a frame")
    return setup, lists, average, sigma, frames


@case("counts: backgrounds and pixels as pyFAI's sparsify has them, by its own defaults")
def _(folder):
    setup, lists, average, sigma, frames = compare_all(folder)
    brighter, fewer = average.copy(), [(index[1:], value[1:]) for index, value in lists]
    brighter[0, 50] *= 1.001
    other = setup.above(frames[0], 0)
    wrong = int(np.argsort(np.abs(other + 0.05))[0])  # clearly below
    index, value = lists[0]
    more = [(np.sort(np.append(index, np.uint32(wrong))), None), *lists[1:]]
    more[0] = (more[0][0], setup.images[0].ravel()[more[0][0]])
    each_fails(lambda changed: compare(setup, *changed, frames),
               {"a background that is off by a thousandth": (lists, brighter, sigma),
                "a pixel less": (fewer, average, sigma), "a pixel more": (more, average, sigma)})


@case("floats, other options, fewer cycles")
def _(folder):
    compare_all(folder, dtype=np.float32, seed=2, cycle=3, cutoff_pick=4, cutoff_clip=5, noise=0.5)


@case("solid angle and polarisation are divided by")
def _(folder):
    compare_all(folder, seed=3, solid_angle=True, polarisation=0.95)


@case("so many bins that some have no pixel")
def _(folder):
    compare_all(folder, seed=4, bins=3000, frames=2)


@case("fabio opens our file and makes the images that densify makes")
def _(folder):
    for options in ({}, {"solid_angle": True, "polarisation": 0.95}):
        setup = Setup(folder, seed=5, **options)
        lists, _, _ = setup.ours()
        target = folder / "dense.h5"
        run("densify", setup.path, target, folder=folder)
        opened = fabio.open(str(setup.path))
        equal(type(opened).__name__, "SparseImage", "what fabio takes it for")
        compare_images(opened, target, setup.radius * 1e3 < opened.radius[0])
        with h5py.File(target) as file:
            for k, (index, value) in enumerate(lists):
                check((file["entry/data/data"][k].ravel()[index] == value).all(), f"frame {k}: picked pixels")
        target.unlink()


@case("densify reads what pyFAI wrote, as fabio does")
def _(folder):
    if ocl is None:
        skip("no OpenCL for pyFAI")
    setup = Setup(folder, seed=6)
    source, target = folder / "pyfai.h5", folder / "dense.h5"
    save_sparse(str(source), setup.pyfai(), ai=setup.ai, extra={})
    run("densify", source, target, folder=folder)
    opened = fabio.open(str(source))
    compare_images(opened, target, setup.radius < opened.radius[0])


main()
