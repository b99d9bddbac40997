#!/usr/bin/python3
"""bench_scaling.py - how receiving and processing scale with cores, on this host.

  tools/bench_scaling.py                    runs and rows up to as many cores as there are; about five minutes on 16
  tools/bench_scaling.py --quick            fewer frames and one round
  tools/bench_scaling.py --draw FILE SVG    the picture of results that were written before

Runs are whole: front end, shm, dispatcher, workers, settler (bench/part/scale.yaml), or front end, udp and pollers alone
(bench/part/link.yaml). Rows are of `sluice bench stage` and `sluice bench trigger`: the unit alone, beside memcpy by as many cores. Medians
over the rounds; every round measures everything in turn. A run counts only if its ledger closes. Writes DIR/scaling.md and
DIR/scaling.json (--out DIR, bench-out).
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, curve, document, frame

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORKERS, POLLERS = (1, 2, 4, 8, 12, 14), (1, 2, 4, 8)
STEPS = (1, 2, 4, 8, 12, 14, 16)
ROWS = ("sluice/all", "sluice/correct+veto", "sluice/correct/i16", "memcpy/correct-i16-bytes", "sluice/all/500k", "sluice/correct/i16/500k",
        "memcpy/correct-i16-bytes/500k")
EVENTS = ("sluice/rings",)
RUN_TIMEOUT_S, BENCH_TIMEOUT_S = 120, 300


def run(command, cwd, timeout):
    done = subprocess.run([str(word) for word in command], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout, check=False)
    return done.returncode, done.stdout + done.stderr


def sluice_run(bench, experiment, settings):
    """What the summary of a run says, whose result must be intact."""
    with tempfile.TemporaryDirectory() as folder:
        sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        summary = pathlib.Path(folder) / "summary.json"
        status, said = run([bench.build / "sluice", "run", ROOT / "bench/part" / experiment, "--quiet", "--summary", summary, *sets], folder,
                           RUN_TIMEOUT_S)
        if status:
            sys.exit(f"bench_scaling.py: a run ended with status {status}: {said.strip().splitlines()[-1:]}")
        return json.loads(summary.read_text())


def processing(bench, workers):
    frames = (500 if bench.quick else 1500) * (1 + min(workers, 8))
    said = sluice_run(bench, "scale.yaml", {"unit.workers": workers, "detector.frames": frames, **bench.settings})
    return {"frames_per_s": said["rates"]["frames_per_s"], "busy": said["rates"]["unit_busy"]}


def receiving(bench, pollers):
    frames = (60 if bench.quick else 400) * (1 + min(pollers, 4))
    said = sluice_run(bench, "link.yaml", {"link.kind": "udp", "detector.modules": 8, "detector.frames": frames, "link.pollers": pollers,
                                           **bench.settings})
    return {"GB_per_s": said["rates"]["GB_per_s"]}


def name_of(row, cores):
    return row if cores == 1 else f"{row}/{cores}cores"


def table(bench, kind, rows, cores):
    """Figures of some rows of `sluice bench KIND`, one round, by (row, cores)."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "rows.json"
        figures = {}
        for row in rows:
            for n in cores:
                status, _ = run([bench.build / "sluice", "bench", kind, "--rounds", 1, "--seconds", 0.15 if bench.quick else 0.4, "--only",
                                 name_of(row, n), "--json", file], folder, BENCH_TIMEOUT_S)
                found = [r for r in json.loads(file.read_text())["rows"] if r.get("value")] if not status else []
                if found:
                    figures[row, n] = 1e-6 * found[0]["items_per_s"] if "items_per_s" in found[0] else found[0]["value"]
        return figures


