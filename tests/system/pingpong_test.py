#!/usr/bin/python3
"""pingpong_test.py - sluice pingpong: against itself, and against a double of ibv_uc_pingpong that speaks the exchange
and the packets of rdma-core's program with code of its own."""
# with sanitizers in check-long

import contextlib
import os
import re
import signal
import socket
import struct

import roce
from harness import (RECEIVER, ROCE_PORT, SOURCE, TIMEOUT_S, Program, case, check, equal, fewer, main, run, run_fails,
                     skip, wait_for)

PORT = 18515
FILL = 0x7B
PAGE = 4096
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY = 0x20, 0x21, 0x22, 0x24


def own_port(index):
    """Port number 0..7 of this process, for what all addresses share; below those that the kernel gives out."""
    return 10000 + os.getpid() % 2500 * 8 + index


def server(folder, *arguments, at=RECEIVER):
    started = Program("pingpong", "--listen", at, *arguments, folder=folder)
    wait_for("a server", lambda: "waiting for a client" in started.err() or not started.running())
    check(started.running(), "the server ended at once")
    return started


def client(folder, *arguments, to=RECEIVER, source=SOURCE):
    return Program("pingpong", to, "--source", source, *arguments, folder=folder)


def figures(program, size, iters):
    """What a good game prints: how much, how long, and that all of it was right."""
    text = program.out()
    check(re.search(rf"^{2 * size * iters} bytes in \d+\.\d\d s = \d+\.\d\d Mbit/s$", text, re.M), "bytes and rate")
    check(re.search(rf"^{iters} messages to and fro in \d+\.\d\d s = \d+\.\d\d us each$", text, re.M), "time of each")
    check("every byte as it should be" in text, "says that all was right")
    check(re.search(r"^  here   queue pair 0x[0-9a-f]{6}, PSN 0x[0-9a-f]{6}, address \S+$", text, re.M), "our address")
    check(re.search(r"^  there  queue pair 0x[0-9a-f]{6}, PSN 0x[0-9a-f]{6}, address \S+$", text, re.M), "theirs")


def game(folder, *arguments, size, iters, at=(RECEIVER, SOURCE), here=(), there=()):
    one = server(folder, *arguments, *here, at=at[0])
    other = client(folder, *arguments, *there, to=at[0], source=at[1])
    figures(other.ends(0), size, iters)
    figures(one.ends(0), size, iters)


# ---- a double of ibv_uc_pingpong ----

def greeting(qpn, psn, gid):
    return b"%04x:%06x:%06x:%s\0" % (0, qpn, psn, gid.hex().encode())


def gid_of(text):
    return bytes(10) + b"\xff\xff" + socket.inet_aton(text)


def read_text(tcp, count):
    text = b""
    while len(text) < count:
        more = tcp.recv(count - len(text))
        check(more, f"hung up after {text!r}")
        text += more
    return text


class Double:
    """One side of ibv_uc_pingpong: the texts over TCP, then SENDs over UDP, each sent back."""

    QPN, PSN = 0x11A, 0xFFFFFE

    def __init__(self, own, peer, size, mtu):
        self.own, self.peer, self.size, self.mtu = own, (peer, ROCE_PORT), size, mtu
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.IPPROTO_IP, roce.IP_MTU_DISCOVER, roce.IP_PMTUDISC_DO)
        self.udp.bind((own, ROCE_PORT))
        self.udp.settimeout(TIMEOUT_S)
        self.psn, self.text = self.PSN, greeting(self.QPN, self.PSN, gid_of(own))

    def understand(self, text):
        """The other side's text: 52 bytes, and where its packets must come from."""
        match = re.fullmatch(rb"0000:([0-9a-f]{6}):([0-9a-f]{6}):([0-9a-f]{32})\0", text)
        check(match, f"not a pingpong text: {text!r}")
        self.qpn, self.expected = int(match[1], 16), int(match[2], 16)
        equal(bytes.fromhex(match[3].decode()), gid_of(self.peer[0]), "GID in the text")

    def connect(self):
        with socket.create_connection((self.peer[0], PORT), TIMEOUT_S, (self.own, 0)) as tcp:
            tcp.sendall(self.text)
            self.understand(read_text(tcp, 52))
            tcp.sendall(b"done\0")
            equal(tcp.recv(1), b"", "after the exchange")

    def accept(self, listener):
        with listener.accept()[0] as tcp:
            self.understand(read_text(tcp, 52))
            tcp.sendall(self.text)
            equal(read_text(tcp, 5), b"done\0", "confirmation")

    def send(self, message):
        pieces = [message[i:i + self.mtu] for i in range(0, len(message), self.mtu)]
        for i, piece in enumerate(pieces):
            first, last = i == 0, i == len(pieces) - 1
            opcode = {(True, True): SEND_ONLY, (True, False): SEND_FIRST, (False, False): SEND_MIDDLE,
                      (False, True): SEND_LAST}[first, last]
            pad = -len(piece) % 4
            body = roce.bth(opcode, self.qpn, self.psn & 0xFFFFFF, pad) + piece + bytes(pad)
            self.udp.sendto(roce.seal(self.udp, self.peer, body), self.peer)
            self.psn += 1

    def receive(self):
        message = b""
        while True:
            packet, source = self.udp.recvfrom(65536)
            equal(source, self.peer, "where a packet comes from")
            equal(roce.icrc(self.peer, (self.own, ROCE_PORT), packet[:-4]), packet[-4:], "ICRC")
            opcode, flags, pkey, qpn, psn = struct.unpack("!BBHII", packet[:12])
            equal((pkey, qpn, psn & 0xFFFFFF), (0xFFFF, self.QPN, self.expected & 0xFFFFFF), "P_Key, queue pair, PSN")
            self.expected += 1
            message += packet[12:len(packet) - 4 - (flags >> 4 & 3)]
            if opcode in (SEND_LAST, SEND_ONLY):
                return message

    def close(self):
        self.udp.close()


