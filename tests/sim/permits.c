/* SPDX-License-Identifier: MIT */
/* permits.c - what must hold of the semaphore's permits: no more of them are out than the greatest limit in use, whoever has
 * one has it at the server too, and none is idle while a healthy process waits for it. */
#include "core/lock/handle.h"
#include "core/lock/lock.h"
#include "tests/sim/history.h"
#include "tests/sim/stops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MOST 128
#define LOOK_NS   (10 * HFI_MS)
#define KEY       "hf:sem:{s}"

static struct held {
    struct sim_process *process;
    hf_lease *lease;
    int permits;
} open_ones[OPEN_MOST];
static int open_count;

static bool is_valid(const struct held *held)
{
    struct sim_process *self = sim.self;
    sim.self = held->process;
    bool valid = hf_lease_is_valid(held->lease);
    sim.self = self;
    return valid;
}

static int in_use(void)
{
    int sum = 0;
    for (int i = 0; i < open_count; i++)
        sum += is_valid(&open_ones[i]) ? open_ones[i].permits : 0;
    return sum;
}

/* A server that has lost data may have given some of them twice. */
static bool counts_exactly(void)
{
    return history.oracle.data_lost_count == 0 && (history.oracle.lossless || history.oracle.reign == 0);
}

bool sim_permits_granted(hf_lease *lease, int permits)
{
    if (!hf_lease_is_valid(lease))
        return false;
    if (open_count == OPEN_MOST)
        abort();
    int before = in_use();
    if (counts_exactly() && before + permits > history.limit)
        sim_violation("[permits] %d of %d are out, and %d more are granted", before, history.limit, permits);
    open_ones[open_count++] = (struct held){sim.self, lease, permits};
    history.grants++;
    sim_say("GRANTED %d permits beside %d, fence %lld", permits, before, (long long)hf_lease_fence(lease));
    bool by_one = counts_exactly() || !history.by_sentinels; /* two primaries at a time count each for itself */
    for (int i = 0; i < open_count - 1; i++)
        if (by_one && open_ones[i].lease->fence == lease->fence)
            sim_violation("[permits] two leases have the fence %lld", (long long)lease->fence);
    return true;
}

void sim_permits_releases(const hf_lease *lease)
{
    for (int i = 0; i < open_count; i++)
        if (open_ones[i].lease == lease)
            open_ones[i] = open_ones[--open_count];
}

void sim_permits_killed(const struct sim_process *process)
{
    for (int i = open_count; i-- > 0;)
        if (open_ones[i].process == process)
            open_ones[i] = open_ones[--open_count];
}

static bool is_out(const struct hfi_lock *lock, struct hfi_token token)
{
    char member[HFI_TOKEN_CAPACITY + 4];
    (void)hfi_token_make(&lock->client->identity, token, member);
    (void)snprintf(member + strlen(member), 4, "#1");
    double end = sim_keyspace_score(&sim_server->keys, KEY, member);
    return !isnan(end) && end >= (double)sim_server_us();
}

/* What a break leaves stays there until its holder has stopped. */
static void look_at_server(const struct held *held)
{
    const struct hfi_lock *lock = held->lease->lock;
    struct hfi_token revoked = lock->token;
    revoked.random |= HFI_TOKEN_REVOKED;
    if (counts_exactly() && is_valid(held) && !is_out(lock, lock->token) && !is_out(lock, revoked))
        sim_violation("[valid-means-key] permits are valid, and the server has given them to others");
}

struct out { /* at the server */
    int all, of_the_dead; /* the latter come back when their ends have passed */
};

static void count_out(void *arg, const char *member)
{
    struct out *out = arg;
    bool is_over = sim_keyspace_score(&sim_server->keys, KEY, member) < (double)sim_server_us();
    out->all += !is_over;
    out->of_the_dead += !is_over && sim_watch_owner(member) > SIM_PROCESSES;
}

/* Who waits, at least so long; -1: nobody healthy does. What the greediest of them wants is enough for whoever is first. */
static int64_t waited_since(int *most_wanted)
{
    int64_t since = -1;
    *most_wanted = 0;
    for (int i = 0; i < history.actor_count; i++) {
        const struct sim_actor *actor = &history.actors[i];
        if (!actor->process->alive || actor->waits_for != SIM_SEMAPHORE || sim_is_paused(actor->process))
            continue;
        int64_t pause = actor->process->last_pause_end, from = actor->waits_since > pause ? actor->waits_since : pause;
        since = since < 0 || from < since ? from : since;
        *most_wanted = actor->wants_permits > *most_wanted ? actor->wants_permits : *most_wanted;
    }
    return since;
}

/* Where every message is heard, no permit is idle for long, wherever it is. Else those that the server has handed to a waiter, or
 * that linger, may be for a re-check, so that only what is free at the server counts; and a killed waiter that wants more than
 * is free stands in the way until its record is old. */
static void look_for_gap(void)
{
    const char *row;
    int wanted;
    struct out out = {0, 0};
    int64_t since = waited_since(&wanted), most = sim_watch_most(SIM_PROCESSES, &row);
    bool heard = strcmp(row, "wait-of-a-message") == 0 && history.profile != SIM_KILLS;
    if (history.profile == SIM_KILLS || history.healed != 0)
        most += (3 * 400 + 440 + 1000 + 25 + history.guard_ms) * HFI_MS;
    sim_keyspace_members(&sim_server->keys, KEY, count_out, &out);
    bool counts = since >= 0 && sim_world_is_well() && wanted + (heard ? in_use() + out.of_the_dead : out.all) <= history.limit;
    int64_t begin = history.oracle.gap_since[SIM_SEMAPHORE];
    if (counts && begin >= 0 && sim.now - begin > most)
        most += sim_stopped(NULL, begin);
    sim_oracle_gap(&history.oracle, SIM_SEMAPHORE, row, counts ? sim.now > begin && begin >= 0 ? begin : sim.now : -1, sim.now, most);
}

static void watch(void *what, int64_t number)
{
    (void)what;
    sim_server->keys.now_us = sim_server_us();
    for (int i = 0; i < open_count; i++)
        look_at_server(&open_ones[i]);
    look_for_gap();
    sim_at(sim.now + LOOK_NS, NULL, watch, NULL, number + 1);
}

void sim_permits_begin(void)
{
    open_count = 0;
    sim_at(LOOK_NS, NULL, watch, NULL, 0);
}
