/* SPDX-License-Identifier: MIT */
/* entry_held.c - the decisions about a lease that this process holds: its local holder, its V, its fences, and where it
 * goes when it is released. Calls lease.c and the steps of entry.c and entry_queue.c, nothing else. */
#include "core/policy/entry_steps.h"
#include "core/policy/fence.h"
#include "core/policy/pace.h"
#include "base/rare.h"

#include <string.h>

/* Request the second block when this many fences of the first are left. A tight acquire/release loop uses about two per
 * microsecond, and the reply must first wake its reader. Later blocks are requested one ahead (P8). */
#define ASK_AT (HFI_FENCE_BLOCK / 8 * 7)

/* True: all who share a grant have its one fence. */
static bool has_one_fence(const struct hfi_entry *entry)
{
    return entry->rules->shares && !entry->rules->counts;
}

static void give(struct hfi_entry *entry, struct hfi_waiter *waiter, struct hfi_step *step)
{
    bool one_fence = has_one_fence(entry), begins = !one_fence && entry->fence == entry->held.fence_end;
    entry->held.inside += entry->rules->counts ? waiter->permits : 1;
    if (begins) {
        entry->held.more_below = ASK_AT;
        entry->fence = entry->held.next_block - 1;
        entry->held.fence_end = entry->fence + entry->held.next_block_size;
        entry->held.next_block = 0;
    }
    hfi_step_become(entry, HFI_HELD, HFI_BY_THREAD);
    entry->held.linger_ms = (int32_t)waiter->linger_ms;
    waiter->end = hfi_lease_end(&entry->held.times);
    entry->fence += !one_fence;
    waiter->fence = entry->fence;
    waiter->passed = entry->held.was_given;
    entry->held.was_given = true;
    hfi_step_decide(waiter, HFI_GOT_LEASE, HF_OK, step);
    if (!one_fence && entry->held.next_block == 0 && !entry->held.more_asked &&
        (begins || entry->held.fence_end - entry->fence < entry->held.more_below)) {
        entry->held.more_asked = true;
        hfi_step_act(step, HFI_SEND_MORE);
    }
}

/* True: the waiter wants the same times as the holder before, and nothing has happened that it must be notified of. */
static bool goes_on(const struct hfi_lease_times *times, const struct hfi_waiter *waiter)
{
    return waiter->lease_ms * HFI_MS == times->length && waiter->stop_ms * HFI_MS == times->full_stop &&
           waiter->max_hold_ms == 0 && times->hold_end == HFI_NEVER && !times->ending_told &&
           times->condition == HF_LEASE_HELD;
}

/* Those who share a lease want one length and one warning: the longest of theirs. */
static void widen(struct hfi_lease_times *times, const struct hfi_entry *entry, const struct hfi_waiter *waiter, int64_t now)
{
    int64_t lease_ms = times->length / HFI_MS, stop_ms = times->full_stop / HFI_MS;
    if (waiter->lease_ms <= lease_ms && waiter->stop_ms <= stop_ms)
        return;
    int64_t stop = times->stop; /* those who are in are warned as early as before */
    hfi_lease_pass(times, entry->held.good_for, waiter->lease_ms > lease_ms ? waiter->lease_ms : lease_ms,
                   waiter->stop_ms > stop_ms ? waiter->stop_ms : stop_ms, 0, now);
    times->stop = times->stop > stop ? times->stop : stop;
}

/* Pass the remote lease to another thread. */
void hfi_step_pass(struct hfi_entry *entry, struct hfi_waiter *waiter, struct hfi_step *step)
{
    if (entry->rules->shares && entry->held.inside > 0) {
        int64_t length = entry->held.times.length;
        widen(&entry->held.times, entry, waiter, step->now);
        if (entry->held.times.length > length)
            entry->held.lengthened_at = step->now;
    } else if (!goes_on(&entry->held.times, waiter)) {
        int64_t length = entry->held.times.length;
        hfi_lease_pass(&entry->held.times, entry->held.good_for, waiter->lease_ms, waiter->stop_ms, waiter->max_hold_ms,
                       step->now);
        if (entry->held.times.length > length)
            entry->held.lengthened_at = step->now;
        if (entry->held.times.length < entry->held.shortest)
            entry->held.shortest = entry->held.times.length;
    }
    give(entry, waiter, step);
}

