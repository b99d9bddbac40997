#!/usr/bin/python3
"""frontend.py - a whole front end in Python, with nothing of Sluice in it: what an FPGA or its control software has to do.

    sluice run examples/my-detector.yaml          # in one terminal
    examples/frontend.py                          # in another

It asks the receiver for a plan, sends frames as RoCEv2 packets (UC RDMA WRITE, one message per packet), waits for
credits, and reports what it sent. docs/how-to/connect.md goes through it step by step; docs/reference/wire.md has every byte."""

import argparse
import hashlib
import hmac
import os
import socket
import struct
import time
import zlib

HELLO, OFFER, PLAN, READY, START, COUNT, DONE, STOP, BYE, ERROR, AGAIN, CHALLENGE, PROOF = range(1, 14)
WRITE_ONLY, WRITE_ONLY_IMM = 0x2A, 0x2B
RECORD_BYTES = 64
PLAN_FIELDS = ("version transfer module service message pmtu ip_id crc qpn rkey first_psn slots packets base stride "
               "block_at block_bytes first_sequence window_bytes source_ip source_port dest_ip dest_port credit_qpn "
               "credit_rkey credit_va credit_port location operation credit_psn").split()
PLAN_FORMAT = "<8H5I6Q16sH16sHIIQH108sHI"


def ipv6_form(address):
    return bytes(10) + b"\xff\xff" + socket.inet_aton(address)


class Control:
    """The plan protocol: messages with a 12-byte header over TCP."""

    def __init__(self, address, port):
        try:
            self.tcp = socket.create_connection((address, port), timeout=30)
        except OSError as why:
            raise SystemExit(f"no receiver at {address}:{port} ({why.strerror}): start sluice run first") from None
        self.tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, kind, body=b""):
        self.tcp.sendall(b"SLC1" + struct.pack("<HHI", 2, kind, len(body)) + body)

    def receive(self, wanted):
        header = self.read(12)
        kind, length = struct.unpack("<HI", header[6:])
        body = self.read(length)
        if kind == ERROR:
            raise SystemExit("the receiver says: " + body.split(b"\0")[0].decode())
        if kind not in wanted:
            raise SystemExit(f"message {kind} out of turn")
        return kind, body

    def read(self, count):
        data = b""
        while len(data) < count:
            piece = self.tcp.recv(count - len(data))
            if not piece:
                raise SystemExit("the receiver hung up")
            data += piece
        return data


class Wire:
    """RoCEv2 over an ordinary UDP socket: unconnected and never fragmented, so that the kernel sends IP
    identification 0, which the checksum covers."""

    def __init__(self, address):
        IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        self.udp.bind((address, 0))
        self.source = self.udp.getsockname()

    def icrc(self, source, to, body):
        """CRC-32 over eight ones, IP and UDP header, BTH and what follows; what routers may change counts as ones."""
        length = 8 + len(body) + 4
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0xFF, 20 + length, 0, 0x4000, 0xFF, 17, 0xFFFF,
                         socket.inet_aton(source[0]), socket.inet_aton(to[0]))
        udp = struct.pack("!HHHH", source[1], to[1], length, 0xFFFF)
        return struct.pack("<I", zlib.crc32(b"\xff" * 8 + ip + udp + body[:4] + b"\xff" + body[5:]))

    def write(self, to, opcode, qpn, psn, va, rkey, payload, immediate=b""):
        pad = -len(payload) % 4
        bth = struct.pack("!BBHII", opcode, pad << 4, 0xFFFF, qpn, psn)
        reth = struct.pack("!QII", va, rkey, len(payload))
        body = bth + reth + immediate + payload + bytes(pad)
        self.udp.sendto(body + self.icrc(self.source, to, body), to)


def crc32c(data, table=[]):
    if not table:
        for i in range(256):
            for _ in range(8):
                i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
            table.append(i)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def record(sequence, plan, pixel_bytes, psn):
    """The 64 bytes behind the pixels: the front end's own word about the frame."""
    body = struct.pack("<QQQQIIIIHHIHH", sequence, sequence, sequence * 1000000, time.monotonic_ns(), pixel_bytes, 0, 1,
                       plan["packets"], plan["module"], 0, psn, 1, 0)
    return body + struct.pack("<I", crc32c(body))


def image(sequence, rows, columns):
    """A ramp that moves: any pixel out of place is seen at once."""
    return b"".join(struct.pack("<H", (row * 7 + column + sequence) & 0xFFFF) for row in range(rows)
                    for column in range(columns))


