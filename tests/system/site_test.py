#!/usr/bin/python3
"""site_test.py - site files and `sluice check`: which file decides, what is locked, which site files are refused, all mistakes at
once, and where every value comes from."""
# with sanitizers in check-long

import json
import os
import re
import time

from harness import (CONTROL_PORT, ROOT, SLOW, acquire, address, case, check, equal, experiment, intact, main, run, run_fails)

VALUE = re.compile(r"^( *)(- )?([\w/]+): (.*?) +# (.*)$")


def site(folder, name="site.yaml", **maps):
    """Write a site file; JSON on one line each, so that `defaults` is line 1 and `locked` line 2."""
    path = folder / name
    path.write_text("".join(f"{key}: {json.dumps(maps.get(key, {}))}\n" for key in ("defaults", "locked")))
    return path


def resolved(text):
    """{"link.pmtu": ("1024", "site.yaml:1")} of what `sluice check` prints; add-ons of lists by their names."""
    values, path = {}, []
    for line in text.splitlines():
        plain = re.match(r"^( *)(- )?([\w]+):\s*$", line)
        match = plain or VALUE.match(line)
        if not match:
            continue
        depth = len(match[1]) + len(match[2] or "")
        path = [(d, key) for d, key in path if d < depth] + [(depth, match[3])]
        if not plain:
            values[".".join(key for _, key in path)] = (match[4], match[5].replace(str(ROOT), ""))
    return values


def checked(folder, path, *arguments):
    """What `sluice check` says of a good experiment, files without their folder."""
    program = run("check", path, *arguments, folder=folder).ends(0)
    return {key: (value, origin.replace(f"{folder}/", "")) for key, (value, origin) in resolved(program.out()).items()}


@case("the table of precedence: default, site, experiment, --set, locked")
def _(folder):
    weak, strong = {"ring": {"slots": 16}}, {"ring": {"slots": 20}}
    for defaults, sections, arguments, locked, wanted in [
            ({}, {}, (), {}, ("32", "default")),
            (weak, {}, (), {}, ("16", "site.yaml:1")),
            (weak, strong, (), {}, ("20", "experiment.yaml:19")),
            (weak, strong, ("--set", "ring.slots=24"), {}, ("24", "--set")),
            (weak, {}, ("--set", "ring.slots=24"), {}, ("24", "--set")),
            ({}, {}, (), {"ring": {"slots": 12}}, ("12", "site.yaml:2 (locked)")),
            ({}, {"ring": {"slots": 12}}, ("--set", "ring.slots=12"), {"ring": {"slots": 12}}, ("12", "site.yaml:2 (locked)"))]:
        path = experiment(folder, **sections)
        file = site(folder, defaults=defaults, locked=locked)
        line = [n for n, text in enumerate(path.read_text().splitlines(), 1) if '"slots"' in text]
        wanted = (wanted[0], f"experiment.yaml:{line[0]}") if wanted[1].startswith("experiment") else wanted
        equal(checked(folder, path, "--site", file, *arguments)["ring.slots"], wanted, "ring.slots")


@case("the site file of the user is found; --site none, an empty SLUICE_SITE and none at all are the same")
def _(folder):
    path = experiment(folder)
    plain = run("check", path, folder=folder).ends(0).out()
    below = folder / "config/sluice"
    below.mkdir(parents=True)
    site(below, defaults={"ring": {"slots": 16}})
    if os.path.exists("/etc/sluice/site.yaml"):
        return
    saved = os.environ.pop("SLUICE_SITE")
    os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
    try:
        equal(checked(folder, path)["ring.slots"], ("16", "config/sluice/site.yaml:1"), "ring.slots")
        equal(run("check", path, "--site", "none", folder=folder).ends(0).out(), plain, "what is said with --site none")
        equal(run("check", path, "--site=", folder=folder).ends(0).out(), plain, "what is said with --site=")
        os.environ["XDG_CONFIG_HOME"] = str(folder / "nowhere")
        equal(run("check", path, folder=folder).ends(0).out(), plain, "what is said without a file")
    finally:
        os.environ["SLUICE_SITE"] = saved
        del os.environ["XDG_CONFIG_HOME"]


