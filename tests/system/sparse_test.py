#!/usr/bin/python3
"""sparse_test.py - lists of pixels, statistics and samples of the rejected, from the emulator to the file and back to images."""
# normal build only

import h5py
import numpy as np

import results
from harness import acquire, case, check, equal, fewer, main, run, run_fails, sink

BAD, OVERLOAD = -32768, 32767
EVERY, BIN, WINDOW = 3, 8, 4


def process(folder, sparse, more=(), workers=1, **nexus):
    """A small Jungfrau through all of them; the file with lists alone, and the one with images."""
    frames = fewer(48, 24)
    stages = [{"correct": {"output": "photons_i16"}}, {"veto": {"threshold": 10, "min_pixels": 20}},
              {"prescale": {"every": EVERY}}, {"sparse": sparse}, *more]
    sinks = [{"nexus": {"path": str(folder / "lists.nxs"), "image": "none", **nexus}},
             {"nexus": {"path": str(folder / "images.nxs")}}]
    program, summary = acquire(folder, detector={"kind": "jungfrau", "modules": 2, "rows": None, "columns": None,
                                                 "frames": frames, "dark_frames": 20, "pool": 11},
                               link={"kind": "shm"}, unit={"workers": workers}, stages=stages, sinks=sinks)
    equal(program.process.returncode, 0, "exit status")
    return summary, h5py.File(folder / "lists.nxs"), h5py.File(folder / "images.nxs")


def lists(file):
    """(index, intensity) of every frame."""
    group = file["entry/sparse_frames"]
    pointer = group["frame_ptr"][()]
    return [(group["index"][a:b], group["intensity"][a:b]) for a, b in zip(pointer[:-1], pointer[1:])]


def check_sample(summary, file):
    """Every third of the rejected is there, marked, with its score; in the order of sequences."""
    rows = {name: column[()] for name, column in file["entry/sluice/frames"].items()}
    reasons = [name.decode() for name in rows["reason_names"]]
    score, reason = rows["score"], np.array([reasons[i] for i in rows["reason"]])
    bright = reason != "dark"
    rejected = np.flatnonzero(bright & (score < 20))
    sample = rejected[EVERY - 1::EVERY]
    check(len(sample) > 1, "there are no samples")
    equal(list(np.flatnonzero(reason == "prescaled")), list(sample), "rows that are samples of the rejected")
    check((rows["keep"][sample] == 1).all(), "samples are kept")
    equal(summary["frames"]["prescaled"], len(sample), "frames.prescaled")
    total = summary["ledger"]["total"]["outcomes"]
    equal(total["prescaled"], len(sample) * len(summary["ledger"]["modules"]), "the ledger's prescaled module-frames")
    names = [name.decode() for name in file["entry/sluice/frames/outcome_names"]]
    equal({names[i] for i in file["entry/sluice/frames/outcome"][()][sample].flatten()}, {"prescaled"}, "outcomes in the file")
    equal(summary["frames"]["kept"], len(sample) + int((bright & (score >= 20)).sum()), "frames.kept")
    number = rows["result_index"][sample]
    equal({reasons[i] for i in file["entry/results/prescaled_from"][()][number]}, {"bright_pixels"}, "why they were rejected")


@case("by threshold: the pixels that numpy finds, in order, for every frame; images again out of them")
def _(folder):
    summary, file, full = process(folder, {"threshold": 5, "row_pointers": True})
    images = full["entry/data/data"][()]
    check_sample(summary, file)
    check("data" not in file["entry/data"], "there are no images in it")
    equal(sink(summary, "nexus")["bytes"], 0, "bytes of images")
    dense = images.reshape(len(images), -1)
    for k, (index, intensity) in enumerate(lists(file)):
        wanted = np.flatnonzero(dense[k] >= 5)
        check((index == wanted).all() and (intensity == dense[k][wanted]).all(), f"list of frame {k}")
        pointer = file["entry/results/sparse_row_pointer"][k]
        equal(list(pointer), list(np.searchsorted(wanted, np.arange(images.shape[1] + 1) * images.shape[2])), "rows")
    run("densify", folder / "lists.nxs", folder / "dense.h5", folder=folder)
    mask = np.isfinite(file["entry/sparse_frames/mask"][()])
    with h5py.File(folder / "dense.h5") as again:
        check((again["entry/data/data"][()] == np.where(mask, np.where(images >= 5, images, 0), BAD)).all(), "images again")
        check((again["entry/data/frame_number"][()] == full["entry/data/frame_number"][()]).all(), "frame numbers")


@case("lists that are cut say how much is missing, and densify marks what it cannot know")
def _(folder):
    _, file, full = process(folder, {"threshold": 1, "max_pixels": 1000})
    images = full["entry/data/data"][()]
    dense = images.reshape(len(images), -1)
    found = file["entry/sparse_frames/found"][()]
    equal(list(found), list((dense >= 1).sum(axis=1)), "pixels found")
    check((found > 1000).all(), "nothing was cut")
    program = run("densify", folder / "lists.nxs", folder / "dense.h5", folder=folder)
    equal(program.process.returncode, 0, "exit status")
    check("not all pixels were stored" in program.out(), "it does not say so")
    with h5py.File(folder / "dense.h5") as again:
        for k, (index, _) in enumerate(lists(file)):
            equal(list(index), list(np.flatnonzero(dense[k] >= 1)[:1000]), "the first of them")
            image = again["entry/data/data"][k].ravel()
            check((image[index] == dense[k][index]).all(), "picked pixels")
            check((image[index[-1] + 1:] == BAD).all(), "what is not known")


