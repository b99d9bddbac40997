#!/usr/bin/python3
"""garbage_test.py - what strangers send: to the data port, to the control port, to the front end. None of it harms the
run, and all that reaches the data port is counted under its cause."""

import os
import random
import socket
import struct
import subprocess
import time

from harness import (CONTROL_PORT, LONG, RECEIVER, ROCE_PORT, SLUICE, SOURCE, TIMEOUT_S, Program, address, case, check, equal,
                     experiment, fewer, images_on_disk, intact, main, read_summary, receiver, skip, wait_for)
from roce import UC_WRITE_ONLY, bth, datagram, listener, reth, seal, sender, write_only

TO = RECEIVER, ROCE_PORT
STRANGER = address(3)
SOME = 20  # of each kind: few enough for the smallest receive buffer
FRAMES = 100
DETECTOR = {**LONG, "rows": 64, "columns": 64, "frames": FRAMES}  # two seconds, in which garbage comes


def random_bytes(udp, rng):
    return rng.randbytes(rng.randrange(1, 1500))


def good_but_for_the_end(udp, rng):
    """A right packet, cut off: too short, or no longer what its ICRC is of."""
    packet = seal(udp, TO, write_only(rng.randrange(1 << 24), 7, 4096, 1, bytes(256)))
    return packet[:rng.randrange(1, len(packet))]


def bad_icrc(udp, rng):
    packet = seal(udp, TO, write_only(rng.randrange(1 << 24), 7, 4096, 1, rng.randbytes(256)))
    return packet[:-1] + bytes([packet[-1] ^ 1])


def unknown_queue(udp, rng):
    # Queue 1 is for management and never one of ours.
    return seal(udp, TO, write_only(1, rng.randrange(1 << 24), 4096, rng.randrange(1 << 32), rng.randbytes(256)))


def unknown_opcode(udp, rng):
    return seal(udp, TO, bth(0xFF, 17, 0) + rng.randbytes(64))


def wrong_length(udp, rng):
    """Three bytes too many for what the padding says."""
    return seal(udp, TO, bth(UC_WRITE_ONLY, 17, 0) + reth(0, 0, 64) + bytes(67))


# kind: how it is made, under which causes it counts
KINDS = {
    "random bytes": (random_bytes, {"malformed", "icrc"}),
    "truncated packets": (good_but_for_the_end, {"malformed", "icrc"}),
    "empty datagrams": (lambda udp, rng: b"", {"malformed"}),
    "packets with a wrong ICRC": (bad_icrc, {"icrc"}),
    "packets for a queue that does not exist": (unknown_queue, {"queue"}),
    "packets with an unknown opcode": (unknown_opcode, {"malformed"}),
    "packets of an impossible length": (wrong_length, {"malformed"}),
    "datagrams of 65507 bytes": (lambda udp, rng: rng.randbytes(65507), {"malformed"}),
}


def send_kind(make, count, pause_s=0.0):
    rng = random.Random(5)
    with sender(STRANGER) as udp:
        for _ in range(count):
            udp.sendto(make(udp, rng), TO)
            time.sleep(pause_s)


def counted(folder, started, causes, count):
    """The run is intact, and as many packets as were sent are counted under these causes, no others."""
    started.ends(0)
    summary = read_summary(folder)
    intact(started, summary, FRAMES)
    turned_away = summary["link"]["turned_away"]
    equal(sum(turned_away[cause] for cause in causes), count, f"turned away as {' or '.join(sorted(causes))}")
    equal({cause: n for cause, n in turned_away.items() if n and cause not in causes}, {}, "turned away otherwise")


def garbage_case(name, make, causes):
    @case(f"{name}, before and during a run")
    def _(folder):
        path = experiment(folder, detector=DETECTOR, emulate="none")
        started = receiver(folder, path)
        large = name.startswith("datagrams of")
        before = 1 if large else SOME  # they wait in the receive buffer until the run begins
        send_kind(make, before)
        front_end = Program("emulate", path, folder=folder)
        wait_for("frames", lambda: images_on_disk(folder) > 2)
        send_kind(make, SOME, 0.01)
        front_end.ends(0)
        counted(folder, started, causes, before + SOME)


for kind, (maker, under) in KINDS.items():
    garbage_case(kind, maker, under)


@case("a steady rain of everything while data comes in as fast as it can: nothing is lost")
def _(folder):
    detector = {"rows": 256, "columns": 256, "frames": fewer(2000, 300)}
    started = receiver(folder, experiment(folder, detector=detector))
    rng = random.Random(9)
    with sender(STRANGER) as udp:
        udp.setblocking(False)
        makers = [maker for maker, _ in KINDS.values()][:-1]
        packets = [rng.choice(makers)(udp, rng) for _ in range(200)]
        while started.running():
            udp.sendto(rng.choice(packets), TO)
            time.sleep(0.001)
    started.ends(0)
    summary = read_summary(folder)
    intact(started, summary, detector["frames"])
    check(sum(summary["link"]["turned_away"].values()) > 0, "nothing of it was counted")


