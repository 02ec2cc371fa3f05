/* SPDX-License-Identifier: MIT */
/* far.c - a server 1 ms away: does every thread pay one round trip and no more? */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/histogram.h"
#include "bench/plain_loop.h"
#include "bench/server.h"

#define THREADS 64

struct scene {
    hf_client *client;
    struct bench_plain *plain[THREADS];
    char names[THREADS][24];
    struct bench_histogram acquires[THREADS], pings[THREADS];
};

static long step_ours(int index, void *arg)
{
    struct scene *scene = arg;
    hf_lease *lease;
    int64_t began = bench_now_ns();
    bench_must(hf_lock_acquire(scene->client, scene->names[index], NULL, &lease, NULL), NULL, "acquire");
    bench_record(&scene->acquires[index], bench_now_ns() - began);
    bench_must(hf_lease_release(lease, NULL), NULL, "release");
    return 1;
}

static long step_plain(int index, void *arg)
{
    struct scene *scene = arg;
    int64_t began = bench_now_ns();
    bench_plain_ping(scene->plain[index]);
    bench_record(&scene->pings[index], bench_now_ns() - began);
    return 1;
}

static void rows(struct bench *bench, struct scene *scene, int threads)
{
    struct bench_histogram acquires = {0}, pings = {0};
    char row[80];
    for (int i = 0; i < THREADS; i++)
        scene->acquires[i] = scene->pings[i] = (struct bench_histogram){0};
    for (int i = 0; i < bench->rounds; i++) {
        (void)bench_crew(threads, bench->seconds, step_ours, scene, NULL);
        (void)bench_crew(threads, bench->seconds, step_plain, scene, NULL);
    }
    for (int i = 0; i < threads; i++) {
        bench_merge(&acquires, &scene->acquires[i]);
        bench_merge(&pings, &scene->pings[i]);
    }
    double ping = (double)bench_percentile(&pings, 50) / 1e6,
           p50 = (double)bench_percentile(&acquires, 50) / 1e6;
    (void)snprintf(row, sizeof row, "%d thread%s: PING, a connection each, p50", threads,
                   threads == 1 ? "" : "s");
    bench_number(bench, row, ping, "ms", NO_GOAL, NULL);
    (void)snprintf(row, sizeof row, "%d thread%s: acquire, p50", threads, threads == 1 ? "" : "s");
    bench_number(bench, row, p50, "ms", threads == 1 ? AT_MOST(1.15) : NO_GOAL, NULL);
    (void)snprintf(row, sizeof row, "%d thread%s: acquire p50 / PING p50", threads, threads == 1 ? "" : "s");
    bench_number(bench, row, p50 / ping, "x", AT_MOST(1.15), NULL);
    (void)snprintf(row, sizeof row, "%d thread%s: acquire, p99", threads, threads == 1 ? "" : "s");
    bench_number(bench, row, (double)bench_percentile(&acquires, 99) / 1e6, "ms", NO_GOAL, NULL);
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
