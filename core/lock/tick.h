/* SPDX-License-Identifier: MIT */
/* tick.h - one tick of the watchdog: runs the alarms that are due, and sends the renewals and re-checks that they
 * collect in few scripts. */
#ifndef HFI_TICK_H
#define HFI_TICK_H

#include "core/context/context.h"
#include "core/lock/alarm.h"

/* hfi_due_fn of the client's watchdog; self is the client. */
void hfi_tick_due(void *self, struct hfi_timer *const *timers, size_t count, int64_t now_ns);
/* Members of hfi_lock_ops: the handler of a lock's alarm; makes the renewals of all leases due now. */
void hfi_tick_ring(struct hfi_alarm *alarm, struct hfi_tick *tick);
void hfi_tick_renew_all(hf_client *client);

#endif
