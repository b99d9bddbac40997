#!/usr/bin/python3
"""fault_kinds_test.py - each fault that a front end can be asked for, with real processes: every outcome is what the fault
log implies (docs/how-to/faults.md), over udp, and over shm where it makes sense there; what cannot be done is refused."""
# normal build only

import collections

from fault_oracle import compare, count, foresee, packets_of, read_log
from harness import (LONG, Program, acquire, case, check, closes, equal, experiment, fewer, main, read_outcomes,
                     read_summary, receiver, run_fails, sink)

PIXELS = 64 * 64 * 2  # of a module
FRAMES = fewer(400, 150)


def rehearse(folder, frontend, *, way="uc", pmtu=1024, message=None, crc=False, exit_status=2, **sections):
    """Run with these faults; the log, the summary, and how many module-frames had which fate."""
    message = message or ("module" if way == "shm" else "packet")
    link = {"pmtu": pmtu, "crc": crc, "message": message, "service": "rc" if way == "rc" else "uc",
            **({"kind": "shm"} if way == "shm" else {})}
    program, summary = acquire(folder, detector={"frames": FRAMES}, link=link,
                               frontend={"fault_log": str(folder / "faults.txt"), **frontend}, **sections)
    equal(program.process.returncode, exit_status, "exit status")
    faults, packets = read_log(folder), packets_of(PIXELS, pmtu)
    messages = {"packet": 1, "module": packets}
    kinds = compare(folder, summary, foresee(faults, FRAMES, packets=packets, message=messages[message], way=way,
                                             hold=frontend.get("reorder_packets", 0), crc=crc))
    equal(sink(summary, "verify")["pixels_mismatched"], 0, "wrong pixels in complete frames")
    return faults, summary, kinds


DAMAGED, LOST, PARTNER = ("incomplete", "damaged"), ("lost", "no_arrival"), ("incomplete", "partner")


@case("reorder, one message per packet: nothing is lost")
def _(folder):
    faults, summary, _ = rehearse(folder, {"reorder": 0.05, "reorder_packets": 12}, exit_status=0)
    check(count(faults, "reorder") > 50, "hardly any")
    equal(sum(summary["link"]["turned_away"].values()), 0, "packets turned away")


@case("reorder, one message per module: whatever is overtaken ends its message")
def _(folder):
    _, summary, kinds = rehearse(folder, {"reorder": 0.01, "reorder_packets": 3}, message="module")
    check(kinds[DAMAGED] and kinds[None], f"{kinds}")  # none is lost: the first packet of a message always counts
    check(summary["link"]["turned_away"]["broken"], "no message broke")


@case("reorder over a reliable connection: it comes again")
def _(folder):
    faults, summary, _ = rehearse(folder, {"reorder": 0.01, "reorder_packets": 3}, way="rc", exit_status=0)
    check(count(faults, "reorder") > 10, "hardly any")
    check(summary["link"]["turned_away"]["gap"], "nothing had to come again")


@case("duplicate, one message per module: the second copy ends the message")
def _(folder):
    _, _, kinds = rehearse(folder, {"duplicate": 0.01}, message="module")
    check(kinds[DAMAGED] and kinds[None], f"{kinds}")


def bursts(way):
    @case(f"burst over {way}: as many packets in a row as asked for, over the end of frames")
    def _(folder):
        faults, _, kinds = rehearse(folder, {"burst": 0.002, "burst_packets": 14}, way=way)
        lost = sorted((m, k, p) for (k, m), packets in faults.items() for p in packets)
        check(len(lost) >= 28, f"{len(lost)} packets")
        check(kinds[None] and kinds[LOST] and kinds[PARTNER], f"{kinds}")


bursts("uc")
bursts("shm")


def keys(way, message):
    @case(f"wrong key over {way}, one message per {message}: the write is refused and counted")
    def _(folder):
        faults, summary, kinds = rehearse(folder, {"wrong_key": 0.02}, way=way, message=message)
        equal(summary["link"]["turned_away"]["key"], count(faults, "wrong_key"), "refused for their key")
        check(kinds[None] and kinds[DAMAGED if message == "packet" else LOST], f"{kinds}")


keys("uc", "packet")
keys("uc", "module")
keys("shm", "module")


