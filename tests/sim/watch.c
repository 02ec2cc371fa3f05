/* SPDX-License-Identifier: MIT */
/* watch.c - compares all leases and keys while a history runs, and tells the oracle. */
#include "core/lock/handle.h"
#include "core/lock/lock.h"
#include "core/lock/table.h"
#include "core/policy/pace.h"
#include "tests/sim/neighbours.h"
#include "tests/sim/stops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MOST 128
#define LOOK_NS   (10 * HFI_MS)

static struct sim_holding *open_holdings[OPEN_MOST];
static int open_count;
static struct {
    int owner;
    int64_t since;
    int64_t unused_since; /* nobody there counts with it; -1: somebody does */
    char token[160]; /* whose owner it is */
} owners[SIM_LOCKS];

static void report(const char *what)
{
    sim_violation("%s", what);
}

/* ---- leases ---- */

static void look(const struct sim_holding *holding)
{
    struct sim_process *self = sim.self;
    sim.self = holding->process;
    bool valid = hf_lease_is_valid(holding->lease);
    sim.self = self;
    sim_oracle_looked(&history.oracle, holding->grant, valid);
    if (valid) {
        const struct hfi_lock *lock = holding->lease->lock;
        const char *there = sim_keyspace_string(&sim_server->keys, lock->keys.lock);
        char token[HFI_TOKEN_CAPACITY];
        (void)hfi_token_make(&lock->client->identity, lock->token, token);
        bool alone = there != NULL && strcmp(there, token) == 0;
        bool has_key = sim_is_beside(holding->lock) ? sim_beside_has(token, holding->lock)
                       : holding->shared       ? sim_tokens_reads(token, holding->lock)
                       : holding->downgraded ? alone || sim_tokens_reads(token, holding->lock)
                                             : alone;
        sim_oracle_backed(&history.oracle, holding->grant, has_key, sim.now);
    }
}

int sim_watch_valid(int lock)
{
    int count = 0;
    for (int i = 0; i < open_count; i++) {
        const struct sim_holding *one = open_holdings[i];
        if (one->lock != lock)
            continue;
        look(one);
        const struct sim_grant *grant = &history.oracle.grants[one->grant];
        count += grant->valid && !grant->void_now;
    }
    return count;
}

/* An operator has taken something away: from whom, the server tells. */
void sim_watch_broken(int lock)
{
    for (int i = 0; i < open_count; i++) {
        const struct sim_holding *one = open_holdings[i];
        if (one->lock != lock || !history.oracle.grants[one->grant].valid)
            continue;
        char token[HFI_TOKEN_CAPACITY];
        (void)hfi_token_make(&one->lease->client->identity, one->lease->lock->token, token);
        if (!sim_beside_has(token, lock))
            sim_oracle_broken_now(&history.oracle, one->grant, sim.now);
    }
}

static void look_at_all(void)
{
    sim_server->keys.now_us = sim_server_us();
    for (int i = 0; i < open_count; i++)
        look(open_holdings[i]);
}

/* Looks at all leases before and after a process receives: only that can move the end of its leases. */
void sim_hears(const struct sim_process *process)
{
    sim_server->keys.now_us = sim_server_us();
    for (int i = 0; i < open_count; i++)
        if (open_holdings[i]->process == process)
            look(open_holdings[i]);
}

struct sim_holding *sim_watch_expect(int lock)
{
    struct sim_holding *holding = calloc(1, sizeof *holding);
    if (holding == NULL)
        abort();
    *holding = (struct sim_holding){.process = sim.self, .lock = lock, .expected = sim.now, .grant = -1};
    return holding;
}

/* The bound is the way of a message there, and the time that passes themselves may take. */
static void look_for_passes(int lock, const char *token, int64_t at)
{
    int64_t since = lock < SIM_LOCKS && history.profile == SIM_CALM ? sim_tokens_wanted_since(token, lock) : -1;
    int64_t most = HFI_PASS_MOST_NS + 12 * sim_network.delay_most + 25 * HFI_MS;
    if (since >= 0 && at - since > most)
        sim_oracle_passed(&history.oracle, lock, since, at, most + sim_stopped(NULL, since));
}

