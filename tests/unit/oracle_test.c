/* SPDX-License-Identifier: MIT */
/* oracle_test.c - the judge of the torture is judged first. */
#include "tests/torture/oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define MS INT64_C(1000000)
#define FENCE INT64_C(3700000000000000000)

struct seen {
    size_t overlaps, fences;
    struct hft_violation last;
};

static void note(const struct hft_violation *violation, void *arg)
{
    struct seen *seen = arg;
    seen->overlaps += violation->verdict == HFT_OVERLAP;
    seen->fences += violation->verdict == HFT_FENCE;
    seen->last = *violation;
}

static struct hft_interval section(int32_t lock, int64_t enter_ns, int64_t leave_ns, int64_t fence)
{
    return (struct hft_interval){.lock = lock, .enter_ns = enter_ns, .leave_ns = leave_ns, .fence = FENCE + fence};
}

static struct seen judge(struct hft_interval *history, size_t count)
{
    struct seen seen = {0};
    size_t found = hft_oracle_check(history, count, note, &seen);
    assert_int_equal(found, seen.overlaps + seen.fences);
    return seen;
}

static void a_clean_history_passes_in_whatever_order_it_was_written(void **state)
{
    (void)state;
    struct hft_interval history[] = {section(1, 30 * MS, 40 * MS, 9), section(0, 20 * MS, 30 * MS, 2),
                                     section(1, 0, 30 * MS, 3), section(0, 0, 20 * MS, 1),
                                     section(0, 30 * MS, 30 * MS, 2049)};
    struct seen seen = judge(history, 5);
    assert_int_equal(seen.overlaps, 0);
    assert_int_equal(seen.fences, 0);
    assert_int_equal(judge(history, 0).overlaps, 0);
}

static void two_holders_at_once_for_a_millisecond_are_reported(void **state)
{
    (void)state;
    struct hft_interval history[] = {section(0, 0, 10 * MS, 1), section(0, 9 * MS, 20 * MS, 2)};
    struct seen seen = judge(history, 2);
    assert_int_equal(seen.overlaps, 1);
    assert_int_equal(seen.fences, 0);
    assert_int_equal(seen.last.by, MS);
    assert_int_equal(seen.last.earlier.fence, FENCE + 1);
    assert_int_equal(seen.last.later.fence, FENCE + 2);
}

static void two_holders_at_once_for_a_nanosecond_are_reported(void **state)
{
    (void)state;
    struct hft_interval history[] = {section(0, 0, 10, 1), section(0, 9, 20, 2)};
    assert_int_equal(judge(history, 2).overlaps, 1);
}

static void a_holder_inside_a_much_longer_one_is_reported_though_another_was_between(void **state)
{
    (void)state;
    struct hft_interval history[] = {section(0, 0, 100, 1), section(0, 10, 20, 2), section(0, 30, 40, 3)};
    assert_int_equal(judge(history, 3).overlaps, 2);
}

static void a_moment_inside_another_ones_time_is_an_overlap(void **state)
{
    (void)state;
    struct hft_interval history[] = {section(0, 0, 100, 1), section(0, 50, 50, 2)};
    assert_int_equal(judge(history, 2).overlaps, 1);
}

static void a_fence_that_goes_back_by_one_is_reported(void **state)
{
    (void)state;
    struct hft_interval history[] = {section(0, 0, 10, 8), section(0, 10, 20, 7)};
    struct seen seen = judge(history, 2);
    assert_int_equal(seen.overlaps, 0);
    assert_int_equal(seen.fences, 1);
}

static void the_same_fence_twice_is_reported(void **state)
{
    (void)state;
    struct hft_interval history[] = {section(0, 0, 10, 8), section(0, 10, 20, 8)};
    assert_int_equal(judge(history, 2).fences, 1);
}

static void a_fence_below_an_older_highest_is_reported_though_it_rose_since(void **state)
{
    (void)state;
    struct hft_interval history[] = {section(0, 0, 10, 8), section(0, 10, 20, 5), section(0, 20, 30, 6)};
    assert_int_equal(judge(history, 3).fences, 2);
}

static void locks_are_judged_apart(void **state)
{
    (void)state;
    struct hft_interval history[] = {section(0, 0, 100, 9), section(1, 10, 20, 3), section(2, 10, 20, 3)};
    struct seen seen = judge(history, 3);
    assert_int_equal(seen.overlaps + seen.fences, 0);
}

