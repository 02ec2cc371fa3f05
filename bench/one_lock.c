/* SPDX-License-Identifier: MIT */
/* one_lock.c - 64 threads of one process on one lock, against a pthread_mutex with the same section. */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/histogram.h"
#include "bench/server.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 64

struct scene {
    hf_client *client;
    pthread_mutex_t mutex;
    long work; /* loops in the section */
    long shares[THREADS];
    struct bench_histogram *waits; /* one a thread; NULL: not looked at */
    volatile long sum;             /* what the section changes */
};

static void section(struct scene *scene)
{
    for (long i = 0; i < scene->work; i++)
        scene->sum = scene->sum + i;
}

static long step_ours(int index, void *arg)
{
    struct scene *scene = arg;
    hf_lease *lease;
    hf_error error;
    int64_t began = scene->waits != NULL ? bench_now_ns() : 0;
    bench_must(hf_lock_acquire(scene->client, "one", HF_LOCK(.wait_ms = HF_FOREVER), &lease, &error), &error,
               "acquire");
    if (scene->waits != NULL)
        bench_record(&scene->waits[index], bench_now_ns() - began);
    section(scene);
    bench_must(hf_lease_release(lease, &error), &error, "release");
    return 1;
}

static long step_mutex(int index, void *arg)
{
    struct scene *scene = arg;
    (void)index;
    (void)pthread_mutex_lock(&scene->mutex);
    section(scene);
    (void)pthread_mutex_unlock(&scene->mutex);
    return 1;
}

static double turn_ours(void *arg, double seconds)
{
    struct scene *scene = arg;
    return bench_crew(THREADS, seconds, step_ours, arg, scene->shares);
}

static double turn_mutex(void *arg, double seconds)
{
    return bench_crew(THREADS, seconds, step_mutex, arg, NULL);
}

/* How many loops take a microsecond here. */
static long loops_of_a_microsecond(struct scene *scene)
{
    double best = 1e9;
    scene->work = 1000;
    for (int i = 0; i < 1000; i++) {
        int64_t began = bench_now_ns();
        section(scene);
        double each = (double)(bench_now_ns() - began) / (double)scene->work;
        best = each < best ? each : best;
    }
    return (long)(1000 / best);
}

static void look_at_waits(struct bench *bench, struct scene *scene)
{
    struct bench_histogram all = {0};
    scene->waits = calloc(THREADS, sizeof *scene->waits);
    (void)turn_ours(scene, bench->seconds * bench->rounds / 2);
    long least = scene->shares[0], most = scene->shares[0];
    for (int i = 0; i < THREADS; i++) {
        least = scene->shares[i] < least ? scene->shares[i] : least;
        most = scene->shares[i] > most ? scene->shares[i] : most;
        bench_merge(&all, &scene->waits[i]);
    }
    free(scene->waits);
    scene->waits = NULL;
    bench_number(bench, "wait, p50", (double)bench_percentile(&all, 50) / 1e3, "us", NO_GOAL, NULL);
    bench_number(bench, "wait, p99", (double)bench_percentile(&all, 99) / 1e3, "us", NO_GOAL, NULL);
    bench_number(bench, "longest wait", (double)all.most_ns / 1e6, "ms", AT_MOST(50), NULL);
    bench_number(bench, "largest share / smallest", (double)most / (double)(least > 0 ? least : 1), "x",
                 AT_MOST(3), NULL);
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    struct scene scene = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    bench_begin(&bench, argc, argv, "one_lock", "64 threads of one process on one lock");
    bench_server_start(&server, -1);
    scene.client = bench_client(server.url, NULL);
    struct bench_side ours = {"holdfast", turn_ours, &scene}, mutex = {"pthread_mutex", turn_mutex, &scene};
    long microsecond = loops_of_a_microsecond(&scene);
    hf_stats before, after;
    hf_client_stats(scene.client, &before);
    scene.work = microsecond;
    (void)bench_compare(&bench, "sections with 1 us of work", "sections/s", AT_LEAST(0.5), &ours, &mutex);
    hf_client_stats(scene.client, &after);
    bench_number(&bench, "commands per section",
                 (double)(after.remote_commands - before.remote_commands) /
                     (double)(after.acquired - before.acquired),
                 "", NO_GOAL, NULL);
    look_at_waits(&bench, &scene);
    scene.work = 0;
    (void)bench_compare(&bench, "empty sections (the aim is 0.3)", "sections/s", NO_GOAL, &ours, &mutex);
    (void)hf_client_close(scene.client, NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
