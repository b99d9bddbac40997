#!/usr/bin/python3
"""readers_test.py - the file in scientists' own tools, as far as they are installed: silx, and DIALS (dxtbx).
Debian: python3-silx, dials."""
# normal build only

import importlib

import numpy as np

from harness import RECEIVER, ROOT, SOURCE, case, equal, check, main, run, skip


def tool(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        skip(f"{name} is not installed")


def demo(folder):
    settings = {"detector.dark_frames": 8, "detector.frames": 62, "link.listen": RECEIVER, "link.source": SOURCE,
                "control.address": RECEIVER, "sinks.nexus.path": folder / "run.nxs"}
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    equal(run("run", ROOT / "examples/jungfrau-laptop.yaml", *sets, folder=folder).process.returncode, 0, "exit status")
    return str(folder / "run.nxs")


@case("silx finds the images as the default plot")
def _(folder):
    silx_io, nxdata = tool("silx.io"), tool("silx.io.nxdata")
    with silx_io.open(demo(folder)) as file:
        plot = nxdata.get_default(file)
        check(plot is not None and plot.is_valid, "no default plot")
        equal(plot.signal_name, "data", "its signal")
        equal(plot.signal.shape, (4, 1024, 1024), "its shape")


@case("DIALS reads it as NXmx: one panel per module, beam, distance, and the pixels that h5py sees")
def _(folder):
    dxtbx, h5py = tool("dxtbx"), tool("h5py")
    path = demo(folder)
    image = dxtbx.load(path)
    equal(type(image).__name__, "FormatNXmx", "the format it was taken for")
    detector = image.get_detector()
    equal([panel.get_image_size() for panel in detector], [(1024, 512)] * 2, "panels")
    equal({round(panel.get_pixel_size()[0] * 1000, 3) for panel in detector}, {75.0}, "pixel size, um")
    check(abs(image.get_beam().get_wavelength() - 12.398419843 / 12.4) < 1e-6, "wavelength")
    upper, lower = (panel.as_numpy_array() for panel in image.get_raw_data(0))
    with h5py.File(path, "r") as file:
        check(np.array_equal(np.vstack([upper, lower]), file["entry/data/data"][0]), "the pixels differ")


@case("the beam goes through the middle of the panels, where the background is brightest")
def _(folder):
    h5py = tool("h5py")
    with h5py.File(demo(folder), "r") as file:
        detector = file["entry/instrument/detector"]
        x, y = int(detector["beam_center_x"][()]), int(detector["beam_center_y"][()])
        images = np.clip(file["entry/data/data"][()].astype(float), 0, 5).mean(axis=0)
    middle = images[y - 100:y + 100, x - 100:x + 100].mean()
    for name, corner in (("upper left", images[:100, :100]), ("lower right", images[-100:, -100:])):
        check(middle > 1.5 * corner.mean(), f"the middle ({middle:.3f}) is not brighter than the {name} ({corner.mean():.3f})")


main()
