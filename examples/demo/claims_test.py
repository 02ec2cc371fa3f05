# SPDX-License-Identifier: MIT
"""The demo's checker, itself checked: a good run holds, each broken promise is reported by its claim."""

import sys
import unittest
from dataclasses import replace

sys.dont_write_bytecode = True

import claims
from claims import HOT, MS, Kill, Load, Outage, Probe, Run, Setup, Wrk

SETUP = Setup(ttl_ms=3000, lease_ms=2000)
SENTINEL = replace(SETUP, redial_ms=1400, down_after_ms=1000)
KILLED = 101


def load(page, start_ms, fence, pid=102, ms=300, gone=False):
    return Load(page, pid, fence, start_ms * MS, (start_ms + ms) * MS, gone)


def probe(start_ms, ms=1, status=200, source="CACHED", server=1, page=HOT):
    return Probe(server, page, start_ms * MS, (start_ms + ms) * MS, status, source)


def good_run():
    """30 s: a load each 3.3 s, one killed at 9.2 s and followed 2.2 s later, a freeze from 20 s to 22 s."""
    run = Run(start=0, end=30_000 * MS, exit_codes=[0, 0, 0])
    run.kill = Kill(KILLED, 0, 9_200 * MS, 11_500 * MS)
    run.outage = Outage(20_000 * MS, 22_000 * MS, 20_000 * MS, 22_000 * MS)
    run.loads = [
        load(HOT, 0, 1),
        load(HOT, 3_300, 2),
        load(HOT, 6_600, 3),
        load(HOT, 9_000, 4, pid=KILLED, gone=True),
        load(HOT, 11_400, 5),
        load(HOT, 14_700, 6),
        load(HOT, 18_000, 7),
        load(HOT, 22_100, 8),
        load("p1", 100, 1),
        load("unseen", 21_000, 0, pid=102),
        load("unseen", 21_000, 0, pid=103),
    ]
    run.probes = [probe(t) for t in range(0, 20_000, 100)] + [
        probe(20_100, 1_000, source="STALE"),
        probe(20_000, 1_310, source="LOCAL", page="unseen"),
        probe(9_500, status=0, source="", server=0),
    ]
    run.wrks = [Wrk(0, 1_000, 0, 70, killed=True), Wrk(0, 1_000, 0, 0), Wrk(1, 2_000, 0, 0)]
    return run


def stampeding_run():
    run = Run(start=0, end=10_000 * MS, exit_codes=[0, 0, 0])
    run.loads = [load(HOT, burst + n, 0) for burst in (0, 3_400, 6_800) for n in range(80)]
    return run


def check(run, without, setup):
    return claims.of_fetch(run, setup) + [claims.stampede(without, setup), claims.clean_exits([run, without])]


