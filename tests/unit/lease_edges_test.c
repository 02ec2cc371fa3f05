/* SPDX-License-Identifier: MIT */
/* lease_edges_test.c - lease.c exactly at its edges, and the grid on which many leases are renewed together. */
#include "base/clock.h"
#include "core/policy/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define T0  (INT64_C(5000) * 1000 * HFI_MS)
#define RTT (HFI_MS / 5)

static struct hfi_lease_times lease_of(int64_t lease_ms, int64_t stop_ms, int64_t max_hold_ms, int64_t begun)
{
    struct hfi_lease_times times;
    hfi_lease_begin(&times, begun + lease_ms * HFI_MS, lease_ms * HFI_MS, lease_ms, stop_ms, max_hold_ms, begun, RTT);
    return times;
}

/* The number of different points at which the first renewals of 100 leases are due that begin a millisecond apart. */
static int points_of(int64_t lease_ms)
{
    int points = 0;
    int64_t before = 0;
    for (int i = 0; i < 100; i++) {
        struct hfi_lease_times times = lease_of(lease_ms, 50, 0, T0 + i * HFI_MS);
        points += times.renew_next != before;
        before = times.renew_next;
    }
    return points;
}

static void leases_that_begin_together_are_renewed_at_one_point(void **state)
{
    (void)state;
    assert_in_range(points_of(500), 20, 21);   /* a hundredth of their length apart: 5 ms, */
    assert_in_range(points_of(1000), 10, 11);  /* 10 ms, */
    assert_in_range(points_of(10000), 5, 6);   /* and never more than 20 */
    assert_in_range(points_of(86400000), 5, 6);
}

static void the_grid_is_before_the_third_never_after_it(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct hfi_lease_times times = lease_of(12000, 50, 0, T0 + i * HFI_MS);
        int64_t third = T0 + i * HFI_MS + 4000 * HFI_MS;
        assert_true(times.renew_next <= third && times.renew_next > third - 20 * HFI_MS);
    }
}

static void attempts_are_a_thirteenth_of_what_was_left_apart(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of(3900, 50, 0, T0);
    assert_int_equal(times.attempt, 200 * HFI_MS);
    times = lease_of(13, 1, 0, T0);
    assert_int_equal(times.attempt, HFI_MS); /* and a millisecond at least */
}

/* Attempts are 200 ms apart, on points that all leases of this length share: the next one that is no nearer than
 * three quarters. */
static void a_repeated_attempt_comes_at_the_next_point_that_is_not_too_near(void **state)
{
    (void)state;
    static const struct {
        int64_t after_point_us, next_us;
    } cases[] = {{0, 200000}, {1, 200000}, {49999, 200000}, {50000, 200000}, {50001, 400000}, {199999, 400000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hfi_lease_times times = lease_of(3900, 50, 0, T0);
        int64_t point = (times.renew_next / times.attempt + 1) * times.attempt;
        assert_true(hfi_lease_on_timer(&times, point + cases[i].after_point_us * 1000, RTT).renew);
        assert_int_equal(times.renew_next, point + cases[i].next_us * 1000);
    }
}

/* A round trip of up to three quarters of the distance leaves the grid as it is. */
static void slow_round_trips_leave_the_grid_only_where_they_are_too_long_for_it(void **state)
{
    (void)state;
    static const struct {
        int64_t rtt, next; /* next: after the point, or after the attempt where that is more than the distance */
    } cases[] = {{150 * HFI_MS, 200 * HFI_MS}, {150 * HFI_MS + 1, 210 * HFI_MS}, {201 * HFI_MS, 211 * HFI_MS}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hfi_lease_times times = lease_of(3900, 50, 0, T0);
        int64_t point = (times.renew_next / times.attempt + 1) * times.attempt;
        assert_true(hfi_lease_on_timer(&times, point + 10 * HFI_MS, cases[i].rtt).renew);
        assert_int_equal(times.renew_next, point + cases[i].next);
    }
}

/* A hastened renewal makes attempts no more frequent than that, or than three quarters of the usual distance. */
static void hastened_attempts_are_10_ms_apart_or_what_is_usual_for_a_short_lease(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct hfi_lease_times times = lease_of(i == 0 ? 3900 : 100, 50, 0, T0);
        int64_t now = T0 + 20 * HFI_MS, apart = i == 0 ? 10 * HFI_MS : times.attempt / 4 * 3;
        assert_in_range(times.attempt / 1000, i == 0 ? 200000 : 5120, i == 0 ? 200000 : 5130);
        times.renew_next = 0;
        assert_true(hfi_lease_on_timer(&times, now, RTT).renew);
        assert_int_equal(times.tried_at, now);
        times.renew_next = 0;
        int64_t next = hfi_lease_next(&times);
        assert_int_equal(next - now, apart);
        assert_false(hfi_lease_on_timer(&times, next - 1, RTT).renew);
        assert_true(hfi_lease_on_timer(&times, next, RTT).renew);
    }
}

