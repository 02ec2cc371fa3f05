#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A cache stampede and its end: a fleet of web servers, a slow origin, a killed loader, a Redis that is away."""

import argparse
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.dont_write_bytecode = True

import claims
import near_claims
import picture
from claims import HOT, MS, Forget, Kill, Outage, Run, Setup, percentile
from engines import ENGINES
from fleet import PAGES, Fleet, Way
from probes import Probes
from processes import Trouble, now_ns
from screen import Screen
from table import Table

RESTART_AFTER_S = 2
ASK_AGAIN_S = 1.15  # into the outage: the local loads are under way
LATE_S = 20


WATCHED, WATCH_S = "sale", 0.5  # the page that is forgotten, which nobody else wants; watched so long after the bound
BOUND_MS = 10  # of p99
ASIDE = Way("aside, near", ("--near", "--aside"))
HERE = Way("here")
WITHOUT = Way("GET, load, SET", ("--no-lock",))
LOGS = {ASIDE: "loads-aside.log", HERE: "loads-here.log", WITHOUT: "loads-without.log"}


class Plan:
    """Who fails when, in seconds since the load began. A short plan has short times, the lease too."""

    def __init__(self, seconds, times):
        self.long = seconds >= 40
        ours = {"ttl_ms": 3000, "lease_ms": 2000} if self.long else {"ttl_ms": 2000, "lease_ms": 1000}
        self.near_lag_ms = 1000 if self.long else 500
        self.setup = Setup(**ours, **times)
        self.kill_from, self.outage_from = (4.5, 11) if self.long else (2.5, 6)

    @property
    def outage_after_kill(self):
        return self.setup.takeover_ms / 1000 + 1


class Runs(Plan):
    """Of three runs, the first two through the same blows."""

    def __init__(self, seconds, times):
        super().__init__(seconds, times)
        here = 17 if self.long else 11
        self.seconds = {ASIDE: (seconds - here) * 2 / 3, HERE: here, WITHOUT: (seconds - here) / 3}

    def setup_of(self, way):
        if way != ASIDE:
            return self.setup
        return replace(self.setup, stale_ms=self.setup.ttl_ms, early=1, near_lag_ms=self.near_lag_ms)


