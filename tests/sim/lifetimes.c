/* SPDX-License-Identifier: MIT */
/* lifetimes.c - how long the keys live that a history leaves at the server. See history.h. */
#include "core/policy/fence.h"
#include "core/protocol/key.h"
#include "tests/sim/neighbours.h"

#include <string.h>

static int64_t longest_life_ms(const char *key)
{
    int64_t lease = 2 * history.lease_ms > 1000 ? 2 * history.lease_ms : 1000;
    int64_t ttl = lease + 21 * lease / 1000 + 4 + history.guard_ms;
    if (sim_tokens_name_of(key) >= 0)
        return ttl > SIM_FOREIGN_MS ? ttl : SIM_FOREIGN_MS;
    if (strncmp(key, "hf:tag:", 7) == 0)
        return 86400000; /* the mark of a purge */
    return strncmp(key, "hf:queue:", 9) == 0 || strncmp(key, "hf:wait:", 8) == 0 ? (sim_beside.on ? 180000 : 60000) : SIM_PAGE_MS;
}

static void look_at_key(void *arg, const char *key, int64_t expire_ms)
{
    (void)arg;
    bool is_side = strncmp(key, "hf:", 3) == 0 && strncmp(key, "hf:lease:", 9) != 0;
    if (strcmp(key, HFI_CLOCK_KEY) == 0 || (sim_beside.on && !is_side))
        return;
    int64_t left = expire_ms - sim_server->keys.now_us / 1000 - 1; /* a clock of another rate is not even */
    if (expire_ms == 0 && strcmp(key, "hf:fence") != 0 && strcmp(key, "hf:since") != 0)
        sim_oracle_left_behind(&history.oracle, key);
    else if (expire_ms != 0 && !history.clock_goes_back)
        sim_oracle_lifetime(&history.oracle, key, left, longest_life_ms(key) + history.apart_us / 1000);
}

void sim_tokens_look_at_keys(void)
{
    sim_keyspace_each(&sim_server->keys, look_at_key, NULL);
}

static void look_at_key_left(void *arg, const char *key, int64_t expire_ms)
{
    (void)arg;
    if (sim_tokens_name_of(key) >= 0 && sim_beside_lock(key) < 0 && expire_ms >= sim_server->keys.now_us / 1000)
        sim_oracle_left_behind(&history.oracle, key);
}

void sim_tokens_look_at_the_end(void)
{
    sim_server->keys.now_us = sim_server_us();
    sim_tokens_look_at_keys();
    if (sim.failure[0] == 0)
        sim_beside_look_at_the_end();
    if (sim.failure[0] == 0)
        sim_keyspace_each(&sim_server->keys, look_at_key_left, NULL);
}
