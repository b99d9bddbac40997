#!/usr/bin/python3
"""peaks_test.py - peaks and spots in the file are the spots that the emulator has put into its frames."""
# normal build only

import h5py
import numpy as np

from harness import acquire, case, check, equal, intact, main, run, run_fails
from results import of_images

FRAMES, DARKS, MODULES, ROWS, ASIC = 14, 40, 2, 512, 256
DETECTOR = {"kind": "jungfrau", "modules": MODULES, "rows": None, "columns": None, "frames": FRAMES, "dark_frames": DARKS,
            "pool": 7, "hit_fraction": 0.5}


def truth(folder):
    """{frame number: its spots, [n][row, column, module, module_row, module_column]}, of bright frames."""
    run("truth", folder / "experiment.yaml", "--output", folder / "truth.h5", folder=folder)
    with h5py.File(folder / "truth.h5") as file:
        group = {name: item[()] for name, item in file["truth"].items() if name not in ("table", "experiment")}
        names = ("row", "column", "module", "module_row", "module_column")
        table = np.stack([file["truth/table"][name][()] for name in names], axis=1)
    return {int(number): table[first:first + count] for number, first, count, dark in
            zip(group["frame_number"], group["first_row"], group["count"], group["dark"]) if not dark}


def rows_of(file, name):
    """The ragged result of each kept frame."""
    results, found = file["entry/results"], of_images(file)
    counts = results[f"{name}_rows"][()].astype(int)
    equal(results[f"{name}_found"][()].ravel().tolist(), counts.tolist(), f"{name} found, beside those in the file")
    equal(results[name].shape, (counts.sum(), 8), f"shape of all {name}")
    equal(results[f"{name}_first"][()].tolist(), (np.cumsum(counts) - counts).tolist(), "first rows")
    return found[name]


def nearest(points, spots):
    """Of each spot, how far away the nearest point is."""
    return np.hypot(*(points[:, None] - spots[None]).transpose(2, 0, 1)).min(axis=0)


def regular(spots):
    """Those that do not reach wide pixels, at the edges of ASICs, which are left out by default."""
    def edge(at):
        return np.abs((at + ASIC / 2) % ASIC - ASIC / 2 + 0.5) < 4
    return spots[~edge(spots[:, 3]) & ~edge(spots[:, 4])]


def acquired(folder, image, **sections):
    stages = [{"correct": {}}, {"veto": {}}, {"spots": {"min_spots": 0}}, {"peaks": {"min_peaks": 10}}]
    sinks = [{"nexus": {"path": str(folder / "run.nxs"), "image": image}}, "verify"]
    program, summary = acquire(folder, detector=DETECTOR, stages=stages, sinks=sinks, **sections)
    intact(program, summary, FRAMES + DARKS, MODULES)
    known = truth(folder)
    file = h5py.File(folder / "run.nxs")
    numbers = file["entry/data/frame_number"][()].tolist()
    equal(numbers, [number for number, spots in known.items() if len(spots)], "frames kept, beside those with spots")
    return file, [known[number] for number in numbers]


@case("every spot of every hit is a peak, within a pixel; few peaks are not; blanks are not kept")
def _(folder):
    file, known = acquired(folder, "modules")
    peaks = file["entry/peaks"]
    invented = 0
    for index, (found, spots) in enumerate(zip(rows_of(file, "peaks"), known)):
        stacked = lambda module, row, column: np.stack([module * ROWS + row, column], axis=1)  # noqa: E731
        have, wanted = stacked(*found.T[:3]), stacked(*spots.T[2:])
        # The truth names a pixel; its middle is half a pixel on.
        easy = stacked(*regular(spots).T[2:])
        check(len(easy) > 0.8 * len(wanted), f"frame {index}: most spots are at edges")
        check(nearest(have, easy + 0.5).max() < 1.2, f"frame {index}: a spot is no peak")
        invented += int((nearest(wanted + 0.5, have) > 3).sum())
        count = int(peaks["nPeaks"][index])
        equal(count, len(found), "nPeaks")
        listed = np.stack([peaks[name][index] for name in ("peakYPosRaw", "peakXPosRaw", "peakTotalIntensity", "peakSNR")], 1)
        check(np.allclose(listed[:count], np.c_[have - 0.5, found[:, 3:5]], rtol=1e-6, atol=1e-3), "peaks for CrystFEL")
        check(not listed[count:].any(), "nothing behind the last peak")
        image = file["entry/data/data"][index]
        bright = [image[int(y) - 1:int(y) + 3, int(x) - 1:int(x) + 3].max() for y, x in listed[:count, :2]]
        check(np.all(np.array(bright) >= 5), "the image is bright where the peaks are")
    check(invented <= len(known), f"{invented} peaks of {len(known)} frames are no spots")
    frames = file["entry/sluice/frames"]
    reasons = [name.decode() for name in frames["reason_names"][()]]
    kept = frames["keep"][()] == 1
    equal({reasons[r] for r in frames["reason"][kept]}, {"peaks"}, "why frames were kept")
    equal(frames["score"][kept].tolist(), peaks["nPeaks"][()].tolist(), "the score of what is kept")


