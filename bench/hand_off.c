/* SPDX-License-Identifier: MIT */
/* hand_off.c - the time from a release to the grant in another process, against PINGs of the same two processes in
 * the same moments. */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/histogram.h"
#include "bench/plain_loop.h"
#include "bench/server.h"

#include <stdatomic.h>

struct field {                    /* in memory of both */
    _Atomic(int64_t) released_ns; /* when the holder began to release */
    _Atomic(bool) waiting[2];     /* or gone */
    _Atomic(int) opened;
    struct bench_histogram hand_offs[2][BENCH_MOST_TURNS], pings[2][BENCH_MOST_TURNS]; /* round by round */
};

struct scene {
    const struct bench_server *server;
    struct field *field;
    int number, turns, rounds;
};

/* The holder gives the other process time to stand in the queue, asleep, as waiters are; then PINGs, then releases. */
static int player(void *arg)
{
    struct scene *scene = arg;
    struct field *field = scene->field;
    int me = scene->number, other = 1 - me;
    hf_client *client = bench_client(scene->server->url, NULL);
    struct bench_plain *plain = bench_plain_open(scene->server->port, "plain:ping");
    bench_pin(me);
    (void)atomic_fetch_add(&field->opened, 1);
    while (atomic_load(&field->opened) < 2)
        bench_sleep(0.001);
    for (int i = 0; i < scene->turns; i++) {
        int round = (int)((long)i * scene->rounds / scene->turns);
        hf_lease *lease;
        hf_error error;
        atomic_store(&field->waiting[me], true);
        bench_must(hf_lock_acquire(client, "baton", HF_LOCK(.wait_ms = 20000), &lease, &error), &error,
                   "acquire");
        int64_t now = bench_now_ns(), released = atomic_load(&field->released_ns);
        if (released != 0 && i > 4)
            bench_record(&field->hand_offs[me][round], now - released);
        atomic_store(&field->waiting[me], false);
        while (!atomic_load(&field->waiting[other]))
            bench_sleep(0.0005);
        bench_sleep(0.003);
        int64_t began = bench_now_ns();
        bench_plain_ping(plain);
        bench_record(&field->pings[me][round], bench_now_ns() - began);
        bench_sleep(0.001);
        atomic_store(&field->released_ns, bench_now_ns());
        bench_must(hf_lease_release(lease, &error), &error, "release");
    }
    atomic_store(&field->waiting[me], true);
    return hf_client_close(client, NULL) != HF_OK;
}

static void rows(struct bench *bench, struct field *field)
{
    struct bench_histogram hand_offs = {0}, pings = {0};
    double p50s[2][BENCH_MOST_TURNS];
    for (int round = 0; round < bench->rounds; round++) {
        struct bench_histogram *one = field->hand_offs[0], *ping = field->pings[0];
        bench_merge(&one[round], &field->hand_offs[1][round]);
        bench_merge(&ping[round], &field->pings[1][round]);
        p50s[0][round] = (double)bench_percentile(&one[round], 50) / 1e3;
        p50s[1][round] = (double)bench_percentile(&ping[round], 50) / 1e3;
        bench_merge(&hand_offs, &one[round]);
        bench_merge(&pings, &ping[round]);
    }
    double ping50 = (double)bench_percentile(&pings, 50), ping99 = (double)bench_percentile(&pings, 99);
    double p99 = (double)bench_percentile(&hand_offs, 99);
    bench_number(bench, "PING, p99", ping99 / 1e3, "us", NO_GOAL, NULL);
    bench_number(bench, "hand-off, p99", p99 / 1e3, "us", NO_GOAL, NULL);
    bench_row(bench, "hand-off p50 / PING p50", "us", AT_MOST(3), "PING",
              bench_pair(bench, p50s[0], p50s[1], bench->rounds));
    bench_number(bench, "hand-off p99 / PING p50", p99 / ping50, "x", AT_MOST(10), NULL);
    bench_number(bench, "hand-off p99 / PING p99", p99 / ping99, "x", NO_GOAL, "the load's share in it");
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    pid_t players[2];
    bench_begin(&bench, argc, argv, "hand_off", "from the release to the waiter in another process");
    bench_server_start(&server, -1);
    struct scene scene = {&server, bench_shared(sizeof *scene.field), 0, bench.quick ? 300 : 3000,
                          bench.rounds};
    for (int i = 0; i < 2; i++) {
        scene.number = i;
        players[i] = bench_fork(player, &scene);
    }
    for (int i = 0; i < 2; i++)
        bench_join(players[i]);
    rows(&bench, scene.field);
    bench_server_stop(&server);
    return bench_end(&bench);
}
