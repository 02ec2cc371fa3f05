/* SPDX-License-Identifier: MIT */
/* together.h - the leases of several names by one script, all or none. */
#ifndef HFI_TOGETHER_H
#define HFI_TOGETHER_H

#include "core/lock/lock.h"

#define HFI_TOGETHER_MOST 64

/* Asks for all of these locks at once, and waits for the answer, until until_ns at most. No lock's mutex is held.
 *
 * HF_OK: a lease for each, in the order of the locks. Else none: BUSY: *busy is the index of the first name that is not
 * free at the server, or of one that this process uses already, for which nothing was sent; all others as for a try. */
hf_status hfi_together_take(struct hfi_lock *const *locks, int count, const hf_lock_options *options, int64_t until_ns,
                            hf_lease **leases, int *busy, hf_error *error);

#endif
