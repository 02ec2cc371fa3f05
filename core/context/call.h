/* SPDX-License-Identifier: MIT */
/* call.h - sends one command and waits for its answer. Not for the hot path of a lock. */
#ifndef HFI_CALL_H
#define HFI_CALL_H

#include "core/context/context.h"

struct redisReply;

/* Takes over the caller's reference to the command (NULL: NOMEM) and blocks until its outcome is known. HF_OK: *reply
 * is of any type, the caller frees it. UNAVAILABLE, DENIED, PROTOCOL, CLOSED: not sent. UNKNOWN: no answer within
 * command_ms, or within what close leaves of it. LIMIT: the reply was too long. CANCELED: `cancel`, which may be NULL,
 * fired; an answer that still comes is dropped. */
hf_status hfi_call(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, hf_cancel *cancel,
                   struct redisReply **reply, hf_error *error);
/* The same, but an error reply becomes its status. did_what: as in hfi_reply_fail. */
hf_status hfi_call_done(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, hf_cancel *cancel,
                        const char *did_what, struct redisReply **reply, hf_error *error);

#endif
