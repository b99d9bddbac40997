#!/usr/bin/python3
"""wire_test.py - what really goes over the wire: captures a run on loopback and takes its packets apart with code that
shares nothing with ours. Checks the ICRC over the IP header that the kernel sent, which no socket shows."""
# with sanitizers in check-long

import collections
import socket
import struct
import threading
import zlib

from harness import RECEIVER, SOURCE, acquire, case, check, closes, equal, main, skip
from roce import listener, sender

SEND_FIRST, SEND_MIDDLE, SEND_LAST_IMM = 0x20, 0x21, 0x23
RC_WRITE_ONLY, RC_WRITE_ONLY_IMM, RC_ACK = 0x0A, 0x0B, 0x11
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = 0x26, 0x27, 0x29, 0x2A, 0x2B


class Capture:
    """Everything between our two addresses, while it lasts."""

    END = b"that was all"

    def __init__(self):
        try:
            self.socket = listener(RECEIVER, SOURCE)
        except PermissionError:
            skip("capturing packets needs CAP_NET_RAW")
        self.packets = []
        self.thread = threading.Thread(target=self.collect)
        self.thread.start()

    def collect(self):
        ours = {socket.inet_aton(RECEIVER), socket.inet_aton(SOURCE)}
        while not self.packets or self.packets[-1][28:] != self.END:
            packet, (_, _, kind, *_) = self.socket.recvfrom(65536)
            # On lo each packet is seen going out and coming in: take one of the two.
            if kind != socket.PACKET_OUTGOING and packet[9] == 17 and {packet[12:16], packet[16:20]} == ours:
                self.packets.append(packet)
        self.packets.pop()

    def end(self):
        with sender(SOURCE) as udp:
            udp.sendto(self.END, (RECEIVER, 9))
        self.thread.join()
        self.socket.close()
        return self.packets


def icrc(packet):
    """The InfiniBand invariant CRC of an IPv4 packet, by the book."""
    masked = bytearray(packet[:-4])
    masked[1] = masked[8] = masked[10] = masked[11] = 0xFF  # TOS, TTL, header checksum
    masked[26] = masked[27] = 0xFF  # UDP checksum
    masked[32] = 0xFF  # FECN, BECN, reserved
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(masked)))


def captured(folder, link=None, **sections):
    """On loopback the kernel cuts no packets from larger sends: here each packet is sent by itself."""
    sections["link"] = {"segment": False, **(link or {})}
    capture = Capture()
    try:
        program, summary = acquire(folder, detector={"frames": 20}, **sections)
    finally:
        packets = capture.end()
    equal(program.process.returncode, 0, "exit status")
    closes(summary, 40)
    check(packets, "nothing was captured")
    return packets, summary


def data_and_credits(packets):
    to = socket.inet_aton(RECEIVER)
    return [p for p in packets if p[16:20] == to], [p for p in packets if p[16:20] != to]


@case("every packet is RoCEv2: port, DF, id 0, ICRC over the real IP header")
def _(folder):
    packets, _summary = captured(folder)
    for packet in packets:
        equal(packet[0], 0x45, "version and header length")
        equal(packet[6:8], b"\x40\x00", "don't-fragment, no fragment offset")
        equal(packet[4:6], b"\0\0", "IP identification")
        equal(packet[-4:], icrc(packet), "ICRC")
        equal(packet[29] & 15, 0, "transport version")
        equal(packet[30:32], b"\xff\xff", "P_Key")
    data, credits = data_and_credits(packets)
    equal({struct.unpack(">H", p[22:24])[0] for p in data}, {4791}, "destination port")
    equal(len({struct.unpack(">H", p[20:22])[0] for p in data}), 2, "source ports: one per queue")
    check(credits, "no credits came back")


@case("a frame goes as WRITE_ONLY packets, the last with the sequence as immediate, PSNs without a gap")
def _(folder):
    packets, summary = captured(folder)
    data, _credits = data_and_credits(packets)
    equal(len(data), summary["link"]["packets"], "packets on the wire, beside those placed")
    queues = collections.defaultdict(list)
    for packet in data:
        queues[packet[33:36]].append(packet)
    equal(len(queues), 2, "queue pairs")
    for stream in queues.values():
        psn = [int.from_bytes(p[37:40], "big") for p in stream]
        equal(psn, [(psn[0] + i) % (1 << 24) for i in range(len(psn))], "PSNs")
        opcodes = collections.Counter(p[28] for p in stream)
        equal(set(opcodes), {WRITE_ONLY, WRITE_ONLY_IMM}, "opcodes")
        immediates = [struct.unpack(">I", p[56:60])[0] for p in stream if p[28] == WRITE_ONLY_IMM]
        equal(immediates, list(range(20)), "immediates")
        equal(len({p[48:52] for p in stream}), 1, "keys of one queue")


@case("message: module sends FIRST, MIDDLEs and LAST with immediate")
def _(folder):
    packets, _summary = captured(folder, link={"message": "module", "pmtu": 1024})
    data, _credits = data_and_credits(packets)
    equal({p[28] for p in data}, {WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST_IMM}, "opcodes")
    for packet in data:
        equal(packet[-4:], icrc(packet), "ICRC")


@case("service: rc sends RC writes, asks for acknowledgements, and gets them, few of them")
def _(folder):
    packets, _summary = captured(folder, link={"service": "rc", "pmtu": 1024})
    data, back = data_and_credits(packets)
    for packet in packets:
        equal(packet[-4:], icrc(packet), "ICRC")
    equal({p[28] for p in data}, {RC_WRITE_ONLY, RC_WRITE_ONLY_IMM, RC_ACK}, "opcodes to the receiver")
    equal({p[28] for p in back}, {RC_WRITE_ONLY, RC_ACK}, "opcodes back")
    acks = [p for p in back if p[28] == RC_ACK]
    equal({p[40] for p in acks}, {0x1F}, "syndromes: all good, no word on credits")
    writes = [p for p in data if p[28] != RC_ACK]
    check(len(acks) < len(writes), f"{len(acks)} acknowledgements of {len(writes)} packets")
    check(any(p[36] & 0x80 for p in writes), "no acknowledgement was asked for")


@case("operation: send has no addresses on the wire")
def _(folder):
    packets, _summary = captured(folder, link={"operation": "send", "pmtu": 1024})
    data, _credits = data_and_credits(packets)
    equal({p[28] for p in data}, {SEND_FIRST, SEND_MIDDLE, SEND_LAST_IMM}, "opcodes")
    for packet in data:
        equal(packet[-4:], icrc(packet), "ICRC")


@case("credits are 8-byte RDMA writes whose value only grows")
def _(folder):
    packets, _summary = captured(folder)
    _data, credits = data_and_credits(packets)
    last = {}
    for packet in credits:
        equal(packet[28], WRITE_ONLY, "opcode")
        equal(struct.unpack(">I", packet[52:56])[0], 8, "length")
        queue, grant = packet[33:36], struct.unpack("<Q", packet[56:64])[0]
        check(grant >= last.get(queue, 0), "a grant was taken back")
        last[queue] = grant
    equal(len(last), 2, "queues that got credits")


main()
