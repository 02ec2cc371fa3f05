/* SPDX-License-Identifier: MIT */
/* entry.c - the decisions of a lock name inside one process; see entry.h. Calls lease.c and the dice, nothing else. */
#include "core/entry.h"
#include "base/random.h"
#include "core/fence.h"

#include <stdatomic.h>
#include <string.h>

#define TIMED_POSITIONS 16 /* re-check when the holder's key ends, 10 ms apart */

void hfi_actions_init(struct hfi_actions *actions)
{
    actions->count = 0;
    hfi_list_init(&actions->woken);
}

/* The worst case of one happening is a loss with a re-ask: five. An overflow would be a bug of this file. */
static struct hfi_action *act(struct hfi_actions *actions, enum hfi_action_kind kind)
{
    struct hfi_action *action = &actions->at[actions->count < HFI_ACTIONS_MOST ? actions->count++ : HFI_ACTIONS_MOST - 1];
    *action = (struct hfi_action){.kind = kind};
    return action;
}

void hfi_entry_init(struct hfi_entry *entry, const struct hfi_entry_rules *rules, uint64_t seed)
{
    memset(entry, 0, sizeof *entry);
    hfi_list_init(&entry->waiters);
    entry->rules = rules;
    entry->ask_at = entry->linger_end = HFI_NEVER;
    entry->tried_at = -1000 * HFI_MS;
    entry->dice = seed;
}

bool hfi_entry_is_idle(const struct hfi_entry *entry)
{
    return hfi_list_is_empty(&entry->waiters) && entry->remote == HFI_NOTHING && !entry->asking;
}

static struct hfi_waiter *head_of(const struct hfi_entry *entry)
{
    return hfi_list_is_empty(&entry->waiters) ? NULL : hfi_of(entry->waiters.next, struct hfi_waiter, link);
}

static void decide(struct hfi_waiter *waiter, enum hfi_verdict verdict, hf_status status, struct hfi_actions *actions)
{
    waiter->verdict = verdict;
    waiter->status = status;
    hfi_list_remove(&waiter->link);
    hfi_list_append(&actions->woken, &waiter->link);
}

/* Those who ask once, or everybody. */
static void refuse(struct hfi_entry *entry, hf_status status, bool everybody, struct hfi_actions *actions)
{
    for (struct hfi_list *at = entry->waiters.next, *next; at != &entry->waiters; at = next) {
        struct hfi_waiter *waiter = hfi_of(at, struct hfi_waiter, link);
        next = at->next;
        if (waiter->once || everybody)
            decide(waiter, HFI_REFUSED, status, actions);
    }
}

static void refuse_once(struct hfi_entry *entry, hf_status status, struct hfi_actions *actions)
{
    refuse(entry, status, false, actions);
}

int64_t hfi_recheck_ms(int64_t position)
{
    return position < 64 ? 400 : 1000;
}

static int64_t recheck_ms(const struct hfi_entry *entry)
{
    return atomic_load_explicit(&entry->rules->many_names, memory_order_relaxed) ? 1000 : hfi_recheck_ms(entry->position);
}

static void ask_later(struct hfi_entry *entry, int64_t now)
{
    entry->ask_at = now + hfi_jitter(&entry->dice, recheck_ms(entry) * HFI_MS, 0.1);
}

static void unwatch(struct hfi_entry *entry, struct hfi_actions *actions)
{
    if (entry->watching)
        act(actions, HFI_WATCH_FOREIGN)->fresh = false;
    entry->watching = false;
}

/* The token is of no use any more; the next question starts with a fresh one. */
static void forget_token(struct hfi_entry *entry, struct hfi_actions *actions)
{
    unwatch(entry, actions);
    entry->remote = HFI_NOTHING;
    entry->asking = false;
    entry->claim_wanted = false;
    entry->is_held_here = false;
    entry->fencing = false;
    entry->more_asked = false;
    entry->wanted = false;
    entry->late = 0;
    entry->bad_fences = 0;
    entry->ticket = entry->position = 0;
    entry->ask_at = entry->linger_end = HFI_NEVER;
    entry->spare = entry->spare_end = 0;
    memset(entry->echoes, 0, sizeof entry->echoes);
}

