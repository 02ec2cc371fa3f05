/* SPDX-License-Identifier: MIT */
/* promotable.c - see promotable.h. */
#include "pool/promotable.h"

#include <hiredis/hiredis.h>
#include <string.h>

static bool has_flag(const struct redisReply *pairs, const char *flag)
{
    const char *flags = hfi_sentinel_field(pairs, "flags");
    return flags != NULL && strstr(flags, flag) != NULL;
}

static bool is(const struct redisReply *pairs, const char *name, const char *value)
{
    const char *is = hfi_sentinel_field(pairs, name);
    return is != NULL && strcmp(is, value) == 0;
}

/* A sentinel calls a server that it has not asked yet a replica, of the host "?". */
static bool follows(const struct redisReply *pairs)
{
    return is(pairs, "role-reported", "slave") && hfi_sentinel_field(pairs, "master-host") != NULL &&
           !is(pairs, "master-host", "?");
}

bool hfi_promotable_read(const struct redisReply *reply, struct hfi_said_replicas *said)
{
    said->count = 0;
    if (reply->type != REDIS_REPLY_ARRAY)
        return false;
    if (reply->elements > HFI_REPLICAS_MOST) {
        said->count = -1;
        return true;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        const struct redisReply *pairs = reply->element[i];
        struct hfi_said_replica *one = &said->list[said->count];
        if (pairs->type != REDIS_REPLY_ARRAY || !hfi_sentinel_read_host(pairs, &one->at))
            return false;
        one->is_out = has_flag(pairs, "s_down") || has_flag(pairs, "o_down") || has_flag(pairs, "disconnected") ||
                      is(pairs, "slave-priority", "0");
        one->follows = follows(pairs);
        said->count++;
    }
    return true;
}

void hfi_promotable_doubt(struct hfi_said_replicas *said)
{
    for (int i = 0; i < said->count; i++)
        said->list[i].is_out = false;
}

void hfi_promotable_moved(struct hfi_promotable *promotable, const struct hfi_named_host *former)
{
    promotable->former = *former;
    promotable->needed.count = 0; /* until it is known who follows the new one */
}

/* Where the sentinel speaks of it; NULL: nowhere. */
static const struct hfi_said_replica *find(const struct hfi_said_replicas *said, const struct hfi_named_host *at)
{
    for (int i = 0; said != NULL && i < said->count; i++)
        if (hfi_sentinel_is_same(&said->list[i].at, at))
            return &said->list[i];
    return NULL;
}

struct votes {
    int out;     /* sentinels that would not choose it */
    bool follows;
};

static struct votes count_votes(const struct hfi_said_replicas *const *said, int count, const struct hfi_named_host *at)
{
    struct votes votes = {0, false};
    for (int i = 0; i < count; i++) {
        const struct hfi_said_replica *one = find(said[i], at);
        votes.out += one != NULL && one->is_out;
        votes.follows = votes.follows || (one != NULL && one->follows);
    }
    return votes;
}

static bool has(const struct hfi_replicas *replicas, const struct hfi_named_host *at)
{
    for (int i = 0; i < replicas->count; i++)
        if (hfi_sentinel_is_same(&replicas->list[i], at))
            return true;
    return false;
}

bool hfi_promotable_judge(struct hfi_promotable *promotable, const struct hfi_said_replicas *const *said, int count, int known)
{
    struct hfi_replicas needed = {.count = 0};
    bool overflows = false;
    for (int i = 0; i < count; i++) {
        overflows = overflows || (said[i] != NULL && said[i]->count < 0);
        for (int j = 0; said[i] != NULL && j < said[i]->count; j++) {
            const struct hfi_named_host *at = &said[i]->list[j].at;
            struct votes votes = count_votes(said, count, at);
            bool is_former = promotable->former.port != 0 && hfi_sentinel_is_same(at, &promotable->former);
            if (is_former && votes.follows)
                promotable->former.port = 0; /* from now on it is one like the others */
            else if (is_former)
                continue;
            if (2 * votes.out > known || has(&needed, at))
                continue;
            overflows = overflows || needed.count == HFI_REPLICAS_MOST;
            if (!overflows)
                needed.list[needed.count++] = *at;
        }
    }
    if (overflows) /* who is not listed could be promoted: nothing is confirmed */
        needed.count = 0;
    bool same = needed.count == promotable->needed.count;
    for (int i = 0; same && i < needed.count; i++)
        same = has(&promotable->needed, &needed.list[i]);
    promotable->needed = needed;
    return !same;
}
