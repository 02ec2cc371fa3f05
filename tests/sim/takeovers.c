/* SPDX-License-Identifier: MIT */
/*
 * takeovers.c - the failovers of a history with sentinels: what brings one about, who leads it, which replica it chooses, and
 * what becomes of the former primary, which goes on as one for a while.
 *
 * It rests on what docs/guarantees.md says that replicas=all rests on, and on no more: a replica that clients may have left
 * out of their confirmations is chosen only after it has caught up with what was written meanwhile, and most sentinels do not
 * lose the chosen one before they know of it. Any other may be chosen, however far it is behind.
 */
#include "tests/sim/history.h"
#include "tests/sim/hosts.h"
#include "tests/sim/pool_inside.h"
#include "tests/sim/sentinels.h"

#include <stdlib.h>

#define VOTE_NS (520 * HFI_MS) /* as long as a client may leave a replica out after it was told to */

static struct {
    bool goes_on;
    struct sim_sentinel *leader;
    uint64_t epoch; /* the newest */
    struct sim_host *primary;
} takeover;

static int64_t soon(int64_t least_ms, int64_t most_ms)
{
    return sim.now + sim_between(least_ms, history.healed != 0 && most_ms > 100 ? 100 : most_ms) * HFI_MS;
}

/* ---- who may be chosen ---- */

/* Of what clients have left out: how far it has to come, as of the time when nobody may leave it out any more. */
static void watch_replicas(void *what, int64_t number)
{
    (void)what;
    for (int i = 0; i < SIM_SERVERS; i++) {
        struct sim_host *host = &sim_hosts[i];
        int64_t left_out = sim_sentinels_left_out(host);
        bool is_former = host->former_until == HFI_NEVER;
        if (is_former && host->is_replica && host->is_linked && sim_sentinels_saw_follow(host))
            host->former_until = sim.now + VOTE_NS + 250 * HFI_MS; /* and until clients have asked again */
        if (left_out > 0 && left_out + VOTE_NS > host->left_out_until)
            host->left_out_until = left_out + VOTE_NS, host->has_to_reach = INT64_MAX;
        if (is_former)
            host->has_to_reach = INT64_MAX;
        int64_t until = host->former_until > host->left_out_until ? host->former_until : host->left_out_until;
        if (host->has_to_reach == INT64_MAX && until < sim.now)
            host->has_to_reach = takeover.primary->offset;
        if (host->master != takeover.primary || !host->is_linked)
            host->has_to_reach = host->has_to_reach > 0 ? INT64_MAX : 0;
        else if (host->offset >= host->has_to_reach)
            host->has_to_reach = 0;
    }
    sim_at(sim.now + 5 * HFI_MS, NULL, watch_replicas, NULL, number);
}

/* So many sentinels could say so, now or soon, of one that they do not know to be the primary. */
static int would_leave_out(const struct sim_host *host)
{
    int count = 0;
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++) {
        const struct sim_sentinel *one = &sim_sentinels[i];
        bool omits = one->omitted == host && one->omits_until > sim.now;
        count += omits || one->blind_until > sim.now || sim_sentinel_calls_down(one, host);
    }
    return count;
}

static bool all_know(void)
{
    bool all = true;
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++)
        all = all && sim_sentinels[i].primary == takeover.primary;
    return all;
}

static bool may_be_chosen(const struct sim_host *host)
{
    return host->is_replica && sim_host_runs(host) && host->is_linked && host->priority > 0 && host->has_to_reach == 0 &&
           host->unseen_until <= sim.now && !sim_sentinel_calls_down(takeover.leader, host) &&
           takeover.leader->omitted != host && 2 * would_leave_out(host) < SIM_SENTINELS_COUNT;
}

/* Where only some have to confirm, the one that has come furthest; else a sentinel may know no better than by chance. */
static struct sim_host *choose(void)
{
    struct sim_host *chosen = NULL;
    int count = 0;
    bool furthest = history.replicas > 0;
    for (int i = 0; i < SIM_SERVERS; i++) {
        struct sim_host *host = &sim_hosts[i];
        if (!may_be_chosen(host))
            continue;
        bool better = furthest ? chosen == NULL || host->offset > chosen->offset : sim_between(0, count++) == 0;
        if (better)
            chosen = host;
    }
    return chosen;
}

