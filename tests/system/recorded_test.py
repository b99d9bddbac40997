#!/usr/bin/python3
"""recorded_test.py - a run that was recorded, played again: the same images, peaks and profiles as when it was live, bit for bit,
from raw pixels and from photons, modules one below the other and assembled, and from plain stacks as PSI's tools write them."""
# normal build only

import atexit
import functools
import pathlib
import shutil
import tempfile

import h5py
import numpy as np

from harness import acquire, case, check, equal, experiment, main, run, run_fails
from results import joined

POOL = 7
JUNGFRAU = {"kind": "jungfrau", "modules": 8, "rows": None, "columns": None, "pool": POOL, "dark_frames": 0, "frames": POOL,
            "hit_fraction": 1, "photon_energy_keV": 12.7, "distance_m": 0.083, "beam_x": 31.25, "beam_y": -17.5}
FOUND = [{"integrate": {"bins": 300}}, {"peaks": {"min_peaks": 0}}]
IMAGE, MASK = "entry/data/data", "entry/instrument/detector/pixel_mask"


def nexus(path, dataset="image", image="modules"):
    return {"nexus": {"path": str(path), "dataset": dataset, "image": image}}


def calibrated(folder):
    path = experiment(folder, "calibrate.yaml", detector={**JUNGFRAU, "dark_frames": 5}, stages=["correct"])
    equal(run("calibrate", path, "--output", folder / "cal.h5", "--quiet", folder=folder).process.returncode, 0, "exit status")
    return {"file": str(folder / "cal.h5")}


def results(path):
    """Everything that stages found, and the images."""
    with h5py.File(path) as file:
        found = joined(file)
        found["frame_number"] = file["entry/data/frame_number"][()]
        return file[IMAGE][()], found


def same(got, wanted, what, but=("frame_number",)):
    equal(sorted(got), sorted(wanted), f"{what}: results")
    for name, value in wanted.items():
        if name not in but:
            check(got[name].tobytes() == value.tobytes(), f"{what}: {name} differs")


RECORDED = ("photons.nxs", "assembled.nxs", "raw.nxs", "raw-assembled.nxs", "cal.h5")


