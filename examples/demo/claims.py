# SPDX-License-Identifier: MIT
"""What the demo claims, checked on what origin, load and probes wrote down. Pure: no processes, no clock."""

from collections import defaultdict
from dataclasses import dataclass, field
from math import ceil
from statistics import median
from typing import Optional

MS = 1_000_000  # all times are ns of CLOCK_BOOTTIME, which every process of a machine shares
HOT = "hot"


@dataclass(frozen=True)
class Load:
    """A line of the origin's log. fence 0: loaded without a lease. gone: nobody was left to take the page."""

    page: str
    pid: int
    fence: int
    start: int
    end: int
    gone: bool = False


@dataclass(frozen=True)
class Probe:
    """One request of ours. status 0: no answer. asked, made: when the page's load began and ended, as the page itself says."""

    server: int
    page: str
    start: int
    end: int
    status: int
    source: str
    asked: int = 0
    made: int = 0


@dataclass(frozen=True)
class Wrk:
    """What one wrk counted. killed: its server was killed under it."""

    server: int
    requests: int
    bad_status: int
    bad_socket: int
    killed: bool = False


@dataclass(frozen=True)
class Kill:
    pid: int
    server: int
    at: int
    back: int


@dataclass(frozen=True)
class Outage:
    """Redis was frozen, or its primary was killed. end: it is back, and its clients can know. Nobody was served from
    silent_from to silent_until, surely."""

    start: int
    end: int
    silent_from: int
    silent_until: int


@dataclass(frozen=True)
class Blow:
    start: int
    end: int


@dataclass(frozen=True)
class Forget:
    """A purge of a page: when it was asked for, and when that was answered."""

    page: str
    start: int
    end: int


@dataclass(frozen=True)
class Setup:
    ttl_ms: int
    lease_ms: int
    load_ms: int = 300
    guard_ms: int = 250
    command_ms: int = 1000
    slack_ms: int = 400  # a local load, and the thread's way to the core
    redial_ms: int = 0  # how much later than the first connection the last one may be back
    stale_ms: int = 0
    early: float = 0
    near_lag_ms: int = 0  # so long a page from a server's memory may be given out without Redis; 0: none is
    down_after_ms: Optional[int] = None  # of the sentinels: then the outage is a failover, else a freeze

    @property
    def fails_over(self):
        return self.down_after_ms is not None

    @property
    def outage(self):
        return "failover" if self.fails_over else "freeze"

    def meanwhile(self, be="is"):
        return f"while there {be} no primary" if self.fails_over else f"while Redis {be} frozen"

    @property
    def takeover_ms(self):
        """How long after the death of a loader the next load starts, at most: lease + guard + 300."""
        return self.lease_ms + 0.021 * self.lease_ms + 3 + self.guard_ms + 300


@dataclass
class Run:
    """A fleet under load, with hf_fetch or without."""

    start: int = 0
    end: int = 0
    loads: list = field(default_factory=list)
    probes: list = field(default_factory=list)
    wrks: list = field(default_factory=list)
    commands: int = 0
    lost: int = 0
    exit_codes: list = field(default_factory=list)
    kill: Optional[Kill] = None
    outage: Optional[Outage] = None
    restarts: list = field(default_factory=list)  # Blows
    forget: Optional[Forget] = None
    watched: list = field(default_factory=list)  # probes of the page that is forgotten
    empty: list = field(default_factory=list)  # probes that ask for no page: what the machine takes for any answer
    near: int = 0  # answers from the servers' memory

    @property
    def seconds(self):
        return (self.end - self.start) / 1e9

    @property
    def requests(self):
        return sum(w.requests for w in self.wrks) + len(self.probes) + len(self.watched) + len(self.empty)


@dataclass(frozen=True)
class Claim:
    text: str
    measured: str
    bound: str
    held: bool
    void: bool = False  # it did not hold, and nor did the machine


def read_log(lines):
    loads = []
    for line in lines:
        page, pid, fence, start, end, outcome = line.split()
        loads.append(Load(page, int(pid), int(fence), int(start), int(end), outcome == "gone"))
    return loads


def percentile(values, share):
    """By nearest rank; 0 of nothing."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0


def many(count, word):
    return f"{count:,} {word}" + "s" * (count != 1)


def by_page(loads):
    pages = defaultdict(list)
    for load in sorted(loads, key=lambda l: l.start):
        pages[load.page].append(load)
    return pages


def leased(run):
    return [l for l in run.loads if l.fence != 0]


def stored(run):
    """Loads under a lease whose page was not forgotten meanwhile."""
    return [l for l in leased(run) if not overtaken(l, run.forget)]


def local(run):
    return [l for l in run.loads if l.fence == 0]


def cut_off(load, kill):
    """The killed process was in the middle of this load."""
    return kill is not None and load.pid == kill.pid and load.start <= kill.at < load.end


def overtaken(load, forget):
    """Its page was forgotten meanwhile: it is not stored, and who wants the page loads it anew, at once."""
    return forget is not None and load.page == forget.page and load.start <= forget.end and load.end >= forget.start


def across_outage(load, run):
    """Redis was away while this load ran or (50 ms) was to be stored: it may not have been stored."""
    outage = run.outage
    return outage is not None and load.end + 50 * MS >= outage.start and load.start <= outage.end


def of_next_primary(load, run, setup):
    """Its lease is not the killed primary's, whose last grants the next one may not know."""
    return setup.fails_over and run.outage is not None and load.start > run.outage.silent_until


