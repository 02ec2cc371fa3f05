/* SPDX-License-Identifier: MIT */
/* size.c - the size of the library, and the round trips of opening a client, counted with a server so far away that
 * nothing else counts. */
#include "bench/harness.h"
#include "bench/server.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    Dl_info library;
    char line[512];
    long text = 0, data = 0;
    bench_begin(&bench, argc, argv, "size", "what the library weighs");
    if (dladdr((void *)(uintptr_t)&hf_version, &library) == 0)
        bench_die("where is the library?");
    (void)snprintf(line, sizeof line, "size %s", library.dli_fname);
    FILE *run = popen(line, "re");
    while (run != NULL && fgets(line, sizeof line, run) != NULL)
        if (sscanf(line, "%ld %ld", &text, &data) == 2)
            break;
    if (run == NULL || pclose(run) != 0 || text == 0)
        bench_die("size (binutils) does not say");
    bench_number(&bench, "text + data", (double)(text + data) / 1000, "kB", AT_MOST(420), NULL);

    double times[BENCH_MOST_TURNS], far_ms = 40;
    bench_server_start(&server, -1);
    bench_proxy_start(&server, far_ms);
    for (int i = 0; i < bench.rounds; i++) {
        int64_t began = bench_now_ns();
        hf_client *client = bench_client(server.proxy_url, NULL);
        times[i] = (double)(bench_now_ns() - began) / 1e6;
        (void)hf_client_close(client, NULL);
    }
    double took = bench_median(times, bench.rounds);
    bench_number(&bench, "hf_client_open, 40 ms away", took, "ms", NO_GOAL, NULL);
    bench_number(&bench, "round trips after connect", (double)(long)(took / far_ms), "", AT_MOST(2), NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
