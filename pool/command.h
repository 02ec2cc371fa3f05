/* SPDX-License-Identifier: MIT */
/* command.h - a command to the server: its bytes and its outcome. */
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

enum hfi_awaited {           /* who waits for the reply */
    HFI_AWAITED_BY_THREAD,   /* a thread, or nobody knows: a thread that waits on the lane is woken to read it    */
    HFI_AWAITED_PROMPTLY,    /* no thread, but a program's event loop: the listener reads it as soon as it comes  */
    HFI_AWAITED_BY_NOBODY    /* no thread is woken to read it, and the listener is in no hurry                    */
};

struct hfi_command;

/* Called exactly once, when the outcome is known, in the thread that learned it: a reader, a flusher or the listener.
 * Must not block; may take mutexes of the command's caller, list further commands and flush. */
typedef void hfi_command_done(struct hfi_command *command);

/* Can this reply, which is no error, belong to the command at all? If not, a byte of the stream is wrong, and every
 * reply behind it may be matched to the wrong command. Called under the lane's mutex. */
typedef bool hfi_reply_validator(const struct hfi_command *command, const struct redisReply *reply);

#define HFI_COMMAND_CONTEXT 32
#define HFI_COMMAND_FIRST 448 /* holds a native acquire with all its five parts */

struct hfi_command {
    /* Set by the caller before it lists the command. */
    hfi_command_done *done;
    hfi_reply_validator *validate; /* NULL: any reply. Else a reply that it rejects ends the connection: UNANSWERED */
    void   *self;
    int64_t until_ns;      /* no answer by then: the connection is given up, with all its commands in flight */
    int64_t stamp_ns;      /* for the caller: the clock before the command was listed (rule L1) */
    _Alignas(int64_t) char context[HFI_COMMAND_CONTEXT]; /* for the caller: hfi_command_context */
    int     element_count; /* for `validate` */
    enum hfi_awaited awaited;
    bool    patient;       /* stays queued while the server is silent: UNSENT only at until_ns or after a failed dial */
    bool    optional;      /* unanswered it leaves no key of ours behind, so close does not report it */
    bool    confirmed;     /* where replicas confirm: it is worth nothing before they have it */
    bool    users;         /* a user chose its words: what an error reply says of the connection may be made up */

    /* Read by `done`. */
    enum hfi_outcome   outcome;
    struct redisReply *reply;    /* NULL unless ANSWERED. Freed with the command; set it to NULL to take it over */
    int64_t answered_ns;         /* the clock when the reply was parsed */
    uint64_t run;                /* ANSWERED: of the server that did (hfi_server_run) */
    uint32_t connection;         /* and on which connection of this lane, the 1st, the 2nd ... */
    int     replicas_missing;    /* ANSWERED, but so many of `replicas_wanted` do not have it, or do not say so in time */
    int     replicas_wanted;     /* 0: nobody is known whose confirmation would do, with replicas=all */
    bool    too_long;            /* UNANSWERED: the reply was above the lane's limit and was discarded */

    /* The lane's. */
    struct hfi_inbox_node listed;
    struct hfi_list       link;
    const struct hfi_script *script; /* not NULL: EVALSHA, sent again as EVAL after NOSCRIPT, */
    bool   inlined;                /* which it is by now */
    char  *bytes;
    size_t size, capacity;
    int    ahead;                    /* bytes of the PING in front */
    int    replies;                  /* how many replies belong to it */
    int    replies_seen;
    bool   doubted;                  /* a confirmation behind it has failed: the next one decides */
    bool   sent;
    int64_t sent_ns;
    _Atomic(int) references;
    int    home;                     /* the slot of `cached` (command.c) that it returns to */
    char   first[HFI_COMMAND_FIRST]; /* `bytes`, while they fit */
};

/* What `done` needs besides `self`, as a type of the caller's. */
#define hfi_command_context(command, type)                                        \
    ((void)sizeof(char[sizeof(type) <= HFI_COMMAND_CONTEXT ? 1 : -1]),            \
     (type *)(void *)(command)->context)

/* A plain command. The caller owns its one reference. NULL: no memory. */
struct hfi_command *hfi_command_new(int argc, const char *const *argv, const size_t *sizes);
/* EVALSHA script keys argv...; argv begins with the keys. */
struct hfi_command *hfi_command_script(const struct hfi_script *script, int keys, int argc, const char *const *argv,
                                       const size_t *sizes);
/* The same, word by word: the caller then calls hfi_command_word `argc` times. capacity: an upper bound of the words'
 * bytes, so that memory is allocated once. */
struct hfi_command *hfi_command_script_begin(const struct hfi_script *script, int keys, int argc, size_t capacity);
bool hfi_command_word(struct hfi_command *command, const char *word, size_t size); /* false: no memory */
/* Appends another command to the same bytes, for a pipeline that belongs together (MULTI ... EXEC). Only the last
 * reply is kept, or the error that led to it if it is EXECABORT. False: no memory, nothing changed. */
bool hfi_command_append(struct hfi_command *command, int argc, const char *const *argv, const size_t *sizes);

/* Puts a PING before a command that publishes. Of the connections that have unsent replies, Redis and Valkey write to the one first that
 * has had some for the shortest time (not where I/O threads write). So the message leaves before the command's own reply; without
 * the PING, behind it. False: no memory, nothing changed. */
bool hfi_command_ping_first(struct hfi_command *command);

/* The script becomes the one with this clock: by_key for a server that refuses TIME in scripts. */
void hfi_command_use_clock(struct hfi_command *command, bool by_key);
/* A script's command was refused without having done anything: changes it into one that may be taken. After NOSCRIPT that
 * is EVAL with the source; where the script may not ask for TIME, EVAL with the other clock, and *by_key becomes true.
 * False: it is refused for good, or no memory. */
bool hfi_command_mend(struct hfi_command *command, const char *error, bool *by_key);

/* The first deadline of a list's commands, if that is before until_ns; else that. */
int64_t hfi_command_earliest_ns(const struct hfi_list *commands, int64_t until_ns);

void hfi_command_ref(struct hfi_command *command);
void hfi_command_unref(struct hfi_command *command); /* the last one frees it and its reply */

#endif
