#!/usr/bin/python3
"""feedback_write_test.py - decisions go back by RDMA WRITE: each event has exactly one answer; what is lost, late or cannot
be sent is told; and a device without plans is written to by its numbers."""

# normal build only

import contextlib
import os
import re
import signal
import socket
import struct
import time

import roce
from bottleneck import Host, Switch
from harness import Program, acquire, address, case, check, equal, experiment, main, read_summary, run, sink, skip, wait_for

EAR = address(3)
PORT = 47920
NO_SIZE = {"rows": None, "columns": None}  # of the harness's own detector
RICH = {"kind": "rich", "modules": 2, "events": 40, "frames": 150, "frame_rate_Hz": 300, **NO_SIZE}
LONG = {**RICH, "frames": 100000, "frame_rate_Hz": 500}
EVENTS = 2 * 40 * 150
HEADER = struct.Struct("<4sHHQQQHHI")  # as docs/reference/feedback.md has it
ANSWERS = re.compile(r"answers to (\d+) of (\d+) events in (\d+) packets: (\d+) keep, (\d+) reject, (\d+) no data")
WRONG = re.compile(r"not every event has exactly one answer: (\d+) of (\d+) have none, (\d+) answers came again, "
                   r"(\d+) are to events that were not sent, (\d+) packets make no sense, (\d+) were lost")


def back(**options):
    return {"feedback": {"by": "write", "address": EAR, "port": PORT, **options}}


def listen(**options):
    return {"by": "write", "address": EAR, "port": PORT, "wait_s": 3, **options}


def answered(program, events, packets):
    told = ANSWERS.search(program.err())
    check(told, "the front end does not say what it heard")
    equal([int(n) for n in told.groups()], [events, events, packets, events, 0, 0], "what it heard")


@case("every event has its answer, over each link and service, whoever starts first")
def _(folder):
    for n, (link, service) in enumerate((("udp", "uc"), ("udp", "rc"), ("shm", "uc"), ("shm", "rc"))):
        path = experiment(folder, detector=RICH, sinks=[back(link=link, service=service), "verify"],
                          feedback=listen(link=link, service=service), emulate="none")
        both = [lambda: Program("run", path, "--summary", folder / "summary.json", folder=folder),
                lambda: Program("emulate", path, "--once", folder=folder)]
        if n % 2:
            front_end, receiver = both[1](), both[0]()
        else:
            receiver, front_end = both[0](), both[1]()
        receiver.ends(0)
        front_end.ends(0)
        answered(front_end, EVENTS, 300)
        got = sink(read_summary(folder), "feedback")
        equal((got["frames"], got["events_kept"], got["packets"], got["feedback_unsent"]), (150, EVENTS, 300, 0), f"{link} {service}")


@case("the front end of a run has its answers at a fixed latency, too; those after the deadline are counted")
def _(folder):
    for link, deadline, late in (("udp", 1, EVENTS), ("shm", 600_000_000, 0)):
        program, summary = acquire(folder, detector=RICH, sinks=[back(link=link, latency_us=4000), "verify"],
                                   feedback=listen(link=link, deadline_us=deadline))
        equal(program.process.returncode, 0, "exit status: late is not lost")
        answered(program, EVENTS, 300)
        check(f"answers due after {deadline} us: {late} came late" in program.err(), "late ones are not told")
        check(sink(summary, "feedback")["frames_without_a_time"] == 0, "frames without a time")
        first = float(re.search(r"answers came after their event by \(us\): p50 ([\d.]+)", program.err())[1])
        check(first > 0.95 * 4000, f"half of them came {first} us after their event: sooner than they may")


@case("a detector that asks for no plan waits for who will answer it")
def _(folder):
    program, _ = acquire(folder, detector={**RICH, "frames": 60}, link={"kind": "nanet"}, sinks=[back(), "verify"], feedback=listen())
    equal(program.process.returncode, 0, "exit status")
    answered(program, 2 * 40 * 60, 120)


