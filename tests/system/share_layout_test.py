#!/usr/bin/python3
"""share_layout_test.py - docs/reference/share.md is enough to follow a share: a follower that was written from that page alone
(share_reader.py) follows the C library's writer, which this test calls through ctypes."""
# normal build only

import ctypes
import mmap
import os
import pathlib
import signal
import struct

from harness import SLUICE, case, check, equal, main
import share_reader
from share_reader import Crashed, Ended, Reader

WORDS = 200


class Array(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 32), ("unit", ctypes.c_char * 16), ("type", ctypes.c_char * 8), ("rank", ctypes.c_uint32),
                ("ragged", ctypes.c_uint32), ("dim", ctypes.c_uint32 * 6), ("offset", ctypes.c_uint64), ("bytes", ctypes.c_uint64),
                ("reserved", ctypes.c_uint8 * 24)]


class Note(ctypes.Structure):
    _fields_ = [("number", ctypes.c_uint64), ("timestamp", ctypes.c_uint64), ("commit_unix_ns", ctypes.c_uint64),
                ("missing", ctypes.c_uint64), ("score", ctypes.c_float), ("keep", ctypes.c_uint16), ("reason", ctypes.c_uint16),
                ("flags", ctypes.c_uint32), ("epoch", ctypes.c_uint32), ("rows", ctypes.c_uint32 * 24), ("user", ctypes.c_uint64 * 8),
                ("absent", ctypes.c_uint64), ("reserved", ctypes.c_uint64 * 3)]


class Options(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint32), ("arrays", ctypes.c_uint32), ("array", ctypes.POINTER(Array)), ("count", ctypes.c_uint64),
                ("run", ctypes.c_char_p), ("memory_fd", ctypes.c_int), ("max_peers", ctypes.c_uint32), ("memory_offset", ctypes.c_uint64),
                ("queue_bytes", ctypes.c_uint64), ("listen", ctypes.c_char_p), ("secret_file", ctypes.c_char_p),
                ("device", ctypes.c_char_p), ("reserved", ctypes.c_uint64 * 8)]


