#!/usr/bin/python3
"""live_reader.py FOLDER TRUTH.npy - a reader of its own, as a user's: it follows the data files of FOLDER/run.nxs while they grow (HDF5's SWMR), and
compares every image that it sees, as soon as it sees it, with image number `frame_number` of the truth. It ends when FOLDER/ended is there and no
file has anything new.

Prints a line of JSON for each look that found something new: the file, how many of its rows were new and how many there are, the number of the last
frame, and how many pixels were wrong; and at first a line {"ready": true}.
"""

import contextlib
import json
import pathlib
import sys
import time

import h5py
import numpy as np

LOOK_S = 0.01


class DataFile:
    """One data file, open from when it is there until the end."""

    def __init__(self, path, truth):
        self.path, self.truth, self.rows = path, truth, 0
        self.file = h5py.File(path, "r", libver="latest", swmr=True)
        try:
            self.images, self.numbers = self.file["entry/data/data"], self.file["entry/data/frame_number"]
        except KeyError:  # it has just been begun
            self.file.close()
            raise

    def look(self):
        """Compare what is new. True: something was."""
        for data in (self.images, self.numbers):
            data.refresh()
        rows = min(len(self.images), len(self.numbers))
        if rows < self.rows:
            print(json.dumps({"file": self.path.name, "fault": f"{rows} rows after {self.rows}"}), flush=True)
        if rows <= self.rows:
            return False
        numbers, images = self.numbers[self.rows:rows], self.images[self.rows:rows]
        wrong = int((images != self.truth[numbers]).sum())
        print(json.dumps({"file": self.path.name, "new": rows - self.rows, "rows": rows, "first": int(numbers[0]), "last": int(numbers[-1]),
                          "wrong": wrong}), flush=True)
        self.rows = rows
        return True


def main():
    folder, truth = pathlib.Path(sys.argv[1]), np.load(sys.argv[2])
    files = {}
    print(json.dumps({"ready": True}), flush=True)
    while True:
        ended = (folder / "ended").exists()  # before looking: what came until then is seen
        for path in sorted(folder.glob("run_data_*.h5")):
            if path not in files:
                with contextlib.suppress(OSError, KeyError):  # not yet open to readers
                    files[path] = DataFile(path, truth)
        any_new = [one.look() for one in files.values()]
        if ended and not any(any_new):
            return
        time.sleep(LOOK_S)


if __name__ == "__main__":
    main()
