# SPDX-License-Identifier: MIT
"""Whether a client that lives on and on grows: its memory, descriptors and threads, by the hour."""

import os
import re
import time
from pathlib import Path

EVERY_S = 2
WARM_S = 20  # at first everything grows; memory for longer: each thread's cache in malloc fills for minutes


def slope(points):
    """Least squares: how much the second coordinate rises for each unit of the first."""
    n = len(points)
    if n < 3:
        return None
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    square = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / square if square else None


class Growth:
    def __init__(self, program):
        self.program, self.began, self.next, self.points = program, time.monotonic(), 0, []

    def sample(self):
        now = time.monotonic() - self.began
        if now < self.next:
            return
        self.next = now + EVERY_S
        at = Path("/proc", str(self.program.process.pid))
        try:
            rss = int(re.search(r"^Rss: +(\d+) kB", (at / "smaps_rollup").read_text(), re.M).group(1))
            self.points.append((now / 3600, rss, len(os.listdir(at / "fd")), len(os.listdir(at / "task"))))
        except (OSError, AttributeError):
            pass  # it is ending

    def text(self):
        half = max(WARM_S / 3600, self.points[-1][0] / 2) if self.points else 0
        slopes = [slope([(p[0], p[i]) for p in self.points if p[0] >= since])
                  for i, since in ((1, half), (2, WARM_S / 3600), (3, WARM_S / 3600))]
        if None in slopes:
            return "witness: too short to say whether it grows"
        hours, rss, fds, threads = self.points[-1]
        return (f"witness, {hours * 60:.1f} minutes: rss {slopes[0]:+.0f} kB an hour in the second half (now {rss} kB), "
                f"descriptors {slopes[1]:+.1f} an hour (now {fds}), threads {slopes[2]:+.1f} an hour (now {threads})")
