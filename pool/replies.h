/* SPDX-License-Identifier: MIT */
/* replies.h - the meaning of error replies, in one table for the whole library; the fields of INFO. Pure. */
#ifndef HFI_REPLIES_H
#define HFI_REPLIES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct redisReply;

struct hfi_meaning {
    const char *prefix;   /* "OOM", "READONLY", ... the first word of the reply */
    hf_status   status;
    bool        executed; /* false: the server certainly did not execute the command */
    bool        reconnect; /* the connection is of no use any more (READONLY, NOAUTH, ...) */
    int64_t     retry_ms; /* as hf_error.retry_ms */
    const char *hint;
};

/* For a reply of type error. An error that is not in the table is HF_UNAVAILABLE: see the last row. Never NULL. */
const struct hfi_meaning *hfi_reply_meaning(const char *text, size_t size);
/* hfi_fail from an error reply: did_what begins the sentence, e.g. "cannot acquire \"x\"". NOPERM names the command
 * that the server names. Returns the status. */
hf_status hfi_reply_fail(const struct redisReply *reply, const char *did_what, const char *server, hf_error *error);

/* An error that refuses a command that can be done without: the user lacks the right, or the operator has taken it away. */
bool hfi_reply_is_withheld(const struct redisReply *error);
/* Of ROLE: it is a primary, or does not say. */
bool hfi_reply_is_master(const struct redisReply *reply);
extern const char hfi_no_cluster[]; /* the hint */
/* An error that only a node of a cluster says. */
bool hfi_reply_is_of_cluster(const char *text, size_t size);

/* Copies the value from a line "field:value" of a reply to INFO. False: no such line, *out is as it was. */
bool hfi_reply_info(const struct redisReply *reply, const char *field, char *out, size_t capacity);

#endif
