/* SPDX-License-Identifier: MIT */
/* info.h - who holds it? The key tells host and pid; the rest only the holder knows, so it is asked. */
#ifndef HFI_INFO_H
#define HFI_INFO_H

#include "core/lock/lock.h"
#include "core/protocol/message.h"

/* Message I about the lock's current token: answers. The lock's mutex held. */
void hfi_info_tell(struct hfi_lock *lock, const struct hfi_message *message);
/* Message A: an answer to a question of ours. */
void hfi_info_on_message(hf_client *client, const struct hfi_message *message);

#endif
