#!/usr/bin/python3
"""metadata_test.py - what users say of a run: the section of the experiment file, changes over the status socket while the run goes on,
runs of one session one after another, a site that locks a key, a receiver that is killed, and what is refused."""
# normal build only

import json
import signal

import h5py

from harness import Program, case, check, equal, experiment, main, read_summary, run, run_fails, wait_for

DETECTOR = {"kind": "pattern", "modules": 2, "rows": 32, "columns": 32, "frames": 0, "frame_rate_Hz": 200}
METADATA = {"title": "Salt and sugar", "proposal": "MX-42", "users": ["Ada Lovelace <ada@example.org> (Engines, London)", "Bea"],
            "instrument": "ID30A-3", "source": "ESRF", "source_type": "synchrotron", "sample": "salt", "sample_temperature_K": "100 K",
            "exposure_s": 0.004, "flux_per_s": 2e12, "keys": {"ring_current": "199.8 mA", "comment": "after lunch"}}


def file_of(folder, metadata=None, nexus=None, **sections):
    sink = {"path": "run.nxs", "dataset": "raw", "flush_s": 0.05, **(nexus or {})}
    return experiment(folder, **{"detector": DETECTOR, "link": {"kind": "shm"}, "control": {"port": 0}, "sinks": [{"nexus": sink}],
                                 "metadata": METADATA if metadata is None else metadata, **sections})


def ctl(folder, *arguments):
    return run("ctl", "meta", *arguments, folder=folder).out()


def refused(folder, word, *says):
    run_fails("ctl", "meta", "metadata", word, folder=folder, says=says)


def running(folder, *arguments):
    program = Program("run", *arguments, "--name", "meta", "--quiet", folder=folder)
    ctl(folder, "wait", "running", "--timeout_s", "60")
    return program


def texts(file, *paths):
    return [file[f"entry/{path}"][()].decode() for path in paths]


def number(file, path):
    item = file[f"entry/{path}"]
    return item[()], item.attrs.get("units")


def as_told(file):
    """All of METADATA is where NeXus puts it."""
    equal(texts(file, "title", "experiment_identifier", "user_1/name", "user_1/email", "user_1/affiliation", "user_2/name"),
          ["Salt and sugar", "MX-42", "Ada Lovelace", "ada@example.org", "Engines, London", "Bea"], "entry")
    equal(texts(file, "instrument/name", "source/name", "source/type", "sample/name"),
          ["ID30A-3", "ESRF", "Synchrotron X-ray Source", "salt"], "instrument, source, sample")
    equal([number(file, path) for path in ("sample/temperature", "instrument/detector/count_time", "instrument/beam/total_flux",
                                           "metadata/ring_current")],
          [(100, "K"), (0.004, "s"), (2e12, "Hz"), (199.8, "mA")], "numbers with units")
    equal([file[f"entry/{name}"].attrs["NX_class"] for name in ("user_1", "metadata", "sluice/metadata")],
          ["NXuser", "NXcollection", "NXcollection"], "classes")
    equal(texts(file, "metadata/comment", "sluice/metadata/users"),
          ["after lunch", "Ada Lovelace <ada@example.org> (Engines, London), Bea"], "texts")


@case("the section is in file, summary and status; changes during the run are checked, and the last ones are in the file")
def _(folder):
    program = running(folder, file_of(folder), "--summary", folder / "summary.json")
    with h5py.File(folder / "run.nxs") as file:  # the first master
        as_told(file)
    status = json.loads(ctl(folder, "--json"))["status"]["metadata"]
    equal((status["sample"], status["sample_temperature_K"], status["ring_current"]), ("salt", "100", "199.8 mA"), "status")
    refused(folder, "exposure_s=0.1", "exposure_s", "detector.frame_rate_Hz: 200")
    refused(folder, "exposure_s=1 ms", "takes a number in s, not 'ms'")
    refused(folder, "smaple=x", "did you mean 'sample'?")
    refused(folder, "wavelength=1", "detector.photon_energy_keV")
    refused(folder, "sample=" + 128 * "x", "at most 127 bytes")
    refused(folder, "note=" + 1024 * "x", "at most 1023 bytes")
    refused(folder, "a b=x", "A-Z")
    ctl(folder, "metadata", "sample=sugar", "sample_temperature_K=295 K", "users=Bea", "ring_current=200.1 mA", "comment=")
    ctl(folder, "stop", "--wait")
    program.ends(0)
    summary = read_summary(folder)
    equal({key: summary["metadata"].get(key) for key in ("sample", "sample_temperature_K", "users", "ring_current", "comment", "title")},
          {"sample": "sugar", "sample_temperature_K": "295", "users": "Bea", "ring_current": "200.1 mA", "comment": None,
           "title": "Salt and sugar"}, "summary")
    with h5py.File(folder / "run.nxs") as file:
        equal(texts(file, "sample/name", "user/name", "title", "instrument/name"), ["sugar", "Bea", "Salt and sugar", "ID30A-3"], "last values")
        equal([number(file, "sample/temperature"), number(file, "metadata/ring_current")], [(295, "K"), (200.1, "mA")], "last numbers")
        check("user_1" not in file["entry"] and "comment" not in file["entry/metadata"], "what was removed is still there")
        equal({key: item[()].decode() for key, item in file["entry/sluice/metadata"].items()}, summary["metadata"], "texts as in the summary")
        changes = file["entry/sluice/metadata_changes"]
        rows = list(zip(*([text.decode() for text in changes[name][()]] for name in ("key", "from", "to"))))
        equal(rows, [("sample", "salt", "sugar"), ("sample_temperature_K", "100", "295"),
                     ("users", "Ada Lovelace <ada@example.org> (Engines, London), Bea", "Bea"), ("ring_current", "199.8 mA", "200.1 mA"),
                     ("comment", "after lunch", "")], "changes")
        times = [text.decode() for text in changes["time"][()]]
        check(times == sorted(times) and texts(file, "start_time")[0] <= times[0] and times[-1] <= texts(file, "end_time")[0], f"times {times}")


