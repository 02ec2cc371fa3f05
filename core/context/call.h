/* SPDX-License-Identifier: MIT */
/* call.h - one command of a client: listed, or sent and waited for. */
#ifndef HFI_CALL_H
#define HFI_CALL_H

#include "core/context/context.h"
#include "pool/command.h"

struct redisReply;

/* Lists the command and takes over the caller's reference to it. `done` is called with the command, whose `self` is
 * this one, as soon as its outcome is known, at the latest command_ms after the stamp. The caller flushes the lane. */
void hfi_call_list(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, hfi_command_done *done,
                   void *self, int64_t stamp_ns);

/* Takes over the caller's reference to the command (NULL: NOMEM) and blocks until its outcome is known. HF_OK: *reply
 * is of any type, the caller frees it. UNAVAILABLE, DENIED, PROTOCOL, CLOSED: not sent. UNKNOWN: no answer within
 * command_ms, or within what close leaves of it. LIMIT: the reply was too long. CANCELED: `cancel`, which may be NULL,
 * fired; an answer that still comes is dropped. */
hf_status hfi_call(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, hf_cancel *cancel,
                   struct redisReply **reply, hf_error *error);
/* The same; *connection: of the lane, the one on which the answer came (pool/command.h). */
hf_status hfi_call_on(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, hf_cancel *cancel,
                      struct redisReply **reply, uint32_t *connection, hf_error *error);
/* The same, but an error reply becomes its status. did_what: as in hfi_reply_fail. */
hf_status hfi_call_done(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, hf_cancel *cancel,
                        const char *did_what, struct redisReply **reply, hf_error *error);

struct hfi_outcome_of { /* a command */
    enum hfi_outcome what;
    bool too_long;
    uint32_t connection;
    struct redisReply *reply; /* taken from it */
};
void hfi_call_note_outcome(struct hfi_outcome_of *outcome, struct hfi_command *command); /* in its `done` */
/* HF_OK: *reply has become the caller's. Else why not, as hfi_call. */
hf_status hfi_call_explain(hf_client *client, struct hfi_outcome_of *outcome, struct redisReply **reply, hf_error *error);

/* Lists PUBLISH, whose outcome `done` gets with `self`. False: no memory, so `done` is not called. The caller flushes the lane. */
bool hfi_call_publish_for(hf_client *client, struct hfi_lane *lane, const char *channel, const char *text, hfi_command_done *done,
                          void *self, int64_t now);
/* Lists PUBLISH, for whose answer nobody waits. Without memory nothing is published. The caller flushes the lane. */
void hfi_call_publish(hf_client *client, struct hfi_lane *lane, const char *channel, const char *text, int64_t now);

#endif
