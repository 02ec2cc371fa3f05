/* SPDX-License-Identifier: MIT */
/*
 * lease.h - is a lease valid, at risk or lost; when is its next renewal due? Pure: `now` comes in, verdicts go out.
 *
 *   HELD --(a renewal is overdue: UNCONFIRMED; less than stop_ms left: ENDING, or MAX_HOLD where no renewal can extend
 *           it)--> AT_RISK
 *   AT_RISK --(a renewal came through)--> HELD        both --(V passes, or the server says so)--> LOST
 */
#ifndef HFI_LEASE_H
#define HFI_LEASE_H

#include <holdfast/lease.h>

/* What is added to a lease for its key's TTL, so that V comes first: 2.1 % for two clocks that err by 1 % each, 3 ms
 * for their granularity, guard_ms to notify a busy process. All in ms. */
int64_t hfi_guard_ms(int64_t lease_ms, int64_t guard_ms);
/* How long a hand-off is valid before its first renewal: min(2.5 R, lease), so it outlives one lost message. */
int64_t hfi_claim_ms(int64_t lease_ms, int64_t recheck_ms);

/* One grant's times. All points on CLOCK_BOOTTIME, ns. */
struct hfi_lease_times {
    int64_t end;          /* V, if hold_end is not earlier */
    int64_t length;       /* L: what is left after a full renewal */
    int64_t stop;         /* AT_RISK (ending) comes this long before the end */
    int64_t full_stop;    /* `stop` after a claim's first renewal */
    int64_t hold_end;     /* from max_hold_ms: this holder's V is never beyond it; HFI_NEVER: no such limit */
    int64_t renew_next;   /* when the next attempt is due */
    int64_t tried_at;     /* time of the last attempt */
    int64_t attempt;      /* interval between attempts */
    int64_t silent_since; /* stamp of the first unanswered attempt; HFI_NEVER: none is unanswered */
    int64_t rtt;          /* last known round trip */
    hf_lease_condition condition : 8;
    hf_reason reason : 8;
    bool ending_told;
    bool moved;           /* renew_next is not the time of the round's first renewal */
    bool sooner;          /* hfi_lease_next may be earlier than when this was cleared */
    bool questioned, asked; /* an attempt sent after questioned_after must be answered (questioned), was sent (asked) */
    int64_t questioned_after;
};

/* `end` is V. The lease counts from good_for before it; good_for is the lease, or the length of a claim. */
void hfi_lease_begin(struct hfi_lease_times *times, int64_t end, int64_t good_for_ns, int64_t lease_ms, int64_t stop_ms,
                     int64_t max_hold_ms, int64_t now, int64_t rtt_ns);

/* Pass the lease to a holder with its own lengths. V stays, and so does the pace of renewals that are in flight. */
void hfi_lease_pass(struct hfi_lease_times *times, int64_t good_for_ns, int64_t lease_ms, int64_t stop_ms,
                    int64_t max_hold_ms, int64_t now);

/* Sets hold_end, or removes it (HFI_NEVER). */
void hfi_lease_limit(struct hfi_lease_times *times, int64_t hold_end);

/* An attempt is due at that time at the latest. */
void hfi_lease_hasten(struct hfi_lease_times *times, int64_t at);

/* V for this holder, and why the lease is over then. */
int64_t hfi_lease_end(const struct hfi_lease_times *times);
hf_reason hfi_lease_over(const struct hfi_lease_times *times, int64_t now);

/* How long before its end a lease that was granted for good_for_ns is of no use any more: shorter for a claim. */
int64_t hfi_lease_stop(int64_t good_for_ns, int64_t length_ns, int64_t stop_ns);

/* What is due at `now`. Each flag is reported once, and the caller acts on all of them. */
struct hfi_lease_due {
    bool renew;      /* send one attempt now                        */
    bool at_risk;    /* notify AT_RISK with .reason                 */
    bool lost;       /* V has passed: LOST with .reason; nothing else is set */
    hf_reason reason;
};
struct hfi_lease_due hfi_lease_on_timer(struct hfi_lease_times *times, int64_t now, int64_t rtt_ns);

/* Sets the stamp of the attempt that hfi_lease_on_timer asked for. The stamp was read before that call's `now`. */
void hfi_lease_sent(struct hfi_lease_times *times, int64_t stamp);

/* A renewal whose stamp is sent_at was executed, and asked for good_for. V only moves forward, and a lost lease stays
 * lost. With less than the whole lease it counts as a claim. True: notify SAFE_AGAIN. */
bool hfi_lease_renewed(struct hfi_lease_times *times, int64_t sent_at, int64_t good_for_ns, int64_t now, int64_t rtt_ns);
/* A message says that the lease is over, or messages were missed. The next attempt is due now (paced by HFI_PACE_NS)
 * and is repeated until one is answered, even when V is at hold_end, where no other renewal is sent. */
void hfi_lease_question(struct hfi_lease_times *times);
/* A renewal whose stamp is sent_at was answered: that settles a question raised before it. */
void hfi_lease_settle(struct hfi_lease_times *times, int64_t sent_at);
/* When hfi_lease_on_timer has work next. */
int64_t hfi_lease_next(const struct hfi_lease_times *times);

#endif
