/* SPDX-License-Identifier: MIT */
/* holders.c - who has a lock, by the keys of the server. */
#include "tests/sim/history.h"
#include "tests/sim/neighbours.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SHARED     "hf1:shared" /* the value of a lock that readers have */

void sim_tokens_key(char *out, size_t room, const char *kind, int lock)
{
    (void)snprintf(out, room, "hf:%s:{n%d}:hf:{n%d}", kind, lock, lock);
}

/* Server us; NAN: it is none of the readers. */
static double end_of(const char *token, int lock)
{
    char key[64];
    sim_tokens_key(key, sizeof key, "held", lock);
    return sim_keyspace_score(&sim_server->keys, key, token);
}

bool sim_tokens_has_end(const char *token, int lock)
{
    return !isnan(end_of(token, lock));
}

const char *sim_tokens_value(int lock)
{
    char key[32];
    (void)snprintf(key, sizeof key, "hf:{n%d}", lock);
    return sim_keyspace_string(&sim_server->keys, key);
}

bool sim_tokens_reads(const char *token, int lock)
{
    const char *there = sim_tokens_value(lock);
    return there != NULL && strcmp(there, SHARED) == 0 && end_of(token, lock) >= (double)sim_server->keys.now_us;
}

struct readers {
    int lock;
    char token[160];
    int owner; /* 0: none of them is looked at yet */
};

static void look_at_reader(void *arg, const char *token)
{
    struct readers *readers = arg;
    int owner = sim_tokens_reads(token, readers->lock) ? sim_watch_owner(token) : 0;
    if (owner == 0 || (readers->owner != 0 && (owner <= SIM_PROCESSES || readers->owner > SIM_PROCESSES)))
        return;
    readers->owner = owner;
    (void)snprintf(readers->token, sizeof readers->token, "%s", token);
}

const char *sim_tokens_holder(int lock)
{
    static struct readers readers;
    char key[64];
    if (sim_is_beside(lock))
        return sim_beside_holder(lock);
    const char *there = sim_tokens_value(lock);
    if (there == NULL || strcmp(there, SHARED) != 0)
        return there;
    readers = (struct readers){.lock = lock};
    (void)snprintf(readers.token, sizeof readers.token, "%s", SHARED);
    sim_tokens_key(key, sizeof key, "held", lock);
    sim_keyspace_members(&sim_server->keys, key, look_at_reader, &readers);
    return readers.token;
}
