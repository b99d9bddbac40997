#!/usr/bin/python3
"""look.py FILE.nxs - what a run left in its file, in a few lines, and the brightest kept frame as FILE.png, with its peaks.

Also an example of reading the file: everything is found with h5py and plain paths. docs and names are in the file, too
(the attribute long_name of each column of /entry/sluice/frames).
"""

import pathlib
import struct
import sys
import zlib

import h5py
import numpy as np

WIDTH = 1024  # of the picture, at most
CIRCLE = (90, 220, 255)  # around a peak
# From nothing to most: black, violet, red, orange, white.
COLOURS = np.array([[0, 0, 0], [60, 10, 110], [190, 40, 80], [250, 150, 30], [255, 255, 220]], float)


def text(file, path):
    return file[path].asstr()[()]


def histogram(names, counts):
    """"stored 258, vetoed 3998": what there was any of."""
    return ", ".join(f"{name} {count}" for name, count in zip(names, counts) if count) or "none"


def results(file):
    """What stages found out beside the image, where they ran."""
    found, profile, hits = (file.get(f"/entry/{name}") for name in ("results", "profile", "hits"))
    if hits and len(hits["hits"]):
        rate, judged = hits["hit_rate"][:], hits["judged"][:].sum()
        yield "hits", f"{hits['hits'][:].sum() / judged:.1%} of {judged}; {rate.min():.1%} to {rate.max():.1%} in blocks of {hits['frames'][0]} frames"
    if found and "peaks" in found:
        of_image = found["image_index"][:] >= 0  # results are of all frames, kept or not
        rows = found["peaks_rows"][:][of_image]
        yield "peaks", f"{rows.sum()} on {len(rows)} images" + (f", {np.median(rows):g} on half of them or more" if len(rows) else "")
    if profile and len(profile["intensity"]):
        axis = profile[profile.attrs["axes"][-1]]
        position, intensity = axis[:], np.nan_to_num(profile["intensity"][:]).mean(axis=0)  # NaN: no pixel in that bin
        top = np.argmax(intensity)
        yield "profile", f"{axis.attrs['long_name']}: {len(position)} bins from {position[0]:.3g} to {position[-1]:.4g}; " \
            f"of {len(profile['intensity'])} frames, most at {position[top]:.4g}: {intensity[top]:.3g} per pixel"


def describe(file):
    """(label, line) pairs."""
    frames, ledger, images = file["/entry/sluice/frames"], file["/entry/sluice/ledger"], file.get("/entry/data/data")
    keep, dark = frames["keep"][:] == 1, frames["flags"][:] & 1 == 1
    yield "frames", f"{keep.sum()} kept of {len(keep)}, of which {dark.sum()} dark"
    if images:
        yield "images", f"{' x '.join(str(n) for n in images.shape)}, {images.dtype}"
    for label, line in results(file):
        yield label, line
    yield "outcomes", histogram(ledger["outcome_names"].asstr()[:], ledger["outcomes"][:].sum(axis=0)) + \
        f" (module-frames; {ledger['sent'][:].sum()} sent)"
    yield "causes", histogram(ledger["cause_names"].asstr()[1:], ledger["causes"][:, 1:].sum(axis=0))
    yield "ledger", "closes: every module-frame sent has one outcome" if ledger["closed"][()] else "DOES NOT CLOSE"
    yield "link", f"{text(file, '/entry/sluice/link')}; guard: {text(file, '/entry/sluice/guard')}; " \
        f"proof: {text(file, '/entry/sluice/proof')}"


def brightest(file):
    """The kept frame with the highest score: its image, its number, its score, (row, column) of its peaks. None when no
    frame was kept."""
    frames = file["/entry/sluice/frames"]
    index, score, number = (frames[name][:] for name in ("image_index", "score", "frame_number"))
    kept = np.flatnonzero(index >= 0)
    if not kept.size or "/entry/data/data" not in file:
        return None
    best = kept[np.argmax(score[kept])]
    peaks = file.get("/entry/peaks")
    places = [peaks[name][index[best]][:peaks["nPeaks"][index[best]]] for name in ("peakYPosRaw", "peakXPosRaw")] if peaks else []
    return file["/entry/data/data"][index[best]], number[best], score[best], list(zip(*places))


def values(image):
    """Pixels as floats: what is no measurement is 0, an overload is as bright as the brightest that is none."""
    pixels = image.astype(float)
    if image.dtype == np.int16:  # photons: the two ends mark bad pixels and overloads
        pixels[image == -32768], pixels[image == 32767] = np.nan, np.inf
    finite = pixels[np.isfinite(pixels)]
    return np.clip(np.nan_to_num(pixels, nan=0, posinf=finite.max(initial=0)), 0, None)


def shrink(pixels, width):
    """To at most that width. Each pixel is the largest of those it stands for: spots must not vanish."""
    by = -(-pixels.shape[1] // width)
    rows, columns = (-(-n // by) * by for n in pixels.shape)
    pixels = np.pad(pixels, [(0, rows - pixels.shape[0]), (0, columns - pixels.shape[1])])
    return pixels.reshape(rows // by, by, columns // by, by).max(axis=(1, 3))


def colour(pixels):
    """Logarithmic, from what is common (the background) to the most."""
    scale = np.log1p(pixels)
    low, high = np.median(scale), scale.max()
    level = np.clip((scale - low) / max(high - low, 1e-9), 0, 1) * (len(COLOURS) - 1)
    return np.stack([np.interp(level, range(len(COLOURS)), COLOURS[:, c]) for c in range(3)], -1).astype(np.uint8)


def circle(rgb, by, places, radius=9):
    """Rings around these places of the image, which was shrunk by so much."""
    angle = np.linspace(0, 2 * np.pi, 8 * radius)
    for row, column in places:
        rows = np.round(row / by + radius * np.sin(angle)).astype(int)
        columns = np.round(column / by + radius * np.cos(angle)).astype(int)
        inside = (rows >= 0) & (rows < rgb.shape[0]) & (columns >= 0) & (columns < rgb.shape[1])
        rgb[rows[inside], columns[inside]] = CIRCLE


def write_png(path, rgb):
    """An image [rows, columns, 3] of bytes. Each row has a filter byte (0: none) before it."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows, columns, _ = rgb.shape
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), rgb.reshape(rows, columns * 3)], axis=1)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + chunk(b"IEND", b""))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: look.py FILE.nxs")
    path = pathlib.Path(sys.argv[1])
    try:
        with h5py.File(path, "r") as file:
            lines, best = list(describe(file)), brightest(file)
    except (OSError, KeyError) as why:
        sys.exit(f"{path}: not a file that sluice wrote to its end: {why}")
    print(path)
    for label, line in lines:
        print(f"  {label:10}{line}")
    if not best:
        print("  there is no image in it, so there is nothing to show")
        return
    image, number, score, peaks = best
    picture = path.with_suffix(".png")
    pixels = values(image.reshape(-1, image.shape[-1]))
    small = shrink(pixels, WIDTH)
    rgb = colour(small)
    circle(rgb, -(-pixels.shape[1] // WIDTH), peaks)
    write_png(picture, rgb)
    print(f"  brightest frame {number}, score {score:g}: {picture}")


if __name__ == "__main__":
    main()