@case("a change during a run of a session is that run's, unless it is told to be kept; configure has the last word")
def _(folder):
    session = Program("session", file_of(folder, {"sample": "salt", "title": "all"}), "--root", "data", "--name", "meta", folder=folder)
    ctl(folder, "wait", "configured", "--timeout_s", "60")
    results = []

    def one_run(*changes):
        ctl(folder, "start")
        ctl(folder, "wait", "running", "--timeout_s", "60")
        for change in changes:
            ctl(folder, "metadata", *change)
        ctl(folder, "stop", "--wait")
        results.append(json.loads((folder / f"data/{len(results) + 1:06}/result.json").read_text())["metadata"])

    ctl(folder, "metadata", "hutch=2")
    one_run(["sample=sugar", "comment=it melts"], ["current=199 mA", "--keep"])
    equal(ctl(folder, "metadata"), "title=all\nsample=salt\nhutch=2\ncurrent=199 mA\n", "what the next run begins with")
    one_run()
    ctl(folder, "configure", "metadata.title=other")
    one_run()
    equal(results, [{"sample": "sugar", "title": "all", "hutch": "2", "comment": "it melts", "current": "199 mA"},
                    {"sample": "salt", "title": "all", "hutch": "2", "current": "199 mA"},
                    {"sample": "salt", "title": "other", "hutch": "2", "current": "199 mA"}], "metadata of the three runs")
    ctl(folder, "close", "--wait")
    session.ends(0)


@case("a receiver that is killed leaves the metadata of its beginning, and recover keeps them")
def _(folder):
    program = running(folder, file_of(folder, nexus={"path": str(folder / "run.nxs")}))
    wait_for("data", lambda: (folder / "run_data_000001.h5").exists())
    program.send(signal.SIGKILL)
    program.wait()
    Program.end_all()
    with h5py.File(folder / "run.nxs") as file:
        as_told(file)
    run("recover", folder / "run.nxs", folder=folder)
    with h5py.File(folder / "run.nxs") as file:
        equal(texts(file, "sluice/state"), ["recovered"], "state")
        as_told(file)


@case("a site sets and locks keys, and check shows from where each is")
def _(folder):
    site = folder / "site.yaml"
    site.write_text("defaults: {metadata: {source: ESRF, source_type: synchrotron}}\nlocked: {metadata: {instrument: ID30A-3}}\n")
    path = file_of(folder, {"sample": "salt", "source": "SLS", "keys": {"hutch": "2"}})
    shown = run("check", path, "--site", site, folder=folder).out()
    for value, origin in (("instrument: ID30A-3", f"{site}:2 (locked)"), ("source: SLS", "experiment.yaml:"), ("sample: salt", "experiment.yaml:"),
                          ("source_type: synchrotron", f"{site}:1"), ("title: \"\"", "default"), ("hutch: ", "experiment.yaml:")):
        check(any(value in line and origin in line for line in shown.splitlines()), f"no '{value}' of {origin} in {shown}")
    run_fails("check", path, "--site", site, "--set", "metadata.instrument=mine", folder=folder, says=["metadata.instrument", "locked"])
    program = running(folder, path, "--site", site)
    refused(folder, "instrument=mine", "instrument", "locked by the site file")
    refused(folder, "instrument=", "locked by the site file")
    ctl(folder, "stop", "--wait")
    program.ends(0)


@case("mistakes are told before anything is opened")
def _(folder):
    for metadata, nexus, says in (({"sampel": "x"}, {}, ["metadata.sampel", "did you mean 'sample'?"]),
                                  ({"exposure_s": "0.1"}, {}, ["metadata.exposure_s", "detector.frame_rate_Hz: 200"]),
                                  ({"distance_m": 1}, {}, ["geometry.distance_m"]),
                                  ({"sample": "salt"}, {"sample": "sugar"}, ["metadata.sample", "'salt'", "nexus", "'sugar'"]),
                                  ({"users": ["<a@b>"]}, {}, ["metadata.users[0]"]),
                                  ({"keys": {f"k{i}": 1 for i in range(65)}}, {}, ["more than 64"])):
        run_fails("check", file_of(folder, metadata, nexus), folder=folder, says=says)
    with_option = file_of(folder, {}, {"sample": "salt"}, detector={**DETECTOR, "frames": 10})
    equal(run("run", with_option, "--quiet", folder=folder).process.returncode, 0, "the option of the sink alone")
    with h5py.File(folder / "run.nxs") as file:
        equal(texts(file, "sample/name", "instrument/name"), ["salt", "unknown"], "names")
        check("metadata" not in file["entry"] and "title" not in file["entry"], "there are fields that no user has set")


main()
