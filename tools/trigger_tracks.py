"""trigger_tracks.py - tracks that the stage `tracks` finds beside those that the emulator made: efficiency, fakes and duplicates
against pile-up and momentum, for each shape of cells. run() fills the tables of docs/reference/tracks.md and draws its plots; tools/trigger_curves.py
is the command. Everything is drawn from seeds: the same program gives the same page, byte by byte."""

import pathlib
import re
import tempfile

import h5py
import numpy as np

import curves_runs as runs
from svg import BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, Linear, curve, document, frame

PAGE = "tracks.md"
SHAPES = ("rectangles", "hexagons", "one-hexagon")
K, R_T = 0.0057128451, 67.24  # as docs/reference/events.md has them
EVENT, SECTOR, X, PHI0, PHI_T, LAYERS, STUBS, LISTED, COLUMN, ROW, Z0, COT, CHI2 = range(13)
CHAINS = {  # what is done with the map's cells; each step is added to those before it
    "cells": {"unique": "keep", "bend": 0},
    "duplicates taken out": {"bend": 0},
    "and bends within 3 deviations": {},
    "and a helix fitted": {"fit": True},
}
FULL = {"events": 61, "pile_ups": (20, 60, 100, 140, 200, 250), "many": 241}
QUICK = {"events": 3, "pile_ups": (20, 140), "many": 5}
PT_EDGES = (3, 3.5, 4, 5, 6, 8, 12, 20, 100.1)
BENT = 8  # ranges of |q/pT| that fakes are counted in, each two columns of the map wide
ON_TRACK = 4  # layers: a candidate with stubs of one track in so many is that track


def acquire(folder, events, pile_up, **options):
    """[(candidates, their stubs' candidate and layer and phi and r and z, true tracks)] of each event."""
    stage = {"min_tracks": 0, "max_tracks": 60000, "sector_tracks": 1024, **options}
    detector = {"kind": "tracker", "modules": 32, "events": 1, "frames": events, "pool": events | 1, "pile_up": pile_up, "seed": 5}
    runs.acquire(folder, detector, [{"tracks": stage}], ["score", {"nexus": {"path": "run.nxs", "dataset": "raw", "overwrite": True}}],
                 ring={"slots": 16})
    with h5py.File(folder / "truth.h5") as truth, h5py.File(folder / "run.nxs") as file:
        columns = {name: item[()] for name, item in truth["truth/table"].items()}
        first, count = truth["truth/first_row"][()], truth["truth/count"][()]
        results = file["entry/results"]
        found = results["tracks_found"][()][:, 0]
        if found[:, 4].any() or found[:, 5].any():
            raise SystemExit("trigger: more candidates than there was room for")
        ends = [np.concatenate([[0], np.cumsum(results[f"{name}_rows"][()].astype(int))]) for name in ("tracks", "tracks_stubs")]
        for i in range(events):
            rows = results["tracks"][ends[0][i]:ends[0][i + 1]]
            stubs = results["tracks_stubs"][ends[1][i]:ends[1][i + 1]]
            known = {name: values[first[i]:first[i] + count[i]] for name, values in columns.items()}
            yield rows, unpack(file["entry/data/data"][i], rows, stubs), known


