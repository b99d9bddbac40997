#!/usr/bin/python3
"""viewers.py HOST:PORT SESSION STREAMS STALLED IMAGES - many viewers of `sluice serve` in one process that costs little: event streams, of which
some stop reading, and viewers of images, each of which asks for the next one when it has one. It looks at no text of an event.

A line on stdin: print the counts so far as JSON. The end of stdin: end."""

import json
import os
import selectors
import socket
import sys
import time

API = "/api/v1"
BLOCK = 1 << 18


def request(path):
    return f"GET {API}{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


class Events:
    """A viewer of events. One that stalls reads only its head, with a small buffer."""

    def __init__(self, place, stalls):
        self.stalls, self.events, self.missed, self.bytes, self.head, self.tail = stalls, 0, 0, 0, b"", b""
        self.socket = socket.socket()
        if stalls:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(place)
        self.socket.sendall(request("/events"))

    def read(self):
        """False: it reads no more."""
        data = self.socket.recv(4096 if self.stalls else BLOCK)
        self.bytes += len(data)
        if b"\r\n\r\n" not in self.head:
            self.head += data
            if self.head and not self.head.startswith(b"HTTP/1.1 200"[:len(self.head)]):
                raise SystemExit(f"a stream is refused: {self.head[:300]!r}")
        lines, _, self.tail = (self.tail + data).rpartition(b"\n")  # whole ones
        self.events += lines.count(b"event: ")
        self.missed += lines.count(b"event: missed")
        return bool(data) and not (self.stalls and b"\r\n\r\n" in self.head)


class Images:
    """A viewer of images: no two requests at once."""

    def __init__(self, place, session):
        self.session, self.images, self.answers, self.bytes, self.data, self.wanted, self.after = session, 0, {}, 0, b"", None, -1
        self.socket = socket.create_connection(place)
        self.ask()

    def ask(self):
        after = f"&after={self.after}" if self.after >= 0 else ""
        self.socket.sendall(request(f"/sessions/{self.session}/image?bin=4&wait_ms=1000{after}"))

    def read(self):
        part = self.socket.recv(BLOCK)
        self.data += part
        self.bytes += len(part)
        if self.wanted is None and b"\r\n\r\n" in self.data:
            head, _, self.data = self.data.partition(b"\r\n\r\n")
            lines = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
            self.status, self.wanted = int(head.split()[1]), int(lines.get("content-length", 0))
        if self.wanted is not None and len(self.data) >= self.wanted:
            self.answers[self.status] = self.answers.get(self.status, 0) + 1
            if self.status == 200:
                self.images += 1
                self.after = json.loads(self.data[8:8 + int.from_bytes(self.data[4:8], "little")])["element"]
            self.data, self.wanted = self.data[self.wanted or len(self.data):], None
            if self.status >= 500:
                time.sleep(0.05)
            self.ask()
        return bool(part)


def say(viewers, began):
    events = [v for v in viewers if isinstance(v, Events)]
    images = [v for v in viewers if isinstance(v, Images)]
    reading = [v for v in events if not v.stalls]
    used = os.times()
    print(json.dumps({
        "seconds": round(time.monotonic() - began, 2), "cpu_s": round(used.user + used.system, 2),
        "events": {"least": min((v.events for v in reading), default=0), "most": max((v.events for v in reading), default=0),
                   "missed": sum(v.missed for v in reading), "bytes": sum(v.bytes for v in events)},
        "stalled": sum(v.stalls for v in events),
        "images": {"least": min((v.images for v in images), default=0), "most": max((v.images for v in images), default=0),
                   "bytes": sum(v.bytes for v in images), "answers": [v.answers for v in images]},
    }), flush=True)


def main():
    where, session, streams, stalled, images = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    host, port = where.rsplit(":", 1)
    place = (host, int(port))
    viewers = [Events(place, i < stalled) for i in range(streams)] + [Images(place, session) for _ in range(images)]
    selector = selectors.DefaultSelector()
    for viewer in viewers:
        viewer.socket.setblocking(False)
        selector.register(viewer.socket, selectors.EVENT_READ, viewer)
    selector.register(0, selectors.EVENT_READ, None)
    began = time.monotonic()
    while True:
        for key, _ in selector.select():
            if key.data is None:
                if not os.read(0, 100):
                    return
                say(viewers, began)
            elif not key.data.read():
                selector.unregister(key.fileobj)


if __name__ == "__main__":
    main()
