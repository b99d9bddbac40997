#!/usr/bin/python3
"""python_stage_test.py - the stage `python` in runs: verdicts are those of a stage in C with the same rule, with any number of workers
and processes; a process that is killed or stopped costs verdicts, no frames; processes end with the run; what is wrong with a script is
told before anything is opened."""

import importlib.util
import json
import os
import pathlib
import signal
import sys

from harness import (GUARDED, ROOT, SLOW, Program, acquire, case, check, closes, equal, experiment, fewer, main, read_outcomes, read_summary,
                     run, run_fails, skip, wait_for)

JUNGFRAU = {"kind": "jungfrau", "modules": 1, "rows": None, "columns": None, "frames": fewer(40, 16), "dark_frames": 16,
            "hit_fraction": 0.3}
CORRECT = {"correct": {"darks": 16}}
VETO = {"veto": {"threshold": 10, "min_pixels": 20}}
SHM = {"kind": "shm"}
FIGURES = ("judged", "unjudged", "late", "errors", "restarts")

# The rule of VETO.
RULE = """
import numpy as np

def judge(frame):
    found = np.count_nonzero(frame["image"] >= 10)
    return found >= 20, found
"""


def stage(folder, text, **options):
    """The stage with this script; the deadline is far away unless it is asked for."""
    if importlib.util.find_spec("numpy") is None:
        skip("python3-numpy is not installed")
    path = folder / "script.py"
    path.write_text(text)
    return {"python": {"script": str(path), "python": sys.executable, "deadline_ms": 60000, **options}}


def figures(summary, name="python"):
    return {key: summary["unit"]["figures"][f"{name}_{key}"] for key in FIGURES}


def all_judged(frames):
    return {**dict.fromkeys(FIGURES, 0), "judged": frames}


def accounted(program, summary, frames):
    """Every frame was judged, or kept; the ledger says the same."""
    equal(program.process.returncode, 0, "exit status")
    closes(summary)
    count = figures(summary)
    equal(count["judged"] + count["unjudged"], frames, "frames judged and unjudged")
    return count


@case("verdicts are those of the stage veto, with 1 to 4 workers and 1 to 3 processes; no sink reads the image")
def _(folder):
    common = {"detector": JUNGFRAU, "link": SHM, "sinks": ["null"]}
    done, summary = acquire(folder, stages=[CORRECT, VETO], **common)
    equal(done.process.returncode, 0, "exit status")
    wanted = read_outcomes(folder)
    equal(len({outcome for outcome, _ in wanted.values()}), 2, "kinds of outcomes")
    for workers, processes in ((1, 1), (2, 3), (4, 2)) if not SLOW else ((3, 2),):
        done, summary = acquire(folder, stages=[CORRECT, stage(folder, RULE, processes=processes)], unit={"workers": workers, "batch": 5},
                                **common)
        equal(accounted(done, summary, JUNGFRAU["frames"]), all_judged(JUNGFRAU["frames"]), "figures")
        equal(read_outcomes(folder), wanted, f"outcomes with {workers} workers and {processes} processes")


@case("a script gets results of the stages before it, and adds its own to the file")
def _(folder):
    try:
        import h5py
        import numpy as np
    except ImportError:
        skip("python3-h5py is not installed")
    script = """
def judge(frame):
    peaks, found = frame["peaks"], int(frame["peaks_found"][0])
    assert peaks.shape == (found, 8) and list(frame.results) == ["peaks", "peaks_found"]
    return {"keep": found >= 3, "score": found, "numbers": [found, peaks[:, 3].sum() if found else 0]}
"""
    stages = [CORRECT, {"peaks": {"min_peaks": 0}}, stage(folder, script, inputs="peaks, peaks_found", numbers=2, name="hits"),
              stage(folder, script, inputs="peaks, peaks_found", numbers=2, name="again", look="all")]
    program, summary = acquire(folder, detector=JUNGFRAU, link=SHM, stages=stages,
                               sinks=[{"nexus": {"path": str(folder / "run.nxs")}}])
    equal(program.process.returncode, 0, "exit status")
    equal(figures(summary, "again"), all_judged(JUNGFRAU["frames"]), "figures of a second stage")
    with h5py.File(folder / "run.nxs") as file:
        got = {name: item[()] for name, item in file["entry/results"].items()}
        rows = file["entry/sluice/frames"]
        score = rows["score"][()][np.isin(rows["sequence"][()], got["sequence"])]
    shown = got["hits_judged"] == 1
    equal(int(shown.sum()), JUNGFRAU["frames"], "frames that were judged")
    check(np.array_equal(got["hits_numbers"][shown, 0], got["peaks_found"][shown].ravel()), "numbers are the peaks")
    check(np.array_equal(score[shown], got["peaks_found"][shown].ravel()), "so is the score")


