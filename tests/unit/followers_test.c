/* SPDX-License-Identifier: MIT */
#include "pool/followers.h"
#include "pool/times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PERIOD HFI_OWN_MOST_NS
#define BEGAN  (1000 * PERIOD)

static void who_waits_is_counted_till_it_leaves(void **state)
{
    struct hfi_followers all = {0};
    (void)state;
    assert_int_equal(hfi_followers_count(&all, BEGAN), 0);
    uint32_t first = hfi_followers_join(&all, BEGAN), second = hfi_followers_join(&all, BEGAN + PERIOD - 1);
    assert_int_equal(hfi_followers_count(&all, BEGAN), 2);
    hfi_followers_leave(&all, first);
    assert_int_equal(hfi_followers_count(&all, BEGAN + PERIOD), 1);
    hfi_followers_leave(&all, second);
    assert_int_equal(hfi_followers_count(&all, BEGAN + PERIOD), 0);
}

static void who_waits_for_long_is_counted_no_more(void **state)
{
    struct hfi_followers all = {0};
    uint32_t waits[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        waits[i] = hfi_followers_join(&all, BEGAN + i * PERIOD);
    assert_int_equal(hfi_followers_count(&all, BEGAN + 2 * PERIOD), 2); /* the first is not lately any more, */
    hfi_followers_leave(&all, waits[0]);                                /* and leaves without a trace */
    assert_int_equal(hfi_followers_count(&all, BEGAN + 2 * PERIOD), 2);
    assert_int_equal(hfi_followers_count(&all, BEGAN + 3 * PERIOD), 1);
    assert_int_equal(hfi_followers_count(&all, BEGAN + 4 * PERIOD), 0);
    hfi_followers_leave(&all, waits[1]);
    hfi_followers_leave(&all, waits[2]);
    assert_int_equal(hfi_followers_count(&all, BEGAN + 2 * PERIOD), 0);
}

/* Its thread lost the CPU between the look at the clock and the count. */
static void who_joins_late_takes_nobody_from_the_count(void **state)
{
    struct hfi_followers all = {0};
    (void)state;
    uint32_t on_time = hfi_followers_join(&all, BEGAN + 2 * PERIOD), late = hfi_followers_join(&all, BEGAN);
    assert_int_equal(hfi_followers_count(&all, BEGAN + 2 * PERIOD), 1);
    hfi_followers_leave(&all, late);
    assert_int_equal(hfi_followers_count(&all, BEGAN + 2 * PERIOD), 1);
    hfi_followers_leave(&all, on_time);
    assert_int_equal(hfi_followers_count(&all, BEGAN + 2 * PERIOD), 0);
}

/* Period numbers have wrapped: that of an empty slot is neither earlier nor later. */
static void an_empty_count_takes_any_period(void **state)
{
    struct hfi_followers all = {0};
    int64_t years_ns = (INT64_C(3) << 30) * PERIOD;
    (void)state;
    hfi_followers_leave(&all, hfi_followers_join(&all, years_ns));
    (void)hfi_followers_join(&all, years_ns + PERIOD);
    assert_int_equal(hfi_followers_count(&all, years_ns + PERIOD), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_is_counted_till_it_leaves),
        cmocka_unit_test(who_waits_for_long_is_counted_no_more),
        cmocka_unit_test(who_joins_late_takes_nobody_from_the_count),
        cmocka_unit_test(an_empty_count_takes_any_period),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
