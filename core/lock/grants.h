/* SPDX-License-Identifier: MIT */
/* grants.h - a semaphore in this process: several grants, each a lock of its own with a token and an entry, under one mutex
 * (lock.h). Threads wait at one of them, which asks the server; the others are held. Mutex held in all calls. */
#ifndef HFI_GRANTS_H
#define HFI_GRANTS_H

#include "core/lock/lock.h"

/* The acquirer, whose .lock is the home, has permits of a grant that has some left, or waits, in the order of arrival. */
void hfi_grants_arrive(struct hfi_acquirer *acquirer, int64_t now);
/* hfi_entry_release, but the oldest waiters of this process have what is free first. */
bool hfi_grants_release(struct hfi_lock *lock, int32_t permits, bool quietly, struct hfi_step *step);
/* Another process waits for what any grant of this semaphore may give back. */
void hfi_grants_wanted(struct hfi_lock *lock, int64_t now);
/* lock_ops.look: one of the grants has changed. Threads that wait beside a grant whose permits are given out wait elsewhere. */
void hfi_grants_look(struct hfi_lock *home, int64_t now);

#endif