static void ask(struct hfi_entry *entry, struct hfi_actions *actions)
{
    const struct hfi_waiter *head = head_of(entry);
    bool fresh = entry->remote == HFI_NOTHING;
    if (head == NULL)
        return;
    if (fresh)
        entry->remote = HFI_ASKING;
    entry->asking = true;
    entry->claim_wanted = false;
    entry->ask_at = HFI_NEVER;
    enum hfi_action_kind kind = head->once ? HFI_SEND_TRY : HFI_SEND_WAIT;
    if (fresh && entry->rules->native && (head->once || !entry->contended))
        kind = HFI_SEND_NATIVE;
    act(actions, kind)->fresh = fresh;
}

/* What is held goes back to the server; whoever waits here stands in its queue like anybody else. */
static void give_back(struct hfi_entry *entry, struct hfi_actions *actions)
{
    entry->contended = entry->wanted;
    act(actions, HFI_GIVE_BACK);
    forget_token(entry, actions);
    ask(entry, actions);
}

static void close_token(struct hfi_entry *entry, struct hfi_actions *actions)
{
    act(actions, HFI_CLOSE_TOKEN);
    forget_token(entry, actions);
}

/* A lease for the oldest waiter. Half a block before its end another one is asked for (P8). */
static void give(struct hfi_entry *entry, struct hfi_actions *actions)
{
    struct hfi_waiter *waiter = head_of(entry);
    if (entry->fence == entry->fence_end) {
        entry->fence = entry->spare - 1;
        entry->fence_end = entry->spare_end;
        entry->spare = entry->spare_end = 0;
    }
    entry->is_held_here = true;
    entry->linger_ms = waiter->linger_ms;
    waiter->end = entry->times.end;
    waiter->fence = ++entry->fence;
    decide(waiter, HFI_GOT_LEASE, HF_OK, actions);
    if (entry->spare == 0 && !entry->more_asked && entry->fence_end - entry->fence < HFI_FENCE_BLOCK / 2) {
        entry->more_asked = true;
        act(actions, HFI_SEND_MORE);
    }
}

static void begin_times(struct hfi_entry *entry, int64_t end, int64_t now, int64_t rtt_ns)
{
    const struct hfi_waiter *head = head_of(entry);
    hfi_lease_begin(&entry->times, end, entry->good_for, head->lease_ms, head->stop_ms, head->max_hold_ms, now, rtt_ns);
}

/* The same remote lease for another thread: its V stays, and so does the pace of renewals that are under way. Those ask
 * for the length that the holder before wanted (P1). */
static void pass_times(struct hfi_entry *entry, int64_t now)
{
    struct hfi_lease_times before = entry->times;
    begin_times(entry, before.end, now, 0);
    if (entry->times.length > before.length)
        entry->lengthened_at = now;
    if (entry->times.length < entry->shortest)
        entry->shortest = entry->times.length;
    if (before.renew_next != before.renew_first)
        entry->times.renew_next = before.renew_next;
}

/* The remote lease is ours until `end`, the stamp of what brought it and what that is good for. */
static void hold(struct hfi_entry *entry, int64_t end, int64_t good_for, int64_t fence, bool good, int64_t now,
                 int64_t rtt_ns, struct hfi_actions *actions)
{
    unwatch(entry, actions);
    entry->remote = HFI_HELD;
    entry->contended = entry->more_asked = entry->claim_wanted = false; /* `wanted` may have been heard before */
    entry->good_for = good_for;
    entry->passes = 0;
    entry->batch_since = now;
    entry->ask_at = entry->linger_end = HFI_NEVER;
    entry->trouble = HF_OK;
    entry->late = entry->bad_fences = 0;
    entry->spare = entry->spare_end = 0;
    begin_times(entry, end, now, rtt_ns);
    entry->shortest = entry->times.length;
    entry->lengthened_at = now;
    entry->fencing = !good || fence <= entry->fence; /* not above what was given under this name: behind, whoever says */
    if (entry->fencing) {
        act(actions, HFI_SEND_FLOOR);
        return;
    }
    entry->fence = fence - 1;
    entry->fence_end = fence + HFI_FENCE_BLOCK - 1;
    give(entry, actions);
}

