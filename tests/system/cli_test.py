#!/usr/bin/python3
"""cli_test.py - the command line: help everywhere, clear words for what is not understood, overrides, list, doctor."""
# with sanitizers in check-long

import re

from harness import ROOT, SLUICE, acquire, case, check, equal, experiment, intact, main, run, run_fails

COMMANDS = {
    "run": ["--emulate", "--summary", "--outcomes", "--port_file", "--quiet", "--set", "exit status"],
    "emulate": ["--once", "--quiet", "--set"],
    "list": ["--help"],
    "doctor": ["--set", "--root", "--transfer", "--live", "--junit"],
    "explain": ["--json", "--list", "exit status"],
    "serve": ["--listen", "--root", "--experiments", "--tokens", "--tls_cert"],
    "ctl": ["--host", "--token_file", "--wait"],
}
ADD_ONS = {
    "detector": {"jungfrau": ["hit_fraction", "photon_energy_keV", "pool"], "pattern": ["rows", "columns", "bits"]},
    "link": {"udp": ["listen", "source", "receive_buffer", "window"], "shm": ["name"],
             "verbs": ["listen", "source", "nic", "poll", "retry"]},
    "unit": {"cpu": ["workers"]},
    "stage": {"correct": ["output", "photons_i16", "kev_f32"], "veto": ["threshold", "min_pixels"], "copy": []},
    "sink": {"nexus": ["path", "dataset"], "verify": ["max_reports"], "null": []},
}


def says(program, *texts):
    for text in texts:
        check(text in program.out(), f"stdout does not say '{text}'")


@case("--help names the commands, and each command's --help its options")
def _(folder):
    for word in ("--help", "-h", "help"):
        says(run(word, folder=folder).ends(0), "usage: sluice", *COMMANDS)
    for command, options in COMMANDS.items():
        for word in ("--help", "-h"):
            says(run(command, word, folder=folder).ends(0), f"usage: sluice {command}", "--help", *options)
    equal(sorted(path.name for path in folder.iterdir() if not path.name.startswith("std")), [], "files created")


@case("--version is that of the build file")
def _(folder):
    version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1]
    equal(run("--version", folder=folder).ends(0).out(), f"sluice {version}\n", "version")


@case("no command: the usage on stderr, and 1")
def _(folder):
    program = run_fails(folder=folder, says=["usage: sluice", "run", "emulate"])
    equal(program.out(), "", "stdout")


@case("what is not understood ends with 1 and says what to do")
def _(folder):
    path = experiment(folder)
    for arguments, *words in [(["fly"], "'fly'", "--help"),
                              (["run"], "which experiment", "usage"),
                              (["emulate"], "which experiment"),
                              (["run", path, path], "which experiment"),
                              (["run", path, "--fast"], "'--fast'", "sluice run --help"),
                              (["run", path, "-x"], "'-x'", "sluice run --help"),
                              (["run", path, "--summary"], "--summary", "needs a value"),
                              (["run", path, "--quiet=perhaps"], "--quiet", "perhaps"),
                              (["run", path, "--set"], "--set", "needs a value"),
                              (["emulate", path, "--summary", "x"], "'--summary'"),
                              (["list", "moon"], "'moon'", "sluice list"),
                              (["list", "--all"], "'--all'"),
                              (["doctor", folder / "nowhere.yaml"], "nowhere.yaml")]:
        run_fails(*arguments, folder=folder, says=words)
    check(not list(folder.glob("run.nxs*")), "a file was created")


@case("--set overrides keys, in sections, stages and sinks, and adds new ones")
def _(folder):
    (folder / "other").mkdir()
    sets = ["detector.frames=30", "detector.modules=3", "link.pmtu=512", "unit.workers=2", "ring.slots=16",
            f"sinks[0].nexus.path={folder}/other/file.nxs", "sinks.verify.max_reports=1"]
    program, summary = acquire(folder, arguments=[word for setting in sets for word in ("--set", setting)],
                               sinks=[{"nexus": {"dataset": "raw"}}, {"verify": {"max_reports": 3}}])
    intact(program, summary, 30, 3)
    # 8192 bytes of pixels and a record of 64 are 17 packets of 512.
    equal(summary["link"]["packets"], 30 * 3 * 17, "packets")
    check((folder / "other/file.nxs").exists(), "the file is elsewhere")


