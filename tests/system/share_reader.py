"""share_reader.py - a follower of shares, by what docs/reference/share.md says and nothing else.

Reader(path of the socket) has arrays: [Array], generation, places; next(every) returns the next Element, None while there is none,
and raises Ended or Crashed behind the last one. Anything that the page rules out is a Wrong.
"""

import collections
import fcntl
import mmap
import os
import select
import socket
import struct

Array = collections.namedtuple("Array", "name unit type ragged shape offset bytes")
Element = collections.namedtuple("Element", "n missed number timestamp published_ns missing score keep reason flags epoch rows user absent data")
FRAME, HEADER, PLACE, PAGE, MOST = struct.Struct("=IIQQQ"), 4096, 256, 4096, 1 << 48
HELLO, ATTACHED, PING, PONG, MESSAGE, SLEEPS, FAREWELL = range(1, 8)
LIVE, MOVED, ENDED = 1, 2, 3
DONE, CLAIM, NOTE = 0, 8, struct.Struct("=QQQQfHHII24I8QQ")
STATE, PUBLISHED = 128, 144
F_GET_SEALS, F_SEAL_SHRINK = 1034, 2
ITEM = {kind: int(kind[2:]) for kind in "|b1 |u1 |i1 <u2 <i2 <f2 <u4 <i4 <f4 <u8 <i8 <f8 <c8 <c16".split()}


class Wrong(Exception):
    pass


class Ended(Exception):
    pass


class Crashed(Exception):
    pass


def require(good, what):
    if not good:
        raise Wrong(what)


def text(data):
    require(b"\0" in data, "a text does not end")
    return data[:data.index(b"\0")].decode()


def pages(n):
    return (n + PAGE - 1) // PAGE * PAGE


def map_memory(fd):
    size = os.fstat(fd).st_size
    require(fcntl.fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK, "the memory can shrink")
    return mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ)


def array_at(header, i, end, data_bytes):
    at = 512 + 128 * i
    kind = text(header[at + 48:at + 56])
    rank, ragged, *dims, offset, size = struct.unpack_from("=II6IQQ", header, at + 56)
    require(kind in ITEM and rank <= 6 and ragged <= 1 and all(dims[:rank]), "an array's type or shape")
    bytes_ = ITEM[kind]
    for dim in dims[:rank]:
        bytes_ *= dim
    require(size == bytes_ and offset % 64 == 0 and offset >= end and offset + size <= data_bytes, "where an array lies")
    return Array(text(header[at:at + 32]), text(header[at + 32:at + 48]), kind, ragged, tuple(dims[:rank]), offset, size)


