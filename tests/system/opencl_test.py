#!/usr/bin/python3
"""opencl_test.py - the same experiment on the CPU and on a device gives the same file.

Runs on any machine with an OpenCL driver: PoCL is one for CPUs.
"""
# normal build only

import contextlib
import os
import unittest.mock

from harness import (ROOT, Program, acquire, case, check, closes, equal, experiment, main, read_outcomes, read_summary, run,
                     run_fails, sink, skip)
from same_file import datasets, differences

JUNGFRAU = {"kind": "jungfrau", "modules": 2, "rows": None, "columns": None, "frames": 36, "dark_frames": 24,
            "hit_fraction": 0.3}
CHAIN = [{"correct": {"darks": 16}}, {"veto": {"threshold": 10, "min_pixels": 20}}, {"integrate": {"bins": 100}}, "peaks"]


@contextlib.contextmanager
def compiled_quickly():
    """PoCL takes longer to optimize kernels of events than to run them as they are; of images it is the other way round."""
    with unittest.mock.patch.dict(os.environ, POCL_EXTRA_BUILD_FLAGS="-cl-opt-disable"):
        yield


def needs_opencl(folder):
    units = run("list", "opencl", folder=folder).out()
    if "not usable here" in units:
        skip("no OpenCL device: " + units.split("not usable here: ")[1].splitlines()[0])


def both(folder, frames=60, **sections):
    """The summary of the run on the device; its file is that of the CPU."""
    files, summary = [], None
    for unit in ({"kind": "cpu", "batch": 8}, {"kind": "opencl", "batch": 8, "cross_check": 20}):
        place = folder / unit["kind"]
        place.mkdir()
        _, summary = acquire(place, unit=unit, link={"kind": "shm"},
                                sinks=[{"nexus": {"path": str(place / "run.nxs")}}, "verify"], **sections)
        closes(summary, 2 * frames)
        files.append(datasets(place / "run.nxs"))
    check(files[0]["entry/data/data"].shape[0] > 3, "frames were kept")
    equal(list(differences(*files)), [], "differences")
    equal(summary["unit"]["name"], "opencl", "unit")
    check(summary["unit"]["figures"]["frames_cross_checked"] > 0, "frames were checked in the run")
    equal(summary["unit"]["figures"]["frames_unlike_the_cpu"], 0, "frames unlike the CPU's")
    return summary


@case("the demo's chain gives the same file")
def _(folder):
    needs_opencl(folder)
    both(folder, detector=JUNGFRAU, stages=CHAIN)


@case("so it does when rejected frames are kept as a sample", long=True)
def _(folder):
    needs_opencl(folder)
    summary = both(folder, detector=JUNGFRAU, stages=CHAIN + [{"prescale": {"every": 3}}])
    check(summary["frames"]["prescaled"] > 0, "frames were kept that the device had rejected")


@case("floats and storage cells, likewise", long=True)
def _(folder):
    needs_opencl(folder)
    both(folder, detector={**JUNGFRAU, "storage_cells": 3}, stages=[{"correct": {"output": "kev_f32", "darks": 4}}, "veto"])


@case("a rolling buffer has the images of rejected frames as the CPU makes them")
def _(folder):
    needs_opencl(folder)
    files = []
    for kind in ("cpu", "opencl"):
        place = folder / kind
        place.mkdir()
        raw = {"path": str(place / "look.raw"), "keep_s": 1000}
        done, summary = acquire(place, detector=JUNGFRAU, stages=CHAIN, unit={"kind": kind, "batch": 8}, link={"kind": "shm"},
                                sinks=[{"raw": raw}, "verify"])
        equal(done.process.returncode, 0, done.err())
        closes(summary, 120)
        kept, images = summary["frames"]["kept"], sink(summary, "raw")["frames"]
        check(3 < kept < 30 and images == 36, f"{kept} frames were kept, {images} of 36 bright ones have an image")
        done = run("cut", "./look.raw", "--last", "1000s", "cut.nxs", folder=place)
        equal(done.process.returncode, 0, done.err())
        files.append(datasets(place / "cut.nxs"))
    check(files[0]["entry/data/data"].shape[0] == 36 and files[0]["entry/data/data"].any(axis=(1, 2)).all(), "an image is empty")
    equal(list(differences(*files)), [], "differences")


