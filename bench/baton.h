/* SPDX-License-Identifier: MIT */
/* baton.h - two processes that pass a lock to and fro: the time from one's release to the other's grant. */
#ifndef BENCH_BATON_H
#define BENCH_BATON_H

#include "bench/server.h"

#include <stdbool.h>

struct bench_section { /* times by CLOCK_MONOTONIC, ns */
    int64_t asked, taken, given;
    int process;
};

/* The median, in ms, of the hand-offs whose acquire came before the release. Sorts the sections. */
double bench_baton_ms(struct bench_section *sections, int count);

/* Runs both processes with Holdfast, or with plain loops that ask again every millisecond. */
double bench_baton_play(const struct bench_server *server, bool plainly, double seconds);

#endif
