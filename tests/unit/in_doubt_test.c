/* SPDX-License-Identifier: MIT */
/* in_doubt_test.c - a token that was given up is released until nothing of it can be executed any more, and not
 * longer. */
#include "core/policy/in_doubt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NOW   (INT64_C(5000) * HFI_MS)
#define THERE INT64_C(1700000000000000)

static void one_answer_is_enough_if_every_acquire_was_answered(void **state)
{
    (void)state;
    struct hfi_in_doubt doubt = {.unanswered = false, .last_chance_us = THERE + 1000000, .last_chance_ns = NOW + 1000 * HFI_MS};
    assert_true(hfi_in_doubt_is_over(&doubt, THERE, NOW));
}

static void an_unanswered_script_is_outlived_on_the_servers_clock(void **state)
{
    (void)state;
    struct hfi_in_doubt doubt = {.unanswered = true, .last_chance_us = THERE};
    assert_false(hfi_in_doubt_is_over(&doubt, THERE - 30000, NOW));
    assert_int_equal(hfi_in_doubt_again_ns(&doubt, THERE - 30000, NOW), NOW + 31 * HFI_MS);
    assert_false(hfi_in_doubt_is_over(&doubt, THERE, NOW)); /* the script obeys as long as now is not later */
    assert_int_equal(hfi_in_doubt_again_ns(&doubt, THERE, NOW), NOW + HFI_MS);
    assert_true(hfi_in_doubt_is_over(&doubt, THERE + 1, NOW));
}

static void an_unanswered_native_one_is_outlived_on_our_clock(void **state)
{
    (void)state;
    struct hfi_in_doubt doubt = {.unanswered = true, .last_chance_ns = NOW};
    assert_false(hfi_in_doubt_is_over(&doubt, THERE, NOW - 50 * HFI_MS));
    assert_int_equal(hfi_in_doubt_again_ns(&doubt, THERE, NOW - 50 * HFI_MS), NOW + HFI_MS);
    assert_false(hfi_in_doubt_is_over(&doubt, THERE, NOW));
    assert_true(hfi_in_doubt_is_over(&doubt, THERE, NOW + 1));
}

/* Both clocks: an acquire that was sent behind its release, most likely executed soon, or else as late as that. */
static void it_is_released_once_more_on_our_clock_before_the_servers(void **state)
{
    (void)state;
    struct hfi_in_doubt doubt = {.unanswered = true, .last_chance_us = THERE + 72000000, .last_chance_ns = NOW + 200 * HFI_MS};
    assert_int_equal(hfi_in_doubt_again_ns(&doubt, THERE, NOW), NOW + 201 * HFI_MS);
    assert_int_equal(hfi_in_doubt_again_ns(&doubt, THERE + 201000, NOW + 201 * HFI_MS), NOW + 72001 * HFI_MS);
    doubt.last_chance_us = THERE + 100000;
    assert_int_equal(hfi_in_doubt_again_ns(&doubt, THERE, NOW), NOW + 101 * HFI_MS);
    assert_int_equal(hfi_in_doubt_again_ns(&doubt, THERE + 101000, NOW + 101 * HFI_MS), NOW + 201 * HFI_MS);
}

static void an_answer_without_a_time_is_asked_for_once_more(void **state)
{
    (void)state;
    struct hfi_in_doubt doubt = {.unanswered = true, .last_chance_us = THERE, .last_chance_ns = NOW + 9000 * HFI_MS};
    assert_false(hfi_in_doubt_is_over(&doubt, 0, NOW + 10000 * HFI_MS));
    assert_int_equal(hfi_in_doubt_again_ns(&doubt, 0, NOW), NOW + 400 * HFI_MS);
    doubt.last_chance_us = 0; /* no script of the token was sent */
    assert_false(hfi_in_doubt_is_over(&doubt, 0, NOW + 9000 * HFI_MS));
    assert_true(hfi_in_doubt_is_over(&doubt, 0, NOW + 9001 * HFI_MS));
}

static void a_release_without_an_answer_is_repeated_at_the_pace_of_re_checks(void **state)
{
    (void)state;
    struct hfi_in_doubt doubt = {.ends_ns = NOW + 9000 * HFI_MS};
    for (int i = 0; i < 20; i++)
        assert_int_equal(hfi_in_doubt_failed_ns(&doubt, false, NOW + i * HFI_MS), NOW + (i + 400) * HFI_MS);
}

static void a_release_that_is_refused_is_repeated_ever_more_seldom(void **state)
{
    (void)state;
    struct hfi_in_doubt doubt = {.ends_ns = NOW + 9000 * HFI_MS};
    static const int64_t pauses_ms[] = {400, 800, 1600, 1600, 1600};
    for (size_t i = 0; i < sizeof pauses_ms / sizeof pauses_ms[0]; i++)
        assert_int_equal(hfi_in_doubt_failed_ns(&doubt, true, NOW), NOW + pauses_ms[i] * HFI_MS);
    assert_int_equal(hfi_in_doubt_failed_ns(&doubt, false, NOW), NOW + 400 * HFI_MS);
}

