#!/usr/bin/python3
"""lanes.py - the runner's slots and limits, tested: programs run in order and not too many at once, a late one is killed with its
children, and all end when the run is stopped."""

import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import lanes
import tap


class Probe:
    """Jobs that note when they start, and how many slots are taken."""

    def __init__(self, slots):
        self.slots, self.lock = lanes.Slots(slots), threading.Lock()
        self.taken, self.most, self.started = 0, 0, []

    def add(self, name, wants, seconds=0.01):
        def job():
            with self.lock:
                self.started.append(name)
                self.taken += wants
                self.most = max(self.most, self.taken)
            time.sleep(seconds)
            with self.lock:
                self.taken -= wants
        self.slots.add(wants, job)


def order():
    probe = Probe(2)
    for i in range(20):
        probe.add(i, 2)
    probe.slots.end()
    return [] if probe.started == list(range(20)) else [f"started in this order: {probe.started}"]


def slots():
    probe = Probe(4)
    for i in range(40):
        probe.add(i, 1 + i % 2)
    probe.slots.end()
    problems = [] if len(probe.started) == 40 else [f"{len(probe.started)} of 40 jobs ran"]
    return problems + ([] if 2 < probe.most <= 4 else [f"at most {probe.most} slots of 4 were in use"])


def too_many():
    probe = Probe(2)
    probe.slots.add(9, lambda: probe.started.append("wide"))
    probe.slots.end()
    return [] if probe.started == ["wide"] else ["a job that wants more slots than there are did not run"]


def errors():
    some = lanes.Slots(2)
    some.add(1, lambda: 1 // 0)
    try:
        some.end()
    except ZeroDivisionError:
        return []
    return ["the exception of a job was lost"]


def statuses():
    problems = []
    for words, timeout_s, wanted in ((["true"], None, 0), (["sh", "-c", "exit 7"], 60, 7), (["sh", "-c", "kill -9 $$"], 60, -9),
                                     (["sleep", "60"], 0.05, None)):
        status, _ = lanes.wait_for(lanes.start(words), timeout_s)
        if status != wanted:
            problems.append(f"{words}: {status}, not {wanted}")
    return problems + ([f"still listed: {lanes.RUNNING}"] if lanes.RUNNING else [])


def cost():
    _, spun = lanes.wait_for(lanes.start([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"]))
    _, slept = lanes.wait_for(lanes.start(["sleep", "0.3"]))
    problems = [] if 0.2 <= spun.cpu_s < 5 else [f"a loop of 0.2 s of cpus took {spun.cpu_s}"]
    return problems + ([] if slept.cpu_s < 0.2 and slept.seconds >= 0.29 else [f"sleep took {slept.cpu_s}, {slept.seconds}"])


def is_alive(pid):
    try:
        return "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def stopped():
    """A program and its child end; jobs that wait do not start, and no new program does."""
    some, started = lanes.Slots(1), []
    process = lanes.start(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=-1, text=True)
    child = int(process.stdout.readline())
    some.add(1, lambda: lanes.wait_for(process))
    some.add(1, lambda: started.append("too late"))
    lanes.stop_all()
    some.end()
    problems = ["a job started after the end"] if started else []
    deadline = time.monotonic() + 20
    while is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    problems += ["a child goes on"] if is_alive(child) else []
    try:
        lanes.start(["true"])
        problems.append("a program was started after the end")
    except lanes.Interrupted:
        pass
    return problems


def main():
    out = tap.Writer()
    out.case("jobs start in order", order())
    out.case("no more slots are in use than there are, and all jobs run", slots())
    out.case("a job that wants too many slots gets all", too_many())
    out.case("an exception of a job ends the run", errors())
    out.case("exit statuses, signals and time-outs", statuses())
    out.case("what a program took", cost())
    out.case("a run that is stopped: programs and their children end, none starts", stopped())
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
