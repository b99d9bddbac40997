"""fault_oracle.py - what must become of every module-frame, from the front end's fault log alone; and the comparison
with what a run says became of it. Written apart from tests/lib/fault_oracle.h: two readings of docs/how-to/faults.md."""

import collections
import math

from harness import check, equal, read_outcomes

GONE, SPOILT = {"drop", "burst", "corrupt"}, {"spoil", "spoil_record"}


def read_log(folder):
    """{(sequence, module): {packet: {fault, ...}}}"""
    faults = collections.defaultdict(lambda: collections.defaultdict(set))
    for line in (folder / "faults.txt").read_text().splitlines():
        module, sequence, packet, kind = line.split()
        faults[int(sequence), int(module)][int(packet)].add(kind)
    return faults


def count(faults, kind):
    return sum(kind in kinds for packets in faults.values() for kinds in packets.values())


def on_the_wire(faults, module, frames, packets, hold):
    """Packets of one module as they go out: (sequence, packet, faults). One that is held back goes out after `hold` more
    have had their turn; at the end, what is still held back."""
    held, turn = [], 0
    for k in range(frames):
        block = faults.get((k, module), {})
        if "skip" in block.get(0, ()):
            continue
        for p in range(packets):
            kinds = block.get(p, set())
            if "reorder" in kinds:
                held.append((turn + hold, (k, p, kinds)))
            elif not kinds & {"drop", "burst"}:
                yield k, p, kinds
                if "duplicate" in kinds:
                    yield k, p, kinds
            while held and held[0][0] <= turn:
                yield held.pop(0)[1]
            turn += 1
    for _, packet in held:
        yield packet


def arrived(faults, module, frames, packets, message, hold):
    """{sequence: packets that were placed} over an unreliable connection with `message` packets in each message: one that
    is not continued by its very next packet is over, and whatever begins a message begins one."""
    placed = collections.defaultdict(set)
    expected = None
    for k, p, kinds in on_the_wire(faults, module, frames, packets, hold):
        if "corrupt" in kinds:
            continue  # nobody looks at it any further
        first = p % message == 0
        if (not first and (k, p) != expected) or (first and "wrong_key" in kinds):
            expected = None
            continue
        placed[k].add(p)
        expected = (k, p + 1) if (p + 1) % message and p + 1 < packets else None
    return placed


def by_itself(block, here, packets, crc):
    """What is wrong with a block of which so many packets are here."""
    kinds = set().union(*block.values())
    if not here:
        return "lost", "no_arrival"
    if here < packets:
        return "incomplete", "damaged"
    if "spoil_record" in kinds:
        return "incomplete", "record"
    return ("incomplete", "checksum") if "spoil" in kinds and crc else None


def foresee(faults, frames, *, modules=2, packets, message=1, hold=0, way="uc", crc=False):
    """{(sequence, module): (outcome, cause)}; None: whole, so stored or vetoed."""
    alone = {}
    for m in range(modules):
        placed = arrived(faults, m, frames, packets, message, hold) if way == "uc" else {}
        for k in range(frames):
            block = faults.get((k, m), {})
            kinds = set().union(*block.values())
            if way == "uc":
                here = len(placed[k])
            elif way == "shm":
                here = 0 if kinds & (GONE | {"wrong_key", "skip"}) else packets
            else:
                here = packets
            alone[k, m] = by_itself(block, here, packets, crc)
    partner = {k: ("incomplete", "partner") if any(alone[k, m] for m in range(modules)) else None for k in range(frames)}
    return {key: wanted or partner[key[0]] for key, wanted in alone.items()}


def compare(folder, summary, wanted):
    """Every module-frame has the outcome that was foreseen, and the ledger counts them. How many of each kind."""
    outcomes = read_outcomes(folder)
    equal(sorted(outcomes), sorted(wanted), "module-frames that have an outcome")
    wrong = {key: (outcomes[key], want) for key, want in wanted.items()
             if outcomes[key] != want and not (want is None and outcomes[key][0] in ("stored", "vetoed"))}
    equal(dict(list(wrong.items())[:5]), {}, f"{len(wrong)} outcomes other than foreseen, (sequence, module): ...")
    total = summary["ledger"]["total"]
    counts = collections.Counter(outcome for outcome, cause in outcomes.values())
    equal({k: v for k, v in total["outcomes"].items() if v}, dict(counts), "the ledger's histogram")
    check(summary["ledger"]["closed"], "the ledger does not close")
    equal(total["sent"] + total["skipped"], len(wanted), "sent and skipped")
    return collections.Counter(wanted.values())


def packets_of(pixel_bytes, pmtu):
    return math.ceil((pixel_bytes + 64) / pmtu)
