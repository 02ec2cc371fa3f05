/* SPDX-License-Identifier: MIT */
/* trouble.h - why a lock was not to be had: noted when it happens, told to who waited for it. The lock's mutex held. */
#ifndef HFI_TROUBLE_H
#define HFI_TROUBLE_H

#include "core/lock/lock.h"

/* What an acquire or re-check without a good answer says about it. */
void hfi_lock_note_trouble(struct hfi_lock *lock, const struct hfi_command *command, bool late);
/* The time of who tries is over, and the server has not said a word. */
void hfi_lock_note_silence(struct hfi_lock *lock);
/* The grant came when it was good for nothing any more. */
void hfi_lock_note_late_grant(struct hfi_lock *lock);
/* There was nothing to make a token of. */
void hfi_lock_note_no_random(struct hfi_lock *lock);
/* Why the last question got no lease: fills *error, returns `status`. */
hf_status hfi_lock_explain(const struct hfi_lock *lock, hf_status status, hf_error *error);

#endif
