/* SPDX-License-Identifier: MIT */
/* replies.c - the table of error replies: what the server did, what it means to a caller, and the remedy. */
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#define NOT_DONE   false
#define MAYBE_DONE true
#define KEEP       false
#define RECONNECT  true

const char hfi_no_cluster[] = "Holdfast does not speak to clusters yet: name one primary";

/* The first row whose prefix begins the reply counts. A prefix matches whole words only. */
#define REPLIES(X)                                                                                           \
    X("LOADING", UNAVAILABLE, NOT_DONE, KEEP, 200, "the server is loading its data; try again in a moment")  \
    X("READONLY", UNAVAILABLE, NOT_DONE, RECONNECT, 200,                                                     \
      "this server is a replica; point the URI at the primary, or wait until the failover is over")          \
    X("MASTERDOWN", UNAVAILABLE, NOT_DONE, RECONNECT, 500,                                                   \
      "this server is a replica without its primary; point the URI at the primary")                          \
    X("OOM", UNAVAILABLE, NOT_DONE, KEEP, 1000,                                                              \
      "the server has reached maxmemory; raise it, or let ordinary keys expire sooner")                      \
    X("MISCONF", UNAVAILABLE, NOT_DONE, KEEP, 1000,                                                          \
      "the server cannot save to disk; see its log, or CONFIG SET stop-writes-on-bgsave-error no")           \
    X("NOREPLICAS", UNAVAILABLE, NOT_DONE, KEEP, 500,                                                        \
      "too few replicas are connected; mend them, or lower min-replicas-to-write")                           \
    X("BUSY", UNAVAILABLE, NOT_DONE, KEEP, 200,                                                              \
      "the server runs somebody's long script; wait for it, or SCRIPT KILL")                                 \
    X("ERR max number of clients reached", UNAVAILABLE, NOT_DONE, RECONNECT, 500,                            \
      "raise the server's maxclients, or close idle clients")                                                \
    X("CLUSTERDOWN", UNAVAILABLE, NOT_DONE, KEEP, 500, hfi_no_cluster)                                       \
    X("TRYAGAIN", UNAVAILABLE, NOT_DONE, KEEP, 100, hfi_no_cluster)                                          \
    X("MOVED", UNAVAILABLE, NOT_DONE, KEEP, 0, hfi_no_cluster)                                               \
    X("ASK", UNAVAILABLE, NOT_DONE, KEEP, 100, hfi_no_cluster)                                               \
    X("CROSSSLOT", INVALID, NOT_DONE, KEEP, 0, hfi_no_cluster)                                               \
    X("NOAUTH", DENIED, NOT_DONE, RECONNECT, 0,                                                              \
      "the server asks for a password: redis://user:password@host")                                          \
    X("WRONGPASS", DENIED, NOT_DONE, RECONNECT, 0,                                                           \
      "wrong user name or password, or the user is switched off; ACL LIST shows the users")                  \
    X("NOPERM", DENIED, NOT_DONE, KEEP, 0,                                                                   \
      "give this user the right that is missing; ACL GETUSER shows what it has")                             \
    X("DENIED", DENIED, NOT_DONE, RECONNECT, 0,                                                              \
      "the server is in protected mode: set a password there, or connect from its own machine")              \
    X("ERR The user executing the script can't", DENIED, MAYBE_DONE, KEEP, 0,                                \
      "give this user the right that is missing; ACL LOG names the command and the key")                     \
    X("ERR ACL failure in script", DENIED, MAYBE_DONE, KEEP, 0,                                              \
      "give this user the right that is missing; ACL LOG names the command and the key")                     \
    X("ERR AUTH", DENIED, NOT_DONE, RECONNECT, 0,                                                            \
      "the server has no such password set; leave it out of the URI")                                        \
    X("EXECABORT", UNAVAILABLE, NOT_DONE, KEEP, 1000,                                                        \
      "a command of the transaction was refused: out of memory, or a missing right; ask `holdfast doctor`")  \
    X("WRONGTYPE", FOREIGN, NOT_DONE, KEEP, 0,                                                               \
      "another program uses this key; choose another name or key template")                                  \
    X("NOSCRIPT", UNAVAILABLE, NOT_DONE, KEEP, 0, "the server's script cache was flushed; try again")        \
    X("UNBLOCKED", UNKNOWN, MAYBE_DONE, RECONNECT, -1,                                                       \
      "the server changed its role while the command waited")                                                \
    X("NOPROTO", PROTOCOL, NOT_DONE, KEEP, 0, "holdfast needs Redis 6.0 or later")                           \
    X("ERR unknown command", PROTOCOL, NOT_DONE, KEEP, 0,                                                    \
      "the command is renamed or disabled there, or the server is older than Redis 6.0")                     \
    X("ERR DB index is out of range", INVALID, NOT_DONE, KEEP, 0,                                            \
      "the server has fewer databases; see its setting `databases`")                                         \
    X("ERR invalid DB index", INVALID, NOT_DONE, KEEP, 0,                                                    \
      "the server has fewer databases; see its setting `databases`")                                         \
    X("ERR Protocol error", INTERNAL, NOT_DONE, RECONNECT, 0, "please report this")                          \
    X("", UNAVAILABLE, MAYBE_DONE, KEEP, -1,                                                                 \
      "holdfast does not know this answer; see the server's log, or what stands between it and us")

