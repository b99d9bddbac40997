#!/usr/bin/python3
"""peers_test.py - the other side: its port taken, absent, late, of another experiment, killed, restarted."""
# with sanitizers in check-long

import os
import pathlib
import signal
import socket
import time

import h5py

from harness import (CONTROL_PORT, LONG, RECEIVER, ROCE_PORT, Program, case, check, closes, equal, experiment,
                     images_on_disk, intact, main, read_outcomes, read_summary, receiver, run, run_fails, sink,
                     wait_for)

NONE = {"emulate": "none"}


def nothing_left(folder):
    equal([path.name for path in folder.glob("run.nxs*")], [], "files left behind")


@case("UDP port in use: said at once, nothing left behind")
def _(folder):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.bind((RECEIVER, ROCE_PORT))
        for emulate in ("local", "none"):
            run_fails("run", experiment(folder, emulate=emulate), folder=folder,
                      says=[f"{RECEIVER} port 4791 is in use", "take another address"])
            nothing_left(folder)


@case("control port in use: said at once, and what an earlier run left is kept")
def _(folder):
    (folder / "run.nxs").write_text("what an earlier run left")
    with socket.socket() as ours:
        ours.bind((RECEIVER, CONTROL_PORT))
        ours.listen()
        run_fails("run", experiment(folder, **NONE), folder=folder, says=[f"{RECEIVER}:{CONTROL_PORT}", "control.port"])
    equal((folder / "run.nxs").read_text(), "what an earlier run left", "the earlier file")
    check(not (folder / "run.nxs.part").exists(), "a part of a file was left behind")


@case("two receivers at one address: the second is turned away, the first goes on")
def _(folder):
    path = experiment(folder, **NONE)
    first = receiver(folder, path)
    (folder / "second").mkdir()
    run_fails("run", path, folder=folder / "second", says=["in use"])
    run("emulate", path, folder=folder).ends(0)
    first.ends(0)
    intact(first, read_summary(folder), 200)


@case("receiver absent: the front end says so and ends with 1")
def _(folder):
    path = experiment(folder, control={"wait_s": 0.5})
    run_fails("emulate", path, folder=folder, says=["no receiver", f"{RECEIVER}:{CONTROL_PORT}", "sluice run"])


@case("something else at the control port: the front end says so and ends with 1")
def _(folder):
    with socket.socket() as ours:
        ours.bind((RECEIVER, CONTROL_PORT))
        ours.listen()
        front_end = Program("emulate", experiment(folder), "--once", folder=folder)
        peer, _ = ours.accept()
        with peer:
            peer.recv(4)
            peer.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            front_end.ends(1)
    check("plan protocol" in front_end.err(), "stderr does not say why")


@case("front end absent: the receiver says how many modules it waits for, ends with 1, leaves no file")
def _(folder):
    run_fails("run", experiment(folder, control={"wait_s": 0.5}, **NONE), folder=folder,
              says=["waiting for front ends", "0 of 2 modules", "control.wait_s"])
    nothing_left(folder)
    equal(read_summary(folder), None, "summary")


@case("receiver late: the front end waits for it")
def _(folder):
    path = experiment(folder, **NONE)
    front_end = Program("emulate", path, folder=folder)
    wait_for("the front end to wait", lambda: "waiting for a receiver" in front_end.err())
    started = receiver(folder, path)
    front_end.ends(0)
    started.ends(0)
    intact(started, read_summary(folder), 200)


@case("front end late, in another terminal: both end well")
def _(folder):
    path = experiment(folder, **NONE)
    started = receiver(folder, path)
    time.sleep(1)
    front_end = run("emulate", path, folder=folder).ends(0)
    started.ends(0)
    intact(started, read_summary(folder), 200)
    check("200 frames sent" in front_end.err(), "the front end does not say what it sent")


@case("the same over shm")
def _(folder):
    path = experiment(folder, link={"kind": "shm"}, **NONE)
    started = receiver(folder, path)
    run("emulate", path, folder=folder).ends(0)
    started.ends(0)
    intact(started, read_summary(folder), 200)