# ---- processes that are killed, stopped, slow ----

KEEP = "def judge(frame):\n    return frame.number % 2 == 0\n"
PACED = {"kind": "pattern", "modules": 2, "rows": 64, "columns": 64, "frames": 300, "frame_rate_Hz": 300}


def started(folder, script, arguments=(), **options):
    """A run under way, and its children that run the script."""
    path = experiment(folder, detector=PACED, link=SHM, stages=[stage(folder, script, inputs="raw", **options)], sinks=["null"])
    program = Program("run", path, "--summary", folder / "summary.json", *arguments, folder=folder)
    return program, lambda: [pid for pid in program.children() if "script.py" in command_of(pid)]


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # it has just ended
        return ""


def act_in_mid_run(folder, number, **options):
    """Send a signal to the process of the script when frames have been judged."""
    mark = folder / "judged"
    program, processes = started(folder, f"import pathlib\n{KEEP.replace('return', f'pathlib.Path({str(mark)!r}).touch(); return')}", **options)
    wait_for("a frame that was judged", mark.exists)
    os.kill(processes()[0], number)
    program.ends(0)
    count = accounted(program, read_summary(folder), PACED["frames"])
    check(count["judged"] > 0, "frames were judged")
    return program, count


@case("kill -9 of the script's process: it is started again, and no frame is lost")
def _(folder):
    program, count = act_in_mid_run(folder, signal.SIGKILL)
    equal((count["restarts"], count["errors"]), (1, 0), "restarts and errors")
    check("was killed by signal 9" in program.err(), "the log says what happened")


@case("kill -STOP: its frame is kept at the deadline, the others do not wait, and the process is replaced")
def _(folder):
    program, count = act_in_mid_run(folder, signal.SIGSTOP, deadline_ms=50 if not SLOW else 400, stuck_s=0.5)
    check(count["restarts"] >= 1 and count["unjudged"] >= 1, f"figures: {count}")
    check("did not answer" in program.err(), "the log says what happened")


@case("a script that is too slow for every frame does not stop the run")
def _(folder):
    script = "import time\ndef judge(frame):\n    time.sleep(600)\n"
    program, summary = acquire(folder, detector={**PACED, "frames": 100}, link=SHM, sinks=["null"],
                               stages=[stage(folder, script, inputs="raw", deadline_ms=20, stuck_s=0.1, processes=2)])
    count = accounted(program, summary, 100)
    equal((count["judged"], count["unjudged"]), (0, 100), "judged and unjudged")
    equal(summary["frames"]["kept"], 100, "frames kept")
    check("frames are kept without a verdict" in program.err(), "the log says so")


@case("a script that dies at every frame is started at a bounded rate")
def _(folder):
    script = "import os\ndef judge(frame):\n    os._exit(9)\n"
    program, summary = acquire(folder, detector=PACED, link=SHM, sinks=["null"], stages=[stage(folder, script, inputs="raw")])
    count = accounted(program, summary, PACED["frames"])
    equal(count["judged"], 0, "frames judged")
    check(1 <= count["restarts"] <= 12, f"{count}")  # at once, then after 0.1, 0.2, 0.4, ... 10 s


