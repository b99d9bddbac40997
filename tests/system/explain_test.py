#!/usr/bin/python3
"""explain_test.py - sluice explain: each cause of a loss is provoked with real processes, and told apart from the others: once in
`make check`, ten times in `make check-long`. And what the flight recorder leaves behind."""
# normal build only

import json
import os
import shlex
import shutil
import signal
import sys
import time

from bottleneck import Host, Switch
from cable import Pair, ip
from harness import (RECEIVER, ROOT, SLUICE, SOURCE, Program, Skipped, build_plugin, case, check, equal, experiment, main, run, run_fails,
                     skip, wait_for)
from slow_disk import MB, on_slow_disk
from small_disk import small_disk

TIMES = 10 if "SLUICE_LONG" in os.environ else 1
NO_CREDITS = {"credits": False}
# 13 MB/s in all: a receive buffer of 2 MiB lasts 150 ms.
STEADY = {"kind": "pattern", "modules": 2, "rows": 128, "columns": 128, "frames": 500, "frame_rate_Hz": 200}
NULL = ["null"]


def start(folder, path, *arguments, wrapper=(), **options):
    """A receiver whose run has the number 1."""
    return Program("run", path, "--root", folder / "runs", "--still", *arguments, folder=folder, wrapper=wrapper, **options)


def explained(folder, what=None):
    """What explain says of run 1, as JSON."""
    done = run("explain", what or folder / "runs/000001", "--json", folder=folder)
    check(done.process.returncode in (0, 2), f"explain ended with {done.process.returncode}: {done.err()}")
    return json.loads(done.out())


def result(folder):
    return json.loads((folder / "runs/000001/result.json").read_text())


def is_explained(folder, cause, proof):
    """The first cause is this one, a sentence with its numbers, and a way to mend it."""
    said = explained(folder)
    check(said["causes"], f"no cause is known; looked at: {said['looked_at']}")
    first = said["causes"][0]
    why = "; ".join(f"{c['cause']} {c['score']:.2f} x {c['module_frames']}: {c['sentence']}" for c in said["causes"])
    equal(first["cause"], cause, f"cause ({why})")
    names = {p["name"] for p in first["proof"]}
    check(proof in names, f"'{proof}' is not among {names}")
    check(first["advice"] and first["sentence"].endswith("."), "no advice, or no sentence")
    if first["command"].startswith("sluice run "):  # what it sets is there, and may be set
        done = run("check", *shlex.split(first["command"], comments=True)[2:], folder=folder)
        equal(done.process.returncode, 0, f"exit status of sluice check with what '{first['command']}' sets: {done.err()}")
    people = run("explain", folder / "runs/000001", folder=folder).ends(0).out()
    check(first["sentence"] in people and first["advice"] in people, "the text does not say the same")
    return said


# ---- causes ----

PROVOKED = {}


def cause(name, proof):
    """A function that provokes a loss in its folder."""
    def register(function):
        PROVOKED[name] = (function, proof)
        return function
    return register


@cause("small_receive_buffer", "receive_buffer_holds")
def _(folder):
    detector = {"rows": 512, "columns": 512, "frames": 60, "frame_rate_Hz": 60}
    path = experiment(folder, detector=detector, link={**NO_CREDITS, "receive_buffer": 65536}, ring={"overrun": "drop_newest"}, sinks=NULL)
    start(folder, path).ends(2)


def two_terminals(folder, wrapper=(), source_wrapper=(), **sections):
    """A receiver and its front end, which takes no credits, in mid-run."""
    path = experiment(folder, **{"detector": STEADY, "emulate": "none", "sinks": NULL, "ring": {"overrun": "drop_newest"},
                                 "link": {**NO_CREDITS, "receive_buffer": 1 << 20}, **sections})
    receiver = start(folder, path, wrapper=wrapper)
    front_end = Program("emulate", path, "--once", folder=folder, wrapper=source_wrapper)
    wait_for("the run to be under way", lambda: "sending " in front_end.err() or not receiver.running())
    time.sleep(0.4)
    return receiver, front_end


@cause("starved_core", "waited_for_cpu")
def _(folder):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2 or not shutil.which("taskset"):
        skip("a receiver and its front end need a cpu each, and taskset")
    receiver, front_end = two_terminals(folder, wrapper=("taskset", "-c", cpus[0], "nice", "-n", "19"),
                                        source_wrapper=("taskset", "-c", cpus[1]))
    hogs = [Program("-c", "while True: pass", folder=folder, program=sys.executable, wrapper=("taskset", "-c", cpus[0])) for _ in range(4)]
    time.sleep(2)
    for hog in hogs:
        hog.stop()
    front_end.ends(0)
    receiver.ends(2)


@cause("stopped_receiver", "stood_still")
def _(folder):
    receiver, front_end = two_terminals(folder)
    receiver.send(signal.SIGSTOP)
    time.sleep(1)
    receiver.send(signal.SIGCONT)
    front_end.ends(0)
    receiver.ends(2)


@cause("slow_disk", "module_frames_left_out")
def _(folder):
    detector = {"rows": 256, "columns": 256, "frames": 250, "frame_rate_Hz": 200}
    sink = {"path": "run.nxs", "dataset": "raw", "compression": "none", "on_slow": "prescale"}
    path = experiment(folder, detector=detector, sinks=[{"nexus": sink}])
    start(folder, path, wrapper=on_slow_disk(10 * MB)).ends(2)


@cause("full_disk", "module_frames_unwritten")
def _(folder):
    wrapper = small_disk(folder, 20)
    detector = {"rows": 512, "columns": 512, "frames": 60}
    path = experiment(folder, detector=detector, sinks=[{"nexus": {"path": str(folder / "disk/run.nxs"), "dataset": "raw"}}])
    start(folder, path, wrapper=wrapper).ends(2)


