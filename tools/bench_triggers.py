#!/usr/bin/python3
"""bench_triggers.py - what `sluice bench trigger` measured, as tables of a document.

  tools/bench.py --triggers                             # measures: bench-out/trigger.json
  tools/bench_triggers.py                               # writes its tables into docs/reference/rings.md and docs/reference/tracks.md
  tools/bench_triggers.py other.json --print            # only shows them

A table stands between the lines `<!-- NAME: written by tools/bench_triggers.py -->` and `<!-- end of NAME -->`.
"""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = 256  # events of a block of `rings`

# Figures of others that ours are put beside, and where they stand.
TALK = "NaNet talk"
RICH_RATE_HZ, RICH_BUDGET_US = 10e6, 1000  # "RICH Detector Case Study", "L0 Trigger Processor Requirements"
RICH_PROCESSING_US = 100  # "Processing Latency vs. Input Events": at most a tenth of the budget
RICH_EVENTS, RICH_COMMUNICATION_US = 20, 110  # "Communication Latency": four times the processing
SOCKPERF = {"p50": 96.0, "p99": 149.7, "p99.9": 201.3, "max": 657.7}  # the same slides, us, over Gigabit Ethernet
K40 = {"rectangles": (3.73, 4.19), "hexagons": (4.94, 5.20)}  # thesis, table 5.1: mean and largest, us
K40_TOTAL = {"rectangles": (5.84, 6.33), "hexagons": (7.07, 7.40)}
CMS_US = 4  # thesis, table 5.2: to compute


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


class Results:
    """Rows and ratios by name; what was not measured is a dash."""

    def __init__(self, results):
        self.machine = results["machine"]
        self.rows = {row["name"]: row for row in results["rows"]}
        self.ratios = {ratio["name"]: ratio for ratio in results["ratios"]}
        self.left_out = results["left_out"]

    def us(self, name, spread=True):
        row = self.rows.get(name)
        if not row:
            return "-"
        return number(row["us_per_item"]) + (f" ({number(row['us_min'])} .. {number(row['us_max'])})" if spread else "")

    def get(self, name, key):
        row = self.rows.get(name)
        return row[key] if row else None

    def quantile(self, name, which, spread=False):
        row = self.rows.get(f"{name}/{which}")
        if not row:
            return "-"
        return number(row["value"]) + (f" ({number(row['min'])} .. {number(row['max'])})" if spread else "")

    def ratio(self, row, peer, upside_down=False):
        ratio = self.ratios.get(f"{row} / {peer}")
        if not ratio:
            return "-"
        values = [ratio["value"], ratio["min"], ratio["max"]]
        if upside_down:
            values = [1 / values[0], 1 / values[2], 1 / values[1]]
        return f"{values[0]:.2f} ({values[1]:.2f} .. {values[2]:.2f})"


def about(r):
    m = r.machine
    return [f"`sluice bench trigger`: {m['cpu']}, {m['cores']} cores, {m['rounds']} rounds of {m['seconds']:g} s each, {m['date'][:10]}, "
            f"load {m['load_average']:g} at the end. Medians, with the least and the most of the rounds."]


