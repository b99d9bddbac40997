#!/usr/bin/python3
"""session_test.py - sluice session and sluice run --root: run after run, each in a folder of its own with its data, log, experiment and
result; two sessions at one root; sessions that are killed, stopped, or have no space."""

import json
import os
import re
import shlex
import signal
import time

import h5py

from harness import (CONTROL_PORT, LONG, ROOT, Program, build_plugin, case, check, closes, equal, experiment, fewer, images_on_disk, main, run, run_fails,
                     skip, wait_for, without_privilege)

LINE = re.compile(r"run (\d+): (\w+), (\d+) frames, (\d+) lost, (\S+)(?: \((.*)\))?")
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (error|warning|info) +\S.*")
SINKS = [{"nexus": {"path": "run.nxs", "dataset": "raw"}}, "verify"]
FRAMES = fewer(60, 20)
SMALL = {"rows": 32, "columns": 64, "frames": FRAMES}


def file_of(folder, name="experiment.yaml", **sections):
    """An experiment whose outputs begin in the run folder; shm, and any port: several sessions run side by side."""
    return experiment(folder, name, **{"detector": SMALL, "link": {"kind": "shm"}, "sinks": SINKS, "control": {"port": 0, "token": "opensesame"},
                                       **sections})


def lines_of(program):
    return [LINE.fullmatch(line) or check(False, f"not a line about a run: {line}") for line in program.out().splitlines()]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def result_of(folder):
    return json.loads((folder / "result.json").read_text())


def intact(folder, number, frames=FRAMES):
    """A folder has all of a good run; its result."""
    equal(names_in(folder), ["experiment.yaml", "lock", "result.json", "run.log", "run.nxs", "run_data_000001.h5"], "files of the run")
    result = result_of(folder)
    closes(result, 2 * frames)
    equal((result["run"], result["folder"], result["state"], result["result"], result["exit"], result["error"], result["log_lines_lost"]),
          (number, str(folder), "ended", "intact", 0, None, 0), "result")
    check(result["started"] < result["ended"], "ended before it started")
    for line in (folder / "run.log").read_text().splitlines():
        check(LOG_LINE.fullmatch(line), f"not a line of a log: {line}")
    with h5py.File(folder / "run.nxs", "r") as file:
        equal(len(file["entry/data/data"]), frames, "images in the file")
    return result


@case("runs follow each other, each in its folder, and stdout has a line for each")
def _(folder):
    path = file_of(folder)
    program = run("session", path, "--root", "data", "--runs", 3, "--outcomes", "outcomes.txt",
                  folder=folder)
    equal(program.process.returncode, 0, "exit status")
    equal([line.groups() for line in lines_of(program)],
          [(str(n), "intact", str(FRAMES), "0", str(folder / f"data/00000{n}"), None) for n in (1, 2, 3)], "lines")
    for n in (1, 2, 3):
        place = folder / f"data/00000{n}"
        equal(len((place / "outcomes.txt").read_text().splitlines()), 2 * FRAMES, "lines of the outcome log")
        (place / "outcomes.txt").unlink()
        result = intact(place, n)
        equal(result["origin"], {"file": str(path), "working_directory": str(folder)}, "origin")
        equal(result["sinks"][0]["where"], str(place / "run.nxs"), "where the data is")


@case("the experiment in the folder has the origin of each key, no token, and runs again")
def _(folder):
    path = file_of(folder)
    equal(run("session", path, "--root", "data", "--runs", 1, "--set", "ring.slots=20", folder=folder).process.returncode, 0, "exit status")
    stored = folder / "data/000001/experiment.yaml"
    text = stored.read_text()
    check(re.search(r"slots: 20 +# --set", text), "no origin --set")
    check(re.search(r"path: run.nxs +# \S*experiment.yaml:\d+", text), "no origin of the file")
    check(re.search(r"late_frames: 8 +# default", text), "no default")
    for file in (folder / "data/000001").iterdir():
        check(b"opensesame" not in file.read_bytes(), f"{file.name} has the token")
    token = folder / "token"
    token.write_text("another one\n")
    token.chmod(0o600)
    again = run("session", stored, "--root", "data", "--runs", 1, "--set", f"control.token_file={token}", folder=folder)
    equal(again.process.returncode, 0, "again")
    intact(folder / "data/000002", 2)


