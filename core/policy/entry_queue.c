/* SPDX-License-Identifier: MIT */
/* entry_queue.c - while no lease is held: what to ask the server, and what its answers and messages mean. */
#include "core/policy/entry_steps.h"
#include "core/policy/fence.h"
#include "base/rare.h"

#define TIMED_POSITIONS 16 /* queue positions that ask when the holder's key ends, 10 ms apart */

/* Refuses the tries, or all waiters. */
static void refuse(struct hfi_entry *entry, hf_status status, bool everybody, struct hfi_step *step)
{
    for (struct hfi_list *at = entry->waiters.next, *next; at != &entry->waiters; at = next) {
        struct hfi_waiter *waiter = hfi_container_of(at, struct hfi_waiter, link);
        next = at->next;
        if (waiter->once || everybody)
            hfi_step_decide(waiter, HFI_REFUSED, status, step);
    }
}

static void refuse_once(struct hfi_entry *entry, hf_status status, struct hfi_step *step)
{
    refuse(entry, status, false, step);
}

/* Those who must not stand in the queue: tries of readers, which ride on another one's question; and who would wait for
 * itself. */
static void refuse_to_queue(struct hfi_entry *entry, struct hfi_step *step)
{
    refuse_once(entry, HF_BUSY, step);
    for (struct hfi_list *at = entry->waiters.next, *next; at != &entry->waiters; at = next) {
        struct hfi_waiter *waiter = hfi_container_of(at, struct hfi_waiter, link);
        next = at->next;
        if (waiter->beside_itself)
            hfi_step_decide(waiter, HFI_REFUSED, HF_DEADLOCK, step);
    }
}

void hfi_step_unwatch(struct hfi_entry *entry, struct hfi_step *step)
{
    if (entry->remote == HFI_HELD || !entry->ask.watching)
        return;
    hfi_step_act(step, HFI_WATCH_FOREIGN)->fresh = false;
    entry->ask.watching = false;
}

void hfi_step_ask(struct hfi_entry *entry, struct hfi_step *step)
{
    const struct hfi_waiter *head = hfi_step_head_of(entry);
    bool fresh = entry->remote == HFI_NOTHING;
    if (head == NULL)
        return;
    if (fresh)
        hfi_step_become(entry, HFI_ASKING, HFI_NOT_HELD);
    entry->question = HFI_ACQUIRE_IN_FLIGHT;
    entry->ask.hint = HFI_NO_HINT;
    entry->ask.requery_pending = entry->ask.head_changed = false;
    entry->ask_at = HFI_NEVER;
    enum hfi_action_kind kind = head->once ? HFI_SEND_TRY : HFI_SEND_WAIT;
    if (fresh && entry->rules->native && (head->once || (!entry->contended && entry->ask.ticket == 0)))
        kind = HFI_SEND_NATIVE;
    hfi_step_act(step, kind)->fresh = fresh;
}

/* A batched re-check: as far as we know, nothing has changed for this token, its place and its record. */
void hfi_step_recheck(struct hfi_entry *entry)
{
    entry->question = HFI_RECHECK_IN_FLIGHT;
    entry->ask.hint = HFI_NO_HINT;
    entry->ask_at = HFI_NEVER;
}

/* Ask at `at`, or now, but paced: any client may publish a thousand messages a second, and each answer may say that the
 * key is about to end. */
static void ask_early(struct hfi_entry *entry, int64_t at, struct hfi_step *step)
{
    at = hfi_step_next_early(entry, at);
    entry->ask.hint = HFI_EARLY;
    if (hfi_entry_awaits_answer(entry))
        return; /* the answer in flight may predate the event: see answered_in_queue */
    if (at <= step->now) {
        hfi_step_pay_early(entry, step->now);
        hfi_step_ask(entry, step);
    } else if (at < entry->ask_at) {
        entry->ask_at = at;
    }
}

void hfi_step_ask_anew(struct hfi_entry *entry, enum hfi_action_kind giving_up, struct hfi_step *step)
{
    int64_t ticket = entry->ask.ticket, position = entry->ask.position, early_until = entry->ask.early_until;
    hfi_step_act(step, giving_up);
    hfi_step_forget_token(entry, step);
    if (hfi_list_is_empty(&entry->waiters))
        return;
    entry->ask.ticket = ticket;
    entry->ask.position = position;
    entry->ask.early_until = early_until;
    ask_early(entry, step->now, step);
}

