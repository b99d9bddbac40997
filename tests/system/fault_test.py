#!/usr/bin/python3
"""fault_test.py - what the emulator hurts on purpose, the ledger names: outcome by outcome, as the emulator's own fault
log predicts, and no frame that is called complete has a wrong pixel (slots are poisoned first)."""

import collections

import h5py

from harness import acquire, both_ways, case, check, closes, equal, fewer, intact, main, read_outcomes, sink


COMPLETE = 2  # among the flags of a frame


def read_faults(folder, *kinds):
    """{(sequence, module): [packet, ...]} of these kinds in the emulator's log."""
    faults = collections.defaultdict(list)
    for line in (folder / "faults.txt").read_text().splitlines():
        module, sequence, packet, kind = line.split()
        if kind in kinds:
            faults[int(sequence), int(module)].append(int(packet))
    return faults


def hurt(folder, frames, modules=2, **sections):
    """Run with faults; the ledger closes and the run says that not all is well."""
    sections["frontend"] = {"fault_log": str(folder / "faults.txt"), **sections["frontend"]}
    sections["detector"] = {"frames": frames, "modules": modules, **sections.get("detector", {})}
    program, summary = acquire(folder, **sections)
    equal(program.process.returncode, 2, "exit status")
    equal(summary["result"], "damaged", "result")
    closes(summary, frames * modules)
    return summary


def by_packet(packets, hurt_packets):
    """Each packet is a message: what is left of a block is placed."""
    if not hurt_packets:
        return None
    return ("lost", "no_arrival") if len(hurt_packets) == packets else ("incomplete", "damaged")


def by_message(packets, hurt_packets):
    """One message per block: it ends with the first packet that is missing."""
    if not hurt_packets:
        return None
    return ("lost", "no_arrival") if 0 in hurt_packets else ("incomplete", "damaged")


def by_memory(packets, hurt_packets):
    """Over shared memory there is an event or there is none."""
    return ("lost", "no_arrival") if hurt_packets else None


def predict(faults, rule, packets, frames, modules=2):
    """The outcome of every (sequence, module); None: whole, so stored or vetoed."""
    predicted = {}
    for k in range(frames):
        hit = [rule(packets, faults.get((k, m), ())) for m in range(modules)]
        for m in range(modules):
            predicted[k, m] = hit[m] or (("incomplete", "partner") if any(hit) else None)
    return predicted


def agree(folder, summary, predicted):
    """The outcome log says what was predicted, and the file says the same. How many frames were whole, and not."""
    outcomes = read_outcomes(folder)
    equal(sorted(outcomes), sorted(predicted), "module-frames that have an outcome")
    wrong = {key: (outcomes[key], wanted) for key, wanted in predicted.items()
             if outcomes[key] != wanted and not (wanted is None and outcomes[key][0] in ("stored", "vetoed"))}
    equal(dict(list(wrong.items())[:5]), {}, f"{len(wrong)} outcomes other than predicted, (sequence, module): ...")
    counts = collections.Counter(outcome for outcome, cause in outcomes.values())
    total = summary["ledger"]["total"]
    equal({k: v for k, v in total["outcomes"].items() if v}, dict(counts), "the ledger's histogram")
    causes = collections.Counter(cause for outcome, cause in outcomes.values() if cause != "none")
    equal({k: v for k, v in total["causes"].items() if v}, dict(causes), "the ledger's causes")
    check_file(folder, outcomes)

    frames = {key[0] for key in predicted}
    damaged = {key[0] for key, wanted in predicted.items() if wanted}
    verify = sink(summary, "verify")
    equal(verify.pop("frames_compared"), len(frames) - len(damaged), "complete frames, compared with the truth")
    equal(set(verify.values()), {0}, "what verify found")
    equal(summary["frames"]["broken"], len(damaged), "frames called broken")
    return len(frames) - len(damaged), len(damaged)