@case("two sessions at one root: all runs are whole, no folder is shared")
def _(folder):
    path, runs = file_of(folder), fewer(8, 3)
    sessions = [Program("session", path, "--root", "data", "--runs", runs, folder=folder) for _ in range(2)]
    numbers = []
    for session in sessions:
        session.ends(0)
        numbers += [int(line[1]) for line in lines_of(session)]
    equal(sorted(numbers), list(range(1, 2 * runs + 1)), "numbers")
    for number in numbers:
        intact(folder / f"data/{number:06}", number)


def slow(folder, **sections):
    return file_of(folder, detector=LONG, **sections)


def started(folder, *arguments, **sections):
    """A session in the middle of its first run."""
    program = Program("session", slow(folder, **sections), "--root", "data", *arguments, folder=folder)
    wait_for("data", lambda: images_on_disk(folder / "data/000001") > 2 or not program.running())
    check(program.running(), "the session ended")
    return program


@case("a session that is killed leaves a free lock and no result; the next start says so, until a run has a result")
def _(folder):
    program = started(folder, "--runs", 1)
    program.send(signal.SIGKILL)
    program.wait()
    left = names_in(folder / "data/000001")
    check("result.json" not in left and "run.log" in left and "lock" in left, f"left: {left}")
    path = file_of(folder)
    for runs in range(2):
        again = run("session", path, "--root", "data", "--runs", 1, folder=folder)
        equal(again.process.returncode, 0, "exit status")
        equal("run 1 did not end" in again.err(), runs == 0, "the second start says it, the third does not")
        if not runs:
            check(re.search(r"run_data_000001\.h5 \(\d+ bytes\)", again.err()), "it does not say what was left")
        intact(folder / f"data/00000{runs + 2}", runs + 2)


@case("SIGTERM ends the run with what was sent, then the session; no further run begins")
def _(folder):
    program = started(folder, "--runs", 5)
    program.send(signal.SIGTERM)
    program.ends(0)
    equal([line[2] for line in lines_of(program)], ["intact"], "results")
    equal(names_in(folder / "data"), ["000001"], "runs")
    result = result_of(folder / "data/000001")
    equal((result["stopped_by"], result["state"], result["ended_early"]), ("SIGTERM", "ended", "interrupted"), "result")
    closes(result)


@case("a second SIGTERM does not wait for the front ends, and the result is written")
def _(folder):
    program = started(folder, "--runs", 5)
    for child in program.children():  # a front end that does not answer
        os.kill(child, signal.SIGSTOP)
    children = program.children()
    program.send(signal.SIGTERM)
    time.sleep(0.5)  # signals within 0.3 s count as one
    program.send(signal.SIGTERM)
    wait_for("the end of waiting", lambda: program.err().count("vanished") == 2 or not program.running(), 20)
    for child in children:
        os.kill(child, signal.SIGKILL)
    check(program.wait() in (2, 3), "exit status")
    check(result_of(folder / "data/000001")["result"] in ("unclosed", "damaged"), "result")


@case("a session without --runs waits, and ends at a signal")
def _(folder):
    program = Program("session", file_of(folder), "--root", "data", folder=folder)
    wait_for("readiness", lambda: "ready" in program.err() or not program.running())
    program.send(signal.SIGINT)
    program.ends(0)
    check(not (folder / "data").exists(), "a session that took no run has made something")


@case("a root that cannot be written: each run fails with its reason, and nothing is left")
def _(folder):
    (folder / "data").mkdir(mode=0o555)
    program = run_fails("session", file_of(folder), "--root", "data", "--runs", 2, folder=folder, wrapper=without_privilege(),
                        says=[f"cannot make a run folder in '{folder}/data': Permission denied"])
    equal([line.group(1, 2, 5) for line in lines_of(program)], [("0", "error", "-")] * 2, "lines")
    equal(names_in(folder / "data"), [], "what is left")


@case("a file system that is mounted read-only")
def _(folder):
    disk = shlex.quote(str(folder / "disk"))
    wrapper = small_disk(folder, 1, f"mount -o remount,ro {disk} || exit 77")
    program = run_fails("session", file_of(folder), "--root", "disk", "--runs", 1, folder=folder, wrapper=wrapper,
                        says=["cannot make a run folder", "Read-only file system"])
    check(lines_of(program)[0][6].startswith("output: "), "the error is another")


@case("a root whose parent is missing, or that is a file")
def _(folder):
    (folder / "file").write_text("")
    for root, why in (("no/such", "No such file or directory"), ("file", "Not a directory")):
        run_fails("session", file_of(folder), "--root", root, "--runs", 1, folder=folder, says=[root, why])


