#!/usr/bin/python3
"""raw_container_test.py - the raw container with real processes: what one program writes, an independent reader in Python reads by what
docs/reference/raw.md says; writers that are killed; a rolling container; a file system in memory."""
# normal build only

import json
import os
import pathlib
import random
import shutil
import signal
import tempfile
import time

import numpy as np

import harness
import raw_reader
from harness import Program, case, check, equal, main, skip

PROGRAM = pathlib.Path(harness.SLUICE).parent / "tests/raw/raw_file"
MOST = 3000


def payload(number):
    i = np.arange(number * 7919 % MOST)
    return (number * 3 + i * 31 + i // 256 * 7 & 255).astype(np.uint8).tobytes()


def start(folder, *words):
    if not PROGRAM.exists():
        skip(f"{PROGRAM.name} is not built")
    return Program(*words, folder=folder, program=PROGRAM)


def write(folder, *words, path=None):
    program = start(folder, "write", path or folder / "run.raw", f"bytes={MOST}", *words)
    program.wait()
    equal(program.process.returncode, 0, f"exit status of the writer ({program.err()})")
    return json.loads(program.out().splitlines()[-1])


def read(folder, path=None):
    program = start(folder, "read", path or folder / "run.raw")
    program.wait()
    equal(program.process.returncode, 0, f"exit status of the reader ({program.err()})")
    return json.loads(program.out())


def compare(run, numbers):
    equal(sorted(run.chunks), list(numbers), "numbers of the chunks")
    for number, chunk in run.chunks.items():
        equal(chunk.payload, payload(number), f"payload of chunk {number}")
        equal(chunk[2:7], (number, 2 * number, number * number, (number + 1) * 1000000, number % 3), f"key of chunk {number}")


@case("an independent reader reads a complete run")
def complete(folder):
    wrote = write(folder, "chunks=150", "file_bytes=100000", "buffer_bytes=8192", "flush_ms=2")
    run = raw_reader.Run(folder / "run.raw")
    equal((run.state, run.head, run.tail), ("complete", b"up to %d" % MOST, b"the end"), "state, head and tail")
    equal((run.appended, run.lost, run.bytes), (150, 0, wrote["bytes"]), "chunks, lost ones and bytes")
    compare(run, range(150))
    equal((len(run.table), run.indexed), (wrote["files"], wrote["files"]), "data files, and those with an index")
    equal(sum(row[2] for row in run.table), 150, "chunks by the table")
    equal(read(folder)["chunks"], 150, "chunks by our own reader")


@case("data files in three folders in turn")
def folders(folder):
    write(folder, "chunks=150", "file_bytes=65536", "buffer_bytes=8192", *(f"folder={folder}/disk{i}" for i in range(3)))
    run = raw_reader.Run(folder / "run.raw")
    compare(run, range(150))
    for i in range(3):
        check(len(list((folder / f"disk{i}").iterdir())) >= 2, f"folder {i} has data files")


@case("a killed writer leaves everything below its mark")
def killed(folder):
    rounds = 20 if "SLUICE_LONG" in os.environ else 2
    for i in range(rounds):
        path = folder / f"run{i}.raw"
        program = start(folder, "write", path, f"bytes={MOST}", "chunks=0", "file_bytes=300000", "buffer_bytes=8192", "flush_ms=5", "keep_ms=300")
        deadline = time.monotonic() + harness.TIMEOUT_S
        while program.out().count("durable") < 3 + i and time.monotonic() < deadline:
            time.sleep(0.005)
        state = read(folder, path)["state"]
        time.sleep(random.random() * 0.02)
        program.process.send_signal(signal.SIGKILL)
        program.process.wait()
        durable = int(program.out().rsplit("durable ", 1)[1].split("\n")[0])
        equal(state, "writing", "state while the writer lives")
        facts = read(folder, path)
        equal(facts["state"], "killed", "state afterwards")
        run = raw_reader.Run(path)
        equal(run.state, "unfinished", "state afterwards, by the independent reader")
        check(durable - 1 in run.chunks or durable - 1 < min(run.chunks), f"chunk {durable - 1} is there")
        compare(run, sorted(run.chunks))
        check(facts["chunks"] >= len(run.chunks), "our own reader finds as much")


@case("a rolling container keeps the last 100 ms")
def rolling(folder):
    wrote = write(folder, "chunks=1000", "keep_ms=100", "buffer_bytes=8192", f"folder={folder}/a", f"folder={folder}/b")
    run = raw_reader.Run(folder / "run.raw")
    check(wrote["removed_chunks"] > 700, "old chunks were removed")
    check(set(range(900, 1000)) <= set(run.chunks), "the last 100 are there")
    compare(run, sorted(run.chunks))


@case("in memory: a file system that may have no O_DIRECT")
def memory(folder):
    if not os.access("/dev/shm", os.W_OK):
        skip("no /dev/shm here")
    with tempfile.TemporaryDirectory(prefix="sluice-raw-", dir="/dev/shm") as where:
        path = pathlib.Path(where) / "run.raw"
        write(folder, "chunks=100", "file_bytes=100000", path=path)
        compare(raw_reader.Run(path), range(100))


@case("a flipped bit and a missing file are found by both readers")
def damage(folder):
    write(folder, "chunks=60", "file_bytes=70000")
    run = raw_reader.Run(folder / "run.raw")
    chunk = run.chunks[20]
    good = chunk.file.read_bytes()
    bad = bytearray(good)
    bad[chunk.offset + 128 + 5] ^= 4
    chunk.file.write_bytes(bad)
    program = start(folder, "read", folder / "run.raw")
    program.wait()
    equal(program.process.returncode, 1, "exit status with a flipped bit")
    check(f"{chunk.file}: byte {chunk.offset}: chunk 20: the checksum of its payload is wrong" in program.err(),
          f"file, byte and chunk are named: {program.err()}")
    try:
        raw_reader.Run(folder / "run.raw")
        check(False, "the independent reader finds it")
    except raw_reader.Damaged as why:
        check("chunk 20" in str(why), str(why))
    shutil.move(chunk.file, folder / "elsewhere")
    program = start(folder, "read", folder / "run.raw")
    program.wait()
    equal(program.process.returncode, 1, "exit status with a missing file")
    check(f"{chunk.file}: this data file of" in program.err(), f"the file is named: {program.err()}")


if __name__ == "__main__":
    main()
