#!/usr/bin/python3
"""service_faults_test.py - what happens to `sluice serve` from outside: it is killed at any moment, and its root is on a disk that is full.
A run does not notice, nothing is left behind, and the history is complete."""

import contextlib
import http.client
import json
import os
import pathlib
import random
import shlex
import shutil
import signal
import subprocess
import threading
import time

from harness import Program, case, check, equal, main, sink, skip, wait_for
from service import API, TO_A_FILE, kill_session, pid_of, put_experiment, serving

KILLS = 30 if "SLUICE_LONG" in os.environ else 4
PHASES = ("opening", "starting", "running", "stopping", "closing", "between")
FRAMES = {"frames": 1000000, "frame_rate_Hz": 100}


def processes_of(service):
    """{pid: command line} of the programs that have the service's folder of sockets in their environment, but for the service."""
    mine = f"SLUICE_RUN_DIR={service.sockets}".encode()
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            pid = int(path.name)
            if pid not in (os.getpid(), service.program.pid) and mine in (path / "environ").read_bytes().split(b"\0"):
                found[pid] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return found


def image_processes(service):
    return [pid for pid, line in processes_of(service).items() if "image-server" in line]


# ---- a client that goes on whatever becomes of the service ----

class Client(threading.Thread):
    """Opens a session, runs it for a moment, closes it, and so on: each step until it is done. An answer that never came counts as none:
    the session says how far it is."""

    def __init__(self, service):
        super().__init__(daemon=True)
        self.service, self.phase, self.rounds, self.enough, self.problem = service, "between", 0, False, None

    def ask(self, method, path, body=None):
        """None: there is no answer."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.service.raw(method, API + path, body)
        return None

    def state(self):
        """Of the session; "": there is none, None: unknown."""
        answer = self.ask("GET", "/sessions/cycle")
        if answer is None or answer.status not in (200, 404):
            return None
        return "" if answer.status == 404 else answer.json["state"]

    def step(self, phase, method, path, body, *states):
        """Ask until the session is in one of these states. 409: it is further than this client knows, or not yet so far."""
        self.phase = phase
        end = time.monotonic() + 90
        answer = None
        while time.monotonic() < end:
            if self.state() in states:
                return
            answer = self.ask(method, path, body) or answer
            if answer and answer.status not in (200, 201, 202, 404, 409, 500, 503):
                break
            time.sleep(0.02)
        raise RuntimeError(f"{phase}: {self.state()} after {answer and (answer.status, answer.body)}")

    def round(self):
        self.step("opening", "POST", "/sessions", {"experiment": "cycle", "name": "cycle"}, "configured")
        self.step("starting", "POST", "/sessions/cycle/start", None, "running")
        self.phase = "running"
        time.sleep(0.2)
        self.step("stopping", "POST", "/sessions/cycle/stop", None, "ended")
        self.step("closing", "DELETE", "/sessions/cycle", None, "")
        self.rounds += 1
        self.phase = "between"
        time.sleep(0.05)

    def run(self):
        try:
            while not self.enough:
                self.round()
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem


class Viewer(threading.Thread):
    """Looks at the images of the steady run, so that there is an image process."""

    def __init__(self, service):
        super().__init__(daemon=True)
        self.service, self.enough, self.images = service, False, 0

    def run(self):
        while not self.enough:
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.images += self.service.raw("GET", f"{API}/sessions/steady/image?wait_ms=100").status == 200
            time.sleep(0.02)


# ---- kill -9 ----

def strike(service, client, phase, rng):
    """Kill the service in a phase of the client's round, look at what it leaves, and start it again."""
    frames = service.frames("steady")
    wait_for(f"the phase {phase}", lambda: client.phase == phase or client.problem)
    time.sleep(rng.random() * 0.1)
    service.kill()
    wait_for("the end of its image processes", lambda: not image_processes(service))
    time.sleep(rng.random() * 0.2)
    service.start()
    session = service.session("steady")
    equal((session["alive"], session["crashed"], session["run"]), (True, False, 1), f"the session after a kill while {phase}")
    wait_for("the run goes on", lambda: service.frames("steady") > frames)
    rows = service.get("/runs?limit=1000")["runs"]
    equal(next(row["state"] for row in rows if row["run"] == 1), "live", "the run in the history")
    check(client.problem is None, f"the client: {client.problem}")


