#!/usr/bin/python3
"""detectors_test.py - several detectors in one file: each with its ring, link and front end, joined by a key; one outcome for each
module-frame, and a file in which every frame is with its event."""

import json
import signal

import h5py
import numpy as np

from harness import (CONTROL_PORT, RECEIVER, SOURCE, TIMEOUT_S, Program, address, case, check, closes, equal, experiment, fewer, main,
                     read_outcomes, read_summary, run, run_fails, text_of, wait_for)

EVENTS = fewer(400, 120)
EVERY = 4  # the camera has a part for each fourth event


def two(folder, name="two.yaml", tiles=None, camera=None, **sections):
    """An experiment of two detectors: `tiles` defines events, `camera` has a part for each fourth of them."""
    whole = {
        "detectors": [
            {"tiles": {"kind": "pattern", "modules": 2, "rows": 32, "columns": 64, "frames": EVENTS, "dark_frames": 0,
                       "frame_rate_Hz": 2000, "link": {"listen": RECEIVER, "source": RECEIVER}, **(tiles or {})}},
            {"camera": {"kind": "pattern", "modules": 1, "rows": 20, "columns": 100, "frames": EVENTS // EVERY, "dark_frames": 0,
                        "frame_rate_Hz": 2000 / EVERY, "link": {"listen": SOURCE, "source": address(3)},
                        "key": {"by": "frame", "divider": EVERY}, **(camera or {})}},
        ],
        "link": {"kind": "udp"},
        "ring": {"slots": 64, "poison": True, "late_timeout_ms": 1000 * TIMEOUT_S},
        "control": {"address": RECEIVER, "port": CONTROL_PORT, "wait_s": TIMEOUT_S},
        "sinks": [{"nexus": {"path": "run.nxs", "dataset": "raw", "overwrite": True}}],
        "emulate": "local",
        **sections,
    }
    path = folder / name
    path.write_text(json.dumps(whole, indent=1) + "\n")
    return path


