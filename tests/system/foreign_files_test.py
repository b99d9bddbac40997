#!/usr/bin/python3
"""foreign_files_test.py - HDF5 files from elsewhere: sizes that cannot be, and links to what is no file. They are refused with a
message, at once."""

import os

import h5py
import numpy

from harness import case, check, equal, experiment, main, run, run_fails


def replayed(folder, name):
    return experiment(folder, "replay.yaml", detector={"kind": "replay", "file": str(folder / name), "dataset": "/entry/data/data",
                                                       "rows": 0, "columns": 0, "frames": 1})


@case("an image larger than any detector is refused with its shape")
def _(folder):
    for shape in ((1, 2**31, 2**31), (1, 2**32, 2**32), (1, 2**33, 2**30), (1, 2**17, 2**15)):
        with h5py.File(folder / "huge.h5", "w") as file:
            file.create_dataset("/entry/data/data", shape, "u2", chunks=tuple(min(64, side) for side in shape))
        says = " x ".join(map(str, shape))
        run_fails("show", "huge.h5", "--output", "x.png", folder=folder, says=[says])
        run_fails("run", replayed(folder, "huge.h5"), folder=folder, says=[says])
        run_fails("calibrate", experiment(folder), "--file", "huge.h5", "--output", "dark.h5", folder=folder, says=[says])
        check(not (folder / "x.png").exists(), "there is a picture")


@case("a dataset that leads to a pipe is refused, and not waited for")
def _(folder):
    os.mkfifo(folder / "pipe")
    with h5py.File(folder / "external.h5", "w") as file:
        file.create_group("/entry/data")
        file["/entry/data/data"] = h5py.ExternalLink("pipe", "/data")
    with h5py.File(folder / "group.h5", "w") as file:
        file["/entry"] = h5py.ExternalLink(str(folder / "pipe"), "/entry")
    with h5py.File(folder / "raw.h5", "w") as file:
        file.create_dataset("/entry/data/data", (1, 32, 32), "u2", external=[("pipe", 0, 2048)])
    layout = h5py.VirtualLayout(shape=(1, 32, 32), dtype="u2")
    layout[0] = h5py.VirtualSource("pipe", "/data", shape=(32, 32))
    with h5py.File(folder / "virtual.h5", "w") as file:
        file.create_virtual_dataset("/entry/data/data", layout)
    for name in ("external.h5", "group.h5", "raw.h5", "virtual.h5"):
        for words in (("show", name, "--output", "x.png"), ("run", replayed(folder, name))):
            run_fails(*words, folder=folder, says=["no ordinary file"])
    run_fails("geometry", "group.h5", folder=folder, says=["no ordinary file"])
    run_fails("run", replayed(folder, "pipe"), folder=folder)
    run_fails("densify", "pipe", "dense.h5", folder=folder, says=["no ordinary file"])


@case("a dataset in another ordinary file is read")
def _(folder):
    with h5py.File(folder / "data.h5", "w") as file:
        file["/data"] = numpy.arange(1024, dtype="u2").reshape(1, 32, 32)
    with h5py.File(folder / "external.h5", "w") as file:
        file.create_group("/entry/data")
        file["/entry/data/data"] = h5py.ExternalLink("data.h5", "/data")
    equal(run("show", "external.h5", "--output", "x.png", folder=folder).process.returncode, 0, "exit status")


main()