/* A grant message with an echo of ours came too late to be used. Only the answer to a new acquire can date V. */
static void requery_now(struct hfi_entry *entry, struct hfi_step *step)
{
    if (hfi_entry_awaits_answer(entry))
        entry->ask.requery_pending = true;
    else
        hfi_step_ask(entry, step);
}

/* The server cannot serve us now: tries are refused, and all waiters of a fetch; the others ride it out
 * (rules->rides_out). */
static void trouble(struct hfi_entry *entry, hf_status status, int64_t again_at, struct hfi_step *step)
{
    entry->trouble = (uint8_t)status;
    refuse(entry, status, !entry->rules->rides_out, step);
    if (!hfi_list_is_empty(&entry->waiters))
        entry->ask_at = again_at;
    else if (entry->remote != HFI_NOTHING)
        hfi_step_retire_token(entry, step);
}

/* The oldest waiter may be another one than the one that was asked for, and want more permits, or a smaller limit. `out`: how many
 * permits may be out with these. */
static bool is_anothers(const struct hfi_entry *entry, int32_t permits, int64_t out)
{
    const struct hfi_waiter *head = hfi_step_head_of(entry);
    return entry->rules->counts && (permits < head->permits || out > head->limit);
}

/* The answer may bring the grant of an earlier question of this token, whose message is lost. If that question had a greater limit, the
 * number of permits that are out decides. If not, the grant is right however many are out: those who came later may have had a
 * greater limit. */
static int64_t out_for(const struct hfi_entry *entry, const struct hfi_answer *answer)
{
    return entry->ask.greatest_limit > hfi_step_head_of(entry)->limit ? answer->out : 0;
}

static void answered_granted(struct hfi_entry *entry, const struct hfi_answer *answer, struct hfi_step *step)
{
    const struct hfi_waiter *head = hfi_step_head_of(entry);
    bool unknown = entry->rules->counts ? answer->permits < entry->held.permits : answer->anew;
    if (entry->remote == HFI_HELD && unknown) { /* by the server: it has forgotten the grant that the message told of, or it was broken */
        hfi_entry_lost(entry, HF_REASON_GONE, step);
        return;
    }
    if (entry->remote == HFI_HELD) { /* the grant message was faster; this confirms it */
        if (!entry->held.downgraded) /* a reader's end is not what such an answer moves */
            hfi_step_confirmed(entry, answer->sent_at, entry->asked_for, step);
        if (answer->fence_is_good)
            hfi_entry_fences(entry, answer->fence, HFI_FENCE_BLOCK, true, step);
        return;
    }
    if (head == NULL) { /* a question that was left to whoever comes next, and nobody came */
        hfi_step_ask_anew(entry, HFI_GIVE_BACK, step);
        return;
    }
    int64_t good_for = head->lease_ms * HFI_MS;
    if (good_for > entry->asked_for) /* the acquire was sent for a waiter that has left (P1, P6) */
        good_for = entry->asked_for;
    if (step->now >= answer->sent_at + good_for - good_for / 4) { /* too little is left to give it to a waiter */
        hfi_step_act(step, HFI_EXPLAIN_LATE);
        refuse_once(entry, HF_UNAVAILABLE, step);
        hfi_step_ask_anew(entry, HFI_GIVE_BACK, step);
        return;
    }
    if (is_anothers(entry, answer->permits, out_for(entry, answer)))
        hfi_step_ask_anew(entry, HFI_GIVE_BACK, step);
    else
        hfi_step_hold(entry, answer->sent_at + good_for, good_for, answer, step);
}

/* The server has nothing of the token, so it needs no release; if an earlier acquire of it is in doubt, it does. */
static void end_token(struct hfi_entry *entry, const struct hfi_answer *answer, struct hfi_step *step)
{
    if (answer->in_doubt)
        hfi_step_retire_token(entry, step);
    else
        hfi_step_forget_token(entry, step);
}

