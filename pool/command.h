/* SPDX-License-Identifier: MIT */
/* command.h - one thing asked of the server: its bytes, and what became of it. */
#ifndef HFI_COMMAND_H
#define HFI_COMMAND_H

#include "base/inbox.h"
#include "base/list.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redisReply;

struct hfi_script;

enum hfi_outcome {
    HFI_OPEN = 0,   /* not decided yet                                                     */
    HFI_ANSWERED,   /* `reply` is the server's (the last, if several belong to the command) */
    HFI_UNSENT,     /* not one byte left: certainly not executed                           */
    HFI_UNANSWERED  /* may have left: may have been executed, or still be                  */
};

struct hfi_command;

/* Called exactly once, when the outcome is known, by whichever thread found out: a reader, a flusher, the listener.
 * Must not block; may take the caller's own mutexes, list further commands and flush. */
typedef void hfi_command_done(struct hfi_command *command);

/* Whether this, which is no error, can be the command's reply at all. If not, a byte of the stream is wrong, and every
 * reply behind it may be somebody else's. Under the lane's mutex. */
typedef bool hfi_reply_validator(const struct hfi_command *command, const struct redisReply *reply);

#define HFI_COMMAND_FIRST 448 /* a native acquire with all its five parts */

struct hfi_command {
    /* Set by the caller before it lists the command. */
    hfi_command_done *done;
    hfi_reply_validator *validate; /* NULL: whatever comes. Else what does not fit ends its connection, unanswered */
    void   *self;
    int64_t until_ns;  /* no answer by then: the connection is given up, and all that rides on it */
    int64_t stamp_ns;  /* for the caller: the clock before the command was listed (rule L1)       */
    int64_t note[3];   /* for the caller */
    int     element_count;   /* for `fits` */
    bool    posted;    /* no thread waits for its reply: none is woken to read it */
    bool    patient;   /* outlasts a silent server: comes back unsent only when its time is over or a dial has failed */
    bool    optional;  /* without an answer no key is left behind: nothing for a close to tell of */
    bool    users;     /* somebody else's words: what an error says of the connection may be made up */

    /* Read by `done`. */
    enum hfi_outcome   outcome;
    struct redisReply *reply;    /* NULL unless ANSWERED. Freed with the command; taken by setting it NULL */
    int64_t answered_ns;         /* the clock when the reply was parsed */
    bool    too_long;            /* UNANSWERED: answered, but with more than the lane's limit, and that was thrown away */

    /* The lane's. */
    struct hfi_inbox_node listed;
    struct hfi_list       link;
    const struct hfi_script *script; /* not NULL: EVALSHA, sent again as EVAL after NOSCRIPT */
    char  *bytes;
    size_t size, capacity;
    int    replies;                  /* how many replies belong to it */
    int    replies_seen;
    bool   sent;
    int64_t sent_ns;
    _Atomic(int) references;
    int    home;                     /* whose spare it will be */
    char   first[HFI_COMMAND_FIRST]; /* `bytes`, while they fit */
};

/* A plain command. NULL: no memory. One reference, the caller's. */
struct hfi_command *hfi_command_new(int argc, const char *const *argv, const size_t *sizes);
/* EVALSHA script keys argv...; argv has the keys first. */
struct hfi_command *hfi_command_script(const struct hfi_script *script, int keys, int argc, const char *const *argv,
                                       const size_t *sizes);
/* The same word by word: `argc` times hfi_command_word follows. capacity: the words' bytes, at most, so that memory is asked
 * for once. */
struct hfi_command *hfi_command_script_begin(const struct hfi_script *script, int keys, int argc, size_t capacity);
bool hfi_command_word(struct hfi_command *command, const char *word, size_t size); /* false: no memory */
/* One more command behind it in the same bytes (a pipeline that belongs together, MULTI ... EXEC). Only the last
 * reply is kept; if that is EXECABORT, the error that led to it. False: no memory, unchanged. */
bool hfi_command_append(struct hfi_command *command, int argc, const char *const *argv, const size_t *sizes);

/* EVALSHA becomes EVAL with the source, once and for good: the answer to NOSCRIPT. False: not one script's, or no memory. */
bool hfi_command_inline_script(struct hfi_command *command);

void hfi_command_ref(struct hfi_command *command);
void hfi_command_unref(struct hfi_command *command); /* the last one frees it and its reply */

#endif
