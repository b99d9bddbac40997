#!/usr/bin/python3
"""transfers_test.py - several streams leave one detector side by side, each to a receiver of its own."""
# with sanitizers in check-long

import contextlib
import json
import os
import signal

import h5py
import numpy as np

from harness import (CONTROL_PORT, RECEIVER, ROOT, SOURCE, Program, address, case, check, closes, equal, experiment,
                     fewer, main, read_summary, run, run_fails, sink, wait_for)

HOSTS = [RECEIVER, address(0), address(3)]
EXAMPLES = {  # how to run them in small, and what each receiver must then have
    "live-roi": (["detector.frames=40", "detector.dark_frames=10"], {"full": 50, "live": 5}),
    "round-robin": (["detector.frames=31"], {"first": 11, "second": 10, "third": 10}),
    "director": (["detector.frames=33"], {"pixels": 33, "records": 4, "settings": 1}),
    "many-modules": (["detector.frames=10"], {"": 10}),
}


def sets(*values):
    return [word for value in values for word in ("--set", value)]


def places(names, link):
    """Addresses of this test's own, for receivers of these names."""
    if link == "shm":
        return sets("link.kind=shm")
    return sets(f"link.source={SOURCE}", *(f"{f'transfers.{name}.' if name else ''}link.listen={HOSTS[i]}"
                                           for i, name in enumerate(names)))


def summaries(folder):
    return json.loads((folder / "summary.json").read_text())["transfers"]


def are_served(program, folder, *names):
    """The front end and a receiver for each of these transfers run, and each has images on disk."""
    def has_images(name):
        for path in folder.glob(f"*{name}_data_*.h5"):
            with contextlib.suppress(OSError, KeyError), h5py.File(path, "r", libver="latest", swmr=True) as file:
                return file["entry/data/sequence"].shape[0] > 0
        return False
    wait_for(f"images of {names}", lambda: len(program.children()) > len(names) and all(map(has_images, names)))


def numbers(path):
    with h5py.File(path) as file:
        return file["entry/data/frame_number"][()], file["entry/data/data"][()]


def run_example(folder, name, link):
    small, frames = EXAMPLES[name]
    program = run("run", ROOT / f"examples/{name}.yaml", *sets(*small), *places(frames, link), "--summary",
                  folder / "summary.json", folder=folder)
    equal(program.process.returncode, 0, f"exit status of {name} over {link}")
    found = summaries(folder) if "" not in frames else {"": read_summary(folder)}
    equal(sorted(found), sorted(frames), "the receivers that reported")
    for transfer, wanted in frames.items():
        summary = found[transfer]
        equal(summary["result"], "intact", f"result of {transfer}")
        closes(summary, wanted * len(summary["ledger"]["modules"]))
        equal(sink(summary, "verify")["frames_compared"], wanted, f"frames compared by {transfer}")
        equal(summary["link"]["kind"], link, f"the link of {transfer}")


for example in EXAMPLES:
    for kind in ("udp", "shm"):
        @case(f"examples/{example}.yaml over {kind}: every receiver intact, every pixel compared")
        def _(folder, example=example, kind=kind):
            run_example(folder, example, kind)


def describe(folder, transfers, **sections):
    """An experiment with these transfers, each with an address and a file of its own."""
    for i, (name, changes) in enumerate(transfers.items()):
        changes.setdefault("link", {})["listen"] = HOSTS[i]
        changes["sinks"] = [{"nexus": {"path": str(folder / f"{name}.nxs"), "dataset": "raw"}}, "verify"]
    return experiment(folder, transfers=transfers, **sections)