bool hfi_step_is_free(const struct hfi_entry *entry)
{
    return entry->holding == HFI_OFFERED || entry->holding == HFI_LINGERING;
}

static bool batch_is_over(const struct hfi_entry *entry, int64_t now)
{
    return entry->held.passes >= HFI_PASS_MOST || now - entry->held.batch_since >= HFI_PASS_MOST_NS;
}

bool hfi_entry_is_shut(const struct hfi_entry *entry, int64_t now)
{
    return entry->remote == HFI_HELD && entry->remote_waiters && batch_is_over(entry, now);
}

/* Unless it wants more time than is left. */
bool hfi_step_may_join(const struct hfi_entry *entry, const struct hfi_waiter *waiter, int64_t now)
{
    return hfi_step_suits(entry, waiter, now) && (!hfi_entry_is_shut(entry, now) || waiter->again) && hfi_step_has_fences(entry);
}

/* A reader, or another thread that takes permits, comes in beside those that are in. */
void hfi_step_join(struct hfi_entry *entry, struct hfi_waiter *waiter, struct hfi_step *step)
{
    if (!hfi_step_may_join(entry, waiter, step->now))
        return;
    if (entry->held.passes < HFI_PASS_MOST)
        entry->held.passes++;
    hfi_step_pass(entry, waiter, step);
}

static void join_all(struct hfi_entry *entry, struct hfi_step *step)
{
    for (struct hfi_list *at = entry->waiters.next, *next; at != &entry->waiters; at = next) {
        struct hfi_waiter *waiter = hfi_container_of(at, struct hfi_waiter, link);
        next = at->next;
        hfi_step_join(entry, waiter, step);
        if (entry->rules->counts && waiter->verdict == HFI_WAITING) /* nobody passes who wants more than there is */
            return;
    }
}

/* Enough is left for the waiter to stop and for a renewal to come through, which those that are in wait for already. Nobody joins
 * readers whose lease is at risk. */
bool hfi_step_suits(const struct hfi_entry *entry, const struct hfi_waiter *waiter, int64_t now)
{
    int64_t left = entry->held.times.end - now, road = 4 * entry->held.times.rtt;
    if (entry->rules->shares && entry->held.inside > 0)
        road = 0;
    if (entry->rules->shares && entry->held.times.condition != HF_LEASE_HELD)
        return false;
    if (entry->rules->counts && entry->held.permits - entry->held.inside < waiter->permits)
        return false;
    return left > hfi_lease_stop(entry->held.good_for, waiter->lease_ms * HFI_MS, waiter->stop_ms * HFI_MS) &&
           left > road + HFI_PACE_NS;
}

/* Waking a thread takes longer than a critical section. Until the successor runs, an arriving thread may barge in (P6
 * orders the remote queue only). A successor that ran in vain (`overtaken`), or was woken HFI_BARGE_WINDOW_NS ago,
 * gets the lease from the next release (hfi_entry_release), and a waiter without a thread is not called at all. */
void hfi_step_wake_successor(struct hfi_entry *entry, struct hfi_step *step)
{
    hfi_step_become(entry, HFI_HELD, HFI_OFFERED);
    step->successor = hfi_step_head_of(entry);
    step->successor->successor_since = step->now;
}

/* Those of a semaphore that wait may have all come in, and some permits be left. */
static void come_in(struct hfi_entry *entry, struct hfi_step *step)
{
    join_all(entry, step);
    if (entry->rules->counts)
        hfi_entry_settle(entry, false, step);
}

