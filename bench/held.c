/* SPDX-License-Identifier: MIT */
/* held.c - 100,000 leases of 30 s in an otherwise idle process: its CPU, its memory, and whether every lease is
 * renewed in time. (10,000 of 9 s with --quick.) */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/memory.h"
#include "bench/server.h"

#include <stdlib.h>
#include <string.h>

struct scene {
    const struct bench_server *server;
    int count;
    int64_t lease_ms;
    double window;
    struct report {
        double bytes, cpu, server_cpu, late, commands, acquire_s;
    } * report;
};

/* The largest used part of a lease, among all leases, watched for a bit more than a renewal's period. */
static double latest(const struct scene *scene, hf_lease *const *leases)
{
    int64_t least = scene->lease_ms;
    int64_t until = bench_now_ns() + scene->lease_ms * 500000;
    while (bench_now_ns() < until) {
        for (int i = 0; i < scene->count; i++) {
            int64_t left = hf_lease_remaining_ms(leases[i]);
            least = left < least ? left : least;
        }
        bench_sleep(0.02);
    }
    return 1 - (double)least / (double)scene->lease_ms;
}

static int hold(void *arg)
{
    struct scene *scene = arg;
    hf_client *client = bench_client(scene->server->url, HF_CLIENT(.lease_ms = scene->lease_ms));
    hf_lease **leases = malloc((size_t)scene->count * sizeof *leases);
    hf_lease *one;
    hf_error error;
    hf_stats before, after;
    memset(leases, 1, (size_t)scene->count * sizeof *leases); /* its pages are not the leases' */
    bench_must(hf_lock_acquire(client, "held:first", NULL, &one, &error), &error, "acquire");
    double bytes = bench_resident_bytes();
    int64_t began = bench_now_ns();
    for (int i = 0; i < scene->count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "held:%d", i);
        bench_must(hf_lock_acquire(client, name, NULL, &leases[i], &error), &error, "acquire");
    }
    scene->report->acquire_s = (double)(bench_now_ns() - began) / 1e9;
    bench_sleep((double)scene->lease_ms / 2000); /* till renewals are what they will be */
    scene->report->bytes = (bench_resident_bytes() - bytes) / scene->count;
    hf_client_stats(client, &before);
    double cpu = bench_cpu_seconds(), server_cpu = bench_server_cpu_seconds(scene->server);
    bench_sleep(scene->window);
    scene->report->cpu = (bench_cpu_seconds() - cpu) / scene->window;
    scene->report->server_cpu = (bench_server_cpu_seconds(scene->server) - server_cpu) / scene->window;
    hf_client_stats(client, &after);
    scene->report->commands = (double)(after.remote_commands - before.remote_commands) / scene->window;
    scene->report->late = latest(scene, leases);
    for (int i = 0; i < scene->count; i++)
        if (!hf_lease_is_valid(leases[i]))
            bench_die("a held lease was lost");
    return 0; /* the server goes with its keys */
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "held", "many held leases: what keeping them costs");
    bench_server_start(&server, -1);
    struct scene scene = {&server, 100000, 30000, 30, NULL};
    if (bench.quick)
        scene = (struct scene){&server, 10000, 9000, 6, NULL};
    scene.report = bench_shared(sizeof *scene.report);
    bench_progress(&bench, "%d leases of %d s", scene.count, (int)scene.lease_ms / 1000);
    bench_join(bench_fork(hold, &scene));
    struct report *seen = scene.report;
    double scale =
        (double)scene.lease_ms / 30000 * 100000 / scene.count; /* of the CPU; renewals a second matter */
    bench_number(&bench, "leases", scene.count, "", NO_GOAL, NULL);
    bench_number(&bench, "taken by one thread in", seen->acquire_s, "s", NO_GOAL, NULL);
    bench_number(&bench, "client CPU", seen->cpu * 100, "% of a core", AT_MOST(4 / scale), "");
    bench_number(&bench, "server CPU", seen->server_cpu * 100, "% of a core", NO_GOAL, NULL);
    bench_number(&bench, "commands a second", seen->commands, "", NO_GOAL, NULL);
    bench_number(&bench, "memory per lease, entry included", seen->bytes, "bytes", AT_MOST(700), NULL);
    bench_number(&bench, "latest renewal, of the lease", seen->late, "", AT_MOST(0.6), NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
