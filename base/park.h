/* SPDX-License-Identifier: MIT */
/* park.h - a thread sleeps until somebody wakes it or a point on CLOCK_BOOTTIME passes. An event count: take a
 * epoch, look at the condition, wait with the epoch; a wake in between is not lost. */
#ifndef HFI_PARK_H
#define HFI_PARK_H

#include <stdbool.h>
#include <stdint.h>

struct hfi_park {
    uint32_t     count;       /* storage of a ck_ec32 */
    _Atomic(uint32_t) bucket_bit;  /* where its sleepers sleep; 0: nobody has yet */
    _Atomic(int) kick_fd;     /* -1, or an eventfd that a waiter sleeps on instead (see hfi_park_kick) */
};

void     hfi_park_init(struct hfi_park *park);
uint32_t hfi_park_epoch(struct hfi_park *park);
/* The epoch after exactly one more wake than `epoch`: to look past a wake that was meant for something else. */
uint32_t hfi_park_next(uint32_t epoch);
/* True: woken since the epoch. False: until_ns (HFI_NEVER: no end) came first. Rides out signals. */
bool     hfi_park_wait(struct hfi_park *park, uint32_t epoch, int64_t until_ns);
bool     hfi_park_is_woken(struct hfi_park *park, uint32_t epoch);
/* Any thread, never blocks. Touches the park after the sleeper can already see the wake, so call it under the
 * mutex that guards the condition, and let the sleeper take that mutex before its park goes out of scope. */
void     hfi_park_wake(struct hfi_park *park);

/* From hold to let_go this thread's wakes count at once, but their system calls come last: nobody is woken into a
 * mutex that the waker still has, and who sleeps side by side is woken by one call. They nest. */
void     hfi_park_hold(void);
void     hfi_park_let_go(void);

/* A waiter that is about to poll() instead of hfi_park_wait names the eventfd that is among what it polls, then
 * looks at hfi_park_is_woken, then polls; -1 when it is back. */
void     hfi_park_kick(struct hfi_park *park, int eventfd_or_minus_1);

#endif