@case("a locked key: the error names both lines; every command that reads the file holds to it")
def _(folder):
    path = experiment(folder, link={"kind": "shm"})
    file = site(folder, locked={"link": {"kind": "udp"}})
    for command in ("run", "emulate", "doctor", "check", "show", "truth"):
        run_fails(command, path, "--site", file, folder=folder,
                  says=["experiment.yaml:", "link.kind: is locked to 'udp' by", "site.yaml:2"])
    good = experiment(folder)
    run_fails("check", good, "--site", file, "--set", "link.kind=shm", folder=folder, says=["--set link.kind: is locked to 'udp'"])


@case("a run with a site file: its defaults and locks are used by receiver and front end, and by the children of transfers")
def _(folder):
    locked = {"ring": {"slots": 16}, "control": {"port": CONTROL_PORT}, "emulate": "local"}
    file = site(folder, defaults={"detector": {"seed": 5}, "link": {"pmtu": 1024}}, locked=locked)
    sections = {"detector": {"frames": 50}}
    intact(*acquire(folder, arguments=("--site", file), **sections), 50)
    parts = {"a": {}, "b": {"every": 2, "link": {"listen": address(3)}}}
    program, summary = acquire(folder, arguments=("--site", file), transfers=parts, sinks=["verify"], **sections)
    equal(program.process.returncode, 0, "exit status")
    equal([t["result"] for t in summary["transfers"].values()], ["intact"] * 2, "results")


@case("defaults of a kind apply to that kind; keys without a kind where the kind has them")
def _(folder):
    file = site(folder, defaults={"link": {"kind": "udp", "receive_buffer": "64Ki"}, "detector": {"photon_energy_keV": 9},
                                  "sinks": {"nexus": {"instrument": "BL1"}}})
    shm = checked(folder, experiment(folder, link={"kind": "shm"}), "--site", file)
    equal(shm["link.kind"][0], "shm", "link.kind")
    check("link.receive_buffer" not in shm, "an option of another link is there")
    check("detector.photon_energy_keV" not in shm, "an option of another detector is there")
    equal(shm["sinks.nexus.instrument"], ("BL1", "site.yaml:1"), "the sink's option")
    udp = checked(folder, experiment(folder), "--site", file)
    equal(udp["link.receive_buffer"], ("65536", "site.yaml:1"), "link.receive_buffer")
    jungfrau = {"kind": "jungfrau", "rows": None, "columns": None, "frames": 5}
    beam = checked(folder, experiment(folder, detector=jungfrau), "--site", file)
    equal(beam["detector.photon_energy_keV"], ("9", "site.yaml:1"), "detector.photon_energy_keV")


@case("site files that are refused, with file and line")
def _(folder):
    path = experiment(folder)
    file = folder / "site.yaml"
    for text, *says in [("default: {}\n", "site.yaml:1: default: unknown key", "did you mean 'defaults'"),
                        ("defaults:\n  link:\n    pmtu: 1500\n", "site.yaml:3: defaults.link.pmtu", "4096"),
                        ("defaults:\n  link:\n    kind: shm\n    listen: 1\n    recieve_buffer: 1\n", "site.yaml:5", "unknown key"),
                        ("locked: {ring: {slot: 4}}\n", "locked.ring.slot: unknown key"),
                        ("locked: {ring: {slots: }}\n", "locked.ring.slots: has no value"),
                        ("defaults: [1]\n", "site.yaml:1: defaults: takes a map"),
                        ("defaults: {a: [}\n", "site.yaml:1"), ("", "is empty"), ("\x00", "site.yaml:1")]:
        file.write_text(text)
        for command in ("run", "check"):
            program = run_fails(command, path, "--site", file, folder=folder, says=says)
            equal(program.out(), "", "stdout")
    file.unlink()
    run_fails("run", path, "--site", file, folder=folder, says=["site file", "No such file"])
    file.mkdir()
    run_fails("run", path, "--site", file, folder=folder, says=["site.yaml", "directory"])