def overhear(folder, **sections):
    """A run whose frames have just begun to come, and the body of a packet of it: what a program knows that listens to the network."""
    # On loopback the kernel cuts no packets from larger sends, and they would be heard as one.
    link = {"segment": False, **sections.pop("link", {})}
    path = experiment(folder, detector={**DETECTOR, "frame_rate_Hz": 25}, link=link, emulate="none", **sections)
    started = receiver(folder, path)
    try:
        heard = listener(RECEIVER)
    except PermissionError:
        skip("listening to the loopback interface takes CAP_NET_RAW")
    front_end = Program("emulate", path, folder=folder)
    with heard:
        heard.settimeout(TIMEOUT_S)
        port = None
        while port != ROCE_PORT:  # the control connection is heard, too
            source, port, packet = datagram(heard.recv(9000))
    equal((source, packet[0]), (SOURCE, UC_WRITE_ONLY), "source and opcode of a packet")
    return started, front_end, packet[:-4]


@case("packets that know the queue: wrong sender, key or place, and copies of old ones")
def _(folder):
    started, front_end, body = overhear(folder)
    wait_for("frames", lambda: images_on_disk(folder) > 2)
    va, rkey, _ = struct.unpack("!QII", body[12:28])
    changed = {
        "key": body[:12] + reth(va, rkey ^ 1, len(body) - 28) + body[28:],
        "range": body[:12] + reth(va + (1 << 40), rkey, len(body) - 28) + body[28:],
        "late": body,  # an old packet again
        "peer": body,
    }
    for cause, changed_body in changed.items():
        with sender(STRANGER if cause == "peer" else SOURCE) as udp:
            for _ in range(3):
                udp.sendto(seal(udp, TO, changed_body), TO)
    front_end.ends(0)
    started.ends(0)
    summary = read_summary(folder)
    intact(started, summary, FRAMES)
    turned_away = summary["link"]["turned_away"]
    # The frame of the packet that was copied may still have been on its way.
    old = turned_away.pop("late") + turned_away.pop("duplicate")
    equal((turned_away.pop("key"), turned_away.pop("range"), turned_away.pop("peer"), old), (3, 3, 3, 3),
          "turned away for key, range, peer, and being old")
    equal(set(turned_away.values()), {0}, "turned away otherwise")


def laps_ahead(body, laps):
    """The packet as it would be so many laps of the ring later: the same place in memory, the right key, another PSN."""
    qpn, psn = struct.unpack("!II", body[4:12])
    ahead = psn + laps * SLOTS * PACKETS & 0xFFFFFF
    return body[:4] + struct.pack("!II", qpn, ahead) + body[12:]


SLOTS, PACKETS = 8, 3  # blocks of 64 x 64 pixels and a record, PMTU 4096
# Options of the link; laps ahead of one of the first packets, and as what that is turned away. Lap 12 has frames that are offered and not
# granted yet, lap 100 is beyond the offer of 100 frames, lap 300000 as far as 24 bits of a PSN can tell.
AHEAD = {
    "with credits, beyond the grant and beyond the offer": ({}, {12: "ahead", 100: "range", 300000: "range"}),
    "without credits, beyond the offer": ({"credits": False}, {100: "range", 300000: "range"}),
}


def ahead_case(what, link, causes):
    @case(f"packets with a valid key, some laps ahead, {what}: turned away, and all frames are stored")
    def _(folder):
        started, front_end, body = overhear(folder, link=link, ring={"slots": SLOTS, "late_frames": 4})
        with sender(SOURCE) as udp:
            for laps in causes:
                for _ in range(3):
                    udp.sendto(seal(udp, TO, laps_ahead(body, laps)), TO)
        front_end.ends(0)
        started.ends(0)
        summary = read_summary(folder)
        intact(started, summary, FRAMES)
        turned_away = {cause: 3 * list(causes.values()).count(cause) for cause in causes.values()}
        equal({cause: n for cause, n in summary["link"]["turned_away"].items() if n}, turned_away, "turned away")


for what, (link, causes) in AHEAD.items():
    ahead_case(what, link, causes)


def udp_sockets(address_text):
    """Ports of the UDP sockets that are bound to an address."""
    wanted = "%08X" % struct.unpack("<I", socket.inet_aton(address_text))
    with open("/proc/net/udp", encoding="ascii") as table:
        rows = [line.split()[1].split(":") for line in table.readlines()[1:]]
    return [int(port, 16) for ip, port in rows if ip == wanted]


