#!/usr/bin/python3
"""events_test.py - detectors that send many small events in a block: the examples in small, every byte compared, and what
lies in the file decoded by the words of docs/reference/events.md alone."""

import struct

import h5py
import numpy as np

from harness import RECEIVER, ROOT, SOURCE, case, check, closes, equal, intact, main, read_summary, run, run_fails, sink, skip

SMALL = {  # frames, modules, events of a frame; what makes the example small
    "rich": (300, 4, 4 * 64, ("detector.events=64", "detector.pool=31")),
    "tracker": (20, 32, 2, ("detector.events=2", "detector.pool=7")),
}


def acquire(folder, name, link, *more):
    frames, _, _, small = SMALL[name]
    places = ("link.kind=shm",) if link == "shm" else (f"link.listen={RECEIVER}", f"link.source={SOURCE}")
    sets = [word for value in (f"detector.frames={frames}", *small, *places, *more) for word in ("--set", value)]
    program = run("run", ROOT / f"examples/{name}.yaml", *sets, "--summary", folder / "summary.json", folder=folder)
    return program, read_summary(folder)


def data(folder, name):
    """[frame][row][byte] of the file."""
    with h5py.File(folder / f"{name}.nxs") as file:
        return file["entry/data/data"][()]


for example in SMALL:
    for kind in ("udp", "shm"):
        @case(f"examples/{example}.yaml over {kind}: intact, every byte compared, events counted")
        def _(folder, example=example, kind=kind):
            frames, modules, events, _ = SMALL[example]
            program, summary = acquire(folder, example, kind)
            intact(program, summary, frames, modules)
            equal(summary["link"]["kind"], kind, "the link")
            rates = summary["rates"]
            check(abs(rates["events_per_s"] / rates["frames_per_s"] / events - 1) < 1e-4, "events per frame")
            check("events/s)" in program.out(), "the report does not tell events per second")


@case("rich: events in the file are 32 hits of 12 bits, cells of two disks, used ones first")
def rich_bytes(folder):
    acquire(folder, "rich", "shm")
    events = data(folder, "rich")
    equal(events.shape, (300, 4 * 64, 48), "shape of the data")
    pairs = events.reshape(-1, 16, 3).astype(int)
    hits = np.stack([pairs[..., 0] | (pairs[..., 1] & 15) << 8, pairs[..., 1] >> 4 | pairs[..., 2] << 4], -1).reshape(-1, 32)
    used = hits != 0xfff
    check((hits[used] < 2 * 976).all(), "a hit is the number of a photomultiplier")
    check((np.diff(used.astype(int), axis=1) <= 0).all(), "used entries come first")
    check(18 < used.sum(axis=1).mean() < 22, "20 hits on average")
    for event, marks in zip(hits[:2000], used[:2000]):
        equal(len(set(event[marks])), marks.sum(), "each photomultiplier once")
    # 31 different blocks of a module, then the first again; the modules differ.
    check((events[:31] == events[31:62]).all() and not (events[0] == events[1]).all(), "the pool is replayed")
    check(not (events[0, :64] == events[0, 64:128]).all(), "modules have events of their own")


@case("tracker: stubs in the file are 48 bits, in their layers, and twice where sectors overlap")
def tracker_bytes(folder):
    acquire(folder, "tracker", "shm")
    rows = data(folder, "tracker")
    equal(rows.shape, (20, 32 * 2 * 9, 960), "shape of the data")
    stubs = np.zeros((*rows.shape[:2], 160, 8), np.uint8)
    stubs[..., :6] = rows.reshape(*rows.shape[:2], 160, 6)
    bits = stubs.view("<u8")[..., 0][:7].astype(np.int64)
    used = bits & 1 == 1
    check((bits[~used] == 0).all(), "what is not used is zero")
    check((np.diff(used.astype(int), axis=2) <= 0).all(), "used ones come first")
    check(58 < used.sum(axis=2).mean() < 70, "65 stubs in a sector at a pile-up of 140")
    layer, r, z = bits >> 1 & 7, (bits >> 22 & 4095) * 0.03, ((bits >> 8 & 16383 ^ 8192) - 8192) * 0.04
    barrel = used & (np.abs(z) < 124)
    for number, radius in enumerate((23, 36, 51, 69, 86, 108), 1):
        check((np.abs(r[barrel & (layer == number)] - radius) < 1).all(), f"layer {number} is where it is")
    for disk, middle in enumerate((131, 155, 185, 221, 265), 1):
        check((np.abs(np.abs(z[used & ~barrel & (layer == 8 - disk)]) - middle) < 1).all(), f"disk {disk} is where it is")
    phi = ((bits >> 34 & 16383 ^ 8192) - 8192) * np.pi / 8 / 8192
    check(0.1 < np.abs(phi[used]).max() < 0.2, "sectors reach beyond their own eleven degrees")
    # Module m has wedge m; row event * 9 + eta of a module.
    wedges = bits.reshape(7, 32, 2, 9, 160)[0, :, 0, 4]
    fields = [set((wedges[w][wedges[w] & 1 == 1] & (1 << 34) - 1).tolist()) for w in range(32)]
    shared = [len(fields[w] & fields[(w + 1) % 32]) for w in range(32)]
    check(min(shared) > 0 and np.mean(shared) < 60, "neighbours share stubs")


@case("rich over udp with lost packets: the ledger closes, and what arrived is right")
def losses(folder):
    program, summary = acquire(folder, "rich", "udp", "frontend.drop=0.01")
    equal(program.process.returncode, 2, "exit status")
    closes(summary, 300 * 4)
    figures = sink(summary, "verify")
    equal(figures.pop("frames_compared") * 4, summary["ledger"]["total"]["outcomes"]["stored"], "frames compared")
    equal(set(figures.values()), {0}, "what verify found")


@case("sluice show draws an event, as large as asked for; one that is not there is refused")
def pictures(folder):
    for name, wide in (("rich", 400), ("tracker", 200)):
        shown = run("show", ROOT / f"examples/{name}.yaml", "--event", "1", "--height", "200", "--output", "event.png",
                    "--set", "detector.modules=2", folder=folder)
        if "libpng" in shown.err():
            skip("this program has no libpng")
        equal(shown.process.returncode, 0, f"exit status of show {name}")
        png = (folder / "event.png").read_bytes()
        equal((png[1:4], *struct.unpack(">II", png[16:24])), (b"PNG", wide, 200), f"the picture of {name}")
    run_fails("show", ROOT / "examples/rich.yaml", "--event", "1024", folder=folder, says=("--event", "has 1024"))


@case("more sectors than there are: told, with what to change")
def too_many(folder):
    run_fails("run", ROOT / "examples/tracker.yaml", "--set", "detector.modules=33", "--set", "link.kind=shm",
              folder=folder, says=("33 modules of 9 sectors", "288"))


if __name__ == "__main__":
    main()