@case("the script's processes end with a run that is killed, and with one that is interrupted")
def _(folder):
    for number in (signal.SIGKILL, signal.SIGINT):
        program, processes = started(folder, KEEP, processes=2)
        wait_for("two processes", lambda: len(processes()) == 2)
        pids = processes()
        wait_for("the run", lambda: "threads:" in program.err())
        program.send(number)
        program.wait()
        wait_for("their end", lambda: not any("script.py" in command_of(pid) for pid in pids))


# ---- data threads, devices, sessions ----

@case("no data thread allocates, locks, logs or formats")
def _(folder):
    if not GUARDED:
        skip("a sanitizer stands where the guard would")
    program, summary = acquire(folder, program=GUARDED, detector=JUNGFRAU, link=SHM, unit={"workers": 2}, sinks=["null"],
                               stages=[CORRECT, stage(folder, "import os\ndef judge(frame):\n    if frame.number == 30: os._exit(1)\n"
                                                              "    print(frame.number)\n    return {'keep': 1, 'numbers': [2]}\n", numbers=1)])
    accounted(program, summary, JUNGFRAU["frames"])


@case("behind stages that run on a device")
def _(folder):
    units = run("list", "opencl", folder=folder).out()
    if SLOW or "not usable here" in units:
        skip("no OpenCL device, or a build that is slow")
    common = {"detector": JUNGFRAU, "link": SHM, "sinks": ["null"]}
    acquire(folder, stages=[CORRECT, VETO], **common)
    wanted = read_outcomes(folder)
    program, summary = acquire(folder, unit={"kind": "opencl", "batch": 8}, stages=[CORRECT, stage(folder, RULE)], **common)
    equal(accounted(program, summary, JUNGFRAU["frames"]), all_judged(JUNGFRAU["frames"]), "figures")
    equal(read_outcomes(folder), wanted, "outcomes")


@case("a session calls setup() for each run, and counts from 0")
def _(folder):
    script = ("def setup(about):\n    global seen\n    seen = 0\n"
              "def judge(frame):\n    global seen\n    seen += 1\n    return seen <= 10\n")
    path = experiment(folder, detector={**PACED, "frames": 50, "frame_rate_Hz": 0}, link=SHM, sinks=["null"],
                      stages=[stage(folder, script, inputs="raw")])
    run("session", path, "--root", folder / "data", "--runs", 3, folder=folder).ends(0)
    for number in (1, 2, 3):
        result = json.loads((folder / f"data/{number:06}/result.json").read_text())
        equal(figures(result), all_judged(50), f"figures of run {number}")
        equal(result["frames"]["kept"], 10, f"frames kept in run {number}")


# ---- what is refused ----

@case("a script that cannot begin is an error before anything is written")
def _(folder):
    for script, says in (("def judge(frame)\n", "script.py: line 1: SyntaxError: "),
                         ("import no_such_module\n", "script.py: line 1: ModuleNotFoundError: No module named 'no_such_module'"),
                         ("x = 1\n", "there is no function judge(frame) in it")):
        path = experiment(folder, stages=[stage(folder, script, inputs="raw")], link=SHM)
        run_fails("run", path, folder=folder, says=[says])
        check(not (folder / "run.nxs").exists(), "no file is left")
    path = experiment(folder, stages=[stage(folder, KEEP, inputs="raw", script=str(folder / "none.py"))], link=SHM)
    run_fails("run", path, folder=folder, says=["cannot read script", "none.py"])
    path = experiment(folder, stages=[stage(folder, KEEP, inputs="profile")], link=SHM)
    run_fails("run", path, folder=folder, says=["there is no 'profile'"])
    path = experiment(folder, stages=[stage(folder, KEEP, inputs="raw")], link=SHM, threads={"together": True}, unit={"workers": 1})
    run_fails("check", path, folder=folder, says=["stage 'python' waits for another process"])
    path = experiment(folder, stages=[stage(folder, KEEP, inputs="raw")], link=SHM,
                      sinks=[{"nexus": {"path": str(folder / "script.py"), "overwrite": True}}])
    run_fails("run", path, folder=folder, says=["script.py"])


main()
