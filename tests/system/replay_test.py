#!/usr/bin/python3
"""replay_test.py - files of every kind, made with h5py and numpy, played over udp into a NeXus file and compared there;
what cannot be played is refused with the reason."""
# with sanitizers in check-long

import os
import time

import h5py
import numpy as np

from harness import (GUARDED, ROOT, RECEIVER, SOURCE, acquire, case, check, equal, experiment, intact, main,
                     receiver, run, run_fails, skip, Program)

ROWS, COLUMNS, IMAGES = 32, 48, 24
BITSHUFFLE, LZ4 = 32008, 32004


def images(dtype=np.uint16, shape=(IMAGES, ROWS, COLUMNS), seed=1):
    """Poisson counts with every value of the type here and there: they can be packed, but not to nothing."""
    rng = np.random.default_rng(seed)
    data = rng.poisson(3, shape).astype(dtype)
    some = rng.random(shape) < 0.05
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        data[some] = rng.integers(info.min, info.max, some.sum(), dtype=dtype, endpoint=True)
    else:
        data[some] = np.nan
    return data


def write(path, data, name="entry/data/data", **options):
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=data, **options)
    return path


def packed(number, why):
    """The options that make h5py pack with a filter, when it can."""
    if not h5py.h5z.filter_avail(number):
        skip(why)
    return {"compression": number, "compression_opts": (0, 2) if number == BITSHUFFLE else (0,)}


def played(folder, expected, modules=2, program=None, **detector):
    """Play it, and find it again: once in the check against the receiver's own copy, once by h5py here."""
    settings = {"kind": "replay", "rows": None, "columns": None, "modules": modules, "frames": len(expected), **detector}
    done, summary = acquire(folder, detector=settings, program=program)
    intact(done, summary, len(expected) + detector.get("dark_frames", 0), modules)
    with h5py.File(folder / "run.nxs") as file:
        got = file["entry/data/data"][:]
    expected = expected.reshape(len(expected), -1, expected.shape[-1])
    equal((got.shape, got.dtype), (expected.shape, expected.dtype.newbyteorder("=")), "shape and type")
    check(got.tobytes() == np.ascontiguousarray(expected, got.dtype).tobytes(), "other pixels came than are in the file")
    return done


def refused(folder, *says, **detector):
    settings = {"kind": "replay", "rows": None, "columns": None, "modules": 1, "frames": 1, **detector}
    path = experiment(folder, detector=settings)
    for file in [folder / "run.nxs", *folder.glob("run_data_*.h5")]:
        file.unlink(missing_ok=True)
    for command in ("run", "emulate"):
        run_fails(command, path, folder=folder, says=says)
    check(not (folder / "run.nxs").exists(), "a file was left behind")


@case("virtual datasets that lead back to themselves, and values outside the file's folder, are refused")
def _(folder):
    def mapped(path, *sources):
        layout = h5py.VirtualLayout(shape=(4, ROWS, COLUMNS), dtype="u2")
        for k, (name, dataset) in enumerate(sources):
            layout[k] = h5py.VirtualSource(name, dataset, shape=(4, ROWS, COLUMNS))[k]
        with h5py.File(path, "w") as file:
            file.create_virtual_dataset("data", layout)
        return str(path)
    itself = mapped(folder / "itself.h5", (".", "data"))
    refused(folder, "maps onto itself", file=itself, dataset="data", frames=4)
    mapped(folder / "b.h5", (str(folder / "a.h5"), "data"))
    refused(folder, "maps onto itself", file=mapped(folder / "a.h5", (str(folder / "b.h5"), "data")), dataset="data", frames=4)
    data = images(shape=(4, ROWS, COLUMNS))
    write(folder / "source.h5", data, "data")
    honest = mapped(folder / "honest.h5", *[("source.h5", "data")] * 4)
    played(folder, data, file=honest, dataset="data")
    inner, outer = folder / "inner", folder / "secret.raw"
    inner.mkdir()
    outer.write_bytes(data.tobytes())
    for name in (str(outer), "../secret.raw", "beside.raw"):
        (inner / "beside.raw").write_bytes(data.tobytes())
        with h5py.File(inner / "external.h5", "w") as file:
            file.create_dataset("data", data.shape, data.dtype, external=[(name, 0, data.nbytes)])
        if name != "beside.raw":
            refused(folder, "outside the folder", file=str(inner / "external.h5"), dataset="data", frames=4)


