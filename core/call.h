/* SPDX-License-Identifier: MIT */
/* call.h - one command, its answer waited for. For what is not the hot path of a lock. */
#ifndef HFI_CALL_H
#define HFI_CALL_H

#include "core/client.h"

struct redisReply;

/* Takes the command (NULL: NOMEM). HF_OK with a reply of any type, the caller's to free; UNAVAILABLE, DENIED, PROTOCOL
 * if it was not sent; UNKNOWN if it was not answered within command_ms. */
hf_status hfi_call(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, struct redisReply **reply,
                   hf_error *error);
/* The same, and an error reply becomes its status; did_what as in hfi_reply_fail. */
hf_status hfi_call_done(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, const char *did_what,
                        struct redisReply **reply, hf_error *error);

#endif