@case("wrong key over a reliable connection: it ends there, and the run says so")
def _(folder):
    program, summary = acquire(folder, detector={"frames": FRAMES}, link={"service": "rc"},
                               frontend={"wrong_key": 0.02, "fault_log": str(folder / "faults.txt")})
    equal(program.process.returncode, 3, "exit status")
    equal(summary["result"], "unclosed", "result")
    check("refused key or address" in program.err(), program.err())


def memory(way):
    @case(f"memory spoilt before the ICRC over {way}: only the record's checksum finds it")
    def _(folder):
        faults, summary, kinds = rehearse(folder, {"spoil": 0.1}, way=way, crc=True)
        equal(kinds["incomplete", "checksum"], count(faults, "spoil"), "found by the checksum of the pixels")
        equal(kinds["incomplete", "record"], count(faults, "spoil_record"), "found by the record's own")
        equal(summary["link"]["turned_away"]["icrc"], 0, "found by the ICRC")
        check(count(faults, "spoil") >= 5, "hardly any")


memory("uc")
memory("rc")
memory("shm")


@case("memory spoilt and no checksum: only verify finds it, and keeps it out of the file")
def _(folder):
    program, summary = acquire(folder, detector={"frames": FRAMES},
                               frontend={"spoil": 0.1, "fault_log": str(folder / "faults.txt")})
    equal(program.process.returncode, 2, "exit status")
    faults = read_log(folder)
    spoilt = {k for (k, m), packets in faults.items() if any("spoil" in kinds for kinds in packets.values())}
    records = {k for (k, m), packets in faults.items() if any("spoil_record" in kinds for kinds in packets.values())}
    equal(sink(summary, "verify")["frames_mismatched"], len(spoilt - records), "frames that verify refused")
    equal(summary["ledger"]["total"]["outcomes"]["unwritten"], 2 * len(spoilt - records), "unwritten")


def skips(way):
    @case(f"skipped frames over {way}: lost, and the front end itself says how many it never sent")
    def _(folder):
        faults, summary, kinds = rehearse(folder, {"skip": 0.05}, way=way)
        equal(summary["ledger"]["total"]["skipped"], count(faults, "skip"), "skipped, as the front end counts")
        equal(kinds[LOST], count(faults, "skip"), "lost")
        for module in summary["ledger"]["modules"]:
            equal(module["sent"] + module["skipped"], FRAMES, "sent and skipped")


skips("uc")
skips("shm")


def produced(folder, module):
    """Which frames a module sent, where those that it skipped leave no gap: SEQUENCE is what it would have been."""
    gaps = collections.Counter(int(line.split()[1]) for line in (folder / "faults.txt").read_text().splitlines()
                               if line.split()[0] == str(module))
    frames = []
    for k in range(FRAMES):
        if gaps[len(frames)]:
            gaps[len(frames)] -= 1
        else:
            frames.append(k)
    return frames


def skips_by_number(align, service):
    @case(f"skipped frames, put together by {align}, over {service}: what was sent is stored or lacks its partner")
    def _(folder):
        program, summary = acquire(folder, detector={"frames": FRAMES}, ring={"align": align}, link={"service": service},
                                   frontend={"skip": 0.05, "fault_log": str(folder / "faults.txt")})
        equal(program.process.returncode, 2, "exit status")
        closes(summary)
        sent = [produced(folder, m) for m in range(2)]
        check(all(0.85 * FRAMES < len(frames) < FRAMES for frames in sent), "far more than one in twenty was skipped")
        equal([m["sent"] for m in summary["ledger"]["modules"]], [len(frames) for frames in sent], "sent")
        outcomes = read_outcomes(folder)
        wanted = {(i, m): ("stored", "none") if k in sent[1 - m] else PARTNER
                  for m in range(2) for i, k in enumerate(sent[m])}
        equal({key: (outcomes.get(key), want) for key, want in wanted.items() if outcomes.get(key) != want}, {}, "outcomes")
        equal(len(outcomes), len(wanted), "module-frames that have an outcome")
        equal(sink(summary, "verify")["pixels_mismatched"], 0, "wrong pixels")
        to_the_end = all(frames[-1] == FRAMES - 1 for frames in sent)
        equal(summary["ended_early"], None if to_the_end else "a front end sent less than it had offered", "ended early")


skips_by_number("frame", "uc")
skips_by_number("frame", "rc")
skips_by_number("timestamp", "uc")


