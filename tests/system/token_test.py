#!/usr/bin/python3
"""token_test.py - the secret of front ends and receiver: from a file or a descriptor, proven on both sides, and nowhere to be read."""

import hashlib
import hmac
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading

from harness import (CONTROL_PORT, LONG, RECEIVER, ROOT, SLUICE, SOURCE, TIMEOUT_S, Program, address, case, check, closes, equal, experiment, images_on_disk, intact, main,
                     read_summary, receiver, run, run_fails, wait_for)

TOKEN = "Fbs9K2w7mQ4xT1uZ8pLr"
HEADER = struct.Struct("<4sHHI")
HELLO, OFFER, ERROR, CHALLENGE, PROOF = 1, 2, 10, 12, 13
THIRD = address(3)


def token_file(folder, text=TOKEN, mode=0o600):
    path = folder / "token"
    path.write_text(text + "\n")
    path.chmod(mode)
    return path


def nowhere(folder, *programs):
    """No file of the run and no line of a log has the token."""
    for file in folder.rglob("*"):
        if file.is_file() and file.name != "token":
            check(TOKEN.encode() not in file.read_bytes(), f"{file.name} has the token")
    for program in programs:
        check(TOKEN not in program.err() + program.out(), "the token was logged")


def command_lines():
    """Of every process that can be seen."""
    for process in os.listdir("/proc"):
        try:
            if process.isdigit():
                yield pathlib.Path("/proc", process, "cmdline").read_bytes()
        except OSError:
            pass  # it has ended


@case("a token from a file: proven by both sides, in no file, log, command line or packet")
def _(folder):
    path = experiment(folder, control={"token_file": str(token_file(folder))})
    program = Program("run", path, "--summary", folder / "summary.json", folder=folder)
    heard = []
    while program.running():
        heard += [line for line in command_lines() if TOKEN.encode() in line]
    program.ends(0)
    equal(heard, [], "command lines with the token")
    intact(program, read_summary(folder), 200)
    nowhere(folder, program)


@case("a token from a pipe reaches the front end that the run starts, too")
def _(folder):
    path = experiment(folder)
    ours, theirs = os.pipe()
    os.write(theirs, TOKEN.encode() + b"\n")
    os.close(theirs)
    done = subprocess.run([SLUICE, "run", path, "--set", f"control.token_file=/dev/fd/{ours}", "--summary", folder / "summary.json"],
                          pass_fds=[ours], cwd=folder, timeout=TIMEOUT_S, capture_output=True, text=True, check=False)
    os.close(ours)
    equal(done.returncode, 0, f"exit status ({done.stderr})")
    closes(read_summary(folder), 400)
    nowhere(folder)


@case("a token on the command line, or in a file that others can read, is refused and not repeated")
def _(folder):
    path = experiment(folder)
    program = run_fails("run", path, "--set", f"control.token={TOKEN}", folder=folder, says=["control.token_file=FILE"])
    check(TOKEN not in program.err(), "the token was logged")
    open_to_all = token_file(folder, mode=0o644)
    run_fails("run", path, "--set", f"control.token_file={open_to_all}", folder=folder, says=["chmod 600"])
    run_fails("run", path, "--set", "control.token_file=missing", folder=folder, says=["cannot be opened"])


@case("no way in makes a message quote the token: locks, sections, unknown options, a session's configure")
def _(folder):
    path = experiment(folder)
    site = folder / "site.yaml"
    site.write_text(f"locked: {{control: {{token: {TOKEN}}}}}\n")
    for words in (("--set", f"control={{token: {TOKEN}}}"), ("--set", f"control.token:{TOKEN}"), (f"--control.token={TOKEN}",),
                  ("--set", f"!control.token={TOKEN}"), ("--site", site, "--set", "control.token=another")):
        program = run_fails("run", path, *words, folder=folder)
        check(TOKEN not in program.err() + program.out(), f"{words}: the token was logged")
    session = Program("session", path, "--root", "data", "--name", "tokens", "--site", site, folder=folder)
    wait_for("a session", lambda: run("ctl", "tokens", "status", folder=folder).process.returncode == 0)
    answer = run_fails("ctl", "tokens", "configure", "control.token=another", folder=folder)
    session.send(signal.SIGTERM)
    session.wait()
    for program in (answer, session):
        check(TOKEN not in program.err() + program.out() and "another" not in program.err(), "the token was logged")


@case("'!' before a key is refused: it was a mark of the program's own, which beat locks and the ban of tokens")
def _(folder):
    site = folder / "site.yaml"
    site.write_text("locked: {detector: {frames: 10}}\n")
    for key in ("detector.frames=20", "!detector.frames=20"):
        run_fails("run", experiment(folder), "--site", site, "--set", key, folder=folder)
    site.write_text(f"locked: {{control: {{address: {RECEIVER}, port: {CONTROL_PORT}}}}}\n")
    path = experiment(folder, control={"port": CONTROL_PORT}, detector={"frames": 10})
    run("run", path, "--site", site, folder=folder).ends(0)


