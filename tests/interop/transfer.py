"""transfer.py - every operation, over every kind of path, byte by byte."""

import ipaddress
import random

import lab
import peers
from peers import CANARY, equal, same_bytes

GAP = 61  # bytes between places, so that they are not aligned
MIB = 1 << 20


def lengths(pmtu, big=False):
    """What is likely to go wrong: nothing, odd, around the path MTU, many packets."""
    usual = [0, 1, 3, 4, pmtu - 1, pmtu, pmtu + 1, 2 * pmtu, 5 * pmtu + 3, 2 * pmtu - 2]
    return usual + [MIB] if big else usual


class Layout:
    """Places for messages in a region, with canaries between and around them."""

    def __init__(self, sizes, room=0):
        """`room`: more bytes at each place than the message has."""
        self.sizes, self.offsets = sizes, []
        at = GAP
        for size in sizes:
            self.offsets.append(at)
            at += size + room + GAP
        self.total = at

    def image(self, messages, shift=0):
        """What the region must hold when these have arrived: {index: bytes}."""
        image = bytearray([CANARY]) * self.total
        for index, data in messages.items():
            at = self.offsets[index] + shift
            image[at:at + len(data)] = data
        return bytes(image)


def data_for(sizes, seed):
    source = random.Random(seed)
    return [source.randbytes(size) for size in sizes]


class Transfer:
    """Messages from one peer's memory into the other's (READ: the other way round)."""

    def __init__(self, active, passive, transport, kind, sizes, **attributes):
        self.active, self.passive, self.kind, self.transport = active, passive, kind, transport
        self.read = kind == "read"
        self.data = data_for(sizes, f"{transport} {kind} {sizes}")
        self.layout = Layout(sizes)
        self.near = active.region(self.layout.total)
        self.far = passive.region(self.layout.total, "read" if self.read else "write")
        self.source, self.target = (self.far, self.near) if self.read else (self.near, self.far)
        self.target.fill()
        for offset, message in zip(self.layout.offsets, self.data):
            self.source.load(offset, message)
        self.a, self.b = peers.connect(active, passive, transport, depth=len(sizes) + 8, **attributes)

    def receives(self):
        """How many completions the passive side gets."""
        return len(self.data) if self.kind in ("send", "send_imm", "write_imm") else 0

    def post_receives(self):
        if not self.receives():
            return
        for index, (offset, message) in enumerate(zip(self.layout.offsets, self.data)):
            # A WRITE with immediate takes a receive, and puts nothing into it.
            length = len(message) if self.kind.startswith("send") else 0
            self.b.recv(self.far, offset, length, id=100 + index)

    def post(self):
        for index, (offset, message) in enumerate(zip(self.layout.offsets, self.data)):
            self.a.post(self.kind, self.near, offset, len(message), id=index,
                        to=None if self.kind.startswith("send") else self.far.at(offset),
                        imm=0x89ABCDEF ^ index if self.kind.endswith("imm") else None)

    def mark_end(self):
        """UC says nothing about a WRITE that has arrived; a last one with immediate does, as order is kept."""
        if self.transport == "uc" and self.kind == "write":
            self.b.recv(self.far, 0, 0, id=999)
            self.a.post("write_imm", self.near, 0, 0, id=999, to=self.far.at(0), imm=999)
            equal([c.imm for c in self.passive.polls(1)], [999], "the last immediate")
            self.active.polls(1)

    def completions(self):
        """Both sides' are in order and say what happened."""
        what = {"read": "read"}.get(self.kind, self.kind.removesuffix("_imm"))
        done = self.active.polls(len(self.data))
        equal([(c.id, c.what) for c in done], [(i, what) for i in range(len(self.data))], "completions of the sender")
        got = self.passive.polls(self.receives())
        what = "recv" if self.kind.startswith("send") else "recv_write"
        wanted = [(100 + i, what, len(message), 0x89ABCDEF ^ i if self.kind.endswith("imm") else None)
                  for i, message in enumerate(self.data[:self.receives()])]
        equal([(c.id, c.what, c.bytes, c.imm) for c in got], wanted, "completions of the receiver")

    def verify(self):
        same_bytes(self.target.dump(), self.layout.image(dict(enumerate(self.data))), "memory of the receiver")
        equal([qp.state() for qp in (self.a, self.b)], ["rts", "rts"], "states")

    def run(self):
        self.post_receives()
        self.post()
        self.completions()
        self.mark_end()
        self.verify()


def datagrams(active, passive, kind, pmtu):
    """UD: one packet each, 40 bytes about the sender before the payload."""
    sizes = [size for size in lengths(pmtu) if size <= pmtu]
    data = data_for(sizes, f"ud {kind} {pmtu}")
    layout = Layout(sizes, room=40)
    near, far = active.region(layout.total), passive.region(layout.total)
    far.fill()
    a, b = active.qp("ud", qkey=0x11111111), passive.qp("ud", qkey=0x22222222)
    for qp in (a, b):
        qp.connect(pmtu=pmtu)
    for index, (offset, message) in enumerate(zip(layout.offsets, data)):
        near.load(offset, message)
        b.recv(far, offset, len(message) + 40, id=100 + index)
    passive.settle()
    for index, (offset, message) in enumerate(zip(layout.offsets, data)):
        a.post(kind, near, offset, len(message), id=index, imm=index if kind == "send_imm" else None,
               to={"to": passive.address, "to_qpn": hex(b.qpn), "to_qkey": 0x22222222})
    active.polls(len(data))
    got = passive.polls(len(data))
    wanted = [(100 + i, "recv", len(message) + 40, i if kind == "send_imm" else None)
              for i, message in enumerate(data)]
    equal([(c.id, c.what, c.bytes, c.imm) for c in got], wanted, "completions of the receiver")
    image = bytearray(far.dump())
    for offset in layout.offsets:
        header_is_from(bytes(image[offset:offset + 40]), active.address)
        image[offset:offset + 40] = bytes([CANARY]) * 40
    same_bytes(bytes(image), layout.image(dict(enumerate(data)), shift=40), "memory of the receiver")


