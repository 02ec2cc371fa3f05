/* SPDX-License-Identifier: MIT */
/* baton.c - see baton.h. */
#include "bench/baton.h"

#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/plain_loop.h"

#include <stdlib.h>
#include <string.h>

/* As in neighbours/workers.js: held until the other process is back and waits. */
#define HELD_S 0.030
#define AWAY_S 0.015
#define MOST   1024

static int by_taken(const void *one, const void *other)
{
    int64_t a = ((const struct bench_section *)one)->taken, b = ((const struct bench_section *)other)->taken;
    return (a > b) - (a < b);
}

double bench_baton_ms(struct bench_section *sections, int count)
{
    double took[2 * MOST];
    int seen = 0;
    qsort(sections, (size_t)count, sizeof *sections, by_taken);
    for (int i = 1; i < count && seen < 2 * MOST; i++)
        if (sections[i].process != sections[i - 1].process && sections[i].asked < sections[i - 1].given)
            took[seen++] = (double)(sections[i].taken - sections[i - 1].given) / 1e6;
    if (seen < 3)
        bench_die("the lock was hardly ever handed over");
    return bench_median(took, seen);
}

struct player {
    const struct bench_server *server;
    bool plainly;
    double seconds;
    int process;
    struct bench_section *sections; /* of this one; where `taken` is 0 there is none */
};

static int play(void *arg)
{
    struct player *me = arg;
    hf_client *client = bench_client(me->server->url, NULL);
    struct bench_plain *plain = bench_plain_open(me->server->port, "plain:baton");
    int64_t end = bench_now_ns() + (int64_t)(me->seconds * 1e9);
    for (int i = 0; i < MOST; i++) {
        struct bench_section section = {.asked = bench_now_ns(), .process = me->process};
        hf_lease *lease = NULL;
        if (section.asked > end)
            break;
        if (me->plainly)
            while (!bench_plain_take(plain))
                bench_sleep(0.001);
        else
            bench_must(hf_lock_acquire(client, "baton", HF_LOCK(.wait_ms = 20000), &lease, NULL), NULL,
                       "acquire");
        section.taken = bench_now_ns();
        bench_sleep(HELD_S);
        section.given = bench_now_ns();
        if (me->plainly)
            bench_plain_give(plain);
        else
            bench_must(hf_lease_release(lease, NULL), NULL, "release");
        me->sections[i] = section;
        bench_sleep(AWAY_S);
    }
    bench_plain_close(plain);
    return hf_client_close(client, NULL) != HF_OK;
}

double bench_baton_play(const struct bench_server *server, bool plainly, double seconds)
{
    static struct bench_section *sections;
    pid_t players[2];
    int count = 0;
    if (sections == NULL)
        sections = bench_shared(2 * MOST * sizeof *sections);
    memset(sections, 0, 2 * MOST * sizeof *sections);
    for (int i = 0; i < 2; i++) {
        struct player player = {server, plainly, seconds, i, sections + i * MOST};
        players[i] = bench_fork(play, &player);
    }
    for (int i = 0; i < 2; i++)
        bench_join(players[i]);
    for (int i = 0; i < 2 * MOST; i++)
        if (sections[i].taken != 0)
            sections[count++] = sections[i];
    return bench_baton_ms(sections, count);
}
