/* SPDX-License-Identifier: MIT */
/* pairs.h - threads that acquire and release a lock each, with Holdfast, with the plain loop, and with the bare one. */
#ifndef BENCH_PAIRS_H
#define BENCH_PAIRS_H

#include "bench/harness.h"

struct bench_bare;
struct bench_plain;

struct bench_pairs {
    const char *url;
    int port, threads;
    hf_client *client;
    bool posted;
    int64_t linger_ms;
    struct bench_plain **plain;
    struct bench_bare **bare; /* NULL until bench_pairs_account */
};

void bench_pairs_open(struct bench_pairs *pairs, const char *url, int port, int threads);
void bench_pairs_close(struct bench_pairs *pairs);

/* bench_turn functions, arg: struct bench_pairs. */
double bench_pairs_ours(void *arg, double seconds);
double bench_pairs_plain(void *arg, double seconds);

void bench_pairs_compare(struct bench *bench, struct bench_pairs *pairs, const char *row,
                         struct bench_goal goal);
/* Two rows: what the commands cost, the bare loop beside the plain one, and what we cost, ours beside the bare one. */
void bench_pairs_account(struct bench *bench, struct bench_pairs *pairs, const char *row);
/* Two rows: what the server can do at most, one connection with a batch of as many pairs as there are threads beside the plain loop, and
 * how much of that is made of it, ours beside the batch. */
void bench_pairs_limit(struct bench *bench, struct bench_pairs *pairs, const char *row);

#endif
