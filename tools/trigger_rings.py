"""trigger_rings.py - rings that the stage `rings` finds beside those that the emulator made: efficiency, fakes and resolution by the
number of rings, by noise and by radius, and what a trigger on pions keeps. run() fills the tables of docs/reference/rings.md and draws its
plots; tools/trigger_curves.py is the command. Everything is drawn from seeds: the same program gives the same page, byte by byte."""

import pathlib
import re
import tempfile

import h5py
import numpy as np

import curves_runs as runs
from svg import BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Linear, curve, document, frame

PAGE = "rings.md"
MODULES, EVENTS = 4, 256
ITEMS = MODULES * EVENTS  # of a frame
FULL, QUICK = {"frames": 61}, {"frames": 3}
NOISES = (2, 6)
LEVELS = (0, 2, 4, 6, 8)  # of noise, for the first table
FEW = 20  # rings, of which no share is told
FINDABLE = 7  # hits of a ring that should be found
CENTRE_MM, RADIUS_MM = 25, 20  # a found ring is a true one when it is as near
X, Y, R, HITS, RMS, MATCH = range(1, 7)  # columns of the result, after the event
CHOICES, DEFAULT = ((5, 4), (6, 4), (6, 5), (7, 5), (8, 6)), (6, 4)
RADII = (60, 80, 100, 120, 140, 160, 170, 180, 190)
PARTICLES = ("electron", "muon", "pion")


def acquire(folder, frames, noise, mix=(0.3334, 0.3333), **options):
    """True rings and found rings of all events, each sorted by its event: (event, columns) twice, and the counts of the stage."""
    detector = {"kind": "rich", "modules": MODULES, "events": EVENTS, "frames": frames, "pool": frames | 1, "seed": 3,
                "noise_hits": noise, "two_rings": mix[0], "three_rings": mix[1]}
    runs.acquire(folder, detector, [{"rings": {"min_rings": 0, **options}}], ["score", {"nexus": {"path": "run.nxs", "dataset": "raw", "overwrite": True}}])
    with h5py.File(folder / "truth.h5") as truth, h5py.File(folder / "run.nxs") as file:
        columns = {name: item[()] for name, item in truth["truth/table"].items()}
        number = np.repeat(np.arange(frames), truth["truth/count"][()].astype(int))
        columns["event"] = columns["event"].astype(int) + ITEMS * number
        results = file["entry/results"]
        rows, counts = results["rings"][()].astype(float), results["rings_found"][()].sum(axis=0)
        event = rows[:, 0].astype(int) + ITEMS * np.repeat(np.arange(frames), results["rings_rows"][()].astype(int))
    if counts[0] != len(rows) + counts[5] or counts[1:6].sum() != frames * ITEMS:
        raise SystemExit("trigger: rings are missing in the file")
    return columns, (event, rows), counts


def pair(known, found):
    """Of each true ring the number of the found one that is it, or -1: pairs by their distance, the nearest first."""
    event, rows = found
    ends = np.searchsorted(event, [known["event"], known["event"] + 1])
    partner = np.full(len(known["event"]), -1)
    pairs = []
    for i, (first, last) in enumerate(ends.T):
        for k in range(first, last):
            centre = np.hypot(rows[k, X] - known["x"][i], rows[k, Y] - known["y"][i]) / CENTRE_MM
            radius = abs(rows[k, R] - known["radius"][i]) / RADIUS_MM
            if centre < 1 and radius < 1:
                pairs.append((centre ** 2 + radius ** 2, i, k))
    taken = np.zeros(len(rows), bool)
    for _, i, k in sorted(pairs):
        if partner[i] < 0 and not taken[k]:
            partner[i] = k
            taken[k] = True
    return partner, taken


class Sample:
    """One run, its true rings beside the found ones."""

    def __init__(self, folder, frames, noise, **options):
        self.known, self.found, self.counts = acquire(folder, frames, noise, **options)
        self.partner, self.taken = pair(self.known, self.found)
        self.true_count = np.bincount(self.known["event"], minlength=frames * ITEMS)
        self.found_count = np.bincount(self.found[0], minlength=frames * ITEMS)
        self.findable = self.known["hits"] >= FINDABLE
        self.of = self.true_count[self.known["event"]]  # rings of the event that a true ring is in
        for n in (1, 2, 3):
            events, mine = self.true_count == n, self.findable & (self.of == n)
            runs.agree(folder, {f"rings{n}_events": events.sum(), f"rings{n}_findable": mine.sum(),
                                f"rings{n}_found": (mine & (self.partner >= 0)).sum(),
                                f"rings{n}_fakes": (~self.taken & events[self.found[0]]).sum(),
                                f"rings{n}_counted": (self.found_count[events] == n).sum()})

    def off(self, chosen):
        """Of the chosen true rings that were found: (radius, x, y) found less true."""
        i = np.flatnonzero(chosen & (self.partner >= 0))
        rows = self.found[1][self.partner[i]]
        return rows[:, R] - self.known["radius"][i], rows[:, X] - self.known["x"][i], rows[:, Y] - self.known["y"][i]

    def efficiency(self, chosen):
        return float((self.partner[chosen] >= 0).mean()) if chosen.sum() >= FEW else None


