#!/usr/bin/python3
"""bench_codecs.py - what `sluice bench codec` measured, as tables of a document.

  tools/bench.py --codecs                               # measures: bench-out/codec.json
  tools/bench_codecs.py                                 # writes its tables into docs/reference/benchmarks.md
  tools/bench_codecs.py other.json --print              # only shows them
"""

import argparse
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/benchmarks.md"
BEGIN, END = "<!-- codecs: written by tools/bench_codecs.py -->", "<!-- end of codecs -->"
LIBRARY = "SLUICE_BENCH_BITSHUFFLE"  # as bench/codec/peer.c has it


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)]


class Results:
    def __init__(self, results):
        self.machine, self.left_out, self.ratios = results["machine"], results["left_out"], results["ratios"]
        self.peer = results.get("peer", "the bitshuffle library")
        self.rows = {row["name"]: row for row in results["rows"]}

    def cell(self, name, key, form):
        return form(self.rows[name][key]) if name in self.rows else "-"

    def line(self, name, ratio):
        """A row of ours and its peer; a peer that was left out is a dash."""
        peer = name.replace("sluice/", "bitshuffle/", 1)
        rate, size = "{:.1f}".format, lambda share: f"{100 * share:.2f} %"
        beside, hoped = "-", ""
        if ratio and ratio["value"] > 0:
            beside = f"{ratio['value']:.2f} ({ratio['min']:.2f} .. {ratio['max']:.2f})"
            hoped = f"{ratio['expected']:g}: {'yes' if ratio['value'] >= ratio['expected'] else 'no'}" if "expected" in ratio else ""
        return [f"`{name}`", self.cell(name, "value", rate), self.cell(peer, "value", rate), beside, hoped, self.cell(name, "packed", size),
                self.cell(peer, "packed", size)]

    def lines(self):
        m = self.machine
        ratios = {ratio["name"].split(" / ")[0]: ratio for ratio in self.ratios}
        out = [f"{m['cpu']}, {m['cores']} cores, {m['rounds']} rounds of {m['seconds']:g} s, {m['date'][:10]}, load {m['load_average']:g} at the end. "
               f"The peer is {self.peer}. Medians; ratios are of the same round, with their range.", "",
               *table(["row", "GB/s", "peer", "ratio", "expected", "packed", "peer's"],
                      [self.line(name, ratios.get(name)) for name in self.rows if name.startswith("sluice/")])]
        return out + ([""] if self.left_out else []) + [f"- left out: `{name}`: {why}" for name, why in self.left_out.items()]


def peer_of(environment):
    """What the rows `bitshuffle/...` are measured with."""
    library = environment.get(LIBRARY)
    return f"the library `{pathlib.Path(library).name}` of `{LIBRARY}`" if library else "Debian's bitshuffle"


def report(results):
    return "\n".join(Results(results).lines()) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("results", nargs="?", type=pathlib.Path, default=ROOT / "bench-out/codec.json")
    parser.add_argument("--print", action="store_true", dest="show", help="show the tables and write nothing")
    parser.add_argument("--peer", help="what the peer was, in words")
    arguments = parser.parse_args()
    results = json.loads(arguments.results.read_text())
    results["peer"] = arguments.peer or results.get("peer") or peer_of(os.environ)
    text = report(results)
    if arguments.show:
        print(text)
        return
    page, found = re.subn(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: f"{BEGIN}\n\n{text}\n{END}", PAGE.read_text(), flags=re.S)
    if found != 1:
        sys.exit(f"bench_codecs.py: {PAGE.name} has no place for it")
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
