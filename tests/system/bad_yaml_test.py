#!/usr/bin/python3
"""bad_yaml_test.py - experiment files that cannot be meant: each ends with 1 and a message that says where and what is
allowed, before anything is opened or created."""

import random
import socket

from harness import (RECEIVER, ROCE_PORT, case, check, equal, experiment, main, run, run_fails,
                     without_privilege)


GOOD = f"""\
detector:
  kind: pattern
  modules: 2
  frames: 20
link:
  kind: udp
  listen: {RECEIVER}
  source: {RECEIVER}
stages:
  - copy
sinks:
  - nexus:
      path: out/run.nxs
      dataset: raw
emulate: local
"""


def files(folder):
    """What is there, but for what the harness keeps of each program."""
    return sorted(path.name for path in folder.rglob("*") if not path.name.startswith(("stdout-", "stderr-")))


def untouched(folder, program, before):
    """Nothing was created, and no port was opened: the one it would take is ours, and it would have said so."""
    equal(files(folder), before, "files there")
    check("waiting for" not in program.err(), "it began to wait for front ends")
    check("in use" not in program.err() and "bind" not in program.err(), "it tried to open a port")


def refused(folder, text, *says, name="bad.yaml", commands=("run", "emulate", "doctor", "check")):
    """Every command that reads the file refuses it, with these words and the file's name."""
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    before = files(folder)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.bind((RECEIVER, ROCE_PORT))
        for command in commands:
            program = run_fails(command, folder / name, folder=folder, says=says)
            check(name in program.err(), "the message does not name the file")
            equal(program.out(), "", "stdout")
            untouched(folder, program, before)


@case("the file that the others are made from is good")
def _(folder):
    (folder / "good.yaml").write_text(GOOD)
    run("run", folder / "good.yaml", folder=folder).ends(0)
    check((folder / "out/run.nxs").exists(), "no file")


@case("a missing file")
def _(folder):
    for command in ("run", "emulate", "doctor"):
        program = run_fails(command, folder / "nowhere.yaml", folder=folder, says=["nowhere.yaml", "No such file"])
        untouched(folder, program, [])


@case("a directory for a file")
def _(folder):
    (folder / "folder.yaml").mkdir()
    run_fails("run", folder / "folder.yaml", folder=folder, says=["folder.yaml", "directory"])


@case("a file that may not be read")
def _(folder):
    path = folder / "secret.yaml"
    path.write_text(GOOD)
    path.chmod(0)
    run_fails("run", path, folder=folder, wrapper=without_privilege(), says=["secret.yaml", "Permission denied"])


@case("an empty file")
def _(folder):
    refused(folder, "", "bad.yaml")


@case("binary garbage")
def _(folder):
    refused(folder, random.Random(1).randbytes(5000), "bad.yaml:")


@case("a NeXus file for an experiment")
def _(folder):
    refused(folder, b"\x89HDF\r\n\x1a\n" + bytes(3000), "bad.yaml:", "not UTF-8 text")


@case("malformed YAML: the line is named")
def _(folder):
    refused(folder, GOOD.replace("stages:", "stages: [copy"), "bad.yaml:")
    refused(folder, GOOD.replace("  kind: udp", "  kind: 'udp"), "bad.yaml:")
    refused(folder, GOOD.replace("  frames: 20", "\tframes: 20"), "bad.yaml:4", "tab")


@case("a list where sections belong, a map where a list belongs")
def _(folder):
    refused(folder, "- run\n- fast\n", "bad.yaml:1", "map")
    refused(folder, GOOD.replace("stages:\n  - copy", "stages: copy"), "bad.yaml:9", "takes a list")
    refused(folder, GOOD.replace("link:\n  kind: udp", "link: udp\nring:"), "bad.yaml:5", "takes a map")