static void answered_busy(struct hfi_entry *entry, const struct hfi_answer *answer, struct hfi_step *step)
{
    const struct hfi_waiter *head = hfi_step_head_of(entry);
    entry->trouble = HF_OK;
    /* SET NX sees neither another type of key nor an orphan of ours (P5): once a second a try asks the script too. */
    if (answer->native && head != NULL && head->once && step->now >= entry->tried_until) {
        entry->tried_until = step->now + 1000 * HFI_MS;
        entry->tried_status = HF_BUSY; /* until the script has answered */
        hfi_step_ask(entry, step);
        return;
    }
    if (!answer->native && !answer->together) {
        entry->tried_status = HF_BUSY;
        int64_t again_ms = hfi_step_wish_again_ms(entry, answer->unheard, 1000);
        if (answer->unheard)
            entry->tried_until = step->now + again_ms * HFI_MS;
    }
    refuse_once(entry, answer->together ? HF_BUSY : entry->tried_status, step);
    if (hfi_list_is_empty(&entry->waiters))
        end_token(entry, answer, step);
    else
        hfi_step_ask(entry, step);
}

static void answered_in_queue(struct hfi_entry *entry, const struct hfi_answer *answer, struct hfi_step *step)
{
    int64_t now = step->now;
    hfi_step_become(entry, HFI_QUEUED, HFI_NOT_HELD);
    entry->contended = true;
    entry->trouble = HF_OK;
    entry->ask.late = 0;
    bool nearer = entry->ask.ticket == 0 ? !answer->ours : answer->position < entry->ask.position;
    entry->ask.ticket = answer->ticket;
    entry->ask.position = answer->position;
    refuse_to_queue(entry, step);
    if (hfi_list_is_empty(&entry->waiters)) {
        hfi_step_retire_token(entry, step);
        return;
    }
    if (entry->rules->counts && !hfi_entry_has_asked_for(entry, hfi_step_head_of(entry))) /* a try was in front */
        entry->ask.hint = HFI_EARLY;
    if (entry->ask.requery_pending) {
        hfi_step_ask(entry, step);
        return;
    }
    enum hfi_hint hint = entry->ask.hint; /* that came while the question was in flight */
    entry->ask.hint = HFI_NO_HINT;
    entry->ask.recorded_period_ms = entry->ask.asked_period_ms;
    int64_t period_ms = hfi_step_period_ms(entry);
    int64_t wish_ms = hfi_step_wish_again_ms(entry, answer->unheard, period_ms);
    if (entry->rules->batch_rechecks && wish_ms == period_ms)
        hfi_step_ask_together_in(entry, now, period_ms, step->rtt_ns);
    else
        hfi_step_ask_in(entry, now, wish_ms);
    entry->question = entry->rules->batch_rechecks ? HFI_NEXT_RECHECK : HFI_NEXT_ACQUIRE;
    /* The first waiters in the queue may have been killed a moment ago, so not only the head asks when the key ends. */
    bool timed = answer->position < TIMED_POSITIONS || answer->left_ms == 0; /* 0: there may be no holder any more */
    if (timed && answer->left_ms >= 0 && answer->left_ms < 2 * period_ms) { /* the next may be due at 1.1 periods */
        int64_t before = answer->position < TIMED_POSITIONS ? answer->position : TIMED_POSITIONS;
        int64_t gone = now + (answer->left_ms + 2 + 10 * before) * HFI_MS;
        if (gone < entry->ask_at) /* the lock may be free then */
            ask_early(entry, gone, step);
    }
    if (answer->left_ms == 0 && nearer) { /* the script has dropped old records, and more of them are left */
        entry->ask_at = now;
        entry->question = HFI_NEXT_ACQUIRE;
    }
    bool watch = !answer->ours && answer->left_ms != 0 && answer->position <= 2;
    if (watch || entry->ask.watching)
        hfi_step_act(step, HFI_WATCH_FOREIGN)->fresh = watch;
    entry->ask.watching = watch;
    if (hint == HFI_EARLY)
        ask_early(entry, now, step);
    else if (hint == HFI_MISSED)
        hfi_step_ask_together_soon(entry, now);
}

