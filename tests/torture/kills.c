/* SPDX-License-Identifier: MIT */
/* kills.c - kill -9 of processes that hold a lease at that very moment; only those are counted. Two processes want
 * each name: when one dies the other waits. */
#include "tests/torture/actor.h"
#include "tests/support/quantile.h"
#include "tests/torture/campaigns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES    64
#define EACH     2
#define LEASE_MS 300
#define SHOWN    5

struct death {
    int64_t at_ns;    /* the heir is the first to enter after this: the holder knew itself inside, and its exit may
                       * take the kernel long */
    int64_t asked_ns; /* since when somebody else waited; INT64_MAX: nobody did yet */
    int32_t lock, process;
};

struct kills {
    struct hft_stage *stage;
    struct death *deaths;
    int count, others; /* others: had just stopped holding, or not yet begun */
    long misnamed;     /* the server named another holder while the dead one's lease was still valid */
};

/* Since when one of this name's other processes has been waiting. */
static int64_t waiting_since(struct hft_stage *stage, int dead)
{
    int64_t since = INT64_MAX;
    for (int process = dead % NAMES; process < NAMES * EACH; process += NAMES) {
        struct hft_mark *mark = hft_stage_mark(stage, process);
        if (process != dead && atomic_load(&mark->act) == HFT_ASKING && atomic_load(&mark->asked_ns) < since)
            since = atomic_load(&mark->asked_ns);
    }
    return since;
}

/* A token ends with its process's pid. */
static void ask_the_server(struct kills *kills, int lock, pid_t pid, int64_t valid_until_ns)
{
    char key[32];
    hft_stage_key(lock, key);
    redisReply *reply = hft_server_ask(kills->stage->server, "GET %s", key);
    const char *end = reply->type == REDIS_REPLY_STRING ? strrchr(reply->str, ':') : NULL;
    if (hft_now_ns() < valid_until_ns && (end == NULL || strtol(end + 1, NULL, 10) != pid)) {
        if (++kills->misnamed <= SHOWN)
            (void)printf("  NOT ITS KEY torture:%d: %s, while the lease of process id %d was good\n", lock,
                         end != NULL ? reply->str : "nobody", (int)pid);
    }
    freeReplyObject(reply);
}

static void strike(struct kills *kills, int process)
{
    struct hft_stage *stage = kills->stage;
    struct hft_mark *mark = hft_stage_mark(stage, process);
    struct hft_seat *seat = hft_ledger_seat(stage->ledger, process, 0);
    struct death death = {.lock = process % NAMES, .process = process, .asked_ns = waiting_since(stage, process)};
    pid_t pid = stage->pids[process];
    death.at_ns = hft_now_ns();
    hft_stage_kill(stage, process);
    int64_t valid_until_ns = seat->history[atomic_load(&seat->count) - 1].leave_ns;
    if (atomic_load(&mark->act) == HFT_HOLDING && valid_until_ns > death.at_ns) {
        ask_the_server(kills, death.lock, pid, valid_until_ns);
        kills->deaths[kills->count++] = death;
    } else {
        kills->others++;
    }
    hft_stage_spawn(stage, process);
}

static void kill_them(struct kills *kills)
{
    struct hft_stage *stage = kills->stage;
    int64_t told = hft_now_ns();
    while (kills->count < stage->count) {
        hft_stage_tick(stage);
        for (int process = 0; process < NAMES * EACH && kills->count < stage->count; process++) {
            struct hft_mark *mark = hft_stage_mark(stage, process);
            if (atomic_load(&mark->act) == HFT_HOLDING && atomic_load(&mark->due_ns) <= hft_now_ns())
                strike(kills, process);
        }
        if (hft_now_ns() - told > 10000 * HFT_MS) {
            told = hft_now_ns();
            (void)fprintf(stderr, "kills: %d holders of %d\n", kills->count, stage->count);
        }
    }
}

static bool has_heir(struct kills *kills, const struct death *death)
{
    for (int process = death->lock; process < NAMES * EACH; process += NAMES) {
        struct hft_seat *seat = hft_ledger_seat(kills->stage->ledger, process, 0);
        uint32_t count = atomic_load(&seat->count);
        if (count > 0 && seat->history[count - 1].enter_ns >= death->at_ns)
            return true;
    }
    return false;
}