class Show:
    """Runs one fleet under load, lets it suffer, and shows it."""

    def __init__(self, fleet, plan, screen, seconds):
        self.fleet, self.plan, self.screen, self.seconds = fleet, plan, screen, seconds
        self.table = Table(fleet, screen, f"{fleet.way.name}, second {{}} of {seconds:.0f}")
        self.run, self.killed, self.asked_again, self.watching = Run(), None, False, False

    def go(self, suffer):
        fleet, run = self.fleet, self.run
        for server in fleet.servers:
            server.start_load()
        run.start = now_ns()
        probes, tick = Probes(fleet.servers), 0
        while self.at() < self.seconds or (suffer and not self.is_over()):
            if suffer:
                self.suffer(probes)
            fleet.check()
            if self.at() >= tick + 1:
                tick = int(self.at())
                self.table.show(tick, probes)
            time.sleep(0.005)
        self.finish(probes)
        return run

    def at(self):
        return (now_ns() - self.run.start) / 1e9

    def is_over(self):
        """The last blow is dealt, and a second and a half have passed for what it held up; what was forgotten is surely gone."""
        outage, forget, lag_ms = self.run.outage, self.run.forget, self.fleet.setup.near_lag_ms
        if self.at() > self.seconds + LATE_S:
            raise Trouble("not every server keeps a page near" if self.watching else "no server was caught while it loads the hot page")
        if self.forgets:
            return forget is not None and now_ns() - forget.end >= lag_ms * MS + WATCH_S * 1e9
        return outage is not None and outage.end > 0 and now_ns() - outage.end >= 1_500_000_000

    @property
    def forgets(self):
        return self.fleet.way == ASIDE

    def say(self, words):
        self.screen.say(self.screen.bold(f"{self.at():6.1f} s  ") + words)

    def suffer(self, probes):
        """The next blow, if it is due: kill the hot page's loader, start it again, take Redis away, wait until it is back; and
        then forget a page."""
        fleet, run, plan = self.fleet, self.run, self.plan
        if self.killed is None:
            if self.at() >= plan.kill_from:
                self.killed = fleet.loader_of_hot(plan.setup)
                if self.killed:
                    self.kill()
        elif run.kill.back == 0:
            if now_ns() - run.kill.at >= RESTART_AFTER_S * 1e9:
                self.bring_back()
        elif run.outage is None:
            if self.at() >= max(plan.outage_from, (run.kill.at - run.start) / 1e9 + plan.outage_after_kill):
                start, silent_from, words = fleet.take_away()
                run.outage = Outage(start, 0, silent_from, silent_from)
                self.say(f"{words}; a page nobody has seen is asked for, too")
                probes.ask_once("unseen")
        elif run.outage.end == 0:
            self.wait_for_the_end(probes)
        elif self.forgets and run.forget is None:
            self.forget(probes)

    def wait_for_the_end(self, probes):
        outage = self.run.outage
        if not self.asked_again and now_ns() - outage.start >= ASK_AGAIN_S * 1e9:
            self.asked_again = True
            probes.ask_once("unseen")
        silent_until, back, words = self.fleet.look()
        self.run.outage = replace(outage, end=back, silent_until=silent_until)
        if back:
            self.say(words)

    def forget(self, probes):
        """When what the outage held up is over, and each server has been seen to have the page in its memory."""
        if now_ns() - self.run.outage.end < 1_500_000_000:
            return
        if not self.watching:
            self.watching = True
            probes.watch(WATCHED)
        elif len({probe.server for probe in probes.watched if probe.source == "NEAR"}) == len(self.fleet.servers):
            start = now_ns()
            self.fleet.servers[0].forget(WATCHED)
            self.run.forget = Forget(WATCHED, start, now_ns())
            self.say(f"/page/{WATCHED}, which each server has in its memory, is forgotten (hf_fetch_forget, at server 1)")

    def kill(self):
        server, pid, at = self.killed, self.killed.pid, now_ns()
        server.kill()
        server.end_load(killed=True)
        self.run.kill = Kill(pid, server.number, at, 0)
        self.say(f"kill -9 of server {server.number + 1} (pid {pid}) while it loads /page/{HOT}")

    def bring_back(self):
        self.killed.start()
        self.killed.start_load()
        kill = self.run.kill
        self.run.kill = Kill(kill.pid, kill.server, kill.at, now_ns())
        self.say(f"server {kill.server + 1} is back (pid {self.killed.pid})")

    def finish(self, probes):
        fleet, run = self.fleet, self.run
        for server in fleet.servers:
            server.end_load()
        probes.stop()
        run.probes, run.empty, run.watched = list(probes.taken), list(probes.empty), list(probes.watched)
        run.end = now_ns()
        for server in fleet.servers:
            server.read_stats()
        run.exit_codes = fleet.stop_servers()
        run.wrks, run.commands, run.lost = fleet.wrks, fleet.total("commands"), fleet.total("lost")
        run.near = fleet.total("near")
        run.loads = list(fleet.loads())
        self.screen.erase()


