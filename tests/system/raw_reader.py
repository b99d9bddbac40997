"""raw_reader.py - the raw container, read by what docs/reference/raw.md says and nothing else.

Run(path) has state ("complete" or "unfinished"), head, tail, and chunks: {number: Chunk}. Anything that the page rules out is a
Damaged with the file and the offset.
"""

import collections
import pathlib
import re
import struct

Chunk = collections.namedtuple("Chunk", "number bytes sequence key_number timestamp arrived_ns flags file offset payload")
BLOCK, HEADER, TRAILER, ENTRY = 4096, 128, 16, 64
DATA, PADDING, INDEX = 1, 2, 3


class Damaged(Exception):
    pass


def make_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


TABLE = make_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def up(n, multiple):
    return -(-n // multiple) * multiple


def block(data, at, size, magic):
    """A block with magic, version, byte order and checksum; None: it is not there."""
    raw = data[at:at + size]
    if len(raw) < size or raw[:8] != magic or struct.unpack_from("<II", raw, 8) != (1, 0x01020304):
        return None
    if struct.unpack_from("<I", raw, size - 4)[0] != crc32c(raw[:size - 4]):
        raise Damaged(f"byte {at}: checksum of the block {magic.decode()}")
    return raw


def blob(data, at, size, checksum, what):
    raw = data[at:at + size]
    if len(raw) < size or crc32c(raw) != checksum:
        raise Damaged(f"byte {at}: {what}")
    return raw


class Run:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        data = self.path.read_bytes()
        head = block(data, 0, BLOCK, b"SLRAWRUN")
        if head is None:
            raise Damaged(f"{path}: no raw container")
        self.generation, self.created, self.keep_ns, self.keep_bytes, size, folders_size, end_at, count, crc, folders_crc = \
            struct.unpack_from("<7QIII", head, 16)
        self.head = blob(data, BLOCK, size, crc, "the run's head")
        self.folders = blob(data, BLOCK + size, folders_size, folders_crc, "folders").decode().split("\0")[:count]
        self.table, self.tail, self.state = [], None, "unfinished"
        end = block(data, end_at, BLOCK, b"SLRAWEND")
        if end is not None:
            self.read_end(data, end_at, end)
        self.chunks, self.indexed = {}, 0
        for file in self.files():
            self.read_file(file)

    def read_end(self, data, at, end):
        generation, _, self.appended, self.lost, self.bytes, size, rows, crc, table_crc = struct.unpack_from("<7QII", end, 16)
        if generation != self.generation:
            raise Damaged("generation of the end block")
        self.tail = blob(data, at + BLOCK, size, crc, "the tail")
        table = blob(data, at + BLOCK + size, rows * 64, table_crc, "the table")
        self.table = [struct.unpack_from("<II7Q", table, i * 64) for i in range(rows)]
        self.state = "complete"

    def files(self):
        name = re.compile(re.escape(self.path.stem) + r"_raw_(\d{6,})\.bin")
        found = {}
        for folder in [*self.folders, ""]:
            folder = pathlib.Path(folder) if folder else self.path.parent
            for file in folder.iterdir() if folder.is_dir() else ():
                match = name.fullmatch(file.name)
                if match:
                    found.setdefault(int(match[1]), file)
        return [found[number] for number in sorted(found)]

    def read_file(self, file):
        data = file.read_bytes()
        if not any(data[:BLOCK]):
            return
        head = block(data, 0, BLOCK, b"SLRAWDAT")
        if head is None or struct.unpack_from("<Q", head, 16)[0] != self.generation:
            raise Damaged(f"{file}: head")
        footer = block(data, len(data) - 128, 128, b"SLRAWIDX")
        chunks = list(self.scan(file, data))
        if footer is not None:
            self.compare_index(file, data, footer, chunks)
            self.indexed += 1
        for chunk in chunks:
            if chunk.number in self.chunks:
                raise Damaged(f"{file}: byte {chunk.offset}: chunk {chunk.number} is there twice")
            self.chunks[chunk.number] = chunk

    def scan(self, file, data):
        at = BLOCK
        while True:
            header = data[at:at + HEADER]
            if len(header) < HEADER or header[:4] != b"SLRC" or struct.unpack_from("<I", header, 124)[0] != crc32c(header[:124]):
                return
            kind, generation, number, size, sequence, key_number, timestamp, arrived, flags = struct.unpack_from("<I7QI", header, 4)
            if generation != self.generation or kind == INDEX:
                return
            if kind == PADDING:
                at += HEADER + size
                continue
            whole = up(HEADER + size + TRAILER, HEADER)
            if at + whole > len(data):
                return
            payload = data[at + HEADER:at + HEADER + size]
            magic, checksum, again = struct.unpack_from("<4sIQ", data, at + whole - TRAILER)
            if magic == b"SLRE" and checksum == crc32c(payload) and again == number:
                yield Chunk(number, size, sequence, key_number, timestamp, arrived, flags, file, at, payload)
            elif self.state == "complete":
                raise Damaged(f"{file}: byte {at}: chunk {number}")
            at += whole

    def compare_index(self, file, data, footer, chunks):
        generation, at, entries = struct.unpack_from("<3Q", footer, 16)
        kind, _, _, size = struct.unpack_from("<IQQQ", data, at + 4)
        if generation != self.generation or kind != INDEX or size != entries * ENTRY or entries != len(chunks):
            raise Damaged(f"{file}: byte {at}: index")
        magic, checksum, _ = struct.unpack_from("<4sIQ", data, at + up(HEADER + size + TRAILER, HEADER) - TRAILER)
        if magic != b"SLRE" or checksum != crc32c(data[at + HEADER:at + HEADER + size]):
            raise Damaged(f"{file}: byte {at}: checksum of the index")
        for i, chunk in enumerate(chunks):
            entry = struct.unpack_from("<7QII", data, at + HEADER + i * ENTRY)
            if entry != (chunk.number, chunk.offset, chunk.bytes, *chunk[2:7], crc32c(chunk.payload)):
                raise Damaged(f"{file}: entry {i} of the index")
