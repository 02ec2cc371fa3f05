# SPDX-License-Identifier: MIT
"""A cache stampede at Apache and its end: a fleet of Apaches with mod_holdfast, a slow origin behind ProxyPass, a killed server, a
Redis that is away, graceful restarts under load."""

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

import apache_claims
import demo
import near_claims
import picture
from apache_fleet import Apaches
from claims import Blow
from engines import ENGINES
from fleet import PAGES, Way
from processes import Trouble, now_ns
from uncached import Bench

RESTARTS, RESTART_EVERY_S, RESTARTS_S = 20, 0.35, 90
TTL_MS = 6000  # of 21 pages, so that far fewer than one request in a hundred is the one that loads
CONNECTIONS, PROCESSES, NEAR_LAG_MS = 90, 3, 1000
WITH, WITHOUT = Way("mod_holdfast"), Way("without", ("--no-lock",))
LOGS = {WITH: "apache-with.log", WITHOUT: "apache-without.log"}


class ApachePlan(demo.Plan):
    def __init__(self, seconds):
        super().__init__(seconds, {"near_lag_ms": NEAR_LAG_MS})
        self.seconds = {WITH: seconds * 0.62, WITHOUT: seconds * 0.38}
        if self.long:
            self.kill_from, self.outage_from = self.seconds[WITH] * 0.4, 0

    @property
    def outage_after_kill(self):
        return 6 if self.long else super().outage_after_kill


class ApacheShow(demo.Show):
    """When the last blow is over, the servers are restarted gracefully, one after the other."""

    def __init__(self, *words, restarts):
        super().__init__(*words)
        self.wanted, self.left = restarts, []

    def suffer(self, probes):
        super().suffer(probes)
        outage = self.run.outage
        if outage and outage.end and now_ns() - outage.end > 2e9 and len(self.run.restarts) < self.wanted:
            self.restart()

    def restart(self):
        done, servers = self.run.restarts, self.fleet.servers
        if done and now_ns() - done[-1].end < RESTART_EVERY_S * 1e9:
            return
        if not done:
            self.say(f"{self.wanted} graceful restarts")
        start = now_ns()
        servers[len(done) % len(servers)].restart()
        done.append(Blow(start, now_ns()))

    def is_over(self):
        outage = self.run.outage
        if outage is None or outage.end == 0:
            return super().is_over()
        if self.at() > self.seconds + RESTARTS_S:
            raise Trouble("the graceful restarts take too long")
        return len(self.run.restarts) >= self.wanted and now_ns() - outage.end >= 1_500_000_000

    def finish(self, probes):
        children = [pid for server in self.fleet.servers for pid in server.child.children()]
        super().finish(probes)
        processes = [pid for pid in children if Path(f"/proc/{pid}").exists()]
        keys = [key for s in self.fleet.engine.servers for key in s.ask("KEYS", "hf:*") or [] if key != "hf:fence"]
        self.left = [processes, keys]


def arguments(words):
    parser = demo.Arguments(prog="./dev demo --apache", description=__doc__)
    parser.add_argument("--apache", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--build", type=Path, default=Path("build/dev"), help="where the programs are (%(default)s)")
    parser.add_argument("--seconds", type=float, default=70, help="of load in all, 16 at least (%(default)s)")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="at a time (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="the same in 20 seconds, for tests")
    parser.add_argument("--output", type=Path, help="folder for picture and logs (demo, beside the build)")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.quick:
        args.seconds = 20
    if args.seconds < 16 or args.connections < PROCESSES:
        parser.error("needs 16 seconds and 3 connections, at least")
    args.build = args.build.resolve()
    args.output = (args.output or args.build.parent / "demo").resolve()
    return args


def check_programs(args):
    for tool in (*ENGINES["plain"].needs, "wrk", "apxs"):
        if shutil.which(tool) is None:
            raise Trouble(f"{tool} is not installed")
    for program in (Path("examples/demo/origin"), Path("modules/apache/mod_holdfast.so")):
        if not (args.build / program).exists():
            raise Trouble(f"no {program.name} in {args.build}: build it first (with apache2-dev), or name its place with --build")


def run_both(args, screen, plan, restarts):
    """The runs with the module and without, and the show of the first."""
    shows = []
    for way, seconds in plan.seconds.items():
        log = args.output / LOGS[way]
        screen.say()
        screen.say(screen.bold(f"{way.name}, {seconds:.0f} s"))
        with Apaches(args.build, "plain", plan.setup, PROCESSES, args.connections, way, log) as fleet:
            show = ApacheShow(fleet, plan, screen, seconds, restarts=restarts if way.lock else 0)
            show.go(suffer=way.lock)
        shows.append(show)
    return shows


def main(words, screen):
    args = arguments(words)
    if args.check:
        return None
    check_programs(args)
    plan, restarts, bounds, turns, bound = ApachePlan(args.seconds), RESTARTS, (demo.BOUND_MS, near_claims.COMMANDS), 30, 1.05
    plan.setup = replace(plan.setup, ttl_ms=TTL_MS)
    if args.quick:  # a test of what is promised, not of how busy the machine is: nobody waits for a load, of 300 ms
        plan.setup = replace(plan.setup, ttl_ms=2000, slack_ms=2000)
        restarts, bounds, turns, bound = 4, (200, 0.3), 5, 1.5
    setup = plan.setup
    args.output.mkdir(parents=True, exist_ok=True)
    screen.say(
        f"{PROCESSES} Apaches (event MPM), {args.connections} connections at a time;\n"
        f"{PAGES + 1} pages behind ProxyPass, each cached in Redis for {setup.ttl_ms / 1000:g} s, and as long an old one;\n"
        f"a slow origin: {setup.load_ms} ms for each load of a page.\n"
        f"First with mod_holdfast, through a kill -9, a frozen Redis and {restarts} graceful restarts, then without."
    )
    first, second = run_both(args, screen, plan, restarts)
    screen.say()
    screen.say(screen.bold("a page that may not be kept, with the module and without it in turns"))
    with Bench(args.build) as bench:
        pairs = bench.pairs(turns, 0.4)
    runs = {WITH: first.run, WITHOUT: second.run}
    demo.summary(screen, [(way.name, run) for way, run in runs.items()], setup)
    checked = apache_claims.check(first.run, second.run, setup, restarts, *bounds)
    checked += [apache_claims.nothing_left(*first.left), apache_claims.no_slower(pairs, bound)]
    checked = demo.report(screen, [("", checked)])
    svg = args.output / "apache.svg"
    shown = [picture.Shown(way.name, run) for way, run in runs.items()]
    svg.write_text(picture.draw(shown, setup, PROCESSES, args.connections))
    screen.say()
    screen.say(f"Every load of the origin: {args.output}/" + ", ".join(LOGS.values()))
    screen.say(f"The picture: {svg}")
    return checked