HFI_RARE void hfi_entry_answered(struct hfi_entry *entry, const struct hfi_answer *answer, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    bool was_recheck = entry->question == HFI_RECHECK_IN_FLIGHT;
    /* The next question, if this one failed. Another re-check may follow a failed one: a re-check creates nothing. */
    entry->question = was_recheck ? HFI_NEXT_RECHECK : HFI_NEXT_ACQUIRE;
    if (entry->remote == HFI_HELD && answer->kind != HFI_GRANTED)
        return; /* the command was executed before the hand-off that is already known */
    switch (answer->kind) {
    case HFI_GRANTED:
        answered_granted(entry, answer, step);
        break;
    case HFI_BUSY:
        answered_busy(entry, answer, step);
        break;
    case HFI_IN_QUEUE:
        answered_in_queue(entry, answer, step);
        break;
    case HFI_LATE:
        if (++entry->ask.late >= 3 || hfi_list_is_empty(&entry->waiters))
            hfi_entry_refuse_all(entry, HF_UNAVAILABLE, step);
        else
            hfi_step_ask(entry, step);
        break;
    case HFI_FOREIGN_TYPE:
        /* A waiting acquire needs more keys than a try, so its answer says nothing about tries. */
        if (!hfi_list_is_empty(&entry->waiters) && hfi_step_head_of(entry)->once)
            entry->tried_status = HF_FOREIGN;
        hfi_entry_refuse_all(entry, HF_FOREIGN, step);
        break;
    case HFI_HAS_VALUE:
        while (!hfi_list_is_empty(&entry->waiters))
            hfi_step_decide(hfi_step_head_of(entry), HFI_GOT_VALUE, HF_OK, step);
        end_token(entry, answer, step);
        break;
    case HFI_ASK_ALONE:
        hfi_step_ask(entry, step);
        break;
    case HFI_NO_ANSWER:
        entry->ask.hint = was_recheck ? HFI_NO_HINT : HFI_EARLY;
        trouble(entry, HF_UNAVAILABLE, hfi_step_after_no_answer(entry, answer->counts_not, step->now), step);
        break;
    case HFI_NOT_SENT:
        if (answer->native)
            hfi_step_forget_token(entry, step);
        /* fall through */
    case HFI_CANNOT:
        if (answer->status != HF_UNAVAILABLE && answer->status != HF_NOMEM) {
            hfi_entry_refuse_all(entry, answer->status, step);
        } else { /* our own lack of memory or descriptors passes, like the server's troubles */
            trouble(entry, answer->status, step->now, step);
            if (!hfi_list_is_empty(&entry->waiters))
                hfi_step_ask_later(entry, step->now);
        }
        break;
    }
}

HFI_RARE bool hfi_entry_granted(struct hfi_entry *entry, int64_t echo, int64_t fence, bool good, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    if (entry->remote != HFI_ASKING && entry->remote != HFI_QUEUED)
        return false;
    if (hfi_list_is_empty(&entry->waiters)) {
        hfi_entry_requery(entry, step);
        return false;
    }
    for (int i = 0; i < HFI_ECHOES; i++) {
        int64_t claim = entry->ask.claims[i], own = hfi_step_head_of(entry)->lease_ms * HFI_MS;
        if (entry->ask.echoes[i] != echo || echo == 0)
            continue;
        claim = claim < own ? claim : own; /* the claim may have been asked for by a waiter that has left */
        if (entry->rules->confirms || echo + claim - step->now < claim / 4) {
            requery_now(entry, step);
            return false;
        }
        struct hfi_answer grant = {.fence = fence, .fence_is_good = good, .permits = entry->ask.permits[i]};
        bool is_ours = !is_anothers(entry, grant.permits, entry->ask.limits[i]);
        if (is_ours)
            hfi_step_hold(entry, echo + claim, claim, &grant, step);
        else
            hfi_step_ask_anew(entry, HFI_GIVE_BACK, step);
        return is_ours;
    }
    ask_early(entry, step->now, step);
    return false;
}

HFI_RARE void hfi_entry_remote_waiter(struct hfi_entry *entry, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    if (entry->remote == HFI_NOTHING)
        return;
    entry->remote_waiters = true;
    if (entry->remote == HFI_HELD) {
        entry->held.wanted_at = step->now;
        hfi_step_yield(entry, step); /* what threads have is given back after the batch of local passes */
    } else { /* we may own the lease without knowing it */
        ask_early(entry, step->now, step);
    }
}