@case("check tells every mistake, once, and prints nothing else")
def _(folder):
    path = experiment(folder, detector={"modules": 99}, stages=["polish"], ring={"slots": 8, "late_frames": 7},
                      threads={"cpus": "a", "source_cpus": "b"}, transfers={"one": {}, "two": {"every": 0}}, emulate="where")
    program = run("check", path, "--set", "no value", "--set", "link.kind=pigeon", "--set", "rign.slots=3", folder=folder).ends(1)
    equal(program.out(), "", "stdout")
    for words in ("detector.modules: 99", "pigeon", "polish", "'a' is no list", "'b' is no list", "two.every", "--set no:",
                  "--set rign", "takes local"):
        equal(program.err().count(words), 1, f"times that '{words}' is said")
    other = experiment(folder, frontend={"drop": 1, "burst": 1, "fault_modules": "9-3"}, ring={"slots": 8, "late_frames": 7, "x": 3})
    program = run("check", other, folder=folder).ends(1)
    for words in ("late_frames (7)", "line_pitch must say"):
        check(words in program.err(), f"'{words}' is not said")


@case("check finds what only stages and files have against each other, and opens nothing")
def _(folder):
    jungfrau = {"kind": "jungfrau", "modules": 1, "rows": None, "columns": None, "frames": 5}
    run_fails("check", experiment(folder, detector=jungfrau, stages=["veto"]), folder=folder, says=["'veto' needs 'image'"])
    twice = [{"nexus": {"path": str(folder / "a.nxs"), "dataset": "raw"}}, {"nexus": {"path": f"{folder}/./a.nxs", "dataset": "raw"}}]
    program = run("check", experiment(folder, sinks=twice), folder=folder).ends(1)
    check("is to be written twice" in program.err(), program.err())
    check("detector:" in program.out(), "the experiment was understood, and is not shown")
    check(not (folder / "a.nxs").exists(), "a file was made")


@case("what check prints is the same experiment, with every option, and no secret")
def _(folder):
    path = experiment(folder, control={"token": "sesame"}, transfers={"all": {}, "few": {"every": 3}})
    both = run("check", path, folder=folder).ends(0).out()
    equal(re.findall(r"^--- # transfer (\w+)$", both, re.M), ["all", "few"], "transfers")
    check("sesame" not in both, "the token is shown")
    few = checked(folder, path, "--transfer", "few")
    equal(few["transfers.few.every"][0], "3", "every")
    equal(few["control.port"][0], str(CONTROL_PORT + 1), "control.port")
    again = folder / "again.yaml"
    again.write_text(run("check", path, "--transfer", "few", folder=folder).ends(0).out())
    second = checked(folder, again)
    equal({key: value for key, (value, _) in second.items()}, {key: value for key, (value, _) in few.items()}, "values, read again")
    equal({origin.split(":")[0] for _, origin in second.values()}, {"again.yaml"}, "origins, read again")
    equal(run("check", path, "--quiet", folder=folder).ends(0).out(), "", "stdout with --quiet")


@case("a text of 100 MB is refused at once")
def _(folder):
    path = folder / "huge.yaml"
    with open(path, "wb") as file:
        file.write(b"detector: {kind: pattern}\n" * 4000000)
    start = time.monotonic()
    run_fails("check", path, folder=folder, says=["huge.yaml: larger than 1 MiB"])
    run_fails("check", experiment(folder), "--site", path, folder=folder, says=["huge.yaml: larger than 1 MiB"])
    check(time.monotonic() - start < (20 if SLOW else 5), "it took long")
    path.unlink()


main()
