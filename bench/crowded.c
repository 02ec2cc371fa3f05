/* SPDX-License-Identifier: MIT */
/* crowded.c - does a polling reader notice that it takes the CPU from the server? Client and server share one CPU,
 * and every CPU is busy with other work. */
#include "bench/crew.h"
#include "bench/pairs.h"
#include "bench/server.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int spin(void *arg)
{
    bench_pin(*(int *)arg);
    for (volatile long i = 0;; i++)
        ;
    return 0;
}

static void rows(struct bench *bench, struct bench_server *server, const char *where)
{
    static const int crews[] = {1, 64};
    char row[80];
    for (int i = 0; i < 2; i++) {
        struct bench_pairs pairs;
        bench_pairs_open(&pairs, server->url, server->port, crews[i]);
        (void)snprintf(row, sizeof row, "%d thread%s, %s", crews[i], i == 0 ? "" : "s", where);
        bench_pairs_compare(bench, &pairs, row, AT_LEAST(1));
        bench_pairs_close(&pairs);
    }
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "crowded", "acquire + release where client and server share a CPU");
    bench_server_start(&server, 0);
    bench_pin(0);
    rows(&bench, &server, "client and server on one CPU");
    bench_server_pin(&server, -1);
    bench_pin(-1);
    pid_t spinners[64];
    int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < cpus && i < 64; i++)
        spinners[i] = bench_fork(spin, &i);
    rows(&bench, &server, "every CPU busy");
    for (int i = 0; i < cpus && i < 64; i++) {
        (void)kill(spinners[i], SIGKILL);
        (void)waitpid(spinners[i], NULL, 0);
    }
    bench_server_stop(&server);
    return bench_end(&bench);
}
