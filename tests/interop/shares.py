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


def follow(ends, program, share, follower, mode, faults=None):
    """share, follower: (in the guest?, device)"""
    both = Ends(ends, program)
    address = lab.GUEST[4] if share[0] else lab.HOST[4]
    serving = following = None
    try:
        serving = both.start(share[0], "serve", f"{address}:{PORT}", share[1], INTERVAL_US[share[0]], PLACES)
        url = line(serving, "URL of the share", ENOUGH_S)
        following = both.start(follower[0], "follow", url, follower[1], ELEMENTS, mode)
        if faults:
            ends.lab.wire.faults("guest", **faults)
            ends.lab.wire.faults("host", **faults)
        check(line(following, f"{ELEMENTS} elements", ENOUGH_S) == "enough", "the follower has not enough")
        ends.lab.wire.clean()
        end_input(share[0], serving)
        status, said = finish(share[0], serving)
        check(status == 0, f"the share: {status} {said}")
        serving = None
        status, said = finish(follower[0], following)
        following = None
        check(status == 0, f"the follower: {status} {said}")
        got, missed, layouts = (int(word) for word in said.split()[1:6:2])
        check(got >= ELEMENTS and layouts >= 1, f"it followed through other layouts: {said}")
        print(f"# {mode}: got {got}, missed {missed}, {layouts} layouts", flush=True)
    finally:
        for end in (serving, following):
            if end:
                end.close()
        both.close()


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