@case("an unknown key: the line, and what may have been meant")
def _(folder):
    refused(folder, GOOD.replace("frames: 20", "framse: 20"), "bad.yaml:4", "detector.framse", "did you mean 'frames'")
    refused(folder, GOOD.replace("dataset: raw", "datset: raw"), "bad.yaml:14", "did you mean 'dataset'")


@case("an unknown section")
def _(folder):
    refused(folder, GOOD + "detecter: {}\n", "bad.yaml:16", "did you mean 'detector'")


@case("a key given twice")
def _(folder):
    refused(folder, GOOD.replace("  frames: 20", "  frames: 20\n  frames: 30"), "bad.yaml:5", "given twice", "line 4")


@case("a value of the wrong type")
def _(folder):
    refused(folder, GOOD.replace("frames: 20", "frames: twenty"), "bad.yaml:4", "detector.frames", "twenty", "number")
    refused(folder, GOOD.replace("frames: 20", "frames: [20]"), "bad.yaml:4", "detector.frames", "list")
    refused(folder, GOOD.replace("frames: 20", "frames:"), "bad.yaml:4", "detector.frames", "no value")
    refused(folder, GOOD.replace("kind: udp", "kind: udp\n  crc: perhaps"), "bad.yaml:7", "link.crc", "true or false")


@case("a value out of range: the range is told")
def _(folder):
    refused(folder, GOOD.replace("modules: 2", "modules: 65"), "bad.yaml:3", "detector.modules", "out of range",
            "1..64")
    refused(folder, GOOD.replace("modules: 2", "modules: 0"), "bad.yaml:3", "1..64")
    refused(folder, GOOD.replace("modules: 2", "modules: -1"), "bad.yaml:3", "1..64")
    refused(folder, GOOD.replace("kind: udp", "kind: udp\n  pmtu: 1000"), "bad.yaml:7", "256", "4096")
    refused(folder, GOOD + "frontend: {drop: 1.5}\n", "bad.yaml:16", "frontend.drop", "0..1")


NUMBERS = {
    "rings": ("radius_min_mm", "radius_max_mm", "centre_max_mm", "window_mm", "min_hits", "min_own", "triplets", "min_rings",
              "max_rings", "min_matches", "momentum_min_GeV", "momentum_max_GeV", "tolerance_mm", "match_min_mm", "match_max_mm",
              "match_distance_mm", "max_rows"),
    "tracks": ("columns", "rows", "min_pt_GeV", "min_layers", "bend", "fit_deviations", "common", "min_tracks", "trigger_pt_GeV",
               "max_tracks", "max_stubs", "sector_tracks"),
    "feedback": ("port", "payload", "latency_us", "spin_us"),
    "feedback section": ("port", "deadline_us", "wait_s"),
}


@case("triggers: of every number, what is none, infinite, negative or too large is told by its line")
def _(folder):
    for detector, stage in (("rich", "rings"), ("tracker", "tracks")):
        for value in (".nan", "nan", ".inf", "-.inf", "-1", "1e400", "1e300"):
            lines = [f"detector: {{kind: {detector}, frames: 2}}", f"link: {{kind: udp, listen: {RECEIVER}}}", "unit:",
                     f"  deadline_us: {value}", "stages:", f"  - {stage}:", *(f"      {name}: {value}" for name in NUMBERS[stage]),
                     "sinks:", "  - feedback:", *(f"      {name}: {value}" for name in NUMBERS["feedback"]), "feedback:",
                     *(f"  {name}: {value}" for name in NUMBERS["feedback section"]), "emulate: local", ""]
            says = [f"bad.yaml:{n}: " for n, line in enumerate(lines, 1) if line.endswith(value)]
            equal(len(says), 1 + len(NUMBERS[stage]) + 7, "numbers in the file")
            refused(folder, "\n".join(lines), *says, *NUMBERS[stage], *NUMBERS["feedback"], "unit.deadline_us",
                    commands=("run",))