def history_is_complete(service, rounds):
    """A row for each run, and each is intact."""
    folders = sorted(int(path.name) for path in service.root.glob("[0-9]*"))
    equal(folders, list(range(1, rounds + 2)), "folders of runs")
    rows = service.get("/runs?limit=1000")["runs"]
    equal([(row["run"], row["state"], row["result"], row["lost"], row["damaged"]) for row in reversed(rows)],
          [(run, "over", "intact", 0, 0) for run in folders], "history")
    check(all(row["frames"] > 0 for row in rows), f"frames of runs: {[row['frames'] for row in rows]}")


def nothing_is_left(service):
    """No process, no socket, no text that was being checked."""
    wait_for("the end of all its programs", lambda: not {pid: line for pid, line in processes_of(service).items() if line})
    equal(sorted(path.name for path in service.sockets.rglob("*") if not path.is_dir()), [], "what is left in the folder of sockets")
    equal(sorted(path.name for path in (service.root / ".service/tmp").iterdir()), [], "texts that were being checked")
    equal(sorted(path.name for path in service.root.rglob("*.part")), [], "files that are not whole")


@case(f"the service is killed {KILLS} times while sessions are opened, started, stopped and closed: a run goes on, and the history has every one")
def killed(folder):
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    print(f"# seed {seed}", flush=True)
    with serving(folder) as service:
        sections = {**TO_A_FILE, "sinks": [*TO_A_FILE["sinks"], "verify"], "stages": ["copy"]}
        service.begin("steady", detector=FRAMES, **sections)
        put_experiment(service, "cycle", detector=FRAMES, **sections)
        client, viewer = Client(service), Viewer(service)
        client.start()
        viewer.start()
        wait_for("an image", lambda: viewer.images)
        first = rng.randrange(len(PHASES))
        for number in range(KILLS):
            strike(service, client, PHASES[(first + number) % len(PHASES)], rng)
        client.enough = viewer.enough = True
        client.join(100)
        viewer.join(100)
        check(not client.is_alive() and client.problem is None, f"the client: {client.problem}")
        service.ask("POST", "/sessions/steady/stop", status=202)
        status = service.until("steady", "ended")["status"]
        figures = sink(status | {"sinks": status["addons"]}, "verify")
        equal((status["result"], status["ledger"]["total"]["outcomes"].get("lost", 0), figures["frames_compared"]),
              ("intact", 0, status["frames"]["settled"]), "the run")
        service.ask("DELETE", "/sessions/steady", status=202)
        wait_for("no session", lambda: not service.get("/sessions")["sessions"])
        history_is_complete(service, client.rounds)
        service.kill()
        nothing_is_left(service)


@case("the service is killed while it recovers what crashed sessions have left: the next one finds each file recovered")
def killed_recovering(folder):
    rounds = KILLS // 3
    rng = random.Random()
    with serving(folder) as service:
        for number in range(1, rounds + 1):
            service.begin("demo", detector=FRAMES, stages=["copy"], **TO_A_FILE)
            wait_for("a flushed file", lambda: (service.session("demo")["status"] or {}).get("watermark", 0) > 5)
            kill_session(service, "demo")
            if number % 2:  # in the middle of it
                wait_for("recovery", lambda: any(" recover run.nxs" in line for line in processes_of(service).values())
                         or list(service.root.glob(f".service/recovered/{number:06}.json")))  # pylint: disable=cell-var-from-loop
            else:
                time.sleep(rng.random() * 0.7)
            service.kill()
            service.start()
            row = wait_for("recovery", lambda: (r := service.get("/runs")["runs"]) and r[0]["recovered"] and r[0])
            equal((row["run"], row["state"]), (number, "crashed"), "the newest run")
            equal([(f["file"], f["recovered"]) for f in row["recovered"]["files"]], [("run.nxs", True)], f"its files: {row['recovered']}")
        equal([(row["run"], row["state"]) for row in reversed(service.get("/runs")["runs"])], [(n, "crashed") for n in range(1, rounds + 1)], "history")


# ---- a full disk ----

def on_a_small_disk(folder):
    """A wrapper that runs the service with a tmpfs of its own as root."""
    runs = folder / "runs"
    runs.mkdir()
    script = f'mount -t tmpfs -o size=64m none {shlex.quote(str(runs))} || exit 77; exec "$@"'
    for unshare in (["unshare", "-m"], ["unshare", "-rm"]):  # as root, or as root of a namespace of our own
        trial = Program(folder=folder, program="true", wrapper=[*unshare, "sh", "-c", script, "sh"])
        if trial.wait() == 0:
            return unshare, [*unshare, "sh", "-c", script, "sh"]
    skip("neither root nor user namespaces may mount a small tmpfs here")
    return None


