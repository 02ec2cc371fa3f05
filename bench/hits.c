/* SPDX-License-Identifier: MIT */
/* hits.c - hf_fetch of a value that is cached (4 kB, with stale and early refresh on), against the same GET over the
 * same client. */
#include "bench/pages.h"
#include "bench/server.h"

#define SIZE 4096

int main(int argc, char **argv)
{
    static const int crews[] = {1, 64};
    struct bench bench;
    struct bench_server server;
    struct bench_pages pages;
    bench_begin(&bench, argc, argv, "hits", "hf_fetch of a page of 4 kB that is there");
    bench_server_start(&server, -1);
    struct bench_side fetch = {"hf_fetch", bench_pages_fetch, &pages},
                      get = {"GET over a lane", bench_pages_get, &pages};
    for (int i = 0; i < 2; i++) {
        char row[80];
        hf_stats before, after;
        bench_pages_open(&pages, server.url, server.port, crews[i], crews[i], SIZE, false);
        (void)snprintf(row, sizeof row, "%d thread%s", crews[i], i == 0 ? "" : "s");
        (void)bench_compare(&bench, row, "hits/s", AT_LEAST(0.9), &fetch, &get);
        hf_client_stats(pages.client, &before);
        (void)bench_pages_fetch(&pages, bench.seconds);
        hf_client_stats(pages.client, &after);
        (void)snprintf(row, sizeof row, "%d thread%s, commands a hit", crews[i], i == 0 ? "" : "s");
        bench_number(&bench, row,
                     (double)(after.remote_commands - before.remote_commands) /
                         (double)(after.hits - before.hits),
                     "", AT_MOST(1.05), NULL);
        bench_pages_close(&pages);
    }
    bench_server_stop(&server);
    return bench_end(&bench);
}