class Network:
    """A receiver behind a switch, and as many front ends as modules, each a host of its own (root)."""

    def __init__(self, sources, **switch):
        if os.geteuid() or not os.path.exists("/dev/net/tun"):
            skip("network namespaces and tun devices need root")
        self.sources, self.options = sources, switch

    def __enter__(self):
        self.hosts = []
        try:
            for i in range(1 + self.sources):
                self.hosts.append(Host(f"sle{os.getpid()}{i}", f"10.87.0.{i + 1}"))
        except Exception:
            self.__exit__()
            raise
        self.switch = Switch(self.hosts, self.hosts[0], **self.options)
        return self

    def __exit__(self, *_):
        if hasattr(self, "switch"):
            self.switch.close()
        for host in self.hosts:
            host.close()

    def acquire(self, folder, **sections):
        receiver, *sources = self.hosts
        control = {"address": receiver.address, "token": "between us", "wait_s": 60}
        link = {"listen": receiver.address, "source": sources[0].address, **sections.pop("link", {})}
        path = experiment(folder, **{"emulate": "none", "control": control, "sinks": NULL, **sections}, link=link)
        done = start(folder, path, wrapper=receiver.wrapper())
        for module, host in enumerate(sources):
            Program("emulate", path, "--once", "--modules", str(module), "--set", f"link.source={host.address}", folder=folder,
                    wrapper=host.wrapper())
        done.ends(2)


@cause("lossy_cable", "packets_missing")
def _(folder):
    detector = {"modules": 1, "rows": 128, "columns": 256, "frames": 150, "frame_rate_Hz": 100}
    if os.geteuid():  # the front end loses them on purpose
        path = experiment(folder, detector=detector, frontend={"drop": 0.01}, sinks=NULL)
        start(folder, path).ends(2)
        return
    with Network(1, rate=60e6, limit=8 << 20, low=8 << 20, high=9 << 20, loss=0.02) as network:
        network.acquire(folder, detector=detector)
        check(network.switch.lost > 0 and not network.switch.dropped, "the cable lost nothing: not much of a test")


@cause("congested_port", "packets_marked")
def _(folder):
    detector = {"modules": 2, "rows": 256, "columns": 256, "frames": 150, "frame_rate_Hz": 150}
    # A queue that is full before its marks have an effect: a block is longer than it, and far more may be in flight.
    with Network(2, rate=20e6, limit=90_000, low=10_000, high=80_000) as network:
        network.acquire(folder, detector=detector, link={"window": 16 << 20, "congestion_us": 100000}, ring={"slots": 64})
        check(network.switch.marked and network.switch.dropped, "nothing was marked, or nothing dropped: not much of a test")


@cause("wrong_mtu", "longest_arrived")
def _(folder):
    with Pair("udp", {**STEADY, "frames": 60, "frame_rate_Hz": 100}) as pair:
        ip("-n", pair.names[0], "link", "set", "cable", "mtu", "1500")
        control = {"address": pair.near["v4"], "port": 47910, "token": "between us", "wait_s": 60}
        # Cut by the kernel, packets would be cut only at the far end of the cable.
        link = {"kind": "udp", "listen": pair.near["v4"], "source": pair.far["v4"], "segment": False}
        path = experiment(folder, detector=pair.detector, emulate="none", control=control, sinks=NULL, link=link)
        receiver = start(folder, path, wrapper=pair.wrapper(0))
        Program("emulate", path, "--once", folder=folder, wrapper=pair.wrapper(1)).ends(0)
        receiver.ends(2)


@cause("late_front_end", "late_module_frames")
def _(folder):
    path = experiment(folder, detector={**STEADY, "frames": 300, "frame_rate_Hz": 150}, emulate="none", sinks=NULL,
                      ring={"align": "frame", "late_timeout_ms": 200, "slots": 64})
    receiver = start(folder, path)
    front_ends = [Program("emulate", path, "--once", "--modules", str(m), folder=folder) for m in (0, 1)]
    wait_for("the run to be under way", lambda: all("sending " in f.err() for f in front_ends) or not receiver.running())
    time.sleep(0.5)
    front_ends[1].send(signal.SIGSTOP)
    time.sleep(1)
    front_ends[1].send(signal.SIGCONT)
    for front_end in front_ends:
        front_end.ends(0)
    receiver.ends(2)


DAWDLE = (ROOT / "tests/lib/plugin_good.c").read_text().replace(
    "struct sl_batch *batch)\n{\n}", "struct sl_batch *batch)\n{\n\tusleep(20000);\n}").replace(
    "#include <sluice/plugin.h>", "#include <unistd.h>\n\n#include <sluice/plugin.h>").replace(".input = \"raw\",", ".input = \"raw\",\n\t.waits = 1,")


@cause("overrun_policy", "module_frames_without_room")
def _(folder):
    plugin = build_plugin(folder / "dawdle.so", DAWDLE)
    path = experiment(folder, plugins=[str(plugin)], stages=["fixture"], sinks=NULL, unit={"batch": 1, "workers": 1},
                      detector={**STEADY, "frames": 250}, ring={"slots": 8, "late_frames": 2, "overrun": "drop_oldest"})
    start(folder, path).ends(2)


for name in PROVOKED:
    def provoke(folder, name=name):
        provoked, proof = PROVOKED[name]
        for number in range(TIMES):
            here = folder / str(number)
            here.mkdir()
            provoked(here)
            is_explained(here, name, proof)
    case(f"{name} is told apart" + (f", {TIMES} times of {TIMES}" if TIMES > 1 else ""))(provoke)


if __name__ == "__main__":
    main()
