/* SPDX-License-Identifier: MIT */
/* crowded.c - does a polling reader notice that it takes the CPU from the server? Client and server share one CPU,
 * and every CPU is busy with other work. */
#include "bench/pairs.h"
#include "bench/place.h"

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

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "crowded", "acquire + release where client and server share a CPU");
    bench_server_start(&server, -1);
    rows(&bench, &server, BENCH_ON_ONE_CPU);
    rows(&bench, &server, BENCH_BUSY);
    bench_place(&server, BENCH_UNPINNED);
    bench_server_stop(&server);
    return bench_end(&bench);
}