def no_overlap(run, setup):
    bad, worst, across = 0, 0, 0
    for loads in by_page(leased(run)).values():
        open_until = {False: 0, True: 0}  # before the failover, and after it
        for load in loads:
            after = of_next_primary(load, run, setup)
            across += after and load.start < open_until[False]
            if load.start < open_until[after]:
                bad, worst = bad + 1, max(worst, open_until[after] - load.start)
            if not (cut_off(load, run.kill) or overtaken(load, run.forget)):
                open_until[after] = max(open_until[after], load.end)
    count, pages = len(leased(run)), len(by_page(leased(run)))
    measured = f"{many(bad, 'overlap')} in {many(count, 'load')} of {many(pages, 'page')}"
    if bad:
        measured += f", by up to {worst / MS:.1f} ms"
    bound = "0, but for a killed loader's last load" + (", and one that a forget overtook" if run.forget else "")
    if setup.fails_over:
        measured += f", and {across} across the failover"
        bound += "; across a failover nothing is promised"
    return Claim(
        "no two loads of a page overlap, in the origin's own log", measured, bound, bad == 0 and count > 0
    )


def fences_rise(run, setup):
    bad = sum(b.fence <= a.fence for loads in by_page(leased(run)).values() for a, b in zip(loads, loads[1:]))
    return Claim(
        "each load of a page has a higher fence than the one before",
        f"{bad} that do not",
        "0",
        bad == 0 and bool(leased(run)),
    )


EARLY_LOADS = 8  # a page that is asked for e^8 times while it loads is loaded anew so many load times before its end


def few_loads(run, setup):
    lost = setup.fails_over  # a value that no replica had when the primary was killed
    apart_ms = max(setup.load_ms, setup.ttl_ms - EARLY_LOADS * setup.early * setup.load_ms)
    allowed = int(run.seconds * 1000 / apart_ms) + 1 + lost
    worst, extras, held = 0, 0, True
    for loads in by_page(leased(run)).values():
        extra = sum(cut_off(l, run.kill) or across_outage(l, run) for l in loads)
        worst, extras = max(worst, len(loads) - extra), extras + extra
        held = held and len(loads) - extra <= allowed
    text = "each page is loaded at most run / ttl + 1 times"
    if setup.early:
        text = f"each page is loaded at most run / (ttl - {EARLY_LOADS} load times) + 1 times, for early loads come before its end"
    if setup.fails_over:
        text += ", and once more if the killed primary alone had it"
    return Claim(
        text,
        f"{worst} times at most",
        f"{allowed}, besides {extras} that the kill or the {setup.outage} kept from being stored",
        held,
    )


def local_loads(run, setup):
    strays, each, outage = 0, defaultdict(int), run.outage
    for load in local(run):
        if outage and outage.start <= load.start <= outage.end + setup.command_ms * MS:
            each[load.pid, load.page] += 1
        else:
            strays += 1
    most = max(each.values(), default=0)
    measured = f"{sum(each.values())} local loads in the {setup.outage}, {most} at most per process and page"
    if strays:
        measured += f"; {strays} outside it"
    return Claim(
        f"without a lease a page is loaded only in the {setup.outage}, once per process",
        measured,
        "1, and 0 outside",
        most <= 1 and strays == 0,
    )


def takeover(run, setup):
    whose = " of a server" if setup.fails_over else ""
    text = f"after the kill -9{whose} the next load of each page that was loading starts by itself"
    cut = [l for l in leased(run) if cut_off(l, run.kill)]
    waits = []
    for load in cut:
        later = [l.start for l in run.loads if l.page == load.page and l.start > run.kill.at]
        waits.append((min(later) - run.kill.at) / MS if later else float("inf"))
    measured = (
        f"after {max(waits):,.0f} ms ({many(len(cut), 'load')} cut off)" if waits else "no load was cut off"
    )
    return Claim(
        text,
        measured,
        f"lease + guard + 300 = {setup.takeover_ms:,.0f} ms",
        bool(waits) and max(waits) <= setup.takeover_ms,
    )


def excused(probe, kill):
    return (
        kill is not None and probe.server == kill.server and probe.start <= kill.back and probe.end >= kill.at
    )


def nothing_failed(run, setup):
    failed = [p for p in run.probes if p.status != 200]
    on_killed = sum(excused(p, run.kill) for p in failed)
    failures = len(failed) - on_killed
    for wrk in run.wrks:
        failures += wrk.bad_status
        if wrk.killed:
            on_killed += wrk.bad_socket
        else:
            failures += wrk.bad_socket
    return Claim(
        "no request fails",
        f"{failures} of {run.requests:,} failed, besides {on_killed} at the killed process",
        "0",
        failures == 0 and run.requests > 0,
    )


