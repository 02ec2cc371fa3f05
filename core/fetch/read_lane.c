/* SPDX-License-Identifier: MIT */
/* read_lane.c - see read_lane.h. */
#include "core/fetch/read_lane.h"
#include "pool/pool.h"

static _Atomic(int) *claims_of(hf_client *client, uint64_t hash)
{
    return &client->read_claims[(hash >> 16) % HFI_READ_CLAIMS];
}

void hfi_read_lane_claim(hf_client *client, uint64_t hash)
{
    (void)atomic_fetch_add(claims_of(client, hash), 1);
}

void hfi_read_lane_yield(hf_client *client, uint64_t hash)
{
    (void)atomic_fetch_sub(claims_of(client, hash), 1);
}

struct hfi_lane *hfi_read_lane_choose(hf_client *client, uint64_t hash)
{
    if (atomic_load(claims_of(client, hash)) != 0)
        return hfi_pool_lane(client->pool, HFI_VALUE_LANE, hash);
    return hfi_pool_read_lane(client->pool, hash);
}