@case("the front end that a run starts inherits nothing but what is meant for it")
def _(folder):
    path = experiment(folder, detector=LONG, control={"port": 0})
    started = Program("run", path, folder=folder)
    wait_for("frames", lambda: images_on_disk(folder) > 3)
    child, = started.children()
    links = [os.readlink(fd) for fd in pathlib.Path(f"/proc/{child}/fd").iterdir()]
    command = pathlib.Path(f"/proc/{child}/cmdline").read_bytes()
    started.send(signal.SIGINT)
    started.ends(0)
    check(not [link for link in links if "run.nxs" in link], f"the child has {links}")
    check(b"port=" not in command and b"!" not in command, f"its command line is {command}")


class Impostor(threading.Thread):
    """A program that took the receiver's port. It speaks the protocol as well as it can without the token."""

    def __init__(self, challenge):
        super().__init__(daemon=True)
        self.challenge, self.heard = challenge, b""
        self.listener = socket.create_server((RECEIVER, CONTROL_PORT))
        self.start()

    def run(self):
        peer, _ = self.listener.accept()
        with peer:
            self.message(peer)
            if self.challenge:
                peer.sendall(HEADER.pack(b"SLC1", 2, CHALLENGE, 32) + bytes(32))
                proof = self.message(peer)
                peer.sendall(HEADER.pack(b"SLC1", 2, PROOF, 32) + proof)  # what it just heard
            while piece := peer.recv(4096):
                self.heard += piece

    def message(self, peer):
        header = peer.recv(HEADER.size, socket.MSG_WAITALL)
        self.heard += header
        body = peer.recv(HEADER.unpack(header)[3], socket.MSG_WAITALL)
        self.heard += body
        return body


@case("a program that takes the receiver's port gets neither the token nor an offer")
def _(folder):
    path = experiment(folder, control={"token_file": str(token_file(folder))})
    impostor = Impostor(challenge=True)
    run_fails("emulate", path, folder=folder, says=["could not prove that it knows control.token"])
    impostor.join(TIMEOUT_S)
    impostor.listener.close()
    check(TOKEN.encode() not in impostor.heard, "it heard the token")
    equal(len(impostor.heard), 2 * HEADER.size + 162 + 32, "bytes that it heard: HELLO and PROOF")


def send(peer, kind, body=b""):
    peer.sendall(HEADER.pack(b"SLC1", 2, kind, len(body)) + body)


def hear(peer):
    """The next message: its type and its body; (0, b"") when the peer has hung up."""
    try:
        header = peer.recv(HEADER.size, socket.MSG_WAITALL)
        if len(header) < HEADER.size:
            return 0, b""
        _, _, kind, length = HEADER.unpack(header)
        return kind, peer.recv(length, socket.MSG_WAITALL)
    except (ConnectionResetError, TimeoutError):
        return 0, b""


def ipv6_form(address):
    return bytes(10) + b"\xff\xff" + socket.inet_aton(address)


def prove(peer, label=b"sluice plans: front end"):
    """HELLO and a right PROOF; returns both, as they were sent."""
    hello = struct.pack("<HQQ16s32s64s32s", 2, 0, 0, b"roce", b"pattern", b"", os.urandom(32))
    send(peer, HELLO, hello)
    address, port = peer.getpeername()
    _, challenge = hear(peer)
    message = label.ljust(32, b"\0") + hello + challenge + ipv6_form(address) + struct.pack("<H", port)
    proof = hmac.new(TOKEN.encode(), message, hashlib.sha256).digest()
    send(peer, PROOF, proof)
    return hello, proof


@case("what a listener recorded opens nothing")
def _(folder):
    path = experiment(folder, emulate="none", control={"token_file": str(token_file(folder))})
    started = receiver(folder, path)
    with socket.create_connection((RECEIVER, CONTROL_PORT), timeout=10) as owner:
        hello, proof = prove(owner)
        equal(hear(owner)[0], PROOF, "the answer to a right proof")
    with socket.create_connection((RECEIVER, CONTROL_PORT), timeout=10) as thief:
        send(thief, HELLO, hello)
        equal(hear(thief)[0], CHALLENGE, "the answer to HELLO")
        send(thief, PROOF, proof)
        answer = hear(thief)
    check(answer[0] == ERROR and b"wrong control.token" in answer[1], f"the answer was {answer!r}")
    wait_for("a word about the refusal", lambda: "wrong control.token" in started.err())
    run("emulate", path, folder=folder).ends(0)
    started.ends(0)


