"""failures.py - what must not work does not, and both ends say so as verbs does."""

import peers
from harness import wait_for
from peers import CANARY, FLUSHED, REMOTE_ACCESS, REMOTE_INVALID, REMOTE_OPERATION, RETRY_EXCEEDED, RNR_EXCEEDED, SUCCESS
from peers import check, equal, same_bytes

SIZE = 4096
BAD_KEY = 0x5A5A5A00


def becomes_error(qp):
    """The other end of a refusal; rxe says no first and changes its state then."""
    wait_for(f"{qp.peer.name} to be in error", lambda: qp.state() == "error", 10)


class Rig:
    """A connection, and memory at both ends."""

    def __init__(self, active, passive, transport="rc", access=("write", "read"), memory=("write", "read"), **attributes):
        self.active, self.passive = active, passive
        self.near, self.far = active.region(SIZE), passive.region(SIZE, *memory)
        self.far.fill()
        self.near.load(0, bytes(range(256)) * (SIZE // 256))
        self.a, self.b = peers.connect(active, passive, transport, access=access, **attributes)

    def untouched(self):
        same_bytes(self.far.dump(), bytes([CANARY]) * SIZE, "memory that nothing may reach")

    def fails(self, status, kind="write", length=100, to=None, far_state="error"):
        """One work fails so, the one behind it is flushed, both queue pairs stand still."""
        self.b.recv(self.far, 0, 0, id=7)
        self.a.post(kind, self.near, 0, length, id=1, to=to)
        self.a.post(kind, self.near, 0, length, id=2, to=to)
        done = self.active.poll(2)
        equal([(c.id, c.status) for c in done], [(1, status), (2, FLUSHED)], "completions of the sender")
        equal(self.a.state(), "error", "state of the sender")
        if far_state == "error":
            becomes_error(self.b)
            equal([(c.id, c.status) for c in self.passive.poll(1)], [(7, FLUSHED)], "what the receiver had posted")
        self.a.post(kind, self.near, 0, length, id=3, to=to)
        equal([(c.id, c.status) for c in self.active.poll(1)], [(3, FLUSHED)], "what is posted afterwards")
        self.untouched()


def bad_key(active, passive, kind):
    rig = Rig(active, passive)
    rig.fails(REMOTE_ACCESS, kind, to={**rig.far.at(0), "rkey": BAD_KEY})


def beyond_end(active, passive, kind):
    rig = Rig(active, passive)
    rig.fails(REMOTE_ACCESS, kind, length=100, to=rig.far.at(SIZE - 99))


def before_start(active, passive, kind):
    rig = Rig(active, passive)
    rig.fails(REMOTE_ACCESS, kind, length=100, to=rig.far.at(-1))


def long_beyond_end(active, passive, kind):
    """A message of several packets: the first ones would fit."""
    rig = Rig(active, passive, pmtu=256)
    rig.fails(REMOTE_ACCESS, kind, length=2000, to=rig.far.at(SIZE - 1999))


def not_permitted(active, passive, kind):
    """By the memory."""
    rig = Rig(active, passive, memory=("read",) if kind == "write" else ("write",))
    rig.fails(REMOTE_ACCESS, kind, to=rig.far.at(0))


def not_permitted_by_queue(active, passive, kind):
    rig = Rig(active, passive, access=("read",) if kind == "write" else ("write",))
    rig.fails(REMOTE_INVALID, kind, to=rig.far.at(0))


def key_taken_back(active, passive, kind):
    rig = Rig(active, passive)
    spare = passive.region(SIZE, "write", "read")
    rig.a.post(kind, rig.near, 0, 100, to=spare.at(0))
    active.polls(1)
    spare.drop()
    rig.fails(REMOTE_ACCESS, kind, to=spare.at(0))


def empty_needs_no_key(active, passive, kind):
    """A message of length 0 names a key and an address, and neither is looked at."""
    rig = Rig(active, passive)
    rig.a.post(kind, rig.near, 0, 0, to={"va": 1, "rkey": BAD_KEY})
    active.polls(1)
    equal([rig.a.state(), rig.b.state()], ["rts", "rts"], "states")


def too_long_for_receive(active, passive):
    rig = Rig(active, passive)
    rig.b.recv(rig.far, 0, 99, id=7)
    rig.a.post("send", rig.near, 0, 100, id=1)
    done = active.poll(1)
    # rxe calls it an operational error, others an invalid request.
    check(len(done) == 1 and done[0].status in (REMOTE_INVALID, REMOTE_OPERATION), f"completions of the sender: {done}")
    got = passive.poll(1)
    check(len(got) == 1 and got[0].id == 7 and got[0].status != SUCCESS, f"the receive must fail: {got}")
    equal(rig.a.state(), "error", "state of the sender")
    becomes_error(rig.b)
    same_bytes(rig.far.dump(99), bytes([CANARY]) * (SIZE - 99), "memory behind the receive")


def nobody_there(active, passive):
    rig = Rig(active, passive, timeout=10, retries=2)
    rig.b.drop()
    rig.a.post("write", rig.near, 0, 100, id=1, to=rig.far.at(0))
    rig.a.post("read", rig.near, 0, 100, id=2, to=rig.far.at(0))
    done = active.poll(2)
    equal([(c.id, c.status) for c in done], [(1, RETRY_EXCEEDED), (2, FLUSHED)], "completions of the sender")
    equal(rig.a.state(), "error", "state of the sender")


def never_ready(active, passive):
    rig = Rig(active, passive, rnr_retries=2, rnr_timer=10)
    rig.a.post("send", rig.near, 0, 100, id=1)
    equal([(c.id, c.status) for c in active.poll(1)], [(1, RNR_EXCEEDED)], "completions of the sender")
    equal(rig.a.state(), "error", "state of the sender")


def ready_later(active, passive, kind):
    """Not ready for a while, then it is: nothing is lost and nothing is doubled. However often it was not, that uses up
    no retries."""
    rig = Rig(active, passive, rnr_retries=7, rnr_timer=14, retries=6)
    to = None if kind.startswith("send") else rig.far.at(0)
    for index in range(3):
        rig.a.post(kind, rig.near, 100 * index, 100, id=index, imm=index, to=to if to is None else
                   rig.far.at(100 * index))
    equal(active.poll(1, 300), [], "completions without a receive")
    for index in range(3):
        rig.b.recv(rig.far, 100 * index, 100 if to is None else 0, id=index)
    equal([c.id for c in active.polls(3)], [0, 1, 2], "completions of the sender")
    equal([c.imm for c in passive.polls(3)], [0, 1, 2], "immediates")
    same_bytes(rig.far.dump(0, 300), (bytes(range(256)) * 2)[:300], "memory of the receiver")


def unreliable_bad_key(active, passive):
    """UC has no way to complain: the bad message is dropped, the next good one arrives."""
    rig = Rig(active, passive, "uc")
    rig.b.recv(rig.far, 0, 0, id=7)
    for bad in ({**rig.far.at(0), "rkey": BAD_KEY}, rig.far.at(SIZE - 99), rig.far.at(-1)):
        rig.a.post("write", rig.near, 0, 100, to=bad)
    active.polls(3)
    equal(passive.poll(1, 100), [], "completions")
    rig.untouched()
    rig.a.post("write_imm", rig.near, 0, 10, to=rig.far.at(5), imm=77)
    active.polls(1)
    equal([c.imm for c in passive.polls(1)], [77], "immediates")
    same_bytes(rig.far.dump(5, 10), bytes(range(10)), "memory of the receiver")
    equal([rig.a.state(), rig.b.state()], ["rts", "rts"], "states")


def unreliable_not_ready(active, passive):
    """UC without a receive: lost, and nothing worse."""
    rig = Rig(active, passive, "uc")
    rig.a.post("send", rig.near, 0, 100)
    active.polls(1)
    equal(passive.poll(1, 100), [], "completions")
    rig.b.recv(rig.far, 0, 100, id=7)
    rig.a.post("send", rig.near, 50, 10)
    active.polls(1)
    equal([(c.id, c.bytes) for c in passive.polls(1)], [(7, 10)], "completions of the receiver")
    same_bytes(rig.far.dump(0, 10), bytes(range(50, 60)), "memory of the receiver")


def wrong_datagram_key(active, passive):
    near, far = active.region(SIZE), passive.region(SIZE)
    a, b = active.qp("ud", qkey=1), passive.qp("ud", qkey=0x1234)
    for qp in (a, b):
        qp.connect(pmtu=1024)
    b.recv(far, 0, 1000, id=7)
    passive.settle()
    to = {"to": passive.address, "to_qpn": hex(b.qpn)}
    a.post("send", near, 0, 10, to={**to, "to_qkey": 0x1235})
    active.polls(1)
    equal(passive.poll(1, 100), [], "completions")
    a.post("send_imm", near, 0, 10, imm=5, to={**to, "to_qkey": 0x1234})
    active.polls(1)
    equal([c.imm for c in passive.polls(1)], [5], "immediates")


REACHING = (("a key that is none", bad_key), ("beyond the end", beyond_end), ("before the start", before_start),
            ("long, beyond the end", long_beyond_end), ("not permitted by the memory", not_permitted),
            ("not permitted by the queue pair", not_permitted_by_queue), ("a key taken back", key_taken_back),
            ("length 0 needs no key", empty_needs_no_key))
OTHERS = (("RC send, too long for its receive", too_long_for_receive), ("RC, nobody there", nobody_there),
          ("RC send, never ready", never_ready), ("UC write, a key that is none", unreliable_bad_key),
          ("UC send, not ready", unreliable_not_ready), ("UD, a key of another", wrong_datagram_key))


def cases(ways):
    for way, active, passive in ways:
        for what, function in REACHING:
            for kind in ("write", "read"):
                yield (f"{way}: RC {kind}, {what}",
                       lambda f=function, k=kind, a=active, p=passive: f(a(4), p(4), k))
        for kind in ("send_imm", "write_imm"):
            yield (f"{way}: RC {kind}, ready later",
                   lambda k=kind, a=active, p=passive: ready_later(a(4), p(4), k))
        for what, function in OTHERS:
            yield f"{way}: {what}", lambda f=function, a=active, p=passive: f(a(4), p(4))
