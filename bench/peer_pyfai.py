#!/usr/bin/python3
"""peer_pyfai.py FOLDER - what one would otherwise process images with: numpy and pyFAI, on the frames that `sluice bench stage`
left in FOLDER.

One process for all rounds. Each line that it reads, "MODE SIZE SECONDS", is one measurement; it answers with one line of JSON:
GB/s of raw pixels, and what it computed, so that both sides can be seen to have done the same work. What cannot be done here
is answered with {"why": "..."}.
"""

import json
import os
import pathlib
import sys
import time

os.environ.setdefault("PYOPENCL_CTX", "0")


class Cannot(Exception):
    """The text says why."""


class Scene:
    """The frames of one size."""

    def __init__(self, folder, size):
        self.folder, self.size = folder, size
        self.about = json.loads((folder / f"{size}-about.json").read_text())
        self.shape = self.about["rows"], self.about["columns"]
        pixels = self.about["pixels"]
        self.raw = np.memmap(folder / f"{size}-raw.u16", np.uint16, "r", shape=(self.about["frames"], pixels))
        self.image = np.fromfile(folder / f"{size}-image.i16", np.int16).reshape(-1, *self.shape)
        tables = folder / f"{size}-tables"
        self.pedestal, self.gain = np.fromfile(tables, np.float32, 6 * pixels).reshape(2, 3, pixels)
        self.mask = np.fromfile(tables, np.uint8, pixels, offset=24 * pixels)
        self.frame_bytes = 2 * pixels


def check(image):
    """Sum of pixel * (2 * index + 1), modulo 2^32."""
    pixels = image.reshape(-1).view(np.uint16).astype(np.uint64)
    return int((pixels * (2 * np.arange(pixels.size, dtype=np.uint64) + 1)).sum() % 2**32)


# ---- the modes: each prepares itself once, and is then a function of an image's number ----

class Correct:
    def __init__(self, scene):
        self.correction = Correction(self.pedestals(scene), scene.gain, scene.about["photon_energy_keV"], scene.mask)
        # Few, but larger than caches, as frames that have just arrived are.
        self.frames = np.array(scene.raw[:16])

    @staticmethod
    def pedestals(scene):
        return list(scene.pedestal)

    def __call__(self, i):
        return self.correction.photons(self.frames[i % len(self.frames)])

    @staticmethod
    def about(result):
        return {"check": check(result)}


MODES = {"numpy": Correct}


# ---- measurements ----

def measure(work, scene, seconds):
    """At least two frames after one that is not counted."""
    first = work(0)
    frames, start = 0, time.perf_counter()
    while True:
        work(frames)
        frames += 1
        took = time.perf_counter() - start
        if took >= seconds and frames >= 2:
            break
    return {"GB_per_s": frames * scene.frame_bytes / took * 1e-9, "ms_per_frame": 1e3 * took / frames, "lost": 0,
            "bytes": frames * scene.frame_bytes, "frame_bytes": scene.frame_bytes, **work.about(first)}


def answer(folder, prepared, mode, size, seconds):
    if ("scene", size) not in prepared:
        prepared["scene", size] = Scene(folder, size)
    scene = prepared["scene", size]
    if (mode, size) not in prepared:
        prepared[mode, size] = MODES[mode](scene)
    return measure(prepared[mode, size], scene, float(seconds))


def main():
    folder, prepared = pathlib.Path(sys.argv[1]), {}
    for line in sys.stdin:
        try:
            said = answer(folder, prepared, *line.split())
        except Exception as why:  # pylint: disable=broad-except  # whatever it is, the other rows go on
            said = {"why": f"{type(why).__name__}: {why}".replace('"', "'").replace("\n", " ")[:180]}
        print(json.dumps(said), flush=True)


try:
    import numpy as np
    from peer_numpy import Correction
except ImportError as missing:
    for _ in sys.stdin:
        print(json.dumps({"why": str(missing)}), flush=True)
    sys.exit(0)

if __name__ == "__main__":
    main()
