#!/usr/bin/python3
"""calibrate_test.py - dark frames become a calibration file, live or from files; a run with that file gives the photons
of a run that measured the same dark frames itself; what is of another detector is refused."""
# normal build only

import h5py
import numpy as np

from harness import (GUARDED, RECEIVER, ROOT, SOURCE, acquire, case, check, equal, experiment, fewer, main, run,
                     run_fails)

POOL, DARKS = 7, 9
JUNGFRAU = {"kind": "jungfrau", "modules": 2, "rows": None, "columns": None, "pool": POOL, "bad_pixels": 12,
            "dark_frames": DARKS, "frames": POOL, "hit_fraction": 0.5}


def sections(cells=1, **detector):
    many = {"storage_cells": cells, "frames": POOL * cells} if cells > 1 else {}
    return {"detector": {**JUNGFRAU, **many, **detector}, "stages": ["correct"]}


def nexus(folder, name="run.nxs", dataset="image"):
    return [{"nexus": {"path": str(folder / name), "dataset": dataset}}]


def calibrate(folder, *arguments, **changes):
    """`sluice calibrate` to its end: what the file then has."""
    path = experiment(folder, "calibrate.yaml", **(changes or sections()))
    done = run("calibrate", path, "--output", folder / "cal.h5", "--quiet", *arguments, folder=folder)
    equal(done.process.returncode, 0, "exit status")
    return done, tables(folder / "cal.h5")


def tables(path):
    with h5py.File(path) as file:
        return {"attributes": dict(file.attrs), **{name: file[name][()] for name in file},
                "units": {name: file[name].attrs.get("units") for name in file}}


def raw_darks(folder, name="dark.h5", **detector):
    """The dark frames as they came, and as a file."""
    changes = {"detector": {**JUNGFRAU, "frames": DARKS, "dark_frames": 0, **detector}, "stages": ["copy"],
               "sinks": nexus(folder, name, "raw")}
    equal(acquire(folder, **changes)[0].process.returncode, 0, "exit status")
    with h5py.File(folder / name) as file:
        return file["entry/data/data"][:]


def images(folder, name, cells=1, **changes):
    """{frame number modulo the pool and the storage cells: image} of a run."""
    done, _ = acquire(folder, **changes, sinks=nexus(folder, name))
    equal(done.process.returncode, 0, "exit status")
    with h5py.File(folder / name) as file:
        return {int(n) % (POOL * cells): image for n, image in zip(file["entry/data/frame_number"], file["entry/data/data"][:])}


@case("what is in the file: shapes, units, date, and medians as of real modules")
def _(folder):
    done, got = calibrate(folder)
    equal(got["pedestal"].shape, (1, 3, 2, 512, 1024), "pedestal's shape")
    equal(got["rms"].shape, (1, 3, 2, 512, 1024), "rms's shape")
    equal(got["mask"].shape, (2, 512, 1024), "mask's shape")
    equal(got["units"]["pedestal"], "ADU", "units")
    equal(got["units"]["gain"], "ADU/keV", "units")
    equal(list(got["frames"]), [DARKS, 0, 0], "dark frames")
    equal({k: v for k, v in got["attributes"].items() if k in ("detector", "modules", "rows", "columns", "cells")},
          {"detector": "jungfrau", "modules": 2, "rows": 512, "columns": 1024, "cells": 1}, "attributes")
    check(got["attributes"]["created"].startswith("20"), "no date")
    check(2400 < np.nanmedian(got["pedestal"][0, 0]) < 2500, "no pedestal of a Jungfrau")
    check(18 < np.nanmedian(got["rms"][0, 0]) < 30, "no noise of a Jungfrau")
    check("bad pixels: " in done.out() and "G0" in done.out(), "no counts and medians are printed")


@case("means and noise are those of numpy, to the last bit; bad pixels are those that never read G0")
def _(folder):
    _, got = calibrate(folder, "--all", "--frames", DARKS)
    stack = raw_darks(folder).reshape(DARKS, 2, 512, 1024)
    gain, adu = stack >> 14, (stack & 0x3fff).astype(np.int64)
    count = (gain == 0).sum(0)
    total = np.where(gain == 0, adu, 0).sum(0)
    squares = np.where(gain == 0, adu * adu, 0).sum(0)
    with np.errstate(all="ignore"):
        mean = (total / count).astype(np.float32)
        rms = (np.sqrt((count * squares - total * total).astype(float)) / count).astype(np.float32)
    check(np.array_equal(got["pedestal"][0, 0], mean, equal_nan=True), "other means")
    check(np.array_equal(got["rms"][0, 0], rms, equal_nan=True), "other noise")
    check(((got["mask"] & 1) == (count == 0)).all(), "other pixels without samples")
    check(((got["mask"] & 2 > 0) == (DARKS - count > 0.01 * DARKS)).all(), "other pixels in another gain")