# ---- who is not there, or goes ----

@case("a front end that nobody writes to says so, and sends nothing")
def _(folder):
    program, _ = acquire(folder, detector=RICH, sinks=[back(address=address(4)), "verify"], feedback=listen(wait_s=0.3))
    check(program.process.returncode != 0, "exit status")
    check(f"nobody came to {EAR}, port {PORT}, to write answers" in program.err(), "it is not said")


@case("a sink that finds nobody to write to fails the run in the end, and the data is there")
def _(folder):
    program, summary = acquire(folder, detector=RICH, sinks=[back(wait_s=0.2), "verify"])
    equal(program.process.returncode, 2, "exit status: damaged")
    check(f"nobody takes answers at {EAR}, port {PORT}" in program.err(), "it is not said")
    equal(sink(summary, "feedback")["feedback_unsent"], EVENTS, "answers that were not sent")
    equal(summary["ledger"]["total"]["outcomes"]["stored"], 300, "module-frames that were stored")


@case("a receiver comes to its end when the front end that it answers is killed")
def _(folder):
    for link in ("udp", "shm"):
        path = experiment(folder, detector=LONG, sinks=[back(link=link), "verify"], feedback=listen(link=link), emulate="none")
        receiver = Program("run", path, "--summary", folder / "summary.json", folder=folder)
        front_end = Program("emulate", path, "--once", folder=folder)
        wait_for("the run", lambda: "sending rich" in front_end.err())
        time.sleep(0.5)
        front_end.send(signal.SIGKILL)
        front_end.wait()
        check(receiver.wait() != 0, "exit status of the receiver")
        check("the front end of module 0 vanished" in receiver.err(), "the receiver does not say that it is gone")
        check(read_summary(folder)["frames"]["settled"] > 0, "nothing was settled")


@case("a front end hears from the next receiver when one is killed, and misses what that one owed")
def _(folder):
    path = experiment(folder, detector={**LONG, "frames": 2000, "frame_rate_Hz": 1000}, sinks=[back(), "verify"],
                      feedback=listen(wait_s=1.5), emulate="none")
    front_end = Program("emulate", path, folder=folder)
    first = Program("run", path, folder=folder)
    wait_for("the first run", lambda: "sending rich" in front_end.err())
    time.sleep(0.3)
    first.send(signal.SIGKILL)
    first.wait()
    Program("run", path, folder=folder).ends(0)
    check(front_end.wait() in (0, 1), "exit status")
    check("the sink that wrote the answers vanished" in front_end.err(), "it does not say that the sink is gone")
    told = ANSWERS.search(front_end.err())
    check(told and int(told[1]) > 0, "no answers were heard")


@case("a front end with some of the modules may go away and come back: others' events, and those of that time, are not its own")
def _(folder):
    path = experiment(folder, detector={**LONG, "frames": 900}, ring={"align": "frame", "incomplete": "keep"}, sinks=[back(), "verify"],
                      feedback=listen(), emulate="none")
    receiver = Program("run", path, "--summary", folder / "summary.json", folder=folder)
    front_end = Program("emulate", path, "--once", "--modules", "0", "--set", "frontend.restart_after=200",
                        "--set", "frontend.restart_frames=400", folder=folder)
    other = Program("emulate", path, "--once", "--modules", "1", "--set", "feedback.address=", folder=folder)
    receiver.ends(3)
    front_end.ends(0)
    other.ends(0)
    told = ANSWERS.search(front_end.err())
    equal([int(n) for n in told.groups()[:2]], [500 * 40, 500 * 40], "what it heard")
    elsewhere = 900 * 80 - 500 * 40
    check(f"answers to {elsewhere} events that were not sent from here" in front_end.err(), "others' events are not told")


