/* SPDX-License-Identifier: MIT */
/* curves.c - how the cost grows with threads, names, processes, held leases, local waiters, distance, size of
 * values. bench/plot.py draws them; only threads and hits have goals, at each point and in each place. `curves held`
 * draws one, `curves --list` lists them. */
#include "bench/crew.h"
#include "bench/dear.h"
#include "bench/memory.h"
#include "bench/on_one.h"
#include "bench/pages.h"
#include "bench/pairs.h"
#include "bench/place.h"
#include "bench/resources.h"

#include <pthread.h>
#include <string.h>

static struct bench bench;
static struct bench_server server;

/* A point for each side, its median. */
static void points(const char *plot, double x, const struct bench_side *sides, int count)
{
    enum { ROUNDS = 3 };
    double values[4][BENCH_MOST_TURNS];
    bench_turns(&bench, plot, sides, count, ROUNDS, values);
    for (int side = 0; side < count; side++)
        bench_point(&bench, plot, sides[side].name, x, bench_median(values[side], ROUNDS));
}

/* Points, and rows that compare each side with the last one, the yardstick. */
static void judged_points(const char *plot, enum bench_place place, int threads, const char *unit,
                          const struct bench_side *sides, int count)
{
    double values[4][BENCH_MOST_TURNS];
    char where[64], row[128], plain[64];
    const struct bench_side *yardstick = &sides[count - 1];
    struct bench_ratio ratio = {0};
    (void)snprintf(where, sizeof where, "%d thread%s, %s", threads, threads == 1 ? "" : "s",
                   bench_place_name(place));
    (void)snprintf(plain, sizeof plain, "%.*s", (int)strcspn(yardstick->name, ","), yardstick->name);
    bench_warm_up(&bench, sides, count);
    bench_turns(&bench, where, sides, count, bench.rounds, values);
    for (int side = 0; side < count - 1; side++) {
        (void)snprintf(row, sizeof row, "%s, %s", sides[side].name, where);
        ratio = bench_pair(&bench, values[side], values[count - 1], bench.rounds);
        bench_row(&bench, row, unit, AT_LEAST(1), plain, ratio);
        bench_point(&bench, plot, sides[side].name, threads, ratio.value);
    }
    bench_point(&bench, plot, yardstick->name, threads, ratio.other);
}

static void lock_point(const char *plot, enum bench_place place, int threads)
{
    struct bench_pairs pairs;
    bench_pairs_open(&pairs, server.url, server.port, threads);
    struct bench_pairs posted = pairs;
    posted.posted = true;
    const struct bench_side sides[] = {{"Holdfast, posted release", bench_pairs_ours, &posted},
                                       {"Holdfast", bench_pairs_ours, &pairs},
                                       {"plain loop, a connection a thread", bench_pairs_plain, &pairs}};
    judged_points(plot, place, threads, "pairs/s", sides, 3);
    bench_pairs_close(&pairs);
}

static void hit_point(const char *plot, enum bench_place place, int threads)
{
    struct bench_pages pages;
    bench_pages_open(&pages, server.url, server.port, threads, threads, 4096, true);
    const struct bench_side sides[] = {{"hf_fetch", bench_pages_fetch, &pages},
                                       {"GET, a connection a thread", bench_pages_plain, &pages}};
    judged_points(plot, place, threads, "hits/s", sides, 2);
    bench_pages_close(&pages);
}

static void by_place_and_threads(const char *name,
                                 void (*point)(const char *plot, enum bench_place, int threads))
{
    static const char *const endings[BENCH_PLACES] = {"", "-apart", "-one-cpu", "-busy"};
    static const int crews[] = {1, 2, 4, 8, 16, 64, 512};
    for (enum bench_place place = 0; place < BENCH_PLACES; place++) {
        char plot[64];
        (void)snprintf(plot, sizeof plot, "%s%s", name, endings[place]);
        if (!bench_has_place(place)) {
            bench_skip(&bench, bench_place_name(place), "there is one CPU");
            continue;
        }
        bench_place(&server, place);
        for (size_t i = 0; i < sizeof crews / sizeof *crews; i++)
            point(plot, place, crews[i]);
    }
    bench_place(&server, BENCH_UNPINNED);
}

static void by_threads(void)
{
    by_place_and_threads("threads", lock_point);
}

static void by_threads_that_fetch(void)
{
    by_place_and_threads("hits", hit_point);
}

