#!/usr/bin/python3
"""bench_gpu.py - what `sluice bench gpu` measured, as tables of docs/explanation/accelerators.md and docs/reference/device-rings.md.

  tools/bench_gpu.py --measure          on a host with an NVIDIA GPU: bench/results/gpu-DATE.json, 7 minutes; then the tables
  tools/bench_gpu.py                    the tables, from the youngest of bench/results/gpu-*.json
  tools/bench_gpu.py FILE ... --print   shows the tables of that file; rows of a later file take the place of those before

The tables stand between the lines `<!-- figures: written by tools/bench_gpu.py -->` and `<!-- end of figures -->` of
docs/explanation/accelerators.md, and `<!-- figures: ring, written by tools/bench_gpu.py -->` and `<!-- end of ring figures -->` of
docs/reference/device-rings.md.
"""

import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Where tables stand: the document, and the words of the lines around.
STAGES = (ROOT / "docs/explanation/accelerators.md", "figures: written by tools/bench_gpu.py", "end of figures")
RINGS = (ROOT / "docs/reference/device-rings.md", "figures: ring, written by tools/bench_gpu.py", "end of ring figures")
RESULTS = ROOT / "bench/results"

# Row, title, and what a thesis had on a Quadro P6000, us (RASHPA, chapter 4.3.3; pyFAI for peaks).
ROWS = [("memory-copy", "a copy of the bytes that `correct` must move: the ceiling", None),
        ("correct", "`correct` to int16 photons", 219), ("correct+veto", "`correct`, `veto`", 240),
        ("correct+veto+sparse", "`correct`, `veto`, `sparse` (lists of pixels)", 469),
        ("correct/f32", "`correct` to float keV", None), ("peaks", "`peaks`", 2167),
        ("integrate", "`integrate`, 1000 bins", None), ("integrate-bbox", "`integrate`, 1000 bins, `split: bbox`", None),
        ("spots", "`spots`", None), ("sparse", "`sparse`, by threshold", None), ("sparse-radial", "`sparse`, `method: radial`", None),
        ("reduce", "`reduce`", None), ("rings", "`rings`, an event of 20 hits; stacks of 8192", None),
        ("rings/4096", "`rings`, stacks of 4096 events", None),
        ("tracks/rectangles", "`tracks`, an event of pile-up 140, rectangles, `bend: 0`", None),
        ("tracks/hexagons", "`tracks`, likewise, hexagons", None),
        ("tracks/hexagons/fit", "`tracks`, likewise, hexagons, bends used, fits", None),
        ("tracks/rectangles/full", "`tracks`, an event of 288 sectors, all with 160 stubs, rectangles, `bend: 0`", None),
        ("tracks/hexagons/full", "`tracks`, likewise, hexagons", None),
        ("unit/correct+veto+sparse", "the whole unit, from host memory to lists in host memory: `correct`, `veto`, `sparse`", None),
        ("unit/rings", "the whole unit: `rings`, an event", None)]


# Rows that one long measurement says more about than many short ones, and its seconds.
LONG = [("cuda/ingest/*", 60), ("cuda/unit/rings/paced/*", 10)]

# What was hoped for, at most, of an event at a time.
LEVELS = ("p50", "p99", "p99.9", "max")
AT_A_TIME = {f"{row}{how}": most for how in ("", "/next") for row, most in (
    ("ring-4096/persistent", {"p50": 3, "p99": 5}), ("ring-cells/rectangles/persistent", {"p99": 4.5}),
    ("ring-cells/hexagons/persistent", {"p99": 4.5}))}
AT_A_TIME |= {f"ring-cells/{cells}/alone": {"p50": 2} for cells in ("rectangles", "hexagons")}
# Triggers that device rings had when files until 2026-11-16 were measured.
REMOVED = {"launch", "graph", "wait", "loop"}
# And of the others: GB/s at least; us at most in 99.9 % at the rate.
INGEST = {"ingest/resident": 50}
PACED = {f"unit/rings/paced/10M{how}": 1000 for how in ("", "/persistent", "/loop", "/graph", "/wait")}


