"""harness.py - what the system tests share.

A test file is a list of cases, functions marked @case("what holds"), and ends in main(). Each case gets a folder of its
own and reports through check() and equal(); skip() says why it cannot run here. Programs are started with run() (to
the end) or Program (in the background); none outlives its case.

Tests run side by side: each process has loopback addresses of its own, 127.x.y.z, made from its process id, so that
UDP port 4791 and any control port are free there.

From the environment: SLUICE_TOGETHER, every experiment that can has one data thread (threads.together); SLUICE_SENDERS, front ends have
as many threads that send; SLUICE, the program; SLUICE_GUARDED, the one that aborts when a data thread allocates, locks or
logs (absent in builds with a sanitizer); SLUICE_SANITIZER, set in builds that are several times slower.
"""

import contextlib
import copy
import ctypes
import faulthandler
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tap  # noqa: E402  (found through the line above)

# A shell that starts the tests in the background has them ignore Ctrl-C, and every program of theirs would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["SLUICE_SITE"] = ""  # a site file of this host must not change what the tests see
RUN_DIR = pathlib.Path(tempfile.gettempdir()) / f"run-{os.getpid()}"
os.environ["SLUICE_RUN_DIR"] = str(RUN_DIR)  # nor its sessions
SLUICE = os.environ.get("SLUICE", str(ROOT / "build/sluice"))
GUARDED = os.environ.get("SLUICE_GUARDED")
SLOW = bool(os.environ.get("SLUICE_SANITIZER"))
TIMEOUT_S = 240 if SLOW else 90  # of anything that ends by itself; far above what it takes
HANGS_S = 1150 if SLOW else 285  # tools/check.py kills a test file soon after that
CONTROL_PORT = 47910  # free on our addresses
ROCE_PORT = 4791

OUTCOMES = ("stored", "prescaled", "vetoed", "incomplete", "overrun", "unproven", "refused", "unwritten", "lost", "unmatched")


def address(index):
    """Loopback address number 0..3 of this process: nobody else's while it lives."""
    number = os.getpid() << 2 | index
    return f"127.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


RECEIVER, SOURCE = address(1), address(2)


def fewer(frames, slow):
    """As many frames as this build does in reasonable time."""
    return slow if SLOW else frames


# ---- cases ----

class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def check(condition, what):
    if not condition:
        raise Failed(what)


def equal(got, wanted, what):
    if got != wanted:
        raise Failed(f"{what}: {got!r}, expected {wanted!r}")


def skip(why):
    raise Skipped(why)


CASES = []
together = bool(os.environ.get("SLUICE_TOGETHER"))  # experiments that can have one data thread have it


def case(name, long=False):
    """Register a case: a function of the folder that it may use. A long one is for `make check-long`."""
    def register(function):
        CASES.append((name, in_check_long if long and "SLUICE_LONG" not in os.environ and len(sys.argv) < 2 else function))
        return function
    return register


def both_ways(name):
    """The same as two cases: a thread for each part of the receiving side, and one data thread for all (threads.together)."""
    def register(function):
        def on_one_thread(folder):
            global together
            together = True
            try:
                function(folder)
            finally:
                together = bool(os.environ.get("SLUICE_TOGETHER"))
        CASES.extend([(name, function), (f"{name}; on one data thread", on_one_thread)])
        return function
    return register


def in_check_long(_):
    skip("takes long: make check-long runs it")


def main():
    """Run the cases (those with argv[1] in their name, when given), print TAP, exit."""
    writer = tap.Writer()
    match = sys.argv[1] if len(sys.argv) > 1 else ""
    if not os.access(SLUICE, os.X_OK):
        print(f"Bail out! no program at {SLUICE}: build it, or set SLUICE")
        sys.exit(1)
    faulthandler.dump_traceback_later(HANGS_S)  # to stderr: where it waits
    for name, function in CASES:
        if match in name:
            run_case(writer, name, function)
    shutil.rmtree(RUN_DIR, ignore_errors=True)  # what killed sessions have left
    sys.exit(writer.done())


def run_case(writer, name, function):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="case-"))
    start = time.monotonic()
    try:
        function(folder)
        writer.case(name)
    except Skipped as why:
        writer.skip(name, why)
    except Failed as problem:
        writer.case(name, [problem, *Program.tails()])
    except Exception:  # a case that breaks is a case that fails; the others still run
        writer.case(name, [traceback.format_exc(), *Program.tails()])
    finally:
        Program.end_all()
        if os.environ.get("KEEP"):
            print(f"# {name}: {time.monotonic() - start:.1f} s, {folder}", flush=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)


# ---- programs ----

