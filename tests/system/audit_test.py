#!/usr/bin/python3
"""audit_test.py - `sluice audit`: runs are proven, whatever their packing, files and faults; one flipped bit, one missing frame, one swapped file
and a source that counts otherwise are found and named; damaged files never crash it."""
# normal build only

import json
import os
import random
import re
import shutil
import signal

import h5py

from harness import Program, acquire, case, check, equal, experiment, intact, main, run, run_fails, wait_for

FRAMES, PER_FILE = 60, 20
DETECTOR = {"kind": "pattern", "modules": 2, "rows": 64, "columns": 64, "frames": FRAMES}


def take(folder, name="run", arguments=(), **nexus):
    """A small run of raw pixels with checksums of the source, in a folder of its own: that folder, and the root in its summary."""
    place = folder / name
    place.mkdir()
    sink = {"path": str(place / "run.nxs"), "dataset": "raw", "frames_per_file": PER_FILE, **nexus}
    program, summary = acquire(place, link={"kind": "shm", "crc": True}, detector=DETECTOR, sinks=[{"nexus": sink}, "verify"],
                               frontend={"counts": str(place / "sent.txt")}, arguments=arguments)
    intact(program, summary, FRAMES)
    return place, summary["sinks"][0]["texts"].get("audit_root")


def audit(folder, status, *says, arguments=(), file="run.nxs"):
    """Audit a run: its exit status, and what it must say; what it said."""
    done = run("audit", folder / file, *arguments, folder=folder)
    said = done.out() + done.err()
    equal(done.process.returncode, status, f"exit status of sluice audit, which said:\n{said}")
    for text in says:
        check(re.search(text, said), f"'{text}' is not in what audit said:\n{said}")
    return said


def findings(folder, *arguments):
    """The kinds of what is wrong, by JSON."""
    done = run("audit", folder / "run.nxs", "--json", *arguments, folder=folder)
    found = json.loads(done.out())
    equal(found["result"], "damaged" if done.process.returncode else "proven", "result")
    equal(found["findings"], len(found["first_findings"]), "findings")
    return [(f["kind"], f["file"], f["frame"]) for f in found["first_findings"]]


def again(folder, name="copy"):
    """A copy of the run, to be damaged."""
    shutil.rmtree(folder.parent / name, ignore_errors=True)
    return shutil.copytree(folder, folder.parent / name)