struct any_name {
    hf_client *client;
    unsigned names;
    unsigned seeds[64];
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

static double turn_any_name(void *arg, double seconds)
{
    return bench_crew(64, seconds, step_any_name, arg, NULL);
}

static void by_names(void)
{
    struct any_name scene = {.client = bench_client(server.url, NULL)};
    const struct bench_side side = {"64 threads, any of so many names", turn_any_name, &scene};
    for (unsigned i = 0; i < 64; i++)
        scene.seeds[i] = i * 7919 + 1;
    for (scene.names = 1; scene.names <= 1000000; scene.names *= 10)
        points("names", scene.names, &side, 1);
    (void)hf_client_close(scene.client, NULL);
}

static double turn_one_lock(void *arg, double seconds)
{
    return bench_on_one(&server, *(int *)arg, 16, false, seconds);
}

static double turn_one_lock_plainly(void *arg, double seconds)
{
    return bench_on_one(&server, *(int *)arg, 16, true, seconds);
}

static void by_processes(void)
{
    for (int processes = 1; processes <= 16; processes *= 2) {
        const struct bench_side sides[] = {
            {"Holdfast", turn_one_lock, &processes},
            {"plain loops, asking every ms", turn_one_lock_plainly, &processes}};
        points("processes", processes, sides, 2);
    }
}

struct holder {
    int count;
    struct cost {
        double cpu, server_cpu, bytes; /* shares of a core; bytes a lease */
    } * cost;
};

/* Each size has a process of its own: memory that the last size left in the heap would be counted. */
static int hold(void *arg)
{
    const struct holder *me = arg;
    const int64_t lease_ms = 9000;
    hf_client *client = bench_client(server.url, HF_CLIENT(.lease_ms = lease_ms));
    hf_lease *lease;
    double bytes = bench_resident_bytes(), window = bench.quick ? 3 : 9;
    for (int i = 0; i < me->count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "held:%d:%d", me->count, i);
        bench_must(hf_lock_acquire(client, name, NULL, &lease, NULL), NULL, "acquire");
    }
    bench_sleep((double)lease_ms / 3000); /* till renewals are what they will be */
    me->cost->bytes = (bench_resident_bytes() - bytes) / me->count;
    double cpu = bench_cpu_seconds(), server_cpu = bench_server_cpu_seconds(&server);
    bench_sleep(window);
    me->cost->cpu = (bench_cpu_seconds() - cpu) / window;
    me->cost->server_cpu = (bench_server_cpu_seconds(&server) - server_cpu) / window;
    return 0; /* the keys go with their end */
}

static void by_held(void)
{
    struct holder holder = {.cost = bench_shared(sizeof *holder.cost)};
    for (holder.count = 10; holder.count <= 100000; holder.count *= 10) {
        bench_progress(&bench, "held, %d", holder.count);
        bench_join(bench_fork(hold, &holder));
        bench_progress(&bench, "%s", "");
        bench_point(&bench, "held-cpu", "client", holder.count, holder.cost->cpu * 100);
        bench_point(&bench, "held-cpu", "server", holder.count, holder.cost->server_cpu * 100);
        if (holder.count >= 10000) /* a page is too coarse for fewer */
            bench_point(&bench, "held-memory", "a lease, entry included", holder.count, holder.cost->bytes);
    }
}

struct crowd {
    hf_client *client;
    pthread_mutex_t mutex;
    int threads;
};

static long step_one_name(int index, void *arg)
{
    hf_lease *lease;
    (void)index;
    bench_must(hf_lock_acquire(((struct crowd *)arg)->client, "one", HF_LOCK(.wait_ms = 60000), &lease, NULL),
               NULL, "acquire");
    bench_must(hf_lease_release(lease, NULL), NULL, "release");
    return 1;
}

static long step_mutex(int index, void *arg)
{
    (void)index;
    (void)pthread_mutex_lock(&((struct crowd *)arg)->mutex);
    (void)pthread_mutex_unlock(&((struct crowd *)arg)->mutex);
    return 1;
}

static double turn_one_name(void *arg, double seconds)
{
    return bench_crew(((struct crowd *)arg)->threads, seconds, step_one_name, arg, NULL);
}

static double turn_mutex(void *arg, double seconds)
{
    return bench_crew(((struct crowd *)arg)->threads, seconds, step_mutex, arg, NULL);
}

