/* SPDX-License-Identifier: MIT */
/* in_doubt.c - see in_doubt.h. */
#include "core/policy/in_doubt.h"
#include "core/policy/lease.h"
#include "core/policy/pace.h"

#define DOUBLINGS 2 /* of the pause */

bool hfi_in_doubt_is_over(const struct hfi_in_doubt *in_doubt, int64_t server_us, int64_t now_ns)
{
    bool scripts_over = in_doubt->last_chance_us == 0 || server_us > in_doubt->last_chance_us;
    return !in_doubt->unanswered || (scripts_over && now_ns > in_doubt->last_chance_ns);
}

int64_t hfi_in_doubt_again_ns(const struct hfi_in_doubt *in_doubt, int64_t server_us, int64_t now_ns)
{
    int64_t on_our_clock = in_doubt->last_chance_ns + HFI_MS;
    if (server_us == 0)
        return now_ns + HFI_IN_DOUBT_RETRY_NS;
    if (in_doubt->last_chance_us < server_us)
        return on_our_clock;
    int64_t on_its_clock = now_ns + (in_doubt->last_chance_us - server_us) * 1000 + HFI_MS;
    return on_our_clock > now_ns && on_our_clock < on_its_clock ? on_our_clock : on_its_clock;
}

int64_t hfi_in_doubt_pause_ns(int failed)
{
    return HFI_IN_DOUBT_RETRY_NS << (failed < DOUBLINGS ? failed : DOUBLINGS);
}

int64_t hfi_in_doubt_failed_ns(struct hfi_in_doubt *in_doubt, bool refused, int64_t now_ns)
{
    int64_t again = now_ns + hfi_in_doubt_pause_ns(refused ? in_doubt->refusals : 0);
    if (refused && in_doubt->refusals < UINT8_MAX)
        in_doubt->refusals++;
    return again < in_doubt->ends_ns ? again : HFI_NEVER;
}

/* Half of the hash, and milliseconds that wrap after 49 days. If both match by accident, one message is ignored. */
uint64_t hfi_in_doubt_over_mark(uint64_t hash, int64_t now_ns)
{
    return (hash >> 32 << 32) | (uint32_t)(now_ns / HFI_MS);
}

static uint32_t age_ms(uint64_t mark, uint64_t hash, int64_t now_ns)
{
    return mark >> 32 == hash >> 32 ? (uint32_t)(now_ns / HFI_MS) - (uint32_t)mark : UINT32_MAX;
}

bool hfi_in_doubt_has_crossed(uint64_t mark, uint64_t hash, int64_t now_ns)
{
    return age_ms(mark, hash, now_ns) <= HFI_IN_DOUBT_CROSSING_MS;
}

int64_t hfi_in_doubt_heal_ns(uint64_t mark, uint64_t hash, int64_t now_ns)
{
    uint32_t age = age_ms(mark, hash, now_ns);
    if (age > HFI_PACE_NS / HFI_MS)
        return now_ns;
    int64_t paced = (now_ns / HFI_MS - age + 1) * HFI_MS + HFI_PACE_NS; /* the mark leaves out part of a millisecond */
    return paced > now_ns ? paced : now_ns;
}