def inside(service, pid):
    """The root, as this process has it."""
    return pathlib.Path(f"/proc/{pid}/root") / str(service.root).lstrip("/")


def refused_commands(service):
    """More of them than the last block of the audit log has room for."""
    for number in range(50):
        service.ask("POST", f"/sessions/none-{number}/stop", status=404)
    wait_for("a warning", lambda: "the audit log" in service.program.err())


def fill(path):
    """Until not a byte more has room."""
    with open(path, "wb", buffering=0) as file:
        for size in (65536, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"#" * size)


@case("a root on a full disk: the service answers and says what it cannot write, also when it starts; runs keep their results, and with room again all is well")
def full(folder):
    unshare, wrapper = on_a_small_disk(folder)
    with serving(folder, wrapper=wrapper) as service:
        service.begin("demo", detector=FRAMES, stages=["copy"], **TO_A_FILE)
        wait_for("frames", lambda: service.frames("demo") > 20)
        pid = pid_of(service, "demo")
        root = inside(service, pid)
        fill(root / "filler")
        text = (service.experiments / "demo.yaml").read_text()
        answer = service.ask("PUT", "/experiments/new", text)
        check(answer.status == 422 and "No space left" in answer.json["error"]["message"], f"a text that is to be checked: {answer.json}")
        check(not (service.experiments / "new.yaml").exists() and not list(service.experiments.glob(".*")), "no part of a file is left")
        refused_commands(service)
        equal(service.session("demo")["alive"], True, "the session")
        starts_again(service, unshare, pid)
        refused_commands(service)
        service.ask("POST", "/sessions/demo/stop", status=202)
        status = service.until("demo", "ended", "fault")["status"]
        row = service.get("/runs")["runs"][0]
        equal((row["run"], row["state"], row["result"], row["lost"]), (1, "over", status["result"], 0), "a run that ended on a full disk")
        fill(root / "more")  # what the result did not need of its room
        service.ask("POST", "/sessions/demo/start")
        equal(service.until("demo", "fault")["status"]["error"]["code"], "output", "a run that has no room for its result")
        equal([row["run"] for row in service.get("/runs")["runs"]], [1], "it leaves nothing")
        (root / "more").unlink()
        (root / "filler").unlink()
        service.ask("PUT", "/experiments/new", text, status=201)
        service.ask("POST", "/sessions", {"experiment": "new"}, status=201)
        service.ask("POST", "/sessions/new/start", status=202)
        begun = service.until("new", "running", "fault", "ended")
        equal(begun["state"], "running", f"a run with room: {(begun['status'] or {}).get('error')}")
        service.ask("POST", "/sessions/new/stop", status=202)
        equal(service.until("new", "ended")["status"]["result"], "intact", "a run with room")
        audit_is_whole(service, root)
        equal([row["result"] for row in service.get("/runs")["runs"]], ["intact", status["result"]], "history")


def audit_is_whole(service, root):
    """Each line is JSON, the disk that was full has cut none; and what is missing was said once, not for each command."""
    wait_for("the audit log", lambda: "sessions/new/stop" in (root / ".service/audit.log").read_text())
    for line in (root / ".service/audit.log").read_text().splitlines():
        json.loads(line)
    check("commands are missing" in service.program.err(), "how many are missing")
    for path in service.folder.glob("stderr-*"):
        check(path.read_text().count("cannot be written") <= 1, f"warnings: {path.read_text()}")


def starts_again(service, unshare, pid):
    """The service is killed, and another one starts on the full disk: in the namespace of the session."""
    if not shutil.which("nsenter"):
        return
    service.kill()
    enter = ["nsenter", "-t", str(pid), *(["-U", "--preserve-credentials"] if "-rm" in unshare else []), "-m", f"--wd={service.folder}", "--"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode:
        enter = service.wrapper  # without the disk: the rest of the case would not be what it says
        check(False, "nsenter cannot enter the namespace that unshare made")
    service.wrapper = enter
    service.start()
    equal(service.session("demo")["alive"], True, "the session after a start on a full disk")


if __name__ == "__main__":
    main()
