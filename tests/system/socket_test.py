#!/usr/bin/python3
"""socket_test.py - the status socket, `sluice ps` and `sluice ctl` as users meet them: status in every state is as its schema says, runs are
paused, resumed and stopped by name, clients that stall, flood or send garbage cost a run nothing, a killed session is called crashed, other
users are turned away, and libsluice-client.so needs few libraries."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

from harness import (ROOT, SLOW, SLUICE, Program, both_ways, case, check, closes, equal, experiment, main, read_summary, run, run_fails, sink,
                     skip, text_of, wait_for)

SCHEMA = json.loads((ROOT / "docs/reference/status.schema.json").read_text())
# A frame costs a millisecond at most, so that a run is slow because of its rate, not because of this machine.
SMALL = {"kind": "pattern", "modules": 2, "rows": 32, "columns": 64, "frames": 100000, "frame_rate_Hz": 100}
TO_NOTHING = {"sinks": ["null", "verify"], "link": {"kind": "shm"}, "control": {"port": 0}}


def run_dir(folder):
    """Each case has a folder of sockets of its own."""
    os.environ["SLUICE_RUN_DIR"] = str(folder / "sockets")
    return folder / "sockets"


def start(folder, *arguments, detector=None, **sections):
    """`sluice run` in the background; returns when it is registered: its socket comes first, then the facts about it."""
    place = run_dir(folder)
    path = experiment(folder, detector={**SMALL, **(detector or {})}, **{**TO_NOTHING, **sections})
    program = Program("run", path, "--still", "--summary", folder / "summary.json", *arguments, folder=folder)
    wait_for("a socket", lambda: all((place / f"experiment.{ending}").exists() for ending in ("sock", "json")) or not program.running())
    check(program.running(), "the run ended at once")
    return program


class Client:
    """A connection that speaks lines of JSON."""

    def __init__(self, folder, name="experiment"):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(60)
        here = os.open(folder / "sockets", os.O_RDONLY | os.O_DIRECTORY)  # a socket's path has 107 characters at most
        # Refused: it is made, and not listened to yet.
        wait_for("a connection", lambda: self.socket.connect_ex(f"/proc/self/fd/{here}/{name}.sock") == 0)
        os.close(here)
        self.file = self.socket.makefile("rb")

    def line(self):
        return json.loads(self.file.readline())

    def ask(self, call, **members):
        self.socket.sendall(json.dumps({"call": call, **members}).encode() + b"\n")
        return self.line()

    def status(self):
        return valid(self.ask("status")["status"])

    def until(self, *states):
        return valid(self.ask("wait", states=states, timeout_ms=60000)["status"])

    def close(self):
        self.file.close()
        self.socket.close()


def validator():
    try:
        import jsonschema  # pylint: disable=import-outside-toplevel
    except ImportError:
        skip("python3-jsonschema is not installed")
    return jsonschema.Draft202012Validator(SCHEMA)


SEEN = []  # of states


def valid(status):
    """A status that is as the schema says."""
    problems = [f"{'/'.join(map(str, error.path))}: {error.message}" for error in validator().iter_errors(status)]
    check(not problems, "\n".join(problems[:10]))
    SEEN.append(status["state"])
    return status


def ctl(folder, *arguments, status=0):
    """`sluice ctl experiment ...`, with what it printed."""
    done = run("ctl", "experiment", *arguments, folder=folder)
    equal(done.process.returncode, status, f"exit status of ctl {arguments}: {done.out()}{done.err()}")
    return done.out() + done.err()


def ended_well(folder, program, summary=None):
    """The run lost nothing, and its ledger closes."""
    program.ends(0)
    summary = summary or read_summary(folder)
    closes(summary)
    equal(summary["result"], "intact", "result")
    check(summary["frames"]["settled"] > 0, "nothing was sent")
    total = summary["ledger"]["total"]
    equal(total["outcomes"]["stored"], total["sent"], "module-frames stored")
    verify = sink(summary, "verify")
    equal(verify.pop("frames_compared"), summary["frames"]["settled"], "frames compared with the truth")
    equal(set(verify.values()), {0}, "what verify found")


@case("status is as its schema says, from the first state to the last; calls have their effect")
def states(folder):
    program = start(folder, "--port_file", folder / "port", emulate="none")
    client = Client(folder)
    equal(client.status()["state"], "configured", "state while sources are missing")
    port = wait_for("a port", lambda: text_of(folder / "port"))
    front_end = Program("emulate", folder / "experiment.yaml", "--once", "--quiet", "--set", f"control.port={port.strip()}", folder=folder)
    status = client.until("running")
    equal(status["state"], "running", "state")
    wait_for("frames", lambda: client.status()["frames"]["settled"] > 5)
    equal(client.ask("pause")["ok"], True, "pause")
    wait_for("a drained pause", lambda: client.status()["drained"])
    status = client.status()
    equal(status["state"], "paused", "state")
    equal([source["state"] for source in status["sources"]["modules"]], ["running"] * 2, "sources")
    frames = status["frames"]["settled"]
    equal(client.ask("resume")["ok"], True, "resume")
    status = client.until("running")
    wait_for("more frames", lambda: client.status()["frames"]["settled"] > frames)
    check(client.ask("stop", reason="test")["ok"], "stop is taken")
    status = client.until("ended")
    equal((status["state"], status["result"], status["stopped_by"]), ("ended", "intact", "test"), "the end")
    check(status["ledger"]["closed"], "the ledger closes")
    equal(status["frames"]["settled"] * 2, status["ledger"]["total"]["outcomes"]["stored"], "module-frames stored")
    ended_well(folder, program)
    front_end.ends(0)
    check({"configured", "running", "paused", "ended"} <= set(SEEN), f"states seen: {set(SEEN)}")
    equal(sorted(os.listdir(folder / "sockets")), [], "what a clean end leaves")


@both_ways("resume with frames: exactly these come, on links that lose packets, too; what is not possible is refused")
def so_many_frames(folder):
    for name, sections, lossy in (("shm", {"link": {"kind": "shm"}}, False), ("udp", {"link": {"kind": "udp"}, "ring": {"late_timeout_ms": 300}, "frontend": {"drop": 0.02, "duplicate": 0.02}}, True)):
        here = folder / name
        here.mkdir()
        program = start(here, **sections)
        client = Client(here)
        client.until("running")
        refused = client.ask("resume", frames=3)
        equal((refused["ok"], refused["error"]["code"]), (False, "state"), "resume of a run that is not paused")
        check("paused and drained" in refused["error"]["message"], refused["error"]["message"])
        client.ask("pause")
        wait_for("a drained pause", lambda: client.status()["drained"])
        frames = client.status()["frames"]["settled"]
        for n in (1, 3, 40, 2):
            equal(client.ask("resume", frames=n)["state"], "running", f"state after {n} frames are asked for")
            status = client.until("paused")
            frames += n
            equal((status["state"], status["drained"], status["frames"]["settled"]), ("paused", True, frames), f"after {n} frames")
        time.sleep(0.1)
        equal(client.status()["frames"]["settled"], frames, "frames of a run that is paused again")
        check(client.ask("resume")["ok"], "resume without an end")
        wait_for("more frames", lambda: client.status()["frames"]["settled"] > frames)
        client.ask("stop")
        program.ends(2 if lossy else 0)
        closes(read_summary(here))


@case("a run that fails says why in its status; a stop before the start leaves an error")
def faults(folder):
    program = start(folder, emulate="none")
    client = Client(folder)
    client.ask("stop")
    status = client.until("ended")
    equal(status["error"]["code"], "stopped", "code of the error")
    equal(status["result"], "error", "result")
    program.ends(1)
    program = start(folder, emulate="none", control={"port": 0, "wait_s": 0.3})
    client = Client(folder)
    status = client.until("ended")
    equal((status["state"], status["error"]["code"]), ("fault", "sources"), "state and code of the error")
    program.ends(1)


@both_ways("ps and ctl: names, pause, resume, metadata, wait, watch, stop; what is refused says why")
def by_name(folder):
    program = start(folder)
    second = Program("run", folder / "experiment.yaml", "--still", folder=folder)
    wait_for("a second socket", lambda: (folder / "sockets/experiment-2.sock").exists())
    ctl(folder, "wait", "running", "--timeout_s", "60")
    run("ctl", "experiment-2", "wait", "running", "--timeout_s", "60", folder=folder)
    table = wait_for("two rows", lambda: re.findall(r"^(\S+) +running .*experiment.yaml$", run("ps", folder=folder).out(), re.M))
    equal(run("ctl", "experiment-2", "stop", "--wait", folder=folder).process.returncode, 0, "exit status of stop --wait")
    second.ends(0)
    check(table and table[0] == "experiment", f"rows of ps: {table}")
    check("paused" in ctl(folder, "pause", "--wait"), "pause --wait")
    check("drained" in ctl(folder, "status"), "status says drained")
    check("running" in ctl(folder, "resume", "--wait"), "resume --wait")
    equal(ctl(folder, "metadata", "sample=lysozyme", "T=77"), "sample=lysozyme\nT=77\n", "metadata")
    equal(ctl(folder, "metadata", "T="), "sample=lysozyme\n", "metadata, one removed")
    check("one run" in ctl(folder, "start", status=1), "start is refused")
    check("takes no 'x'" in ctl(folder, "stop", "x", status=1), "a word too many")
    check("no call is named 'destroy'" in ctl(folder, "destroy", status=1), "an unknown call")
    check("did not come" in ctl(folder, "wait", "paused", "--timeout_s", "0.1", status=1), "a wait that ends in vain")
    run_fails("ctl", "nobody", "stop", folder=folder, says=["no session is called 'nobody'; sluice ps"])
    listed = json.loads(run("ps", "--json", folder=folder).out())
    equal([entry["name"] for entry in listed], ["experiment"], "sessions in JSON")
    valid(listed[0]["status"])
    equal(listed[0]["status"]["metadata"], {"sample": "lysozyme"}, "metadata in the status")
    check(valid(json.loads(ctl(folder, "--json"))["status"])["rates"]["frames_per_s"] >= 0, "rates")
    watcher = Program("ctl", "experiment", "watch", "--interval_ms", "100", folder=folder)
    wait_for("lines", lambda: watcher.out().count("\n") >= 3)
    check("intact" in ctl(folder, "stop", "--reason", "shutter", "--wait"), "stop --wait")
    ended_well(folder, program)
    watcher.ends(0)
    check("ended" in watcher.out().splitlines()[-1], "a watcher sees the end")
    equal(read_summary(folder)["stopped_by"], "shutter", "the reason in the summary")


# A program that uses the library: it holds a session until a client closes it.
SESSION = """
import ctypes, sys, time
library = ctypes.CDLL(sys.argv[1])
class Options(ctypes.Structure):
    _fields_ = [(name, kind) for name, kind in (
        ("bytes", ctypes.c_size_t), ("path", ctypes.c_char_p), ("text", ctypes.c_char_p), ("transfer", ctypes.c_char_p),
        ("set", ctypes.c_void_p), ("sets", ctypes.c_size_t), ("emulate", ctypes.c_int), ("summary", ctypes.c_char_p),
        ("outcomes", ctypes.c_char_p), ("port_file", ctypes.c_char_p), ("summary_version", ctypes.c_uint32),
        ("program", ctypes.c_char_p), ("log", ctypes.c_void_p), ("log_arg", ctypes.c_void_p), ("root", ctypes.c_char_p),
        ("name", ctypes.c_char_p))]
