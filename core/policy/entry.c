/* SPDX-License-Identifier: MIT */
/* entry.c - what a lock name decides inside one process (see entry.h), whatever its remote state: which threads wait
 * here, which is next, when a token is given up, what is due. Calls the other entry_*.c and lease.c only. */
#include "core/policy/entry_steps.h"
#include "base/rare.h"

#include <string.h>

void hfi_step_init(struct hfi_step *step, int64_t now, int64_t rtt_ns)
{
    step->now = now;
    step->rtt_ns = rtt_ns;
    step->count = 0;
    step->successor = NULL;
    hfi_list_init(&step->woken);
}

/* The worst case of one event is a loss followed by a new acquire: five actions. An overflow would be a bug of the
 * entry's files. */
struct hfi_action *hfi_step_act(struct hfi_step *step, enum hfi_action_kind kind)
{
    struct hfi_action *action = &step->at[step->count < HFI_ACTIONS_MOST ? step->count++ : HFI_ACTIONS_MOST - 1];
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
    return hfi_list_is_empty(&entry->waiters) && entry->remote == HFI_NOTHING;
}

struct hfi_waiter *hfi_step_head_of(const struct hfi_entry *entry)
{
    return hfi_list_is_empty(&entry->waiters) ? NULL : hfi_container_of(entry->waiters.next, struct hfi_waiter, link);
}

void hfi_step_decide(struct hfi_waiter *waiter, enum hfi_verdict verdict, hf_status status, struct hfi_step *step)
{
    waiter->verdict = verdict;
    waiter->status = status;
    hfi_list_remove(&waiter->link);
    hfi_list_append(&step->woken, &waiter->link);
}

/* The token is of no use any more; the next acquire starts with a fresh one. */
void hfi_step_forget_token(struct hfi_entry *entry, struct hfi_step *step)
{
    hfi_step_unwatch(entry, step);
    hfi_step_become(entry, HFI_NOTHING, HFI_NOT_HELD);
    if (!hfi_list_is_empty(&entry->waiters))
        hfi_step_head_of(entry)->successor_since = HFI_NEVER;
    entry->question = HFI_NEXT_ACQUIRE;
    entry->remote_waiters = false;
    entry->ask_at = HFI_NEVER;
    memset(&entry->ask, 0, sizeof entry->ask);
}

/* The held lease goes back to the server. The local waiters then queue there like those of other processes. */
void hfi_step_give_back(struct hfi_entry *entry, struct hfi_step *step)
{
    entry->contended = entry->remote_waiters;
    hfi_step_act(step, HFI_GIVE_BACK);
    hfi_step_forget_token(entry, step);
    hfi_step_ask(entry, step);
}

void hfi_step_retire_token(struct hfi_entry *entry, struct hfi_step *step)
{
    hfi_step_act(step, HFI_RETIRE_TOKEN);
    hfi_step_forget_token(entry, step);
}

/* The waiter takes the free lease; if all fences are used and more are in flight, it waits for them. The lease goes
 * back to the server if no fences are to come, or if too little of it is left for the successor (without one: for the
 * waiter). If it is too little for an arriving thread alone, the lease stays with the successor. */
static void take(struct hfi_entry *entry, struct hfi_waiter *waiter, struct hfi_step *step)
{
    const struct hfi_waiter *head = hfi_step_head_of(entry), *first = hfi_waiter_is_successor(head) ? head : waiter;
    if (!hfi_step_suits(entry, first, step->now) || (!hfi_step_has_fences(entry) && !entry->held.more_asked))
        hfi_step_give_back(entry, step);
    else if (!hfi_step_has_fences(entry))
        hfi_step_become(entry, HFI_HELD, HFI_AWAITING_FENCES);
    else if (hfi_step_suits(entry, waiter, step->now))
        hfi_step_pass(entry, waiter, step);
}

void hfi_entry_arrive(struct hfi_entry *entry, struct hfi_waiter *waiter, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    bool free = hfi_step_is_free(entry);
    bool taken = entry->remote != HFI_NOTHING || !hfi_list_is_empty(&entry->waiters);
    waiter->since = step->now;
    waiter->verdict = HFI_WAITING;
    waiter->successor_since = HFI_NEVER;
    waiter->overtaken = false;
    waiter->status = HF_OK;
    hfi_list_init(&waiter->link);
    hfi_list_append(&entry->waiters, &waiter->link);
    if (free) {
        take(entry, waiter, step);
    } else if (entry->rules->shares && entry->holding == HFI_BY_THREAD) {
        hfi_step_join(entry, waiter, step);
    } else if (!taken) {
        entry->trouble = HF_OK; /* trouble and place are of waiters that left, perhaps while their token changed */
        entry->ask.ticket = entry->ask.position = 0;
        entry->unheard = waiter->once ? entry->unheard : 0;
        hfi_step_ask(entry, step);
    }
    bool is_next = (free || !taken) && waiter == hfi_step_head_of(entry);
    bool is_asked = entry->remote == HFI_ASKING && hfi_entry_awaits_answer(entry);
    bool may_ride = entry->rules->shares && (is_asked || entry->holding == HFI_AWAITING_FENCES);
    if (waiter->once && waiter->verdict == HFI_WAITING && !is_next && !may_ride)
        hfi_step_decide(waiter, HFI_REFUSED, entry->trouble != HF_OK ? entry->trouble : HF_BUSY, step);
}

