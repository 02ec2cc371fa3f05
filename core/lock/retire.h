/* SPDX-License-Identifier: MIT */
/* retire.h - tokens that are given back: released until an answer shows that nothing of theirs can come later (P5). */
#ifndef HFI_RETIRE_H
#define HFI_RETIRE_H

#include "core/lock/lock.h"
#include "core/protocol/message.h"

/* Lists a release of the lock's current token; mutex held. `releaser` (or NULL) is told under the same mutex. */
void hfi_retire_begin(struct hfi_lock *lock, int64_t now, struct hfi_releaser *releaser);
/* A message says what a break has put in the place of the token that is held. Mutex held. */
void hfi_retire_note_break(struct hfi_lock *lock, const struct hfi_message *message);
/* A message named a token of this client's that nobody here waits for or holds: if it is being given back, its release
 * goes now; if nobody remembers it, and the message brings the key, it begins. `lock`: the grant number's, or NULL. No
 * mutex held. */
void hfi_retire_heal(hf_client *client, struct hfi_lock *lock, uint64_t grant, uint64_t random,
                      const struct hfi_message *message);
/* An acquire of this token got no answer after it was given up: it may still be executed. Mutex held. */
void hfi_retire_in_doubt(struct hfi_lock *lock, uint64_t grant, uint64_t random);
/* One was executed after its release (its script had to be sent again): once more. Mutex held. */
void hfi_retire_again(struct hfi_lock *lock, uint64_t grant, uint64_t random, int64_t now);
/* What an operator's break left instead of a token of ours: given back when the holder, who is being told at `now`, has
 * had the time that guard_ms is for. Mutex held. */
void hfi_retire_revoked(struct hfi_lock *lock, uint64_t grant, uint64_t random, int64_t now);
/* The client closes: what waits for a revoked holder goes now. Mutex held. */
void hfi_retire_hasten(struct hfi_lock *lock, int64_t now);
/* At its end: no more retries, whatever is open. */
void hfi_retire_stop(hf_client *client);

#endif