def core(values):
    """Half of the range that holds the middle 68 %."""
    return float((np.quantile(values, 0.84) - np.quantile(values, 0.16)) / 2) if len(values) >= FEW else None


def share(value):
    return "-" if value is None else f"{100 * value:.1f} %"


def length(value):
    return "-" if value is None else f"{value:.2f}"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def draw(lines, x, y):
    parts = []
    for number, (name, points, more) in enumerate(lines):
        parts += curve(number, name, [(x.at(a), y.at(b)) for a, b in points if b is not None], **more)
    return parts


def row_of(sample, rings):
    """What is known of events with so many true rings."""
    chosen = sample.findable & (sample.of == rings)
    events = sample.true_count == rings
    made = events[sample.found[0]]
    radius, x, y = sample.off(chosen)
    return {"events": int(events.sum()), "findable": float(sample.findable[sample.of == rings].mean()),
            "efficiency": sample.efficiency(chosen), "fakes": float((~sample.taken[made]).mean()),
            "counted": float((sample.found_count[events] == rings).mean()),
            "radius": core(radius), "radius_rms": float(np.sqrt((radius ** 2).mean())), "centre": core(np.concatenate([x, y])),
            "centre_rms": float(np.sqrt((np.concatenate([x, y]) ** 2).mean()))}


def numbers_of_rings(_, samples):
    numbers = [{"noise": noise, "rings": n, **row_of(samples[noise], n)} for noise in LEVELS for n in (1, 2, 3)]
    rows = [[f"{r['noise']}", r["rings"], share(r["findable"]), share(r["efficiency"]), share(r["fakes"]), share(r["counted"]),
             f"{length(r['radius'])}, {length(r['radius_rms'])}", f"{length(r['centre'])}, {length(r['centre_rms'])}"]
            for r in numbers]
    head = ["noise (hits)", "rings", "findable", "found of these", "fakes in what is found", "as many as true",
            "radius: core, RMS (mm)", "x, y: core, RMS (mm)"]
    x, y = Linear(LEVELS, LEFT, WIDTH - RIGHT), Linear((0, 0.2, 0.4, 0.6, 0.8, 1), HEIGHT - BOTTOM, TOP + 8)
    lines = [(f"{name}, {n} rings" if n > 1 else f"{name}, 1 ring", [(r["noise"], r[key]) for r in numbers if r["rings"] == n],
              {"colour": COLOURS[n - 1], "dashed": key == "fakes"})
             for key, name in (("efficiency", "found"), ("fakes", "fakes")) for n in (1, 2, 3)]
    note = f"solid: of true rings with {FINDABLE} hits or more, found; dashed: of what is found, fakes"
    plot = document(frame("rings: efficiency and fakes against noise", x, y, lambda v: f"{v:g}", lambda v: f"{v:.1f}",
                          "hits of noise, mean of an event", "share", note) + draw(lines, x, y))
    return table(head, rows), {"rings-noise.svg": plot}, numbers


def by_radius(_, samples):
    sample, middles = samples[NOISES[0]], [(a + b) / 2 for a, b in zip(RADII, RADII[1:])]
    numbers = []
    for low, high in zip(RADII, RADII[1:]):
        inside = (sample.known["radius"] >= low) & (sample.known["radius"] < high)
        for n in (1, 2, 3):
            all_of = inside & (sample.of == n)
            radius, x, y = sample.off(all_of & sample.findable)
            numbers.append({"from": low, "to": high, "rings": n, "true": int(all_of.sum()), "all": sample.efficiency(all_of),
                            "findable": sample.efficiency(all_of & sample.findable), "radius": core(radius),
                            "centre": core(np.concatenate([x, y])) if len(x) >= FEW else None})
    x, y = Linear((60, 80, 100, 120, 140, 160, 180, 200), LEFT, WIDTH - RIGHT), Linear((0, 0.2, 0.4, 0.6, 0.8, 1), HEIGHT - BOTTOM, TOP + 8)
    lines = [(f"{name}, {n} rings" if n > 1 else f"{name}, 1 ring", list(zip(middles, [r[key] for r in numbers if r["rings"] == n])),
              {"colour": COLOURS[n - 1], "dashed": key == "all"})
             for key, name in (("findable", f"{FINDABLE} hits or more"), ("all", "all")) for n in (1, 2, 3)]
    note = f"noise of {NOISES[0]} hits an event; solid: of true rings with {FINDABLE} hits or more, dashed: of all"
    plot = document(frame("rings: share of the true rings that are found", x, y, lambda v: f"{v:g}", lambda v: f"{v:.1f}",
                          "radius of the true ring (mm)", "share found", note) + draw(lines, x, y))
    z = Linear((0, 1, 2, 3, 4, 5, 6, 7), HEIGHT - BOTTOM, TOP + 8)
    lines = [(f"{name}, {n} rings" if n > 1 else f"{name}, 1 ring", list(zip(middles, [r[key] for r in numbers if r["rings"] == n])),
              {"colour": COLOURS[n - 1], "dashed": key == "centre"})
             for key, name in (("radius", "radius"), ("centre", "x, y")) for n in (1, 2, 3)]
    plot_off = document(frame("rings: resolution against the radius", x, z, lambda v: f"{v:g}", lambda v: f"{v:g}",
                              "radius of the true ring (mm)", "found less true: half of the middle 68 % (mm)",
                              f"noise of {NOISES[0]} hits an event; rings with {FINDABLE} hits or more") + draw(lines, x, z))
    rows = [[f"{low} to {high}", *(f"{share(r['all'])}, {share(r['findable'])}, {length(r['radius'])}"
                                   for r in numbers if r["from"] == low)]
            for low, high in zip(RADII, RADII[1:])]
    head = ["radius (mm)", *(f"{n} ring{'s' * (n > 1)}: found of all, of those with {FINDABLE} hits; radius (mm)" for n in (1, 2, 3))]
    return table(head, rows), {"rings-efficiency.svg": plot, "rings-resolution.svg": plot_off}, numbers


