/* SPDX-License-Identifier: MIT */
/* promotable.c - see promotable.h. */
#include "pool/promotable.h"
#include "base/clock.h"
#include "pool/times.h"

#include <hiredis/hiredis.h>
#include <string.h>

static bool has_flag(const struct redisReply *pairs, const char *flag)
{
    const char *flags = hfi_sentinel_field(pairs, "flags");
    return flags != NULL && strstr(flags, flag) != NULL;
}

/* A sentinel calls a server that it has not asked yet a replica, of the host "?". */
static bool follows(const struct redisReply *pairs)
{
    return hfi_sentinel_is(pairs, "role-reported", "slave") && hfi_sentinel_field(pairs, "master-host") != NULL &&
           !hfi_sentinel_is(pairs, "master-host", "?");
}

/* False: it makes no sense, or lists the one that was named, for it is another one's by now. */
static bool read_list(const struct redisReply *reply, const struct hfi_named_host *named, struct hfi_said_replicas *said)
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
        if (pairs->type != REDIS_REPLY_ARRAY || !hfi_sentinel_read_host(pairs, &one->at) || hfi_sentinel_is_same(&one->at, named))
            return false;
        one->is_out = has_flag(pairs, "s_down") || has_flag(pairs, "o_down") || has_flag(pairs, "disconnected") ||
                      hfi_sentinel_is(pairs, "slave-priority", "0");
        one->follows = follows(pairs);
        said->count++;
    }
    return true;
}

void hfi_promotable_heard(const struct hfi_promotable *promotable, const struct hfi_sentinel_says *says,
                          const struct redisReply *reply, int64_t asked_ns, struct hfi_said_replicas *said)
{
    bool has_list = says != NULL && reply != NULL, is_of_it = has_list && hfi_sentinel_is_same(&says->primary, &promotable->primary);
    bool is_former = has_list && !is_of_it && hfi_sentinel_is_same(&says->primary, &promotable->former);
    said->asked_ns = is_of_it ? asked_ns : 0;
    said->named_former_ns = is_former ? asked_ns : 0;
    if (!is_of_it && !is_former)
        return;
    said->is_given = read_list(reply, &says->primary, said);
    said->listed_ns = asked_ns;
    if (is_former && said->count >= 0) /* it may follow by now, and may be in no other list */
        said->list[said->count++] = (struct hfi_said_replica){.at = says->primary, .follows = says->follows};
}

void hfi_promotable_moved(struct hfi_promotable *promotable, const struct hfi_named_host *former, const struct hfi_named_host *primary,
                          const struct hfi_said_replicas *const *said, int count, int known, int64_t now_ns)
{
    int heard = 0;
    for (int i = 0; i < count; i++)
        heard += said[i] != NULL && said[i]->asked_ns != 0 && now_ns - said[i]->asked_ns < HFI_RECENT_NS;
    promotable->primary = *primary;
    promotable->former = *former;
    if (2 * heard <= known)
        promotable->former.port = 0;
    promotable->heard_ns = now_ns;
    promotable->needed.count = 0; /* until it is known who follows the new one */
    promotable->needed.until_ns = HFI_NEVER;
    promotable->is_known = promotable->leaves_out = false;
}

/* Where the sentinel speaks of it; NULL: nowhere. */
static const struct hfi_said_replica *find(const struct hfi_said_replicas *said, const struct hfi_named_host *at)
{
    for (int i = 0; said != NULL && i < said->count; i++)
        if (hfi_sentinel_is_same(&said->list[i].at, at))
            return &said->list[i];
    return NULL;
}

static bool is_fresh(int64_t asked_ns, int64_t now_ns)
{
    return asked_ns != 0 && now_ns - asked_ns < HFI_FRESH_NS;
}

/* The newest first. Returns how many there are then. */
static int add_vote(int64_t *asked_ns, int count, int64_t one_ns)
{
    int place = count;
    for (; place > 0 && asked_ns[place - 1] < one_ns; place--)
        asked_ns[place] = asked_ns[place - 1];
    asked_ns[place] = one_ns;
    return count + 1;
}

/* Each counts for `length_ns`. *until_ns: then too few of these votes do. */
static bool is_majority(const int64_t *asked_ns, int votes, int known, int64_t length_ns, int64_t *until_ns)
{
    if (2 * votes <= known)
        return false;
    *until_ns = asked_ns[known / 2] + length_ns;
    return true;
}

/* By sentinels that have answered lately: none would choose it, and more than half of all would not. */
static bool is_voted_out(const struct hfi_said_replicas *const *said, int count, int known, const struct hfi_named_host *at,
                         int64_t now_ns, int64_t *until_ns)
{
    int64_t asked_ns[HFI_SENTINELS_MOST]; /* of those that would not */
    int out = 0;
    for (int i = 0; i < count; i++) {
        if (said[i] == NULL || !is_fresh(said[i]->asked_ns, now_ns))
            continue;
        const struct hfi_said_replica *one = find(said[i], at);
        if (one != NULL && !one->is_out)
            return false;
        out = add_vote(asked_ns, out, said[i]->asked_ns);
    }
    return is_majority(asked_ns, out, known, HFI_FRESH_NS, until_ns);
}