void hfi_entry_ask_together(struct hfi_entry *entry, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    if (entry->remote == HFI_HELD)
        return;
    if (!entry->rules->batch_rechecks || entry->question == HFI_NEXT_ACQUIRE)
        hfi_entry_requery(entry, step);
    else if (!hfi_entry_awaits_answer(entry))
        hfi_step_ask_together_soon(entry, step->now);
    else if (entry->ask.hint == HFI_NO_HINT)
        entry->ask.hint = HFI_MISSED;
}

void hfi_entry_requery(struct hfi_entry *entry, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    /* Who comes before the answer to a question that nobody waits for asks again behind it: it may be older than the message. */
    bool may_be_claimed = hfi_entry_is_unclaimed(entry) && hfi_entry_awaits_answer(entry);
    if (entry->remote != HFI_HELD && (may_be_claimed || !hfi_list_is_empty(&entry->waiters)))
        ask_early(entry, step->now, step);
}

/* How many permits are of use: those that the waiters want, up to the first with a smaller limit than the question has. */
static int32_t most_permits(const struct hfi_entry *entry)
{
    int32_t most = 0, limit = hfi_step_head_of(entry)->limit;
    for (const struct hfi_list *at = entry->waiters.next; at != &entry->waiters; at = at->next) {
        const struct hfi_waiter *waiter = hfi_container_of(at, struct hfi_waiter, link);
        if (waiter->limit < limit || most + waiter->permits > limit || most + waiter->permits > HFI_PERMITS_MOST)
            break;
        most += waiter->permits;
    }
    return most;
}

static struct hfi_acquire_params lease_asked_for(const struct hfi_entry *entry, int64_t lease)
{
    int64_t period = hfi_step_recheck_ms(entry, lease), claim = hfi_claim_ms(lease, period);
    return (struct hfi_acquire_params){.lease_ms = lease,
                               .ttl_ms = lease + hfi_guard_ms(lease, entry->rules->guard_ms),
                               .period_ms = period,
                               .claim_ms = claim,
                               .claim_ttl_ms = claim + hfi_guard_ms(claim, entry->rules->guard_ms),
                               .patience_ms = 3 * period,
                               .ticket = entry->ask.ticket};
}

struct hfi_acquire_params hfi_entry_acquire_params(const struct hfi_entry *entry)
{
    const struct hfi_waiter *head = hfi_step_head_of(entry);
    struct hfi_acquire_params params = lease_asked_for(entry, head != NULL ? head->lease_ms : 1000);
    if (entry->rules->counts && head != NULL) {
        params.permits = head->permits;
        params.limit = head->limit;
        params.most = most_permits(entry);
    }
    return params;
}

static void remember(struct hfi_entry *entry, const struct hfi_acquire_params *params, int64_t stamp)
{
    for (int i = HFI_ECHOES - 1; i > 0; i--) {
        entry->ask.echoes[i] = entry->ask.echoes[i - 1];
        entry->ask.claims[i] = entry->ask.claims[i - 1];
        entry->ask.permits[i] = entry->ask.permits[i - 1];
        entry->ask.limits[i] = entry->ask.limits[i - 1];
    }
    entry->ask.echoes[0] = stamp;
    entry->ask.claims[0] = params->claim_ms * HFI_MS;
    entry->ask.permits[0] = params->permits;
    entry->ask.limits[0] = params->limit;
    if (params->limit > entry->ask.greatest_limit)
        entry->ask.greatest_limit = params->limit;
    entry->ask.asked_period_ms = (int32_t)params->period_ms;
}

void hfi_entry_sent(struct hfi_entry *entry, const struct hfi_acquire_params *params, int64_t stamp)
{
    remember(entry, params, stamp);
    entry->asked_for = params->lease_ms * HFI_MS;
}

HFI_RARE struct hfi_acquire_params hfi_entry_recheck_params(struct hfi_entry *entry, int64_t stamp)
{
    struct hfi_acquire_params params = lease_asked_for(entry, entry->asked_for / HFI_MS);
    remember(entry, &params, stamp);
    return params;
}
