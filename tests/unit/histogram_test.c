/* SPDX-License-Identifier: MIT */
/* histogram_test.c - bounds, and where a time is counted. */
#include "base/clock.h"
#include "core/context/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const int64_t bounds_ms[HFI_BOUNDS] = {1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000, 300000};

static void bounds_are_one_and_three_of_each_power_of_ten(void **state)
{
    int64_t ms = 1;
    (void)state;
    for (int i = 0; i < HFI_BOUNDS; ms = hfi_histogram_next(ms, i), i++)
        assert_int_equal(ms, bounds_ms[i]);
}

static void a_time_is_counted_at_the_first_bound_that_it_is_not_beyond(void **state)
{
    struct hfi_histogram h = {0};
    (void)state;
    for (int i = 0; i < HFI_BOUNDS; i++) {
        hfi_histogram_add(&h, bounds_ms[i] * HFI_MS);
        assert_int_equal(h.counts[i], i == 0 ? 1 : 2);
        hfi_histogram_add(&h, bounds_ms[i] * HFI_MS + 1);
        assert_int_equal(h.counts[i + 1], 1);
    }
    assert_int_equal(h.counts[0], 1);
}

static void short_ones_are_told_together(void **state)
{
    struct hfi_histogram h = {0};
    (void)state;
    hfi_histogram_add(&h, 5);
    hfi_histogram_add_short(&h, 7, 11);
    assert_int_equal(h.counts[0], 8);
    assert_int_equal(h.sum_ns, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_one_and_three_of_each_power_of_ten),
        cmocka_unit_test(a_time_is_counted_at_the_first_bound_that_it_is_not_beyond),
        cmocka_unit_test(short_ones_are_told_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
