/* SPDX-License-Identifier: MIT */
/* calls.h - several commands whose answers one thread waits for: all are listed before the first is waited for. */
#ifndef HFI_CALLS_H
#define HFI_CALLS_H

#include "core/context/context.h"

struct hfi_calls;

/* For at most `most` commands. NULL: no memory. */
struct hfi_calls *hfi_calls_new(hf_client *client, size_t most);
/* Lists the command as number `index`, and takes over the caller's reference to it (NULL: there was no memory for it). The
 * caller flushes the lane. */
void hfi_calls_list(struct hfi_calls *calls, size_t index, struct hfi_lane *lane, struct hfi_command *command);
/* Waits until number `index` has its outcome. HF_OK: *reply, of any type, is the caller's, and came on this connection of the
 * lane. Else as hfi_call, and the error is filled. */
hf_status hfi_calls_take(struct hfi_calls *calls, size_t index, hf_cancel *cancel, struct redisReply **reply, uint32_t *connection,
                         hf_error *error);
/* NULL is a no-op. What is not answered yet frees itself. */
void hfi_calls_free(struct hfi_calls *calls);

#endif
