/* SPDX-License-Identifier: MIT */
/* entry.c - the decisions of a lock name inside one process; see entry.h. Calls entry_held.c, entry_pace.c and lease.c,
 * nothing else. */
#include "core/policy/entry_steps.h"
#include "core/policy/fence.h"
#include "base/rare.h"

#include <string.h>

#define TIMED_POSITIONS 16 /* queue positions that ask when the holder's key ends, 10 ms apart */

void hfi_actions_init(struct hfi_actions *actions)
{
    actions->count = 0;
    actions->successor = NULL;
    hfi_list_init(&actions->woken);
}

/* The worst case of one event is a loss followed by a new acquire: five actions. An overflow would be a bug of this
 * file. */
struct hfi_action *hfi_step_act(struct hfi_actions *actions, enum hfi_action_kind kind)
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
#ifdef HFI_CHECKED
    entry->latest = INT64_MIN;
#endif
    entry->ask_at = HFI_NEVER;
    entry->tried_until = INT64_MIN;
    entry->tried_status = HF_BUSY;
    entry->rng = seed;
}

bool hfi_entry_is_idle(const struct hfi_entry *entry)
{
    return hfi_list_is_empty(&entry->waiters) && entry->remote == HFI_NOTHING && !entry->in_flight;
}

struct hfi_waiter *hfi_step_head_of(const struct hfi_entry *entry)
{
    return hfi_list_is_empty(&entry->waiters) ? NULL : hfi_container_of(entry->waiters.next, struct hfi_waiter, link);
}

void hfi_step_decide(struct hfi_waiter *waiter, enum hfi_verdict verdict, hf_status status, struct hfi_actions *actions)
{
    waiter->verdict = verdict;
    waiter->status = status;
    hfi_list_remove(&waiter->link);
    hfi_list_append(&actions->woken, &waiter->link);
}

/* Refuses the tries, or all waiters. */
static void refuse(struct hfi_entry *entry, hf_status status, bool everybody, struct hfi_actions *actions)
{
    for (struct hfi_list *at = entry->waiters.next, *next; at != &entry->waiters; at = next) {
        struct hfi_waiter *waiter = hfi_container_of(at, struct hfi_waiter, link);
        next = at->next;
        if (waiter->once || everybody)
            hfi_step_decide(waiter, HFI_REFUSED, status, actions);
    }
}

static void refuse_once(struct hfi_entry *entry, hf_status status, struct hfi_actions *actions)
{
    refuse(entry, status, false, actions);
}

void hfi_step_unwatch(struct hfi_entry *entry, struct hfi_actions *actions)
{
    if (entry->watching)
        hfi_step_act(actions, HFI_WATCH_FOREIGN)->fresh = false;
    entry->watching = false;
}

/* The token is of no use any more; the next acquire starts with a fresh one. */
void hfi_step_forget_token(struct hfi_entry *entry, struct hfi_actions *actions)
{
    hfi_step_unwatch(entry, actions);
    entry->remote = HFI_NOTHING;
    entry->successor = NULL;
    entry->in_flight = false;
    entry->batchable = entry->recheck_in_flight = entry->missed = false;
    entry->head_changed = false;
    entry->requery_pending = entry->early = false;
    entry->is_held_here = false;
    entry->awaiting_fences = false;
    entry->more_asked = false;
    entry->remote_waiters = entry->deaf = false;
    entry->late = 0;
    entry->bad_fences = 0;
    entry->ticket = entry->position = entry->early_at = 0;
    entry->asked_period_ms = entry->recorded_period_ms = 0;
    entry->ask_at = HFI_NEVER;
    memset(entry->echoes, 0, sizeof entry->echoes);
    memset(entry->claims, 0, sizeof entry->claims);
}

void hfi_step_ask(struct hfi_entry *entry, struct hfi_actions *actions)
{
    const struct hfi_waiter *head = hfi_step_head_of(entry);
    bool fresh = entry->remote == HFI_NOTHING;
    if (head == NULL)
        return;
    if (fresh)
        entry->remote = HFI_ASKING;
    entry->in_flight = true;
    entry->batchable = entry->recheck_in_flight = entry->missed = false;
    entry->head_changed = false;
    entry->requery_pending = entry->early = false;
    entry->ask_at = HFI_NEVER;
    enum hfi_action_kind kind = head->once ? HFI_SEND_TRY : HFI_SEND_WAIT;
    if (fresh && entry->rules->native && (head->once || (!entry->contended && entry->ticket == 0)))
        kind = HFI_SEND_NATIVE;
    hfi_step_act(actions, kind)->fresh = fresh;
}