def restarts(link):
    @case(f"a module stops and comes back under a new plan, over {link}: frames are whole again")
    def _(folder):
        frames = 250
        path = experiment(folder, detector={**LONG, "frames": frames, "rows": 128, "columns": 128}, link={"kind": link},
                          ring={"align": "frame"}, emulate="none",
                          frontend={"restart_after": 40, "restart_frames": 90, "fault_modules": "1"})
        started = receiver(folder, path)
        stays, leaves = (Program("emulate", path, "--modules", str(m), "--set",
                                 f"frontend.fault_log={folder / f'faults-{m}.txt'}", folder=folder) for m in (0, 1))
        stays.ends(0)
        leaves.ends(0)
        started.ends(3)
        summary = read_summary(folder)
        closes(summary)
        equal((folder / "faults-1.txt").read_text(), "1 40 0 restart\n", "the fault log")
        equal([m["sent"] for m in summary["ledger"]["modules"]], [frames, frames - 90], "sent")
        outcomes = read_outcomes(folder)
        for k in range(frames):
            equal(outcomes[k, 0], PARTNER if 40 <= k < 130 else ("stored", "none"), f"frame {k}, module 0")
        for k in range(frames - 90):
            equal(outcomes[k, 1], ("stored", "none"), f"sequence {k}, module 1")
        equal(sink(summary, "verify")["pixels_mismatched"], 0, "wrong pixels")


restarts("udp")
restarts("shm")


def delays(way):
    @case(f"a module that falls behind over {way}: nothing is lost")
    def _(folder):
        faults, _, _ = rehearse(folder, {"delay": 0.1, "delay_frames": 20, "fault_modules": "1"}, way=way, exit_status=0)
        check(count(faults, "delay") > 3 and all(m == 1 for _, m in faults), f"{len(faults)} delays")


delays("uc")
delays("rc")
delays("shm")


@case("a clock that drifts: frames are put together by their sequence, verify names the wrong timestamps")
def _(folder):
    program, summary = acquire(folder, detector={"frames": FRAMES}, frontend={
        "drift_ppm": 100, "clock_offset_ns": 5, "fault_log": str(folder / "faults.txt")})
    equal(program.process.returncode, 2, "exit status")
    equal((folder / "faults.txt").read_text(), "1 0 0 drift\n", "the fault log")
    equal(sink(summary, "verify")["frames_with_wrong_records"], FRAMES, "frames whose timestamps are wrong")
    equal(summary["frames"]["broken"], 0, "broken frames")


@case("all of them at once")
def _(folder):
    _, _, kinds = rehearse(folder, {"drop": 0.002, "corrupt": 0.002, "duplicate": 0.005, "reorder": 0.01, "burst": 0.0005,
                                    "burst_packets": 20, "reorder_packets": 9, "wrong_key": 0.001, "spoil": 0.01,
                                    "delay": 0.02}, crc=True)
    check(all(kinds[kind] for kind in (None, DAMAGED, PARTNER, ("incomplete", "checksum"))), f"{kinds}")


def refused(name, says, frontend, **sections):
    @case(f"refused before the run: {name}")
    def _(folder):
        run_fails("run", experiment(folder, frontend=frontend, **sections), folder=folder, says=["frontend", *says])
        check(not (folder / "run.nxs").exists() and not (folder / "run.nxs.part").exists(), "it left a file behind")


refused("reorder over shm", ["reorder", "shm"], {"reorder": 0.1}, link={"kind": "shm"})
refused("duplicate over shm", ["duplicate", "shm"], {"duplicate": 0.1}, link={"kind": "shm"})
refused("a gap in a reliable connection", ["skip", "service: uc"], {"skip": 0.1}, link={"service": "rc"})
refused("a key where there is none", ["wrong_key", "send"], {"wrong_key": 0.1}, link={"operation": "send"})
refused("more than all packets", ["more than all"], {"drop": 0.6, "corrupt": 0.6})
refused("a delay that the ring cannot hold", ["delay_frames", "slots"], {"delay": 0.1, "delay_frames": 30})
refused("a restart where nothing tells frames apart", ["restart_after", "align"], {"restart_after": 5})
refused("modules that are none", ["fault_modules", "first-last"], {"drop": 0.1, "fault_modules": "3-1"})

main()
