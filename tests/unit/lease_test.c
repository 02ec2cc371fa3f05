/* SPDX-License-Identifier: MIT */
/* lease_test.c - when a lease is renewed, at risk and lost, to the nanosecond. */
#include "base/clock.h"
#include "core/policy/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define T0  (INT64_C(5000) * 1000 * HFI_MS)
#define RTT (HFI_MS / 5)

/* A whole lease of 12 s granted at T0: renewal due at T0 + 4 s, overdue 1 s later, stop 2 s before the end. */
static struct hfi_lease_times lease_of_12s(void)
{
    struct hfi_lease_times times;
    hfi_lease_begin(&times, T0 + 12000 * HFI_MS, 12000 * HFI_MS, 12000, 2000, 0, T0, RTT);
    return times;
}

static struct hfi_lease_due look_ms(struct hfi_lease_times *times, int64_t ms)
{
    return hfi_lease_on_timer(times, T0 + ms * HFI_MS, RTT);
}

/* As an attempt that was sent and answered `ms` after T0. */
static bool renewed_ms(struct hfi_lease_times *times, int64_t sent_ms, int64_t ms)
{
    return hfi_lease_renewed(times, T0 + sent_ms * HFI_MS, times->length, T0 + ms * HFI_MS, RTT);
}

static void assert_nothing_due(struct hfi_lease_due due)
{
    assert_false(due.renew);
    assert_false(due.at_risk);
    assert_false(due.lost);
}

static void the_guard_covers_two_clocks_their_grain_and_a_busy_process(void **state)
{
    (void)state;
    assert_int_equal(hfi_guard_ms(10000, 250), 210 + 3 + 250);
    assert_int_equal(hfi_guard_ms(100, 250), 3 + 3 + 250); /* 2.1 is rounded up */
    assert_int_equal(hfi_guard_ms(86400000, 0), 1814400 + 3);
}

static void a_claim_is_a_second_or_the_whole_of_a_shorter_lease(void **state)
{
    (void)state;
    assert_int_equal(hfi_claim_ms(10000, 400), 1000);
    assert_int_equal(hfi_claim_ms(10000, 1000), 2500);
    assert_int_equal(hfi_claim_ms(1000, 400), 1000);
    assert_int_equal(hfi_claim_ms(250, 400), 250);
    assert_int_equal(hfi_claim_ms(2000, 1000), 2000);
}

static void the_first_renewal_is_due_at_a_third(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of_12s();
    assert_int_equal(hfi_lease_next(&times), T0 + 4000 * HFI_MS);
    assert_nothing_due(hfi_lease_on_timer(&times, T0 + 4000 * HFI_MS - 1, RTT));
    struct hfi_lease_due due = look_ms(&times, 4000);
    assert_true(due.renew);
    assert_false(due.at_risk);
    assert_nothing_due(look_ms(&times, 4000));
}

static void renewal_is_tried_at_least_twelve_times_before_the_end(void **state)
{
    (void)state;
    static const int64_t lengths[] = {100, 1000, 10000, 86400000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct hfi_lease_times times;
        int tries = 0;
        hfi_lease_begin(&times, T0 + lengths[i] * HFI_MS, lengths[i] * HFI_MS, lengths[i], 50, 0, T0, RTT);
        for (;;) {
            int64_t next = hfi_lease_next(&times);
            struct hfi_lease_due due = hfi_lease_on_timer(&times, next, RTT);
            if (due.lost)
                break;
            tries += due.renew;
        }
        assert_true(tries >= 12);
        assert_true(tries <= 14);
    }
}