class Memory:
    """One generation."""

    def __init__(self, fds):
        require(1 <= len(fds) <= 2, f"{len(fds)} descriptors")
        maps = [map_memory(fd) for fd in fds]
        self.region, data_in = maps[0], maps[-1]
        header = self.region[:HEADER]
        (magic, version, header_bytes, note_bytes, arrays, self.generation, self.places, self.data_bytes, self.stride, region, self.offset,
         second, self.first) = struct.unpack_from("=QIIIIQQQQQQQQ", header)
        require(magic == 0x0A31455241485387, "magic")
        require((version, header_bytes, note_bytes) == (1, HEADER, PLACE), "version or sizes")
        require(region == len(self.region) and second == len(maps) - 1 and 1 <= arrays <= 24, "the region's size")
        require(self.places >= 1 and 1 <= self.data_bytes <= MOST and self.stride >= self.data_bytes and self.stride % 64 == 0, "places")
        behind = HEADER + pages(PLACE * self.places)
        require(behind <= region and self.offset % PAGE == 0 and (second or self.offset >= behind), "where data lie")
        require(self.offset + self.places * self.stride <= len(data_in), "the data's size")
        self.name, self.about = text(header[192:256]), text(header[256:320])
        self.arrays, end = [], 0
        for i in range(arrays):
            self.arrays.append(array_at(header, i, end, self.data_bytes))
            end = self.arrays[-1].offset + self.arrays[-1].bytes
        require(len({array.name for array in self.arrays}) == arrays, "two arrays of one name")
        # Views of 8 bytes, so that a word is loaded at once.
        self.words = memoryview(self.region).cast("Q")
        self.data = memoryview(data_in)

    def word(self, at):
        return self.words[at // 8]

    def copy(self, n):
        """Note and data of element n; None: it was overtaken. On x86 these loads need no fence."""
        i = n % self.places
        at, begin = HEADER + PLACE * i, self.offset + self.stride * i
        if self.word(at + DONE) != n + 1:
            return None
        note, data = self.region[at + 16:at + PLACE], bytes(self.data[begin:begin + self.data_bytes])
        return (note, data) if self.word(at + CLAIM) == n + 1 else None


class Reader:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(str(path))
        self.messages = []
        self.had = False
        self.attach()
        self.wanted = max(self.memory.first, self.memory.word(PUBLISHED) - 1)

    def close(self):
        self.socket.close()

    # ---- the socket ----

    def say(self, kind, value, payload=b""):
        self.socket.sendall(FRAME.pack(0x53535646, kind, value, len(payload), 0) + payload)

    def read(self, n, fds):
        data = b""
        while len(data) < n:
            piece, more, _, _ = socket.recv_fds(self.socket, n - len(data), 4)
            fds += more
            if not piece:
                raise Crashed("the connection has ended")
            data += piece
        return data

    def hear(self, wanted):
        """The next frame of that kind: its value, payload and descriptors. Messages on the way are kept."""
        while True:
            fds = []
            magic, kind, value, size, zero = FRAME.unpack(self.read(FRAME.size, fds))
            require(magic == 0x53535646 and zero == 0, "a frame's head")
            payload = self.read(size, fds)
            if kind == wanted:
                return value, payload, fds
            if kind == FAREWELL:
                raise Ended()
            require(kind == MESSAGE, f"a frame of kind {kind}")
            self.messages.append((value, payload))

    def attach(self):
        self.say(HELLO, 1)
        generation, payload, fds = self.hear(ATTACHED)
        self.memory = Memory(fds)
        for fd in fds:
            os.close(fd)
        require(self.memory.generation == generation and not payload, "a generation")
        self.arrays, self.generation, self.places = self.memory.arrays, generation, self.memory.places

    def ping(self, value):
        self.say(PING, value)
        return self.hear(PONG)[0]

    def message(self):
        return self.messages.pop(0) if self.messages else self.hear(MESSAGE)[:2]

    # ---- elements ----

    def element(self, n, note, data):
        number, stamp, ns, missing, score, keep, reason, flags, epoch, *rest = NOTE.unpack_from(note)
        missed = n - self.last - 1 if self.had else 0
        self.had, self.last, self.wanted = True, n, n + 1
        return Element(n, missed, number, stamp, ns, missing, score, keep, reason, flags, epoch, rest[:24], rest[24:32], rest[32], data)

    def at_the_end(self, state):
        if state == MOVED:
            self.attach()
            self.wanted = max(self.wanted, self.memory.first)
        elif state == ENDED:
            raise Ended()
        elif select.select([self.socket], [], [], 0)[0] and not self.socket.recv(1, socket.MSG_PEEK):
            if self.memory.word(STATE) == LIVE:
                raise Crashed("the writer has crashed")

    def next(self, every=True):
        while True:
            state = self.memory.word(STATE)  # before `published`
            published = self.memory.word(PUBLISHED)
            if published <= max(self.wanted, self.memory.first):
                return self.at_the_end(state)
            n = self.wanted if every and published - self.wanted <= self.places else published - 1
            copied = self.memory.copy(n)
            self.wanted = n + 1
            if copied:
                return self.element(n, *copied)