@case("what a rectangle, a stack and a phase leave in the files is what the whole one has there")
def _(folder):
    cut = {"first_module": 1, "x": 5, "y": 7, "width": 30, "height": 20, "every": 3, "phase": 1, "stack": 2}
    path = describe(folder, {"whole": {}, "cut": cut, "records": {"part": "records"}},
                    detector={"modules": 3, "frames": 40})
    equal(run("run", path, "--summary", folder / "summary.json", folder=folder).process.returncode, 0, "exit status")
    whole_numbers, whole = numbers(folder / "whole.nxs")
    cut_numbers, images = numbers(folder / "cut.nxs")
    _, records = numbers(folder / "records.nxs")
    equal(list(whole_numbers), list(range(40)), "frames of the whole")
    equal(list(cut_numbers), [1, 7, 13, 19, 25, 31], "frames of the cut: 1, 4, 7, ... in twos")
    whole = whole.reshape(40, 3, 64, 64)
    images = images.reshape(6, 2, 2, 20, 30)  # stack, module, frame in stack
    for stack, module, part in np.ndindex(6, 2, 2):
        wanted = whole[1 + 6 * stack + 3 * part, 1 + module, 7:27, 5:35]
        check((images[stack, module, part] == wanted).all(), f"pixels of stack {stack}, module {module}, frame {part}")
    frame_field = records.reshape(40, 3, 64)[..., 8:16].copy().view("<u8")[..., 0]
    check((frame_field == np.arange(40)[:, None]).all(), "the frame numbers in the records")


@case("a receiver that is stopped holds up its own transfer and no other")
def _(folder):
    path = describe(folder, {"quick": {}, "slow": {}}, detector={"frames": fewer(3000, 500)}, emulate="none",
                    control={"silence_s": 1000})
    slow = Program("run", path, "--transfer", "slow", folder=folder)
    wait_for("the slow one listens", lambda: "waiting for front ends" in slow.err())
    quick = Program("run", path, "--transfer", "quick", "--summary", folder / "summary.json", folder=folder)
    front_end = Program("emulate", path, "--once", folder=folder)
    wait_for("the slow one has begun", lambda: "sending pattern, transfer slow" in front_end.err())
    slow.send(signal.SIGSTOP)
    quick.ends(0)
    closes(read_summary(folder), 2 * fewer(3000, 500))
    check(slow.running() and front_end.running(), "the slow one should still be at it")
    slow.send(signal.SIGCONT)
    slow.ends(0)
    front_end.ends(0)


@case("transfers over UC and RC, packet by packet and module by module, side by side")
def _(folder):
    path = describe(folder, {"plain": {"link": {"message": "packet"}}, "reliable": {"link": {"service": "rc"}},
                             "modules": {"link": {"message": "module"}}}, detector={"frames": 60})
    equal(run("run", path, "--summary", folder / "summary.json", folder=folder).process.returncode, 0, "exit status")
    for name, summary in summaries(folder).items():
        closes(summary, 120)
        equal(summary["result"], "intact", f"result of {name}")
    equal(summaries(folder)["reliable"]["link"]["proof"], "reliable connection", "proof of the reliable one")


@case("Ctrl-C ends all receivers properly")
def _(folder):
    path = describe(folder, {"a": {}, "b": {"every": 2}}, detector={"frames": 1000000, "frame_rate_Hz": 200})
    program = Program("run", path, "--summary", folder / "summary.json", folder=folder)
    are_served(program, folder, "a", "b")
    program.send(signal.SIGINT)
    program.ends(0)
    for name, summary in summaries(folder).items():
        closes(summary)
        equal(summary["stopped_by"], "SIGINT", f"who stopped {name}")


@case("a receiver that is killed takes only its own transfer along, and is named")
def _(folder):
    path = describe(folder, {"a": {}, "b": {}}, detector={"frames": 200, "frame_rate_Hz": 100})
    program = Program("run", path, "--summary", folder / "summary.json", folder=folder)
    are_served(program, folder, "a", "b")
    for pid in program.children():
        if b"\0--transfer\0b\0" in open(f"/proc/{pid}/cmdline", "rb").read():
            os.kill(pid, signal.SIGKILL)
    program.ends(3)
    check("killed by signal 9" in program.out(), "the report does not say so")
    found = summaries(folder)
    equal(found["b"], None, "summary of the one that was killed")
    equal(found["a"]["result"], "intact", "result of the other")
    closes(found["a"], 400)


