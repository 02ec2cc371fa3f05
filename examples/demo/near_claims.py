# SPDX-License-Identifier: MIT
"""What is claimed of pages that are kept in the servers' memory and loaded aside. Pure: no processes, no clock."""

from claims import MS, Blow, Claim, percentile

WARM_UP_MS = 2000
AFTER_MS = 1500  # a blow is over so long after it
COMMANDS = 0.1  # per request


def blows(run):
    found = [Blow(kill.at, kill.back) for kill in [run.kill] if kill] + run.restarts
    return found + [Blow(outage.start, outage.end) for outage in [run.outage] if outage]


def met(probe, blow):
    return probe.end >= blow.start and probe.start <= blow.end + AFTER_MS * MS


def calm(probes, run):
    """Those after the warm-up and in no blow."""
    struck = blows(run)
    return [p for p in probes if p.start >= run.start + WARM_UP_MS * MS and not any(met(p, blow) for blow in struck)]


def p99_ms(probes):
    return percentile([(p.end - p.start) / MS for p in probes], 0.99)


def fast(run, bound_ms):
    """Void where the machine takes half of the bound to answer a request that needs no page."""
    found, empty = calm(run.probes, run), calm(run.empty, run)
    p99, base = p99_ms(found), p99_ms(empty)
    measured = f"{p99:.1f} ms of {len(found):,} probes"
    if empty:
        measured += f"; of {len(empty):,} that need no page: {base:.1f} ms"
    held = bool(found) and p99 < bound_ms
    return Claim(
        "after the warm-up and besides the blows, p99 of all requests",
        measured,
        f"{bound_ms} ms",
        held,
        void=bool(found) and not held and base >= bound_ms / 2,
    )


def few_commands(run, bound=COMMANDS):
    each = run.commands / run.requests if run.requests else float("inf")
    return Claim("commands sent to Redis per request", f"{each:.3f}", f"{bound}", 0 < each <= bound)


def no_older(run, setup):
    """While Redis answers. By the stamp that the origin wrote into the page."""
    outage = [Blow(run.outage.start, run.outage.end)] if run.outage else []
    dated = [p for p in run.probes + run.watched if p.made and not any(met(p, blow) for blow in outage)]
    oldest = max(((p.start - p.made) / MS for p in dated), default=0)
    bound = setup.ttl_ms + setup.stale_ms + setup.near_lag_ms
    return Claim(
        "no page is older than ttl + stale + near_lag, by the origin's stamp in it",
        f"{oldest:,.0f} ms at most, {len(dated):,} pages",
        f"{setup.ttl_ms:,} + {setup.stale_ms:,} + {setup.near_lag_ms:,} = {bound:,} ms",
        bool(dated) and oldest <= bound,
    )


def forgotten(run, setup):
    """Old is a page whose load began before it was forgotten. Each server has to be seen giving it out of its memory before
    that, and another one after the bound."""
    forget, bound = run.forget, setup.near_lag_ms
    text = "no server gives a page out later than near_lag after it was forgotten"
    if forget is None:
        return Claim(text, "none was forgotten", f"{bound:,} ms", False)
    seen = [p for p in run.watched + run.probes if p.page == forget.page and p.status == 200]
    old = [p for p in seen if p.asked < forget.start]
    after = [p for p in old if p.start > forget.end]
    late = [p for p in after if p.start > forget.end + bound * MS]
    gave_old = {p.server for p in old if p.end < forget.start and p.source == "NEAR"}
    gave_new = {p.server for p in seen if p.start > forget.end + bound * MS and p.asked >= forget.start}
    last = max(((p.start - forget.end) / MS for p in after), default=0)
    measured = f"{len(after)} asked for later got the old one, the last of them after {last:.1f} ms" if after else "none did"
    return Claim(
        text,
        f"{measured}; {len(seen):,} answers of {len(gave_old)} servers",
        f"{bound:,} ms",
        not late and bool(gave_old) and gave_old == gave_new,
    )


def check(run, setup, bound_ms, commands=COMMANDS):
    return [fast(run, bound_ms), few_commands(run, commands), no_older(run, setup), forgotten(run, setup)]