def flip(path, dataset, row, byte=0, bit=0):
    """One bit of one row, where it lies in the file."""
    with h5py.File(path) as file:
        data = file[dataset]
        per_chunk, row_bytes = data.chunks[0], data.dtype.itemsize
        for n in data.shape[1:]:
            row_bytes *= n
        chunk = data.id.get_chunk_info(row // per_chunk)
        packed = data.id.get_create_plist().get_nfilters()
        at = chunk.byte_offset + (chunk.size // 2 if packed else row % per_chunk * row_bytes) + byte
    with open(path, "r+b") as file:
        file.seek(at)
        value = file.read(1)[0]
        file.seek(at)
        file.write(bytes([value ^ 1 << bit]))


@case("a run is proven: by its file, its summary, its source's counts and a root that was noted")
def _(folder):
    place, root = take(folder)
    said = audit(place, 0, "proven: every frame is there and unchanged", "60 rows about 120 module-frames and 60 images", "in 3 files", root,
                 "the ledger closes: 120 module-frames sent", "120 checksums of pixels are the source's; stored raw pixels have them",
                 "the source counts 120 module-frames: each has one row; 120 of its checksums",
                 arguments=("--source", "sent.txt", "--summary", "summary.json"))
    check("summary.json" in said, "what it was compared with")
    audit(place, 0, arguments=("--root", root))
    audit(place, 1, "says that the root of this run is", arguments=("--root", root[::-1]))
    audit(place, 2, "64 hexadecimal digits", arguments=("--root", "abc"))
    audit(place, 2, "No such file", file="none.nxs")
    audit(place, 2, "no audit_root of this file", arguments=("--summary", "none.json"))
    with h5py.File(place / "run.nxs") as file:
        equal(file["entry/sluice/audit/root"][()].decode(), root, "root in the file")
    equal(findings(place), [], "findings")


@case("the root does not depend on packing, files and workers, and is there without data files")
def _(folder):
    roots = {take(folder, name, **options)[1] for name, options in {
        "a": {}, "b": {"compression": "none"}, "c": {"frames_per_file": 7, "compression": "lz4"}, "d": {"frames_per_file": 0},
        "e": {"compression": "bszstd", "workers": 2, "frames_per_file": 1}}.items()}
    equal(len(roots), 1, "different roots")
    for name in "bcde":
        audit(folder / name, 0, arguments=("--source", "sent.txt", "--root", roots.copy().pop()))
    flip(folder / "d" / "run.nxs", "entry/data/data", 33, 5)
    equal(findings(folder / "d"), [("source", "run.nxs", 33), ("image", "run.nxs", 33)], "a flipped bit in one file")


@case("one flipped bit is found and named: image, row, results, checksums, leaves")
def _(folder):
    place, _ = take(folder)
    frame, name = 25, "run_data_000002.h5"
    for dataset, wanted in {
            "entry/data/data": {("image", name, frame)},
            "entry/sluice/frames/timestamp": {("row", name, frame)},
            "entry/sluice/frames/outcome": {("row", name, frame)},
            "entry/sluice/frames/score": {("row", name, frame)},
            "entry/sluice/audit/source_crc32c": {("row", name, frame), ("source", name, frame)},
            "entry/sluice/audit/module_sequence": {("row", name, frame)},
            "entry/sluice/audit/image_crc32c": {("checksum", name, frame)},
            "entry/sluice/audit/series_crc32c": {("checksum", name, frame)},
            "entry/sluice/audit/leaf": {("checksum", name, frame)},
            "entry/data/timestamp": {("series", name, frame)},
            "entry/sluice/frames/image_index": {("series", name, frame)}}.items():
        damaged = again(place)
        flip(damaged / name, dataset, frame - PER_FILE, bit=2 if dataset.endswith("image_index") else 0)
        found = set(findings(damaged))
        check(wanted <= found and {f[2] for f in found} == {frame}, f"{dataset}: {found}")
    damaged = again(place)
    flip(damaged / name, "entry/data/data", 5)
    audit(damaged, 1, rf"frame 25 \(sequence 25\): its image in {name}", "DAMAGED")


@case("one flipped bit of unpacked pixels is found in every module, also by the source's checksum")
def _(folder):
    place, _ = take(folder, compression="none")
    for byte, module in ((100, 0), (64 * 64 * 2 + 7, 1)):
        damaged = again(place)
        flip(damaged / "run_data_000003.h5", "entry/data/data", 11, byte, 3)
        audit(damaged, 1, r"frame 51 \(sequence 51\): its image in run_data_000003.h5 does not match its checksum",
              rf"frame 51 \(sequence 51\): pixels of module {module} in run_data_000003.h5 do not match the checksum of their source")


@case("a missing frame is found and named: rows cut off, taken out of the middle, a file cut or removed")
def _(folder):
    place, _ = take(folder, compression="none")
    name = "run_data_000002.h5"
    damaged = again(place)
    with h5py.File(damaged / name, "r+") as file:
        def shorten(_, data):
            if isinstance(data, h5py.Dataset) and data.shape and data.shape[0] == PER_FILE:
                data.resize(PER_FILE - 1, 0)
        file.visititems(shorten)
    audit(damaged, 1, f"{name}: 1 of its 20 rows are missing", "no row about 1 frame before frame 40: sequence 39 to 39")
    damaged = again(place)
    with h5py.File(damaged / name, "r+") as file:
        def take_out(_, data):
            if isinstance(data, h5py.Dataset) and data.shape and data.shape[0] == PER_FILE:
                data[7:-1] = data[8:]
                data.resize(PER_FILE - 1, 0)
        file.visititems(take_out)
    audit(damaged, 1, f"{name}: 1 of its 20 rows are missing", "no row about 1 frame before frame 28: sequence 27 to 27",
          "module 1, sequence 27: the source sent it, the run has no row about it", arguments=("--source", "sent.txt"))
    damaged = again(place)
    os.truncate(damaged / name, (damaged / name).stat().st_size // 2)
    audit(damaged, 1, f"{name} cannot be read .*: 20 rows from sequence 20 to 39")
    (damaged / name).unlink()
    audit(damaged, 1, f"{name} is missing: 20 rows from sequence 20 to 39",
          "module 0, sequence 20: the source sent it and the 19 behind it", arguments=("--source", "sent.txt"))


@case("a swapped file is found and named: of another run, of another place, the master")
def _(folder):
    (one, _), (other, _) = take(folder, "one"), take(folder, "other")
    damaged = again(one)
    shutil.copy(other / "run_data_000002.h5", damaged)
    audit(damaged, 1, "run_data_000002.h5 is not of this run")
    equal({f[:2] for f in findings(damaged)}, {("file_foreign", "run_data_000002.h5")}, "findings")
    damaged = again(one)
    shutil.copy(one / "run_data_000002.h5", damaged / "run_data_000003.h5")
    shutil.copy(one / "run_data_000003.h5", damaged / "run_data_000002.h5")
    audit(damaged, 1, "run_data_000002.h5 is in the wrong place: its rows are those of data file 3",
          "run_data_000003.h5 is in the wrong place: its rows are those of data file 2")
    damaged = again(one)
    shutil.copy(other / "run.nxs", damaged)
    audit(damaged, 1, "run.nxs is not of this run: all its data files are of another one")


@case("a source that counts otherwise is found and named")
def _(folder):
    place, _ = take(folder)
    text = (place / "sent.txt").read_text()
    wrong = place / "wrong.txt"
    for change, says in (
            (lambda t: t.replace("module 1 first 0 count 60", "module 1 first 0 count 62"),
             "module 1, sequence 60: the source sent it and the 1 behind it, the run has no rows"),
            (lambda t: t.replace("module 0 first 0 count 60", "module 0 first 0 count 59"),
             "module 0, sequence 59: the run has a row about it, the source did not send it"),
            (lambda t: t + "left_out 0 7\n", "module 0, sequence 7: the source left it out, the run says that it came"),
            (lambda t: re.sub(r"crc 1 33 \w{8}", "crc 1 33 00000000", t),
             "module 1, sequence 33: the source's checksum is 00000000 by its own account"),
            (lambda t: t + "module 2 first 0 count 1\n", "module 2, sequence 0: the source counts it, the run has no such module")):
        wrong.write_text(change(text))
        audit(place, 1, says, arguments=("--source", "wrong.txt"))
    for bad, says in (("nonsense\n", "line 1: not understood"), ("", "no line 'module'"), ("sluice counts 2\n", "another version"),
                      ("crc 0 1 00000000\n", "no line 'module'"), ("module 0 first 5 count 2\nmodule 0 first 6 count 2\n", "must grow")):
        wrong.write_text(bad)
        audit(place, 2, f"wrong.txt: .*{says}", arguments=("--source", "wrong.txt"))


@case("runs with loss are proven, too: what was lost or left out has a row")
def _(folder):
    for name, sections in {"drop": {"frontend": {"drop": 0.01}, "ring": {"late_timeout_ms": 50}},
                           "skip": {"frontend": {"skip": 0.1}, "ring": {"late_timeout_ms": 50}}}.items():
        place = folder / name
        place.mkdir()
        sections["frontend"]["counts"] = str(place / "sent.txt")
        _, summary = acquire(place, link={"crc": True}, detector={"frames": 100}, **sections)
        equal(summary["ledger"]["closed"], True, "the ledger closes")
        audit(place, 0, "the source counts", arguments=("--source", "sent.txt"))
        if name == "skip":
            check("left_out" in (place / "sent.txt").read_text(), "nothing was left out")


@case("results of stages are proven, and a flipped bit in one is named")
def _(folder):
    stages = [{"correct": {"output": "photons_i16"}}, {"veto": {"threshold": 10, "min_pixels": 20}}, {"integrate": {"bins": 50}}, "peaks"]
    detector = {"kind": "jungfrau", "modules": 1, "rows": None, "columns": None, "frames": 24, "dark_frames": 8, "hit_fraction": 0.5,
                "photon_energy_keV": 12.4}
    nexus = {"path": str(folder / "run.nxs"), "frames_per_file": 5, "image": "assembled"}
    done, _ = acquire(folder, link={"kind": "shm"}, detector=detector, stages=stages, sinks=[{"nexus": nexus}])
    equal(done.process.returncode, 0, "exit status")
    audit(folder, 0, "32 rows about 32 module-frames", "the source sent no checksums of pixels")
    with h5py.File(folder / "run_data_000001.h5") as file:
        series = file["entry/sluice/audit/leaf"].attrs["series"].split()
        ours = next(s for s in series if s.startswith("/entry/results/") and len(file[s]))
    flip(folder / "run_data_000001.h5", ours, 0)
    audit(folder, 1, f"its rows of {ours} in run_data_000001.h5 do not match their checksum")


@case("a run that keeps nothing, and one without images, are proven")
def _(folder):
    for name, sections in {"nothing": {"detector": {"frames": 5, "dark_frames": 20}, "stages": ["copy", {"veto": {"min_pixels": 1000000}}]},
                           "none": {"stages": ["copy", "reduce"], "sinks": [{"nexus": {"path": "run.nxs", "image": "none"}}]}}.items():
        place = folder / name
        place.mkdir()
        done, _ = acquire(place, link={"kind": "shm"}, **sections)
        equal(done.process.returncode, 0, "exit status")
        audit(place, 0, " and 0 images")


@case("a run that was killed is audited after sluice recover, and not before")
def _(folder):
    detector = {**DETECTOR, "frames": 2000, "frame_rate_Hz": 300}
    sink = {"path": str(folder / "run.nxs"), "dataset": "raw", "frames_per_file": 40, "flush_s": 0.05}
    path = experiment(folder, link={"kind": "shm", "crc": True}, detector=detector, sinks=[{"nexus": sink}])
    program = Program("run", path, folder=folder)
    wait_for("two data files", lambda: (folder / "run_data_000002.h5").exists() or not program.running())
    program.send(signal.SIGKILL)
    program.wait()
    audit(folder, 2, "sluice recover")
    recovered = run("recover", folder / "run.nxs", folder=folder).ends(0)
    check("the root of its hash tree is" in recovered.out(), "recover does not say the root")
    audit(folder, 0, "proven: every frame is there and unchanged", "killed and recovered", "stored raw pixels have them")
    flip(folder / "run_data_000001.h5", "entry/sluice/frames/timestamp", 17)
    audit(folder, 1, r"frame 17 \(sequence 17\): the row about it in run_data_000001.h5")


@case("a run's folder is audited with its result, and a run without a hash tree is refused")
def _(folder):
    path = experiment(folder, link={"kind": "shm"}, detector=DETECTOR, sinks=[{"nexus": {"path": "run.nxs", "dataset": "raw"}}])
    equal(run("run", path, "--root", folder / "runs", folder=folder).process.returncode, 0, "exit status")
    audit(folder / "runs", 0, "and .*000001/result.json", file="000001")
    result = folder / "runs" / "000001" / "result.json"
    root = json.loads(result.read_text())["sinks"][0]["texts"]["audit_root"]
    result.write_text(result.read_text().replace(root, root[::-1]))
    audit(folder / "runs", 1, "result.json says that the root of this run is", file="000001")
    place, root = take(folder, audit=False)
    equal(root, None, "a root without a tree")
    audit(place, 2, "audit: false")
    run_fails("run", path, "--set", "sinks[0].nexus.audit=maybe", folder=folder)


@case("data files with damage anywhere are found to be damaged, and crash nothing")
def _(folder):
    place, root = take(folder)
    draw = random.Random(7)
    for i in range(200 if "SLUICE_LONG" in os.environ else 6):
        name = ("run.nxs", "run_data_000002.h5")[i % 2]
        damaged = again(place)
        with open(damaged / name, "r+b") as file:
            size = file.seek(0, 2)
            for _ in range(40):
                file.seek(draw.randrange(size))
                file.write(bytes([draw.randrange(256)]))
        done = run("audit", damaged / "run.nxs", "--root", root, folder=damaged)
        # The master has much that no frame depends on.
        right = (0, 1, 2) if name == "run.nxs" else (1,)
        check(done.process.returncode in right, f"round {i}, {name}: exit status {done.process.returncode}: {done.out()}{done.err()}")


main()
