/* SPDX-License-Identifier: MIT */
/* closing.h - tokens that are given back: released until an answer shows that nothing of theirs can come later (P5). */
#ifndef HFI_CLOSING_H
#define HFI_CLOSING_H

#include "core/lock.h"
#include "core/message.h"

/* Lists a release of the lock's current token; mutex held. `giving` (or NULL) is told under the same mutex. */
void hfi_closing_begin(struct hfi_lock *lock, int64_t now, struct hfi_giving *giving);
/* A message named a token of ours that is neither waited for nor held: it is released at once, also if nobody here
 * remembers it and the message brings the key. Not the lock's mutex held. */
void hfi_closing_heal(hf_client *client, const struct hfi_message *message);
/* An acquire of this grant got no answer after its token was given up: it may still be executed. */
void hfi_closing_doubt(struct hfi_lock *lock, uint64_t grant); /* mutex held */
/* One was executed after its release (its script had to be sent again): once more. Mutex held. */
void hfi_closing_again(struct hfi_lock *lock, const struct hfi_command *command, int64_t now);
/* What an operator's break left under a token derived from ours: given back when the holder, who is being told at `now`,
 * has had the time that guard_ms is for. Mutex held. */
void hfi_closing_release_later(struct hfi_lock *lock, const char *token, size_t size, int64_t now);
/* At close: no more retries; how many are open. */
void hfi_closing_stop(hf_client *client);

#endif
