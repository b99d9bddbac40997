#!/usr/bin/python3
"""peer_pyfai.py FOLDER - what one would otherwise process images with: numpy and pyFAI, on the frames that `sluice bench stage`
left in FOLDER.

One process for all rounds. Each line that it reads, "MODE SIZE SECONDS FILE", is one measurement; it answers with one line of JSON:
GB/s of raw pixels, and what it computed, so that both sides can be seen to have done the same work. What cannot be done here
is answered with {"why": "..."}.
"""

import json
import os
import pathlib
import sys
import time

os.environ.setdefault("PYOPENCL_CTX", "0")


HC_KEV_M = 12.398419843320026e-10


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


class Integrate:
    """integrate1d as one calls it, with errors; what does not change between frames is kept by pyFAI itself."""

    def __init__(self, scene, split, algorithm, implementation):
        about = scene.about
        self.ai, self.scene = integrator(scene), scene
        self.method = split, algorithm, implementation
        if implementation == "opencl":
            self.method = opencl_method(*self.method)
        # pyFAI widens a range by this much, so that its end is inside.
        high = about["high_q_nm"] / (1 + np.finfo(np.float32).eps)
        self.options = {"npt": about["bins"], "unit": "q_nm^-1", "radial_range": (0, high),
                        "mask": scene.mask.reshape(scene.shape).astype(np.int8), "safe": False}

    def __call__(self, i):
        image = self.scene.image[i % len(self.scene.image)]
        return self.ai.integrate1d_ng(image, method=self.method, error_model="poisson", **self.options)

    def about(self, result):
        """Intensities are those that were timed. pyFAI's own Poisson variance is 1 for a pixel that counted nothing, ours is 0:
        so sigma is compared when both are told the variance."""
        first = self.scene.image[0]
        told = self.ai.integrate1d_ng(first, method=self.method, variance=first.astype(np.float32), **self.options)
        np.stack([result.radial, result.intensity, told.sigma]).astype(np.float32).tofile(self.file)
        return {}


class Finder:
    """pyFAI's kernels for peaks, set up as its own programs do (pyFAI.app.sparsify, pyFAI.app.peakfinder)."""

    def __init__(self, scene, bins, **options):
        from pyFAI.opencl.peak_finder import OCL_PeakFinder
        from pyFAI.units import to_unit
        ai, self.scene, mask = integrator(scene), scene, scene.mask.reshape(scene.shape).astype(np.int8)
        unit = to_unit("r_mm")
        csr = ai.setup_CSR(scene.shape, bins, mask=mask, unit=unit, split="no", scale=False)
        self.options = {"safe": False, "error_model": "poisson", "cycle": 5, "noise": 1, **options}
        self.finder = OCL_PeakFinder(csr.lut, image_size=scene.about["pixels"], unit=unit, bin_centers=csr.bin_centers,
                                     radius=ai._cached_array["r_center"], mask=mask, ctx=opencl_context())

    def image(self, i):
        return self.scene.image[i % len(self.scene.image)]


class Sparsify(Finder):
    def __init__(self, scene):
        super().__init__(scene, 800, cutoff_clip=0, cutoff_pick=3)

    def __call__(self, i):
        return self.finder.sparsify(self.image(i), **self.options)

    @staticmethod
    def about(result):
        return {"picked": int(result.intensity.size)}


class Peaks(Finder):
    """The usual settings of a peakfinder8: five sigma, at least two pixels."""

    def __init__(self, scene):
        super().__init__(scene, 800, cutoff_clip=0, cutoff_pick=5, patch_size=5, connected=2)

    def __call__(self, i):
        return self.finder.peakfinder8(self.image(i), **self.options)

    def about(self, result):
        planted = np.array(self.scene.about["peaks"])
        found = np.stack([result["pos0"], result["pos1"]], 1) + 0.5
        near = [len(found) and np.hypot(*(found - peak).T).min() < 1 for peak in planted]
        return {"planted": len(planted), "found": int(np.sum(near))}


def integrator(scene):
    from pyFAI.azimuthalIntegrator import AzimuthalIntegrator
    from pyFAI.detectors import Detector
    about = scene.about
    size = about["pixel_size_m"]
    return AzimuthalIntegrator(dist=about["distance_m"], poni1=about["beam_row"] * size, poni2=about["beam_column"] * size,
                               detector=Detector(size, size, max_shape=scene.shape),
                               wavelength=HC_KEV_M / about["photon_energy_keV"])


def opencl_device():
    """(platform, device) of a CPU: what is compared is what a processor does."""
    from pyFAI.opencl import ocl
    device = ocl.select_device("CPU") if ocl else None
    if device is None:
        raise Cannot("no OpenCL for this CPU (pocl-opencl-icd, python3-pyopencl)")
    return tuple(device)


def opencl_context():
    from pyFAI.opencl import ocl
    platform, device = opencl_device()
    return ocl.create_context(platformid=platform, deviceid=device)


def opencl_method(split, algorithm, implementation):
    from pyFAI.method_registry import IntegrationMethod
    methods = IntegrationMethod.select_method(1, split=split, algo=algorithm, impl=implementation, target=opencl_device())
    if not methods:
        raise Cannot(f"this pyFAI has no {algorithm} with OpenCL")
    return methods[0]


def integrate(split, algorithm, implementation):
    return lambda scene: Integrate(scene, split, algorithm, implementation)


MODES = {"numpy": Correct,
         "csr-cython": integrate("no", "csr", "cython"),
         "pocl": integrate("no", "csr", "opencl"),
         "histogram": integrate("no", "histogram", "cython"),
         "csr-cython-bbox": integrate("bbox", "csr", "cython"),
         "pocl-bbox": integrate("bbox", "csr", "opencl"),
         "sparsify": Sparsify,
         "peakfinder": Peaks}


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


def answer(folder, prepared, mode, size, seconds, file):
    if ("scene", size) not in prepared:
        prepared["scene", size] = Scene(folder, size)
    scene = prepared["scene", size]
    if (mode, size) not in prepared:
        prepared[mode, size] = MODES[mode](scene)
        prepared[mode, size].file = file
    return measure(prepared[mode, size], scene, float(seconds))


def main():
    folder, prepared = pathlib.Path(sys.argv[1]), {}
    for line in sys.stdin:
        try:
            said = answer(folder, prepared, *line.split())
        except (Cannot, ImportError) as why:
            said = {"why": str(why).replace('"', "'")}
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
