"""scaling_runs.py - runs of the program with what its threads took, for tools/bench_scaling.py and tools/bench_auto.py.

They use nothing but Python's own library and a build folder, so that they run on a host that has no more than those.
"""

import datetime
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUN_TIMEOUT_S, BENCH_TIMEOUT_S = 120, 300
TICKS = os.sysconf("SC_CLK_TCK")
LOOK_S = 0.05


class Failed(Exception):
    """A program that did not do what it was asked to."""


class Clock:
    """The time that this call may take: what would end after it is not begun."""

    def __init__(self, most_s):
        self.end, self.longest = time.monotonic() + most_s, 0.0

    def allows(self, seconds=None):
        return time.monotonic() + (self.longest if seconds is None else seconds) < self.end

    def timed(self, work):
        begun = time.monotonic()
        result = work()
        self.longest = max(self.longest, time.monotonic() - begun)
        return result


def thread_seconds(pid):
    """{(process, thread id): (name, user, system)} of a process and of those that it started, in seconds."""
    found = {}
    for process in [pid, *children_of(pid)]:
        try:
            tasks = list(pathlib.Path(f"/proc/{process}/task").iterdir())
        except OSError:
            continue  # it has ended
        for task in tasks:
            try:
                text = (task / "stat").read_text()
            except OSError:
                continue
            fields = text[text.rindex(")") + 2:].split()
            found[process, task.name] = (text[text.index("(") + 1:text.rindex(")")], int(fields[11]) / TICKS, int(fields[12]) / TICKS)
    return found


def children_of(pid):
    found = []
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in path.read_text().split()]
        except OSError:
            pass  # the thread has ended
    return found


class Watched:
    """Programs that run side by side, each in a session of its own, watched until the last one ends."""

    def __init__(self, commands, folder, environments=None, cpus=None):
        self.out = [tempfile.TemporaryFile() for _ in commands]
        self.err = [tempfile.TemporaryFile() for _ in commands]
        prepare = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
        self.processes = [subprocess.Popen([str(word) for word in command], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                           env=environment, start_new_session=True, preexec_fn=prepare)
                          for command, out, err, environment in zip(commands, self.out, self.err, environments or [None] * len(commands))]
        self.threads = {}  # as thread_seconds() has them, as they were last seen

    def wait(self, timeout_s):
        """What each printed: [(status, stdout, stderr)]. All that they started ends with them."""
        end = time.monotonic() + timeout_s
        try:
            while any(process.poll() is None for process in self.processes) and time.monotonic() < end:
                for process in self.processes:
                    if process.poll() is None:
                        self.threads.update(thread_seconds(process.pid))
                time.sleep(LOOK_S)
        finally:
            for process in self.processes:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
        return [(process.returncode, text_of(out), text_of(err)) for process, out, err in zip(self.processes, self.out, self.err)]

    def share(self, names, seconds):
        """(user, system) of the threads whose name begins so, as parts of a core for each; None: there were none."""
        found = [(user, system) for name, user, system in self.threads.values() if name.startswith(names)]
        if not found or seconds <= 0:
            return None
        return tuple(sum(times) / len(found) / seconds for times in zip(*found))


def text_of(file):
    with file:
        file.seek(0)
        return file.read().decode(errors="replace")


def sluice_run(build, experiment, settings, cpus=None):
    """(summary, Watched, what it said) of a run, whose result must be intact."""
    with tempfile.TemporaryDirectory() as folder:
        sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        summary = pathlib.Path(folder) / "summary.json"
        watched = Watched([[build / "sluice", "run", ROOT / "bench/part" / experiment, "--summary", summary, *sets]], folder, cpus=cpus)
        (status, _, said), = watched.wait(RUN_TIMEOUT_S)
        if status:
            last = " ".join(line for line in said.splitlines() if line.strip())[-300:]
            raise Failed(f"sluice run {experiment} {' '.join(f'{k}={v}' for k, v in settings.items())}: status {status}: {last}")
        return json.loads(summary.read_text()), watched, said


def first_line(path, start):
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(start):
            return line[len(start):].strip(" \t:")
    return ""


def revision_here():
    """Of the working copy, where there is one."""
    try:
        done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() if done.returncode == 0 and done.stdout.strip() else "unknown"


def about(revision):
    return {"cpu": first_line("/proc/cpuinfo", "model name"), "cores": len(os.sched_getaffinity(0)), "kernel": os.uname().release,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "load_before": os.getloadavg()[0],
            "revision": revision or revision_here()}


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
