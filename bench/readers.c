/* SPDX-License-Identifier: MIT */
/* readers.c - a reader that comes in beside another one of its process, against a local pass: the pair of a lock alone whose
 * lease lingers here. */
#include "bench/harness.h"
#include "bench/server.h"

struct scene {
    hf_client *client;
    hf_lock_options options;
    long pairs;
};

/* Pairs a second. */
static double turn(void *arg, double seconds)
{
    struct scene *scene = arg;
    int64_t began = bench_now_ns(), until = began + (int64_t)(seconds * 1e9), now;
    long pairs = 0;
    do {
        for (int i = 0; i < 1000; i++) {
            hf_lease *lease;
            bench_must(hf_lock_acquire(scene->client, "read", &scene->options, &lease, NULL), NULL, "acquire");
            bench_must(hf_lease_release(lease, NULL), NULL, "release");
        }
        pairs += 1000;
        now = bench_now_ns();
    } while (now < until);
    scene->pairs += pairs;
    return (double)pairs * 1e9 / (double)(now - began);
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    hf_lease *first;
    hf_stats before, after;
    bench_begin(&bench, argc, argv, "readers", "a reader beside others of its process, against a local pass");
    bench_server_start(&server, -1);
    struct scene reading = {.client = bench_client(server.url, NULL), .options = {.size = sizeof reading.options, .shared = true}};
    struct scene alone = {.client = bench_client(server.url, HF_CLIENT(.key_template = "alone:%s")),
                          .options = {.size = sizeof alone.options, .linger_ms = 5000}};
    bench_must(hf_lock_acquire(reading.client, "read", &reading.options, &first, NULL), NULL, "the first reader");
    hf_client_stats(reading.client, &before);
    struct bench_side ours = {"reader", turn, &reading}, pass = {"local pass", turn, &alone};
    (void)bench_compare(&bench, "a reader, acquire + release", "pairs/s", AT_LEAST(0.5), &ours, &pass);
    hf_client_stats(reading.client, &after);
    bench_number(&bench, "commands a thousand readers, renewals among them",
                 1000 * (double)(after.remote_commands - before.remote_commands) / (double)reading.pairs, "", AT_MOST(0.1), NULL);
    bench_must(hf_lease_release(first, NULL), NULL, "release");
    (void)hf_client_close(reading.client, NULL);
    (void)hf_client_close(alone.client, NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