void hfi_entry_successor_runs(struct hfi_entry *entry, struct hfi_waiter *waiter, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    if (!hfi_waiter_is_successor(waiter))
        return;
    if (hfi_step_is_free(entry))
        take(entry, waiter, step);
    else
        waiter->overtaken = true;
}

HFI_RARE void hfi_entry_leave(struct hfi_entry *entry, struct hfi_waiter *waiter, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    bool was_called = hfi_waiter_is_successor(waiter);
    if (entry->remote != HFI_HELD && waiter == hfi_step_head_of(entry))
        entry->ask.head_changed = true;
    hfi_list_remove(&waiter->link);
    if (!hfi_list_is_empty(&entry->waiters)) {
        const struct hfi_waiter *head = hfi_step_head_of(entry);
        if (entry->rules->counts && entry->remote != HFI_HELD &&
            !hfi_entry_has_asked_for(entry, head))
            hfi_entry_requery(entry, step);
        bool is_offered = was_called && hfi_step_is_free(entry);
        if (is_offered && hfi_step_head_of(entry)->threadless)
            take(entry, hfi_step_head_of(entry), step);
        else if (is_offered)
            hfi_step_wake_successor(entry, step);
        return;
    }
    if (entry->holding == HFI_AWAITING_FENCES || entry->holding == HFI_OFFERED)
        hfi_step_give_back(entry, step);
    else if (entry->remote == HFI_ASKING || entry->remote == HFI_QUEUED)
        hfi_step_retire_token(entry, step);
    entry->ask_at = HFI_NEVER;
}

HFI_RARE void hfi_entry_refuse_all(struct hfi_entry *entry, hf_status status, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    bool left_free = entry->holding == HFI_OFFERED;
    while (!hfi_list_is_empty(&entry->waiters))
        hfi_step_decide(hfi_step_head_of(entry), HFI_REFUSED, status, step);
    if (left_free)
        hfi_step_give_back(entry, step);
    else if (entry->remote == HFI_ASKING || entry->remote == HFI_QUEUED)
        hfi_step_retire_token(entry, step);
    entry->ask_at = HFI_NEVER;
}

/* While no lease is held. */
static enum hfi_batch ask_if_due(struct hfi_entry *entry, struct hfi_step *step)
{
    if (hfi_entry_awaits_answer(entry) || step->now < entry->ask_at)
        return HFI_BATCH_NOTHING;
    bool early = entry->ask.hint == HFI_EARLY;
    if (early)
        hfi_step_pay_early(entry, step->now);
    if (entry->question == HFI_NEXT_RECHECK && !entry->ask.head_changed && !early) {
        hfi_step_recheck(entry);
        return HFI_BATCH_RECHECK;
    }
    hfi_step_ask(entry, step);
    return HFI_BATCH_NOTHING;
}

HFI_RARE enum hfi_batch hfi_entry_on_timer(struct hfi_entry *entry, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    if (step->now >= entry->tried_until)
        entry->tried_until = INT64_MIN;
    if (entry->remote != HFI_HELD)
        return ask_if_due(entry, step);
    if (step->now >= hfi_step_idle_end(entry))
        hfi_step_yield(entry, step);
    if (entry->remote != HFI_HELD)
        return HFI_BATCH_NOTHING;
    if (step->now >= hfi_step_door_at(entry))
        hfi_lease_question(&entry->held.times);
    struct hfi_lease_due due = hfi_lease_on_timer(&entry->held.times, step->now, step->rtt_ns);
    if (due.lost) {
        hfi_entry_lost(entry, due.reason, step);
        return HFI_BATCH_NOTHING;
    }
    if (due.at_risk && entry->holding == HFI_BY_THREAD) {
        struct hfi_action *action = hfi_step_act(step, HFI_TELL);
        action->event = HF_EVENT_AT_RISK;
        action->reason = due.reason;
    }
    return due.renew ? HFI_BATCH_RENEWAL : HFI_BATCH_NOTHING;
}

int64_t hfi_entry_next(const struct hfi_entry *entry)
{
    if (entry->remote == HFI_NOTHING && entry->tried_until != INT64_MIN && hfi_list_is_empty(&entry->waiters))
        return entry->tried_until; /* until then the entry remembers tried_status */
    if (entry->remote != HFI_HELD)
        return hfi_entry_awaits_answer(entry) ? HFI_NEVER : entry->ask_at;
    int64_t next = hfi_lease_next(&entry->held.times), idle_end = hfi_step_idle_end(entry), door_at = hfi_step_door_at(entry);
    next = idle_end < next ? idle_end : next;
    return door_at < next ? door_at : next;
}

bool hfi_entry_may_be_due_sooner(struct hfi_entry *entry)
{
    bool is_in_use = entry->holding == HFI_BY_THREAD || entry->holding == HFI_OFFERED;
    if (!is_in_use || entry->rules->shares) /* more than the lease's times decides */
        return true;
    bool sooner = entry->held.times.sooner;
    entry->held.times.sooner = false;
    return sooner;
}

hf_status hfi_entry_why_in_vain(const struct hfi_entry *entry, const struct hfi_waiter *waiter)
{
    if (entry->trouble != HF_OK)
        return entry->trouble;
    return waiter->once ? HF_UNAVAILABLE : HF_TIMEOUT; /* a try waits for nothing but the server */
}
