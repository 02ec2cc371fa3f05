/* SPDX-License-Identifier: MIT */
/* followers.c - see followers.h. */
#include "pool/followers.h"
#include "pool/times.h"

static uint32_t period_at(int64_t now_ns)
{
    return (uint32_t)(now_ns / HFI_OWN_MOST_NS);
}

static uint32_t count_in(uint64_t is, uint32_t period)
{
    return is >> 32 == period ? (uint32_t)is : 0;
}

uint32_t hfi_followers_join(struct hfi_followers *all, int64_t now_ns)
{
    uint32_t period = period_at(now_ns);
    _Atomic(uint64_t) *at = &all->periods[period % 2];
    uint64_t is = atomic_load(at);
    /* If others have begun later, this thread lost the CPU since it looked at the clock. */
    while (((uint32_t)is == 0 || (int32_t)((uint32_t)(is >> 32) - period) <= 0) &&
           !atomic_compare_exchange_weak(at, &is, (uint64_t)period << 32 | (count_in(is, period) + 1)))
        ;
    return period;
}

void hfi_followers_leave(struct hfi_followers *all, uint32_t period)
{
    _Atomic(uint64_t) *at = &all->periods[period % 2];
    uint64_t is = atomic_load(at);
    while (count_in(is, period) > 0 && !atomic_compare_exchange_weak(at, &is, is - 1))
        ;
}

int hfi_followers_count(const struct hfi_followers *all, int64_t now_ns)
{
    uint32_t period = period_at(now_ns), before = period - 1;
    return (int)(count_in(atomic_load(&all->periods[period % 2]), period) +
                 count_in(atomic_load(&all->periods[before % 2]), before));
}
