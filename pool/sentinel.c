/* SPDX-License-Identifier: MIT */
/* sentinel.c - see sentinel.h. */
#include "pool/sentinel.h"
#include "base/clock.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (100 * HFI_MS) /* from the first answer to the decision */

/* ---- replies ---- */

/* The value behind `name` in a list of names and values; NULL: it is not there. */
static const char *field(const struct redisReply *pairs, const char *name)
{
    for (size_t i = 0; i + 1 < pairs->elements; i += 2) {
        const struct redisReply *key = pairs->element[i], *value = pairs->element[i + 1];
        if (key->str != NULL && value->str != NULL && strcmp(key->str, name) == 0)
            return value->str;
    }
    return NULL;
}

static bool read_host(const struct redisReply *pairs, struct hfi_named_host *at)
{
    const char *host = field(pairs, "ip"), *port = field(pairs, "port");
    if (host == NULL || *host == 0 || strlen(host) >= sizeof at->host || port == NULL)
        return false;
    memcpy(at->host, host, strlen(host) + 1);
    long number = strtol(port, NULL, 10);
    at->port = number > 0 && number < 65536 ? (int)number : 0;
    return at->port != 0;
}

enum hfi_sentinel_answer hfi_sentinel_read_master(const struct redisReply *reply, struct hfi_sentinel_says *says)
{
    if (reply->type == REDIS_REPLY_NIL ||
        (reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "No such master") != NULL))
        return HFI_SENTINEL_KNOWS_IT_NOT;
    const char *epoch = reply->type == REDIS_REPLY_ARRAY ? field(reply, "config-epoch") : NULL;
    if (epoch == NULL || !read_host(reply, &says->primary))
        return HFI_SENTINEL_MAKES_NO_SENSE;
    const char *down_after = field(reply, "down-after-milliseconds");
    says->epoch = strtoull(epoch, NULL, 10);
    says->down_after_ms = down_after != NULL ? strtoll(down_after, NULL, 10) : 0;
    return HFI_SENTINEL_SAYS;
}

int hfi_sentinel_read_others(const struct redisReply *reply, struct hfi_named_host *hosts, int most)
{
    int count = 0;
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements && count < most; i++)
        if (reply->element[i]->type == REDIS_REPLY_ARRAY && read_host(reply->element[i], &hosts[count]))
            count++;
    return count;
}

bool hfi_sentinel_is_about(const char *message, size_t size, const char *service)
{
    size_t length = strlen(service);
    return size > length && memcmp(message, service, length) == 0 && message[length] == ' ';
}

/* ---- the council ---- */

static bool is_same(const struct hfi_named_host *a, const struct hfi_named_host *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

void hfi_council_said(struct hfi_council *council, int which, const struct hfi_sentinel_says *says, int64_t now_ns)
{
    council->of[which].testimony = HFI_TESTIMONY_NAMED;
    council->of[which].says = *says;
    if (council->first_ns == 0)
        council->first_ns = now_ns;
}

void hfi_council_note(struct hfi_council *council, int which, enum hfi_testimony what)
{
    council->of[which].testimony = what;
}

static int count(const struct hfi_council *council, enum hfi_testimony what)
{
    int sum = 0;
    for (int i = 0; i < council->count; i++)
        sum += council->of[i].testimony == what;
    return sum;
}

/* NULL: nobody names one. */
static const struct hfi_sentinel_says *newest(const struct hfi_council *council)
{
    const struct hfi_sentinel_says *best = NULL;
    for (int i = 0; i < council->count; i++)
        if (council->of[i].testimony == HFI_TESTIMONY_NAMED && (best == NULL || council->of[i].says.epoch > best->epoch))
            best = &council->of[i].says;
    return best;
}

static bool is_named(const struct hfi_council *council, const struct hfi_named_host *at)
{
    for (int i = 0; i < council->count; i++)
        if (council->of[i].testimony == HFI_TESTIMONY_NAMED && is_same(&council->of[i].says.primary, at))
            return true;
    return false;
}

static enum hfi_verdict decide(struct hfi_council *council, const struct hfi_sentinel_says *says)
{
    bool moves = !council->has_decided || !is_same(&council->decided.primary, &says->primary);
    council->has_decided = true;
    council->decided = *says;
    return moves ? HFI_VERDICT_MOVE : HFI_VERDICT_KEEP;
}

enum hfi_verdict hfi_council_judge(struct hfi_council *council, int64_t now_ns, int64_t *again_ns)
{
    const struct hfi_sentinel_says *best = newest(council);
    int open = count(council, HFI_TESTIMONY_NONE);
    *again_ns = HFI_NEVER;
    if (council->has_decided) {
        bool is_newer = best != NULL && best->epoch > council->decided.epoch;
        bool is_dropped = best != NULL && open == 0 && !is_named(council, &council->decided.primary);
        return is_newer || is_dropped ? decide(council, best) : HFI_VERDICT_KEEP;
    }
    if (best != NULL && (open == 0 || now_ns >= council->first_ns + PATIENCE_NS))
        return decide(council, best);
    if (best != NULL)
        *again_ns = council->first_ns + PATIENCE_NS;
    if (open > 0)
        return HFI_VERDICT_WAIT;
    return count(council, HFI_TESTIMONY_NO_SUCH) > 0 ? HFI_VERDICT_NO_SERVICE : HFI_VERDICT_NOBODY;
}