@case("things that do not exist: detector, link, unit, stage, sink")
def _(folder):
    refused(folder, GOOD.replace("kind: pattern", "kind: pilatus"), "bad.yaml:2", "pilatus", "jungfrau", "pattern")
    refused(folder, GOOD.replace("kind: udp", "kind: pigeon"), "bad.yaml:6", "pigeon", "udp", "shm")
    refused(folder, GOOD + "unit: {kind: abacus}\n", "bad.yaml:16", "abacus", "cpu")
    refused(folder, GOOD.replace("- copy", "- polish"), "bad.yaml:10", "polish", "correct", "veto")
    refused(folder, GOOD.replace("- nexus:", "- drain:"), "bad.yaml:12", "drain", "nexus", "verify")


@case("no detector, no sinks, an emulate that is neither")
def _(folder):
    refused(folder, "sinks: [verify]\n", "bad.yaml", "detector")
    refused(folder, GOOD[:GOOD.index("sinks:")], "bad.yaml", "sinks")
    refused(folder, GOOD.replace("emulate: local", "emulate: everywhere"), "bad.yaml:15", "local")


@case("options that contradict each other")
def _(folder):
    refused(folder, GOOD + "ring: {slots: 8, late_frames: 7}\n", "bad.yaml:16", "late_frames", "slots")


@case("all mistakes of a file are told at once")
def _(folder):
    text = GOOD.replace("modules: 2", "modules: 99").replace("kind: udp", "kind: pigeon").replace("- copy", "- polish")
    refused(folder, text, "bad.yaml:3", "bad.yaml:6", "bad.yaml:10")


@case("overrides on the command line are checked like the file")
def _(folder):
    path = experiment(folder)
    before = files(folder)
    for setting, *says in [("detector.frames=none", "--set detector.frames", "number"),
                           ("detector.modules=65", "1..64"),
                           ("detector.framse=5", "did you mean 'frames'"),
                           ("link.kind=pigeon", "pigeon", "udp"),
                           ("detector.frames", "--set detector.frames"),
                           ("=5", "--set: the path must start with a name"),
                           ("sinks[7].x=5", "sinks[7]")]:
        program = run_fails("run", path, "--set", setting, folder=folder, says=says)
        untouched(folder, program, before)


@case("a stage that cannot work on this detector's pixels, a sink without an image: nothing is left behind")
def _(folder):
    jungfrau = {"kind": "jungfrau", "modules": 1, "rows": None, "columns": None, "frames": 5}
    run_fails("run", experiment(folder, detector=jungfrau, stages=["veto"]), folder=folder, says=["'veto' needs 'image'"])
    run_fails("run", experiment(folder, stages=["correct"]), folder=folder, says=["correct", "calibration"])
    sinks = [{"nexus": {"path": str(folder / "run.nxs")}}]
    run_fails("run", experiment(folder, stages=[], sinks=sinks), folder=folder, says=["nexus", "stages"])
    equal(files(folder), ["experiment.yaml"], "files there")


@case("addresses that are none, or not of this host")
def _(folder):
    for listen, *says in [("localhost", "listen", "localhost"), ("0.0.0.0", "listen", "0.0.0.0"),
                          ("192.0.2.1", "192.0.2.1 port 4791")]:
        run_fails("run", experiment(folder, link={"listen": listen}), folder=folder, says=says)
    run_fails("run", experiment(folder, control={"address": "here"}, emulate="none"), folder=folder,
              says=["control.address", "here"])
    run_fails("emulate", experiment(folder, control={"address": "here"}), folder=folder, says=["control", "here"])
    equal(files(folder), ["experiment.yaml"], "files there")


@case("a control address that others can reach needs a token")
def _(folder):
    path = experiment(folder, control={"address": "0.0.0.0", "port": 0}, emulate="none")
    run_fails("run", path, folder=folder, says=["control.token"])
    equal(files(folder), ["experiment.yaml"], "files there")


main()