/* We may own it without knowing: only an answer to a question asked now can tell. */
static void claim_now(struct hfi_entry *entry, struct hfi_actions *actions)
{
    if (entry->asking)
        entry->claim_wanted = true;
    else
        ask(entry, actions);
}

void hfi_entry_arrive(struct hfi_entry *entry, struct hfi_waiter *waiter, int64_t now, struct hfi_actions *actions)
{
    bool lingers = entry->remote == HFI_HELD && !entry->is_held_here && !entry->fencing &&
                   hfi_list_is_empty(&entry->waiters);
    bool taken = entry->remote != HFI_NOTHING || !hfi_list_is_empty(&entry->waiters);
    waiter->verdict = HFI_WAITING;
    waiter->status = HF_OK;
    hfi_list_init(&waiter->link);
    hfi_list_append(&entry->waiters, &waiter->link);
    if (lingers && now < entry->times.end - entry->times.stop &&
        (entry->fence < entry->fence_end || entry->spare != 0)) {
        entry->linger_end = HFI_NEVER;
        pass_times(entry, now);
        give(entry, actions);
        return;
    }
    if (lingers) {
        give_back(entry, actions);
        return;
    }
    if (waiter->once && taken) {
        decide(waiter, HFI_REFUSED, entry->trouble != HF_OK ? entry->trouble : HF_BUSY, actions);
        return;
    }
    if (!taken) {
        entry->trouble = HF_OK; /* of an earlier time */
        ask(entry, actions);
    }
}

void hfi_entry_leave(struct hfi_entry *entry, struct hfi_waiter *waiter, int64_t now, struct hfi_actions *actions)
{
    (void)now;
    hfi_list_remove(&waiter->link);
    if (!hfi_list_is_empty(&entry->waiters))
        return;
    if (entry->remote == HFI_HELD && entry->fencing)
        give_back(entry, actions);
    else if (entry->remote == HFI_ASKING || entry->remote == HFI_QUEUED)
        close_token(entry, actions);
    entry->ask_at = HFI_NEVER;
}

void hfi_entry_refuse_all(struct hfi_entry *entry, hf_status status, int64_t now, struct hfi_actions *actions)
{
    (void)now;
    while (!hfi_list_is_empty(&entry->waiters))
        decide(head_of(entry), HFI_REFUSED, status, actions);
    if (entry->remote == HFI_ASKING || entry->remote == HFI_QUEUED)
        close_token(entry, actions);
    entry->ask_at = HFI_NEVER;
}

/* The server cannot serve us now: those who asked once are told, the others ride it out. */
static void trouble(struct hfi_entry *entry, hf_status status, int64_t again_at, struct hfi_actions *actions)
{
    entry->trouble = status;
    refuse(entry, status, !entry->rules->rides_out, actions);
    if (!hfi_list_is_empty(&entry->waiters))
        entry->ask_at = again_at;
    else if (entry->remote != HFI_NOTHING)
        close_token(entry, actions);
}

/* Anything that was sent at sent_at with the held token extended the key, for at least good_for. */
static void confirmed(struct hfi_entry *entry, int64_t sent_at, int64_t good_for, int64_t now, int64_t rtt_ns,
                      struct hfi_actions *actions)
{
    int64_t before = entry->times.end;
    if (good_for > entry->times.length)
        good_for = entry->times.length;
    bool safe_again = hfi_lease_renewed(&entry->times, sent_at, good_for, now, rtt_ns);
    if (entry->times.end == before)
        return;
    entry->good_for = good_for;
    if (!entry->is_held_here)
        return;
    act(actions, HFI_MOVE_END)->end = entry->times.end;
    if (safe_again)
        act(actions, HFI_TELL)->event = HF_EVENT_SAFE_AGAIN;
}