def marked(size, marks):
    message = bytearray([FILL] * size)
    if marks:
        message[::PAGE] = bytes(len(message[::PAGE]))
    return bytes(message)


# ---- cases ----

@case("--help names the options and how to start the other side")
def _(folder):
    text = run("pingpong", "--help", folder=folder).ends(0).out()
    for word in ("usage: sluice pingpong [PEER]", "--service", "--listen", "--source", "--size", "--iters", "--mtu",
                 "--check", "ibv_rc_pingpong -d DEVICE -g INDEX", "exit status"):
        check(word in text, f"says '{word}'")


@case("rc, uc and ud: a thousand messages to and fro, with what ibv_*_pingpong takes for granted")
def _(folder):
    for service, size in (("rc", 4096), ("uc", 4096), ("ud", 1024)):
        game(folder, "--service", service, size=size, iters=1000)


@case("sizes and MTUs: one byte to a megabyte, 256 to 4096")
def _(folder):
    for service, size, mtu, iters in (("rc", 1, 256, 50), ("rc", 12345, 256, 50), ("rc", 1 << 20, 4096, fewer(20, 5)),
                                      ("uc", 3, 512, 50), ("uc", 12345, 2048, 50), ("ud", 4096, 1024, 50),
                                      ("ud", 1, 1024, 50)):
        game(folder, "--service", service, "--size", size, "--mtu", mtu, "--iters", iters, size=size, iters=iters)


@case("few receives are posted again in time")
def _(folder):
    game(folder, "--rx_depth", 2, "--iters", 300, size=4096, iters=300)
    game(folder, "--rx_depth", 1, "--iters", 300, size=4096, iters=300)


@case("IPv6: one address, two ports")
def _(folder):
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        skip("this host has no ::1")
    first = own_port(0)
    for service in ("rc", "uc", "ud"):
        size = 1000
        game(folder, "--service", service, "--size", size, "--iters", 100, "--port", first + 2, size=size, iters=100,
             at=("::1", "::1"), here=("--roce_port", first, "--peer_roce_port", first + 1),
             there=("--roce_port", first + 1, "--peer_roce_port", first))


@case("the address of the TCP connection is that of the packets, unless told otherwise")
def _(folder):
    one = Program("pingpong", "--listen", "", "--port", own_port(3), folder=folder)
    wait_for("a server", lambda: "waiting for a client" in one.err())
    other = client(folder, "--port", own_port(3))
    figures(other.ends(0), 4096, 1000)
    one.ends(0)
    check(f"address {RECEIVER}" in one.out() and f"address {SOURCE}" in one.out(), "addresses of the connection")


@case("an ibv_uc_pingpong as client: texts, packets, ICRC and PSNs as it wants them, with and without -c")
def _(folder):
    for size, mtu, marks in ((4096, 1024, False), (4096, 1024, True), (9001, 256, True), (100, 4096, False)):
        program = server(folder, "--service", "uc", "--size", size, "--mtu", mtu, "--iters", 20,
                         *(["--check"] if marks else []))
        double = Double(SOURCE, RECEIVER, size, mtu)
        double.connect()
        message = marked(size, marks)
        for _i in range(20):
            double.send(message)
            equal(double.receive(), message, "what comes back")
        double.close()
        figures(program.ends(0), size, 20)


@case("an ibv_uc_pingpong as server")
def _(folder):
    for marks in (False, True):
        size, mtu = 5000, 512
        double = Double(RECEIVER, SOURCE, size, mtu)
        with socket.create_server((RECEIVER, PORT)) as listener:
            program = client(folder, "--service", "uc", "--size", size, "--mtu", mtu, "--iters", 20,
                             *(["--check"] if marks else []))
            double.accept(listener)
        for _i in range(20):
            message = double.receive()
            equal(message, marked(size, marks), "what the client sends")
            double.send(message)
        double.close()
        figures(program.ends(0), size, 20)


