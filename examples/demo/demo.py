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
import picture
from claims import HOT, MS, Kill, Outage, Run, Setup, percentile
from engines import ENGINES
from fleet import PAGES, Fleet
from probes import Probes
from processes import Trouble, now_ns
from screen import Screen
from table import Table

RESTART_AFTER_S = 2
ASK_AGAIN_S = 1.15  # into the outage: the local loads are under way
LATE_S = 20


class Plan:
    """Who fails when, in seconds since the load began. A short run has short times, the lease too."""

    def __init__(self, seconds, times):
        long = seconds >= 40
        ours = {"ttl_ms": 3000, "lease_ms": 2000} if long else {"ttl_ms": 2000, "lease_ms": 1000}
        self.setup = Setup(**ours, **times)
        self.with_lock = seconds * 0.62
        self.without = seconds - self.with_lock
        self.kill_from = self.with_lock * 0.4 if long else 2.5
        self.outage_after_kill = 6 if long else self.setup.takeover_ms / 1000 + 1


class Show:
    """Runs one fleet under load, lets it suffer, and shows it."""

    def __init__(self, fleet, plan, screen, title, seconds):
        self.fleet, self.plan, self.screen, self.seconds = fleet, plan, screen, seconds
        self.table = Table(fleet, screen, f"{title}, second {{}} of {seconds:.0f}")
        self.run, self.killed, self.asked_again = Run(), None, False

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
        """The last blow is dealt, and a second and a half have passed for what it held up."""
        outage = self.run.outage
        if self.at() > self.seconds + LATE_S:
            raise Trouble("no server could be caught while it loads the hot page")
        return outage is not None and outage.end > 0 and now_ns() - outage.end >= 1_500_000_000

    def say(self, words):
        self.screen.say(self.screen.bold(f"{self.at():6.1f} s  ") + words)

    def suffer(self, probes):
        """The next blow, if it is due: kill the hot page's loader, start it again, take Redis away, wait until it is back."""
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
            if self.at() >= (run.kill.at - run.start) / 1e9 + plan.outage_after_kill:
                start, silent_from, words = fleet.take_away()
                run.outage = Outage(start, 0, silent_from, silent_from)
                self.say(f"{words}; a page nobody has seen is asked for, too")
                probes.ask_once("unseen")
        elif run.outage.end == 0:
            self.wait_for_the_end(probes)

    def wait_for_the_end(self, probes):
        outage = self.run.outage
        if not self.asked_again and now_ns() - outage.start >= ASK_AGAIN_S * 1e9:
            self.asked_again = True
            probes.ask_once("unseen")
        silent_until, back, words = self.fleet.look()
        self.run.outage = replace(outage, end=back, silent_until=silent_until)
        if back:
            self.say(words)

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
        run.probes = probes.stop()
        run.end = now_ns()
        for server in fleet.servers:
            server.read_stats()
        run.exit_codes = fleet.stop_servers()
        run.wrks, run.commands, run.lost = fleet.wrks, fleet.total("commands"), fleet.total("lost")
        run.loads = list(fleet.loads())
        self.screen.erase()


def summary(screen, with_lock, without, setup, names=("hf_fetch", "GET, load, SET")):
    def line(name, of, form="{:,.0f}"):
        screen.say(f"{name:34}{form.format(of(with_lock)):>14}{form.format(of(without)):>18}")

    def latency(run, share):
        return percentile([(p.end - p.start) / MS for p in run.probes if p.status == 200], share)

    screen.say()
    screen.say(screen.bold(f"{'':34}{names[0]:>14}{names[1]:>18}"))
    line("seconds under load", lambda r: r.seconds)
    line("requests per second", lambda r: r.requests / r.seconds)
    line("latency p50, ms", lambda r: latency(r, 0.5), "{:,.1f}")
    line("latency p99, ms", lambda r: latency(r, 0.99), "{:,.1f}")
    line("origin loads", lambda r: len(r.loads))
    line("origin loads per minute", lambda r: len(r.loads) * 60 / r.seconds)
    line("loads of the hot page per expiry", lambda r: percentile(claims.loads_per_expiry(r, setup), 0.5))
    line("most loads of one page at once*", lambda r: most_at_once(claims.leased(r) or r.loads))
    line("commands sent to Redis per request", lambda r: r.commands / max(1, r.requests), "{:.2f}")
    screen.say(screen.dim(f"* besides the local loads {setup.meanwhile('was')}, see below"))