#define X(prefix, status, executed, reconnect, retry_ms, hint)                                               \
    {prefix, HF_##status, executed, reconnect, retry_ms, hint},
static const struct hfi_meaning meanings[] = {REPLIES(X)};
#undef X
/* The same for an error inside a script: the script may have written before it failed. */
#define X(prefix, status, executed, reconnect, retry_ms, hint)                                               \
    {prefix, HF_##status, MAYBE_DONE, reconnect, retry_ms, hint},
static const struct hfi_meaning meanings_in_script[] = {REPLIES(X)};
#undef X

static bool begins(const char *text, size_t size, const char *words)
{
    size_t length = strlen(words);
    if (length > size || memcmp(text, words, length) != 0)
        return false;
    return length == 0 || length == size || strchr(" .,:'`\r\n", text[length]) != NULL;
}

static const char *find(const char *text, size_t size, const char *words)
{
    return memmem(text, size, words, strlen(words));
}

const struct hfi_meaning *hfi_reply_meaning(const char *text, size_t size)
{
    static const char abort_because[] = "EXECABORT Transaction discarded because of: ";
    const char *end = text + size;
    const struct hfi_meaning *row = meanings;
    if (begins(text, size, "ERR Error running script")) {
        /* Redis 6: ...(call to f_<sha1>): @user_script:7: @user_script: 7: -OOM command not allowed... */
        row = meanings_in_script;
        const char *inner = find(text, size, ": -");
        if (inner != NULL)
            text = inner + 3;
    } else if (find(text, size, " script: ") != NULL && find(text, size, ", on @user_script:") != NULL) {
        row = meanings_in_script; /* Redis 7 keeps the first word, and puts the location at the end */
    } else if (size > sizeof abort_because - 1 &&
               memcmp(text, abort_because, sizeof abort_because - 1) == 0) {
        text += sizeof abort_because - 1;
    }
    size = (size_t)(end - text);
    while (!begins(text, size, row->prefix))
        row++;
    return row;
}

hf_status hfi_reply_fail(const struct redisReply *reply, const char *did_what, const char *server,
                         hf_error *error)
{
    char quoted[224];
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR) {
        (void)hfi_fail(error, HF_INTERNAL, "please report this",
                       "%s: the server gave an answer of the wrong type (%d)", did_what,
                       reply != NULL ? reply->type : 0);
        hfi_fail_server(error, server);
        return HF_INTERNAL;
    }
    const struct hfi_meaning *meaning = hfi_reply_meaning(reply->str, reply->len);
    /* The server repeats an unknown command with its arguments. Leave them out: those of AUTH are a password. */
    const char *arguments = find(reply->str, reply->len, ", with args beginning with");
    size_t size = arguments != NULL ? (size_t)(arguments - reply->str) : reply->len;
    (void)hfi_fail(error, meaning->status, meaning->hint, "%s: %sthe server says %s", did_what,
                   meaning->hint == hfi_no_cluster ? "this is a cluster, " : "", hfi_quote(quoted, sizeof quoted, reply->str, size));
    hfi_fail_server(error, server);
    hfi_fail_retry(error, meaning->retry_ms);
    return meaning->status;
}

bool hfi_reply_is_of_cluster(const char *text, size_t size)
{
    return hfi_reply_meaning(text, size)->hint == hfi_no_cluster;
}

bool hfi_reply_is_withheld(const struct redisReply *error)
{
    static const char *const words[] = {"NOPERM", "ERR unknown command", "ERR unknown subcommand", "ERR Unknown subcommand"};
    bool withheld = false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        withheld = withheld || begins(error->str, error->len, words[i]);
    return withheld;
}

bool hfi_reply_is_master(const struct redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR)
        return hfi_reply_is_withheld(reply); /* the handshake puts up with that too */
    return reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 && reply->element[0]->str != NULL &&
           strcmp(reply->element[0]->str, "master") == 0;
}

bool hfi_reply_info(const struct redisReply *reply, const char *field, char *out, size_t capacity)
{
    size_t size = strlen(field);
    for (const char *line = reply != NULL ? reply->str : NULL; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, field, size) != 0 || line[size] != ':')
            continue;
        (void)snprintf(out, capacity, "%.*s", (int)strcspn(line + size + 1, "\r\n"), line + size + 1);
        return true;
    }
    return false;
}
