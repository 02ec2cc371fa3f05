/* SPDX-License-Identifier: MIT */
/* shrink.h - a semaphore's grant gives back some of its permits, and keeps the others. */
#ifndef HFI_SHRINK_H
#define HFI_SHRINK_H

#include "core/lock/lock.h"

/* Lists the release of the current token's permits above `keep`; mutex held. What becomes of it the entry learns
 * (hfi_entry_shrunk). `releaser` (or NULL) receives the answer under the same mutex. */
void hfi_lock_shrink(struct hfi_lock *lock, int32_t keep, struct hfi_releaser *releaser, int64_t now);

#endif
