#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""plot.py FOLDER - draws the points of FOLDER/*.json as FOLDER/NAME.svg, one for each plot; needs nothing but python.

The same points make the same file: coordinates are rounded, nothing has a date. Line and text colours can be read on
white and on black, and there is no background.
"""
import glob
import json
import math
import os
import sys
from html import escape

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 400, 82, 48, 190, 58
COLOURS = ["#2a8fbd", "#d9662b", "#5f9e1f", "#a35fd0"]
INK, GRID = "#7d8590", "#7d859055"

# title, x axis, y axis, y logarithmic, goal lines: (y, words)
PLOTS = {
    "threads": ("A lock of its own for each thread", "threads", "pairs a second", False, []),
    "hits": ("Hits of hf_fetch, 4 kB", "threads", "hits a second", False, []),
    "names": ("64 threads take any of so many names", "names", "pairs a second", True, []),
    "processes": ("Processes of 16 threads on one lock", "processes", "sections a second", True, []),
    "held-cpu": ("Keeping leases of 9 s", "held leases", "% of a core", True, []),
    "held-memory": ("Memory of held leases", "held leases", "bytes a lease", False, [(700, "goal: at most 700")]),
    "waiters": ("Threads of one process on one lock", "threads", "sections a second", True, []),
    "distance": ("A server that is further away", "round trip, ms", "pairs a second", False, []),
    "values": ("Hits of hf_fetch", "size of the value", "hits a second", True, []),
}


# Endings of a plot's name, and what they add to its title.
KINDS = {"-apart": "pinned apart", "-one-cpu": "all on one CPU", "-busy": "every CPU busy", "-dear": "dear wake-ups"}


def about(name):
    """Of PLOTS, with what the name's endings say in the title."""
    added = []
    for ending, words in reversed(KINDS.items()):
        if name.endswith(ending):
            name = name[:-len(ending)]
            added.insert(0, words)
    title, *rest = PLOTS.get(name, (name, "", "", False, []))
    return ", ".join([title] + added), *rest


def short(number):
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


def in_bytes(number):
    for size, letter in ((1 << 20, "MB"), (1 << 10, "kB")):
        if number >= size:
            return f"{number / size:g} {letter}"
    return f"{number:g} B"


def round_steps(top):
    """From 0 to at least top, four to eight of 1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(top / 4))
    step = next(power * size for size in (1, 2, 5, 10) if power * size * 8 >= top)
    return [i * step for i in range(math.ceil(top / step) + 1)]


def powers(low, high):
    return [10.0 ** i for i in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def apart(places, least, bottom):
    """The places, from top to bottom, moved until they are at least so far apart and none is below the bottom."""
    order = sorted(places, key=lambda key: (places[key], key))
    out, edge = dict(places), -1e9
    for key in order:
        edge = out[key] = max(out[key], edge + least)
    edge = bottom + least
    for key in reversed(order):
        edge = out[key] = min(out[key], edge - least)
    return out


def draw(name, series):
    title, x_words, y_words, y_log, goals = about(name)
    series = {label: sorted(points) for label, points in series.items()}
    xs = sorted({x for points in series.values() for x, _ in points})
    ys = [y for points in series.values() for _, y in points if y > 0 or not y_log] + [y for y, _ in goals]
    x_log = xs[0] > 0 and xs[-1] / xs[0] >= 16
    ticks = powers(min(ys), max(ys)) if y_log else round_steps(max(ys))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def at(value, low, high, log, begin, end):
        if log:
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
        return begin + (value - low) / ((high - low) or 1) * (end - begin)

    def at_x(x):
        return round(at(x, xs[0], xs[-1], x_log, LEFT + 12, right - 12), 1)

    def at_y(y):
        return round(at(y, ticks[0], ticks[-1], y_log, bottom, TOP), 1)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" fill="{INK}" '
           f'font-family="system-ui, sans-serif" font-size="13">',
           f"<title>{escape(title)}</title>",
           f'<text x="{LEFT}" y="24" font-size="17" font-weight="600">{escape(title)}</text>']
    for y in ticks:
        out.append(f'<line x1="{LEFT}" x2="{right}" y1="{at_y(y)}" y2="{at_y(y)}" stroke="{GRID}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{at_y(y) + 4:.1f}" text-anchor="end">{short(y)}</text>')
    last = -1e9
    for x in xs:
        if at_x(x) - last >= 34: # else the words would touch
            words = in_bytes(x) if name.startswith("values") else short(x)
            out.append(f'<text x="{at_x(x)}" y="{bottom + 20}" text-anchor="middle">{words}</text>')
            last = at_x(x)
    out.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_words)}</text>')
    out.append(f'<text transform="translate(20 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
               f'{escape(y_words)}</text>')
    for y, words in goals:
        out.append(f'<line x1="{LEFT}" x2="{right}" y1="{at_y(y)}" y2="{at_y(y)}" stroke="{INK}" '
                   f'stroke-dasharray="6 4"/>')
        out.append(f'<text x="{LEFT + 8}" y="{at_y(y) - 6:.1f}" font-size="12">{escape(words)}</text>')
    labels = apart({label: at_y(points[-1][1]) + 4 for label, points in series.items()},
                   34 if any(", " in label for label in series) else 18, bottom)
    for number, label in enumerate(sorted(series, key=lambda label: (not label.startswith(("Holdfast", "hf_")), label))):
        points = series[label]
        colour = COLOURS[number % len(COLOURS)]
        points = [(at_x(x), at_y(y)) for x, y in points if y > 0 or not y_log]
        line = " ".join(f"{x},{y}" for x, y in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.5" '
                   f'stroke-linejoin="round"/>')
        out += [f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>' for x, y in points]
        for row, words in enumerate(label.split(", ", 1)):
            out.append(f'<text x="{right + 10}" y="{labels[label] + 14 * row:.1f}" fill="{colour}" '
                       f'font-weight="600">{escape(words)}</text>')
    return "\n".join(out) + "\n</svg>\n"


def main():
    folder = sys.argv[1]
    plots = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path, encoding="utf-8") as file:
            for point in json.load(file)["points"]:
                series = plots.setdefault(point["plot"], {}).setdefault(point["series"], [])
                series.append((point["x"], point["y"]))
    for name, series in plots.items():
        with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(draw(name, series))
    if plots:
        print(f"{len(plots)} plots in {folder}: {' '.join(sorted(plots))}")


main()
