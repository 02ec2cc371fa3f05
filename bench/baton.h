/* SPDX-License-Identifier: MIT */
/* baton.h - two processes that pass a lock to and fro: how long from one giving it back to the other having it. */
#ifndef BENCH_BATON_H
#define BENCH_BATON_H

#include "bench/server.h"

#include <stdbool.h>

struct bench_section { /* times by CLOCK_MONOTONIC, ns */
    int64_t asked, taken, given;
    int process;
};

/* Milliseconds, the median of those where the next one asked before the lock was given back. Sorts them. */
double bench_baton_ms(struct bench_section *sections, int count);

/* Both play with Holdfast, or plainly: with loops that ask again every millisecond. */
double bench_baton_play(const struct bench_server *server, bool plainly, double seconds);

#endif
