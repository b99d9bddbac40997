#!/usr/bin/python3
"""bench_gpu.py - what `sluice bench gpu` measured, as a table of docs/accelerators.md.

  tools/bench_gpu.py --measure      on a host with an NVIDIA GPU: bench/results/gpu-DATE.json, 2 minutes; then the table
  tools/bench_gpu.py                the table, from the youngest of bench/results/gpu-*.json
  tools/bench_gpu.py FILE --print   shows the table of that file

The table stands between the lines `<!-- figures: written by tools/bench_gpu.py -->` and `<!-- end of figures -->`.
"""

import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/accelerators.md"
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
    device = next(iter(rows.values()))["device"]
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


def measure():
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"gpu-{datetime.date.today()}.json"
    subprocess.run([ROOT / "build/sluice", "bench", "gpu", "--only", "cuda/*", "--rounds", "5", "--json", path], check=True)
    return path


def put(text):
    document = DOCUMENT.read_text()
    pattern = re.compile(r"(<!-- figures: written by tools/bench_gpu.py -->\n).*?(<!-- end of figures -->)", re.S)
    if not pattern.search(document):
        sys.exit(f"bench_gpu: {DOCUMENT} has no place for figures")
    DOCUMENT.write_text(pattern.sub(lambda match: match[1] + text + "\n" + match[2], document))


def main():
    parser = argparse.ArgumentParser(description="the table of accelerators")
    parser.add_argument("file", nargs="?", type=pathlib.Path)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--print", action="store_true")
    o = parser.parse_args()
    found = sorted(RESULTS.glob("gpu-*.json"))
    path = measure() if o.measure else o.file or (found[-1] if found else sys.exit("bench_gpu: there are no results yet"))
    text = "\n".join(lines(json.loads(path.read_text())))
    print(text)
    if not o.print:
        put(text)


main()