/* One lost connection swallows the renewals of many leases; each of them alone would cost the next connection too. */
static void renewals_that_failed_apart_are_tried_again_together(void **state)
{
    int64_t again[16];
    int points = 1;
    (void)state;
    for (int i = 0; i < 16; i++) {
        struct hfi_lease_times times;
        int64_t t0 = T0 + i * 2 * HFI_MS;
        hfi_lease_begin(&times, t0 + 1000 * HFI_MS, 1000 * HFI_MS, 1000, 50, 0, t0, RTT);
        for (int tries = 0; tries < 2;)
            tries += hfi_lease_on_timer(&times, again[i] = hfi_lease_next(&times), RTT).renew;
        points += i > 0 && again[i] != again[i - 1];
    }
    assert_in_range(points, 1, 2);
}

static void attempts_are_a_round_trip_apart_at_least(void **state)
{
    (void)state;
    struct hfi_lease_times times;
    hfi_lease_begin(&times, T0 + 1000 * HFI_MS, 1000 * HFI_MS, 1000, 100, 0, T0,
                    RTT); /* round trips grew since */
    int64_t first = hfi_lease_next(&times);
    assert_true(hfi_lease_on_timer(&times, first, 200 * HFI_MS).renew);
    assert_false(hfi_lease_on_timer(&times, first + 199 * HFI_MS, 200 * HFI_MS).renew);
    assert_true(hfi_lease_on_timer(&times, first + 200 * HFI_MS, 200 * HFI_MS).renew);
}

static void an_overdue_renewal_is_told_once_and_so_is_its_coming_through(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of_12s();
    assert_true(look_ms(&times, 4000).renew);
    assert_int_equal(hfi_lease_next(&times), times.renew_next);
    assert_false(hfi_lease_on_timer(&times, T0 + 5000 * HFI_MS - 1, RTT).at_risk);
    struct hfi_lease_due due = look_ms(&times, 5000);
    assert_true(due.at_risk);
    assert_int_equal(due.reason, HF_REASON_UNCONFIRMED);
    assert_int_equal(times.condition, HF_LEASE_AT_RISK);
    assert_false(look_ms(&times, 6000).at_risk);
    assert_true(renewed_ms(&times, 6000, 6001));
    assert_int_equal(times.condition, HF_LEASE_HELD);
    assert_int_equal(times.end, T0 + 18000 * HFI_MS);
    assert_int_equal(hfi_lease_next(&times), T0 + 10000 * HFI_MS);
    assert_false(renewed_ms(&times, 7000, 7001)); /* was safe already */
}

static void slow_round_trips_give_a_renewal_more_time_before_it_is_overdue(void **state)
{
    (void)state;
    struct hfi_lease_times times;
    hfi_lease_begin(&times, T0 + 12000 * HFI_MS, 12000 * HFI_MS, 12000, 500, 0, T0, 500 * HFI_MS);
    assert_true(look_ms(&times, 4000).renew);
    assert_false(hfi_lease_on_timer(&times, T0 + 6000 * HFI_MS - 1, RTT).at_risk);
    assert_true(look_ms(&times, 6000).at_risk);
}

static void the_end_is_announced_stop_ms_before_after_an_earlier_warning_too(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of_12s();
    assert_true(look_ms(&times, 4000).renew);
    assert_int_equal(look_ms(&times, 5000).reason, HF_REASON_UNCONFIRMED);
    assert_false(hfi_lease_on_timer(&times, T0 + 10000 * HFI_MS - 1, RTT).at_risk);
    struct hfi_lease_due due = look_ms(&times, 10000);
    assert_true(due.at_risk);
    assert_int_equal(due.reason, HF_REASON_ENDING);
    assert_false(look_ms(&times, 10001).at_risk);
    assert_true(renewed_ms(&times, 10001, 10002));
    assert_true(look_ms(&times, 20001).at_risk); /* and again in the next round */
}

/* The silence is counted from the first renewal: one that is late has not been left without an answer. */
static void the_first_question_may_be_late(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of_12s();
    struct hfi_lease_due due = look_ms(&times, 6000);
    assert_true(due.renew && !due.at_risk);
    assert_false(hfi_lease_on_timer(&times, T0 + 7000 * HFI_MS - 1, RTT).at_risk);
    assert_true(look_ms(&times, 7000).at_risk);
}

