# SPDX-License-Identifier: MIT
"""What is claimed of pages near and loaded aside, itself checked: a good run holds, each broken promise is reported."""

import io
import sys
import unittest
from dataclasses import replace

sys.dont_write_bytecode = True

import demo
import near_claims
from claims import HOT, MS, Claim, Forget, Kill, Outage, Probe, Run, Setup
from near_claims import AFTER_MS
from screen import Screen

SETUP = Setup(ttl_ms=3000, lease_ms=2000, stale_ms=3000, early=1, near_lag_ms=1000)
BOUND_MS = 10
PAGE = "p1"


def probe(start_ms, ms=1, age_ms=500, page=HOT, server=0):
    made = (start_ms - age_ms) * MS
    return Probe(server, page, start_ms * MS, (start_ms + ms) * MS, 200, "NEAR", made - 300 * MS, made)


def watched(start_ms, loaded_ms, server):
    return Probe(server, PAGE, start_ms * MS, (start_ms + 1) * MS, 200, "NEAR", loaded_ms * MS, (loaded_ms + 300) * MS)


def good_run():
    """30 s: a kill at 5 s, a freeze from 11 s to 13 s, a page forgotten at 15 s, which every server gave out until then."""
    run = Run(start=0, end=30_000 * MS, commands=100)
    run.kill = Kill(1, 0, 5_000 * MS, 7_000 * MS)
    run.outage = Outage(11_000 * MS, 13_000 * MS, 11_000 * MS, 13_000 * MS)
    run.forget = Forget(PAGE, 15_000 * MS, 15_002 * MS)
    run.probes = [probe(ms) for ms in range(0, 30_000, 10)]
    run.empty = [probe(ms, page="") for ms in range(0, 30_000, 50)]
    run.watched = [watched(ms, 14_000, s) for ms in range(14_500, 14_990, 10) for s in range(3)]
    run.watched += [watched(ms, 15_003, s) for ms in range(15_310, 16_510, 10) for s in range(3)]
    return run


class NearClaims(unittest.TestCase):
    def broken(self, run):
        return [claim.text for claim in near_claims.check(run, SETUP, BOUND_MS) if not claim.held]

    def assert_breaks(self, run, claim):
        self.assertEqual(self.broken(run), [claim(run, SETUP).text])

    def test_a_good_run_holds_every_claim(self):
        self.assertEqual(self.broken(good_run()), [])

    def test_a_run_in_which_nothing_happened_proves_nothing(self):
        self.assertEqual(len(self.broken(Run())), 4)

    def slow(self, count, empty_ms):
        run = good_run()
        run.probes += [probe(20_000, 300)] * count
        run.empty = [replace(p, end=p.start + empty_ms * MS) for p in run.empty]
        return near_claims.fast(run, BOUND_MS)

    def test_slow_requests_are_reported_if_they_are_more_than_one_in_a_hundred(self):
        self.assertTrue(self.slow(15, 1).held)
        self.assertFalse(self.slow(30, 1).held)

    def test_where_the_machine_is_slow_without_any_page_slow_requests_are_void(self):
        self.assertFalse(self.slow(30, 4).void)
        self.assertTrue(self.slow(30, 5).void)
        self.assertFalse(self.slow(30, 5).held)
        self.assertFalse(self.slow(15, 5).void)

    def test_nothing_is_void_without_that_yardstick(self):
        run = good_run()
        run.probes, run.empty = [probe(20_000, 300)], []
        self.assertFalse(near_claims.fast(run, BOUND_MS).void)
        run.probes = []
        self.assertFalse(near_claims.fast(run, BOUND_MS).void)

    def test_too_many_commands_are_reported(self):
        run = good_run()
        run.commands = run.requests // 10
        self.assertEqual(self.broken(run), [])
        run.commands += 1
        self.assertEqual(self.broken(run), [near_claims.few_commands(run).text])

    def test_a_page_that_is_too_old_is_reported(self):
        for start in (1_000, 6_000, 13_001 + AFTER_MS, 25_000):
            run = good_run()
            run.probes.append(probe(start, age_ms=7_000))
            self.assertEqual(self.broken(run), [])
            run.probes.append(probe(start, age_ms=7_001))
            self.assert_breaks(run, near_claims.no_older)

    def test_without_redis_a_page_may_be_older(self):
        run = good_run()
        run.probes += [probe(start, age_ms=9_000) for start in (11_000, 12_500, 13_000 + AFTER_MS)]
        self.assertEqual(self.broken(run), [])

    def test_a_page_that_says_nothing_of_its_age_is_not_counted(self):
        run = good_run()
        run.probes = [replace(p, asked=0, made=0) for p in run.probes]
        run.watched = []
        self.assertFalse(near_claims.no_older(run, SETUP).held)

    def test_a_page_given_out_too_late_after_it_was_forgotten_is_reported(self):
        run = good_run()
        run.watched.append(watched(16_002, 14_000, 1))
        self.assertEqual(self.broken(run), [])
        run.watched.append(watched(16_003, 14_000, 1))
        self.assert_breaks(run, near_claims.forgotten)

    def test_a_load_that_began_before_the_forget_is_old_too(self):
        run = good_run()
        run.watched.append(watched(16_003, 14_999, 1))
        self.assert_breaks(run, near_claims.forgotten)

    def test_a_server_that_was_not_seen_before_or_after_proves_nothing(self):
        for unseen in (lambda p: p.end < 15_000 * MS, lambda p: p.start > 16_002 * MS):
            run = good_run()
            run.watched = [p for p in run.watched if not (p.server == 2 and unseen(p))]
            self.assert_breaks(run, near_claims.forgotten)

    def test_a_server_that_had_it_in_redis_alone_proves_nothing(self):
        run = good_run()
        run.watched = [replace(p, source="CACHED") if p.server == 2 else p for p in run.watched]
        self.assert_breaks(run, near_claims.forgotten)

    def test_a_page_that_was_not_forgotten_proves_nothing(self):
        run = good_run()
        run.forget = None
        self.assert_breaks(run, near_claims.forgotten)


class Verdict(unittest.TestCase):
    def test_a_broken_claim_fails_the_demo_and_a_void_one_is_told(self):
        held, broken, void = Claim("a", "", "", True), Claim("b", "", "", False), Claim("c", "", "", False, void=True)
        for made, code, words in (([held], 0, "Every claim held."), ([held, void], 0, "1 that is void"), ([void, broken], 1, "broken")):
            out = io.StringIO()
            checked = demo.report(Screen(out), [("near", made), ("here", [held])])
            self.assertEqual(demo.verdict(Screen(out), checked), code)
            self.assertIn(words, out.getvalue().splitlines()[-1])

    def test_a_claim_of_two_runs_is_broken_if_either_is(self):
        out = io.StringIO()
        demo.report(Screen(out), [("near", [Claim("a", "1", "", True)]), ("here", [Claim("a", "2", "", False)])])
        self.assertEqual(out.getvalue().split()[:2], ["BROKEN", "a"])


if __name__ == "__main__":
    unittest.main()
