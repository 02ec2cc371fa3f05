/* SPDX-License-Identifier: MIT */
/* dialect.c - see dialect.h: one row a dialect. */
#include "core/protocol/dialect.h"
#include "core/protocol/key.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TOKENS 1024

bool hfi_dialect_is_nil(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_NIL;
}

/* Who counts down leaves the key. */
static bool is_zero(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_NIL || (reply->type == REDIS_REPLY_STRING && strtoll(reply->str, NULL, 10) <= 0);
}

static bool is_out(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer == 0;
}

/* GET of a list, which is there again; there is none while all tokens are out. */
static bool is_list(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && !hfi_reply_is_withheld(reply);
}

/* key_template: %s is the name; a leading ~ stands for the parameter and a colon. parameter NULL: it takes none. */
static const struct kind {
    const char *name;
    enum hfi_mark mark;
    const char *key_template, *parameter, *holds, *key_events;
    const char *side; /* what is no string must not share a queue with what is one, of the same key */
    bool (*is_late)(const redisReply *reply);
} kinds[] = {
    {"warlock", HFI_MARK_STRING, "%s:lock", NULL, "string", "", NULL, hfi_dialect_is_nil},
    {"redlock", HFI_MARK_STRING, "%s", NULL, "string", "", NULL, hfi_dialect_is_nil},
    {"redis-semaphore", HFI_MARK_STRING, "mutex:%s", NULL, "string", "", NULL, hfi_dialect_is_nil},
    {"redis-py", HFI_MARK_STRING, "%s", NULL, "string", "", NULL, hfi_dialect_is_nil},
    {"shedlock", HFI_MARK_STRING, "job-lock:default:%s", NULL, "string", "", NULL, hfi_dialect_is_nil},
    {"rueidislock", HFI_MARK_STRING, "rueidislock:0:%s", NULL, "string", "", NULL, hfi_dialect_is_nil},
    {"python-redis-lock", HFI_MARK_SIGNAL, "lock:%s", NULL, "string", "", NULL, hfi_dialect_is_nil},
    {"spring", HFI_MARK_SPRING, "~%s", "locks", "string", "", NULL, hfi_dialect_is_nil},
    {"redisson", HFI_MARK_REDISSON, "%s", NULL, "hash", "", "hash:", hfi_dialect_is_nil},
    {"setnx", HFI_MARK_SETNX, "%s", NULL, "string", "", NULL, hfi_dialect_is_nil},
    {"counter", HFI_MARK_COUNTER, "%s", NULL, "count, 0 or more", "$", "count:", is_zero},
    {"set", HFI_MARK_SET, "~%s", "locks", "set", "s", "set", is_out},
    {"tokens", HFI_MARK_TOKENS, "SEMAPHORE:%s:AVAILABLE", "1", "list with its SEMAPHORE: keys", "l", "list:", is_list},
};

static const struct kind *kind_of(const char *text, size_t size)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strlen(kinds[i].name) == size && memcmp(kinds[i].name, text, size) == 0)
            return &kinds[i];
    return NULL;
}

static hf_status check(const struct kind *kind, const char *text, const char *parameter, const char *key_template, hf_error *error)
{
    char quoted[80];
    if (kind == NULL)
        return hfi_fail(error, HF_INVALID, "docs/interop.md has all of them", "there is no dialect %s",
                        hfi_quote(quoted, sizeof quoted, text, strlen(text)));
    if (parameter != NULL && kind->parameter == NULL)
        return hfi_fail(error, HF_INVALID, "leave out what is behind the colon", "the dialect %s takes no parameter", kind->name);
    if (parameter != NULL && (*parameter == 0 || strlen(parameter) > 256 || strchr(parameter, '%') != NULL))
        return hfi_fail(error, HF_INVALID, "1 to 256 bytes, no %", "the parameter of the dialect %s is not good", kind->name);
    if (parameter != NULL && kind->mark == HFI_MARK_TOKENS) {
        char *end;
        long tokens = strtol(parameter, &end, 10);
        if (*end != 0 || tokens < 1 || tokens > MOST_TOKENS || *parameter == ' ' || *parameter == '+')
            return hfi_fail(error, HF_INVALID, "tokens:3, say", "the dialect tokens takes a number from 1 to %d", MOST_TOKENS);
    }
    if (key_template != NULL && kind->mark == HFI_MARK_SET)
        return hfi_fail(error, HF_INVALID, "name the set: set:KEY", "the dialect set has no key_template: names are members of one key");
    return HF_OK;
}

hf_status hfi_dialect_make(const char *text, const char *key_template, struct hfi_dialect **made, hf_error *error)
{
    const char *colon = strchr(text, ':');
    const char *given = colon != NULL ? colon + 1 : NULL;
    const struct kind *kind = kind_of(text, colon != NULL ? (size_t)(colon - text) : strlen(text));
    hf_status status = check(kind, text, given, key_template, error);
    if (status != HF_OK)
        return status;
    const char *parameter = given != NULL ? given : kind->parameter != NULL ? kind->parameter : "";
    const char *template = key_template != NULL ? key_template : kind->key_template;
    bool led = template[0] == '~' && key_template == NULL;
    size_t sizes[] = {strlen(text) + 1, strlen(parameter) + 1, strlen(template) + strlen(parameter) + 2};
    struct hfi_dialect *dialect = malloc(sizeof *dialect + sizes[0] + sizes[1] + sizes[2]);
    if (dialect == NULL)
        return hfi_fail(error, HF_NOMEM, "", "no memory for a dialect");
    char *at = (char *)(dialect + 1);
    *dialect = (struct hfi_dialect){.text = memcpy(at, text, sizes[0]),
                                    .parameter = memcpy(at + sizes[0], parameter, sizes[1]),
                                    .key_template = at + sizes[0] + sizes[1],
                                    .holds = kind->holds,
                                    .key_events = kind->key_events,
                                    .mark = kind->mark,
                                    .is_late = kind->is_late,
                                    .is_member = kind->mark == HFI_MARK_SET};
    if (kind->mark == HFI_MARK_SET) /* "a" with the name "b:c" is not "a:b" with "c" */
        (void)snprintf(dialect->side, sizeof dialect->side, "set%u:", (unsigned)strlen(parameter));
    else if (kind->side != NULL)
        (void)snprintf(dialect->side, sizeof dialect->side, "%s", kind->side);
    (void)snprintf(at + sizes[0] + sizes[1], sizes[2], "%s%s%s", led ? parameter : "", led ? ":" : "", template + led);
    *made = dialect;
    return HF_OK;
}
