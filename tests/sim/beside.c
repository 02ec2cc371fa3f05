/* SPDX-License-Identifier: MIT */
/* beside.c - what must hold between neighbours and us (docs/interop.md), told to the oracle. See neighbours.h. */
#include "core/protocol/token.h"
#include "tests/sim/neighbours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN_NS   (10000 * HFI_MS) /* of passing it on among us, until it is theirs; doubled as often as they have missed it */
#define MARKS_NEW 16

static char marked[MARKS_NEW][160]; /* tokens that have got a mark without an end by what runs now */
static int marked_count;
static bool took_off; /* a token of ours from a hash of leases, by what runs now */
static bool freed[SIM_LOCKS]; /* by the script that runs now */
/* 0: nobody, below 0: one of theirs. */
static int owner_of(int lock)
{
    const char *holder = sim_beside_holder(lock);
    return holder != NULL ? sim_watch_owner(holder) : 0;
}

static struct {
    int64_t waits, theirs, without_end, broken; /* true times */
    int misses;
} looks[SIM_LOCKS];

void sim_beside_begin(void)
{
    marked_count = 0;
    memset(freed, 0, sizeof freed);
    memset(looks, 0, sizeof looks);
    for (int lock = 0; lock < SIM_LOCKS; lock++)
        looks[lock].broken = -1;
    took_off = false;
}

/* ---- by scripts ---- */

void sim_beside_changed(const char *event, const char *key, const char *value)
{
    char lease[128];
    if (!sim_beside.on)
        return;
    for (int lock = 0; sim_is_beside(lock); lock++) {
        if (strcmp(key, "locks") == 0 || sim_beside_lock(key) == lock)
            sim_oracle_news(&history.oracle, lock);
        sim_beside_side(lease, sizeof lease, "lease", lock);
        if (strcmp(event, "hset") == 0 && strcmp(key, lease) == 0 && marked_count < MARKS_NEW)
            (void)snprintf(marked[marked_count++], sizeof marked[0], "%s", value);
        took_off = took_off || (strcmp(event, "hdel") == 0 && strcmp(key, lease) == 0);
    }
    int lock = sim_beside_lock(key);
    if (lock >= 0 && sim_server->in_script && sim_beside.recipe < SIM_SET)
        freed[lock] = strcmp(event, "del") == 0;
}

/* Only who asks gets a mark without an end, or who is heard. */
static void look_at_marked(const char *caller)
{
    for (int i = 0; i < marked_count; i++) {
        char channel[64];
        (void)snprintf(channel, sizeof channel, "hf:c:%.32s", marked[i] + 4);
        sim_oracle_marked(&history.oracle, strcmp(marked[i], caller) == 0, sim_server_is_heard(channel));
    }
}

void sim_beside_script_ran(const char *script, const struct sim_words *words)
{
    if (!sim_beside.on)
        return;
    int lock = words->count > 3 ? sim_beside_lock(words->text[3]) : -1, key_count = atoi(words->text[2]);
    if (lock >= 0 && words->count > 3 + key_count)
        look_at_marked(words->text[3 + key_count]);
    if (lock >= 0 && freed[lock] && (strcmp(script, "release") == 0 || strcmp(script, "break") == 0))
        sim_oracle_told_them(&history.oracle, lock, sim_neighbours_were_told(lock));
    if (lock >= 0 && strcmp(script, "break") == 0 && took_off)
        looks[lock].broken = sim.now;
    memset(freed, 0, sizeof freed);
    marked_count = 0;
    took_off = false;
    if (lock >= 0)
        sim_neighbours_script_over(script, words->text[3]);
    if (lock >= 0 && strcmp(script, "break") == 0)
        sim_watch_broken(lock);
}

int64_t sim_beside_broken_at(int lock)
{
    return looks[lock].broken;
}

/* ---- all the time ---- */

/* Each mark is somebody's, and each of theirs and ours is there. */
static void look_at_marks(int lock)
{
    char made[64], begun[64];
    (void)snprintf(made, sizeof made, "SEMAPHORE:n%d:VERSION", lock);
    (void)snprintf(begun, sizeof begun, "SEMAPHORE:n%d:EXISTS", lock);
    if (sim_beside.recipe < SIM_SET)
        return;
    if (sim_beside.recipe == SIM_TOKENS &&
        (sim_ask_server(NULL, "EXISTS", made, begun, NULL) != 2 || sim_ask_server(NULL, "PTTL", begun, NULL) != -1))
        return; /* somebody makes them */
    int known = sim_beside_records(lock) + sim_neighbours_marks(lock), there = sim_beside_marks(lock);
    if (sim_beside.recipe == SIM_TOKENS)
        sim_oracle_marks(&history.oracle, lock, known + there, sim_beside.room);
    else
        sim_oracle_marks(&history.oracle, lock, there, known);
}

/* A neighbour that asks all the time gets it, or one of them does, ten seconds after we began to pass it on. */
static void look_at_turn(int lock)
{
    bool is_theirs = sim_neighbours_hold(lock) > 0 || (sim_beside.recipe < SIM_SET && owner_of(lock) < 0);
    looks[lock].theirs = is_theirs ? sim.now : looks[lock].theirs;
    int64_t waits = sim_neighbours_wait_since(lock);
    waits = waits >= 0 && looks[lock].theirs > waits ? looks[lock].theirs : waits;
    if (waits < 0 || !sim_beside.contends)
        return;
    if (waits != looks[lock].waits) {
        looks[lock].waits = waits;
        looks[lock].misses = sim_beside_misses(lock);
    }
    int64_t holds_ms = 6 * history.hold_most + 3 * history.lease_ms; /* or a pending is not taken */
    int64_t most = (TURN_NS << looks[lock].misses) + (500 + holds_ms) * HFI_MS;
    sim_oracle_their_turn(&history.oracle, lock, sim.now - waits, most);
}

/* Where the owner of a key without an end has died, who waits gives it one. */
static void look_at_end(int lock)
{
    bool counts = sim_beside.recipe == SIM_SETNX && sim_world_is_well() && sim_watch_waited_since(lock) >= 0;
    if (!counts || sim_beside_has_end(lock)) {
        looks[lock].without_end = sim.now;
        return;
    }
    int64_t waits = sim_watch_waited_since(lock), from = waits > looks[lock].without_end ? waits : looks[lock].without_end;
    sim_oracle_endless(&history.oracle, lock, sim.now - from, 600 * HFI_MS);
}

void sim_beside_look(int lock)
{
    if (!sim_is_beside(lock))
        return;
    sim_oracle_beside(&history.oracle, lock, sim_watch_valid(lock), sim_neighbours_hold(lock), sim_beside.room);
    look_at_marks(lock);
    look_at_turn(lock);
    look_at_end(lock);
}

void sim_beside_look_at_the_end(void)
{
    for (int lock = 0; sim_is_beside(lock); lock++) {
        const char *wrong = sim_beside_rest(lock);
        if (wrong != NULL)
            sim_oracle_left_behind(&history.oracle, wrong);
    }
}
