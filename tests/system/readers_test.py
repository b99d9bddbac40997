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


def demo(folder, **more):
    settings = {"detector.dark_frames": 8, "detector.frames": 62, "link.listen": RECEIVER, "link.source": SOURCE,
                "control.address": RECEIVER, "sinks.nexus.path": folder / "run.nxs", **more}
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


@case("DIALS reads it as NXmx: one panel per ASIC, beam, distance, and the pixels that h5py sees")
def _(folder):
    dxtbx, h5py = tool("dxtbx"), tool("h5py")
    path = demo(folder)
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
    with h5py.File(demo(folder), "r") as file:
        detector = file["entry/instrument/detector"]
        x, y = int(detector["beam_center_x"][()]), int(detector["beam_center_y"][()])
        images = np.clip(file["entry/data/data"][()].astype(float), 0, 5).mean(axis=0)
    middle = images[y - 100:y + 100, x - 100:x + 100].mean()
    for name, corner in (("upper left", images[:100, :100]), ("lower right", images[-100:, -100:])):
        check(middle > 1.5 * corner.mean(), f"the middle ({middle:.3f}) is not brighter than the {name} ({corner.mean():.3f})")


main()