# Stages that the demo has not; what they find is kept, or most of it.
OTHERS = {
    "rings": ({"kind": "rich", "modules": 2, "events": 100, "frames": 16, "dark_frames": 0}, [{"rings": {"min_rings": 1}}]),
    "tracks": ({"kind": "tracker", "modules": 32, "events": 1, "frames": 4}, [{"tracks": {"min_tracks": 1, "fit": True}}]),
    "images": (JUNGFRAU, ["correct", {"reduce": {"bin": 8, "window": 3}}, {"spots": {"min_spots": 1}},
                          {"sparse": {"threshold": 8}}]),
}


@case("rings, tracks, spots, lists and windows, likewise", long=True)
@compiled_quickly()
def _(folder):
    needs_opencl(folder)
    for name, (detector, stages) in OTHERS.items():
        files = []
        for kind in ("cpu", "opencl"):
            place = folder / name / kind
            place.mkdir(parents=True)
            nexus = {"path": str(place / "run.nxs"), **({} if name == "images" else {"dataset": "raw"})}
            acquire(place, detector={"rows": None, "columns": None, **detector}, stages=stages, link={"kind": "shm"},
                    unit={"kind": kind, "batch": 4}, sinks=[{"nexus": nexus}])
            files.append(datasets(nexus["path"]))
        found = [key for key, table in files[0].items() if key.startswith("entry/results/") and len(table) > 0]
        check(len(found) > 2, f"{name}: what was found is in the file: {sorted(files[0])}")
        equal(list(differences(*files)), [], f"differences of {name}")


# Each with each stage: src/receiver/gpu_test.c.
TRIGGERS = {"wait": ("images", {"batches_not_launched"}), "persistent": ("rings", {"device_ring_frames_good"})}


@case("kernels that wait, or poll, give the file of the CPU", long=True)
@compiled_quickly()
def _(folder):
    needs_opencl(folder)
    files = {}
    for trigger, (name, counted) in [("cpu", ("images", ())), ("cpu-rings", ("rings", ())), *TRIGGERS.items()]:
        detector, stages = OTHERS[name]
        place = folder / trigger
        place.mkdir()
        nexus = {"path": str(place / "run.nxs"), **({} if name == "images" else {"dataset": "raw"})}
        unit = {"kind": "cpu"} if trigger.startswith("cpu") else {"kind": "opencl", "trigger": trigger, "cross_check": 9}
        _, summary = acquire(place, detector={"rows": None, "columns": None, **detector}, stages=stages, link={"kind": "shm"},
                             unit={**unit, "batch": 4}, sinks=[{"nexus": nexus}])
        files[trigger] = datasets(nexus["path"])
        for figure in counted:
            check(summary["unit"]["figures"][figure] > 0, f"{trigger}: {summary['unit']['figures']}")
        if trigger in TRIGGERS:
            equal(list(differences(files["cpu" if name == "images" else "cpu-rings"], files[trigger])), [], f"differences of {trigger}")


@case("examples for GPUs run on any machine: on OpenCL, or without a device")
def _(folder):
    few = ["--set", "detector.frames=8", "--set", "link.kind=shm", "--summary", folder / "summary.json"]
    for name, unit in (("gpu-graph", "opencl"), ("gpu-loop", "opencl"), ("gpu-graph", "cuda"), ("gpu-wait", "cuda"), ("gpu-loop", "cuda"),
                       ("gpu-persistent", "cuda"), ("na62-10M", "cuda")):
        if unit == "opencl":
            needs_opencl(folder)
        done = run("run", ROOT / f"examples/{name}.yaml", *few, "--set", f"unit.kind={unit}", "--set",
                   "unit.device=0" if unit == "opencl" else "unit.device=255", folder=folder)
        equal(done.process.returncode, 0, f"{name} on {unit}: {done.err()[-300:]}")
        summary = read_summary(folder)
        check(summary["frames"]["settled"] >= 8, f"{name}: {summary['frames']}")


