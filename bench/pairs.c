/* SPDX-License-Identifier: MIT */
/* pairs.c - see pairs.h. */
#include "bench/pairs.h"

#include "bench/bare_loop.h"
#include "bench/crew.h"
#include "bench/plain_loop.h"

#include <stdlib.h>

static char names[BENCH_CREW_MAX][24];

void bench_pairs_open(struct bench_pairs *pairs, const char *url, int port, int threads)
{
    char key[32];
    *pairs = (struct bench_pairs){.url = url, .port = port, .threads = threads, .client = bench_client(url, NULL)};
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
    for (int i = 0; pairs->bare != NULL && i < pairs->threads; i++)
        bench_bare_close(pairs->bare[i]);
    free(pairs->plain);
    free(pairs->bare);
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

static long step_bare(int index, void *arg)
{
    struct bench_pairs *pairs = arg;
    bench_bare_pair(pairs->bare[index]);
    return 1;
}

static long step_batch(int index, void *arg)
{
    struct bench_pairs *pairs = arg;
    bench_bare_batch(pairs->bare[index], pairs->threads);
    return pairs->threads;
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

static double bare_turn(void *arg, double seconds)
{
    struct bench_pairs *pairs = arg;
    return bench_crew(pairs->threads, seconds, step_bare, pairs, NULL);
}

static double batch_turn(void *arg, double seconds)
{
    return bench_crew(1, seconds, step_batch, arg, NULL);
}

static void open_bare(struct bench_pairs *pairs)
{
    if (pairs->bare != NULL)
        return;
    pairs->bare = calloc((size_t)pairs->threads, sizeof(struct bench_bare *));
    for (int i = 0; i < pairs->threads; i++)
        pairs->bare[i] = bench_bare_open(pairs->url, pairs->port, names[i]);
}

/* Our bytes, sent in some way, beside the plain loop; and ours beside that. */
static void compare_bytes(struct bench *bench, struct bench_pairs *pairs, const char *way, const struct bench_side *bytes, const char *row)
{
    struct bench_side ours = {"holdfast", bench_pairs_ours, pairs}, plain = {"plain loop", bench_pairs_plain, pairs};
    char line[96];
    (void)snprintf(line, sizeof line, "our bytes %s %s", way, row);
    (void)bench_compare(bench, line, "pairs/s", NO_GOAL, bytes, &plain);
    (void)snprintf(line, sizeof line, "ours, %s", row);
    (void)bench_compare(bench, line, "pairs/s", NO_GOAL, &ours, bytes);
}

void bench_pairs_account(struct bench *bench, struct bench_pairs *pairs, const char *row)
{
    open_bare(pairs);
    compare_bytes(bench, pairs, "by a bare loop,", &(struct bench_side){"bare loop", bare_turn, pairs}, row);
}

void bench_pairs_limit(struct bench *bench, struct bench_pairs *pairs, const char *row)
{
    open_bare(pairs);
    compare_bytes(bench, pairs, "in batches, beside", &(struct bench_side){"batch", batch_turn, pairs}, row);
}
