/* SPDX-License-Identifier: MIT */
/* doubt_test.c - a token that was given up is released until nothing of it can come any more, and not longer. */
#include "core/doubt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NOW   (INT64_C(5000) * HFI_MS)
#define THERE INT64_C(1700000000000000)

static void one_answer_is_enough_if_every_acquire_was_answered(void **state)
{
    (void)state;
    struct hfi_doubt doubt = {.unclear = false, .last_chance_us = THERE + 1000000, .last_chance_ns = NOW + 1000 * HFI_MS};
    assert_true(hfi_doubt_is_over(&doubt, THERE, NOW));
}

static void an_unanswered_script_is_outlived_on_the_servers_clock(void **state)
{
    (void)state;
    struct hfi_doubt doubt = {.unclear = true, .last_chance_us = THERE};
    assert_false(hfi_doubt_is_over(&doubt, THERE - 30000, NOW));
    assert_int_equal(hfi_doubt_again_ns(&doubt, THERE - 30000, NOW), NOW + 31 * HFI_MS);
    assert_false(hfi_doubt_is_over(&doubt, THERE, NOW)); /* the script obeys as long as now is not later */
    assert_int_equal(hfi_doubt_again_ns(&doubt, THERE, NOW), NOW + HFI_MS);
    assert_true(hfi_doubt_is_over(&doubt, THERE + 1, NOW));
}

static void an_unanswered_native_one_is_outlived_on_our_clock(void **state)
{
    (void)state;
    struct hfi_doubt doubt = {.unclear = true, .last_chance_ns = NOW};
    assert_false(hfi_doubt_is_over(&doubt, THERE, NOW - 50 * HFI_MS));
    assert_int_equal(hfi_doubt_again_ns(&doubt, THERE, NOW - 50 * HFI_MS), NOW + HFI_MS);
    assert_false(hfi_doubt_is_over(&doubt, THERE, NOW));
    assert_true(hfi_doubt_is_over(&doubt, THERE, NOW + 1));
}

static void a_release_without_an_answer_is_repeated_at_the_pace_of_re_checks(void **state)
{
    (void)state;
    struct hfi_doubt doubt = {.unclear = true, .last_chance_us = THERE, .last_chance_ns = NOW + 9000 * HFI_MS};
    assert_int_equal(hfi_doubt_again_ns(&doubt, 0, NOW), NOW + 400 * HFI_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_answer_is_enough_if_every_acquire_was_answered),
        cmocka_unit_test(an_unanswered_script_is_outlived_on_the_servers_clock),
        cmocka_unit_test(an_unanswered_native_one_is_outlived_on_our_clock),
        cmocka_unit_test(a_release_without_an_answer_is_repeated_at_the_pace_of_re_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