/* Everybody has inherited, or never will. */
static void wait_for_heirs(struct kills *kills)
{
    int64_t until = hft_now_ns() + 5000 * HFT_MS;
    for (int i = 0; i < kills->count; i++)
        while (!has_heir(kills, &kills->deaths[i]) && hft_now_ns() < until)
            hft_stage_tick(kills->stage);
}

/* The first section of the name that began after the death, in the sorted history; count: none. */
static size_t heir_of(const struct death *death, const struct hft_interval *history, size_t count)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct hft_interval *at = &history[middle];
        if (at->lock < death->lock || (at->lock == death->lock && at->enter_ns < death->at_ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && history[low].lock == death->lock ? low : count;
}

static void tell_late(const struct death *death, const struct hft_interval *heir, bool any, int64_t wait_ns,
                      int64_t bound_ns)
{
    if (any)
        (void)printf("  LATE torture:%d: process %d died at %lld; process %d asked %.0f ms after that and had it %.0f ms "
                     "after that, %.0f ms too late; %s asked already\n", death->lock, death->process,
                     (long long)death->at_ns, heir->process, (double)(heir->asked_ns - death->at_ns) / 1e6,
                     (double)(heir->enter_ns - death->at_ns) / 1e6, (double)(wait_ns - bound_ns) / 1e6,
                     death->asked_ns != INT64_MAX ? "somebody" : "nobody");
    else
        (void)printf("  LATE torture:%d: nobody for %.0f ms after its holder's death\n", death->lock,
                     (double)wait_ns / 1e6);
}

static bool judge(struct kills *kills)
{
    struct hft_stage *stage = kills->stage;
    struct hft_interval *history;
    size_t sections, late = 0;
    int64_t bound = hft_stage_bound_ns(stage), *waits = calloc((size_t)kills->count + 1, sizeof *waits);
    long broken = hft_stage_judge(stage, &history, &sections);
    for (int i = 0; waits != NULL && i < kills->count; i++) {
        const struct death *death = &kills->deaths[i];
        size_t heir = heir_of(death, history, sections);
        int64_t asked = heir < sections && history[heir].asked_ns < death->asked_ns ? history[heir].asked_ns
                                                                                    : death->asked_ns;
        int64_t from = asked > death->at_ns && asked != INT64_MAX ? asked : death->at_ns;
        waits[i] = (heir < sections ? history[heir].enter_ns : hft_now_ns()) - from;
        if (waits[i] > bound && ++late <= SHOWN)
            tell_late(death, &history[heir < sections ? heir : 0], heir < sections, waits[i], bound);
    }
    struct hft_summary summary = {
        .operations = (long)sections, .faults = kills->count + kills->others, .false_losses = hft_stage_lost(stage),
        .violations = broken + (long)late + kills->misnamed,
        .wait_p99_ms = (double)hft_quantile(waits, kills->count, 0.99) / 1e6,
        .wait_ms = (double)hft_quantile(waits, kills->count, 1) / 1e6, .wait_bound_ms = (double)bound / 1e6,
        .lost_p50_ms = -1, .lost_p99_ms = -1, .lost_ms = -1, .lost_bound_ms = -1};
    (void)printf("kills: %d holders killed (and %d who held nothing just then), %zu leases taken, %ld overlaps and "
                 "fences out of order, %ld keys with a wrong name, %zu next holders too late\n",
                 kills->count, kills->others, sections, broken, kills->misnamed, late);
    free(history);
    free(waits);
    return hft_summary_tell(stage, &summary);
}

bool hft_campaign_kills(struct hft_stage *stage)
{
    struct kills kills = {.stage = stage, .deaths = calloc((size_t)stage->count, sizeof *kills.deaths)};
    if (kills.deaths == NULL)
        return false;
    hft_stage_open(stage, NAMES * EACH, NAMES, LEASE_MS, hft_actor_hold);
    hft_stage_start(stage);
    kill_them(&kills);
    wait_for_heirs(&kills);
    hft_stage_end(stage);
    bool kept = judge(&kills);
    hft_stage_close(stage);
    free(kills.deaths);
    return kept;
}