static void answered_granted(struct hfi_entry *entry, const struct hfi_answer *answer, int64_t now, int64_t rtt_ns,
                             struct hfi_actions *actions)
{
    const struct hfi_waiter *head = head_of(entry);
    if (entry->remote == HFI_HELD) { /* the grant message was faster; this confirms it */
        confirmed(entry, answer->sent_at, entry->asked_for, now, rtt_ns, actions);
        if (answer->fence_is_good)
            hfi_entry_fences(entry, answer->fence, HFI_FENCE_BLOCK, true, now, actions);
        return;
    }
    int64_t good_for = head == NULL ? 0 : head->lease_ms * HFI_MS;
    if (good_for > entry->asked_for) /* asked for somebody who has left (P1, P6) */
        good_for = entry->asked_for;
    if (now >= answer->sent_at + good_for - good_for / 4) { /* too little is left to hand it to anybody */
        refuse_once(entry, HF_UNAVAILABLE, actions);
        give_back(entry, actions);
        return;
    }
    hold(entry, answer->sent_at + good_for, good_for, answer->fence, answer->fence_is_good, now, rtt_ns, actions);
}

static void answered_busy(struct hfi_entry *entry, const struct hfi_answer *answer, int64_t now,
                          struct hfi_actions *actions)
{
    entry->trouble = HF_OK;
    refuse_once(entry, HF_BUSY, actions);
    if (!hfi_list_is_empty(&entry->waiters)) {
        ask(entry, actions);
        return;
    }
    /* Try-once users would never see through an orphan: once a second the holder's process is asked (P5). */
    if (answer->native && now - entry->tried_at >= 1000 * HFI_MS) {
        entry->tried_at = now;
        act(actions, HFI_SEND_TRY);
        close_token(entry, actions); /* should the try be granted after all */
        return;
    }
    forget_token(entry, actions);
}

static void answered_in_queue(struct hfi_entry *entry, const struct hfi_answer *answer, int64_t now,
                              struct hfi_actions *actions)
{
    entry->remote = HFI_QUEUED;
    entry->contended = true;
    entry->trouble = HF_OK;
    entry->late = 0;
    entry->ticket = answer->ticket;
    entry->position = answer->position;
    if (entry->claim_wanted) {
        ask(entry, actions);
        return;
    }
    ask_later(entry, now);
    /* The queue may begin with waiters that were killed a moment ago, so not only its head looks when the key ends. */
    if (answer->position < TIMED_POSITIONS && answer->left_ms >= 0 && answer->left_ms < recheck_ms(entry)) {
        int64_t gone = now + (answer->left_ms + 2 + 10 * answer->position) * HFI_MS;
        entry->ask_at = gone < entry->ask_at ? gone : entry->ask_at;
    }
    bool watch = !answer->ours && answer->position <= 2;
    if (watch != entry->watching)
        act(actions, HFI_WATCH_FOREIGN)->fresh = watch;
    entry->watching = watch;
}

void hfi_entry_answered(struct hfi_entry *entry, const struct hfi_answer *answer, int64_t now, int64_t rtt_ns,
                        struct hfi_actions *actions)
{
    entry->asking = false;
    if (entry->remote == HFI_HELD && answer->kind != HFI_GRANTED)
        return; /* it was executed before the hand-off that we already know of */
    switch (answer->kind) {
    case HFI_GRANTED:
        answered_granted(entry, answer, now, rtt_ns, actions);
        break;
    case HFI_BUSY:
        answered_busy(entry, answer, now, actions);
        break;
    case HFI_IN_QUEUE:
        answered_in_queue(entry, answer, now, actions);
        break;
    case HFI_LATE:
        if (++entry->late >= 3)
            hfi_entry_refuse_all(entry, HF_UNAVAILABLE, now, actions);
        else
            ask(entry, actions);
        break;
    case HFI_FOREIGN_TYPE:
        hfi_entry_refuse_all(entry, HF_FOREIGN, now, actions);
        break;
    case HFI_HAS_VALUE:
        while (!hfi_list_is_empty(&entry->waiters))
            decide(head_of(entry), HFI_GOT_VALUE, HF_OK, actions);
        forget_token(entry, actions);
        break;
    case HFI_NO_ANSWER:
        trouble(entry, HF_UNAVAILABLE, now, actions);
        break;
    case HFI_NOT_SENT:
        if (answer->native)
            forget_token(entry, actions);
        /* fall through */
    case HFI_CANNOT:
        if (answer->status != HF_UNAVAILABLE && answer->status != HF_NOMEM) {
            hfi_entry_refuse_all(entry, answer->status, now, actions);
        } else { /* want of memory or descriptors, ours, passes like the server's troubles */
            trouble(entry, answer->status, now, actions);
            if (!hfi_list_is_empty(&entry->waiters))
                ask_later(entry, now);
        }
        break;
    }
}

