#!/usr/bin/python3
"""buffers_test.py - nothing is lost on a host with default socket buffers, nor when the receiver stands still for a
while: credits keep what is in flight below what the buffer holds. And the optional checksum over every module-frame."""
# normal build only

import signal
import time

from harness import (Program, acquire, case, equal, experiment, fewer, intact, main, read_summary, receiver, sink)

UNTUNED = 212992  # net.core.rmem_max and rmem_default where nobody changed them
DARKS, FRAMES = fewer(20, 4), fewer(100, 20)
JUNGFRAU = {
    "detector": {"kind": "jungfrau", "rows": None, "columns": None, "dark_frames": DARKS, "frames": FRAMES},
    "stages": ["correct", "veto"],
}


def nothing_turned_away(summary):
    equal(set(summary["link"]["turned_away"].values()), {0}, "packets turned away")


@case("two Jungfrau modules with the buffer of an untuned host: nothing is lost")
def _(folder):
    sinks = [{"nexus": {"path": str(folder / "run.nxs")}}, "verify"]
    program, summary = acquire(folder, **JUNGFRAU, sinks=sinks, link={"receive_buffer": UNTUNED})
    intact(program, summary, DARKS + FRAMES)
    nothing_turned_away(summary)


def stands_still(name, frames, **link):
    """Several times, each longer than a window takes to send; the front end must stop by itself."""
    @case(f"the receiver stands still now and then, {name}: nothing is lost")
    def _(folder):
        path = experiment(folder, detector={"modules": 4, "rows": 256, "columns": 256, "frames": frames}, link=link,
                          sinks=["verify"], emulate="none")
        started = receiver(folder, path)
        front_end = Program("emulate", path, folder=folder)
        for _ in range(6):
            time.sleep(0.05)
            if started.running():
                started.send(signal.SIGSTOP)
                time.sleep(0.1)
                started.send(signal.SIGCONT)
        front_end.ends(0)
        started.ends(0)
        intact(started, read_summary(folder), frames, 4)
        nothing_turned_away(read_summary(folder))


stands_still("packets of 4096 bytes", fewer(400, 200), receive_buffer=UNTUNED)
stands_still("packets of 1024 bytes", fewer(250, 120), receive_buffer=UNTUNED, pmtu=1024)
stands_still("packets of 256 bytes", fewer(120, 60), receive_buffer=UNTUNED, pmtu=256)
stands_still("one message per module and frame", fewer(250, 120), receive_buffer=UNTUNED, pmtu=2048, message="module")
stands_still("a buffer half as large", fewer(300, 150), receive_buffer=UNTUNED // 2)
stands_still("over shm", fewer(1500, 500), kind="shm")


@case("a sink that is slower than the source holds it back, and nothing is lost")
def _(folder):
    # Every image goes to disk, through a ring of four slots.
    detector = {"rows": 1024, "columns": 1024, "frames": fewer(80, 20)}
    program, summary = acquire(folder, detector=detector, ring={"slots": 4, "late_frames": 2}, unit={"batch": 1},
                               link={"receive_buffer": UNTUNED})
    intact(program, summary, detector["frames"])
    nothing_turned_away(summary)


def with_checksum(link):
    @case(f"a checksum in every record, over {link}: it is the proof, and it holds")
    def _(folder):
        program, summary = acquire(folder, link={"kind": link, "crc": True})
        intact(program, summary, 200)
        equal(summary["link"]["proof"], "record checksum", "proof")
        equal(summary["ledger"]["total"]["causes"]["checksum"], 0, "checksums that were wrong")
        equal(sink(summary, "nexus")["frames"], 200, "images")


with_checksum("udp")
with_checksum("shm")

main()
