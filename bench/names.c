/* SPDX-License-Identifier: MIT */
/* names.c - one process waits for 1,000 names at once, or 10,000, all held elsewhere: the cost of waiting. And when
 * 2,500, or 10,000, for which sixteen clients wait, are released at once: the time until the last grant. */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/resources.h"
#include "bench/server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MOST    10000
#define CLIENTS 16 /* each has few names, so it re-checks every 400 ms, and the claims that it asks for are as short */
#define STACK   (32 * 1024)

struct scene {
    const struct bench_server *server;
    int count, client_count;
    _Atomic(int) held, gives, over;
    _Atomic(int64_t) gave_ns, last_ns;
    hf_client *clients[CLIENTS];
};

static int hold(void *arg)
{
    static hf_lease *leases[MOST];
    struct scene *scene = arg;
    hf_client *client = bench_client(scene->server->url, NULL);
    for (int i = 0; i < scene->count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "name:%d", i);
        bench_must(hf_lock_acquire(client, name, HF_LOCK(.wait_ms = 20000), &leases[i], NULL), NULL, "acquire");
    }
    atomic_store(&scene->held, 1);
    while (atomic_load(&scene->gives) == 0)
        bench_sleep(0.001);
    atomic_store(&scene->gave_ns, bench_now_ns());
    for (int i = 0; i < scene->count; i++)
        bench_must(hf_lease_post_release(leases[i], NULL), NULL, "release");
    while (atomic_load(&scene->over) < scene->count)
        bench_sleep(0.001);
    (void)hf_client_close(client, NULL);
    return 0;
}

struct wait {
    struct scene *scene;
    pthread_t thread;
    int number;
};

static void *wait_for_it(void *arg)
{
    struct wait *wait = arg;
    struct scene *scene = wait->scene;
    char name[32];
    hf_lease *lease;
    (void)snprintf(name, sizeof name, "name:%d", wait->number);
    bench_must(hf_lock_acquire(scene->clients[wait->number % scene->client_count], name, HF_LOCK(.wait_ms = HF_FOREVER),
                               &lease, NULL),
               NULL, "acquire");
    atomic_store(&scene->last_ns, bench_now_ns());
    bench_must(hf_lease_post_release(lease, NULL), NULL, "release");
    (void)atomic_fetch_add(&scene->over, 1);
    return NULL;
}

static void what_waiting_costs(struct bench *bench, struct scene *scene)
{
    const char *of = scene->count > 1000 ? "10,000 names, " : "";
    char row[80];
    hf_stats before, after;
    bench_sleep(2);
    double window = bench->quick ? 5 : 20;
    hf_client_stats(scene->clients[0], &before);
    double cpu = bench_cpu_seconds(), server_cpu = bench_server_cpu_seconds(scene->server);
    bench_sleep(window);
    cpu = (bench_cpu_seconds() - cpu) / window;
    server_cpu = (bench_server_cpu_seconds(scene->server) - server_cpu) / window;
    hf_client_stats(scene->clients[0], &after);
    (void)snprintf(row, sizeof row, "%sclient CPU", of);
    bench_number(bench, row, cpu * 100, "% of a core", scene->count > 1000 ? AT_MOST(3) : AT_MOST(1), NULL);
    (void)snprintf(row, sizeof row, "%sserver CPU, the holder's renewals included", of);
    bench_number(bench, row, server_cpu * 100, "% of a core", NO_GOAL, NULL);
    (void)snprintf(row, sizeof row, "%scommands a second", of);
    bench_number(bench, row, (double)(after.remote_commands - before.remote_commands) / window, "", NO_GOAL, NULL);
}

static void until_all_wait(const struct scene *scene)
{
    for (uint64_t waiting = 0; waiting < (uint64_t)scene->count;) {
        bench_sleep(0.01);
        waiting = 0;
        for (int i = 0; i < scene->client_count; i++) {
            hf_stats stats;
            hf_client_stats(scene->clients[i], &stats);
            waiting += stats.waiting;
        }
    }
}

/* Seconds from the first release to the last grant. */
static double through(struct bench *bench, const struct bench_server *server, int count, int client_count)
{
    static struct wait waits[MOST];
    struct scene *scene = bench_shared(sizeof *scene);
    pthread_attr_t attributes;
    scene->server = server;
    scene->count = count;
    scene->client_count = client_count;
    pid_t holder = bench_fork(hold, scene);
    while (atomic_load(&scene->held) == 0)
        bench_sleep(0.005);
    for (int i = 0; i < client_count; i++)
        scene->clients[i] = bench_client(server->url, NULL);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK);
    for (int i = 0; i < count; i++) {
        waits[i] = (struct wait){.scene = scene, .number = i};
        if (pthread_create(&waits[i].thread, &attributes, wait_for_it, &waits[i]) != 0)
            bench_die("cannot start thread %d", i);
    }
    until_all_wait(scene);
    if (client_count == 1)
        what_waiting_costs(bench, scene);
    else
        bench_sleep(1); /* they all ask at their own time */
    atomic_store(&scene->gives, 1);
    for (int i = 0; i < count; i++)
        (void)pthread_join(waits[i].thread, NULL);
    bench_join(holder);
    for (int i = 0; i < client_count; i++)
        (void)hf_client_close(scene->clients[i], NULL);
    return (double)(atomic_load(&scene->last_ns) - atomic_load(&scene->gave_ns)) / 1e9;
}

/* The median of three. */
static double usually(struct bench *bench, const struct bench_server *server, int count)
{
    double took[3];
    for (int i = 0; i < 3; i++)
        took[i] = through(bench, server, count, CLIENTS);
    return bench_median(took, 3);
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    char why[160];
    bench_begin(&bench, argc, argv, "names", "one process waits for 1,000 names, and more");
    bench_server_start(&server, -1);
    (void)through(&bench, &server, 1000, 1);
    if (bench_can_have(MOST + 100, 200, MOST / 10, why, sizeof why)) {
        (void)through(&bench, &server, MOST, 1);
        double few = usually(&bench, &server, MOST / 4), many = usually(&bench, &server, MOST);
        bench_number(&bench, "2,500 given back at once, the last is there after", few, "s", NO_GOAL, NULL);
        bench_number(&bench, "10,000 given back at once, the last is there after", many, "s", AT_MOST(1.2), NULL);
        bench_number(&bench, "10,000 / 2,500", many / few, "x", AT_MOST(4), NULL);
    } else {
        bench_skip(&bench, "10,000 given back at once", why);
    }
    bench_server_stop(&server);
    return bench_end(&bench);
}
