#!/usr/bin/python3
"""keeper_test.py - a receiver is replaced under live traffic, and its sources, whose plans are fixed, go on: killed in
mid-run, taken over by the next, twice in a row; with credits and without; what fits and what does not."""
# normal build only

import os
import signal
import time

import h5py

from harness import (GUARDED, LONG, SLOW, Program, case, check, closes, equal, experiment, images_on_disk, intact, main,
                     name_of_run, read_outcomes, read_summary, receiver, run, run_fails, sink, wait_for)
from slow_disk import on_slow_disk

NAME = f"keeper-test-{os.getpid()}"
# Enough for three receivers; RC sources try as long as it takes to start the next.
FRAMES = 300
SLOWLY = {**LONG, "rows": 256, "columns": 256, "frames": FRAMES, "frame_rate_Hz": 25 if SLOW else 50}
SECTIONS = {"emulate": "none", "control": {"keeper": NAME}}


def keeper(folder):
    started = Program("keeper", NAME, folder=folder)
    wait_for("the keeper", lambda: "keeping for receivers" in started.err())
    return started


def fixed(folder, path):
    return Program("emulate", path, "--fixed", folder=folder)


def link(service="uc", **more):
    return {"kind": "udp", "service": service, "retry": 255, **more}


def kill(started):
    started.send(signal.SIGKILL)
    started.wait()


def ends(started, held_back):
    """A source that nothing holds back may lose something; when that is its very end, it seems to have vanished."""
    check(started.wait() in ((0,) if held_back else (0, 2, 3)), f"exit status {started.process.returncode}")


def images(folder):
    return images_on_disk(folder)


def next_receiver(folder, path, after):
    """Another receiver; returns when it has written images, with its first sequence."""
    (folder / "run.nxs.part").unlink(missing_ok=True)
    started = receiver(folder, path, program=GUARDED)
    check("took over 2 modules" in started.err(), "it does not say that it takes over")
    first = int(started.err().split("begins with sequence ")[1].split()[0])
    check(first > after, f"it begins with {first}, the one before with {after}")
    return started, first


