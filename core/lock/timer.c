/* SPDX-License-Identifier: MIT */
/* timer.c - see timer.h. */
#include "core/lock/timer.h"
#include "base/check.h"
#include "core/lock/table.h"

/* An armed alarm has a reference to the lock. */
void hfi_lock_set_timer(struct hfi_lock *lock)
{
    /* Close disarms every alarm, and no later event of the entry may arm it again. */
    bool closing = atomic_load(&lock->client->closing);
    if (!hfi_entry_may_be_due_sooner(&lock->entry) && !closing && lock->alarm_at != HFI_NEVER) {
        HFI_CHECK(lock->alarm_at <= hfi_entry_next(&lock->entry));
        return;
    }
    int64_t next = closing ? HFI_NEVER : hfi_entry_next(&lock->entry);
    /* Do not move an armed alarm to a later time: it rings, finds nothing due and is armed again. Local passes would
     * move it all the time. */
    if (next == lock->alarm_at || (next != HFI_NEVER && next > lock->alarm_at))
        return;
    bool was_armed = hfi_watchdog_arm(lock->client->watchdog, &lock->alarm.timer, next);
    bool is_armed = next != HFI_NEVER;
    lock->alarm_at = next;
    if (is_armed && !was_armed)
        hfi_table_ref(lock);
    else if (was_armed && !is_armed)
        hfi_table_unref(lock); /* never the last: the caller has one */
}
