/* SPDX-License-Identifier: MIT */
/* hits.c - hf_fetch of a value that is cached (4 kB, with stale and early refresh on), against the same GET over the
 * same client. */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/server.h"

#include <hiredis/hiredis.h>
#include <holdfast/redis.h>
#include <string.h>

#define SIZE 4096

struct scene {
    hf_client *client;
    int threads;
};

static hf_status load(hf_loading *loading, void *arg)
{
    char page[SIZE];
    (void)arg;
    memset(page, 'x', sizeof page);
    return hf_loading_set(loading, page, sizeof page);
}

static long step_fetch(int index, void *arg)
{
    struct scene *scene = arg;
    hf_value *value;
    hf_error error;
    char key[32];
    (void)snprintf(key, sizeof key, "page:%d", index);
    bench_must(hf_fetch(scene->client, key,
                        HF_FETCH(.load = load, .ttl_ms = 600000, .stale_ms = 60000, .early = 1.0), &value,
                        &error),
               &error, "fetch");
    if (value->size != SIZE)
        bench_die("that is not the page");
    hf_value_free(value);
    return 1;
}

static long step_get(int index, void *arg)
{
    struct scene *scene = arg;
    redisReply *reply;
    hf_error error;
    bench_must(hf_command(scene->client, &reply, &error, "GET page:%d", index), &error, "get");
    if (reply->len != SIZE)
        bench_die("that is not the page");
    freeReplyObject(reply);
    return 1;
}

static double turn_fetch(void *arg, double seconds)
{
    return bench_crew(((struct scene *)arg)->threads, seconds, step_fetch, arg, NULL);
}

static double turn_get(void *arg, double seconds)
{
    return bench_crew(((struct scene *)arg)->threads, seconds, step_get, arg, NULL);
}

int main(int argc, char **argv)
{
    static const int crews[] = {1, 64};
    struct bench bench;
    struct bench_server server;
    struct scene scene;
    bench_begin(&bench, argc, argv, "hits", "hf_fetch of a page of 4 kB that is there");
    bench_server_start(&server, -1);
    scene.client = bench_client(server.url, NULL);
    struct bench_side fetch = {"hf_fetch", turn_fetch, &scene}, get = {"GET over a lane", turn_get, &scene};
    for (int i = 0; i < 2; i++) {
        char row[80];
        hf_stats before, after;
        scene.threads = crews[i];
        (void)snprintf(row, sizeof row, "%d thread%s", crews[i], i == 0 ? "" : "s");
        (void)bench_compare(&bench, row, "hits/s", AT_LEAST(0.9), &fetch, &get);
        hf_client_stats(scene.client, &before);
        (void)turn_fetch(&scene, bench.seconds);
        hf_client_stats(scene.client, &after);
        (void)snprintf(row, sizeof row, "%d thread%s, commands a hit", crews[i], i == 0 ? "" : "s");
        bench_number(&bench, row,
                     (double)(after.remote_commands - before.remote_commands) /
                         (double)(after.hits - before.hits),
                     "", AT_MOST(1.05), NULL);
    }
    (void)hf_client_close(scene.client, NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
