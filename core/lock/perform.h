/* SPDX-License-Identifier: MIT */
/*
 * perform.h - carries out what an entry has decided, under the lock's mutex, so that commands are listed in the order of
 * the decisions. They are sent after unlocking. Answers to acquires come back here, and step the entry again.
 */
#ifndef HFI_PERFORM_H
#define HFI_PERFORM_H

#include "core/lock/lock.h"

/* Carries out the entry's actions; mutex held. `releaser` (or NULL) receives the answer to a HFI_GIVE_BACK among them.
 * What they list is sent by hfi_lock_leave(). */
void hfi_lock_perform(struct hfi_lock *lock, struct hfi_step *step, struct hfi_releaser *releaser);
/* Arms the alarm for the next time at which the entry has something to do; mutex held. */
void hfi_lock_set_timer(struct hfi_lock *lock);

#endif
