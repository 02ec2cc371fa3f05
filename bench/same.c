/* SPDX-License-Identifier: MIT */
/* same.c - what it costs the server to keep a value that is still good (hf_loading_same), against storing the same bytes
 * again: the fill alone, copied from a refresh and repeated, and the whole refresh but for the GET that it begins with. Each
 * repeated fill gets its lock by a SET, which is measured too and taken off, as the GET is. */
#include "bench/harness.h"
#include "bench/server.h"

#include <hiredis/hiredis.h>
#include <holdfast/redis.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 13, LOCK = 3, TOKEN = 9, KIND = 10, DATA = 12, AT_ONCE = 8 }; /* EVALSHA sha 6 KEYS token kind ttl data */

struct scene {
    const struct bench_server *server;
    hf_client *client;
    redisContext *plain;
    char *bytes, line[2000], old[48];
    size_t size;
    const char *words[WORDS];
    double other_us; /* of this round: a GET, or a SET */
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

/* Early each time but for a few, which count as a GET. */
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

/* ---- the fill alone ---- */

static redisContext *connect_plainly(const struct scene *scene)
{
    redisContext *context = redisConnect("127.0.0.1", scene->server->port);
    if (context == NULL || context->err != 0)
        bench_die("no connection");
    return context;
}

/* The words of the EVALSHA by which a refresh says `same`. */
static void copy_fill(struct scene *scene)
{
    redisReply *reply = NULL;
    redisContext *monitor = connect_plainly(scene);
    freeReplyObject(redisCommand(monitor, "MONITOR"));
    scene->same = true;
    while (!refreshes(scene))
        ;
    do {
        freeReplyObject(reply);
        if (redisGetReply(monitor, (void **)&reply) != REDIS_OK || reply->type != REDIS_REPLY_STATUS)
            bench_die("the server tells no commands");
    } while (strstr(reply->str, "\"EVALSHA\"") == NULL || strstr(reply->str, "\"same\"") == NULL);
    (void)snprintf(scene->line, sizeof scene->line, "%s", strstr(reply->str, "\"EVALSHA\""));
    freeReplyObject(reply);
    redisFree(monitor);
    char *at = scene->line;
    for (int i = 0; i < WORDS; i++) { /* none of them has a quote in it */
        char *end = *at == '"' ? strchr(at + 1, '"') : NULL;
        if (end == NULL)
            bench_die("the fill has other words than it had");
        scene->words[i] = at + 1;
        *end = 0;
        at = end + (end[1] == ' ' ? 2 : 1);
    }
    (void)snprintf(scene->old, sizeof scene->old, "%zu,0,9000000000000", scene->size); /* whenever it ends */
    scene->words[DATA] = scene->old;
}

/* kind NULL: the SETs alone. */
static void fill(struct scene *scene, const char *kind)
{
    redisReply *reply;
    size_t sizes[WORDS];
    const char *words[WORDS];
    memcpy(words, scene->words, sizeof words);
    words[KIND] = kind != NULL ? kind : "";
    for (int i = 0; i < WORDS; i++)
        sizes[i] = strlen(words[i]);
    if (strcmp(words[KIND], "value") == 0) {
        words[DATA] = scene->bytes;
        sizes[DATA] = scene->size;
    }
    for (int i = 0; i < AT_ONCE; i++) {
        (void)redisAppendCommand(scene->plain, "SET %s %s", words[LOCK], words[TOKEN]);
        if (kind != NULL)
            (void)redisAppendCommandArgv(scene->plain, WORDS, words, sizes);
    }
    for (int i = 0; i < (kind != NULL ? 2 : 1) * AT_ONCE; i++) {
        if (redisGetReply(scene->plain, (void **)&reply) != REDIS_OK || reply->type == REDIS_REPLY_ERROR)
            bench_die("a fill fails");
        if (reply->type == REDIS_REPLY_ARRAY && strcmp(reply->element[0]->str, "FILLED") != 0)
            bench_die("a fill is %s", reply->element[0]->str);
        freeReplyObject(reply);
    }
}

/* ---- turns: the server's microseconds for each ---- */

static double get_turn(struct scene *scene, double seconds)
{
    long reads = 0;
    int64_t end = bench_now_ns() + (int64_t)(seconds * 1e9);
    double before = server_us(scene);
    for (; bench_now_ns() < end; reads++)
        get(scene);
    return (server_us(scene) - before) / (double)reads;
}

static double refresh_turn(struct scene *scene, double seconds)
{
    long reads = 0, loads = 0;
    int64_t end = bench_now_ns() + (int64_t)(seconds * 1e9);
    double before = server_us(scene);
    for (; bench_now_ns() < end; reads++)
        loads += refreshes(scene);
    return (server_us(scene) - before - scene->other_us * (double)reads) / (double)(loads > 0 ? loads : 1);
}

static double repeat(struct scene *scene, double seconds, const char *kind)
{
    long fills = 0;
    int64_t end = bench_now_ns() + (int64_t)(seconds * 1e9);
    double before = server_us(scene);
    for (; bench_now_ns() < end; fills += AT_ONCE)
        fill(scene, kind);
    return (server_us(scene) - before) / (double)fills;
}

static double fill_turn(struct scene *scene, double seconds)
{
    return repeat(scene, seconds, scene->same ? "same" : "value") - scene->other_us;
}

static double set_turn(struct scene *scene, double seconds)
{
    return repeat(scene, seconds, NULL);
}

typedef double turn_fn(struct scene *scene, double seconds);

static void ask(struct bench *bench, struct scene *scene, const char *what, turn_fn *turn, turn_fn *other, struct bench_goal goal)
{
    double set[BENCH_MOST_TURNS], same[BENCH_MOST_TURNS];
    char row[80];
    (void)turn(scene, bench->seconds / 4);
    for (int round = 0; round < bench->rounds; round++) {
        scene->other_us = other(scene, bench->seconds);
        for (int i = 0; i < 2; i++) {
            scene->same = (i == 0) == (round % 2 == 0);
            (scene->same ? same : set)[round] = 1e6 / turn(scene, bench->seconds);
        }
    }
    (void)snprintf(row, sizeof row, "%zu bytes, %s", scene->size, what);
    bench_row(bench, row, "a CPU s", goal, "set", bench_pair(bench, same, set, bench->rounds));
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {4096, 100000};
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "same", "a refresh that finds the old value still good");
    bench_server_start(&server, -1);
    for (int i = 0; i < 2; i++) {
        hf_error error;
        struct scene scene = {.server = &server, .client = bench_client(server.url, NULL), .size = sizes[i]};
        scene.plain = connect_plainly(&scene);
        scene.bytes = malloc(scene.size);
        if (scene.bytes == NULL)
            bench_die("no memory");
        memset(scene.bytes, 'x', scene.size);
        bench_must(hf_fetch_forget(scene.client, "page", &error), &error, "forget");
        (void)refreshes(&scene);
        copy_fill(&scene);
        ask(&bench, &scene, "refreshes but for the GET", refresh_turn, get_turn, NO_GOAL);
        ask(&bench, &scene, "fills", fill_turn, set_turn, scene.size > 50000 ? AT_LEAST(10) : NO_GOAL);
        (void)hf_client_close(scene.client, NULL);
        redisFree(scene.plain);
        free(scene.bytes);
    }
    bench_server_stop(&server);
    return bench_end(&bench);
}
