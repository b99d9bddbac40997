#!/usr/bin/python3
"""bench_shares.py - what `sluice bench share` measured, as tables of a document.

  tools/bench.py --shares                               # measures: bench-out/share.json
  tools/bench_shares.py                                 # writes its tables into docs/reference/benchmarks.md
  tools/bench_shares.py other.json --print              # only shows them
"""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/benchmarks.md"
BEGIN, END = "<!-- shares: written by tools/bench_shares.py -->", "<!-- end of shares -->"
LINES = {"sluice/local/fetch": "share, this host", "memcpy/fetch": "memcpy", "sluice/rdma/fetch": "share, rdma over udp",
         "sluice/verbs/fetch": "share, RDMA NIC",
         "zeromq/reqrep": "ZeroMQ REQ/REP, TCP", "zeromq/reqrep-ipc": "ZeroMQ, Unix socket", "ucx/tcp-get": "UCX get, TCP", "ucx/shm-get": "UCX get, shared memory"}
QUANTILES = ("p50", "p99", "p99.9")
FOLLOWS = re.compile(r"/(follow|pubsub|pubsub-ipc)/\d+$")


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def size(text):
    for unit, least in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if int(text) >= least:
            return f"{int(text) // least} {unit}"
    return f"{text} B"


def range_of(row, name="value"):
    """The median of the rounds, with the least and the most."""
    least, most = (row["min"], row["max"]) if name == "value" else (row[f"{name}_min"], row[f"{name}_max"])
    return f"{number(row[name])} ({number(least)} .. {number(most)})"


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)]


class Results:
    def __init__(self, results):
        self.machine, self.left_out, self.ratios = results["machine"], results["left_out"], results["ratios"]
        self.rows = {row["name"]: row for row in results["rows"]}
        self.sizes = sorted({name.rpartition("/")[2] for name in self.rows if "/fetch/" in name}, key=int)

    def rates(self):
        """Bytes by lines: GB/s."""
        lines = [line for line in LINES if any(f"{line}/{bytes_}" in self.rows for bytes_ in self.sizes)]
        cells = [[size(bytes_), *(range_of(self.rows[f"{line}/{bytes_}"]) if f"{line}/{bytes_}" in self.rows else "-" for line in lines)]
                 for bytes_ in self.sizes]
        return table(["GB/s", *(LINES[line] for line in lines)], cells)

    def follows(self):
        """Every element, one after the other: GB/s."""
        return table(["GB/s", "every element"], [[f"`{name}`", range_of(row)] for name, row in self.rows.items() if FOLLOWS.search(name)])

    def each(self, bytes_):
        """How long one of these takes, for all lines."""
        found = [(line, self.rows.get(f"{line}/{bytes_}")) for line in LINES]
        return table([f"{size(bytes_)}: us each", *QUANTILES],
                     [[LINES[line], *(range_of(row, f"us_{q}") for q in QUANTILES)] for line, row in found if row])

    def latencies(self):
        names = list(dict.fromkeys(name.rpartition("/")[0] for name in self.rows if name.endswith("/p50")))
        return table(["us", "of", *QUANTILES, ""],
                     [[f"`{name}`", number(self.rows[f"{name}/p50"]["count"]), *(range_of(self.rows[f"{name}/{q}"]) if self.rows[f"{name}/p50"]["count"] else "-" for q in QUANTILES),
                       f"missed: {self.rows[f'{name}/p50']['missed']:.0f}" if "missed" in self.rows[f"{name}/p50"] else ""] for name in names])

    def beside(self):
        return table(["row", "beside", "ratio", "min .. max", "expected"],
                     [[*(f"`{name}`" for name in ratio["name"].split(" / ")), f"{ratio['value']:.2f}", f"{ratio['min']:.2f} .. {ratio['max']:.2f}",
                       f"{ratio['expected']:g}: {'yes' if ratio['value'] >= ratio['expected'] else 'no'}" if "expected" in ratio else ""]
                      for ratio in self.ratios])

    def lines(self):
        m = self.machine
        out = [f"{m['cpu']}, {m['cores']} cores, {m['rounds']} rounds of {m['seconds']:g} s, {m['date'][:10]}, load {m['load_average']:g} at the end. "
               "Medians, with the least and the most of the rounds; ratios are of the same round."]
        for part in (self.rates(), self.follows(), *(self.each(bytes_) for bytes_ in ("1", "262144") if bytes_ in self.sizes), self.latencies(), self.beside()):
            out += ["", *part] if len(part) > 2 else []
        return out + ([""] if self.left_out else []) + self.absent()

    def absent(self):
        """What was left out; sizes that have the same reason are one entry."""
        entries = ((re.sub(r"/\d+$", "/...", name), why) for name, why in self.left_out.items())
        return [f"- left out: `{name}`: {why}" for name, why in dict.fromkeys(entries)]


def report(results):
    return "\n".join(Results(results).lines()) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("results", nargs="?", type=pathlib.Path, default=ROOT / "bench-out/share.json")
    parser.add_argument("--print", action="store_true", dest="show", help="show the tables and write nothing")
    arguments = parser.parse_args()
    if not arguments.results.exists():
        sys.exit(f"bench_shares.py: {arguments.results} is not there; tools/bench.py --shares writes it")
    text = report(json.loads(arguments.results.read_text()))
    if arguments.show:
        print(text)
        return
    page, found = re.subn(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: f"{BEGIN}\n\n{text}\n{END}", PAGE.read_text(), flags=re.S)
    if found != 1:
        sys.exit(f"bench_shares.py: {PAGE.name} has no place for it")
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
