#!/usr/bin/python3
"""scaling.py - the reports of tools/bench_scaling.py and tools/bench_auto.py, tested with figures that are made up: medians, ranges and
factors, what several calls have measured put together, other machines refused; and that time that is over begins nothing."""

import json
import pathlib
import subprocess
import sys
import tempfile

import lint

sys.path.insert(0, str(lint.ROOT / "tools"))
import bench_auto  # noqa: E402  (found through the line above)
import bench_scaling  # noqa: E402
import scaling_runs  # noqa: E402

MACHINE = {"cpu": "A", "cores": 16, "kernel": "6.1", "date": "2026-01-02T03:04:05+00:00", "load_before": 0.1, "revision": "abc"}


def tool(name, *arguments):
    done = subprocess.run([sys.executable, lint.ROOT / f"tools/{name}.py", *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def row(text, title):
    """The cells behind a title."""
    return next(([cell.strip() for cell in line.split("|")[2:-1]] for line in text.splitlines() if line.startswith(f"| {title}")), None)


def written(folder, name, data):
    (folder / name).write_text(json.dumps(data))
    return folder / name


def scaling(samples, rounds=1, missing=None, **machine):
    return bench_scaling.whole_of({**MACHINE, **machine}, samples, rounds, missing)


def check_scaling(out, folder):
    one = written(folder, "one.json", scaling({("run", 1): [100, 300], ("run", 2): [500, 700], ("run busy", 1): [0.5]}))
    two = written(folder, "two.json", scaling({("run", 1): [200], ("udp", 1): [1.5], ("udp", 4): [6.0], ("udp", 8): [9.0], ("flat", 32): [15.0]},
                                              missing="the rest"))
    status, said = tool("bench_scaling", "--merge", one, two, "--out", folder)
    run, udp = row(said, "whole run: correct"), row(said, "whole run: udp")
    out.case("medians and ranges over the samples of several calls, factors beside one",
             [] if status == 0 and run == ["200 (100 .. 300)", "600 (3.0 x; 500 .. 700)", "", ""] and udp == ["1.50", "", "6.00 (4.0 x)", "9.00 (6.0 x)"]
             and row(said, "its workers busy") == ["50 %", "", "", ""] and row(said, "events through ring") == ["15.0"] else [said])
    again = json.loads((folder / "scaling.json").read_text())
    out.case("what was put together can be put together again", [] if again["results"]["run"]["1"]["samples"] == [100, 300, 200]
             and again["rounds"] == "1 to 3" else [str(again)])
    other = written(folder, "other.json", scaling({("run", 1): [1]}, cpu="B"))
    status, said = tool("bench_scaling", "--merge", one, other, "--out", folder)
    out.case("figures of two machines are no table", [] if status == 1 and "other.json: cpu is 'B'" in said else [said])
    out.case("what is missing is named", [] if "Not whole: the rest." in bench_scaling.report(json.loads(two.read_text())) else ["not named"])
    status, said = tool("bench_scaling", "--draw", folder / "two.json", folder / "x.svg")
    out.case("a picture of three numbers of cores", [] if status == 0 and (folder / "x.svg").read_text().startswith("<svg") else [said])


def auto(cases, missing=(), **machine):
    return {"machine": {**MACHINE, **machine}, "missing": list(missing), "cases": cases}


def check_auto(out, folder):
    good = bench_auto.result_of("udp/plain/4", {(2, 1, 2): 9.0, (1, 1, 2): 8.0}, {None: [8, 10, 9], (2, 1, 2): [10, 9, 10], (1, 1, 2): [12, 1, 2]}, (2, 1, 2))
    bad = bench_auto.result_of("shm/stages/2", {(1, 2, 1): 4.0}, {None: [1], (1, 2, 1): [4]}, (1, 1, 1))
    first = written(folder, "a.json", auto([good], ["shm/stages/2", "shm/stages/4"]))
    second = written(folder, "b.json", auto([bad]))
    status, said = tool("bench_auto", "--merge", first, second, "--out", folder)
    cells = row(said, "udp/plain/4")
    out.case("the best is the best of the rounds that count, and ratios are taken within them",
             [] if cells == ["2 + 1 + 2", "9.00 (8.00 .. 10.0)", "2", "2 + 1 + 2", "10.0 (9.00 .. 10.0)", "0.90 (0.80 .. 1.11)"] else [said])
    out.case("the worst case is named, and what nobody has measured",
             [] if status == 1 and "the least is shm/stages/2" in said and "1 of 2" in said and "Missing: shm/stages/4." in said else [said])
    crowded = [(case.name, choice) for case in bench_auto.cases() for choice in case.choices(False)
               if choice[0] + choice[2] > case.cpus + 2 or max(choice[0], choice[2]) > bench_auto.MODULES or (case.link == "shm" and choice[0] > 1)]
    out.case("no choice has more threads than cpus, or than the link has work for", [str(one) for one in crowded])
    status, said = tool("bench_auto", "--case", "udp/plain/3")
    out.case("a case that is none is refused", [] if status == 2 and "udp/plain/3" in said else [said])


def check_time(out, folder):
    clock = scaling_runs.Clock(60)
    clock.longest = 61
    out.case("nothing is begun that would end too late", [] if not clock.allows() and scaling_runs.Clock(60).allows() else ["it is begun"])
    watched = scaling_runs.Watched([[sys.executable, "-c", "sum(i * i for i in range(6000000))"]], folder)
    (status, _, _), = watched.wait(60)
    share = watched.share("python", 1)
    out.case("seconds of threads are read while a program runs", [] if status == 0 and share and share[0] > 0 else [str((status, share))])
    watched = scaling_runs.Watched([["sleep", "60"]], folder)
    (status, _, _), = watched.wait(0.2)
    out.case("a program that takes too long is ended", [] if status == -9 else [str(status)])


def main():
    out = lint.tap.Writer()
    with tempfile.TemporaryDirectory() as name:
        check_scaling(out, pathlib.Path(name))
        check_auto(out, pathlib.Path(name))
        check_time(out, name)
    return out.done()


if __name__ == "__main__":
    sys.exit(main())
