# SPDX-License-Identifier: MIT
"""The demo's picture: origin loads per second and latencies, with hf_fetch and without, as an SVG."""

from collections import Counter
from html import escape
from math import log10
from typing import NamedTuple

from claims import MS, Run, percentile

WIDTH, LEFT, RIGHT = 960, 76, 28
PLOT = WIDTH - LEFT - RIGHT
BLUE, SKY, ORANGE, RED, GREEN = "#2563eb", "#38bdf8", "#ea580c", "#b91c1c", "#15803d"
INK, SOFT, GRID, ICE = "#1f2937", "#6b7280", "#e5e7eb", "#e0ecff"
FONT = "'Inter','Helvetica Neue','Segoe UI','DejaVu Sans',Arial,sans-serif"


class Shown(NamedTuple):
    name: str
    run: Run


def per_second(run, loads):
    counts = Counter((load.start - run.start) // 1_000_000_000 for load in loads)
    return [counts.get(second, 0) for second in range(max(1, round(run.seconds)))]


def p99_per_second(run):
    """(middle of the second, p99 in ms) of what was asked for in each."""
    taken = {}
    for probe in run.probes:
        if probe.status == 200:
            taken.setdefault((probe.start - run.start) // 1_000_000_000, []).append((probe.end - probe.start) / MS)
    return [(second + 0.5, percentile(latencies, 0.99)) for second, latencies in sorted(taken.items())]


def step_of(highest, lines):
    """A round distance between grid lines: 1, 2 or 5 times a power of ten."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if step * factor * lines >= highest:
                return step * factor
        step *= 10


def text(x, y, words, size=13, color=INK, anchor="start", weight=400):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{escape(words)}</text>'
    )


class Panel:
    """One diagram: seconds to the right, loads per second upwards."""

    title = "origin loads per second"

    def __init__(self, top, height, seconds, highest):
        self.top, self.height, self.seconds = top, height, seconds
        self.step = step_of(highest, 5)
        self.highest = self.step * -(-highest // self.step)

    def x(self, second):
        return LEFT + PLOT * second / self.seconds

    def y(self, value):
        return self.top + self.height * (1 - value / self.highest)

    def grid(self):
        return range(0, self.highest + 1, self.step)

    def axes(self):
        out = []
        for value in self.grid():
            y = self.y(value)
            out.append(
                f'<line x1="{LEFT}" x2="{LEFT + PLOT}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="{INK if value == self.grid()[0] else GRID}" stroke-width="1"/>'
            )
            out.append(text(LEFT - 10, y + 4, f"{value:,}", 12, SOFT, "end"))
        for second in range(0, self.seconds + 1, step_of(self.seconds, 20)):
            out.append(text(self.x(second), self.top + self.height + 19, str(second), 12, SOFT, "middle"))
        middle = self.top + self.height / 2
        out.append(
            f'<g transform="rotate(-90 20 {middle:.1f})">'
            + text(20, middle, self.title, 12, SOFT, "middle")
            + "</g>"
        )
        return out

    def bars(self, counts, color, begin, share, below=()):
        """Bars of `share` of a second's width, beginning at `begin` of it, on top of those of `below`."""
        out, width = [], PLOT / self.seconds * share
        for second, count in enumerate(counts):
            if count:
                base = below[second] if below else 0
                y = self.y(base + count)
                out.append(
                    f'<rect x="{self.x(second + begin):.1f}" y="{y:.1f}" width="{width:.1f}" '
                    f'height="{self.y(base) - y:.1f}" rx="1.5" fill="{color}"/>'
                )
        return out


class LatencyPanel(Panel):
    """Milliseconds upwards, each grid line ten times the one below."""

    title = "p99 of each second, ms"

    def grid(self):
        return [10**power for power in range(0, 5)]

    def y(self, value):
        lowest, highest = self.grid()[0], self.grid()[-1]
        share = log10(min(max(value, lowest), highest) / lowest) / log10(highest / lowest)
        return self.top + self.height * (1 - share)

    def line(self, points, color):
        way = " ".join(f"{self.x(second):.1f},{self.y(value):.1f}" for second, value in points if second < self.seconds)
        return f'<polyline points="{way}" fill="none" stroke="{color}" stroke-width="2" stroke-linejoin="round"/>'


def legend(x, y, color, words):
    return [
        f'<rect x="{x}" y="{y - 10}" width="12" height="12" rx="2" fill="{color}"/>',
        text(x + 19, y, words),
    ]


def ice(panel, run, words):
    begin, end = ((at - run.start) / 1e9 for at in (run.outage.start, run.outage.end))
    return [
        f'<rect x="{panel.x(begin):.1f}" y="{panel.top}" width="{panel.x(end) - panel.x(begin):.1f}" '
        f'height="{panel.height}" fill="{ICE}"/>',
        text(panel.x((begin + end) / 2), panel.top - 8, words, 12, BLUE, "middle"),
    ]


def upright(panel, second, color, words, anchor="middle"):
    x = panel.x(second)
    return [
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{panel.top}" y2="{panel.top + panel.height}" stroke="{color}" '
        f'stroke-width="1.5" stroke-dasharray="5 4"/>',
        text(x, panel.top - 8, words, 12, color, anchor),
    ]


def marks(panel, run):
    out = upright(panel, (run.kill.at - run.start) / 1e9, RED, "loader killed")
    if run.forget:
        out += upright(panel, (run.forget.start - run.start) / 1e9, SOFT, "a page is forgotten", "start")
    if run.restarts:
        out += upright(panel, (run.restarts[0].start - run.start) / 1e9, SOFT, "graceful restarts", "start")
    return out


def all_loads(panel, shown, colors):
    share, out = 0.84 / len(shown), panel.axes()
    for n, (each, color) in enumerate(zip(shown[::-1], colors[::-1])):
        out += panel.bars(per_second(each.run, each.run.loads), color, 0.08 + n * share, share * 0.94)
    return out


def enlarged(panel, run, color, away):
    local = per_second(run, [load for load in run.loads if load.fence == 0])
    leased = [every - without_lease for every, without_lease in zip(per_second(run, run.loads), local)]
    out = ice(panel, run, away) + panel.axes()
    out += panel.bars(leased, color, 0.15, 0.7) + panel.bars(local, SKY, 0.15, 0.7, below=leased)
    return out + marks(panel, run)


def latencies(panel, shown, colors, away):
    struck = [each.run for each in shown if each.run.outage]
    out = ice(panel, struck[0], away) + panel.axes()
    for each, color in zip(shown[::-1], colors[::-1]):
        out.append(panel.line(p99_per_second(each.run), color))
    return out


def draw(shown, setup, processes, connections):
    """The first one is shown enlarged, too; the last one is without hf_fetch."""
    stops = "then the primary" if setup.fails_over else "Redis stops"
    away = "no primary" if setup.fails_over else "Redis frozen"
    colors = ([GREEN, BLUE] if len(shown) > 2 else [BLUE]) + [ORANGE]
    of_all = [per_second(each.run, each.run.loads) for each in shown]
    seconds, step = max(map(len, of_all)), PLOT / len(shown)
    both = Panel(132, 220, seconds, max(max(counts) for counts in of_all))
    close = Panel(496, 130, seconds, max(of_all[0] + [1]))
    slow = LatencyPanel(732, 170, seconds, 0)
    height = 952
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="{FONT}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        text(28, 40, "How often the origin is asked for a page, and how long requests take", 22, INK, weight=700),
        text(
            28,
            64,
            f"{processes} servers, {connections} connections, pages that live {setup.ttl_ms / 1000:g} s and take "
            f"the origin {setup.load_ms} ms each",
            13,
            SOFT,
        ),
    ]
    for n, (each, color, counts) in enumerate(zip(shown, colors, of_all)):
        out += legend(LEFT + step * n, 104, color, f"{each.name}: {sum(counts):,} loads in {len(counts)} s")
    out += all_loads(both, shown, colors)
    out.append(text(28, 424, f"{shown[0].name} alone, enlarged: a loader dies, {stops}", 15, INK, weight=600))
    out += legend(LEFT, 452, colors[0], "under a lease") + legend(LEFT + step, 452, SKY, "without one, Redis being away")
    out += enlarged(close, shown[0].run, colors[0], away)
    out.append(text(28, 694, f"The slowest request in a hundred ({setup.outage} and kill: not in the last run)", 15, INK, weight=600))
    out += latencies(slow, shown, colors, away)
    out.append(text(LEFT + PLOT / 2, height - 10, "seconds since the load began", 12, SOFT, "middle"))
    return "\n".join(out + ["</svg>", ""])