def unpack(block, rows, stubs):
    """Of each listed stub: its candidate, layer, phi around the circle, r, z."""
    owner = np.repeat(np.arange(len(rows)), rows[:, LISTED].astype(int))
    sector = rows[owner, SECTOR].astype(int)
    bytes_of = np.zeros((len(stubs), 8), np.uint8)
    bytes_of[:, :6] = block.reshape(-1, 160, 6)[sector, stubs]
    bits = bytes_of.view("<u8")[:, 0].astype(np.int64)
    phi = ((bits >> 34 & 16383 ^ 8192) - 8192) * np.pi / 65536 + (2 * (sector // 9) + 1) * np.pi / 32 - np.pi
    return owner, bits >> 1 & 7, phi, (bits >> 22 & 4095) * 0.03, ((bits >> 8 & 16383 ^ 8192) - 8192) * 0.04


def wrapped(phi):
    return (phi + np.pi) % (2 * np.pi) - np.pi


def matches(rows, stubs, known):
    """[candidates][tracks]: layers in which the candidate has a stub of that track."""
    owner, layer, phi, r, z = stubs
    layers = np.zeros((len(rows), len(known["pt"])), int)
    x = known["charge"] / known["pt"]
    sinh, at = np.sinh(known["eta"]), known["phi0"] - np.arcsin(K * R_T * x)
    for t in range(len(x)):
        near = np.abs(wrapped(rows[:, PHI_T] - at[t])) < 0.06
        chosen = near[owner]
        turn = np.arcsin(np.clip(K * r[chosen] * x[t], -1, 1))
        # Strips are 5 cm long: in r, where they lie in disks. Phi is 3 deviations and more of scattering off.
        on = (np.abs(wrapped(phi[chosen] - known["phi0"][t] + turn)) < 0.0015 + 0.02 * np.abs(x[t]))
        on &= np.abs(z[chosen] - known["z0"][t] - turn / (K * x[t]) * sinh[t]) < 3 + 3 * np.abs(sinh[t])
        bits = np.zeros(len(rows), int)
        np.bitwise_or.at(bits, owner[chosen][on], 1 << layer[chosen][on])
        layers[:, t] = sum(bits >> k & 1 for k in range(1, 8))
    return layers


def score(folder, events, pile_up, **options):
    """Sums over the events."""
    total = {"events": events, "findable": 0, "found": 0, "candidates": 0, "fakes": 0, "duplicates": 0,
             "pt": [], "seen": [], "x_off": [], "phi_off": [], "fake_x": [], "duplicate_x": []}
    for rows, stubs, known in acquire(folder, events, pile_up, **options):
        layers = matches(rows, stubs, known)
        if not len(known["pt"]):
            total["candidates"] += len(rows)
            total["fakes"] += len(rows)
            total["fake_x"] += np.abs(rows[:, X]).tolist()
            continue
        best = layers.argmax(axis=1) if len(rows) else np.zeros(0, int)
        real = layers.max(axis=1) >= ON_TRACK if len(rows) else np.zeros(0, bool)
        findable = known["sectors"] > 0
        seen = (layers >= ON_TRACK).any(axis=0) if len(rows) else np.zeros(len(findable), bool)
        total["findable"] += int(findable.sum())
        total["found"] += int((findable & seen).sum())
        total["candidates"] += len(rows)
        total["fakes"] += int((~real).sum())
        second = np.flatnonzero(real)
        second = np.delete(second, np.unique(best[second], return_index=True)[1])
        total["duplicates"] += len(second)
        total["fake_x"] += np.abs(rows[~real, X]).tolist()
        total["duplicate_x"] += np.abs(rows[second, X]).tolist()
        total["pt"] += known["pt"][findable].tolist()
        total["seen"] += seen[findable].tolist()
        total["x_off"] += (rows[real, X] - (known["charge"] / known["pt"])[best[real]]).tolist()
        total["phi_off"] += wrapped(rows[real, PHI0] - known["phi0"][best[real]]).tolist()
    runs.agree(folder, {f"tracks_{name}": total[name] for name in ("findable", "found", "fakes", "duplicates")})
    return total


def per_event(total, name):
    return total[name] / total["events"]


def efficiency(total):
    return total["found"] / max(total["findable"], 1)


def core(values):
    """Half the width of the middle 68 %."""
    return float(np.diff(np.percentile(values, (16, 84)))[0] / 2) if values else float("nan")


def table(head, rows):
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in [head, ["---"] * len(head), *rows])


def brief(value):
    return f"{value:.0f}" if value >= 10 else f"{value:.2f}"


def linear(marks):
    return Linear(list(marks), HEIGHT - BOTTOM, TOP + 8)


def counts(most):
    """A scale for numbers of an event."""
    return Axis(None, None, HEIGHT - BOTTOM, TOP, [v for v in (0.1, 1, 10, 100, 1000, 10000, 100000) if v < 10 * most])


def draw(lines, x, y):
    """What is below the scale, as zeros are below a logarithmic one, is left out."""
    return sum((curve(n, name, [(x.at(a), y.at(b)) for a, b in points if b >= y.marks[0]], colour=COLOURS[c], dashed=dashed)
                for n, (name, points, c, dashed) in enumerate(lines)), [])


# ---- the parts of the page ----

def chains(folder, settings):
    """Step by step, at pile-ups of 140 and 200."""
    rows, numbers = [], []
    for pile_up in (140, 200):
        for name, options in CHAINS.items():
            for shape in SHAPES:
                t = score(folder, settings["events"], pile_up, cells=shape, **options)
                numbers.append({"pile_up": pile_up, "chain": name, "cells": shape, "efficiency": efficiency(t),
                                **{k: per_event(t, k) for k in ("candidates", "fakes", "duplicates")},
                                "q_over_pt": core(t["x_off"]), "phi0": core(t["phi_off"])})
                n = numbers[-1]
                rows.append([pile_up, name, f"`{shape}`", f"{100 * n['efficiency']:.1f} %", f"{n['candidates']:.0f}",
                             brief(n["fakes"]), brief(n["duplicates"]), f"{1000 * n['q_over_pt']:.1f}", f"{1000 * n['phi0']:.2f}"])
    return table(["pile-up", "", "cells", "found", "candidates", "fakes", "duplicates", "q/pT off (1/TeV)", "phi off (mrad)"],
                 rows), {}, numbers


def pile_ups(folder, settings):
    """Fakes and efficiency of the map alone, duplicates taken out or not."""
    points = {(shape, p): score(folder, settings["events"], p, cells=shape, **CHAINS["cells"])
              for shape in SHAPES for p in settings["pile_ups"]}
    x = Linear([0, 50, 100, 150, 200, 250], LEFT, WIDTH - RIGHT)
    most = max(per_event(t, "fakes") for t in points.values())
    y = counts(most)
    lines = [(f"{kind}, {shape}", [(p, per_event(points[shape, p], kind)) for p in settings["pile_ups"]], i, kind != "fakes")
             for i, shape in enumerate(SHAPES) for kind in ("fakes", "duplicates")]
    note = f"cells with stubs of five layers in 32 x 32, nothing else done; {settings['events']} events each"
    plots = {"tracks-fakes.svg": document(frame("tracks: cells that are no track, and second cells of one", x, y, lambda v: f"{v:g}",
                                                lambda v: f"{v:g}", "pile-up (collisions)", "of an event", note) + draw(lines, x, y))}
    rows = []
    for p in settings["pile_ups"]:
        square = points["rectangles", p]
        row = [p]
        for shape in SHAPES:
            t = points[shape, p]
            row += [f"{100 * efficiency(t):.1f} %", brief(per_event(t, "fakes")), brief(per_event(t, "duplicates"))]
            if shape != "rectangles":
                row.append(f"{100 * (t['fakes'] / max(square['fakes'], 1) - 1):+.0f} %")
        rows.append(row)
    head = ["pile-up", "`rectangles`: found", "fakes", "duplicates"]
    for shape in SHAPES[1:]:
        head += [f"`{shape}`: found", "fakes", "duplicates", "fakes beside `rectangles`"]
    numbers = [{"cells": shape, "pile_up": p, "efficiency": efficiency(t), "fakes": per_event(t, "fakes"),
                "duplicates": per_event(t, "duplicates")} for (shape, p), t in points.items()]
    return table(head, rows), plots, numbers


def bent(total, name):
    """Of an event, in each range of |q/pT| of the candidate, from 0 to 1/3 GeV."""
    x = np.minimum(np.array(total[name]) * 3, 0.999)  # a fit may be a little beyond the map
    return (np.histogram(x, BENT, (0, 1))[0] / total["events"]).tolist()


def momentum_plots(ranges, counted, events):
    x = Axis(None, None, LEFT, WIDTH - RIGHT, [3, 5, 10, 20, 50, 100])
    lines = [(f"{name}, {shape}", [((a * b) ** 0.5, v[1]) for (n, s, a, b), v in ranges.items() if (n, s) == (name, shape)], i,
              name != "cells") for name in ("cells", "all") for i, shape in enumerate(SHAPES)]
    y = linear((0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1))
    note = "pile-up 200; of tracks with stubs of five layers in one sector; all: duplicates, bends and fit"
    found = frame("tracks: share of the tracks that are found", x, y, lambda v: f"{v:g}", lambda v: f"{v:.1f}", "pT (GeV)",
                  "share found", note) + draw(lines, x, y)
    x = Linear([k / 24 for k in range(BENT + 1)], LEFT, WIDTH - RIGHT)
    lines = [(f"{kind}, {shape}", [((k + 0.5) / 24, v) for k, v in enumerate(counted["cells", shape][kind])], i, kind != "fakes")
             for i, shape in enumerate(SHAPES) for kind in ("fakes", "duplicates")]
    y = counts(max(value for _, points, *_ in lines for _, value in points))
    note = f"cells with stubs of five layers at a pile-up of 200, nothing else done; {events} events"
    fakes = frame("tracks: fakes and duplicates against their momentum", x, y, lambda v: f"{1 / v:.3g}" if v else "inf", lambda v: f"{v:g}",
                  "pT of the cell (GeV), as 1/pT", "of an event, in each range", note) + draw(lines, x, y)
    return {"tracks-efficiency.svg": document(found), "tracks-momentum.svg": document(fakes)}


def momentum_tables(ranges, counted):
    """Efficiency by the momentum of true tracks; fakes and duplicates by their own, in four ranges that are as wide in q/pT."""
    rows = [[f"{low:g} to {high:.0f}" if high > 99 else f"{low:g} to {high:g}",
             ranges.get(("all", "rectangles", low, high), (0,))[0],
             *(f"{100 * ranges[name, shape, low, high][1]:.1f} %" if (name, shape, low, high) in ranges else "-"
               for name in ("cells", "all") for shape in SHAPES)] for low, high in zip(PT_EDGES, PT_EDGES[1:])]
    head = ["pT (GeV)", "tracks", *(f"{name}, `{shape}`" for name in ("cells", "all") for shape in SHAPES)]
    found, rows = table(head, rows), []
    for name in ("cells", "all"):
        for k, words in ((6, "3 to 4"), (4, "4 to 6"), (2, "6 to 12"), (0, "above 12")):
            values = {(shape, kind): sum(counted[name, shape][kind][k:k + 2]) for shape in SHAPES for kind in ("fakes", "duplicates")}
            rows.append([name, words, *(brief(values[shape, kind]) for shape in SHAPES for kind in ("fakes", "duplicates")),
                         f"{100 * (values['hexagons', 'fakes'] / values['rectangles', 'fakes'] - 1):+.0f} %"
                         if name == "cells" and values["rectangles", "fakes"] else ""])
    head = ["", "pT (GeV) of the candidate", *(f"`{shape}`: {kind}" for shape in SHAPES for kind in ("fakes", "duplicates")),
            "fakes of `hexagons` beside `rectangles`"]
    return f"{found}\n\nFakes and duplicates of an event:\n\n{table(head, rows)}"


def momenta(folder, settings):
    """Against momentum, at a pile-up of 200, of the map alone and of the whole chain."""
    ranges, counted, numbers = {}, {}, []
    for name, options in (("cells", CHAINS["cells"]), ("all", CHAINS["and a helix fitted"])):
        for shape in SHAPES:
            t = score(folder, settings["many"] if name == "all" else settings["events"], 200, cells=shape, **options)
            counted[name, shape] = {"fakes": bent(t, "fake_x"), "duplicates": bent(t, "duplicate_x")}
            pt, seen = np.array(t["pt"]), np.array(t["seen"], bool)
            for low, high in zip(PT_EDGES, PT_EDGES[1:]):
                chosen = (pt >= low) & (pt < high)
                if chosen.any():
                    ranges[name, shape, low, high] = int(chosen.sum()), float(seen[chosen].mean())
                    numbers.append({"chain": name, "cells": shape, "from": low, "to": high, "tracks": int(chosen.sum()),
                                    "efficiency": float(seen[chosen].mean())})
            numbers.append({"chain": name, "cells": shape, "bent": counted[name, shape]})
    return momentum_tables(ranges, counted), momentum_plots(ranges, counted, settings["events"]), numbers


PARTS = {"chains": chains, "pile-up": pile_ups, "momentum": momenta}


def fill(page, name, text):
    """The page with this text between the markers of that name."""
    begin, end = f"<!-- tracks {name}: written by tools/trigger_curves.py -->", "<!-- end of tracks -->"
    pattern = re.compile(re.escape(begin) + r"\n.*?" + re.escape(end), re.S)
    if not pattern.search(page):
        raise SystemExit(f"trigger: {PAGE} has no place for '{name}'")
    return pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page)


def run(output, quick=False):
    """Page and plots into that folder; the numbers."""
    page, numbers = (runs.ROOT / "docs/reference" / PAGE).read_text(), {}
    for name, part in PARTS.items():
        print(f"trigger: tracks, {name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="trigger-") as folder:
            text, plots, numbers[name] = part(pathlib.Path(folder), QUICK if quick else FULL)
        page = fill(page, name, text)
        for file, plot in plots.items():
            (output / file).write_text(plot)
    (output / PAGE).write_text(page)
    return numbers
