/* SPDX-License-Identifier: MIT */
/* cached.h - memory that one lease leaves for the next one of the same thread. It is taken in one thread and often given
 * back in another, a lane's reader: an allocator would move it from the cache of the one to that of the other. */
#ifndef HFI_CACHED_H
#define HFI_CACHED_H

#include "core/context/context.h"

/* What lies in the slot; it is the caller's then. NULL: nothing. */
void *hfi_cached_take(_Atomic(void *) *slot);
/* Returns what the caller has to free: NULL, or the memory, if the slot is taken or the client closes; or other memory of
 * the slot, if its close has begun meanwhile. A close empties the slots, and nothing is left in them after that. */
void *hfi_cached_leave(hf_client *client, _Atomic(void *) *slot, void *memory);

#endif
