/* SPDX-License-Identifier: MIT */
/* processes.c - 4 processes x 16 threads on one lock, against the same with plain loops that ask again every
 * millisecond. */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/histogram.h"
#include "bench/plain_loop.h"
#include "bench/server.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define PROCESSES 4
#define THREADS   16

struct share { /* what a child says; in memory of all */
    double rate;
    uint64_t commands, sections;
    struct bench_histogram waits;
};

struct scene {
    const struct bench_server *server;
    hf_client *client;
    struct bench_plain *plain[THREADS];
    double seconds;
    bool plainly;
    int number;
    _Atomic(int) *ready;
    struct share *shares;
    struct bench_histogram waits[THREADS];
};

static long step_ours(int index, void *arg)
{
    struct scene *scene = arg;
    hf_lease *lease;
    hf_error error;
    int64_t began = bench_now_ns();
    bench_must(hf_lock_acquire(scene->client, "all", HF_LOCK(.wait_ms = HF_FOREVER), &lease, &error), &error,
               "acquire");
    bench_record(&scene->waits[index], bench_now_ns() - began);
    bench_must(hf_lease_release(lease, &error), &error, "release");
    return 1;
}

static long step_plain(int index, void *arg)
{
    struct scene *scene = arg;
    int64_t began = bench_now_ns();
    for (int i = 0; !bench_plain_take(scene->plain[index]); i++) {
        if (i > 5000)
            return 0;
        bench_sleep(0.001);
    }
    bench_record(&scene->waits[index], bench_now_ns() - began);
    bench_plain_give(scene->plain[index]);
    return 1;
}

static int child(void *arg)
{
    struct scene *scene = arg;
    struct share *mine = &scene->shares[scene->number];
    hf_stats stats = {0};
    for (int i = 0; i < THREADS && scene->plainly; i++)
        scene->plain[i] = bench_plain_open(scene->server->port, "plain:all");
    if (!scene->plainly)
        scene->client = bench_client(scene->server->url, NULL);
    (void)atomic_fetch_add(scene->ready, 1);
    while (atomic_load(scene->ready) % PROCESSES != 0)
        bench_sleep(0.0005);
    mine->rate = bench_crew(THREADS, scene->seconds, scene->plainly ? step_plain : step_ours, scene, NULL);
    for (int i = 0; i < THREADS; i++)
        bench_merge(&mine->waits, &scene->waits[i]);
    if (!scene->plainly) {
        hf_client_stats(scene->client, &stats);
        mine->commands = stats.remote_commands;
        mine->sections = stats.acquired;
        (void)hf_client_close(scene->client, NULL);
    }
    return 0;
}

static double turn(struct scene *scene, double seconds, bool plainly)
{
    pid_t children[PROCESSES];
    double all = 0;
    scene->seconds = seconds;
    scene->plainly = plainly;
    memset(scene->shares, 0, PROCESSES * sizeof *scene->shares);
    for (int i = 0; i < PROCESSES; i++) {
        scene->number = i;
        children[i] = bench_fork(child, scene);
    }
    for (int i = 0; i < PROCESSES; i++)
        bench_join(children[i]);
    for (int i = 0; i < PROCESSES; i++)
        all += scene->shares[i].rate;
    return all;
}

static double turn_ours(void *arg, double seconds)
{
    return turn(arg, seconds, false);
}

static double turn_plain(void *arg, double seconds)
{
    return turn(arg, seconds, true);
}

int main(int argc, char **argv)
{
    static struct scene scene;
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "processes", "4 processes x 16 threads on one lock");
    bench_server_start(&server, -1);
    scene.server = &server;
    scene.shares = bench_shared(PROCESSES * sizeof *scene.shares);
    scene.ready = bench_shared(sizeof *scene.ready);
    struct bench_side ours = {"holdfast", turn_ours, &scene},
                      plain = {"polling every ms", turn_plain, &scene};
    /* From the table in bench/README.md: the best neighbour does 2.5 x the polling loop; 20 x that is the goal. */
    (void)bench_compare(&bench, "sections", "sections/s", AT_LEAST(50), &ours, &plain);

    bench_progress(&bench, "shares and waits");
    (void)turn(&scene, bench.quick ? 2 : 5, false);
    struct bench_histogram waits = {0};
    double least = scene.shares[0].rate, most = least;
    uint64_t commands = 0, sections = 0;
    for (int i = 0; i < PROCESSES; i++) {
        const struct share *share = &scene.shares[i];
        least = share->rate < least ? share->rate : least;
        most = share->rate > most ? share->rate : most;
        commands += share->commands;
        sections += share->sections;
        bench_merge(&waits, &share->waits);
    }
    bench_number(&bench, "commands per section", (double)commands / (double)sections, "", AT_MOST(0.05),
                 NULL);
    bench_number(&bench, "wait, p50", (double)bench_percentile(&waits, 50) / 1e6, "ms", NO_GOAL, NULL);
    bench_number(&bench, "wait, p99", (double)bench_percentile(&waits, 99) / 1e6, "ms", NO_GOAL, NULL);
    bench_number(&bench, "longest wait", (double)waits.most_ns / 1e6, "ms", AT_MOST(200), NULL);
    bench_number(&bench, "largest process share / smallest", most / least, "x", AT_MOST(2), NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
