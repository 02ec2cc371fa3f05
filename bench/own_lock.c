/* SPDX-License-Identifier: MIT */
/* own_lock.c - what acquire + release costs where nobody else wants the lock, against the plain loop, which has to
 * prove first that it is no straw man. */
#include "bench/crew.h"
#include "bench/pairs.h"
#include "bench/plain_loop.h"
#include "bench/server.h"

#include <string.h>

struct proof {
    struct bench_server *server;
    struct bench_pairs *pairs;
};

/* Commands a second of one of the two, by redis-benchmark. */
static double ask(const struct bench_server *server, int count, const char *command)
{
    char line[512];
    double rate = 0;
    (void)snprintf(line, sizeof line, "redis-benchmark -p %d -c 1 -P 1 -n %d --csv %s 2>/dev/null",
                   server->port, count, command);
    FILE *run = popen(line, "re");
    while (run != NULL && fgets(line, sizeof line, run) != NULL) {
        char *comma = strstr(line, "\",\"");
        if (comma == NULL || sscanf(comma + 3, "%lf", &rate) != 1)
            rate = 0;
    }
    if (run == NULL || pclose(run) != 0 || rate <= 0)
        bench_die("redis-benchmark does not answer");
    return rate;
}

/* The plain loop's two commands, each by itself, put together to pairs. */
static double prove(void *arg, double seconds)
{
    struct proof *proof = arg;
    char give[160];
    int count = (int)(8000 * seconds) + 500;
    (void)snprintf(give, sizeof give, "EVALSHA %s 1 plain:proof 00000001-0123456789abcdef",
                   bench_plain_sha(proof->pairs->plain[0]));
    double take = ask(proof->server, count, "SET plain:proof 00000001-0123456789abcdef NX PX 10000");
    return 1 / (1 / take + 1 / ask(proof->server, count, give));
}

static void one_thread(struct bench *bench, struct bench_server *server, const char *where, bool last)
{
    char row[80];
    struct bench_pairs pairs;
    bench_pairs_open(&pairs, server->url, server->port, 1);
    struct proof proof = {server, &pairs};
    struct bench_side plain = {"plain loop", bench_pairs_plain, &pairs},
                      judge = {"redis-benchmark", prove, &proof};
    (void)snprintf(row, sizeof row, "the yardstick itself, %s", where);
    if (bench_compare(bench, row, "pairs/s", AT_LEAST(0.9), &plain, &judge) < 0.9)
        (void)printf("  VOID: the plain loop is below 0.9 x redis-benchmark in this run\n");
    (void)snprintf(row, sizeof row, "1 thread, %s", where);
    bench_pairs_compare(bench, &pairs, row, last ? NO_GOAL : AT_LEAST(2.2));
    pairs.posted = true;
    (void)snprintf(row, sizeof row, "1 thread, posted release, %s", where);
    bench_pairs_compare(bench, &pairs, row, last ? NO_GOAL : AT_LEAST(4));
    bench_pairs_close(&pairs);
}

static void many_threads(struct bench *bench, struct bench_server *server, const char *where, bool last)
{
    char row[80];
    struct bench_pairs pairs;
    bench_pairs_open(&pairs, server->url, server->port, 64);
    (void)snprintf(row, sizeof row, "64 threads, a lock each, %s", where);
    bench_pairs_compare(bench, &pairs, row, last ? NO_GOAL : AT_LEAST(1.6));
    pairs.posted = true;
    (void)snprintf(row, sizeof row, "64 threads, posted release, %s", where);
    bench_pairs_compare(bench, &pairs, row, last ? NO_GOAL : AT_LEAST(2.3));
    bench_pairs_close(&pairs);
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "own_lock", "acquire + release of a lock that nobody else wants");
    bench_server_start(&server, 0);
    bench_pin(1);
    one_thread(&bench, &server, "pinned apart", false);
    many_threads(&bench, &server, "pinned apart", true);
    bench_server_pin(&server, -1);
    bench_pin(-1);
    one_thread(&bench, &server, "unpinned", true);
    many_threads(&bench, &server, "unpinned", false);
    bench_server_stop(&server);
    return bench_end(&bench);
}