static void the_stop_of_a_claim_is_a_quarter_of_it_at_most(void **state)
{
    (void)state;
    assert_int_equal(hfi_lease_stop(1000, 12000, 2000), 250);
    assert_int_equal(hfi_lease_stop(1000, 12000, 200), 200);
    assert_int_equal(hfi_lease_stop(11999, 12000, 2000), 2000);
    assert_int_equal(hfi_lease_stop(1000, 1000, 900), 900); /* a lease, not a claim */
}

static void a_hold_may_last_a_millisecond(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of(12000, 2000, 1, T0);
    assert_true(hfi_lease_on_timer(&times, T0, RTT).at_risk);
    assert_int_equal(hfi_lease_next(&times), T0 + HFI_MS);
    struct hfi_lease_due due = hfi_lease_on_timer(&times, T0 + HFI_MS, RTT);
    assert_true(due.lost);
    assert_int_equal(due.reason, HF_REASON_MAX_HOLD);
}

static void a_hold_that_is_over_with_the_lease_is_the_reason(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of(1000, 50, 1000, T0);
    struct hfi_lease_due due = hfi_lease_on_timer(&times, T0 + 1000 * HFI_MS, RTT);
    assert_true(due.lost);
    assert_int_equal(due.reason, HF_REASON_MAX_HOLD);
    times = lease_of(1000, 50, 1001, T0);
    assert_int_equal(hfi_lease_on_timer(&times, T0 + 1000 * HFI_MS, RTT).reason, HF_REASON_EXPIRED);
}

/* The answers of two attempts of one tick: the second moves nothing, so it does not make the lease safe again. */
static void a_renewal_that_moves_nothing_changes_nothing(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of(12000, 2000, 0, T0);
    assert_false(hfi_lease_renewed(&times, T0 + 4000 * HFI_MS, times.length, T0 + 4001 * HFI_MS, RTT));
    assert_true(hfi_lease_on_timer(&times, times.renew_next, RTT).renew);
    int64_t overdue = times.tried_at + 1000 * HFI_MS;
    assert_false(hfi_lease_on_timer(&times, overdue - 1, RTT).at_risk);
    assert_true(hfi_lease_on_timer(&times, overdue, RTT).at_risk);
    struct hfi_lease_times before = times;
    assert_false(hfi_lease_renewed(&times, T0 + 4000 * HFI_MS, times.length, overdue + 1, RTT));
    assert_int_equal(times.condition, HF_LEASE_AT_RISK);
    assert_int_equal(times.renew_next, before.renew_next);
}

/* The answer took so long that the new end is as near as the old one was when AT_RISK was announced. */
static void a_renewal_that_is_answered_within_the_last_stretch_makes_nobody_safe(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct hfi_lease_times times = lease_of(12000, 2000, 0, T0);
        assert_int_equal(hfi_lease_on_timer(&times, T0 + 10000 * HFI_MS, RTT).reason, HF_REASON_ENDING);
        int64_t end = T0 + 13000 * HFI_MS, now = end - 2000 * HFI_MS - !late;
        assert_int_equal(hfi_lease_renewed(&times, end - 12000 * HFI_MS, times.length, now, RTT), !late);
        assert_int_equal(times.end, end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leases_that_begin_together_are_renewed_at_one_point),
        cmocka_unit_test(the_grid_is_before_the_third_never_after_it),
        cmocka_unit_test(attempts_are_a_thirteenth_of_what_was_left_apart),
        cmocka_unit_test(a_repeated_attempt_comes_at_the_next_point_that_is_not_too_near),
        cmocka_unit_test(slow_round_trips_leave_the_grid_only_where_they_are_too_long_for_it),
        cmocka_unit_test(hastened_attempts_are_10_ms_apart_or_what_is_usual_for_a_short_lease),
        cmocka_unit_test(the_stop_of_a_claim_is_a_quarter_of_it_at_most),
        cmocka_unit_test(a_hold_may_last_a_millisecond),
        cmocka_unit_test(a_hold_that_is_over_with_the_lease_is_the_reason),
        cmocka_unit_test(a_renewal_that_moves_nothing_changes_nothing),
        cmocka_unit_test(a_renewal_that_is_answered_within_the_last_stretch_makes_nobody_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