def summary(screen, shown, setup):
    """shown: (name, run) each."""
    widths = [max(14, len(name) + 2) for name, _ in shown]

    def line(name, of, form="{:,.0f}"):
        cells = (f"{form.format(of(run)):>{width}}" for width, (_, run) in zip(widths, shown))
        screen.say(f"{name:34}" + "".join(cells))

    def latency(run, share):
        return percentile([(p.end - p.start) / MS for p in run.probes if p.status == 200], share)

    screen.say()
    screen.say(screen.bold(f"{'':34}" + "".join(f"{name:>{width}}" for width, (name, _) in zip(widths, shown))))
    line("seconds under load", lambda r: r.seconds)
    line("requests per second", lambda r: r.requests / r.seconds)
    line("answered from memory (near), %", lambda r: 100 * r.near / max(1, r.requests), "{:.1f}")
    line("latency p50, ms", lambda r: latency(r, 0.5), "{:,.1f}")
    line("latency p99, ms", lambda r: latency(r, 0.99), "{:,.1f}")
    line("latency p99 besides the blows, ms", lambda r: near_claims.p99_ms(near_claims.calm(r.probes, r)), "{:,.1f}")
    line("origin loads", lambda r: len(r.loads))
    line("origin loads per minute", lambda r: len(r.loads) * 60 / r.seconds)
    line("loads of the hot page per ttl", lambda r: loads_per_ttl(r, setup), "{:.1f}")
    line("most loads of one page at once*", lambda r: most_at_once(claims.stored(r) or r.loads))
    line("commands sent to Redis per request", lambda r: r.commands / max(1, r.requests), "{:.2f}")
    more = ", and what a forget overtook" if any(run.forget for _, run in shown) else ""
    screen.say(screen.dim(f"* besides local loads {setup.meanwhile('was')}{more}: see below"))


def loads_per_ttl(run, setup):
    return sum(load.page == HOT for load in run.loads) * setup.ttl_ms / 1000 / run.seconds


def most_at_once(loads):
    most = 0
    for of_page in claims.by_page(loads).values():
        changes = sorted([(l.start, 1) for l in of_page] + [(l.end, -1) for l in of_page])
        level = 0
        for _, change in changes:
            level += change
            most = max(most, level)
    return most


def mark_of(screen, claim):
    """A word, and how it is painted."""
    if claim.held:
        return "held  ", screen.good
    return ("void  ", screen.bold) if claim.void else ("BROKEN", screen.bad)


def report(screen, checked):
    """checked: (name of the run, its claims) each. A claim that several runs make is said once. Returns all claims."""
    texts = {}
    for name, made in checked:
        for claim in made:
            texts.setdefault(claim.text, []).append((name, claim))
    screen.say()
    for text, made in texts.items():
        worst = min((claim for _, claim in made), key=lambda c: (c.held, c.void))
        mark, painter = mark_of(screen, worst)
        screen.say_wrapped(f"{mark}  {text}", 8, lambda line, m=mark, p=painter: line.replace(m, p(m), 1))
        for name, claim in made:
            broken = "" if claim.held else ("VOID: " if claim.void else "BROKEN: ")
            of = f"{name}: " if name else ""
            screen.say_wrapped(f"        {broken}{of}{claim.measured}; bound: {claim.bound}", 10, screen.dim)
    return [claim for made in texts.values() for _, claim in made]


def verdict(screen, checked):
    """The last line; returns the exit code."""
    broken, void = sum(not (c.held or c.void) for c in checked), sum(c.void for c in checked)
    words = f", but for {void} that is void: this machine is too busy to tell" if void else ""
    screen.say(screen.bad("A claim is broken.") if broken else screen.good(f"Every claim held{words}."))
    return 1 if broken else 0


class Arguments(argparse.ArgumentParser):
    def error(self, message):
        self.exit(64, f"demo: {message}\n")


