/* SPDX-License-Identifier: MIT */
/* lease.c - see lease.h. */
#include "core/policy/lease.h"
#include "core/policy/pace.h"
#include "base/clock.h"

#define ATTEMPTS 13 /* attempts that fit between the first renewal and V; the rule asks for twelve */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t hfi_guard_ms(int64_t lease_ms, int64_t guard_ms)
{
    return (21 * lease_ms + 999) / 1000 + 3 + guard_ms;
}

int64_t hfi_claim_ms(int64_t lease_ms, int64_t recheck_ms)
{
    return least(recheck_ms / 2 * 5, lease_ms);
}

/* Renewals that are due at about the same time are moved to the same time, so that one script serves many leases. */
static int64_t on_grid(int64_t at, int64_t length)
{
    int64_t grid = least(length / 100, 20 * HFI_MS);
    return grid > 0 ? at / grid * grid : at;
}

int64_t hfi_lease_stop(int64_t good_for_ns, int64_t length_ns, int64_t stop_ns)
{
    return good_for_ns < length_ns ? least(stop_ns, good_for_ns / 4) : stop_ns;
}

/* Renew a lease when two thirds of it are left. Renew a claim when half of it is left, or a third of the lease has
 * passed, whichever is sooner. */
static int64_t left_at_first(const struct hfi_lease_times *times, int64_t good_for)
{
    return good_for < times->length ? most(good_for / 2, good_for - times->length / 3) : times->length / 3 * 2;
}

int64_t hfi_lease_end(const struct hfi_lease_times *times)
{
    return least(times->end, times->hold_end);
}

/* True: no renewal moves V any more. */
static bool is_last(const struct hfi_lease_times *times)
{
    return times->end >= times->hold_end;
}

hf_reason hfi_lease_over(const struct hfi_lease_times *times, int64_t now)
{
    return is_last(times) && now >= times->hold_end ? HF_REASON_MAX_HOLD : HF_REASON_EXPIRED;
}

/* Begin a round: a first renewal, then repeated attempts until V. */
static void start_round(struct hfi_lease_times *times, int64_t good_for, int64_t rtt_ns)
{
    int64_t left = left_at_first(times, good_for);
    times->stop = is_last(times) ? times->full_stop : hfi_lease_stop(good_for, times->length, times->full_stop);
    times->renew_next = on_grid(times->end - left, times->length);
    times->moved = false;
    times->attempt = most(most(left / ATTEMPTS, rtt_ns), HFI_MS);
    times->silent_since = HFI_NEVER;
    times->rtt = rtt_ns;
    times->sooner = true;
}

static int64_t overdue_at(const struct hfi_lease_times *times)
{
    return times->silent_since == HFI_NEVER ? HFI_NEVER : times->silent_since + most(4 * times->rtt, times->length / 12);
}

void hfi_lease_begin(struct hfi_lease_times *times, int64_t end, int64_t good_for_ns, int64_t lease_ms, int64_t stop_ms,
                     int64_t max_hold_ms, int64_t now, int64_t rtt_ns)
{
    *times = (struct hfi_lease_times){.end = end,
                                      .length = lease_ms * HFI_MS,
                                      .full_stop = stop_ms * HFI_MS,
                                      .hold_end = max_hold_ms > 0 ? hfi_after_ms(now, max_hold_ms) : HFI_NEVER,
                                      .condition = HF_LEASE_HELD,
                                      .reason = HF_REASON_NONE};
    start_round(times, good_for_ns, rtt_ns);
}

/* A renewal in flight asks for the length that the holder before wanted (P1). A holder that takes over a longer lease
 * must learn of its loss, or of remote waiters, as soon as with its own length, so the lease is renewed as often. */
void hfi_lease_pass(struct hfi_lease_times *times, int64_t good_for_ns, int64_t lease_ms, int64_t stop_ms,
                    int64_t max_hold_ms, int64_t now)
{
    const struct hfi_lease_times before = *times;
    hfi_lease_begin(times, before.end, good_for_ns, lease_ms, stop_ms, max_hold_ms, now, before.rtt);
    int64_t first = times->renew_next;
    if (before.moved)
        times->renew_next = before.renew_next;
    times->renew_next = least(times->renew_next, now + times->length / 3);
    times->moved = times->renew_next != first;
    times->silent_since = before.silent_since;
    times->tried_at = before.tried_at;
    times->questioned = before.questioned;
    times->asked = before.asked;
    times->questioned_after = before.questioned_after;
}

/* A repeated attempt waits for the next point of a grid that all leases of this length share: renewals that were lost
 * with one connection go out again as one command, not as one for each lease. */