@case("without detector.frames all of the file is played")
def _(folder):
    data = images()
    path = str(write(folder / "a.h5", data))
    played(folder, data, file=path, frames=None)
    played(folder, data[5:], file=path, frames=None, first=5)
    darks = str(write(folder / "darks.h5", images(seed=2)[:3]))
    played(folder, data, file=path, frames=None, darks=darks, dark_frames=7)
    refused(folder, "only dark frames", file=path, frames=None, dark_frames=IMAGES)


@case("every type that a pixel can have, and either byte order")
def _(folder):
    for dtype in ("<u1", "<u2", "<u4", "<i2", "<i4", "<f4", ">u2", ">f4"):
        data = images(np.dtype(dtype).newbyteorder("=")).astype(dtype)
        played(folder, data, file=str(write(folder / "a.h5", data)))


@case("contiguous, chunks of any shape, gzip, lzf, shuffle, checksums, scale-offset")
def _(folder):
    data = images()
    ways = [{}, {"chunks": (1, ROWS, COLUMNS)}, {"chunks": (5, 7, 48), "compression": "gzip", "shuffle": True},
            {"chunks": True, "compression": "lzf", "fletcher32": True}, {"chunks": True, "scaleoffset": 0},
            {"chunks": (1, ROWS, COLUMNS), "maxshape": (None, ROWS, COLUMNS), "compression": 9}]
    for way in ways:
        played(folder, data, file=str(write(folder / "a.h5", data, **way)))


@case("bitshuffle with LZ4, and alone")
def _(folder):
    for dtype in (np.uint8, np.uint16, np.uint32):
        data = images(dtype)
        way = packed(BITSHUFFLE, "no HDF5 plugin for bitshuffle (Debian: bitshuffle): h5py cannot make such files")
        for chunks in ((1, ROWS, COLUMNS), (3, 5, 7)):
            for opts in ((0, 2), (64, 2), (0, 0)):
                file = write(folder / "a.h5", data, chunks=chunks, **{**way, "compression_opts": opts})
                played(folder, data, file=str(file))


@case("LZ4")
def _(folder):
    data = images()
    way = packed(LZ4, "no HDF5 plugin for LZ4 (Debian: hdf5-filter-plugin): h5py cannot make such files")
    played(folder, data, file=str(write(folder / "a.h5", data, chunks=(2, ROWS, COLUMNS), **way)))


@case("one image, modules as an axis, modules as rows")
def _(folder):
    one = images()[:1]
    played(folder, one, file=str(write(folder / "a.h5", one[0])))
    data = images(shape=(IMAGES, 4, 8, COLUMNS))
    played(folder, data, modules=4, file=str(write(folder / "a.h5", data)))
    refused(folder, "has 4 modules; set detector.modules: 4", modules=2, file=str(folder / "a.h5"))
    data = images()
    played(folder, data, modules=1, file=str(write(folder / "a.h5", data)))
    played(folder, data, modules=16, file=str(folder / "a.h5"))
    refused(folder, "cannot be cut into 5 modules", modules=5, file=str(folder / "a.h5"))


@case("several files in the order of their numbers, a master file with links, a virtual dataset")
def _(folder):
    data = images()
    for i in range(12):
        write(folder / f"part_{i}.h5", data[2 * i:2 * i + 2], name="x")
    played(folder, data, file=str(folder / "part_*.h5"))
    played(folder, data, file=str(folder / "part_%d.h5"))
    played(folder, data[:4], file=f"{folder}/part_0.h5,{folder}/part_1.h5")
    with h5py.File(folder / "master.h5", "w") as file:
        for i in range(12):
            file[f"entry/data/data_{i + 1:06d}"] = h5py.ExternalLink(f"part_{i}.h5", "/x")
    played(folder, data, file=str(folder / "master.h5"))
    layout = h5py.VirtualLayout((IMAGES, ROWS, COLUMNS), np.uint16)
    for i in range(12):
        layout[2 * i:2 * i + 2] = h5py.VirtualSource(f"part_{i}.h5", "x", (2, ROWS, COLUMNS))
    with h5py.File(folder / "virtual.h5", "w") as file:
        file.create_virtual_dataset("everything", layout)
    played(folder, data, file=str(folder / "virtual.h5"))
    (folder / "part_7.h5").unlink()
    refused(folder, "part_7.h5", "cannot be read", file=str(folder / "virtual.h5"))
    refused(folder, "data_000008", "what it leads to is not there", file=str(folder / "master.h5"))
    refused(folder, "part_8.h5", "number 7 before it is not", file=str(folder / "part_%d.h5"))


