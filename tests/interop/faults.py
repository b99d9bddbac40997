"""faults.py - packets are lost, doubled, overtaken and damaged on their way, and the data is right all the same.

Which packets, the seed decides. Soft-RoCE does not recover from a packet lost inside a long message over UC, so there
only messages of one packet meet loss on their way to it.
"""

import random

import peers
import transfer
from harness import check, equal, wait_for
from peers import same_bytes

LOSSY = dict(loss=20, twice=20, late=20, flip=10)


def faulty(ends, seed, **faults):
    """In both directions."""
    ends.lab.wire.faults("guest", seed=seed, **faults)
    ends.lab.wire.faults("host", seed=seed + 1, **faults)


def something_happened(ends, *what):
    """A test of faults that did not occur shows nothing."""
    counts = [ends.lab.wire.count(side) for side in ("guest", "host")]
    for name in what:
        check(any(count[name] for count in counts), f"no packet was {name}: {counts}")


def recovers(ends, active, passive, kind, seed, what, **faults):
    """RC: all of it arrives, once, in order."""
    source = random.Random(seed)
    sizes = [source.choice((1, 100, 1024, 3000, 10000)) for _ in range(60)]
    moved = transfer.Transfer(active, passive, "rc", kind, sizes, timeout=12, rnr_timer=8)
    faulty(ends, seed, **faults)
    moved.post_receives()
    moved.post()
    moved.completions()
    something_happened(ends, *what)
    ends.lab.wire.clean()
    moved.verify()


def any_packet(ends, active, passive, kind):
    """A message of five packets; each packet of the exchange is lost once, in either direction."""
    for side in ("guest", "host"):
        for number in range(1, 8):
            moved = transfer.Transfer(active, passive, "rc", kind, [5 * 1024, 10], timeout=12)
            ends.lab.wire.faults(side, drop=number)
            moved.post_receives()
            moved.post()
            moved.completions()
            moved.verify()
            ends.reset()


def silence(ends, active, passive):
    """Nothing gets through for a while; when it does, all is well."""
    moved = transfer.Transfer(active, passive, "rc", "write_imm", [5000, 3, 2048], timeout=14)
    faulty(ends, 1, loss=1000)
    moved.post_receives()
    moved.post()
    equal(active.poll(1, 200), [], "completions over a dead wire")
    ends.lab.wire.clean()
    moved.completions()
    moved.verify()


def congested(ends, active, passive, transport):
    """Packets from rxe arrive marked as congested: we answer with congestion notifications, as hardware does. Soft-RoCE
    knows nothing of them, and must not be disturbed."""
    before = passive.count()
    moved = transfer.Transfer(active, passive, transport, "write_imm", transfer.lengths(1024, big=True))
    ends.lab.wire.faults("host", mark=500, seed=3)
    moved.run()
    after, marked = passive.count(), ends.lab.wire.count("host")["marked"]
    equal(after["congested"] - before["congested"], marked, "marked packets seen")
    check(after["cnps_sent"] > before["cnps_sent"], f"no CNP was sent: {after}")


def lost_of(ends, toward, packets):
    """How many were lost when so many have come by: UC work is complete before its packets are there."""
    def all_came():
        count = ends.lab.wire.count(toward)
        return count["passed"] + count["lost"] >= packets
    wait_for("packets on the wire", all_came, 10)
    return ends.lab.wire.count(toward)["lost"]


