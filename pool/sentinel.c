/* SPDX-License-Identifier: MIT */
/* sentinel.c - see sentinel.h. */
#include "pool/sentinel.h"
#include "base/clock.h"
#include "pool/times.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- replies ---- */

const char *hfi_sentinel_field(const struct redisReply *pairs, const char *name)
{
    for (size_t i = 0; i + 1 < pairs->elements; i += 2) {
        const struct redisReply *key = pairs->element[i], *value = pairs->element[i + 1];
        if (key->str != NULL && value->str != NULL && strcmp(key->str, name) == 0)
            return value->str;
    }
    return NULL;
}

/* Decimal digits only. False: something else, or above `most`. */
static bool read_number(const char *text, uint64_t most, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = text != NULL && *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : UINT64_MAX;
    return *number <= most && errno == 0 && *end == 0;
}

/* It will be shown to people, and looked up. */
static bool is_plain(const char *host)
{
    const char *at = host;
    while (*at > ' ' && *at <= '~')
        at++;
    return *at == 0 && at > host;
}

bool hfi_sentinel_is(const struct redisReply *pairs, const char *name, const char *value)
{
    const char *is = hfi_sentinel_field(pairs, name);
    return is != NULL && strcmp(is, value) == 0;
}

bool hfi_sentinel_read_host(const struct redisReply *pairs, struct hfi_named_host *at)
{
    const char *host = hfi_sentinel_field(pairs, "ip");
    uint64_t port;
    if (host == NULL || !is_plain(host) || strlen(host) >= sizeof at->host ||
        !read_number(hfi_sentinel_field(pairs, "port"), 65535, &port) || port == 0)
        return false;
    memcpy(at->host, host, strlen(host) + 1);
    at->port = (int)port;
    return true;
}

enum hfi_sentinel_answer hfi_sentinel_read_master(const struct redisReply *reply, struct hfi_sentinel_says *says)
{
    if (reply->type == REDIS_REPLY_NIL ||
        (reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "No such master") != NULL))
        return HFI_SENTINEL_KNOWS_IT_NOT;
    uint64_t down_after_ms;
    if (reply->type != REDIS_REPLY_ARRAY || !read_number(hfi_sentinel_field(reply, "config-epoch"), INT64_MAX, &says->epoch) ||
        !hfi_sentinel_read_host(reply, &says->primary))
        return HFI_SENTINEL_MAKES_NO_SENSE;
    /* Who leads a failover has the new epoch before it names the new primary. */
    const char *flags = hfi_sentinel_field(reply, "flags");
    if (says->epoch > 0 && flags != NULL && strstr(flags, "failover_in_progress") != NULL)
        says->epoch--;
    says->follows = hfi_sentinel_is(reply, "role-reported", "slave");
    bool is_told = read_number(hfi_sentinel_field(reply, "down-after-milliseconds"), INT32_MAX, &down_after_ms);
    says->down_after_ms = is_told ? (int64_t)down_after_ms : 0;
    uint64_t others;
    says->sentinels = read_number(hfi_sentinel_field(reply, "num-other-sentinels"), 1000, &others) ? (int)others + 1 : 1000;
    return HFI_SENTINEL_SAYS;
}

int hfi_sentinel_read_others(const struct redisReply *reply, struct hfi_other_sentinel *others, int most)
{
    int count = reply->type == REDIS_REPLY_ARRAY ? 0 : -1;
    for (size_t i = 0; count >= 0 && i < reply->elements && count < most; i++) {
        const struct redisReply *one = reply->element[i];
        if (one->type != REDIS_REPLY_ARRAY || !hfi_sentinel_read_host(one, &others[count].at))
            continue;
        const char *id = hfi_sentinel_field(one, "runid");
        (void)snprintf(others[count++].id, sizeof others[0].id, "%s", id != NULL ? id : "");
    }
    return count;
}

bool hfi_sentinel_is_about(const char *message, size_t size, const char *service)
{
    size_t length = strlen(service);
    return size > length && memcmp(message, service, length) == 0 && message[length] == ' ';
}

/* ---- the council ---- */

