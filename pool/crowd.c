/* SPDX-License-Identifier: MIT */
/* crowd.c - see crowd.h. */
#include "pool/crowd.h"

#define ONE   256
#define RISES 4  /* calls, about, till a crowd is known as one: none of its threads is ever counted twice */
#define FALLS 64 /* and till its end is: some of its threads are always between two waits */
#define FULL  96 /* threads on one lane: as many again are better off on the next one (bench own_lock) */

/* Threads may overwrite each other's sample: one of many is lost. */
int hfi_crowd_lanes(struct hfi_crowd *crowd, int lanes, bool looks)
{
    int count = atomic_load_explicit(&crowd->waiting, memory_order_relaxed) + 1;
    int usual = atomic_load_explicit(&crowd->usual, memory_order_relaxed);
    int step = count * ONE - usual;
    usual += step > 0 ? (step + RISES - 1) / RISES : step / FALLS;
    atomic_store_explicit(&crowd->usual, usual, memory_order_relaxed);
    int needed = usual / (FULL * ONE) + 1;
    bool is_few = usual <= lanes * ONE + ONE / 2;
    return (is_few && !looks) || needed > lanes ? lanes : needed;
}

bool hfi_crowd_has_others(const struct hfi_crowd *crowd)
{
    return atomic_load_explicit(&crowd->usual, memory_order_relaxed) > ONE + ONE / 4;
}

static bool is_better(const struct hfi_crowd_seat *seat, const struct hfi_crowd_seat *other, bool was_taken)
{
    if (seat->threads != other->threads)
        return seat->threads < other->threads;
    return seat->is_cold != other->is_cold ? other->is_cold : was_taken;
}

static int fewest(const struct hfi_crowd_seat *seats, int count, int last)
{
    int found = -1;
    for (int i = 0; i < count; i++)
        if ((seats[i].is_up || seats[i].is_cold) && (found < 0 || is_better(&seats[i], &seats[found], i == last)))
            found = i;
    return found;
}

int hfi_crowd_choose(const struct hfi_crowd_seat *seats, int count, int spread, int last)
{
    int found = fewest(seats, spread, last);
    if (found < 0)
        found = fewest(seats, count, last);
    return found;
}