class Relay(threading.Thread):
    """A program without the token that listens at one place and passes what it hears on to another, message by message."""

    def __init__(self, at, to):
        super().__init__(daemon=True)
        self.to, self.said = to, []
        self.listener = socket.create_server(at)
        self.listener.settimeout(TIMEOUT_S)
        self.start()

    def run(self):
        front, _ = self.listener.accept()
        self.listener.close()
        with front, socket.create_connection(self.to, timeout=10) as back:
            front.settimeout(10)
            # HELLO to the other listener, its CHALLENGE back, PROOF there, its answer back; then what the victim says.
            for source, other in ((front, back), (back, front), (front, back), (back, front), (front, None)):
                kind, body = hear(source)
                self.said.append(kind)
                if other and kind:
                    send(other, kind, body)

    def found_nothing(self):
        self.join(TIMEOUT_S)
        equal(self.said[:3], [HELLO, CHALLENGE, PROOF], "how the exchange begins")
        check(PROOF not in self.said[3:] and OFFER not in self.said, f"the relay was believed: {self.said}")


FEEDBACK_PORT = 47920


def with_feedback(folder, name, **sections):
    text = {"detector": {"kind": "rich", "modules": 1, "events": 16, "frames": 300, "frame_rate_Hz": 100},
            "link": {"kind": "udp", "listen": RECEIVER, "source": SOURCE},
            "control": {"address": RECEIVER, "port": CONTROL_PORT, "wait_s": 20, "token_file": str(token_file(folder))}, **sections}
    path = folder / name
    path.write_text(json.dumps(text))
    return path


def reflection(name, other):
    @case(f"a fake feedback listener that relays to {name} gets no offer")
    def _(folder):
        sink = {"feedback": {"by": "write", "address": SOURCE, "port": FEEDBACK_PORT, "wait_s": 3}}
        path = with_feedback(folder, "experiment.yaml", sinks=[sink])
        to = (RECEIVER, CONTROL_PORT)
        if other:
            to = (THIRD, CONTROL_PORT + 1)
            waits = with_feedback(folder, "other.yaml", sinks=["null"], link={"kind": "udp", "listen": THIRD, "source": SOURCE},
                                  control={"address": THIRD, "port": CONTROL_PORT + 1, "token_file": str(folder / "token")})
            (folder / "other").mkdir()
            second = receiver(folder / "other", waits)
        relay = Relay((SOURCE, FEEDBACK_PORT), to)
        started = receiver(folder, path)
        front_end = Program("emulate", path, "--once", folder=folder)
        relay.found_nothing()
        front_end.wait()
        started.wait()
        if other:
            check("wrong control.token" in second.err(), "the other receiver was not asked")
            second.send(signal.SIGINT)
            second.wait()


reflection("the receiver itself", other=False)
reflection("another receiver with the same token", other=True)


@case("a fake receiver that relays to the front end's own feedback listener gets no offer")
def _(folder):
    path = with_feedback(folder, "experiment.yaml", sinks=["null"], feedback={"by": "write", "address": SOURCE, "port": FEEDBACK_PORT})
    relay = Relay((RECEIVER, CONTROL_PORT), (SOURCE, FEEDBACK_PORT))
    front_end = Program("emulate", path, "--once", folder=folder)
    relay.found_nothing()
    front_end.ends(1)


@case("a fake receiver that relays to another receiver with the same token gets no offer")
def _(folder):
    path = experiment(folder, emulate="none", control={"token_file": str(token_file(folder))})
    started = receiver(folder, path)
    relay = Relay((SOURCE, CONTROL_PORT), (RECEIVER, CONTROL_PORT))
    run_fails("emulate", path, "--set", f"control.address={SOURCE}", folder=folder, says=["wrong control.token"])
    relay.found_nothing()
    run("emulate", path, folder=folder).ends(0)
    started.ends(0)


@case("the example front end proves the token, and asks for proof")
def _(folder):
    token = token_file(folder)
    detector = {"kind": "pattern", "modules": 1, "rows": 32, "columns": 100, "bits": 16, "frames": 20}
    path = experiment(folder, detector=detector, emulate="none", stages=["copy"], sinks=["null"], control={"token_file": str(token)})

    def front_end(*arguments):
        return subprocess.run([sys.executable, ROOT / "examples/frontend.py", "--receiver", RECEIVER, "--source", SOURCE, "--rows", "32",
                               "--columns", "100", "--frames", "20", *arguments], timeout=TIMEOUT_S, capture_output=True, text=True, check=False)
    started = receiver(folder, path)
    check("challenge and response" in front_end().stderr, "without a token it was not refused")
    (folder / "wrong").write_text("barley\n")
    check("wrong control.token" in front_end("--token_file", folder / "wrong").stderr, "the wrong token was not refused")
    sent = front_end("--token_file", token)
    equal(sent.returncode, 0, f"its exit status ({sent.stderr})")
    started.ends(0)
    impostor = Impostor(challenge=True)
    check("not our receiver" in front_end("--token_file", token).stderr, "an impostor was taken for the receiver")
    impostor.listener.close()


if __name__ == "__main__":
    main()