def unreliable(ends, active, passive, kind, toward, seed):
    """UC, one packet each: what is lost is missing, and nothing else is."""
    count, size = 200, 512
    layout = transfer.Layout([size] * count)
    data = transfer.data_for([size] * count, kind)
    near, far = active.region(layout.total), passive.region(layout.total, "write")
    far.fill()
    a, b = peers.connect(active, passive, "uc", depth=count + 1)
    for index, offset in enumerate(layout.offsets):
        near.load(offset, data[index])
        b.recv(far, offset, size if kind == "send_imm" else 0, id=index)
    ends.lab.wire.faults(toward, loss=100, seed=seed)
    for index, offset in enumerate(layout.offsets):
        a.post(kind, near, offset, size, id=index, imm=index, to=far.at(offset) if kind == "write_imm" else None)
    active.polls(count)
    lost = lost_of(ends, toward, count)
    check(0 < lost < count, f"{lost} lost of {count}")
    got = passive.polls(count - lost)
    equal(passive.poll(1, 50), [], "more completions")
    arrived = [c.imm for c in got]
    equal(arrived, sorted(set(arrived)), "immediates")
    # A SEND goes into the next receive, a WRITE to its own place.
    places = enumerate(arrived) if kind == "send_imm" else ((imm, imm) for imm in arrived)
    image = layout.image({place: data[imm] for place, imm in places})
    same_bytes(far.dump(), image, "memory of the receiver")


def unreliable_long(ends, active, passive, kind, seed):
    """UC, several packets each, toward us: messages with a gap do not complete, the others are whole."""
    count, size = 60, 3500
    layout = transfer.Layout([size] * count)
    data = transfer.data_for([size] * count, "long" + kind)
    near, far = active.region(layout.total), passive.region(layout.total, "write")
    far.fill()
    a, b = peers.connect(active, passive, "uc", depth=count + 1)
    for index, offset in enumerate(layout.offsets):
        near.load(offset, data[index])
        b.recv(far, offset, size if kind == "send_imm" else 0, id=index)
    ends.lab.wire.faults("host", loss=50, seed=seed)
    for index, offset in enumerate(layout.offsets):
        a.post(kind, near, offset, size, id=index, imm=index, to=far.at(offset) if kind == "write_imm" else None)
    active.polls(count)
    lost = lost_of(ends, "host", 4 * count)
    check(lost > 4, f"only {lost} lost")
    got = passive.poll(count, 300)
    # Each packet that is lost takes at most its own message along.
    check(count - lost <= len(got) < count, f"{len(got)} of {count} arrived, {lost} packets were lost")
    for completion in got:
        place = layout.offsets[completion.id if kind == "send_imm" else completion.imm]
        same_bytes(far.dump(place, size), data[completion.imm], f"message {completion.imm}")


def cases(ends, ways, seed):
    for way, active, passive in ways:
        toward = "guest" if way.startswith("user") else "host"
        for kind in ("write", "write_imm", "send_imm", "read"):
            for what, names, faults in (
                    ("lost", ["lost"], dict(loss=30)), ("doubled", ["doubled"], dict(twice=300)),
                    ("overtaken", ["delayed"], dict(late=100)), ("damaged", ["flipped"], dict(flip=30)),
                    ("all of it", ["lost", "doubled", "delayed"], LOSSY)):
                def run(kind=kind, names=names, faults=faults, active=active, passive=passive):
                    recovers(ends, active(4), passive(4), kind, seed, names, **faults)
                yield f"{way}: RC {kind}, packets {what}", run
            yield (f"{way}: RC {kind}, any one packet lost",
                   lambda kind=kind, a=active, p=passive: any_packet(ends, a(4), p(4), kind))
        def six(active=active, passive=passive):
            recovers(ends, active(6), passive(6), "write_imm", seed, ["lost"], **LOSSY)
        yield f"{way}: RC write_imm, IPv6, packets all of it", six
        if toward == "host":
            for transport, family in (("rc", 4), ("uc", 4), ("rc", 6)):
                def mark(transport=transport, family=family, active=active, passive=passive):
                    congested(ends, active(family), passive(family), transport)
                yield f"{way}: {transport.upper()} write_imm, IPv{family}, packets marked", mark
        yield f"{way}: RC, silence for a while", lambda a=active, p=passive: silence(ends, a(4), p(4))
        for kind in ("write_imm", "send_imm"):
            yield (f"{way}: UC {kind}, one packet each, packets lost",
                   lambda kind=kind, a=active, p=passive, t=toward: unreliable(ends, a(4), p(4), kind, t, seed))
            if toward == "host":
                yield (f"{way}: UC {kind}, several packets each, packets lost",
                       lambda kind=kind, a=active, p=passive: unreliable_long(ends, a(4), p(4), kind, seed))