/* ---- what comes after ---- */

static void follows_now(void *what, int64_t number)
{
    struct sim_host *host = what;
    (void)number;
    if (host == takeover.primary || (host->is_replica && host->master == takeover.primary))
        return;
    if (!sim_host_runs(host) || host->unseen_until > sim.now)
        sim_at(soon(10, 100), NULL, follows_now, host, 0);
    else
        sim_host_follow(host, takeover.primary);
}

static void comes_back(void *what, int64_t keeps_data)
{
    if (history.replicas > 0 && takeover.goes_on) { /* else it would be deposed while it runs, of which replicas=N promises nothing */
        sim_at(soon(10, 50), NULL, comes_back, what, keeps_data);
        return;
    }
    /* One that nobody has taken over from has its data: without them all would be gone, whoever had confirmed them. */
    sim_host_start(what, keeps_data != 0 || what == takeover.primary);
    if (what != takeover.primary)
        sim_at(soon(50, history.second_life_ms / 2), NULL, follows_now, what, 0);
}

static void learns(void *what, int64_t epoch)
{
    struct sim_sentinel *sentinel = what;
    if ((uint64_t)epoch < takeover.epoch)
        return;
    if (sentinel->blind_until > sim.now)
        sim_at(sentinel->blind_until + sim_between(0, 50) * HFI_MS, NULL, learns, sentinel, epoch);
    else
        sim_sentinel_switches(sentinel, takeover.primary, takeover.epoch);
}

static void is_over(void *what, int64_t number)
{
    (void)what;
    (void)number;
    sim_sentinel_switches(takeover.leader, takeover.primary, takeover.epoch);
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++)
        if (&sim_sentinels[i] != takeover.leader)
            sim_at(sim_chance(70) ? soon(0, 60) : soon(0, 1500), NULL, learns, &sim_sentinels[i], (int64_t)takeover.epoch);
    takeover.goes_on = false;
}

static void promote(void *what, int64_t number)
{
    struct sim_host *former = takeover.primary, *chosen = choose();
    (void)what;
    (void)number;
    if (chosen == NULL) {
        takeover.leader->leads = takeover.goes_on = false;
        sim_say("no replica can be chosen");
        return;
    }
    takeover.primary = chosen;
    takeover.epoch++;
    chosen->former_until = 0;
    sim_host_promote(chosen);
    if (chosen->reign > 0)
        sim_oracle_taken_over(&history.oracle);
    sim_tokens_look_anew();
    former->former_until = HFI_NEVER;
    former->has_to_reach = INT64_MAX;
    for (int i = 0; i < SIM_SERVERS; i++)
        if (&sim_hosts[i] != chosen)
            sim_at(&sim_hosts[i] == former ? soon(0, history.second_life_ms) : soon(5, 600), NULL, follows_now, &sim_hosts[i], 0);
    sim_at(soon(5, 300), NULL, is_over, NULL, 0);
}

/* ---- what brings it about ---- */

static void begin(void *what, int64_t number)
{
    (void)what;
    (void)number;
    int first = (int)sim_between(0, SIM_SENTINELS_COUNT - 1);
    takeover.leader = NULL;
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++) {
        struct sim_sentinel *one = &sim_sentinels[(first + i) % SIM_SENTINELS_COUNT];
        if (one->blind_until <= sim.now && one->primary == takeover.primary)
            takeover.leader = one;
    }
    if (takeover.leader == NULL) {
        takeover.goes_on = false;
        return;
    }
    sim_say("sentinel %d leads a failover", (int)(takeover.leader - sim_sentinels) + 1);
    takeover.leader->leads = true;
    sim_at(soon(5, 200), NULL, promote, NULL, 0);
}

static void begin_if_down(void *what, int64_t number)
{
    struct sim_host *host = what;
    if (sim_host_runs(host) && host->unseen_until <= sim.now)
        takeover.goes_on = false; /* it is back in time */
    else
        begin(NULL, number);
}