# Rows that are measured by the sector; what is shown is an event of all of them.
SECTORS = 288


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def by_event(row):
    if not row["name"].endswith("/full"):
        return row
    return row | {key: SECTORS * row[key] for key in ("us_per_item", "us_min", "us_max")}


def line(row, title, seed):
    expected = row.get("expected_us")
    verdict = "" if not expected else f"{expected:g}: {'yes' if row['us_per_item'] <= expected else 'no'}"
    if "share_of_copy" in row:
        share = row["share_of_copy"]
        verdict += f"; 85 % of the copy's rate: {100 * share:.0f} %"
    per_s = 1e6 / row["us_per_item"]
    return [title, f"{number(row['us_per_item'])} ({number(row['us_min'])} .. {number(row['us_max'])})",
            f"{per_s * 1e-6:.1f} M" if per_s > 1e6 else f"{per_s:,.0f}" + (f" ({row['value']:.1f} GB/s)" if "unit/" in row["name"] else ""), *(number(row[key]) if row[key] else "" for key in ("stack_us_p50", "stack_us_p99")),
            verdict, number(seed) if seed else ""]


def lines(results):
    m = results["machine"]
    rows = {row["name"].removeprefix("cuda/"): row for row in results["rows"] if row["name"].startswith("cuda/")}
    device = next((row["device"] for row in rows.values() if "device" in row), "")
    head = ["us a frame, or event", "median (rounds)", "per second", "a stack, us, p50", "p99", "expected at most, us", "thesis, P6000"]
    yield (f"`sluice bench gpu`: {device}; {m['cpu']}, {m['cores']} cores; {m['date'][:10]}, {m['rounds']} rounds of "
           f"{m['seconds']:g} s for each row. Stacks are ten frames of 4.5 Mpixel or eight blocks of events; kernels alone but in the last rows.")
    yield ""
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for name, title, seed in ROWS:
        if name in rows:
            yield "| " + " | ".join(line(by_event(rows[name]), title, seed)) + " |"
    if "up" in rows and "down" in rows:
        yield ""
        yield f"Copies of 8 MiB: {rows['up']['value']:.1f} GB/s to the device, {rows['down']['value']:.1f} GB/s back."


def table(head, body):
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for cells in body:
        yield "| " + " | ".join(cells) + " |"
    yield ""


def yes(is_so):
    return "yes" if is_so else "no"


def at_a_time(rows):
    """Events one at a time through a ring, but for rows that `sluice bench gpu` no longer has."""
    names = dict.fromkeys(name.rsplit("/", 1)[0] for name in rows
                          if name.startswith("ring-") and not REMOVED & set(name.split("/")))
    for name in sorted(names, key=lambda n: n.endswith("/alone")):
        us = {level: rows[f"{name}/{level}"]["value"] for level in LEVELS}
        hoped = (f"{level} <= {most:g}: {yes(us[level] <= most)}" for level, most in AT_A_TIME.get(name, {}).items())
        yield [f"`{name}`", *(number(us[level]) for level in LEVELS), "; ".join(hoped)]


def paced(rows):
    """Events of the RICH at a rate."""
    for name in dict.fromkeys(name.rsplit("/", 1)[0] for name in rows if name.startswith("unit/rings/paced/")):
        row, us = rows[f"{name}/p50"], {level: rows[f"{name}/{level}"]["value"] for level in LEVELS}
        hoped = ""
        if name in PACED:
            kept_up = not row["never_begun"] and row["events_per_s"] >= 0.999 * row["asked_per_s"]
            hoped = f"the rate, p99.9 < {PACED[name]}: {yes(kept_up and us['p99.9'] < PACED[name])}"
        yield [f"`{name}`", f"{1e-6 * row['events_per_s']:.3f} M of {1e-6 * row['asked_per_s']:g} M", f"{row['events']:,}",
               f"{row['never_begun']:,}", str(row["block"]), *(number(us[level]) for level in LEVELS), hoped]


