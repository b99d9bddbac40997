"""feroce_sender.py - an FPGA that sends as FEROCE cores do, made from the documented formats alone (docs/reference/feroce.md) and
independently of the program's own code.

A Device speaks the connection manager on UDP 0x4321 of its address, sends RC packets from a port of its own and hears
acknowledgements on 4791. One message per block, AckReq on every packet; it goes back to the packet that a NAK names, or
to the first unacknowledged one when nothing is heard, and waits when the receiver is not ready."""

import collections
import socket
import struct
import time

from roce import bth, reth, seal, sender

CM_PORT, HOST_PORT, ROCE_PORT, SOURCE_PORT = 0x4321, 0x4322, 4791, 40384
NONE, OPEN, INFO, RTS, CLOSE, ERROR = 0, 1, 2, 3, 4, 7
ACK, NO_QP, NAK = 1, 2, 3
SEND, WRITE = 0x00, 0x06  # opcodes of the first packet; middle, last, last with immediate and only ones follow
ACKNOWLEDGE, ACK_REQ = 0x11, 1 << 31
RNR_WAIT_S = 0.001
ANSWER_S, RETRIES = 20, 50  # no core is so patient; tests run on busy machines

Queue = collections.namedtuple("Queue", "qpn psn rkey va ip")
Message = collections.namedtuple("Message", "info request answer ack local remote port generator")
NOBODY = Queue(0, 0, 0, 0, "0.0.0.0")


def pack_queue(queue):
    return struct.pack("!IIIQ4s", queue.qpn, queue.psn, queue.rkey, queue.va, socket.inet_aton(queue.ip))


def pack(request, local, remote, port, ack=None, info=1):
    flags = info | request << 1 | (0 if ack is None else 1 << 4 | ack << 5)
    return bytes([flags]) + pack_queue(local) + pack_queue(remote) + struct.pack("!H", port) + bytes(13)


def unpack_queue(data):
    qpn, psn, rkey, va, ip = struct.unpack("!IIIQ4s", data)
    return Queue(qpn, psn, rkey, va, socket.inet_ntoa(ip))


def unpack(data):
    assert len(data) == 64, f"a message of {len(data)} bytes"
    flags = data[0]
    return Message(flags & 1, flags >> 1 & 7, flags >> 4 & 1, flags >> 5, unpack_queue(data[1:25]),
                   unpack_queue(data[25:49]), struct.unpack("!H", data[49:51])[0], data[51:])


class Refused(Exception):
    """The receiver said no, or nothing."""


