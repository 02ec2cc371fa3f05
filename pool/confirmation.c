/* SPDX-License-Identifier: MIT */
/* confirmation.c - see confirmation.h. */
#include "pool/confirmation.h"
#include "base/clock.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int hfi_confirmation_lacks(const struct redisReply *wait, int wanted)
{
    long long had = wait->type == REDIS_REPLY_INTEGER && wait->integer > 0 ? wait->integer : 0;
    return had < wanted ? wanted - (int)had : 0;
}

/* The list of its replicas; NULL: it is no primary's answer. */
static const struct redisReply *replicas_of(const struct redisReply *role)
{
    bool is_primary = role->type == REDIS_REPLY_ARRAY && role->elements >= 3 && role->element[0]->str != NULL &&
                      strcmp(role->element[0]->str, "master") == 0 && role->element[2]->type == REDIS_REPLY_ARRAY;
    return is_primary ? role->element[2] : NULL;
}

int hfi_confirmation_connected(const struct redisReply *role)
{
    const struct redisReply *lines = replicas_of(role);
    return lines != NULL ? (int)lines->elements : 0;
}

int hfi_confirmation_count(const struct hfi_replicas *needed, int connected)
{
    int count = needed != NULL && needed->count > 0 ? needed->count : 1;
    return count > connected ? count : connected;
}

int64_t hfi_confirmation_offset(const struct redisReply *role)
{
    bool says = replicas_of(role) != NULL && role->element[1]->type == REDIS_REPLY_INTEGER && role->element[1]->integer >= 0;
    return says ? role->element[1]->integer : -1;
}

static bool is_text(const struct redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING && reply->str[0] != 0;
}

/* The offset of the replica in ROLE's line about one: host, port, offset; -1: the line is about another. */
static int64_t offset_of(const struct redisReply *line, const struct hfi_named_host *replica)
{
    if (line->type != REDIS_REPLY_ARRAY || line->elements < 3 || !is_text(line->element[0]) || !is_text(line->element[1]) ||
        !is_text(line->element[2]))
        return -1;
    bool is_it = strcmp(line->element[0]->str, replica->host) == 0 && strtol(line->element[1]->str, NULL, 10) == replica->port;
    return is_it ? strtoll(line->element[2]->str, NULL, 10) : -1;
}

int hfi_confirmation_missing(const struct redisReply *role, int64_t offset, const struct hfi_replicas *replicas)
{
    const struct redisReply *lines = replicas_of(role);
    int missing = 0;
    for (int i = 0; i < replicas->count; i++) {
        bool has_it = false;
        for (size_t line = 0; lines != NULL && line < lines->elements; line++)
            has_it = has_it || (offset >= 0 && offset_of(lines->element[line], &replicas->list[i]) >= offset);
        missing += !has_it;
    }
    return missing;
}

int64_t hfi_confirmation_until_ns(int64_t now_ns, int64_t first_ns, int64_t command_ms, int64_t replicas_ms)
{
    int64_t its_ns = hfi_after_ms(now_ns, command_ms + replicas_ms), of_call_ns = hfi_after_ms(first_ns, 3 * replicas_ms);
    return its_ns < of_call_ns ? its_ns : of_call_ns;
}