def header_is_from(header, address):
    """A receive over UD begins with the packet's IPv6 header, or 20 bytes and its IPv4 header."""
    source = ipaddress.ip_address(address)
    found = header[8:24] if source.version == 6 else header[32:36]
    equal(found, source.packed, "source address in the 40 bytes before a datagram")


def pairs(ends, spare_rxe=False):
    """(name, active, passive): functions of the address family."""
    def rxe(family):
        return ends.get("rxe", family)
    if spare_rxe:  # rxe against itself, to see what is its own doing
        return [("rxe to rxe", rxe, lambda family: ends.get("rxe", family, 1))]
    def user(family):
        return ends.get("user", family)
    return [("user to rxe", user, rxe), ("rxe to user", rxe, user)]


OPERATIONS = [("uc", kind) for kind in ("send", "send_imm", "write", "write_imm")] + \
             [("rc", kind) for kind in ("send", "send_imm", "write", "write_imm", "read")]


def wraps(active, passive, transport, kind):
    """The packet sequence numbers of both sides pass 0xffffff, within a message and between two."""
    sizes = [1, 5 * 1024 + 3, 7, 3 * 1024]
    Transfer(active, passive, transport, kind, sizes, psn=(0xFFFFFE, 0xFFFFFD)).run()


def long_queue(active, passive, transport, kind):
    """More messages than fit into any window, all posted at once."""
    source = random.Random(transport + kind)
    sizes = [source.choice((0, 1, 64, 333, 1024, 1500, 4097)) for _ in range(400)]
    Transfer(active, passive, transport, kind, sizes).run()


def crowd(active, passive):
    """Twelve connections, each with traffic both ways at once."""
    transfers = []
    for index in range(12):
        kind = ("send", "write_imm", "read", "send_imm", "write")[index % 5]
        transport = "rc" if kind in ("read", "write") or index % 2 else "uc"
        ends = (active, passive) if index % 2 else (passive, active)
        transfers.append(Transfer(*ends, transport, kind, lengths(1024), pmtu=(256, 512, 1024, 2048)[index % 4]))
    for transfer in transfers:
        transfer.post_receives()
    for transfer in transfers:
        transfer.post()
    for peer in (active, passive):
        count = sum(len(t.data) for t in transfers if t.active is peer)
        count += sum(t.receives() for t in transfers if t.passive is peer)
        peer.polls(count)
    for transfer in transfers:
        transfer.verify()


def ordinary_mtu(ends, active, passive):
    """With the usual 1500 bytes, rxe's path MTU is 1024, and ours must not need more."""
    guest = ends.lab.guest
    try:
        guest.must("ip link set eth0 mtu 1500 && ibv_devinfo | grep 'active_mtu.*1024'")
        Transfer(active(4), passive(4), "rc", "write_imm", lengths(1024)).run()
        Transfer(active(6), passive(6), "rc", "read", lengths(1024)).run()
    finally:
        guest.must(f"ip link set eth0 mtu {lab.MTU} && ibv_devinfo | grep 'active_mtu.*4096'")


def cases(ends, ways, pmtus=(256, 1024, 4096)):
    for way, active, passive in ways:
        for family in (4, 6):
            for pmtu in pmtus:
                for transport, kind in OPERATIONS:
                    def transfer(family=family, pmtu=pmtu, transport=transport, kind=kind, active=active,
                                 passive=passive):
                        sizes = lengths(pmtu, big=family == 4)
                        Transfer(active(family), passive(family), transport, kind, sizes, pmtu=pmtu).run()
                    yield f"{way}: {transport.upper()} {kind}, IPv{family}, PMTU {pmtu}", transfer
                for kind in ("send", "send_imm"):
                    def datagram(family=family, pmtu=pmtu, kind=kind, active=active, passive=passive):
                        datagrams(active(family), passive(family), kind, pmtu)
                    yield f"{way}: UD {kind}, IPv{family}, PMTU {pmtu}", datagram
        for transport, kind in OPERATIONS:
            def wrap(transport=transport, kind=kind, active=active, passive=passive):
                wraps(active(4), passive(4), transport, kind)
            yield f"{way}: {transport.upper()} {kind}, sequence numbers wrap", wrap
            def queue(transport=transport, kind=kind, active=active, passive=passive):
                long_queue(active(4), passive(4), transport, kind)
            yield f"{way}: {transport.upper()} {kind}, 400 messages queued", queue
        def mtu(active=active, passive=passive):
            ordinary_mtu(ends, active, passive)
        yield f"{way}: MTU 1500", mtu
        def both(active=active, passive=passive):
            crowd(active(4), passive(4))
        yield f"{way}: twelve connections, both ways at once", both
