#!/usr/bin/python3
"""dissect_test.py - what we send, as others read it: every kind of packet that we send is dissected by tshark, with the
fields that were meant, and its ICRC is what scapy and zlib say.

The capture and the intentions come from tests/dissect/roce_pcap.c; what an opcode is called, which headers it has and
how an ICRC is computed are written down here once more, independently."""

import json
import pathlib
import shutil
import struct
import subprocess
import zlib

import harness
from harness import case, check, equal, skip

GENERATOR = pathlib.Path(harness.SLUICE).parent / "tests/dissect/roce_pcap"
TRANSPORTS = {"RC": 0x00, "UC": 0x20, "UD": 0x60}
# (kind, position, with immediate): the lower five bits
OPERATIONS = {
    ("send", "first", False): 0x00, ("send", "middle", False): 0x01, ("send", "last", False): 0x02,
    ("send", "last", True): 0x03, ("send", "only", False): 0x04, ("send", "only", True): 0x05,
    ("write", "first", False): 0x06, ("write", "middle", False): 0x07, ("write", "last", False): 0x08,
    ("write", "last", True): 0x09, ("write", "only", False): 0x0A, ("write", "only", True): 0x0B,
    ("read", "only", False): 0x0C,
    ("response", "first", False): 0x0D, ("response", "middle", False): 0x0E, ("response", "last", False): 0x0F,
    ("response", "only", False): 0x10, ("acknowledge", "only", False): 0x11,
}
CNP = 0x81
# All that this program ever sends: everything above over RC, SEND and WRITE over UC, two over UD, and CNPs.
OPCODES = {*range(0x00, 0x12), *range(0x20, 0x2C), 0x64, 0x65, CNP}
# tshark's name for each field of an intention
FIELDS = {
    "opcode": "infiniband.bth.opcode", "qpn": "infiniband.bth.destqp", "psn": "infiniband.bth.psn",
    "pad": "infiniband.bth.padcnt", "solicited": "infiniband.bth.se", "ackreq": "infiniband.bth.a",
    "pkey": "infiniband.bth.p_key", "va": "infiniband.reth.va", "rkey": "infiniband.reth.r_key",
    "length": "infiniband.reth.dmalen", "imm": "infiniband.immdt", "syndrome": "infiniband.aeth.syndrome",
    "msn": "infiniband.aeth.msn", "qkey": "infiniband.deth.q_key", "source_qpn": "infiniband.deth.srcqp",
    "udp_length": "udp.length", "malformed": "_ws.malformed", "ip_checksum": "ip.checksum.status",
    "udp_checksum": "udp.checksum.status",
}
CHECKSUM_GOOD, CHECKSUM_ABSENT = 1, 3


def opcode_of(packet):
    if packet["kind"] == "cnp":
        return CNP
    return TRANSPORTS[packet["transport"]] | OPERATIONS[packet["kind"], packet["position"], "imm" in packet]


def header_bytes(packet):
    """BTH, and what the intention has: RETH, immediate, AETH, DETH; or the reserved bytes of a CNP."""
    present = (("va", 16), ("imm", 4), ("syndrome", 4), ("qkey", 8))
    return 12 + sum(size for name, size in present if name in packet) + (16 if packet["kind"] == "cnp" else 0)


def generate(folder):
    """The capture file, and what was meant by each of its packets."""
    if not GENERATOR.exists():
        skip(f"{GENERATOR.name} was not built (meson option tests)")
    capture, intentions = folder / "all.pcap", folder / "all.jsonl"
    subprocess.run([GENERATOR, capture, intentions], check=True)
    packets = [json.loads(line) for line in intentions.read_text().splitlines()]
    for packet in packets:
        packet["opcode"] = opcode_of(packet)
        packet["pad"] = -packet["payload"] % 4
        packet["pkey"] = 0xFFFF
        packet["udp_length"] = 8 + header_bytes(packet) + packet["payload"] + packet["pad"] + 4
    return capture, packets


def frames(capture):
    """The Ethernet frames of a capture file."""
    data, at = capture.read_bytes(), 24
    while at < len(data):
        size = struct.unpack("=I", data[at + 8:at + 12])[0]
        yield data[at + 16:at + 16 + size]
        at += 16 + size


def write_frames(path, capture, changed):
    """Another capture file with other frames."""
    header = capture.read_bytes()[:24]
    records = [struct.pack("=IIII", 0, 0, len(frame), len(frame)) + frame for frame in changed]
    path.write_bytes(header + b"".join(records))
    return path


def number(text):
    """A field of tshark's: absent, a flag, decimal, hexadecimal with 0x; immediates are bare bytes."""
    if text in ("", "True", "False"):
        return {"": None, "True": 1, "False": 0}[text]
    return int(text, 0)


