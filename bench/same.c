/* SPDX-License-Identifier: MIT */
/* same.c - what a refresh costs the server that keeps the value (hf_loading_same), against one that stores the same bytes
 * again. The GET that each of them begins with is measured beside them and taken off. */
#include "bench/harness.h"
#include "bench/server.h"

#include <hiredis/hiredis.h>
#include <holdfast/redis.h>
#include <stdlib.h>
#include <string.h>

struct scene {
    const struct bench_server *server;
    hf_client *client;
    char *bytes;
    size_t size;
    double get_us; /* of this round */
    bool same;
};

/* Of its one thread, in nanoseconds; /proc/PID/stat counts in hundredths of a second. */
static double server_us(const struct scene *scene)
{
    char path[48];
    unsigned long long ns;
    (void)snprintf(path, sizeof path, "/proc/%d/schedstat", (int)scene->server->pid);
    FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%llu", &ns) != 1)
        bench_die("cannot read %s", path);
    (void)fclose(file);
    return (double)ns / 1e3;
}

static hf_status load(hf_loading *loading, void *arg)
{
    const struct scene *scene = arg;
    return scene->same && hf_loading_old(loading, NULL) != NULL ? hf_loading_same(loading)
                                                                : hf_loading_set(loading, scene->bytes, scene->size);
}

/* Old as soon as it is stored, or early: it loads each time but for a few, which get another turn. */
static bool refreshes(struct scene *scene)
{
    hf_value *value;
    hf_error error;
    bench_must(hf_fetch(scene->client, "page",
                        HF_FETCH(.load = load, .arg = scene, .ttl_ms = 10, .stale_ms = 600000, .early = 1000), &value, &error),
               &error, "fetch");
    bool loaded = value->source == HF_LOADED;
    if (value->size != scene->size || !value->stored)
        bench_die("that is not the page");
    hf_value_free(value);
    return loaded;
}

static void get(struct scene *scene)
{
    redisReply *reply;
    hf_error error;
    bench_must(hf_command(scene->client, &reply, &error, "GET page"), &error, "get");
    if (reply->len != scene->size)
        bench_die("that is not the page");
    freeReplyObject(reply);
}

/* The server's microseconds for each refresh, or GET. */
static double turn(struct scene *scene, double seconds, bool gets)
{
    long reads = 0, loads = 0;
    int64_t end = bench_now_ns() + (int64_t)(seconds * 1e9);
    double before = server_us(scene);
    while (bench_now_ns() < end) {
        if (gets)
            get(scene);
        else
            loads += refreshes(scene);
        reads++;
    }
    double us = server_us(scene) - before;
    return gets ? us / (double)reads : (us - scene->get_us * (double)reads) / (double)(loads > 0 ? loads : 1);
}

static void ask(struct bench *bench, struct scene *scene, const char *row)
{
    double set[BENCH_MOST_TURNS], same[BENCH_MOST_TURNS];
    for (int round = 0; round < bench->rounds; round++) {
        bool first = round % 2 == 0;
        scene->get_us = turn(scene, bench->seconds, true);
        for (int i = 0; i < 2; i++) {
            scene->same = (i == 0) == first;
            (scene->same ? same : set)[round] = 1e6 / turn(scene, bench->seconds, false);
        }
    }
    bench_row(bench, row, "a CPU s", scene->size > 50000 ? AT_LEAST(10) : NO_GOAL, "set",
              bench_pair(bench, same, set, bench->rounds));
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {4096, 100000};
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "same", "a refresh that finds the old value still good");
    bench_server_start(&server, -1);
    for (int i = 0; i < 2; i++) {
        char row[80];
        struct scene scene = {&server, bench_client(server.url, NULL), calloc(1, sizes[i]), sizes[i], 0, false};
        if (scene.bytes == NULL)
            bench_die("no memory");
        memset(scene.bytes, 'x', scene.size);
        hf_error error;
        bench_must(hf_fetch_forget(scene.client, "page", &error), &error, "forget");
        (void)refreshes(&scene);
        (void)turn(&scene, bench.seconds / 4, true);
        (void)turn(&scene, bench.seconds / 4, false);
        (void)snprintf(row, sizeof row, "%zu bytes, refreshes in a second of the server", scene.size);
        ask(&bench, &scene, row);
        (void)hf_client_close(scene.client, NULL);
        free(scene.bytes);
    }
    bench_server_stop(&server);
    return bench_end(&bench);
}