def alive(pid):
    """Not ended, and not waiting to be collected either."""
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@case("when the parent is killed its receivers store what was sent and end, and the next run clears what it left")
def _(folder):
    path = describe(folder, {"a": {}, "b": {}}, detector={"frames": 1000000, "frame_rate_Hz": 100})
    program = Program("run", path, folder=folder)
    are_served(program, folder, "a", "b")
    children = program.children()
    equal(len(children), 3, "two receivers and a front end")
    left = {word.rsplit("/", 1)[0] for pid in children for word in open(f"/proc/{pid}/cmdline").read().split("\0")
            if word.startswith("/tmp/sluice-run-")}
    equal(len(left), 1, "folders of the parent's own")
    program.send(signal.SIGKILL)
    program.wait()
    wait_for("its children end", lambda: not any(alive(pid) for pid in children))
    for name in "ab":
        with h5py.File(next(folder.glob(f"*{name}.nxs")), "r") as file:
            check(len(file["entry/data/data"]) > 0, f"{name} has no images")
    short = describe(folder, {"c": {}, "d": {}}, detector={"frames": 10})
    Program("run", short, folder=folder).ends(0)
    check(not os.path.exists(left.pop()), "the folder of the run that was killed is still there")


@case("a receiver that the front end cannot serve is not left waiting, and the others have their run")
def _(folder):
    path = describe(folder, {"a": {}, "b": {"link": {"kind": "shm", "message": "packet"}}}, detector={"frames": 20})
    program = Program("run", path, "--summary", folder / "summary.json", folder=folder)
    program.ends(1)
    check("the front end ended before the run began" in program.err(), f"stderr does not say so: {program.err()}")
    equal(summaries(folder)["a"]["result"], "intact", "result of the other")
    equal(summaries(folder)["b"], None, "summary of the one that never began")


@case("mistakes about transfers are told with their place, before anything begins")
def _(folder):
    def refused(transfers, *says, arguments=()):
        path = experiment(folder, transfers=transfers)
        run_fails("run", path, *arguments, folder=folder, says=says)
    refused({"a": {"evry": 2}}, "experiment.yaml:", "evry", "every")
    refused({"a": {"every": 2, "phase": 2}, "b": {}}, "transfers.a", "phase (2) must be below every (2)")
    refused({"a": {"first_module": 2}}, "the detector has 0 to 1")
    refused({"a": {"x": 60, "width": 5}}, "is not inside a module of 64 x 64")
    refused({"a": {}, "b c": {}}, "letters, digits")
    refused(["a"], "takes a map of names")
    refused({"a": 3}, "takes a map of options")
    refused({"a": {"detector": {"rows": 3}}}, "detector")
    refused({"a": {}, "b": {}}, "no transfer is called 'c'; there are: a, b", arguments=("--transfer", "c"))
    refused({"a": {}, "b": {}}, "--port_file", arguments=("--port_file", folder / "p"))


@case("receivers of one file listen on consecutive ports, unless they name their own")
def _(folder):
    path = describe(folder, {"a": {}, "b": {}, "c": {"control": {"port": CONTROL_PORT + 7}}}, emulate="none",
                    detector={"frames": 20})
    receivers = [Program("run", path, "--transfer", name, folder=folder) for name in "abc"]
    for receiver, port in zip(receivers, (CONTROL_PORT, CONTROL_PORT + 1, CONTROL_PORT + 7)):
        wait_for(f"port {port}", lambda r=receiver, p=port: f"{RECEIVER}:{p} " in r.err())
    Program("emulate", path, "--once", folder=folder).ends(0)
    for receiver in receivers:
        receiver.ends(0)


@case("a block of more than 2 GiB is refused by the front end, before it takes memory for it")
def _(folder):
    path = describe(folder, {"huge": {"stack": 64}}, detector={"rows": 4096, "columns": 4096, "bits": 32, "frames": 64})
    run_fails("emulate", path, "--once", folder=folder, says=("4.3 GB is too large", "stack"))


main()
