# SPDX-License-Identifier: MIT
"""The demo's picture: origin loads per second with hf_fetch and without, as an SVG."""

from collections import Counter
from html import escape

WIDTH, LEFT, RIGHT = 960, 76, 28
PLOT = WIDTH - LEFT - RIGHT
BLUE, SKY, ORANGE, RED = "#2563eb", "#38bdf8", "#ea580c", "#b91c1c"
INK, SOFT, GRID, ICE = "#1f2937", "#6b7280", "#e5e7eb", "#e0ecff"
FONT = "'Inter','Helvetica Neue','Segoe UI','DejaVu Sans',Arial,sans-serif"


def per_second(run, loads):
    counts = Counter((load.start - run.start) // 1_000_000_000 for load in loads)
    return [counts.get(second, 0) for second in range(max(1, round(run.seconds)))]


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

    def __init__(self, top, height, seconds, highest):
        self.top, self.height, self.seconds = top, height, seconds
        self.step = step_of(highest, 5)
        self.highest = self.step * -(-highest // self.step)

    def x(self, second):
        return LEFT + PLOT * second / self.seconds

    def y(self, value):
        return self.top + self.height * (1 - value / self.highest)

    def axes(self):
        out = []
        for value in range(0, self.highest + 1, self.step):
            y = self.y(value)
            out.append(
                f'<line x1="{LEFT}" x2="{LEFT + PLOT}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="{INK if value == 0 else GRID}" stroke-width="1"/>'
            )
            out.append(text(LEFT - 10, y + 4, f"{value:,}", 12, SOFT, "end"))
        for second in range(0, self.seconds + 1, step_of(self.seconds, 20)):
            out.append(text(self.x(second), self.top + self.height + 19, str(second), 12, SOFT, "middle"))
        middle = self.top + self.height / 2
        out.append(
            f'<g transform="rotate(-90 20 {middle:.1f})">'
            + text(20, middle, "origin loads per second", 12, SOFT, "middle")
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


def upright(panel, second, color, words):
    x = panel.x(second)
    return [
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{panel.top}" y2="{panel.top + panel.height}" stroke="{color}" '
        f'stroke-width="1.5" stroke-dasharray="5 4"/>',
        text(x, panel.top - 8, words, 12, color, "middle"),
    ]


def draw(with_lock, without, setup, processes, connections, names=("hf_fetch", "GET, load, SET")):
    stops = "then the primary" if setup.fails_over else "Redis stops"
    away = "no primary" if setup.fails_over else "Redis frozen"
    held, free = per_second(with_lock, with_lock.loads), per_second(without, without.loads)
    local = per_second(with_lock, [load for load in with_lock.loads if load.fence == 0])
    leased = [every - without_lease for every, without_lease in zip(held, local)]
    seconds = max(len(held), len(free))
    both = Panel(132, 250, seconds, max(held + free + [1]))
    close = Panel(524, 150, seconds, max(held + [1]))
    height = 722
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="{FONT}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        text(28, 40, "How often the fleet asks its origin for a page", 22, INK, weight=700),
        text(
            28,
            64,
            f"{processes} servers, {connections} connections, pages that live {setup.ttl_ms / 1000:g} s and take "
            f"the origin {setup.load_ms} ms each",
            13,
            SOFT,
        ),
    ]
    out += legend(LEFT, 104, ORANGE, f"{names[1]}: {sum(free):,} loads in {len(free)} s")
    out += legend(LEFT + 330, 104, BLUE, f"{names[0]}: {sum(held):,} loads in {len(held)} s")
    out += both.axes() + both.bars(free, ORANGE, 0.08, 0.42) + both.bars(held, BLUE, 0.52, 0.4)
    out.append(text(28, 452, f"{names[0]} alone, enlarged: a loader dies, {stops}", 15, INK, weight=600))
    out += legend(LEFT, 480, BLUE, "under a lease") + legend(
        LEFT + 330, 480, SKY, "without one, Redis being away"
    )
    out += ice(close, with_lock, away) + close.axes()
    out += close.bars(leased, BLUE, 0.15, 0.7) + close.bars(local, SKY, 0.15, 0.7, below=leased)
    out += upright(close, (with_lock.kill.at - with_lock.start) / 1e9, RED, "loader killed")
    out.append(text(LEFT + PLOT / 2, height - 10, "seconds since the load began", 12, SOFT, "middle"))
    return "\n".join(out + ["</svg>", ""])
