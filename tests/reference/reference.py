"""reference.py - what the scripts of `make check-reference` share.

A script is a list of cases, as a system test is (tests/system/harness.py): functions marked @case("what holds"), with
main() at the end. Most of them

    file = process(folder, images, [{"integrate": {"bins": 100}}], distance_m=0.1)    # by the program
    near(file.result("profile")[0, 1], pyfai, 1e-5, "intensity")                      # by somebody else

process() plays images through `sluice run`, emulate() what a detector of ours makes up; both give back the file. near()
compares with a bound relative to the reference's own value; exact() wants the same bits. Both say how far off the worst
element is and where, and both fail when there is nothing to compare. each_fails() is for the scripts themselves: it
holds a comparison against a result that was changed a little, and wants it to fail.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import h5py  # noqa: E402  (found through the line above, as what follows)
import numpy as np  # noqa: E402
from harness import Failed, case, check, equal, main, merge, run, run_fails, skip  # noqa: E402, F401
from results import joined  # noqa: E402


class File:
    """What a run has left: images, results, frames."""

    def __init__(self, path):
        with h5py.File(path) as file:
            self.images = file["entry/data/data"][()]
            self.results = joined(file)
            self.frames = {name: column[()] for name, column in file["entry/sluice/frames"].items()}

    def result(self, name):
        check(name in self.results, f"the file has no result {name!r}, but {sorted(self.results)}")
        return self.results[name]


def execute(folder, detector, stages, dataset, sections):
    """Run an experiment over shared memory, which keeps up with anything; the file."""
    number = len(list(folder.glob("*.yaml")))
    path, output = folder / f"{number}.yaml", folder / f"{number}.nxs"
    base = {"detector": detector, "link": {"kind": "shm"}, "stages": stages, "emulate": "local",
            "sinks": [{"nexus": {"path": str(output), "dataset": dataset, "overwrite": True}}]}
    path.write_text(json.dumps(merge(base, sections)))
    program = run("run", path, folder=folder)
    equal(program.process.returncode, 0, "exit status of sluice run")
    return File(output)


def process(folder, images, stages, dataset="raw", sections=None, **detector):
    """Play images, [n][rows][columns] or [n][modules][rows][columns], through the program. `detector`: options of
    replay; `sections`: of the experiment, beside it."""
    source = folder / f"images-{len(list(folder.glob('images-*')))}.h5"
    with h5py.File(source, "w") as file:
        file["entry/data/data"] = images
    modules = images.shape[1] if images.ndim == 4 else 1
    options = {"kind": "replay", "file": str(source), "frames": len(images), "modules": modules, **detector}
    options["frames"] -= options.get("dark_frames", 0)
    return execute(folder, options, stages, dataset, sections or {})


def emulate(folder, detector, stages, dataset="image", sections=None):
    """What a detector of ours makes up."""
    return execute(folder, detector, stages, dataset, sections or {})


def write(folder, name, array):
    """An array as the only dataset of a file; its path."""
    path = folder / name
    with h5py.File(path, "w") as file:
        file["data"] = array
    return str(path)


# ---- comparing ----

def same_shape(got, wanted, what):
    got, wanted = np.asarray(got), np.asarray(wanted)
    equal(got.shape, wanted.shape, f"{what}: shape")
    check(got.size, f"{what}: there is nothing to compare")
    return got, wanted


def worst(error, got, wanted):
    at = np.unravel_index(np.argmax(error), error.shape)
    return f"worst at {tuple(int(i) for i in at)}: {got[at]!r}, expected {wanted[at]!r}"


def near(got, wanted, relative, what, absolute=0.0):
    """Every element within relative * |wanted| + absolute; not a number where the other is none. The worst error, as
    a share of what is allowed."""
    got, wanted = same_shape(got, wanted, what)
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    none = np.isnan(wanted)
    different = np.isnan(got) != none
    check(not different.any(), f"{what}: {different.sum()} of {got.size} are a number in one and not in the other, "
                               f"first {np.argwhere(different)[0].tolist() if different.any() else ''}")
    check(not none.all(), f"{what}: not one element is a number")
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(none | (got == wanted), 0, np.abs(got - wanted) / (relative * np.abs(wanted) + absolute))
    check(error.max() <= 1, f"{what}: {(error > 1).sum()} of {got.size} are off by more than {relative:g}, "
                            f"the worst by {error.max() * relative:.3g}; {worst(error, got, wanted)}")
    return error.max()


def exact(got, wanted, what):
    """The same bits: also NaN, infinity and the sign of zero."""
    got, wanted = same_shape(got, wanted, what)
    equal(got.dtype, wanted.dtype, f"{what}: type")
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}.get(got.dtype.itemsize, got.dtype)
    off = np.ascontiguousarray(got).view(bits) != np.ascontiguousarray(wanted).view(bits)
    check(not off.any(), f"{what}: {off.sum()} of {got.size} differ; {worst(off, got, wanted)}")


def each_fails(comparison, changes):
    """`comparison` of a result must fail for each of {how it was changed: the result}."""
    for name, changed in changes.items():
        try:
            comparison(changed)
        except Failed:
            continue
        raise Failed(f"nobody noticed: {name}")


def note(text):
    """A line that check_reference.py shows, whatever the result."""
    print(f"# note: {text}", flush=True)