@case("marks that nobody announced are no error; one wrong byte is, and ends with 2")
def _(folder):
    for change, status in (((0, 0), 0), ((4096, 0), 0), ((1, 0), 2), ((4999, 0x7A), 2), ((0, 1), 2)):
        program = server(folder, "--service", "uc", "--size", 5000, "--iters", 5)
        double = Double(SOURCE, RECEIVER, 5000, 1024)
        double.connect()
        for i in range(5):
            message = bytearray(marked(5000, False))
            if i == 3:
                message[change[0]] = change[1]
            double.send(bytes(message))
            equal(double.receive(), bytes(message), "what comes back")
        double.close()
        program.ends(status)
        if status:
            check(f"1 of 5 messages were not as they should be, the first from byte {change[0]} on" in program.err(),
                  "says which")


@case("sizes, services or counts that differ: both sides end with 1 and say what to compare")
def _(folder):
    for here, there, words in (
            (["--size", 5000], ["--size", 4096], "messages of 4096 bytes, --size here is 5000"),
            (["--size", 4000], ["--size", 4096], "same --size (-s)"),
            (["--service", "uc", "--size", 4000], ["--service", "uc", "--size", 4096], "same --size (-s)"),
            (["--mtu", 512], ["--mtu", 1024], "same --size (-s), --mtu (-m)"),
            (["--service", "uc"], [], "plays another --service")):
        one = server(folder, *here, "--timeout", 1)
        other = client(folder, *there, "--timeout", 1)
        other.ends(1)
        one.ends(1)
        check(words in one.err(), f"says '{words}'")
        check("error" in other.err(), "the other side says something too")


@case("the other side knows RoCE only by name: it makes acquaintance and falls silent")
def _(folder):
    program = server(folder, "--timeout", 1)
    double = Double(SOURCE, RECEIVER, 4096, 1024)
    double.connect()
    program.ends(1)
    double.close()
    check("nothing happened for 1 s, after 0 of 1000 messages" in program.err(), "says how long and how far")
    check(f"no packet arrived at UDP port {ROCE_PORT}" in program.err(), "says what to look at")


@case("texts that are none, GIDs that lead nowhere: 1, and what to do")
def _(folder):
    for text, words in ((b"GET / HTTP/1.1\r\n" + bytes(40), "is it a pingpong program?"),
                        (b"0000:00011a", "is it a pingpong program?"),
                        (b"", "hung up"),
                        (greeting(1, 2, bytes(16)), "-g INDEX"),
                        (greeting(1, 2, bytes.fromhex("fe80" + "00" * 6 + "5054") + bytes(6)), "link-local"),
                        (greeting(1, 2, bytes.fromhex("fd00" + "00" * 13 + "01")), "IPv4 GID and the other an IPv6"),
                        (greeting(1, 2, gid_of(SOURCE))[:-1] + b"x", "is it a pingpong program?")):
        program = server(folder)
        with socket.create_connection((RECEIVER, PORT), TIMEOUT_S, (SOURCE, 0)) as tcp:
            tcp.sendall(text)
            with contextlib.suppress(OSError):  # it may have hung up by now
                tcp.shutdown(socket.SHUT_WR)
            program.ends(1)
        check(words in program.err(), f"says '{words}'")


@case("wrong input ends with 1 and says what would be right")
def _(folder):
    for arguments, *words in ((["--mtu", 1000], "--mtu", "256, 512, 1024"),
                              (["--mtu", 8192], "--mtu"),
                              (["--service", "rd"], "--service", "rc"),
                              (["--service", "ud", "--size", 4097], "--size", "4096"),
                              (["--iters", 0], "--iters"),
                              (["--listen", "0.0.0.0"], "--listen", "one interface"),
                              (["--listen", "::gg"], "--listen"),
                              (["--listen", "192.0.2.1"], "192.0.2.1", "cannot listen"),
                              ([RECEIVER, SOURCE], "one other side at most"),
                              ([RECEIVER], "nobody listens", "start the other side first"),
                              ([RECEIVER, "--source", "anywhere"], "--source"),
                              (["--fast"], "'--fast'")):
        run_fails("pingpong", *arguments, folder=folder, says=words)


@case("ports that are taken: 18515 and 4791")
def _(folder):
    with socket.create_server((RECEIVER, PORT)):
        run_fails("pingpong", "--listen", RECEIVER, folder=folder, says=["cannot listen", "18515"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind((RECEIVER, ROCE_PORT))
        one = server(folder)
        client(folder).ends(1)
        one.ends(1)
        check("port 4791 is in use" in one.err() and "rdma_rxe" in one.err(), "says who may have it")


@case("Ctrl-C ends a server that waits, and a game that does not go on")
def _(folder):
    waiting = server(folder)
    waiting.send(signal.SIGINT)
    waiting.ends(130)
    playing = server(folder, "--timeout", 3600)
    double = Double(SOURCE, RECEIVER, 4096, 1024)
    double.connect()
    playing.send(signal.SIGTERM)
    playing.ends(130)
    double.close()


if __name__ == "__main__":
    main()
