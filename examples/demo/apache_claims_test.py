# SPDX-License-Identifier: MIT
"""What is claimed of Apache, itself checked: a good run holds, each broken promise is reported by its claim."""

import sys
import unittest

sys.dont_write_bytecode = True

import apache_claims
import near_claims
from claims import MS, Blow, Kill, Outage, Probe, Run
from near_claims import AFTER_MS


def probe(start_ms, ms=1):
    return Probe(0, "hot", start_ms * MS, (start_ms + ms) * MS, 200, "CACHED")


def run_of(*probes):
    run = Run(start=0, end=30_000 * MS, probes=list(probes))
    run.kill = Kill(1, 0, 9_000 * MS, 11_000 * MS)
    run.outage = Outage(15_000 * MS, 17_000 * MS, 15_000 * MS, 17_000 * MS)
    run.restarts = list(RESTARTS)
    return run


RESTARTS = [Blow(20_000 * MS, 20_100 * MS), Blow(21_000 * MS, 21_100 * MS)]
CALM = [probe(ms) for ms in range(3_000, 8_000, 10)]


class ApacheClaims(unittest.TestCase):
    def fast(self, *more):
        return near_claims.fast(run_of(*CALM, *more), 10)

    def test_slow_requests_are_reported_if_they_are_more_than_one_in_a_hundred(self):
        self.assertTrue(self.fast(*[probe(4_000, 300)] * 4).held)
        self.assertFalse(self.fast(*[probe(4_000, 300)] * 6).held)

    def test_what_a_blow_held_up_does_not_count(self):
        for start in (0, 1_999, 8_900, 11_000 + AFTER_MS - 1, 14_800, 17_000 + AFTER_MS - 1, 19_800, 20_500, 21_100 + AFTER_MS - 1):
            self.assertTrue(self.fast(*[probe(start, 300)] * 50).held, start)
        for start in (2_000, 8_699, 11_001 + AFTER_MS, 17_001 + AFTER_MS, 19_699, 21_101 + AFTER_MS):
            self.assertFalse(self.fast(*[probe(start, 300)] * 50).held, start)

    def test_a_run_without_a_calm_moment_proves_nothing(self):
        self.assertFalse(near_claims.fast(run_of(probe(9_500)), 10).held)

    def test_too_many_commands_are_reported(self):
        run = run_of(*CALM)
        for commands, held in ((len(CALM) // 10, True), (len(CALM) // 10 + 1, False), (0, False)):
            run.commands = commands
            self.assertEqual(near_claims.few_commands(run).held, held)

    def test_a_restart_that_did_not_happen_is_reported(self):
        self.assertTrue(apache_claims.restarted(run_of(), 2).held)
        self.assertFalse(apache_claims.restarted(run_of(), 3).held)

    def test_what_is_left_is_reported(self):
        self.assertTrue(apache_claims.nothing_left([], []).held)
        self.assertFalse(apache_claims.nothing_left([17], []).held)
        self.assertFalse(apache_claims.nothing_left([], ["hf:{x}"]).held)

    def test_a_page_that_costs_more_is_reported_and_one_slow_turn_is_not(self):
        good = [(104e-6, 100e-6)] * 8
        self.assertTrue(apache_claims.no_slower(good + [(400e-6, 100e-6)], 1.05).held)
        self.assertFalse(apache_claims.no_slower([(106e-6, 100e-6)] * 9, 1.05).held)
        self.assertFalse(apache_claims.no_slower([], 1.05).held)
        self.assertFalse(apache_claims.no_slower([], 1.05).void)

    def test_where_the_yardstick_moves_as_much_such_a_page_is_void(self):
        for moved, void in ((106e-6, True), (105e-6, False)):
            claim = apache_claims.no_slower([(106e-6, 100e-6)] * 4 + [(106e-6, moved)] * 4, 1.05)
            self.assertEqual((claim.held, claim.void), (False, void))
        self.assertFalse(apache_claims.no_slower([(104e-6, 100e-6)] * 4 + [(104e-6, 106e-6)] * 4, 1.05).void)


if __name__ == "__main__":
    unittest.main()
