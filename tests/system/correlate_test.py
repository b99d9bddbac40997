#!/usr/bin/python3
"""correlate_test.py - photon correlation from the emulator to the file: the known correlation of `speckle`, every sum beside the
plainest program in numpy, frames that are lost on the way, labels of a file, a device."""
# normal build only

import h5py
import numpy as np

from harness import ROOT, acquire, case, check, equal, fewer, main, read_summary, run, run_fails

LEVELS, CHANNELS = 4, 8


def pairs_of(images, present, region, level, channel):
    """(products, left, right, pairs) of the pixels of a region; images by frame number, present[t]: it is there."""
    x = images[:, region].astype(object) if images.max(initial=0) > 1 << 20 else images[:, region].astype(np.int64)
    for _ in range(level):
        n = len(x) // 2
        x, present = x[0:2 * n:2] + x[1:2 * n:2], present[0:2 * n:2] & present[1:2 * n:2]
    later, earlier = x[channel:], x[:len(x) - channel]
    both = present[channel:] & present[:len(x) - channel]
    return ((later[both] * earlier[both]).sum(), earlier[both].sum(), later[both].sum(), int(both.sum()) * region.sum())


def compare(file, region_of):
    """g2 and its parts, of the images that are in the same file. region_of: [rows, columns], -1: in none."""
    group = file["entry/correlation"]
    number = file["entry/data/frame_number"][()]
    images = np.zeros((int(number.max()) + 1, region_of.size), np.int64)
    present = np.zeros(len(images), bool)
    images[number] = file["entry/data/data"][()].reshape(len(number), -1)
    present[number] = True
    have = {name: group[name][()] for name in ("g2", "numerator", "left", "right", "pairs", "lag")}
    equal(have["g2"].shape, (region_of.max() + 1, CHANNELS + (LEVELS - 1) * CHANNELS // 2), "shape of g2")
    for r in range(region_of.max() + 1):
        lag = 0
        for level in range(LEVELS):
            for channel in range(CHANNELS // 2 if level else 0, CHANNELS):
                products, left, right, pairs = pairs_of(images, present, region_of.ravel() == r, level, channel)
                what = f"region {r}, lag {channel << level}"
                equal(have["lag"][lag], channel << level, f"{what}: lag")
                equal(int(have["pairs"][r, lag]), int(pairs), f"{what}: pairs")
                unit = pairs << level
                check(pairs > 0, f"{what} has no pair: the test is too small")
                for name, want in (("left", left / unit), ("right", right / unit), ("numerator", products / (unit << level)),
                                   ("g2", products * float(pairs) / (float(left) * float(right)))):
                    check(abs(have[name][r, lag] - want) <= 1e-13 * abs(want), f"{what}: {name} {have[name][r, lag]} and not {want}")
                lag += 1


def speckle(folder, stage, frames=300, more=None, **detector):
    more = dict(more or {})
    program, summary = acquire(
        folder, detector={"kind": "speckle", "modules": 2, "rows": 12, "columns": 16, "frames": frames, "correlation_frames": 5, **detector},
        link=more.pop("link", {"kind": "shm"}), stages=[{"correlate": {"levels": LEVELS, "channels": CHANNELS, **stage}}],
        sinks=[{"nexus": {"path": str(folder / "run.nxs"), "overwrite": True, "dataset": "raw"}}], **more)
    return program, summary, h5py.File(folder / "run.nxs")


@case("the example: g2 of every ring is the known one, rows come in time, the file plots it")
def _(folder):
    sets = ["--set", "link.kind=shm", "--set", f"detector.frames={fewer(3000, 1500)}", "--set", "stages.correlate.every=1000",
            "--set", f"sinks.nexus.path={folder}/xpcs.nxs"]
    run("run", ROOT / "examples/xpcs.yaml", *sets, "--summary", folder / "summary.json", folder=folder).ends(0)
    figures = read_summary(folder)["unit"]["figures"]
    equal(figures["correlated_frames"], fewer(3000, 1500), "frames that count")
    equal(figures["correlate_rows"], fewer(3, 1), "rows")
    with h5py.File(folder / "xpcs.nxs") as file:
        entry, group = file["entry"], file["entry/correlation"]
        equal((entry.attrs["default"], group.attrs["signal"], list(group.attrs["axes"])), ("correlation", "g2", ["q", "tau"]), "the plot")
        equal((group["q"].attrs["units"], group["tau"].attrs["units"]), ("1/nm", "s"), "units")
        q, tau, g2, pixels = (group[name][()] for name in ("q", "tau", "g2", "pixels"))
        equal(file["entry/results/correlation"].shape, (fewer(3, 1), *g2.shape), "rows in the file")
        if fewer(3000, 1500) % 1000 == 0:
            check(np.array_equal(file["entry/results/correlation"][-1], g2, equal_nan=True), "the last row is that of the whole run")
    # Distance in pixels, and the time at a quarter of the image's height: 32 pixels.
    pixel = np.tan(2 * np.arcsin(q * 0.1549802 / 4 / np.pi)) * 5 / 75e-6
    time_s = 20 / 2000 * (32 / pixel) ** 2
    for r in range(1, len(q)):
        wanted = 1 + 7 / 8 * np.exp(-tau[1:16] / time_s[r])
        worst = np.abs(g2[r, 1:16] - wanted).max()
        check(worst < 0.05, f"ring {r} of {pixels[r]} pixels: g2 is {worst:.3f} from the known one")


@case("every sum of the image, of labels and of pixels is that of numpy")
def _(folder):
    label = np.zeros((24, 16), np.uint16)
    label[3:11, 2:9], label[14:, 5:] = 7, 30000
    np.save(folder / "labels.npy", label)
    _, _, file = speckle(folder, {})
    compare(file, np.zeros((24, 16), int))
    file.close()
    _, _, file = speckle(folder, {"regions": "labels", "labels": str(folder / "labels.npy")}, more={"unit": {"workers": 2, "batch": 5}})
    equal(list(file["entry/correlation/region"][()]), [7, 30000], "labels")
    compare(file, np.where(label == 7, 0, np.where(label == 30000, 1, -1)))
    file.close()
    _, _, file = speckle(folder, {"regions": "pixels"}, frames=120, rows=3, columns=4)
    compare(file, np.arange(24).reshape(6, 4))
    file.close()


@case("frames that are lost, and dark ones, leave gaps and shift nothing")
def _(folder):
    _, summary, file = speckle(folder, {}, frames=400, dark_frames=16, dark_every=23,
                               more={"frontend": {"skip": 0.05, "fault_seed": 4}, "link": {"kind": "udp", "listen": "127.0.0.1", "port": 14793}})
    figures = summary["unit"]["figures"]
    stored = len(file["entry/data/frame_number"])
    check(stored < 400, "no frame was lost: the test shows nothing")
    equal(figures["correlated_frames"], stored, "frames that count")
    check(figures["correlate_frames_absent"] > 0, f"{figures}")
    compare(file, np.zeros((24, 16), int))
    file.close()


@case("a device has the sums of the CPU; nonsense is refused")
def _(folder):
    stage = {"regions": "rings", "rings": 4, "unit": "r_pixels", "every": 100}
    _, _, file = speckle(folder, stage)
    cpu = {name: file[f"entry/correlation/{name}"][()] for name in file["entry/correlation"]}
    file.close()
    if "not usable here" not in run("list", "opencl", folder=folder).out():
        _, summary, file = speckle(folder, stage, more={"unit": {"kind": "opencl", "batch": 8}})
        equal(summary["unit"]["figures"]["correlated_frames"], 300, "frames that count")
        for name, want in cpu.items():
            check(np.array_equal(file[f"entry/correlation/{name}"][()], want, equal_nan=True), f"{name} of the device")
        equal(len(file["entry/results/correlation"]), 3, "rows")
        file.close()
    run_fails("run", ROOT / "examples/xpcs.yaml", "--set", "stages.correlate.channels=20", folder=folder, says=("channels", "multiple of 8"))
    run_fails("run", ROOT / "examples/xpcs.yaml", "--set", "stages.correlate.labels=none.npy", folder=folder, says=("labels", "go together"))


main()
