/* SPDX-License-Identifier: MIT */
/* linger.c - the cost where the lease is in the process already: a lingering pair, is_valid; a pthread_mutex beside
 * them for the scale. */
#include "bench/harness.h"
#include "bench/server.h"

#include <pthread.h>

#define BATCH 1000

struct scene {
    hf_client *client;
    hf_lease *lease;
    pthread_mutex_t mutex;
};

/* Nanoseconds each, by batches for so long. */
static double time_each(double seconds, void (*batch)(struct scene *scene), struct scene *scene)
{
    int64_t began = bench_now_ns(), until = began + (int64_t)(seconds * 1e9), now;
    long batches = 0;
    do {
        batch(scene);
        batches++;
        now = bench_now_ns();
    } while (now < until);
    return (double)(now - began) / (double)batches / BATCH;
}

static void lingering(struct scene *scene)
{
    for (int i = 0; i < BATCH; i++) {
        hf_lease *lease;
        bench_must(hf_lock_acquire(scene->client, "linger", HF_LOCK(.linger_ms = 5000), &lease, NULL), NULL,
                   "acquire");
        bench_must(hf_lease_release(lease, NULL), NULL, "release");
    }
}

static void valid(struct scene *scene)
{
    for (int i = 0; i < BATCH; i++)
        if (!hf_lease_is_valid(scene->lease))
            bench_die("the lease was lost");
}

static void mutex(struct scene *scene)
{
    for (int i = 0; i < BATCH; i++) {
        (void)pthread_mutex_lock(&scene->mutex);
        (void)pthread_mutex_unlock(&scene->mutex);
    }
}

static double middle(const struct bench *bench, void (*batch)(struct scene *scene), struct scene *scene)
{
    double values[BENCH_MOST_TURNS];
    (void)time_each(bench->seconds / 4, batch, scene);
    for (int i = 0; i < bench->rounds; i++)
        values[i] = time_each(bench->seconds / 2, batch, scene);
    return bench_median(values, bench->rounds);
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    struct scene scene = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    bench_begin(&bench, argc, argv, "linger", "the cost of a lock whose lease is in this process");
    bench_server_start(&server, -1);
    scene.client = bench_client(server.url, NULL);
    bench_must(hf_lock_acquire(scene.client, "valid", NULL, &scene.lease, NULL), NULL, "acquire");
    bench_number(&bench, "lingering lease, acquire + release", middle(&bench, lingering, &scene), "ns",
                 AT_MOST(250), NULL);
    bench_number(&bench, "hf_lease_is_valid", middle(&bench, valid, &scene), "ns", AT_MOST(40), NULL);
    bench_number(&bench, "pthread_mutex, lock + unlock", middle(&bench, mutex, &scene), "ns", NO_GOAL,
                 "the scale, no goal");
    bench_must(hf_lease_release(scene.lease, NULL), NULL, "release");
    (void)hf_client_close(scene.client, NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