/* A batched re-check: as far as we know, nothing has changed for this token, its place and its record. */
static void recheck(struct hfi_entry *entry, struct hfi_actions *actions)
{
    entry->in_flight = entry->recheck_in_flight = true;
    entry->batchable = entry->missed = false;
    entry->ask_at = HFI_NEVER;
    hfi_step_act(actions, HFI_SEND_RECHECK);
}

/* The held lease goes back to the server. The local waiters then queue there like those of other processes. */
void hfi_step_give_back(struct hfi_entry *entry, struct hfi_actions *actions)
{
    entry->contended = entry->remote_waiters;
    hfi_step_act(actions, HFI_GIVE_BACK);
    hfi_step_forget_token(entry, actions);
    hfi_step_ask(entry, actions);
}

/* Ask at `at`, or now, but paced: any client may publish a thousand messages a second, and each answer may say that the
 * key is about to end. */
static void ask_early(struct hfi_entry *entry, int64_t at, int64_t now, struct hfi_actions *actions)
{
    at = hfi_step_next_early(entry, at);
    entry->early = true;
    if (entry->in_flight)
        return; /* the answer in flight may predate the event: see answered_in_queue */
    if (at <= now) {
        entry->early_at = now;
        hfi_step_ask(entry, actions);
    } else if (at < entry->ask_at) {
        entry->ask_at = at;
    }
}

void hfi_step_ask_anew(struct hfi_entry *entry, enum hfi_action_kind giving_up, int64_t now, struct hfi_actions *actions)
{
    int64_t ticket = entry->ticket, position = entry->position, early_at = entry->early_at;
    hfi_step_act(actions, giving_up);
    hfi_step_forget_token(entry, actions);
    if (hfi_list_is_empty(&entry->waiters))
        return;
    entry->ticket = ticket;
    entry->position = position;
    entry->early_at = early_at;
    ask_early(entry, now, now, actions);
}

void hfi_step_retire_token(struct hfi_entry *entry, struct hfi_actions *actions)
{
    hfi_step_act(actions, HFI_RETIRE_TOKEN);
    hfi_step_forget_token(entry, actions);
}

/* A grant message with an echo of ours came too late to be used. Only the answer to a new acquire can date V. */
static void requery_now(struct hfi_entry *entry, struct hfi_actions *actions)
{
    if (entry->in_flight)
        entry->requery_pending = true;
    else
        hfi_step_ask(entry, actions);
}

/* Take the free lease if enough of it is left; if its next fences are still in flight, wait for them. An arriving
 * thread that needs more of the lease than the successor leaves it to the successor. */
static void take(struct hfi_entry *entry, struct hfi_waiter *waiter, int64_t now, struct hfi_actions *actions)
{
    const struct hfi_waiter *first = entry->successor != NULL ? entry->successor : waiter;
    entry->linger_end = HFI_NEVER;
    if (!hfi_step_suits(entry, first, now) || (!hfi_step_has_fences(entry) && !entry->more_asked))
        hfi_step_give_back(entry, actions);
    else if (!hfi_step_has_fences(entry))
        entry->awaiting_fences = true;
    else if (hfi_step_suits(entry, waiter, now))
        hfi_step_pass(entry, waiter, now, actions);
}

