/* SPDX-License-Identifier: MIT */
/* stampede.c - a thousand threads miss one key at once: the number of loads, and the time from the load's end until
 * the last thread is awake, against a bare FUTEX_WAKE of as many parked threads. */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/server.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

struct scene {
    hf_client *client;
    int threads, round;
    pthread_barrier_t start;
    _Atomic(int) word, parked, loads;
    _Atomic(int64_t) began_ns, last_ns;
};

static void note_the_last(struct scene *scene)
{
    int64_t now = bench_now_ns(), last = atomic_load(&scene->last_ns);
    while (now > last && !atomic_compare_exchange_weak(&scene->last_ns, &last, now))
        ;
}

static hf_status load(hf_loading *loading, void *arg)
{
    struct scene *scene = arg;
    hf_stats stats = {0};
    (void)atomic_fetch_add(&scene->loads, 1);
    for (int i = 0; i < 5000 && stats.waiting < (uint64_t)scene->threads - 1;
         i++) { /* the crowd is to be there */
        hf_client_stats(scene->client, &stats);
        bench_sleep(0.001);
    }
    bench_sleep(0.02);
    atomic_store(&scene->began_ns, bench_now_ns());
    return hf_loading_set(loading, "page", 4);
}

static void *fetch(void *arg)
{
    struct scene *scene = arg;
    hf_value *value;
    hf_error error;
    char key[32];
    (void)snprintf(key, sizeof key, "hot:%d:%d", scene->threads, scene->round);
    (void)pthread_barrier_wait(&scene->start);
    bench_must(
        hf_fetch(scene->client, key, HF_FETCH(.load = load, .arg = scene, .wait_ms = 30000), &value, &error),
        &error, "fetch");
    note_the_last(scene);
    hf_value_free(value);
    return NULL;
}

static void *park(void *arg)
{
    struct scene *scene = arg;
    (void)pthread_barrier_wait(&scene->start);
    (void)atomic_fetch_add(&scene->parked, 1);
    while (atomic_load(&scene->word) == 0)
        (void)syscall(SYS_futex, &scene->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    note_the_last(scene);
    return NULL;
}

/* Milliseconds from the load's end (or the wake) to the last thread's return. */
static double turn(struct scene *scene, bool bare)
{
    static pthread_t threads[BENCH_CREW_MAX];
    (void)pthread_barrier_init(&scene->start, NULL, (unsigned)scene->threads);
    atomic_store(&scene->word, 0);
    atomic_store(&scene->parked, 0);
    atomic_store(&scene->last_ns, 0);
    for (int i = 0; i < scene->threads; i++)
        if (pthread_create(&threads[i], NULL, bare ? park : fetch, scene) != 0)
            bench_die("cannot start thread %d", i);
    if (bare) {
        while (atomic_load(&scene->parked) < scene->threads)
            bench_sleep(0.001);
        bench_sleep(0.02);
        atomic_store(&scene->began_ns, bench_now_ns());
        atomic_store(&scene->word, 1);
        (void)syscall(SYS_futex, &scene->word, FUTEX_WAKE_PRIVATE, scene->threads, NULL, NULL, 0);
    }
    for (int i = 0; i < scene->threads; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_barrier_destroy(&scene->start);
    scene->round++;
    return (double)(atomic_load(&scene->last_ns) - atomic_load(&scene->began_ns)) / 1e6;
}

static double turn_fetch(void *arg, double seconds)
{
    (void)seconds;
    return turn(arg, false);
}

static double turn_bare(void *arg, double seconds)
{
    (void)seconds;
    return turn(arg, true);
}

static void rows(struct bench *bench, struct scene *scene, int threads, bool by_ratio)
{
    double values[2][BENCH_MOST_TURNS];
    char row[80];
    const struct bench_side sides[] = {{"hf_fetch", turn_fetch, scene},
                                       {"a bare FUTEX_WAKE", turn_bare, scene}};
    scene->threads = threads;
    (void)turn(scene, true);
    atomic_store(&scene->loads, 0);
    (void)snprintf(row, sizeof row, "%d threads", threads);
    bench_turns(bench, row, sides, 2, bench->rounds, values);
    struct bench_ratio ratio = bench_pair(bench, values[0], values[1], bench->rounds);
    (void)snprintf(row, sizeof row, "%d threads, loads a stampede", threads);
    bench_number(bench, row, (double)atomic_load(&scene->loads) / bench->rounds, "", AT_MOST(1), NULL);
    (void)snprintf(row, sizeof row, "%d threads, last one awake after the load", threads);
    bench_number(bench, row, ratio.value, "ms", by_ratio ? NO_GOAL : AT_MOST(2), NULL);
    (void)snprintf(row, sizeof row, "%d threads, ours / bare", threads);
    bench_row(bench, row, "ms", by_ratio ? AT_MOST(1.5) : NO_GOAL, sides[1].name, ratio);
}

int main(int argc, char **argv)
{
    static struct scene scene;
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "stampede", "many threads miss one key at once");
    bench_server_start(&server, -1);
    scene.client = bench_client(server.url, NULL);
    rows(&bench, &scene, 64, false);
    rows(&bench, &scene, 1000, true);
    (void)hf_client_close(scene.client, NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
