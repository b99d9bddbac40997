"""svg.py - plots as SVG, for bench_plots.py and curves.py. Nothing but the standard library: a plot is a few dozen
lines of text, and the same results give the same bytes. White behind everything, so that pages may be dark."""

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
    """A logarithmic scale from values to pixels, with its marks: powers of a base, or those given."""

    def __init__(self, values, base, start, end, marks=None):
        self.marks = marks or powers(min(values), max(values), base)
        self.low, self.high = math.log(self.marks[0]), math.log(self.marks[-1])
        self.start, self.end = start, end

    def at(self, value):
        share = (math.log(value) - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)


class Linear:
    """A linear scale from the first mark to the last."""

    def __init__(self, marks, start, end):
        self.marks, self.start, self.end = marks, start, end

    def at(self, value):
        share = (value - self.marks[0]) / (self.marks[-1] - self.marks[0])
        return self.start + share * (self.end - self.start)


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


def curve(number, name, points, dashed=False, colour=None, dots=True):
    """A line with its dots and its line in the legend, which is the number-th there."""
    colour = colour or COLOURS[number % len(COLOURS)]
    dash = ' stroke-dasharray="6 4"' if dashed else ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    legend, at = TOP + 12 + 19 * number, WIDTH - RIGHT + 14
    return ([f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>']
            + [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>' for x, y in points if dots]
            + [f'<line x1="{at}" y1="{legend}" x2="{at + 24}" y2="{legend}" stroke="{colour}" stroke-width="2"{dash}/>',
               text(at + 30, legend + 4, name, "start", 12)])


def document(parts):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
                      f'font-family="sans-serif">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', *parts,
                      "</svg>", ""])
