/* SPDX-License-Identifier: MIT */
/* trouble.h - why a lock could not be acquired: noted when it happens, reported to the caller that waited. The lock's
 * mutex is held in all calls. */
#ifndef HFI_TROUBLE_H
#define HFI_TROUBLE_H

#include "core/lock/lock.h"

#define HFI_NOBODY_CONFIRMS      "replicas=all, and none is known that could be promoted: nothing is granted"
#define HFI_NOBODY_CONFIRMS_HINT \
    "start replicas, 16 at most, and most sentinels; give the user there +sentinel|replicas +sentinel|sentinels +sentinel|myid"

/* Notes why an acquire or re-check got no good answer; `kind` is what its answer means. */
void hfi_lock_note_trouble(struct hfi_lock *lock, const struct hfi_command *command, enum hfi_answer_kind kind);
/* The time of a try is over, and the server has not answered. */
void hfi_lock_note_silence(struct hfi_lock *lock);
/* The grant came too late to be of any use. */
void hfi_lock_note_late_grant(struct hfi_lock *lock);
/* The server grants nothing yet. */
void hfi_lock_note_quarantine(struct hfi_lock *lock, int64_t left_ns);
/* There were no random bytes for a token. */
void hfi_lock_note_no_random(struct hfi_lock *lock);
/* Fills *error with the reason why the last acquire got no lease; returns `status`. */
hf_status hfi_lock_explain(const struct hfi_lock *lock, hf_status status, hf_error *error);

#endif
