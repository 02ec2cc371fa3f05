/* SPDX-License-Identifier: MIT */
/* retire.h - retirement of tokens: a token is released until an answer shows that no acquire of it can be executed
 * later (P5). */
#ifndef HFI_RETIRE_H
#define HFI_RETIRE_H

#include "core/lock/lock.h"
#include "core/protocol/message.h"

/* Retires the lock's current token: lists its release; mutex held. wanted: it was held, and another process is known to wait.
 * `releaser` (or NULL) receives the answer under the same mutex. */
void hfi_retire_begin(struct hfi_lock *lock, int64_t now, bool wanted, struct hfi_releaser *releaser);
/* Notes the token that, according to a message, a break has put in the place of the held one. Mutex held. */
void hfi_retire_note_break(struct hfi_lock *lock, const struct hfi_message *message);
/* A message named a token of this client that no entry waits with or holds. If the token is being retired, its release
 * is sent now. If it is unknown and the message brings the key, its retirement begins. `lock`: found by the grant
 * number, or NULL. No mutex held. */
void hfi_retire_heal(hf_client *client, struct hfi_lock *lock, struct hfi_token token, const struct hfi_message *message);
/* An acquire of this token, sent before the token was given up, got no answer (in_doubt: it may still be executed), or was
 * executed after the release, because its script had to be sent again: release it once more. Mutex held. */
void hfi_retire_again(struct hfi_lock *lock, struct hfi_token token, bool in_doubt, int64_t last_chance_us, int64_t now);
/* The only acquire of this token, sent before the token was given up, has its answer; `there`: it was granted. It rode
 * another lane than the release, which may have come first: the token is released now, for the last time. Mutex held. */
void hfi_retire_answered_elsewhere(struct hfi_lock *lock, struct hfi_token token, bool there, int64_t now);
/* Retires the token that an operator's break left instead of ours. Its release is sent guard_ms after `now`: the
 * holder, which is notified at `now`, has that long to stop. Mutex held. */
void hfi_retire_revoked(struct hfi_lock *lock, struct hfi_token token, int64_t now);
/* The client closes: retirements that have not sent a release yet, because a revoked holder has time to stop, send it
 * now. With last_time all others, refused or in doubt, release once more. Mutex held. */
void hfi_retire_hasten(struct hfi_lock *lock, bool last_time, int64_t now);
/* At the end of close: no more retries, even if tokens are still in doubt; client->keys_left_ns tells of them. */
void hfi_retire_stop(hf_client *client);
/* When the threads of a closing client have ended: frees what is cached for the next retirements. */
void hfi_retire_free_cached(hf_client *client);

#endif
