#!/usr/bin/python3
"""same_test.py - the same experiment gives the same file, whatever carries the data and however it is cut up: every
dataset and attribute is compared bit for bit, but for those listed here."""
# normal build only

import os
import pathlib

from harness import acquire, case, check, equal, fewer, intact, main, skip
from recording import compare, contents

PATTERN = {"detector": {"dark_frames": 20, "frames": fewer(300, 100)}}
JUNGFRAU = {
    "detector": {"kind": "jungfrau", "rows": None, "columns": None, "dark_frames": fewer(64, 4),
                 "frames": fewer(124, 36), "hit_fraction": 0.2},
    "stages": [{"correct": {"output": "photons_i16"}}, {"veto": {"threshold": 10, "min_pixels": 20}}],
}


def record(folder, name, base, **changes):
    """Run it into a folder of its own; {path: (type, shape, bytes)} of everything in its file."""
    here = folder / name
    here.mkdir()
    sections = {key: {**value} if isinstance(value, dict) else value for key, value in base.items()}
    for key, value in changes.items():
        sections[key] = {**sections.get(key, {}), **value} if isinstance(value, dict) else value
    if "stages" in base:
        sections["sinks"] = [{"nexus": {"path": str(here / "run.nxs")}}, "verify"]
    program, summary = acquire(here, **sections)
    intact(program, summary, base["detector"]["dark_frames"] + base["detector"]["frames"])
    return contents(here / "run.nxs")


@case("jungfrau over udp and over shm: identical datasets and attributes")
def _(folder):
    udp = record(folder, "udp", JUNGFRAU)
    shm = record(folder, "shm", JUNGFRAU, link={"kind": "shm"})
    check(udp["/entry/data/data"][1][0] > 5, "hardly any image to compare")
    compare(udp, shm)
    equal(udp["/entry/sluice/link"] == shm["/entry/sluice/link"], False, "the files name the same link")


@case("jungfrau with 1 worker and batches of 1, with 2 workers and batches of 8, in keV: identical")
def _(folder):
    base = {**JUNGFRAU, "stages": [{"correct": {"output": "kev_f32"}}, "veto"]}
    compare(record(folder, "one", base, unit={"workers": 1, "batch": 1}),
            record(folder, "two", base, unit={"workers": 2, "batch": 8}))


class Reference:
    """The plain run that the other cases are compared with, made once."""

    contents = None

    @classmethod
    def get(cls, folder):
        cls.contents = cls.contents or record(folder, "reference", PATTERN)
        return cls.contents


def same_as_reference(name, **changes):
    @case(name)
    def _(folder):
        compare(Reference.get(folder), record(folder, "other", PATTERN, **changes))


same_as_reference("the same run twice")
same_as_reference("over shm", link={"kind": "shm"})
same_as_reference("one message per module and frame", link={"message": "module"})
same_as_reference("packets of 1024 bytes", link={"pmtu": 1024})
same_as_reference("packets of 256 bytes, one message per module and frame", link={"pmtu": 256, "message": "module"})
same_as_reference("over a reliable connection", link={"service": "rc"})
same_as_reference("over a reliable connection, packets of 256 bytes, one message per module and frame",
                  link={"service": "rc", "pmtu": 256, "message": "module"})
same_as_reference("sent to where the receiver puts it", link={"operation": "send"})
same_as_reference("sent to where the receiver puts it, reliably", link={"operation": "send", "service": "rc"})
same_as_reference("over a reliable connection that loses, doubles and spoils packets",
                  link={"service": "rc"}, frontend={"drop": 0.01, "duplicate": 0.01, "corrupt": 0.01})
same_as_reference("one message per line", link={"message": "line"})
same_as_reference("lines with a pitch", ring={"line_pitch": 192})
same_as_reference("lines with a pitch, one message per line, packets of 256 bytes, small tiles",
                  ring={"line_pitch": 320}, link={"message": "line", "pmtu": 256}, unit={"workers": 2, "tile_pixels": 100})
same_as_reference("lines with a pitch, with checksums, over a reliable connection that loses and doubles packets",
                  ring={"line_pitch": 192}, link={"service": "rc", "crc": True}, frontend={"drop": 0.01, "duplicate": 0.01})
same_as_reference("a rectangle inside a larger one", ring={"line_pitch": 320, "x": 11, "y": 5})
same_as_reference("a rectangle inside a larger one, over shm", link={"kind": "shm", "crc": True},
                  ring={"line_pitch": 4096, "x": 500, "y": 1})
same_as_reference("lines with a pitch, over shm", link={"kind": "shm", "crc": True}, ring={"line_pitch": 4096})
same_as_reference("two workers, small tiles", unit={"workers": 2, "tile_pixels": 100})
same_as_reference("batches of one frame", unit={"batch": 1})
same_as_reference("batches of 64 frames", unit={"batch": 64})
same_as_reference("a ring of four slots", ring={"slots": 4, "late_frames": 2})


@case("over IPv6, unreliable and reliable")
def _(folder):
    if not pathlib.Path("/proc/net/if_inet6").exists() or "0" * 31 + "1 " not in pathlib.Path(
            "/proc/net/if_inet6").read_text():
        skip("no IPv6 loopback address here")
    for service in ("uc", "rc"):
        link = {"listen": "::1", "source": "::1", "port": 20000 + os.getpid() % 20000, "service": service}
        compare(Reference.get(folder), record(folder, service, PATTERN, link=link))


same_as_reference("with a checksum in each record", link={"crc": True})
same_as_reference("with a checksum in each record, over shm", link={"kind": "shm", "crc": True})

main()