static void a_claims_first_renewal_is_no_later_than_a_third_of_the_lease(void **state)
{
    (void)state;
    struct hfi_lease_times times;
    hfi_lease_begin(&times, T0 + 5000 * HFI_MS, 5000 * HFI_MS, 6000, 50, 0, T0, RTT);
    assert_int_equal(hfi_lease_next(&times), T0 + 2000 * HFI_MS);
    hfi_lease_begin(&times, T0 + 2500 * HFI_MS, 2500 * HFI_MS, 12000, 50, 0, T0, RTT);
    assert_int_equal(hfi_lease_next(&times), T0 + 1240 * HFI_MS); /* half of it, on the grid */
}

static void at_its_end_and_not_before_it_is_lost_for_good(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of_12s();
    assert_false(hfi_lease_on_timer(&times, T0 + 12000 * HFI_MS - 1, RTT).lost);
    struct hfi_lease_due due = look_ms(&times, 12000);
    assert_true(due.lost);
    assert_false(due.renew);
    assert_false(due.at_risk);
    assert_int_equal(due.reason, HF_REASON_EXPIRED);
    assert_int_equal(hfi_lease_next(&times), HFI_NEVER);
    assert_nothing_due(look_ms(&times, 13000));
    assert_false(renewed_ms(&times, 11000, 13000));
    assert_int_equal(times.end, T0 + 12000 * HFI_MS);
}

static void a_renewal_answered_after_the_end_raises_nothing(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of_12s(); /* nobody looked yet: the end is the truth all the same */
    assert_false(renewed_ms(&times, 11000, 12000));
    assert_int_equal(times.end, T0 + 12000 * HFI_MS);
    assert_true(look_ms(&times, 12000).lost);
}

static void an_older_renewal_answered_late_moves_nothing_back(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of_12s();
    assert_false(renewed_ms(&times, 5000, 5100));
    assert_int_equal(times.end, T0 + 17000 * HFI_MS);
    assert_false(renewed_ms(&times, 4000, 5200));
    assert_int_equal(times.end, T0 + 17000 * HFI_MS);
}

static void a_renewal_that_asked_for_less_is_good_for_less_and_renewed_soon(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of_12s();
    (void)look_ms(&times, 11000);
    (void)hfi_lease_renewed(&times, T0 + 11000 * HFI_MS, 4000 * HFI_MS, T0 + 11001 * HFI_MS, RTT);
    assert_int_equal(times.end, T0 + 15000 * HFI_MS);
    assert_int_equal(times.renew_next, T0 + 13000 * HFI_MS);
    assert_int_equal(times.stop, 1000 * HFI_MS);
}

static void a_claim_is_renewed_at_half_and_warns_in_its_last_quarter(void **state)
{
    (void)state;
    struct hfi_lease_times times;
    hfi_lease_begin(&times, T0 + 1000 * HFI_MS, 1000 * HFI_MS, 12000, 2000, 0, T0, RTT);
    assert_int_equal(hfi_lease_next(&times), T0 + 500 * HFI_MS);
    assert_true(look_ms(&times, 500).renew);
    assert_false(look_ms(&times, 749).at_risk);
    assert_int_equal(look_ms(&times, 750).reason, HF_REASON_ENDING);
    assert_true(renewed_ms(&times, 750, 751));
    assert_int_equal(times.end, T0 + 12750 * HFI_MS);
    assert_false(look_ms(&times, 10749).reason == HF_REASON_ENDING); /* the whole stop margin from here on */
    assert_int_equal(look_ms(&times, 10750).reason, HF_REASON_ENDING);
}

