#!/usr/bin/python3
"""curves.py - how well stages do against the emulator's truth: tables and plots of docs/reference/curves.md, drawn again.

  tools/curves.py                  all of them, into docs/reference; about two minutes
  tools/curves.py --quick          few frames and few points, about ten seconds: to see that it works
  tools/curves.py --output FOLDER  page and plots into this folder instead; --json FILE: the numbers, too

Runs build/sluice (or $SLUICE) on frames of the emulator; the tables replace what stands between the markers of the
page. The same program gives the same page and the same plots, byte by byte.
"""

import argparse
import json
import pathlib
import re
import sys
import tempfile

import numpy as np

import curves_runs as runs
from svg import BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, Linear, curve, document, frame

DOCS = runs.ROOT / "docs/reference"
PAGE = "curves.md"
FULL = {
    "veto": {"frames": 301, "thresholds": (4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48)},
    "min_pixels": (1, 2, 5, 10, 20, 40, 80),
    # Photons of the background on water's ring, and of a bright spot's middle: many spots are then at the edge of
    # being found.
    "peaks": {"frames": 41, "backgrounds": ((0.8, 10), (8, 30))},
    # Beside the defaults, which are snr: 5, sigmas: 4, box: 9, wide: false.
    "scan": ({"peaks": {"snr": 4}, "spots": {"sigmas": 3}}, {"peaks": {"snr": 6}, "spots": {"sigmas": 5}},
             {"peaks": {"snr": 8}, "spots": {"box": 5}}, {"peaks": {"wide": "true"}, "spots": {"wide": "true"}}),
    "pedestals": {"counts": tuple(2 ** n for n in range(10)), "windows": (16, 64, 128)},
    "drifts": {"frames": 1024, "rates": (0, 0.02, 0.1, 0.5), "windows": (4, 8, 16, 32, 64, 128, 256)},
}
QUICK = {
    "veto": {"frames": 31, "thresholds": (5, 8, 16, 48)},
    "min_pixels": (1, 5, 20, 40),
    "peaks": {"frames": 7, "backgrounds": ((0.8, 10),)},
    "scan": (),
    "pedestals": {"counts": (1, 4, 16), "windows": (4, 128)},
    "drifts": {"frames": 64, "rates": (0, 0.5), "windows": (4, 16)},
}
SNR_EDGES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50, 100)


def plain(value):
    return f"{value:g}"


def share(value):
    return "-" if value is None else f"{value:.2f}"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def shares():
    return Linear([0, 0.2, 0.4, 0.6, 0.8, 1], HEIGHT - BOTTOM, TOP + 8)  # so that nobody runs along the edge


def across(marks):
    return Axis(None, None, LEFT, WIDTH - RIGHT, list(marks))


def draw(curves, x, y):
    """Curves of (name, [(value, value)], more of curve()); points without a value are left out."""
    parts = []
    for number, (name, points, more) in enumerate(curves):
        parts += curve(number, name, [(x.at(a), y.at(b)) for a, b in points if b is not None], **more)
    return parts


# ---- veto ----

def veto_plot(title, x, x_name, lines, note):
    """lines: (name, [(x, efficiency, purity)])."""
    curves = []
    for i, (name, points) in enumerate(lines):
        curves += [(f"efficiency, {name}", [(a, b) for a, b, _ in points], {"colour": COLOURS[i]}),
                   (f"purity, {name}", [(a, c) for a, _, c in points], {"colour": COLOURS[i], "dashed": True})]
    y = shares()
    return document(frame(title, x, y, plain, lambda v: f"{v:.1f}", x_name, "share", note) + draw(curves, x, y))


