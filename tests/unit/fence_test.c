/* SPDX-License-Identifier: MIT */
/* fence_test.c - whether a fence is above all that were given, and what time it can be at the server. */
#include "base/clock.h"
#include "core/policy/fence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NOW_US INT64_C(1800000000000000) /* in the year 2027 */
#define T0     (INT64_C(777) * 1000 * HFI_MS)
#define S      (1000 * HFI_MS)

static void an_estimate_of_the_servers_clock_errs_by_two_rates_and_never_upwards(void **state)
{
    (void)state;
    struct hfi_server_clock clock = {0};
    assert_int_equal(hfi_server_clock_at_least_us(&clock, T0), 0);
    hfi_server_clock_observe(&clock, NOW_US, T0);
    assert_int_equal(hfi_server_clock_at_least_us(&clock, T0), NOW_US);
    assert_int_equal(hfi_server_clock_at_least_us(&clock, T0 + 100 * S), NOW_US + 98000000);
    assert_int_equal(hfi_server_clock_at_most_us(&clock, T0), NOW_US + 1000);
    assert_int_equal(hfi_server_clock_at_most_us(&clock, T0 + 100 * S), NOW_US + 102001000);
}

static void only_a_later_server_time_than_expected_moves_the_estimate(void **state)
{
    (void)state;
    struct hfi_server_clock clock = {0};
    hfi_server_clock_observe(&clock, NOW_US, T0);
    hfi_server_clock_observe(&clock, NOW_US - 3600000000, T0 + S); /* stepped back, or a failover */
    assert_int_equal(hfi_server_clock_at_least_us(&clock, T0 + S), NOW_US + 980000);
    hfi_server_clock_observe(&clock, NOW_US + 1000000, T0 + S);
    assert_int_equal(hfi_server_clock_at_least_us(&clock, T0 + S), NOW_US + 1000000);
}

static void a_fence_below_the_clock_the_highest_seen_or_any_sane_counter_is_bad(void **state)
{
    (void)state;
    int64_t fence = (NOW_US + 2000000) * HFI_FENCE_BLOCK;
    assert_true(hfi_fence_is_good(fence, 0, NOW_US, 0));
    assert_true(hfi_fence_is_good(fence, fence - 1, NOW_US, 0));
    assert_false(hfi_fence_is_good(fence, fence, NOW_US, 0));
    assert_true(hfi_fence_is_good(NOW_US * HFI_FENCE_BLOCK, 0, NOW_US, 0));
    assert_false(hfi_fence_is_good(NOW_US * HFI_FENCE_BLOCK - 1, 0, NOW_US, 0));
    assert_false(hfi_fence_is_good(HFI_FENCE_BLOCK, 0, 0, 0)); /* a fresh counter, by whom nothing is known */
    assert_false(hfi_fence_is_good((INT64_C(1) << 60) - 1, 0, 0, 0));
    assert_true(hfi_fence_is_good(INT64_C(1) << 60, 0, 0, 0));
    assert_false(hfi_fence_is_good(0, 0, 0, 0));
    assert_false(hfi_fence_is_good(-1, -2, 0, 0));
    assert_true(hfi_fence_is_good(INT64_MAX - (INT64_C(1) << 40), 0, 0, 0));
    assert_false(hfi_fence_is_good(INT64_MAX - (INT64_C(1) << 40) + 1, 0, 0, 0));
    assert_false(hfi_fence_is_good(INT64_MAX, 0, 0, 0)); /* a block of it would not fit */
}

/* The bound at the time when a command was sent: a good fence may be read long after it was given. */
static void the_bound_of_an_earlier_moment_is_lower(void **state)
{
    (void)state;
    struct hfi_server_clock clock = {0};
    hfi_server_clock_observe(&clock, NOW_US, T0);
    assert_int_equal(hfi_server_clock_at_least_us(&clock, T0 - S), NOW_US - 1020000);
    assert_int_equal(hfi_server_clock_at_least_us(&clock, T0), NOW_US);
    hfi_server_clock_observe(&clock, NOW_US - 1, T0 - S); /* an older answer that is read late is no better estimate */
    assert_int_equal(hfi_server_clock_at_least_us(&clock, T0), NOW_US);
}

/* Such a fence may come from a counter that came back after a demotion, and is then below the other primary's. */
static void a_fence_that_is_less_than_a_second_ahead_of_its_grant_is_bad(void **state)
{
    (void)state;
    int64_t fence = (NOW_US + 1000000) * HFI_FENCE_BLOCK;
    assert_true(hfi_fence_is_good(fence, 0, 0, NOW_US));
    assert_false(hfi_fence_is_good(fence, 0, 0, NOW_US + 1));
    assert_false(hfi_fence_is_good(fence - 1, 0, 0, NOW_US));
    assert_true(hfi_fence_is_good(fence, 0, NOW_US + 1000000, NOW_US)); /* the estimate may say more */
    assert_false(hfi_fence_is_good(fence, 0, NOW_US + 1000001, NOW_US));
}

