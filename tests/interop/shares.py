"""shares.py - a share on one side and its follower on the other: on Soft-RoCE's device (`device`), or behind a UDP socket.

peer-share checks every word of every element; the share changes its layout now and then, so that keys are given up under READs that
are under way, and goes round its ring while it is read.
"""

import pathlib
import socket
import tempfile

import lab
from harness import check
from peers import Local

SECRET = "two hosts and one secret\n"
PLACES, ELEMENTS = 32, 600
INTERVAL_US = {True: 400, False: 1500}  # of the share, in the guest and here, where it would leave the guest far behind
NIC = "rxe0"
PORT = 4791  # a NIC sends there alone
ENOUGH_S, END_S = 120, 60


class Ends:
    """peer-share in the guest and here. Both have the secret in a file of mode 0600."""

    def __init__(self, ends, program):
        self.guest, self.program = ends.lab.guest, program
        self.folder = tempfile.TemporaryDirectory()
        self.file = pathlib.Path(self.folder.name) / "secret"
        self.file.write_text(SECRET)
        self.file.chmod(0o600)
        self.guest.must("umask 077; cat >/tmp/secret", stdin=SECRET.encode())
        ends.restart()  # port 4791 is wanted

    def start(self, guest, *words):
        words = [str(word) for word in words]
        if guest:
            words[3:3] = ["/tmp/secret"]
            return self.guest.start("SLUICE_RUN_DIR=/tmp/shares exec peer-share " + " ".join(words))
        words[3:3] = [str(self.file)]
        return Local([self.program, *words], {"SLUICE_RUN_DIR": self.folder.name})

    def close(self):
        self.folder.cleanup()


def line(program, what, timeout_s):
    program.settimeout(timeout_s)
    said = program.readline().decode().strip()
    check(said, f"no {what}")
    return said


def end_input(guest, program):
    if guest:
        program.send(b"i", b"")
    else:
        program.socket.shutdown(socket.SHUT_WR)


def finish(guest, program):
    """(exit status, what it said in the end)"""
    if guest:
        done = program.wait_or_kill(END_S)
        return done.status, done.text() + done.err.decode(errors="replace")
    try:
        status = program.finish(END_S)
        return status, program.file.read().decode() + program.complaints()
    finally:
        program.close()


class Case:
    """A share, its followers, and what ends them all. where: (in the guest?, device)"""

    def __init__(self, ends, program, where):
        self.lab, self.both, self.where, self.followers = ends.lab, Ends(ends, program), where, []
        address = lab.GUEST[4] if where[0] else lab.HOST[4]
        self.share = self.both.start(where[0], "serve", f"{address}:{PORT}", where[1], INTERVAL_US[where[0]], PLACES)

    def __enter__(self):
        try:
            self.url = line(self.share, "URL of the share", ENOUGH_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.lab.wire.clean()
        for program in (self.share, *self.followers):
            if program:
                program.close()
        self.both.close()

    def follow(self, where, mode="every", elements=ELEMENTS):
        self.followers.append(self.both.start(where[0], "follow", self.url, where[1], elements, mode))
        return self.followers[-1]

    def faults(self, **faults):
        for toward in ("guest", "host"):
            self.lab.wire.faults(toward, **faults)

    def end_share(self):
        end_input(self.where[0], self.share)
        program, self.share = self.share, None
        status, said = finish(self.where[0], program)
        check(status == 0, f"the share: {status} {said}")

    def end_of(self, where, follower):
        """(exit status, what it said)"""
        self.followers.remove(follower)
        return finish(where[0], follower)


def has_enough(follower):
    check(line(follower, "elements that were wanted", ENOUGH_S) == "enough", "the follower has not enough")


def follow(ends, program, share, follower, mode, faults=None):
    with Case(ends, program, share) as case:
        following = case.follow(follower, mode)
        if faults:
            case.faults(**faults)
        has_enough(following)
        ends.lab.wire.clean()
        case.end_share()
        status, said = case.end_of(follower, following)
        check(status == 0, f"the follower: {status} {said}")
        got, missed, layouts = (int(word) for word in said.split()[1:6:2])
        check(got >= ELEMENTS and layouts >= 1, f"it followed through other layouts: {said}")
        print(f"# {mode}: got {got}, missed {missed}, {layouts} layouts", flush=True)


def kill_follower(ends, program, share, killed, other):
    """The share goes on, and serves another follower."""
    with Case(ends, program, share) as case:
        first = case.follow(killed, elements=50)
        has_enough(first)
        case.followers.remove(first)
        first.close()  # SIGKILL, while it READs
        second = case.follow(other)
        has_enough(second)
        case.end_share()
        status, said = case.end_of(other, second)
        check(status == 0, f"the other follower: {status} {said}")


def is_reset(case, follower, following):
    status, said = case.end_of(follower, following)
    check(status == 2 and "Connection reset by peer" in said, f"the follower: {status} {said}")


def kill_share(ends, program, share, follower):
    """The follower is told, though no READ is answered any longer."""
    with Case(ends, program, share) as case:
        following = case.follow(follower, elements=50)
        has_enough(following)
        program, case.share = case.share, None
        program.close()
        is_reset(case, follower, following)


def cut_off(ends, program, share, follower):
    """All RoCE packets are lost from now on, and TCP goes on: READs are given up, and so is the share. The share is not harmed."""
    with Case(ends, program, share) as case:
        following = case.follow(follower, elements=50)
        has_enough(following)
        case.faults(loss=1000)
        is_reset(case, follower, following)
        ends.lab.wire.clean()
        again = case.follow(follower, elements=50)
        has_enough(again)
        case.end_share()
        status, said = case.end_of(follower, again)
        check(status == 0, f"the follower that came after it: {status} {said}")


def cases(ends, program):
    """Names and functions. program: peer-share, for this side."""
    nic, here = (True, NIC), (False, "-")
    for mode in ("every", "newest"):
        yield f"a share on a NIC, followed by a socket, {mode} element", lambda m=mode: follow(ends, program, nic, here, m)
        yield f"a share behind a socket, followed by a NIC, {mode} element", lambda m=mode: follow(ends, program, here, nic, m)
        yield f"a share and its follower on a NIC, {mode} element", lambda m=mode: follow(ends, program, nic, nic, m)
    lossy = {"loss": 10, "seed": 5}
    yield "a share on a NIC, followed by a socket, packets are lost", lambda: follow(ends, program, nic, here, "every", faults=lossy)
    yield "a share behind a socket, followed by a NIC, packets are lost", lambda: follow(ends, program, here, nic, "every", faults=lossy)
    yield "a share on a NIC, a follower on it is killed", lambda: kill_follower(ends, program, nic, nic, here)
    yield "a share on a NIC is killed, followed by a socket", lambda: kill_share(ends, program, nic, here)
    yield "a share behind a socket is killed, followed by a NIC", lambda: kill_share(ends, program, here, nic)
    yield "a share on a NIC, followed by a socket, the path is cut", lambda: cut_off(ends, program, nic, here)
    yield "a share behind a socket, followed by a NIC, the path is cut", lambda: cut_off(ends, program, here, nic)