def veto(folder, settings):
    scores = runs.veto(folder, **settings["veto"])
    wanted, thresholds = settings["min_pixels"], settings["veto"]["thresholds"]
    point = {(t, m): (runs.efficiency(scores[t], m), runs.purity(scores[t], m)) for t in thresholds for m in wanted}
    hits, blanks = (len(part) for part in scores[thresholds[0]])
    note = f"{hits} weak hits and {blanks} blanks of one Jungfrau module; solid: hits kept, dashed: hits in what is kept"
    some_pixels = [m for m in (5, 20, 40) if m in wanted]
    some_thresholds = [t for t in (6, 7, 8, 16) if t in thresholds]
    plots = {
        "curves-veto-threshold.svg": veto_plot(
            "veto: efficiency and purity against the threshold", across((4, 8, 16, 32, 64)), "threshold (photons)",
            [(f"min_pixels {m}", [(t, *point[t, m]) for t in thresholds]) for m in some_pixels], note),
        "curves-veto-pixels.svg": veto_plot(
            "veto: efficiency and purity against the number of pixels", across((1, 2, 5, 10, 20, 50, 100)),
            "min_pixels (pixels)",
            [(f"threshold {t}", [(m, *point[t, m]) for m in wanted]) for t in some_thresholds], note)}
    text = (f"{hits} hits, {blanks} blanks. Of each threshold and `min_pixels`: efficiency, purity.\n\n"
            + table(["threshold (photons)", *(f"`min_pixels: {m}`" for m in wanted)],
                    [[t, *(" ".join(map(share, point[t, m])) for m in wanted)] for t in thresholds]))
    numbers = [{"threshold": t, "min_pixels": m, "efficiency": e, "purity": p} for (t, m), (e, p) in point.items()]
    return text, plots, numbers


# ---- peaks and spots ----

def binned(result, name):
    """[(mean SNR, spots, share found)] of each range of SNR, None where there are no spots."""
    snr, seen = result["snr"], result["seen"][name]
    for low, high in zip(SNR_EDGES, SNR_EDGES[1:]):
        chosen = (snr >= low) & (snr < high)
        count = int(chosen.sum())
        yield (float(snr[chosen].mean()), count, float(seen[chosen].mean())) if count else None


def scan_table(folder, settings, defaults):
    """What other thresholds do, at the highest background."""
    background, photons = settings["peaks"]["backgrounds"][-1]
    rows = []
    for options in ({name: {} for name in STAGES}, *settings["scan"]):
        result = runs.peaks(folder, settings["peaks"]["frames"], background, photons, options) if rows else defaults
        strong = result["snr"] >= 10
        rows += [[", ".join([f"`{name}`", *(f"`{key}: {value}`" for key, value in chosen.items())]),
                  share(float(result["seen"][name][strong].mean())), *(f"{n:.2f}" for n in result["false"][name])]
                 for name, chosen in options.items()]
    return table(["", "found", "false, on wide pixels", "false, elsewhere"], sorted(rows))


STAGES = ("peaks", "spots")


def peaks_plot(ranges):
    x, y = across((2, 5, 10, 20, 50, 100)), shares()
    lowest = min(b for b, _ in ranges)
    curves = [(f"{name}, background {b:g}", [(p[0], p[2]) for p in points if p],
               {"colour": COLOURS[STAGES.index(name)], "dashed": b != lowest}) for (b, name), points in ranges.items()]
    return document(frame("peaks and spots: share of the planted spots that are found", x, y, plain, lambda v: f"{v:.1f}",
                          "SNR of the planted spot: photons / sqrt(photons + those of the background in 15 pixels)",
                          "share found", "two Jungfrau modules, stages as they are by default; background in photons "
                          "of a pixel on water's ring") + draw(curves, x, y))


def found_table(ranges, backgrounds):
    rows = []
    for i, (low, high) in enumerate(zip(SNR_EDGES, SNR_EDGES[1:])):
        row = [f"{low} to {high}"]
        for b in backgrounds:
            both = [ranges[b, name][i] for name in STAGES]
            row += [both[0][1] if both[0] else 0, *(share(p and p[2]) for p in both)]
        rows.append(row)
    return table(["SNR", *(cell for b in backgrounds for cell in (f"background {b:g}: planted", "`peaks`", "`spots`"))], rows)


def peaks(folder, settings):
    frames = settings["peaks"]["frames"]
    results = {b: runs.peaks(folder, frames, b, photons, {}) for b, photons in settings["peaks"]["backgrounds"]}
    ranges = {(b, name): list(binned(results[b], name)) for b in results for name in STAGES}
    false = table(["background (photons)", "`peaks`: on wide pixels", "elsewhere", "`spots`: on wide pixels", "elsewhere"],
                  [[f"{b:g}", *(f"{n:.2f}" for name in STAGES for n in r["false"][name])] for b, r in results.items()])
    last = max(results)
    text = "\n\n".join([
        found_table(ranges, results), f"Found in a frame but not planted, mean of {frames} frames:", false,
        f"Other options, with a background of {last:g}. Found: of the spots with an SNR of 10 or more. False: in a frame.",
        scan_table(folder, settings, results[last])])
    numbers = [{"background": b, "stage": name, "false_wide": results[b]["false"][name][0],
                "false": results[b]["false"][name][1],
                "ranges": [{"snr": p[0], "planted": p[1], "found": p[2]} for p in points if p]}
               for (b, name), points in ranges.items()]
    return text, {"curves-peaks.svg": peaks_plot(ranges)}, numbers


