#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""plot.py FOLDER - draws the points of FOLDER/*.json as FOLDER/NAME.svg, one for each plot; needs nothing but python."""
import glob
import json
import math
import os
import sys
from html import escape

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 360, 76, 44, 24, 46
COLOURS = ["#0b6e99", "#c2410c", "#4d7c0f", "#7e22ce"]


def short(number):
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


def steps(top):
    """Round numbers from 0 to at least top."""
    step = 10 ** math.floor(math.log10(top or 1))
    while top / step < 4:
        step /= 2 if (top / step) * 2 >= 4 or step != round(step) else 5
    count = math.ceil(top / step)
    return [i * step for i in range(count + 1)]


def draw(name, series):
    xs = sorted({x for points in series.values() for x, _ in points})
    logarithmic = xs[0] > 0 and xs[-1] / xs[0] > 20
    ticks = steps(max(y for points in series.values() for _, y in points))
    scale = math.log10 if logarithmic else float
    low, high = scale(xs[0]), scale(xs[-1])

    def at_x(x):
        return LEFT + (scale(x) - low) / ((high - low) or 1) * (WIDTH - LEFT - RIGHT)

    def at_y(y):
        return HEIGHT - BOTTOM - y / ticks[-1] * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           f'font-size="12"><rect width="100%" height="100%" fill="#fff"/>',
           f'<text x="{LEFT}" y="20" font-size="15" font-weight="bold">{escape(name)}</text>']
    for y in ticks:
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at_y(y):.1f}" y2="{at_y(y):.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{at_y(y) + 4:.1f}" text-anchor="end">{short(y)}</text>')
    for x in xs:
        out.append(f'<text x="{at_x(x):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{short(x)}</text>')
    for number, (label, points) in enumerate(sorted(series.items())):
        colour = COLOURS[number % len(COLOURS)]
        line = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in sorted(points))
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="3" fill="{colour}"/>' for x, y in points]
        out.append(f'<text x="{LEFT + 8 + number % 2 * 270}" y="{36 + number // 2 * 14}" fill="{colour}">'
                   f'{escape(label)}</text>')
    return "\n".join(out) + "\n</svg>\n"


def main():
    folder = sys.argv[1]
    plots = {}
    for path in glob.glob(os.path.join(folder, "*.json")):
        with open(path, encoding="utf-8") as file:
            for point in json.load(file)["points"]:
                series = plots.setdefault(point["plot"], {}).setdefault(point["series"], [])
                series.append((point["x"], point["y"]))
    for name, series in plots.items():
        with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(draw(name, series))
    print(f"{len(plots)} plots in {folder}")


main()
