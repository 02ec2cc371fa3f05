/* SPDX-License-Identifier: MIT */
/* freshness.c - see freshness.h. */
#include "core/policy/freshness.h"

#include <math.h>

#define SECOND_NS 1000000000
#define BUSY_MS   10
#define TIME_BITS 24 /* of a mark: wraps after 4 hours, then one stale mark in 1.6 million counts for 10 ms */
#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)

enum hfi_freshness hfi_freshness(int64_t left_ms, int64_t stale_ms, double beta, int64_t load_ms, double u)
{
    if (left_ms < 0)
        return HFI_FRESH;
    int64_t fresh_ms = left_ms - stale_ms;
    if (fresh_ms <= 0)
        return HFI_OLD;
    if (beta > 0 && load_ms > 0 && (double)load_ms * beta * -log(u) >= (double)fresh_ms)
        return HFI_NEARLY_OLD;
    return HFI_FRESH;
}

int64_t hfi_freshness_load_ms(int64_t known_ms, int64_t mean_ms, int64_t ttl_ms)
{
    if (known_ms > 0 || mean_ms > 0)
        return known_ms > 0 ? known_ms : mean_ms;
    return ttl_ms > 100 ? ttl_ms / 100 : 1;
}

int64_t hfi_freshness_mean_ms(int64_t mean_ms, int64_t took_ms)
{
    return mean_ms == 0 ? took_ms : mean_ms + (took_ms - mean_ms) / 8;
}

int64_t hfi_freshness_shortened(int64_t ttl_ms, double jitter, double u)
{
    int64_t by_ms = (int64_t)((double)ttl_ms * jitter * u);
    return ttl_ms - by_ms > 1 ? ttl_ms - by_ms : 1;
}

int64_t hfi_freshness_local(int64_t last, int64_t now_ns)
{
    return (last > now_ns ? last : now_ns) + SECOND_NS / HFI_LOCAL_LOADS;
}

int64_t hfi_freshness_local_at(int64_t turn)
{
    return turn - SECOND_NS;
}

static uint64_t ms_of(int64_t now_ns)
{
    return (uint64_t)now_ns / 1000000;
}

uint64_t hfi_freshness_busy_mark(uint64_t hash, int64_t now_ns)
{
    return (hash & ~TIME_MASK) | (ms_of(now_ns) & TIME_MASK);
}

bool hfi_freshness_is_busy(uint64_t mark, uint64_t hash, int64_t now_ns)
{
    return ((mark ^ hash) & ~TIME_MASK) == 0 && ((ms_of(now_ns) - mark) & TIME_MASK) < BUSY_MS;
}
