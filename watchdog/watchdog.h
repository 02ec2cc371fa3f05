/* SPDX-License-Identifier: MIT */
/* watchdog.h - one thread and one heap of timers for everything that happens at a point in time. Knows nothing of
 * locks, sockets or scripts: it says which timers are due, their owner decides. */
#ifndef HFI_WATCHDOG_H
#define HFI_WATCHDOG_H

#include "base/clock.h"
#include "base/error.h"

struct hfi_watchdog;

struct hfi_timer { /* embedded in its owner, zeroed before its first use; guarded by the watchdog's mutex */
    int64_t at_ns;
    struct hfi_timer *child, *next, *prev, *same; /* the heap's (timers.h): arming never allocates, so it cannot fail */
};

/* Called with the timers that are due, disarmed, soonest first; at most HFI_DUE_MOST. In the watchdog's thread, no
 * mutex held. */
#define HFI_DUE_MOST 256
typedef void hfi_due_fn(void *self, struct hfi_timer *const *timers, size_t count, int64_t now_ns);

/* Starts the thread, with all signals blocked. NOMEM. With another clock than hfi_boottime there is no thread: time
 * stands still until the test moves it, and only hfi_watchdog_run_due checks the timers. */
hf_status hfi_watchdog_start(const struct hfi_clock *clock, hfi_due_fn *due, void *self,
                             struct hfi_watchdog **watchdog, hf_error *error);
/* Ends and joins the thread, and frees. No arm may start after this. NULL is a no-op. Not for a fork child: that has no
 * thread to join, and leaves the memory alone. */
void hfi_watchdog_stop(struct hfi_watchdog *watchdog);

/* Arms or moves the timer; HFI_NEVER disarms. True: it was armed before. False: it was idle, or it is being handed to
 * `due` at this moment. Any thread, with any mutex of the owner held. */
bool hfi_watchdog_arm(struct hfi_watchdog *watchdog, struct hfi_timer *timer, int64_t at_ns);

/* For tests with a fake clock: runs what is due at the clock's now, in the calling thread. Returns when the next
 * timer is due. */
int64_t hfi_watchdog_run_due(struct hfi_watchdog *watchdog);

#endif