/* The remote lease is ours until `end`: the stamp of the command that brought it, plus good_for. */
void hfi_step_hold(struct hfi_entry *entry, int64_t end, int64_t good_for, const struct hfi_answer *grant, struct hfi_step *step)
{
    int64_t fence = grant->fence;
    hfi_step_unwatch(entry, step);
    bool deaf = entry->ask.deaf;
    entry->contended = false; /* remote_waiters stays: R may have come before the grant */
    memset(&entry->held, 0, sizeof entry->held);
    entry->held.good_for = good_for;
    entry->held.permits = grant->permits;
    entry->held.linger_end = HFI_NEVER;
    entry->held.wanted_at = step->now;
    entry->held.batch_since = step->now;
    entry->ask_at = HFI_NEVER;
    entry->trouble = HF_OK;
    entry->held.fence_end = entry->fence;
    const struct hfi_waiter *head = hfi_step_head_of(entry);
    hfi_lease_begin(&entry->held.times, end, good_for, head->lease_ms, head->stop_ms, head->max_hold_ms, step->now,
                    step->rtt_ns);
    if (deaf)
        hfi_lease_question(&entry->held.times);
    entry->held.shortest = entry->held.times.length;
    entry->held.lengthened_at = step->now;
    if (!grant->fence_is_good || fence <= entry->fence) { /* not above the name's last fence: also behind */
        hfi_step_become(entry, HFI_HELD, HFI_AWAITING_FENCES);
        hfi_step_act(step, HFI_SEND_FLOOR);
        return;
    }
    entry->fence = fence - !has_one_fence(entry);
    entry->held.fence_end = fence + HFI_FENCE_BLOCK - 1;
    entry->held.more_below = ASK_AT;
    give(entry, hfi_step_head_of(entry), step);
    if (entry->rules->shares)
        come_in(entry, step);
}

/* A command that was sent at sent_at with the held token has set the key's TTL for at least good_for. */
void hfi_step_confirmed(struct hfi_entry *entry, int64_t sent_at, int64_t good_for, struct hfi_step *step)
{
    int64_t before = entry->held.times.end, end = hfi_lease_end(&entry->held.times);
    if (good_for > entry->held.times.length)
        good_for = entry->held.times.length;
    bool safe_again = hfi_lease_renewed(&entry->held.times, sent_at, good_for, step->now, step->rtt_ns);
    if (entry->held.times.end != before)
        entry->held.good_for = good_for;
    if (entry->holding != HFI_BY_THREAD)
        return;
    if (hfi_lease_end(&entry->held.times) != end)
        hfi_step_act(step, HFI_MOVE_END)->end = hfi_lease_end(&entry->held.times);
    if (safe_again)
        hfi_step_act(step, HFI_TELL)->event = HF_EVENT_SAFE_AGAIN;
    if (entry->rules->shares && !hfi_list_is_empty(&entry->waiters))
        hfi_step_act(step, HFI_LET_IN);
}

void hfi_entry_let_in(struct hfi_entry *entry, struct hfi_step *step)
{
    if (entry->rules->shares && entry->holding == HFI_BY_THREAD)
        join_all(entry, step);
}

bool hfi_step_has_fences(const struct hfi_entry *entry)
{
    return has_one_fence(entry) || entry->fence < entry->held.fence_end || entry->held.next_block != 0;
}

/* A request has failed: the next one follows when half of the fences that are left are used. So a counter that always
 * fails costs a dozen requests for each block, not one for each local pass. */
static void want_more_later(struct hfi_entry *entry)
{
    int64_t half = (entry->held.fence_end - entry->fence) / 2;
    entry->held.more_below = half < ASK_AT ? (uint16_t)half : ASK_AT;
}

HFI_RARE void hfi_entry_fences(struct hfi_entry *entry, int64_t first, int64_t count, bool good, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    if (entry->remote != HFI_HELD)
        return;
    bool ran_out = entry->held.more_asked; /* AWAITING_FENCES: all are used; false: the grant's fence was behind */
    entry->held.more_asked = false;
    if (entry->holding != HFI_AWAITING_FENCES) {
        if (good && first > entry->held.fence_end && entry->held.next_block == 0) {
            entry->held.next_block = first;
            entry->held.next_block_size = (uint32_t)count;
        } else {
            want_more_later(entry);
        }
        return;
    }
    if (good && first > entry->fence) {
        entry->fence = first - !has_one_fence(entry);
        entry->held.fence_end = first + count - 1;
        entry->held.more_below = ASK_AT;
        struct hfi_waiter *head = hfi_step_head_of(entry); /* perhaps not the waiter that the lease was granted for */
        if (head == NULL || !hfi_step_suits(entry, head, step->now))
            hfi_step_give_back(entry, step);
        else
            hfi_step_pass(entry, head, step);
        if (entry->rules->shares && entry->holding == HFI_BY_THREAD)
            come_in(entry, step);
    } else if (ran_out || first < 0) { /* the silence of a server says nothing about its counter */
        hfi_step_give_back(entry, step);
    } else if (++entry->held.bad_fences >= 3) {
        entry->trouble = HF_UNAVAILABLE;
        while (!hfi_list_is_empty(&entry->waiters))
            hfi_step_decide(hfi_step_head_of(entry), HFI_REFUSED, HF_UNAVAILABLE, step);
        hfi_step_give_back(entry, step);
    } else {
        hfi_step_act(step, HFI_SEND_FLOOR);
    }
}