void hfi_entry_arrive(struct hfi_entry *entry, struct hfi_waiter *waiter, int64_t now, struct hfi_actions *actions)
{
    hfi_step_at(entry, now);
    bool free = hfi_step_is_free(entry) && (hfi_list_is_empty(&entry->waiters) || entry->successor != NULL);
    bool taken = entry->remote != HFI_NOTHING || !hfi_list_is_empty(&entry->waiters);
    waiter->verdict = HFI_WAITING;
    waiter->overtaken = false;
    waiter->status = HF_OK;
    hfi_list_init(&waiter->link);
    hfi_list_append(&entry->waiters, &waiter->link);
    if (free) {
        take(entry, waiter, now, actions);
    } else if (!taken) {
        entry->trouble = HF_OK; /* of earlier waiters, as is the place: they may have left while changing tokens */
        entry->ticket = entry->position = 0;
        entry->unheard = waiter->once ? entry->unheard : 0;
        hfi_step_ask(entry, actions);
    }
    bool is_next = (free || !taken) && waiter == hfi_step_head_of(entry);
    if (waiter->once && waiter->verdict == HFI_WAITING && !is_next)
        hfi_step_decide(waiter, HFI_REFUSED, entry->trouble != HF_OK ? entry->trouble : HF_BUSY, actions);
}

void hfi_entry_successor_runs(struct hfi_entry *entry, struct hfi_waiter *waiter, int64_t now, struct hfi_actions *actions)
{
    hfi_step_at(entry, now);
    if (entry->successor != waiter)
        return;
    if (hfi_step_is_free(entry))
        take(entry, waiter, now, actions);
    else
        waiter->overtaken = true;
}

HFI_RARE void hfi_entry_leave(struct hfi_entry *entry, struct hfi_waiter *waiter, int64_t now, struct hfi_actions *actions)
{
    hfi_step_at(entry, now);
    bool was_called = entry->successor == waiter;
    if (waiter == hfi_step_head_of(entry))
        entry->head_changed = true;
    hfi_list_remove(&waiter->link);
    if (was_called)
        entry->successor = NULL;
    if (!hfi_list_is_empty(&entry->waiters)) {
        if (was_called && hfi_step_is_free(entry))
            hfi_step_wake_successor(entry, now, actions);
        return;
    }
    if (entry->remote == HFI_HELD && (entry->awaiting_fences || (was_called && !entry->is_held_here)))
        hfi_step_give_back(entry, actions);
    else if (entry->remote == HFI_ASKING || entry->remote == HFI_QUEUED)
        hfi_step_retire_token(entry, actions);
    entry->ask_at = HFI_NEVER;
}

HFI_RARE void hfi_entry_refuse_all(struct hfi_entry *entry, hf_status status, int64_t now, struct hfi_actions *actions)
{
    hfi_step_at(entry, now);
    bool left_free = entry->successor != NULL && hfi_step_is_free(entry);
    entry->successor = NULL;
    while (!hfi_list_is_empty(&entry->waiters))
        hfi_step_decide(hfi_step_head_of(entry), HFI_REFUSED, status, actions);
    if (left_free)
        hfi_step_give_back(entry, actions);
    else if (entry->remote == HFI_ASKING || entry->remote == HFI_QUEUED)
        hfi_step_retire_token(entry, actions);
    entry->ask_at = HFI_NEVER;
}

/* The server cannot serve us now: tries are refused, the other waiters ride it out. After a failed re-check the next
 * question is a re-check too, for the outcome of the failed one does not matter. */
static void trouble(struct hfi_entry *entry, hf_status status, int64_t again_at, struct hfi_actions *actions)
{
    entry->trouble = (uint8_t)status;
    entry->batchable = entry->recheck_in_flight;
    refuse(entry, status, !entry->rules->rides_out, actions);
    if (!hfi_list_is_empty(&entry->waiters))
        entry->ask_at = again_at;
    else if (entry->remote != HFI_NOTHING)
        hfi_step_retire_token(entry, actions);
}

static void answered_granted(struct hfi_entry *entry, const struct hfi_answer *answer, int64_t now, int64_t rtt_ns,
                             struct hfi_actions *actions)
{
    const struct hfi_waiter *head = hfi_step_head_of(entry);
    if (entry->remote == HFI_HELD) { /* the grant message was faster; this confirms it */
        hfi_step_confirmed(entry, answer->sent_at, entry->asked_for, now, rtt_ns, actions);
        if (answer->fence_is_good)
            hfi_entry_fences(entry, answer->fence, HFI_FENCE_BLOCK, true, now, actions);
        return;
    }
    int64_t good_for = head == NULL ? 0 : head->lease_ms * HFI_MS;
    if (good_for > entry->asked_for) /* the acquire was sent for a waiter that has left (P1, P6) */
        good_for = entry->asked_for;
    if (now >= answer->sent_at + good_for - good_for / 4) { /* too little is left to give it to a waiter */
        hfi_step_act(actions, HFI_EXPLAIN_LATE);
        refuse_once(entry, HF_UNAVAILABLE, actions);
        hfi_step_ask_anew(entry, HFI_GIVE_BACK, now, actions);
        return;
    }
    hfi_step_hold(entry, answer->sent_at + good_for, good_for, answer->fence, answer->fence_is_good, now, rtt_ns, actions);
}

