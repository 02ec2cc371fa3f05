/* SPDX-License-Identifier: MIT */
/* lock_lanes.c - see lock_lanes.h. */
#include "tests/support/lock_lanes.h"
#include "core/lock/lock.h"
#include "core/lock/table.h"
#include "pool/lane_private.h"
#include "pool/node.h"
#include "pool/pool_private.h"
#include "tests/support/pool_kit.h"

#include <string.h>

void hft_lane_waits(hf_client *client, int lane, int threads)
{
    (void)atomic_fetch_add(&hfi_pool_lane(client->pool, HFI_LOCK_LANE, (uint64_t)lane)->threads, threads);
}

static void look_at(struct hfi_lane *lane, bool look)
{
    atomic_store(&lane->readers_look, look);
    atomic_store(&lane->is_silent, false);
}

/* Not by hfi_pool_lane, which would dial them. */
void hft_readers_look(hf_client *client, bool at_locks, bool at_values)
{
    struct hfi_node *node = client->pool->node;
    look_at(node->lanes[0], at_locks);
    look_at(node->lanes[node->peer.deployment->settings.lanes], at_values);
}

void hft_reader_sleeps(hf_client *client)
{
    hft_readers_look(client, true, true);
    atomic_store(&client->pool->node->lanes[0]->is_silent, true);
}

bool hft_lane_is_up(hf_client *client, int lane)
{
    return hfi_lane_is_up(hfi_pool_lane(client->pool, HFI_LOCK_LANE, (uint64_t)lane));
}

void hft_value_lane_waits(hf_client *client, int lane, int threads)
{
    (void)atomic_fetch_add(&hfi_pool_lane(client->pool, HFI_VALUE_LANE, (uint64_t)lane)->threads, threads);
}

bool hft_value_lane_is_up(hf_client *client, int lane)
{
    return hfi_lane_is_up(hfi_pool_lane(client->pool, HFI_VALUE_LANE, (uint64_t)lane));
}

void hft_value_lane_met_another(hf_client *client, int lane)
{
    (void)atomic_fetch_add(&hfi_pool_lane(client->pool, HFI_VALUE_LANE, (uint64_t)lane)->run, 1);
}

uint64_t hft_value_lane_commands(hf_client *client, int index)
{
    struct hfi_lane *lane = hfi_pool_lane(client->pool, HFI_VALUE_LANE, (uint64_t)index);
    hfi_lane_lock(lane);
    uint64_t commands = lane->staged;
    hfi_lane_unlock(lane);
    return commands;
}

bool hft_is_connected(hf_client *client)
{
    int last = client->pool->deployment.settings.lanes - 1;
    return hft_lane_is_up(client, 0) && hft_lane_is_up(client, last) &&
           hfi_lane_is_up(hfi_pool_lane(client->pool, HFI_RESERVED_LANE, 0)) &&
           hft_is_subscribed(client->pool, client->identity.channel, HFI_CHANNEL_SIZE);
}

int hft_lane_of(hf_client *client, const char *name)
{
    struct hfi_name wanted = hfi_name_of(HFI_MUTEX, name, strlen(name));
    struct hfi_lock *lock;
    if (hfi_table_get(client, &wanted, &lock, NULL) != HF_OK)
        return -1;
    int lane = hfi_lane_index(lock->lane);
    hfi_table_unref(lock);
    return lane;
}