def ingest(rows):
    """Five sources with rings."""
    for name, row in rows.items():
        if not name.startswith("ingest/"):
            continue
        hoped = f">= {INGEST[name]} GB/s: {yes(row['value'] >= INGEST[name])}" if name in INGEST else ""
        yield [f"`{name}`", number(row["seconds"]), f"{row['value']:.2f}", f"{row['out_GB_per_s']:.3g}", f"{row['frames']:,}",
               f"{row['kept']:,}", f"{row['good']:,} of {row['published']:,}", f"{row['wrong']:,}", f"{row['unanswered']:,}",
               *(number(row["frame_us_" + level]) for level in ("p50", "p99", "p999", "max")), hoped]


def when(rows, begin):
    """When rows of a name that begins so were measured, and how often."""
    found = sorted({(row["measured"]["date"][:16].replace("T", " "), row["measured"]["rounds"])
                    for name, row in rows.items() if name.startswith(begin)})
    return "; ".join(f"{date} UTC, {rounds} round{'s' * (rounds != 1)}" for date, rounds in found)


def ring_lines(results):
    m = results["machine"]
    rows = {row["name"].removeprefix("cuda/"): row for row in results["rows"] if row["name"].startswith("cuda/")}
    device = next((row["device"] for row in rows.values() if "device" in row), "")
    yield (f"`sluice bench gpu`: {device}; {m['cpu']}, {m['cores']} cores. An event at a time: {when(rows, 'ring-')}; at a rate: "
           f"{when(rows, 'unit/rings/paced/')}; five sources: {when(rows, 'ingest/')}. Microseconds, but where it says otherwise.")
    yield ""
    for head, body in ((["an event at a time, to its result", *LEVELS, "expected"], at_a_time(rows)),
                       (["RICH, at a rate", "events/s", "answered", "never begun", "block", *LEVELS, "expected"], paced(rows)),
                       (["five sources", "s", "GB/s in", "GB/s out", "frames", "kept", "good", "wrong", "unanswered", *LEVELS,
                         "expected"], ingest(rows))):
        body = list(body)
        if body:
            yield from table(head, body)


def bench(path, only, *more):
    subprocess.run([ROOT / "build/sluice", "bench", "gpu", "--only", only, "--json", path, *more], check=True)


def read(paths):
    """Rows of a later file take the place of those of an earlier one."""
    results = None
    for path in paths:
        more = json.loads(path.read_text())
        for row in more["rows"]:
            row.setdefault("measured", {key: more["machine"][key] for key in ("date", "rounds")})
        rows = {row["name"]: row for row in results["rows"]} if results else {}
        results = results or more
        results["rows"] = list((rows | {row["name"]: row for row in more["rows"]}).values())
    return results


def measure():
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"gpu-{datetime.date.today()}.json"
    bench(path, "cuda/*", "--rounds", "5")
    for only, seconds in LONG:
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            bench(file.name, only, "--rounds", "1", "--seconds", str(seconds))
            results = read([path, pathlib.Path(file.name)])
        path.write_text(json.dumps(results, indent=1) + "\n")
    return path


def put(place, text):
    path, begin, end = place
    document = path.read_text()
    pattern = re.compile(rf"(<!-- {re.escape(begin)} -->\n).*?(<!-- {re.escape(end)} -->)", re.S)
    if not pattern.search(document):
        sys.exit(f"bench_gpu: {path} has no place for figures")
    path.write_text(pattern.sub(lambda match: match[1] + text + "\n" + match[2], document))


def main():
    parser = argparse.ArgumentParser(description="the tables of accelerators and of their rings")
    parser.add_argument("file", nargs="*", type=pathlib.Path)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--print", action="store_true")
    o = parser.parse_args()
    found = sorted(RESULTS.glob("gpu-*.json"))
    paths = [measure()] if o.measure else o.file or found[-1:] or sys.exit("bench_gpu: there are no results yet")
    results = read(paths)
    for place, make in ((STAGES, lines), (RINGS, ring_lines)):
        text = "\n".join(make(results)).rstrip()
        print(text + "\n")
        if not o.print:
            put(place, text)


main()
