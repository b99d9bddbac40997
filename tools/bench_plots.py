"""bench_plots.py - the results of `sluice bench link` as SVG plots, for tools/bench.py. Nothing but the standard
library: a plot is a few dozen lines of text, and the same results give the same bytes."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 480
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 50, 55  # margins; the legend is on the right
COLOURS = ("#0b6fb8", "#d1495b", "#2e933c", "#8d5a97", "#e08e0b", "#4a4a4a", "#1b998b", "#a05a2c", "#7a7a00", "#5b6ee1")


def powers(low, high, base):
    """Powers of a base from the last at or below low to the first at or above high."""
    first = math.floor(math.log(low, base) + 1e-9)
    last = math.ceil(math.log(high, base) - 1e-9)
    return [base ** n for n in range(first, last + 1)]


class Axis:
    """A logarithmic scale from values to pixels, with its marks."""

    def __init__(self, values, base, start, end):
        self.marks = powers(min(values), max(values), base)
        self.low, self.high = math.log(self.marks[0]), math.log(self.marks[-1])
        self.start, self.end = start, end

    def at(self, value):
        share = (math.log(value) - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)


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


def text(x, y, words, anchor="middle", size=12, more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#333" {more}>'
            f"{escape(words)}</text>")


def line(x1, y1, x2, y2, colour="#ddd", width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def frame(title, x, y, x_text, y_text, x_name, y_name, note):
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [text(LEFT, 24, title, "start", 16, 'font-weight="bold"'), text(LEFT, 41, note, "start", 11)]
    for mark in x.marks:
        parts += [line(x.at(mark), TOP, x.at(mark), bottom), text(x.at(mark), bottom + 18, x_text(mark), size=11)]
    for mark in y.marks:
        parts += [line(LEFT, y.at(mark), right, y.at(mark)), text(LEFT - 8, y.at(mark) + 4, y_text(mark), "end", 11)]
    middle = (TOP + bottom) / 2
    return parts + [text((LEFT + right) / 2, HEIGHT - 12, x_name),
                    text(18, middle, y_name, more=f'transform="rotate(-90 18 {middle:.0f})"')]


def curve(number, name, points):
    """A line with its dots and its line in the legend; what goes over the cut veth pair is dashed."""
    colour = COLOURS[number % len(COLOURS)]
    dash = ' stroke-dasharray="6 4"' if name.endswith("/cut") else ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    legend, at = TOP + 12 + 19 * number, WIDTH - RIGHT + 14
    return ([f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>']
            + [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>' for x, y in points]
            + [f'<line x1="{at}" y1="{legend}" x2="{at + 24}" y2="{legend}" stroke="{colour}" stroke-width="2"{dash}/>',
               text(at + 30, legend + 4, name, "start", 12)])


def document(parts):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
                      f'font-family="sans-serif">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', *parts,
                      "</svg>", ""])


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
        parts += curve(number, name, [(x.at(n), y.at(v)) for n, v in points])
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
        parts += curve(number, name, [(x.at(levels[i]), y.at(times[i])) for i in shown])
    return document(parts)


def write(results, folder):
    """The plots that these results are enough for; their files."""
    written = []
    for name, plot in (("bench-throughput.svg", throughput(results)), ("bench-latency.svg", latency(results))):
        if plot:
            (folder / name).write_text(plot)
            written.append(folder / name)
    return written
