#!/usr/bin/python3
"""curves_test.py - `make curves` in small: page, plots and numbers are there, and the numbers behave as they must."""
# normal build only

import json
import os
import subprocess
import sys
import xml.etree.ElementTree

from harness import ROOT, SLUICE, case, check, equal, main


@case("efficiency falls with the threshold, strong spots are all found, pedestals converge")
def _(folder):
    done = subprocess.run([sys.executable, ROOT / "tools/curves.py", "--quick", "--output", folder, "--json",
                           folder / "curves.json"], cwd=folder, env={**os.environ, "SLUICE": SLUICE}, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=200, check=False)
    equal(done.returncode, 0, f"exit status, with {done.stderr}")
    numbers = json.loads((folder / "curves.json").read_text())
    veto_behaves(numbers["veto"])
    peaks_behave(numbers["peaks"])
    pedestals_behave(numbers["pedestal"], numbers["drift"])
    page_is_filled(folder)


def veto_behaves(points):
    efficiency = {(p["threshold"], p["min_pixels"]): p["efficiency"] for p in points}
    for (threshold, pixels), value in efficiency.items():
        check(all(value >= other for (t, m), other in efficiency.items() if t >= threshold and m >= pixels),
              f"efficiency rises from threshold {threshold} and {pixels} pixels on")
    first, last = points[0], points[-1]
    check(first["efficiency"] == 1 and first["purity"] < 0.5, f"hardly a threshold keeps not everything: {first}")
    check(last["efficiency"] < 0.5, f"a high threshold keeps most: {last}")
    middle = [p for p in points if p["threshold"] == 8 and p["min_pixels"] == 5][0]
    check(middle["efficiency"] > 0.4 and middle["purity"] > 0.9, f"in between: {middle}")


def peaks_behave(curves):
    equal([c["stage"] for c in curves], ["peaks", "spots"], "stages")
    for c in curves:
        strong = [r for r in c["ranges"] if r["snr"] >= 20]
        weak = [r for r in c["ranges"] if r["snr"] < 4]
        least = 1 if c["stage"] == "peaks" else 0.8
        check(sum(r["planted"] for r in strong) >= 20, f"too few strong spots for a test: {strong}")
        found = sum(r["found"] * r["planted"] for r in strong) / sum(r["planted"] for r in strong)
        check(found > least - 1e-9, f"{c['stage']} finds {found} of the spots with an SNR of 20 or more")
        check(all(r["found"] < 0.3 for r in weak), f"{c['stage']} finds spots that nobody can: {weak}")
        check(c["false"] < 2 and c["false_wide"] < 5, f"{c['stage']} finds spots where there are none: {c}")


def pedestals_behave(pedestal, drift):
    noise = 23.9
    for window, errors in pedestal["errors"].items():
        for count, error in errors.items():
            n, w = int(count), int(window)
            expected = noise / n ** 0.5 if n <= w else max(noise / n ** 0.5, noise / (2 * w - 1) ** 0.5)
            check(abs(error / expected - 1) < 0.05, f"after {n} dark frames, with darks {w}: {error}, expected {expected}")
    values = list(pedestal["noise"].values())
    check(values == sorted(values, reverse=True), f"the noise does not get better with more dark frames: {values}")
    for rate, errors in drift.items():
        for window, error in errors.items():
            w, lag = int(window), float(rate) * int(window)
            expected = (noise ** 2 / (2 * w - 1) + lag ** 2) ** 0.5
            check(abs(error / expected - 1) < 0.1, f"drift {rate}, darks {w}: {error}, expected {expected}")


def page_is_filled(folder):
    page = (folder / "curves.md").read_text()
    equal(page.count("written by make curves -->\n\n"), 4, "places that were filled in")
    plots = sorted(folder.glob("curves-*.svg"))
    equal(len(plots), 5, "plots")
    for plot in plots:
        check(f"({plot.name})" in page, f"{plot.name} is not on the page")
        drawn = xml.etree.ElementTree.parse(plot).getroot()
        lines = drawn.findall("{http://www.w3.org/2000/svg}polyline")
        check(len(lines) >= 2 and all(len(line.get("points").split()) >= 2 for line in lines), f"{plot.name} is empty")


main()
