#!/usr/bin/python3
"""geometry_reference.py - tilted detectors and moved modules, against pyFAI; masks as fabio and h5py write them.

pyFAI (0.21.3) computes where the middles of a flat detector's pixels are in float64, as we do, and widens the range that it is asked
for by a factor of 1 + 2^-23: asked for that much less, its bins are ours, and every pixel must be in the same bin. Pixels on the
edge of two bins are counted and named. Corners of a detector that is not flat are float32 in pyFAI: there pixels on an edge
are given out as bad ones. All bins must agree to 1e-5.
"""

import json
import logging
import subprocess

import h5py
import numpy as np
from reference import case, check, equal, main, near, note, process, run, skip, write  # it finds harness, too
from harness import SLUICE  # noqa: E402

logging.disable(logging.WARNING)
from pyFAI.azimuthalIntegrator import AzimuthalIntegrator  # noqa: E402
from pyFAI.calibrant import get_calibrant  # noqa: E402
from pyFAI.detectors import Detector, NexusDetector  # noqa: E402

BOUND = 1e-5
EPS32 = 1 + np.finfo(np.float32).eps
HC = 12.398419843320026e-10
ENERGY_KEV, PIXEL_M = 12.4, 75e-6
SHAPE = (301, 407)
NONE, BBOX = ("no", "csr", "cython"), ("bbox", "csr", "cython")


def tilted(rot1=0.0, rot2=0.0, rot3=0.0, detector=None, distance=0.05):
    return AzimuthalIntegrator(dist=distance, poni1=0.004, poni2=0.021, rot1=np.radians(rot1), rot2=np.radians(rot2),
                               rot3=np.radians(rot3), detector=detector or Detector(PIXEL_M, PIXEL_M, max_shape=SHAPE),
                               wavelength=HC / ENERGY_KEV)


def write_poni(ai, path):
    path.unlink(missing_ok=True)
    ai.save(str(path))
    return str(path)


def exact_q(ai, shape, corners=None):
    """q of the pixels' middles, in double precision."""
    if corners is None:
        d1, d2 = np.meshgrid((np.arange(shape[0]) + 0.5) * PIXEL_M, (np.arange(shape[1]) + 0.5) * PIXEL_M, indexing="ij")
        d3 = np.zeros(shape)
    else:
        d3, d1, d2 = (corners[..., k].mean(axis=-1) for k in range(3))
    p = np.stack([(d1 - ai.poni1).ravel(), (d2 - ai.poni2).ravel(), (d3 + ai.dist).ravel()])
    t1, t2, t3 = ai.rotation_matrix() @ p
    return (4e-9 * np.pi / ai.wavelength * np.sin(np.arctan2(np.hypot(t1, t2), t3) / 2)).reshape(shape)


def undecided(ai, shape, low, high, bins, what, corners=None):
    """Pixels that float32 places put into another bin than they are in, and those next to an edge by that rounding."""
    exact = (exact_q(ai, shape, corners) - low) / (high - low) * bins
    theirs = (ai.center_array(shape, unit="q_nm^-1").astype(np.float64) - low) / (high - low) * bins
    near_edge = np.abs(exact - np.rint(exact)) < 2 * np.abs(exact - theirs) + (1e-6 if corners is not None else 1e-9) * bins
    other = np.floor(exact) != np.floor(theirs)
    named = ", ".join(f"({r}, {c})" for r, c in np.argwhere(other)[:3])
    note(f"{what}: {near_edge.sum()} of {near_edge.size} pixels are on the edge of two bins, of which pyFAI puts "
         f"{other.sum()} into the other one{': ' + named if named else ''}")
    check(corners is not None or not other.any(), f"pyFAI has {other.sum()} pixels in other bins")
    return near_edge | other


def images(ai, shape, seed, frames=2):
    rng = np.random.default_rng(seed)
    q = ai.center_array(shape, unit="q_nm^-1")
    return rng.poisson(200 * (1 + np.exp(-(((q % 5) - 2.5) / 0.3) ** 2)), (frames, *shape)).astype(np.uint16)


