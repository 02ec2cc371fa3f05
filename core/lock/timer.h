/* SPDX-License-Identifier: MIT */
/* timer.h - when the watchdog looks at a lock next. */
#ifndef HFI_TIMER_H
#define HFI_TIMER_H

#include "core/lock/lock.h"

/* Arms the alarm for the next time at which the entry has something to do; mutex held. */
void hfi_lock_set_timer(struct hfi_lock *lock);

#endif
