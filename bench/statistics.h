/* SPDX-License-Identifier: MIT */
/* statistics.h - what a few turns on a noisy machine allow to say: a median, its interval, how far the yardstick moved
 * meanwhile, and the verdict. Pure: the random numbers come from the caller's seed. */
#ifndef BENCH_STATISTICS_H
#define BENCH_STATISTICS_H

#include <stdint.h>

#define BENCH_MOST_TURNS  64
#define BENCH_LEAST_TURNS 5 /* fewer have no interval of 95 % */

struct bench_goal {
    enum { BENCH_NO_GOAL, BENCH_AT_LEAST, BENCH_AT_MOST } sense;
    double limit;
};
#define AT_LEAST(limit) ((struct bench_goal){BENCH_AT_LEAST, (limit)})
#define AT_MOST(limit)  ((struct bench_goal){BENCH_AT_MOST, (limit)})
#define NO_GOAL         ((struct bench_goal){BENCH_NO_GOAL, 0})

enum bench_verdict { BENCH_NONE, BENCH_MET, BENCH_MISSED, BENCH_OPEN, BENCH_VOID, BENCH_VERDICTS };
extern const char *const bench_verdict_names[BENCH_VERDICTS];

struct bench_interval {
    double low, high; /* 0 .. INFINITY: not known */
};

uint64_t bench_random(uint64_t *state);

/* Of at most BENCH_MOST_TURNS values. bench_median sorts them. */
double bench_median(double *values, int count);
struct bench_interval bench_interval(const double *values, int count, uint64_t *random);

/* The factor, 1 or more, by which a ratio with this interval differs from 1 for certain: its bound next to 1. */
double bench_factor(struct bench_interval interval);
/* That of the medians of the second half of the turns and the first. 1 where a half has too few turns to tell. */
double bench_drift(const double *turns, int count, uint64_t *random);

/* MET or MISSED where the interval excludes the goal, else OPEN; VOID where it would not exclude it any more if all of
 * the yardstick's drift had hit one side alone. */
enum bench_verdict bench_judge(struct bench_goal goal, struct bench_interval interval, double drift);

#endif
