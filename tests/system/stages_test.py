#!/usr/bin/python3
"""stages_test.py - chains of stages on detectors of all kinds: what goes together, what does not and is refused, and what
must not depend on where a detector's data come from."""

import h5py
import numpy as np

import results
from harness import acquire, case, check, equal, experiment, main, run_fails

CAMERA = {"kind": "camera", "modules": None, "rows": None, "columns": None, "height": 100, "width": 30, "frames": 6}


def refused(folder, words, **sections):
    run_fails("run", experiment(folder, **sections), folder=folder, says=[words])


def nexus(folder, **options):
    return [{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw", **options}}]


@case("a result of as many elements as there are pixels is in the file like any other")
def _(folder):
    acquire(folder, detector=CAMERA, stages=[{"integrate": {"bins": 1000, "unit": "r_pixels", "solid_angle": "false"}}],
            sinks=nexus(folder))
    with h5py.File(folder / "run.nxs") as file:
        equal(file["entry/profile/intensity"].shape, (6, 1000), "profiles")
        equal(file["entry/profile/radius"].attrs["long_name"], "radius (pixels)", "what they are over")


@case("the beam of a replay is where the experiment says")
def _(folder):
    images = np.random.default_rng(3).poisson(5, (4, 64, 80)).astype(np.uint16)
    images.tofile(folder / "images.raw")
    detector = {"kind": "replay", "modules": 1, "file": str(folder / "images.raw"), "rows": 64, "columns": 80, "frames": 4,
                "beam_x": 13, "beam_y": -7.5}
    acquire(folder, detector=detector, sinks=nexus(folder),
            stages=[{"integrate": {"bins": 10, "unit": "r_pixels", "high": 30, "solid_angle": "false"}}])
    rows, columns = np.indices((64, 80))
    bins = (np.hypot(rows + 0.5 - 32 + 7.5, columns + 0.5 - 40 - 13) / 3).astype(int)
    with h5py.File(folder / "run.nxs") as file:
        for image, profile in zip(images, results.profiles(file)["profile"]):
            mean = [image[bins == b].mean() for b in range(10)]
            check(np.allclose(profile[1], mean, rtol=1e-6), "profiles about that beam")


@case("of a part of a module nobody knows where the beam is, and stages that need it say so")
def _(folder):
    for stage in ("integrate", "peaks"):
        refused(folder, "does not know where the beam is",
                detector={"kind": "jungfrau", "rows": None, "columns": None, "frames": 5, "dark_frames": 2},
                transfers={"part": {"x": 100, "y": 50, "width": 64, "height": 64}},
                stages=["correct", stage], sinks=nexus(folder, dataset="image"))


@case("large bins of bright pixels do not overflow")
def _(folder):
    np.full((2, 256, 256), 60000, np.uint16).tofile(folder / "images.raw")
    detector = {"kind": "replay", "modules": 1, "file": str(folder / "images.raw"), "rows": 256, "columns": 256, "frames": 2}
    acquire(folder, detector=detector, stages=[{"reduce": {"bin": 256}}], sinks=nexus(folder))
    with h5py.File(folder / "run.nxs") as file:
        equal(file["entry/results/binned"][()].ravel().tolist(), [60000 * 65536] * 2, "sums")


@case("a module that is missing is no measurement, whatever the numbers of the detector")
def _(folder):
    np.full((40, 64, 80), 20, np.int16).tofile(folder / "images.raw")
    detector = {"kind": "replay", "modules": 2, "file": str(folder / "images.raw"), "rows": 64, "columns": 80, "frames": 40,
                "numbers": "signed"}
    acquire(folder, detector=detector, stages=["reduce"], sinks=nexus(folder), ring={"incomplete": "keep"},
            frontend={"skip": 0.2})
    with h5py.File(folder / "run.nxs") as file:
        statistics, missing = file["entry/results/statistics"][:, 0], file["entry/data/missing_modules"][()]
    check(0 < (missing != 0).sum() < len(missing), "some frames miss a module, and some none")
    equal(set(statistics[:, 1]), {20.0}, "means")
    equal(sorted(set(statistics[missing != 0, 3])), [2560.0], "valid pixels where a module is missing")


@case("events are no images: stages that look at images refuse them")
def _(folder):
    for stage in ("peaks", "spots", "veto", "integrate", "reduce", "sparse"):
        refused(folder, f"stage '{stage}' needs 'image'", stages=[stage], sinks=nexus(folder),
                detector={"kind": "rich", "rows": None, "columns": None, "modules": 1, "frames": 2})


@case("stages speak in the order of the chain: prescale keeps samples of what stages before it rejected, and of nothing else")
def _(folder):
    detector = {"kind": "jungfrau", "rows": None, "columns": None, "modules": 1, "frames": 30, "dark_frames": 8, "hit_fraction": 0.3}
    for stages, samples in (([{"veto": {}}, {"prescale": {"every": 2}}], True), ([{"prescale": {"every": 2}}, {"veto": {}}], False)):
        chain = ["correct", {"peaks": {"min_peaks": 0}}, *stages]
        _, summary = acquire(folder, detector=detector, stages=chain, sinks=nexus(folder, dataset="image"))
        equal(summary["frames"]["prescaled"] > 0, samples, f"samples of {chain}")


@case("two stages that add the same result are refused, with its name")
def _(folder):
    integrate = {"integrate": {"unit": "r_pixels", "solid_angle": "false"}}
    refused(folder, "adds 'profile', and so does one before it", detector=CAMERA, stages=[integrate, integrate],
            sinks=nexus(folder))


@case("a counting detector is judged by its counts")
def _(folder):
    _, summary = acquire(folder, detector={**CAMERA, "height": 200, "width": 300}, sinks=nexus(folder),
                         stages=[{"veto": {"threshold": 1, "min_pixels": 1}}])
    equal(summary["frames"]["kept"], 6, "frames with a count")


@case("workers, batches, order and stores change nothing in the file")
def _(folder):
    detector = {"kind": "eiger", "rows": None, "columns": None, "modules": 1, "frames": 24, "hit_fraction": 0.5}
    stages = [{"veto": {"threshold": 30, "min_pixels": 10}}, {"integrate": {"bins": 100}}, {"peaks": {"min_peaks": 0}},
              {"sparse": {"threshold": 5}}, {"reduce": {"bin": 16}}]
    files = []
    for unit in ({"workers": 1, "batch": 1}, {"workers": 2, "batch": 8, "order": "any"},
                 {"workers": 3, "batch": 5, "tile_pixels": 777, "stores": "streamed"}):
        acquire(folder, detector=detector, stages=stages, unit={"kind": "cpu", **unit}, sinks=nexus(folder))
        with h5py.File(folder / "run.nxs") as file:
            files.append({name: item[()] for name, item in file["entry/results"].items()} | results.profiles(file) | {
                "data": file["entry/data/data"][()], "score": file["entry/sluice/frames/score"][()]})
            rejected = file["entry/results/image_index"][()] < 0
            equal(len(rejected), 24, "rows of results: one for each frame")
            check(rejected.any() and not rejected.all(), "some are rejected, and some are not")
    for other in files[1:]:
        equal(sorted(other), sorted(files[0]), "what is in the file")
        for name, values in files[0].items():
            check(np.array_equal(values, other[name], equal_nan=values.dtype.kind == "f"), f"{name} differs")


main()