static void it_ends_at_max_hold_and_is_renewed_only_as_far(void **state)
{
    (void)state;
    struct hfi_lease_times times;
    hfi_lease_begin(&times, T0 + 12000 * HFI_MS, 12000 * HFI_MS, 12000, 2000, 20000, T0, RTT);
    assert_true(look_ms(&times, 4000).renew);
    assert_false(renewed_ms(&times, 4000, 4001));
    assert_int_equal(hfi_lease_end(&times), T0 + 16000 * HFI_MS);
    assert_true(look_ms(&times, 8000).renew);
    assert_false(renewed_ms(&times, 8001, 8002));
    assert_int_equal(hfi_lease_end(&times), T0 + 20000 * HFI_MS);
    assert_int_equal(hfi_lease_next(&times), T0 + 18000 * HFI_MS);
    assert_nothing_due(look_ms(&times, 17999));
    struct hfi_lease_due due = look_ms(&times, 18000);
    assert_true(due.at_risk);
    assert_false(due.renew);
    assert_int_equal(due.reason, HF_REASON_MAX_HOLD);
    assert_false(renewed_ms(&times, 17500, 18001)); /* one that was under way: not safe again */
    assert_int_equal(times.condition, HF_LEASE_AT_RISK);
    assert_int_equal(hfi_lease_next(&times), T0 + 20000 * HFI_MS);
    assert_nothing_due(look_ms(&times, 19999));
    due = look_ms(&times, 20000);
    assert_true(due.lost);
    assert_int_equal(due.reason, HF_REASON_MAX_HOLD);
}

/* Its renewals fail: that is another warning, and another loss. */
static void before_max_hold_it_can_expire(void **state)
{
    (void)state;
    struct hfi_lease_times times;
    hfi_lease_begin(&times, T0 + 12000 * HFI_MS, 12000 * HFI_MS, 12000, 2000, 12001, T0, RTT);
    assert_true(look_ms(&times, 4000).renew);
    assert_int_equal(look_ms(&times, 5000).reason, HF_REASON_UNCONFIRMED);
    assert_int_equal(look_ms(&times, 10000).reason, HF_REASON_ENDING);
    assert_true(renewed_ms(&times, 9000, 10001) == false); /* safe, but for the two seconds that it may need to stop */
    assert_int_equal(look_ms(&times, 12001).reason, HF_REASON_MAX_HOLD);
    hfi_lease_begin(&times, T0 + 12000 * HFI_MS, 12000 * HFI_MS, 12000, 2000, 12001, T0, RTT);
    assert_int_equal(look_ms(&times, 12000).reason, HF_REASON_EXPIRED);
}

/* With both looked at late: the hold was over with the lease, or the lease before it. */
static void the_reason_of_a_loss_is_the_earliest(void **state)
{
    (void)state;
    struct hfi_lease_times times;
    hfi_lease_begin(&times, T0 + 12000 * HFI_MS, 12000 * HFI_MS, 12000, 2000, 12500, T0, RTT);
    assert_int_equal(hfi_lease_over(&times, T0 + 12000 * HFI_MS), HF_REASON_EXPIRED);
    assert_int_equal(hfi_lease_over(&times, T0 + 13000 * HFI_MS), HF_REASON_EXPIRED);
    hfi_lease_begin(&times, T0 + 12000 * HFI_MS, 12000 * HFI_MS, 12000, 2000, 12000, T0, RTT);
    assert_int_equal(hfi_lease_over(&times, T0 + 12000 * HFI_MS), HF_REASON_MAX_HOLD);
    assert_int_equal(hfi_lease_over(&times, T0 + 11999 * HFI_MS), HF_REASON_EXPIRED); /* found over before it was moved */
}

static void a_silence_is_looked_at_when_it_is_one_and_not_between_attempts(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of_12s();
    int64_t now = T0;
    while (hfi_lease_next(&times) < T0 + 5000 * HFI_MS) {
        now = hfi_lease_next(&times);
        assert_false(hfi_lease_on_timer(&times, now, RTT).at_risk);
    }
    assert_true(now > T0 + 4000 * HFI_MS); /* more than one attempt */
    assert_int_equal(hfi_lease_next(&times), T0 + 5000 * HFI_MS);
    assert_int_equal(look_ms(&times, 5000).reason, HF_REASON_UNCONFIRMED);
}

