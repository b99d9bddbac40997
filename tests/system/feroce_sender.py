"""feroce_sender.py - an FPGA that sends as FEROCE cores do, made from the documented formats alone (docs/reference/feroce.md) and
independently of the program's own code.

A Core is one FPGA: one address, one connection manager on UDP 0x4321 that sends from port 34661, one data port 34391 that all of
its queue pairs send from, and one port 4791 for acknowledgements. Its queue pair numbers go round: a number that is closed is
used again after all others. A Device is one queue pair of a core: one message per block, AckReq and MigReq on every packet, SE on
the last one of a SEND. It goes back to the packet that a NAK names, or to the first unacknowledged one when no acknowledgement
comes, and waits when the receiver is not ready.

The IP identification counts every UDP packet of a core. Only a raw socket can set it (CAP_NET_RAW, as root has); without one the
packets leave through UDP sockets, for which the kernel sends identification 0."""

import collections
import queue
import socket
import struct
import threading
import time

from roce import bth, icrc, reth, sender

CM_PORT, HOST_PORT, ROCE_PORT = 0x4321, 0x4322, 4791
DATA_SOURCE_PORT, CM_SOURCE_PORT = 34391, 34661
FIRST_NUMBER, NUMBERS = 256, 16
NONE, OPEN, INFO, RTS, CLOSE, ERROR = 0, 1, 2, 3, 4, 7
ACK, NO_QP, NAK = 1, 2, 3
SEND, WRITE = 0x00, 0x06  # opcodes of the first packet; middle, last, last with immediate and only ones follow
MIDDLE, LAST, ONLY = 1, 2, 4  # added to these; one more with an immediate
ACKNOWLEDGE, ACK_REQ = 0x11, 1 << 31
SOLICITED, MIG_REQ = 0x80, 0x40  # byte 1 of the BTH
RNR_WAIT_S = 0.001
ANSWER_S, RETRIES = 20, 50  # no core is so patient; tests run on busy machines
BUSY_CLOCKS, CLOCK_NS = 70, 3.3  # a core loses a request that comes this soon after the one before
LOOK_S = 0.05  # how often a thread looks whether its core is stopped
SO_TIMESTAMPNS = 35

Queue = collections.namedtuple("Queue", "qpn psn rkey va ip")
Message = collections.namedtuple("Message", "info request answer ack local remote port generator")
NOBODY = Queue(0, 0, 0, 0, "0.0.0.0")


def pack_queue(one):
    return struct.pack("!IIIQ4s", one.qpn, one.psn, one.rkey, one.va, socket.inet_aton(one.ip))


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


def only_numbers(one):
    """What a core that asks puts into a CLOSE: the PSN, the key and the address are 0."""
    return one._replace(psn=0, rkey=0, va=0)


class Refused(Exception):
    """The receiver said no, or nothing."""


def listening(address, port):
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((address, port))
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    udp.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    udp.settimeout(LOOK_S)
    return udp


def raw_socket():
    """A socket whose IP header is ours; None: this process may not open one."""
    try:
        return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    except PermissionError:
        return None