HFI_RARE void hfi_entry_no_counter(struct hfi_entry *entry, struct hfi_step *step)
{
    if (entry->remote != HFI_HELD)
        return;
    entry->held.more_asked = false;
    if (entry->holding != HFI_AWAITING_FENCES) {
        want_more_later(entry);
        return;
    }
    while (!hfi_list_is_empty(&entry->waiters))
        hfi_step_decide(hfi_step_head_of(entry), HFI_REFUSED, HF_FOREIGN, step);
    hfi_step_give_back(entry, step);
}

static bool may_pass(const struct hfi_entry *entry, int64_t now)
{
    const struct hfi_waiter *head = hfi_step_head_of(entry);
    return head != NULL && hfi_step_suits(entry, head, now) && (hfi_step_has_fences(entry) || entry->held.more_asked) &&
           !entry->held.downgraded && !(entry->remote_waiters && batch_is_over(entry, now));
}

HFI_RARE void hfi_entry_no_remote_waiter(struct hfi_entry *entry, int64_t sent_at, struct hfi_step *step)
{
    if (!entry->rules->shares || entry->remote != HFI_HELD || !entry->remote_waiters || sent_at <= entry->held.wanted_at)
        return;
    entry->remote_waiters = false;
    if (!hfi_list_is_empty(&entry->waiters))
        hfi_step_act(step, HFI_LET_IN);
}

HFI_RARE void hfi_entry_downgrade(struct hfi_entry *entry)
{
    HFI_CHECK(entry->holding == HFI_BY_THREAD);
    if (entry->held.downgraded < UINT8_MAX)
        entry->held.downgraded++;
}

HFI_RARE void hfi_entry_not_downgraded(struct hfi_entry *entry)
{
    if (entry->remote == HFI_HELD && entry->held.downgraded < UINT8_MAX)
        entry->held.downgraded--;
}

bool hfi_entry_release(struct hfi_entry *entry, int32_t permits, bool quietly, struct hfi_step *step)
{
    int64_t now = step->now;
    if (entry->rules->counts) {
        bool was_valid = hfi_entry_free_permits(entry, permits, step);
        if (was_valid)
            hfi_entry_settle(entry, quietly, step);
        return was_valid;
    }
    hfi_step_at(entry, step);
    HFI_CHECK(entry->holding == HFI_BY_THREAD);
    if (now >= hfi_lease_end(&entry->held.times))
        return false;
    entry->held.inside -= permits;
    if (entry->held.inside > 0) /* others read on */
        return true;
    hfi_lease_limit(&entry->held.times, HFI_NEVER); /* the limit was this holder's */
    if (!quietly && entry->rules->shares && may_pass(entry, now)) {
        join_all(entry, step);
    } else if (!quietly && may_pass(entry, now)) {
        const struct hfi_waiter *head = hfi_step_head_of(entry);
        bool is_called = hfi_waiter_is_successor(head);
        bool overdue = is_called && (head->overtaken || now - head->successor_since >= HFI_BARGE_WINDOW_NS);
        entry->held.passes = entry->held.passes < HFI_PASS_MOST ? (uint8_t)(entry->held.passes + 1) : HFI_PASS_MOST;
        if (!hfi_step_has_fences(entry))
            hfi_step_become(entry, HFI_HELD, HFI_AWAITING_FENCES);
        else if (!entry->rules->barges || overdue || head->threadless)
            hfi_step_pass(entry, hfi_step_head_of(entry), step);
        else if (!is_called)
            hfi_step_wake_successor(entry, step);
        else
            hfi_step_become(entry, HFI_HELD, HFI_OFFERED);
    } else if (!quietly && entry->held.linger_ms > 0 && !entry->held.downgraded && !entry->remote_waiters &&
               hfi_list_is_empty(&entry->waiters)) {
        hfi_step_become(entry, HFI_HELD, HFI_LINGERING);
        entry->held.linger_end = hfi_after_ms(now, entry->held.linger_ms);
    } else {
        hfi_step_give_back(entry, step);
    }
    return true;
}

