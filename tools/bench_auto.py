#!/usr/bin/python3
"""bench_auto.py - how well `auto` chooses pollers, workers and senders, beside the best fixed choice.

  tools/bench_auto.py                                every case that this host has cpus for
  tools/bench_auto.py --case udp/stages/16           one of them: LINK/stages or LINK/plain, and the number of cpus; --list names them
  tools/bench_auto.py --most-seconds 500 --out A     begin nothing that would end later; what is missing is named
  tools/bench_auto.py --merge A/auto.json B/auto.json    put together what several calls have measured
  tools/bench_auto.py --quick                        fewer frames, fewer choices

A case is a link (udp or shm), with the demo's stages (bench/part/scale.yaml with 8 modules) or without (bench/part/link.yaml), on so many
cpus (sched_setaffinity, as taskset does). All fixed choices that the cpus leave room for run once; the best of them and `auto` then run in
turn, --rounds times, and these runs alone count: what was best of many by chance is not best again. Figures are GB/s of raw pixels,
medians with the range of the rounds; the ratio is auto's by the best one's, taken within rounds. Writes DIR/auto.md and DIR/auto.json.

It needs a build folder and Python, and neither network nor git: on a host without, name the revision with --revision.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import statistics
import sys

from scaling_runs import ROOT, Clock, Failed, about, number, sluice_run

LINKS, CHAINS, CPUS = ("udp", "shm"), ("stages", "plain"), (2, 4, 8, 16)
MODULES = 8
NUMBERS, WORKERS = (1, 2, 4, 8), (1, 2, 3, 4, 6, 8, 10, 12, 14)
BEST = 4  # fixed choices that run again
SAID = re.compile(r"threads: (\d+) pollers? \((?:auto|as set)\), (\d+) workers? \((?:auto|as set)\) and (\d+) senders? \((?:auto|as set)\)")


class Case:
    def __init__(self, link, chain, cpus):
        self.link, self.chain, self.cpus = link, chain, cpus
        self.name = f"{link}/{chain}/{cpus}"

    def choices(self, quick):
        """(pollers, workers, senders) that leave a cpu for each thread that always works; and on few cpus some more threads than that. A poller
        has about as much to do as a sender: of `udp`, none has more than twice as many as the other."""
        pollers = NUMBERS if self.link == "udp" else (1,)
        workers = WORKERS if self.chain == "stages" else (1,)
        most = self.cpus + (2 if self.cpus <= 4 else 0)
        found = [choice for choice in itertools.product(pollers, workers, NUMBERS)
                 if choice[0] + choice[2] + (choice[1] if self.chain == "stages" else 0) <= most
                 and (self.link == "shm" or max(choice[0], choice[2]) <= 2 * min(choice[0], choice[2]))]
        return found[:3] if quick else found

    def settings(self, choice, quick):
        settings = {"link.kind": self.link, "detector.modules": MODULES, "detector.frames": self.frames(quick)}
        if quick:
            settings["detector.pool"] = 5  # images that differ: they are made before the run begins
        if choice:
            settings.update({"link.pollers": choice[0], "unit.workers": choice[1], "threads.senders": choice[2]})
        else:
            settings.update({"link.pollers": "auto", "unit.workers": "auto", "threads.senders": "auto"})
        if self.chain == "stages":
            settings["detector.dark_frames"] = 16
        return settings

    def frames(self, quick):
        """Long enough for a second or two on as many cpus."""
        each = {("udp", "stages"): 90, ("shm", "stages"): 120, ("udp", "plain"): 250, ("shm", "plain"): 800}[self.link, self.chain]
        return max(40, each * self.cpus // (8 if quick else 2))


def cases():
    return [Case(*which) for which in itertools.product(LINKS, CHAINS, CPUS)]


def run(bench, case, choice):
    """(GB/s, (pollers, workers, senders)) of one run; choice None: auto."""
    cpus = sorted(os.sched_getaffinity(0))[:case.cpus]
    experiment = "scale.yaml" if case.chain == "stages" else "link.yaml"
    said, _, log = sluice_run(bench.build, experiment, case.settings(choice, bench.quick), cpus)
    took = SAID.search(log)
    if not took:
        raise Failed(f"{case.name}: the run does not say which threads it has")
    return said["rates"]["GB_per_s"], tuple(int(n) for n in took.groups())


def sweep(bench, case, clock):
    """{"auto": ..., "best": ...} of a case; None: there was no time for all of it."""
    once = {}
    for choice in case.choices(bench.quick):
        if not clock.allows():
            return None
        once[choice] = clock.timed(lambda choice=choice: run(bench, case, choice))[0]
    best = sorted(once, key=once.get, reverse=True)[:BEST]
    again, chosen = {choice: [] for choice in (None, *best)}, None
    for i in range(bench.rounds):
        for choice in [None, *best] if i % 2 == 0 else [*reversed(best), None]:
            if not clock.allows():
                return None
            rate, took = clock.timed(lambda choice=choice: run(bench, case, choice))
            again[choice].append(rate)
            chosen = took if choice is None else chosen
    return result_of(case.name, once, again, chosen)


def result_of(name, once, again, chosen):
    auto = again.pop(None)
    best = max(again, key=lambda choice: statistics.median(again[choice]))
    return {"name": name, "auto_took": list(chosen), "auto": auto, "best_is": list(best), "best": again[best],
            "ratio": [a / b for a, b in zip(auto, again[best])], "choices": len(once),
            "once": [{"choice": list(choice), "GB_per_s": rate} for choice, rate in once.items()]}


# ---- the report ----

def threads(choice):
    return "{} + {} + {}".format(*choice)


def spread(values):
    median = number(statistics.median(values))
    return median + (f" ({number(min(values))} .. {number(max(values))})" if len(values) > 1 else "")


def report(document):
    m = document["machine"]
    lines = [f"{m['cpu']}, {m['cores']} cores, Linux {m['kernel']}, {m['date'][:10]}, revision {m['revision']}; GB/s of raw pixels, 8 modules of 1 MiB, "
             "threads are pollers + workers + senders.", ""]
    lines += [f"Missing: {', '.join(document['missing'])}.", ""] if document["missing"] else []
    lines += ["| link, chain, cpus | `auto` takes | `auto` | best of | best fixed choice | its rate | `auto` / best |", "|---|---|---|---|---|---|---|"]
    lines += [f"| {case['name']} | {threads(case['auto_took'])} | {spread(case['auto'])} | {case['choices']} | {threads(case['best_is'])} | "
              f"{spread(case['best'])} | {spread(case['ratio'])} |" for case in document["cases"]]
    ratios = [statistics.median(case["ratio"]) for case in document["cases"]]
    if ratios:
        worst = min(document["cases"], key=lambda case: statistics.median(case["ratio"]))
        lines += ["", f"`auto` is at {min(ratios):.2f} of the best fixed choice or better; the least is {worst['name']}. At 0.90 or better: "
                      f"{sum(ratio >= 0.9 for ratio in ratios)} of {len(ratios)}."]
    return "\n".join(lines) + "\n"


def merge(paths):
    documents = [json.loads(path.read_text()) for path in paths]
    first = documents[0]["machine"]
    for path, data in zip(paths, documents):
        for key in ("cpu", "cores", "revision"):
            if data["machine"][key] != first[key]:
                sys.exit(f"bench_auto.py: {path}: {key} is {data['machine'][key]!r}, that of {paths[0]} is {first[key]!r}: these are no figures of one table")
    order = [case.name for case in cases()]
    by_name = {case["name"]: case for data in documents for case in data["cases"]}  # of two that have the same case, the later one
    return {"machine": {**first, "date": max(data["machine"]["date"] for data in documents)},
            "missing": [name for name in order if name not in by_name and any(name in data["missing"] for data in documents)],
            "cases": [by_name[name] for name in order if name in by_name]}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("--case", action="append", choices=[case.name for case in cases()], metavar="LINK/CHAIN/CPUS", help="this alone; may be given several times")
    parser.add_argument("--list", action="store_true", help="name the cases that this host has cpus for, and how many choices each has")
    parser.add_argument("--rounds", type=int, default=5, help="of auto and the best fixed choices")
    parser.add_argument("--quick", action="store_true", help="fewer frames, three choices, one round")
    parser.add_argument("--most-seconds", type=float, default=float("inf"), help="begin nothing that would take longer than this in all")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--revision", help="of the code that was built, where there is no git to ask")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench-out", help="where the results go")
    parser.add_argument("--merge", nargs="+", type=pathlib.Path, metavar="FILE", help="put together results; measure nothing")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    arguments.rounds = 1 if arguments.quick else arguments.rounds
    return arguments


def measure(bench):
    machine, clock = about(bench.revision), Clock(bench.most_seconds)
    here = len(os.sched_getaffinity(0))
    wanted = [case for case in cases() if (not bench.case or case.name in bench.case) and case.cpus <= here]
    if not wanted:
        sys.exit(f"bench_auto.py: this process has {here} cpus, and these cases need more")
    found = []
    for case in wanted:
        result = sweep(bench, case, clock)
        if not result:
            break
        found.append(result)
        print(f"{case.name}: auto {statistics.median(result['ratio']):.2f} of the best", file=sys.stderr, flush=True)
    return {"machine": machine, "missing": [case.name for case in wanted[len(found):]], "cases": found}


def main():
    arguments = parse_arguments()
    if arguments.list:
        here = len(os.sched_getaffinity(0))
        print("\n".join(f"{case.name}: {len(case.choices(False))} choices" for case in cases() if case.cpus <= here))
        return 0
    try:
        document = merge(arguments.merge) if arguments.merge else measure(arguments)
    except Failed as why:
        sys.exit(f"bench_auto.py: {why}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "auto.json").write_text(json.dumps(document, indent=1) + "\n")
    (arguments.out / "auto.md").write_text(report(document))
    print(report(document))
    return 1 if document["missing"] else 0


if __name__ == "__main__":
    sys.exit(main())
