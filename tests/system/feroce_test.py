#!/usr/bin/python3
"""feroce_test.py - FPGAs that connect by the FEROCE connection manager (docs/reference/feroce.md): an emulated device speaks the
documented formats, sends by RC WRITE or SEND, and what it sent is in the file. Lost packets, repeated and foreign
requests, garbage, devices that stop early, vanish or never rest."""
# normal build only

import random
import re
import signal
import struct
import threading
import time

import h5py
import numpy

import harness
import roce
from feroce_sender import (ACK, CLOSE, CM_PORT, CM_SOURCE_PORT, DATA_SOURCE_PORT, HOST_PORT, MIG_REQ, NO_QP, NOBODY, OPEN,
                           RTS, SEND, SOLICITED, WRITE, Core, Device, Refused, pack, unpack)
from harness import (RECEIVER, SOURCE, Program, address, check, closes, equal, experiment, fewer, main,
                     read_outcomes, read_summary, receiver, run_fails, skip, wait_for)
from slow_disk import on_slow_disk

OTHER = address(3)
ROWS, COLUMNS, PMTU = 64, 48, 1024
BLOCK = ROWS * COLUMNS * 2  # six packets
PAGE = 4096
SLOTS = 8


def case(name):
    """A case whose devices do not outlive it."""
    def register(function):
        @harness.case(name)
        def _(folder):
            try:
                function(folder)
            finally:
                Device.stop_all()
    return register