def dissect(capture):
    """What tshark reads: a dictionary per packet."""
    if not shutil.which("tshark"):
        skip("tshark is not installed")
    # Protocols that guess by looking into payloads have no place here: ours is no RPC, whatever it looks like.
    listing = subprocess.run(["tshark", "-G", "heuristic-decodes"], capture_output=True, text=True, check=True).stdout
    guessers = [line.split()[1] for line in listing.splitlines() if line.startswith("infiniband.payload")]
    command = ["tshark", "-n", "-r", capture, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
               "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]
    command += [word for name in guessers for word in ("--disable-protocol", name)]
    command += [word for name in FIELDS.values() for word in ("-e", name)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    for line in run.stdout.splitlines():
        fields = dict(zip(FIELDS, line.split("|"), strict=True))
        fields["imm"] = "0x" + fields["imm"] if fields["imm"] else ""
        fields["malformed"] = "1" if fields["malformed"] else ""
        yield {name: number(text) for name, text in fields.items()}


def icrc(frame):
    """Of an Ethernet frame, by zlib: eight bytes of ones, then everything from the IP header to the padding, with the
    fields that change on the way set to ones."""
    packet = bytearray(frame[14:-4])
    if packet[0] >> 4 == 4:
        udp = 20
        packet[1] = packet[8] = packet[10] = packet[11] = 0xFF
    else:
        udp = 40
        packet[0:4] = b"\x6f\xff\xff\xff"
        packet[7] = 0xFF
    packet[udp + 6:udp + 8] = b"\xff\xff"
    packet[udp + 8 + 4] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + packet))


def scapy_icrc(frame):
    """The same by scapy."""
    try:
        from scapy.contrib.roce import BTH
        from scapy.layers.l2 import Ether
    except ImportError:
        skip("python3-scapy is not installed")
    return Ether(frame)[BTH].compute_icrc(b"")


@case("the capture has every opcode that we send, over IPv4 and IPv6, with all path MTUs")
def capture_is_complete(folder):
    _, packets = generate(folder)
    for version in (4, 6):
        equal({packet["opcode"] for packet in packets if packet["ip"] == version}, OPCODES, f"opcodes over IPv{version}")
    payloads = {packet["payload"] for packet in packets}
    check({0, 1, 3, 256, 512, 1024, 2048, 4096} <= payloads, "path MTUs, empty and odd lengths")
    check({packet["pad"] for packet in packets} == {0, 1, 2, 3}, "all kinds of padding")
    check({packet["syndrome"] for packet in packets if "syndrome" in packet} == {0x1F, 0x2C, 0x60, 0x61, 0x62},
          "ACK, RNR NAK, and the NAKs that we send")


@case("tshark dissects every packet as it was meant, none malformed")
def tshark_agrees(folder):
    capture, packets = generate(folder)
    seen = list(dissect(capture))
    equal(len(seen), len(packets), "packets")
    for index, (got, meant) in enumerate(zip(seen, packets), 1):
        equal(got["malformed"], None, f"packet {index} is malformed: {meant}")
        for name in FIELDS:
            if name in meant or name in ("va", "imm", "syndrome", "qkey"):
                # A field that was not meant must not be there either.
                equal(got[name], meant.get(name), f"{name} of packet {index}, {meant}")


@case("tshark finds the checksums of IP and UDP right")
def tshark_checksums(folder):
    capture, packets = generate(folder)
    for index, (got, meant) in enumerate(zip(dissect(capture), packets), 1):
        equal(got["ip_checksum"], CHECKSUM_GOOD if meant["ip"] == 4 else None, f"IP header checksum of packet {index}")
        check(got["udp_checksum"] == CHECKSUM_GOOD or (got["udp_checksum"] == CHECKSUM_ABSENT and meant["ip"] == 4),
              f"UDP checksum of packet {index}: {got['udp_checksum']}")


@case("tshark calls a packet malformed that is cut short")
def tshark_can_complain(folder):
    capture, packets = generate(folder)
    index = next(i for i, packet in enumerate(packets) if packet["kind"] == "read")
    short = bytearray(list(frames(capture))[index][:-20])
    short[16:18] = struct.pack("!H", len(short) - 14)
    short[38:40] = struct.pack("!H", len(short) - 34)
    seen = list(dissect(write_frames(folder / "short.pcap", capture, [short])))
    check(seen[0]["malformed"], "a READ request without a whole RETH")


@case("the ICRC of every packet is zlib's, and no other")
def zlib_agrees(folder):
    capture, packets = generate(folder)
    every = list(frames(capture))
    equal(len(every), len(packets), "packets")
    for index, frame in enumerate(every, 1):
        equal(frame[-4:].hex(), icrc(frame).hex(), f"ICRC of packet {index}")
        damaged = frame[:-5] + bytes([frame[-5] ^ 1]) + frame[-4:]
        check(icrc(damaged) != frame[-4:], f"packet {index}: damage is not seen")


@case("the ICRC of every packet over IPv4 is scapy's")
def scapy_agrees(folder):
    capture, packets = generate(folder)
    compared = 0
    for index, (frame, meant) in enumerate(zip(frames(capture), packets), 1):
        if meant["ip"] == 4:  # the scapy of Debian 12 knows no ICRC over IPv6
            equal(frame[-4:].hex(), scapy_icrc(frame).hex(), f"ICRC of packet {index}, {meant}")
            compared += 1
    check(compared > len(packets) // 3, "packets compared")


if __name__ == "__main__":
    harness.main()
