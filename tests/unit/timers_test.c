/* SPDX-License-Identifier: MIT */
/* timers_test.c - the heap of timers against a plain array. */
#include "base/random.h"
#include "watchdog/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void what_is_due_comes_out_soonest_first(void **state)
{
    (void)state;
    struct hfi_timers timers = {0};
    struct hfi_timer timer[100] = {0};
    for (int i = 0; i < 100; i++)
        assert_false(hfi_timers_set(&timers, &timer[i], (i * 37) % 100));
    assert_int_equal(hfi_timers_next_ns(&timers), 0);
    for (int at = 0; at < 50; at++)
        assert_int_equal(hfi_timers_take(&timers, 49)->at_ns, at);
    assert_null(hfi_timers_take(&timers, 49));
    assert_int_equal(hfi_timers_next_ns(&timers), 50);
}

static void a_timer_moves_both_ways_and_can_be_disarmed(void **state)
{
    (void)state;
    struct hfi_timers timers = {0};
    struct hfi_timer a = {0}, b = {0}, c = {0};
    (void)hfi_timers_set(&timers, &a, 10);
    (void)hfi_timers_set(&timers, &b, 20);
    (void)hfi_timers_set(&timers, &c, 30);
    assert_true(hfi_timers_set(&timers, &a, 25));
    assert_true(hfi_timers_set(&timers, &c, 5));
    assert_true(hfi_timers_set(&timers, &b, HFI_NEVER));
    assert_false(hfi_timers_set(&timers, &b, HFI_NEVER));
    assert_false(hfi_timer_is_armed(&b));
    assert_ptr_equal(hfi_timers_take(&timers, 100), &c);
    assert_ptr_equal(hfi_timers_take(&timers, 100), &a);
    assert_false(hfi_timer_is_armed(&a));
    assert_null(hfi_timers_take(&timers, 100));
    assert_int_equal(hfi_timers_next_ns(&timers), HFI_NEVER);
}

enum { MANY = 200 };

static struct hfi_timer *soonest_of(struct hfi_timer *timer)
{
    struct hfi_timer *soonest = NULL;
    for (int i = 0; i < MANY; i++)
        if (hfi_timer_is_armed(&timer[i]) && (soonest == NULL || timer[i].at_ns < soonest->at_ns))
            soonest = &timer[i];
    return soonest;
}

static void it_agrees_with_a_plain_array_through_a_long_random_history(void **state)
{
    (void)state;
    uint64_t rng = 20;
    struct hfi_timers timers = {0};
    struct hfi_timer timer[MANY] = {0};
    bool armed[MANY] = {false};
    for (int step = 0; step < 300000; step++) {
        uint64_t die = hfi_rng_next(&rng);
        int which = (int)(die % MANY);
        int64_t at_ns = (int64_t)(hfi_rng_next(&rng) % 1000);
        if (die >> 60 < 11) {
            assert_int_equal(hfi_timers_set(&timers, &timer[which], at_ns), armed[which]);
            armed[which] = true;
        } else if (die >> 60 < 13) {
            assert_int_equal(hfi_timers_set(&timers, &timer[which], HFI_NEVER), armed[which]);
            armed[which] = false;
        } else {
            struct hfi_timer *expected = soonest_of(timer);
            struct hfi_timer *taken = hfi_timers_take(&timers, at_ns);
            if (expected == NULL || expected->at_ns > at_ns) {
                assert_null(taken);
            } else {
                assert_int_equal(taken->at_ns, expected->at_ns);
                armed[taken - timer] = false;
            }
        }
    }
}

/* As on a renewal grid: many timers at few points. Whichever is removed, in whatever order, the others stay. */
static void those_of_one_point_of_time_come_and_go_as_they_like(void **state)
{
    (void)state;
    uint64_t rng = 3;
    struct hfi_timers timers = {0};
    struct hfi_timer timer[MANY] = {0};
    for (int round = 0; round < 2000; round++) {
        int armed = 0, points = 1 + (int)(hfi_rng_next(&rng) % 5);
        for (int i = 0; i < MANY; i++)
            (void)hfi_timers_set(&timers, &timer[i], 100 * (1 + (int64_t)(hfi_rng_next(&rng) % (uint64_t)points)));
        for (int i = 0; i < MANY; i++)
            if (hfi_rng_next(&rng) % 3 == 0)
                (void)hfi_timers_set(&timers, &timer[i], hfi_rng_next(&rng) % 2 == 0 ? HFI_NEVER : 250);
        for (int i = 0; i < MANY; i++)
            armed += hfi_timer_is_armed(&timer[i]);
        int64_t last = 0;
        for (const struct hfi_timer *taken; (taken = hfi_timers_take(&timers, 1000)) != NULL; armed--) {
            assert_true(taken->at_ns >= last);
            last = taken->at_ns;
        }
        assert_int_equal(armed, 0);
    }
}

static void a_hundred_thousand_timers_are_no_burden(void **state)
{
    (void)state;
    const size_t many = 100000;
    struct hfi_timers timers = {0};
    struct hfi_timer *timer = calloc(many, sizeof *timer), *taken;
    assert_non_null(timer);
    uint64_t rng = 7;
    for (int round = 0; round < 5; round++)
        for (size_t i = 0; i < many; i++)
            (void)hfi_timers_set(&timers, &timer[i], (int64_t)(hfi_rng_next(&rng) >> 20));
    size_t count = 0;
    int64_t last = 0;
    while ((taken = hfi_timers_take(&timers, HFI_NEVER - 1)) != NULL) {
        assert_true(taken->at_ns >= last);
        last = taken->at_ns;
        count++;
    }
    assert_int_equal(count, many);
    free(timer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_due_comes_out_soonest_first),
        cmocka_unit_test(a_timer_moves_both_ways_and_can_be_disarmed),
        cmocka_unit_test(it_agrees_with_a_plain_array_through_a_long_random_history),
        cmocka_unit_test(those_of_one_point_of_time_come_and_go_as_they_like),
        cmocka_unit_test(a_hundred_thousand_timers_are_no_burden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
