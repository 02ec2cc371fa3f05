/* SPDX-License-Identifier: MIT */
/* info.h - finds out who holds a lock. The key tells host and pid; the rest is known only to the holder, which is asked
 * by a message. */
#ifndef HFI_INFO_H
#define HFI_INFO_H

#include "core/lock/lock.h"
#include "core/protocol/message.h"

/* Answers message I about the lock's current token. The lock's mutex held. */
void hfi_info_tell(struct hfi_lock *lock, const struct hfi_message *message);
/* Message A: the answer to an inquiry of ours. */
void hfi_info_on_message(hf_client *client, const struct hfi_message *message);

/* HF_OK: the client is entered and *keys are made; the caller leaves it and calls hfi_keys_done. */
hf_status hfi_info_enter(hf_client *client, enum hfi_use use, const char *text, struct hfi_keys *keys, hf_error *error);

#endif
