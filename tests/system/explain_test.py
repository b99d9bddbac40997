#!/usr/bin/python3
"""explain_test.py - sluice explain: each cause of a loss is provoked with real processes, and told apart from the others: once in
`make check`, ten times in `make check-long`. And what the flight recorder leaves behind."""
# normal build only

import contextlib
import json
import os
import pathlib
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time

from bottleneck import Host, Switch
from cable import Pair, ip
from harness import (GUARDED, RECEIVER, ROOT, SOURCE, Program, address, build_plugin, case, check, equal, experiment, main, run, run_fails,
                     skip, wait_for)
from slow_disk import MB, on_slow_disk
from small_disk import small_disk

TIMES = 10 if "SLUICE_LONG" in os.environ else 1
NO_CREDITS = {"credits": False}
# 13 MB/s in all: a receive buffer of 512 KiB lasts 40 ms.
STEADY = {"kind": "pattern", "modules": 2, "rows": 128, "columns": 128, "frames": 500, "frame_rate_Hz": 200}
NULL = ["null"]


def start(folder, path, *arguments, wrapper=(), **options):
    """A receiver whose run has the number 1."""
    return Program("run", path, "--root", folder / "runs", "--still", *arguments, folder=folder, wrapper=wrapper, **options)


def explained(folder, what=None):
    """What explain says of run 1, as JSON."""
    done = run("explain", what or folder / "runs/000001", "--json", folder=folder)
    check(done.process.returncode in (0, 2), f"explain ended with {done.process.returncode}: {done.err()}")
    return as_documented(json.loads(done.out()))


def as_documented(said):
    with contextlib.suppress(ImportError):
        import jsonschema  # pylint: disable=import-outside-toplevel
        document = json.loads((ROOT / "docs/reference/openapi.json").read_text())
        validator = jsonschema.Draft202012Validator({"$ref": "#/components/schemas/explanation"}, resolver=jsonschema.RefResolver("", document))
        equal([f"{'/'.join(map(str, e.path))}: {e.message[:200]}" for e in validator.iter_errors(said)], [], "what is not as the schema says")
    return said


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
    does_run(folder, first["command"])
    people = run("explain", folder / "runs/000001", folder=folder).ends(0).out()
    check(first["sentence"] in people and first["advice"] in people, "the text does not say the same")
    return said


def does_run(folder, command):
    """A command that only looks is there, and finds something. Interfaces of networks that a test has made are elsewhere."""
    check(command, "no command")
    program = command.split()[0]
    if (program in ("grep", "tshark") or command.startswith("ip -s -s link show dev lo;") or command == "ip -s -s link") and shutil.which(program):
        done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False)
        check(not done.returncode and done.stdout, f"'{command}' ended with {done.returncode}: {done.stderr}")


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


def thrown_away():
    """Receive-queue drops that the kernel counts for the sockets at our receiver's address."""
    ours = "".join(f"{int(part):02X}" for part in reversed(RECEIVER.split(".")))
    rows = (line.split() for line in pathlib.Path("/proc/net/udp").read_text().splitlines()[1:])
    return sum(int(row[-1]) for row in rows if row[1].startswith(f"{ours}:"))


def two_terminals(folder, wrapper=(), source_wrapper=()):
    """A receiver and its front end, which takes no credits, in mid-run."""
    path = experiment(folder, detector={**STEADY, "frames": 100000}, emulate="none", sinks=NULL, ring={"overrun": "drop_newest"},
                      link={**NO_CREDITS, "receive_buffer": 1 << 18})
    receiver = start(folder, path, wrapper=wrapper)
    front_end = Program("emulate", path, "--once", folder=folder, wrapper=source_wrapper)
    wait_for("the run to be under way", lambda: "sending " in front_end.err() or not receiver.running())
    time.sleep(0.6)
    return receiver


def until_the_buffer_is_full():
    """However busy this machine is, and however slow the front end therefore."""
    before = thrown_away()
    wait_for("packets that are thrown away", lambda: thrown_away() > before + 20)


def of_quota(folder):
    """A cgroup with room for a quota (root): (wrapper that puts a program there, function that sets the quota)."""
    for mount, name, text in (("/sys/fs/cgroup", "cpu.max", "2000 100000"), ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "2000")):
        group = pathlib.Path(mount) / f"sluice-{os.getpid()}-{folder.parent.name}-{folder.name}"
        try:
            group.mkdir()
            GROUPS.append(group)
            limit = group / name
            limit.read_text()  # there is none where this controller is elsewhere
            return ("sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"), lambda: limit.write_text(text), lambda: limit.write_text(
                text.replace("2000", "max" if name == "cpu.max" else "-1", 1))
        except OSError:
            continue
    return None


