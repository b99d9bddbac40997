#!/usr/bin/python3
"""native_test.py - detectors that send UDP of their own format (docs/how-to/native.md): `sluice emulate` speaks it, and a sender
written here from the published description does; lost, doubled, overtaken, foreign and wrong packets, frame numbers that
jump, detectors that fall silent or never stop."""
# normal build only

import random
import signal
import socket
import struct
import threading
import time

import h5py

from fault_oracle import compare, count, foresee, read_log
from harness import (GUARDED, RECEIVER, ROOT, SOURCE, acquire, address, case, check, closes, equal, experiment, fewer, images_on_disk, intact,
                     main, read_outcomes, read_summary, receiver, run, run_fails, sink, wait_for)

STRANGER = address(3)
SLS_PORT = 50001
ROWS, COLUMNS, PAYLOAD = 64, 64, 1024  # two lines and more to a packet, eight packets to a module
BLOCK = ROWS * COLUMNS * 2
JUNGFRAU, EIGER = 3, 1
DAMAGED, LOST = ("incomplete", "damaged"), ("lost", "no_arrival")


def pieces(link, frames, rate_Hz=400, **detector):
    """Sections of an experiment that is small, and as fast as a detector would be."""
    return {"link": {"kind": "sls", "payload": PAYLOAD, **link},
            "detector": {"rows": ROWS, "columns": COLUMNS, "frames": frames, "frame_rate_Hz": rate_Hz, **detector},
            "ring": {"slots": 1000}}  # a machine that is busy for a second loses nothing


# ---- the emulator ----

def emulated(name, frames=200, dark=3, numbers=None, *, link, **detector):
    @case(name)
    def _(folder):
        program, summary = acquire(folder, program=GUARDED, **pieces(link, frames, dark_frames=dark, **detector))
        intact(program, summary, frames + dark)
        equal(sum(summary["link"]["turned_away"].values()), 0, "packets turned away")
        if "pollers" in link:
            equal(summary["threads"]["pollers"], link["pollers"], "threads of the link")
        with h5py.File(folder / "run.nxs", "r") as file:
            first = numbers if numbers is not None else 1 + dark
            equal(file["entry/data/frame_number"][:].tolist(), list(range(first, first + frames)), "frame numbers")


emulated("a jungfrau with one interface", link={})
emulated("a jungfrau with two", link={"ports": 2})
emulated("the same, two threads", link={"ports": 2, "pollers": 2})
emulated("half-modules of an eiger, 8 bit", link={"detector": "eiger"}, bits=8, columns=128)
emulated("16 bit", link={"detector": "eiger"})
emulated("32 bit, packets shorter than lines", link={"detector": "eiger", "payload": 256}, bits=32, columns=256)
emulated("modules of an eiger with four ports", link={"detector": "eiger", "ports": 4})
emulated("4 bit, two pixels to a byte", link={"detector": "eiger", "ports": 4, "payload": 256}, frames=60, bits=4)
emulated("12 bit, packets that end between the bytes of a pixel", frames=60,
         link={"detector": "eiger", "ports": 4, "payload": 256, "column_modules": 1, "first_module": 3}, bits=12)
emulated("a RICH: 20 events of 48 bytes to a packet, 100 to a block", link={"kind": "nanet"}, numbers=3, rows=100,
         columns=48, bits=8)
emulated("the same with 30 events to a packet, from an event on that is near the wrap of 24 bits",
         link={"kind": "nanet", "packet_events": 30, "first_frame": "16770000"}, numbers=3, rows=120, columns=48, bits=8)
emulated("packets of their own, without a checksum", link={"segment": False, "checksum": False})
emulated("the first frame number is what comes", link={"first_frame": "auto"})
emulated("the first frame number is what the file says", link={"first_frame": "1000"}, numbers=1003)


