/* SPDX-License-Identifier: MIT */
/* near.c - hf_fetch of values from this process's memory, against the same GET over the same client; what a hit costs the CPU,
 * the server and memory, and what the server's proofs cost. */
#include "bench/crew.h"
#include "bench/memory.h"
#include "bench/pages.h"
#include "bench/server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SIZE      4096
#define NEAR_MS   600000
#define MANY      20000 /* values, to weigh them */
#define FORGETS_A_SECOND 100
#define PROVED    20 /* clients */

static hf_stats stats_of(const hf_client *client)
{
    hf_stats stats;
    hf_client_stats(client, &stats);
    return stats;
}

/* Until what is fetched is near. */
static void come_near(struct bench_pages *pages)
{
    uint64_t before;
    do {
        before = stats_of(pages->client).hits_near;
        (void)bench_pages_fetch(pages, 0.02);
    } while (stats_of(pages->client).hits_near == before);
}

static void hits(struct bench *bench, const struct bench_server *server, int threads, double goal, double goal_ns)
{
    struct bench_pages pages;
    char row[80];
    struct bench_side near = {"hf_fetch", bench_pages_fetch, &pages}, get = {"GET over a lane", bench_pages_get, &pages};
    bench_pages_open(&pages, server->url, server->port, threads, threads, SIZE, false);
    pages.near_ms = NEAR_MS;
    come_near(&pages);
    (void)snprintf(row, sizeof row, "%d thread%s", threads, threads == 1 ? "" : "s");
    (void)bench_compare(bench, row, "hits/s", AT_LEAST(goal), &near, &get);
    hf_stats before = stats_of(pages.client);
    double cpu = bench_cpu_seconds();
    (void)bench_pages_fetch(&pages, bench->seconds);
    cpu = bench_cpu_seconds() - cpu;
    hf_stats after = stats_of(pages.client);
    double count = (double)(after.hits_near - before.hits_near);
    (void)snprintf(row, sizeof row, "%d thread%s, CPU a hit", threads, threads == 1 ? "" : "s");
    bench_number(bench, row, cpu * 1e9 / count, "ns", AT_MOST(goal_ns), NULL);
    (void)snprintf(row, sizeof row, "%d thread%s, values asked for a hit", threads, threads == 1 ? "" : "s");
    bench_number(bench, row, (double)(after.near_reads + after.hits - before.near_reads - before.hits) / count, "", AT_MOST(0.0001), NULL);
    bench_pages_close(&pages);
}

/* Values of one byte, so that nearly all is overhead. */
static void memory(struct bench *bench, const struct bench_server *server)
{
    struct bench_pages pages;
    size_t keys = 0;
    bench_pages_open(&pages, server->url, server->port, 1, 64, 1, false);
    pages.near_ms = NEAR_MS;
    come_near(&pages); /* what all values share is there before they come */
    bench_pages_close(&pages);
    bench_pages_open(&pages, server->url, server->port, 1, MANY, 1, false);
    hf_client *client = bench_client(server->url, NULL);
    double before = bench_resident_bytes();
    for (int i = 0; i < MANY; i++) {
        hf_value *value;
        hf_error error;
        keys += strlen(pages.names[i]) + 1;
        for (hf_source source = HF_CACHED; source != HF_NEAR; hf_value_free(value)) {
            const hf_fetch_options *options = HF_FETCH(.load = bench_pages_load, .arg = &pages, .near_ms = NEAR_MS);
            bench_must(hf_fetch(client, pages.names[i], options, &value, &error), &error, "fetch");
            source = value->source;
        }
    }
    bench_number(bench, "memory a value, beside key and bytes",
                 (bench_resident_bytes() - before - (double)keys) / MANY, "bytes", AT_MOST(165), NULL);
    (void)hf_client_close(client, NULL);
    bench_pages_close(&pages);
}

struct forgetter {
    struct bench_pages *pages;
    _Atomic(bool) stop;
    _Atomic(long) forgets;
};