static void answered_busy(struct hfi_entry *entry, const struct hfi_answer *answer, int64_t now,
                          struct hfi_actions *actions)
{
    const struct hfi_waiter *head = hfi_step_head_of(entry);
    entry->trouble = HF_OK;
    /* SET NX sees neither another type of key nor an orphan of ours (P5): once a second a try asks the script too. */
    if (answer->native && head != NULL && head->once && now >= entry->tried_until) {
        entry->tried_until = now + 1000 * HFI_MS;
        entry->tried_status = HF_BUSY; /* until the script has answered */
        hfi_step_ask(entry, actions);
        return;
    }
    if (!answer->native) {
        entry->tried_status = HF_BUSY;
        int64_t again_ms = hfi_step_wish_again_ms(entry, answer->unheard, 1000);
        if (answer->unheard)
            entry->tried_until = now + again_ms * HFI_MS;
    }
    refuse_once(entry, entry->tried_status, actions);
    if (hfi_list_is_empty(&entry->waiters))
        hfi_step_forget_token(entry, actions);
    else
        hfi_step_ask(entry, actions);
}

static void answered_in_queue(struct hfi_entry *entry, const struct hfi_answer *answer, int64_t now, int64_t rtt_ns,
                              struct hfi_actions *actions)
{
    entry->remote = HFI_QUEUED;
    entry->contended = true;
    entry->trouble = HF_OK;
    entry->late = 0;
    bool nearer = entry->ticket == 0 ? !answer->ours : answer->position < entry->position;
    entry->ticket = answer->ticket;
    entry->position = answer->position;
    if (entry->requery_pending) {
        hfi_step_ask(entry, actions);
        return;
    }
    bool was_hinted = entry->early;
    entry->early = false;
    entry->recorded_period_ms = entry->asked_period_ms;
    int64_t period_ms = hfi_step_period_ms(entry);
    int64_t wish_ms = hfi_step_wish_again_ms(entry, answer->unheard, period_ms);
    if (entry->rules->batch_rechecks && wish_ms == period_ms)
        hfi_step_ask_together_in(entry, now, period_ms, rtt_ns);
    else
        hfi_step_ask_in(entry, now, wish_ms);
    entry->batchable = entry->rules->batch_rechecks;
    /* The first waiters in the queue may have been killed a moment ago, so not only the head asks when the key ends. */
    bool timed = answer->position < TIMED_POSITIONS || answer->left_ms == 0; /* 0: there may be no holder any more */
    if (timed && answer->left_ms >= 0 && answer->left_ms < 2 * period_ms) { /* the next may be due at 1.1 periods */
        int64_t before = answer->position < TIMED_POSITIONS ? answer->position : TIMED_POSITIONS;
        int64_t gone = now + (answer->left_ms + 2 + 10 * before) * HFI_MS;
        if (gone < entry->ask_at) /* the lock may be free then */
            ask_early(entry, gone, now, actions);
    }
    if (answer->left_ms == 0 && nearer) { /* the script has dropped old records, and more of them are left */
        entry->ask_at = now;
        entry->batchable = false;
    }
    bool watch = !answer->ours && answer->left_ms != 0 && answer->position <= 2;
    if (watch != entry->watching)
        hfi_step_act(actions, HFI_WATCH_FOREIGN)->fresh = watch;
    entry->watching = watch;
    if (was_hinted) /* while the question was in flight */
        ask_early(entry, now, now, actions);
    else if (entry->missed)
        entry->ask_at = now;
}