bool sim_watch_granted(struct sim_holding *holding, hf_lease *lease)
{
    look_at_all();
    if (!hf_lease_is_valid(lease)) {
        if (!sim_faults_may_hurt(sim.self, holding->expected) && sim_stopped(sim.self, holding->expected) == 0)
            sim_violation("[over-is-over] a lease is over when it is given");
        return false;
    }
    holding->lease = lease;
    holding->given = sim.now;
    holding->good_for = hf_lease_remaining_ms(lease) * HFI_MS;
    char token[HFI_TOKEN_CAPACITY];
    (void)hfi_token_make(&lease->client->identity, lease->lock->token, token);
    if (!holding->in_set)
        look_for_passes(holding->lock, token, holding->kept_since != 0 ? holding->kept_since : sim.now);
    /* A pending had its fence when it was decided, one of a set when it was its turn: perhaps long ago. */
    bool was_had = holding->kept_since != 0 || holding->in_set;
    int reign = 0;
    /* After a loss of data a message may give what was lost with it, though its token has the key once more. */
    int64_t at_server = sim_tokens_given_at(token, holding->lock, hf_lease_fence(lease), &reign);
    if (was_had && !history.by_sentinels)
        at_server = sim_tokens_owned_first(token, holding->lock);
    holding->grant = sim_oracle_granted_in(&history.oracle, holding->lock, hf_lease_fence(lease), at_server, holding->shared, reign,
                                           sim.self->moved, sim.self->met);
    if (history.by_sentinels)
        sim_say("by a server of reign %d, %.3f ms ago", reign, (double)(sim.now - at_server) / 1e6);
    history.grants++;
    sim_say("GRANTED %slock %d, fence %lld, %lld ms", holding->shared ? "to share " : "", holding->lock, (long long)hf_lease_fence(lease),
            (long long)hf_lease_remaining_ms(lease));
    if (open_count == OPEN_MOST)
        abort();
    open_holdings[open_count++] = holding;
    if (sim_is_beside(holding->lock) && sim_beside_broken_at(holding->lock) >= holding->expected)
        sim_watch_broken(holding->lock);
    sim_beside_look(holding->lock);
    return true;
}

static void close_holding(struct sim_holding *holding)
{
    for (int i = 0; i < open_count; i++)
        if (open_holdings[i] == holding)
            open_holdings[i] = open_holdings[--open_count];
}

void sim_watch_releases(struct sim_holding *holding)
{
    look(holding);
    close_holding(holding);
    sim_oracle_releases(&history.oracle, holding->grant);
}

void sim_watch_event(hf_lease *lease, const hf_event *event, void *arg)
{
    const struct sim_holding *holding = arg;
    sim_say("EVENT %d lock %d, reason %d, %lld ms left", (int)event->kind, holding->lock, (int)event->reason,
            (long long)event->remaining_ms);
    if (holding->grant < 0)
        return;
    if (event->kind == HF_EVENT_LOST)
        sim_oracle_told_lost(&history.oracle, holding->grant, !holding->released && hf_lease_is_valid(lease));
    else
        sim_oracle_told_other(&history.oracle, holding->grant);
}

void sim_watch_hears_of(int primary, uint64_t epoch, int relies_on, uint64_t by_epoch)
{
    sim_oracle_heard_of(&history.oracle, primary, epoch, relies_on, by_epoch);
}

void sim_watch_moves(struct sim_process *process, int reign)
{
    process->moved = reign > process->moved ? reign : process->moved;
    for (int i = 0; i < open_count; i++)
        if (open_holdings[i]->process == process)
            sim_oracle_moves(&history.oracle, open_holdings[i]->grant, process->moved);
}

void sim_watch_has_met(struct sim_process *process, int reign)
{
    process->met = reign > process->met ? reign : process->met;
    for (int i = 0; i < open_count; i++)
        if (open_holdings[i]->process == process) {
            look(open_holdings[i]);
            sim_oracle_heard(&history.oracle, open_holdings[i]->grant, process->met);
        }
}

void sim_watch_killed(const struct sim_process *process)
{
    for (int i = 0; i < SIM_LOCKS; i++)
        owners[i].token[0] = 0; /* what it has is a dead one's now */
    for (int i = open_count; i-- > 0;) {
        struct sim_holding *holding = open_holdings[i];
        if (holding->process != process)
            continue;
        sim_oracle_died(&history.oracle, holding->grant);
        close_holding(holding);
    }
}

/* ---- gaps ---- */

