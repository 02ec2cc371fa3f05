/* SPDX-License-Identifier: MIT */
/* call.h - one command, its answer waited for. For what is not the hot path of a lock. */
#ifndef HFI_CALL_H
#define HFI_CALL_H

#include "core/context/context.h"

struct redisReply;

/* Takes the command (NULL: NOMEM). HF_OK with a reply of any type, the caller's to free; UNAVAILABLE, DENIED, PROTOCOL,
 * CLOSED if it was not sent; UNKNOWN if it was not answered within command_ms, or what close leaves of it; LIMIT if its
 * reply was too much; CANCELED (cancel, or NULL): the answer, if there is one, is nobody's. */
hf_status hfi_call(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, hf_cancel *cancel,
                   struct redisReply **reply, hf_error *error);
/* The same, and an error reply becomes its status; did_what as in hfi_reply_fail. */
hf_status hfi_call_done(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, hf_cancel *cancel,
                        const char *did_what, struct redisReply **reply, hf_error *error);

#endif
