/* SPDX-License-Identifier: MIT */
/* curves.c - how it grows: threads, names, processes, held leases, local waiters, distance, size of values. No goals;
 * bench/plot.py draws them. */
#include "bench/crew.h"
#include "bench/memory.h"
#include "bench/pairs.h"
#include "bench/server.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct bench bench;
static struct bench_server server;

static void by_threads(void)
{
    for (int threads = 1; threads <= 512; threads *= 2) {
        struct bench_pairs pairs;
        bench_pairs_open(&pairs, server.url, server.port, threads);
        bench_point(&bench, "threads", "holdfast, pairs a second", threads,
                    bench_pairs_ours(&pairs, bench.seconds));
        bench_point(&bench, "threads", "plain loop, pairs a second", threads,
                    bench_pairs_plain(&pairs, bench.seconds));
        pairs.posted = true;
        bench_point(&bench, "threads", "holdfast, posted release", threads,
                    bench_pairs_ours(&pairs, bench.seconds));
        bench_pairs_close(&pairs);
    }
}

struct any_name {
    hf_client *client;
    unsigned names;
    unsigned seeds[BENCH_CREW_MAX];
};

static long step_any_name(int index, void *arg)
{
    struct any_name *scene = arg;
    char name[32];
    hf_lease *lease;
    scene->seeds[index] = scene->seeds[index] * 1664525 + 1013904223;
    (void)snprintf(name, sizeof name, "any:%u", (scene->seeds[index] >> 8) % scene->names);
    bench_must(hf_lock_acquire(scene->client, name, HF_LOCK(.wait_ms = 20000), &lease, NULL), NULL,
               "acquire");
    bench_must(hf_lease_release(lease, NULL), NULL, "release");
    return 1;
}

static void by_names(void)
{
    static struct any_name scene;
    scene.client = bench_client(server.url, NULL);
    for (int i = 0; i < BENCH_CREW_MAX; i++)
        scene.seeds[i] = (unsigned)i * 7919 + 1;
    for (scene.names = 1; scene.names <= 1000000; scene.names *= 10)
        bench_point(&bench, "names", "64 threads, any of so many names", scene.names,
                    bench_crew(64, bench.seconds, step_any_name, &scene, NULL));
    (void)hf_client_close(scene.client, NULL);
}

static long step_one_name(int index, void *arg)
{
    hf_lease *lease;
    (void)index;
    bench_must(hf_lock_acquire(arg, "one", HF_LOCK(.wait_ms = 60000), &lease, NULL), NULL, "acquire");
    bench_must(hf_lease_release(lease, NULL), NULL, "release");
    return 1;
}

static int one_lock_child(void *arg)
{
    _Atomic(double) *all = arg;
    hf_client *client = bench_client(server.url, NULL);
    double rate = bench_crew(16, bench.seconds, step_one_name, client, NULL), old = atomic_load(all);
    while (!atomic_compare_exchange_weak(all, &old, old + rate))
        ;
    return hf_client_close(client, NULL) != HF_OK;
}

static void by_processes(void)
{
    _Atomic(double) *all = bench_shared(sizeof *all);
    for (int processes = 1; processes <= 16; processes *= 2) {
        pid_t children[16];
        atomic_store(all, 0);
        for (int i = 0; i < processes; i++)
            children[i] = bench_fork(one_lock_child, (void *)all);
        for (int i = 0; i < processes; i++)
            bench_join(children[i]);
        bench_point(&bench, "processes", "16 threads each on one lock, sections a second", processes,
                    atomic_load(all));
    }
}

static int held_child(void *arg)
{
    int count = *(int *)arg;
    hf_client *client = bench_client(server.url, HF_CLIENT(.lease_ms = 9000));
    hf_lease *lease;
    double bytes = bench_resident_bytes();
    for (int i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "held:%d:%d", count, i);
        bench_must(hf_lock_acquire(client, name, NULL, &lease, NULL), NULL, "acquire");
    }
    bench_sleep(3);
    bytes = bench_resident_bytes() - bytes;
    double cpu = bench_cpu_seconds(), server_cpu = bench_server_cpu_seconds(&server),
           window = bench.quick ? 3 : 6;
    bench_sleep(window);
    bench_point(&bench, "held-cpu", "client, % of a core", count, (bench_cpu_seconds() - cpu) / window * 100);
    bench_point(&bench, "held-cpu", "server, % of a core", count,
                (bench_server_cpu_seconds(&server) - server_cpu) / window * 100);
    bench_point(&bench, "held-memory", "bytes a lease", count, bytes / count);
    (void)fflush(stdout);
    return hf_client_close(client, NULL) != HF_OK;
}