int sim_watch_owner(const char *token)
{
    for (int i = 0; i < sim.process_count; i++) {
        const struct sim_process *process = &sim.processes[i];
        if (process->client != NULL && strncmp(token + 4, process->client->identity.id, 32) == 0)
            return process->id;
    }
    return strncmp(token, "hf1:", 4) == 0 ? SIM_PROCESSES + 1 : -1;
}

static int owner_of(int lock, bool *other)
{
    const char *token = sim_tokens_holder(lock);
    *other = false;
    if (token == NULL)
        return 0;
    if (owners[lock].owner != 0 && strcmp(token, owners[lock].token) == 0)
        return owners[lock].owner;
    *other = true;
    (void)snprintf(owners[lock].token, sizeof owners[lock].token, "%s", token);
    owners[lock].unused_since = -1;
    return sim_watch_owner(token);
}

/* Of what several may have, a process has one: its threads pass that on. */
static bool has_its_share(const struct sim_process *process, int lock)
{
    bool has = false;
    for (int i = 0; i < open_count && sim_is_beside(lock) && sim_beside.room > 1; i++)
        has = has || (open_holdings[i]->process == process && open_holdings[i]->lock == lock);
    return has || (sim_is_beside(lock) && sim_beside.room > 1 && sim_beside_is_recorded(process, lock));
}

int64_t sim_watch_waited_since(int lock)
{
    int64_t since = -1;
    for (int i = 0; i < history.actor_count; i++) {
        const struct sim_actor *actor = &history.actors[i];
        if (!actor->process->alive || actor->waits_for != lock || sim_is_paused(actor->process) || has_its_share(actor->process, lock))
            continue;
        int64_t from = actor->waits_since > actor->process->last_pause_end ? actor->waits_since
                                                                           : actor->process->last_pause_end;
        if (since < 0 || from < since)
            since = from;
    }
    return since;
}

/* A pending has it, and was not taken yet. */
static bool is_kept(int lock)
{
    for (int i = 0; i < history.actor_count; i++)
        if (history.actors[i].process->alive && history.actors[i].keeps == lock)
            return true;
    return false;
}

/* The table of docs/protocol.md: a live process's lease that is held by nobody comes free by a message or by the
 * next re-check, a dead process's at its end. */
int64_t sim_watch_most(int owner, const char **row)
{
    int64_t trip = sim_network.delay_most + sim_network.spike_most;
    /* A process acts on a message within 10 ms, both the one that asks and the one that gives a token back. */
    int64_t most = 12 * trip + 25 * HFI_MS + 2 * HFI_PACE_NS;
    bool heard = (sim_faults_cost_nothing() || history.profile == SIM_KILLS) && (!sim_beside.on || sim_beside.hears);
    *row = "wait-of-a-message";
    /* Behind a killed waiter at the head of the queue no process asks for a lingering lease before its re-check; nor knows
     * before it that the readers' key ends earlier, since the reader with the longest lease has left. */
    if (!heard || (history.profile == SIM_KILLS && (history.linger_ms > 0 || history.reads > 0))) {
        most += 445 * HFI_MS + 50 * HFI_MS;
        *row = "wait-of-a-recheck";
    }
    if (history.profile == SIM_KILLS || history.healed != 0 || sim_beside.on)
        most += 100 * HFI_MS; /* 10 ms for each position */
    bool broken =
        history.profile == SIM_FOREIGN || history.profile == SIM_STORM; /* and its holder was not told */
    if (owner > SIM_PROCESSES || broken) {
        int64_t longest = broken ? 2 * history.lease_ms : history.lease_ms;
        int64_t ttl = longest + 21 * longest / 1000 + 4 + history.guard_ms;
        most += ttl * HFI_MS / 50 * 51;
        *row = "wait-after-a-death";
    }
    return most;
}

/* Does its process hold it, wait or ask with it? */
static bool is_in_use(hf_client *client, const char *token)
{
    struct hfi_token_parts parts;
    if (!hfi_token_parse(token, strlen(token), &parts))
        return false;
    struct hfi_lock *lock = hfi_table_by_grant(client, parts.token.grant);
    if (lock == NULL)
        return false;
    bool in_use = lock->entry.remote != HFI_NOTHING && hfi_token_is_same(lock->token, parts.token);
    hfi_table_unref(lock);
    return in_use;
}

