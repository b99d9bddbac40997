#!/usr/bin/python3
"""raw_test.py - the sink raw, sluice convert and sluice cut: a converted run is the file that nexus wrote in the same run, bit for bit; a
conversion that is killed goes on; a killed run is converted as far as it goes; a part of a run is cut out while data keep coming."""
# normal build only

import json
import os
import random
import shlex
import signal
import struct
import subprocess
import time

import h5py
import numpy as np

from harness import (RUN_DIR, SLUICE, Program, acquire, case, check, closes, equal, experiment, intact, main, read_summary, run,
                     run_fails, sink, skip, wait_for)
import raw_reader
from recording import ABOUT_THE_RUN, RANDOM, compare, contents
from slow_disk import MB, on_slow_disk

JUNGFRAU = {
    "detector": {"kind": "jungfrau", "rows": None, "columns": None, "dark_frames": 8, "frames": 60, "hit_fraction": 0.3},
    "link": {"kind": "shm"},
    "stages": [{"correct": {"output": "photons_i16"}}, "reduce", {"veto": {"threshold": 10, "min_pixels": 20}}],
}


def sinks(folder, raw=None, **nexus):
    return [{"nexus": {"path": str(folder / "run.nxs"), **nexus}}, {"raw": {"path": str(folder / "run.raw"), "flush_s": 0.05, **(raw or {})}}, "verify"]


def convert(folder, *sets, raw="run.raw", out="out.nxs", **options):
    arguments = [word for one in sets for word in ("--set", one)]
    done = run("convert", folder / raw, folder / out, *arguments, folder=folder, **options)
    equal(done.process.returncode, 0, f"exit status of convert: {done.err()}")
    return done


def same(folder):
    """Every dataset and attribute, but for the wall clock; texts about the run, too."""
    a, b = contents(folder / "run.nxs"), contents(folder / "out.nxs")
    compare(a, b)
    equal([path for path in ABOUT_THE_RUN - RANDOM if a[path] != b[path]], [], "what describes the run and differs")


# ---- convert ----

@case("jungfrau: kept, vetoed and dark frames; the converted file is the one that nexus wrote")
def _(folder):
    program, summary = acquire(folder, **JUNGFRAU, sinks=sinks(folder, frames_per_file=7))
    intact(program, summary, 68)
    convert(folder, "frames_per_file=7")
    same(folder)
    check(sink(summary, "raw")["frames"] == sink(summary, "nexus")["frames"] > 5, "images")
    equal(sink(summary, "raw")["rows_durable"], 68, "durable rows")
    with h5py.File(folder / "run.nxs") as a, h5py.File(folder / "out.nxs") as b:
        begun, ended = a["entry/start_time"][()], b["entry/start_time"][()]
        equal(begun[:16], ended[:16], "the time when the run began, to the minute")
    convert(folder, "image=assembled", "compression=bszstd", "frames_per_file=0", out="other.nxs")
    with h5py.File(folder / "other.nxs") as file:
        check(file["entry/data/data"].shape[1:] != (2 * 512, 1024), "the image is not assembled")


def audited(folder, status, *says, arguments=()):
    """sluice audit of the converted file, beside what the source counts."""
    done = run("audit", folder / "out.nxs", "--source", folder / "sent.txt", *arguments, folder=folder)
    missing = [text for text in says if text not in done.out() + done.err()]
    equal((done.process.returncode, missing), (status, []), f"exit status of audit, and what it did not say: {done.out()}{done.err()}")


@case("a converted run is proven by what its source counted; one bit of a pixel that is flipped in the converted file is found and named")
def _(folder):
    program, summary = acquire(folder, link={"kind": "shm", "crc": True}, detector={"rows": 64, "columns": 64, "dark_frames": 5, "frames": 60},
                               frontend={"counts": str(folder / "sent.txt")}, sinks=sinks(folder, {"dataset": "raw"}, dataset="raw"))
    intact(program, summary, 65)
    convert(folder, "frames_per_file=20", "compression=none")
    root = next(one["texts"]["audit_root"] for one in summary["sinks"] if one["name"] == "nexus")  # other files, other packing: the same frames
    audited(folder, 0, "proven: every frame is there and unchanged", "65 rows about 130 module-frames and 60 images",
            "130 checksums of pixels are the source's; stored raw pixels have them",
            "the source counts 130 module-frames: each has one row; 130 of its checksums are in the file", arguments=("--root", root))
    name, byte = "out_data_000002.h5", 64 * 64 * 2 + 7  # a pixel of module 1, in the fourth image of that file: image 23 of all
    with h5py.File(folder / name) as file:
        at = file["entry/data/data"].id.get_chunk_info(3).byte_offset + byte
        frame, sequence = file["entry/data/frame_number"][3], file["entry/data/sequence"][3]
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:at] + bytes([whole[at] ^ 1 << 4]) + whole[at + 1:])
    audited(folder, 1, "DAMAGED", f"frame {frame} (sequence {sequence}): its image in {name} does not match its checksum",
            f"frame {frame} (sequence {sequence}): pixels of module 1 in {name} do not match the checksum of their source")
    (folder / name).write_bytes(whole)
    audited(folder, 0, "proven")


