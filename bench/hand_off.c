/* SPDX-License-Identifier: MIT */
/* hand_off.c - the time from a release to the grant in another process, against PINGs of the same two processes in
 * the same moments, and against a bare message from the one to the other, which is in each hand-off. */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/histogram.h"
#include "bench/plain_loop.h"
#include "bench/server.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>

struct field {                     /* in memory of both */
    _Atomic(int64_t) released_ns;  /* when the holder began to release */
    _Atomic(int64_t) published_ns; /* or, before that, to publish */
    _Atomic(bool) counts;          /* what was released last */
    _Atomic(int) round, heard, ears;
    _Atomic(bool) waiting[2];     /* or gone */
    _Atomic(int) opened;
    struct bench_histogram hand_offs[2][BENCH_MOST_TURNS], pings[2][BENCH_MOST_TURNS],
        publishes[2][BENCH_MOST_TURNS]; /* round by round */
};

struct scene {
    const struct bench_server *server;
    struct field *field;
    int number, turns, rounds;
};

static redisReply *next_reply(redisContext *context)
{
    void *reply;
    if (redisGetReply(context, &reply) != REDIS_OK)
        bench_die("a bare PUBLISH: %s", context->errstr);
    return reply;
}

/* A thread that hears what the other process publishes, asleep in a receive of its own. */
static void *ear(void *arg)
{
    const struct scene *scene = arg;
    struct field *field = scene->field;
    redisContext *context = redisConnect("127.0.0.1", scene->server->port);
    redisReply *message;
    (void)redisAppendCommand(context, "SUBSCRIBE ear:%d", scene->number);
    freeReplyObject(next_reply(context));
    (void)atomic_fetch_add(&field->ears, 1);
    while ((message = next_reply(context))->element[2]->len > 0) {
        int64_t took = bench_now_ns() - atomic_load(&field->published_ns);
        bench_record(&field->publishes[scene->number][atomic_load(&field->round)], took);
        freeReplyObject(message);
        (void)atomic_fetch_add(&field->heard, 1);
    }
    freeReplyObject(message);
    redisFree(context);
    return NULL;
}

/* Behind a PING, so that the message is not sent behind the reply to its publisher (pool/command.h). */
static void publish(redisContext *context, int to, const char *text)
{
    (void)redisAppendCommand(context, "PING");
    (void)redisAppendCommand(context, "PUBLISH ear:%d %s", to, text);
    freeReplyObject(next_reply(context));
    freeReplyObject(next_reply(context));
}

static void publish_and_wait(struct field *field, redisContext *context, int to)
{
    int heard = atomic_load(&field->heard);
    atomic_store(&field->published_ns, bench_now_ns());
    publish(context, to, "G");
    while (atomic_load(&field->heard) == heard)
        bench_sleep(0.0002);
}

/* Each fourth turn has a PUBLISH for its PING. Its hand-off does not count: the server's code and the other CPU would be awake for it. */
static bool is_heard(int turn)
{
    return turn % 4 == 3;
}

/* The holder gives the other process time to stand in the queue, asleep, as waiters are; sends a PING or a message; then releases. */
static int player(void *arg)
{
    struct scene *scene = arg;
    struct field *field = scene->field;
    int me = scene->number, other = 1 - me;
    hf_client *client = bench_client(scene->server->url, NULL);
    struct bench_plain *plain = bench_plain_open(scene->server->port, "plain:ping");
    redisContext *publisher = redisConnect("127.0.0.1", scene->server->port);
    pthread_t listening;
    bench_pin(me);
    if (pthread_create(&listening, NULL, ear, scene) != 0)
        bench_die("no thread");
    (void)atomic_fetch_add(&field->opened, 1);
    while (atomic_load(&field->opened) < 2 || atomic_load(&field->ears) < 2)
        bench_sleep(0.001);
    for (int i = 0; i < scene->turns; i++) {
        int round = (int)((long)i * scene->rounds / scene->turns);
        hf_lease *lease;
        hf_error error;
        atomic_store(&field->waiting[me], true);
        bench_must(hf_lock_acquire(client, "baton", HF_LOCK(.wait_ms = 20000), &lease, &error), &error,
                   "acquire");
        int64_t now = bench_now_ns(), released = atomic_load(&field->released_ns);
        if (released != 0 && i > 4 && atomic_load(&field->counts))
            bench_record(&field->hand_offs[me][round], now - released);
        atomic_store(&field->waiting[me], false);
        while (!atomic_load(&field->waiting[other]))
            bench_sleep(0.0005);
        bench_sleep(0.003);
        if (is_heard(i)) {
            atomic_store(&field->round, round);
            publish_and_wait(field, publisher, other);
        } else {
            int64_t began = bench_now_ns();
            bench_plain_ping(plain);
            bench_record(&field->pings[me][round], bench_now_ns() - began);
        }
        bench_sleep(0.001);
        atomic_store(&field->counts, !is_heard(i));
        atomic_store(&field->released_ns, bench_now_ns());
        bench_must(hf_lease_release(lease, &error), &error, "release");
    }
    atomic_store(&field->waiting[me], true);
    publish(publisher, other, "");
    (void)pthread_join(listening, NULL);
    redisFree(publisher);
    return hf_client_close(client, NULL) != HF_OK;
}

/* Of both processes, all rounds; and the median of each round. */
static void merge(struct bench *bench, struct bench_histogram (*of_both)[BENCH_MOST_TURNS], struct bench_histogram *all, double *p50s)
{
    for (int round = 0; round < bench->rounds; round++) {
        bench_merge(&of_both[0][round], &of_both[1][round]);
        p50s[round] = (double)bench_percentile(&of_both[0][round], 50) / 1e3;
        bench_merge(all, &of_both[0][round]);
    }
}

static void rows(struct bench *bench, struct field *field)
{
    struct bench_histogram hand_offs = {0}, pings = {0}, publishes = {0};
    double p50s[3][BENCH_MOST_TURNS];
    merge(bench, field->hand_offs, &hand_offs, p50s[0]);
    merge(bench, field->pings, &pings, p50s[1]);
    merge(bench, field->publishes, &publishes, p50s[2]);
    double ping50 = (double)bench_percentile(&pings, 50), ping99 = (double)bench_percentile(&pings, 99);
    double p99 = (double)bench_percentile(&hand_offs, 99);
    bench_number(bench, "PING, p99", ping99 / 1e3, "us", NO_GOAL, NULL);
    bench_number(bench, "hand-off, p99", p99 / 1e3, "us", NO_GOAL, NULL);
    bench_row(bench, "hand-off p50 / PING p50", "us", AT_MOST(3), "PING",
              bench_pair(bench, p50s[0], p50s[1], bench->rounds));
    bench_row(bench, "a bare PUBLISH, p50 / PING p50", "us", NO_GOAL, "PING",
              bench_pair(bench, p50s[2], p50s[1], bench->rounds));
    bench_row(bench, "hand-off p50 / a bare PUBLISH, p50", "us", NO_GOAL, "PUBLISH",
              bench_pair(bench, p50s[0], p50s[2], bench->rounds));
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
