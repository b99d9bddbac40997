#!/usr/bin/python3
"""detectors_test.py - the detectors of the examples, in small: run, looked at, and compared with their truth."""
# normal build only

import struct
import zlib

import h5py
import numpy as np

from harness import (RECEIVER, ROOT, SOURCE, case, check, closes, equal, main, read_summary, run, run_fails, sink, skip)

# What makes it small, frames that must then be there, and the size of the detector's image.
EXAMPLES = {
    "jungfrau-4m": (["detector.frames=29", "detector.dark_frames=6", "detector.pool=5"], 35, (2164, 2068)),
    "jungfrau-16m": (["detector.frames=4", "detector.dark_frames=4"], 8, (4432, 4215)),
    "eiger": (["detector.frames=20", "detector.pool=7"], 20, (1065, 1030)),
    "camera": (["detector.frames=300"], 300, (512, 512)),
}


def sets(*values):
    return [word for value in values for word in ("--set", value)]


def run_example(folder, name, *options, path=None):
    """The example in small, over UDP on this test's own addresses."""
    program = run("run", path or ROOT / f"examples/{name}.yaml", *sets(
        *EXAMPLES[name][0], f"link.listen={RECEIVER}", f"link.source={SOURCE}"), "--summary", folder / "summary.json",
        *options, folder=folder)
    equal(program.process.returncode, 0, f"exit status of {name}")
    return read_summary(folder)


def read_png(path):
    """Rows of palette indices, by nothing but the standard: enough for what we write."""
    data = path.read_bytes()
    equal(data[:8], b"\x89PNG\r\n\x1a\n", "how a PNG file begins")
    at, parts, palette = 8, b"", b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        equal(zlib.crc32(kind + body), struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0], f"CRC of {kind}")
        if kind == b"IHDR":
            columns, rows, depth, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"PLTE":
            palette = np.frombuffer(body, np.uint8).reshape(-1, 3)
        elif kind == b"IDAT":
            parts += body
        at += 12 + length
    equal((depth, colour), (8, 3), "depth and kind of colour")
    lines = np.frombuffer(zlib.decompress(parts), np.uint8).reshape(rows, columns + 1)
    check((lines[:, 0] == 0).all(), "a filter that this test does not know")
    return lines[:, 1:], palette


def asics(file):
    """Each of the parts that NXmx tells of: where it lies in pixels from the beam, down and right; its pixels."""
    detector = file["entry/instrument/detector"]
    data = file["entry/data/data"][0]
    for name in sorted(key for key in detector if key.startswith("module_")):
        module = detector[name]
        (row, column), (rows, columns) = module["data_origin"][()], module["data_size"][()]
        equal(list(module["fast_pixel_direction"].attrs["vector"]), [-1, 0, 0], f"the way along a row of {name}")
        # NeXus has x to the left and y up.
        right, down, _ = -module["module_offset"].attrs["offset"] / detector["x_pixel_size"][()]
        yield down, right, data[row:row + rows, column:column + columns]


@case("jungfrau-4m: hits are those of the truth, spots are where it says, in one image with gaps")
def _(folder):
    summary = run_example(folder, "jungfrau-4m", "--truth", folder / "truth.h5")
    equal(summary["result"], "intact", "result")
    closes(summary, 35 * 8)
    equal(sink(summary, "verify")["frames_compared"], 35, "frames compared")
    with h5py.File(folder / "truth.h5") as file, h5py.File(folder / "jungfrau-4m.nxs") as stored:
        truth = {key: file["truth"][key][()] for key in ("frame_number", "dark", "hit", "count", "first_row")}
        table = {key: column[()] for key, column in file["truth/table"].items()}
        equal(file["truth/table/resolution"].attrs["units"], "angstrom", "unit of a resolution")
        number, images = stored["entry/data/frame_number"][()], stored["entry/data/data"]
        mask = stored["entry/instrument/detector/pixel_mask"][()]
        equal(images.shape[1:], EXAMPLES["jungfrau-4m"][2], "size of the image")
        equal(number.tolist(), truth["frame_number"][truth["hit"] == 1].tolist(), "the frames that were kept")
        dark = [k for k in range(35) if k < 6 or (k - 6) % 10 == 9]
        equal(np.flatnonzero(truth["dark"]).tolist(), dark, "dark frames: the first, and the chopper's")
        for k, image in zip(np.flatnonzero(truth["hit"]), images):
            rows = slice(int(truth["first_row"][k]), int(truth["first_row"][k] + truth["count"][k]))
            spots = np.stack([table["row"][rows], table["column"][rows]]).astype(int)
            check(not (mask[tuple(spots)] & 1).any(), "a spot in a gap")
            good = (mask[tuple(spots)] == 0)
            seen = image[tuple(spots)][good]
            # A seventeenth or more of its photons are in a spot's middle pixel; some are only 15 there.
            check((seen >= table["photons"][rows][good] / 30 - 4).all(), f"frame {k} has no light where spots are")
        check((np.array(images[0])[(mask & 1) == 1] == -32768).all(), "gaps are not marked")


