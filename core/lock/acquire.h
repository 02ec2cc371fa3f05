/* SPDX-License-Identifier: MIT */
/* acquire.h - a thread asks for a lease and waits for it. */
#ifndef HFI_ACQUIRE_H
#define HFI_ACQUIRE_H

#include "core/lock/lock.h"

/* Waits until the acquirer has its verdict, or its time is up or its cancel fires or the client closes: then it leaves and
 * is HFI_REFUSED with TIMEOUT (or why the server could not serve), CANCELED, CLOSED. The lock's mutex is held on entry
 * and on return. */
void hfi_acquire(struct hfi_lock *lock, struct hfi_acquirer *acquirer, int64_t until_ns, hf_cancel *cancel);
/* The options stay while it seeks. */
void hfi_acquirer_init(struct hfi_acquirer *acquirer, const struct hfi_lock *lock, const hf_lock_options *options);

#endif
