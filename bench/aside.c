/* SPDX-License-Identifier: MIT */
/* aside.c - the slowest of a hundred requests for hot pages that are reloaded all the time, by loader threads and in the calling
 * threads, against requests for pages that are never reloaded. Sixteen threads ask every 2 ms, so that one request in twenty or so
 * finds its page old. */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/histogram.h"
#include "bench/server.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 16, PAGES = 32, SIZE = 4096, TTL_MS = 50, LOAD_MS = 30 };

struct scene {
    hf_client *client;
    const char *name;
    hf_fetch_options options;
    unsigned rng[THREADS];
    struct bench_histogram turn[THREADS]; /* of this turn, one a thread */
};

static hf_status load(hf_loading *loading, void *arg)
{
    char page[SIZE];
    (void)arg;
    memset(page, 'x', sizeof page);
    bench_sleep(LOAD_MS / 1000.0);
    return hf_loading_set(loading, page, sizeof page);
}

static void request(struct scene *scene, int index, int page)
{
    hf_value *value;
    hf_error error;
    char key[32];
    (void)snprintf(key, sizeof key, "%s:%d", scene->name, page);
    int64_t began = bench_now_ns();
    bench_must(hf_fetch(scene->client, key, &scene->options, &value, &error), &error, "fetch");
    bench_record(&scene->turn[index], bench_now_ns() - began);
    hf_value_free(value);
}

static long step(int index, void *arg)
{
    struct scene *scene = arg;
    request(scene, index, rand_r(&scene->rng[index]) % PAGES);
    bench_sleep(0.002);
    return 1;
}

/* Milliseconds that 99 of 100 calls did not exceed. */
static double p99(void *arg, double seconds)
{
    static struct bench_histogram all;
    struct scene *scene = arg;
    memset(scene->turn, 0, sizeof scene->turn);
    (void)bench_crew(THREADS, seconds, step, scene, NULL);
    memset(&all, 0, sizeof all);
    for (int i = 0; i < THREADS; i++)
        bench_merge(&all, &scene->turn[i]);
    return (double)bench_percentile(&all, 99) / 1e6;
}

static struct scene *scene_of(const char *url, const char *name, int64_t ttl_ms, hf_load_where where)
{
    struct scene *scene = calloc(1, sizeof *scene);
    scene->client = bench_client(url, HF_CLIENT(.loaders = THREADS));
    scene->name = name;
    scene->options = *HF_FETCH(.load = load, .ttl_ms = ttl_ms, .stale_ms = 600000, .where = where);
    for (int i = 0; i < THREADS; i++)
        scene->rng[i] = (unsigned)i;
    for (int page = 0; page < PAGES; page++)
        request(scene, 0, page);
    return scene;
}

static void scene_end(struct scene *scene)
{
    (void)hf_client_close(scene->client, NULL);
    free(scene);
}

int main(int argc, char **argv)
{
    static double values[3][BENCH_MOST_TURNS];
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "aside", "hot pages of 4 kB that are reloaded all the time");
    bench_server_start(&server, -1);
    struct scene *scenes[] = {scene_of(server.url, "aside", TTL_MS, HF_REFRESH_ASIDE),
                              scene_of(server.url, "fresh", 600000, HF_LOAD_HERE),
                              scene_of(server.url, "here", TTL_MS, HF_LOAD_HERE)};
    const struct bench_side sides[] = {{"by loader threads", p99, scenes[0]},
                                       {"never reloaded", p99, scenes[1]},
                                       {"in the calling threads", p99, scenes[2]}};
    hf_stats stats;
    bench_turns(&bench, "16 threads", sides, 3, bench.rounds, values);
    bench_row(&bench, "reloaded by loader threads: p99", "ms", AT_MOST(5), sides[1].name,
              bench_pair(&bench, values[0], values[1], bench.rounds));
    bench_row(&bench, "reloaded in the calling threads: p99", "ms", NO_GOAL, sides[1].name,
              bench_pair(&bench, values[2], values[1], bench.rounds));
    hf_client_stats(scenes[0]->client, &stats);
    bench_number(&bench, "loads by loader threads in each turn", (double)stats.loads_aside / bench.rounds, "", NO_GOAL, NULL);
    for (int i = 0; i < 3; i++)
        scene_end(scenes[i]);
    bench_server_stop(&server);
    return bench_end(&bench);
}