HFI_RARE void hfi_entry_answered(struct hfi_entry *entry, const struct hfi_answer *answer, int64_t now, int64_t rtt_ns,
                        struct hfi_actions *actions)
{
    hfi_step_at(entry, now);
    entry->in_flight = false;
    if (entry->remote == HFI_HELD && answer->kind != HFI_GRANTED)
        return; /* the command was executed before the hand-off that is already known */
    switch (answer->kind) {
    case HFI_GRANTED:
        answered_granted(entry, answer, now, rtt_ns, actions);
        break;
    case HFI_BUSY:
        answered_busy(entry, answer, now, actions);
        break;
    case HFI_IN_QUEUE:
        answered_in_queue(entry, answer, now, rtt_ns, actions);
        break;
    case HFI_LATE:
        if (++entry->late >= 3)
            hfi_entry_refuse_all(entry, HF_UNAVAILABLE, now, actions);
        else
            hfi_step_ask(entry, actions);
        break;
    case HFI_FOREIGN_TYPE:
        /* A waiting acquire needs more keys than a try, so its answer says nothing about tries. */
        if (!hfi_list_is_empty(&entry->waiters) && hfi_step_head_of(entry)->once)
            entry->tried_status = HF_FOREIGN;
        hfi_entry_refuse_all(entry, HF_FOREIGN, now, actions);
        break;
    case HFI_HAS_VALUE:
        while (!hfi_list_is_empty(&entry->waiters))
            hfi_step_decide(hfi_step_head_of(entry), HFI_GOT_VALUE, HF_OK, actions);
        hfi_step_forget_token(entry, actions);
        break;
    case HFI_ASK_ALONE:
        hfi_step_ask(entry, actions);
        break;
    case HFI_NO_ANSWER:
        entry->early = !entry->recheck_in_flight;
        trouble(entry, HF_UNAVAILABLE, hfi_step_next_early(entry, now), actions);
        break;
    case HFI_NOT_SENT:
        if (answer->native)
            hfi_step_forget_token(entry, actions);
        /* fall through */
    case HFI_CANNOT:
        if (answer->status != HF_UNAVAILABLE && answer->status != HF_NOMEM) {
            hfi_entry_refuse_all(entry, answer->status, now, actions);
        } else { /* our own lack of memory or descriptors passes, like the server's troubles */
            trouble(entry, answer->status, now, actions);
            if (!hfi_list_is_empty(&entry->waiters))
                hfi_step_ask_later(entry, now);
        }
        break;
    }
}

HFI_RARE bool hfi_entry_granted(struct hfi_entry *entry, int64_t echo, int64_t fence, bool good, int64_t now, int64_t rtt_ns,
                       struct hfi_actions *actions)
{
    hfi_step_at(entry, now);
    if ((entry->remote != HFI_ASKING && entry->remote != HFI_QUEUED) || hfi_list_is_empty(&entry->waiters))
        return false;
    for (int i = 0; i < HFI_ECHOES; i++) {
        int64_t claim = entry->claims[i], own = hfi_step_head_of(entry)->lease_ms * HFI_MS;
        if (entry->echoes[i] != echo || echo == 0)
            continue;
        claim = claim < own ? claim : own; /* it may have been sent for a waiter that has left */
        if (echo + claim - now < claim / 4) {
            requery_now(entry, actions);
            return false;
        }
        hfi_step_hold(entry, echo + claim, claim, fence, good, now, rtt_ns, actions);
        return true;
    }
    ask_early(entry, now, now, actions);
    return false;
}

HFI_RARE void hfi_entry_remote_waiter(struct hfi_entry *entry, int64_t now, struct hfi_actions *actions)
{
    hfi_step_at(entry, now);
    if (entry->remote == HFI_NOTHING)
        return;
    entry->remote_waiters = true;
    if (entry->remote == HFI_HELD) {
        if (hfi_step_is_free(entry) && entry->successor == NULL) /* else given back after the batch of local passes */
            hfi_step_give_back(entry, actions);
    } else { /* we may own the lease without knowing it */
        ask_early(entry, now, now, actions);
    }
}

void hfi_entry_ask_together(struct hfi_entry *entry, int64_t now, struct hfi_actions *actions)
{
    if (!entry->rules->batch_rechecks || (!entry->in_flight && !entry->batchable))
        hfi_entry_requery(entry, now, actions);
    else if (entry->in_flight)
        entry->missed = true;
    else if (entry->remote == HFI_QUEUED && now < entry->ask_at)
        entry->ask_at = now;
}