def table(head, rows):
    return ["", "| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)]


# ---- rings ----

RINGS = [("sluice/rings", "best vectors (AVX-512: 16 events side by side)"), ("sluice/rings/avx2", "AVX2, 8"),
         ("sluice/rings/baseline", "baseline (SSE2), 4"), ("scalar/rings", "scalar, one event after the other, -O3"),
         ("oracle/rings", "oracle: all triplets, double precision"),
         ("sluice/rings/32", "best vectors, blocks of 32 events"), ("sluice/rings/1024", "best vectors, blocks of 1024"),
         ("sluice/rings/triplets-128", "best vectors, `triplets: 128`"), ("sluice/rings/noise-6", "best vectors, 6 hits of noise in an event")]


def rings_cost(r):
    rows = []
    for name, title in RINGS:
        row = r.rows.get(name)
        if row:
            beside = r.ratio(name, "scalar/rings") if f"{name} / scalar/rings" in r.ratios else ""
            rows.append((title, number(row["items_per_s"] * 1e-6) if row["items_per_s"] > 1e4 else f"{row['items_per_s'] * 1e-6:.4f}",
                         r.us(name), number(row["ns_per_part"]), beside))
    return [*about(r), *table(("", "M events/s", "us an event", "ns a hit", "x scalar, same round"), rows)]


def latency_rows(r, base, shares, title):
    for share in shares:
        name = f"{base}/at-{share}"
        if f"{name}/p50" in r.rows:
            yield (f"{title}, {share} %", f"{r.get(name + '/p50', 'events_per_s'):,.0f}", r.quantile(name, "p50"),
                   r.quantile(name, "p99", True), r.quantile(name, "p99.9"), r.quantile(name, "max"))


LATENCY_HEAD = ("", "events/s", "p50", "p99", "p99.9", "max")


def whole_way(r):
    """Over udp, and the machine alone."""
    jitter = "machine/jitter"
    for suffix, how in (("", ""), ("/latency", ", `polling: latency`"), ("/together", ", `polling: latency, together: true`")):
        udp = f"sluice/rings/udp{suffix}"
        if f"{udp}/p50" not in r.rows:
            continue
        row = r.rows[f"{udp}/p50"]
        yield (f"over `udp`, blocks of 64{how}; {row['late']:,} of {row['count']:,} blocks late", f"{row['events_per_s']:,.0f}",
               r.quantile(udp, "p50"), r.quantile(udp, "p99", True), r.quantile(udp, "p99.9"), r.quantile(udp, "max"))
    if f"{jitter}/p50" in r.rows:
        lost = 100 * r.get(f"{jitter}/p50", "share_lost")
        yield (f"the machine alone: {lost:.2f} % of the time is not ours", "", r.quantile(jitter, "p50"),
               r.quantile(jitter, "p99", True), r.quantile(jitter, "p99.9"), r.quantile(jitter, "max"))


def rings_latency(r):
    rows = [*latency_rows(r, "sluice/rings", (10, 50, 90), "blocks of 256"),
            *latency_rows(r, "sluice/rings/32", (10, 50, 90), "blocks of 32"), *whole_way(r)]
    return [*about(r), *table(LATENCY_HEAD, rows)]


def rings_seed(r):
    rate, us, small = (r.get("sluice/rings", "items_per_s"), r.get("sluice/rings", "us_per_item"),
                       r.get("sluice/rings/32", "us_per_item"))
    if not rate or not small:
        return about(r)
    udp = {which: r.quantile("sluice/rings/udp", which) for which in SOCKPERF}
    rows = [("event rate (*RICH Detector Case Study*)", f"{RICH_RATE_HZ * 1e-6:g} MHz",
             f"{rate * 1e-6:.2f} MHz on a core: {RICH_RATE_HZ / rate:.1f} cores"),
            ("processing (*Processing Latency vs. Input Events*, Tesla S2050)",
             f"at most a tenth of {RICH_BUDGET_US} us: {RICH_PROCESSING_US} us", f"a block of {BLOCK} events: {us * BLOCK:.0f} us on a core"),
            (f"{RICH_EVENTS} events (*Communication Latency*: four times the processing is {RICH_COMMUNICATION_US} us)",
             f"{RICH_COMMUNICATION_US / 4:.0f} us", f"in blocks of 32: {small * RICH_EVENTS:.0f} us"),
            ("data to the GPU and results back, Gigabit Ethernet (*Communication Latency*)", f"{RICH_COMMUNICATION_US} us",
             f"front end to decision over `udp`, with the processing: {udp['p50']} us (p50)"),
            ("what the network part of it varies by (sockperf, the same slides): p50, p99, p99.9, max",
             ", ".join(f"{value:g}" for value in SOCKPERF.values()) + " us",
             ", ".join(udp.values()) + " us, with the processing"),
            ("budget (*L0 Trigger Processor Requirements*)", f"{RICH_BUDGET_US} us",
             f"{r.get('sluice/rings/udp/p50', 'late') or 0:,} of {r.get('sluice/rings/udp/p50', 'count') or 0:,} blocks later than that")]
    return table((f"{TALK}, slide", "theirs", "here"), rows)[1:]


# ---- tracks ----

KINDS = ("rectangles", "hexagons")
SECTORS = [("rectangles", ""), ("hexagons", ""), ("rectangles", "/fit"), ("hexagons", "/fit"), ("rectangles", "/bend0"),
           ("hexagons", "/bend0"), ("one-hexagon", "/bend0")]
WORDS = {"": "", "/fit": ", `fit: true`", "/bend0": ", `bend: 0`"}


def tracks_cost(r):
    rows = []
    for kind, suffix in SECTORS:
        base = f"sluice/tracks/{kind}{suffix}"
        per = r.get(base, "ns_per_part")
        rows.append((f"`{kind}`{WORDS[suffix]}", r.us(base), number(per) if per else "-", r.us(f"{base}/avx2"), r.us(f"{base}/baseline"),
                     r.us(f"scalar/tracks/{kind}{suffix}", False), r.us(f"oracle/tracks/{kind}{suffix}", False)))
    lines = [*about(r), *table(("us a sector", "best vectors", "ns a stub", "AVX2", "baseline", "scalar, -O3", "oracle"), rows)]
    rows = [(f"hexagons{WORDS[suffix]}{words}", r.ratio(f"sluice/tracks/hexagons{suffix}{end}", f"sluice/tracks/rectangles{suffix}{end}", True))
            for suffix, end, words in (("", "", ""), ("", "/avx2", ", AVX2"), ("", "/baseline", ", baseline"), ("/fit", "", ""), ("/bend0", "", ""))]
    return [*lines, *table(("", "x the time of rectangles, same round"), rows)]


def tracks_events(r):
    rows = [(f"`{kind}`{WORDS[suffix]}", *(r.us(f"sluice/tracks/{kind}/event-{pile_up}{suffix}") for pile_up in (140, 200)))
            for suffix in WORDS for kind in KINDS]
    return [*about(r), *table(("us an event", "pile-up 140", "pile-up 200"), rows)]


def tracks_latency(r):
    rows = latency_rows(r, "sluice/tracks/hexagons/event-140", (10, 50, 90), "`hexagons`, pile-up 140")
    return [*about(r), *table(LATENCY_HEAD, rows)]


def tracks_seed(r):
    rows = []
    for kind in KINDS:
        mean, most = K40[kind]
        rows.append((f"{kind}: computing, table 5.1", f"{mean} us (largest {most}), 90 of 160 stubs on a Tesla K40",
                     f"{r.us(f'sluice/tracks/{kind}')} us, all 160, on a core, without duplicates; {r.us(f'sluice/tracks/{kind}/bend0')} us "
                     "with `bend: 0`, a map as theirs"))
    for kind in KINDS:
        mean, most = K40_TOTAL[kind]
        rows.append((f"{kind}: with the transfer, table 5.1", f"{mean} us (largest {most})", "no transfer: a sector is in the ring when it is complete"))
    rows += [("hexagons over rectangles, 5.4", "about 25 % more time (table 5.1: 32 %)",
              f"{r.ratio('sluice/tracks/hexagons', 'sluice/tracks/rectangles', True)} times the time; with `bend: 0` "
              f"{r.ratio('sluice/tracks/hexagons/bend0', 'sluice/tracks/rectangles/bend0', True)}"),
             ("what CMS asks for, table 5.2", f"{CMS_US} us to compute", f"{r.us('sluice/tracks/hexagons', False)} us; {r.us('sluice/tracks/hexagons/bend0', False)} us with `bend: 0`"),
             ("the whole detector, 5.4", "288 to 576 GPUs, a sector or half of one each",
              f"288 sectors on one core: {r.us('sluice/tracks/hexagons/event-140', False)} us (pile-up 140), "
              f"{r.us('sluice/tracks/hexagons/event-200', False)} us (200), duplicates between sectors taken out")]
    return table(("thesis, chapter 5 (tables on p. 132 and after)", "theirs", "here"), rows)[1:]


# ---- into the documents ----

TABLES = {"rings": {"rings cost": rings_cost, "rings latency": rings_latency, "rings seed": rings_seed},
          "tracks": {"tracks cost": tracks_cost, "tracks events": tracks_events, "tracks latency": tracks_latency,
                     "tracks seed": tracks_seed}}
TITLES = {"rings cost": "Rings: events of a RICH, one core", "rings latency": "Rings: us from when an event is due to its decision",
          "rings seed": "Rings beside the seed", "tracks cost": "Tracks: a sector of 160 stubs, one core",
          "tracks events": "Tracks: an event of 288 sectors, one core", "tracks latency": "Tracks: us from when an event is due to its decision",
          "tracks seed": "Tracks beside the seed"}


def report(results):
    """All tables, for the report of tools/bench.py."""
    r = Results(results)
    lines = []
    for tables in TABLES.values():
        for name, make in tables.items():
            lines += [f"### {TITLES[name]}", "", *make(r), ""]
    lines += [f"- left out: `{name}`: {why}" for name, why in r.left_out.items()]
    return "\n".join(lines).rstrip() + "\n"


def fill(path, name, lines):
    begin, end = f"<!-- {name}: written by tools/bench_triggers.py -->", f"<!-- end of {name} -->"
    text = path.read_text()
    new, found = re.subn(re.escape(begin) + ".*?" + re.escape(end), lambda _: "\n".join([begin, "", *lines, "", end]), text, flags=re.S)
    if found != 1:
        sys.exit(f"bench_triggers.py: {path.name} has no place for '{name}'")
    path.write_text(new)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0].split(" - ")[1])
    parser.add_argument("results", nargs="?", type=pathlib.Path, default=ROOT / "bench-out/trigger.json")
    parser.add_argument("--print", action="store_true", dest="show", help="show the tables and write nothing")
    arguments = parser.parse_args()
    results = json.loads(arguments.results.read_text())
    if arguments.show:
        print(report(results))
        return
    r = Results(results)
    if r.left_out:
        sys.exit("bench_triggers.py: rows are missing, so nothing is written: " + ", ".join(r.left_out))
    for page, tables in TABLES.items():
        for name, make in tables.items():
            fill(ROOT / f"docs/reference/{page}.md", name, make(r))


if __name__ == "__main__":
    main()