static void by_waiters(void)
{
    struct crowd crowd = {.client = bench_client(server.url, NULL), .mutex = PTHREAD_MUTEX_INITIALIZER};
    const struct bench_side sides[] = {{"Holdfast", turn_one_name, &crowd},
                                       {"pthread_mutex", turn_mutex, &crowd}};
    for (crowd.threads = 1; crowd.threads <= 10000; crowd.threads *= 10)
        points("waiters", crowd.threads, sides, 2);
    (void)hf_client_close(crowd.client, NULL);
}

static void by_distance(void)
{
    static const double far_ms[] = {0, 0.25, 0.5, 1, 2, 3, 4, 5};
    for (size_t i = 0; i < sizeof far_ms / sizeof *far_ms; i++) {
        struct bench_pairs pairs;
        bench_proxy_start(&server, far_ms[i]);
        bench_pairs_open(&pairs, server.proxy_url, server.proxy_port, 64);
        const struct bench_side sides[] = {{"Holdfast, 64 threads", bench_pairs_ours, &pairs},
                                           {"plain loop, 64 connections", bench_pairs_plain, &pairs}};
        points("distance", far_ms[i], sides, 2);
        bench_pairs_close(&pairs);
        bench_proxy_stop(&server);
    }
}

static void by_size(void)
{
    for (size_t size = 1; size <= 1 << 20; size *= 16) {
        struct bench_pages pages;
        bench_pages_open(&pages, server.url, server.port, 64, 1, size, false);
        struct bench_pages lone = pages;
        lone.threads = 1;
        const struct bench_side sides[] = {{"hf_fetch, 64 threads", bench_pages_fetch, &pages},
                                           {"GET over a lane, 64 threads", bench_pages_get, &pages},
                                           {"hf_fetch, 1 thread", bench_pages_fetch, &lone},
                                           {"GET over a lane, 1 thread", bench_pages_get, &lone}};
        points("values", (double)size, sides, 4);
        bench_pages_close(&pages);
    }
}

static const struct curve {
    const char *name, *words;
    void (*run)(void);
    long threads, files, megabytes;
} curves[] = {
    {"threads", "1 to 512 threads with a lock each", by_threads, 600, 600, 200},
    {"hits", "1 to 512 threads that fetch a value of 4 kB each", by_threads_that_fetch, 600, 600, 200},
    {"names", "64 threads take any of 1 to 1,000,000 names", by_names, 100, 100, 500},
    {"processes", "1 to 16 processes with 16 threads each on one lock", by_processes, 400, 100, 500},
    {"held", "what 10 to 100,000 held leases cost", by_held, 100, 100, 500},
    {"waiters", "1 to 10,000 threads of one process on one lock", by_waiters, 10100, 100, 1000},
    {"distance", "a server that is 0 to 5 ms away", by_distance, 200, 400, 200},
    {"values", "hits of values of 1 B to 1 MB", by_size, 100, 100, 1000},
};
#define CURVES (sizeof curves / sizeof *curves)

/* A file of its own each, so that one can be drawn anew alone. */
static void draw(const struct curve *curve, int argc, char **argv)
{
    char question[64], why[160];
    (void)snprintf(question, sizeof question, "curve-%s", curve->name);
    bench_begin(&bench, argc, argv, question, curve->words);
    if (bench_can_have(curve->threads, curve->files, curve->megabytes, why, sizeof why)) {
        bench_server_start(&server, -1);
        curve->run();
        bench_server_stop(&server);
        (void)bench_end(&bench);
    } else {
        (void)printf("  not drawn: it %s\n", why);
    }
}

static int list(void)
{
    for (size_t i = 0; i < CURVES; i++)
        (void)puts(curves[i].name);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    char *options[16] = {argv[0]};
    bool wanted[CURVES] = {false}, some = false;
    int count = 1;
    for (int i = 1; i < argc; i++) {
        size_t curve = 0;
        while (curve < CURVES && strcmp(argv[i], curves[curve].name) != 0)
            curve++;
        if (curve < CURVES)
            wanted[curve] = some = true;
        else if (count < 15)
            options[count++] = argv[i];
        else
            bench_die("that are too many options");
        if (strcmp(argv[i], "--dear") == 0)
            bench_dear(argv);
    }
    for (size_t i = 0; i < CURVES; i++)
        if (wanted[i] || !some)
            draw(&curves[i], count, options);
    return 0;
}
