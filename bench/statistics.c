/* SPDX-License-Identifier: MIT */
/* statistics.c - see statistics.h. The intervals are bootstrapped: so many times the turns are drawn anew from
 * themselves, and the middle 95 % of the medians are the interval. */
#include "bench/statistics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define DRAWS 4000
#define TAIL  (DRAWS / 40) /* 2.5 % */

const char *const bench_verdict_names[BENCH_VERDICTS] = {"", "met", "missed", "open", "void"};

/* splitmix64 */
uint64_t bench_random(uint64_t *state)
{
    uint64_t word = *state += UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

static int by_size(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

double bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double median_of_a_draw(const double *values, int count, uint64_t *random)
{
    double drawn[BENCH_MOST_TURNS];
    for (int i = 0; i < count; i++)
        drawn[i] = values[bench_random(random) % (uint64_t)count];
    return bench_median(drawn, count);
}

static struct bench_interval without_tails(double *draws)
{
    qsort(draws, DRAWS, sizeof *draws, by_size);
    return (struct bench_interval){draws[TAIL], draws[DRAWS - 1 - TAIL]};
}

struct bench_interval bench_interval(const double *values, int count, uint64_t *random)
{
    double draws[DRAWS];
    if (count < BENCH_LEAST_TURNS)
        return (struct bench_interval){0, INFINITY};
    for (int i = 0; i < DRAWS; i++)
        draws[i] = median_of_a_draw(values, count, random);
    return without_tails(draws);
}

double bench_factor(struct bench_interval interval)
{
    return interval.low > 1 ? interval.low : interval.high < 1 ? 1 / interval.high : 1;
}

double bench_drift(const double *turns, int count, uint64_t *random)
{
    double draws[DRAWS];
    int first = count / 2;
    if (first < BENCH_LEAST_TURNS)
        return 1;
    for (int i = 0; i < DRAWS; i++)
        draws[i] =
            median_of_a_draw(turns + first, count - first, random) / median_of_a_draw(turns, first, random);
    return bench_factor(without_tails(draws));
}

static enum bench_verdict where(struct bench_goal goal, struct bench_interval interval)
{
    bool least = goal.sense == BENCH_AT_LEAST;
    if (least ? interval.low >= goal.limit : interval.high <= goal.limit)
        return BENCH_MET;
    return (least ? interval.high < goal.limit : interval.low > goal.limit) ? BENCH_MISSED : BENCH_OPEN;
}

enum bench_verdict bench_judge(struct bench_goal goal, struct bench_interval interval, double drift)
{
    struct bench_interval wider = {interval.low / drift, interval.high * drift};
    if (goal.sense == BENCH_NO_GOAL)
        return BENCH_NONE;
    enum bench_verdict verdict = where(goal, interval);
    return verdict == BENCH_OPEN || where(goal, wider) == verdict ? verdict : BENCH_VOID;
}
