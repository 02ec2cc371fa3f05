/* SPDX-License-Identifier: MIT */
/* lane_choice.h - when a name may take another lane than before (P4). */
#ifndef HFI_LANE_CHOICE_H
#define HFI_LANE_CHOICE_H

#include "core/lock/lock.h"

/* A thread that has `count` references to the lock is about to ask for it. If nothing of the name is held, waited for, in flight or
 * owed, the lock takes the lane that suits this thread. Mutex held. */
void hfi_lane_choose(struct hfi_lock *lock, int count);
void hfi_lane_choose_only(struct hfi_lock *lock); /* the same; takes the mutex; the caller has one reference */

#endif
