#!/usr/bin/python3
"""bench_scaling.py - how receiving and processing scale with cores, on this host.

  tools/bench_scaling.py                              everything, in three rounds; about fifteen minutes on 16 cores
  tools/bench_scaling.py --part udp --part run        some of it: run, senders, udp, rows, events, flat
  tools/bench_scaling.py --most-seconds 500           begin nothing that would end later; what is missing is named
  tools/bench_scaling.py --merge A.json B.json        put together what several calls have measured
  tools/bench_scaling.py --quick                      fewer frames and one round
  tools/bench_scaling.py --draw FILE SVG              the picture of results that were written before

Runs are whole: front end, shm, dispatcher, workers, settler (bench/part/scale.yaml), or front end, link and ring alone
(bench/part/link.yaml). Beside `udp` stand the user and system time of its threads (system: the kernel's share), and a plain loop of recv() in
as many processes. Rows are of `sluice bench stage` and `sluice bench trigger`: the unit alone, beside memcpy by as many cores. Every round
measures everything in turn; figures are medians with the range of the rounds. A run counts only if its ledger closes. Writes
DIR/scaling.md and DIR/scaling.json (--out DIR, bench-out).

It needs a build folder and Python, and neither network nor git: on a host without, name the revision with --revision.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

from scaling_runs import BENCH_TIMEOUT_S, ROOT, Clock, Failed, Watched, about, number, sluice_run
from svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, curve, document, frame

WORKERS, POLLERS, SENDERS = (1, 2, 4, 8, 12, 14), (1, 2, 4, 8), (1, 2, 4, 8)
STEPS = (1, 2, 4, 8, 12, 14, 16)
ROWS = ("sluice/all", "sluice/peaks", "sluice/correct+veto", "sluice/correct/i16", "memcpy/correct-i16-bytes", "sluice/integrate/1000bins",
        "sluice/all/500k", "sluice/peaks/500k", "sluice/correct/i16/500k", "memcpy/correct-i16-bytes/500k")
EVENTS = ("sluice/rings", "sluice/tracks/hexagons/event-140")
MODULES = (1, 2, 4, 8, 16, 32)
MODULE_BYTES, PACKET_BYTES = 2 * 512 * 1024, 4096
PARTS = ("run", "senders", "udp", "rows", "events", "flat")


# ---- what is measured: functions of (bench, n), which give {name: figure}, or {(name, n): figure} ----

def processing(bench, workers):
    """Two senders: one copies 14 GB/s on such hosts, which 8 workers keep up with."""
    frames = (500 if bench.quick else 1500) * (1 + workers)
    said, _, _ = sluice_run(bench.build, "scale.yaml", {"unit.workers": workers, "threads.senders": 2, "detector.frames": frames, **bench.settings})
    return {"run": said["rates"]["frames_per_s"], "run busy": said["rates"]["unit_busy"]}


def link_run(bench, settings, frames):
    said, watched, _ = sluice_run(bench.build, "link.yaml", {"detector.modules": 8, "detector.frames": frames, **settings, **bench.settings})
    return said["rates"], watched


def sending(bench, senders):
    rates, _ = link_run(bench, {"link.kind": "shm", "threads.senders": senders}, (200 if bench.quick else 1500) * (1 + min(senders, 4)))
    return {"senders": rates["GB_per_s"]}


def shares(name, watched, threads, seconds):
    share = watched.share(threads, seconds)
    return {f"{name} user": share[0], f"{name} system": share[1]} if share else {}


def receiving(bench, pollers):
    frames = (60 if bench.quick else 400) * (1 + min(pollers, 4))
    rates, watched = link_run(bench, {"link.kind": "udp", "link.pollers": pollers, "threads.senders": pollers}, frames)
    return {"udp": rates["GB_per_s"], **shares("udp pollers", watched, "link-", rates["seconds"]),
            **shares("udp senders", watched, "front-end", rates["seconds"])}


def plain(bench, receivers):
    """As many programs that call recv() on packets of the same length, each with a sender of its own."""
    cores, seconds = sorted(os.sched_getaffinity(0)), 0.3 if bench.quick else 2
    environments = []
    for i in range(receivers):
        environment = {**os.environ, "BENCH_RING": str((512 << 20) // receivers)}
        if len(cores) >= 2 * receivers:
            environment.update(BENCH_RECEIVER_CORE=str(cores[2 * i]), BENCH_SENDER_CORE=str(cores[2 * i + 1]))
        environments.append(environment)
    program = bench.build / "bench/peer_udp"
    if not program.exists():
        raise Failed(f"{program} is not there: build it, or carry it here")
    watched = Watched([[program, "recv", PACKET_BYTES, seconds]] * receivers, "/", environments)
    ended = watched.wait(BENCH_TIMEOUT_S)
    if any(status for status, _, _ in ended):
        raise Failed(f"peer_udp: {' '.join(err.strip() for _, _, err in ended)}")
    receiving_pids = {process.pid for process in watched.processes}
    times = [(user, system) for (pid, _), (_, user, system) in watched.threads.items() if pid in receiving_pids]
    rate = sum(json.loads(out)["GB_per_s"] for _, out, _ in ended)
    user, system = (sum(each) for each in zip(*times)) if times else (0, 0)
    return {"recv": rate, **({"recv kernel's part": system / (user + system)} if user + system else {})}


# Rows of a stage on one core, on a few and on many: a call each, since images are made anew in every call.
SUFFIXES = {"": (1,), "/[0-9]cores": (2, 4, 8), "/[0-9][0-9]cores": (12, 14, 16)}


def name_of(row, cores):
    return row if cores == 1 else f"{row}/{cores}cores"


def rows_of(kind, row, suffix):
    def measure(bench, _):
        """One round of rows of `sluice bench KIND`; those that need more cores than there are leave no figure."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "rows.json"
            watched = Watched([[bench.build / "sluice", "bench", kind, "--rounds", 1, "--seconds", 0.15 if bench.quick else 0.4, "--only",
                                row + suffix, "--json", file]], folder)
            (status, _, said), = watched.wait(BENCH_TIMEOUT_S)
            if status:
                raise Failed(f"{row}{suffix}: {said.strip()[-300:]}")
            found = {r["name"]: 1e-6 * r["items_per_s"] if "items_per_s" in r else r["value"] for r in json.loads(file.read_text())["rows"]
                     if r.get("value")}
            return {(row, n): found[name_of(row, n)] for n in SUFFIXES[suffix] if name_of(row, n) in found}
    return measure


