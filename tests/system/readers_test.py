#!/usr/bin/python3
"""readers_test.py - the file in scientists' own tools, as far as they are installed: DIALS (dxtbx), silx, and h5py with the
filters of hdf5plugin. Debian: dials (`tools/deps.sh check-long` installs it), python3-silx and python3-hdf5plugin (`tools/deps.sh
check`)."""
# normal build only

import functools
import importlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from harness import RECEIVER, ROOT, SOURCE, acquire, case, equal, check, main, run, skip


PACKAGES = {"dxtbx": "dials, which make check-long installs", "silx": "python3-silx", "hdf5plugin": "python3-hdf5plugin", "h5py": "python3-h5py"}


def tool(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        package = PACKAGES.get(name.partition(".")[0], name)
        skip(f"{name} is not installed (Debian: {package})")


def demo(folder, **more):
    settings = {"detector.dark_frames": 8, "detector.frames": 62, "link.listen": RECEIVER, "link.source": SOURCE,
                "control.address": RECEIVER, "sinks.nexus.path": folder / "run.nxs", **more}
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    equal(run("run", ROOT / "examples/jungfrau-laptop.yaml", *sets, folder=folder).process.returncode, 0, "exit status")
    return str(folder / "run.nxs")


@functools.cache
def plain():
    """A file of the demo, made once for all cases that only read it."""
    return demo(pathlib.Path(tempfile.mkdtemp(prefix="readers-")))


def replayed(folder, axes=None):
    """A file of `replay` as it is by default: of a file that the demo has left."""
    sections = {"goniometer": axes} if axes else {}
    done, _ = acquire(folder, detector={"kind": "replay", "rows": None, "columns": None, "frames": None, "file": plain()},
                      **sections)
    equal(done.process.returncode, 0, "exit status")
    return str(folder / "run.nxs")


def dials(folder, program, *arguments):
    if not shutil.which(program):
        skip(f"{program} is not installed (Debian: {PACKAGES['dxtbx']})")
    done = subprocess.run([program, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    equal(done.returncode, 0, f"exit status of {program}: {done.stdout[-800:]} {done.stderr[-800:]}")
    return done.stdout


@case("DIALS imports a default replay file as stills and finds spots")
def _(folder):
    tool("dxtbx")
    replayed(folder)
    check("stills: 4" in dials(folder, "dials.import", "run.nxs").replace("still: 4", "stills: 4"), "not four stills")
    dials(folder, "dials.find_spots", "imported.expt", "nproc=1")
    check((folder / "strong.refl").stat().st_size > 10000, "no spots were found")


@case("with a goniometer DIALS imports a replay file as one sweep, and finds spots")
def _(folder):
    model = tool("dxtbx.model.experiment_list")
    replayed(folder, axes=[{"omega": {"start_deg": 12.5, "increment_deg": 0.25}}, {"chi": {"x": 0, "z": 1, "start_deg": 30}}])
    dials(folder, "dials.import", "run.nxs")
    experiments = model.ExperimentListFactory.from_json_file(str(folder / "imported.expt"), check_format=False)
    equal(len(experiments), 1, "experiments: one sweep")
    scan = experiments[0].scan
    equal((scan.get_image_range(), [round(value, 6) for value in scan.get_oscillation()]), ((1, 4), [12.5, 0.25]), "its scan")
    equal([round(value, 6) for value in experiments[0].goniometer.get_angles()], [12.5, 30.0], "its axes")
    dials(folder, "dials.find_spots", "imported.expt", "nproc=1")


@case("silx finds the images as the default plot")
def _(folder):
    silx_io, nxdata = tool("silx.io"), tool("silx.io.nxdata")
    with silx_io.open(plain()) as file:
        plot = nxdata.get_default(file)
        check(plot is not None and plot.is_valid, "no default plot")
        equal(plot.signal_name, "data", "its signal")
        equal(plot.signal.shape, (4, 1024, 1024), "its shape")


def plots(folder, *stages, image="none"):
    """A file of results alone, or with images."""
    detector = {"kind": "jungfrau", "modules": 1, "rows": None, "columns": None, "dark_frames": 8, "frames": 230, "hit_fraction": 0.3, "pool": 21}
    done, _ = acquire(folder, detector=detector, link={"kind": "shm"}, stages=["correct", {"veto": {}}, *stages],
                      sinks=[{"nexus": {"path": str(folder / "run.nxs"), "image": image, "frames_per_file": 30}}])
    equal(done.process.returncode, 0, "exit status")
    return str(folder / "run.nxs")


@case("silx plots profiles over q with errors, cakes, hit rates and scores, of kept and rejected frames")
def _(folder):
    silx_io, nxdata = tool("silx.io"), tool("silx.io.nxdata")
    with silx_io.open(plots(folder, {"integrate": {"bins": 50}})) as file:
        default, entry = nxdata.get_default(file), file["entry"]
        equal((default.group.name, default.signal_name), ("/entry/profile", "intensity"), "the default plot")
        found = {name: nxdata.NXdata(entry[name]) for name in ("profile", "hits", "scores")}
        equal({name: plot.is_valid for name, plot in found.items()}, dict.fromkeys(found, True), "NXdata that silx takes")
        equal(found["profile"].axes_dataset_names, ["frame_number", "q"], "axes of the profile")
        equal((found["profile"].signal.shape, found["profile"].errors.shape, found["profile"].interpretation),
              ((230, 50), (230, 50), "spectrum"), "profiles, their errors, and how to show them")
        equal(found["profile"].axes[1].attrs["units"], "1/nm", "unit of the axis")
        equal((found["hits"].signal.shape, found["hits"].axes_dataset_names), ((3,), ["frame_number"]), "hit rates")
        equal((found["scores"].signal.shape, found["scores"].axes_dataset_names), ((238,), ["frame_number"]), "scores")
    with silx_io.open(plots(folder, {"integrate": {"bins": 50, "azimuth_bins": 12, "unit": "tth_deg"}})) as file:
        cake = nxdata.get_default(file)
        equal((cake.group.name, cake.is_valid, cake.signal.shape), ("/entry/cake", True, (230, 12, 50)), "the default plot")
        equal((cake.axes_dataset_names, cake.interpretation), (["frame_number", "azimuth", "two_theta"], "image"), "its axes")
    with silx_io.open(plots(folder)) as file:
        equal(nxdata.get_default(file).group.name, "/entry/hits", "the default plot of a file without images and results")


# Prints the sum of all photons. Debian's hdf5plugin finds the filters of hdf5-filter-plugin; that of PyPI has its own.
SUM = "import sys, hdf5plugin, h5py; print(h5py.File(sys.argv[1], 'r')['entry/data/data'][()].clip(0).sum(dtype='i8'))"


@case("h5py with hdf5plugin unpacks bslz4 and lz4 to the pixels of a file that is not packed")
def _(folder):
    tool("hdf5plugin")
    sums = {}
    for packing in ("none", "bslz4", "lz4"):  # Debian's filters know no bszstd; codec_test.py has it
        path = plain() if packing == "bslz4" else demo(folder, **{"sinks.nexus.compression": packing})
        done = subprocess.run([sys.executable, "-c", SUM, path], capture_output=True, text=True, check=False, timeout=60)
        equal(done.returncode, 0, f"{packing}: {done.stderr[-600:]}")
        sums[packing] = int(done.stdout)
    check(sums["none"] > 0, "no photons")
    equal(set(sums.values()), {sums["none"]}, f"sums of all photons: {sums}")


@case("DIALS reads it as NXmx: one panel per ASIC, beam, distance, and the pixels that h5py sees")
def _(folder):
    dxtbx, h5py = tool("dxtbx"), tool("h5py")
    path = plain()
    image = dxtbx.load(path)
    equal(type(image).__name__, "FormatNXmx", "the format it was taken for")
    detector = image.get_detector()
    equal([panel.get_image_size() for panel in detector], [(256, 256)] * 16, "panels")
    equal({round(panel.get_pixel_size()[0] * 1000, 3) for panel in detector}, {75.0}, "pixel size, um")
    check(abs(image.get_beam().get_wavelength() - 12.398419843 / 12.4) < 1e-6, "wavelength")
    panels = [panel.as_numpy_array() for panel in image.get_raw_data(0)]
    rows = [np.hstack(panels[i:i + 4]) for i in range(0, 16, 4)]
    with h5py.File(path, "r") as file:
        check(np.array_equal(np.vstack(rows), file["entry/data/data"][0]), "the pixels differ")
    # Panels lie in space as the ASICs do: two pixels between those of a module, 36 between the modules.
    corners = [[value / 0.075 for value in panel.get_origin()[:2]] for panel in detector]
    steps = [round(corners[i + 1][0] - corners[i][0], 6) for i in range(3)]
    equal({abs(step) for step in steps}, {258.0}, "from one ASIC to the next, pixels")
    equal([round(abs(corners[4 * i + 4][1] - corners[4 * i][1]), 6) for i in range(3)], [258.0, 292.0, 258.0],
          "from one row of ASICs to the next, pixels")


@case("DIALS reads an assembled image as one panel, masked where there are gaps")
def _(folder):
    dxtbx, h5py = tool("dxtbx"), tool("h5py")
    path = demo(folder, **{"sinks.nexus.image": "assembled"})
    image = dxtbx.load(path)
    detector = image.get_detector()
    equal([panel.get_image_size() for panel in detector], [(1030, 1064)], "panels")
    beam = detector[0].get_beam_centre_px(image.get_beam().get_s0())
    equal([round(value, 3) for value in beam], [515.0, 532.0], "where the beam hits, pixels")
    pixels, seen = image.get_raw_data(0), image.get_static_mask()
    pixels, seen = (part[0] if isinstance(part, tuple) else part for part in (pixels, seen))
    with h5py.File(path, "r") as file:
        mask, stored = file["entry/instrument/detector/pixel_mask"][()], file["entry/data/data"][0]
    check(np.array_equal(pixels.as_numpy_array(), stored), "the pixels differ")
    check((stored[514:550] == -32768).all(), "the gap is not marked")
    check((mask[514:550] == 1).all() and not (mask[:514] & 1).any(), "the mask of the gap")
    if seen is not None:
        check(not seen.as_numpy_array()[514:550].any(), "DIALS does not mask the gap")


@case("the beam goes through the middle of the panels, where the background is brightest")
def _(folder):
    h5py = tool("h5py")
    with h5py.File(plain(), "r") as file:
        detector = file["entry/instrument/detector"]
        x, y = int(detector["beam_center_x"][()]), int(detector["beam_center_y"][()])
        images = np.clip(file["entry/data/data"][()].astype(float), 0, 5).mean(axis=0)
    middle = images[y - 100:y + 100, x - 100:x + 100].mean()
    for name, corner in (("upper left", images[:100, :100]), ("lower right", images[-100:, -100:])):
        check(middle > 1.5 * corner.mean(), f"the middle ({middle:.3f}) is not brighter than the {name} ({corner.mean():.3f})")


main()