static bool is_there_a_choice(void)
{
    bool any = false;
    takeover.leader = &sim_sentinels[0];
    for (int i = 0; i < SIM_SERVERS; i++)
        any = any || may_be_chosen(&sim_hosts[i]);
    return any;
}

static void lose_primary(void)
{
    struct sim_host *host = takeover.primary;
    int64_t patience_ms = history.down_after_ms + sim_between(50, 300);
    int die = (int)sim_between(0, history.replicas > 0 ? 0 : 3);
    takeover.goes_on = true;
    if (die == 0) {
        sim_host_crash(host, sim_chance(70));
        sim_at(sim.now + (patience_ms + sim_between(100, 1000)) * HFI_MS, NULL, comes_back, host, sim_chance(70));
        sim_at(sim.now + patience_ms * HFI_MS, NULL, begin, NULL, 0);
    } else if (die == 1) {
        int64_t length_ms = sim_between(history.down_after_ms / 2, history.down_after_ms + history.second_life_ms);
        sim_say("server %d is frozen for %d ms", host->number, (int)length_ms);
        host->server->frozen_until = sim.now + length_ms * HFI_MS;
        sim_at(sim.now + patience_ms * HFI_MS, NULL, begin_if_down, host, 0);
    } else if (die == 2) {
        host->unseen_until = sim.now + (patience_ms + sim_between(0, history.second_life_ms)) * HFI_MS;
        sim_say("no sentinel sees server %d for %.0f ms", host->number, (double)(host->unseen_until - sim.now) / 1e6);
        sim_at(sim.now + patience_ms * HFI_MS, NULL, begin_if_down, host, 0);
    } else {
        sim_at(sim.now, NULL, begin, NULL, 0);
    }
}

static void err(void)
{
    struct sim_sentinel *sentinel = &sim_sentinels[sim_between(0, SIM_SENTINELS_COUNT - 1)];
    struct sim_host *host = &sim_hosts[sim_between(0, SIM_SERVERS - 1)];
    int64_t until = sim.now + sim_between(100, 2500) * HFI_MS;
    bool others_see = true;
    for (int i = 0; i < SIM_SENTINELS_COUNT; i++)
        others_see = others_see && (&sim_sentinels[i] == sentinel || sim_sentinels[i].blind_until <= sim.now);
    int die = (int)sim_between(0, 2);
    sim_say("sentinel %d %s server %d for %.0f ms", (int)(sentinel - sim_sentinels) + 1,
            die == 0   ? "slanders"
            : die == 1 ? "omits"
                       : "is cut off, and does not see",
            host->number, (double)(until - sim.now) / 1e6);
    if (die == 0)
        sentinel->slandered = host, sentinel->slanders_until = until;
    else if (die == 1)
        sentinel->omitted = host, sentinel->omits_until = until;
    else if (others_see && sentinel != takeover.leader)
        sentinel->blind_until = until;
}

/* A replica stops for a while: the sentinels come to call it down. */
static void stop_replica(void)
{
    struct sim_host *host = &sim_hosts[sim_between(0, SIM_SERVERS - 1)];
    if (!host->is_replica || !sim_host_runs(host) || history.replicas > 0)
        return;
    host->server->frozen_until = sim.now + sim_between(100, 1500) * HFI_MS;
    sim_say("server %d, a replica, is frozen for %.0f ms", host->number, (double)(host->server->frozen_until - sim.now) / 1e6);
}

void sim_takeovers_hurt(void)
{
    int die = (int)sim_between(0, 99);
    if (die < 45 && !takeover.goes_on && sim_host_runs(takeover.primary) && is_there_a_choice())
        lose_primary();
    else if (die < 65)
        sim_topologies_cut();
    else if (die < 85 && !takeover.goes_on && all_know())
        err();
    else if (die >= 85)
        stop_replica();
}

void sim_takeovers_begin(void)
{
    takeover.goes_on = false;
    takeover.epoch = 1;
    takeover.primary = &sim_hosts[0];
    takeover.leader = &sim_sentinels[0];
    watch_replicas(NULL, 0);
}

bool sim_takeovers_go_on(void)
{
    return takeover.goes_on;
}
