"""recording.py - the files of two runs, compared bit for bit."""

import h5py
import numpy as np

from harness import check, equal

# What differs between any two runs: the wall clock.
WALL_CLOCK = {"/entry/start_time", "/entry/end_time", "/entry/end_time_estimated"}
# The text that a run's files share.
RANDOM = {"/@file_set", "/entry/sluice/audit/run_id", "/entry/sluice/audit/leaf@run_id"}
# What describes the run and how its data came, and so differs with the run, the link or the file.
ABOUT_THE_RUN = {"/entry/sluice/link", "/entry/sluice/guard", "/entry/sluice/proof", "/entry/sluice/experiment",
                 *RANDOM}

# What differs where a run is in other files.
ABOUT_FILES = {f"/entry/sluice/audit/file_{name}" for name in ("name", "rows", "first_sequence", "first_image", "root")}

# What differs where only one of the sources sent checksums of its pixels.
KNOWN = "/entry/sluice/audit/source_crc32c_known"
WITH_CHECKSUMS = {KNOWN, *(f"/entry/sluice/audit/{name}" for name in ("source_crc32c", "leaf", "root", "file_root"))}


def contents(path):
    found = {}

    def keep(name, value):
        value = np.asarray(value)
        # Texts are objects to numpy: their bytes would be addresses.
        data = value.tobytes() if value.dtype != object else repr(value.tolist())
        found[name] = str(value.dtype), value.shape, data

    def visit(name, item):
        for key, value in item.attrs.items():
            keep(f"/{name}@{key}".replace("//", "/"), value)
        if isinstance(item, h5py.Dataset):
            keep(f"/{name}", item[()])
        else:
            found[f"/{name}"] = "group"

    with h5py.File(path, "r") as file:
        visit("", file)
        file.visititems(visit)
    return found


def compare(one, other):
    equal(sorted(one), sorted(other), "objects in the files")
    differing = sorted(path for path in one if one[path] != other[path])
    excused = WALL_CLOCK | ABOUT_THE_RUN | ABOUT_FILES | (WITH_CHECKSUMS if one[KNOWN] != other[KNOWN] else set())
    equal([path for path in differing if path not in excused], [], "what differs and should not")
    for path in ("/entry/data/data", "/entry/data/frame_number", "/entry/data/timestamp", "/entry/sluice/frames/score",
                 "/entry/sluice/frames/keep", "/entry/sluice/frames/outcome", "/entry/sluice/ledger/outcomes"):
        check(path in one and len(one[path][2]) > 0, f"{path} was not compared")