def small_disk(folder, megabytes, before="true"):
    """A wrapper that runs the program with a tmpfs of its own at folder/disk, and afterwards copies what is there to folder/copy."""
    (folder / "disk").mkdir()
    (folder / "copy").mkdir()
    disk, copy = shlex.quote(str(folder / "disk")), shlex.quote(str(folder / "copy"))
    mount = f"mount -t tmpfs -o size={megabytes}m none {disk} || exit 77"
    script = f'{mount}\n{before}\n"$@"\nstatus=$?\ncp -a {disk}/. {copy}\nexit $status'
    for unshare in (["unshare", "-m"], ["unshare", "-rm"]):
        if Program(folder=folder, program="true", wrapper=[*unshare, "sh", "-c", f'{mount}\n"$@"', "sh"]).wait() == 0:
            return [*unshare, "sh", "-c", script, "sh"]
    skip("neither root nor user namespaces may mount a small tmpfs here")


@case("a disk that is full in mid-run: the result is there, and says what was not written")
def _(folder):
    wrapper = small_disk(folder, 14)
    path = file_of(folder, detector={"rows": 256, "columns": 512, "frames": 40}, sinks=[SINKS[0]])
    program = Program("session", path, "--root", "disk", "--runs", 1, folder=folder, wrapper=wrapper)
    program.ends(2)
    result = result_of(folder / "copy/000001")
    closes(result, 80)
    equal((result["result"], result["exit"], result["state"]), ("damaged", 2, "ended"), "result")
    check(result["ledger"]["total"]["outcomes"]["unwritten"] > 0, "everything was written")
    check("nexus" in (folder / "copy/000001/run.log").read_text(), "the log has nothing of it")


@case("a disk that is full at the beginning: the run fails, no folder is left; the next run, with space, is whole")
def _(folder):
    disk = shlex.quote(str(folder / "disk"))
    # The space comes back once the first run has failed.
    back = f"dd if=/dev/zero of={disk}/full bs=4k 2>/dev/null\n(while ! grep -qs error stdout-*; do sleep 0.01; done; rm {disk}/full) &"
    wrapper = small_disk(folder, 20, back)
    program = Program("session", file_of(folder), "--root", "disk", "--runs", 1000, folder=folder, wrapper=wrapper)
    wait_for("a run that is intact", lambda: ": intact" in program.out() or not program.running())
    for child in program.children():
        os.kill(child, signal.SIGTERM)
    program.ends(1)
    lines = lines_of(program)
    equal(lines[0].group(1, 2), ("0", "error"), "the first run")
    check("No space left" in lines[0][6] and lines[0][6].startswith("output: "), f"it does not say why: {lines[0][6]}")
    first = next(line for line in lines if line[2] == "intact")
    equal(first[1], "1", "number of the first run that had space")
    check((folder / "copy/000001/result.json").exists(), "no result")


@case("a run that cannot begin has a result with its error")
def _(folder):
    path = file_of(folder, sinks=[{"nexus": {"path": "run.log", "dataset": "raw"}}])
    program = run_fails("session", path, "--root", "data", "--runs", 2, folder=folder, says=["this name is reserved"])
    equal([line[6].split(":")[0] for line in lines_of(program)], ["output", "output"], "errors on stdout")
    for number in (1, 2):
        result = result_of(folder / f"data/00000{number}")
        equal((result["state"], result["result"], result["exit"], result["error"]["code"]), ("fault", "error", 1, "output"), "result")
        check("error" in (folder / f"data/00000{number}/run.log").read_text(), "the log has no error")


@case("an output outside of the run folder is told")
def _(folder):
    path = file_of(folder, sinks=[{"nexus": {"path": str(folder / "fixed.nxs"), "dataset": "raw"}}])
    program = run("session", path, "--root", "data", "--runs", 2, folder=folder)
    equal(program.process.returncode, 0, "exit status")
    equal(program.err().count("is in no run folder"), 1, "warnings")
    equal(names_in(folder / "data/000002"), ["experiment.yaml", "lock", "result.json", "run.log"], "files")


