/* SPDX-License-Identifier: MIT */
/* statistics_test.c - what the bench says of a few turns, and what it does not say. */
#include "bench/statistics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#define TURNS 25

static double uniform(uint64_t *random)
{
    return (double)(bench_random(random) >> 11) / 9007199254740992.0;
}

/* Around `middle`, half of `spread` to either side, and now and then far below, as where others use the machine. */
static void fill(double *turns, int count, double middle, double spread, uint64_t *random)
{
    for (int i = 0; i < count; i++)
        turns[i] =
            middle * (1 + spread * (uniform(random) - 0.5)) * (bench_random(random) % 10 == 0 ? 0.3 : 1);
}

static void the_same_seed_gives_the_same_interval(void **state)
{
    double turns[TURNS];
    uint64_t random = 1, one = 7, other = 7;
    (void)state;
    fill(turns, TURNS, 2, 0.2, &random);
    struct bench_interval a = bench_interval(turns, TURNS, &one), b = bench_interval(turns, TURNS, &other);
    assert_true(a.low == b.low && a.high == b.high);
    assert_true(a.low < a.high);
}

static void turns_that_are_all_the_same_leave_no_doubt(void **state)
{
    double turns[TURNS];
    uint64_t random = 1;
    (void)state;
    for (int i = 0; i < TURNS; i++)
        turns[i] = 3;
    struct bench_interval interval = bench_interval(turns, TURNS, &random);
    assert_true(interval.low == 3 && interval.high == 3);
    assert_true(bench_drift(turns, TURNS, &random) == 1);
}

static void five_turns_reach_from_the_least_to_the_most_and_four_say_nothing(void **state)
{
    const double turns[] = {5, 1, 3, 2, 4};
    uint64_t random = 1;
    (void)state;
    struct bench_interval five = bench_interval(turns, 5, &random), four = bench_interval(turns, 4, &random);
    assert_true(five.low == 1 && five.high == 5);
    assert_true(four.low == 0 && isinf(four.high));
}

static void nineteen_intervals_of_twenty_have_the_true_median(void **state)
{
    enum { TRIALS = 200 };
    uint64_t random = 11;
    double turns[TURNS], spread = 0.2;
    double truth = 2 * (1 + spread * (0.4 / 0.9 - 0.5)); /* a tenth is far below: the middle is lower */
    int right = 0;
    (void)state;
    for (int i = 0; i < TRIALS; i++) {
        fill(turns, TURNS, 2, spread, &random);
        struct bench_interval interval = bench_interval(turns, TURNS, &random);
        right += interval.low <= truth && truth <= interval.high;
    }
    assert_in_range(right, TRIALS * 91 / 100, TRIALS * 99 / 100);
}

static void a_yardstick_that_slows_down_has_drifted_and_a_noisy_one_has_not(void **state)
{
    double turns[TURNS];
    uint64_t random = 3;
    (void)state;
    fill(turns, TURNS, 1000, 0.1, &random);
    assert_true(bench_drift(turns, TURNS, &random) < 1.01);
    for (int i = TURNS / 2; i < TURNS; i++)
        turns[i] *= 0.8;
    double slower = bench_drift(turns, TURNS, &random);
    assert_true(slower > 1.1 && slower < 1.3);
    for (int i = TURNS / 2; i < TURNS; i++)
        turns[i] *= 1.25 * 1.25;
    assert_true(bench_drift(turns, TURNS, &random) > 1.1);
    assert_true(bench_drift(turns, 2 * BENCH_LEAST_TURNS - 1, &random) == 1);
}

static void a_verdict_needs_an_interval_without_the_goal(void **state)
{
    const struct bench_interval interval = {1.9, 2.1}, unknown = {0, INFINITY};
    (void)state;
    assert_int_equal(bench_judge(AT_LEAST(1.8), interval, 1), BENCH_MET);
    assert_int_equal(bench_judge(AT_LEAST(1.9), interval, 1), BENCH_MET);
    assert_int_equal(bench_judge(AT_LEAST(2.0), interval, 1), BENCH_OPEN);
    assert_int_equal(bench_judge(AT_LEAST(2.2), interval, 1), BENCH_MISSED);
    assert_int_equal(bench_judge(AT_MOST(2.2), interval, 1), BENCH_MET);
    assert_int_equal(bench_judge(AT_MOST(2.1), interval, 1), BENCH_MET);
    assert_int_equal(bench_judge(AT_MOST(2.0), interval, 1), BENCH_OPEN);
    assert_int_equal(bench_judge(AT_MOST(1.8), interval, 1), BENCH_MISSED);
    assert_int_equal(bench_judge(AT_LEAST(1.8), unknown, 1), BENCH_OPEN);
    assert_int_equal(bench_judge(AT_MOST(1.8), unknown, 1), BENCH_OPEN);
    assert_int_equal(bench_judge(NO_GOAL, interval, 1), BENCH_NONE);
}

static void a_verdict_that_the_drift_could_have_made_is_void(void **state)
{
    const struct bench_interval interval = {1.9, 2.1};
    (void)state;
    assert_int_equal(bench_judge(AT_LEAST(1.8), interval, 1.05), BENCH_MET);
    assert_int_equal(bench_judge(AT_LEAST(1.8), interval, 1.06), BENCH_VOID);
    assert_int_equal(bench_judge(AT_LEAST(2.2), interval, 1.04), BENCH_MISSED);
    assert_int_equal(bench_judge(AT_LEAST(2.2), interval, 1.05), BENCH_VOID);
    assert_int_equal(bench_judge(AT_MOST(2.2), interval, 1.05), BENCH_VOID);
    assert_int_equal(bench_judge(AT_MOST(1.8), interval, 1.06), BENCH_VOID);
    assert_int_equal(bench_judge(AT_LEAST(2.0), interval, 1.5), BENCH_OPEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_interval),
        cmocka_unit_test(turns_that_are_all_the_same_leave_no_doubt),
        cmocka_unit_test(five_turns_reach_from_the_least_to_the_most_and_four_say_nothing),
        cmocka_unit_test(nineteen_intervals_of_twenty_have_the_true_median),
        cmocka_unit_test(a_yardstick_that_slows_down_has_drifted_and_a_noisy_one_has_not),
        cmocka_unit_test(a_verdict_needs_an_interval_without_the_goal),
        cmocka_unit_test(a_verdict_that_the_drift_could_have_made_is_void),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
