/* SPDX-License-Identifier: MIT */
/* permits.c - 64 threads of one process take a permit each, and give it back at once, against the usual way: a connection a
 * thread, a script that removes what has timed out, counts, and adds, and a ZREM for the release. Where none is free the usual
 * way asks again a millisecond later. */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/server.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

#define THREADS 64

static const char script[] = "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000) "
                             "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now) "
                             "if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end "
                             "redis.call('ZADD', KEYS[1], now + 10000, ARGV[1]) return 1";

struct scene {
    hf_client *client;
    int limit;
    int64_t linger_ms;
    redisContext *plain[THREADS];
    char sha[41];
};

static long step_ours(int index, void *arg)
{
    const struct scene *scene = arg;
    hf_lock_options options = {.size = sizeof options, .wait_ms = 10000, .linger_ms = scene->linger_ms};
    hf_lease *lease;
    hf_error error;
    (void)index;
    bench_must(hf_semaphore_acquire(scene->client, "gate", scene->limit, 1, &options, &lease, &error), &error, "acquire");
    bench_must(hf_lease_release(lease, &error), &error, "release");
    return 1;
}

static long long integer(redisReply *reply, const redisContext *context)
{
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER)
        bench_die("plain permits: %s", reply != NULL ? reply->str : context->errstr);
    long long value = reply->integer;
    freeReplyObject(reply);
    return value;
}

static long step_plain(int index, void *arg)
{
    const struct scene *scene = arg;
    redisContext *plain = scene->plain[index];
    while (integer(redisCommand(plain, "EVALSHA %s 1 plain:%d holder-%d %d", scene->sha, scene->limit, index, scene->limit), plain) == 0)
        bench_sleep(0.001);
    (void)integer(redisCommand(plain, "ZREM plain:%d holder-%d", scene->limit, index), plain);
    return 1;
}

static double turn_ours(void *arg, double seconds)
{
    return bench_crew(THREADS, seconds, step_ours, arg, NULL);
}

static double turn_plain(void *arg, double seconds)
{
    return bench_crew(THREADS, seconds, step_plain, arg, NULL);
}

static void compare(struct bench *bench, struct scene *scene, const char *row, int limit, int64_t linger_ms, struct bench_goal goal)
{
    struct bench_side ours = {"holdfast", turn_ours, scene}, plain = {"script and ZREM", turn_plain, scene};
    scene->limit = limit;
    scene->linger_ms = linger_ms;
    (void)bench_compare(bench, row, "pairs/s", goal, &ours, &plain);
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "permits", "64 threads of one process take permits of one semaphore");
    bench_server_start(&server, -1);
    struct scene scene = {.client = bench_client(server.url, NULL)};
    for (int i = 0; i < THREADS; i++) {
        scene.plain[i] = redisConnect("127.0.0.1", server.port);
        redisReply *reply = redisCommand(scene.plain[i], "SCRIPT LOAD %s", script);
        if (reply == NULL || reply->type != REDIS_REPLY_STRING)
            bench_die("plain permits: no script");
        (void)snprintf(scene.sha, sizeof scene.sha, "%s", reply->str);
        freeReplyObject(reply);
    }
    compare(&bench, &scene, "64 permits, linger_ms 5", THREADS, 5, AT_LEAST(20));
    compare(&bench, &scene, "64 permits", THREADS, 0, NO_GOAL);
    compare(&bench, &scene, "4 permits", 4, 0, NO_GOAL);
    for (int i = 0; i < THREADS; i++)
        redisFree(scene.plain[i]);
    (void)hf_client_close(scene.client, NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
