/* SPDX-License-Identifier: MIT */
/* far.c - a server 1 ms away: does every thread pay one round trip and no more? */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/histogram.h"
#include "bench/plain_loop.h"
#include "bench/server.h"

#include <string.h>

#define THREADS 64

struct scene {
    hf_client *client;
    int threads;
    struct bench_plain *plain[THREADS];
    char names[THREADS][24];
    struct bench_histogram turn[THREADS]; /* of this turn, one a thread */
    struct bench_histogram acquires;      /* of all turns */
};

static long step_ours(int index, void *arg)
{
    struct scene *scene = arg;
    hf_lease *lease;
    int64_t began = bench_now_ns();
    bench_must(hf_lock_acquire(scene->client, scene->names[index], NULL, &lease, NULL), NULL, "acquire");
    bench_record(&scene->turn[index], bench_now_ns() - began);
    bench_must(hf_lease_release(lease, NULL), NULL, "release");
    return 1;
}

static long step_plain(int index, void *arg)
{
    struct scene *scene = arg;
    int64_t began = bench_now_ns();
    bench_plain_ping(scene->plain[index]);
    bench_record(&scene->turn[index], bench_now_ns() - began);
    return 1;
}

/* The median of a turn, in milliseconds. */
static double turn(struct scene *scene, double seconds, bench_step *step, struct bench_histogram *all)
{
    memset(scene->turn, 0, sizeof scene->turn);
    (void)bench_crew(scene->threads, seconds, step, scene, NULL);
    for (int i = 1; i < scene->threads; i++)
        bench_merge(&scene->turn[0], &scene->turn[i]);
    if (all != NULL)
        bench_merge(all, &scene->turn[0]);
    return (double)bench_percentile(&scene->turn[0], 50) / 1e6;
}

static double turn_ours(void *arg, double seconds)
{
    return turn(arg, seconds, step_ours, &((struct scene *)arg)->acquires);
}

static double turn_plain(void *arg, double seconds)
{
    return turn(arg, seconds, step_plain, NULL);
}

static void rows(struct bench *bench, struct scene *scene, int threads)
{
    const struct bench_side sides[] = {{"acquire", turn_ours, scene}, {"PING", turn_plain, scene}};
    double values[2][BENCH_MOST_TURNS];
    char crew[24], row[80];
    scene->threads = threads;
    scene->acquires = (struct bench_histogram){0};
    (void)snprintf(crew, sizeof crew, "%d thread%s", threads, threads == 1 ? "" : "s");
    bench_turns(bench, crew, sides, 2, bench->rounds, values);
    struct bench_ratio ratio = bench_pair(bench, values[0], values[1], bench->rounds);
    (void)snprintf(row, sizeof row, "%s: acquire, p50", crew);
    bench_number(bench, row, ratio.value, "ms", threads == 1 ? AT_MOST(1.15) : NO_GOAL, NULL);
    (void)snprintf(row, sizeof row, "%s: acquire p50 / PING p50", crew);
    bench_row(bench, row, "ms", AT_MOST(1.15), "PING, a connection each", ratio);
    (void)snprintf(row, sizeof row, "%s: acquire, p99", crew);
    bench_number(bench, row, (double)bench_percentile(&scene->acquires, 99) / 1e6, "ms", NO_GOAL, NULL);
}

int main(int argc, char **argv)
{
    static struct scene scene;
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "far", "a server that is a round trip of 1 ms away");
    bench_server_start(&server, -1);
    bench_proxy_start(&server, 1);
    scene.client = bench_client(server.proxy_url, NULL);
    for (int i = 0; i < THREADS; i++) {
        (void)snprintf(scene.names[i], sizeof scene.names[i], "far:%d", i);
        scene.plain[i] = bench_plain_open(server.proxy_port, "plain:far");
    }
    rows(&bench, &scene, 1);
    rows(&bench, &scene, THREADS);
    (void)hf_client_close(scene.client, NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