def die_with_parent():
    """In the child, before exec: a test that is killed takes its programs along."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Program:
    """A program in the background; its stdout and stderr go to files."""

    started = []

    def __init__(self, *arguments, folder, program=None, limit=None, wrapper=()):
        """limit: called in the child before it becomes the program. wrapper: a command that runs the program."""
        def prepare():
            die_with_parent()
            if limit:
                limit()
        self.name = " ".join(str(a) for a in arguments[:1]) or "sluice"
        number = len(Program.started)
        self.out_path, self.err_path = folder / f"stdout-{number}", folder / f"stderr-{number}"
        env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":exitcode=99"}
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen([*map(str, wrapper), program or SLUICE, *map(str, arguments)], cwd=folder,
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env,
                                            preexec_fn=prepare)
        self.pid = self.process.pid
        Program.started.append(self)

    def out(self):
        return self.out_path.read_text(errors="replace")

    def err(self):
        return self.err_path.read_text(errors="replace")

    def running(self):
        return self.process.poll() is None

    def send(self, number):
        self.process.send_signal(number)

    def children(self):
        """Of any of its threads."""
        tasks = pathlib.Path(f"/proc/{self.pid}/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]

    def wait(self, timeout_s=TIMEOUT_S):
        """Its exit status, negative for a signal. Sanitizers are listened to here."""
        try:
            status = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"sluice {self.name} did not end within {timeout_s} s") from None
        err = self.err()
        check("Sanitizer" not in err and "runtime error:" not in err, "a sanitizer complains")
        return status

    def ends(self, status, timeout_s=TIMEOUT_S):
        """Wait for it, and insist on how it ends."""
        equal(self.wait(timeout_s), status, f"exit status of sluice {self.name}")
        return self

    def stop(self):
        if self.running():
            self.process.kill()
        self.process.wait()

    @staticmethod
    def tails():
        """The last lines of every program of this case, for the diagnosis."""
        for program in Program.started:
            for path in (program.out_path, program.err_path):
                lines = path.read_text(errors="replace").splitlines()[-40:] if path.exists() else []
                if lines:
                    yield "\n".join([f"--- {program.name} {path.name} ({program.process.poll()})", *lines])

    @staticmethod
    def end_all():
        for program in Program.started:
            program.stop()
        Program.started.clear()


def run(*arguments, folder, **options):
    """Run sluice to its end."""
    program = Program(*arguments, folder=folder, **options)
    program.wait()
    return program


def run_fails(*arguments, folder, says=(), **options):
    """Run sluice; it must end with 1 and say each of these on stderr."""
    program = run(*arguments, folder=folder, **options)
    equal(program.process.returncode, 1, "exit status")
    for text in says:
        check(text in program.err(), f"stderr does not say '{text}'")
    return program


def wait_for(what, condition, timeout_s=TIMEOUT_S):
    """Poll until the condition gives something true, and return that."""
    end = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, f"waited {timeout_s} s in vain: {what}")
        time.sleep(0.01)


def without_privilege():
    """A wrapper under which root, too, is held to the permissions of files."""
    if os.geteuid():
        return ()
    wrapper = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--")
    if subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode:
        skip("root may read and write everything here, and setpriv cannot change that")
    return wrapper


# ---- plug-ins ----

def compiler():
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not found:
        skip("no C compiler is installed")
    return found


def build_plugin(path, code):
    """Compile a plug-in. It is not linked with the library: `sluice` has it already."""
    source = path.with_suffix(".c")
    path.parent.mkdir(0o755, exist_ok=True)
    source.write_text(code)
    done = subprocess.run([*compiler().split(), "-D_GNU_SOURCE", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{ROOT}/include", source,
                           "-o", path], capture_output=True, text=True, check=False)
    equal(done.returncode, 0, f"cc: {done.stderr}")
    path.chmod(0o755)
    return path


# ---- experiments ----

def merge(base, changes):
    """Sections changed key by key; lists and plain values replaced; None takes a key away."""
    merged = copy.deepcopy(base)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def experiment(folder, name="experiment.yaml", **sections):
    """Write an experiment file: two small modules of `pattern` over udp, all frames stored in run.nxs and verified,
    with these changes. JSON is YAML."""
    link = sections.get("link", {}).get("kind", "udp")
    links = {kind: {"kind": kind, "listen": RECEIVER, "source": SOURCE} for kind in ("udp", "packet", "xdp", "sls", "nanet")}
    links["shm"] = {"kind": "shm"}
    base = {
        "detector": {"kind": "pattern", "modules": 2, "rows": 64, "columns": 64, "frames": 200},
        "link": links[link],
        "control": {"address": RECEIVER, "port": CONTROL_PORT, "wait_s": TIMEOUT_S},
        # Only the order of packets decides what is given up, however busy this machine is.
        "ring": {"poison": True, "late_timeout_ms": 1000 * TIMEOUT_S},
        "stages": ["copy"],
        "sinks": [{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw"}}, "verify"],
        "emulate": "local",
    }
    if "SLUICE_SENDERS" in os.environ:
        base["threads"] = {"senders": int(os.environ["SLUICE_SENDERS"])}
    whole = replacing(merge(base, sections))
    if together and may_be_together(whole):
        whole["threads"] = {"together": True, **whole.get("threads", {})}
    path = folder / name
    path.write_text(json.dumps(whole, indent=1) + "\n")
    return path


def may_be_together(whole):
    """Nothing in it asks for a second thread."""
    unit, link = whole.get("unit", {}), whole["link"]
    if any(stage == "python" or "python" in stage for stage in whole.get("stages", [])):  # it waits for other processes
        return False
    return unit.get("kind", "cpu") == "cpu" and unit.get("workers", 1) == 1 and link.get("pollers", 1) == 1


QUICKLY = {"overwrite": True, "flush_s": 0.1}


def replacing(node):
    """The same with files that replace those of an earlier run in this folder, and that can be watched, unless a sink says otherwise."""
    if isinstance(node, list):
        return [{"nexus": QUICKLY} if item == "nexus" else replacing(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: {**QUICKLY, **value} if key == "nexus" and isinstance(value, dict) else replacing(value)
            for key, value in node.items()}


# Big enough that hundreds of packets belong to one frame, slow enough that a test can act in mid-run.
LONG = {"kind": "pattern", "modules": 2, "rows": 512, "columns": 512, "frames": 100000, "frame_rate_Hz": 50}


def acquire(folder, program=None, arguments=(), **sections):
    """Run an experiment to its end: the program, and the summary it wrote (None when it did not)."""
    path = experiment(folder, **sections)
    summary = folder / "summary.json"
    done = run("run", path, "--summary", summary, "--outcomes", folder / "outcomes.txt", *arguments, folder=folder,
               program=program)
    return done, read_summary(folder)


def read_summary(folder):
    path = folder / "summary.json"
    return json.loads(path.read_text()) if path.exists() else None


def read_outcomes(folder):
    """{(sequence, module): (outcome, cause)} of --outcomes; a second outcome for one of them fails."""
    outcomes = {}
    for line in (folder / "outcomes.txt").read_text().splitlines():
        sequence, module, outcome, cause = line.split()
        key = int(sequence), int(module)
        check(key not in outcomes, f"two outcomes for {key}")
        outcomes[key] = outcome, cause
    return outcomes


def sink(summary, name):
    """The figures of a sink in the summary."""
    return next(s for s in summary["sinks"] if s["name"] == name)["figures"]


def closes(summary, sent=None):
    """The ledger closes: per module and in total, outcomes add up to what the source says it sent."""
    check(summary is not None, "no summary was written")
    ledger = summary["ledger"]
    check(ledger["closed"] is True, "the ledger does not close")
    equal(ledger["misuse"], 0, "outcomes written twice or out of order")
    for column in [ledger["total"], *ledger["modules"]]:
        equal(sorted(column["outcomes"]), sorted(OUTCOMES), "the outcomes there are")
        equal(sum(column["outcomes"].values()), column["sent"] + column["skipped"], "sum of outcomes, beside sent")
    for outcome in OUTCOMES:
        equal(sum(m["outcomes"][outcome] for m in ledger["modules"]), ledger["total"]["outcomes"][outcome],
              f"'{outcome}' of all modules")
    if sent is not None:
        equal(ledger["total"]["sent"], sent, "module-frames sent")


def intact(program, summary, frames, modules=2):
    """Exit 0, and every module-frame stored or vetoed, every frame compared with the truth."""
    equal(program.process.returncode, 0, "exit status")
    closes(summary, frames * modules)
    total = summary["ledger"]["total"]["outcomes"]
    equal(total["stored"] + total["vetoed"], frames * modules, "module-frames stored or vetoed")
    equal(summary["result"], "intact", "result")
    verify = sink(summary, "verify")
    equal(verify.pop("frames_compared"), frames, "frames compared with the truth")
    equal(set(verify.values()), {0}, "what verify found")


# ---- two terminals ----

def text_of(path):
    """What is in a file; "" while it is not there: sluice makes and removes it once, to see whether it can be written."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def receiver(folder, path, *arguments, program=None, wrapper=()):
    """`sluice run` in the background; returns when front ends may come."""
    port_file = folder / "port"
    with contextlib.suppress(FileNotFoundError):
        port_file.unlink()
    started = Program("run", path, "--summary", folder / "summary.json", "--outcomes", folder / "outcomes.txt",
                      "--port_file", port_file, *arguments, folder=folder, program=program, wrapper=wrapper)
    wait_for("a receiver", lambda: text_of(port_file) or not started.running())
    # A front end that waited for it may be through already.
    check(started.running() or started.process.returncode == 0, "the receiver ended at once")
    return started


def name_of_run(folder):
    """Which file is run.nxs at this moment, by its inode, and whether run.nxs.part is there: to be compared with what the run leaves."""
    with contextlib.suppress(FileNotFoundError):
        return (folder / "run.nxs").stat().st_ino, (folder / "run.nxs.part").exists()
    return None, (folder / "run.nxs.part").exists()


def images_on_disk(folder):
    """How many images of run.nxs are in its data files and flushed by now: a run can be watched by it."""
    import h5py  # not every test needs it

    images = 0
    for path in folder.glob("run_data_*.h5"):
        with contextlib.suppress(OSError, KeyError), h5py.File(path, "r", libver="latest", swmr=True) as file:
            images += file["entry/data/sequence"].shape[0]
    return images