@case("a front end that takes nothing holds up the receiver for a moment only")
def _(folder):
    path = experiment(folder, detector={**RICH, "frames": 1500, "frame_rate_Hz": 1000}, sinks=[back(), "verify"],
                      feedback=listen(slots=16), link={"kind": "shm"}, emulate="none")
    receiver = Program("run", path, "--summary", folder / "summary.json", folder=folder)
    front_end = Program("emulate", path, "--once", folder=folder)
    wait_for("the run", lambda: "sending rich" in front_end.err())
    front_end.send(signal.SIGSTOP)
    time.sleep(1.5)
    front_end.send(signal.SIGCONT)
    receiver.ends(0)  # what was under way waited in blocks of its own
    front_end.ends(0)
    answered(front_end, 2 * 40 * 1500, 3000)


@case("sides that do not agree are told why")
def _(folder):
    for sink_has, says in (({"service": "rc"}, "service of the sink is rc, feedback.service of the front end is uc"),
                           ({"link": "shm"}, "its link speaks 'shm', here it is 'roce'")):
        path = experiment(folder, detector={**RICH, "frames": 5}, sinks=[back(**sink_has), "verify"], feedback=listen(wait_s=0.5), emulate="none")
        receiver = Program("run", path, folder=folder)
        front_end = Program("emulate", path, "--once", folder=folder)
        check(front_end.wait() != 0, f"exit status of the front end with {sink_has}")
        receiver.wait()
        check(says in receiver.err(), f"'{says}' is not said")
    for sink_has, ear_has, says in (({"service": "rc"}, {}, "feedback.service and service of the sink feedback differ"),  # in one file: at once
                                    ({"link": "pigeon"}, {}, "no link that goes both ways is called 'pigeon'"),
                                    ({}, {"link": "sls"}, "no link that goes both ways is called 'sls'"),
                                    ({}, {"address": "192.0.2.1"}, "192.0.2.1")):
        program, _ = acquire(folder, detector={**RICH, "frames": 5}, sinks=[back(**sink_has), "verify"], feedback=listen(wait_s=0.3, **ear_has))
        check(program.process.returncode != 0, f"exit status with {sink_has} and {ear_has}")
        check(says in program.err(), f"'{says}' is not said")
    path = experiment(folder, detector=RICH, sinks=[back()], feedback=listen(address="0.0.0.0"))
    program = run("emulate", path, "--once", folder=folder)
    equal(program.process.returncode, 1, "exit status")
    check("feedback.address" in program.err(), "a wildcard is not refused by its name")


# ---- what is lost on the way ----

class Lossy(Switch):
    """Loses every tenth RoCEv2 packet that brings answers."""
    lost = seen = 0

    def enqueue(self, packet):
        if packet[9] == socket.IPPROTO_UDP and int.from_bytes(packet[22:24], "big") == PORT:
            self.seen += 1
            if self.seen % 10 == 0:
                self.lost += 1
                return
        super().enqueue(packet)


@contextlib.contextmanager
def lossy_path():
    if os.geteuid():
        skip("network namespaces and tun devices need root")
    if not os.path.exists("/dev/net/tun"):
        skip("no /dev/net/tun here")
    with contextlib.ExitStack() as stack:
        hosts = []
        for i, letter in enumerate("fr"):
            hosts.append(Host(f"slw{os.getpid()}{letter}", f"10.89.0.{i + 1}"))
            stack.callback(hosts[-1].close)
        switch = Lossy(hosts, hosts[0], 1e9, 1 << 24, 1 << 23, 1 << 24)
        stack.callback(switch.close)
        yield switch, *hosts


def through(folder, service):
    """A run whose answers go through the lossy switch: switch, receiver, front end."""
    with lossy_path() as (switch, front, receiver):
        path = experiment(folder, detector=RICH, link={"listen": receiver.address, "source": front.address},
                          control={"address": receiver.address, "token": "between us"}, emulate="none",
                          sinks=[back(address=front.address, service=service), "verify"],
                          feedback=listen(address=front.address, service=service, pmtu=4096, wait_s=1.5))
        run_ = Program("run", path, "--summary", folder / "summary.json", folder=folder, wrapper=receiver.wrapper())
        front_end = Program("emulate", path, "--once", folder=folder, wrapper=front.wrapper())
        run_.wait()
        front_end.wait()
    return switch, run_, front_end


