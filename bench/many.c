/* SPDX-License-Identifier: MIT */
/* many.c - hf_fetch_many of 100 values that are there, against 100 calls of hf_fetch; beside the server, and 1 ms away. */
#include "bench/pages.h"
#include "bench/server.h"

#include <stdlib.h>

#define KEYS 100
#define SIZE 1000

static double by_turns(void *arg, double seconds, bool at_once)
{
    struct bench_pages *pages = arg;
    hf_fetch_item items[KEYS] = {0};
    const hf_fetch_options *options = HF_FETCH(.load = bench_pages_load, .arg = pages, .ttl_ms = 600000);
    int64_t began = bench_now_ns(), until = began + (int64_t)(seconds * 1e9);
    long calls = 0;
    hf_error error;
    for (int i = 0; i < KEYS; i++)
        items[i].key = pages->names[i];
    for (; bench_now_ns() < until; calls++) {
        if (at_once)
            bench_must(hf_fetch_many(pages->client, items, KEYS, options, &error), &error, "fetch many");
        for (int i = 0; i < KEYS; i++) {
            if (!at_once)
                bench_must(hf_fetch(pages->client, pages->names[i], options, &items[i].value, &error), &error, "fetch");
            hf_value_free(items[i].value);
        }
    }
    return (double)calls * KEYS * 1e9 / (double)(bench_now_ns() - began);
}

static double together(void *arg, double seconds)
{
    return by_turns(arg, seconds, true);
}

static double one_by_one(void *arg, double seconds)
{
    return by_turns(arg, seconds, false);
}

static void ask(struct bench *bench, const char *row, const char *url, const struct bench_server *server, double goal)
{
    struct bench_pages pages;
    struct bench_side many = {"hf_fetch_many", together, &pages}, loop = {"hf_fetch, 100 times", one_by_one, &pages};
    bench_pages_open(&pages, url, server->port, 1, KEYS, SIZE, false);
    (void)bench_compare(bench, row, "values/s", AT_LEAST(goal), &many, &loop);
    bench_pages_close(&pages);
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    bench_begin(&bench, argc, argv, "many", "hf_fetch_many of 100 values of 1 kB that are there");
    bench_server_start(&server, -1);
    ask(&bench, "beside the server", server.url, &server, 2.5);
    bench_proxy_start(&server, 1);
    ask(&bench, "1 ms away", server.proxy_url, &server, 40);
    bench_proxy_stop(&server);
    bench_server_stop(&server);
    return bench_end(&bench);
}