def most_at_once(loads):
    most = 0
    for of_page in claims.by_page(loads).values():
        changes = sorted([(l.start, 1) for l in of_page] + [(l.end, -1) for l in of_page])
        level = 0
        for _, change in changes:
            level += change
            most = max(most, level)
    return most


def report(screen, checked):
    screen.say()
    for claim in checked:
        mark = screen.good("held  ") if claim.held else screen.bad("BROKEN")
        screen.say(f"{mark}  {claim.text}")
        screen.say(screen.dim(f"        {claim.measured}; bound: {claim.bound}"))
    return all(claim.held for claim in checked)


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
    parser.add_argument("--seconds", type=float, default=56, help="of load in all, 16 at least (%(default)s)")
    parser.add_argument("--connections", type=int, default=300, help="keep-alive connections (%(default)s)")
    parser.add_argument("--processes", type=int, default=3, help="servers, 2 at least (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="the same in 18 seconds, for tests")
    parser.add_argument("--apache", action="store_true", help="with Apaches and mod_holdfast; --apache --help: options")
    parser.add_argument("--output", type=Path, help="folder for picture and logs (demo, beside the build)")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # only look at the options
    args = parser.parse_args()
    if args.quick:
        args.seconds = 18
    if args.seconds < 16 or args.processes < 2 or args.connections < args.processes:
        parser.error("needs 16 seconds, 2 processes and a connection for each, at least")
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
    plan, runs = Plan(args.seconds, engine.times), []
    if args.quick:  # a test of what is promised, not of how busy the machine is
        plan.setup = replace(plan.setup, slack_ms=2000)
    setup = plan.setup
    args.output.mkdir(parents=True, exist_ok=True)
    screen.say(
        f"{args.processes} web servers, a thread per connection, {args.connections} connections;\n"
        f"{PAGES + 1} pages, each cached in {engine.where} for {setup.ttl_ms / 1000:g} s;\n"
        f"a slow origin: {setup.load_ms} ms for each load of a page.\n"
        f"First with hf_fetch, through a kill -9 and {engine.blow}, then without."
    )
    with_fetch = True, "with hf_fetch", plan.with_lock
    without_it = False, "GET, load, SET (--no-lock)", plan.without
    for lock, title, seconds in (with_fetch, without_it):
        log = args.output / ("loads-with.log" if lock else "loads-without.log")
        screen.say()
        screen.say(screen.bold(f"{title}, {seconds:.0f} s"))
        with Fleet(args.build, args.engine, setup, args.processes, args.connections, lock, log) as fleet:
            runs.append(Show(fleet, plan, screen, title, seconds).go(suffer=lock))
    with_lock, without = runs
    summary(screen, with_lock, without, setup)
    held = report(screen, claims.check(with_lock, without, setup))
    svg = args.output / "loads.svg"
    svg.write_text(
        picture.draw(with_lock, without, setup, args.processes, args.connections)
    )
    screen.say()
    screen.say(f"Every load of the origin: {args.output}/loads-with.log, loads-without.log")
    screen.say(f"The picture: {svg}")
    return held


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
            held = apache(words, screen)
        else:
            args = arguments()
            if args.check:
                return 0
            held = demo(args, screen)
    except Trouble as trouble:
        screen.say(f"demo: {trouble}")
        return 2
    except KeyboardInterrupt:
        screen.say("demo: interrupted")
        return 130
    screen.say(screen.good("Every claim held.") if held else screen.bad("A claim is broken."))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