@case("spots: most of them, and few that are none")
def _(folder):
    file, known = acquired(folder, "modules", link={"kind": "shm"})
    seen = total = invented = 0
    for found, spots in zip(rows_of(file, "spots"), known):
        have = np.stack([found[:, 0] * ROWS + found[:, 1], found[:, 2]], axis=1)
        wanted = np.stack([spots[:, 2] * ROWS + spots[:, 3], spots[:, 4]], axis=1) + 0.5
        seen += int((nearest(have, wanted) < 2).sum())
        total += len(wanted)
        invented += int((nearest(wanted, have) > 3).sum())
    check(seen > 0.8 * total, f"{seen} of {total} were found")
    check(invented <= total // 20, f"{invented} were found that are none")


@case("in the assembled image peaks lie where the crystal has put its spots")
def _(folder):
    file, known = acquired(folder, "assembled", link={"kind": "shm"}, unit={"kind": "cpu", "workers": 2})
    peaks, off = file["entry/peaks"], []
    for index, spots in enumerate(known):
        have = np.stack([peaks[name][index][:peaks["nPeaks"][index]] for name in ("peakYPosRaw", "peakXPosRaw")], axis=1)
        off += nearest(have + 0.5, regular(spots)[:, :2]).tolist()
    check(np.mean(off) < 0.2 and max(off) < 1, f"off by {np.mean(off):.2f} pixels, at most {max(off):.2f}")


@case("a camera's counts need no correction; more peaks than there is room for are counted")
def _(folder):
    source = folder / "images.h5"
    image = np.random.default_rng(1).poisson(2.0, (1, 240, 300)).astype(np.uint16)
    for k in range(60):
        image[0, 12 + k // 10 * 36:14 + k // 10 * 36, 15 + k % 10 * 28:17 + k % 10 * 28] += 90 + k
    with h5py.File(source, "w") as file:
        file["entry/data/data"] = np.repeat(image, 3, axis=0)
    detector = {"kind": "replay", "file": str(source), "frames": 3, "modules": 1, "rows": None, "columns": None}
    program, summary = acquire(folder, detector=detector, stages=["copy", {"peaks": {"max_peaks": 50}}],
                               sinks=[{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw"}}, "verify"])
    intact(program, summary, 3, 1)
    with h5py.File(folder / "run.nxs") as file:
        # The smallest rings have too few pixels to tell a peak from the rest.
        check(np.all(np.abs(file["entry/results/peaks_found"][()] - 59) <= 1), "peaks there were: 60 but for one or two")
        equal(file["entry/results/peaks_rows"][()].tolist(), [50] * 3, "peaks that there was room for")
        equal(file["entry/peaks/peakSNR"].shape, (3, 50), "room")


@case("what peaks cannot do is said")
def _(folder):
    for stage, words in (({"peaks": {"min_pixels": 9, "max_pixels": 3}}, "max_pixels"), ({"peaks": {"r_min": 1e5}}, "r_min"),
                         ({"peaks": {"snr": 0}}, "snr"), ({"spots": {"box": 99}}, "box")):
        path = folder / "bad.yaml"
        path.write_text('{"detector": {"kind": "camera", "height": 60, "width": 60, "frames": 2}, "link": {"kind": "shm"}, '
                        f'"stages": {[stage]}, "sinks": ["null"], "emulate": "local"}}'.replace("'", '"'))
        run_fails("run", path, folder=folder, says=(words,))


main()
