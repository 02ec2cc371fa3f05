/* SPDX-License-Identifier: MIT */
/* names.c - one process waits for a thousand names at once, all held elsewhere: what does waiting cost it? */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/server.h"

#include <pthread.h>
#include <stdatomic.h>

#define NAMES 1000

struct scene {
    const struct bench_server *server;
    _Atomic(int) *held;
    hf_client *client;
    hf_cancel *cancel;
};

static int hold(void *arg)
{
    struct scene *scene = arg;
    hf_client *client = bench_client(scene->server->url, NULL);
    for (int i = 0; i < NAMES; i++) {
        char name[32];
        hf_lease *lease;
        (void)snprintf(name, sizeof name, "name:%d", i);
        bench_must(hf_lock_acquire(client, name, NULL, &lease, NULL), NULL, "acquire");
        atomic_store(scene->held, i + 1);
    }
    for (;;)
        bench_sleep(10);
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
    char name[32];
    hf_lease *lease;
    (void)snprintf(name, sizeof name, "name:%d", wait->number);
    hf_status status =
        hf_lock_acquire(wait->scene->client, name,
                        HF_LOCK(.wait_ms = HF_FOREVER, .cancel = wait->scene->cancel), &lease, NULL);
    if (status != HF_CANCELED)
        bench_die("a waiter got %s", hf_status_name(status));
    return NULL;
}

int main(int argc, char **argv)
{
    static struct wait waits[NAMES];
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "names", "one process waits for 1,000 names");
    bench_server_start(&server, -1);
    struct scene scene = {.server = &server, .held = bench_shared(sizeof *scene.held)};
    (void)bench_fork(hold, &scene); /* dies with us */
    while (atomic_load(scene.held) < NAMES)
        bench_sleep(0.005);
    scene.client = bench_client(server.url, NULL);
    bench_must(hf_cancel_open(scene.client, &scene.cancel, NULL), NULL, "cancel");
    for (int i = 0; i < NAMES; i++) {
        waits[i].scene = &scene;
        waits[i].number = i;
        (void)pthread_create(&waits[i].thread, NULL, wait_for_it, &waits[i]);
    }
    hf_stats before = {0}, after;
    while (before.waiting < NAMES) {
        bench_sleep(0.01);
        hf_client_stats(scene.client, &before);
    }
    bench_sleep(2);
    double window = bench.quick ? 5 : 20;
    hf_client_stats(scene.client, &before);
    double cpu = bench_cpu_seconds(), server_cpu = bench_server_cpu_seconds(&server);
    bench_sleep(window);
    cpu = (bench_cpu_seconds() - cpu) / window;
    server_cpu = (bench_server_cpu_seconds(&server) - server_cpu) / window;
    hf_client_stats(scene.client, &after);
    bench_number(&bench, "client CPU", cpu * 100, "% of a core", AT_MOST(1), NULL);
    bench_number(&bench, "server CPU, the holder's renewals included", server_cpu * 100, "% of a core",
                 NO_GOAL, NULL);
    bench_number(&bench, "commands a second",
                 (double)(after.remote_commands - before.remote_commands) / window, "", NO_GOAL, NULL);
    hf_cancel_fire(scene.cancel);
    for (int i = 0; i < NAMES; i++)
        (void)pthread_join(waits[i].thread, NULL);
    hf_cancel_close(scene.cancel);
    (void)hf_client_close(scene.client, NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