@case("sluice run --root takes one run in a folder; relative summary and outcomes lie there")
def _(folder):
    path = file_of(folder)
    for number in (1, 2):
        program = run("run", path, "--root", "data", "--summary", "s.json", "--outcomes", "o.txt", folder=folder)
        equal(program.process.returncode, 0, "exit status")
        place = folder / f"data/00000{number}"
        equal(json.loads((place / "s.json").read_text())["result"], "intact", "summary")
        check("run" not in json.loads((place / "s.json").read_text()), "the summary has changed")
        (place / "s.json").unlink()
        (place / "o.txt").unlink()
        intact(place, number)


TRANSFERS = {name: {"first_module": k, "modules": 1, "sinks": [{"nexus": {"path": f"{name}.nxs", "dataset": "raw"}}]}
             for k, name in enumerate(("one", "two"))}


@case("several transfers have one number and one folder")
def _(folder):
    path = file_of(folder, transfers=TRANSFERS, sinks=None)
    program = run("run", path, "--root", "data", "--summary", "s.json", "--outcomes", "o.txt", folder=folder)
    equal(program.process.returncode, 0, "exit status")
    place = folder / "data/000001"
    equal(names_in(place), sorted(["lock", "result.json", "run.log", "s.json"] + [
        name for t in TRANSFERS for name in (f"experiment.{t}.yaml", f"o.txt.{t}", f"result.{t}.json", f"run.{t}.log", f"{t}.nxs", f"{t}_data_000001.h5")]), "files")
    result = result_of(place)
    equal((result["run"], result["result"], result["state"], sorted(result["transfers"])), (1, "intact", "ended", ["one", "two"]), "result")
    for name, one in result["transfers"].items():
        equal((one["run"], one["transfer"], one["result"]), (1, name, "intact"), "result of a transfer")
    run_fails("session", path, "--root", "data", folder=folder, says=["has 2 transfers", "--transfer"])


@case("the folder of several transfers is held until the last receiver has ended, and a crash is seen")
def _(folder):
    path = file_of(folder, transfers=TRANSFERS, sinks=None, detector=LONG)
    program = Program("run", path, "--root", "data", "--quiet", folder=folder)
    data = folder / "data/000001/two_data_000001.h5"
    wait_for("data", lambda: data.exists() or not program.running())
    for child in program.children():
        os.kill(child, signal.SIGKILL)
    program.wait()
    result = result_of(folder / "data/000001")
    equal((result["result"], result["transfers"]), ("unclosed", {"one": None, "two": None}), "result")


GOOD = (ROOT / "tests/lib/plugin_good.c").read_text()
WRITES = """static int open_sink(void *state, const struct sl_env *env)
{
	FILE *file = fopen(((const struct nothing *)state)->path, "w");

	if (access("crash", F_OK) == 0)
		*(volatile int *)8 = 1;
	return file ? fclose(file) : -1;
}
"""


def writing_plugin(folder):
    """The good plug-in with a sink that makes an empty file; with a file "crash" in the working directory it crashes in open()."""
# with sanitizers in check-long
    code = GOOD.replace("uint32_t depth;", "uint32_t depth;\n\tchar path[1024];")
    code = code.replace("\tSL_OPTION_END", '\tSL_OUTPUT(struct nothing, path, "plain.txt", "a file"),\n\tSL_OPTION_END', 1)
    before, _, rest = code.partition("static int open_sink")
    return build_plugin(folder / "plugins/writes.so", "#include <stdio.h>\n#include <unistd.h>\n" + before + WRITES + rest.partition("}\n")[2])


@case("a plug-in that crashes in open: the run fails with its name, the session lives and takes the next run")
def _(folder):
    plugin = writing_plugin(folder)
    path = file_of(folder, sinks=["verify", "fixture"], plugins=[str(plugin)])
    (folder / "crash").write_text("")
    program = Program("session", path, "--root", "data", "--runs", 1000, folder=folder)
    wait_for("a run that failed", lambda: "error" in program.out() or not program.running())
    (folder / "crash").unlink()
    wait_for("a run that is intact", lambda: ": intact" in program.out() or not program.running())
    program.send(signal.SIGTERM)
    program.ends(1)
    first = lines_of(program)[0]
    equal(first.group(1, 2, 6), ("1", "error", f"system: plug-in fixture ({plugin.resolve()}) crashes in open: SIGSEGV"), "the first run")
    result = result_of(folder / "data/000001")
    equal((result["state"], result["error"]["code"]), ("fault", "system"), "result")
    check("crashes in open: SIGSEGV" in (folder / "data/000001/run.log").read_text(), "the log does not say it")
    good = next(line for line in lines_of(program) if line[2] == "intact")
    place = folder / f"data/{int(good[1]):06}"
    check((place / "plain.txt").exists(), "the output of the plug-in is not in the run folder")
    equal(run("check", place / "experiment.yaml", folder=folder).process.returncode, 0, "the experiment in the folder names the plug-in")