class FrontEnd:
    def __init__(self, arguments):
        self.a = arguments
        self.pixel_bytes = self.a.rows * self.a.columns * 2
        self.wire = Wire(self.a.source)
        self.control = Control(self.a.receiver, self.a.port)
        self.granted = 0

    def prove(self, hello):
        """Both sides prove that they know the token, which is never sent."""
        with open(self.a.token_file, "rb") as file:
            token = file.readline().rstrip(b"\r\n")
        _, challenge = self.control.receive({CHALLENGE})
        address, port = self.control.tcp.getpeername()[:2]  # of the receiver, as it was dialled
        message = hello + challenge + ipv6_form(address) + struct.pack("<H", port)
        mine, theirs = (hmac.new(token, label.ljust(32, b"\0") + message, hashlib.sha256).digest()
                        for label in (b"sluice plans: front end", b"sluice plans: receiver"))
        self.control.send(PROOF, mine)
        if not hmac.compare_digest(self.control.receive({PROOF})[1], theirs):
            raise SystemExit("what answers there does not know the token: it is not our receiver")

    def agree(self):
        """HELLO, OFFER; the answer is the plan."""
        nonce = os.urandom(32) if self.a.token_file else bytes(32)
        hello = struct.pack("<HQQ16s32s64s32s", 1, 0, 0, b"roce", b"pattern", b"", nonce)
        self.control.send(HELLO, hello)
        if self.a.token_file:
            self.prove(hello)
        uc, write, packet, id_zero = 1, 1, 1, 0
        self.credit = {"qpn": 0x4711, "va": 0x1000, "rkey": 0xC0FFEE}
        offer = struct.pack("<5H16sHHIIQQQQH", self.a.module, uc, packet, 4096, id_zero, ipv6_form(self.a.source),
                            self.wire.source[1], self.wire.source[1], self.credit["qpn"], self.credit["rkey"],
                            self.credit["va"], self.pixel_bytes + RECORD_BYTES, 0, self.a.frames, write)
        self.control.send(OFFER, offer)
        _, body = self.control.receive({PLAN})
        self.plan = dict(zip(PLAN_FIELDS, struct.unpack(PLAN_FORMAT, body[:struct.calcsize(PLAN_FORMAT)])))
        self.to = socket.inet_ntoa(self.plan["dest_ip"][12:]), self.plan["dest_port"]
        self.control.send(READY)
        self.control.receive({START})

    def take_credits(self):
        """A credit is an RDMA WRITE of 8 bytes: a position in the stream up to which we may send."""
        flags = socket.MSG_DONTWAIT
        while True:
            try:
                data, sender = self.wire.udp.recvfrom(2048, flags)
            except BlockingIOError:
                return
            qpn, = struct.unpack("!I", data[4:8])
            va, rkey, length = struct.unpack("!QII", data[12:28])
            if data[-4:] != self.wire.icrc(sender, self.wire.source, data[:-4]):
                continue
            if (data[0], qpn, va, rkey, length) == (WRITE_ONLY, *self.credit.values(), 8):
                self.granted = max(self.granted, struct.unpack("<Q", data[28:36])[0])

    def send_frame(self, k):
        plan, pmtu = self.plan, self.plan["pmtu"]
        first_psn = (plan["first_psn"] + k * plan["packets"]) & 0xFFFFFF
        block = image(k, self.a.rows, self.a.columns) + record(k, plan, self.pixel_bytes, first_psn)
        address = plan["base"] + k % plan["slots"] * plan["stride"] + plan["block_at"]
        for offset in range(0, len(block), pmtu):
            payload = block[offset:offset + pmtu]
            self.take_credits()
            while k * plan["block_bytes"] + offset + len(payload) > self.granted:
                time.sleep(0.0005)
                self.take_credits()
            psn = (first_psn + offset // pmtu) & 0xFFFFFF
            last = offset + pmtu >= len(block)
            self.wire.write(self.to, WRITE_ONLY_IMM if last else WRITE_ONLY, plan["qpn"], psn, address + offset,
                            plan["rkey"], payload, struct.pack("!I", k & 0xFFFFFFFF) if last else b"")

    def report(self, kind, frames):
        """Everything below this position is on the wire: what is missing then is lost, and has a name."""
        position = frames * self.plan["block_bytes"]
        self.control.send(kind, struct.pack("<HQQQ", self.plan["transfer"], frames, frames, position))

    def run(self):
        self.agree()
        for k in range(self.a.frames):
            self.send_frame(k)
            self.report(COUNT, k + 1)
        self.report(DONE, self.a.frames)
        while self.control.receive({STOP, BYE})[0] != BYE:
            pass
        print(f"{self.a.frames} frames of {self.a.rows} x {self.a.columns} pixels sent")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--receiver", default="127.0.0.1", help="where sluice run answers (control.address)")
    parser.add_argument("--port", type=int, default=47910, help="control.port")
    parser.add_argument("--token_file", help="file with the token: control.token_file of the receiver")
    parser.add_argument("--source", default="127.0.0.1", help="address to send from")
    parser.add_argument("--module", type=int, default=0)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--columns", type=int, default=512)
    parser.add_argument("--frames", type=int, default=100)
    FrontEnd(parser.parse_args()).run()


if __name__ == "__main__":
    main()
