/* SPDX-License-Identifier: MIT */
/* acquire.h - a thread acquires a lease, and waits for it. */
#ifndef HFI_ACQUIRE_H
#define HFI_ACQUIRE_H

#include "core/lock/lock.h"

/* Blocks until the acquirer has its verdict. If until_ns passes, the cancel fires or the client closes first, the
 * acquirer leaves the entry and is HFI_REFUSED with TIMEOUT (or the reason why the server could not serve), CANCELED or
 * CLOSED. The lock's mutex is held on entry and on return, and released while the thread sleeps. */
void hfi_acquire(struct hfi_lock *lock, struct hfi_acquirer *acquirer, int64_t until_ns, hf_cancel *cancel);
/* Initialises *acquirer. The options must stay valid until the acquire ends. */
void hfi_acquirer_init(struct hfi_acquirer *acquirer, const struct hfi_lock *lock, const hf_lock_options *options);

#endif