@case("two front ends, the second comes while the first sends: turned away, and the run is intact")
def _(folder):
    path = experiment(folder, detector={**LONG, "frames": 50}, **NONE)
    started = receiver(folder, path)
    first = Program("emulate", path, folder=folder)
    wait_for("frames", lambda: images_on_disk(folder) > 2)
    run_fails("emulate", path, folder=folder, says=["refuses", "already started"])
    first.ends(0)
    started.ends(0)
    intact(started, read_summary(folder), 50)


@case("another experiment, link or token on the other side: refused with the reason, the receiver waits on")
def _(folder):
    path = experiment(folder, control={"token": "open sesame"}, **NONE)
    started = receiver(folder, path)
    for name, sections, says in [("token", {"control": {"token": "open barley"}}, "control.token"),
                                 ("seed", {"detector": {"seed": 2}}, "detector section differs"),
                                 ("size", {"detector": {"rows": 32}}, "detector section differs"),
                                 ("link", {"link": {"kind": "shm"}}, "its link speaks 'shm', here it is 'roce'")]:
        sections = {"control": {"token": "open sesame"}, **sections}
        other = experiment(folder, f"{name}.yaml", **sections)
        run_fails("emulate", other, folder=folder, says=["the receiver refuses", says])
    run("emulate", path, folder=folder).ends(0)
    started.ends(0)
    intact(started, read_summary(folder), 200)
    check("open sesame" not in started.err() + started.out(), "the token was logged")


def vanishes(folder, link):
    """The front end is killed in mid-run: the run ends by itself, and everything that was reported is accounted for."""
    path = experiment(folder, detector=LONG, link={"kind": link}, **NONE)
    started = receiver(folder, path)
    front_end = Program("emulate", path, folder=folder)
    wait_for("frames", lambda: images_on_disk(folder) > 5)
    front_end.send(signal.SIGKILL)
    started.ends(3)
    summary = read_summary(folder)
    closes(summary)
    equal((summary["result"], summary["exit"], summary["stopped_by"]), ("unclosed", 3, None), "result")
    equal(summary["ledger"]["sources_vanished"], 2, "sources vanished")
    equal([m["source"] for m in summary["ledger"]["modules"]], ["vanished", "vanished"], "sources")
    check("vanished" in started.err() and "vanished" in started.out(), "it does not say that the front end vanished")
    outcomes = read_outcomes(folder)
    equal(len(outcomes), summary["ledger"]["total"]["sent"], "outcomes")
    stored = {k for (k, m), outcome in outcomes.items() if outcome == ("stored", "none")}
    check(len(stored) > 5, "hardly anything was stored")
    equal(sink(summary, "verify")["frames_mismatched"], 0, "frames with wrong pixels")
    with h5py.File(folder / "run.nxs", "r") as file:
        equal(file["entry/data/sequence"][()].tolist(), sorted(stored), "images in the file")
        equal(file["entry/sluice/ledger/source_died"][()], 2, "sources that died, says the file")
    return summary


@case("front end killed in mid-run: the run ends with 3, its file is good, the ledger has what was reported")
def _(folder):
    vanishes(folder, "udp")


@case("front end killed in mid-run, over shm")
def _(folder):
    vanishes(folder, "shm")


@case("front end killed in mid-frame: the unfinished frame has a name, and no outcome it did not earn")
def _(folder):
    # Killed while the receiver stands still, it is in the middle of a frame: its window is a fraction of one.
    path = experiment(folder, detector={**LONG, "frame_rate_Hz": 0}, link={"receive_buffer": 200000}, **NONE)
    started = receiver(folder, path)
    front_end = Program("emulate", path, folder=folder)
    wait_for("frames", lambda: images_on_disk(folder) > 5)
    started.send(signal.SIGSTOP)
    time.sleep(0.3)  # to use up its credit
    front_end.send(signal.SIGKILL)
    front_end.wait()
    started.send(signal.SIGCONT)
    started.ends(3)
    summary = read_summary(folder)
    closes(summary)
    equal(sink(summary, "verify")["pixels_mismatched"], 0, "wrong pixels")
    outcomes = read_outcomes(folder)
    unfinished = {m["module"]: m["unfinished"] for m in summary["ledger"]["modules"] if "unfinished" in m}
    check(unfinished, "no frame was under way")
    for module, frame in unfinished.items():
        check(0 < frame["packets"] < 129, f"{frame['packets']} packets of the unfinished frame")
        equal((frame["sequence"], module) in outcomes, False, "it has an outcome")
        equal((frame["sequence"] - 1, module) in outcomes, True, "the one before it has an outcome")
    check("was under way" in started.out(), "the report does not name the frame")