GROUPS = []


def remove_groups():
    """When the programs in them have ended."""
    for group in GROUPS:
        with contextlib.suppress(OSError):
            group.rmdir()
    GROUPS.clear()


def starved(receiver, begin, end):
    begin()
    until_the_buffer_is_full()
    time.sleep(0.3)
    end()
    receiver.send(signal.SIGINT)
    receiver.ends(2)


# Takes a cpu as any program does: no real-time priority, which would starve whatever else runs there. It ends with the test (harness),
# when its time is over, and when it has used as much of a cpu as it may.
HOG = "import time\nend = time.monotonic() + 100\nwhile time.monotonic() < end: pass"


def hog(folder, cpu):
    return Program("-c", HOG, folder=folder, program=sys.executable, wrapper=("taskset", "-c", cpu),
                   limit=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 61)))


@cause("starved_core", "waited_for_cpu")
def _(folder):
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2 or not shutil.which("taskset"):
        skip("a receiver and its front end need a cpu each, and taskset")
    receiver = two_terminals(folder, ("taskset", "-c", cpus[0]), ("taskset", "-c", cpus[1]))
    hogs = []

    def begin():
        # A thread of this policy gets a thousandth of what an ordinary one gets.
        for task in pathlib.Path(f"/proc/{receiver.pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setscheduler(int(task.name), os.SCHED_IDLE, os.sched_param(0))
        # Programs at nice 19 get five times as much, so it takes more of them.
        for _ in range(2 if os.nice(0) < 10 else 10):
            hogs.append(hog(folder, cpus[0]))
        equal({os.sched_getscheduler(one.pid) for one in hogs}, {os.SCHED_OTHER}, "scheduling policy of what takes the cpu")

    starved(receiver, begin, lambda: [one.stop() for one in hogs])


@cause("stopped_receiver", "stood_still")
def _(folder):
    receiver = two_terminals(folder)
    receiver.send(signal.SIGSTOP)
    time.sleep(1)
    until_the_buffer_is_full()
    receiver.send(signal.SIGCONT)
    time.sleep(0.5)
    receiver.send(signal.SIGINT)
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


@case("a receiver that a quota of its cgroup holds back is starved, too")
def _(folder):
    quota = None if os.geteuid() else of_quota(folder)
    if not quota:
        skip("a cgroup with a quota needs root, and a hierarchy that can be written")
    wrapper, begin, end = quota
    try:
        starved(two_terminals(folder, wrapper), begin, end)
        said = is_explained(folder, "starved_core", "throttled")
        check("by its quota" in said["causes"][0]["sentence"], said["causes"][0]["sentence"])
    finally:
        Program.end_all()
        remove_groups()


def cause_of(said, name):
    found = {c["cause"]: c for c in said["causes"]}
    check(name in found, f"{name} is not among {sorted(found)}")
    return found[name], {p["name"]: p["value"] for p in found[name]["proof"]}


@case("packets that arrive damaged are named beside those that found no room, which are more than the kernel counts")
def _(folder):
    detector = {"rows": 512, "columns": 512, "frames": 60, "frame_rate_Hz": 60}
    path = experiment(folder, detector=detector, link={**NO_CREDITS, "receive_buffer": 65536}, ring={"overrun": "drop_newest"}, sinks=NULL,
                      frontend={"corrupt": 0.01})
    start(folder, path).ends(2)
    said = is_explained(folder, "small_receive_buffer", "receive_queue_drops")
    turned_away = result(folder)["link"]["turned_away"]
    _, proof = cause_of(said, "small_receive_buffer")
    drops, missing = proof["receive_queue_drops"], proof["packets_missing"]
    equal(drops, turned_away["full"], "receive-queue drops")
    check(turned_away["icrc"] and drops + turned_away["icrc"] <= missing <= drops * proof["packets_in_a_drop_at_most"] + turned_away["icrc"],
          f"{missing} packets missing, {drops} receive-queue drops, {turned_away}")
    cable, proof = cause_of(said, "lossy_cable")
    equal((proof["packets_damaged"], proof["injected_corrupt"]), (turned_away["icrc"], 0.01), "what arrived damaged, and what was asked for")
    text = run("explain", folder / "runs/000001", folder=folder).ends(0).out()
    also = text.partition("\nAlso:\n")[2]
    check(cable["sentence"] in also and cable["command"] in also, f"lossy_cable is not under 'Also': {text}")
    report = start(folder, path).ends(2).out()
    check("(receive-queue drops; each may be a batch of packets)" in report, "the report takes them for packets")


@case("a front end that is killed in mid-run is the cause, even if nothing else is missing")
def _(folder):
    path = experiment(folder, detector={**STEADY, "frames": 100000}, emulate="none", sinks=NULL)
    receiver = start(folder, path)
    front_end = Program("emulate", path, "--once", folder=folder)
    wait_for("the run to be under way", lambda: "sending " in front_end.err() or not receiver.running())
    time.sleep(0.5)
    front_end.send(signal.SIGKILL)
    receiver.ends(3)
    equal(result(folder)["result"], "unclosed", "result")
    said = is_explained(folder, "vanished_front_end", "module_frames_never_sent")
    check(said["unclosed"], "it does not say that the run is unclosed")
    text = run("explain", folder / "runs/000001", folder=folder).ends(0).out()
    check("nothing was lost" not in text, text)


@case("triggers that a front end misses are told from losses, with the modules that missed them")
def _(folder):
    experiment(folder, detector={**STEADY, "frames": 100}, sinks=NULL, frontend={"skip": 0.1})
    start(folder, folder / "experiment.yaml", "--set", "flight.record=false").ends(2)
    first = is_explained(folder, "skipped_frames", "module_frames_skipped")["causes"][0]
    check(first["command"].startswith("grep "), first["command"])


@case("a run that was killed before anything was lost: what is known of it is said")
def _(folder):
    path = experiment(folder, detector={**STEADY, "frames": 100000}, emulate="none")
    receiver = start(folder, path)
    wait_for("its log", lambda: list(folder.glob("runs/000001/run.log")) or not receiver.running())
    run_fails("explain", folder / "runs/000001", folder=folder, says=["still goes on (its lock is held)"])
    receiver.send(signal.SIGKILL)
    receiver.wait()
    run_fails("explain", folder / "runs/000001", folder=folder,
              says=["crashed or was killed: its lock is free", "the log ends with", "sluice recover"])


@case("what takes a cpu in these tests ends with them, even when they are killed")
def _(folder):
    here = pathlib.Path(__file__).resolve()
    code = (f"import sys, time, pathlib; sys.path.insert(0, {str(here.parent)!r}); import {here.stem} as t; "
            f"print(t.hog(pathlib.Path({str(folder)!r}), sorted(t.os.sched_getaffinity(0))[0]).pid, flush=True); time.sleep(60)")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as test:
        pid = int(test.stdout.readline())
        limits = resource.prlimit(pid, resource.RLIMIT_CPU)
        check(pathlib.Path(f"/proc/{pid}").exists(), "nothing takes a cpu: not much of a test")
        test.kill()
    equal(limits, (60, 61), "seconds of a cpu that it may use")
    wait_for("its end", lambda: not pathlib.Path(f"/proc/{pid}").exists() or " Z " in pathlib.Path(f"/proc/{pid}/stat").read_text(), 10)


# ---- what the recorder leaves behind ----

LOSSY = {"detector": {"rows": 256, "columns": 256, "frames": 40, "frame_rate_Hz": 200}, "sinks": NULL, "frontend": {"drop": 0.01}}


def left_behind(folder):
    return sorted(path.name for path in folder.glob("*flight*"))


@case("a flight record has the packets, for tshark, and counters that agree with the result")
def _(folder):
    start(folder, experiment(folder, **LOSSY)).ends(2)
    here, summary = folder / "runs/000001", result(folder)
    equal(summary["flight"], str(here / "flight.json"), "flight, in the result")
    flight = json.loads((here / "flight.json").read_text())
    series = {s["name"]: s for s in flight["series"]}
    n = len(flight["at_ns"])
    equal(flight["at_ns"], sorted(set(flight["at_ns"])), "times of samples")
    equal({len(s["values"]) for s in flight["series"] if "values" in s} - {n}, set(), "values of a series, beside the samples")
    last = {name: s["values"][-1] if "values" in s else s["constant"] for name, s in series.items()}
    for cause, count in summary["ledger"]["total"]["causes"].items():
        equal(last[f"cause.{cause}"], count, f"cause {cause} in the last sample, beside the ledger")
    equal(last["link.packets"], summary["link"]["packets"], "packets")
    check(last["thread.link-0.run"] or series["thread.link-0.run"].get("values"), "the link thread has no times")
    equal({m["module"] for m in flight["packets"]["modules"]}, {0, 1}, "modules whose packets were sampled")
    check(all(m["longest_payload"] == 4128 for m in flight["packets"]["modules"]), "the longest packets: 4096 and headers")
    if not shutil.which("tshark"):
        skip("tshark is not installed")
    fields = ["frame.time_epoch", "ip.src", "ip.dst", "udp.dstport", "infiniband.bth.psn", "frame.comment", "frame.len"]
    done = subprocess.run(["tshark", "-r", here / "flight.pcapng", "-T", "fields", *[word for field in fields for word in ("-e", field)]],
                          capture_output=True, text=True, check=False)
    packets = [line.split("\t") for line in done.stdout.splitlines()]
    equal(len(packets), flight["packets"]["sampled"], f"packets that tshark finds ({done.stderr[-300:]})")
    # The same of a front end that was not asked for it: there is neither a cable nor a NIC.
    said = {**flight, "facts": {**flight["facts"], "frontend": {}}}
    (here / "flight.json").write_text(json.dumps(said))
    said = explained(folder)["causes"][0]
    equal((said["cause"], said["command"]), ("lossy_cable", "ip -s -s link show dev lo; tc -s qdisc show dev lo"), "cause and command on loopback")
    does_run(folder, said["command"])
    equal({tuple(p[1:4]) for p in packets}, {(SOURCE, RECEIVER, "4791")}, "addresses and port")
    check(all(p[4].isdigit() and p[5].startswith("module ") for p in packets), "a packet has no PSN or no comment")
    times = [float(p[0]) for p in packets]
    check(times == sorted(times) and abs(times[-1] - time.time()) < 600, f"times: {times[:1]} .. {times[-1:]}")


@case("nothing lost, or switched off, or nowhere to put it: no flight record")
def _(folder):
    whole = {**LOSSY, "frontend": None}
    start(folder, experiment(folder, **whole)).ends(0)
    equal(left_behind(folder / "runs/000001"), [], "files of a run that lost nothing")
    equal(result(folder)["flight"], None, "flight, in its result")
    said = run("explain", folder / "runs/000001", folder=folder).ends(0).out()
    check("nothing was lost: 80 module-frames were sent." in said, f"explain says: {said}")
    off = experiment(folder, **LOSSY, flight={"record": False})
    Program("run", off, "--root", folder / "off", "--still", folder=folder).ends(2)
    equal(left_behind(folder / "off/000001"), [], "files of a run without a recorder")
    said = explained(folder, folder / "off/000001")
    equal((said["cause"], said["has_flight"]), ("lossy_cable", False), "what the ledger alone says")
    does_run(folder, said["causes"][0]["command"])
    Program("run", experiment(folder, **LOSSY), "--still", folder=folder).ends(2)
    equal(left_behind(folder), [], "files of a run without a folder and a summary")


@case("beside a summary it has the summary's name, and an older one goes when a run begins")
def _(folder):
    path = experiment(folder, **LOSSY)
    Program("run", path, "--summary", folder / "s.json", "--still", folder=folder).ends(2)
    equal(left_behind(folder), ["s.flight.json", "s.flight.pcapng"], "files")
    equal(explained(folder, folder / "s.json")["cause"], "lossy_cable", "cause")
    Program("run", path, "--summary", folder / "s.json", "--still", "--set", "frontend.drop=0", folder=folder).ends(0)
    equal(left_behind(folder), [], "files of the run before")
    equal(explained(folder, folder / "s.json")["lost"], 0, "lost")


@case("a live session is explained by its name; killed, by what its recorder has left; each run has its own record")
def _(folder):
    path = experiment(folder, **{**LOSSY, "detector": {**LOSSY["detector"], "frames": 100000}, "flight": {"after_s": 0.2}})
    session = Program("session", path, "--root", folder / "runs", "--name", "live", "--runs", "1", folder=folder)
    record = folder / "runs/000001/flight.json"
    wait_for("the record", record.exists)
    said = explained(folder, "live")
    equal((said["cause"], said["live"], said["run"]), ("lossy_cable", True, "live"), "cause of a live session")
    check(said["has_flight"], "explain has not found the record of a live session")
    status = json.loads(run("ctl", "live", "--json", folder=folder).out())["status"]
    equal(status["flight"], str(record), "flight, in the status")
    session.send(signal.SIGKILL)
    session.wait()
    said = explained(folder, folder / "runs/000001")
    equal((said["cause"], said["has_result"]), ("lossy_cable", False), "cause of a run that was killed")
    few = experiment(folder, **LOSSY)
    Program("session", few, "--root", folder / "more", "--runs", "3", folder=folder).ends(2)
    for number in (1, 2, 3):
        here = folder / f"more/{number:06}"
        equal(json.loads((here / "flight.json").read_text())["run"], number, "run, in its record")
        equal(explained(folder, here)["cause"], "lossy_cable", f"cause of run {number}")


@case("a record that cannot be written fails nothing; of a run with transfers each has its own; data threads do nothing for it")
def _(folder):
    full = small_disk(folder, 1)
    path = experiment(folder, **LOSSY)
    # The result has room that was set aside; for the packets there is none left.
    filled = ["sh", "-c", f'head -c 884k /dev/zero > {folder}/disk/zero; exec "$@"', "sh"]
    done = Program("run", path, "--root", folder / "disk", "--still", folder=folder, wrapper=[*full, *filled])
    done.ends(2)
    check("the flight recorder could not be written: No space left" in done.err() or left_behind(folder / "copy/000001"),
          "neither a record nor a warning")
    check(not list((folder / "copy").rglob("*.part")), "half a file was left")
    equal(explained(folder, folder / "copy/000001")["cause"], "lossy_cable", "cause")
    transfers = {name: {"first_module": m, "modules": 1, "link": {"listen": address(m + 1)}} for m, name in enumerate(("one", "two"))}
    path = experiment(folder, **LOSSY, link={"listen": None, "source": address(3)}, transfers=transfers)
    Program("run", path, "--root", folder / "both", "--still", folder=folder).ends(2)
    equal(left_behind(folder / "both/000001"), [f"flight.{name}.{ending}" for name in transfers for ending in ("json", "pcapng")], "files")
    said = explained(folder, folder / "both/000001")
    equal([(t["transfer"], t["cause"]) for t in said["transfers"]], [("one", "lossy_cable"), ("two", "lossy_cable")], "causes")
    done = Program("run", path, "--summary", folder / "all.json", "--still", folder=folder).ends(2)
    equal(left_behind(folder), [f"all.{name}.flight.{ending}" for name in transfers for ending in ("json", "pcapng")], "files beside a summary")
    said = explained(folder, folder / "all.json")
    equal([(t["transfer"], t["cause"], t["has_flight"]) for t in said["transfers"]],
          [("one", "lossy_cable", True), ("two", "lossy_cable", True)], "causes")
    check(f"Why: sluice explain {folder}/all.one.flight.json" in done.out(), "the report does not say where to look")
    if GUARDED:
        start(folder, experiment(folder, **LOSSY), program=GUARDED).ends(2)
        equal(explained(folder)["cause"], "lossy_cable", "cause, of sluice-guarded")


@case("what cannot be explained is said")
def _(folder):
    (folder / "empty").mkdir()
    (folder / "bad.json").write_text("{")
    (folder / "other.json").write_text('{"result": "error"}')
    run_fails("explain", folder=folder, says=["which run?"])
    run_fails("explain", "no-such-session", folder=folder, says=["is no file or folder, and no session has this name"])
    run_fails("explain", folder / "nowhere", folder=folder, says=["cannot open", "nowhere"])
    run_fails("explain", folder / "empty", folder=folder, says=["no result.json and no flight.json"])
    run_fails("explain", folder / "bad.json", folder=folder, says=["bad.json", "no JSON"])
    run_fails("explain", folder / "other.json", folder=folder, says=["no ledger"])
    listed = {line.split()[0] for line in run("explain", "--list", folder=folder).ends(0).out().splitlines()}
    equal(set(PROVOKED) - listed, set(), "causes that are provoked here, and not listed")
    ledger = {"total": {"sent": 10, "outcomes": {"incomplete": 3}, "causes": {"partner": 3}}}
    (folder / "odd.json").write_text(json.dumps({"ledger": ledger}))
    said = run("explain", folder / "odd.json", folder=folder).ends(2).out()
    check("The cause is not known. Looked at: causes in the ledger: partner 3" in said, f"explain says: {said}")


if __name__ == "__main__":
    main()