/* No claim's quarter of a second: there will be no more of it. */
static void the_last_of_it_is_told_with_the_whole_time_to_stop(void **state)
{
    (void)state;
    struct hfi_lease_times times;
    hfi_lease_begin(&times, T0 + 6000 * HFI_MS, 6000 * HFI_MS, 6000, 600, 2000, T0, RTT);
    assert_int_equal(times.stop, 600 * HFI_MS);
    hfi_lease_begin(&times, T0 + 2000 * HFI_MS, 2000 * HFI_MS, 6000, 600, 2000, T0, RTT); /* a claim */
    assert_int_equal(times.stop, 600 * HFI_MS);
    assert_int_equal(hfi_lease_next(&times), T0 + 1400 * HFI_MS);
    hfi_lease_begin(&times, T0 + 2000 * HFI_MS, 2000 * HFI_MS, 6000, 600, 2001, T0, RTT);
    assert_int_equal(times.stop, 500 * HFI_MS);
}

static void a_doubt_is_asked_about_at_once_and_not_again_within_ten_milliseconds(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of_12s();
    hfi_lease_question(&times);
    assert_true(hfi_lease_next(&times) <= T0);
    assert_true(look_ms(&times, 1).renew);
    assert_nothing_due(look_ms(&times, 2));
    hfi_lease_question(&times);
    assert_int_equal(hfi_lease_next(&times), T0 + 11 * HFI_MS);
    assert_nothing_due(look_ms(&times, 10));
    assert_true(look_ms(&times, 11).renew);
    assert_nothing_due(look_ms(&times, 30));
}

/* It was executed before whoever doubts came. */
static void an_answer_to_what_was_sent_before_a_doubt_does_not_settle_it(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of_12s();
    assert_true(look_ms(&times, 4000).renew);
    hfi_lease_question(&times);
    hfi_lease_settle(&times, T0 + 4000 * HFI_MS);
    (void)renewed_ms(&times, 4000, 4005);
    assert_int_equal(hfi_lease_next(&times), T0 + 4010 * HFI_MS);
    assert_true(look_ms(&times, 4010).renew);
}

/* A connection that is lost takes the question with it, or its answer. */
static void a_doubt_is_asked_about_until_it_is_answered_and_then_no_more(void **state)
{
    (void)state;
    for (int is_last = 0; is_last < 2; is_last++) {
        struct hfi_lease_times times;
        hfi_lease_begin(&times, T0 + 12000 * HFI_MS, 12000 * HFI_MS, 12000, 2000, is_last ? 9000 : 0, T0, RTT);
        (void)look_ms(&times, 1000);
        hfi_lease_question(&times);
        assert_true(look_ms(&times, 1001).renew);
        assert_nothing_due(look_ms(&times, 1400));
        assert_true(look_ms(&times, 2300).renew);
        hfi_lease_settle(&times, T0 + 1001 * HFI_MS); /* late, but it was asked after the doubt */
        (void)hfi_lease_renewed(&times, T0 + 1001 * HFI_MS, is_last ? 0 : times.length, T0 + 2301 * HFI_MS, RTT);
        assert_nothing_due(look_ms(&times, is_last ? 6999 : 4900));
    }
}

/* The renewal was executed before, and puts the next one a third of the lease ahead. */
static void an_answer_to_a_renewal_before_a_doubt_neither_settles_nor_delays_it(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of_12s();
    hfi_lease_question(&times);
    assert_true(look_ms(&times, 1).renew);
    (void)hfi_lease_renewed(&times, T0 + HFI_MS / 2, times.length, T0 + 30 * HFI_MS, RTT);
    assert_true(look_ms(&times, 2 + 8000 / 13).renew);
}