def hurt(name, frontend, kinds_there, *, exit_status=2, link=None, packets=BLOCK // PAYLOAD, **detector):
    @case(name)
    def _(folder):
        frames = fewer(600, 300)
        sections = pieces(link or {}, frames, **detector)
        sections["control"] = {"silence_s": 2}
        program, summary = acquire(folder, frontend={"fault_log": str(folder / "faults.txt"), **frontend}, **sections)
        equal(program.process.returncode, exit_status, "exit status")
        faults = read_log(folder)
        kinds = compare(folder, summary, foresee(faults, frames, packets=packets,
                                                 hold=frontend.get("reorder_packets", 0)))
        equal(sink(summary, "verify")["pixels_mismatched"], 0, "wrong pixels in complete frames")
        check(all(kinds[kind] >= 5 for kind in kinds_there), f"hardly a test: {kinds}")
        away = summary["link"]["turned_away"]
        # The copy of a frame's last packet may come when its slot was given away.
        equal(away["duplicate"] + away["late"], count(faults, "duplicate"), "packets that came twice")
        equal(summary["link"]["packets"], 2 * frames * packets - sum(count(faults, k) for k in ("drop", "burst")) -
              packets * count(faults, "skip"), "packets placed")


hurt("dropped: every outcome as the fault log has it", {"drop": 0.02}, [DAMAGED, None])
hurt("most of them dropped: whole modules are lost", {"drop": 0.6}, [DAMAGED, LOST])
hurt("doubled: nothing is lost", {"duplicate": 0.05}, [None], exit_status=0)
hurt("overtaken by others, also of later frames: nothing is lost", {"reorder": 0.05, "reorder_packets": 11}, [None],
     exit_status=0)
hurt("all of that, over two interfaces", {"drop": 0.01, "duplicate": 0.02, "reorder": 0.02, "reorder_packets": 5,
                                          "burst": 0.002, "skip": 0.02}, [DAMAGED, LOST, None], link={"ports": 2})
hurt("all of that, over the ports of an eiger", {"drop": 0.02, "duplicate": 0.02, "reorder": 0.02},
     [DAMAGED, None], link={"detector": "eiger"})
hurt("all of that, to an eiger's 12 bit", {"drop": 0.02, "duplicate": 0.02, "reorder": 0.02, "reorder_packets": 7},
     [DAMAGED, None], link={"detector": "eiger", "payload": 512}, packets=12, bits=12)
hurt("all of that, to the events of a RICH", {"drop": 0.02, "duplicate": 0.02, "reorder": 0.02, "skip": 0.02},
     [DAMAGED, LOST, None], link={"kind": "nanet"}, packets=5, rows=100, columns=48, bits=8)


# ---- a detector of our own ----

def header(frame, packet, module=0, detector=JUNGFRAU, version=2, cell=0, row=None, column=0):
    """sls_detector_header 2.0, as docs/src/udpheader.rst of slsDetectorPackage has it."""
    return struct.pack("<QIIQQHHHHIHBB", frame, 0, packet, 0, frame * 12345 % (1 << 64), module, module if row is None else row,
                       column, 0, cell << 8, 0, detector, version)


def pixels(module, frame, bytes_=BLOCK):
    return random.Random(module << 32 | frame).randbytes(bytes_)


def packets_of(module, frame):
    block = pixels(module, frame)
    return [(SLS_PORT + module, header(frame, p, module, cell=frame % 16) + block[p * PAYLOAD:][:PAYLOAD])
            for p in range(BLOCK // PAYLOAD)]


class Detector:
    def __init__(self, source=SOURCE):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((source, 0))

    def send(self, packets):
        for n, (port, packet) in enumerate(packets):
            self.socket.sendto(packet, (RECEIVER, port))
            if n % 64 == 63:
                time.sleep(0.001)  # buffers may be small here

    def close(self):
        self.socket.close()


def listening(folder, frames, link=None, arguments=(), **sections):
    base = pieces(link or {}, frames)
    base["ring"].update(sections.pop("ring", {}))
    base.update({"sinks": [{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw"}}], "emulate": "none",
                 "control": {"silence_s": 1, **sections.pop("control", {})}})
    return receiver(folder, experiment(folder, **base, **sections), *arguments)


def stored(folder, frames, modules=2):
    """The file holds these frames, each as it was sent."""
    with h5py.File(folder / "run.nxs", "r") as file:
        equal(file["entry/data/frame_number"][:].tolist(), frames, "frame numbers")
        equal(file["entry/data/timestamp"][:].tolist(), [f * 1234500 for f in frames], "timestamps, ns of 10 MHz")
        for k, frame in enumerate(frames):
            sent = b"".join(pixels(module, frame) for module in range(modules))
            check(file["entry/data/data"][k].tobytes() == sent, f"frame {frame} is not what was sent")


@case("a sender written here: packets shuffled over three frames, every tenth twice")
def _(folder):
    frames = 60
    started = listening(folder, frames)
    detector, order = Detector(), random.Random(1)
    twice = 0
    for first in range(1, frames + 1, 3):
        packets = [p for frame in range(first, first + 3) for m in range(2) for p in packets_of(m, frame)]
        order.shuffle(packets)
        for n in range(0, len(packets), 10):
            packets.insert(n, packets[n])
            twice += 1
        detector.send(packets)
    started.ends(0)
    summary = read_summary(folder)
    closes(summary, 2 * frames)
    away = summary["link"]["turned_away"]
    equal(away["duplicate"] + away["late"], twice, "packets that came twice")
    stored(folder, list(range(1, frames + 1)))


@case("a RICH written here: boards that take turns, packets shuffled within a block, the count of events wraps")
def _(folder):
    blocks, per_packet, per_block, first = 40, 20, 100, (1 << 24) - 1000
    link = {"kind": "nanet", "first_frame": str(first)}
    path = experiment(folder, link=link, detector={"rows": per_block, "columns": 48, "bits": 8, "frames": blocks},
                      emulate="none", ring={"slots": 64},
                      sinks=[{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw"}}])
    started = receiver(folder, path)
    detector, order = Detector(), random.Random(2)
    for k in range(blocks):
        packets = []
        for board in range(2):
            block = pixels(board, k, per_block * 48)
            for event in range(0, per_block, per_packet):
                number = (first + k * per_block + event) % (1 << 24)
                length = 12 + per_packet * 48
                head = struct.pack("<IHBBI", number | 0x1c << 24, length, per_packet, board, 400 * k)
                packets.append((58913 + board, head + block[event * 48:][:per_packet * 48]))
        order.shuffle(packets)
        detector.send(packets)
    started.ends(0)
    closes(read_summary(folder), 2 * blocks)
    with h5py.File(folder / "run.nxs", "r") as file:
        equal(file["entry/data/timestamp"][:].tolist(), [10000 * k for k in range(blocks)], "timestamps")
        for k in range(blocks):
            sent = b"".join(pixels(board, k, per_block * 48) for board in range(2))
            check(file["entry/data/data"][k].tobytes() == sent, f"block {k} is not what was sent")


@case("frame numbers that jump: what is between is lost, and named")
def _(folder):
    frames = 300
    started = listening(folder, frames, ring={"slots": 64, "overrun": "drop_newest"})
    detector = Detector()
    there = [*range(1, 11), *range(15, 21), *range(280, 301)]
    for frame in there:
        detector.send([p for m in range(2) for p in packets_of(m, frame)])
        time.sleep(0.02)
    started.ends(2)
    summary = read_summary(folder)
    closes(summary, 2 * frames)
    outcomes = read_outcomes(folder)
    gone = {key[0] + 1 for key, value in outcomes.items() if value == LOST}
    equal(sorted(gone), [f for f in range(1, frames + 1) if f not in there], "frames that were lost")
    # Where it jumps beyond all slots, some may come before these are free.
    refused = {key[0] + 1 for key, value in outcomes.items() if value[0] not in ("lost", "stored")}
    check(refused <= set(range(280, 301)) and len(refused) <= 5, f"frames turned away: {refused}")
    stored(folder, [f for f in there if f not in refused])


@case("numbers that fall back, and one stray number far ahead: counted, and nothing else")
def _(folder):
    started = listening(folder, 20)
    detector = Detector()
    for frame in range(1, 21):
        both = [p for m in range(2) for p in packets_of(m, frame)]
        if frame == 10:
            both[4:4] = [(SLS_PORT, header(9000, 3) + bytes(PAYLOAD)), (SLS_PORT, header(1 << 60, 0) + bytes(PAYLOAD)),
                         (SLS_PORT + 1, header(0, 0, 1) + bytes(PAYLOAD)), (SLS_PORT, header(21, 0) + bytes(PAYLOAD))]
        detector.send(both)
        if frame == 15:
            wait_for("frames", lambda: images(folder) >= 10)
            detector.send(packets_of(0, 1))
    started.ends(0)
    summary = read_summary(folder)
    away = summary["link"]["turned_away"]
    equal((away["range"], away["late"] + away["duplicate"]), (4, 8), "packets out of range, and late")
    stored(folder, list(range(1, 21)))


def images(folder):
    return images_on_disk(folder)


@case("packets that are wrong, and a stranger's, are counted by cause")
def _(folder):
    started = listening(folder, 30, link={"senders": f"{SOURCE}, {RECEIVER}"})
    detector, stranger = Detector(), Detector(STRANGER)
    good = header(1, 0) + pixels(0, 1)[:PAYLOAD]
    wrong = [good[:-1], good[:48], good[:20], b"", good + b"x", good * 8,
             header(1, 0, version=1) + good[48:], header(1, 0, detector=EIGER) + good[48:]]
    detector.send([(SLS_PORT, packet) for packet in wrong])
    for frame in range(1, 31):
        stranger.send([(SLS_PORT, header(frame, 0) + bytes(PAYLOAD))])
        detector.send([p for m in range(2) for p in packets_of(m, frame)])
    started.ends(0)
    away = read_summary(folder)["link"]["turned_away"]
    equal((away["malformed"], away["peer"]), (len(wrong), 30), "packets that are wrong, and a stranger's")
    stored(folder, list(range(1, 31)))


# ---- where packets say that they come from, and how pixels lie in them ----

def eiger_packets(frame, image, payload, pack, swapped=(), lower_first=False):
    """A module of an Eiger as its two half-modules send it: each port its side of the lines, both halves the line in the middle of the
    module first. swapped: two ports whose cables are exchanged."""
    rows, columns = len(image), len(image[0])
    packets = []
    for port in range(4):
        half, side = divmod(port, 2)
        lines = image[:rows // 2][::-1] if (half == 0) != lower_first else image[rows // 2:]
        data = pack([pixel for line in lines for pixel in line[side * columns // 2:(side + 1) * columns // 2]])
        to = swapped[1 - swapped.index(port)] if port in swapped else port
        packets += [(SLS_PORT + to, header(frame, n, port, EIGER, row=half, column=side) + data[at:at + payload])
                    for n, at in enumerate(range(0, len(data), payload))]
    return packets


def pack4(values):
    return bytes(low | high << 4 for low, high in zip(values[::2], values[1::2]))


def pack12(values):
    return b"".join((low | high << 12).to_bytes(3, "little") for low, high in zip(values[::2], values[1::2]))


def eiger_run(name, bits, pack, payload, swapped=(), halves="upper_first"):
    rows, columns, frames = 32, 64, 12

    def send(folder):
        path = experiment(folder, link={"kind": "sls", "detector": "eiger", "ports": 4, "payload": payload, "halves": halves},
                          detector={"modules": 1, "rows": rows, "columns": columns, "bits": bits, "frames": frames}, emulate="none",
                          ring={"slots": 64}, control={"silence_s": 1, "wait_s": 1},
                          sinks=[{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw"}}])
        started, detector, order = receiver(folder, path), Detector(), random.Random(3)
        images = [[[order.randrange(1 << bits) for _ in range(columns)] for _ in range(rows)] for _ in range(frames)]
        for frame, image in enumerate(images, 1):
            packets = eiger_packets(frame, image, payload, pack, swapped, halves == "lower_first")
            order.shuffle(packets)
            detector.send(packets)
        return started, images

    @case(name)
    def _(folder):
        started, images = send(folder)
        if swapped:
            started.ends(2)
            away = read_summary(folder)["link"]["turned_away"]
            equal(away["queue"], frames * 2 * rows // 2 * columns // 2 * bits // 8 // payload, "packets of other ports")
            told = [line for line in started.err().splitlines() if "receives packets of" in line]
            equal(len(told), 2, "ports that are told of")
            check(any("port 50002 (module 0, upper half, right) receives packets of row 1, column 1, and expects row 0, column 1; "
                      "port 50004 expects those: are cables swapped?" in line for line in told), f"not told: {told}")
            return
        started.ends(0)
        closes(read_summary(folder), frames)
        with h5py.File(folder / "run.nxs", "r") as file:
            equal(file["entry/data/data"][:].reshape(frames, rows, columns).tolist(), images, "pixels")


eiger_run("an eiger's module written here, 8 bit: the upper half is turned over", 8, bytes, 64)
eiger_run("the same with the lower half on the first ports", 8, bytes, 64, halves="lower_first")
eiger_run("4 bit, the lower half of a byte first", 4, pack4, 64)
eiger_run("12 bit, three bytes to two pixels", 12, pack12, 64)
eiger_run("an eiger whose right cables are swapped: nothing of them is stored, and the run says which", 8, bytes, 64, (1, 3))


def readnrows(name, rows, ports):
    """Packets of the middle rows keep their numbers (start_timer() of slsDetectorPackage's jungfrauDetectorServer)."""
    frames, payload = 3, 8192

    @case(name)
    def _(folder):
        path = experiment(folder, link={"kind": "sls", "ports": ports}, emulate="none", ring={"slots": 16},
                          detector={"kind": "jungfrau", "modules": 1, "rows": None, "columns": None, "read_rows": rows, "frames": frames}, control={"silence_s": 1}, stages=[],
                          sinks=[{"nexus": {"path": str(folder / "run.nxs"), "dataset": "raw", "image": "assembled"}}])
        started, detector = receiver(folder, path), Detector()
        for frame in range(1, frames + 1):
            block = pixels(0, frame, rows * 2048)
            packets = []
            for n in range(64 - rows // 8, 64 + rows // 8):
                port, number = divmod(n, 64) if ports == 2 else (0, n)
                at = (n - 64 + rows // 8) * payload
                packets.append((SLS_PORT + port, header(frame, number, row=port) + block[at:at + payload]))
            detector.send(packets)
        started.ends(0)
        closes(read_summary(folder), frames)
        with h5py.File(folder / "run.nxs", "r") as file:
            images = file["entry/data/data"][:]
            equal(images.shape, (frames, 514, 1030), "shape of the image")
            first = 256 - rows // 2  # of the rows that are read out
            for frame, image in enumerate(images, 1):
                sent = [pixels(0, frame, rows * 2048)[r * 2048:][:512] for r in range(rows)]  # 256 columns of an ASIC, one wide
                equal(image[first, :255].tobytes(), sent[0][:510], "the first row")
                equal(image[first + rows + 1, :255].tobytes(), sent[-1][:510], "the last row")
                check((image[:first] == 65535).all() and (image[first + rows + 2:] == 65535).all(), "rows that were not read out")


readnrows("a jungfrau that reads out 16 rows in the middle", 16, 1)
readnrows("the same over two interfaces", 16, 2)


@case("a detector that does not know its positions: told what to set, and taken with positions: ignore")
def _(folder):
    for positions in ("check", "ignore"):
        started = listening(folder, 5, link={"positions": positions}, control={"wait_s": 1})
        detector = Detector()
        for frame in range(1, 6):
            for m in range(2):
                block = pixels(m, frame)
                detector.send([(SLS_PORT + m, header(frame, p, row=0, cell=frame % 16) + block[p * PAYLOAD:][:PAYLOAD])
                               for p in range(BLOCK // PAYLOAD)])
        started.ends(0 if positions == "ignore" else 2)
        queue = read_summary(folder)["link"]["turned_away"]["queue"]
        equal(queue, 0 if positions == "ignore" else 5 * BLOCK // PAYLOAD, "packets of another place")
        check(positions == "ignore" or "port 50002 (module 1) receives packets of row 0" in started.err(), "it is not told")
    stored(folder, list(range(1, 6)))


@case("a jungfrau's partial readout, emulated, corrected and compared pixel by pixel")
def _(folder):
    path = experiment(folder, link={"kind": "sls", "ports": 2}, emulate="local", ring={"slots": 256},
                      detector={"kind": "jungfrau", "rows": None, "columns": None, "read_rows": 64, "frames": 20, "dark_frames": 4, "pool": 3, "frame_rate_Hz": 100},
                      stages=[{"correct": {"output": "photons_i16"}}],
                      sinks=[{"nexus": {"path": str(folder / "run.nxs")}}, "verify"])
    program = run("run", path, "--summary", folder / "summary.json", folder=folder)
    intact(program, read_summary(folder), 24)


@case("a detector that falls silent: counted as far as it came, and the run says so")
def _(folder):
    started = listening(folder, 100)
    detector = Detector()
    for frame in range(1, 31):
        detector.send([p for m in range(2) for p in packets_of(m, frame)])
    detector.send(packets_of(0, 31)[:3])
    started.ends(3)
    summary = read_summary(folder)
    equal(summary["ended_early"], "nothing came any more (control.silence_s, wait_s)", "why it ended")
    equal([m["sent"] for m in summary["ledger"]["modules"]], [30, 30], "frames that count as sent")
    equal(summary["ledger"]["modules"][0]["unfinished"], {"sequence": 30, "packets": 3}, "what was under way")
    check("after 31 of the 100 frames" in started.err() and "control.silence_s" in started.err(), "it is not told")
    stored(folder, list(range(1, 31)))


@case("nothing ever comes: the run ends after control.wait_s")
def _(folder):
    started = listening(folder, 10, control={"wait_s": 1})
    started.ends(3)
    check("nothing came within 1 s (control.wait_s)" in started.err(), "it is not told")


@case("a module's last frame is lost, another's came: it is lost, not waited for")
def _(folder):
    started = listening(folder, 10, control={"silence_s": 60})
    detector = Detector()
    for frame in range(1, 11):
        detector.send([p for m in range(2 if frame < 10 else 1) for p in packets_of(m, frame)])
    started.ends(2)
    closes(read_summary(folder), 20)
    equal(read_outcomes(folder)[9, 1], LOST, "module 1's last")


@case("Ctrl-C while the detector goes on: what was whole is stored, and the ledger closes")
def _(folder):
    started = listening(folder, 10 ** 9)
    detector, over = Detector(), threading.Event()

    def go_on():
        frame = 1
        while not over.is_set():
            detector.send([p for m in range(2) for p in packets_of(m, frame)])
            frame += 1
            time.sleep(0.002)
    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        wait_for("frames", lambda: images(folder) >= 20)
        started.send(signal.SIGINT)
        started.ends(0)
    finally:
        over.set()
        thread.join()
    summary = read_summary(folder)
    closes(summary)
    equal((summary["ended_early"], summary["result"]), ("interrupted", "intact"), "how it ended")
    stored(folder, list(range(1, summary["ledger"]["modules"][0]["sent"] + 1)))


@case("one receiver of two: every second frame number, from a transfer that says so")
def _(folder):
    started = listening(folder, 20, arguments=("--transfer", "odd"), transfers={"odd": {"every": 2, "phase": 1}})
    detector = Detector()
    for frame in range(1, 21):
        detector.send([p for m in range(2) for p in packets_of(m, frame)] if frame % 2 == 0 else
                      [(SLS_PORT, header(frame, 0) + bytes(PAYLOAD))])
    started.ends(0)
    equal(read_summary(folder)["link"]["turned_away"]["range"], 10, "packets of the others")
    stored(folder, list(range(2, 21, 2)))


# ---- what cannot be ----

def refused(name, says, link=None, command="run", **sections):
    @case(name)
    def _(folder):
        base = pieces(link or {}, 10)
        for key, value in sections.items():
            base[key] = {**base.get(key, {}), **value}
        run_fails(command, experiment(folder, **base), folder=folder, says=[says])


refused("a checksum that nobody sends is refused", "crc must be false", link={"crc": True})
refused("a reliable connection is refused", "has no service rc", link={"service": "rc"})
refused("corrupt is refused: there is no checksum that could be wrong", "corrupt: link 'sls' cannot do that",
        frontend={"corrupt": 0.1})
refused("a wrong key is refused: there are none", "wrong_key: link 'sls' has no keys", frontend={"wrong_key": 0.1})
refused("sources that cannot wait are not paused", "cannot be paused", ring={"overrun": "pause"})
refused("modules that the ports do not divide are refused", "is not a whole number of packets", link={"payload": 1000})
refused("4 bit with an odd number of pixels to a port is refused", "no whole number of pairs",
        link={"detector": "eiger", "payload": 64}, detector={"bits": 4, "columns": 66})
refused("turning over what has no halves is refused", "link.halves", link={"halves": "as_sent"})
refused("an emulator that nothing paces is refused", "set detector.frame_rate_Hz", command="emulate",
        detector={"frame_rate_Hz": 0})
refused("an emulator that sends from one family of addresses to the other is refused", "must all be IPv4 or all IPv6",
        command="emulate", link={"listen": "::1", "source": "127.0.0.1"})


@case("an Eiger whose link takes a Jungfrau's headers is refused")
def _(folder):
    path = folder / "eiger.yaml"
    path.write_text("detector: {kind: eiger, modules: 1, frames: 10, frame_rate_Hz: 10}\nlink: {kind: sls, ports: 2}\n"
                    "ring: {overrun: drop_newest}\nsinks: ['null']\n")
    run_fails("run", path, folder=folder, says=["set link.detector"])


def wrong_rows(rows, says):
    @case(f"a partial readout of {rows} rows is refused")
    def _(folder):
        path = folder / "rows.yaml"
        path.write_text(f"detector: {{kind: jungfrau, modules: 1, frames: 10, frame_rate_Hz: 10, read_rows: {rows}}}\n"
                        "link: {kind: sls}\nring: {overrun: drop_newest}\nsinks: ['null']\n")
        run_fails("run", path, folder=folder, says=["read_rows", says])


wrong_rows(12, "no multiple of 8")
wrong_rows(520, "8..512")


@case("an emulator of our own that fails is not waited for as long as a detector")
def _(folder):
    base = pieces({"listen": "::1", "source": "127.0.0.1"}, 10)
    program = run("run", experiment(folder, **base, control={"wait_s": 3600}, emulate="local"), folder=folder)
    equal(program.process.returncode, 3, "exit status")
    check("the front end failed" in program.err(), "the reason is not told")


@case("raw pixels can be stored without a stage, whatever the other sinks")
def _(folder):
    base = pieces({}, 10, rate_Hz=100)
    program = run("run", experiment(folder, **base, stages=[], sinks=[{"nexus": {"path": str(folder / "raw.nxs"), "dataset": "raw"}}],
                                    emulate="local"), folder=folder)
    equal(program.process.returncode, 0, "exit status")


@case("a port that is in use is refused, and says so")
def _(folder):
    other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    other.bind((RECEIVER, SLS_PORT + 1))
    run_fails("run", experiment(folder, **pieces({}, 10)), folder=folder, says=[f"port {SLS_PORT + 1} is in use"])
    other.close()


@case("the options are listed")
def _(folder):
    listed = run("list", "links", folder=folder).out()
    check("PSI's detectors as they send" in listed and "first_frame" in listed, "sls is not described")


# Pools and rates of a machine that does other things, too.
EXAMPLES = {"jungfrau-udp": (10, 2, ["detector.dark_frames=2", "detector.pool=3", "detector.frame_rate_Hz=10"]),
            "rich-udp": (200, 4, ["detector.pool=7", "detector.frame_rate_Hz=200"])}

for example, (bright, modules, small) in EXAMPLES.items():
    @case(f"examples/{example}.yaml: intact, every byte compared")
    def _(folder, example=example, bright=bright, modules=modules, small=small):
        sets = [word for value in (f"detector.frames={bright}", *small, f"link.listen={RECEIVER}", f"link.source={SOURCE}")
                for word in ("--set", value)]
        program = run("run", ROOT / f"examples/{example}.yaml", *sets, "--summary", folder / "summary.json", folder=folder)
        frames = bright + (2 if example == "jungfrau-udp" else 0)
        intact(program, read_summary(folder), frames, modules)


main()
