"""bench_plots.py - the results of `sluice bench link` as SVG plots, for tools/bench.py."""

import math

from svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, curve, document, frame


class Percentiles:
    """A scale that gives the tail room: p50, p90, p99, p99.9 are as far from each other."""

    def __init__(self, start, end):
        self.marks = (0, 0.5, 0.9, 0.99, 0.999, 0.9999)
        self.start, self.end = start, end

    def at(self, level):
        share = -math.log10(max(1 - level, 1e-4)) / 4
        return self.start + share * (self.end - self.start)


def bytes_text(n):
    for unit, size in (("Mi", 2 ** 20), ("Ki", 2 ** 10)):
        if n >= size:
            return f"{n / size:g} {unit}B"
    return f"{n:g} B"


def is_cut(name):
    """What goes over the cut veth pair is dashed."""
    return name.endswith("/cut")


def note_of(results):
    m = results["machine"]
    return (f"{m['cpu']}, {m['cores']} cores, Linux {m['kernel'].split('-')[0]}, {m['date'][:10]}, medians of {m['rounds']} rounds; "
            f"load {m['load_average']:g}")


def lengths(results):
    """By curve, what was measured at each length: rows of the sweep, and the peers' at any length."""
    curves = {}
    for row in results["rows"]:
        words = row["name"].split("/")
        cut = words[-1] == "cut"
        words = words[:-1] if cut else words
        ours = words[0] == "sluice" and words[-1] == "events"
        words = words[:-1] if ours else words
        peer = words[0] in ("zeromq", "sockets", "memcpy") and words[-1].isdigit() and words[1:2] != ["recv"]
        if row["unit"] == "GB/s" and (ours or peer):
            name = "/".join(words[:-1]) + ("/cut" if cut else "")
            curves.setdefault(name, {})[int(words[-1])] = row["value"]
    return {name: sorted(points.items()) for name, points in curves.items() if len(points) > 2}


def throughput(results):
    curves = lengths(results)
    if not curves:
        return None
    x = Axis([n for points in curves.values() for n, _ in points], 4, LEFT, WIDTH - RIGHT)
    y = Axis([v for points in curves.values() for _, v in points], 10, HEIGHT - BOTTOM, TOP)
    parts = frame("Throughput against the length of a message, each with its own event", x, y, bytes_text,
                  lambda v: f"{v:g}", "bytes of a message", "GB/s of payload", note_of(results))
    for number, (name, points) in enumerate(sorted(curves.items())):
        parts += curve(number, name, [(x.at(n), y.at(v)) for n, v in points], is_cut(name))
    return document(parts)


def latency(results):
    curves = results.get("latencies_us", {})
    levels = results.get("levels", [])
    if not curves:
        return None
    shown = [i for i, level in enumerate(levels) if level < 1]
    x = Percentiles(LEFT, WIDTH - RIGHT)
    y = Axis([times[i] for times in curves.values() for i in shown], 10, HEIGHT - BOTTOM, TOP)
    parts = frame("One-way latency of 4096 bytes, from post to visible event", x, y,
                  lambda level: "min" if level == 0 else f"p{100 * level:g}", lambda v: f"{v:g}",
                  "share of messages that were as fast or faster", "us", note_of(results))
    for number, (name, times) in enumerate(sorted(curves.items())):
        parts += curve(number, name, [(x.at(levels[i]), y.at(times[i])) for i in shown], is_cut(name))
    return document(parts)


def write(results, folder):
    """The plots that these results are enough for; their files."""
    written = []
    for name, plot in (("bench-throughput.svg", throughput(results)), ("bench-latency.svg", latency(results))):
        if plot:
            (folder / name).write_text(plot)
            written.append(folder / name)
    return written