/* A thread of this process takes it together with others, and may have it while it waits for those. */
static bool is_in_a_set(int lock, int owner)
{
    for (int i = 0; i < history.actor_count; i++) {
        const struct sim_actor *actor = &history.actors[i];
        if (actor->process->alive && actor->process->id == owner && (actor->wants_set >> lock & 1) != 0)
            return true;
    }
    return false;
}

static void keep_first(void *arg, const char *member)
{
    const char **first = arg;
    if (*first == NULL)
        *first = member;
}

/* Only the head of a queue asks a live process for a lease that nobody there holds. A failover may have brought back a
 * head whose call is over: nobody asks before that record is old by the new primary's clock. */
static bool head_was_brought_back(int lock)
{
    if (history.profile != SIM_FAILOVERS)
        return false;
    char queue[80], waiters[80];
    sim_tokens_key(queue, sizeof queue, "queue", lock);
    sim_tokens_key(waiters, sizeof waiters, "wait", lock);
    const char *head = NULL;
    sim_keyspace_members(&sim_server->keys, queue, keep_first, &head);
    int owner = head == NULL ? 0 : sim_watch_owner(head);
    if (owner <= 0 || owner > SIM_PROCESSES || sim.processes[owner - 1].client == NULL ||
        is_in_use(sim.processes[owner - 1].client, head))
        return false;
    const char *record = sim_keyspace_field(&sim_server->keys, waiters, head);
    return record != NULL && strtoll(record, NULL, 10) >= sim_server_us();
}

static void look_for_gap(int lock)
{
    bool other;
    int owner = owner_of(lock, &other);
    if (owner != owners[lock].owner ||
        (other && (owner > SIM_PROCESSES || history.reads > 0))) { /* the next may have died at once, or be its other mode */
        owners[lock].owner = owner;
        owners[lock].since = sim.now;
    }
    if (head_was_brought_back(lock) || is_in_a_set(lock, owner) || (sim_is_beside(lock) && sim_beside_is_left(lock)))
        owners[lock].since = sim.now;
    int64_t since = sim_watch_waited_since(lock);
    bool has_room = sim_is_beside(lock) && sim_beside.room > 1, held = sim_oracle_is_held(&history.oracle, lock) && !has_room;
    bool counts = since >= 0 && owner >= 0 && sim_world_is_well() && !held && (has_room || !is_kept(lock));
    if (since < owners[lock].since)
        since = owners[lock].since;
    const char *row;
    int64_t most = sim_watch_most(owner, &row), begin = history.oracle.gap_since[lock];
    if (counts && begin >= 0 && sim.now - begin > most)
        most += sim_stopped(NULL, begin);
    sim_oracle_gap(&history.oracle, lock, row, counts ? since : -1, sim.now, most);
}

/* Half a lease after a failed call or a release at the latest, no key holds a token of that call. */
static void look_for_unused(int lock)
{
    int owner = owners[lock].owner;
    const struct sim_process *process = owner > 0 && owner <= SIM_PROCESSES ? &sim.processes[owner - 1] : NULL;
    int64_t most = history.lease_ms * HFI_MS / 2, least = 12 * (sim_network.delay_most + sim_network.spike_most) + 25 * HFI_MS;
    most = most > least ? most : least;
    if (process == NULL || process->client == NULL || sim_is_paused(process) || !sim_connections_are_well() ||
        is_in_use(process->client, owners[lock].token)) {
        owners[lock].unused_since = -1;
        return;
    }
    if (owners[lock].unused_since < 0)
        owners[lock].unused_since = sim.now;
    int64_t since = owners[lock].unused_since;
    if (sim.now - since > most)
        sim_oracle_unused(&history.oracle, lock, sim.now - since, most + sim_stopped(NULL, since));
}

static void watch(void *what, int64_t number)
{
    (void)what;
    look_at_all();
    if (number % 10 == 0)
        sim_tokens_look_at_keys();
    for (int lock = 0; lock < history.locks; lock++) {
        look_for_gap(lock);
        sim_beside_look(lock);
        if (number % 4 == 0)
            look_for_unused(lock);
    }
    sim_at(sim.now + LOOK_NS, NULL, watch, NULL, number + 1);
}

void sim_watch_begin(void)
{
    open_count = 0;
    sim_tokens_begin();
    memset(owners, 0, sizeof owners);
    for (int i = 0; i < SIM_LOCKS; i++)
        owners[i].unused_since = -1;
    sim_oracle_begin(&history.oracle, report);
    sim_at(LOOK_NS, NULL, watch, NULL, 0);
}