def arguments():
    parser = Arguments(prog="./dev demo", description=__doc__)
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="plain",
        metavar="NAME",
        help="; ".join(f"{e.name}: {e.where}" for e in ENGINES.values()) + " (%(default)s)",
    )
    parser.add_argument(
        "--build", type=Path, default=Path("build/dev"), help="where the programs are (%(default)s)"
    )
    parser.add_argument("--seconds", type=float, default=56, help="of load in all, 28 at least (%(default)s)")
    parser.add_argument("--connections", type=int, default=300, help="keep-alive connections (%(default)s)")
    parser.add_argument("--processes", type=int, default=3, help="servers, 2 at least (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="the same in half a minute, for tests")
    parser.add_argument("--apache", action="store_true", help="with Apaches and mod_holdfast; --apache --help: options")
    parser.add_argument("--output", type=Path, help="folder for picture and logs (demo, beside the build)")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # only look at the options
    args = parser.parse_args()
    if args.quick:
        args.seconds = 29
    if args.seconds < 28 or args.processes < 2 or args.connections < args.processes:
        parser.error("needs 28 seconds, 2 processes and a connection for each, at least")
    args.build = args.build.resolve()
    args.output = (args.output or args.build.parent / "demo").resolve()
    return args


def demo(args, screen):
    engine = ENGINES[args.engine]
    for tool in (*engine.needs, "wrk"):
        if shutil.which(tool) is None:
            raise Trouble(f"{tool} is not installed")
    for program in ("stampede_server", "origin"):
        if not (args.build / "examples" / "demo" / program).exists():
            raise Trouble(f"no {program} in {args.build}: build it first, or name its place with --build")
    plan, bounds, runs = Runs(args.seconds, engine.times), (BOUND_MS, near_claims.COMMANDS), {}
    if args.quick:  # a test of what is promised, not of how busy the machine is: nobody waits for a load, few for Redis
        plan.setup, bounds = replace(plan.setup, slack_ms=2000), (plan.setup.load_ms * 2 // 3, 0.3)
    setup = plan.setup
    args.output.mkdir(parents=True, exist_ok=True)
    screen.say(
        f"{args.processes} web servers, a thread per connection, {args.connections} connections;\n"
        f"{PAGES + 1} pages, each cached in {engine.where} for {setup.ttl_ms / 1000:g} s;\n"
        f"a slow origin: {setup.load_ms} ms for each load of a page.\n"
        f"Three runs, {args.seconds:g} s in all, the first two through a kill -9 and {engine.blow}:\n"
        f"  {ASIDE.name:16}pages in each server's memory, old ones while a thread loads\n"
        f"  {HERE.name:16}hf_fetch as it comes: a hit is a GET, a miss loads or waits\n"
        f"  {WITHOUT.name:16}without hf_fetch"
    )
    for way, seconds in plan.seconds.items():
        screen.say()
        screen.say(screen.bold(" ".join(["stampede_server", *way.flags])) + f": {way.name}, {seconds:.0f} s")
        log = args.output / LOGS[way]
        with Fleet(args.build, args.engine, plan.setup_of(way), args.processes, args.connections, way, log) as fleet:
            runs[way] = Show(fleet, plan, screen, seconds).go(suffer=way.lock)
    summary(screen, [(way.name, run) for way, run in runs.items()], setup)
    made = {way: claims.of_fetch(runs[way], plan.setup_of(way)) for way in (ASIDE, HERE)}
    made[ASIDE] += near_claims.check(runs[ASIDE], plan.setup_of(ASIDE), *bounds)
    made[WITHOUT] = [claims.stampede(runs[WITHOUT], setup)]
    of_all = [claims.clean_exits(runs.values())]
    checked = report(screen, [(way.name, of_way) for way, of_way in made.items()] + [("", of_all)])
    svg = args.output / "loads.svg"
    shown = [picture.Shown(way.name, run) for way, run in runs.items()]
    svg.write_text(picture.draw(shown, setup, args.processes, args.connections))
    screen.say()
    screen.say(f"Every load of the origin: {args.output}/" + ", ".join(LOGS.values()))
    screen.say(f"The picture: {svg}")
    return checked


def apache(words, screen):
    import apache_demo  # which imports this file: a part of it is the same

    return apache_demo.main(words, screen)


def main():
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    screen, words = Screen(), sys.argv[1:]
    try:
        if "--apache" in words:
            checked = apache(words, screen)
        else:
            args = arguments()
            checked = None if args.check else demo(args, screen)
    except Trouble as trouble:
        screen.say(f"demo: {trouble}")
        return 2
    except KeyboardInterrupt:
        screen.say("demo: interrupted")
        return 130
    return 0 if checked is None else verdict(screen, checked)


if __name__ == "__main__":
    sys.exit(main())
