/* SPDX-License-Identifier: MIT */
/* freshness_test.c - when a cached value is served, and when a thread begins to load it again. */
#include "base/random.h"
#include "core/policy/freshness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_value_is_fresh_until_only_its_stale_time_is_left(void **state)
{
    (void)state;
    assert_int_equal(hfi_freshness(60000, 10000, 0, 0, 0.5), HFI_FRESH);
    assert_int_equal(hfi_freshness(10001, 10000, 0, 0, 0.5), HFI_FRESH);
    assert_int_equal(hfi_freshness(10000, 10000, 0, 0, 0.5), HFI_OLD);
    assert_int_equal(hfi_freshness(1, 10000, 0, 0, 0.5), HFI_OLD);
    assert_int_equal(hfi_freshness(1, 0, 0, 0, 0.5), HFI_FRESH);
    assert_int_equal(hfi_freshness(0, 0, 0, 0, 0.5), HFI_OLD);
}

static void a_value_without_an_end_is_always_fresh(void **state)
{
    (void)state;
    assert_int_equal(hfi_freshness(-1, 10000, 1.0, 100000, 1e-300), HFI_FRESH);
}

static void early_refresh_needs_a_beta_and_a_known_load_time(void **state)
{
    (void)state;
    assert_int_equal(hfi_freshness(1, 0, 0, 1000, 1e-9), HFI_FRESH);
    assert_int_equal(hfi_freshness(1, 0, 1.0, 0, 1e-9), HFI_FRESH);
    assert_int_equal(hfi_freshness(1, 0, 1.0, 1000, 1.0), HFI_FRESH); /* -ln 1 is 0 */
    assert_int_equal(hfi_freshness(1, 0, 1.0, 1000, 1e-9), HFI_NEARLY_OLD);
}

static void early_refresh_begins_where_the_formula_says(void **state)
{
    (void)state;
    double u = 0.36787944117144233; /* e^-1: the load time itself */
    assert_int_equal(hfi_freshness(301, 0, 1.0, 300, u), HFI_FRESH);
    assert_int_equal(hfi_freshness(299, 0, 1.0, 300, u), HFI_NEARLY_OLD);
    assert_int_equal(hfi_freshness(599, 0, 2.0, 300, u), HFI_NEARLY_OLD);
    assert_int_equal(hfi_freshness(10299, 10000, 1.0, 300, u), HFI_NEARLY_OLD);
    assert_int_equal(hfi_freshness(10301, 10000, 1.0, 300, u), HFI_FRESH);
}

/* P(reload with x load times left) = e^-x. */
static void the_nearer_the_end_the_likelier_a_reload(void **state)
{
    (void)state;
    uint64_t rng = 3;
    int at_one = 0, at_five = 0;
    for (int i = 0; i < 100000; i++) {
        double u = (double)((hfi_rng_next(&rng) >> 11) + 1) / 9007199254740992.0;
        at_one += hfi_freshness(300, 0, 1.0, 300, u) == HFI_NEARLY_OLD;
        at_five += hfi_freshness(1500, 0, 1.0, 300, u) == HFI_NEARLY_OLD;
    }
    assert_in_range(at_one, 36000, 37600);
    assert_in_range(at_five, 550, 800);
}

static void a_load_takes_what_is_known_of_it_or_of_others_or_a_guess(void **state)
{
    (void)state;
    assert_int_equal(hfi_freshness_load_ms(300, 20, 60000), 300);
    assert_int_equal(hfi_freshness_load_ms(0, 20, 60000), 20);
    assert_int_equal(hfi_freshness_load_ms(0, 0, 60000), 600);
    assert_int_equal(hfi_freshness_load_ms(0, 0, 10), 1);
    int64_t mean_ms = 0;
    mean_ms = hfi_freshness_mean_ms(mean_ms, 100);
    assert_int_equal(mean_ms, 100);
    assert_in_range(hfi_freshness_mean_ms(mean_ms, 900), 101, 899);
    for (int i = 0; i < 100; i++)
        mean_ms = hfi_freshness_mean_ms(mean_ms, 900);
    assert_in_range(mean_ms, 890, 900);
}

static void others_are_busy_for_ten_milliseconds_with_this_value_and_no_other(void **state)
{
    (void)state;
    const int64_t ms = 1000000;
    const uint64_t hash = UINT64_C(0x123456789abcdef0), other = hash ^ UINT64_C(1) << 40;
    for (int64_t at = 0; at < (INT64_C(1) << 25) * ms; at += (INT64_C(1) << 21) * ms + 7) { /* round and round */
        uint64_t mark = hfi_freshness_busy_mark(hash, at);
        assert_true(hfi_freshness_is_busy(mark, hash, at));
        assert_true(hfi_freshness_is_busy(mark, hash, at + 9 * ms));
        assert_false(hfi_freshness_is_busy(mark, hash, at + 11 * ms));
        assert_false(hfi_freshness_is_busy(mark, hash, at + 3600 * 1000 * ms));
        assert_false(hfi_freshness_is_busy(mark, other, at));
    }
    assert_false(hfi_freshness_is_busy(0, hash, 5 * ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_fresh_until_only_its_stale_time_is_left),
        cmocka_unit_test(a_value_without_an_end_is_always_fresh),
        cmocka_unit_test(early_refresh_needs_a_beta_and_a_known_load_time),
        cmocka_unit_test(early_refresh_begins_where_the_formula_says),
        cmocka_unit_test(the_nearer_the_end_the_likelier_a_reload),
        cmocka_unit_test(a_load_takes_what_is_known_of_it_or_of_others_or_a_guess),
        cmocka_unit_test(others_are_busy_for_ten_milliseconds_with_this_value_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