@case("wrong command lines")
def _(folder):
    path = file_of(folder)
    run_fails("session", path, folder=folder, says=["in which root?"])
    run_fails("session", "--root", "data", folder=folder, says=["which experiment?"])
    run_fails("session", path, "--root", "data", "--runs", "-1", folder=folder, says=["--runs"])
    run_fails("session", path, "--root", "data", "--runs", "1", "--set", "ring.slots=many", folder=folder, says=["ring.slots"])
    run_fails("run", "--in-folder", "3:/tmp", path, folder=folder, says=["is not the folder of this run"])


def ready(folder, name):
    run("ctl", name, "wait", "configured", "--timeout_s", "60", folder=folder)


@case("a session that is told what to do: runs, metadata in result and file, close")
def _(folder):
    session = Program("session", file_of(folder), "--root", "data", "--name", "told", folder=folder)
    ready(folder, "told")
    for number in (1, 2, 3):
        run("ctl", "told", "metadata", f"point={number}", "sample=lysozyme", folder=folder)
        equal(run("ctl", "told", "start", "--wait", folder=folder).process.returncode, 0, "exit status of the run")
        result = result_of(folder / f"data/{number:06}")
        equal(result["metadata"], {"point": str(number), "sample": "lysozyme"}, "metadata in result.json")
        with h5py.File(folder / f"data/{number:06}/run.nxs", "r") as file:
            group = file["entry/sluice/metadata"]
            equal({key: group[key][()].decode() for key in group}, result["metadata"], "metadata in the file")
    listed = run("ps", "--json", folder=folder).out()
    check('"told"' in listed and "000003" in listed, f"sluice ps does not know it: {listed}")
    run("ctl", "told", "close", "--wait", folder=folder)
    session.ends(0)
    equal([line[1] for line in lines_of(session)], ["1", "2", "3"], "runs")
    check('"told"' not in run("ps", "--json", folder=folder).out(), "it is still listed")


@case("an endless run of a session lasts until it is stopped, and the next one follows")
def _(folder):
    path = file_of(folder, detector={**SMALL, "frames": 0, "frame_rate_Hz": 200})
    session = Program("session", path, "--root", "data", "--name", "endless", folder=folder)
    ready(folder, "endless")
    for number in (1, 2):
        run("ctl", "endless", "start", folder=folder)
        run("ctl", "endless", "wait", "running", "--timeout_s", "60", folder=folder)
        time.sleep(0.2)
        run("ctl", "endless", "stop", "--wait", folder=folder)
        result = result_of(folder / f"data/{number:06}")
        equal((result["result"], result["exit"], result["ended_early"]), ("intact", 0, None), "result")
    run("ctl", "endless", "close", "--wait", folder=folder)
    session.ends(0)


@case("a killed session is told of by ps, and by the next session")
def _(folder):
    path = file_of(folder, detector={**SMALL, "frames": 0, "frame_rate_Hz": 200})
    session = Program("session", path, "--root", "data", "--name", "killed", folder=folder)
    ready(folder, "killed")
    run("ctl", "killed", "start", folder=folder)
    run("ctl", "killed", "wait", "running", "--timeout_s", "60", folder=folder)
    session.send(signal.SIGKILL)
    session.wait()
    said = run("ps", folder=folder).out()
    check(re.search(r"^killed +crashed +000001", said, re.M) and "data/000001" in said, said)
    after = Program("session", file_of(folder), "--root", "data", "--name", "killed", "--runs", "1", folder=folder)
    after.ends(0)
    check("000001" in after.err() and "no result" in after.err(), "the next session does not say what was left")


@case("files, figures and ledgers of later runs are those of the first")
def _(folder):
    path = file_of(folder)
    run("session", path, "--root", "data", "--runs", "3", folder=folder)
    first = result_of(folder / "data/000001")
    for number in (2, 3):
        result = result_of(folder / f"data/{number:06}")
        equal(result["sinks"][1], first["sinks"][1], f"figures of verify in run {number}")
        for one in (result, first):
            one["sinks"][0]["figures"].pop("longest_put_us", None)  # depends on the disk
        equal(result["sinks"][0]["figures"], first["sinks"][0]["figures"], f"figures of the file in run {number}")
        equal(result["ledger"], first["ledger"], f"ledger of run {number}")
        same = run(ROOT / "tools/same_file.py", folder / "data/000001/run.nxs", folder / f"data/{number:06}/run.nxs", folder=folder,
                   program="/usr/bin/python3")
        check(" are the same" in same.out(), same.out())


