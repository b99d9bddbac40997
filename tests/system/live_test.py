#!/usr/bin/python3
"""live_test.py - another process reads the data files of a run while data keep coming: every pixel that it sees is right, and when the run has ended
it has seen all of them."""
# normal build only

import json
import pathlib
import signal
import sys

import h5py
import numpy as np

from harness import Program, case, check, equal, experiment, main, run, wait_for

FRAMES, PER_FILE = 2000, 100
DETECTOR = {"kind": "pattern", "modules": 2, "rows": 32, "columns": 64, "frames": FRAMES}
READER = pathlib.Path(__file__).with_name("live_reader.py")


def run_file(folder, **detector):
    sink = {"path": str(folder / "run.nxs"), "dataset": "raw", "frames_per_file": PER_FILE, "flush_s": 0.05}
    return experiment(folder, detector={**DETECTOR, **detector}, link={"kind": "shm"}, sinks=[{"nexus": sink}, "verify"])


def truth_of(folder):
    """Every image, as a run leaves them that no program reads meanwhile."""
    folder.mkdir()
    equal(run("run", run_file(folder), folder=folder).process.returncode, 0, "exit status")
    with h5py.File(folder / "run.nxs") as file:
        np.save(folder / "truth.npy", file["entry/data/data"][()])
    return folder / "truth.npy"


def looks(reader):
    """What it has said so far; the last line may not be whole."""
    return [json.loads(line) for line in reader.out().split("\n")[:-1]]


@case("a reader in another process follows a run: images that it sees while data keep coming are right, and in the end it has seen all")
def _(folder):
    truth, live = truth_of(folder / "truth"), folder / "live"
    live.mkdir()
    reader = Program(READER, live, truth, folder=folder, program=sys.executable)
    wait_for("the reader", lambda: looks(reader) or not reader.running())
    # Slow enough for looks between frames, however busy the host is: it ends when the reader has seen enough.
    program = Program("run", run_file(live, frame_rate_Hz=150), folder=live)

    def seen_enough():
        """Files that grew under the reader's eyes, while the run was under way."""
        said = [look["file"] for look in looks(reader)[1:]]
        return len({name for name in said if said.count(name) >= 3}) >= 2

    wait_for("files that grow", lambda: seen_enough() or not (program.running() and reader.running()))
    check(program.running(), "the run had ended before the reader saw two files grow")
    program.send(signal.SIGINT)
    program.ends(0)
    (live / "ended").touch()
    reader.ends(0)
    said = looks(reader)[1:]
    equal([look for look in said if "fault" in look or look["wrong"]], [], "looks with faults or wrong pixels")
    with h5py.File(live / "run.nxs") as file:
        stored = file["entry/data/frame_number"][()].tolist()
    equal(stored, list(range(len(stored))), "frames in the file")
    equal(sum(look["new"] for look in said), len(stored), "images that the reader has compared")
    # Each file from its first row on, and no frame left out.
    for name in sorted({look["file"] for look in said}):
        of_file = [look for look in said if look["file"] == name]
        ends = [look["last"] + 1 for look in of_file]
        equal([look["first"] for look in of_file][1:], ends[:-1], f"where looks at {name} went on")


if __name__ == "__main__":
    main()