def check_file(folder, outcomes):
    with h5py.File(folder / "run.nxs", "r") as file:
        rows = file["entry/sluice/frames"]
        names = [name.decode() for name in rows["outcome_names"]]
        causes = [name.decode() for name in rows["cause_names"]]
        sequence, outcome, cause = rows["sequence"][()], rows["outcome"][()], rows["cause"][()]
        modules = range(outcome.shape[1])
        table = {(int(k), m): (names[outcome[i, m]], causes[cause[i, m]]) for i, k in enumerate(sequence)
                 for m in modules}
        check(table == outcomes, "the file's outcomes are not those of the outcome log")
        whole = [all(outcomes[int(k), m][0] in ("stored", "vetoed") for m in modules) for k in sequence]
        equal((rows["flags"][()] & COMPLETE > 0).tolist(), whole, "frames called complete")
        stored = [key for key, value in outcomes.items() if value[0] == "stored"]
        equal(len(file["entry/data/data"]), len(stored) // len(modules), "images")
        equal(file["entry/sluice/ledger/closed"][()], 1, "the file's ledger closed")


@both_ways("1 % of packets dropped: every outcome as the fault log has it")
def _(folder):
    frames = fewer(1500, 400)
    summary = hurt(folder, frames, frontend={"drop": 0.01}, link={"pmtu": 256})
    faults = read_faults(folder, "drop")
    complete, damaged = agree(folder, summary, predict(faults, by_packet, 33, frames))
    check(complete >= 20 and damaged >= 20, f"{complete} frames complete, {damaged} damaged: not much of a test")


@case("0.02 % of packets dropped, two Jungfrau modules: 20 frames complete, 20 damaged, no wrong pixel")
def _(folder):
    frames = fewer(700, 300)
    stages = [{"correct": {"output": "photons_i16"}}, {"veto": {"threshold": 10, "min_pixels": 20}}]
    sinks = [{"nexus": {"path": str(folder / "run.nxs")}}, "verify"]
    detector = {"kind": "jungfrau", "rows": None, "columns": None, "dark_frames": fewer(64, 10),
                "frames": frames - fewer(64, 10)}
    sections = {"stages": stages, "sinks": sinks, "detector": detector, "frontend": {"drop": 0.0002}}
    summary = hurt(folder, frames, **sections)
    complete, damaged = agree(folder, summary, predict(read_faults(folder, "drop"), by_packet, 257, frames))
    check(complete >= 20 and damaged >= 20, f"{complete} frames complete, {damaged} damaged: not much of a test")


@case("30 % of packets dropped: module-frames whole, damaged and lost without a trace")
def _(folder):
    summary = hurt(folder, 500, frontend={"drop": 0.3})
    predicted = predict(read_faults(folder, "drop"), by_packet, 3, 500)
    agree(folder, summary, predicted)
    kinds = collections.Counter(predicted.values())
    check(all(kinds[kind] >= 5 for kind in [None, ("lost", "no_arrival"), ("incomplete", "damaged"),
                                            ("incomplete", "partner")]), f"not all kinds came about: {kinds}")


@case("all packets dropped: everything sent is lost, and counted")
def _(folder):
    summary = hurt(folder, 40, frontend={"drop": 1})
    equal(summary["ledger"]["total"]["outcomes"]["lost"], 80, "lost")
    equal(set(read_outcomes(folder).values()), {("lost", "no_arrival")}, "outcomes")


@case("the same seed hurts the same module-frames, another seed others")
def _(folder):
    outcomes = []
    for name, seed in (("first", 7), ("second", 7), ("other", 8)):
        (folder / name).mkdir()
        hurt(folder / name, 300, frontend={"drop": 0.02, "fault_seed": seed})
        outcomes.append(read_outcomes(folder / name))
    equal(outcomes[0] == outcomes[1], True, "two runs with one seed agree")
    equal(outcomes[0] == outcomes[2], False, "two runs with different seeds agree")


@case("drops with one message per module and frame")
def _(folder):
    frames = fewer(1000, 300)
    summary = hurt(folder, frames, frontend={"drop": 0.01}, link={"message": "module", "pmtu": 512})
    predicted = predict(read_faults(folder, "drop"), by_message, 17, frames)
    agree(folder, summary, predicted)
    kinds = collections.Counter(predicted.values())
    check(kinds[("lost", "no_arrival")] and kinds[("incomplete", "damaged")] and kinds[None], f"kinds: {kinds}")


@case("drops over shm: no event, so lost")
def _(folder):
    frames = fewer(1000, 300)
    summary = hurt(folder, frames, frontend={"drop": 0.01}, link={"kind": "shm", "pmtu": 1024})
    agree(folder, summary, predict(read_faults(folder, "drop"), by_memory, 9, frames))


@case("corrupted packets: the ICRC finds every one")
def _(folder):
    frames = fewer(1000, 300)
    summary = hurt(folder, frames, frontend={"corrupt": 0.01}, link={"pmtu": 1024})
    faults = read_faults(folder, "corrupt")
    agree(folder, summary, predict(faults, by_packet, 9, frames))
    turned_away = summary["link"]["turned_away"]
    equal(turned_away.pop("icrc"), sum(map(len, faults.values())), "packets turned away for their ICRC")
    equal(set(turned_away.values()), {0}, "packets turned away for something else")


@case("duplicated packets: nothing is lost, each is counted")
def _(folder):
    frames = fewer(1000, 300)
    program, summary = acquire(folder, detector={"frames": frames}, link={"pmtu": 1024},
                               frontend={"duplicate": 0.05, "fault_log": str(folder / "faults.txt")})
    intact(program, summary, frames)
    faults = read_faults(folder, "duplicate")
    check(len(faults) > 20, "hardly any duplicates")
    turned_away = summary["link"]["turned_away"]
    # The second copy of a frame's very last packet may find that its slot has been closed already.
    late, duplicate = turned_away.pop("late"), turned_away.pop("duplicate")
    equal(late + duplicate, sum(map(len, faults.values())), "packets turned away, duplicate or late")
    check(late <= sum(8 in packets for packets in faults.values()), f"{late} packets were late")
    equal(set(turned_away.values()), {0}, "packets turned away for something else")


def reliable(name, **link):
    @case(f"a reliable connection makes good what is lost, doubled or spoilt: {name}")
    def _(folder):
        frames = fewer(600, 200)
        frontend = {"drop": 0.005, "duplicate": 0.005, "corrupt": 0.005, "fault_log": str(folder / "faults.txt")}
        program, summary = acquire(folder, detector={"frames": frames}, link={"service": "rc", **link},
                                   frontend=frontend)
        intact(program, summary, frames)
        spoilt = sum(map(len, read_faults(folder, "corrupt").values()))
        check(read_faults(folder, "drop") and spoilt, "hardly any faults")
        equal(summary["link"]["turned_away"]["icrc"], spoilt, "packets turned away for their ICRC")
        check(summary["link"]["turned_away"]["gap"], "nothing had to be sent again")


reliable("one message per packet", pmtu=1024)
reliable("one message per module and frame", pmtu=512, message="module")
reliable("sent to where the receiver puts it", pmtu=1024, operation="send")


@both_ways("everything at once, in packets of 256 bytes")
def _(folder):
    frames = fewer(600, 200)
    summary = hurt(folder, frames, frontend={"drop": 0.004, "corrupt": 0.004, "duplicate": 0.01}, link={"pmtu": 256})
    agree(folder, summary, predict(read_faults(folder, "drop", "corrupt"), by_packet, 33, frames))
    equal(summary["link"]["turned_away"]["icrc"], sum(map(len, read_faults(folder, "corrupt").values())), "icrc")


@case("four modules, of which any may be hurt, with a checksum in each record")
def _(folder):
    frames = fewer(600, 200)
    summary = hurt(folder, frames, 4, frontend={"drop": 0.003}, link={"pmtu": 512, "crc": True})
    complete, damaged = agree(folder, summary, predict(read_faults(folder, "drop"), by_packet, 17, frames, 4))
    check(complete >= 20 and damaged >= 20, f"{complete} frames complete, {damaged} damaged: not much of a test")



main()