@case("a run with the file and no dark frames has the photons of a run that measured them, bit for bit")
def _(folder):
    for output, cells in (("photons_i16", 1), ("kev_f32", 1), ("kev_f32", 3)):  # of floats every bit counts
        _, got = calibrate(folder, **sections(cells))
        equal(len(got["pedestal"]), cells, "storage cells")
        good = got["mask"].reshape(1024, 1024) == 0
        stages = {"stages": [{"correct": {"output": output}}]}
        measured = images(folder, "measured.nxs", cells, **{**sections(cells), **stages})
        from_file = images(folder, "file.nxs", cells, **{**sections(cells, dark_frames=0), **stages},
                           calibration={"file": str(folder / "cal.h5")})
        equal(sorted(measured), sorted(from_file), "frames")
        for k, image in measured.items():
            check(image[good].tobytes() == from_file[k][good].tobytes(), f"other photons in frame {k}")
        bad = from_file[0][~good]
        check((np.isnan(bad) if output == "kev_f32" else bad == -32768).all(), "masked pixels are not bad")
    with h5py.File(folder / "file.nxs") as file:
        reasons = file["entry/sluice/frames/reason"][:]
    check(len(set(reasons)) == 1, "some frames have another reason")
    own = images(folder, "own.nxs", cells, **{**sections(cells, dark_frames=0), **stages})
    with h5py.File(folder / "own.nxs") as file:
        check(reasons[0] not in file["entry/sluice/frames/reason"][:], "a file's pedestals count as none")
    check((own[0] != from_file[0])[good].mean() > 0.9, "the detector's own pedestals give the same: this was no test")


@case("recorded data and the calibration file give the photons of the day that it was taken")
def _(folder):
    calibrate(folder)
    bright = {**JUNGFRAU, "dark_frames": 0}
    equal(acquire(folder, detector=bright, stages=["copy"], sinks=nexus(folder, "raw.nxs", "raw"))[0]
          .process.returncode, 0, "exit status")
    then = images(folder, "then.nxs", detector=bright, stages=["correct"], calibration={"file": str(folder / "cal.h5")})
    play = {"kind": "replay", "file": str(folder / "raw.nxs"), "frames": POOL, "rows": None, "columns": None,
            "photon_energy_keV": 12.4, "origin": "jungfrau"}
    now = images(folder, "now.nxs", detector=play, stages=["correct"], calibration={"file": str(folder / "cal.h5")})
    for k, image in then.items():
        check((image == now[k]).all(), f"other photons in frame {k}")
    run_fails("run", experiment(folder, detector=play, stages=["correct"]), folder=folder,
              says=["correct needs a calibration"])


@case("from a file of dark images, HDF5 or raw, as from the detector")
def _(folder):
    _, live = calibrate(folder, "--all", "--frames", DARKS)
    stack = raw_darks(folder)
    stack.tofile(folder / "dark.raw")
    with h5py.File(folder / "axis.h5", "w") as file:
        file.create_dataset("x", data=stack.reshape(DARKS, 2, 512, 1024), chunks=(1, 1, 512, 1024), compression="lzf")
    for name in ("dark.h5", "dark.raw", "axis.h5"):
        _, got = calibrate(folder, "--file", folder / name)
        for table in ("pedestal", "rms"):
            check(np.array_equal(got[table][0, 0], live[table][0, 0], equal_nan=True), f"{table} of {name} differs")
        check((got["mask"] == live["mask"]).all(), "the mask differs")
        equal(list(got["frames"]), [DARKS, 0, 0], "dark frames")
        equal(got["attributes"]["detector"], "jungfrau", "detector")
    _, got = calibrate(folder, "--file", folder / "dark.h5", "--frames", "5")
    equal(list(got["frames"]), [5, 0, 0], "dark frames")
    check(not list(folder.glob("sluice-calibrate*")), "an experiment file is left behind")


