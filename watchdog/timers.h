/* SPDX-License-Identifier: MIT */
/* timers.h - timers in the order in which they are due: a pairing heap threaded through the timers themselves. Arming
 * is O(1), taking and moving O(log n) amortised, and O(1) among timers that are due at exactly the same time, as
 * those on a grid are. Never allocates. Pure; the caller serialises. */
#ifndef HFI_TIMERS_H
#define HFI_TIMERS_H

#include "watchdog/watchdog.h"

#include <stdbool.h>

#define HFI_TIMERS_KNOWN 64
struct hfi_timers { /* zeroed is empty */
    struct hfi_timer *soonest;
    struct hfi_timer *known[HFI_TIMERS_KNOWN]; /* by hash of its time: one in the heap that others may join, or NULL */
};

static inline bool hfi_timer_is_armed(const struct hfi_timer *timer)
{
    return timer->prev != NULL;
}

static inline int64_t hfi_timers_next_ns(const struct hfi_timers *timers)
{
    return timers->soonest != NULL ? timers->soonest->at_ns : HFI_NEVER;
}

/* Arms, moves, or with HFI_NEVER disarms the timer. True: it was armed. */
bool hfi_timers_set(struct hfi_timers *timers, struct hfi_timer *timer, int64_t at_ns);
/* The soonest one, disarmed, if it is due; else NULL. */
struct hfi_timer *hfi_timers_take(struct hfi_timers *timers, int64_t now_ns);

#endif