class Message(ctypes.Structure):
    _fields_ = [("peer", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("data", ctypes.c_void_p), ("kind", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]


LIBRARY = ctypes.CDLL(str(pathlib.Path(SLUICE).parent / "libsluice-client.so"))
LIBRARY.sl_share_push.restype = ctypes.c_uint64
LIBRARY.sl_share_push.argtypes = [ctypes.c_void_p, ctypes.POINTER(Note), ctypes.POINTER(ctypes.c_void_p)]
for function in ("sl_share_close", "sl_share_resize", "sl_share_receive", "sl_share_send"):
    getattr(LIBRARY, function).argtypes = {
        "sl_share_close": [ctypes.c_void_p], "sl_share_resize": [ctypes.c_void_p, ctypes.POINTER(Options), ctypes.c_void_p],
        "sl_share_receive": [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(Message)],
        "sl_share_send": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_uint64]}[function]
LIBRARY.sl_share_close.restype = None


class Writer:
    """A share of an image of 32-bit words and a ragged list; every word of element n is n."""

    def __init__(self, folder, count, **options):
        os.environ["SLUICE_RUN_DIR"] = str(folder / "run")
        self.path, self.n, self.share = folder / "run/shares/page.sock", 0, ctypes.c_void_p()
        error = ctypes.create_string_buffer(8192)
        given = self.options(count, **options)
        equal(LIBRARY.sl_share_open(b"page", ctypes.byref(given), ctypes.byref(self.share), error), 0, f"open {error.raw[:200]}")

    def options(self, count, words=WORDS, fd=0, offset=0):
        arrays = (Array * 2)(Array(b"image", b"photons", b"<u4", 2, 0, (ctypes.c_uint32 * 6)(2, words // 2)),
                             Array(b"list", b"", b"<f8", 2, 1, (ctypes.c_uint32 * 6)(5, 2)))
        self.words, self.kept = words, arrays
        return Options(ctypes.sizeof(Options), 2, arrays, count, b"a test", fd, 0, offset)

    def push(self, times=1):
        for _ in range(times):
            n = self.n
            image, rows = (ctypes.c_uint32 * self.words)(*[n & 0xFFFFFFFF] * self.words), (ctypes.c_double * 10)(*[n] * 10)
            note = Note(number=n + 7, timestamp=n * 3, missing=n % 16, score=n % 64 / 2, keep=n % 3, reason=n % 5, flags=n % 7, epoch=n % 11, absent=n % 4)
            note.rows[1], note.user[7] = n % 6, n * n
            pointers = (ctypes.c_void_p * 2)(ctypes.addressof(image), ctypes.addressof(rows))
            equal(LIBRARY.sl_share_push(self.share, ctypes.byref(note), pointers), n, "n")
            self.n += 1

    def resize(self, count, **options):
        given = self.options(count, **options)
        equal(LIBRARY.sl_share_resize(self.share, ctypes.byref(given), None), 0, "resize")

    def close(self):
        LIBRARY.sl_share_close(self.share)


def is_right(reader, element):
    n = element.n
    image, rows = reader.arrays
    words = struct.unpack_from(f"={image.shape[0] * image.shape[1]}I", element.data, image.offset)
    floats = struct.unpack_from(f"={2 * (n % 6)}d", element.data, rows.offset)
    return (set(words) == {n} and set(floats) <= {float(n)} and element.number == n + 7 and element.timestamp == 3 * n
            and element.missing == n % 16 and element.score == n % 64 / 2 and element.rows[1] == n % 6 and element.user[7] == n * n and element.absent == n % 4
            and (element.keep, element.reason, element.flags, element.epoch) == (n % 3, n % 5, n % 7, n % 11)
            and element.published_ns > 1_600_000_000 * 10**9)


@case("the header: names, types, shapes; every element in order, its note field by field")
def _(folder):
    writer = Writer(folder, 8)
    reader = Reader(writer.path)
    equal((reader.memory.name, reader.memory.about, reader.places, reader.generation), ("page", "a test", 8, 1), "the share")
    equal([array[:5] for array in reader.arrays],
          [("image", "photons", "<u4", 0, (2, WORDS // 2)), ("list", "", "<f8", 1, (5, 2))], "arrays")
    equal(reader.next(), None, "before the first one")
    for n in range(30):
        writer.push()
        element = reader.next()
        check(element.n == n and element.missed == 0 and is_right(reader, element), f"element {n}: {element[:12]}")
        equal(reader.next(), None, "none yet")
    writer.close()
    try:
        reader.next()
        check(False, "an end")
    except Ended:
        reader.close()


def start_writer(folder, places, times, then):
    """A process that opens a share, pushes elements once it is told to, and goes on with then(writer). (its id, a pipe to it)"""
    (ready, told), (go, gone) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(gone)
            writer = Writer(folder, places)
            os.write(told, b"x")
            os.read(go, 1)
            writer.push(times)
            os.write(told, b"x")
            then(writer, go)
            status = 0
        finally:
            os._exit(status)
    os.close(told)
    os.close(go)
    equal(os.read(ready, 1), b"x", "the writer is ready")
    return child, gone, ready


def finish(writer, go):
    os.read(go, 1)
    writer.close()


@case("a writer at full speed: whole elements, n rises, delivered and missed are all")
def _(folder):
    times = 4000
    for places, every in ((1, False), (2, True), (3, False), (16, True)):
        child, gone, ready = start_writer(folder, places, times, finish)
        reader = Reader(folder / "run/shares/page.sock")
        os.write(gone, b"x")
        got, missed, first, last = 0, 0, None, None
        while last != times - 1:
            element = reader.next(every)
            if element:
                check(is_right(reader, element), f"element {element.n} of {places} places is mixed")
                check(last is None or element.n > last, "n rises")
                first, last = element.n if first is None else first, element.n
                got, missed = got + 1, missed + element.missed
        equal(got + missed, times - first, f"delivered and missed, {places} places")
        os.write(gone, b"x")
        equal(os.waitpid(child, 0)[1], 0, "the writer's end")
        try:
            reader.next()
            check(False, "an end")
        except Ended:
            pass
        reader.close()
        os.close(gone)
        os.close(ready)


@case("another layout, and memory of the application")
def _(folder):
    fd = os.memfd_create("mine", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 1 << 20)
    mine = mmap.mmap(fd, 1 << 20)
    writer = Writer(folder, 4)
    reader = Reader(writer.path)
    writer.push(2)
    writer.resize(3, words=400, fd=fd, offset=8192)
    writer.push(2)
    taken = []
    while len(taken) < 4:
        element = reader.next()
        if element:
            check(is_right(reader, element), f"element {element.n}")
            taken.append((element.n, element.missed, reader.generation, len(reader.memory.data) == 1 << 20))
    equal(taken, [(0, 0, 1, False), (1, 0, 1, False), (2, 0, 2, True), (3, 0, 2, True)], "elements and generations")
    equal(struct.unpack_from("=I", mine, 8192 + 2 % 3 * reader.memory.stride)[0], 2, "in the application's memory")
    # In the same memory: elements that the follower has not read are gone.
    writer.push()
    writer.resize(3, words=400, fd=fd, offset=8192)
    writer.push()
    element = None
    while not element:
        element = reader.next()
    equal((element.n, element.missed, reader.generation), (5, 1, 3), "after a resize in the same memory")
    check(is_right(reader, element), "element 5")
    reader.close()
    writer.close()
    os.close(fd)


@case("pings and messages, a follower that sleeps")
def _(folder):
    writer = Writer(folder, 4)
    reader = Reader(writer.path)
    wake = reader.memory.region[152:156]
    equal(reader.ping(1234567), 1234567, "pong")
    reader.say(share_reader.SLEEPS, 1)
    reader.ping(1)
    check(reader.memory.region[152:156] != wake, "`wake` changes when a follower goes to sleep")
    wake = reader.memory.region[152:156]
    writer.push()
    check(reader.memory.region[152:156] != wake, "`wake` changes with a commit")
    reader.say(share_reader.MESSAGE, 42, b"x" * 100000)
    message = Message()
    equal(LIBRARY.sl_share_receive(writer.share, 10000, ctypes.byref(message)), 0, "receive")
    equal((message.kind, ctypes.string_at(message.data, message.bytes)), (42, b"x" * 100000), "message")
    equal(LIBRARY.sl_share_send(writer.share, message.peer, 43, b"answer", 6), 0, "send")
    LIBRARY.sl_remote_free(ctypes.c_void_p(message.data))
    equal(reader.message(), (43, b"answer"), "answer")
    reader.close()
    writer.close()


@case("a writer that is killed: what is published can be read, then it has crashed")
def _(folder):
    child, gone, ready = start_writer(folder, 4, 3, lambda writer, go: signal.pause())
    os.write(gone, b"x")
    equal(os.read(ready, 1), b"x", "elements are published")
    reader = Reader(folder / "run/shares/page.sock")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    check(is_right(reader, reader.next()), "the last element")
    try:
        while True:
            reader.next()
    except Crashed:
        pass
    try:
        Reader(folder / "run/shares/page.sock")
        check(False, "a refusal")
    except ConnectionRefusedError:
        pass
    reader.close()
    os.close(ready)
    os.close(gone)


if __name__ == "__main__":
    main()
