/* SPDX-License-Identifier: MIT */
/*
 * lease.h - is this lease valid, at risk or lost, and when is what due? Pure: `now` comes in, verdicts go out.
 *
 *   HELD --(a renewal is overdue: UNCONFIRMED; less than stop_ms left: ENDING, or MAX_HOLD where none can add to it)--> AT_RISK
 *   AT_RISK --(a renewal came through)--> HELD        both --(V passes, or the server says so)--> LOST
 */
#ifndef HFI_LEASE_H
#define HFI_LEASE_H

#include <holdfast/lease.h>

/* What the server adds to a TTL so that V comes first: 2.1 % for two clocks that err by 1 % each, 3 ms for their
 * granularity, guard_ms for a busy process to be told. All in ms. */
int64_t hfi_guard_ms(int64_t lease_ms, int64_t guard_ms);
/* How long a hand-off is good for before its first renewal: min(2.5 R, lease), so it outlives one lost message. */
int64_t hfi_claim_ms(int64_t lease_ms, int64_t recheck_ms);

/* What we hear, are answered or refused makes us ask again at most so often. */
#define HFI_PACE_NS (10 * HFI_MS)

/* One grant's times. All points on CLOCK_BOOTTIME, ns. */
struct hfi_lease_times {
    int64_t end;          /* V, but for hold_end */
    int64_t length;       /* what a renewal makes it again: L */
    int64_t stop;         /* AT_RISK (ending) comes this long before the end */
    int64_t full_stop;    /* and after a claim's first renewal               */
    int64_t hold_end;     /* max_hold_ms: this holder's V is never beyond it; HFI_NEVER */
    int64_t renew_next;   /* when the next attempt is due */
    int64_t tried_at;     /* the last attempt */
    int64_t attempt;      /* distance of attempts */
    int64_t silent_since; /* the stamp of the first attempt that nothing has answered; HFI_NEVER: none is unanswered */
    int64_t rtt;          /* as it was last */
    hf_lease_condition condition : 8;
    hf_reason reason : 8;
    bool ending_told;
    bool moved;           /* renew_next is not when the first renewal of a round is due */
    bool questioned, asked;  /* an attempt sent after `questioned_after` is to settle it; one is under way, or lost */
    int64_t questioned_after;
};

/* granted_at + good_for = V. good_for is the lease, or a claim's length. */
void hfi_lease_begin(struct hfi_lease_times *times, int64_t end, int64_t good_for_ns, int64_t lease_ms, int64_t stop_ms,
                     int64_t max_hold_ms, int64_t now, int64_t rtt_ns);

/* The same lease for somebody with wishes of his own: V stays, and so does the pace of renewals that are under way. */
void hfi_lease_pass(struct hfi_lease_times *times, int64_t good_for_ns, int64_t lease_ms, int64_t stop_ms,
                    int64_t max_hold_ms, int64_t now);

/* V, for this holder; and why it is over then. */
int64_t hfi_lease_end(const struct hfi_lease_times *times);
hf_reason hfi_lease_over(const struct hfi_lease_times *times, int64_t now);

/* How long before its end such a lease is no good any more, when it is good for so long: less of a claim. */
int64_t hfi_lease_stop(int64_t good_for_ns, int64_t length_ns, int64_t stop_ns);

/* What is to do at `now`; the flags are set once each, the caller acts on all of them. */
struct hfi_lease_due {
    bool renew;      /* send one attempt now                        */
    bool at_risk;    /* tell AT_RISK with .reason                   */
    bool lost;       /* V has passed: LOST with .reason; nothing else is set */
    hf_reason reason;
};
struct hfi_lease_due hfi_lease_on_timer(struct hfi_lease_times *times, int64_t now, int64_t rtt_ns);

/* The attempt that hfi_lease_on_timer has asked for has this stamp, which is read before its `now`. */
void hfi_lease_sent(struct hfi_lease_times *times, int64_t stamp);

/* A renewal whose stamp is sent_at was executed, and asked for good_for: V moves forward, never up from the dead. Less
 * than the whole lease makes a claim of it. True: tell SAFE_AGAIN. */
bool hfi_lease_renewed(struct hfi_lease_times *times, int64_t sent_at, int64_t good_for_ns, int64_t now, int64_t rtt_ns);
/* Somebody says that it is over, or something was missed: the next attempt asks, now but for HFI_PACE_NS, and others after
 * it until one is answered. Also when V is at hold_end, and nothing else is sent. */
void hfi_lease_question(struct hfi_lease_times *times);
/* A renewal whose stamp is sent_at was answered: that settles what was questioned before it. */
void hfi_lease_settle(struct hfi_lease_times *times, int64_t sent_at);
/* Whatever is due next comes at this point. */
int64_t hfi_lease_next(const struct hfi_lease_times *times);

#endif