class Claims(unittest.TestCase):
    def broken(self, run, without=None):
        return [c.text for c in check(run, without or stampeding_run(), SETUP) if not c.held]

    def assert_breaks(self, run, claim):
        self.assertEqual(self.broken(run), [claim(run, SETUP).text])

    def test_a_good_run_holds_every_claim(self):
        self.assertEqual(self.broken(good_run()), [])

    def test_two_loads_that_overlap_by_a_millisecond_are_reported(self):
        run = good_run()
        run.loads.append(load("p1", 399, 2))
        self.assert_breaks(run, claims.no_overlap)

    def test_a_load_inside_another_is_reported(self):
        run = good_run()
        run.loads += [load("p2", 1_000, 1, ms=5_000), load("p2", 2_000, 2), load("p2", 4_000, 3)]
        self.assertIn("2 overlaps", claims.no_overlap(run, SETUP).measured)

    def test_two_loads_that_only_touch_do_not_overlap(self):
        run = good_run()
        run.loads.append(load("p1", 400, 2))
        self.assertEqual(self.broken(run), [])

    def test_only_the_killed_process_may_be_overlapped_and_only_by_the_load_that_the_kill_cut_off(self):
        run = good_run()
        run.loads[3] = replace(run.loads[3], end=11_450 * MS)
        self.assertEqual(self.broken(run), [])
        run.loads[3] = replace(run.loads[3], pid=102)
        self.assertIn(claims.no_overlap(run, SETUP).text, self.broken(run))

    def test_a_load_that_a_forget_overtook_may_be_overlapped_by_the_next_one_alone(self):
        run = good_run()
        run.forget = claims.Forget("p1", 200 * MS, 210 * MS)
        run.loads.append(load("p1", 211, 2))
        self.assertEqual(self.broken(run), [])
        for other in (claims.Forget("p2", 200 * MS, 210 * MS), claims.Forget("p1", 401 * MS, 402 * MS)):
            run.forget = other
            self.assert_breaks(run, claims.no_overlap)
        run.forget = claims.Forget("p1", 200 * MS, 210 * MS)
        run.loads.append(load("p1", 510, 3))
        self.assert_breaks(run, claims.no_overlap)

    def test_loads_of_different_pages_may_overlap(self):
        run = good_run()
        run.loads.append(load("p2", 100, 1))
        self.assertEqual(self.broken(run), [])

    def test_an_empty_log_proves_nothing(self):
        run = good_run()
        run.loads = []
        self.assertFalse(claims.no_overlap(run, SETUP).held)
        self.assertFalse(claims.takeover(run, SETUP).held)

    def test_a_fence_that_does_not_rise_is_reported(self):
        run = good_run()
        run.loads.append(load("p1", 5_000, 1))
        self.assert_breaks(run, claims.fences_rise)

    def test_one_load_too_many_is_reported(self):
        run = good_run()
        run.loads += [load("p2", n * 400, n + 1) for n in range(12)]
        self.assert_breaks(run, claims.few_loads)
        run.loads.pop()
        self.assertEqual(self.broken(run), [])

    def test_early_loads_may_be_eight_load_times_early(self):
        run, early = good_run(), replace(SETUP, early=1)
        run.loads += [load("p2", n * 370, n + 1) for n in range(30_000 // (3_000 - 8 * 300) + 2)]
        self.assertFalse(claims.few_loads(run, early).held)
        run.loads.pop()
        self.assertTrue(claims.few_loads(run, early).held)
        self.assertFalse(claims.few_loads(run, SETUP).held)

    def test_a_successor_that_starts_too_late_is_reported(self):
        run = good_run()
        run.loads[4] = load(HOT, 9_200 + int(SETUP.takeover_ms) + 1, 5)
        self.assert_breaks(run, claims.takeover)

    def test_no_successor_at_all_is_reported(self):
        run = good_run()
        run.loads = [l for l in run.loads if l.page != HOT or l.start <= run.kill.at]
        self.assert_breaks(run, claims.takeover)

    def test_a_second_local_load_of_a_process_is_reported(self):
        run = good_run()
        run.loads.append(load("unseen", 21_500, 0, pid=102))
        self.assert_breaks(run, claims.local_loads)

    def test_a_load_without_a_lease_outside_the_freeze_is_reported(self):
        run = good_run()
        run.loads.append(load("p1", 15_000, 0))
        self.assert_breaks(run, claims.local_loads)

    def test_a_failed_probe_is_reported(self):
        run = good_run()
        run.probes.append(probe(15_000, status=503, source="FAILED"))
        self.assert_breaks(run, claims.nothing_failed)

    def test_a_failed_probe_at_the_killed_server_is_excused_only_until_it_is_back(self):
        run = good_run()
        run.probes.append(probe(11_600, status=0, source="", server=0))
        self.assert_breaks(run, claims.nothing_failed)

    def test_wrk_s_failures_are_reported(self):
        for failures in ({"bad_status": 1}, {"bad_socket": 1}):
            run = good_run()
            run.wrks[2] = replace(run.wrks[2], **failures)
            self.assert_breaks(run, claims.nothing_failed)

    def test_a_killed_server_may_cut_connections_but_not_answer_with_errors(self):
        run = good_run()
        run.wrks[0] = replace(run.wrks[0], bad_status=1)
        self.assert_breaks(run, claims.nothing_failed)

    def test_an_answer_in_the_freeze_that_is_neither_stale_nor_local_is_reported(self):
        run = good_run()
        run.probes.append(probe(21_000, 5, source="CACHED"))
        self.assert_breaks(run, claims.outage_answers)

    def test_a_page_from_memory_is_allowed_as_long_as_the_proof_lasts(self):
        run, near = good_run(), replace(SETUP, near_lag_ms=1_000)
        run.probes.append(probe(20_999, source="NEAR"))
        self.assertFalse(claims.outage_answers(run, SETUP).held)
        self.assertTrue(claims.outage_answers(run, near).held)
        run.probes.append(probe(21_000, source="NEAR"))
        self.assertFalse(claims.outage_answers(run, near).held)

    def test_a_load_under_way_when_the_freeze_began_may_be_shared(self):
        run = good_run()
        run.probes.append(probe(20_010, 200, source="SHARED"))
        self.assert_breaks(run, claims.outage_answers)
        run.loads[6] = load(HOT, 19_900, 7)
        self.assertEqual(self.broken(run), [])

    def test_a_freeze_without_answers_proves_nothing(self):
        run = good_run()
        run.probes = [p for p in run.probes if p.start < 20_000 * MS]
        self.assertEqual(len(self.broken(run)), 2)

    def test_a_slow_answer_in_the_freeze_is_reported(self):
        run = good_run()
        run.probes.append(probe(20_100, 1_400, source="STALE"))
        self.assert_breaks(run, claims.outage_latency)

    def test_a_request_that_waited_when_the_freeze_began_is_held_to_the_bound_from_then_on(self):
        run = good_run()
        run.probes.append(probe(19_800, 200 + 1_399, source="SHARED"))
        self.assertEqual(self.broken(run), [])
        run.probes.append(probe(19_800, 200 + 1_400, source="SHARED"))
        self.assert_breaks(run, claims.outage_latency)

    def test_a_request_that_waits_for_redis_has_a_load_from_the_end_of_the_freeze(self):
        run = good_run()
        run.probes.append(probe(20_100, 1_900 + SETUP.load_ms + 399, source="LOADED"))
        self.assertEqual(self.broken(run), [])
        run.probes.append(probe(20_100, 1_900 + SETUP.load_ms + 400, source="LOADED"))
        self.assert_breaks(run, claims.outage_held_up)

    def test_where_dials_may_be_late_such_a_request_may_be_so(self):
        run, late = good_run(), replace(SETUP, redial_ms=1_400)
        run.probes.append(probe(20_100, 1_900 + SETUP.load_ms + 1_799, source="LOADED"))
        self.assertTrue(claims.outage_held_up(run, late).held)
        run.probes.append(probe(20_100, 1_900 + SETUP.load_ms + 1_800, source="LOADED"))
        self.assertFalse(claims.outage_held_up(run, late).held)

    def test_a_run_without_lock_that_shows_no_stampede_is_reported(self):
        calm = stampeding_run()
        calm.loads = calm.loads[:3]
        self.assertEqual(len(self.broken(good_run(), calm)), 1)

    def test_a_server_that_crashes_at_its_end_is_reported(self):
        run = good_run()
        run.exit_codes[1] = -6
        self.assertEqual(self.broken(run), [claims.clean_exits([run]).text])

    def test_the_log_is_read_as_the_origin_writes_it(self):
        [one] = claims.read_log(["hot 4242 17 1000 2000 gone\n"])
        self.assertEqual(one, Load("hot", 4242, 17, 1000, 2000, True))

    def test_percentiles_are_by_nearest_rank(self):
        self.assertEqual([claims.percentile(range(1, 101), share) for share in (0.5, 0.99, 1)], [50, 99, 100])
        self.assertEqual(claims.percentile([7], 0.99), 7)
        self.assertEqual(claims.percentile([], 0.99), 0)


class ClaimsOfAFailover(unittest.TestCase):
    """The same run, but the primary is killed at 20 s; surely nobody is primary until 21.4 s; another is named at 22 s."""

    def run_of(self):
        run = good_run()
        run.outage = Outage(20_000 * MS, 22_000 * MS, 20_010 * MS, 21_400 * MS)
        return run

    def broken(self, run):
        return [c.text for c in check(run, stampeding_run(), SENTINEL) if not c.held]

    def assert_breaks(self, run, claim):
        self.assertEqual(self.broken(run), [claim(run, SENTINEL).text])

    def test_a_good_run_holds_every_claim(self):
        self.assertEqual(self.broken(self.run_of()), [])

    def test_a_frozen_server_is_no_failover(self):
        texts = " ".join(c.text + c.bound for c in check(good_run(), stampeding_run(), SETUP))
        for word in ("primary", "failover", "down-after"):
            self.assertNotIn(word, texts)

    def test_nothing_is_said_of_a_freeze(self):
        texts = " ".join(c.text + c.bound for c in check(self.run_of(), stampeding_run(), SENTINEL))
        for word in ("freeze", "frozen"):
            self.assertNotIn(word, texts)

    def test_overlaps_across_the_failover_are_counted_and_allowed(self):
        run = self.run_of()
        run.loads += [load("p2", 19_990, 1, ms=2_500), load("p2", 22_200, 2)]
        self.assertEqual(self.broken(run), [])
        self.assertIn("and 1 across", claims.no_overlap(run, SENTINEL).measured)

    def test_two_overlapping_loads_of_one_primary_are_reported(self):
        for begin in (19_000, 23_000):
            run = self.run_of()
            run.loads += [load("p2", begin, 1), load("p2", begin + 299, 2)]
            self.assert_breaks(run, claims.no_overlap)

    def test_a_load_before_there_can_be_another_primary_is_the_old_ones(self):
        run = self.run_of()
        run.loads += [load("p2", 19_990, 1, ms=1_500), load("p2", 21_400, 2)]
        self.assert_breaks(run, claims.no_overlap)

    def test_fences_rise_across_the_failover_too(self):
        run = self.run_of()
        run.loads += [load("p2", 19_000, 5), load("p2", 23_000, 5)]
        self.assert_breaks(run, claims.fences_rise)

    def test_each_page_may_be_loaded_once_more(self):
        run = self.run_of()
        run.loads += [load("p2", n * 400, n + 1) for n in range(12)]
        self.assertEqual(self.broken(run), [])
        run.loads.append(load("p2", 12 * 400, 13))
        self.assert_breaks(run, claims.few_loads)

    def test_leases_that_are_granted_too_late_or_never_are_reported(self):
        run = self.run_of()
        [first] = [l for l in run.loads if l.start > run.outage.end]
        run.loads[run.loads.index(first)] = load(HOT, 25_000, 8)
        self.assertEqual(self.broken(run), [])
        run.loads[-4] = load(HOT, 25_001, 8)
        self.assert_breaks(run, claims.next_grant)
        del run.loads[-4]
        self.assert_breaks(run, claims.next_grant)

    def test_an_answer_of_redis_while_there_is_surely_no_primary_is_reported(self):
        run = self.run_of()
        run.probes.append(probe(21_390, 5, source="CACHED"))
        self.assert_breaks(run, claims.outage_answers)

    def test_while_the_primary_dies_it_may_answer_and_may_be_missed_already(self):
        run = self.run_of()
        run.probes.append(probe(20_009, 1, source="CACHED"))
        run.loads.append(load("p2", 20_001, 0))
        self.assertEqual(self.broken(run), [])

    def test_an_answer_of_redis_when_there_may_be_one_again_is_allowed(self):
        run = self.run_of()
        run.probes.append(probe(21_395, 6, source="CACHED"))
        self.assertEqual(self.broken(run), [])


if __name__ == "__main__":
    unittest.main()