def compare(folder, ai, geometry, what, split, polarisation=0.0, solid_angle=True, corners=None, modules=None, bins=250):
    shape = ai.detector.shape
    q = ai.center_array(shape, unit="q_nm^-1")
    low, high = 0.0, float(q.max()) * 1.02
    data = images(ai, shape, 3)
    edges = np.zeros(shape, bool) if split else undecided(ai, shape, low, high, bins, what, corners)
    if corners is not None:
        data[:, edges] = 65535
    stack = data if modules is None else data.reshape(len(data), modules, shape[0] // modules, shape[1])
    options = {"bins": bins, "unit": "q_nm", "low": low, "high": high, "split": "bbox" if split else "none",
               "polarisation": polarisation, "solid_angle": solid_angle, "variance": "counts"}
    file = process(folder, stack, [{"integrate": options}], sections={"geometry": geometry}, pixel_size_m=PIXEL_M,
                   photon_energy_keV=ENERGY_KEV)
    worst = 0
    for image, (_, intensity, sigma) in zip(data, file.result("profile").astype(np.float64), strict=True):
        raw = np.where(image == 65535, 0, image).astype(np.float64)
        result = ai.integrate1d_ng(raw, bins, unit="q_nm^-1", mask=(image == 65535).astype(np.int8), variance=raw,
                                   correctSolidAngle=solid_angle, polarization_factor=polarisation or None,
                                   radial_range=(low, high / EPS32), method=BBOX if split else NONE)
        full = result.count >= (5 if split else 1)  # split: a few pixels in a corner are little but rounding
        check(full.sum() > bins // 5, "hardly a bin has pixels")
        worst = max(worst, near(intensity[full], result.intensity[full], BOUND, f"{what}: intensity"),
                    near(sigma[full], result.sigma[full], BOUND, f"{what}: sigma"))
    note(f"{what}: within {worst * BOUND:.1e}")


@case("tilts up to 45 degrees: no split and bounding boxes, solid angle and polarisation")
def _(folder):
    for k, (rot1, rot2, rot3) in enumerate(((10, 0, 0), (0, -20, 0), (45, 0, 30), (-30, 45, -120), (45, -45, 10))):
        ai = tilted(rot1, rot2, rot3)
        poni = write_poni(ai, folder / f"{k}.poni")
        for split in (False, True):
            compare(folder, ai, {"file": poni}, f"tilt {rot1}, {rot2}, {rot3}, split {split}", split,
                    polarisation=0.95 if k % 2 else 0)


def moved_detector(shifts):
    """Two modules of 150 x 200, one below the other, moved along rows, columns and the normal, as pyFAI's corners."""
    rows, columns = 300, 200
    y, x = np.meshgrid(np.arange(rows, dtype=np.float64), np.arange(columns, dtype=np.float64), indexing="ij")
    corners = np.zeros((rows, columns, 4, 3))
    for k, (dy, dx) in enumerate(((0, 0), (1, 0), (1, 1), (0, 1))):
        corners[:, :, k, 1], corners[:, :, k, 2] = (y + dy) * PIXEL_M, (x + dx) * PIXEL_M
    for module, (right, down, away) in enumerate(shifts):
        part = corners[module * 150:(module + 1) * 150]
        part += np.array([away, down, right])
    detector = NexusDetector()
    detector._pixel1 = detector._pixel2 = PIXEL_M
    detector.max_shape = detector.shape = (rows, columns)
    detector.IS_FLAT, detector.IS_CONTIGUOUS, detector.uniform_pixel = False, False, False
    detector.set_pixel_corners(corners.astype(np.float32))
    return detector, corners


@case("modules that are shifted, on a tilted detector")
def _(folder):
    shifts = ((0, 0, 0), (3.1e-4, 2.2e-4, 5e-4))
    detector, corners = moved_detector(shifts)
    flat = tilted(20, -15, 40, Detector(PIXEL_M, PIXEL_M, max_shape=(300, 200)))
    ai = tilted(20, -15, 40, detector)
    poni = write_poni(flat, folder / "moved.poni")
    geometry = {"file": poni, "modules": [{"module": 1, "right_m": shifts[1][0], "down_m": shifts[1][1], "away_m": shifts[1][2]}]}
    for split in (False, True):
        compare(folder, ai, geometry, f"moved modules, split {split}", split, solid_angle=False, corners=corners, modules=2)


@case("LaB6 made by pyFAI on a tilted detector: rings within 0.002 degrees")
def _(folder):
    shape = (1000, 1000)
    ai = AzimuthalIntegrator(dist=0.1, poni1=0.03, poni2=0.045, rot1=0.35, rot2=-0.2, rot3=0.5,
                             detector=Detector(PIXEL_M, PIXEL_M, max_shape=shape), wavelength=HC / ENERGY_KEV)
    calibrant = get_calibrant("LaB6")
    calibrant.set_wavelength(ai.wavelength)
    # Sampled at the middles of pixels; wide enough for a profile to have a place.
    tth = ai.twoThetaArray(shape)
    rings = [angle for angle in calibrant.get_2th() if tth.min() + 0.01 < angle < tth.max() - 0.01]
    width = np.radians(0.1)
    image = sum(30000 * np.exp(-((tth - angle) / width) ** 2 / 2) for angle in rings)
    poni = write_poni(ai, folder / "lab6.poni")
    bins, low, high = 4000, float(np.degrees(tth.min())), float(np.degrees(tth.max()))
    options = {"bins": bins, "unit": "tth_deg", "low": low, "high": high, "split": "bbox"}
    file = process(folder, np.rint(image).astype(np.uint16)[None], [{"integrate": options}],
                   sections={"geometry": {"file": poni}}, pixel_size_m=PIXEL_M, photon_energy_keV=ENERGY_KEV)
    angle, intensity, _ = file.result("profile")[0].astype(np.float64)
    off = []
    for ring in np.degrees(rings):
        if min(abs(ring - other) for other in np.degrees(rings) if other != ring) < 1:
            continue  # the flanks of another would move it
        inside = np.abs(angle - ring) < 0.3
        off.append((angle[inside] * intensity[inside]).sum() / intensity[inside].sum() - ring)
    check(len(off) >= 5, f"only {len(off)} rings")
    check(np.abs(off).max() < 0.002, f"a ring is off by {np.abs(off).max():.4f} degrees")
    note(f"LaB6: {len(off)} rings, the worst off by {np.abs(off).max():.5f} degrees")


@case("masks as h5py, numpy and fabio write them, of the image and of the modules")
def _(folder):
    try:
        from fabio.edfimage import edfimage
        from fabio.tifimage import tifimage
    except ImportError:
        skip("python3-fabio is not installed")
    rng = np.random.default_rng(5)
    data = rng.poisson(100, (1, 2, 60, 80)).astype(np.uint16)
    mask = (rng.random((120, 80)) < 0.1).astype(np.uint8)
    expected = None
    np.save(folder / "mask.npy", mask)
    np.save(folder / "bool.npy", mask.reshape(2, 60, 80).astype(bool))
    np.save(folder / "fortran.npy", np.asfortranarray(mask.astype(np.float32)))
    edfimage(data=mask).write(str(folder / "mask.edf"))
    edfimage(data=mask.astype(np.float32)).write(str(folder / "float.edf"))
    tifimage(data=mask).write(str(folder / "mask.tif"))
    tifimage(data=mask.astype(np.int32)).write(str(folder / "int.tif"))
    write(folder, "mask.h5", mask)
    with h5py.File(folder / "two.h5", "w") as file:
        file["a"], file["b/mask"] = mask * 0, mask.astype(np.uint32) << 31
    bad = data.copy()
    bad[0].reshape(120, 80)[mask != 0] = 65535
    stages = [{"integrate": {"bins": 50, "unit": "r_pixels", "solid_angle": False}}]
    expected = process(folder, bad, stages, distance_m=0.1).result("profile")
    for name in ("mask.npy", "bool.npy", "fortran.npy", "mask.edf", "float.edf", "mask.tif", "int.tif", "mask.h5", "two.h5:/b/mask"):
        file = process(folder, data, stages, sections={"geometry": {"mask": str(folder / name)}}, distance_m=0.1)
        near(file.result("profile")[0, 1], expected[0, 1], 1e-6, f"{name}: profile")


@case("dxtbx places the pixels of an NXmx file where we do, within 1e-6 m")
def _(folder):
    probe = subprocess.run(["/usr/bin/python3", "-c", "import dxtbx"], capture_output=True, check=False)
    if probe.returncode:
        skip("python3-dials (dxtbx) is not installed")
    for assembled in (False, True):
        path = folder / f"d{assembled}.yaml"
        output = folder / f"d{assembled}.nxs"
        path.write_text(json.dumps({
            "detector": {"kind": "eiger", "modules": 2, "frames": 1, "pool": 1, "distance_m": 0.12},
            "geometry": {"rot1": 0.3, "rot2": -0.2, "rot3": 0.4, "beam_row": 500.5,
                         "modules": [{"module": 1, "right_m": 5e-4, "away_m": 3e-4, "rot_away": 0.02, "rot_right": 0.01}]},
            "link": {"kind": "shm"}, "stages": ["copy"], "emulate": "local",
            "sinks": [{"nexus": {"path": str(output), "dataset": "raw", "image": "assembled" if assembled else "modules"}}]}))
        equal(run("run", path, folder=folder).process.returncode, 0, "exit status of sluice run")
        text = subprocess.run([SLUICE, "geometry", output, "--nexus"], capture_output=True, text=True, check=True).stdout
        ours = [block.splitlines() for block in text.split("/entry/instrument/detector/module_")[1:]]
        code = ("import sys, json\nfrom dxtbx.model.experiment_list import ExperimentListFactory\n"
                "e = ExperimentListFactory.from_filenames([sys.argv[1]])\n"
                "print('PANELS' + json.dumps([[p.get_origin(), p.get_fast_axis(), p.get_slow_axis(), p.get_pixel_size()] "
                "for p in e[0].detector]))\n")
        done = subprocess.run(["/usr/bin/python3", "-c", code, output], capture_output=True, text=True, check=False)
        check("PANELS" in done.stdout, f"dxtbx cannot read the file: {done.stderr[-800:]}")
        panels = json.loads(done.stdout.split("PANELS")[1])
        equal(len(panels), len(ours), "panels")
        rng, worst = np.random.default_rng(1), 0.0
        for lines, (origin, fast, slow, size) in zip(ours, panels, strict=True):
            numbers = [np.array([float(word) for word in line.split()[-4:-1]]) for line in lines[3:6]]
            for u, v in rng.uniform(0, 256, (1000 // len(ours) + 1, 2)):
                mine = numbers[0] + u * numbers[1] + v * numbers[2]
                theirs = np.array(origin) + u * size[0] * np.array(fast) + v * size[1] * np.array(slow)  # mm; x and z turned
                worst = max(worst, np.abs(mine * [-1, 1, -1] - theirs * 1e-3).max())
        check(worst < 1e-6, f"a pixel is off by {worst:.3g} m")
        note(f"dxtbx, assembled {assembled}: {len(panels)} panels, the worst pixel off by {worst:.1e} m")


main()