@case("dark images in a file are calibrated with an experiment file that has no sinks")
def _(folder):
    raw_darks(folder)
    for without in ({"sinks": None}, {"sinks": []}):
        _, got = calibrate(folder, "--file", folder / "dark.h5", **sections(), **without)
        equal(list(got["frames"]), [DARKS, 0, 0], "dark frames")


@case("gain by gain: forced ones are added to what an earlier file has")
def _(folder):
    rng = np.random.default_rng(5)
    detector = {"kind": "replay", "file": "", "frames": 30, "rows": None, "columns": None, "modules": 2}
    for gain, code, level in (("g0", 0, 2400), ("g1", 1, 13500), ("g2", 3, 14100)):
        data = (code << 14 | (level + rng.integers(0, 100, (30, 8, 16)))).astype(np.uint16)
        data.tofile(folder / f"{gain}.raw")
        base = () if gain == "g0" else ("--base", folder / "cal.h5")
        play = {**detector, "file": str(folder / f"{gain}.raw"), "rows": 8, "columns": 16}
        done, got = calibrate(folder, "--all", "--gain", gain, *base, detector=play, stages=["copy"])
        equal(got["pedestal"].shape, (1, 3, 2, 4, 16), "shape")
        g = "g0 g1 g2".split().index(gain)
        mean = (data & 0x3fff).reshape(30, 2, 4, 16).astype(float).mean(0).astype(np.float32)
        check((got["pedestal"][0, g] == mean).all(), f"pedestals of {gain}")
    check(np.isfinite(got["pedestal"]).all(), "what was there before is gone")
    equal(list(got["frames"]), [30, 30, 30], "dark frames")


@case("gain maps as PSI gives them out")
def _(folder):
    gains = np.stack([np.full((512, 1024), g) for g in (40.0, -1.5, -0.12)])
    for module in (49, 283):
        (gains * (1 + module / 1000)).tofile(folder / f"gainMaps_M{module:03d}.bin")
    maps = f"{folder}/gainMaps_M049.bin,{folder}/gainMaps_M283.bin"
    _, got = calibrate(folder, **sections(), calibration={"gains": maps})
    check((got["gain"][:, 1] == (gains * 1.283).astype(np.float32)).all(), "other gains")
    path = experiment(folder, **sections(frames=1), calibration={"gains": str(folder / "gainMaps_M049.bin")})
    run_fails("run", path, folder=folder, says=["gains of 1 modules, the detector has 2"])
    (1 / gains).tofile(folder / "gainMaps_M049.bin")
    (1 / gains).tofile(folder / "gainMaps_M283.bin")
    run_fails("run", experiment(folder, **sections(frames=1), calibration={"gains": maps}), folder=folder,
              says=["ADU per keV, not keV per ADU"])
    np.zeros(17).tofile(folder / "gainMaps_M049.bin")
    run_fails("run", experiment(folder, **sections(frames=1), calibration={"gains": maps}), folder=folder,
              says=["has 136 bytes", "3 or 6 planes"])


@case("a calibration of another detector, shape or kind is refused, with the reason")
def _(folder):
    calibrate(folder, "--frames", "3")
    cal = folder / "cal.h5"

    def refused(*says, **changes):
        run_fails("run", experiment(folder, **{**sections(frames=1), **changes, "calibration": {"file": str(cal)}}),
                  folder=folder, says=says)
    refused("of a detector with 2 modules, this one has 1", detector={**JUNGFRAU, "modules": 1})
    refused("is a calibration of detector 'jungfrau', not of 'pattern'",
            detector={"kind": "pattern", "rows": 512, "columns": 1024, "frames": 1}, stages=["copy"])
    with h5py.File(cal, "r+") as file:
        file["pedestal"].attrs["units"] = "keV"
    refused("units 'keV', expected 'ADU'")
    with h5py.File(cal, "r+") as file:
        file["pedestal"].attrs["units"] = "ADU"
        file["gain"][:] = file["gain"][()][::-1]
    refused("G0 falls with charge")
    with h5py.File(cal, "r+") as file:
        del file["pedestal"]
        file["pedestal"] = np.zeros((1, 3, 2, 1024, 512), np.float32)
    refused("another shape than its attributes say")
    with h5py.File(cal, "w") as file:
        file["mask"] = np.zeros(3)
    refused("is no calibration of this program")
    cal.write_text("no HDF5")
    refused("cal.h5")
    cal.unlink()
    refused("No such file")