static int64_t next_attempt(int64_t attempt, int64_t now, int64_t rtt_ns)
{
    int64_t least_wait = attempt / 4 * 3;
    if (rtt_ns > least_wait)
        return now + most(attempt, rtt_ns);
    int64_t next = (now / attempt + 1) * attempt;
    return next - now < least_wait ? next + attempt : next;
}

/* However often a renewal is hastened, attempts stay HFI_PACE_NS apart, or 3/4 of the usual interval if that is less (a
 * short lease). */
static int64_t renew_at(const struct hfi_lease_times *times)
{
    int64_t wanted = !times->questioned ? times->renew_next
                     : times->asked  ? least(times->renew_next, times->tried_at + times->attempt)
                                     : 0;
    return most(wanted, times->tried_at + least(HFI_PACE_NS, times->attempt / 4 * 3));
}

struct hfi_lease_due hfi_lease_on_timer(struct hfi_lease_times *times, int64_t now, int64_t rtt_ns)
{
    struct hfi_lease_due due = {0};
    int64_t end = hfi_lease_end(times);
    times->sooner = true;
    if (times->condition == HF_LEASE_LOST)
        return due;
    if (now >= end) {
        times->condition = HF_LEASE_LOST;
        times->reason = hfi_lease_over(times, now);
        due.lost = true;
        due.reason = times->reason;
        return due;
    }
    if (now >= renew_at(times) && (!is_last(times) || times->questioned)) {
        due.renew = true;
        times->tried_at = now;
        times->renew_next = next_attempt(times->attempt, now, rtt_ns);
        times->moved = times->asked = true;
        times->silent_since = least(times->silent_since, now);
    }
    if (now >= end - times->stop && !times->ending_told) {
        times->ending_told = true;
        due.reason = is_last(times) ? HF_REASON_MAX_HOLD : HF_REASON_ENDING;
    } else if (now >= overdue_at(times) && times->condition == HF_LEASE_HELD && !is_last(times)) {
        due.reason = HF_REASON_UNCONFIRMED;
    }
    if (due.reason != HF_REASON_NONE) {
        due.at_risk = true;
        times->condition = HF_LEASE_AT_RISK;
        times->reason = due.reason;
    }
    return due;
}

void hfi_lease_sent(struct hfi_lease_times *times, int64_t stamp)
{
    if (times->silent_since == times->tried_at)
        times->silent_since = stamp;
    times->sooner = true;
}

bool hfi_lease_renewed(struct hfi_lease_times *times, int64_t sent_at, int64_t good_for_ns, int64_t now, int64_t rtt_ns)
{
    int64_t end = sent_at + good_for_ns;
    times->sooner = true;
    if (times->condition == HF_LEASE_LOST || now >= hfi_lease_end(times))
        return false;
    if (end <= times->end) { /* another holder's lease was longer: renew when this holder's own would be due */
        times->renew_next = most(times->renew_next, on_grid(end - left_at_first(times, good_for_ns), times->length));
        times->moved = true;
        if (sent_at < times->silent_since) /* a later attempt is unanswered, or none is */
            return false;
        times->silent_since = HFI_NEVER;
        times->rtt = rtt_ns;
    } else {
        times->end = end;
        start_round(times, good_for_ns, rtt_ns);
    }
    if (times->condition != HF_LEASE_AT_RISK || now >= hfi_lease_end(times) - times->stop)
        return false;
    times->condition = HF_LEASE_HELD;
    times->reason = HF_REASON_NONE;
    times->ending_told = false;
    return true;
}

void hfi_lease_settle(struct hfi_lease_times *times, int64_t sent_at)
{
    if (sent_at > times->questioned_after)
        times->questioned = false;
    times->sooner = true;
}

void hfi_lease_question(struct hfi_lease_times *times)
{
    times->questioned = true;
    times->asked = false;
    times->questioned_after = times->tried_at;
    times->sooner = true;
}

void hfi_lease_hasten(struct hfi_lease_times *times, int64_t at)
{
    times->renew_next = least(times->renew_next, at);
    times->moved = times->sooner = true;
}

void hfi_lease_limit(struct hfi_lease_times *times, int64_t hold_end)
{
    if (times->hold_end == hold_end)
        return;
    times->hold_end = hold_end;
    if (is_last(times)) /* no renewal follows that would make it so */
        times->stop = times->full_stop;
    times->sooner = true;
}

int64_t hfi_lease_next(const struct hfi_lease_times *times)
{
    int64_t next = hfi_lease_end(times);
    if (times->condition == HF_LEASE_LOST)
        return HFI_NEVER;
    if (!times->ending_told)
        next = least(next, next - times->stop);
    if (!is_last(times) || times->questioned)
        next = least(next, renew_at(times));
    if (!is_last(times) && times->condition == HF_LEASE_HELD)
        next = least(next, overdue_at(times));
    return next;
}
