#!/usr/bin/python3
"""score_test.py - the sink `score`: both trigger examples end to end, with their front end's answers, the latency line, and
efficiencies that this file computes anew out of the program's files and the emulator's truth; and where there is no truth."""
# normal build only

import json
import re

import h5py
import numpy as np

from harness import RECEIVER, ROOT, SOURCE, Program, address, case, check, equal, intact, main, read_summary, run, run_fails, wait_for

EAR = address(3)


def acquire(folder, example, *sets):
    words = [word for value in (f"link.listen={RECEIVER}", f"link.source={SOURCE}", f"sinks.feedback.address={EAR}",
                                f"feedback.address={EAR}", *sets) for word in ("--set", value)]
    program = run("run", ROOT / f"examples/{example}.yaml", *words, "--summary", folder / "summary.json", "--truth",
                  folder / "truth.h5", folder=folder)
    summary = read_summary(folder)
    figures = {sink["name"]: sink["figures"] for sink in summary["sinks"]}
    with h5py.File(folder / "truth.h5") as truth, h5py.File(folder / f"{example}.nxs") as file:
        known = {name: item[()] for name, item in truth["truth/table"].items()}
        known["frame"] = np.repeat(truth["truth/frame_number"][()], truth["truth/count"][()].astype(int)).astype(int)
        results = file["entry/results"]
        name = "rings" if "rings" in results else "tracks"
        found = results[name][()]
        frame = np.repeat(results["frame_number"][()].astype(int), results[f"{name}_rows"][()].astype(int))
    return program, summary, figures, known, found, frame


def told(program, summary, figures, events):
    """What a run prints: every event was answered once, when, and how that was beside the truth."""
    heard = re.search(r"answers to (\d+) of (\d+) events in \d+ packets: (\d+) keep, (\d+) reject, (\d+) no data", program.err())
    kept = figures["score"]["wanted_kept"] + figures["score"]["others"] - figures["score"]["others_rejected"]
    equal([int(n) for n in heard.groups()], [events, events, kept, events - kept, 0], "answers")
    equal(figures["feedback"]["events_kept"], kept, "events that are kept")
    line = re.search(r"verdicts due after \d+ us: (\d+) of (\d+) frames were late; they came after \(us\): p50 ([\d.]+), "
                     r"p99 ([\d.]+), p99.9 ([\d.]+)", program.out())
    check(line and int(line[1]) == summary["frames"]["late"], "the line of latencies")
    check(0 < float(line[3]) <= float(line[4]) <= float(line[5]), f"percentiles are out of order: {line[0]}")
    share = re.search(r"score: trigger: kept ([\d.]+) % of (\d+) events that truth would keep .* rejected ([\d.]+) % of (\d+) others",
                      program.err())
    score = figures["score"]
    equal([share[1], int(share[2]), share[3], int(share[4])],
          [f"{100 * score['wanted_kept'] / score['wanted']:.1f}", score["wanted"],
           f"{100 * score['others_rejected'] / score['others']:.1f}", score["others"]], "the line of the trigger")


@case("examples/na62-rich.yaml: every event answered, latencies, rings and verdicts beside the truth")
def _(folder):
    frames, items = 40, 4 * 64
    program, summary, figures, known, found, frame = acquire(
        folder, "na62-rich", f"detector.frames={frames}", "detector.pool=41", "detector.frame_rate_Hz=200", "detector.two_rings=0.4")
    equal(summary["result"], "intact", "result")
    score, events = figures["score"], frames * items
    equal((score["frames"], score["events"], score["frames_without_truth"]), (frames, events, 0), "what was scored")
    told(program, summary, figures, events)
    # What should be kept: one ring, of a radius that a pion of 15 to 35 GeV has.
    least, most = (17000 * (2 * 62.8e-6 - (0.13957 / p) ** 2) ** 0.5 for p in (15, 35))
    event = known["frame"] * items + known["event"].astype(int)
    one = np.bincount(event, minlength=events)[event] == 1
    wanted = one & (known["radius"] > least) & (known["radius"] < most)
    equal(score["wanted"], int(wanted.sum()), "events that truth would keep")
    equal(score["others"], events - int(wanted.sum()), "other events")
    equal(score["findable"], int((wanted & (known["hits"] >= 7)).sum()), "events to be kept that can be found")
    # What was kept: one ring in the table, which matches. Frames without any such event are in no file.
    where = frame * items + found[:, 0].astype(int)
    keep = np.zeros(events, bool)
    keep[where[found[:, 6] == 1]] = True
    keep &= np.bincount(where, minlength=events) == 1
    equal(score["wanted_kept"], int(keep[event[wanted]].sum()), "events kept of these")
    equal(score["others_rejected"], int((~keep).sum() - (~keep[event[wanted]]).sum()), "others rejected")
    check(score["findable_kept"] > 0.95 * score["findable"], f"the trigger keeps {score}")
    check(score["others_rejected"] > 0.8 * score["others"], f"the trigger rejects {score}")


