/* SPDX-License-Identifier: MIT */
/* pairs.c - see pairs.h. */
#include "bench/pairs.h"

#include "bench/crew.h"
#include "bench/plain_loop.h"

#include <stdlib.h>

static char names[BENCH_CREW_MAX][24];

void bench_pairs_open(struct bench_pairs *pairs, const char *url, int port, int threads)
{
    char key[32];
    *pairs = (struct bench_pairs){.threads = threads, .client = bench_client(url, NULL)};
    pairs->plain = calloc((size_t)threads, sizeof(struct bench_plain *));
    for (int i = 0; i < threads; i++) {
        (void)snprintf(names[i], sizeof names[i], "own:%d", i);
        (void)snprintf(key, sizeof key, "plain:%d", i);
        pairs->plain[i] = bench_plain_open(port, key);
    }
}

void bench_pairs_close(struct bench_pairs *pairs)
{
    for (int i = 0; i < pairs->threads; i++)
        bench_plain_close(pairs->plain[i]);
    free(pairs->plain);
    (void)hf_client_close(pairs->client, NULL);
}

static long step_ours(int index, void *arg)
{
    struct bench_pairs *pairs = arg;
    hf_lock_options options = {.size = sizeof options, .wait_ms = 5000, .linger_ms = pairs->linger_ms};
    hf_lease *lease;
    hf_error error;
    bench_must(hf_lock_acquire(pairs->client, names[index], &options, &lease, &error), &error, "acquire");
    bench_must((pairs->posted ? hf_lease_post_release : hf_lease_release)(lease, &error), &error, "release");
    return 1;
}

static long step_plain(int index, void *arg)
{
    struct bench_pairs *pairs = arg;
    if (!bench_plain_take(pairs->plain[index]))
        bench_die("plain loop: its own lock is taken");
    bench_plain_give(pairs->plain[index]);
    return 1;
}

double bench_pairs_ours(void *arg, double seconds)
{
    struct bench_pairs *pairs = arg;
    return bench_crew(pairs->threads, seconds, step_ours, pairs, NULL);
}

double bench_pairs_plain(void *arg, double seconds)
{
    struct bench_pairs *pairs = arg;
    return bench_crew(pairs->threads, seconds, step_plain, pairs, NULL);
}

void bench_pairs_compare(struct bench *bench, struct bench_pairs *pairs, const char *row,
                         struct bench_goal goal)
{
    struct bench_side ours = {"holdfast", bench_pairs_ours, pairs},
                      plain = {"plain loop", bench_pairs_plain, pairs};
    (void)bench_compare(bench, row, "pairs/s", goal, &ours, &plain);
}