@case("by radius, with statistics, bins and windows: the same with any number of workers")
def _(folder):
    more = [{"reduce": {"roi": "0,0,100,100; 300,40,200,900", "roi_in": "modules", "bin": BIN, "window": WINDOW}}]
    kept = {}
    for workers in (1, 3):
        place = folder / str(workers)
        place.mkdir()
        summary, file, full = process(place, {"method": "radial"}, more, workers)
        check_sample(summary, file)
        for name in file["entry/results"]:
            array = file["entry/results"][name][()]
            check(array.tobytes() == kept.setdefault(name, array).tobytes(), f"{name} with {workers} workers")
            check(array.tobytes() == full["entry/results"][name][()].tobytes(), f"{name} in both files")
    images = full["entry/data/data"][()]
    compare_lists(folder, file, images, place)
    compare_statistics(file, images)


def compare_lists(folder, file, images, place):
    run("densify", place / "lists.nxs", folder / "dense.h5", folder=folder)
    radius, mask = file["entry/sparse_frames/radius"][()], file["entry/sparse_frames/mask"][()]
    norm = file["entry/sparse_frames/normalization"][()]
    with h5py.File(folder / "dense.h5") as again:
        for k, (index, intensity) in enumerate(lists(file)):
            image = images[k].ravel()
            check(len(index) > 10 and (np.diff(index.astype(int)) > 0).all(), "a list in order")
            check((image[index] == intensity).all(), "pixels as they were")
            check(np.isin(np.flatnonzero(image == OVERLOAD), index).all(), "overloads are picked")
            background = np.floor(np.interp(mask, radius, file["entry/results/sparse_background"][k]) * norm + 0.5)
            background[~np.isfinite(mask)] = BAD
            background.ravel()[index] = intensity
            check((again["entry/data/data"][k] == background).all(), f"image {k} again")


def compare_statistics(file, images):
    n, rows, columns = images.shape
    valid = (images != BAD) & (images != OVERLOAD)
    values = np.where(valid, images, 0).astype(np.int64)
    found = results.of_images(file)
    table = found["statistics"]
    for region, cut in enumerate((np.s_[:, :, :], np.s_[:, :100, :100], np.s_[:, 300:500, 40:940])):
        equal(list(table[:, region, 0]), list(values[cut].sum(axis=(1, 2))), "sums")
        equal(list(table[:, region, 2]), list(np.where(valid, images, BAD)[cut].max(axis=(1, 2))), "maxima")
        equal(list(table[:, region, 3]), list(valid[cut].sum(axis=(1, 2))), "valid pixels")
        equal(list(table[:, region, 4]), list((images == OVERLOAD)[cut].sum(axis=(1, 2))), "overloads")
    tiles = (n, rows // BIN, BIN, columns // BIN, BIN)
    binned = values.reshape(tiles).sum(axis=(2, 4))
    binned[(images != BAD).reshape(tiles).sum(axis=(2, 4)) == 0] = np.iinfo(np.int32).min
    binned[(images == OVERLOAD).reshape(tiles).any(axis=(2, 4))] = np.iinfo(np.int32).max
    check((found["binned"].reshape(binned.shape) == binned).all(), "binned images")
    windows = file["entry/results/window_sum"][()]
    equal(len(windows), n // WINDOW, "windows")
    equal([k for k, table in enumerate(found["window_sum"]) if len(table)], list(range(WINDOW - 1, n, WINDOW)), "where they are")
    for k, window in enumerate(windows.reshape(len(windows), *binned.shape[1:])):
        part = binned[k * WINDOW:(k + 1) * WINDOW]
        normal = (abs(part) < 2**30).all(axis=0)
        check((window == part.sum(axis=0))[normal].all(), f"window {k}")


@case("densify says what is wrong with a file, and leaves nothing behind")
def _(folder):
    _, file, _ = process(folder, {"threshold": 5}, frames_per_file=0)  # in one file, where it can be spoilt
    file.close()
    whole = (folder / "lists.nxs").read_bytes()

    def refused(content, *says, change=None):
        broken, target = folder / "broken.nxs", folder / "dense.h5"
        broken.write_bytes(content)
        if change:
            with h5py.File(broken, "r+") as file:
                change(file["entry/sparse_frames"], file["entry/results"])
        run_fails("densify", broken, target, folder=folder, says=says)
        equal([path.name for path in folder.glob("dense*")], [], "files left behind")

    def pointer(value):
        def change(group, _):
            group["frame_ptr"][1] = value
        return change

    def index(_, results):
        results["sparse_index"][3] = 2**32 - 1

    def shorter(_, results):
        results["sparse_index"].resize(len(results["sparse_index"]) - 1, axis=0)
        results["sparse_value"].resize(len(results["sparse_value"]) - 1, axis=0)

    refused(whole, "goes back", change=pointer(2**40))
    refused(whole, "frame 0 has pixel 4294967295", change=index)
    refused(whole, "cut short", change=shorter)
    refused(whole, "mask", change=lambda group, _: group.__delitem__("mask"))
    refused(whole[:len(whole) // 2], "broken.nxs")
    refused(b"hello\n", "broken.nxs")
    refused((folder / "images.nxs").read_bytes(), "no sparse frames",
            change=lambda group, _: group.file["entry"].__delitem__("sparse_frames"))
    run_fails("densify", folder / "none.nxs", folder / "dense.h5", folder=folder, says=("none.nxs",))
    run_fails("densify", folder / "lists.nxs", folder / "lists.nxs", folder=folder, says=("lists.nxs",))
    run_fails("densify", folder / "lists.nxs", folder=folder, says=("two files",))
    check((folder / "lists.nxs").read_bytes() == whole, "the file that is read is as it was")


main()