@case("raw binary: headers, gaps, several files, big-endian, floats")
def _(folder):
    data = images()
    raw = {"rows": ROWS, "columns": COLUMNS}
    data.tofile(folder / "a.raw")
    played(folder, data, file=str(folder / "a.raw"), **raw)
    data.byteswap().tofile(folder / "b.raw")
    played(folder, data, file=str(folder / "b.raw"), byte_order="big", **raw)
    with open(folder / "c.raw", "wb") as file:
        file.write(b"header")
        for image in data:
            file.write(b"12345678" + image.tobytes() + b"gap")
    played(folder, data, file=str(folder / "c.raw"), header_bytes=6, frame_header_bytes=8, gap_bytes=3, **raw)
    floats = images(np.float32)
    for i in range(3):
        floats[8 * i:8 * i + 8].tofile(folder / f"f{i}.bin")
    played(folder, floats, file=str(folder / "f?.bin"), bits=32, numbers="float", **raw)


@case("from any image on, in a loop, dark frames from the file or from their own")
def _(folder):
    data, darks = images(), images(seed=2)
    file, dark = str(write(folder / "a.h5", data)), str(write(folder / "d.h5", darks, name="dark"))
    played(folder, data[20:], file=file, first=20)
    played(folder, np.concatenate([data[20:], data, data[:10]]), file=file, first=20, loop=True)
    played(folder, data[6:], file=file, dark_frames=6)
    played(folder, data, file=file, darks=dark, dark_frames=30)
    refused(folder, f"has {IMAGES - 20} images from `first` on", "ask for 5", "loop: true", file=file, first=20, frames=5)
    refused(folder, "the first to be played cannot be 24", file=file, first=IMAGES)


@case("a data thread neither allocates nor locks: from memory, from a scratch file, from the raw file")
def _(folder):
    if not GUARDED:
        skip("no guarded program in this build")
    data = images(shape=(IMAGES, 256, 256))
    file = str(write(folder / "a.h5", data, chunks=True, compression="gzip"))
    data.tofile(folder / "a.raw")
    played(folder, data, file=file, program=GUARDED)
    played(folder, data, file=file, cache=0, scratch=str(folder), program=GUARDED)
    played(folder, data, file=str(folder / "a.raw"), rows=256, columns=256, cache=0, program=GUARDED)
    check(not list(folder.glob("sluice-replay*")), "the scratch file has a name")


@case("what is no images is refused, with the reason")
def _(folder):
    data = images()
    (folder / "text.h5").write_text("not HDF5 at all")
    refused(folder, "is no HDF5 file", "rows and columns", file=str(folder / "text.h5"))
    refused(folder, "No such file", file=str(folder / "nothing.h5"))
    refused(folder, "no file is called", file=str(folder / "no*.h5"))
    refused(folder, "which file?")
    with h5py.File(folder / "a.h5", "w") as file:
        file["one"], file["group/two"], file["line"] = data, data, np.arange(10)
        file["large"], file["five"] = data.astype(np.uint64), data.reshape(1, 1, *data.shape)
        file["half"], file["text"] = data.astype(np.float16), ["a", "b"]
        file["none"] = data[:0]
        file["pairs"] = np.zeros((3, 4, 5), [("a", "u2"), ("b", "f4")])
        file["flags"] = data > 2
        file["bytes"] = data.astype(np.int8)
    name = str(folder / "a.h5")
    refused(folder, "datasets that may be images", "/group/two", file=name)
    for dataset, says in {"large": "64-bit", "five": "5 dimensions", "line": "1 dimensions", "none": "is empty",
                          "half": "8, 16 or 32 bits", "pairs": "8, 16 or 32 bits", "flags": "8, 16 or 32 bits", "bytes": "int8",
                          "text": "dimensions", "nothing": "has no dataset '/nothing'", "group": "group"}.items():
        refused(folder, says, file=name, dataset="/" + dataset)
    refused(folder, "32 rows and 48 columns", "33 x 0", file=name, dataset="/one", rows=33)
    write(folder / "b.h5", images(shape=(2, ROWS, COLUMNS + 1)), name="one")
    refused(folder, "the first file of", file=f"{name},{folder}/b.h5", dataset="/one")
    refused(folder, "the dark ones", file=name, dataset="/one", darks=str(folder / "b.h5"), dark_frames=1)