@case("--set link.kind=shm is all it takes to change the link, in the example too")
def _(folder):
    program, summary = acquire(folder, arguments=["--set", "link.kind=shm"])
    intact(program, summary, 200)
    equal(summary["link"]["kind"], "shm", "link")
    run("run", ROOT / "examples/jungfrau-laptop.yaml", "--set", "link.kind=shm", "--set", "detector.frames=5", "--set",
        "detector.dark_frames=2", "--set", "sinks.nexus.path=run.nxs", folder=folder).ends(0)


@case("the last --set of a key counts; --quiet is quiet; --summary=FILE works like --summary FILE")
def _(folder):
    path = experiment(folder)
    program = run("run", path, "--set", "detector.frames=7", "--set", "detector.frames=9", "--quiet",
                  f"--summary={folder}/summary.json", folder=folder).ends(0)
    equal((program.out(), program.err()), ("", ""), "what --quiet says")
    check('"settled": 9' in (folder / "summary.json").read_text(), "not nine frames")


@case("--emulate starts the front end, whatever the file says")
def _(folder):
    program, summary = acquire(folder, arguments=["--emulate"], emulate="none")
    intact(program, summary, 200)


@case("list names every add-on and section, and shows the options of one")
def _(folder):
    everything = run("list", folder=folder).ends(0)
    for kind, names in ADD_ONS.items():
        for word in (kind, kind + "s"):
            of_kind = run("list", word, folder=folder).ends(0)
            says(of_kind, *names)
        for name, options in names.items():
            check(re.search(rf"^ *{kind} +{name} ", everything.out(), re.M), f"{kind} {name} is not listed")
            says(run("list", name, folder=folder).ends(0), name, *options)
    says(run("list", "udp", folder=folder), "4791", "default 127.0.0.1", "takes 1..65535")
    for section in ("detector", "link", "ring", "unit", "threads", "control", "frontend"):
        check(re.search(rf"^ *section +{section} ", everything.out(), re.M), f"section {section} is not listed")
    says(run("list", "ring", folder=folder), "slots", "late_frames", "late_timeout_ms", "poison")
    says(run("list", "frontend", folder=folder), "drop", "duplicate", "corrupt", "fault_log")


@case("every option that list shows is taken by an experiment file, with its default")
def _(folder):
    for name, section in (("udp", "link"), ("shm", "link"), ("pattern", "detector"), ("cpu", "unit"),
                          ("ring", "ring"), ("threads", "threads"), ("control", "control"), ("frontend", "frontend")):
        text = run("list", name, folder=folder).ends(0).out()
        options = re.findall(r"^ {10,}(\w+) +\S.*\n +takes .*; default (\S+)$", text, re.M)
        check(options or name == "shm", f"no options of {name}")
        settings = {key: value for key, value in options}
        if section in ("link", "detector", "unit"):
            settings["kind"] = name
        path = experiment(folder, sinks=["verify"], **({"detector": None} if section == "detector" else {}))
        sets = [word for key, value in settings.items() for word in ("--set", f"{section}.{key}={value}")]
        if section == "detector":
            sets += ["--set", "detector.frames=5"]
        run("doctor", path, *sets, folder=folder).ends(0)


@case("doctor says what it found, with and without an experiment, and changes nothing")
def _(folder):
    says(run("doctor", folder=folder).ends(0), "cores", "net.core.rmem_max", "lo (127.0.0.1)")
    path = experiment(folder)
    says(run("doctor", path, folder=folder).ends(0), "a ring of 32 slots", "MTU")
    says(run("doctor", path, "--set", "link.listen=192.0.2.1", folder=folder).ends(0), "mend", "192.0.2.1")
    says(run("doctor", ROOT / "examples/jungfrau-laptop.yaml", folder=folder).ends(0), "ring")
    equal(sorted(p.name for p in folder.iterdir() if not p.name.startswith("std")), ["experiment.yaml"], "files there")


@case("the program runs from anywhere, under any name")
def _(folder):
    (folder / "another-name").symlink_to(SLUICE)
    path = experiment(folder)
    run("run", path, folder=folder, program=str(folder / "another-name")).ends(0)


main()
