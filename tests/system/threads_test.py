#!/usr/bin/python3
"""threads_test.py - where data threads run, and how they wait: every way gives the same run; who may sleep hardly uses a
core while nothing comes; threads run where they are told, and nowhere that this process may not run.
"""
# normal build only

import os
import pathlib
import resource
import time

from harness import (SLOW, Program, acquire, both_ways, case, check, equal, experiment, fewer, intact, main, receiver, run_fails,
                     skip, wait_for)

POLLING = ("adaptive", "latency", "cores")
TICKS = os.sysconf("SC_CLK_TCK")


def threads_of(pid):
    """{name: (allowed cpus, cpu seconds)} of a process."""
    threads = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
        threads[status["Name"]] = status["Cpus_allowed_list"], (int(fields[11]) + int(fields[12])) / TICKS
    return threads


@case("every way of waiting gives an intact run, over udp and shm, with a receiver and a front end")
def _(folder):
    frames = fewer(300, 60)
    for link in ("udp", "shm"):
        for polling in POLLING:
            program, summary = acquire(folder, link={"kind": link}, threads={"polling": polling},
                                       detector={"frames": frames, "rows": 128, "columns": 128})
            intact(program, summary, frames)
            equal(summary["threads"]["polling"], polling, "polling in the summary")


@both_ways("every way of waiting gives an intact run at a steady rate with gaps")
def _(folder):
    for polling in POLLING:
        program, summary = acquire(folder, threads={"polling": polling, "spin_us": 500},
                                   detector={"frames": 100, "frame_rate_Hz": 500})
        intact(program, summary, 100)


@both_ways("data threads that may sleep hardly use a cpu while nothing comes")
def _(folder):
    cpu = min(os.sched_getaffinity(0))
    for polling in ("adaptive", "cores"):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        # As many entries as threads: adaptive ones look again before they sleep, on any machine.
        program, summary = acquire(folder, threads={"polling": polling, "cpus": f"{cpu} " * 4, "source_cpus": str(cpu)},
                                   detector={"frames": 4, "frame_rate_Hz": 1})
        after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - start
        intact(program, summary, 4)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        check(wall > 2.5, f"four frames at one a second took {wall:.1f} s")
        if not SLOW:
            # Five threads of two processes. One that span would alone use most of a cpu.
            check(used < 0.3 * wall, f"{polling}: {used:.2f} s of cpu in {wall:.1f} s")


@case("with latency every data thread is busy, with and without data")
def _(folder):
    started = receiver(folder, experiment(folder, threads={"polling": "latency"}, emulate="none",
                                          detector={"frames": 1000000, "frame_rate_Hz": 1}))
    front_end = Program("emulate", folder / "experiment.yaml", folder=folder)
    wanted = {"link-0", "dispatcher", "worker-0", "settler"}
    wait_for("all threads", lambda: wanted <= set(threads_of(started.pid)))
    wait_for("busy threads", lambda: all(threads_of(started.pid)[name][1] > 0.05 for name in wanted))
    wait_for("a busy front end", lambda: threads_of(front_end.pid).get("front-end", ("", 0))[1] > 0.05)


@case("threads run on the cpus that they are told to have")
def _(folder):
    cpus = sorted(os.sched_getaffinity(0))
    started = receiver(folder, experiment(folder, emulate="none", detector={"frames": 1000000, "frame_rate_Hz": 50},
                                          threads={"cpus": f"{cpus[-1]} " * 4, "source_cpus": str(cpus[0])}))
    front_end = Program("emulate", folder / "experiment.yaml", folder=folder)
    names = {"link-0", "dispatcher", "worker-0", "settler"}
    wait_for("all threads", lambda: names <= set(threads_of(started.pid)))
    for name in names:
        equal(threads_of(started.pid)[name][0], str(cpus[-1]), f"cpus of {name}")
    wait_for("a front end", lambda: "front-end" in threads_of(front_end.pid))
    equal(threads_of(front_end.pid)["front-end"][0], str(cpus[0]), "cpus of the front end")
    check("data threads have a cpu each" in started.err(), "the log does not say so")


@case("too few cpus in the list are shared; a run with them is intact, and says which")
def _(folder):
    cpus = sorted(os.sched_getaffinity(0))
    program, summary = acquire(folder, threads={"cpus": str(cpus[0]), "source_cpus": str(cpus[-1])})
    intact(program, summary, 200)
    equal(summary["threads"]["cpus"], [], "cpus of pinned threads")
    check(f"share the cpus {cpus[0]}" in program.err(), "the log does not say so")


@case("a cpu that this process may not use is refused, with those that it may")
def _(folder):
    cpus = sorted(os.sched_getaffinity(0))
    beyond = cpus[-1] + 1
    run_fails("run", experiment(folder, threads={"cpus": str(beyond)}), folder=folder,
              says=["threads.cpus", f"cpu {beyond}", "taskset"])


@case("with cpus to spare each thread has its own, none is used twice; without, none is pinned and the log says so")
def _(folder):
    cpus = len(os.sched_getaffinity(0))
    started = receiver(folder, experiment(folder, emulate="none", detector={"frames": 1000000, "frame_rate_Hz": 50}))
    front_end = Program("emulate", folder / "experiment.yaml", folder=folder)
    names = {"link-0", "dispatcher", "worker-0", "settler"}
    wait_for("all threads", lambda: names <= set(threads_of(started.pid)) and
             "front-end" in threads_of(front_end.pid))
    places = [threads_of(started.pid)[name][0] for name in names] + [threads_of(front_end.pid)["front-end"][0]]
    if cpus > len(places):
        check(all(place.isdigit() for place in places), f"not all are pinned: {places}")
        equal(len(set(places)), len(places), "different cpus")
    else:
        equal(len(set(places)), 1, "different places")
        check("none is pinned" in started.err(), "the log does not say so")


@both_ways("data threads keep their rules in every way of waiting")
def _(folder):
    guarded = os.environ.get("SLUICE_GUARDED")
    if not guarded:
        skip("this build has no sluice-guarded")
    for polling in POLLING:
        program, summary = acquire(folder, program=guarded, threads={"polling": polling})
        intact(program, summary, 200)


@case("a small stack (ulimit -s) is enough")
def _(folder):
    def small():
        resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, 64 << 10))
    Program("run", experiment(folder), folder=folder, limit=small).ends(0)


main()
