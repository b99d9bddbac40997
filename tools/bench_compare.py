#!/usr/bin/python3
"""bench_compare.py - is a change slower? Two builds measured in turn, round by round, and the ratio of each row.

  tools/bench_compare.py BEFORE AFTER                            folders with sluice, as build/
  tools/bench_compare.py BEFORE AFTER --rounds 21 --kinds link,stage,trigger --json FILE

A round runs `sluice bench KIND --compared --rounds 1` of one build and then of the other, the order changing from round to round, so
that what disturbs the machine disturbs both. For each row of ours: the ratio after / before within each round, its median, and the 95 %
interval of the median (from order statistics). A row fails when the whole interval is below the limit. Higher is better in every ratio:
of costs and latencies the inverse is taken. Exit status 1: a row failed.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

LIMIT = 0.97


def figures(program, kind, seconds, only):
    """{row: a number that is higher when it is faster} of one round of one build."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.json"
        command = [program, "bench", kind, "--compared", "--rounds", "1", "--only", only, "--json", path]
        command += ["--seconds", str(seconds)] if seconds else []
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if not path.exists():
            sys.exit(f"{program} bench {kind} wrote nothing: {done.stderr.strip().splitlines()[-1:]}")
        rows = json.loads(path.read_text())["rows"]
    return {row["name"]: speed(row) for row in rows if speed(row)}


def speed(row):
    """Of a row of `sluice bench --json`: a rate as it is, one over a latency; None: it is neither."""
    if not row["value"]:
        return None
    return {"GB/s": row["value"], "us": 1 / row["value"]}.get(row["unit"])


def interval(ratios):
    """The 95 % interval of the median: order statistics by the binomial distribution."""
    n, below, low = len(ratios), 0.0, 0
    ratios = sorted(ratios)
    while low < n // 2:
        below += math.comb(n, low) / 2 ** n
        if below > 0.025:
            break
        low += 1
    low = max(low - 1, 0)
    return ratios[low], ratios[n - 1 - low]


def compare(arguments):
    builds = [arguments.before / "sluice", arguments.after / "sluice"]
    ratios = {}
    for kind in arguments.kinds.split(","):
        for number in range(arguments.rounds):
            start = time.monotonic()
            order = (0, 1) if number % 2 == 0 else (1, 0)
            seen = {which: figures(builds[which], kind, arguments.seconds, arguments.only) for which in order}
            for row in seen[0].keys() & seen[1].keys():
                ratios.setdefault(row, []).append(seen[1][row] / seen[0][row])
            print(f"{kind}: round {number + 1} of {arguments.rounds}, {time.monotonic() - start:.0f} s", file=sys.stderr)
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("before", type=pathlib.Path, help="build folder of the program before")
    parser.add_argument("after", type=pathlib.Path, help="and after")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--kinds", default="link,stage,trigger", help="of sluice bench, comma-separated")
    parser.add_argument("--only", default="sluice/*", help="rows whose name matches this pattern")
    parser.add_argument("--seconds", type=float, default=0, help="how long a row is measured; 0: as sluice bench does")
    parser.add_argument("--json", type=pathlib.Path, help="also write the ratios to this file")
    arguments = parser.parse_args()
    ratios, failed = compare(arguments), 0
    print(f"{'after / before':44}{'median':>8}{'95 % interval':>18}  rounds")
    for row, values in sorted(ratios.items()):
        low, high = interval(values)
        slow = high < LIMIT
        failed += slow
        print(f"{row:44}{statistics.median(values):8.3f}{low:10.3f}..{high:.3f}  {len(values)}{'  SLOWER' if slow else ''}")
    if arguments.json:
        arguments.json.write_text(json.dumps(ratios, indent=1))
    if not ratios:
        sys.exit("bench_compare.py: no row was measured by both")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