static void by_held(void)
{
    for (int count = 10; count <= (bench.quick ? 10000 : 100000); count *= 10) {
        /* A thread would keep what the last size left in the heap; a child begins anew, and its points come by pipe. */
        int ends[2];
        char line[128];
        if (pipe(ends) != 0)
            bench_die("no pipe");
        pid_t child = fork();
        if (child == 0) {
            (void)dup2(ends[1], 1);
            _exit(held_child(&count));
        }
        (void)close(ends[1]);
        FILE *points = fdopen(ends[0], "r");
        while (points != NULL && fgets(line, sizeof line, points) != NULL) {
            char plot[32], series[64];
            double x, y;
            if (sscanf(line, " %31s %63[^0-9] %lf %lf", plot, series, &x, &y) == 4) {
                for (size_t end = strlen(series); end > 0 && series[end - 1] == ' '; end--)
                    series[end - 1] = '\0';
                bench_point(&bench, plot, series, x, y);
            }
        }
        (void)fclose(points);
        bench_join(child);
    }
}

static void by_waiters(void)
{
    hf_client *client = bench_client(server.url, NULL);
    for (int threads = 1; threads <= 1000; threads *= 10)
        bench_point(&bench, "waiters", "threads of one process on one lock, sections a second", threads,
                    bench_crew(threads, bench.seconds, step_one_name, client, NULL));
    (void)hf_client_close(client, NULL);
}

static void by_distance(void)
{
    static const double far_ms[] = {0, 0.25, 0.5, 1, 2, 5};
    for (size_t i = 0; i < sizeof far_ms / sizeof *far_ms; i++) {
        struct bench_pairs pairs;
        bench_proxy_start(&server, far_ms[i]);
        bench_pairs_open(&pairs, server.proxy_url, server.proxy_port, 64);
        bench_point(&bench, "distance", "holdfast, 64 threads, pairs a second", far_ms[i],
                    bench_pairs_ours(&pairs, bench.seconds));
        bench_point(&bench, "distance", "plain loop, 64 threads, pairs a second", far_ms[i],
                    bench_pairs_plain(&pairs, bench.seconds));
        bench_pairs_close(&pairs);
        bench_proxy_stop(&server);
    }
}

struct page {
    hf_client *client;
    size_t size;
    char *bytes;
};

static hf_status load(hf_loading *loading, void *arg)
{
    struct page *page = arg;
    return hf_loading_set(loading, page->bytes, page->size);
}

static long step_page(int index, void *arg)
{
    struct page *page = arg;
    hf_value *value;
    char key[32];
    (void)index;
    (void)snprintf(key, sizeof key, "page:%zu", page->size);
    bench_must(hf_fetch(page->client, key, HF_FETCH(.load = load, .arg = page), &value, NULL), NULL, "fetch");
    hf_value_free(value);
    return 1;
}

static void by_size(void)
{
    struct page page = {.client = bench_client(server.url, NULL), .bytes = calloc(1, 1 << 20)};
    for (page.size = 1; page.size <= 1 << 20; page.size *= 16) {
        bench_point(&bench, "values", "1 thread, hits a second", (double)page.size,
                    bench_crew(1, bench.seconds, step_page, &page, NULL));
        bench_point(&bench, "values", "64 threads, hits a second", (double)page.size,
                    bench_crew(64, bench.seconds, step_page, &page, NULL));
    }
    free(page.bytes);
    (void)hf_client_close(page.client, NULL);
}

int main(int argc, char **argv)
{
    bench_begin(&bench, argc, argv, "curves", "how it grows");
    bench_server_start(&server, -1);
    by_threads();
    by_names();
    by_processes();
    by_held();
    by_waiters();
    by_distance();
    by_size();
    bench_server_stop(&server);
    return bench_end(&bench);
}