@case("a sink that failed in one run is as new in the next")
def _(folder):
    path = file_of(folder, emulate="none", control={"port": CONTROL_PORT, "token": "opensesame"})
    session = Program("session", path, "--root", "data", "--name", "spoilt", folder=folder)
    ready(folder, "spoilt")
    for spoil, result, status in ((0.3, "damaged", 2), (0, "intact", 0), (0, "intact", 0)):
        run("ctl", "spoilt", "start", folder=folder)
        front_end = Program("emulate", path, "--once", "--set", f"frontend.spoil={spoil}",
                            folder=folder)
        run("ctl", "spoilt", "wait", "ended", "--timeout_s", "60", folder=folder)
        newest = sorted((folder / "data").iterdir())[-1]
        equal((result_of(newest)["result"], result_of(newest)["exit"]), (result, status), f"run {newest.name}")
        front_end.send(signal.SIGTERM)
        front_end.wait()
    run("ctl", "spoilt", "close", "--wait", folder=folder)
    session.wait()


@case("native detectors: the front end of a stopped run does not send into the next")
def _(folder):
    path = file_of(folder, link={"kind": "sls", "payload": 1024}, ring={"slots": 500}, control={"silence_s": 5},
                   detector={"rows": 64, "columns": 64, "frames": 200, "frame_rate_Hz": 400})
    session = Program("session", path, "--root", "data", "--name", "native", folder=folder)
    ready(folder, "native")
    run("ctl", "native", "start", folder=folder)
    run("ctl", "native", "wait", "running", "--timeout_s", "60", folder=folder)
    run_fails("ctl", "native", "pause", folder=folder, says=["module 0 takes no credits"])
    run("ctl", "native", "stop", "--wait", folder=folder)
    run("ctl", "native", "start", "--wait", folder=folder)
    result = result_of(folder / "data/000002")
    equal((result["result"], result["frames"]["settled"]), ("intact", 200), "the second run")
    run("ctl", "native", "close", "--wait", folder=folder)
    session.wait()


def external(folder, name, *steps):
    """A session, and a front end in a process of its own that stays for several runs."""
    path = file_of(folder, emulate="none", control={"port": CONTROL_PORT, "token": "opensesame"},
                   detector={**SMALL, "frames": 200, "frame_rate_Hz": 200})
    session = Program("session", path, "--root", "data", "--name", name, folder=folder)
    ready(folder, name)
    front_end = Program("emulate", path, folder=folder)
    for step in steps:
        step()
    run("ctl", name, "close", "--wait", folder=folder)
    session.wait()
    return front_end


def whole_run(folder, name):
    run("ctl", name, "start", "--wait", folder=folder)
    newest = sorted((folder / "data").iterdir())[-1]
    equal((result_of(newest)["result"], result_of(newest)["frames"]["settled"]), ("intact", 200), f"run {newest.name}")


@case("an external front end stays for run after run, and goes home when the session closes")
def _(folder):
    front_end = external(folder, "stays", *[lambda: whole_run(folder, "stays")] * 3)
    front_end.ends(0)


@case("an external front end comes again after a run was aborted, and after a configure")
def _(folder):
    def abort():
        run("ctl", "again", "start", folder=folder)
        run("ctl", "again", "wait", "running", "--timeout_s", "60", folder=folder)
        run("ctl", "again", "abort", "--wait", folder=folder)

    def configure():
        run("ctl", "again", "configure", "ring.slots=40", folder=folder)

    def the_rest():  # a detector whose receiver vanished goes on where it was
        run("ctl", "again", "start", "--wait", folder=folder)
        result = result_of(folder / "data/000003")
        check(result["result"] == "intact" and 0 < result["frames"]["settled"] <= 200, f"after an abort: {result['result']}")
    front_end = external(folder, "again", lambda: whole_run(folder, "again"), abort, the_rest, configure, lambda: whole_run(folder, "again"))
    front_end.ends(0)


if __name__ == "__main__":
    main()
