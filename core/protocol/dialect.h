/* SPDX-License-Identifier: MIT */
/* dialect.h - how other programs spell a lock: the key, what marks it as held there, and what their release looks like.
 * docs/interop.md has the table of what is promised with each. Pure. */
#ifndef HFI_DIALECT_H
#define HFI_DIALECT_H

#include "base/error.h"
#include "core/protocol/scripts.h"

struct redisReply;

struct hfi_dialect {
    struct hfi_dialect *next; /* for who keeps several (context/dialects.h) */
    const char *text;         /* as the option says it: `warlock`, `set:locks` */
    const char *key_template; /* with one %s for the name */
    const char *parameter;    /* behind the colon, or its default; "" if the dialect has none */
    const char *holds;        /* the type that its key must be of, for messages */
    const char *key_events;   /* the classes of keyspace events by which others' releases are heard, beside the usual ones */
    char side[16];            /* goes before the tag in the names of our own keys beside the lock; "" where that is a string, as ours */
    enum hfi_mark mark;
    int number;               /* among those that are kept, from 0 */
    bool is_member;           /* what marks the lock is not a key of its own, but a member of the key `parameter` */
    bool (*is_late)(const struct redisReply *reply); /* to what hfi_wire_track reads: it was free before it was tracked */
};

/* Reads an option's text. key_template: the user's, in place of the dialect's own; or NULL. The caller frees *dialect. HF_OK,
 * INVALID or NOMEM. */
hf_status hfi_dialect_make(const char *text, const char *key_template, struct hfi_dialect **dialect, hf_error *error);
bool hfi_dialect_is_nil(const struct redisReply *reply); /* `is_late`, where a key that is there is a lock that is held */

#endif
