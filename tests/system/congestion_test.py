#!/usr/bin/python3
"""congestion_test.py - two front ends into one receiver behind a slow port: with ECN they are throttled and nothing is
lost; without it, packets are."""
# with sanitizers in check-long

import os

from harness import Program, case, check, closes, equal, experiment, fewer, main, read_summary, skip
from bottleneck import Host, Switch

RATE = 30e6  # bytes per second: what the relay does with ease
LIMIT, LOW, HIGH = 1 << 20, 100_000, 400_000
FRAMES = fewer(480, 240)
FRAME_RATE = 380  # of 64 KiB: each front end offers 25 MB/s, so both together more than the port takes
# Far more in flight than the queue holds: only the rate keeps it from overflowing.
WINDOW = 16 << 20


class Rig:
    """A receiver behind the slow port and two front ends, one module each."""

    def __enter__(self):
        if os.geteuid():
            skip("network namespaces and tun devices need root")
        if not os.path.exists("/dev/net/tun"):
            skip("no /dev/net/tun here")
        names = [f"slc{os.getpid()}{letter}" for letter in "rab"]
        self.hosts = []
        try:
            for i, name in enumerate(names):
                self.hosts.append(Host(name, f"10.88.0.{i + 1}"))
        except Exception:
            self.__exit__()
            raise
        self.switch = Switch(self.hosts, self.hosts[0], RATE, LIMIT, LOW, HIGH)
        return self

    def __exit__(self, *_):
        if hasattr(self, "switch"):
            self.switch.close()
        for host in self.hosts:
            host.close()

    def acquire(self, folder, **link):
        """Run it; the summary, and how the receiver ended."""
        receiver, *sources = self.hosts
        control = {"address": receiver.address, "token": "between us", "wait_s": 60}
        sections = {"detector": {"frames": FRAMES, "modules": 2, "rows": 128, "columns": 256,
                                 "frame_rate_Hz": FRAME_RATE}, "emulate": "none",
                    "control": control, "ring": {"slots": 64}}
        link = {"listen": receiver.address, "window": WINDOW, "congestion_us": 20000, **link}
        path = experiment(folder, **sections, link=link)
        done = Program("run", path, "--summary", folder / "summary.json", "--outcomes", folder / "outcomes.txt",
                       folder=folder, wrapper=receiver.wrapper())
        fronts = []
        for module, host in enumerate(sources):
            fronts.append(Program("emulate", path, "--once", "--modules", str(module), "--set",
                                  f"link.source={host.address}", folder=folder, wrapper=host.wrapper()))
        done.wait()
        for front in fronts:
            front.wait()
        self.slowed = ["slow down" in front.err() for front in fronts]
        return done, read_summary(folder)


def undisturbed(folder, **link):
    """A run in which nothing is dropped. Who is to slow down, or the switch itself, may have to wait for a busy machine, and
    queues fill meanwhile: then another, a few times."""
    for attempt in range(4):
        inside = folder / str(attempt)
        inside.mkdir()
        with Rig() as rig:
            done, summary = rig.acquire(inside, **link)
        closes(summary, 2 * FRAMES)
        if link.get("service") == "rc":
            equal(summary["result"], "intact", "result, whatever was dropped")
        if not rig.switch.dropped:
            break
        print(f"# {rig.switch.dropped} packets dropped, once more")
    equal(rig.switch.dropped, 0, "packets dropped by the switch")
    equal(done.process.returncode, 0, "exit status")
    equal(summary["result"], "intact", "result")
    return rig, summary


@case("two senders, one slow port that marks: throttled, nothing lost")
def _(folder):
    rig, summary = undisturbed(folder)
    switch = rig.switch
    check(switch.marked > 0, "nothing was marked")
    equal(summary["link"]["marked"], switch.marked, "marked packets that the receiver saw")
    # A front end that a busy machine holds back may never be the one whose packets are marked.
    check(any(rig.slowed), "no front end was slowed down")
    check(0 < summary["link"]["notified"] <= switch.marked, f"{summary['link']['notified']} notifications")
    check(switch.deepest < LIMIT, f"the queue grew to {switch.deepest} bytes")
    print(f"# {switch.marked} marked, {summary['link']['notified']} notifications, "
          f"queue at most {switch.deepest} of {LIMIT} bytes")


@case("the same without ECN: the queue overflows, and what is lost has a name")
def _(folder):
    with Rig() as rig:
        done, summary = rig.acquire(folder, traffic_class=0)
        switch = rig.switch
    equal(done.process.returncode, 2, "exit status")
    closes(summary, 2 * FRAMES)
    equal(switch.marked, 0, "marked")
    check(switch.dropped > 0, "nothing was dropped: not much of a test")
    print(f"# {switch.dropped} packets dropped")


@case("reliable connections behind the slow port that marks: intact")
def _(folder):
    rig, summary = undisturbed(folder, service="rc")
    check(rig.switch.marked > 0, "nothing was marked")
    equal(summary["link"]["turned_away"]["gap"], 0, "packets behind a lost one")
    check(any(rig.slowed), "no front end was slowed down")  # see above


main()