def restarted(folder, link):
    path = experiment(folder, detector={**LONG, "frames": 150, "dark_frames": 10}, link={"kind": link}, **NONE)
    first = receiver(folder, path)
    front_end = Program("emulate", path, folder=folder)
    wait_for("frames", lambda: images_on_disk(folder) > 5)
    first.send(signal.SIGKILL)
    first.wait()
    second = receiver(folder, path)
    front_end.ends(0)
    second.ends(0)
    check("receiver is gone" in front_end.err(), "the front end does not say what happened")
    summary = read_summary(folder)
    sent = summary["ledger"]["modules"][0]["sent"]
    intact(second, summary, sent)
    check(20 < sent < 160, f"{sent} frames for the second receiver")
    with h5py.File(folder / "run.nxs", "r") as file:
        rows = file["entry/sluice/frames"]
        numbers, flags = rows["frame_number"][()].tolist(), rows["flags"][()].tolist()
        equal(rows["sequence"][()].tolist(), list(range(sent)), "sequences begin at 0 again")
        check(numbers[0] >= 15, "frame numbers do not continue")
        equal(numbers, list(range(numbers[0], numbers[0] + sent)), "frame numbers")
        equal([f & 1 for f in flags], [1] * 10 + [0] * (sent - 10), "dark frames come first again")
        # 10 darks and what the first got, 10 darks and the rest for the second: nothing is sent twice or left out.
        equal(numbers[-1] + 1, 150 + 2 * 10, "frames sent in all")


@case("receiver killed and restarted: the front end plans again and goes on, the second run is intact")
def _(folder):
    restarted(folder, "udp")


@case("receiver killed and restarted, over shm")
def _(folder):
    restarted(folder, "shm")


@case("receiver killed, front end told to serve it only: it ends with 1")
def _(folder):
    path = experiment(folder, detector=LONG, **NONE)
    started = receiver(folder, path)
    front_end = Program("emulate", path, "--once", folder=folder)
    wait_for("frames", lambda: images_on_disk(folder) > 2)
    started.send(signal.SIGKILL)
    front_end.ends(1)
    check("the receiver is gone" in front_end.err(), "stderr does not say why")


def gone(pid):
    """Ended; a zombie that nobody collects has ended, too."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


@case("receiver killed with a front end of its own: no orphan is left")
def _(folder):
    started = receiver(folder, experiment(folder, detector=LONG))
    child, = wait_for("the child", started.children)

    def blocked():
        return next(int(line.split()[1], 16) for line in open(f"/proc/{child}/status") if line.startswith("SigBlk"))

    # Between fork and exec all signals are blocked.
    wait_for("a front end that can get every signal", lambda: blocked() == 0)
    wait_for("frames", lambda: images_on_disk(folder) > 2)
    started.send(signal.SIGKILL)
    wait_for("the front end to end", lambda: gone(child))


@case("the receiver's own front end killed: the run ends with 3 and its file is good")
def _(folder):
    started = receiver(folder, experiment(folder, detector=LONG))
    child, = wait_for("the child", started.children)
    wait_for("frames", lambda: images_on_disk(folder) > 2)
    os.kill(child, signal.SIGKILL)
    started.ends(3)
    closes(read_summary(folder))
    with h5py.File(folder / "run.nxs", "r") as file:
        check(len(file["entry/data/data"]) > 2, "hardly any images")


@case("the receiver's own front end cannot start: 1, and nothing is left behind")
def _(folder):
    path = experiment(folder, link={"source": "192.0.2.1"})
    run_fails("run", path, folder=folder, says=["192.0.2.1", "front end ended before the run began"])
    nothing_left(folder)


main()
