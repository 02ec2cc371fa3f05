/* SPDX-License-Identifier: MIT */
/* waiters.c - 10,000 threads of one process wait for one lock that is held elsewhere: the server's load, the cost of
 * each, and the time until all had it. (1,000 with --quick.) */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/memory.h"
#include "bench/resources.h"
#include "bench/server.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#define STACK (32 * 1024)

struct scene {
    const struct bench_server *server;
    hf_client *client;
    _Atomic(int) held, go, arrived;
    _Atomic(int64_t) first_ns, last_ns;
};

static int hold(void *arg)
{
    struct scene *scene = arg;
    hf_lease *lease;
    hf_client *client = bench_client(scene->server->url, NULL);
    bench_must(hf_lock_acquire(client, "crowd", NULL, &lease, NULL), NULL, "acquire");
    atomic_store(&scene->held, 1);
    while (atomic_load(&scene->go) < 2)
        bench_sleep(0.001);
    atomic_store(&scene->first_ns, bench_now_ns());
    bench_must(hf_lease_release(lease, NULL), NULL, "release");
    return hf_client_close(client, NULL) != HF_OK;
}

static void *wait_for_it(void *arg)
{
    struct scene *scene = arg;
    hf_lease *lease;
    (void)atomic_fetch_add(&scene->arrived, 1);
    while (atomic_load(&scene->go) == 0)
        bench_sleep(0.05);
    bench_must(hf_lock_acquire(scene->client, "crowd", HF_LOCK(.wait_ms = 120000), &lease, NULL), NULL,
               "acquire");
    atomic_store(&scene->last_ns, bench_now_ns());
    bench_must(hf_lease_release(lease, NULL), NULL, "release");
    return NULL;
}

static void until_waiting(struct scene *scene, int count)
{
    hf_stats stats = {0};
    while (stats.waiting < (uint64_t)count) {
        bench_sleep(0.01);
        hf_client_stats(scene->client, &stats);
    }
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "waiters", "a crowd of threads waits for one lock of another process");
    int count = bench.quick ? 1000 : 10000;
    char why[160];
    if (!bench_can_have(count + 100, 200, count / 10, why, sizeof why))
        bench_die("waiters %s", why);
    bench_server_start(&server, -1);
    struct scene *scene = bench_shared(sizeof *scene);
    scene->server = &server;
    pid_t holder = bench_fork(hold, scene);
    while (atomic_load(&scene->held) == 0)
        bench_sleep(0.001);
    scene->client = bench_client(server.url, NULL);
    char *stacks = mmap(NULL, (size_t)count * STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    (void)madvise(stacks, (size_t)count * STACK, MADV_NOHUGEPAGE);
    for (int i = 0; i < count; i++) {
        pthread_attr_t attributes;
        (void)pthread_attr_init(&attributes);
        (void)pthread_attr_setstack(&attributes, stacks + (size_t)i * STACK, STACK);
        if (pthread_create(&threads[i], &attributes, wait_for_it, scene) != 0)
            bench_die("cannot start thread %d", i);
    }
    while (atomic_load(&scene->arrived) < count)
        bench_sleep(0.01);
    hf_stats before, after;
    double bytes = bench_resident_bytes() - bench_touched_bytes(stacks, (size_t)count * STACK);
    hf_client_stats(scene->client, &before);
    atomic_store(&scene->go, 1);
    until_waiting(scene, count);
    bytes = bench_resident_bytes() - bench_touched_bytes(stacks, (size_t)count * STACK) - bytes;
    redisContext *asking = redisConnect("127.0.0.1", server.port);
    redisReply *queued = redisCommand(asking, "ZCARD hf:queue:{crowd}:hf:{crowd}");
    bench_number(&bench, "threads that wait", count, "", NO_GOAL, NULL);
    bench_number(&bench, "places in the server's queue", queued != NULL ? (double)queued->integer : -1, "",
                 AT_MOST(1), NULL);
    freeReplyObject(queued);
    redisFree(asking);
    bench_number(&bench, "memory each, besides the stack", bytes / count, "bytes", AT_MOST(300), NULL);
    double cpu = bench_cpu_seconds();
    hf_client_stats(scene->client, &before);
    bench_sleep(3);
    hf_client_stats(scene->client, &after);
    bench_number(&bench, "client CPU while they wait", (bench_cpu_seconds() - cpu) / 3 * 100, "% of a core",
                 NO_GOAL, NULL);
    bench_number(&bench, "commands a second while they wait",
                 (double)(after.remote_commands - before.remote_commands) / 3, "", NO_GOAL, NULL);
    atomic_store(&scene->go, 2);
    for (int i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    double took = (double)(atomic_load(&scene->last_ns) - atomic_load(&scene->first_ns)) / 1e9;
    bench_number(&bench, "then all through, sections a second", count / took, "sections/s", NO_GOAL, NULL);
    bench_join(holder);
    (void)hf_client_close(scene->client, NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