@case("jungfrau-16m: every pixel of the assembled image is the module's, by the geometry in the file")
def _(folder):
    free = next(line for line in open("/proc/meminfo", encoding="ascii") if line.startswith("MemAvailable"))
    if int(free.split()[1]) < 8 << 20:
        skip("less than 8 GiB of memory are free")
    text = (ROOT / "examples/jungfrau-16m.yaml").read_text()
    line = "  - nexus: {path: jungfrau-16m.nxs, overwrite: true, image: assembled}\n"
    check(line in text, "the example has changed")
    path = folder / "both.yaml"
    path.write_text(text.replace(line, line + line.replace("16m.nxs", "modules.nxs").replace(", image: assembled", "")))
    summary = run_example(folder, "jungfrau-16m", path=path)
    closes(summary, 8 * 32)
    with h5py.File(folder / "jungfrau-16m.nxs") as stored:
        image, numbers = stored["entry/data/data"][0], stored["entry/data/frame_number"][()]
        mask = stored["entry/instrument/detector/pixel_mask"][()]
        beam = [stored[f"entry/instrument/detector/beam_center_{axis}"][()] for axis in "yx"]
    equal((image.shape, len(numbers)), (EXAMPLES["jungfrau-16m"][2], 2), "size, and hits of four frames")
    seen = np.zeros(image.shape, bool)
    with h5py.File(folder / "jungfrau-modules.nxs") as stored:
        for down, right, pixels in asics(stored):
            row, column = int(round(beam[0] + down)), int(round(beam[1] + right))
            place = (slice(row, row + 256), slice(column, column + 256))
            check((image[place] == pixels).all(), f"the ASIC at {row}, {column} is another")
            check(not seen[place].any(), f"the ASIC at {row}, {column} lies on another")
            seen[place] = True
    equal(int(seen.sum()), 32 * 512 * 1024, "pixels of all ASICs")
    # What no ASIC covers is a gap, or the other part of a wide pixel at its edge: of its value.
    check(((mask[~seen] & 1) ^ (mask[~seen] >> 31) == 1).all() and not (mask[seen] & 1).any(), "gaps in the mask")
    for axis in (0, 1):
        for step in (1, -1):
            wide = ~seen & np.roll(seen, step, axis) & (mask & 1 == 0)
            check((image[wide] == np.roll(image, step, axis)[wide]).all(), "parts of wide pixels differ")


@case("storage cells: every frame is corrected with the pedestals of its own")
def _(folder):
    path = folder / "cells.yaml"
    path.write_text("detector: {kind: jungfrau, storage_cells: 4, pool: 4, background_photons: 0, hit_fraction: 0, "
                    "dark_frames: 16, dark_every: 7, frames: 21}\nring: {slots: 15}\nemulate: local\n"
                    "stages: [correct: {output: kev_f32}]\nsinks: [nexus: {path: cells.nxs}, verify: {}]\n"
                    f"link: {{listen: {RECEIVER}, source: {SOURCE}}}\n")
    equal(run("run", path, folder=folder).process.returncode, 0, "exit status")
    with h5py.File(folder / "cells.nxs") as stored:
        images = stored["entry/data/data"][()]
    equal(len(images), 18, "bright frames")
    # A pedestal of another cell is off by 60 ADU or so: 1.5 keV. The means of half a million pixels are far better.
    means = np.nanmean(images.reshape(18, -1), axis=1)
    check(np.abs(means).max() < 0.05, f"means of empty frames, keV: {means}")


@case("eiger and camera: intact, every pixel compared, all frames stored")
def _(folder):
    for name in ("eiger", "camera"):
        summary = run_example(folder, name)
        _, frames, shape = EXAMPLES[name]
        equal(summary["result"], "intact", f"result of {name}")
        equal(sink(summary, "verify")["frames_compared"], frames, f"frames compared of {name}")
        with h5py.File(folder / f"{name}.nxs") as stored:
            equal(stored["entry/data/data"].shape, (frames, *shape), f"images of {name}")