def by_choice(folder, settings, samples):
    """Other numbers of hits than the default."""
    numbers, rows = [], []
    for hits, own in CHOICES:
        for noise in NOISES:
            chosen = samples[noise] if (hits, own) == DEFAULT else Sample(folder, settings["frames"], noise, min_hits=hits, min_own=own)
            numbers += [{"min_hits": hits, "min_own": own, "noise": noise, "rings": n, **row_of(chosen, n)} for n in (1, 2, 3)]
            some = numbers[-3:]
            rows.append([f"`min_hits: {hits}`, `min_own: {own}`", noise, *(share(r["efficiency"]) for r in some),
                         *(share(r["fakes"]) for r in some)])
    return table(["", "noise (hits)", *(f"found, {n}" for n in ("1 ring", "2 rings", "3 rings")),
                  *(f"fakes, {n}" for n in ("1 ring", "2 rings", "3 rings"))], rows), {}, numbers


def by_particle(folder, settings):
    """What a trigger keeps that wants one ring, of a pion of 15 to 35 GeV: events with one true ring."""
    sample = Sample(folder, settings["frames"], NOISES[0], mix=(0, 0), particle="pion", momentum_min_GeV=15, momentum_max_GeV=35)
    event, rows = sample.found
    match = np.zeros(len(sample.true_count), bool)
    match[event[rows[:, MATCH] == 1]] = True
    keep = match & (sample.found_count == 1)
    kept, p, kind = keep[sample.known["event"]], sample.known["momentum"], sample.known["particle"]
    edges, numbers, cells = (10, 15, 20, 25, 30, 35, 40, 50, 60, 75), [], []
    for low, high in zip(edges, edges[1:]):
        row = [f"{low} to {high}"]
        for number, name in enumerate(PARTICLES):
            chosen = (kind == number) & (p >= low) & (p < high)
            value = float(kept[chosen].mean()) if chosen.sum() >= 20 else None
            numbers.append({"particle": name, "from": low, "to": high, "events": int(chosen.sum()), "kept": value})
            row.append(share(value))
        cells.append(row)
    return table(["momentum (GeV/c)", *(f"{name}s kept" for name in PARTICLES)], cells), {}, numbers


def fill(page, name, text):
    """The page with this text between the markers of that name."""
    begin, end = f"<!-- rings {name}: written by tools/trigger_curves.py -->", "<!-- end of rings -->"
    pattern = re.compile(re.escape(begin) + r"\n.*?" + re.escape(end), re.S)
    if not pattern.search(page):
        raise SystemExit(f"trigger: {PAGE} has no place for '{name}'")
    return pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page)


def run(output, quick=False):
    """Page and plots into that folder; the numbers."""
    settings, page, numbers = QUICK if quick else FULL, (runs.ROOT / "docs/reference" / PAGE).read_text(), {}
    with tempfile.TemporaryDirectory(prefix="trigger-") as name:
        folder = pathlib.Path(name)
        print("trigger: rings", flush=True)
        samples = {noise: Sample(folder, settings["frames"], noise) for noise in sorted({*LEVELS, *NOISES})}
        parts = {"numbers": numbers_of_rings(settings, samples), "radius": by_radius(settings, samples),
                 "choice": by_choice(folder, settings, samples), "particle": by_particle(folder, settings)}
    for part, (text, plots, numbers[part]) in parts.items():
        page = fill(page, part, text)
        for file, plot in plots.items():
            (output / file).write_text(plot)
    (output / PAGE).write_text(page)
    return numbers
