#!/usr/bin/python3
"""same_file.py - do two HDF5 files have the same datasets? Names what differs; when frames were taken is not compared.

  tools/same_file.py ONE.nxs OTHER.nxs
"""

import sys

import h5py
import numpy as np

MAY_DIFFER = ("entry/start_time", "entry/end_time", "entry/end_time_estimated", "entry/sluice/experiment",
              "entry/sluice/audit/run_id")


def datasets(path):
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: np.asarray(item[()])})
                        if isinstance(item, h5py.Dataset) else None)
    return found


def differences(one, other):
    """Names of what is not the same in both."""
    for name in sorted(one.keys() | other.keys()):
        if name in MAY_DIFFER:
            continue
        if name not in one or name not in other:
            yield f"{name} is in one file only"
        elif not np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f"):
            yield f"{name} differs"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    files = [datasets(path) for path in sys.argv[1:]]
    found = list(differences(*files))
    print("\n".join(found) or f"{len(files[0])} datasets are the same")
    sys.exit(1 if found else 0)
