/* SPDX-License-Identifier: MIT */
/* doubt.c - see doubt.h. */
#include "core/doubt.h"

#define DOUBLINGS 2 /* of the pause after a refusal */

bool hfi_doubt_is_over(const struct hfi_doubt *doubt, int64_t server_us, int64_t now_ns)
{
    return !doubt->unclear || (server_us > doubt->last_chance_us && now_ns > doubt->last_chance_ns);
}

int64_t hfi_doubt_again_ns(const struct hfi_doubt *doubt, int64_t server_us, int64_t now_ns)
{
    if (server_us == 0)
        return now_ns + HFI_DOUBT_RETRY_NS;
    if (doubt->last_chance_us >= server_us)
        return now_ns + (doubt->last_chance_us - server_us) * 1000 + HFI_MS;
    return doubt->last_chance_ns + HFI_MS;
}

int64_t hfi_doubt_failed_ns(struct hfi_doubt *doubt, bool refused, int64_t now_ns)
{
    int64_t again = now_ns + (refused ? HFI_DOUBT_RETRY_NS << doubt->refusals : HFI_DOUBT_RETRY_NS);
    if (refused && doubt->refusals < DOUBLINGS)
        doubt->refusals++;
    return again < doubt->ends_ns ? again : HFI_NEVER;
}

/* Half of the hash, and milliseconds that begin again after 49 days. Where both deceive, one message counts for nothing. */
uint64_t hfi_doubt_over_mark(uint64_t hash, int64_t now_ns)
{
    return (hash >> 32 << 32) | (uint32_t)(now_ns / HFI_MS);
}

static uint32_t age_ms(uint64_t mark, uint64_t hash, int64_t now_ns)
{
    return mark >> 32 == hash >> 32 ? (uint32_t)(now_ns / HFI_MS) - (uint32_t)mark : UINT32_MAX;
}

bool hfi_doubt_has_crossed(uint64_t mark, uint64_t hash, int64_t now_ns)
{
    return age_ms(mark, hash, now_ns) <= HFI_DOUBT_CROSSING_MS;
}

int64_t hfi_doubt_heal_ns(uint64_t mark, uint64_t hash, int64_t now_ns)
{
    uint32_t age = age_ms(mark, hash, now_ns);
    return age < HFI_DOUBT_HEAL_MS ? now_ns + (HFI_DOUBT_HEAL_MS - age) * HFI_MS : now_ns;
}
