#!/usr/bin/python3
"""rings_test.py - the stage `rings` through the program: rings in the file against the emulator's truth, by tools/trigger_curves.py
in small; the same file with all vectors; other detectors are refused."""
# normal build only

import json
import os
import subprocess
import sys
import xml.etree.ElementTree

import h5py

from harness import ROOT, SLUICE, case, check, equal, main, run, run_fails


@case("rings are found where they are, few where there are none; page and plots are filled in")
def _(folder):
    done = subprocess.run([sys.executable, ROOT / "tools/trigger_curves.py", "rings", "--quick", "--output", folder, "--json",
                           folder / "numbers.json"], cwd=folder, env={**os.environ, "SLUICE": SLUICE}, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=200, check=False)
    equal(done.returncode, 0, f"exit status, with {done.stderr}")
    numbers = json.loads((folder / "numbers.json").read_text())["rings"]
    rows = {(r["noise"], r["rings"]): r for r in numbers["numbers"]}
    for rings, efficiency, fakes, radius in ((1, 0.98, 0.04, 2.6), (2, 0.91, 0.08, 3.2), (3, 0.74, 0.17, 4.5)):
        row = rows[2, rings]
        check(row["efficiency"] > efficiency and row["fakes"] < fakes and row["radius"] < radius, f"{rings} rings: {row}")
    check(rows[6, 1]["efficiency"] > 0.96, f"with more noise: {rows[6, 1]}")
    check(rows[6, 1]["fakes"] > rows[2, 1]["fakes"], "noise makes no fakes")
    kept = {(r["particle"], r["from"]): r["kept"] for r in numbers["particle"]}
    check(kept["pion", 25] > 0.9 and kept["muon", 60] < 0.05, f"a trigger on pions keeps {kept}")
    page = (folder / "rings.md").read_text()
    equal(page.count("written by tools/trigger_curves.py -->\n\n"), 4, "places that were filled in")
    for plot in folder.glob("rings-*.svg"):
        check(f"({plot.name})" in page, f"{plot.name} is not on the page")
        lines = xml.etree.ElementTree.parse(plot).getroot().findall("{http://www.w3.org/2000/svg}polyline")
        equal(len(lines), 6, f"curves of {plot.name}")


EXPERIMENT = """
detector: {kind: rich, modules: 2, events: 100, frames: 30, dark_frames: 2}
link: {kind: shm}
unit: {kind: cpu, workers: %d}
stages: [rings: {vectors: %s, %s}]
sinks: [nexus: {path: run.nxs, dataset: raw}]
emulate: local
"""


def results(folder, workers, vectors, options="min_rings: 1"):
    (folder / "x.yaml").write_text(EXPERIMENT % (workers, vectors, options))
    run("run", folder / "x.yaml", "--quiet", folder=folder)
    with h5py.File(folder / "run.nxs") as file:
        group = file["entry/results"]
        return [group[name][()].tobytes() for name in ("rings", "rings_rows", "rings_found")], group["rings_found"][()]


@case("vectors and workers change nothing in the file")
def _(folder):
    first, found = results(folder, 1, "auto")
    equal(found[:, 1:6].sum(), 30 * 200, "events")
    for workers, vectors in ((2, "avx2"), (1, "baseline"), (2, "auto")):
        equal(results(folder, workers, vectors)[0] == first, True, f"results with {vectors} and {workers} workers")


@case("the file says which events are to be kept")
def _(folder):
    results(folder, 1, "auto", "min_rings: 2")
    with h5py.File(folder / "run.nxs") as file:
        keep, score = file["entry/results/event_keep"][()], file["entry/results/event_score"][()]
        found = file["entry/results/rings_found"][()]
        check(file["entry/results/rings"].attrs["long_name"].startswith("event of the frame"), "columns have names")
    equal(keep.shape, (30, 200), "blocks and events")
    equal(keep.sum(), found[:, 3:6].sum(), "events with two rings or more")
    equal((keep == (score >= 2)).all(), True, "the score says why")


@case("more rings than there is room for are counted")
def _(folder):
    _, found = results(folder, 1, "auto", "max_rows: 10")
    with h5py.File(folder / "run.nxs") as file:
        equal(set(file["entry/results/rings_rows"][()]), {10}, "rows")
    check((found[:, 0] > 200).all(), "rings that were found")


@case("a detector that has no events is refused")
def _(folder):
    (folder / "x.yaml").write_text("detector: {kind: jungfrau, frames: 2}\nlink: {kind: shm}\nstages: [rings: {}]\n"
                                   "sinks: [nexus: {path: run.nxs}]\nemulate: local\n")
    run_fails("run", folder / "x.yaml", folder=folder, says=("rings reads events of 48 bytes",))


main()