static void a_fence_of_today_has_nineteen_digits(void **state)
{
    (void)state;
    assert_true(NOW_US * HFI_FENCE_BLOCK > INT64_C(1000000000000000000));
    assert_true(NOW_US * HFI_FENCE_BLOCK > (INT64_C(1) << 60));
}

static void two_replies_whose_clocks_disagree_show_a_step(void **state)
{
    (void)state;
    struct hfi_sample sample = {0};
    assert_false(hfi_sample_is_stepped(&sample, NOW_US, T0,
                                       T0 + 2 * HFI_MS)); /* the first has nothing to differ from */
    assert_false(hfi_sample_is_stepped(&sample, NOW_US + 10000000, T0 + 10 * S, T0 + 10 * S + 2 * HFI_MS));
    assert_true(hfi_sample_is_stepped(&sample, NOW_US + 10000000 + 5250000, T0 + 15 * S, T0 + 15 * S));
    assert_true(
        hfi_sample_is_stepped(&sample, NOW_US + 10000000 + 5250000 - 1000000, T0 + 16 * S, T0 + 16 * S));
    assert_false(hfi_sample_is_stepped(&sample, NOW_US + 10000000 + 5250000, T0 + 17 * S,
                                       T0 + 17 * S)); /* noticed once */
}

static void rates_within_the_bound_and_slow_answers_are_no_step(void **state)
{
    (void)state;
    struct hfi_sample sample = {0};
    (void)hfi_sample_is_stepped(&sample, NOW_US, T0, T0);
    assert_false(hfi_sample_is_stepped(&sample, NOW_US + 101900000, T0 + 100 * S, T0 + 100 * S));
    sample = (struct hfi_sample){0};
    (void)hfi_sample_is_stepped(&sample, NOW_US, T0, T0);
    assert_false(hfi_sample_is_stepped(&sample, NOW_US + 98100000, T0 + 100 * S, T0 + 100 * S));
    sample = (struct hfi_sample){0};
    (void)hfi_sample_is_stepped(&sample, NOW_US, T0,
                                T0 + 3 * S); /* 3 s under way: the server wrote it somewhere between */
    assert_false(hfi_sample_is_stepped(&sample, NOW_US + 4000000, T0 + 4 * S, T0 + 4 * S));
    sample = (struct hfi_sample){0};
    (void)hfi_sample_is_stepped(&sample, NOW_US, T0, T0 + 3 * S);
    assert_false(hfi_sample_is_stepped(&sample, NOW_US + 1000000, T0 + 4 * S, T0 + 4 * S));
}

/* Asked at 10 s, answered at 11, asked again at 20, answered at 22: 9 to 12 s passed there, by 240 and 5 ms at most. */
static void a_step_is_what_two_clocks_and_two_ways_cannot_explain(void **state)
{
    (void)state;
    static const struct {
        int64_t passed_us;
        bool stepped;
    } cases[] = {{9000000 - 245000, false}, {9000000 - 245001, true}, {12000000 + 245000, false}, {12000000 + 245001, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hfi_sample sample = {0};
        assert_false(hfi_sample_is_stepped(&sample, NOW_US, T0 + 10 * S, T0 + 11 * S));
        assert_int_equal(hfi_sample_is_stepped(&sample, NOW_US + cases[i].passed_us, T0 + 20 * S, T0 + 22 * S),
                         cases[i].stepped);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_estimate_of_the_servers_clock_errs_by_two_rates_and_never_upwards),
        cmocka_unit_test(only_a_later_server_time_than_expected_moves_the_estimate),
        cmocka_unit_test(a_fence_below_the_clock_the_highest_seen_or_any_sane_counter_is_bad),
        cmocka_unit_test(the_bound_of_an_earlier_moment_is_lower),
        cmocka_unit_test(a_fence_that_is_less_than_a_second_ahead_of_its_grant_is_bad),
        cmocka_unit_test(a_fence_of_today_has_nineteen_digits),
        cmocka_unit_test(two_replies_whose_clocks_disagree_show_a_step),
        cmocka_unit_test(rates_within_the_bound_and_slow_answers_are_no_step),
        cmocka_unit_test(a_step_is_what_two_clocks_and_two_ways_cannot_explain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
