#!/usr/bin/python3
"""token_test.py - the secret of front ends and receiver: from a file or a descriptor, proven on both sides, and nowhere to be read."""

import os
import pathlib
import socket
import struct
import subprocess
import sys
import threading

from harness import (CONTROL_PORT, RECEIVER, ROOT, SLUICE, SOURCE, TIMEOUT_S, Program, case, check, closes, equal, experiment, intact, main,
                     read_summary, receiver, run, run_fails, wait_for)

TOKEN = "Fbs9K2w7mQ4xT1uZ8pLr"
HEADER = struct.Struct("<4sHHI")
HELLO, PROOF, CHALLENGE = 1, 13, 12


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


@case("what a listener recorded opens nothing")
def _(folder):
    path = experiment(folder, emulate="none", control={"token_file": str(token_file(folder))})
    started = receiver(folder, path)
    wire = []

    def relay():
        listener = socket.create_server((SOURCE, CONTROL_PORT))
        ready.set()
        front, _ = listener.accept()
        listener.close()
        back = socket.create_connection((RECEIVER, CONTROL_PORT))

        def pump(source, to, store):
            while piece := source.recv(4096):
                if store is not None:
                    store.append(piece)
                to.sendall(piece)
            to.shutdown(socket.SHUT_WR)
        other = threading.Thread(target=pump, args=(back, front, None), daemon=True)
        other.start()
        pump(front, back, wire)
        other.join()

    ready = threading.Event()
    thread = threading.Thread(target=relay, daemon=True)
    thread.start()
    check(ready.wait(10), "the relay does not listen")
    # A second receiver for what was recorded: the same token, another run.
    run("emulate", path, "--set", f"control.address={SOURCE}", folder=folder).ends(0)
    started.ends(0)
    recorded = b"".join(wire)
    check(TOKEN.encode() not in recorded, "the token crossed the wire")
    (folder / "again").mkdir()
    again = receiver(folder / "again", path)
    with socket.create_connection((RECEIVER, CONTROL_PORT), timeout=10) as thief:
        thief.sendall(recorded)
        answer = b""
        try:
            while piece := thief.recv(4096):
                answer += piece
        except ConnectionResetError:
            pass
    check(b"wrong control.token" in answer, f"the answer was {answer!r}")
    wait_for("a word about the refusal", lambda: "wrong control.token" in again.err())
    run("emulate", path, folder=folder).ends(0)
    again.ends(0)


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
