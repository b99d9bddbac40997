#!/usr/bin/python3
"""feedback_test.py - decisions go back: each event has exactly one answer, and who does not get that says so."""
# with sanitizers in check-long

import re
import socket
import struct
import threading

from harness import (CONTROL_PORT, RECEIVER, Program, acquire, address, both_ways, case, check, equal, experiment, main, read_summary,
                     run)

EAR, RELAY = address(3), address(0)
PORT = 47920
NO_SIZE = {"rows": None, "columns": None}  # of the harness's own detector
RICH = {"kind": "rich", "modules": 2, "events": 40, "frames": 150, "frame_rate_Hz": 300, **NO_SIZE}
EVENTS = 2 * 40 * 150
LISTEN = {"address": EAR, "port": PORT, "wait_s": 3}
HEADER, ANSWER = struct.Struct("<4sHHQQQHHI"), struct.Struct("<QQfHH")  # as docs/reference/feedback.md has them
REJECT, KEEP, NO_DATA = range(3)


def back(to=EAR, **options):
    return {"feedback": {"address": to, "port": PORT, **options}}


def figures(summary):
    return next(sink["figures"] for sink in summary["sinks"] if sink["name"] == "feedback")


def answered(program, events, keep, reject=0, no_data=0):
    told = re.search(r"answers to (\d+) of (\d+) events in \d+ packets: (\d+) keep, (\d+) reject, (\d+) no data", program.err())
    check(told, "the front end does not say what it heard")
    equal([int(n) for n in told.groups()], [keep + reject + no_data, events, keep, reject, no_data], "what it heard")


def unpack(packet):
    """(header, answers) of a packet, by the page."""
    header = HEADER.unpack_from(packet)
    return header, [ANSWER.unpack_from(packet, HEADER.size + i * header[7]) for i in range(header[6])]


class Listener(threading.Thread):
    """Hears packets on an address, and passes on what `change` makes of the n'th."""

    def __init__(self, at, change=None, to=None):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind((at, PORT))
        self.packets, self.change, self.to = [], change, to
        self.start()

    def run(self):
        while True:
            packet = self.socket.recv(65536)
            if not packet:
                return
            self.packets.append(packet)
            for again in self.change(len(self.packets) - 1, packet) if self.change else ():
                self.socket.sendto(again, (self.to, PORT))

    def stop(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.socket.getsockname())
        self.join()
        self.socket.close()
        return self.packets


@both_ways("every event has its answer, over udp and shm, sent by a front end of its own")
def _(folder):
    for kind in ("udp", "shm"):
        path = experiment(folder, detector=RICH, link={"kind": kind}, sinks=[back(), "verify"], feedback=LISTEN, emulate="none")
        receiver = Program("run", path, "--summary", folder / "summary.json", folder=folder)
        front_end = Program("emulate", path, "--once", folder=folder)
        receiver.ends(0)
        front_end.ends(0)
        answered(front_end, EVENTS, keep=EVENTS)
        check("answers came after their event by (us)" in front_end.err(), "it does not say when they came")
        got = figures(read_summary(folder))
        equal((got["frames"], got["events_kept"], got["feedback_unsent"]), (150, EVENTS, 0), f"what the sink counts over {kind}")


@case("the front end of a run tells its answers, at a fixed latency, too; those after the deadline are counted")
def _(folder):
    for deadline, late in ((1, EVENTS), (600_000_000, 0)):
        program, summary = acquire(folder, detector=RICH, sinks=[back(latency_us=4000), "verify"], feedback={**LISTEN, "deadline_us": deadline})
        equal(program.process.returncode, 0, "exit status: late is not lost")
        answered(program, EVENTS, keep=EVENTS)
        check(f"answers due after {deadline} us: {late} came late" in program.err(), "late ones are not told")
        got = figures(summary)
        check(got["off_p50_ns"] <= got["off_p99_ns"] <= got["off_max_ns"], f"percentiles out of order: {got}")
        check(0 <= got["frames_late"] <= 150 and got["frames_without_a_time"] == 0, f"late frames: {got}")
        check("answers left after they were due by (us)" in program.err(), "the sink does not tell its jitter")
        first = float(re.search(r"answers came after their event by \(us\): p50 ([\d.]+)", program.err())[1])
        check(first > 0.95 * 4000, f"half of them came {first} us after their event: sooner than they may")


@both_ways("what a stage rejects, dark frames and lost ones are answered as what they are")
def _(folder):
    program, summary = acquire(
        folder, detector={"kind": "jungfrau", "modules": 1, "frames": 60, "dark_frames": 20, "frame_rate_Hz": 200, **NO_SIZE},
        stages=[{"correct": {"output": "photons_i16"}}, {"veto": {"threshold": 8, "min_pixels": 10}}], sinks=[back()],
        feedback=LISTEN, frontend={"drop": 0.001})
    frames = summary["frames"]
    broken = frames["settled"] - summary["ledger"]["total"]["outcomes"]["stored"] - summary["ledger"]["total"]["outcomes"]["vetoed"]
    check(frames["kept"] and broken and frames["settled"] - frames["kept"] > 20, f"not of every kind: {frames}")
    answered(program, 80, keep=frames["kept"], reject=80 - frames["kept"] - broken, no_data=broken)