static void what_nobody_wants_any_more_and_was_not_given_back_in_time_is_left_behind(void **state)
{
    (void)state;
    assert_int_equal(hft_oracle_left_behind(1000 * MS, 400 * MS, 0, 500 * MS), 100 * MS);
    assert_int_equal(hft_oracle_left_behind(1000 * MS, 500 * MS, 0, 500 * MS), 0);
    assert_int_equal(hft_oracle_left_behind(1000 * MS, 0, 450 * MS, 500 * MS), 50 * MS); /* thawed then */
    assert_int_equal(hft_oracle_left_behind(1000 * MS, INT64_MAX, 0, 500 * MS), 0);      /* somebody wants it */
    assert_int_equal(hft_oracle_left_behind(1000 * MS, 1001 * MS, 0, 500 * MS), 0);      /* somebody did, after the look */
}

static struct hft_interval reading(int64_t enter_ns, int64_t leave_ns, int64_t fence)
{
    struct hft_interval interval = section(0, enter_ns, leave_ns, fence);
    interval.shared = true;
    return interval;
}

static void sections_that_share_may_overlap_with_any_fences(void **state)
{
    (void)state;
    struct hft_interval history[] = {section(0, 0, 10, 1), reading(10, 50, 9), reading(11, 20, 5), reading(30, 40, 5),
                                     section(0, 50, 60, 10)};
    assert_int_equal(hft_oracle_check(history, 5, NULL, NULL), 0);
}

static void a_section_that_shares_is_not_beside_one_that_does_not(void **state)
{
    (void)state;
    struct hft_interval early[] = {reading(0, 50, 5), reading(10, 20, 5), section(0, 49, 60, 10)};
    struct hft_interval late[] = {section(0, 0, 50, 5), reading(49, 60, 10)};
    assert_int_equal(hft_oracle_check(early, 3, NULL, NULL), 1);
    assert_int_equal(hft_oracle_check(late, 2, NULL, NULL), 1);
}

static void fences_rise_from_those_that_share_to_those_that_do_not_and_back(void **state)
{
    (void)state;
    struct hft_interval early[] = {reading(0, 10, 5), reading(0, 10, 12), section(0, 20, 30, 10)};
    struct hft_interval late[] = {section(0, 0, 10, 10), reading(10, 20, 9), reading(10, 20, 11)};
    assert_int_equal(hft_oracle_check(early, 3, NULL, NULL), 1);
    assert_int_equal(hft_oracle_check(late, 3, NULL, NULL), 1);
}

static struct hft_interval having(int64_t enter_ns, int64_t leave_ns, int64_t fence, int16_t permits)
{
    struct hft_interval section_of = section(0, enter_ns, leave_ns, fence);
    section_of.permits = permits;
    return section_of;
}

static void as_many_permits_may_be_out_as_there_are(void **state)
{
    (void)state;
    struct hft_interval well[] = {having(0, 10, 1, 3), having(2, 12, 2, 2), having(10, 20, 3, 3), having(12, 13, 4, 2)};
    struct hft_interval much[] = {having(0, 10, 1, 3), having(1, 1, 7, 5), having(2, 12, 2, 2), having(9, 20, 3, 1)};
    struct hft_interval long_one[] = {having(0, 100, 1, 3), having(2, 3, 2, 2), having(4, 5, 3, 2), having(6, 7, 4, 3)};
    struct hft_interval twice[] = {having(0, 10, 1, 1), having(2, 12, 1, 1)};
    struct seen seen = {0};
    assert_int_equal(hft_oracle_check_permits(well, 4, 5, NULL, NULL), 0);
    assert_int_equal(hft_oracle_check_permits(much, 4, 5, note, &seen), 1);
    assert_int_equal(seen.overlaps, 1);
    assert_int_equal(seen.last.by, 1);
    assert_int_equal(hft_oracle_check_permits(long_one, 4, 5, NULL, NULL), 1);
    assert_int_equal(hft_oracle_check_permits(twice, 2, 5, note, &seen), 1);
    assert_int_equal(seen.fences, 1);
}

static struct hft_player ends(enum hft_end end, int64_t asked_ns, int64_t told_ns, const char *said)
{
    struct hft_player player = {.asked_ns = asked_ns, .told_ns = told_ns, .end = end};
    (void)snprintf(player.said, sizeof player.said, "%s", said);
    return player;
}

static const char *of_ring(struct hft_player one, struct hft_player other)
{
    const struct hft_player players[] = {one, other};
    static const char *const locks[] = {"a", "b"};
    int64_t late_ns;
    return hft_oracle_check_ring(players, locks, 2, 100, &late_ns);
}