@case("garbage to the front end's sockets, where its credits come in")
def _(folder):
    path = experiment(folder, detector=DETECTOR, emulate="none")
    started = receiver(folder, path)
    front_end = Program("emulate", path, folder=folder)
    wait_for("frames", lambda: images_on_disk(folder) > 2)
    ports = udp_sockets(SOURCE)
    equal(len(ports), 2, "sockets of the front end, one per module")
    rng = random.Random(3)
    with sender(STRANGER) as udp:
        for maker, _ in KINDS.values():
            for _ in range(10):
                for port in ports:
                    udp.sendto(maker(udp, rng), (SOURCE, port))
    front_end.ends(0)
    counted(folder, started, set(), 0)


def talk(data):
    """Say this at the control port; what comes back, once the other side hangs up."""
    with socket.create_connection((RECEIVER, CONTROL_PORT), timeout=30) as peer:
        peer.sendall(data)
        answer = b""
        try:
            while chunk := peer.recv(4096):
                answer += chunk
        except ConnectionResetError:
            pass  # it hung up on what it had not read
        return answer


HEADER = b"SLC1" + struct.pack("<HHI", 2, 1, 134)  # of a greeting that never comes


@case("garbage at the control port: told why, hung up on, and the run goes on")
def _(folder):
    path = experiment(folder, detector=DETECTOR, emulate="none")
    started = receiver(folder, path)

    def bother():
        rng = random.Random(11)
        for data in (b"GET / HTTP/1.1\r\nHost: sluice\r\n\r\n", rng.randbytes(5000), b"\x16\x03\x01" + bytes(500)):
            check(b"not the plan protocol" in talk(data), "it was not told why")
        check(b"another version" in talk(b"SLC1" + struct.pack("<HHI", 99, 1, 0)), "it was not told of the version")
        talk(b"SLC1" + struct.pack("<HHI", 2, 1, 0xFFFFFFFF))  # a length that nobody has
        talk(b"SLC1" + struct.pack("<HHI", 2, 77, 0))  # no such message
        talk(b"SLC1" + struct.pack("<HHI", 2, 4, 0))  # READY, out of turn
        talk(HEADER + rng.randbytes(134))  # a greeting of noise

    bother()
    half = [socket.create_connection((RECEIVER, CONTROL_PORT), timeout=30) for _ in range(4)]
    for peer in half[:2]:
        peer.sendall(HEADER + bytes(20))  # half a message; the other two stay silent
    front_end = Program("emulate", path, folder=folder)
    wait_for("frames", lambda: images_on_disk(folder) > 2)
    bother()
    for peer in half:
        peer.close()
    front_end.ends(0)
    counted(folder, started, set(), 0)


def strange():
    """A stranger at the control port; false: there is no receiver (yet, or any more)."""
    try:
        with socket.create_connection((RECEIVER, CONTROL_PORT), timeout=1) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return True
    except OSError:
        time.sleep(0.01)
        return False


@case("hundreds of refusals with a log that is not read: the run ends, and one place logs no more than its share")
def _(folder):
    path = experiment(folder, detector=DETECTOR, emulate="none")
    reader, writer = os.pipe()
    unread = f"exec {SLUICE} run {path} --summary {folder}/summary.json 2>&{writer}"
    os.set_inheritable(writer, True)
    started = subprocess.Popen(["/bin/sh", "-c", unread], stdout=subprocess.DEVNULL, close_fds=False, cwd=folder)
    try:
        os.close(writer)
        # By number, not by time: on a busy machine strangers are slow, too. Half of them come before the front end.
        end = time.monotonic() + TIMEOUT_S
        while not strange() and time.monotonic() < end:
            pass
        refused = sum(strange() for _ in range(300))
        front_end = Program("emulate", path, folder=folder)
        refused += sum(strange() for _ in range(300))
        check(refused > 250, f"only {refused} strangers came")
        front_end.ends(0)
        equal(started.wait(TIMEOUT_S), 0, "exit status")  # not a line was read
    finally:
        started.kill()
        started.wait()
    with open(reader, "rb") as pipe:
        said = pipe.read().decode()
    check(said.count("was turned away") <= 200, "one place logged more than its share")
    equal(read_summary(folder)["result"], "intact", "result")


@case("more silent strangers at the control port than it has room for: the front end still gets in")
def _(folder):
    path = experiment(folder, control={"silence_s": 2}, emulate="none")
    started = receiver(folder, path)
    silent = [socket.create_connection((RECEIVER, CONTROL_PORT), timeout=30) for _ in range(100)]
    Program("emulate", path, folder=folder).ends(0)
    started.ends(0)
    intact(started, read_summary(folder), 200)
    for peer in silent:
        peer.close()


main()