bool hfi_sentinel_is_same(const struct hfi_named_host *a, const struct hfi_named_host *b)
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

bool hfi_council_counts(const struct hfi_council *council, int which)
{
    bool is_named = council->of[which].testimony == HFI_TESTIMONY_NAMED, is_listed = !council->of[which].is_found || is_named;
    const char *id = council->of[which].id;
    for (int i = 0; i < council->count; i++) {
        bool names = council->of[i].testimony == HFI_TESTIMONY_NAMED;
        bool same = i != which && *id != 0 && strcmp(council->of[i].id, id) == 0;
        if (same && (names == is_named ? i < which : names))
            return false;
        is_listed = is_listed || (names && (council->of[i].lists >> which & 1) != 0);
    }
    return is_listed;
}

int hfi_council_spare(const struct hfi_council *council)
{
    int i = council->count - 1;
    while (i >= 0 && (!council->of[i].is_found || council->of[i].testimony != HFI_TESTIMONY_SILENT || hfi_council_counts(council, i)))
        i--;
    return i;
}

void hfi_council_give(struct hfi_council *council, int which)
{
    memset(&council->of[which], 0, sizeof council->of[which]);
    council->of[which].is_found = true;
    for (int i = 0; i < council->count; i++)
        council->of[i].lists &= ~(UINT32_C(1) << which);
}

int hfi_council_known(struct hfi_council *council)
{
    int named = 0, answering = 0, most = 0;
    for (int i = 0; i < council->count; i++) {
        named += !council->of[i].is_found && hfi_council_counts(council, i);
        if (council->of[i].testimony != HFI_TESTIMONY_NAMED || !hfi_council_counts(council, i))
            continue;
        answering++;
        most = council->of[i].says.sentinels > most ? council->of[i].says.sentinels : most;
    }
    int limit = council->known > HFI_SENTINELS_MOST ? council->count : council->known; /* more than can be asked is nonsense mostly */
    if (most > council->known || 2 * answering > limit)
        council->known = most;
    return named > council->known ? named : council->known; /* not kept: of two of the URI it may turn out that they are one */
}

static int count(const struct hfi_council *council, enum hfi_testimony what)
{
    int sum = 0;
    for (int i = 0; i < council->count; i++)
        sum += council->of[i].testimony == what && hfi_council_counts(council, i);
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

/* All of them have answered, and name the same one. */
static bool agree(const struct hfi_council *council, const struct hfi_sentinel_says *best)
{
    for (int i = 0; i < council->count; i++)
        if (hfi_council_counts(council, i) && (council->of[i].testimony != HFI_TESTIMONY_NAMED ||
                                               !hfi_sentinel_is_same(&council->of[i].says.primary, &best->primary)))
            return false;
    return true;
}

static enum hfi_verdict decide(struct hfi_council *council, const struct hfi_sentinel_says *says)
{
    bool moves = !council->has_decided || !hfi_sentinel_is_same(&council->decided.primary, &says->primary);
    council->has_decided = true;
    council->decided = *says;
    return moves ? HFI_VERDICT_MOVE : HFI_VERDICT_KEEP;
}

enum hfi_verdict hfi_council_judge(struct hfi_council *council, int64_t now_ns, int64_t *again_ns)
{
    const struct hfi_sentinel_says *best = newest(council);
    int silent = count(council, HFI_TESTIMONY_SILENT), open = count(council, HFI_TESTIMONY_NONE);
    *again_ns = HFI_NEVER;
    if (council->has_decided) /* what all agree on is their newest, though they have begun to count anew */
        return best != NULL && (best->epoch > council->decided.epoch || agree(council, best)) ? decide(council, best) : HFI_VERDICT_KEEP;
    if (best != NULL && ((open == 0 && silent == 0) || now_ns >= council->first_ns + HFI_PATIENCE_NS))
        return decide(council, best);
    if (best != NULL)
        *again_ns = council->first_ns + HFI_PATIENCE_NS;
    if (best != NULL || open > 0)
        return HFI_VERDICT_WAIT;
    return silent == 0 ? HFI_VERDICT_NO_SERVICE : HFI_VERDICT_NOBODY;
}
