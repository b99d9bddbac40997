"""image_client.py - asks an image process as the service does (src/service/image/wire.h), and takes its answers apart.

A container begins with "SLIM" and the length of its JSON header, which is padded with blanks to eight bytes; pixels follow
(docs/reference/live-image.md). This reads it by the page, not by the code.
"""

import array
import json
import socket
import struct
import subprocess
import time
import zlib

import numpy

from harness import SLUICE, TIMEOUT_S, check, die_with_parent, equal

HEAD = struct.Struct("<IHHIIQ")
MAGIC = 0x4d494c53
NOTHING, SLIM, PNG, JSON = range(4)


class Answer:
    def __init__(self, status, kind, deflated, body):
        self.status, self.kind, self.deflated, self.body = status, kind, deflated, body

    def json(self):
        equal(self.kind, JSON, f"what kind of answer it is ({self.status})")
        return json.loads(self.body)

    def error(self):
        return self.json()["error"]

    def slim(self):
        """Header and pixels of a container."""
        equal((self.status, self.kind), (200, SLIM), f"the answer: {self.body[:300]}")
        return slim(zlib.decompress(self.body) if self.deflated else self.body)


def slim(body):
    equal(body[:4], b"SLIM", "how it begins")
    length = struct.unpack_from("<I", body, 4)[0]
    equal((8 + length) % 8, 0, "where pixels begin, in eights")
    header = json.loads(body[8:8 + length])
    pixels = numpy.frombuffer(body, header["type"], offset=8 + length)
    equal(len(pixels), header["rows"] * header["columns"], "pixels")
    return header, pixels.reshape(header["rows"], header["columns"])


class Pending:
    """A request that was sent."""

    def __init__(self, stream):
        self.stream, self.bytes = stream, b""

    def take(self, n, timeout_s):
        self.stream.settimeout(timeout_s)
        while len(self.bytes) < n:
            more = self.stream.recv(min(n - len(self.bytes), 1 << 20))
            check(more, "the image process hung up")
            self.bytes += more
        taken, self.bytes = self.bytes[:n], self.bytes[n:]
        return taken

    def answer(self, timeout_s=TIMEOUT_S):
        magic, status, kind, deflated, unused, length = HEAD.unpack(self.take(HEAD.size, timeout_s))
        equal((magic, unused), (MAGIC, 0), "the head")
        body = self.take(length, timeout_s)
        equal(self.stream.recv(1), b"", "what comes behind the body")
        self.stream.close()
        return Answer(status, kind, bool(deflated), body)


class ImageProcess:
    """`sluice image-server`, as the service starts it."""

    started = []

    def __init__(self, folder, *arguments, idle_s=0):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.set_inheritable(True)
        self.err_path = folder / f"image-{len(ImageProcess.started)}-{time.monotonic_ns()}"
        with open(self.err_path, "wb") as err:
            self.process = subprocess.Popen([SLUICE, "image-server", *map(str, arguments), "--fd", str(theirs.fileno()), "--idle_s", str(idle_s)],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err, pass_fds=(theirs.fileno(),),
                                            cwd=folder, preexec_fn=die_with_parent)
        theirs.close()
        self.control = ours
        ImageProcess.started.append(self)

    def send(self, text, streams=1):
        """The ends of as many streams, the first of which gets the answer."""
        pairs = [socket.socketpair() for _ in range(streams)]
        fds = array.array("i", [theirs.fileno() for _, theirs in pairs])
        data = text if isinstance(text, bytes) else text.encode()
        self.control.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)] if streams else [])
        for _, theirs in pairs:
            theirs.close()
        return [ours for ours, _ in pairs]

    def begin(self, text):
        return Pending(self.send(text)[0])

    def ask(self, text, timeout_s=TIMEOUT_S):
        return self.begin(text).answer(timeout_s)

    def ends(self, status=0):
        equal(self.process.wait(TIMEOUT_S), status, "exit status of the image process")
        err = self.err_path.read_text(errors="replace")
        check("Sanitizer" not in err and "runtime error:" not in err, f"a sanitizer complains: {err}")

    def close(self):
        """As the service does; it must end by that."""
        self.control.close()
        self.ends()