static void a_doubt_about_the_last_of_it_is_one_question(void **state)
{
    (void)state;
    struct hfi_lease_times times;
    hfi_lease_begin(&times, T0 + 12000 * HFI_MS, 12000 * HFI_MS, 12000, 2000, 10000, T0, RTT);
    assert_nothing_due(look_ms(&times, 1000));
    hfi_lease_question(&times);
    assert_true(look_ms(&times, 1001).renew);
    hfi_lease_settle(&times, T0 + 1001 * HFI_MS);
    (void)hfi_lease_renewed(&times, T0 + 1001 * HFI_MS, 0, T0 + 1002 * HFI_MS, RTT); /* it may not extend anything */
    assert_int_equal(times.end, T0 + 12000 * HFI_MS);
    assert_nothing_due(look_ms(&times, 7999));
}

static void looking_at_each_next_point_never_stands_still(void **state)
{
    (void)state;
    struct hfi_lease_times times;
    hfi_lease_begin(&times, T0 + 100 * HFI_MS, 100 * HFI_MS, 100, 99, 60, T0, 50 * HFI_MS);
    int64_t now = T0;
    for (int looks = 0; hfi_lease_next(&times) != HFI_NEVER; looks++) {
        int64_t next = hfi_lease_next(&times);
        now = next > now ? next : now;
        struct hfi_lease_due due = hfi_lease_on_timer(&times, now, 50 * HFI_MS);
        assert_true(due.renew || due.at_risk || due.lost);
        assert_true(looks < 100);
    }
    assert_int_equal(now, T0 + 60 * HFI_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_guard_covers_two_clocks_their_grain_and_a_busy_process),
        cmocka_unit_test(a_claim_is_a_second_or_the_whole_of_a_shorter_lease),
        cmocka_unit_test(the_first_renewal_is_due_at_a_third),
        cmocka_unit_test(renewal_is_tried_at_least_twelve_times_before_the_end),
        cmocka_unit_test(renewals_that_failed_apart_are_tried_again_together),
        cmocka_unit_test(attempts_are_a_round_trip_apart_at_least),
        cmocka_unit_test(an_overdue_renewal_is_told_once_and_so_is_its_coming_through),
        cmocka_unit_test(slow_round_trips_give_a_renewal_more_time_before_it_is_overdue),
        cmocka_unit_test(the_end_is_announced_stop_ms_before_after_an_earlier_warning_too),
        cmocka_unit_test(the_first_question_may_be_late),
        cmocka_unit_test(a_claims_first_renewal_is_no_later_than_a_third_of_the_lease),
        cmocka_unit_test(at_its_end_and_not_before_it_is_lost_for_good),
        cmocka_unit_test(a_renewal_answered_after_the_end_raises_nothing),
        cmocka_unit_test(an_older_renewal_answered_late_moves_nothing_back),
        cmocka_unit_test(a_renewal_that_asked_for_less_is_good_for_less_and_renewed_soon),
        cmocka_unit_test(a_claim_is_renewed_at_half_and_warns_in_its_last_quarter),
        cmocka_unit_test(it_ends_at_max_hold_and_is_renewed_only_as_far),
        cmocka_unit_test(before_max_hold_it_can_expire),
        cmocka_unit_test(the_reason_of_a_loss_is_the_earliest),
        cmocka_unit_test(a_silence_is_looked_at_when_it_is_one_and_not_between_attempts),
        cmocka_unit_test(the_last_of_it_is_told_with_the_whole_time_to_stop),
        cmocka_unit_test(a_doubt_is_asked_about_at_once_and_not_again_within_ten_milliseconds),
        cmocka_unit_test(an_answer_to_what_was_sent_before_a_doubt_does_not_settle_it),
        cmocka_unit_test(a_doubt_is_asked_about_until_it_is_answered_and_then_no_more),
        cmocka_unit_test(an_answer_to_a_renewal_before_a_doubt_neither_settles_nor_delays_it),
        cmocka_unit_test(a_doubt_about_the_last_of_it_is_one_question),
        cmocka_unit_test(looking_at_each_next_point_never_stands_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
