/* SPDX-License-Identifier: MIT */
/*
 * perform.h - carries out what an entry has decided, under the lock's mutex, so that commands are listed in the order of
 * the decisions. They are sent after unlocking. Answers to acquires come back here, and step the entry again.
 */
#ifndef HFI_PERFORM_H
#define HFI_PERFORM_H

#include "core/lock/lock.h"
#include "core/protocol/wire.h"

/* Carries out the entry's actions; mutex held. `releaser` (or NULL) receives the answer to a HFI_GIVE_BACK or HFI_SHRINK among them.
 * What they list is sent by hfi_lock_leave(). */
void hfi_lock_perform(struct hfi_lock *lock, struct hfi_step *step, struct hfi_releaser *releaser);
/* A grant that too few replicas have, or that comes from a server in quarantine, becomes NO_ANSWER: a failover could lose it, or has
 * lost what contradicts it. */
void hfi_lock_mistrust(const struct hfi_lock *lock, struct hfi_answer *answer, const struct hfi_command *command);
/* The step of an arrival that asks by a native acquire, as a part of a command for many names: carries it out but for the
 * command, of which *taking is this name's part. False: there were no random bytes for a token; the waiter is refused. */
bool hfi_lock_ask_together(struct hfi_lock *lock, struct hfi_step *step, int64_t not_after_us, int64_t stamp,
                           struct hfi_taking *taking);
/* What that command's answer is for this name; no mutex held. `command`: NULL if it was never sent. */
void hfi_lock_answered_together(struct hfi_lock *lock, const struct hfi_command *command, struct hfi_token token,
                                int64_t not_after_us, const struct hfi_answer *answer, int64_t rtt_ns);

#endif