static void of_an_overlap_what_was_after_the_switch_counts(void **state)
{
    const int64_t switched_ns[] = {100 * MS, 500 * MS};
    const struct hft_violation overlap = {.later = {.enter_ns = 450 * MS}, .by = 70 * MS};
    (void)state;
    assert_int_equal(hft_oracle_after_switch(&overlap, switched_ns, 2), 20 * MS);
    assert_int_equal(hft_oracle_after_switch(&overlap, switched_ns, 1), 70 * MS); /* long after it */
    assert_int_equal(hft_oracle_after_switch(&overlap, switched_ns, 0), 70 * MS);
}

static void grants_are_dated_by_the_first_section_of_their_block(void **state)
{
    const int64_t block = HFT_BLOCK;
    struct hft_interval history[] = {
        section(1, 10 * MS, 11 * MS, 5 * block), section(1, 3000 * MS, 3001 * MS, 5 * block + 9), /* passed on for long */
        section(1, 700 * MS, 701 * MS, 4 * block), section(1, 2500 * MS, 2501 * MS, 6 * block),
        section(1, 2800 * MS, 2801 * MS, 5 * block + 8), section(2, 4000 * MS, 4001 * MS, block)};
    (void)state;
    struct hft_grants grants = hft_oracle_grants(history, 6);
    assert_int_equal(grants.count, 4);
    assert_int_equal(grants.falls, 1);
    assert_int_equal(grants.apart_ns, 690 * MS);
    assert_int_equal(hft_oracle_grants(history, 0).count, 0);
}

static void a_ring_has_one_victim_in_time_that_is_told_of_all_its_locks(void **state)
{
    (void)state;
    struct hft_player on = ends(HFT_WENT_ON, 10, 120, ""), last = ends(HFT_WENT_ON, 30, 120, ""), victim = ends(HFT_VICTIM, 20, 110, "a b");
    assert_null(of_ring(on, victim));
    assert_null(of_ring(last, ends(HFT_VICTIM, 20, 130, "a b"))); /* the ring was not closed before */
    assert_string_equal(of_ring(on, ends(HFT_VICTIM, 20, 121, "a b")), "the victim was told late");
    assert_string_equal(of_ring(on, last), "no victim");
    assert_string_equal(of_ring(victim, victim), "two victims");
    assert_string_equal(of_ring(victim, ends(HFT_ELSE, 20, 110, "")), "one of them neither went on nor was the victim");
    assert_string_equal(of_ring(victim, ends(0, 0, 0, "")), "one of them neither went on nor was the victim");
    assert_string_equal(of_ring(on, ends(HFT_VICTIM, 20, 110, "a")), "the victim was not told of all locks");
}

static void a_value_is_too_old_a_nanosecond_after_its_bound_and_not_before(void **state)
{
    (void)state;
    assert_int_equal(hft_oracle_too_old(500 * MS, 0, 0), 0);
    assert_int_equal(hft_oracle_too_old(500 * MS, 200 * MS, 300 * MS), 0);
    assert_int_equal(hft_oracle_too_old(500 * MS, 200 * MS - 1, 300 * MS), 1);
    assert_int_equal(hft_oracle_too_old(500 * MS, 500 * MS, 0), 0);
    assert_int_equal(hft_oracle_too_old(500 * MS, 499 * MS, 0), MS);
    assert_int_equal(hft_oracle_too_old(500 * MS, 600 * MS, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_history_passes_in_whatever_order_it_was_written),
        cmocka_unit_test(two_holders_at_once_for_a_millisecond_are_reported),
        cmocka_unit_test(two_holders_at_once_for_a_nanosecond_are_reported),
        cmocka_unit_test(a_holder_inside_a_much_longer_one_is_reported_though_another_was_between),
        cmocka_unit_test(a_moment_inside_another_ones_time_is_an_overlap),
        cmocka_unit_test(a_fence_that_goes_back_by_one_is_reported),
        cmocka_unit_test(the_same_fence_twice_is_reported),
        cmocka_unit_test(a_fence_below_an_older_highest_is_reported_though_it_rose_since),
        cmocka_unit_test(locks_are_judged_apart),
        cmocka_unit_test(what_nobody_wants_any_more_and_was_not_given_back_in_time_is_left_behind),
        cmocka_unit_test(sections_that_share_may_overlap_with_any_fences),
        cmocka_unit_test(a_section_that_shares_is_not_beside_one_that_does_not),
        cmocka_unit_test(fences_rise_from_those_that_share_to_those_that_do_not_and_back),
        cmocka_unit_test(as_many_permits_may_be_out_as_there_are),
        cmocka_unit_test(of_an_overlap_what_was_after_the_switch_counts),
        cmocka_unit_test(grants_are_dated_by_the_first_section_of_their_block),
        cmocka_unit_test(a_value_is_too_old_a_nanosecond_after_its_bound_and_not_before),
        cmocka_unit_test(a_ring_has_one_victim_in_time_that_is_told_of_all_its_locks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
