/* SPDX-License-Identifier: MIT */
/* parts.h - the lease of a multilock, the whole: its parts are the leases of its names. Each part is the holder of its lock,
 * with an entry, renewals and a token of its own; the whole holds no lock, and is told what happens to the parts. */
#ifndef HFI_PARTS_H
#define HFI_PARTS_H

#include "core/lock/handle.h"

/* Makes one lease of `count` leases that were taken for this owner. It has one reference, and one to the first lease's
 * lock. The parts do not know it yet: see `whole`. NULL: no memory, nothing has changed. thread, tid: as for a sink. */
hf_lease *hfi_parts_join(hf_lease *const *leases, int count, const hf_lock_options *options, uint64_t owner,
                         uint64_t thread, int tid);
/* A member of hfi_lock_ops: something was told of a part, which knows its whole. The mutex of the part's lock is held. */
void hfi_parts_told(hf_lease *part, hf_event_kind kind, hf_reason reason);

#endif