@case("a run names the file that its calibration is from and when it was made, or that the file does not say")
def _(folder):
    calibrate(folder, "--frames", "3")
    cal = folder / "cal.h5"
    path = experiment(folder, **sections(frames=1, dark_frames=0), calibration={"file": str(cal)})
    with h5py.File(cal, "r+") as file:
        created = file.attrs["created"]
        created = created.decode() if isinstance(created, bytes) else created
    done = run("run", path, folder=folder)
    equal(done.process.returncode, 0, f"exit status: {done.err()}")
    check(f"calibration from {cal}, made {created}\n" in done.err(), done.err())
    for empty in (False, True):
        with h5py.File(cal, "r+") as file:
            file.attrs["created"] = ""
            if not empty:
                del file.attrs["created"]
        done = run("run", path, folder=folder)
        equal(done.process.returncode, 0, f"exit status: {done.err()}")
        check(f"calibration from {cal}, which does not say when it was made\n" in done.err(), done.err())


@case("a calibration without dark frames, or without a place, is refused")
def _(folder):
    path = experiment(folder, **sections(dark_frames=0))
    run_fails("calibrate", path, "--output", folder / "x.h5", folder=folder, says=["no dark frames", "--frames", "--all"])
    run_fails("calibrate", path, folder=folder, says=["--output"])
    run_fails("calibrate", folder=folder, says=["which experiment"])
    run_fails("calibrate", path, "--output", folder / "x.h5", "--spreads", "many", folder=folder, says=["--spreads"])
    run_fails("calibrate", path, "--output", folder / "x.h5", "--file", folder / "nothing.h5", folder=folder,
              says=["nothing.h5"])
    np.zeros((3, 512, 1024), np.uint16).tofile(folder / "one.raw")
    run_fails("calibrate", path, "--output", folder / "x.h5", "--file", folder / "one.raw", folder=folder,
              says=["one.raw"])
    with h5py.File(folder / "one.h5", "w") as file:
        file["x"] = np.zeros((3, 512, 1024), np.uint16)
    run_fails("calibrate", path, "--output", folder / "x.h5", "--file", folder / "one.h5", folder=folder,
              says=["images of 512 x 1024 uint16; detector 'jungfrau' has 2 modules"])
    check(not (folder / "x.h5").exists(), "a file was left behind")


@case("what makes most pixels bad is no calibration: counters, or another gain than was asked for")
def _(folder):
    for detector, more in (({"kind": "eiger", "frames": 1, "dark_frames": 20}, ()),
                           ({"kind": "jungfrau", "frames": 1, "dark_frames": 20, "pool": 3}, ("--gain", "g1"))):
        path = experiment(folder, detector={"rows": None, "columns": None, "modules": 1, **detector}, sinks=["null"])
        run_fails("calibrate", path, "--output", folder / "x.h5", *more, folder=folder,
                  says=["most pixels are bad", "is removed"])
        check(not (folder / "x.h5").exists(), "a file was left behind")


@case("a part of the detector is corrected with its part of the file")
def _(folder):
    calibrate(folder)
    whole = images(folder, "whole.nxs", **sections(dark_frames=0), calibration={"file": str(folder / "cal.h5")})
    part = images(folder, "part.nxs", **sections(dark_frames=0), calibration={"file": str(folder / "cal.h5")},
                  transfers={"roi": {"first_module": 1, "x": 100, "y": 40, "width": 64, "height": 32}})
    for k, image in part.items():
        equal(image.shape, (32, 64), "shape")
        check((image == whole[k][512 + 40:512 + 72, 100:164]).all(), f"other photons in frame {k}")


@case("the examples: measure, then use")
def _(folder):
    sets = ["--set", f"link.listen={RECEIVER}", "--set", f"link.source={SOURCE}", "--set", f"control.address={RECEIVER}"]
    program = run("calibrate", ROOT / "examples/calibrate-darks.yaml", "--output", folder / "cal.h5", "--frames", "8",
                  *sets, folder=folder, program=GUARDED)
    equal(program.process.returncode, 0, "exit status")
    done = run("run", ROOT / "examples/calibrate-use.yaml", *sets, "--set", f"calibration.file={folder}/cal.h5",
               "--set", f"detector.frames={fewer(62, 20)}", "--set", f"sinks.nexus.path={folder}/run.nxs",
               "--summary", folder / "summary.json", folder=folder)
    equal(done.process.returncode, 0, "exit status")
    check((folder / "run.nxs").exists(), "no file")


main()
