# SPDX-License-Identifier: MIT
"""What the demo claims of Apache besides what claims.py checks. Pure: no processes, no clock."""

from dataclasses import dataclass, replace

import claims
from claims import MS, Claim, percentile

WARM_UP_MS = 2000
AFTER_MS = 1500  # a blow is over so long after it


@dataclass(frozen=True)
class Blow:
    start: int
    end: int


def blows(run, restarts):
    found = [Blow(kill.at, kill.back) for kill in [run.kill] if kill] + list(restarts)
    return found + [Blow(outage.start, outage.end) for outage in [run.outage] if outage]


def warm(run, restarts):
    """Probes after the warm-up, and not in a blow."""
    struck = blows(run, restarts)
    return [
        p
        for p in run.probes
        if p.start >= run.start + WARM_UP_MS * MS
        and all(p.end < blow.start or p.start > blow.end + AFTER_MS * MS for blow in struck)
    ]


def fast(run, restarts, bound_ms):
    calm = [(p.end - p.start) / MS for p in warm(run, restarts)]
    p99 = percentile(calm, 0.99)
    return Claim(
        "after the warm-up and besides the blows, p99 of all requests",
        f"{p99:.1f} ms of {len(calm):,} probes",
        f"{bound_ms} ms",
        bool(calm) and p99 < bound_ms,
    )


def few_commands(run, bound=0.1):
    each = run.commands / run.requests if run.requests else float("inf")
    return Claim("commands sent to Redis per request", f"{each:.3f}", f"{bound}", 0 < each <= bound)


def restarted(restarts, wanted):
    """That no request failed meanwhile is claims.nothing_failed's."""
    return Claim(
        "servers are restarted gracefully under load", f"{len(restarts)} times", f"{wanted}", len(restarts) >= wanted
    )


def nothing_left(processes, keys):
    """After the end of all servers."""
    return Claim(
        "the servers leave no process, and no lock",
        f"{len(processes)} processes, {len(keys)} locks",
        "none",
        not processes and not keys,
    )


def no_slower(pairs, bound):
    """pairs: CPU time of a request for a page that is never kept, with the module and without, measured in turns."""
    with_it, without = (percentile(costs, 0.25) * 1e6 for costs in zip(*pairs)) if pairs else (0, 0)
    ratio = with_it / without if without else float("inf")
    return Claim(
        "a page that may not be kept costs what it costs without the module",
        f"{ratio:.3f} times the CPU, {with_it:.1f} us against {without:.1f}, lower quartiles of {len(pairs)} turns",
        f"{bound}",
        ratio <= bound,
    )


def check(with_module, without, setup, restarts, wanted, bound_ms):
    common = [c for c in claims.check(with_module, without, setup) if not c.text.startswith("--no-lock")]
    more = [fast(with_module, restarts, bound_ms), few_commands(with_module), restarted(restarts, wanted)]
    bursts = claims.stampede(without, setup)
    return common + more + [replace(bursts, text=bursts.text.replace("--no-lock", "without the module"))]