@case("what a sink reads of rejected events is what the CPU has")
@compiled_quickly()
def _(folder):
    needs_opencl(folder)
    few = ["--set", "link.kind=shm", "--summary", folder / "summary.json"]
    small = {"wait": ["--set", "detector.frames=6"],
             "persistent": ["--set", "detector.frames=40", "--set", "detector.events=1", "--set", "detector.modules=1"]}
    for name, triggers in (("wait", ("wait",)), ("persistent", ("launch", "persistent"))):
        scores = {}
        for trigger in ("cpu", *triggers):
            unit = ["unit.kind=cpu"] if trigger == "cpu" else ["unit.kind=opencl", f"unit.trigger={trigger}"]
            run("run", ROOT / f"examples/gpu-{name}.yaml", *few, *small[name], *(x for u in unit for x in ("--set", u)),
                folder=folder).ends(0)
            sinks = {sink["name"]: sink["figures"] for sink in read_summary(folder)["sinks"]}
            scores[trigger] = sinks["score"]
        check(any(value > 0 for key, value in scores["cpu"].items() if "found" in key), f"something was found: {scores['cpu']}")
        for trigger in triggers:
            equal(scores[trigger], scores["cpu"], f"score of {trigger}")


@case("a configuration that no device can have is refused, whatever stands in for devices")
def _(folder):
    run_fails("run", ROOT / "examples/gpu-graph.yaml", "--set", "unit.kind=opencl", "--set", "unit.trigger=persistent", "--set",
              "link.kind=shm", folder=folder, says=["has a kernel that polls: rings"])


@case("a device that is not there is said, and the CPU stands in where it is told to")
def _(folder):
    sections = {"detector": JUNGFRAU, "stages": CHAIN[:2], "link": {"kind": "shm"}}
    run_fails("run", experiment(folder, unit={"kind": "opencl", "device": 200}, **sections), folder=folder, says=["opencl: "])
    _, summary = acquire(folder, unit={"kind": "opencl", "device": 200, "fallback": "cpu"}, **sections)
    equal(summary["unit"]["figures"]["frames_fallen_back"], 60, "frames of the CPU")


@case("a device that does not answer in time is given up, and the ledger closes")
def _(folder):
    needs_opencl(folder)
    done, summary = acquire(folder, unit={"kind": "opencl", "batch": 8, "timeout_ms": 1}, link={"kind": "shm"},
                            detector={**JUNGFRAU, "frames": 100, "modules": 4}, stages=CHAIN, sinks=["null"])
    closes(summary, 4 * 124)
    equal(done.process.returncode, 2, "exit status")
    check("it did not answer in time" in done.err(), "it is said")
    check(summary["ledger"]["total"]["outcomes"]["refused"] > 0, "frames were refused")
    equal({cause for outcome, cause in read_outcomes(folder).values() if outcome == "refused"}, {"unit"}, "why they were")


@case("two runs have the device at once")
def _(folder):
    needs_opencl(folder)
    runs = []
    for name in ("one", "other"):
        place = folder / name
        place.mkdir()
        runs.append((place, Program("run", experiment(place, unit={"kind": "opencl", "batch": 8, "cross_check": 20},
                                                    link={"kind": "shm"}, detector=JUNGFRAU, stages=CHAIN,
                                                    sinks=["null"]),
                                    "--summary", place / "summary.json", folder=place)))
    for place, program in runs:
        equal(program.wait(), 0, f"exit status of {place.name}")
        summary = read_summary(place)
        closes(summary, 2 * 60)
        equal(summary["unit"]["figures"]["frames_unlike_the_cpu"], 0, "frames unlike the CPU's")


main()