session = ctypes.c_void_p()
options = Options(bytes=ctypes.sizeof(Options), path=sys.argv[2].encode(), program=sys.argv[3].encode(), name=b"experiment")
if library.sl_session_open(ctypes.byref(options), ctypes.byref(session), None):
    sys.exit(1)
library.sl_session_asked_to_close.restype = ctypes.c_bool
while not library.sl_session_asked_to_close(session):
    time.sleep(0.01)
library.sl_session_close(session)
"""


@case("a session takes runs one after another: configure, arm, start --wait; close ends it")
def session(folder):
    if SLOW:
        skip("the library of this build needs a sanitized program")
    place = run_dir(folder)
    path = experiment(folder, detector={**SMALL, "frames": 20}, **TO_NOTHING)
    library = pathlib.Path(SLUICE).parent / "libsluice.so"
    program = Program("-c", SESSION, library, path, SLUICE, folder=folder, program=sys.executable)
    wait_for("a socket", lambda: all((place / f"experiment.{ending}").exists() for ending in ("sock", "json")) or not program.running())
    client = Client(folder)
    equal(client.status()["state"], "configured", "state")
    check("armed" in ctl(folder, "arm", "--wait"), "arm --wait")
    status = client.status()
    equal((status["state"], [source["state"] for source in status["sources"]["modules"]]), ("armed", ["planned"] * 2), "state")
    check("20 of 20 frames" in ctl(folder, "start", "--wait"), "start --wait")
    check("out of range" in ctl(folder, "configure", "detector.modules=1000", status=1), "a mistake in an override")
    equal(client.status()["state"], "fault", "state")
    check("not possible while the session is fault" in ctl(folder, "start", status=1), "a call in a wrong state")
    ctl(folder, "configure", "detector.frames=30")
    check("30 of 30 frames" in ctl(folder, "start", "--wait", "--timeout_s", "60"), "the next run")
    ctl(folder, "close", "--wait")
    program.ends(0)
    equal(sorted(os.listdir(place)), [], "what a clean end leaves")


@case("--name is used or refused; transfers have names of their own")
def names(folder):
    program = start(folder, "--name", "experiment")
    run_fails("run", folder / "experiment.yaml", "--name", "experiment", folder=folder, says=["a session 'experiment' is running already"])
    run_fails("run", folder / "experiment.yaml", "--name", "a b", folder=folder, says=["'a b' is no name of a session"])
    ctl(folder, "abort", "--wait", status=3)  # its sources were left behind
    program.ends(3)
    transfers = {"one": {"first_module": 0, "modules": 1}, "two": {"first_module": 1, "modules": 1}}
    path = experiment(folder, "my file.yaml", detector=SMALL, **TO_NOTHING, transfers=transfers)
    program = Program("run", path, "--quiet", folder=folder)
    for name in ("my-file.one", "my-file.two"):
        wait_for(name, lambda n=name: (folder / f"sockets/{n}.sock").exists())
        run("ctl", name, "wait", "running", "--timeout_s", "60", folder=folder).ends(0)
        run("ctl", name, "stop", folder=folder).ends(0)
    program.ends(0)


def flood(client, requests):
    """Send so many requests without reading a reply, as far as they are taken; how many were."""
    client.socket.setblocking(False)
    line, sent = b'{"call":"status"}\n', 0
    data = line * requests
    with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
        while sent < len(data):
            sent += client.socket.send(data[sent:sent + 65536])
    return sent // len(line)


def thread_seconds(pid, name):
    """CPU time of the threads of that name."""
    ticks = 0
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        head, _, rest = path.read_text().rpartition(")")
        if head.endswith(f"({name}"):
            ticks += sum(map(int, rest.split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


@case("clients that stall, flood and send garbage cost a run nothing, and others nothing but turns")
def hostile(folder):
    program = start(folder)
    good = Client(folder)
    good.until("running")
    stalled = [Client(folder) for _ in range(3)]
    for client in stalled:
        client.socket.sendall(b'{"call":"watch","interval_ms":100}\n' + b'{"call":"status"}\n' * 50)
    floods = [Client(folder) for _ in range(2)]
    begin, asked, taken, slowest = time.monotonic(), 0, 0, 0
    while time.monotonic() - begin < 2:
        for client in floods:
            taken += flood(client, 100000)
        garbage = Client(folder)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            garbage.socket.sendall(os.urandom(100000).replace(b"{", b"\n"))
        with contextlib.suppress(ConnectionResetError):
            garbage.socket.recv(10)
        garbage.close()
        now = time.monotonic()
        status = good.status()
        slowest = max(slowest, time.monotonic() - now)
        asked += 1
    check(taken > 1000, f"only {taken} requests were taken")
    check(asked > 5 and slowest < 2, f"{asked} requests of a good client, the slowest took {slowest:.1f} s")
    used = thread_seconds(program.pid, "socket")
    check(SLOW or used < 1, f"the socket's thread took {used} s of 2")
    # A source that ran at its rate all the time.
    wanted = (time.monotonic() - begin) * SMALL["frame_rate_Hz"] * 0.5
    check(SLOW or status["frames"]["settled"] > wanted, f"{status['frames']['settled']} frames, expected {wanted:.0f}")
    good.ask("stop")
    equal(good.until("ended")["result"], "intact", "result")
    ended_well(folder, program)
    for client in (*stalled, *floods, good):
        client.close()


@case("a client that does not read is cut after 10 s", long=True)
def stalled_client(folder):
    program = start(folder)
    client = Client(folder)
    taken = flood(client, 100000)
    check(taken > 100, f"only {taken} requests were taken")
    time.sleep(14)  # four until its buffer is full
    client.socket.setblocking(True)
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        while client.socket.recv(1 << 20):
            pass
    try:
        client.socket.sendall(b"\n")
        check(False, "it is not cut")
    except (BrokenPipeError, ConnectionResetError):
        client.close()
    check("running" in ctl(folder), "others are served")
    program.send(signal.SIGINT)
    ended_well(folder, program)


@case("a killed session is called crashed; the next start says what was left, and takes its place")
def killed(folder):
    program = start(folder)
    ctl(folder, "wait", "running", "--timeout_s", "60")
    children = program.children()
    program.send(signal.SIGKILL)
    equal(program.process.wait(), -signal.SIGKILL, "exit status")
    for child in children:  # its front end ends by itself
        wait_for("the end of its front end", lambda c=child: not pathlib.Path(f"/proc/{c}").exists())
    check(re.search(r"^experiment +crashed ", run("ps", folder=folder).out(), re.M), "ps says crashed")
    check("was killed or has crashed" in ctl(folder, "stop", status=1), "ctl says so")
    equal(json.loads(run("ps", "--json", folder=folder).out())[0]["crashed"], True, "ps --json says so")
    program = start(folder, detector={"frames": 50})
    ended_well(folder, program)
    check("session 'experiment' before this one (started 2" in program.err() and "killed or crashed" in program.err(),
          f"the next start does not say so: {program.err()}")
    equal(sorted(os.listdir(folder / "sockets")), [], "what a clean end leaves")
    program = start(folder)
    program.send(signal.SIGKILL)
    program.process.wait()
    # A front end that is just being started has the lock until it has become another program.
    wait_for("it is called crashed", lambda: " crashed " in run("ps", folder=folder).out())
    equal(run("ps", "--clean", folder=folder).out(), "1 forgotten\n", "ps --clean")
    equal(len(run("ps", folder=folder).out().splitlines()), 1, "lines of ps")


@case("without a folder for sockets a run warns, and goes on")
def no_folder(folder):
    place = run_dir(folder)
    place.mkdir(0o755)
    path = experiment(folder, detector={**SMALL, "frames": 20}, **TO_NOTHING)
    done = run("run", path, "--quiet", folder=folder)
    equal(done.process.returncode, 0, "exit status")
    check(done.err().count("no status socket: other users can enter") == 1, done.err())
    run("run", path, "--quiet", "--name", "other", folder=folder).ends(0)
    run_fails("ps", folder=folder, says=["the folder of sockets is refused"])
    run_fails("ctl", "experiment", folder=folder, says=["other users can enter", "chmod 700"])


@case("other users are turned away")
def strangers(folder):
    if os.geteuid():
        skip("only root can be another user")
    program = start(folder)
    ctl(folder, "wait", "running", "--timeout_s", "60")
    folder.chmod(0o755)
    place = folder / "sockets"
    place.chmod(0o755)  # as if somebody had opened it later
    (place / "experiment.sock").chmod(0o777)
    code = ("import os, socket, sys\nos.chdir(sys.argv[1])\nos.setgid(65534)\nos.setuid(65534)\n"
            "s = socket.socket(socket.AF_UNIX)\ns.connect('experiment.sock')\nprint(s.makefile().read())\n")
    done = subprocess.run([sys.executable, "-c", code, str(place)], capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, 0, done.stderr)
    error = json.loads(done.stdout)["error"]
    equal((error["code"], error["message"]), ("access", "the session belongs to another user"), "the reply")
    program.send(signal.SIGINT)
    ended_well(folder, program)


@case("libsluice-client.so needs libc, libjansson, libisal and libnettle, and shows what client.h and share.h declare")
def client_library(folder):
    library = pathlib.Path(SLUICE).parent / "libsluice-client.so"
    if not library.exists():
        skip("this build has no libsluice-client.so")
    read = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    needed = {name.split(".so")[0] for name in re.findall(r"NEEDED.*\[(.*?)\]", read)}
    allowed = {"libc", "libjansson", "libisal", "libnettle", "ld-linux-x86-64", "ld-linux-aarch64"}
    if SLOW:  # those of the sanitizers
        allowed |= {"libasan", "libubsan", "libtsan", "libm", "libgcc_s", "libpthread", "librt", "libdl", "libresolv"}
    check(needed <= allowed, f"it needs {sorted(needed - allowed)}")
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    shown = {name.split("@")[0] for name in re.findall(r" T (\S+)", names)}
    headers = "".join((ROOT / "include/sluice" / name).read_text() for name in ("client.h", "share.h"))
    declared = set(re.findall(r"\b(sl_(?:remote|share|follow)_\w+)\(", re.sub(r"/\*.*?\*/", "", headers, flags=re.S)))
    equal({name for name in shown if name.startswith("sl_")}, declared, "symbols")


@case("status.md names every property of the schema, and the schema forbids all others")
def documented(_):
    page = (ROOT / "docs/reference/status.md").read_text()
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", page))))
    properties, open_ones = set(), []

    def walk(node, path):
        if isinstance(node, dict):
            if "properties" in node:
                properties.update(node["properties"])
                if node.get("additionalProperties") is not False:
                    open_ones.append(path)
            for key, value in node.items():
                walk(value, f"{path}/{key}")
        elif isinstance(node, list):
            for value in node:
                walk(value, path)
    walk(SCHEMA, "")
    equal(sorted(properties - named), [], "properties that status.md does not name")
    equal(open_ones, [], "objects that allow other properties")


if __name__ == "__main__":
    main()
