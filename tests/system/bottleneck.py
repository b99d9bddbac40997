"""bottleneck.py - a switch with one slow port, in user space: hosts in network namespaces, joined by a relay that queues
what goes to the slow one, marks packets when the queue grows (ECN, as RED does) and drops them when it is full.

The kernel here may have no queueing discipline that marks; this needs only namespaces and tun devices (root)."""

import collections
import ctypes
import fcntl
import os
import random
import select
import struct
import subprocess
import threading
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
MTU = 4500
ECN_MASK, ECN_OFF, ECN_CE = 3, 0, 3


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Host:
    """A namespace with one address and a tun device that leads to the switch."""

    def __init__(self, name, address):
        self.name, self.address = name, address
        ip("netns", "add", name)
        self.fd = self._tun()
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "addr", "add", f"{address}/32", "dev", "port")
        ip("-n", name, "link", "set", "port", "mtu", str(MTU), "txqueuelen", "10000", "up")
        ip("-n", name, "route", "add", "default", "dev", "port")

    def _tun(self):
        """The device belongs to the namespace in which it was made; the file may be read from anywhere."""
        box = []

        def make():
            with open(f"/run/netns/{self.name}", "rb") as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                    return
            fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"port", IFF_TUN | IFF_NO_PI))
            box.append(fd)

        thread = threading.Thread(target=make)  # setns holds for one thread
        thread.start()
        thread.join()
        return box[0]

    def wrapper(self):
        return ("ip", "netns", "exec", self.name)

    def close(self):
        os.close(self.fd)
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)


class Switch:
    """Forwards between the hosts; what goes to `slow` leaves at `rate` bytes per second, from a queue of `limit` bytes.
    From `low` bytes on packets are marked, all of them from `high` on. A share `loss` of them is lost on the way."""

    def __init__(self, hosts, slow, rate, limit, low, high, loss=0):
        self.hosts, self.slow, self.loss, self.lost = hosts, slow, loss, 0
        self.rate, self.limit, self.low, self.high = rate, limit, low, high
        self.by_address = {bytes(map(int, host.address.split("."))): host for host in hosts}
        self.queue, self.queued = collections.deque(), 0
        self.forwarded, self.marked, self.dropped, self.deepest = collections.Counter(), 0, 0, 0
        self.random = random.Random(1)
        self.end = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def close(self):
        self.end = True
        self.thread.join()

    def run(self):
        fds = [host.fd for host in self.hosts]
        free_at = time.monotonic()  # when the slow port may send again
        while not self.end:
            now = time.monotonic()
            wait = max(0.0, free_at - now) if self.queue else 0.1
            ready, _, _ = select.select(fds, [], [], min(wait, 0.1))
            for fd in ready:
                self.take(fd)
            now = time.monotonic()
            # A port has no memory of idle time; but when it is this program that had to wait, the port did not.
            free_at = max(free_at, now - 0.2)
            while self.queue and free_at <= now:
                packet = self.queue.popleft()
                self.queued -= len(packet)
                free_at += len(packet) / self.rate
                self.send(self.slow, packet)

    def take(self, fd):
        for _ in range(32):
            try:
                packet = os.read(fd, 65536)
            except BlockingIOError:
                return
            host = self.by_address.get(packet[16:20])
            if packet[0] >> 4 != 4 or host is None:
                continue
            if host is self.slow and len(packet) > 200 and self.random.random() < self.loss:
                self.lost += 1
            elif host is self.slow:
                self.enqueue(packet)
            else:
                self.send(host, packet)

    def enqueue(self, packet):
        if self.queued + len(packet) > self.limit:
            self.dropped += 1
            return
        share = (self.queued - self.low) / (self.high - self.low)
        if packet[1] & ECN_MASK != ECN_OFF and self.random.random() < share:
            packet = mark(packet)
            self.marked += 1
        self.queue.append(packet)
        self.queued += len(packet)
        self.deepest = max(self.deepest, self.queued)
        self.forwarded[packet[12:16]] += len(packet)

    @staticmethod
    def send(host, packet):
        try:
            os.write(host.fd, packet)
        except OSError:
            pass  # the host is gone


def mark(packet):
    """Set CE, and the header checksum that belongs to it."""
    header = bytearray(packet[:20])
    header[1] |= ECN_CE
    header[10:12] = b"\0\0"
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = struct.pack(">H", ~total & 0xFFFF)
    return bytes(header) + packet[20:]