# ---- pedestals ----

def pedestal(folder, settings):
    counts, windows = settings["pedestals"]["counts"], settings["pedestals"]["windows"]
    result = runs.pedestals(folder, counts, windows)
    line = [(n, runs.NOISE_ADU / np.sqrt(n)) for n in counts]
    curves = [(f"darks: {w}", [(n, result["errors"][w][n]) for n in counts], {}) for w in windows]
    curves += [("noise (RMS), sink calibration", list(result["noise"].items()), {"colour": COLOURS[3]}),
               ("23.9 ADU / sqrt(n)", line, {"colour": "#888", "dashed": True, "dots": False})]
    x = Axis(counts, 2, LEFT, WIDTH - RIGHT)
    y = Axis(None, None, HEIGHT - BOTTOM, TOP, [0.5, 1, 2, 5, 10, 20, 50])
    plot = document(frame("correct: error of the pedestal against the number of dark frames", x, y, plain, plain,
                          "dark frames", "RMS over pixels of measured less true (ADU)",
                          "one Jungfrau module, noise 23.9 ADU; a running mean once there were `darks` frames")
                    + draw(curves, x, y))
    text = table(["dark frames", "23.9 / sqrt(n)", *(f"`darks: {w}`" for w in windows), "noise, by the sink"],
                 [[n, f"{value:.2f}", *(f"{result['errors'][w][n]:.2f}" for w in windows),
                   f"{result['noise'][n]:.2f}" if n in result["noise"] else "-"] for n, value in line]
                 + [["any number", "0", *(f"{runs.NOISE_ADU / np.sqrt(2 * w - 1):.2f}" for w in windows), "0"]])
    return text, {"curves-pedestal.svg": plot}, result


def drift(folder, settings):
    result = runs.drifts(folder, **settings["drifts"])
    windows, frames = settings["drifts"]["windows"], settings["drifts"]["frames"]
    x = Axis(windows, 2, LEFT, WIDTH - RIGHT)
    y = Axis(None, None, HEIGHT - BOTTOM, TOP, [1, 2, 5, 10, 20, 50, 100, 200])
    curves = [(f"{rate:g} ADU a dark frame" if rate else "no drift", list(errors.items()), {})
              for rate, errors in result.items()]
    plot = document(frame("correct: error of a pedestal that drifts against the length of its mean", x, y, plain, plain,
                          "darks (frames)", "RMS over pixels of measured less true (ADU)",
                          f"after {frames} dark frames, noise 23.9 ADU") + draw(curves, x, y))
    text = table(["drift (ADU a dark frame)", *(f"`darks: {w}`" for w in windows)],
                 [[f"{rate:g}", *(f"{errors[w]:.2f}" for w in windows)] for rate, errors in result.items()])
    return text, {"curves-drift.svg": plot}, result


# ---- the page ----

PARTS = {"veto": veto, "peaks": peaks, "pedestal": pedestal, "drift": drift}


def fill(page, name, text):
    """The page with this text between the markers of that name."""
    begin, end = f"<!-- curves {name}: written by make curves -->", "<!-- end of curves -->"
    pattern = re.compile(re.escape(begin) + r"\n.*?" + re.escape(end), re.S)
    if not pattern.search(page):
        raise SystemExit(f"curves: {PAGE} has no place for '{name}'")
    return pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="few frames and few points")
    parser.add_argument("--output", type=pathlib.Path, default=DOCS, help="folder of the page and the plots (docs/reference)")
    parser.add_argument("--json", type=pathlib.Path, help="write the numbers to this file")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part of the page alone; may be repeated")
    arguments = parser.parse_args()
    if arguments.quick and arguments.output == DOCS:
        parser.error("--quick is not for docs/reference: say where to with --output")
    settings = QUICK if arguments.quick else FULL
    page, numbers = (DOCS / PAGE).read_text(), {}
    for name in arguments.only or PARTS:
        print(f"curves: {name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="curves-") as folder:
            text, plots, numbers[name] = PARTS[name](pathlib.Path(folder), settings)
        page = fill(page, name, text)
        for file, plot in plots.items():
            (arguments.output / file).write_text(plot)
    (arguments.output / PAGE).write_text(page)
    if arguments.json:
        arguments.json.write_text(json.dumps(numbers, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