def assembling(bench, modules):
    events = 2000000 if bench.quick else 20000000
    watched = Watched([[bench.build / "bench/bench_assemble", "sequence", modules, 128, events]], "/")
    (status, out, said), = watched.wait(BENCH_TIMEOUT_S)
    if status:
        raise Failed(f"bench_assemble: {said.strip()}")
    return {"flat": 1e-6 * json.loads(out)["events_per_s"]}


def has_row(bench, kind, name):
    if not hasattr(bench, "listed"):
        bench.listed = {}
    if kind not in bench.listed:
        (status, out, said), = Watched([[bench.build / "sluice", "bench", kind, "--list"]], "/").wait(BENCH_TIMEOUT_S)
        if status:
            raise Failed(f"sluice bench {kind} --list: {said.strip()}")
        bench.listed[kind] = set(out.split())
    return name in bench.listed[kind]


def plan(bench, cpus):
    """[(n, function)]: what a round measures, in this order."""
    steps = {"run": [(n, processing) for n in WORKERS if n <= max(cpus, 2)],
             "senders": [(n, sending) for n in SENDERS if n <= max(cpus // 2, 2)],
             "udp": [(n, what) for n in POLLERS if n <= max(cpus // 2, 2) for what in (receiving, plain)],
             "flat": [(n, assembling) for n in MODULES]}
    for part, kind, rows in (("rows", "stage", ROWS), ("events", "trigger", EVENTS)):
        steps[part] = [(0, rows_of(kind, row, suffix)) for row in rows for suffix, numbers in SUFFIXES.items()
                       if part in bench.part and any(n <= cpus and has_row(bench, kind, name_of(row, n)) for n in numbers)]
    return [step for part in PARTS if part in bench.part for step in steps[part]]


def measure(bench, rounds):
    """Samples by (what, n), how many rounds are whole, and why the last one ended early."""
    samples, clock = {}, Clock(bench.most_seconds)
    steps = plan(bench, len(os.sched_getaffinity(0)))
    for i in range(rounds):
        for at, (n, what) in enumerate(steps):
            if not clock.allows():
                return samples, f"{i} to {i + 1}", f"{len(steps) - at} of {len(steps)} measurements of round {i + 1} and all rounds after it are missing: out of time"
            for name, figure in clock.timed(lambda what=what, n=n: what(bench, n)).items():
                samples.setdefault(name if isinstance(name, tuple) else (name, n), []).append(figure)
        print(f"round {i + 1} of {rounds}", file=sys.stderr, flush=True)
    return samples, rounds, None


# ---- the report ----

def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "samples": values}


UNITS = {"run": "frames/s", "senders": "GB/s", "udp": "GB/s", "recv": "GB/s", "flat": "M events/s", "sluice/rings": "M events/s",
         "sluice/tracks/hexagons/event-140": "M events/s"}
TITLES = {"run": "whole run: correct, veto, integrate, peaks; shm (frames/s, by workers)", "run busy": "its workers busy",
          "senders": "whole run: shm, 8 modules of 1 MiB, one thread receives (GB/s, by senders)",
          "udp": "whole run: udp, 8 modules of 1 MiB (GB/s, by pollers and as many senders)", "udp pollers user": "its pollers: user, of a core each",
          "udp pollers system": "its pollers: kernel, of a core each", "udp senders user": "its senders: user, of a core each",
          "udp senders system": "its senders: kernel, of a core each",
          "recv": "beside it: plain recv of packets of 4 KiB, as many processes and senders (GB/s)",
          "recv kernel's part": "the kernel's part of the receivers' time", "flat": "events through ring and assembler, one core (M events/s, by modules)"}
PARTS_OF_A_CORE = ("run busy", "udp pollers user", "udp pollers system", "udp senders user", "udp senders system", "recv kernel's part")


def title_of(what):
    return TITLES.get(what, f"`{what}` ({UNITS.get(what, 'GB/s')})")


def speed_up(results, what, cores):
    one, many = results[what].get("1"), results[what].get(str(cores))
    if not one or not many:
        return None
    return many["median"] / one["median"]


def cell(results, what, cores):
    value = results[what].get(str(cores))
    if not value:
        return ""
    if what in PARTS_OF_A_CORE:
        return f"{100 * value['median']:.0f} %"
    factor = speed_up(results, what, cores)
    notes = [f"{factor:.1f} x"] if factor and cores > 1 else []
    notes += [f"{number(value['min'])} .. {number(value['max'])}"] if len(value["samples"]) > 1 else []
    return number(value["median"]) + (f" ({'; '.join(notes)})" if notes else "")


def table(results, whats, steps):
    steps = [n for n in steps if any(str(n) in results[what] for what in whats)]
    return ["| | " + " | ".join(str(n) for n in steps) + " |", "|---" * (len(steps) + 1) + "|",
            *(f"| {title_of(what)} | " + " | ".join(cell(results, what, n) for n in steps) + " |" for what in whats)]


def report(document_):
    m, results = document_["machine"], document_["results"]
    lines = [f"{m['cpu']}, {m['cores']} cores, Linux {m['kernel']}, {m['date'][:10]}, revision {m['revision']}, medians of "
             f"{document_['rounds']} rounds; in brackets times as fast as one, and the range.", ""]
    lines += [f"Not whole: {document_['missing']}.", ""] if document_.get("missing") else []
    cores = [what for what in results if what != "flat"]
    lines += table(results, cores, STEPS) if cores else []
    if "flat" in results:
        lines += ["", *table(results, ["flat"], MODULES)]
    return "\n".join(lines) + "\n"


def picture(document_):
    m, results = document_["machine"], document_["results"]
    curves = {what: [(n, speed_up(results, what, n)) for n in STEPS if speed_up(results, what, n)] for what in results
              if what not in PARTS_OF_A_CORE and what != "flat"}
    curves = {what: points for what, points in curves.items() if len(points) > 2}
    if not curves:
        sys.exit("bench_scaling.py: a picture needs figures of three numbers of cores or more")
    most = max(n for points in curves.values() for n, _ in points)
    marks = [n for n in (1, 2, 4, 8, 16, 32, 64) if n < 2 * most]
    x = Axis(marks, 2, LEFT, WIDTH - RIGHT, marks)
    y = Axis(marks, 2, HEIGHT - BOTTOM, TOP, marks)
    parts = frame("Speed against the number of cores, each beside itself on one", x, y, str, lambda v: f"{v} x", "cores (workers, pollers, senders)",
                  "times as fast as one", f"{m['cpu']}, {m['cores']} cores, {m['date'][:10]}, medians of {document_['rounds']} rounds")
    parts += curve(len(curves), "as many times as cores", [(x.at(n), y.at(n)) for n in (1, marks[-1])], True, "#aaa", False)
    short = {"run": "whole run, shm", "udp": "whole run, udp", "senders": "senders, shm", "recv": "plain recv"}
    for i, (what, points) in enumerate(curves.items()):
        parts += curve(i, short.get(what, what), [(x.at(n), y.at(v)) for n, v in points], what.startswith(("memcpy", "recv")))
    return document(parts)


# ---- several calls ----

def whole_of(machine, samples, rounds, missing):
    results = {}
    for (what, n), values in samples.items():
        results.setdefault(what, {})[str(n)] = spread(values)
    return {"machine": machine, "rounds": rounds, **({"missing": missing} if missing else {}), "results": results}


def merge(paths):
    """What several calls on the same kind of host have measured of the same revision."""
    documents, samples, order = [json.loads(path.read_text()) for path in paths], {}, []
    first = documents[0]["machine"]
    for path, data in zip(paths, documents):
        for key in ("cpu", "cores", "revision"):
            if data["machine"][key] != first[key]:
                sys.exit(f"bench_scaling.py: {path}: {key} is {data['machine'][key]!r}, that of {paths[0]} is {first[key]!r}: these are no figures of one table")
        for what, by_n in data["results"].items():
            order += [what] if what not in order else []
            for n, value in by_n.items():
                samples.setdefault((what, n), []).extend(value["samples"])
    counts = [len(values) for values in samples.values()]
    rounds = str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    # A call that was cut short says nothing of what another one has measured.
    whole = whole_of({**first, "date": max(data["machine"]["date"] for data in documents)}, samples, rounds, None)
    whole["results"] = {what: dict(sorted(whole["results"][what].items(), key=lambda item: int(item[0]))) for what in order}
    return whole


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("--quick", action="store_true", help="fewer frames, one round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", action="append", choices=PARTS, help="measure this alone; may be given several times")
    parser.add_argument("--most-seconds", type=float, default=float("inf"), help="begin nothing that would take longer than this in all")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--revision", help="of the code that was built, where there is no git to ask")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench-out", help="where the results go")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the experiments")
    parser.add_argument("--merge", nargs="+", type=pathlib.Path, metavar="FILE", help="put together results; measure nothing")
    parser.add_argument("--draw", nargs=2, type=pathlib.Path, metavar=("FILE", "SVG"), help="draw what was measured before")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    arguments.part = arguments.part or list(PARTS)
    arguments.settings = dict(word.split("=", 1) for word in arguments.set)
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.draw:
        arguments.draw[1].write_text(picture(json.loads(arguments.draw[0].read_text())))
        return 0
    if arguments.merge:
        whole = merge(arguments.merge)
    else:
        machine = about(arguments.revision)
        try:
            samples, rounds, missing = measure(arguments, 1 if arguments.quick else arguments.rounds)
        except Failed as why:
            sys.exit(f"bench_scaling.py: {why}")
        if not samples:
            sys.exit("bench_scaling.py: nothing was measured: give it more time")
        whole = whole_of(machine, samples, rounds, missing)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "scaling.json").write_text(json.dumps(whole, indent=1) + "\n")
    (arguments.out / "scaling.md").write_text(report(whole))
    print(report(whole))
    return 1 if whole.get("missing") else 0


if __name__ == "__main__":
    sys.exit(main())