class Core:
    """The FPGA at this address. `first` is the number that its next queue pair gets: a core that was used before does not begin
    with 256. A slave answers requests for `busy_s` less often than they come: those that come sooner after another are lost."""

    at = {}  # by address

    def __init__(self, address, first=FIRST_NUMBER, slave=False, busy_s=BUSY_CLOCKS * CLOCK_NS * 1e-9):
        self.address, self.slave, self.busy_s = address, slave, busy_s
        self.numbers = collections.deque(range(FIRST_NUMBER, FIRST_NUMBER + NUMBERS))
        self.numbers.rotate(FIRST_NUMBER - first)
        self.raw = raw_socket()
        self.ports = {port: sender(address, port) for port in (DATA_SOURCE_PORT, CM_SOURCE_PORT)}
        self.identification = 0
        self.sending = threading.Lock()
        self.inbox = {}  # packets that came for a queue pair, by its number
        self.messages = queue.Queue()  # of the connection manager, (bytes, from)
        self.opened = queue.Queue()  # (number, remote queue) that a slave has opened
        self.open_now = {}
        self.requests, self.lost, self.answered = [], [], []  # of a slave: messages; bytes of its answers
        self.keep_back = 0  # answers of a slave to CLOSE that get lost on their way
        self.on_close = lambda: None  # called by a slave at each CLOSE that it hears, at once
        self.last_s, self.last_answer = None, (OPEN, NOBODY, NOBODY, HOST_PORT)
        self.stopped = threading.Event()
        self.cm, self.acks = listening(address, CM_PORT), listening(address, ROCE_PORT)
        self.threads = [threading.Thread(target=self.read, args=it, daemon=True)
                        for it in ((self.cm, self.take_message), (self.acks, self.take_acknowledgement))]
        for thread in self.threads:
            thread.start()
        Core.at[address] = self

    def stop(self):
        """From one moment to the next it is gone."""
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        for used in (self.cm, self.acks, self.raw, *self.ports.values()):
            if used:
                used.close()
        Core.at.pop(self.address, None)

    def read(self, udp, take):
        while not self.stopped.is_set():
            try:
                data, ancillary, _, source = udp.recvmsg(4096, 64)
            except socket.timeout:
                continue
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2][:16])
            take(data, source, seconds + nanoseconds * 1e-9)

    def send(self, source_port, to, body, sealed=False):
        """One UDP packet; `sealed`: its ICRC comes behind it, which covers the identification."""
        with self.sending:
            number = self.identification if self.raw else 0
            self.identification = self.identification + 1 & 0xFFFF
            if sealed:
                body += icrc((self.address, source_port), to, body, number)
            if not self.raw:
                self.ports[source_port].sendto(body, to)
                return
            udp = struct.pack("!HHHH", source_port, to[1], 8 + len(body), 0)
            ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(body), number, 0x4000, 64, 17, 0,
                             socket.inet_aton(self.address), socket.inet_aton(to[0]))
            self.raw.sendto(ip + udp + body, (to[0], 0))

    def tell(self, data, to):
        """A message of the connection manager, or what a test sends in its place."""
        self.send(CM_SOURCE_PORT, to, data)

    def take_acknowledgement(self, packet, _, __):
        number = struct.unpack("!I", packet[4:8])[0] & 0xFFFFFF if len(packet) >= 16 else None
        if number in self.inbox:
            self.inbox[number].put(packet)

    # ---- a core that waits to be asked ----

    def take_message(self, data, source, arrived_s):
        if not self.slave or unpack(data).answer:
            self.messages.put((data, source))
            return
        message = unpack(data)
        soon = self.last_s is not None and arrived_s - self.last_s < self.busy_s
        (self.lost if soon else self.requests).append(message)
        if soon:
            return
        self.last_s = arrived_s
        if message.request == OPEN:
            self.serve_open(message, source[0])
        elif message.request == CLOSE:
            self.on_close()
            self.serve_close(message, source[0])

    def serve_open(self, message, host):
        if not self.numbers:  # its answer repeats the fields of the one before
            self.answer(host, *self.last_answer, NO_QP)
            return
        number = self.numbers.popleft()
        self.open_now[number] = message.local
        self.inbox[number] = queue.Queue()
        self.answer(host, OPEN, Queue(number, 0, 0, 0, self.address), message.local, message.port, ACK)
        self.opened.put((number, message.local))

    def serve_close(self, message, host):
        number = message.remote.qpn
        if not FIRST_NUMBER <= number < FIRST_NUMBER + NUMBERS:
            self.answer(host, *self.last_answer, NAK)
            return
        was_open = self.open_now.pop(number, None)
        if was_open:
            self.numbers.append(number)
        self.answer(host, CLOSE, message.remote._replace(ip=self.address), message.local, message.port,
                    ACK if was_open else ERROR)

    def answer(self, host, request, local, remote, port, ack):
        self.last_answer = (request, local, remote, port)
        data = pack(request, local, remote, CM_PORT, ack)
        self.answered.append(data)
        if request == CLOSE and self.keep_back:
            self.keep_back -= 1
            return
        self.tell(data, (host, port))