def file_for(folder, modules=1, frames=100, operation="write", feroce=None, **sections):
    """An experiment whose modules come from devices."""
    link = {"service": "rc", "operation": operation, "pmtu": PMTU, **sections.pop("link", {})}
    return experiment(folder, emulate="none", link=link,
                      detector={"modules": modules, "rows": ROWS, "columns": COLUMNS, "frames": frames},
                      ring={"slots": SLOTS, "late_frames": 4},
                      feroce={"enable": True, "silence_s": 0, **(feroce or {})},
                      sinks=[{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw"}}], **sections)


def pixels(module, k):
    return random.Random(module << 32 | k).randbytes(BLOCK)


def stride(modules):
    """From one slot to the next: page-aligned blocks with room for the record, and never a power of two."""
    bytes_ = modules * -(-(BLOCK + 64) // PAGE) * PAGE
    return bytes_ + PAGE if bytes_ & (bytes_ - 1) == 0 else bytes_


def send_frames(device, frames, module=0, modules=1, kind=WRITE, first=0, imm=None, block=pixels):
    for k in range(first, first + frames):
        device.put(block(module, k), kind, device.remote.va + k % SLOTS * stride(modules), PMTU, imm)
    device.flush()


def in_background(*work):
    """Start these, each in a thread of its own; returns a function that waits for them and fails when one failed."""
    problems = []

    def guarded(function):
        try:
            function()
        except Exception as problem:  # pylint: disable=broad-except
            problems.append(problem)
    threads = [threading.Thread(target=guarded, args=(function,), daemon=True) for function in work]
    for thread in threads:
        thread.start()

    def join():
        for thread in threads:
            thread.join(60)
        check(not problems, f"a device failed: {problems}")
    return join


def send_together(devices, frames, kind=WRITE):
    """The modules of one experiment: the ring holds back who is too far ahead of the others."""
    in_background(*(lambda d=d, m=m: send_frames(d, frames, m, len(devices), kind) for m, d in enumerate(devices)))()


def stored(folder, frames, modules=1):
    """The file holds these frames, each as it was sent, in order."""
    with h5py.File(folder / "run.nxs", "r") as file:
        data = file["/entry/data/data"]
        equal(data.shape, (frames, modules * ROWS, COLUMNS), "shape of the data")
        equal(list(file["/entry/data/frame_number"][:]), list(range(frames)), "frame numbers")
        for k in range(frames):
            sent = b"".join(pixels(module, k) for module in range(modules))
            check(data[k].tobytes() == sent, f"frame {k} is not what was sent")
        times = file["/entry/data/timestamp"][:]
        check(bool(numpy.all(numpy.diff(times.astype("int64")) >= 0)), "timestamps that go back")


def intact(folder, started, frames, modules=1):
    started.ends(0)
    summary = read_summary(folder)
    closes(summary, frames * modules)
    equal(summary["result"], "intact", "result")
    stored(folder, frames, modules)
    return summary


def device_case(name, kind, operation, **options):
    @case(name)
    def _(folder):
        started = receiver(folder, file_for(folder, operation=operation))
        device = Device(SOURCE)
        device.open(RECEIVER)
        equal(device.remote.ip, RECEIVER, "the address that the device is told")
        check(operation == "write" or (device.remote.rkey, device.remote.va) == (0, 0), "a key that nobody needs")
        send_frames(device, 100, kind=kind, **options)
        check(device.told_to_close(), "the device is not told that the run is over")
        summary = intact(folder, started, 100)
        equal(summary["ledger"]["modules"][0]["source"], "done", "how the source ended")
        equal(summary["link"]["packets"], 600, "packets placed")
        check(f"module 0: FEROCE front end {SOURCE}, its queue pair 256" in started.err(), "who came is not told")
        where = f"+ (k mod {SLOTS}) * {stride(1)}; {BLOCK} bytes, 6 packets"
        equal(where in started.err(), operation == "write", "where blocks go is told")


device_case("a device that writes: all frames are in the file, and it is told to close", WRITE, "write")
device_case("the same with an immediate, which says nothing", WRITE, "write", imm=12345678)
device_case("a device that sends: the receiver says where", SEND, "send")
device_case("the same with an immediate", SEND, "send", imm=12345678)


@case("a device that sends more than the run has frames is held back, and the rest is nobody's")
def _(folder):
    started = receiver(folder, file_for(folder, frames=50))
    device = Device(SOURCE)
    device.retries = 3
    device.open(RECEIVER)
    try:
        send_frames(device, 60)
        check(False, "all 60 were acknowledged")
    except Refused:
        pass  # the receiver has what it wants and is gone
    intact(folder, started, 50)


@case("two devices are two modules; every twentieth packet is lost and comes again")
def _(folder):
    frames = fewer(200, 80)
    started = receiver(folder, file_for(folder, modules=2, frames=frames))
    devices = [Device(SOURCE, drop=lambda n: n % 20 == 3), Device(OTHER, qpn=0x101, drop=lambda n: n % 20 == 17)]
    # The second is answered when the receiver takes packets, so both connect before either sends.
    devices[0].open(RECEIVER)
    devices[1].open(RECEIVER)
    send_together(devices, frames)
    summary = intact(folder, started, frames, 2)
    check(all(device.naks for device in devices), "nothing was sent again")
    check(summary["link"]["turned_away"]["gap"] > 0, "no gaps were counted")


@case("requests that come again get the same answer, before and after the start")
def _(folder):
    started = receiver(folder, file_for(folder, modules=2, frames=10))
    one, two = Device(SOURCE), Device(OTHER)
    first = one.open(RECEIVER)
    equal(one.ask(OPEN, (RECEIVER, HOST_PORT), NOBODY), first, "the second answer")
    equal(one.ask(OPEN, (RECEIVER, CM_PORT), NOBODY), first, "the answer from the other port")
    two.open(RECEIVER)
    equal(one.ask(OPEN, (RECEIVER, HOST_PORT), NOBODY), first, "the answer after the start")
    equal(unpack(one.ask(RTS, (RECEIVER, CM_PORT), one.remote)).ack, ACK, "the answer to RTS")
    equal(unpack(one.ask(CLOSE, (RECEIVER, CM_PORT), one.remote._replace(qpn=2))).ack, NO_QP,
          "the answer to CLOSE of another's queue")
    send_together([one, two], 10)
    intact(folder, started, 10, 2)


@case("a device that asks anew in mid-run is not answered: its packets would pass for old ones")
def _(folder):
    started = receiver(folder, file_for(folder))
    device = Device(SOURCE)
    device.open(RECEIVER)
    send_frames(device, 50)
    equal(device.ask(OPEN, (RECEIVER, HOST_PORT), NOBODY, 1), None, "the answer in mid-run")
    send_frames(device, 50, first=50)
    intact(folder, started, 100)


@case("garbage and strangers on the ports: counted, told at the end, and nothing else happens")
def _(folder):
    path = file_for(folder, feroce={"allow": f"{SOURCE}, 10.0.0.0/8"})
    started = receiver(folder, path)
    rng = random.Random(3)
    stranger, device = Device(OTHER), Device(SOURCE)
    for _ in range(50):
        stranger.tell(rng.randbytes(64), (RECEIVER, CM_PORT))
        device.tell(rng.randbytes(rng.choice((0, 1, 63, 65, 1400))), (RECEIVER, HOST_PORT))
        # In another's name, of a queue for management, and the start of a generator.
        device.tell(pack(OPEN, device.local._replace(ip=OTHER), NOBODY, CM_PORT), (RECEIVER, CM_PORT))
        device.tell(pack(OPEN, device.local._replace(qpn=1), NOBODY, CM_PORT), (RECEIVER, CM_PORT))
        device.tell(pack(0, device.local, NOBODY, CM_PORT, info=0), (RECEIVER, CM_PORT))
        time.sleep(0.001)
    try:
        stranger.open(RECEIVER, timeout_s=1)
        check(False, "a stranger was served")
    except Refused:
        pass
    device.open(RECEIVER)
    for k in range(0, 100, 10):
        send_frames(device, 10, first=k)
        stranger.tell(rng.randbytes(64), (RECEIVER, CM_PORT))
    intact(folder, started, 100)
    told = re.search(r"FEROCE: (\d+) datagrams from .*, (\d+) that are .*, (\d+) messages", started.err())
    check(told, "what strangers sent is not told")
    check(int(told[1]) >= 60, f"{told[1]} datagrams of strangers")
    equal(int(told[2]), 50, "datagrams that are no messages")
    equal(int(told[3]), 150, "messages that did not fit")


@case("who closes before the start makes room for another, or for itself")
def _(folder):
    started = receiver(folder, file_for(folder, modules=2, frames=10))
    one, two, three = Device(SOURCE), Device(OTHER), Device(address(0))
    one.open(RECEIVER)
    equal(one.close(), ACK, "the answer to CLOSE")
    equal(one.close(), ACK, "the answer to the same again")
    two.open(RECEIVER)
    three.open(RECEIVER)
    send_together([two, three], 10)
    intact(folder, started, 10, 2)
    equal(three.close(0.5), None, "the answer of a receiver that is gone")


@case("a device that closes early is counted as far as it came, and may come to the next run")
def _(folder):
    device = Device(SOURCE)
    for _ in range(2):
        started = receiver(folder, file_for(folder))
        device.open(RECEIVER)
        send_frames(device, 37)
        equal(device.close(), ACK, "the answer to CLOSE")
        intact(folder, started, 37)
        check("ends after 37 of the 100 frames" in started.err(), "that it is less is not told")


@case("a device that closes in the middle of a block: that block is damaged, the others are stored")
def _(folder):
    started = receiver(folder, file_for(folder))
    device = Device(SOURCE)
    device.open(RECEIVER)
    send_frames(device, 5)
    device.put(pixels(0, 5), WRITE, device.remote.va + 5 * stride(1), PMTU, packets=2)
    device.flush()
    equal(device.close(), ACK, "the answer to CLOSE")
    started.ends(2)
    closes(read_summary(folder), 6)
    equal(read_outcomes(folder)[5, 0], ("incomplete", "damaged"), "what became of it")


@case("a device that vanishes in the middle of a block: counted as far as it was seen, exit 3")
def _(folder):
    started = receiver(folder, file_for(folder, modules=2, feroce={"silence_s": 1}))
    one, two = Device(SOURCE), Device(OTHER)
    one.open(RECEIVER)
    two.open(RECEIVER)
    send_together([one, two], 20)
    one.put(pixels(0, 20), WRITE, one.remote.va + 20 % SLOTS * stride(2), PMTU, packets=3)
    one.flush()
    equal(two.close(), ACK, "the answer to CLOSE")
    one.stop()  # and never comes again
    started.ends(3)
    summary = read_summary(folder)
    equal(summary["ledger"]["sources_vanished"], 1, "sources that vanished")
    module = summary["ledger"]["modules"][0]
    equal((module["source"], module["sent"]), ("vanished", 20), "its source")
    equal(module["unfinished"], {"sequence": 20, "packets": 3}, "the block under way")
    check("the front end of module 0 fell silent" in started.err(), "that it vanished is not told")
    stored(folder, 20, 2)


@case("SIGINT while a device sends without end: the block under way is the last, and nothing is lost")
def _(folder):
    started = receiver(folder, file_for(folder, frames=1000000))
    device = Device(SOURCE)
    device.open(RECEIVER)
    send_frames(device, 20)

    def go_on():
        k = 20
        device.retries = 3  # its receiver will be gone
        while True:
            try:
                send_frames(device, 1, first=k)
            except Refused:
                return
            k += 1
    join = in_background(go_on)
    wait_for("more frames", lambda: device.count > 6 * 30)
    started.send(signal.SIGINT)
    started.ends(0)
    summary = read_summary(folder)
    sent = summary["ledger"]["total"]["sent"]
    check(sent >= 30, f"{sent} frames were counted")
    closes(summary, sent)
    stored(folder, sent)
    join()


@case("a core that waits to be asked is asked, and acknowledgements find its queue")
def _(folder):
    device = Device(SOURCE, qpn=0x103)
    join = in_background(device.be_asked)
    started = receiver(folder, file_for(folder, feroce={"open": SOURCE}))
    join()
    send_frames(device, 100)
    check(device.told_to_close(), "the device is not told that the run is over")
    intact(folder, started, 100)


@case("a core that is asked for two queue pairs loses the second request, and is asked again")
def _(folder):
    core = Core(SOURCE, slave=True, busy_s=0.2)  # far longer than 70 clocks: the second one is lost for sure
    devices = [Device(SOURCE), Device(SOURCE)]
    started = receiver(folder, file_for(folder, modules=2, frames=20, operation="send",
                                        feroce={"open": f"{SOURCE}, {SOURCE}"}))
    for device in devices:
        device.be_asked()
    check([m for m in core.lost if m.request == OPEN], "no request was lost")
    equal([device.local.qpn for device in devices], [256, 257], "numbers of the queue pairs")
    send_together(devices, 20, SEND)
    intact(folder, started, 20, 2)


@case("requests to one core come more than 70 clocks apart, so that it loses none")
def _(folder):
    core = Core(SOURCE, slave=True, busy_s=50e-6)
    devices = [Device(SOURCE) for _ in range(4)]
    started = receiver(folder, file_for(folder, modules=4, frames=10, operation="send",
                                        feroce={"open": ", ".join([SOURCE] * 4)}))
    for device in devices:
        device.be_asked()
    # The core numbers its queues in the order in which requests arrive: on a busy host that need not be the order of modules.
    line = re.compile(r"module (\d): FEROCE front end .*, its queue pair (\d+)")
    wait_for("all queue pairs are told", lambda: len(line.findall(started.err())) == 4)
    module_of = {int(number): int(module) for module, number in line.findall(started.err())}
    devices.sort(key=lambda device: module_of[device.local.qpn])
    send_together(devices, 10, SEND)
    intact(folder, started, 10, 4)
    equal(len(core.lost), 0, "requests lost")
    equal(sorted(m.remote.qpn for m in core.requests if m.request == CLOSE), [256, 257, 258, 259], "what was closed")


@case("a core whose answer to CLOSE gets lost answers 0xf9 to the next one, and that closes it too")
def _(folder):
    core = Core(SOURCE, slave=True)
    core.keep_back = 1
    device = Device(SOURCE)
    started = receiver(folder, file_for(folder, frames=10, feroce={"open": SOURCE}))
    device.be_asked()
    send_frames(device, 10)
    intact(folder, started, 10)
    equal([data[0] for data in core.answered], [0x33, 0x39, 0xF9], "the answers of the core")


@case("CLOSE goes out only after the file has its final name, however slow the disk is: a device may forget what it sent")
def _(folder):
    core, seen = Core(SOURCE, slave=True), []
    core.on_close = lambda: seen.append(harness.name_of_run(folder))
    device = Device(SOURCE)
    # The file gets its name at the end, and writing that takes half a second and more.
    started = receiver(folder, file_for(folder, frames=20, feroce={"open": SOURCE}), wrapper=on_slow_disk(50000, of="run.nxs.part"))
    device.be_asked()
    send_frames(device, 20)
    check(device.told_to_close(), "the device is not told that the run is over")
    intact(folder, started, 20)
    equal(set(seen), {harness.name_of_run(folder)}, "run.nxs at CLOSE, and in the end (inode, is there a .part)")


@case("a core that has no queue pair left refuses with the fields of its last answer: said, with what may help")
def _(folder):
    core = Core(SOURCE, slave=True)
    while len(core.numbers) > 1:
        core.numbers.popleft()
    path = file_for(folder, modules=2, feroce={"open": f"{SOURCE}, {SOURCE}"}, control={"wait_s": 3})
    run_fails("run", path, folder=folder, says=[f"front end at {SOURCE} cannot be served: it refuses",
                                                "1 of 2 modules were offered within 3 s"])


@case("two queue pairs of one core send from one port, and are two modules")
def _(folder):
    frames = fewer(50, 20)
    started = receiver(folder, file_for(folder, modules=2, frames=frames))
    devices = [Device(SOURCE, drop=lambda n: n % 20 == 3), Device(SOURCE)]
    for device in devices:
        device.open(RECEIVER)
    equal([device.local.qpn for device in devices], [256, 257], "numbers of the queue pairs")
    send_together(devices, frames)
    intact(folder, started, frames, 2)


@case("queue pair numbers of a core go round: a closed one is used again after all others")
def _(folder):
    device = Device(SOURCE, qpn=271)
    for number in (271, 256, 257):
        started = receiver(folder, file_for(folder, frames=10))
        device.open(RECEIVER)
        equal(device.local.qpn, number, "the number of the queue pair")
        send_frames(device, 5)
        equal(device.close(), ACK, "the answer to CLOSE")
        intact(folder, started, 5)
        check(f"FEROCE front end {SOURCE}, its queue pair {number}" in started.err(), "its number is not told")


@case("a core's WRITE as published has R_Key 0: refused with a NAK")
def _(folder):
    started = receiver(folder, file_for(folder, feroce={"silence_s": 1}))
    device = Device(SOURCE)
    device.open(RECEIVER)
    try:
        device.put(pixels(0, 0), WRITE, device.remote.va, PMTU, rkey=0)
        device.flush()
        check(False, "it was acknowledged")
    except Refused as refused:
        check("NAK 2" in str(refused), f"refused otherwise: {refused}")
    equal(device.close(), ACK, "the answer to CLOSE")
    started.wait()
    check(read_summary(folder)["link"]["turned_away"]["key"] > 0, "nothing was turned away for its key")


@case("packets as a core makes them: ports, identifications that count, MigReq and SE")
def _(folder):
    try:
        wire = roce.listener(RECEIVER)
    except PermissionError:
        skip("hearing packets with their IP header needs CAP_NET_RAW")
    with wire:
        started = receiver(folder, file_for(folder, frames=4, operation="send"))
        device = Device(SOURCE)
        device.open(RECEIVER)
        send_frames(device, 4, kind=SEND, imm=7)
        intact(folder, started, 4)
        wire.settimeout(0)
        heard = []
        try:
            while True:
                heard.append(wire.recv(4096))
        except BlockingIOError:
            pass
    numbers, last = [], []
    for packet in (packet for packet in heard if packet[12:16] == bytes(map(int, SOURCE.split(".")))):
        port, to = struct.unpack("!HH", packet[20:24])
        numbers.append(struct.unpack("!H", packet[4:6])[0])
        equal((packet[6:9], packet[26:28]), (b"\x40\0\x40", b"\0\0"), "don't fragment, TTL and UDP checksum")
        equal(port, DATA_SOURCE_PORT if to == 4791 else CM_SOURCE_PORT, f"the source port of a packet to {to}")
        if to == 4791:
            equal(packet[29] & (MIG_REQ | SOLICITED), MIG_REQ | (SOLICITED if packet[28] == 3 else 0), "MigReq and SE")
            last.append(packet[28] == 3)
    equal(numbers, list(range(len(numbers))), "identifications")
    check(sum(last) >= 4, "no block ends")


@case("a core that is asked late, and answers the second time")
def _(folder):
    started = receiver(folder, file_for(folder, frames=10, feroce={"open": SOURCE}))
    wait_for("its first request", lambda: "waiting for" in started.err())
    time.sleep(0.2)
    device = Device(SOURCE)
    device.be_asked()
    send_frames(device, 10)
    intact(folder, started, 10)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def with_record(module, k):
    """A block as firmware sends it that writes records: frame numbers and time are its own."""
    record = struct.pack("<QQQQIIIIHHIHH", k, k, 1000 * k, 0, BLOCK, 0, 1, 7, module, 0, 0, 1, 0)
    return pixels(module, k) + record + struct.pack("<I", crc32c(record))


@case("firmware that writes records: they are checked, and their timestamps are in the file")
def _(folder):
    frames = 20
    started = receiver(folder, file_for(folder, frames=frames, feroce={"record": True}))
    device = Device(SOURCE)
    device.open(RECEIVER)
    send_frames(device, frames, block=with_record)
    intact(folder, started, frames)
    with h5py.File(folder / "run.nxs", "r") as file:
        equal(list(file["/entry/data/timestamp"][:]), [1000 * k for k in range(frames)], "timestamps")


@case("dark frames come first, though nobody says so")
def _(folder):
    path = file_for(folder, frames=30)
    started = receiver(folder, path, "--set", "detector.dark_frames=10")
    device = Device(SOURCE)
    device.open(RECEIVER)
    send_frames(device, 40)
    started.ends(0)
    outcomes = read_outcomes(folder)
    equal([k for k in range(40) if outcomes[k, 0] == ("vetoed", "dark")], list(range(10)), "dark frames")
    equal(sum(outcome == ("stored", "none") for outcome in outcomes.values()), 30, "frames stored")


@case("blocks of another size are refused with a NAK, and counted")
def _(folder):
    started = receiver(folder, file_for(folder, frames=10, feroce={"silence_s": 1}))
    device = Device(SOURCE)
    device.open(RECEIVER)
    send_frames(device, 3)
    try:
        device.put(pixels(0, 3) + bytes(PMTU), WRITE, device.remote.va + 3 * stride(1), PMTU)
        device.flush()
        check(False, "it was acknowledged")
    except Refused as refused:
        check("NAK 2" in str(refused), f"refused otherwise: {refused}")
    equal(device.close(), ACK, "the answer to CLOSE")
    status = started.wait()
    summary = read_summary(folder)
    check(status in (0, 2), f"exit status {status}")
    closes(summary)
    check(summary["link"]["turned_away"]["range"] > 0, "nothing was turned away")


@case("a write outside the ring is refused with a NAK, and the run says what it has")
def _(folder):
    started = receiver(folder, file_for(folder, feroce={"silence_s": 1}))
    device = Device(SOURCE)
    device.open(RECEIVER)
    send_frames(device, 3)
    try:
        device.put(pixels(0, 3), WRITE, device.remote.va + (1 << 40), PMTU)
        device.flush()
        check(False, "it was acknowledged")
    except Refused as refused:
        check("NAK 2" in str(refused), f"refused otherwise: {refused}")
    equal(device.close(), ACK, "the answer to CLOSE")
    intact(folder, started, 3)


@case("a device whose connection failed, and that says nothing more, is lost by name: the run ends")
def _(folder):
    started = receiver(folder, file_for(folder, feroce={"silence_s": 1}))
    device = Device(SOURCE)
    device.open(RECEIVER)
    try:
        device.put(pixels(0, 0), WRITE, device.remote.va + (1 << 40), PMTU)
        device.flush()
        check(False, "it was acknowledged")
    except Refused:
        pass
    started.ends(3)
    equal(read_summary(folder)["result"], "unclosed", "result")
    check("module 0 is lost: its reliable connection failed" in started.err(), "it is not named")


@case("devices that do not begin together: the first is told to wait for the second, and nothing is lost")
def _(folder):
    frames = fewer(100, 40)
    path = file_for(folder, modules=2, frames=frames)
    started = receiver(folder, path, "--set", "ring.late_timeout_ms=300")
    devices = [Device(SOURCE), Device(OTHER, qpn=0x101)]
    devices[0].open(RECEIVER)
    devices[1].open(RECEIVER)

    def second():
        time.sleep(1.5)
        send_frames(devices[1], frames, 1, 2)
    in_background(lambda: send_frames(devices[0], frames, 0, 2), second)()
    intact(folder, started, frames, 2)


@case("a device that has a plan and never sends is given up by name after first_s: the other one's frames come in, and the run ends")
def _(folder):
    started = receiver(folder, file_for(folder, modules=2, frames=20, feroce={"first_s": 2}), "--set", "ring.late_timeout_ms=300")
    sends, never = Device(SOURCE), Device(OTHER, qpn=0x101)
    sends.open(RECEIVER)
    never.open(RECEIVER)
    send_frames(sends, 20, 0, 2)  # more than the slots: it is held back until the other one is given up
    started.ends(3)
    summary = read_summary(folder)
    equal(summary["result"], "unclosed", "result")
    modules = summary["ledger"]["modules"]
    equal([(m["source"], m["sent"]) for m in modules], [("done", 20), ("vanished", 0)], "the sources")
    equal(modules[0]["outcomes"]["incomplete"], 20, "frames without their partner")
    says = f"the front end of module 1 at {OTHER} is given up: nothing came of it within 2 s (feroce.first_s); its frames are missing"
    check(says in started.err(), f"it is not named: {started.err()}")


@case("no device within the time: an error that says so")
def _(folder):
    path = file_for(folder, modules=2, control={"wait_s": 1})
    run_fails("run", path, folder=folder, says=["0 of 2 modules were offered within 1 s"])


@case("plans are not given away off this host, and the emulator is no device")
def _(folder):
    run_fails("run", file_for(folder, feroce={"address": "192.0.2.1"}), folder=folder, says=["feroce.allow"])
    run_fails("run", file_for(folder), "--emulate", folder=folder, says=["--emulate"])
    run_fails("run", file_for(folder, link={"service": "uc"}), folder=folder, says=["link.service: rc"])
    path = file_for(folder, modules=1, control={"wait_s": 3})
    started = receiver(folder, path)
    front_end = Program("emulate", path, "--once", folder=folder)
    check(front_end.wait() != 0, "a front end over TCP was served")
    started.ends(1)


if __name__ == "__main__":
    main()