def decode(payload):
    """A frame by what docs/reference/raw-run.md says: (sequence, number, flags, outcomes, keep, [(rows, bytes or None)])."""
    sequence, number, _, _ = struct.unpack_from("<4Q", payload, 0)
    flags, views, items, results = struct.unpack_from("<4I", payload, 96)
    outcomes = [payload[112 + 80 * view + 64 + 10] for view in range(views)]
    at = 112 + 80 * views
    keep = [struct.unpack_from("<H", payload, at + 24 * item + 20)[0] for item in range(items)]
    at += 24 * items
    table = [struct.unpack_from("<IIQ", payload, at + 16 * result) for result in range(results)]
    return sequence, number, flags, outcomes, keep, table, at + 16 * results


@case("a raw file is what docs/reference/raw-run.md says")
def _(folder):
    small = {"rows": 32, "columns": 32, "dark_frames": 3, "frames": 30}  # checksums in Python take their time
    program, summary = acquire(folder, detector=small, stages=["copy", "reduce"], sinks=sinks(folder, {"dataset": "raw"}, dataset="raw"))
    intact(program, summary, 33)
    recording = raw_reader.Run(folder / "run.raw")
    equal(struct.unpack_from("<II", recording.head), (1, 0), "version of the head")
    with h5py.File(folder / "run.nxs") as file:
        rows, images = file["entry/sluice/frames"], file["entry/data/data"]
        sums = file["entry/results/statistics"][()]
        kept = 0
        for k in range(33):
            payload = recording.chunks[k].payload
            sequence, number, flags, outcomes, keep, table, at = decode(payload)
            equal((sequence, number, flags), (k, rows["frame_number"][k], rows["flags"][k]), f"frame {k}")
            equal(outcomes, rows["outcome"][k].tolist(), f"outcomes of frame {k}")
            equal(bool(rows["keep"][k]), bool(keep[0]) and not flags & 1, f"verdict on frame {k}")
            if not rows["keep"][k]:
                check(not any(stored for stored, _, size in table if size >= 4096), f"frame {k} was rejected and has an image")
                continue
            at = -(-at // 8) * 8
            check(payload[at:at + sums[kept].nbytes] == sums[kept].tobytes(), f"statistics of frame {k}")
            check(payload[-images[kept].nbytes:] == images[kept].tobytes(), f"pixels of frame {k}")
            kept += 1
    equal(kept, 30, "images compared")


KINDS = {
    "pattern, raw pixels in two folders, modules that lose packets": {
        "detector": {"frames": 80, "dark_frames": 5}, "frontend": {"drop": 0.002}, "on_incomplete": None},
    "eiger": {"detector": {"kind": "eiger", "rows": None, "columns": None, "modules": 1, "frames": 12}, "link": {"kind": "shm"}},
    "jungfrau aslant, a module out of its place, a sample that turns, radial bins": {
        "detector": {"kind": "jungfrau", "rows": None, "columns": None, "dark_frames": 3, "frames": 6, "hit_fraction": 1},
        "link": {"kind": "shm"},
        "geometry": {"rot1": 0.4, "rot2": -0.2, "modules": [{"module": 1, "right_m": 1e-3, "rot_away": 0.02}]},
        "goniometer": [{"omega": {"increment_deg": 0.1, "start_deg": 30}}],
        "stages": [{"correct": {"output": "photons_i16"}}, {"integrate": {"bins": 50}}, {"peaks": {}}]},
    "camera": {"detector": {"kind": "camera", "rows": None, "columns": None, "modules": None, "width": 128, "height": 128, "frames": 20},
               "link": {"kind": "shm"}, "stages": []},
    "rich: blocks of events": {"detector": {"kind": "rich", "rows": None, "columns": None, "modules": None, "frames": 12},
                               "link": {"kind": "shm"}},
    "tracker": {"detector": {"kind": "tracker", "rows": None, "columns": None, "modules": None, "frames": 12}, "link": {"kind": "shm"}},
}


def of_kind(name, sections):
    @case(f"{name}: the converted file is the one that nexus wrote")
    def _(folder):
        folders = f"{folder}/a,{folder}/b" if "folders" in name else ""
        program, summary = acquire(folder, **sections, sinks=sinks(folder, {"dataset": "raw", "folders": folders}, dataset="raw"))
        check(program.process.returncode in (0, 2), program.err())
        closes(summary)
        convert(folder)
        same(folder)
        if folders:
            equal(bool(list((folder / "a").iterdir())) and bool(list((folder / "b").iterdir())), True, "data files in both folders")
            check(summary["ledger"]["total"]["outcomes"]["incomplete"] > 0, "no module was damaged: nothing of it was tested")


for kind, changes in KINDS.items():
    of_kind(kind, changes)


def burst(folder, frames=400, **raw):
    """A run with both sinks that is large enough to be interrupted."""
    program, summary = acquire(folder, detector={"rows": 256, "columns": 256, "frames": frames}, link={"kind": "shm"},
                               sinks=sinks(folder, {"dataset": "raw", **raw}, dataset="raw", frames_per_file=20))
    intact(program, summary, frames)


@case("metadata that were changed during the run, and when, are in the converted file as in the one that nexus wrote")
def _(folder):
    path = experiment(folder, detector={"frames": 100000, "frame_rate_Hz": 200}, link={"kind": "shm"}, metadata={"title": "first"},
                      sinks=sinks(folder, {"dataset": "raw"}, dataset="raw"))
    program = Program("run", path, "--summary", folder / "summary.json", folder=folder)
    wait_for("data", lambda: figure("raw", "rows_durable") > 20 or not program.running())
    for change in ("sample=lysozyme \"\u00fc\" {run}", "title=second", "title="):
        equal(run("ctl", "experiment", "metadata", change, folder=folder).process.returncode, 0, "exit status of ctl")
    program.send(signal.SIGINT)
    program.ends(0)
    convert(folder)
    same(folder)
    with h5py.File(folder / "out.nxs") as file:
        changes = file["entry/sluice/metadata_changes"]
        equal([text.decode() for text in changes["key"]], ["sample", "title", "title"], "keys that were changed")


@case("a raw file that leaves frames out: rows, and what the converted file says of it, are those that nexus would have written")
def _(folder):
    detector = {"kind": "pattern", "modules": 2, "rows": 512, "columns": 512, "frames": 300, "frame_rate_Hz": 150}
    path = experiment(folder, detector=detector, link={"kind": "shm"},
                      sinks=[{"raw": {"path": str(folder / "run.raw"), "dataset": "raw", "on_slow": "prescale"}}, "verify"])
    Program("run", path, "--summary", folder / "summary.json", folder=folder, wrapper=on_slow_disk(6 * MB, of=".bin")).ends(2)
    pace = next(s for s in read_summary(folder)["sinks"] if s["name"] == "raw")["pace"]
    check(0 < pace["left_out"] < 300, f"{pace['left_out']} frames were left out")
    convert(folder)
    with h5py.File(folder / "out.nxs") as file:
        group, rows = file["entry/sluice/on_slow"], file["entry/sluice/frames"]
        equal((group["policy"][()], group["frames_left_out"][()], group["changes"][()]), (b"prescale", pace["left_out"], pace["factor_changes"]),
              "what the file says of it")
        equal([{"sequence": int(k), "factor": int(n)} for k, n in zip(group["sequence"], group["factor"], strict=True)], pace["changes"], "changes")
        equal(rows["image_index"][()].tolist().count(-1), pace["left_out"], "rows without an image")
    equal(run("audit", folder / "out.nxs", folder=folder).process.returncode, 0, "exit status of audit")


@case("a rolling buffer on a slow disk: the run does not wait; what is left out is counted, and named by sluice cut; on_slow: wait makes it wait")
def _(folder):
    detector = {"kind": "pattern", "modules": 2, "rows": 512, "columns": 512, "dark_frames": 20, "frames": 280, "frame_rate_Hz": 150}
    for policy in ("auto", "wait"):
        here = folder / policy
        here.mkdir()
        raw = {"path": str(here / "run.raw"), "dataset": "raw", "keep_s": 100, "on_slow": policy}
        path = experiment(here, detector=detector, link={"kind": "shm"}, sinks=[{"nexus": {"path": str(here / "run.nxs"), "dataset": "raw"}},
                                                                                {"raw": raw}, "verify"])
        program = Program("run", path, "--summary", here / "summary.json", folder=here, wrapper=on_slow_disk(6 * MB, of=".bin"))
        program.wait()
        summary = read_summary(here)
        intact(program, summary, 300)
        one = next(s for s in summary["sinks"] if s["name"] == "raw")
        pace = one["pace"]
        if policy == "wait":
            check(pace["waited_ns"] > 1e9 and not pace["left_out"], f"it did not wait: {pace}")
            continue
        equal((pace["on_slow"], pace["waited_ns"], one["figures"]["frames_refused"]), ("drop", 0, 0), "pace, frames refused")
        check(0 < pace["left_out"] < 300, f"{pace['left_out']} frames were left out")
        equal(one["figures"]["frames"], 300 - pace["left_out"], "images in the buffer")
        check(f"raw left out {pace['left_out']} frames (on_slow: drop)" in program.out(), "the result does not say it")
        check("cannot keep pace: frame " in program.err(), "the log does not say it")
        done = run("cut", here / "run.raw", "--last", "100s", here / "cut.nxs", folder=here)
        equal(done.process.returncode, 2, done.err())
        proven = run("audit", here / "cut.nxs", folder=here)
        equal(proven.process.returncode, 0, f"exit status of audit: {proven.out()}")
        check("it is a part of a run" in proven.out() and "frames in between" in proven.out(), proven.out())
        with h5py.File(here / "cut_data_000001.h5", "r+") as file:
            file["entry/sluice/frames/sequence"][50] += 1
        damaged = run("audit", here / "cut.nxs", folder=here)
        check(damaged.process.returncode == 1 and "sequence" in damaged.out(), damaged.out())
        with h5py.File(here / "cut_data_000001.h5", "r+") as file:
            file["entry/sluice/frames/sequence"][50] -= 1
        with h5py.File(here / "cut.nxs") as file, h5py.File(here / "run.nxs") as whole:
            frames = file["entry/sluice/frames/sequence"][()]
            equal(file["entry/sluice/frames/image_index"][()].tolist(), list(range(len(frames))), "image_index")
            gaps = int(frames[-1]) + 1 - len(frames)
            check(f"missing: {gaps} frames in between (sequences " in done.err(), f"{gaps} of {frames.tolist()}: {done.err()}")
            images = dict(zip(whole["entry/data/sequence"][()].tolist(), whole["entry/data/data"][()]))
            for sequence, image in zip(frames.tolist(), file["entry/data/data"]):
                check(sequence not in images or np.array_equal(image, images[sequence]), f"another image of sequence {sequence}")


def lines(folder):
    """Data files that the conversion has noted down."""
    journal = folder / "out.nxs.convert"
    return journal.read_text().count("\nfile ") if journal.exists() else 0


@case("a conversion that is killed at random moments goes on, and the file is the same in the end")
def _(folder):
    burst(folder)
    draw, kills = random.Random(5), 0
    arguments = ("convert", folder / "run.raw", folder / "out.nxs", "--set", "frames_per_file=20")
    while True:
        before = lines(folder)
        program = Program(*arguments, folder=folder)
        # Each try gets at least a data file further, and is killed anywhere in the next ones.
        if kills % 2:
            wait_for("a data file", lambda: lines(folder) > before or not program.running())
        time.sleep(draw.random() * 0.04)
        if not program.running():
            break
        program.send(signal.SIGKILL)
        program.wait()
        kills += 1
    program.ends(0)
    check(kills > 3 and "of an earlier try were kept" in program.out(), f"killed {kills} times: {program.out()}")
    same(folder)
    left = {path.name for pattern in ("out.*", "out_*") for path in folder.glob(pattern)}
    equal(left, {"out.nxs"} | {f"out_data_{n:06}.h5" for n in range(1, 21)}, "files")
    run_fails(*arguments, folder=folder, says=["out.nxs exists"])


@case("data files of an interrupted conversion are verified: one that was changed is written again; other options are refused")
def _(folder):
    burst(folder)
    arguments = ("convert", folder / "run.raw", folder / "out.nxs", "--set", "frames_per_file=20")
    program = Program(*arguments, folder=folder)
    wait_for("three data files", lambda: not program.running() or lines(folder) >= 3)
    program.send(signal.SIGKILL)
    if program.wait() == 0:
        skip("the conversion was too fast to be killed")
    run_fails("convert", folder / "run.raw", folder / "out.nxs", folder=folder, says=["out.nxs", "other options"])
    data = bytearray((folder / "out_data_000002.h5").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "out_data_000002.h5").write_bytes(data)
    done = run(*arguments, folder=folder)
    equal(done.process.returncode, 0, done.err())
    check("data file 2 is not there, or not as it was written" in done.err(), done.err())
    check("1 data file of an earlier try was kept" in done.out(), done.out())
    same(folder)


@case("an interrupted conversion overwrites no file that came since; one that had finished has nothing to do; without data files it begins anew")
def _(folder):
    burst(folder)
    arguments = ("convert", folder / "run.raw", folder / "out.nxs", "--set", "frames_per_file=20")
    program = Program(*arguments, folder=folder)
    wait_for("a data file", lambda: not program.running() or lines(folder) >= 1)
    program.send(signal.SIGKILL)
    if program.wait() == 0:
        skip("the conversion was too fast to be killed")
    (folder / "kept.nxs").write_bytes((folder / "out.nxs").read_bytes())
    journal = (folder / "out.nxs.convert").read_text()
    (folder / "out.nxs").write_bytes((folder / "run.nxs").read_bytes())
    before = {path.name: path.read_bytes() for path in folder.glob("out_data_*.h5")}
    run_fails(*arguments, folder=folder, says=["is not what an earlier conversion left"])
    equal({path.name: path.read_bytes() for path in folder.glob("out_data_*.h5")}, before, "data files")
    (folder / "out.nxs").write_bytes((folder / "kept.nxs").read_bytes())
    equal(run(*arguments, folder=folder).process.returncode, 0, "exit status")
    same(folder)
    (folder / "out.nxs.convert").write_text(journal + "closing\n")  # killed when all was done
    check("nothing to do" in run(*arguments, folder=folder).out(), "it does not say so")
    check(not (folder / "out.nxs.convert").exists(), "the journal is left")
    same(folder)
    single = ("convert", folder / "run.raw", folder / "one.nxs", "--set", "frames_per_file=0")
    program = Program(*single, folder=folder)
    wait_for("the file", lambda: not program.running() or (folder / "one.nxs.part").exists())
    program.send(signal.SIGKILL)
    program.wait()
    done = run(*single, folder=folder)
    check(done.process.returncode == 0 or "one.nxs exists" in done.err(), done.err())
    equal({path.name for path in folder.glob("one*")}, {"one.nxs"}, "files")


@case("a file that another program has put where the conversion notes its progress is neither used nor changed, with --overwrite, too")
def _(folder):
    burst(folder, 30)
    journal, victim = folder / "out.nxs.convert", folder / "victim"
    planted = {"a hard link": (lambda: os.link(victim, journal), "has another name, too"),
               "a symbolic link": (lambda: journal.symlink_to(victim), "is a symbolic link"),
               "a pipe": (lambda: os.mkfifo(journal), "is no ordinary file"),
               "a text": (lambda: journal.write_text("of a user"), "was not written by sluice convert"),
               "binary data": (lambda: journal.write_bytes(bytes(100)), "was not written by sluice convert")}
    if os.geteuid() == 0:
        planted["an empty file of another user"] = lambda: (journal.touch(), os.chown(journal, 1, -1)), "belongs to another user"
    for what, (plant, says) in planted.items():
        victim.write_text("precious")
        plant()
        seen = journal.lstat()
        for options in ((), ("--overwrite",)):
            run_fails("convert", folder / "run.raw", folder / "out.nxs", *options, folder=folder, says=["out.nxs.convert", says])
            left = journal.lstat()
            equal((left.st_ino, left.st_size, left.st_mtime_ns), (seen.st_ino, seen.st_size, seen.st_mtime_ns), f"{what}: the planted file")
            equal(victim.read_text(), "precious", f"{what}: the file that it names")
            check(not (folder / "out.nxs").exists(), f"{what}: a file was written")
        journal.unlink()
    journal.touch()  # of a conversion that was killed before its first line
    convert(folder)
    same(folder)
    check(not journal.exists(), "the journal is left")


@case("nothing is overwritten unless it is asked for")
def _(folder):
    burst(folder, 30)
    convert(folder)
    before = (folder / "out.nxs").read_bytes()
    run_fails("convert", folder / "run.raw", folder / "out.nxs", folder=folder, says=["out.nxs exists"])
    equal((folder / "out.nxs").read_bytes(), before, "the file")
    check(not (folder / "out.nxs.convert").exists(), "a journal was left behind")
    equal(run("convert", folder / "run.raw", folder / "out.nxs", "--overwrite", folder=folder).process.returncode, 0, "exit status")
    same(folder)
    again = experiment(folder, sinks=[{"raw": {"path": str(folder / "run.raw"), "dataset": "raw"}}])
    run_fails("run", again, folder=folder, says=["run.raw exists: move it away, choose another path, or set overwrite: true"])
    over = experiment(folder, sinks=[{"raw": {"path": str(folder / "run.raw"), "dataset": "raw", "overwrite": True}}])
    equal(run("run", over, folder=folder).process.returncode, 0, "exit status with overwrite")


@case("a run with overwrite that is killed before it has frames: recover brings the earlier recording back, from all of its folders")
def _(folder):
    raw = {"path": str(folder / "run.raw"), "dataset": "raw", "overwrite": True, "folders": f"{folder}/a,{folder}/b"}
    small = {"rows": 512, "columns": 512, "frames": 20}
    first = experiment(folder, detector=small, link={"kind": "shm"}, sinks=[{"raw": raw}])
    equal(run("run", first, folder=folder).process.returncode, 0, "exit status")
    before = {str(path.relative_to(folder)): path.read_bytes() for path in [folder / "run.raw", *folder.glob("[ab]/*")]}
    waits = experiment(folder, "waits.yaml", detector=small, link={"kind": "shm"}, sinks=[{"raw": raw}], emulate=None)
    for _ in range(2):
        program = Program("run", waits, folder=folder)
        wait_for("the new run file", lambda: (folder / "run.raw.replaced").exists() and (folder / "run.raw").exists()
                 and (folder / "a/run_raw_000001.bin").exists())
        time.sleep(0.3)
        run_fails("recover", folder / "run.raw", folder=folder, says=["is being written by another run"])
        program.send(signal.SIGKILL)
        program.wait()
        run_fails("run", first, folder=folder, says=["run.raw", ".replaced", "sluice recover"])
        done = run("recover", folder / "run.raw", folder=folder)
        equal(done.process.returncode, 0, f"exit status of recover: {done.err()}")
        check(f"{len(before)} files of the earlier run have their names again" in done.out(), done.out())
        after = {str(path.relative_to(folder)): path.read_bytes() for path in [folder / "run.raw", *folder.glob("[ab]/*")]}
        equal(sorted(after), sorted(before), "files")
        check(after == before, "a file is another")
        check("nothing to do" in run("recover", folder / "run.raw", folder=folder).out(), "it does not say so")
    equal(run("run", first, folder=folder).process.returncode, 0, "exit status of the next run")
    equal([path.name for path in folder.glob("**/*.replaced")], [], "files that were set aside")


# ---- a killed run ----

@case("a run that is killed: what was durable is converted, and the ledger does not close")
def _(folder):
    detector = {"kind": "pattern", "modules": 2, "rows": 128, "columns": 128, "frames": 100000, "frame_rate_Hz": 300}
    path = experiment(folder, detector=detector, sinks=[{"raw": {"path": str(folder / "run.raw"), "dataset": "raw", "flush_s": 0.05}}, "verify"])
    program = Program("run", path, folder=folder)
    wait_for("data", lambda: figure("raw", "rows_durable") > 50 or not program.running())
    durable = figure("raw", "rows_durable")
    run_fails("convert", folder / "run.raw", folder / "out.nxs", folder=folder, says=["is being written"])
    program.send(signal.SIGKILL)
    program.wait()
    Program.end_all()
    done = convert(folder)
    check("the run was killed" in done.out(), done.out())
    with h5py.File(folder / "out.nxs") as file:
        rows = file["entry/sluice/frames/sequence"][()].tolist()
        check(len(rows) >= durable, f"{len(rows)} rows, and {durable} were durable")
        equal(rows, list(range(len(rows))), "rows")
        equal(file["entry/sluice/ledger/closed"][()], 0, "the ledger closes, although its end is not known")
        equal(file["entry/sluice/ledger/outcomes"][()].sum(), 2 * len(rows), "outcomes of the ledger")
        equal(file["entry/sluice/state"][()], b"recovered", "state")
        images = file["entry/data/data"][()]
    whole, summary = acquire(folder, detector={**detector, "frames": len(rows)})
    intact(whole, summary, len(rows))
    with h5py.File(folder / "run.nxs") as file:
        check(np.array_equal(file["entry/data/data"][()], images), "other pixels")


def figure(sink_name, name):
    """As the status of the run says."""
    asked = subprocess.run([SLUICE, "ctl", "experiment", "--json"], capture_output=True, text=True, check=False,
                           env={**os.environ, "SLUICE_RUN_DIR": str(RUN_DIR)})
    if asked.returncode:
        return 0
    for addon in json.loads(asked.stdout).get("status", {}).get("addons", []):
        if addon["name"] == sink_name:
            return addon["figures"].get(name, 0)
    return 0


# ---- cut ----

def live(folder, **raw):
    """A run without end whose buffer is followed; every fourth frame or so is kept."""
    detector = {"kind": "jungfrau", "modules": 1, "rows": None, "columns": None, "dark_frames": 8, "frames": 100000, "frame_rate_Hz": 60,
                "hit_fraction": 0.3}
    return experiment(folder, detector=detector, link={"kind": "shm"}, stages=JUNGFRAU["stages"],
                      sinks=[{"raw": {"path": "look.raw", "keep_s": 60, "flush_s": 0.05, "dataset": "raw", **raw}}])


def truth(folder, first, count):
    """Raw pixels of these frames, by a run without a sink raw."""
    here = folder / "truth"
    here.mkdir(exist_ok=True)
    detector = {"kind": "jungfrau", "modules": 1, "rows": None, "columns": None, "dark_frames": 8, "frames": first + count, "hit_fraction": 0.3}
    program, summary = acquire(here, detector=detector, link={"kind": "shm"}, stages=[], sinks=[
        {"nexus": {"path": str(here / "run.nxs"), "dataset": "raw"}}])
    check(summary is not None, program.err())
    with h5py.File(here / "run.nxs") as file:
        numbers = file["entry/data/frame_number"][()].tolist()
        return dict(zip(numbers, file["entry/data/data"][()]))


@case("cut while data keep coming: by session name, the last second and around a frame; every pixel is right, rejected frames too")
def _(folder):
    program = Program("run", live(folder), folder=folder)
    wait_for("frames", lambda: figure("raw", "rows_durable") > 90 or not program.running())
    equal(run("ctl", "experiment", "metadata", "sample=lysozyme", folder=folder).process.returncode, 0, "exit status of ctl")
    done = run("cut", "experiment", "--last", "1s", folder / "last.nxs", folder=folder)
    equal(done.process.returncode, 0, done.err())
    done = run("cut", "experiment", "--around", 50, "--before", 10, "--after", 15, folder / "around.nxs", folder=folder)
    equal(done.process.returncode, 0, done.err())
    newest = figure("raw", "rows_durable")
    waited = run("cut", folder / "look.raw", "--around", newest, "--before", 5, "--after", 40, folder / "later.nxs", folder=folder)
    equal(waited.process.returncode, 0, waited.err())
    program.send(signal.SIGINT)
    program.ends(0)
    for name in ("last.nxs", "around.nxs"):
        proven = run("audit", folder / name, folder=folder)
        equal(proven.process.returncode, 0, f"exit status of sluice audit {name}: {proven.out()}")
    with h5py.File(folder / "last.nxs") as file:
        numbers = file["entry/sluice/frames/frame_number"][()]
        keep, index = file["entry/sluice/frames/keep"][()], file["entry/sluice/frames/image_index"][()]
        check(30 <= len(numbers) <= 62, f"{len(numbers)} frames of a second at 60 Hz")
        equal(np.diff(numbers).tolist(), [1] * (len(numbers) - 1), "frames without a gap")
        check(0 < keep.sum() < len(keep), "no frame was rejected, or none was kept")
        equal(index.tolist(), list(range(len(numbers))), "every frame has its image")
        equal(file["entry/sluice/ledger/closed"][()], 1, "the ledger closes")
        outcomes = file["entry/sluice/ledger/outcomes"][()][0]
        names = [name.decode() for name in file["entry/sluice/ledger/outcome_names"][()]]
        equal({name: n for name, n in zip(names, outcomes) if n}, {"stored": keep.sum(), "vetoed": len(keep) - keep.sum()}, "outcomes")
        equal(file["entry/sluice/state"][()], b"complete", "state")
        equal(file["entry/sluice/metadata/sample"][()], b"lysozyme", "metadata as the run has them now")
        check(b"the last 1 s of" in file["entry/sluice/cut"][()], file["entry/sluice/cut"][()])
        images = dict(zip(numbers.tolist(), file["entry/data/data"][()]))
    with h5py.File(folder / "around.nxs") as file:
        equal(file["entry/data/frame_number"][()].tolist(), list(range(40, 66)), "frames around 50")
        images.update(zip(range(40, 66), file["entry/data/data"][()]))
    with h5py.File(folder / "later.nxs") as file:
        equal(len(file["entry/data/frame_number"]), 46, "frames around the newest one")
    right = truth(folder, 0, max(images) + 1)
    compared = [number for number in images if number in right]
    check(len(compared) > 50, f"{len(compared)} images compared")
    for number in compared:
        check(np.array_equal(images[number], right[number]), f"frame {number} has other pixels")


@case("cut says what has left the buffer, what has not come, and refuses what makes no sense")
def _(folder):
    program = Program("run", live(folder, keep_s=0.5, file_bytes=4 << 20), folder=folder)
    wait_for("rows to be removed", lambda: figure("raw", "rows_removed") > 20 or not program.running())
    done = run("cut", "experiment", "--last", "1min", folder / "gone.nxs", folder=folder)
    equal(done.process.returncode, 2, f"exit status: {done.err()}")
    check("missing: the first" in done.err() and "the buffer begins with frame" in done.err(), done.err())
    with h5py.File(folder / "gone.nxs") as file:
        check(b"; missing: the first" in file["entry/sluice/cut"][()], "the file does not say so")
        equal(file["entry/sluice/ledger/closed"][()], 1, "the ledger closes")
        check(file["entry/sluice/frames/sequence"][0] > 0, "it begins with the first frame")
    done = run("cut", "experiment", "--around", 0, "--before", 0, "--after", 1000000, "--wait_s", 0, folder / "all.nxs", folder=folder)
    equal(done.process.returncode, 2, f"exit status: {done.err()}")
    check("they have left the buffer; frames after" in done.err(), done.err())
    for arguments, says in (
            (("experiment", "--last", "1s", folder / "gone.nxs"), "gone.nxs exists"),
            (("experiment", folder / "x.nxs"), "either --last"),
            (("experiment", "--last", "soon", folder / "x.nxs"), "takes a time"),
            (("experiment", "--last", "1s", "--around", "7", folder / "x.nxs"), "either --last"),
            (("experiment", "--around", "-7", folder / "x.nxs"), "takes the number"),
            (("experiment", "--last", "1s", folder / "x.nxs", "--set", "colour=red"), "has no option 'colour'"),
            (("experiment", "--last", "1s", folder / "x.nxs", "--set", "dataset=image"), "has no 'image'"),
            (("experiment", "--around", "5", "--before", "0", "--after", "0", "--wait_s", "0", folder / "x.nxs"), "has no frame of"),
            (("nobody", "--last", "1s", folder / "x.nxs"), "nobody")):
        run_fails("cut", *arguments, folder=folder, says=[says])
    check(not list(folder.glob("x*")), "a file was left behind")
    program.send(signal.SIGINT)
    program.ends(0)
    run_fails("convert", folder / "look.raw", folder / "x.nxs", folder=folder, says=["is a rolling buffer"])
    equal(run("cut", folder / "look.raw", "--last", "100ms", folder / "end.nxs", folder=folder).process.returncode, 0, "exit status after the end")


@case("the results in a file that was cut are those of the file that nexus wrote in the same run: dark frames have images and no results")
def _(folder):
    stages = [{"correct": {"output": "photons_i16"}}, {"integrate": {"bins": 50}}, {"peaks": {"min_peaks": 10}}]
    program, summary = acquire(folder, **{**JUNGFRAU, "stages": stages}, sinks=sinks(folder, {"dataset": "raw", "keep_s": 1000}, dataset="raw"))
    intact(program, summary, 68)
    for results in ("all", "kept"):
        done = run("cut", folder / "run.raw", "--last", "1000s", folder / "cut.nxs", "--set", f"results={results}", "--overwrite", folder=folder)
        equal(done.process.returncode, 0, done.err())
        equal(run("audit", folder / "cut.nxs", folder=folder).process.returncode, 0, "exit status of audit")
        with h5py.File(folder / "run.nxs") as whole, h5py.File(folder / "cut.nxs") as file:
            rows, dark = file["entry/sluice/frames"], file["entry/sluice/frames/flags"][()] & 1 == 1
            keep = rows["keep"][()] == 1
            equal((dark.sum(), rows["image_index"][()].tolist()), (8, list(range(68))), "dark frames, images")
            wanted = ~dark if results == "all" else keep
            index = file["entry/data/result_index"][()]
            equal(index.tolist(), rows["result_index"][()].tolist(), "result_index of images and rows, each frame having an image")
            equal((index >= 0).tolist(), wanted.tolist(), "frames with results")
            equal(file["entry/results/sequence"][()].tolist(), np.flatnonzero(wanted).tolist(), "whose results they are")
            pick = slice(None) if results == "all" else whole["entry/results/image_index"][()] >= 0
            for name in ("results/peaks_rows", "results/peaks_found", "profile/intensity"):
                equal(file["entry"][name][()].tobytes(), whole["entry"][name][()][pick].tobytes(), f"bytes of {name}")
            peaks = file["entry/peaks/nPeaks"][()]
            check(peaks[keep].min() >= 10, "kept frames without peaks")
            equal(peaks[~wanted].tolist(), [0] * int((~wanted).sum()), "peaks of images without results")
            equal(peaks[wanted].tolist(), file["entry/results/peaks_rows"][()].tolist(), "peaks of images, beside the results")


@case("frames that arrived damaged: rows without images in a rolling buffer; with ring.incomplete: keep what came of them is there, and is right")
def _(folder):
    small = {"rows": 64, "columns": 64, "frames": 120}
    (folder / "truth").mkdir()
    intact(*acquire(folder / "truth", detector=small), 120)
    with h5py.File(folder / "truth/run.nxs") as file:
        truth = file["entry/data/data"][()].reshape(120, 2, -1)
    for policy in ("drop", "keep"):
        here = folder / policy
        here.mkdir()
        program, summary = acquire(here, detector=small, frontend={"drop": 0.02, "fault_seed": 3}, ring={"incomplete": policy},
                                   sinks=[{"raw": {"path": str(here / "run.raw"), "dataset": "raw", "keep_s": 1000}}, "verify"])
        equal(program.process.returncode, 2, "exit status")
        closes(summary)
        done = run("cut", here / "run.raw", "--last", "1000s", here / "cut.nxs", folder=here)
        equal(done.process.returncode, 0, done.err())
        equal(run("audit", here / "cut.nxs", folder=here).process.returncode, 0, "exit status of audit")
        with h5py.File(here / "cut.nxs") as file:
            rows, images = file["entry/sluice/frames"], file["entry/data/data"][()].reshape(-1, 2, 64 * 64)
            whole = rows["outcome"][()] == [name.decode() for name in rows["outcome_names"][()]].index("stored")
            index, missing = rows["image_index"][()], rows["missing"][()]
            equal(rows["sequence"][()].tolist(), list(range(120)), "rows")
            equal((index >= 0).tolist(), whole.any(axis=1).tolist(), "frames with an image")
            some = whole.any(axis=1) & ~whole.all(axis=1)
            equal(bool(some.any()), policy == "keep", "frames of which one module is whole")
            for k in np.flatnonzero(index >= 0):
                for m in (0, 1):
                    pixels = images[index[k], m]
                    equal(bool(int(missing[k]) >> m & 1), not whole[k, m], f"the mask of frame {k}, module {m}")
                    right = (pixels == truth[k, m]).all() if whole[k, m] else (pixels.view(np.uint8) == 255).all()
                    check(right, f"pixels of frame {k}, module {m}")


# ---- what goes wrong ----

def small_disk(folder, megabytes):
    """A wrapper that runs the program with a small tmpfs of its own at folder/disk, and afterwards copies what is there to folder/copy."""
    (folder / "disk").mkdir()
    (folder / "copy").mkdir()
    here = shlex.quote(str(folder))
    script = f'mount -t tmpfs -o size={megabytes}m none {here}/disk || exit 77; "$@"; status=$?; cp -a {here}/disk/. {here}/copy; exit $status'
    for unshare in (["unshare", "-m"], ["unshare", "-rm"]):  # as root, or as root of a namespace of our own
        trial = Program(folder=folder, program="true", wrapper=[*unshare, "sh", "-c", script, "sh"])
        if trial.wait() == 0:
            return [*unshare, "sh", "-c", script, "sh"]
    skip("neither root nor user namespaces may mount a small tmpfs here")


@case("a disk that is full in mid-run: the first frames are in the raw file, the rest is unwritten, and it converts")
def _(folder):
    wrapper = small_disk(folder, 30)
    path = experiment(folder, detector={"rows": 512, "columns": 512, "frames": 60},
                      sinks=[{"raw": {"path": str(folder / "disk/run.raw"), "dataset": "raw", "file_bytes": 8 << 20}}, "verify"])
    program = Program("run", path, "--summary", folder / "summary.json", folder=folder, wrapper=wrapper)
    program.ends(2)
    summary = read_summary(folder)
    closes(summary, 120)
    stored = summary["ledger"]["total"]["outcomes"]["stored"] // 2
    check(5 <= stored < 30, f"{stored} frames stored")
    equal(sink(summary, "raw")["frames_refused"], 60 - stored, "frames refused")
    check("free some space" in program.err(), program.err())
    convert(folder, raw="copy/run.raw")
    with h5py.File(folder / "out.nxs") as file:
        equal(file["entry/data/sequence"][()].tolist(), list(range(stored)), "images")
        equal(file["entry/sluice/frames_refused"][()], 60 - stored, "frames refused, says the file")
        equal(file["entry/sluice/ledger/closed"][()], 1, "the ledger closes")


@case("raw files that are none, that were cut and that were changed are refused, and the damage is named")
def _(folder):
    burst(folder, 30)
    run_fails("convert", folder / "none.raw", folder / "out.nxs", folder=folder, says=["none.raw"])
    (folder / "text.raw").write_text("no raw file at all\n")
    run_fails("convert", folder / "text.raw", folder / "out.nxs", folder=folder, says=["text.raw"])
    run_fails("convert", folder / "run.raw", folder=folder, says=["convert takes a raw file"])
    run_fails("convert", folder / "run.raw", folder / "out.nxs", "--set", "path=x", folder=folder, says=["named by the last argument"])
    data = folder / "run_raw_000001.bin"
    whole = data.read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 4
    data.write_bytes(changed)
    run_fails("convert", folder / "run.raw", folder / "out.nxs", folder=folder, says=["run_raw_000001.bin"])
    data.write_bytes(whole)
    convert(folder)  # goes on where it was
    same(folder)


main()
