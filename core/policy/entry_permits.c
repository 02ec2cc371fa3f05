/* SPDX-License-Identifier: MIT */
/* entry_permits.c - a semaphore's grant: threads of this process take permits of it and give them back, and those that no
 * thread has linger, or go back to the server. How many permits a token has only falls; more of them are a new grant, which
 * is another entry's. Calls the steps of entry.c and entry_held.c, nothing else. */
#include "core/policy/entry_steps.h"
#include "core/policy/in_doubt.h"
#include "base/rare.h"

static bool has_spare(const struct hfi_entry *entry)
{
    return entry->rules->counts && entry->holding == HFI_BY_THREAD && entry->held.permits > entry->held.inside;
}

bool hfi_entry_has_idle(const struct hfi_entry *entry)
{
    return entry->holding == HFI_LINGERING || has_spare(entry);
}

int64_t hfi_step_idle_end(const struct hfi_entry *entry)
{
    return hfi_entry_has_idle(entry) ? entry->held.linger_end : HFI_NEVER;
}

void hfi_step_yield(struct hfi_entry *entry, struct hfi_step *step)
{
    if (entry->holding == HFI_LINGERING) {
        hfi_step_give_back(entry, step);
    } else if (has_spare(entry)) {
        entry->held.permits = entry->held.inside;
        hfi_step_act(step, HFI_SHRINK)->keep = entry->held.inside;
    }
}

void hfi_entry_shrunk(struct hfi_entry *entry, hf_status status, int64_t now)
{
    if (entry->remote != HFI_HELD)
        return;
    bool failed = status == HF_UNKNOWN;
    uint8_t before = entry->held.shrinks_failed;
    if (failed && before > 0)
        hfi_lease_hasten(&entry->held.times, now + hfi_in_doubt_pause_ns(before - 1));
    else if (status != HF_OK)
        hfi_entry_renew_now(entry);
    entry->held.shrink_owed = entry->held.shrink_owed || failed;
    entry->held.shrinks_failed = !failed ? 0 : before < UINT8_MAX ? before + 1 : before;
}

bool hfi_entry_has_shrunk(const struct hfi_entry *entry, int32_t permits)
{
    return entry->rules->counts && entry->remote == HFI_HELD && entry->held.permits < permits;
}

void hfi_step_shrink_again(struct hfi_entry *entry, struct hfi_step *step)
{
    if (entry->remote != HFI_HELD || !entry->held.shrink_owed)
        return;
    entry->held.shrink_owed = false;
    hfi_step_act(step, HFI_SHRINK)->keep = entry->held.permits;
}

void hfi_entry_yield(struct hfi_entry *entry, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    hfi_step_yield(entry, step);
}

bool hfi_entry_has_room(const struct hfi_entry *entry, const struct hfi_waiter *waiter, int64_t now)
{
    return (entry->holding == HFI_BY_THREAD || entry->holding == HFI_LINGERING) && hfi_list_is_empty(&entry->waiters) &&
           hfi_step_may_join(entry, waiter, now);
}

/* The last one leaves its question to whoever comes next. Else each local pass between two threads that could have a permit each
 * would cost a question and its release. */
static void leave_question(struct hfi_entry *asking, struct hfi_waiter *waiter, struct hfi_step *of_asking)
{
    bool is_last = waiter->link.next == &asking->waiters && waiter->link.prev == &asking->waiters;
    if (!is_last || asking->remote != HFI_ASKING || !hfi_entry_awaits_answer(asking)) {
        hfi_entry_leave(asking, waiter, of_asking);
        return;
    }
    hfi_step_at(asking, of_asking);
    hfi_list_remove(&waiter->link);
}

bool hfi_entry_is_unclaimed(const struct hfi_entry *entry)
{
    return entry->rules->counts && entry->remote == HFI_ASKING && hfi_list_is_empty(&entry->waiters);
}

bool hfi_entry_has_asked_for(const struct hfi_entry *entry, const struct hfi_waiter *waiter)
{
    return waiter->permits == entry->ask.permits[0] && waiter->limit == entry->ask.limits[0];
}

void hfi_entry_give_up_question(struct hfi_entry *entry, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    hfi_step_retire_token(entry, step);
}

bool hfi_entry_serve(struct hfi_entry *entry, struct hfi_entry *asking, struct hfi_step *step, struct hfi_step *of_asking)
{
    struct hfi_waiter *waiter = hfi_step_head_of(asking);
    if (waiter == NULL || !hfi_entry_has_room(entry, waiter, step->now))
        return false;
    leave_question(asking, waiter, of_asking);
    hfi_step_at(entry, step);
    hfi_list_append(&entry->waiters, &waiter->link);
    if (entry->holding == HFI_BY_THREAD)
        hfi_step_join(entry, waiter, step);
    else
        hfi_step_pass(entry, waiter, step);
    return true;
}

bool hfi_entry_free_permits(struct hfi_entry *entry, int32_t permits, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    HFI_CHECK(entry->holding == HFI_BY_THREAD && entry->held.inside >= permits);
    if (step->now >= hfi_lease_end(&entry->held.times))
        return false;
    entry->held.inside -= permits;
    if (entry->held.inside == 0)
        hfi_step_become(entry, HFI_HELD, HFI_LINGERING);
    return true;
}

void hfi_entry_settle(struct hfi_entry *entry, bool quietly, struct hfi_step *step)
{
    if (entry->remote != HFI_HELD)
        return;
    if (!quietly && entry->held.linger_ms > 0 && !entry->remote_waiters && hfi_list_is_empty(&entry->waiters))
        entry->held.linger_end = hfi_after_ms(step->now, entry->held.linger_ms);
    else
        hfi_step_yield(entry, step);
}

/* The server may have answered the question in flight before that process came: what the answer brings is wanted. If the
 * answer is no, the grant that comes later does not linger, and nothing else. */
HFI_RARE void hfi_entry_remote_waiter_beside(struct hfi_entry *entry, struct hfi_step *step)
{
    if (entry->remote == HFI_HELD)
        hfi_entry_remote_waiter(entry, step);
    else if (hfi_entry_awaits_answer(entry))
        entry->remote_waiters = true;
}

bool hfi_entry_is_overrun(const struct hfi_entry *entry)
{
    return entry->rules->counts && entry->holding == HFI_BY_THREAD && !hfi_list_is_empty(&entry->waiters);
}

void hfi_entry_move_waiters(struct hfi_entry *entry, struct hfi_entry *other, struct hfi_step *of_other)
{
    HFI_CHECK(hfi_entry_is_overrun(entry) && hfi_entry_is_idle(other));
    hfi_step_at(other, of_other);
    while (!hfi_list_is_empty(&entry->waiters)) {
        struct hfi_waiter *waiter = hfi_step_head_of(entry);
        hfi_list_remove(&waiter->link);
        hfi_list_append(&other->waiters, &waiter->link);
    }
    other->trouble = HF_OK; /* as in hfi_entry_arrive */
    other->ask.ticket = other->ask.position = 0;
    other->unheard = 0;
    hfi_step_ask(other, of_other);
}