@case("over uc, answers that are lost on the way are named and counted, and no others")
def _(folder):
    switch, receiver, front_end = through(folder, "uc")
    equal((receiver.process.returncode, front_end.process.returncode), (0, 1), "exit status of receiver and front end")
    check(switch.lost >= 30, f"only {switch.lost} were lost")
    wrong = WRONG.search(front_end.err())
    check(wrong, "it is not said that some are missing")
    missing, events, again, unknown, nonsense, lost = map(int, wrong.groups())
    equal((events, again, unknown, nonsense, lost), (EVENTS, 0, 0, 0, switch.lost), "what was wrong")
    # Frames of 80 events are a packet of 57 and one of 23.
    check(23 * lost <= missing <= 57 * lost, f"{missing} events without an answer, in {lost} packets")


@case("over rc, what is lost on the way is sent again")
def _(folder):
    switch, receiver, front_end = through(folder, "rc")
    equal((receiver.process.returncode, front_end.process.returncode), (0, 0), "exit status of receiver and front end")
    check(switch.lost >= 30, f"only {switch.lost} were lost")
    answered(front_end, EVENTS, 300)


# ---- a device that has no plans ----

@case("a device is written to by its numbers: addresses, packet numbers, immediates and records as the pages say")
def _(folder):
    device = {"qpn": 0x1234, "rkey": 0xDEADBEEF, "psn": 0xFFFFF0, "memory": 0x123400000000, "slots": 7, "stride": 4096, "pmtu": 256}
    ear = roce.sender(EAR, 4791)
    ear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    ear.settimeout(5)
    program, summary = acquire(folder, detector=RICH, sinks=[back(port=4791, payload=500, **device)])
    equal(program.process.returncode, 0, "exit status")
    equal(sink(summary, "feedback")["packets"], 5 * 150, "packets of answers")
    block = 500 + 64  # three packets: 256, 256, 52
    numbers, whole = [], b""
    for n in range(3 * 5 * 150):
        packet, source = ear.recvfrom(2048)
        k, part = divmod(n, 3)
        opcode, flags, _, qpn, psn = struct.unpack("!BBHII", packet[:12])
        last = part == 2
        equal((opcode, qpn & 0xFFFFFF), (0x2B if last else 0x2A, 0x1234), "opcode and queue pair")
        equal(psn & 0xFFFFFF, (0xFFFFF0 + n) & 0xFFFFFF, "packet number")
        va, rkey, length = struct.unpack("!QII", packet[12:28])
        equal((va, rkey, length), (device["memory"] + k % 7 * 4096 + 256 * part, 0xDEADBEEF, block - 512 if last else 256), "RETH")
        check(any(roce.icrc(source, (EAR, 4791), packet[:-4], i) == packet[-4:] for i in range(64)), "the ICRC is wrong")
        whole = (b"" if part == 0 else whole) + packet[28 + 4 * last:-4]
        if last:
            equal(struct.unpack("!I", packet[28:32])[0], k, "immediate")
            header = HEADER.unpack_from(whole)
            equal((header[0], header[3]), (b"SLFB", k), "header of a packet of answers")
            numbers += range(header[4], header[4] + header[6])
            record = struct.unpack_from("<QQ16xI4xIIH", whole, 500)
            equal(record, (k, k, 500, header[6], 3, 0), "record: sequence, frame, bytes, items, packets, module")
    equal(numbers, list(range(numbers[0], numbers[0] + EVENTS)), "events that were answered")
    ear.settimeout(0.1)
    with contextlib.suppress(socket.timeout):
        ear.recv(1)
        check(False, "one packet too many")
    check("block k is written to 0x123400000000 + (k mod 7) * 4096: 564 bytes in 3 packets" in program.err(), "it is not said where")
    ear.close()


main()
