#!/usr/bin/python3
"""names_test.py - where a run's files go and who may read them: words in paths, group and mode, and whether there is room."""

import datetime
import json

import h5py

from harness import case, check, equal, experiment, main, run, run_fails

DETECTOR = {"frames": 20, "rows": 16, "columns": 16}


def nexus(path, **options):
    return [{"nexus": {"path": str(path), "dataset": "raw", "overwrite": False, **options}}]


def files_in(folder, pattern="**/*.nxs"):
    return sorted(str(path.relative_to(folder)) for path in folder.glob(pattern))


@case("words in paths: each run of a session has its own files, and the summary names them")
def _(folder):
    path = experiment(folder, detector=DETECTOR, sinks=nexus(folder / "data/{sample}/{run}_{date}T{time}.nxs", sample="a/b"))
    before = datetime.datetime.now(datetime.timezone.utc)
    equal(run("session", path, "--root", "runs", "--runs", 2, folder=folder).process.returncode, 0, "exit status")
    found = files_in(folder, "data/**/*.nxs")
    equal([name.partition("_2")[0] for name in found], ["data/a_b/000001", "data/a_b/000002"], "files")
    for number, name in enumerate(found, 1):
        moment = datetime.datetime.strptime(name[-19:-4], "%Y%m%dT%H%M%S").replace(tzinfo=datetime.timezone.utc)
        check(-2 < (moment - before).total_seconds() < 120, f"{name}: another time than {before}")
        result = json.loads((folder / f"runs/{number:06}/result.json").read_text())
        equal(result["sinks"][0]["where"], str(folder / name), "where, in the result")
        with h5py.File(folder / name) as file:
            equal(len(file["entry/data/data"]), 20, "images")
    stored = (folder / "runs/000001/experiment.yaml").read_text()
    check("{sample}/{run}_{date}T{time}.nxs" in stored, "the stored experiment has the path of one run")


@case("words in paths: values never lead to another folder")
def _(folder):
    path = experiment(folder, detector=DETECTOR, sinks=nexus("{sample}.nxs", sample=".."))
    equal(run("run", path, folder=folder).process.returncode, 0, "exit status")
    equal(files_in(folder), ["_..nxs"], "files")


@case("words in paths: unknown ones, {run} without run folders and two sinks that mean one file are refused, and nothing is begun")
def _(folder):
    wrong = experiment(folder, "wrong.yaml", detector=DETECTOR, sinks=nexus("{rum}.nxs"))
    for command in ("check", "run"):
        run_fails(command, wrong, folder=folder, says=["wrong.yaml:", "sinks[0].nexus.path: '{rum}' is no word; there are: {run}, {date}, {time}, {transfer}, {sample}"])
    run_fails("run", experiment(folder, detector=DETECTOR, sinks=nexus("{run}.nxs")), folder=folder, says=["nexus.path: '{run}.nxs': {run}: ", "--root DIR"])
    both = [*nexus("{sample}.nxs"), *nexus("unknown.nxs")]
    run_fails("run", experiment(folder, detector=DETECTOR, sinks=both), folder=folder, says=["is to be written twice"])
    equal(files_in(folder, "*.nxs*"), [], "files")


main()