@both_ways("any program can listen: packets are as the page says, each event once and in order")
def _(folder):
    ear = Listener(EAR)
    try:
        program, _ = acquire(folder, detector=RICH, sinks=[back(payload=500)])
    finally:
        packets = ear.stop()
    equal(program.process.returncode, 0, "exit status")
    numbers = []
    for n, packet in enumerate(packets):
        check(len(packet) <= 500, f"a packet of {len(packet)} bytes")
        (magic, version, flags, count, first, stamp, answers, size, items), said = unpack(packet)
        equal((magic, version, count, size, items), (b"SLFB", 1, n, 24, 80), f"header of packet {n}")
        equal(len(packet), HEADER.size + answers * ANSWER.size, "length of a packet")
        equal((flags, said[0][0]), (16 if (first + answers) % 80 == 0 else 0, first), f"flags and first event of packet {n}")
        check(all(answer[1] == stamp and answer[4] == KEEP for answer in said), f"answers of packet {n}")
        numbers += [answer[0] for answer in said]
    equal(numbers, list(range(numbers[0], numbers[0] + EVENTS)), "events that were answered")


def relayed(folder, change):
    """Answers go through a relay that does something to them: the front end, which must find it."""
    relay = Listener(RELAY, change, EAR)
    path = experiment(folder, detector=RICH, sinks=[back(RELAY), "verify"], feedback=LISTEN, emulate="none")
    try:
        receiver = Program("run", path, "--summary", folder / "summary.json", folder=folder)
        front_end = Program("emulate", path, "--once", folder=folder)
        receiver.ends(0)
        front_end.wait()
    finally:
        packets = relay.stop()
    return front_end, [unpack(packet)[0][6] for packet in packets]


@case("through a relay that changes nothing, nothing is wrong; nor when packets overtake each other")
def _(folder):
    held = []

    def swap(n, packet):
        held.append(packet)
        return [] if n % 2 == 0 else [held[n], held[n - 1]]
    for change in (lambda n, packet: [packet], swap):
        front_end, _ = relayed(folder, change)
        equal(front_end.process.returncode, 0, "exit status")
        answered(front_end, EVENTS, keep=EVENTS)


@case("answers that are lost, doubled or invented on the way are told, each by its name")
def _(folder):
    def spoil(n, packet):
        return {3: [], 7: [packet, packet], 11: [packet, packet[:-1]], 20: [packet, far(packet)]}.get(n, [packet])

    def far(packet):
        """The same answers, to events that nobody has sent."""
        header, answers = unpack(packet)
        ahead = 80_000_000
        header = (*header[:4], header[4] + ahead, *header[5:])
        return HEADER.pack(*header) + b"".join(ANSWER.pack(answer[0] + ahead, *answer[1:]) for answer in answers)

    front_end, counts = relayed(folder, spoil)
    equal(front_end.process.returncode, 1, "exit status")
    answered(front_end, EVENTS, keep=EVENTS - counts[3])
    check(f"not every event has exactly one answer: {counts[3]} of {EVENTS} have none, {counts[7]} answers came again, "
          f"{counts[20]} are to events that were not sent, 1 packets make no sense" in front_end.err(), "it does not say what was wrong")


@case("a run whose front end misses answers fails, and its data is there all the same")
def _(folder):
    relay = Listener(RELAY)
    try:
        program, summary = acquire(folder, detector={**RICH, "frames": 20}, sinks=[back(RELAY), "verify"], feedback={**LISTEN, "wait_s": 0.2})
    finally:
        relay.stop()
    equal(program.process.returncode, 1, "exit status")
    check(f"{20 * 80} of {20 * 80} have none" in program.err(), "the front end does not say so")
    check("did not hear exactly one answer" in program.err(), "the run does not say so")
    equal(summary["ledger"]["total"]["outcomes"]["stored"], 40, "module-frames that were stored")


@case("a run whose answers nobody listens to is damaged, and its data is there all the same")
def _(folder):
    program, summary = acquire(folder, detector={**RICH, "frames": 20}, sinks=[back(RELAY), "verify"])
    equal(program.process.returncode, 2, "exit status: damaged")
    check(figures(summary)["packets_refused"] > 0, "no packet came back")
    check(f"nobody listened at {RELAY}" in program.err(), "it is not said")
    equal(summary["ledger"]["total"]["outcomes"]["stored"], 40, "module-frames that were stored")


@case("with several transfers the front end has its say, too")
def _(folder):
    streams = {name: {"link": {"port": 4791 + i}, "sinks": [back(to, port=PORT + i)], "feedback": {**LISTEN, "port": PORT + i, "wait_s": 0.2}}
               for i, (name, to) in enumerate((("mute", RELAY), ("whole", EAR)))}
    path = experiment(folder, detector={**RICH, "frames": 20}, transfers=streams)
    relay = Listener(RELAY)
    try:
        program = run("run", path, folder=folder)
    finally:
        relay.stop()
    equal(program.process.returncode, 1, "exit status")
    check("whole: answers to 1600 of 1600 events" in program.err(), "what came is not told")
    check("mute: not every event has exactly one answer: 1600 of 1600 have none" in program.err(), "what did not come is not told")


@case("an address that cannot be listened at, or answered to, is an error that says which")
def _(folder):
    path = experiment(folder, detector=RICH, sinks=[back("nowhere")], control={"address": RECEIVER, "port": CONTROL_PORT})
    program = run("run", path, folder=folder)
    equal(program.process.returncode, 1, "exit status")
    check("feedback: address 'nowhere'" in program.err(), "the sink's address is not named")
    path = experiment(folder, detector=RICH, sinks=[back()], feedback={"address": "192.0.2.1"})
    program = run("emulate", path, "--once", folder=folder)
    equal(program.process.returncode, 1, "exit status")
    check("cannot listen for answers at 192.0.2.1, port 47920" in program.err(), "the front end's address is not named")


main()