static void a_token_whose_key_has_expired_is_released_no_more(void **state)
{
    (void)state;
    for (int refused = 0; refused < 2; refused++) {
        struct hfi_in_doubt doubt = {.unanswered = true, .last_chance_us = INT64_MAX, .ends_ns = NOW};
        assert_int_equal(hfi_in_doubt_failed_ns(&doubt, refused, NOW - 401 * HFI_MS), NOW - HFI_MS);
        assert_int_equal(hfi_in_doubt_failed_ns(&doubt, refused, NOW - HFI_MS), HFI_NEVER);
    }
}

/* Two tokens in one place of the table, alike in the bits that choose it. */
static const uint64_t hash = UINT64_C(0x123456789abcdef0), other = UINT64_C(0x123456799abcdef0),
                      lower = UINT64_C(0x123456779abcdef0);

static void a_message_that_crossed_the_release_is_late_and_no_more(void **state)
{
    (void)state;
    uint64_t mark = hfi_in_doubt_over_mark(hash, NOW);
    assert_true(hfi_in_doubt_has_crossed(mark, hash, NOW));
    assert_true(hfi_in_doubt_has_crossed(mark, hash, NOW + HFI_IN_DOUBT_CROSSING_MS * HFI_MS));
    assert_false(hfi_in_doubt_has_crossed(mark, other, NOW));
    assert_false(hfi_in_doubt_has_crossed(mark, lower, NOW));
    assert_false(hfi_in_doubt_has_crossed(0, hash, NOW)); /* no mark */
}

static void an_orphan_that_a_failover_brought_back_is_released_at_the_next_re_check(void **state)
{
    (void)state;
    uint64_t mark = hfi_in_doubt_over_mark(hash, NOW);
    assert_true(HFI_IN_DOUBT_CROSSING_MS < 400 * 9 / 10);
    assert_false(hfi_in_doubt_has_crossed(mark, hash, NOW + 360 * HFI_MS));
    assert_false(hfi_in_doubt_has_crossed(mark, hash, NOW + (HFI_IN_DOUBT_CROSSING_MS + 1) * HFI_MS));
    assert_false(hfi_in_doubt_has_crossed(mark, hash, NOW + INT64_C(86400000) * HFI_MS));
}

static void the_mark_outlives_the_wrap_of_its_milliseconds(void **state)
{
    (void)state;
    int64_t wrap = (INT64_C(1) << 32) * HFI_MS;
    uint64_t mark = hfi_in_doubt_over_mark(hash, wrap - HFI_MS);
    assert_true(hfi_in_doubt_has_crossed(mark, hash, wrap + HFI_MS));
    assert_false(hfi_in_doubt_has_crossed(mark, hash, wrap + 360 * HFI_MS));
}

static void a_token_that_is_named_again_is_released_10_ms_after_the_last_time(void **state)
{
    (void)state;
    uint64_t mark = hfi_in_doubt_over_mark(hash, NOW);
    for (int64_t later = 0; later < 11; later++) /* never less, though the mark is of a whole millisecond */
        assert_int_equal(hfi_in_doubt_heal_ns(mark, hash, NOW + later * HFI_MS), NOW + 11 * HFI_MS);
    mark = hfi_in_doubt_over_mark(hash, NOW + HFI_MS - 1);
    assert_int_equal(hfi_in_doubt_heal_ns(mark, hash, NOW + 10 * HFI_MS), NOW + 11 * HFI_MS);
    assert_int_equal(hfi_in_doubt_heal_ns(mark, hash, NOW + 11 * HFI_MS + 1), NOW + 11 * HFI_MS + 1);
    assert_int_equal(hfi_in_doubt_heal_ns(mark, hash, NOW + 500 * HFI_MS), NOW + 500 * HFI_MS);
    assert_int_equal(hfi_in_doubt_heal_ns(mark, other, NOW), NOW); /* at once */
    assert_int_equal(hfi_in_doubt_heal_ns(0, hash, NOW), NOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_answer_is_enough_if_every_acquire_was_answered),
        cmocka_unit_test(an_unanswered_script_is_outlived_on_the_servers_clock),
        cmocka_unit_test(an_unanswered_native_one_is_outlived_on_our_clock),
        cmocka_unit_test(it_is_released_once_more_on_our_clock_before_the_servers),
        cmocka_unit_test(an_answer_without_a_time_is_asked_for_once_more),
        cmocka_unit_test(a_release_that_is_refused_is_repeated_ever_more_seldom),
        cmocka_unit_test(a_token_whose_key_has_expired_is_released_no_more),
        cmocka_unit_test(a_release_without_an_answer_is_repeated_at_the_pace_of_re_checks),
        cmocka_unit_test(a_message_that_crossed_the_release_is_late_and_no_more),
        cmocka_unit_test(an_orphan_that_a_failover_brought_back_is_released_at_the_next_re_check),
        cmocka_unit_test(a_token_that_is_named_again_is_released_10_ms_after_the_last_time),
        cmocka_unit_test(the_mark_outlives_the_wrap_of_its_milliseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