static void *forget(void *arg)
{
    struct forgetter *me = arg;
    hf_error error;
    while (!atomic_load(&me->stop)) {
        bench_must(hf_fetch_forget(me->pages->client, me->pages->names[0], &error), &error, "forget");
        atomic_fetch_add(&me->forgets, 1);
        bench_sleep(1.0 / FORGETS_A_SECOND);
    }
    return NULL;
}

static void forgotten(struct bench *bench, const struct bench_server *server)
{
    struct bench_pages pages;
    struct forgetter forgetter = {.pages = &pages};
    pthread_t thread;
    bench_pages_open(&pages, server->url, server->port, 64, 1, SIZE, false);
    pages.near_ms = NEAR_MS;
    come_near(&pages);
    hf_stats before = stats_of(pages.client);
    if (pthread_create(&thread, NULL, forget, &forgetter) != 0)
        bench_die("no thread");
    double rate = bench_pages_fetch(&pages, 4 * bench->seconds);
    atomic_store(&forgetter.stop, true);
    (void)pthread_join(thread, NULL);
    hf_stats after = stats_of(pages.client);
    bench_number(bench, "64 threads, one key forgotten 100 times a second: commands a forget",
                 (double)(after.remote_commands - before.remote_commands) / (double)atomic_load(&forgetter.forgets), "", AT_MOST(8), NULL);
    bench_number(bench, "the same: fetches", rate, "a second", NO_GOAL, NULL);
    bench_pages_close(&pages);
}

struct proved { /* clients that are asked for a value now and then, which prove twenty times as often as they would by default */
    hf_client *clients[PROVED];
    struct bench_pages *pages;
};

static void fetch_all(struct proved *proved)
{
    for (int i = 0; i < PROVED; i++)
        for (int k = 0; k < proved->pages->keys; k++) {
            hf_value *value;
            hf_error error;
            bench_must(hf_fetch(proved->clients[i], proved->pages->names[k],
                                HF_FETCH(.load = bench_pages_load, .arg = proved->pages, .near_ms = NEAR_MS), &value, &error),
                       &error, "fetch");
            hf_value_free(value);
        }
}

/* The server's CPU, in this many seconds. */
static double idle_cpu(struct bench *bench, const struct bench_server *server, struct proved *proved, double *took)
{
    double seconds = bench->quick ? 3 : 12, cpu = bench_server_cpu_seconds(server);
    int64_t began = bench_now_ns();
    for (int64_t until = began + (int64_t)(seconds * 1e9); bench_now_ns() < until; bench_sleep(1))
        if (proved != NULL)
            fetch_all(proved);
    *took = (double)(bench_now_ns() - began) / 1e9;
    return bench_server_cpu_seconds(server) - cpu;
}

static void proofs(struct bench *bench, const struct bench_server *server)
{
    struct bench_pages pages;
    struct proved proved = {.pages = &pages};
    double took, idle = idle_cpu(bench, server, NULL, &took) / took;
    bench_pages_open(&pages, server->url, server->port, 1, 4, 1, false); /* on both lanes */
    for (int i = 0; i < PROVED; i++)
        proved.clients[i] = bench_client(server->url, HF_CLIENT(.near_lag_ms = 50));
    fetch_all(&proved);
    double busy = idle_cpu(bench, server, &proved, &took) / took;
    bench_number(bench, "proofs of 100 clients with the default near_lag_ms: the server's CPU", 100 * (busy - idle) * 100 / (20 * PROVED),
                 "% of a core", AT_MOST(0.5), NULL);
    for (int i = 0; i < PROVED; i++)
        (void)hf_client_close(proved.clients[i], NULL);
    bench_pages_close(&pages);
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "near", "hf_fetch of 4 kB from memory");
    bench_server_start(&server, -1);
    hits(&bench, &server, 1, 30, 300);
    hits(&bench, &server, 64, 12, 400);
    memory(&bench, &server);
    forgotten(&bench, &server);
    proofs(&bench, &server);
    bench_server_stop(&server);
    return bench_end(&bench);
}
