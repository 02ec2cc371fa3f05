/* SPDX-License-Identifier: MIT */
/* histogram_test.c - bounds, and where a time is counted. */
#include "base/clock.h"
#include "core/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void bounds_are_one_and_three_of_each_power_of_ten(void **state)
{
    static const int64_t ms[HFI_BOUNDS] = {1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000, 300000};
    (void)state;
    for (int i = 0; i < HFI_BOUNDS; i++)
        assert_int_equal(hfi_histogram_bound_ms(i), ms[i]);
}

static void a_time_is_counted_beyond_the_longest_bound_below_it(void **state)
{
    struct hfi_histogram h = {0};
    (void)state;
    hfi_histogram_add(&h, HFI_MS, 5); /* no longer than the first */
    for (int i = 0; i < HFI_BOUNDS; i++)
        assert_int_equal(h.longer[i], 0);
    for (int i = 0; i < HFI_BOUNDS; i++)
        hfi_histogram_add(&h, hfi_histogram_bound_ms(i) * HFI_MS + 1, 0);
    hfi_histogram_add(&h, 3 * HFI_MS, 7);
    hfi_histogram_add(&h, INT64_MAX, 0);
    assert_int_equal(h.longer[0], 2);
    for (int i = 1; i < HFI_BOUNDS - 1; i++)
        assert_int_equal(h.longer[i], 1);
    assert_int_equal(h.longer[HFI_BOUNDS - 1], 2);
    assert_int_equal(h.sum_ns, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_one_and_three_of_each_power_of_ten),
        cmocka_unit_test(a_time_is_counted_beyond_the_longest_bound_below_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