@case("sluice show draws each of them, in the size of its image, with gaps in a colour of their own")
def _(folder):
    for name, (small, _, shape) in EXAMPLES.items():
        program = run("show", ROOT / f"examples/{name}.yaml", *sets(*small), "--output", f"{name}.png", folder=folder)
        if "libpng-dev was not found" in program.err():
            skip("built without libpng")
        equal(program.process.returncode, 0, f"exit status for {name}")
        pixels, palette = read_png(folder / f"{name}.png")
        equal((pixels.shape, len(palette)), (shape, 256), f"size of {name}, and its colours")
        gaps = (pixels == 0).mean()
        check(gaps < 0.15 and (name == "camera") == (gaps == 0), f"{gaps} of {name} is gaps")
        check(np.bincount(pixels[pixels > 0].ravel(), minlength=256).max() < 0.9 * pixels.size, f"{name} is empty")


@case("sluice show: exact pixels of a plain detector, modules one below the other, dark frames, a run's file")
def _(folder):
    path = folder / "small.yaml"
    path.write_text("detector: {kind: pattern, modules: 2, rows: 16, columns: 24, bits: 8, frames: 4}\n"
                    "sinks: [nexus: {path: run.nxs, dataset: raw}, verify: {}]\nemulate: local\n"
                    f"link: {{listen: {RECEIVER}, source: {SOURCE}}}\n")
    plain = ("--scale", "linear", "--colours", "grey", "--low", "0", "--high", "100")
    equal(run("run", path, folder=folder).process.returncode, 0, "exit status of the run")
    with h5py.File(folder / "run.nxs") as file:
        stored = file["entry/data/data"][()].astype(float)
    low, high = stored[3].min(), stored[3].max()
    wanted = (1.5 + (stored[3] - low) / (high - low) * 254).astype(int)
    for source, options in ((path, ("--frame", "3")), (folder / "run.nxs", ("--frame", "3")), (path, ("--frame", "3", "--modules"))):
        program = run("show", source, *plain, *options, "--output", "out.png", folder=folder)
        if "libpng-dev was not found" in program.err():
            skip("built without libpng")
        pixels, _ = read_png(folder / "out.png")
        equal(pixels.shape, (32, 24), "size")
        check(np.abs(pixels.astype(int) - wanted).max() <= 1, f"other pixels from {source.name}")
    run("show", path, "--frame", "3", "--dark", "--output", "dark.png", *plain, folder=folder)
    check((read_png(folder / "dark.png")[0] != pixels).any(), "a dark frame is as a bright one")


@case("sluice show and sluice truth say what is wrong")
def _(folder):
    path = folder / "small.yaml"
    path.write_text("detector: {kind: pattern, frames: 4}\nsinks: ['null']\n")
    for words, arguments in {
            "takes a number": ("show", path, "--frame", "x"),
            "no such file": ("show", folder / "nothing.yaml"),
            "takes one experiment": ("show",),
            "Not a directory": ("show", path, "--output", path / "x.png"),
            "which experiment": ("truth",),
            "is a directory": ("truth", path, "--output", folder)}.items():
        program = run_fails(*arguments, folder=folder)
        check(words.lower() in program.err().lower(), f"{arguments} does not say '{words}' but {program.err()!r}")
    program = run("truth", path, "--output", folder / "truth.h5", folder=folder)
    equal(program.process.returncode, 0, "exit status of truth")
    with h5py.File(folder / "truth.h5") as file:
        equal((file["truth/frame_number"][()].tolist(), file["truth/count"][()].tolist()), ([0, 1, 2, 3], [0] * 4),
              "frames and counts of a detector that knows nothing")
    program = run_fails("show", folder / "truth.h5", folder=folder)
    check("has no images" in program.err(), program.err())


@case("sluice list detectors tells options and data rate of each")
def _(folder):
    text = run("list", "detectors", folder=folder).out()
    for name, rate in {"jungfrau": 2097, "eiger": 786, "camera": 1311}.items():
        part = text.split(f"detector   {name} ", 1)[1].split("  detector ", 1)[0]
        check(f"{rate} MB/s" in part and "takes" in part, f"of {name} it says: {part[:200]}")


main()