def take(folder, path, *arguments):
    done = run("run", path, "--summary", folder / "summary.json", "--outcomes", folder / "outcomes.txt", *arguments, folder=folder)
    summary = read_summary(folder)
    closes(summary, 2 * EVENTS + EVENTS // EVERY)
    return done, summary


def events(folder):
    """Which frame of the camera belongs to which event."""
    with h5py.File(folder / "run.nxs") as file:
        return file["/entry/events/camera"][:].ravel(), file["/entry/instrument/detector_camera/data"][:]


def truth(folder):
    """What the camera alone has, as a run of one detector."""
    path = experiment(folder, "camera.yaml", stages=[], sinks=[{"nexus": {"path": str(folder / "camera.nxs"), "dataset": "raw"}}],
                      ring={"late_timeout_ms": 1000 * TIMEOUT_S},
                      detector={"kind": "pattern", "modules": 1, "rows": 20, "columns": 100, "frames": EVENTS // EVERY, "dark_frames": 0,
                                "frame_rate_Hz": 2000 / EVERY})
    equal(run("run", path, folder=folder).process.returncode, 0, "exit status of the camera alone")
    with h5py.File(folder / "camera.nxs") as file:
        return file["/entry/data/data"][:]


@case("by sequence, number and time, each with its offset: every frame is with its event, and its pixels are right")
def _(folder):
    wanted = truth(folder)
    for key in ({"by": "sequence"}, {"by": "frame", "offset": 30}, {"by": "timestamp", "offset": 123456, "drift_ppm": 50}):
        ahead = key.get("offset", 0) if key["by"] == "frame" else 0
        done, summary = take(folder, two(folder, camera={"key": {"divider": EVERY, **key}}))
        equal((done.process.returncode, summary["result"]), (0, "intact"), f"the run by {key['by']}")
        frame, data = events(folder)
        equal(frame.tolist(), [k // EVERY + ahead if k % EVERY == 0 else -1 for k in range(EVENTS)], f"events by {key['by']}")
        check(np.array_equal(data[::EVERY], wanted), "pixels of the camera differ")
        check((data[1::EVERY] == 65535).all(), "an event between two frames of the camera has pixels of it")


@case("two front ends, each on its own, in any order")
def _(folder):
    path = two(folder, emulate="none")
    front = Program("emulate", path, "--detector", "camera", "--once", folder=folder)
    there = Program("run", path, "--summary", folder / "summary.json", folder=folder)
    other = Program("emulate", path, "--detector", "tiles", "--once", folder=folder)
    equal([p.wait() for p in (there, front, other)], [0, 0, 0], "exit statuses")
    closes(read_summary(folder), 2 * EVENTS + EVENTS // EVERY)
    run_fails("emulate", path, "--detector", "nobody", folder=folder, says=["no detector is called 'nobody'; there are: tiles, camera"])


def lost(folder, name):
    """(module, sequence) with a lost packet, by the fault log of this detector."""
    return {tuple(map(int, line.split()[:2])) for line in text_of(folder / f"faults.{name}").splitlines()}


@case("packets are lost of both: outcomes are those of the fault logs, by policy")
def _(folder):
    for missing in ("require", "wait"):
        # What comes later than wait_us is left out as well: it is as long as the ring allows, so that a busy machine is not late.
        path = two(folder, tiles={"frame_rate_Hz": 200},
                   camera={"key": {"by": "frame", "divider": EVERY}, "missing": missing, "wait_us": 250000, "frame_rate_Hz": 200 / EVERY,
                           "ring": {"slots": 64}},
                   frontend={"drop": 0.004, "fault_seed": 5, "fault_log": str(folder / "faults")}, link={"kind": "udp", "pmtu": 256})
        done, summary = take(folder, path)
        equal(done.process.returncode, 2, "exit status")
        tiles, camera = lost(folder, "tiles"), lost(folder, "camera")
        check(tiles and camera, "nothing was lost")
        for (k, module), (outcome, _) in read_outcomes(folder).items():
            event = k * EVERY if module == 2 else k
            own = (0, k) in camera if module == 2 else (module, k) in tiles
            whole = not {(0, event), (1, event)} & tiles and (missing == "wait" or event % EVERY or (0, event // EVERY) not in camera)
            equal(outcome, "stored" if whole and not own else "incomplete", f"{missing}: frame {k} of module {module}")


@case("a camera that stops early: events go on without it, and are complete")
def _(folder):
    for missing in ("wait", "optional"):
        path = two(folder, camera={"frames": 2, "missing": missing, "wait_us": 5000})
        run("run", path, "--summary", folder / "summary.json", folder=folder)
        summary = read_summary(folder)
        closes(summary, 2 * EVENTS + 2)
        equal(summary["frames"]["kept"], EVENTS, f"{missing}: events")
        causes = summary["ledger"]["modules"][2]["causes"]
        equal(sum(causes.values()), causes["late"], f"{missing}: frames of the camera that are lost for another reason than being late")


@case("frames of no event are unmatched, which is no loss")
def _(folder):
    path = two(folder, camera={"frames": EVENTS // EVERY + 10})
    done = run("run", path, "--summary", folder / "summary.json", folder=folder)
    summary = read_summary(folder)
    closes(summary, 2 * EVENTS + EVENTS // EVERY + 10)
    equal((done.process.returncode, summary["result"]), (0, "intact"), "the run")
    equal(summary["ledger"]["total"]["outcomes"]["unmatched"], 10, "frames of no event")
    equal(summary["ledger"]["total"]["causes"]["no_event"], 10, "and their cause")


@case("a session takes run after run with the same front ends")
def _(folder):
    done = run("session", two(folder), "--root", "data", "--runs", 3, folder=folder)
    equal(done.process.returncode, 0, "exit status")
    for number in (1, 2, 3):
        result = json.loads((folder / f"data/{number:06}/result.json").read_text())
        closes(result, 2 * EVENTS + EVENTS // EVERY)
        equal(result["result"], "intact", f"run {number}")
        equal([one["name"] for one in result["detectors"]], ["tiles", "camera"], "its detectors")
    with h5py.File(folder / "data/000003/run.nxs") as file:
        equal(file["/entry/events/camera"][:5].ravel().tolist(), [0, -1, -1, -1, 1], "events of the last run")


@case("stopped in the middle: every frame that was sent has its outcome")
def _(folder):
    path = two(folder, tiles={"frames": 0, "frame_rate_Hz": 400}, camera={"frames": 0, "frame_rate_Hz": 100})
    program = Program("run", path, "--summary", folder / "summary.json", "--name", "two", folder=folder)
    wait_for("frames", lambda: "settled" in (text := run("ctl", "two", "status", "--json", folder=folder).out())
             and json.loads(text)["status"]["frames"]["kept"] > 50)
    program.send(signal.SIGINT)
    program.ends(0)
    summary = read_summary(folder)
    closes(summary)
    sent = [one["sent"] for one in summary["ledger"]["modules"]]
    check(sent[2] > 10 and sent[0] > 50, f"hardly anything was sent: {sent}")
    check(summary["ledger"]["total"]["outcomes"]["lost"] == 0, "frames are lost")


@case("what one detector alone can have is refused before anything is opened")
def _(folder):
    raw = two(folder, "raw.yaml", sinks=[{"raw": {"path": str(folder / "run.raw")}}])
    run_fails("run", raw, folder=folder, says=["raw: recordings are of one detector, and this experiment has 2"])
    run_fails("run", two(folder), "--set", "control.keeper=k", folder=folder, says=["control.keeper is for one detector"])
    run_fails("run", two(folder), "--set", "detector.frames=5", folder=folder, says=["detectors.NAME.OPTION"])


@case("the text that a run stores is the same experiment")
def _(folder):
    take(folder, two(folder))
    with h5py.File(folder / "run.nxs") as file:
        text = file["/entry/sluice/experiment"][()].decode()
    (folder / "again.yaml").write_text(text)
    first = run("check", "two.yaml", folder=folder).out()
    equal([line.split("#")[0] for line in run("check", "again.yaml", folder=folder).out().splitlines()],
          [line.split("#")[0] for line in first.splitlines()], "sluice check of it")


if __name__ == "__main__":
    main()