def measure(bench, rounds):
    """Samples by (what, cores)."""
    samples = {}

    def add(what, cores, value):
        samples.setdefault((what, cores), []).append(value)

    cpus = len(os.sched_getaffinity(0))
    for i in range(rounds):
        for workers in (n for n in WORKERS if n <= max(cpus, 2)):
            figures = processing(bench, workers)
            add("run", workers, figures["frames_per_s"])
            add("run busy", workers, figures["busy"])
        for pollers in (n for n in POLLERS if n <= max(cpus // 2, 2)):
            add("udp", pollers, receiving(bench, pollers)["GB_per_s"])
        cores = [n for n in STEPS if n <= cpus]
        for (row, n), value in {**table(bench, "stage", ROWS, cores), **table(bench, "trigger", EVENTS, cores)}.items():
            add(row, n, value)
        print(f"round {i + 1} of {rounds}", file=sys.stderr, flush=True)
    return samples


def first_line(path, start):
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(start):
            return line[len(start):].strip(" \t:")
    return ""


def output_of(*command):
    status, said = run(command, ROOT, 10)
    return said.strip() if status == 0 else ""


def about():
    return {"cpu": first_line("/proc/cpuinfo", "model name"), "cores": len(os.sched_getaffinity(0)), "kernel": os.uname().release,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "revision": output_of("git", "describe", "--always", "--dirty") or "unknown"}


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "samples": values}


# ---- the report ----

UNITS = {"run": "frames/s", "run busy": "share", "udp": "GB/s", "sluice/rings": "M events/s"}
TITLES = {"run": "whole run: correct, veto, integrate, peaks; shm (frames/s, by workers)", "run busy": "its workers busy",
          "udp": "whole run: udp, 8 modules of 1 MiB (GB/s, by pollers)"}


def unit_of(what):
    return UNITS.get(what, "GB/s")


def speed_up(results, what, cores):
    one, many = results[what].get("1"), results[what].get(str(cores))
    if not one or not many:
        return None
    return many["median"] / one["median"]


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(results, what, cores):
    value = results[what].get(str(cores))
    if not value:
        return ""
    if what == "run busy":
        return f"{100 * value['median']:.0f} %"
    factor = speed_up(results, what, cores)
    return number(value["median"]) + (f" ({factor:.1f} x)" if factor and cores > 1 else "")


def report(document_):
    m, results = document_["machine"], document_["results"]
    steps = [n for n in STEPS if any(str(n) in row for row in results.values())]
    lines = [f"{m['cpu']}, {m['cores']} cores, Linux {m['kernel']}, {m['date'][:10]}, revision {m['revision']}, medians of "
             f"{document_['rounds']} rounds.", "", "| | " + " | ".join(str(n) for n in steps) + " |", "|---" * (len(steps) + 1) + "|"]
    for what in results:
        title = TITLES.get(what, f"`{what}` ({unit_of(what)})")
        lines.append(f"| {title} | " + " | ".join(cell(results, what, n) for n in steps) + " |")
    return "\n".join(lines) + "\n"


def picture(document_):
    m, results = document_["machine"], document_["results"]
    curves = {what: [(n, speed_up(results, what, n)) for n in STEPS if speed_up(results, what, n)] for what in results if what != "run busy"}
    curves = {what: points for what, points in curves.items() if len(points) > 2}
    if not curves:
        sys.exit("bench_scaling.py: a picture needs figures of three numbers of cores or more")
    most = max(n for points in curves.values() for n, _ in points)
    marks = [n for n in (1, 2, 4, 8, 16, 32, 64) if n < 2 * most]
    x = Axis(marks, 2, LEFT, WIDTH - RIGHT, marks)
    y = Axis(marks, 2, HEIGHT - BOTTOM, TOP, marks)
    parts = frame("Speed against the number of cores, each beside itself on one", x, y, str, lambda v: f"{v} x", "cores (workers, pollers)",
                  "times as fast as one", f"{m['cpu']}, {m['cores']} cores, {m['date'][:10]}, medians of {document_['rounds']} rounds")
    parts += curve(len(curves), "as many times as cores", [(x.at(n), y.at(n)) for n in (1, marks[-1])], True, "#aaa", False)
    for i, (what, points) in enumerate(curves.items()):
        parts += curve(i, {"run": "whole run, shm", "udp": "whole run, udp"}.get(what, what), [(x.at(n), y.at(v)) for n, v in points],
                       what.startswith("memcpy"))
    return document(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("--quick", action="store_true", help="fewer frames, one round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench-out", help="where the results go")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the experiments")
    parser.add_argument("--draw", nargs=2, type=pathlib.Path, metavar=("FILE", "SVG"), help="draw what was measured before")
    arguments = parser.parse_args()
    if arguments.draw:
        arguments.draw[1].write_text(picture(json.loads(arguments.draw[0].read_text())))
        return
    arguments.build = arguments.build.resolve()
    arguments.settings = dict(word.split("=", 1) for word in arguments.set)
    rounds = 1 if arguments.quick else arguments.rounds
    samples = measure(arguments, rounds)
    results = {}
    for (what, cores), values in samples.items():
        results.setdefault(what, {})[str(cores)] = spread(values)
    whole = {"machine": about(), "rounds": rounds, "results": results}
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "scaling.json").write_text(json.dumps(whole, indent=1) + "\n")
    (arguments.out / "scaling.md").write_text(report(whole))
    print(report(whole))


if __name__ == "__main__":
    main()