void hfi_entry_fences(struct hfi_entry *entry, int64_t first, int64_t count, bool good, int64_t now,
                      struct hfi_actions *actions)
{
    entry->more_asked = false;
    if (entry->remote != HFI_HELD)
        return;
    if (!entry->fencing) {
        if (good && first > entry->fence_end && entry->spare == 0) {
            entry->spare = first;
            entry->spare_end = first + count - 1;
        }
        return;
    }
    if (good && first > entry->fence) {
        entry->fencing = false;
        entry->fence = first - 1;
        entry->fence_end = first + count - 1;
        if (hfi_list_is_empty(&entry->waiters) || now >= entry->times.end - entry->times.stop)
            give_back(entry, actions);
        else
            give(entry, actions);
    } else if (++entry->bad_fences >= 3) {
        entry->trouble = HF_UNAVAILABLE;
        while (!hfi_list_is_empty(&entry->waiters))
            decide(head_of(entry), HFI_REFUSED, HF_UNAVAILABLE, actions);
        give_back(entry, actions);
    } else {
        act(actions, HFI_SEND_FLOOR);
    }
}

void hfi_entry_granted(struct hfi_entry *entry, int64_t echo, int64_t fence, bool good, int64_t now, int64_t rtt_ns,
                       struct hfi_actions *actions)
{
    if ((entry->remote != HFI_ASKING && entry->remote != HFI_QUEUED) || hfi_list_is_empty(&entry->waiters))
        return;
    for (int i = 0; i < HFI_ECHOES; i++) {
        int64_t claim = entry->claims[i];
        if (entry->echoes[i] != echo || echo == 0 || echo + claim - now < claim / 4)
            continue;
        hold(entry, echo + claim, claim, fence, good, now, rtt_ns, actions);
        return;
    }
    claim_now(entry, actions);
}

void hfi_entry_wanted(struct hfi_entry *entry, int64_t now, struct hfi_actions *actions)
{
    (void)now;
    if (entry->remote == HFI_NOTHING)
        return;
    entry->wanted = true;
    if (entry->remote == HFI_HELD) {
        if (!entry->is_held_here && !entry->fencing)
            give_back(entry, actions);
    } else {
        claim_now(entry, actions);
    }
}

void hfi_entry_nudged(struct hfi_entry *entry, int64_t now, struct hfi_actions *actions)
{
    (void)now;
    if (entry->remote != HFI_HELD && !hfi_list_is_empty(&entry->waiters))
        claim_now(entry, actions);
}

static bool may_pass(const struct hfi_entry *entry, int64_t now)
{
    bool batch_is_over = entry->passes >= HFI_PASS_MOST || now - entry->batch_since >= HFI_PASS_MOST_NS;
    return !hfi_list_is_empty(&entry->waiters) && now < entry->times.end - entry->times.stop &&
           (entry->fence < entry->fence_end || entry->spare != 0) && !(entry->wanted && batch_is_over);
}

bool hfi_entry_release(struct hfi_entry *entry, int64_t now, bool quietly, struct hfi_actions *actions)
{
    if (now >= entry->times.end)
        return false;
    entry->is_held_here = false;
    if (!quietly && may_pass(entry, now)) {
        entry->passes++;
        pass_times(entry, now);
        give(entry, actions);
    } else if (!quietly && entry->linger_ms > 0 && !entry->wanted && hfi_list_is_empty(&entry->waiters)) {
        entry->linger_end = hfi_after_ms(now, entry->linger_ms);
        entry->times.hold_end = HFI_NEVER;
        entry->times.holding_told = false;
    } else {
        give_back(entry, actions);
    }
    return true;
}