@functools.cache
def recording():
    """The folder of one run with everything stored that can be played again; all cases use it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="recording-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    done, _ = acquire(folder, detector=JUNGFRAU, calibration=calibrated(folder), stages=["correct", *FOUND],
                      sinks=[nexus(folder / "photons.nxs"), nexus(folder / "assembled.nxs", image="assembled"),
                             nexus(folder / "raw.nxs", "raw"), nexus(folder / "raw-assembled.nxs", "raw", "assembled"), "verify"])
    equal(done.process.returncode, 0, "exit status")
    return folder


def live(folder):
    """Calibration, images and results of that run; its files by their names in this folder."""
    for name in RECORDED:
        (folder / name).symlink_to(recording() / name)
    return {"file": str(folder / "cal.h5")}, *results(folder / "photons.nxs")


def again(folder, name, stages, calibration=None, dataset="image", says=(), **detector):
    settings = {"kind": "replay", "rows": None, "columns": None, "modules": 8, "frames": POOL, "file": str(folder / name), **detector}
    more = {"calibration": calibration} if calibration else {}
    done, summary = acquire(folder, detector=settings, stages=stages, sinks=[nexus(folder / "again.nxs", dataset), "verify"], **more)
    equal(done.process.returncode, 0, "exit status")
    for text in says:
        check(text in done.err(), f"it does not say '{text}'")
    return done, *results(folder / "again.nxs")


@case("raw pixels of ours, stacked and assembled, give image, peaks and profile of the live run, bit for bit")
def _(folder):
    calibration, photons, found = live(folder)
    check(found["peaks_rows"].min() > 10, "the live run has no peaks: this is no test")
    for name in ("raw.nxs", "raw-assembled.nxs"):
        done, images, results_again = again(folder, name, ["correct", *FOUND], calibration)
        check(images.tobytes() == photons.tobytes(), f"{name}: other photons")
        same(results_again, found, name)
        check("NXmx" not in done.err(), "it warns of a file that is complete")
    with h5py.File(folder / "raw.nxs") as before, h5py.File(folder / "again.nxs") as after:
        for field in ("distance", "sensor_material", "sensor_thickness", "x_pixel_size", "beam_center_x", "beam_center_y"):
            equal(after["entry/instrument/detector"][field][()], before["entry/instrument/detector"][field][()], field)
        equal(after["entry/instrument/beam/incident_wavelength"][()], before["entry/instrument/beam/incident_wavelength"][()], "wavelength")
        equal(after["entry/definition"][()], b"NXmx", "definition")


@case("photons of ours, stacked and assembled, give peaks and profile of the live run; one panel has the same rings")
def _(folder):
    _, photons, found = live(folder)
    for name in ("photons.nxs", "assembled.nxs"):
        _, images, results_again = again(folder, name, ["copy", *FOUND], dataset="raw")
        check(images.tobytes() == photons.tobytes(), f"{name}: other photons")
        same(results_again, found, name)
    with h5py.File(folder / "photons.nxs") as before, h5py.File(folder / "again.nxs") as after:
        check((before[MASK][()] == after[MASK][()]).all(), "the mask is another")
        check((before[MASK][()] >> 31).sum() == 8 * (3 * 2 * 512 + 2 * 1024 - 3 * 2 * 2), "wide pixels that are marked")
        check((before[MASK][()] & 2).any(), "no bad pixel is marked")
    # One panel: wide pixels count not at all, so rings are those of the others.
    _, _, panel = again(folder, "assembled.nxs", ["copy", *FOUND], dataset="raw", modules=1)
    profile, wanted = panel["profile"].mean(axis=0), found["profile"].mean(axis=0)
    inside = np.isfinite(profile) & np.isfinite(wanted) & (wanted > 0.01)
    check(inside.sum() > 200, "hardly any bin to compare")
    check(np.abs(profile[inside] / wanted[inside] - 1).max() < 0.25, "other rings")
    check(abs(np.median(profile[inside] / wanted[inside]) - 1) < 0.01, "another level")
    done = run_fails("run", experiment(folder, detector={"kind": "replay", "rows": None, "columns": None, "modules": 2,
                                                         "file": str(folder / "assembled.nxs")}), folder=folder)
    check("set detector.modules: 8, or 1 to play the image as one panel" in done.err(), "it does not say what to set")


@case("plain stacks as PSI's tools write them, [n, 8*512, 1024] and [n, 8, 512, 1024], with origin: jungfrau")
def _(folder):
    calibration, photons, found = live(folder)
    with h5py.File(folder / "raw.nxs") as file:
        raw = file[IMAGE][()]
    known = {"photon_energy_keV": 12.7, "distance_m": 0.083, "beam_x": 31.25, "beam_y": -17.5}
    for shape in ((POOL, 4096, 1024), (POOL, 8, 512, 1024)):
        with h5py.File(folder / "psi.h5", "w") as file:
            file["data/JF07T08V01/data"] = raw.reshape(shape)
        _, images, results_again = again(folder, "psi.h5", ["correct", *FOUND], calibration, origin="jungfrau", **known)
        check(images.tobytes() == photons.tobytes(), f"{shape}: other photons")
        same(results_again, found, str(shape))
    raw.tofile(folder / "psi.raw")
    _, images, results_again = again(folder, "psi.raw", ["correct", *FOUND], calibration, origin="jungfrau", rows=4096, columns=1024, **known)
    check(images.tobytes() == photons.tobytes(), "raw binary: other photons")
    same(results_again, found, "raw binary")
    # Without a name it is asked for, and before anything starts.
    done, _, _ = again(folder, "psi.h5", ["copy"], dataset="raw", says=["Set detector.origin: jungfrau or eiger",
                                          "will not be called NXmx", "sensor_material, sensor_thickness_m, photon_energy_keV, distance_m"])
    with h5py.File(folder / "again.nxs") as file:
        check("definition" not in file["entry"], "it is called NXmx all the same")
    check(done.err().index("will not be called NXmx") < done.err().index("7 / 7 frames"), "it warns after the start")
    path = experiment(folder, detector={"kind": "replay", "rows": None, "columns": None, "modules": 2, "file": str(folder / "psi.raw"),
                                        "origin": "jungfrau", "rows": 4096, "columns": 1024})
    check("set detector.modules: 8" in run_fails("run", path, folder=folder).err(), "it does not say how many modules")


@case("an assembled image of another program: beam, distance, wavelength, sensor and mask by the fields of its master file")
def _(folder):
    live(folder)
    with h5py.File(folder / "assembled.nxs") as file:
        images, mask = file[IMAGE][()], file[MASK][()]
        beam = [file["entry/instrument/detector/beam_center_" + axis][()] for axis in "xy"]
    with h5py.File(folder / "master.h5", "w") as file:
        file["entry/data/data_000001"] = images
        detector = file.create_group("entry/instrument/detector")
        for name, value, units in (("beam_center_x", beam[0], "pixel"), ("beam_center_y", beam[1], "pixel"), ("x_pixel_size", 75e-6, "m"),
                                   ("detector_distance", 83, "mm"), ("sensor_thickness", 320, "um")):
            detector[name] = value
            detector[name].attrs["units"] = units
        detector["sensor_material"] = "Silicon"
        file["entry/instrument/beam/incident_wavelength"] = 12.398419843320026 / 12.7
        file["entry/instrument/beam/incident_wavelength"].attrs["units"] = "angstrom"
        detector["detectorSpecific/pixel_mask"] = (mask != 0).astype(np.uint32)
    _, _, found = again(folder, "master.h5", ["copy", *FOUND], dataset="raw", modules=1)
    _, _, wanted = again(folder, "assembled.nxs", ["copy", *FOUND], dataset="raw", modules=1)
    same(found, wanted, "a master file", but=("frame_number",))
    with h5py.File(folder / "again.nxs") as file:
        equal(file["entry/definition"][()], b"NXmx", "definition")


TILTED = {"rot1": 0.3, "rot2": -0.15, "rot3": 0.4, "distance_m": 0.11, "beam_row": 100.5, "beam_column": 300.25,
          "modules": [{"module": 1, "right_m": 1e-3, "away_m": 5e-3, "rot_away": 0.02}]}


@case("a tilted detector with a moved module: played again without its section, peaks and profile are those of the live run")
def _(folder):
    small = {**JUNGFRAU, "modules": 2, "dark_frames": 5, "pool": 5, "frames": 4}
    sinks = [nexus(folder / "live.nxs"), nexus(folder / "assembled.nxs", image="assembled")]
    done, _ = acquire(folder, detector=small, geometry=TILTED, stages=["correct", *FOUND], sinks=sinks)
    equal(done.process.returncode, 0, "exit status")
    _, wanted = results(folder / "live.nxs")
    for name in ("live.nxs", "assembled.nxs"):
        done, _, found = again(folder, name, ["copy", *FOUND], dataset="raw", modules=2, frames=4)
        same(found, wanted, name)
        check("left out" not in done.err(), "it leaves the tilt out")
    tables = [run("geometry", folder / name, folder=folder).out() for name in ("live.nxs", "assembled.nxs", "again.nxs")]
    equal([table.splitlines()[1:3] for table in tables[1:]], [tables[0].splitlines()[1:3]] * 2, "distance and beam")
    # What would be counted twice, or left out, is said.
    replay = {"kind": "replay", "rows": None, "columns": None, "modules": 2, "frames": 4, "file": str(folder / "live.nxs")}
    moved = {"modules": TILTED["modules"]}
    run_fails("run", experiment(folder, "twice.yaml", detector=replay, geometry=moved), folder=folder, says=["of its own", "leave the section out"])
    _, _, found = again(folder, "live.nxs", ["copy", *FOUND], dataset="raw", modules=2, frames=4, distance_m=0.2,
                        says=["was recorded with a tilt", "options of the detector set distance"])
    check(found["profile"].tobytes() != wanted["profile"].tobytes(), "another distance makes no difference")


main()