def met_outage(run):
    """Requests begun in the outage, and those that were waiting when it began."""
    met = [p for p in run.probes if p.end >= run.outage.start and p.start <= run.outage.end]
    return [p for p in met if not excused(p, run.kill)]


def outage_answers(run, setup):
    """A load under way when the outage began may still be shared: the process has that value in hand."""
    outage, counts, bad = run.outage, defaultdict(int), 0
    under_way = {l.page for l in leased(run) if across_outage(l, run) and l.start <= outage.silent_from}
    for probe in met_outage(run):
        if probe.status == 200 and (probe.start < outage.silent_from or probe.end > outage.silent_until):
            continue  # Redis may have been asked before the outage or after it
        counts[probe.source or "none"] += 1
        allowed = {"STALE", "LOCAL"} | ({"SHARED", "LOADED"} if probe.page in under_way else set())
        allowed |= {"NEAR"} if probe.start < outage.silent_from + setup.near_lag_ms * MS else set()
        bad += probe.status != 200 or probe.source not in allowed
    seen = ", ".join(f"{n} {source}" for source, n in sorted(counts.items())) or "no answer at all"
    return Claim(
        f"{setup.meanwhile()} each answer is STALE or LOCAL",
        seen,
        "nothing else, but of loads that began before" + (f", and NEAR for {setup.near_lag_ms:,} ms" if setup.near_lag_ms else ""),
        bad == 0 and bool(counts),
    )


def outage_latency(run, setup):
    """Of those answered in it. A request that was waiting when the outage began is held up from then on."""
    begin = run.outage.start
    answered = [p for p in met_outage(run) if p.end <= run.outage.end]
    p99 = percentile([(p.end - max(p.start, begin)) / MS for p in answered], 0.99)
    bound = setup.command_ms + setup.slack_ms
    return Claim(
        f"p99 of the requests that are answered {setup.meanwhile()}",
        f"{p99:,.0f} ms of {len(answered)} probes",
        f"command_ms + {setup.slack_ms} = {bound:,} ms",
        bool(answered) and p99 < bound,
    )


def outage_held_up(run, setup):
    """A process that has never seen the page waits for Redis, for wait_ms (5 s) at most, and then loads it."""
    held_up = [(p.end - run.outage.end) / MS for p in met_outage(run) if p.end > run.outage.end]
    worst = max(held_up, default=0)
    bound = setup.load_ms + setup.redial_ms + setup.slack_ms
    redial = f" + a late dial ({setup.redial_ms:,})" if setup.redial_ms else ""
    return Claim(
        f"a request that waits for Redis is answered when the {setup.outage} is over",
        f"{len(held_up)} waited, {worst:,.0f} ms after its end at most",
        f"a load{redial} + {setup.slack_ms} = {bound:,} ms",
        worst < bound,
    )


def next_grant(run, setup):
    """Some page expires every few moments, so that leases are asked for all the time."""
    starts = [l.start for l in leased(run) if of_next_primary(l, run, setup)]
    after = (min(starts) - run.outage.start) / MS if starts else float("inf")
    bound = setup.down_after_ms + 4_000
    return Claim(
        "after the kill -9 of the primary leases are granted again by themselves",
        f"after {after:,.0f} ms" if starts else "never",
        f"down-after + 4,000 = {bound:,} ms",
        after <= bound,
    )


def loads_per_expiry(run, setup):
    """Loads of the hot page by burst: one more than half a ttl after a burst's first begins the next."""
    bursts, first = [], None
    for load in by_page(run.loads).get(HOT, []):
        if first is None or load.start - first > setup.ttl_ms * MS / 2:
            first = load.start
            bursts.append(0)
        bursts[-1] += 1
    return bursts


def stampede(run, setup):
    bursts = loads_per_expiry(run, setup)
    measured = f"{median(bursts):,.0f} in the median, {max(bursts):,} at most" if bursts else "none"
    return Claim(
        "--no-lock: loads of the hot page per expiry",
        measured,
        "10 at least, or this demo shows nothing",
        bool(bursts) and median(bursts) >= 10,
    )


def clean_exits(runs):
    codes = [code for run in runs for code in run.exit_codes]
    bad = [code for code in codes if code != 0]
    return Claim(
        "each server ends cleanly on SIGTERM",
        f"{len(codes) - len(bad)} of {len(codes)}",
        "all",
        bool(codes) and not bad,
    )


def of_fetch(run, setup):
    """What every run with hf_fetch promises."""
    each = [no_overlap, fences_rise, few_loads, takeover, local_loads, nothing_failed]
    each += [outage_answers, outage_latency, outage_held_up] + [next_grant] * setup.fails_over
    return [claim(run, setup) for claim in each]
