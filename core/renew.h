/* SPDX-License-Identifier: MIT */
/* renew.h - the renewals of one watchdog tick, in scripts of 32, on a connection that answers. */
#ifndef HFI_RENEW_H
#define HFI_RENEW_H

#include "core/lock.h"

struct hfi_renewals;

/* Renew the lock's current token; mutex held. Its stamp is the tick's `now`. */
void hfi_renewals_add(struct hfi_renewals *renewals, struct hfi_lock *lock, int64_t ttl_ms, int64_t rtt_patience_ns);

#endif
