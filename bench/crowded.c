/* SPDX-License-Identifier: MIT */
/* crowded.c - does a polling reader notice that it takes the CPU from the server? Client and server share one CPU,
 * and every CPU is busy with other work. And the arithmetic behind it: where no CPU is idle, a pair takes as long as all of its
 * CPU time together, the server's and the client's. */
#include "bench/pairs.h"
#include "bench/place.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic(long) yields;

/* In front of libc's: the library's yields are counted. */
__attribute__((visibility("default"))) int sched_yield(void)
{
    atomic_fetch_add(&yields, 1);
    return (int)syscall(SYS_sched_yield);
}

static void rows(struct bench *bench, struct bench_server *server, enum bench_place place)
{
    static const int crews[] = {1, 64};
    char row[80];
    bench_place(server, place);
    for (int i = 0; i < 2; i++) {
        struct bench_pairs pairs;
        bench_pairs_open(&pairs, server->url, server->port, crews[i]);
        (void)snprintf(row, sizeof row, "%d thread%s, %s", crews[i], i == 0 ? "" : "s",
                       bench_place_name(place));
        bench_pairs_compare(bench, &pairs, row, AT_LEAST(1));
        bench_pairs_close(&pairs);
    }
}

/* Few threads, which no batch helps: what do their commands cost, and what do we? */
static void few(struct bench *bench, struct bench_server *server, enum bench_place place, int threads)
{
    struct bench_pairs pairs;
    char row[80];
    bench_place(server, place);
    bench_pairs_open(&pairs, server->url, server->port, threads);
    (void)snprintf(row, sizeof row, "%d thread%s, %s", threads, threads == 1 ? "" : "s", bench_place_name(place));
    bench_pairs_account(bench, &pairs, row);
    bench_pairs_close(&pairs);
}

struct account { /* a side that is judged by the CPU time of one of the two */
    struct bench_pairs *pairs;
    struct bench_server *server; /* NULL: the client's */
    bench_turn *turn;
};

/* Pairs for each second of CPU time. */
static double count(void *arg, double seconds)
{
    struct account *account = arg;
    double before = account->server != NULL ? bench_server_cpu_seconds(account->server) : bench_cpu_seconds();
    double pairs = account->turn(account->pairs, seconds) * seconds;
    double after = account->server != NULL ? bench_server_cpu_seconds(account->server) : bench_cpu_seconds();
    return after > before ? pairs / (after - before) : 0;
}

static void accounts(struct bench *bench, struct bench_server *server, enum bench_place place, int threads)
{
    static const char *const whose[] = {"server", "client"};
    bench_place(server, place);
    for (int i = 0; i < 2; i++) {
        struct bench_pairs pairs;
        char row[96];
        bench_pairs_open(&pairs, server->url, server->port, threads);
        struct account ours = {&pairs, i == 0 ? server : NULL, bench_pairs_ours},
                       plain = {&pairs, i == 0 ? server : NULL, bench_pairs_plain};
        struct bench_side sides[] = {{"holdfast", count, &ours}, {"plain loop", count, &plain}};
        (void)snprintf(row, sizeof row, "pairs a second of %s CPU, %d thread%s, %s", whose[i], threads, threads == 1 ? "" : "s",
                       bench_place_name(place));
        (void)bench_compare(bench, row, "pairs", NO_GOAL, &sides[0], &sides[1]);
        bench_pairs_close(&pairs);
    }
}

/* Does a yield hand the CPU to the server? A pair has two replies. */
static void count_yields(struct bench *bench, struct bench_server *server)
{
    struct bench_pairs pairs;
    bench_place(server, BENCH_ON_ONE_CPU);
    bench_pairs_open(&pairs, server->url, server->port, 1);
    long before = atomic_load(&yields);
    double count = bench_pairs_ours(&pairs, bench->seconds) * bench->seconds;
    bench_number(bench, "yields a pair, 1 thread, all on one CPU", (double)(atomic_load(&yields) - before) / count, "", NO_GOAL, NULL);
    bench_pairs_close(&pairs);
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "crowded", "acquire + release where client and server share a CPU");
    bench_server_start(&server, -1);
    rows(&bench, &server, BENCH_ON_ONE_CPU);
    rows(&bench, &server, BENCH_BUSY);
    few(&bench, &server, BENCH_ON_ONE_CPU, 1);
    count_yields(&bench, &server);
    few(&bench, &server, BENCH_BUSY, 2);
    few(&bench, &server, BENCH_BUSY, 4);
    accounts(&bench, &server, BENCH_ON_ONE_CPU, 1);
    accounts(&bench, &server, BENCH_UNPINNED, 4);
    for (int threads = 1; threads <= 4; threads *= 2)
        accounts(&bench, &server, BENCH_BUSY, threads);
    bench_place(&server, BENCH_UNPINNED);
    bench_server_stop(&server);
    return bench_end(&bench);
}