class Device:
    """One queue pair of the core at this address, which is made if it is not there yet, with `qpn` as its next number.
    drop(n) tells which packets get lost when they are first sent."""

    def __init__(self, address, qpn=FIRST_NUMBER, drop=lambda n: False):
        self.core = Core.at.get(address) or Core(address, qpn)
        self.local = Queue(self.core.numbers[0], 0, 0, 0, address)
        self.number_taken = False
        self.drop, self.retries = drop, RETRIES
        self.remote = None  # the receiver's queue, once connected
        self.sent = collections.deque()  # (psn, packet) not yet acknowledged
        self.psn = self.count = self.naks = self.not_ready = 0

    def stop(self):
        self.core.stop()

    @staticmethod
    def stop_all():
        for core in list(Core.at.values()):
            core.stop()

    # ---- connection manager ----

    def tell(self, data, to):
        self.core.tell(data, to)

    def next_message(self, end_s):
        """The next message to this core and where it is from; None: there is none in time."""
        try:
            return self.core.messages.get(timeout=max(0, end_s - time.monotonic()))
        except queue.Empty:
            return None

    def ask(self, request, to, remote, timeout_s=ANSWER_S):
        """Send a request and wait for its answer, as bytes; None: there is none."""
        message = pack(request, self.local, remote, CM_PORT)
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            self.tell(message, to)
            again = min(end, time.monotonic() + 0.3)
            while (heard := self.next_message(again)) is not None:
                answer = unpack(heard[0])
                if answer.answer and answer.request == request and answer.local.ip == to[0] and \
                        answer.remote.ip == self.core.address:
                    return heard[0]
        return None

    def open(self, receiver, port=HOST_PORT, timeout_s=ANSWER_S):
        """Connect, as a core that opens by itself does, with the next number of the core."""
        number = self.core.numbers.popleft()
        self.local = self.local._replace(qpn=number)
        self.core.inbox[number] = queue.Queue()
        data = self.ask(OPEN, (receiver, port), NOBODY._replace(ip=receiver), timeout_s)
        if not data or unpack(data).ack != ACK:
            self.core.numbers.append(number)
            raise Refused
        self.connected(unpack(data).local)
        return data

    def connected(self, remote):
        self.remote = remote
        self.psn = remote.psn
        self.sent.clear()
        self.number_taken = True

    def be_asked(self):
        """Connect, as a core that waits for the host does."""
        self.core.slave = True
        number, remote = self.core.opened.get(timeout=ANSWER_S)
        self.local = self.local._replace(qpn=number)
        self.connected(remote)

    def close(self, timeout_s=ANSWER_S):
        """Close, and return the kind of answer; None: there is none."""
        data = self.ask(CLOSE, (self.remote.ip, HOST_PORT), only_numbers(self.remote), timeout_s)
        ack = unpack(data).ack if data else None
        if ack in (ACK, NO_QP) and self.number_taken:
            self.number_taken = False
            self.core.numbers.append(self.local.qpn)
        return ack

    def told_to_close(self, timeout_s=ANSWER_S):
        """Whether the receiver asks to close this queue within the time."""
        end = time.monotonic() + timeout_s
        while self.core.slave and time.monotonic() < end:
            if any(m.request == CLOSE and m.remote.qpn == self.local.qpn for m in self.core.requests):
                return True
            time.sleep(0.01)
        while (heard := self.next_message(end)) is not None:
            request = unpack(heard[0])
            if request.request == CLOSE and not request.answer and request.remote.qpn == self.local.qpn:
                return True
        return False

    # ---- data ----

    def put(self, block, kind, va=0, pmtu=1024, imm=None, window=64, packets=None, rkey=None):
        """Send one block as one message; with `packets`, no more than that of it; with `rkey`, with that key."""
        pieces = [block[at:at + pmtu] for at in range(0, len(block), pmtu)]
        for i, piece in enumerate(pieces[:packets]):
            first, last = i == 0, i == len(pieces) - 1
            with_imm = last and imm is not None
            opcode = kind + (ONLY if first and last else LAST if last else 0 if first else MIDDLE) + with_imm
            flags = MIG_REQ | (SOLICITED if last and (kind == SEND or with_imm) else 0)
            header = bytearray(bth(opcode, self.remote.qpn, ACK_REQ | self.psn))
            header[1] |= flags
            body = bytes(header)
            if first and kind == WRITE:
                body += reth(va, self.remote.rkey if rkey is None else rkey, len(block))
            if with_imm:
                body += struct.pack("!I", imm)
            self.sent.append((self.psn, body + piece))
            self.psn = self.psn + 1 & 0xFFFFFF
            if not self.drop(self.count):
                self.transmit(self.sent[-1][1])
            self.count += 1
            self.listen(window)

    def transmit(self, packet):
        self.core.send(DATA_SOURCE_PORT, (self.remote.ip, ROCE_PORT), packet, sealed=True)

    def flush(self):
        """Until everything is acknowledged."""
        self.listen(1)

    def listen(self, window):
        """Take acknowledgements; wait for them while as much as this is under way."""
        inbox, tries = self.core.inbox[self.local.qpn], 0
        while self.sent:
            wait = len(self.sent) >= window
            try:
                self.take(inbox.get(timeout=0.1) if wait else inbox.get_nowait())
                tries = 0
            except queue.Empty:
                if not wait:
                    return
                tries += 1
                if tries > self.retries:
                    raise Refused from None
                self.send_again()

    def take(self, packet):
        """One packet that came back for this queue."""
        opcode, _, _, _, psn, aeth = struct.unpack("!BBHIII", packet[:16])
        if opcode != ACKNOWLEDGE:
            return
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

    def send_again(self):
        for _, packet in self.sent:
            self.transmit(packet)
