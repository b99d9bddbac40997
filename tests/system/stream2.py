"""stream2.py - a client of DECTRIS' stream2, written from its specification alone: it knows nothing of Sluice.

decode() is as strict as the clients that exist (DECTRIS' stream2.c, areaDetector's ADEiger): what one of these would refuse
raises Refused. Puller is such a client on a thread of its own.
"""

import datetime
import threading
import time

import bitshuffle
import cbor2
import numpy
import zmq

TYPES = {64: "u1", 69: "<u2", 70: "<u4", 85: "<f4"}  # typed arrays of RFC 8746 that stream2.h names
FLOATS = ("beam_center_x", "beam_center_y", "count_time", "frame_time", "incident_energy", "incident_wavelength", "pixel_size_x",
          "pixel_size_y", "sensor_thickness")
INTEGERS = ("image_id", "image_size_x", "image_size_y", "number_of_images", "saturation_value", "series_id")
TEXTS = ("series_unique_id", "detector_description", "image_dtype", "sensor_material")
DATES = ("arm_date", "series_date")
TIMES = ("real_time", "start_time", "stop_time")


class Refused(Exception):
    """A real client would not take this message."""


def insist(condition, what):
    if not condition:
        raise Refused(what)


# ---- values ----

def unpack(name, element, packed):
    """Bytes of the compression tag, [algorithm, element bytes, bytes], as an array of that many bytes."""
    insist(len(packed) >= 12, "fewer than 12 compressed bytes")
    size, block = int.from_bytes(packed[:8], "big"), int.from_bytes(packed[8:12], "big")
    if name == "bslz4":
        insist(element in (1, 2, 4), f"element size {element}")
        kind = numpy.dtype(f"u{element}")
        return bitshuffle.decompress_lz4(numpy.frombuffer(packed[12:], "u1"), (size // element,), kind, block // element).view("u1")
    insist(name == "lz4" and element == 0, f"compression {name} with modifier {element}")
    return numpy.frombuffer(unpack_lz4(packed[12:], size, block), "u1")


def unpack_lz4(packed, size, block):
    """HDF5's framing of LZ4: a length before each block; a block as long as its unpacked one is not packed."""
    out, at = bytearray(), 0
    while len(out) < size:
        length, most = int.from_bytes(packed[at:at + 4], "big"), min(block, size - len(out))
        part = packed[at + 4:at + 4 + length]
        out += part if length == most else lz4_block(part)
        at += 4 + length
    insist(at == len(packed), "bytes behind the last block")
    return bytes(out)


def lz4_block(part):
    """lz4_Block_format.md, literally."""
    out, at = bytearray(), 0

    def length(nibble):
        nonlocal at
        n = nibble
        while nibble == 15:
            n += part[at]
            at += 1
            if part[at - 1] != 255:
                break
        return n
    while at < len(part):
        token = part[at]
        at += 1
        literals = length(token >> 4)
        out += part[at:at + literals]
        at += literals
        if at >= len(part):
            break
        offset = part[at] | part[at + 1] << 8
        at += 2
        for _ in range(length(token & 15) + 4):
            out.append(out[-offset])
    return bytes(out)


def value_of(decoder, tag):
    """cbor2's hook for tags that it does not know. An inner tag comes first."""
    if tag.tag == 56500:
        insist(len(tag.value) == 3, "a compression tag without three items")
        return unpack(*tag.value)
    if tag.tag in TYPES:
        data = tag.value if isinstance(tag.value, numpy.ndarray) else numpy.frombuffer(tag.value, "u1")
        return data.view(TYPES[tag.tag])
    if tag.tag == 40:
        shape, array = tag.value
        insist(len(shape) == 2 and shape[0] * shape[1] == array.size, f"{array.size} elements in {shape}")
        return array.reshape(shape)
    raise Refused(f"tag {tag.tag}")


def check_fields(message):
    for key in set(FLOATS) & set(message):
        insist(isinstance(message[key], float), f"{key} is no float: {message[key]!r}")
    for key in set(INTEGERS) & set(message):
        insist(type(message[key]) is int and message[key] >= 0, f"{key} is no unsigned integer: {message[key]!r}")
    for key in set(TEXTS) & set(message):
        insist(isinstance(message[key], str), f"{key} is no text")
    for key in set(DATES) & set(message):
        insist(isinstance(message[key], datetime.datetime) and message[key].tzinfo, f"{key} is no time with a zone")
    for key in set(TIMES) & set(message):
        insist(len(message[key]) == 2 and all(type(n) is int and n >= 0 for n in message[key]), f"{key} is no rational")


def check_start(message):
    for key in ("image_dtype", "threshold_energy", "channels", "series_id", "series_unique_id"):
        insist(key in message, f"areaDetector crashes without {key}")
    insist(list(message["threshold_energy"]) == message["channels"], "one threshold for each channel")
    insist(all(isinstance(v, float) for v in message["threshold_energy"].values()), "a threshold is no float")
    insist(message["image_dtype"] in ("uint8", "uint16", "uint32"), message["image_dtype"])
    move = message["detector_translation"]
    insist(len(move) == 3 and all(isinstance(v, float) for v in move), f"detector_translation {move}")
    for axis in message.get("goniometer", {}).values():
        insist(all(isinstance(axis[key], float) for key in ("increment", "start")), f"goniometer axis {axis}")
    for mask in message.get("pixel_mask", {}).values():
        insist(mask.dtype == numpy.uint32, f"a mask of {mask.dtype}")


def decode(data):
    """A message as a dictionary; arrays are numpy's."""
    insist(data[:3] == b"\xd9\xd9\xf7", "no magic bytes")
    insist(data[3] >> 5 == 5 and data[3] & 31 <= 27, "no map of a definite length")
    message = cbor2.loads(data, tag_hook=value_of)
    message = message.value if isinstance(message, cbor2.CBORTag) else message
    insist(next(iter(message)) == "type", "type is not the first key")
    insist(message["type"] in ("start", "image", "end"), f"type {message['type']}")
    insist(all(isinstance(key, str) and len(key) < 64 for key in message), "a key is no text, or too long")
    check_fields(message)
    if message["type"] == "start":
        check_start(message)
    return message


# ---- a client ----

class Puller:
    """Pulls until it is stopped or has an end message; `messages` are decoded, in their order."""

    started = []

    def __init__(self, endpoint, pause_s=0, receive_buffer=None, series=1, decoded=True):
        self.messages, self.series, self.pause_s, self.decoded = [], series, pause_s, decoded
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.PULL)
        self.socket.setsockopt(zmq.LINGER, 0)
        if receive_buffer:
            self.socket.setsockopt(zmq.RCVHWM, 1)
            self.socket.setsockopt(zmq.RCVBUF, receive_buffer)
        self.socket.connect(endpoint)
        self.go, self.stopping, self.failure = threading.Event(), False, None
        self.go.set()
        self.thread = threading.Thread(target=self.pull, daemon=True)
        self.thread.start()
        Puller.started.append(self)

    @staticmethod
    def end_all():
        """Those that a case has left, too."""
        for puller in Puller.started:
            puller.stopping = True
        for puller in Puller.started:
            puller.thread.join(10)
        Puller.started.clear()

    def pull(self):
        try:
            while not self.stopping and self.of("end") < self.series:
                if self.go.is_set() and self.socket.poll(20):
                    data = self.socket.recv()
                    self.messages.append(decode(data) if self.decoded else data)
                    time.sleep(self.pause_s)
                elif not self.go.is_set():
                    time.sleep(0.01)
        except Exception as problem:  # told by join()
            self.failure = problem
        self.socket.close(0)
        self.context.term()

    def of(self, kind):
        return sum(m["type"] == kind for m in self.messages) if self.decoded else 0

    def images(self):
        return [m for m in self.messages if m["type"] == "image"]

    def stall(self):
        self.go.clear()

    def resume(self):
        self.go.set()

    def stop(self):
        """The connection ends, whatever is still to come."""
        self.stopping = True
        return self.join()

    def join(self, timeout_s=60):
        self.thread.join(timeout_s)
        if self.failure:
            raise self.failure
        if self.thread.is_alive():
            raise TimeoutError(f"no end message; {len(self.messages)} messages came")
        return self