/* Whoever does not reach the sentinels would not learn that it follows by now, and may be promoted again. One that still names
 * it as the primary cannot choose it. */
static bool would_be_seen(const struct hfi_said_replicas *const *said, int count, int known, int64_t now_ns, int64_t *until_ns)
{
    int64_t asked_ns[HFI_SENTINELS_MOST];
    int answers = 0;
    for (int i = 0; i < count; i++) {
        int64_t one_ns = said[i] == NULL ? 0 : said[i]->asked_ns != 0 ? said[i]->asked_ns : said[i]->named_former_ns;
        if (is_fresh(one_ns, now_ns))
            answers = add_vote(asked_ns, answers, one_ns);
    }
    return is_majority(asked_ns, answers, known, HFI_FRESH_NS, until_ns);
}

/* Who has not heard most of them for so long may have missed that it has followed, and is the primary again. */
static void doubt_former(struct hfi_promotable *promotable, const struct hfi_said_replicas *const *said, int count, int known,
                         int64_t now_ns)
{
    int64_t until_ns;
    if (promotable->former.port == 0 || !would_be_seen(said, count, known, now_ns, &until_ns))
        return;
    int64_t heard_ns = until_ns - HFI_FRESH_NS;
    if (heard_ns - promotable->heard_ns >= HFI_RECENT_NS)
        promotable->former.port = 0;
    else if (heard_ns > promotable->heard_ns)
        promotable->heard_ns = heard_ns;
}

static bool is_seen_to_follow(const struct hfi_said_replicas *const *said, int count, const struct hfi_named_host *at)
{
    bool follows = false;
    for (int i = 0; i < count; i++) {
        const struct hfi_said_replica *one = find(said[i], at);
        follows = follows || (one != NULL && one->follows);
    }
    return follows;
}

static bool has(const struct hfi_replicas *replicas, const struct hfi_named_host *at)
{
    for (int i = 0; i < replicas->count; i++)
        if (hfi_sentinel_is_same(&replicas->list[i], at))
            return true;
    return false;
}

/* True: the replica need not confirm. */
static bool is_left_out(struct hfi_promotable *promotable, const struct hfi_said_replicas *const *said, int count, int known,
                        const struct hfi_named_host *at, int64_t now_ns, int64_t *until_ns)
{
    int64_t its_until_ns = HFI_NEVER;
    bool is_former = promotable->former.port != 0 && hfi_sentinel_is_same(at, &promotable->former);
    if (is_former && is_seen_to_follow(said, count, at)) {
        is_former = false; /* from now on it is one like the others */
        promotable->former.port = 0;
    }
    bool is_out = (is_former && would_be_seen(said, count, known, now_ns, &its_until_ns)) ||
                  is_voted_out(said, count, known, at, now_ns, &its_until_ns);
    if (its_until_ns < *until_ns)
        *until_ns = its_until_ns;
    return is_out;
}

/* Lately, and by most. *until_ns: earlier, if they are too old earlier. */
static bool is_known_who_there_is(const struct hfi_said_replicas *const *said, int count, int known, int64_t now_ns, int64_t *until_ns)
{
    int64_t listed_ns[HFI_SENTINELS_MOST], its_until_ns = HFI_NEVER;
    int lists = 0;
    for (int i = 0; i < count; i++)
        if (said[i] != NULL && now_ns - said[i]->listed_ns < HFI_LISTED_NS)
            lists = add_vote(listed_ns, lists, said[i]->listed_ns);
    bool is_known = is_majority(listed_ns, lists, known, HFI_LISTED_NS, &its_until_ns);
    if (its_until_ns < *until_ns)
        *until_ns = its_until_ns;
    return is_known;
}

bool hfi_promotable_judge(struct hfi_promotable *promotable, const struct hfi_said_replicas *const *said, int count, int known,
                          int64_t now_ns)
{
    struct hfi_replicas needed = {.count = 0, .until_ns = HFI_NEVER};
    bool overflows = false;
    doubt_former(promotable, said, count, known, now_ns);
    for (int i = 0; i < count; i++) {
        overflows = overflows || (said[i] != NULL && said[i]->count < 0);
        for (int j = 0; said[i] != NULL && j < said[i]->count; j++) {
            const struct hfi_named_host *at = &said[i]->list[j].at;
            if (hfi_sentinel_is_same(at, &promotable->primary) || has(&needed, at) ||
                is_left_out(promotable, said, count, known, at, now_ns, &needed.until_ns))
                continue;
            overflows = overflows || needed.count == HFI_REPLICAS_MOST;
            if (!overflows)
                needed.list[needed.count++] = *at;
        }
    }
    promotable->leaves_out = needed.until_ns != HFI_NEVER;
    bool is_known = is_known_who_there_is(said, count, known, now_ns, &needed.until_ns);
    promotable->is_known = is_known || overflows;
    if (!is_known || overflows)
        needed.count = 0; /* who is not listed could be promoted: nothing is confirmed */
    bool same = needed.count == promotable->needed.count && needed.until_ns == promotable->needed.until_ns;
    for (int i = 0; same && i < needed.count; i++)
        same = has(&promotable->needed, &needed.list[i]);
    promotable->needed = needed;
    return !same;
}
