/* SPDX-License-Identifier: MIT */
/* park.h - a thread sleeps until another one wakes it or a point on CLOCK_BOOTTIME passes. An event count: read the
 * epoch, test the condition, wait with the epoch; a wake in between is not lost. */
#ifndef HFI_PARK_H
#define HFI_PARK_H

#include <stdbool.h>
#include <stdint.h>

struct hfi_park {
    uint32_t     count;           /* storage of a ck_ec32 */
    _Atomic(uint32_t) bucket_bit; /* bucket and bit in which its sleepers sleep, plus 1; 0: not assigned yet */
    _Atomic(int) kick_fd;         /* -1, or an eventfd that a waiter sleeps on instead (see hfi_park_kick) */
};

void     hfi_park_init(struct hfi_park *park);
uint32_t hfi_park_epoch(struct hfi_park *park);
/* The epoch one wake after `epoch`: skips a wake that was meant for something else. */
uint32_t hfi_park_next(uint32_t epoch);
/* True: woken since the epoch. False: until_ns (HFI_NEVER: no end) came first. Signals do not end the wait. */
bool     hfi_park_wait(struct hfi_park *park, uint32_t epoch, int64_t until_ns);
bool     hfi_park_is_woken(struct hfi_park *park, uint32_t epoch);
/* Any thread, never blocks. It touches the park after the sleeper can already observe the wake: call it under the
 * mutex that guards the condition, and let the sleeper take that mutex before its park goes out of scope. */
void     hfi_park_wake(struct hfi_park *park);

/* Between hold and let_go this thread's wakes count at once, but their system calls are deferred: no sleeper is woken
 * into a mutex that the waker still holds, and sleepers in one bucket are woken by one call. They nest. */
void     hfi_park_hold(void);
void     hfi_park_let_go(void);

/* For a waiter that will poll() instead of hfi_park_wait: name an eventfd of the poll set, then test
 * hfi_park_is_woken, then poll; set -1 when poll has returned. */
void     hfi_park_kick(struct hfi_park *park, int eventfd_or_minus_1);

#endif
