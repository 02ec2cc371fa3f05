/* SPDX-License-Identifier: MIT */
/* lease.c - see lease.h. */
#include "core/lease.h"
#include "base/clock.h"

#define ATTEMPTS 13 /* that fit between the first renewal and V; the rule asks for twelve */

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
    return least(5 * recheck_ms / 2, lease_ms);
}

/* Leases that are due at about the same time are due at the same time: one script for many. */
static int64_t on_grid(int64_t at, int64_t length)
{
    int64_t grid = least(length / 100, 20 * HFI_MS);
    return grid > 0 ? at / grid * grid : at;
}

int64_t hfi_lease_stop(int64_t good_for_ns, int64_t length_ns, int64_t stop_ns)
{
    return good_for_ns < length_ns ? least(stop_ns, good_for_ns / 4) : stop_ns;
}

/* Renew when two thirds are left, of a claim half. */
static int64_t left_at_first(const struct hfi_lease_times *times, int64_t good_for)
{
    return good_for < times->length ? good_for / 2 : times->length / 3 * 2;
}

/* A new round: renewals then, and again and again until V. */
static void start_round(struct hfi_lease_times *times, int64_t good_for, int64_t rtt_ns)
{
    int64_t left = left_at_first(times, good_for);
    times->stop = hfi_lease_stop(good_for, times->length, times->full_stop);
    times->renew_first = times->renew_next = on_grid(times->end - left, times->length);
    times->attempt = most(most(left / ATTEMPTS, rtt_ns), HFI_MS);
    times->overdue = times->renew_first + most(4 * rtt_ns, times->length / 12);
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

/* A repeated attempt waits for the next of the points that all leases of this length share: what one lost connection
 * has swallowed goes out again as one command, not as one for each lease. */
static int64_t next_attempt(int64_t attempt, int64_t now, int64_t rtt_ns)
{
    int64_t least_wait = attempt / 4 * 3;
    if (rtt_ns > least_wait)
        return now + most(attempt, rtt_ns);
    int64_t next = (now / attempt + 1) * attempt;
    return next - now < least_wait ? next + attempt : next;
}

/* Whoever hastens it, again and again: attempts stay apart, by what is usual for a short lease if that is less. */
static int64_t renew_at(const struct hfi_lease_times *times)
{
    int64_t wanted = !times->doubted ? times->renew_next
                     : times->asked  ? least(times->renew_next, times->tried_at + times->attempt)
                                     : 0;
    return most(wanted, times->tried_at + least(HFI_PACE_NS, times->attempt / 4 * 3));
}

struct hfi_lease_due hfi_lease_look(struct hfi_lease_times *times, int64_t now, int64_t rtt_ns)
{
    struct hfi_lease_due due = {0};
    if (times->condition == HF_LEASE_LOST)
        return due;
    if (now >= times->end) {
        times->condition = HF_LEASE_LOST;
        times->reason = now >= times->hold_end ? HF_REASON_MAX_HOLD : HF_REASON_EXPIRED;
        due.lost = true;
        due.reason = times->reason;
        return due;
    }
    bool held_too_long = now >= times->hold_end;
    if (now >= renew_at(times) && (!held_too_long || times->doubted)) {
        due.renew = true;
        times->tried_at = now;
        times->renew_next = next_attempt(times->attempt, now, rtt_ns);
        times->asked = true;
    }
    if (held_too_long && !times->holding_told) {
        times->holding_told = true;
        due.reason = HF_REASON_MAX_HOLD;
    } else if (now >= times->end - times->stop && !times->ending_told) {
        times->ending_told = true;
        due.reason = HF_REASON_ENDING;
    } else if (now >= times->overdue && times->condition == HF_LEASE_HELD && !held_too_long) {
        due.reason = HF_REASON_UNCONFIRMED;
    }
    if (due.reason != HF_REASON_NONE) {
        due.at_risk = true;
        times->condition = HF_LEASE_AT_RISK;
        times->reason = due.reason;
    }
    return due;
}

bool hfi_lease_renewed(struct hfi_lease_times *times, int64_t sent_at, int64_t good_for_ns, int64_t now, int64_t rtt_ns)
{
    int64_t end = sent_at + good_for_ns;
    if (times->condition == HF_LEASE_LOST || now >= times->end)
        return false;
    if (end <= times->end) { /* it was longer in other hands: the next is due when it would be for this one's own */
        times->renew_next = most(times->renew_next, on_grid(end - left_at_first(times, good_for_ns), times->length));
        return false;
    }
    times->end = end;
    start_round(times, good_for_ns, rtt_ns);
    if (times->condition != HF_LEASE_AT_RISK || times->holding_told || now >= times->end - times->stop)
        return false;
    times->condition = HF_LEASE_HELD;
    times->reason = HF_REASON_NONE;
    times->ending_told = false;
    return true;
}

void hfi_lease_settle(struct hfi_lease_times *times, int64_t sent_at)
{
    if (sent_at > times->doubted_after)
        times->doubted = false;
}

void hfi_lease_doubt(struct hfi_lease_times *times)
{
    times->doubted = true;
    times->asked = false;
    times->doubted_after = times->tried_at;
}

int64_t hfi_lease_next(const struct hfi_lease_times *times)
{
    int64_t next = times->end;
    if (times->condition == HF_LEASE_LOST)
        return HFI_NEVER;
    if (!times->ending_told)
        next = least(next, times->end - times->stop);
    if (!times->holding_told || times->doubted)
        next = least(next, renew_at(times));
    if (!times->holding_told) {
        next = least(next, times->hold_end);
        if (times->condition == HF_LEASE_HELD)
            next = least(next, times->overdue);
    }
    return next;
}