class Device:
    """One queue pair of a core at this address. drop(n) tells which packets get lost when they are first sent."""

    started = []

    def __init__(self, address, qpn=0x100, drop=lambda n: False):
        self.cm = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.cm.bind((address, CM_PORT))
        self.acks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.acks.bind((address, ROCE_PORT))
        self.acks.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.data = sender(address, SOURCE_PORT)
        self.local = Queue(qpn, 0, 0, 0, address)
        self.drop, self.retries = drop, RETRIES
        self.remote = None  # the receiver's queue, once connected
        self.sent = collections.deque()  # (psn, packet) not yet acknowledged
        self.psn = self.count = self.naks = self.not_ready = 0
        Device.started.append(self)

    def stop(self):
        """From one moment to the next it is gone."""
        for used in (self.cm, self.acks, self.data):
            used.close()

    @staticmethod
    def stop_all():
        while Device.started:
            Device.started.pop().stop()

    # ---- connection manager ----

    def ask(self, request, to, remote, timeout_s=ANSWER_S):
        """Send a request and wait for its answer, as bytes; None: there is none."""
        message = pack(request, self.local, remote, CM_PORT)
        self.cm.settimeout(0.3)
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            self.cm.sendto(message, to)
            try:
                while True:
                    data = self.cm.recv(2000)
                    answer = unpack(data)
                    if answer.answer and answer.request == request:
                        return data
            except socket.timeout:
                continue
        return None

    def open(self, receiver, port=HOST_PORT, timeout_s=ANSWER_S):
        """Connect, as a core that opens by itself does."""
        data = self.ask(OPEN, (receiver, port), NOBODY._replace(ip=receiver), timeout_s)
        if not data or unpack(data).ack != ACK:
            raise Refused
        self.connected(unpack(data).local)
        return data

    def connected(self, remote):
        self.remote = remote
        self.psn = remote.psn

    def be_asked(self):
        """Connect, as a core that waits for the host does."""
        self.cm.settimeout(ANSWER_S)
        while True:
            data, to = self.cm.recvfrom(2000)
            request = unpack(data)
            if request.request == OPEN and not request.answer:
                break
        self.cm.sendto(pack(OPEN, self.local, request.local, CM_PORT, ACK), (to[0], request.port))
        self.connected(request.local)

    def close(self, timeout_s=ANSWER_S):
        """Close, and return the kind of answer; None: there is none."""
        data = self.ask(CLOSE, (self.remote.ip, CM_PORT), self.remote, timeout_s)
        return unpack(data).ack if data else None

    def told_to_close(self, timeout_s=ANSWER_S):
        """Whether the receiver asks to close this queue within the time."""
        self.cm.settimeout(timeout_s)
        try:
            while True:
                request = unpack(self.cm.recv(2000))
                if request.request == CLOSE and not request.answer and request.remote.qpn == self.local.qpn:
                    return True
        except socket.timeout:
            return False

    # ---- data ----

    def put(self, block, kind, va=0, pmtu=1024, imm=None, window=64, packets=None):
        """Send one block as one message; with `packets`, no more than that of it."""
        pieces = [block[at:at + pmtu] for at in range(0, len(block), pmtu)]
        for i, piece in enumerate(pieces[:packets]):
            first, last = i == 0, i == len(pieces) - 1
            with_imm = last and imm is not None
            opcode = kind + (4 + with_imm if first and last else 0 if first else 2 + with_imm if last else 1)
            body = bth(opcode, self.remote.qpn, ACK_REQ | self.psn)
            if first and kind == WRITE:
                body += reth(va, self.remote.rkey, len(block))
            if with_imm:
                body += struct.pack("!I", imm)
            self.sent.append((self.psn, seal(self.data, (self.remote.ip, ROCE_PORT), body + piece)))
            self.psn = self.psn + 1 & 0xFFFFFF
            if not self.drop(self.count):
                self.data.sendto(self.sent[-1][1], (self.remote.ip, ROCE_PORT))
            self.count += 1
            self.listen(window)

    def flush(self):
        """Until everything is acknowledged."""
        self.listen(1)

    def listen(self, window):
        """Take acknowledgements; wait for them while as much as this is under way."""
        tries = 0
        while self.sent:
            self.acks.settimeout(0.1 if len(self.sent) >= window else 0)
            try:
                if self.take(self.acks.recv(2000)):
                    tries = 0
            except BlockingIOError:
                return
            except socket.timeout:
                tries += 1
                if tries > self.retries:
                    raise Refused from None
                self.send_again()

    def take(self, packet):
        """One packet that came back; false when it is not for this queue."""
        opcode, _, _, qpn, psn, aeth = struct.unpack("!BBHIII", packet[:16])
        if opcode != ACKNOWLEDGE or qpn & 0xFFFFFF != self.local.qpn:
            return False
        psn &= 0xFFFFFF
        kind, code = aeth >> 29 & 3, aeth >> 24 & 0x1F
        done = psn if kind == 0 else psn - 1 & 0xFFFFFF
        while self.sent and (done - self.sent[0][0] & 0xFFFFFF) < 1 << 23:
            self.sent.popleft()
        if kind == 3 and code:
            raise Refused(f"NAK {code}")
        if kind:
            self.naks += kind == 3
            self.not_ready += kind == 1
            time.sleep(RNR_WAIT_S if kind == 1 else 0)
            self.send_again()
        return True

    def send_again(self):
        for _, packet in self.sent:
            self.data.sendto(packet, (self.remote.ip, ROCE_PORT))