@case("files cut short, and packed bytes that lie")
def _(folder):
    data = images()
    file = write(folder / "a.h5", data, chunks=(1, ROWS, COLUMNS), compression="gzip")
    whole = file.read_bytes()
    for size in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:size])
        refused(folder, "a.h5", file=str(file))
    broken = bytearray(whole)
    with h5py.File(write(folder / "b.h5", data, chunks=(1, ROWS, COLUMNS), compression="gzip")) as other:
        at = other["entry/data/data"].id.get_chunk_info(11).byte_offset
    (folder / "b.h5").write_bytes(whole)
    broken[at:at + 40] = bytes(40)
    file.write_bytes(broken)
    done = run("emulate", experiment(folder, detector={"kind": "replay", "rows": None, "columns": None, "modules": 1,
                                                       "file": str(file), "frames": IMAGES}), "--once", folder=folder)
    equal(done.process.returncode, 1, "exit status")
    check("cannot read /entry/data/data" in done.err(), "it does not say what it cannot read")
    data.tofile(folder / "a.raw")
    os.truncate(folder / "a.raw", 1000)
    refused(folder, "0 images of 3072 bytes", file=str(folder / "a.raw"), rows=ROWS, columns=COLUMNS)
    data.tofile(folder / "a.raw")
    os.truncate(folder / "a.raw", data.nbytes - 1)
    refused(folder, "23 images", "ragged", file=str(folder / "a.raw"), rows=ROWS, columns=COLUMNS)
    played(folder, data[:23], file=str(folder / "a.raw"), rows=ROWS, columns=COLUMNS, ragged=True)


@case("a file that shrinks while it is played ends the run with the reason; from memory it does not matter")
def _(folder):
    data = images(shape=(200, 64, 64))
    for cache in (0, 64):
        data.tofile(folder / "a.raw")
        path = experiment(folder, detector={"kind": "replay", "file": str(folder / "a.raw"), "rows": 64, "columns": 64,
                                            "modules": 1, "frames": 200, "frame_rate_Hz": 400, "cache": cache},
                          sinks=["null"], emulate=None)
        taker = receiver(folder, path, "--still")
        giver = Program("emulate", path, "--once", folder=folder)
        time.sleep(0.2)
        os.truncate(folder / "a.raw", 150 * 64 * 64 * 2)
        taker.wait()
        giver.wait()
        if cache:
            equal(taker.process.returncode, 0, "exit status of a run from memory")
        else:
            check(giver.process.returncode != 0, "the front end says that all is well")
            check("is not what it was when it was opened" in giver.err(), "it does not say why")


@case("the example plays what another run has stored")
def _(folder):
    sets = ["--set", f"link.listen={RECEIVER}", "--set", f"link.source={SOURCE}", "--set", f"control.address={RECEIVER}"]
    done, summary = acquire(folder, detector={"rows": 64, "columns": 64, "frames": 50})
    intact(done, summary, 50)
    equal(run("run", ROOT / "examples/replay.yaml", *sets, "--set", f"detector.file={folder}/run.nxs",
              "--set", "detector.frames=120", "--set", f"sinks.nexus.path={folder}/again.nxs",
              folder=folder).process.returncode, 0, "exit status")
    with h5py.File(folder / "run.nxs") as before, h5py.File(folder / "again.nxs") as after:
        first, second = before["entry/data/data"][:], after["entry/data/data"][:]
    check((second == first[np.arange(120) % 50]).all(), "other images")


main()