def mostly_whole(folder, first):
    """The same of a source that nothing holds back: on a busy machine some of it may be lost, and none be wrong."""
    summary = read_summary(folder)
    closes(summary)
    equal([m["first"] for m in summary["ledger"]["modules"]], [first] * 2, "first sequence in the summary")
    verify = sink(summary, "verify")
    compared = verify.pop("frames_compared")
    check(compared > (FRAMES - first) // 2, f"only {compared} of {FRAMES - first} frames came whole")
    equal(set(verify.values()), {0}, "what verify found")
    with h5py.File(folder / "run.nxs", "r") as file:
        sequences = file["entry/data/sequence"][()].tolist()
        equal(len(sequences), compared, "images")
        check(sequences == sorted(set(sequences)) and first <= sequences[0], "sequences in the file")
        equal(file["entry/data/frame_number"][()].tolist(), sequences, "frame numbers go on")


def whole_to_the_end(folder, first):
    """Every frame from `first` on is stored and verified, numbered as the detector numbers them."""
    summary = read_summary(folder)
    count = FRAMES - first
    closes(summary, 2 * count)
    equal(summary["result"], "intact", "result")
    equal(summary["ended_early"], None, "ended early, as it says")
    equal(summary["ledger"]["total"]["outcomes"]["stored"], 2 * count, "stored")
    equal([m["first"] for m in summary["ledger"]["modules"]], [first] * 2, "first sequence in the summary")
    verify = sink(summary, "verify")
    equal(verify.pop("frames_compared"), count, "frames compared with the truth")
    equal(set(verify.values()), {0}, "what verify found")
    equal(sorted(read_outcomes(folder)), [(k, m) for k in range(first, FRAMES) for m in range(2)], "outcomes")
    with h5py.File(folder / "run.nxs", "r") as file:
        equal(file["entry/data/sequence"][()].tolist(), list(range(first, FRAMES)), "sequences in the file")
        equal(file["entry/data/frame_number"][()].tolist(), list(range(first, FRAMES)), "frame numbers go on")


def replaced_twice(folder, held_back=True, **how):
    overrun = "drop_newest" if not held_back else "stop"
    path = experiment(folder, detector=SLOWLY, link=link(**how), ring={"slots": 128, "overrun": overrun}, **SECTIONS)
    kept = keeper(folder)
    started = receiver(folder, path)
    source = fixed(folder, path)
    first = 0
    for _ in range(2):
        wait_for("frames", lambda: images(folder) > 10)
        kill(started)
        started, first = next_receiver(folder, path, first)
    check(first < FRAMES - 20, f"only {FRAMES - first} frames were left")
    ends(started, held_back)
    source.ends(0)
    check("going on by the plan" in source.err(), "the source does not say that it goes on")
    if not held_back:
        mostly_whole(folder, first)
        return
    whole_to_the_end(folder, first)
    wait_for("it forgets", lambda: "nothing is held any more" in kept.err())


@case("uc with credits: receiver killed twice, each time the next goes on with the same sources")
def _(folder):
    replaced_twice(folder)


@case("rc with credits: receiver killed twice, each time the next goes on with the same sources")
def _(folder):
    replaced_twice(folder, service="rc")


@case("rc with credits, one message per module: a message is continued in its middle", long=True)
def _(folder):
    replaced_twice(folder, service="rc", message="module")


@case("uc without credits: receiver killed twice, each time the next goes on with the same sources")
def _(folder):
    replaced_twice(folder, held_back=False, credits=False)


@case("rc without credits: receiver killed twice, each time the next goes on with the same sources", long=True)
def _(folder):
    replaced_twice(folder, service="rc", credits=False)


@case("the keeper forgets only after the file has its final name, however slow the disk is: before, another receiver can begin anew")
def _(folder):
    small = {"rows": 64, "columns": 64, "frames": 20}
    kept = keeper(folder)
    path = experiment(folder, detector=small, link=link(), **SECTIONS)
    started = receiver(folder, path, wrapper=on_slow_disk(50000, of="run.nxs.part"))
    source = fixed(folder, path)
    wait_for("it forgets", lambda: "nothing is held any more" in kept.err())
    seen = name_of_run(folder)
    started.ends(0)
    source.ends(0)
    intact(started, read_summary(folder), 20)
    equal(seen, name_of_run(folder), "run.nxs when the keeper had forgotten, and in the end (inode, is there a .part)")


@case("a source as fast as its credits: nothing is lost while a receiver is replaced, but what the killed one had")
def _(folder):
    detector = {**SLOWLY, "frame_rate_Hz": 0, "frames": 3000 if SLOW else 20000}
    path = experiment(folder, detector=detector, link=link(), **SECTIONS)
    keeper(folder)
    started = receiver(folder, path)
    source = fixed(folder, path)
    wait_for("frames", lambda: images(folder) > 50)
    kill(started)
    started, first = next_receiver(folder, path, 0)
    started.ends(0)
    source.ends(0)
    summary = read_summary(folder)
    closes(summary, 2 * (detector["frames"] - first))
    equal(summary["result"], "intact", "result")


@case("a source without credits goes on for long while nobody reads: the next receiver finds its place")
def _(folder):
    path = experiment(folder, detector=SLOWLY, ring={"slots": 128, "overrun": "drop_newest"}, **SECTIONS,
                      link=link(credits=False, receive_buffer=300000))
    keeper(folder)
    started = receiver(folder, path)
    source = fixed(folder, path)
    wait_for("frames", lambda: images(folder) > 10)
    kill(started)
    time.sleep(1)  # 25 frames of 256 kB, far more than the sockets hold
    started, first = next_receiver(folder, path, 20)
    ends(started, held_back=False)
    source.ends(0)
    mostly_whole(folder, first)


@case("stopped and started again: two proper runs of one source that was never told")
def _(folder):
    path = experiment(folder, detector=SLOWLY, link=link(), **SECTIONS)
    keeper(folder)
    started = receiver(folder, path)
    source = fixed(folder, path)
    wait_for("frames", lambda: images(folder) > 5)
    kill(started)
    started, first = next_receiver(folder, path, 0)
    wait_for("frames", lambda: images(folder) > 5)
    started.send(signal.SIGINT)
    started.ends(0)
    summary = read_summary(folder)
    closes(summary)
    equal(summary["result"], "intact", "result")
    check("keeper still holds" in started.err(), "it does not say that its sources can be taken over")
    settled = summary["frames"]["settled"]
    (folder / "first").mkdir()
    for file in [folder / "run.nxs", *folder.glob("run_data_*.h5")]:
        file.rename(folder / "first" / file.name)
    started, second = next_receiver(folder, path, first)
    equal(second, first + settled, "the second run begins where the first ended")
    started.ends(0)
    source.ends(0)
    whole_to_the_end(folder, second)


@case("stopped under a source without credits: what came whole is stored, the rest has no outcome")
def _(folder):
    path = experiment(folder, detector={**SLOWLY, "frames": 100000}, link=link(credits=False), **SECTIONS,
                      ring={"slots": 128, "overrun": "drop_newest"})
    keeper(folder)
    started = receiver(folder, path)
    source = fixed(folder, path)
    wait_for("frames", lambda: images(folder) > 5)
    kill(started)
    started, _ = next_receiver(folder, path, 0)
    wait_for("frames", lambda: images(folder) > 5)
    started.send(signal.SIGINT)
    ends(started, held_back=False)
    summary = read_summary(folder)
    closes(summary)
    equal(sink(summary, "verify")["pixels_mismatched"], 0, "wrong pixels")
    equal(summary["ledger"]["sources_vanished"], 0, "sources that vanished")
    source.send(signal.SIGINT)
    source.wait()


@case("a source that is gone: the run that took it over ends with 3, and the keeper can be told to forget")
def _(folder):
    path = experiment(folder, detector=SLOWLY, link=link(), emulate="none",
                      control={"keeper": NAME, "silence_s": 1})
    kept = keeper(folder)
    started = receiver(folder, path)
    source = fixed(folder, path)
    wait_for("frames", lambda: images(folder) > 5)
    kill(started)
    kill(source)
    started = receiver(folder, path)
    started.ends(3)
    check("fell silent" in started.err(), "it does not say why it ends")
    run("keeper", NAME, "--forget", folder=folder)
    check("nothing is held any more" in kept.err(), "the keeper has not forgotten")
    # From the beginning, with a new source.
    started = receiver(folder, path)
    source = fixed(folder, path)
    wait_for("frames", lambda: images(folder) > 5)
    started.send(signal.SIGINT)
    started.ends(0)


@case("keeper killed: the run goes on and says so")
def _(folder):
    path = experiment(folder, detector={**SLOWLY, "frames": 100}, link=link(), **SECTIONS)
    kept = keeper(folder)
    started = receiver(folder, path)
    source = fixed(folder, path)
    wait_for("frames", lambda: images(folder) > 5)
    kill(kept)
    started.ends(0)
    source.ends(0)
    check("the keeper is gone" in started.err(), "it does not say that the keeper is gone")
    closes(read_summary(folder), 200)


@case("an experiment that no longer fits is refused, and what is held stays")
def _(folder):
    path = experiment(folder, detector=SLOWLY, link=link(), **SECTIONS)
    keeper(folder)
    started = receiver(folder, path)
    source = fixed(folder, path)
    wait_for("frames", lambda: images(folder) > 5)
    kill(started)
    for change, what in (("ring.slots=16", "ring.slots"), ("detector.rows=128", "the detector section"),
                         ("link.service=rc", "link.service"), ("link.pmtu=1024", "link.pmtu"),
                         ("link.crc=true", "link.crc"), ("link.listen=127.0.0.1", "link.listen")):
        run_fails("run", path, "--set", change, folder=folder, says=[what, "differs from"])
    started, first = next_receiver(folder, path, 0)
    started.ends(0)
    source.ends(0)
    whole_to_the_end(folder, first)


@case("one receiver at a time, one keeper of a name, names that are none")
def _(folder):
    path = experiment(folder, detector=SLOWLY, link=link(), **SECTIONS)
    run_fails("run", path, folder=folder, says=[f"no keeper is called '{NAME}'", f"sluice keeper {NAME}"])
    keeper(folder)
    run_fails("keeper", NAME, folder=folder, says=["another keeper has that name"])
    run_fails("keeper", "a/b", folder=folder, says=["is no name for a keeper"])
    run_fails("keeper", folder=folder, says=["which name?"])
    started = receiver(folder, path)
    run_fails("run", path, folder=folder, says=[f"process {started.pid} is the receiver now"])
    run_fails("keeper", NAME, "--forget", folder=folder, says=[f"process {started.pid} is the receiver now"])
    run_fails("run", path, "--emulate", folder=folder, says=["control.keeper", "ends with it"])
    started.send(signal.SIGINT)
    started.wait()


@case("links whose queues cannot outlive a process say so")
def _(folder):
    keeper(folder)
    path = experiment(folder, link={"kind": "shm"}, **SECTIONS)
    run_fails("run", path, folder=folder, says=["link 'shm' cannot outlive the receiver", "source's connection"])


main()
