"""lanes.py - programs side by side: started in sessions of their own, measured, and stopped together.

Slots runs jobs in order, each as soon as it has room; a job that waits for clocks and other processes takes one slot, a job
that computes takes two. There are two slots for each core, so that the cores stay busy.
"""

import collections
import os
import select
import signal
import subprocess
import threading
import time

BACKGROUND_NICE = 19  # of builds and models beside tests: tests have time limits, and must not notice them
RUNNING = set()  # programs under way, to be stopped when we are
STOPPED = threading.Event()  # no program is started any more


class Interrupted(Exception):
    """The run is being stopped."""


class Cost:
    """What a program took: seconds until it had ended, and seconds of cpus, with the children that it waited for."""

    def __init__(self, seconds=0.0, cpu_s=0.0):
        self.seconds, self.cpu_s = seconds, cpu_s


def start(command, nice=0, **more):
    """Start a program in a session of its own."""
    if STOPPED.is_set():
        raise Interrupted
    prefix = ["nice", "-n", str(nice)] if nice else []
    process = subprocess.Popen([*prefix, *command], stdin=subprocess.DEVNULL, start_new_session=True, **more)
    process.began = time.monotonic()
    RUNNING.add(process)
    return process


def kill_session(process):
    """Kill a program and what it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def stop(process):
    kill_session(process)
    process.wait()


def stop_all():
    """Kill every program that runs, and start no more."""
    STOPPED.set()
    for process in list(RUNNING):
        kill_session(process)


def wait_for(process, timeout_s=None):
    """Wait for a program of start() to end: its exit status (None: it was late and has been killed) and its cost."""
    handle = os.pidfd_open(process.pid)
    try:
        in_time = bool(select.select([handle], [], [], timeout_s)[0])
    finally:
        os.close(handle)
    if not in_time:
        kill_session(process)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    kill_session(process)  # children that outlived it
    RUNNING.discard(process)
    return process.returncode if in_time else None, Cost(time.monotonic() - process.began, used.ru_utime + used.ru_stime)


class Slots:
    """Jobs in the order in which they were added; each starts when its slots are free and all jobs before it have started."""

    def __init__(self, count):
        self.count = self.free = count
        self.waiting = collections.deque()  # (slots, function)
        self.threads = []
        self.errors = []
        self.ending = False
        self.changed = threading.Condition()
        self.dispatcher = threading.Thread(target=self._dispatch)
        self.dispatcher.start()

    def add(self, slots, function):
        """Any thread. A job that wants more slots than there are gets all of them."""
        with self.changed:
            self.waiting.append((min(slots, self.count), function))
            self.changed.notify_all()

    def end(self):
        """Wait for all jobs; the first exception of one of them is raised here."""
        with self.changed:
            self.ending = True
            self.changed.notify_all()
        self.dispatcher.join()
        for thread in self.threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _next(self):
        """The next job, with its slots taken; None: there are no more."""
        with self.changed:
            self.changed.wait_for(lambda: STOPPED.is_set() or (self.waiting and self.waiting[0][0] <= self.free)
                                  or (self.ending and not self.waiting))
            if STOPPED.is_set() or not self.waiting:
                return None
            job = self.waiting.popleft()
            self.free -= job[0]
            return job

    def _dispatch(self):
        while (job := self._next()) is not None:
            thread = threading.Thread(target=self._run, args=job)
            self.threads.append(thread)
            thread.start()

    def _run(self, slots, function):
        try:
            function()
        except Interrupted:
            pass
        except Exception as error:  # noqa: BLE001  (raised again by end)
            self.errors.append(error)
        with self.changed:
            self.free += slots
            self.changed.notify_all()
