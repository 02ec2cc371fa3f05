/* SPDX-License-Identifier: MIT */
/* pages.h - threads that read values which are cached: by hf_fetch, by GET over the same client, and by GET with a
 * connection each, the plain way. */
#ifndef BENCH_PAGES_H
#define BENCH_PAGES_H

#include "bench/harness.h"

struct redisContext;

struct bench_pages {
    int threads, keys; /* so many different ones */
    size_t size;
    int64_t near_ms; /* of bench_pages_fetch; 0 at first */
    hf_client *client;
    char (*names)[48];
    struct redisContext **plain;
};

/* Fills the cache. plainly: with the connections of bench_pages_plain. */
void bench_pages_open(struct bench_pages *pages, const char *url, int port, int threads, int keys,
                      size_t size, bool plainly);
void bench_pages_close(struct bench_pages *pages);

hf_status bench_pages_load(hf_loading *loading, void *arg); /* a page of pages->size; arg: struct bench_pages */

/* bench_turn functions, arg: struct bench_pages. */
double bench_pages_fetch(void *arg, double seconds);
double bench_pages_get(void *arg, double seconds);
double bench_pages_plain(void *arg, double seconds);

#endif
