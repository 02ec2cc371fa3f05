# SPDX-License-Identifier: MIT
"""One second of a fleet, as the rows of the live table."""

from claims import MS, percentile
from processes import now_ns

SOURCES = ("cached", "loaded", "shared", "stale", "local", "near")
COUNTERS = SOURCES + ("failed", "acquired", "lost", "commands")
WINDOW_S = 2  # latencies are of the last two seconds


HEADS = (
    f"{'':9}{'requests/s':>11}{'near/s':>8}{'commands/s':>11}{'waiting':>8}{'leases':>7}{'lost':>5}{'stale':>7}{'local':>6}"
    f"{'failed':>7}"
)


def row(name, requests, near, commands, gauges, counters):
    return (
        f"{name:9}{requests:>11,}{near:>8,}{commands:>11,}{gauges.get('waiting', 0):>8,}"
        f"{counters['acquired']:>7,}{counters['lost']:>5}{counters['stale']:>7,}{counters['local']:>6,}"
        f"{counters['failed']:>7,}"
    )


class Table:
    def __init__(self, fleet, screen, title):
        self.fleet, self.screen, self.title = fleet, screen, title
        self.before = [dict.fromkeys(COUNTERS, 0) for _ in fleet.servers]

    def read(self):
        """Per server: its counters, and the requests, those answered from memory, and the commands since the last time."""
        for server in self.fleet.servers:
            server.read_stats()
        now = [{name: s.total.get(name, 0) for name in COUNTERS} for s in self.fleet.servers]
        requests = [sum(n[x] - b[x] for x in SOURCES) for n, b in zip(now, self.before)]
        near, commands = ([n[x] - b[x] for n, b in zip(now, self.before)] for x in ("near", "commands"))
        self.before = now
        return now, requests, near, commands

    def show(self, second, probes):
        fleet, screen = self.fleet, self.screen
        now, requests, near, commands = self.read()
        total = {name: sum(n[name] for n in now) for name in COUNTERS}
        gauges = {x: sum(s.gauges.get(x, 0) for s in fleet.servers) for x in ("waiting",)}
        loads, under_way = fleet.loads(), fleet.under_way() or []
        begun = sum(load.start >= now_ns() - 1000 * MS for load in loads) + len(under_way)
        recent = probes.recent(WINDOW_S)
        p50, p99 = percentile(recent, 0.5), percentile(recent, 0.99)

        rows, short = [("", None), (self.title.format(second), screen.bold)], []
        if any(server.counts for server in fleet.servers):
            rows.append((HEADS, screen.dim))
            for n, server in enumerate(fleet.servers):
                name = f"server {n + 1}"
                if server.child:
                    rows.append((row(name, requests[n], near[n], commands[n], server.gauges, now[n]), None))
                else:
                    rows.append((f"{name:9}{'killed':>11}", screen.bad))
            rows.append((row("all", sum(requests), sum(near), sum(commands), gauges, total), screen.bold))
            short += [f"{sum(requests):,} requests/s", f"{sum(near):,} of them near", f"{sum(commands):,} commands/s"]
        state = f"   {fleet.engine.away}" if fleet.is_away else ""
        rows.append((f"latency  p50 {p50:,.1f} ms, p99 {p99:,.1f} ms{state}", screen.bad if state else None))
        rows.append((f"origin   {len(loads):,} loads, {begun} of them in the last second, {len(under_way)} now", None))
        short += [f"p50 {p50:.1f} ms", f"p99 {p99:,.0f} ms", f"{len(loads):,} origin loads, {begun} in the last second"]
        screen.show(second, rows, f"{second:4} s  " + ", ".join(short))