void hfi_entry_filled(struct hfi_entry *entry, bool give_it_back, struct hfi_actions *actions)
{
    if (entry->remote != HFI_HELD)
        return;
    while (!hfi_list_is_empty(&entry->waiters))
        decide(head_of(entry), HFI_GOT_VALUE, HF_OK, actions);
    if (give_it_back)
        give_back(entry, actions);
    else
        forget_token(entry, actions);
}

void hfi_entry_renewed(struct hfi_entry *entry, int64_t sent_at, int64_t now, int64_t rtt_ns, struct hfi_actions *actions)
{
    if (entry->remote != HFI_HELD)
        return;
    confirmed(entry, sent_at, sent_at <= entry->lengthened_at ? entry->shortest : entry->times.length, now, rtt_ns,
              actions);
}

void hfi_entry_lost(struct hfi_entry *entry, hf_reason reason, int64_t now, struct hfi_actions *actions)
{
    (void)now;
    if (entry->remote == HFI_ASKING || entry->remote == HFI_QUEUED) { /* revoked before we knew that it was granted */
        close_token(entry, actions);
        ask(entry, actions);
    }
    if (entry->remote != HFI_HELD)
        return;
    if (entry->is_held_here) {
        struct hfi_action *action = act(actions, HFI_TELL);
        action->event = HF_EVENT_LOST;
        action->reason = reason;
    }
    give_back(entry, actions);
}

void hfi_entry_look(struct hfi_entry *entry, int64_t now, int64_t rtt_ns, struct hfi_actions *actions)
{
    if (entry->remote != HFI_HELD) {
        if (!entry->asking && now >= entry->ask_at)
            ask(entry, actions);
        return;
    }
    if (now >= entry->linger_end) {
        give_back(entry, actions);
        return;
    }
    struct hfi_lease_due due = hfi_lease_look(&entry->times, now, rtt_ns);
    if (due.lost) {
        hfi_entry_lost(entry, due.reason, now, actions);
        return;
    }
    if (due.renew)
        act(actions, HFI_SEND_RENEW);
    if (due.at_risk && entry->is_held_here) {
        struct hfi_action *action = act(actions, HFI_TELL);
        action->event = HF_EVENT_AT_RISK;
        action->reason = due.reason;
    }
}

int64_t hfi_entry_next(const struct hfi_entry *entry)
{
    if (entry->remote != HFI_HELD)
        return entry->asking ? HFI_NEVER : entry->ask_at;
    int64_t next = hfi_lease_next(&entry->times);
    return entry->linger_end < next ? entry->linger_end : next;
}

struct hfi_asking hfi_entry_asking(const struct hfi_entry *entry)
{
    const struct hfi_waiter *head = head_of(entry);
    int64_t lease = head != NULL ? head->lease_ms : 1000, claim = hfi_claim_ms(lease);
    return (struct hfi_asking){.lease_ms = lease,
                               .ttl_ms = lease + hfi_guard_ms(lease, entry->rules->guard_ms),
                               .claim_ttl_ms = claim + hfi_guard_ms(claim, entry->rules->guard_ms),
                               .patience_ms = 3 * recheck_ms(entry),
                               .ticket = entry->ticket};
}

void hfi_entry_sent(struct hfi_entry *entry, int64_t stamp)
{
    const struct hfi_waiter *head = head_of(entry);
    for (int i = HFI_ECHOES - 1; i > 0; i--) {
        entry->echoes[i] = entry->echoes[i - 1];
        entry->claims[i] = entry->claims[i - 1];
    }
    int64_t lease_ms = head != NULL ? head->lease_ms : 1000;
    entry->echoes[0] = stamp;
    entry->claims[0] = hfi_claim_ms(lease_ms) * HFI_MS;
    entry->asked_for = lease_ms * HFI_MS;
}
