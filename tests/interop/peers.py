"""peers.py - the two ends of a connection under test, whatever they run on.

A Peer is a program of peer.c: in the guest over rxe, or beside us over Sluice's endpoint. A scenario sees no
difference:

    ours, theirs = ends.user(4), ends.rxe(4)
    memory = theirs.region(65536, "write")
    a, b = connect(ours, theirs, "rc", pmtu=1024)
    a.post("write", source, 0, 100, to=memory.at(0))
    a.polls(1)
"""

import contextlib
import itertools
import os
import socket
import subprocess
import sys

import lab

sys.path.insert(0, str(lab.image.HERE.parent / "system"))
from harness import Failed, check, equal  # noqa: E402  (found through the line above)

POLL_MS = 10000  # for what must come; far above what it takes
ANSWER_S = 40  # for any answer, the longest wait in a poll included
TOLD_MAX = 64  # answers that may wait to be read: they take room in a socket
CANARY = 0xA5

# ibv_wc_status
SUCCESS, LOCAL_LENGTH, FLUSHED = 0, 1, 5
REMOTE_INVALID, REMOTE_ACCESS, REMOTE_OPERATION, RETRY_EXCEEDED, RNR_EXCEEDED = 9, 10, 11, 12, 13


def same_bytes(got, wanted, what):
    """Every byte; says where the first difference is, and how many there are."""
    if got == wanted:
        return
    equal(len(got), len(wanted), f"{what}: bytes")
    wrong = [i for i, (a, b) in enumerate(zip(got, wanted)) if a != b]
    at = wrong[0]
    raise Failed(f"{what}: {len(wrong)} of {len(got)} bytes differ, the first at {at}: {got[at:at + 16].hex()}, "
                 f"expected {wanted[at:at + 16].hex()}; the last at {wrong[-1]}")