void hfi_entry_requery(struct hfi_entry *entry, int64_t now, struct hfi_actions *actions)
{
    hfi_step_at(entry, now);
    if (entry->remote != HFI_HELD && !hfi_list_is_empty(&entry->waiters))
        ask_early(entry, now, now, actions);
}

HFI_RARE void hfi_entry_on_timer(struct hfi_entry *entry, int64_t now, int64_t rtt_ns, struct hfi_actions *actions)
{
    hfi_step_at(entry, now);
    if (now >= entry->tried_until)
        entry->tried_until = INT64_MIN;
    if (entry->remote != HFI_HELD) {
        if (!entry->in_flight && now >= entry->ask_at) {
            if (entry->early)
                entry->early_at = now;
            if (entry->batchable && !entry->head_changed && !entry->early)
                recheck(entry, actions);
            else
                hfi_step_ask(entry, actions);
        }
        return;
    }
    if (now >= entry->linger_end) {
        hfi_step_give_back(entry, actions);
        return;
    }
    struct hfi_lease_due due = hfi_lease_on_timer(&entry->times, now, rtt_ns);
    if (due.lost) {
        hfi_entry_lost(entry, due.reason, now, actions);
        return;
    }
    if (due.renew)
        hfi_step_act(actions, HFI_SEND_RENEW);
    if (due.at_risk && entry->is_held_here) {
        struct hfi_action *action = hfi_step_act(actions, HFI_TELL);
        action->event = HF_EVENT_AT_RISK;
        action->reason = due.reason;
    }
}

int64_t hfi_entry_next(const struct hfi_entry *entry)
{
    if (entry->remote == HFI_NOTHING && entry->tried_until != INT64_MIN && hfi_list_is_empty(&entry->waiters))
        return entry->tried_until; /* until then the entry remembers tried_status */
    if (entry->remote != HFI_HELD)
        return entry->in_flight ? HFI_NEVER : entry->ask_at;
    int64_t next = hfi_lease_next(&entry->times);
    return entry->linger_end < next ? entry->linger_end : next;
}

static struct hfi_acquire_params asking_for(const struct hfi_entry *entry, int64_t lease)
{
    int64_t period = hfi_step_recheck_ms(entry, lease), claim = hfi_claim_ms(lease, period);
    return (struct hfi_acquire_params){.lease_ms = lease,
                               .ttl_ms = lease + hfi_guard_ms(lease, entry->rules->guard_ms),
                               .period_ms = period,
                               .claim_ms = claim,
                               .claim_ttl_ms = claim + hfi_guard_ms(claim, entry->rules->guard_ms),
                               .patience_ms = 3 * period,
                               .ticket = entry->ticket};
}

struct hfi_acquire_params hfi_entry_acquire_params(const struct hfi_entry *entry)
{
    const struct hfi_waiter *head = hfi_step_head_of(entry);
    return asking_for(entry, head != NULL ? head->lease_ms : 1000);
}

hf_status hfi_entry_why_in_vain(const struct hfi_entry *entry, const struct hfi_waiter *waiter)
{
    if (entry->trouble != HF_OK)
        return entry->trouble;
    return waiter->once ? HF_UNAVAILABLE : HF_TIMEOUT; /* a try waits for nothing but the server */
}

static void remember(struct hfi_entry *entry, const struct hfi_acquire_params *params, int64_t stamp)
{
    for (int i = HFI_ECHOES - 1; i > 0; i--) {
        entry->echoes[i] = entry->echoes[i - 1];
        entry->claims[i] = entry->claims[i - 1];
    }
    entry->echoes[0] = stamp;
    entry->claims[0] = params->claim_ms * HFI_MS;
    entry->asked_period_ms = (int32_t)params->period_ms;
}

void hfi_entry_sent(struct hfi_entry *entry, const struct hfi_acquire_params *params, int64_t stamp)
{
    remember(entry, params, stamp);
    entry->asked_for = params->lease_ms * HFI_MS;
}

HFI_RARE struct hfi_acquire_params hfi_entry_recheck_params(struct hfi_entry *entry, int64_t stamp)
{
    struct hfi_acquire_params params = asking_for(entry, entry->asked_for / HFI_MS);
    remember(entry, &params, stamp);
    return params;
}
