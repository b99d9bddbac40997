#!/usr/bin/python3
"""lab6.py - rings of lanthanum hexaboride on a tilted detector, as lab6.h5, with its geometry as pyFAI and CrystFEL write it:
lab6.poni and lab6.geom. Needs numpy and h5py alone; docs/how-to/geometry.md uses it.
"""

import h5py
import numpy as np

ROWS, COLUMNS, PIXEL_M = 1000, 1000, 75e-6
WAVELENGTH_A, CELL_A = 0.9998725680096795, 4.156826  # 12.4 keV; NIST's SRM 660b
DISTANCE, PONI1, PONI2, ROT1, ROT2, ROT3 = 0.1, 0.03, 0.045, 0.35, -0.2, 0.5


def rotation():
    """From rows, columns and normal of the detector to down, right and along the beam: pyFAI's."""
    (c1, c2, c3), (s1, s2, s3) = np.cos((ROT1, ROT2, ROT3)), np.sin((ROT1, ROT2, ROT3))
    return np.array([[c2 * c3, c3 * s1 * s2 - c1 * s3, -(c1 * c3 * s2 + s1 * s3)],
                     [c2 * s3, c1 * c3 + s1 * s2 * s3, c3 * s1 - c1 * s2 * s3],
                     [s2, -c2 * s1, c1 * c2]])


def image():
    row, column = np.meshgrid(np.arange(ROWS) + 0.5, np.arange(COLUMNS) + 0.5, indexing="ij")
    place = np.stack([row * PIXEL_M - PONI1, column * PIXEL_M - PONI2, np.full_like(row, DISTANCE)])
    down, right, along = np.tensordot(rotation(), place, 1)
    angle = np.degrees(np.arctan2(np.hypot(down, right), along))
    lines = {h * h + k * k + l * l for h in range(8) for k in range(8) for l in range(8)} - {0}
    expected = np.full(angle.shape, 20.0)
    for line in lines:
        sine = WAVELENGTH_A * np.sqrt(line) / CELL_A / 2
        if sine < 0.9:
            expected += 2000 * np.exp(-((angle - 2 * np.degrees(np.arcsin(sine))) / 0.06) ** 2 / 2)
    return np.random.default_rng(1).poisson(expected).astype(np.uint16)


def geom():
    """CrystFEL's x and y point to the left and up."""
    turn = rotation()
    fs, ss = (-turn[1, 1], -turn[0, 1], turn[2, 1]), (-turn[1, 0], -turn[0, 0], turn[2, 0])
    corner = turn @ (-PONI1, -PONI2, DISTANCE)
    return ("; one panel, tilted\n" f"wavelength = {WAVELENGTH_A} A\nclen = {corner[2]:.12f} m\nres = {1 / PIXEL_M:.9f}\n"
            "data = /entry/data/data\ndim0 = %\ndim1 = ss\ndim2 = fs\n"
            f"p/min_fs = 0\np/max_fs = {COLUMNS - 1}\np/min_ss = 0\np/max_ss = {ROWS - 1}\n"
            f"p/corner_x = {-corner[1] / PIXEL_M:.9f}\np/corner_y = {-corner[0] / PIXEL_M:.9f}\n"
            + "".join(f"p/{name} = {x:+.12f}x {y:+.12f}y {z:+.12f}z\n" for name, (x, y, z) in (("fs", fs), ("ss", ss))))


def main():
    with h5py.File("lab6.h5", "w") as file:
        file["entry/data/data"] = image()[None]
    with open("lab6.poni", "w") as file:
        file.write(f"poni_version: 2\nDetector: Detector\nDetector_config: {{\"pixel1\": {PIXEL_M}, \"pixel2\": {PIXEL_M}}}\n"
                   f"Distance: {DISTANCE}\nPoni1: {PONI1}\nPoni2: {PONI2}\nRot1: {ROT1}\nRot2: {ROT2}\nRot3: {ROT3}\n"
                   f"Wavelength: {WAVELENGTH_A}e-10\n")
    with open("lab6.geom", "w") as file:
        file.write(geom())


main()
