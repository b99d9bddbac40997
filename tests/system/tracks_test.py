#!/usr/bin/python3
"""tracks_test.py - the track trigger through the program: its example in small, tracks beside those that the emulator made,
lists of stubs decoded by the words of docs/reference/tracks.md alone, decisions, and the tables of that page."""
# normal build only

import json
import os
import subprocess
import sys

import h5py
import numpy as np

from harness import RECEIVER, ROOT, SLUICE, SOURCE, address, case, check, equal, intact, main, read_summary, run, run_fails

K, R_T = 0.0057128451, 67.24
FRAMES, EVENTS = 6, 4


def acquire(folder, *sets, link="shm"):
    places = ("link.kind=shm",) if link == "shm" else (f"link.listen={RECEIVER}", f"link.source={SOURCE}")
    ears = f"sinks.feedback.address={address(3)}", f"feedback.address={address(3)}"
    words = [word for value in (f"detector.frames={FRAMES}", "detector.pool=7", *places, *ears, *sets) for word in ("--set", value)]
    program = run("run", ROOT / "examples/cms-tracks.yaml", *words, "--summary", folder / "summary.json", "--truth",
                  folder / "truth.h5", folder=folder)
    return program, read_summary(folder)


def results(folder):
    """Tables of all frames, and of each track its frame and its stubs: [n][phi, r, z]."""
    with h5py.File(folder / "cms-tracks.nxs") as file:
        group = file["entry/results"]
        tracks, listed, found = group["tracks"][()], group["tracks_stubs"][()], group["tracks_found"][()]
        rows, stubs_rows = group["tracks_rows"][()].astype(int), group["tracks_stubs_rows"][()].astype(int)
        frames, data = file["entry/data/frame_number"][()], file["entry/data/data"][()]
    frame = np.repeat(np.arange(len(rows)), rows)
    equal(tracks.shape, (rows.sum(), 13), "shape of the tracks")
    equal([tracks[frame == i, 7].sum() for i in range(len(rows))], stubs_rows.tolist(), "stubs that are listed")
    owner = np.repeat(np.arange(len(tracks)), tracks[:, 7].astype(int))
    event, sector = tracks[owner, 0].astype(int), tracks[owner, 1].astype(int)
    # Module m has wedge m: row event * 9 + eta of it.
    block = data.reshape(len(rows), 32, EVENTS, 9, 160, 6)[frame[owner], sector // 9, event, sector % 9, listed]
    bits = np.pad(block, ((0, 0), (0, 2))).copy().view("<u8")[:, 0].astype(np.int64)
    check((bits & 1 == 1).all(), "listed stubs are valid")
    phi = ((bits >> 34 & 16383 ^ 8192) - 8192) * np.pi / 65536 + (2 * (sector // 9) + 1) * np.pi / 32 - np.pi
    return tracks, found, frames[frame], owner, np.stack([phi, (bits >> 22 & 4095) * 0.03], axis=1), bits >> 1 & 7


def wrapped(phi):
    return (phi + np.pi) % (2 * np.pi) - np.pi


@case("examples/cms-tracks.yaml over udp: intact; nearly all true tracks are found, once, and little else")
def _(folder):
    program, summary = acquire(folder, "stages.tracks.min_tracks=0", link="udp")
    intact(program, summary, FRAMES, 32)
    tracks, found, frames, owner, stubs, layers = results(folder)
    equal(found.shape, (FRAMES, EVENTS, 8), "shape of what was found")
    equal(found[..., 1].tolist(), found[..., [0, 2, 3, 4]].sum(axis=-1).tolist(), "cells, beside what has become of them")
    equal(int(found[..., 0].sum()), len(tracks), "tracks, beside those in the table")
    # Stubs lie on the helix, a layer each.
    x, phi0 = tracks[owner, 2], tracks[owner, 3]
    off = wrapped(stubs[:, 0] - phi0 + np.arcsin(K * stubs[:, 1] * x))
    check(np.abs(off).max() < 0.02 and np.sqrt((off ** 2).mean()) < 0.002, f"stubs are {np.abs(off).max():.4f} off")
    for track in range(0, len(tracks), 7):
        mine = layers[owner == track]
        equal(len(set(mine.tolist())), int(tracks[track, 5]), "layers of a track")
    with h5py.File(folder / "truth.h5") as file:
        true = {name: item[()] for name, item in file["truth/table"].items()}
        number = np.repeat(file["truth/frame_number"][()], file["truth/count"][()].astype(int))
    seen, matched = 0, set()
    for k in np.flatnonzero(true["sectors"] > 0):
        near = ((frames == number[k]) & (tracks[:, 0] == true["event"][k])
                & (np.abs(tracks[:, 2] - true["charge"][k] / true["pt"][k]) < 0.02)
                & (np.abs(wrapped(tracks[:, 3] - true["phi0"][k])) < 0.006)
                & (np.abs(tracks[:, 11] - np.sinh(true["eta"][k])) < 0.3))
        seen += near.any()
        matched |= set(np.flatnonzero(near).tolist())
    findable = int((true["sectors"] > 0).sum())
    check(seen > 0.9 * findable, f"{seen} of {findable} tracks were found")
    # Those whose cells are in no sector with five of their layers may be found all the same.
    check(len(matched) > 0.9 * len(tracks), f"{len(tracks) - len(matched)} of {len(tracks)} are no tracks")
    check(len(tracks) < 1.1 * findable, f"{len(tracks)} tracks where there are {findable}")


@case("frames are kept where an event has two tracks of 20 GeV, by the table of a run that keeps all")
def _(folder):
    (folder / "all").mkdir()
    acquire(folder / "all", "stages.tracks.min_tracks=0")
    tracks, _, frames, *_ = results(folder / "all")
    fast = np.abs(tracks[:, 2]) <= 1 / 20
    wanted = sorted({int(f) for f in set(frames[fast].tolist())
                     if np.bincount(tracks[fast & (frames == f), 0].astype(int)).max() >= 2})
    program, _ = acquire(folder)
    with h5py.File(folder / "cms-tracks.nxs") as file:
        equal(file["entry/data/frame_number"][()].tolist(), wanted, "frames that are kept")
        names = [name.decode() for name in file["entry/sluice/frames/reason_names"][()]]
        equal({names[r] for r in file["entry/sluice/frames/reason"][()]}, {"tracks"}, "why")
    check("vetoed" in program.out() and 0 < len(wanted) < FRAMES, "some are kept and some are not")


@case("plain C with one worker and vectors with two find the same, to the last bit")
def _(folder):
    have = []
    for name, sets in (("plain", ("stages.tracks.vectors=baseline",)), ("vectors", ("unit.kind=cpu", "unit.workers=2"))):
        (folder / name).mkdir()
        acquire(folder / name, "stages.tracks.min_tracks=0", *sets)
        with h5py.File(folder / name / "cms-tracks.nxs") as file:
            have.append({key: item[()].tobytes() for key, item in file["entry/results"].items()})
    equal(sorted(have[0]), ["event_keep", "event_score", "frame_number", "image_index", "sequence", "tracks", "tracks_first", "tracks_found",
                            "tracks_rows", "tracks_stubs", "tracks_stubs_first", "tracks_stubs_rows"], "results")
    check(have[0] == have[1], "results differ")


@case("more tracks than there is room for are counted")
def _(folder):
    acquire(folder, "stages.tracks.min_tracks=0", "stages.tracks.max_tracks=11")
    with h5py.File(folder / "cms-tracks.nxs") as file:
        found = file["entry/results/tracks_found"][()]
        equal(file["entry/results/tracks_rows"][()].tolist(), [11] * FRAMES, "rows of each frame")
    equal((found[..., 0] - found[..., 5]).sum(axis=1).tolist(), [11] * FRAMES, "tracks less those without room")
    check((found[:, 1:, 5] > 0).all(), "later events have no room")


@case("sectors with more stubs than a row has room for: the board cuts, they are counted, and tracks are found in the rest")
def _(folder):
    program, summary = acquire(folder, "stages.tracks.min_tracks=0", "detector.pile_up=300", "detector.background=2")
    intact(program, summary, FRAMES, 32)
    with h5py.File(folder / "cms-tracks.nxs") as file:
        found, data = file["entry/results/tracks_found"][()], file["entry/data/data"][()]
    full = (data.reshape(FRAMES, 32, EVENTS, 9, 160, 6)[..., 159, 0] & 1).sum(axis=(1, 3))
    equal(found[..., 7].tolist(), full.tolist(), "full sectors of each event")
    check(full.min() > 50 and found[..., 0].min() > 10, f"hardly a test: {full.min()} full sectors, {found[..., 0].min()} tracks")
    equal(found[..., 1].tolist(), found[..., [0, 2, 3, 4]].sum(axis=-1).tolist(), "cells, beside what has become of them")


@case("what is no tracker and what is no number is refused, with a word on what would be right")
def _(folder):
    path = folder / "bad.yaml"
    for detector, stage, words in (({"kind": "rich"}, {}, ("tracks", "160 stubs", "rich")),
                                   ({"kind": "tracker"}, {"min_pt_GeV": ".nan"}, ("min_pt_GeV",)),
                                   ({"kind": "tracker"}, {"columns": 65}, ("columns", "64"))):
        path.write_text(json.dumps({"detector": {"frames": 2, **detector}, "link": {"kind": "shm"},
                                    "stages": [{"tracks": stage}], "sinks": ["null"], "emulate": "local"}))
        run_fails("run", path, folder=folder, says=words)


@case("tools/trigger_curves.py in small: tables and plots are there, and the numbers behave as they must")
def _(folder):
    done = subprocess.run([sys.executable, ROOT / "tools/trigger_curves.py", "tracks", "--quick", "--output", folder, "--json",
                           folder / "numbers.json"], cwd=folder, env={**os.environ, "SLUICE": str(SLUICE)}, text=True,
                          capture_output=True, timeout=300, check=False)
    equal(done.returncode, 0, f"exit status; it said {done.stderr}")
    page = (folder / "tracks.md").read_text()
    equal(page.count("written by tools/trigger_curves.py -->\n\n|"), 3, "tables that were filled in")
    for name in ("tracks-fakes.svg", "tracks-efficiency.svg", "tracks-momentum.svg"):
        check(f"({name})" in page, f"{name} is not on the page")
        check((folder / name).read_text().count("<polyline") == 6, f"curves of {name}")
    for p in json.loads((folder / "numbers.json").read_text())["tracks"]["pile-up"]:
        check(p["efficiency"] > (0.5 if p["cells"] == "one-hexagon" else 0.95), f"efficiency of {p}")


main()