void hfi_entry_filled(struct hfi_entry *entry, bool give_it_back, struct hfi_step *step)
{
    if (entry->remote != HFI_HELD)
        return;
    while (!hfi_list_is_empty(&entry->waiters))
        hfi_step_decide(hfi_step_head_of(entry), HFI_GOT_VALUE, HF_OK, step);
    if (give_it_back)
        hfi_step_give_back(entry, step);
    else
        hfi_step_forget_token(entry, step);
}

HFI_RARE void hfi_entry_renewed(struct hfi_entry *entry, int64_t sent_at, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    if (entry->remote != HFI_HELD)
        return;
    int64_t good_for = sent_at <= entry->held.lengthened_at ? entry->held.shortest : entry->held.times.length;
    hfi_lease_settle(&entry->held.times, sent_at);
    hfi_step_confirmed(entry, sent_at, good_for, step);
    hfi_step_shrink_again(entry, step);
}

HFI_RARE void hfi_entry_renew_now(struct hfi_entry *entry)
{
    if (entry->remote == HFI_HELD) /* a renewal in flight does not do: it may have been executed before the event */
        hfi_lease_question(&entry->held.times);
}

HFI_RARE void hfi_entry_missed(struct hfi_entry *entry, struct hfi_step *step)
{
    if (entry->remote == HFI_HELD) /* a renewal in flight may have been executed before the missed message */
        hfi_lease_question(&entry->held.times);
    else if (entry->remote != HFI_NOTHING) /* the lease may be ours already, and R for it among the missed messages */
        entry->ask.deaf = true;
    hfi_entry_ask_together(entry, step);
}

/* If the lease is held, only the server knows the truth, and a renewal asks it. A waiting token is replaced by
 * another in the same place. */
HFI_RARE bool hfi_entry_token_questioned(struct hfi_entry *entry, struct hfi_step *step)
{
    if (entry->remote == HFI_HELD)
        hfi_lease_question(&entry->held.times);
    else if (entry->remote != HFI_NOTHING)
        hfi_step_ask_anew(entry, HFI_RETIRE_TOKEN, step);
    return entry->remote == HFI_HELD;
}

HFI_RARE void hfi_entry_lost(struct hfi_entry *entry, hf_reason reason, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    if (entry->remote != HFI_HELD)
        return;
    if (entry->holding == HFI_BY_THREAD) {
        struct hfi_action *action = hfi_step_act(step, HFI_TELL);
        action->event = HF_EVENT_LOST;
        action->reason = reason;
    }
    hfi_step_give_back(entry, step);
}

HFI_RARE void hfi_entry_limit_hold(struct hfi_entry *entry, int64_t max_hold_ms, struct hfi_step *step)
{
    hfi_step_at(entry, step);
    HFI_CHECK(entry->holding == HFI_BY_THREAD);
    hfi_lease_limit(&entry->held.times, hfi_after_ms(step->now, max_hold_ms));
}

int64_t hfi_entry_question_ttl_ms(const struct hfi_entry *entry, int64_t now)
{
    int64_t left_ms = (entry->held.times.end - now) / HFI_MS;
    return left_ms > 1 ? left_ms : 1;
}

/* The key need not outlive hold_end, so less is asked for; the answer counts for no more than was asked for (P1). */
HFI_RARE struct hfi_renew_params hfi_entry_renew_params(struct hfi_entry *entry, int64_t now)
{
    hfi_lease_sent(&entry->held.times, now);
    int64_t length = entry->held.times.length, left = entry->held.times.hold_end - now;
    if (left < length) {
        length = left > HFI_MS ? (left + HFI_MS - 1) / HFI_MS * HFI_MS : HFI_MS;
        entry->held.shortest = length < entry->held.shortest ? length : entry->held.shortest;
        entry->held.lengthened_at = now;
    }
    int64_t lease_ms = length / HFI_MS;
    return (struct hfi_renew_params){lease_ms + hfi_guard_ms(lease_ms, entry->rules->guard_ms),
                                     entry->held.times.attempt / 4 * 3, entry->held.permits};
}
