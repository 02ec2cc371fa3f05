/* SPDX-License-Identifier: MIT */
/* killed.c - the holder's process is killed: the time from the expiry of its key to the waiter's grant. */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/histogram.h"
#include "bench/server.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#define AT_ONCE 20 /* locks whose holder dies */

struct scene {
    const struct bench_server *server;
    int round;
    _Atomic(int) *held;
};

static int hold(void *arg)
{
    struct scene *scene = arg;
    hf_client *client = bench_client(scene->server->url, NULL);
    for (int i = 0; i < AT_ONCE; i++) {
        char name[32];
        hf_lease *lease;
        (void)snprintf(name, sizeof name, "dead:%d:%d", scene->round, i);
        bench_must(hf_lock_acquire(client, name, HF_LOCK(.lease_ms = 500), &lease, NULL), NULL, "acquire");
        (void)atomic_fetch_add(scene->held, 1);
    }
    for (;;)
        bench_sleep(10);
    return 0;
}

struct wait {
    hf_client *client;
    pthread_t thread;
    char name[32];
    int64_t got_ms; /* wall clock, as Redis counts */
};

static void *wait_for_it(void *arg)
{
    struct wait *wait = arg;
    hf_lease *lease;
    struct timespec now;
    bench_must(hf_lock_acquire(wait->client, wait->name, HF_LOCK(.wait_ms = 20000), &lease, NULL), NULL,
               "acquire");
    (void)clock_gettime(CLOCK_REALTIME, &now);
    wait->got_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    bench_must(hf_lease_release(lease, NULL), NULL, "release");
    return NULL;
}

static void kill_some(struct scene *scene, hf_client *client, redisContext *asking,
                      struct bench_histogram *late)
{
    static struct wait waits[AT_ONCE];
    int64_t ends[AT_ONCE];
    hf_stats stats = {0};
    atomic_store(scene->held, 0);
    pid_t holder = bench_fork(hold, scene);
    while (atomic_load(scene->held) < AT_ONCE)
        bench_sleep(0.002);
    for (int i = 0; i < AT_ONCE; i++) {
        waits[i].client = client;
        (void)snprintf(waits[i].name, sizeof waits[i].name, "dead:%d:%d", scene->round, i);
        (void)pthread_create(&waits[i].thread, NULL, wait_for_it, &waits[i]);
    }
    while (stats.waiting < AT_ONCE) {
        hf_client_stats(client, &stats);
        bench_sleep(0.002);
    }
    bench_sleep(0.05 + 0.01 * (scene->round % 10)); /* at any point of the renewals' period */
    (void)kill(holder, SIGKILL);
    (void)waitpid(holder, NULL, 0);
    for (int i = 0; i < AT_ONCE; i++) {
        redisReply *reply = redisCommand(asking, "PEXPIRETIME hf:{%s}", waits[i].name);
        if (reply == NULL || reply->type != REDIS_REPLY_INTEGER || reply->integer < 0)
            bench_die("no PEXPIRETIME: is this a Redis of 7.0 or later?");
        ends[i] = reply->integer;
        freeReplyObject(reply);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        (void)pthread_join(waits[i].thread, NULL);
        bench_record(late, (waits[i].got_ms - ends[i]) * 1000000);
    }
    scene->round++;
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    struct bench_histogram late = {0};
    bench_begin(&bench, argc, argv, "killed", "the holder is killed: the waiter, after the server's expiry");
    bench_server_start(&server, -1);
    struct scene scene = {&server, 0, bench_shared(sizeof *scene.held)};
    hf_client *client = bench_client(server.url, NULL);
    redisContext *asking = redisConnect("127.0.0.1", server.port);
    for (int i = 0; i < (bench.quick ? 3 : 10); i++) {
        bench_progress(&bench, "%d killed", i * AT_ONCE);
        kill_some(&scene, client, asking, &late);
    }
    bench_number(&bench, "late, p50", (double)bench_percentile(&late, 50) / 1e6, "ms", NO_GOAL, NULL);
    bench_number(&bench, "late, p99", (double)bench_percentile(&late, 99) / 1e6, "ms", AT_MOST(10), NULL);
    bench_number(&bench, "latest", (double)late.most_ns / 1e6, "ms", NO_GOAL, NULL);
    redisFree(asking);
    (void)hf_client_close(client, NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
