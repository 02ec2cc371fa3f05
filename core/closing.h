/* SPDX-License-Identifier: MIT */
/* closing.h - tokens that are given back: released until an answer shows that nothing of theirs can come later (P5). */
#ifndef HFI_CLOSING_H
#define HFI_CLOSING_H

#include "core/lock.h"

/* Lists a release of the lock's current token; mutex held. `giving` (or NULL) is told under the same mutex. */
void hfi_closing_begin(struct hfi_lock *lock, int64_t now, struct hfi_giving *giving);
/* A message named this token, which is neither waited for nor held: if it is being given back, release it at once. */
void hfi_closing_heal(hf_client *client, const char *token, size_t size);
/* The same for what an operator's break left under a token derived from ours; mutex held. */
void hfi_closing_release(struct hfi_lock *lock, const char *token, size_t size, int64_t now);
/* At close: no more retries; how many are open. */
void hfi_closing_stop(hf_client *client);

#endif