@case("examples/cms-tracks.yaml: every event answered, latencies, tracks and verdicts beside the truth")
def _(folder):
    frames, items = 12, 4
    program, summary, figures, known, found, frame = acquire(
        folder, "cms-tracks", f"detector.frames={frames}", "detector.pool=13", "stages.tracks.trigger_pt_GeV=10")
    intact(program, summary, frames, 32)
    score, events = figures["score"], frames * items
    equal((score["frames"], score["events"], score["frames_without_truth"]), (frames, events, 0), "what was scored")
    told(program, summary, figures, events)
    event = known["frame"] * items + known["event"].astype(int)
    fast, findable = known["pt"] >= 10, known["sectors"] > 0
    wanted = np.bincount(event[fast], minlength=events) >= 2
    equal(score["wanted"], int(wanted.sum()), "events that truth would keep")
    equal(score["findable"], int((np.bincount(event[fast & findable], minlength=events) >= 2).sum()), "those that can be found")
    equal((score["tracks_findable"], score["fast_findable"]), (int(findable.sum()), int((fast & findable).sum())), "tracks")
    where = frame * items + found[:, 0].astype(int)
    keep = np.bincount(where[np.abs(found[:, 2]) * 10 <= 1], minlength=events) >= 2
    stored = np.isin(np.arange(events) // items, frame)
    equal(score["wanted_kept"], int((keep & wanted & stored).sum()), "events kept of these")
    check(score["tracks_found"] > 0.9 * score["tracks_findable"], f"tracks that are found: {score}")
    check(score["findable_kept"] > 0.8 * score["findable"] > 0, f"the trigger keeps {score}")


@case("it makes no difference to the file and the exit status whether it scores")
def _(folder):
    kept = []
    for sinks in (["score"], []):
        path = folder / "x.yaml"
        path.write_text(json.dumps({
            "detector": {"kind": "rich", "modules": 2, "events": 50, "frames": 20, "dark_frames": 3}, "link": {"kind": "shm"},
            "stages": [{"rings": {"min_rings": 2}}], "sinks": [*sinks, {"nexus": {"path": "run.nxs", "dataset": "raw", "overwrite": True}}],
            "emulate": "local"}))
        run("run", path, "--quiet", "--summary", folder / "summary.json", folder=folder).ends(0)
        with h5py.File(folder / "run.nxs") as file:
            kept.append([file["entry/data/data"][()].tobytes(), *(item[()].tobytes() for item in file["entry/results"].values())])
        if sinks:
            figures = read_summary(folder)["sinks"][0]["figures"]
            equal((figures["frames"], figures["frames_dark"]), (20, 3), "frames that were scored, and dark ones")
    check(kept[0] == kept[1], "the file is another with score")


@case("a front end with other events has no truth here: nothing is scored, the run fails, the data are stored")
def _(folder):
    # Over native UDP nobody compares the two files before.
    other = {"detector": {"kind": "rich", "modules": 1, "events": 40, "frames": 20, "frame_rate_Hz": 100, "seed": 1},
             "link": {"kind": "nanet", "listen": RECEIVER}, "ring": {"slots": 64, "overrun": "drop_newest"}, "stages": ["rings"],
             "sinks": ["score", {"nexus": {"path": "run.nxs", "dataset": "raw", "overwrite": True}}], "emulate": "none"}
    (folder / "here.yaml").write_text(json.dumps(other))
    other["detector"]["seed"] = 2
    (folder / "there.yaml").write_text(json.dumps(other))
    receiver = Program("run", folder / "here.yaml", "--summary", folder / "summary.json", folder=folder)
    wait_for("the receiver", lambda: "waiting" in receiver.err() or "ports" in receiver.err())
    Program("emulate", folder / "there.yaml", "--once", folder=folder).ends(0)
    receiver.ends(2)
    check("is not what the emulator makes" in receiver.err(), "it does not say why")
    summary = read_summary(folder)
    figures = {sink["name"]: sink["figures"] for sink in summary["sinks"]}
    equal((figures["score"]["frames"], figures["score"]["frames_without_truth"], figures["nexus"]["frames"]), (0, 20, 20), "frames")


@case("without a trigger, or a detector that knows its truth, it is refused")
def _(folder):
    def experiment(detector, stages):
        (folder / "x.yaml").write_text(json.dumps({"detector": {"frames": 2, **detector}, "link": {"kind": "shm"}, "stages": stages,
                                                   "sinks": ["score"], "emulate": "local"}))
        return folder / "x.yaml"
    run_fails("run", experiment({"kind": "rich"}, []), folder=folder, says=("score", "neither the stage rings nor tracks"))
    run_fails("run", experiment({"kind": "jungfrau"}, ["correct"]), folder=folder, says=("score", "neither the stage rings nor"))
    run_fails("run", experiment({"kind": "pattern"}, []), folder=folder, says=("score", "no truth to compare with"))


main()