class Local:
    """A program beside us with the face of lab.Command."""

    def __init__(self, command, env=None):
        ours, its = socket.socketpair()
        self.socket = ours
        self.file = ours.makefile("rb")
        self.errors = os.memfd_create("stderr")
        self.process = lab.spawn(command, stdin=its, stdout=its, stderr=self.errors, env={**os.environ, **(env or {})})
        its.close()

    def write(self, data):
        self.socket.sendall(data)

    def settimeout(self, seconds):
        self.socket.settimeout(seconds)

    def readline(self):
        return self.file.readline()

    def read(self, length):
        return self.file.read(length)

    def complaints(self):
        """What it wrote to stderr."""
        return os.pread(self.errors, 1 << 16, 0).decode(errors="replace")

    def finish(self, timeout_s=10):
        """Its exit status after the end of its stdin."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def close(self):
        lab.end(self.process)
        self.file.close()
        self.socket.close()
        os.close(self.errors)


class Completion:
    def __init__(self, fields):
        self.id, self.qpn, self.status = int(fields["id"]), int(fields["qpn"], 0), int(fields["status"])
        self.what, self.bytes = fields["what"], int(fields["bytes"])
        self.imm = int(fields["imm"], 0) if "imm" in fields else None

    def __repr__(self):
        return f"{self.what}(id={self.id}, status={self.status}, bytes={self.bytes}, imm={self.imm})"


class Region:
    """Registered memory of a peer."""

    def __init__(self, peer, number, size, va, rkey):
        self.peer, self.number, self.size, self.va, self.rkey = peer, number, size, va, rkey

    def at(self, offset):
        """Where a WRITE or READ goes: for Qp.post(to=...)."""
        return {"va": hex(self.va + offset), "rkey": hex(self.rkey)}

    def load(self, offset, data):
        self.peer.tell(f"load {self.number} {offset} {len(data)}", data)

    def fill(self, value=CANARY):
        self.peer.tell(f"fill {self.number} 0 {self.size} {value}")

    def dump(self, offset=0, length=None):
        length = self.size - offset if length is None else length
        self.peer.ask(f"dump {self.number} {offset} {length}")
        return self.peer.channel.read(length)

    def drop(self):
        self.peer.ask(f"drop region {self.number}")


class Qp:
    """A queue pair of a peer. `far`: the peer it is connected with."""

    def __init__(self, peer, number, transport, qpn):
        self.peer, self.number, self.transport, self.qpn = peer, number, transport, qpn
        self.far = None

    def connect(self, **attributes):
        words = [f"{name}={value}" for name, value in attributes.items()]
        self.peer.ask(" ".join([f"connect {self.number}", *words]))

    def recv(self, region, offset, length, id=0):
        self.peer.tell(f"recv {self.number} {id} {region.number} {offset} {length}")

    def post(self, kind, region, offset, length, id=0, to=None, imm=None, **more):
        if self.far:
            self.far.settle()  # its receives are posted first
        fields = {**(to or {}), **({} if imm is None else {"imm": imm}), **more}
        words = [f"{name}={value}" for name, value in fields.items()]
        self.peer.tell(" ".join([f"post {self.number} {id} {kind} {region.number} {offset} {length}", *words]))

    def state(self):
        return self.peer.ask(f"state {self.number}")["state"]

    def drop(self):
        self.peer.ask(f"drop qp {self.number}")


class Peer:
    """A program of peer.c, open on one address. `name` is "user" or "rxe"."""

    def __init__(self, name, channel, address):
        self.name, self.channel, self.address = name, channel, address
        self.regions, self.qps = itertools.count(), itertools.count()
        self.told = []  # commands not yet answered
        self.channel.settimeout(ANSWER_S)
        self.ask(f"open {address}")

    def line(self):
        """The next line of an answer."""
        try:
            text = self.channel.readline()
        except TimeoutError:
            raise Failed(f"peer {self.name}: no answer within {ANSWER_S} s") from None
        if not text.endswith(b"\n"):
            raise Failed(f"peer {self.name} is gone{self.last_words()}")
        return text.decode().strip()

    def last_words(self):
        if isinstance(self.channel, Local):
            return f", exit status {self.channel.process.poll()}\n{self.channel.complaints()}"
        return f", exit status {self.channel.status}\n{self.channel.err.decode(errors='replace')}"

    def tell(self, line, data=b""):
        """Send a command whose answer can wait until the next ask(): under emulation, every turn costs."""
        if len(self.told) >= TOLD_MAX:
            self.settle()
        try:
            self.channel.write(line.encode() + b"\n" + data)
        except OSError:
            raise Failed(f"peer {self.name} is gone{self.last_words()}") from None
        self.told.append(line)

    def ask(self, line, data=b""):
        """Send a command; the fields of its answer."""
        self.tell(line, data)
        return self.settle()

    def settle(self):
        """Wait until everything it was told is done; the fields of the last answer."""
        answer = "ok"
        while self.told:
            answer, line = self.line(), self.told.pop(0)
            if not answer.startswith("ok"):
                raise Failed(f"peer {self.name}: '{line}': {answer}")
        return dict(word.split("=", 1) for word in answer.split()[1:])

    def region(self, size, *access):
        number = next(self.regions)
        answer = self.ask(" ".join([f"region {number} {size}", *access]))
        return Region(self, number, size, int(answer["va"], 0), int(answer["rkey"], 0))

    def qp(self, transport, depth=64, access=("write", "read"), qkey=0):
        number = next(self.qps)
        answer = self.ask(" ".join([f"qp {number} {transport} {depth} qkey={qkey}", *access]))
        return Qp(self, number, transport, int(answer["qpn"], 0))

    def poll(self, most, timeout_ms=POLL_MS):
        """Up to so many completions; fewer when the time is over."""
        count = int(self.ask(f"poll {most} {timeout_ms}")["n"])
        return [Completion(dict(word.split("=", 1) for word in self.line().split())) for _ in range(count)]

    def polls(self, count, timeout_ms=POLL_MS):
        """Exactly so many completions, all good."""
        done = self.poll(count, timeout_ms)
        bad = [completion for completion in done if completion.status]
        check(not bad, f"work of {self.name} failed: {bad[:20]}")
        equal(len(done), count, f"completions at {self.name}, the last {done[-3:]}")
        return done

    def count(self):
        """What the backend counted; {} over verbs."""
        return {name: int(value) for name, value in self.ask("count").items()}

    def reset(self):
        self.ask("drop all")
        self.regions, self.qps = itertools.count(), itertools.count()


class Ends:
    """The peers of a session, started when first asked for and kept: most scenarios begin with `drop all`."""

    def __init__(self, lab_, user_program):
        self.lab, self.user_program = lab_, user_program
        self.peers = {}

    def get(self, name, family, spare=0):
        """`spare`: a second one of the same kind; only rxe can have that."""
        key = name, family, spare
        if key not in self.peers:
            if name == "user":
                peer = Peer(name, Local([self.user_program]), lab.HOST[family])
            else:
                peer = Peer(name, self.lab.guest.start("exec peer-verbs"), lab.GUEST[family])
            self.peers[key] = peer
        return self.peers[key]

    def reset(self):
        """Before a scenario: nothing is left of the last one."""
        self.lab.wire.clean()
        for peer in self.peers.values():
            peer.reset()

    def restart(self):
        """After a failure: nobody knows what state they are in."""
        for peer in self.peers.values():
            peer.channel.close()
        self.peers.clear()

    def close(self):
        """The user-space peers must end well: a sanitizer speaks at the end."""
        problems = []
        for peer in self.peers.values():
            if isinstance(peer.channel, Local) and peer.channel.finish() != 0:
                problems.append(f"peer {peer.name}{peer.last_words()}")
        self.restart()
        return problems


EVER = {"user": 255, "rxe": 7}  # as many retries as it takes: each end has its own number for that


def connect(a, b, transport, pmtu=1024, psn=(0x123456, 0x654321), depth=64, access=("write", "read"), retries=None,
            **attributes):
    """A queue pair at each end, connected with each other. `psn`: the first of a and of b; `retries`: as many as it
    takes, for a machine that is busy with other things can be silent for long."""
    ends = [peer.qp(transport, depth, access) for peer in (a, b)]
    for mine, its, here, there in ((ends[0], ends[1], 0, 1), (ends[1], ends[0], 1, 0)):
        mine.far = its.peer
        mine.connect(address=its.peer.address, qpn=hex(its.qpn), pmtu=pmtu, psn=psn[here], peer_psn=psn[there],
                     retries=EVER[mine.peer.name] if retries is None else retries, **attributes)
    return ends
