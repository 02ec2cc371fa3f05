/* SPDX-License-Identifier: MIT */
/*
 * entry.h - one lock name inside one process: its holder, its waiters, its remote state. Pure: no I/O, no clock.
 *
 * An entry is an actor. Each event (a thread arrives or leaves, an answer or message comes in, a timer expires) is a
 * call of hfi_entry_*(), which appends the actions to take to the event's struct hfi_step. The shell
 * (core/lock/perform.c) holds the entry's mutex around the call and the actions, so commands are listed in the order in
 * which they were decided (rule P4). The place in the remote queue belongs to the entry, not to a thread (P6): the token
 * stays until the last waiter has left.
 *
 *   NOTHING --ask--> ASKING --QUEUED--> QUEUED --grant message, GRANTED--> HELD --release, loss--> NOTHING
 *                       `----GRANTED----------------------------------------^
 *
 * What is HELD is in one of four states (enum hfi_holding). From each of them the lease may be given back or lost:
 *
 *   granted --good fence--> BY_THREAD --release, threads wait--> OFFERED --successor runs, or barging--> BY_THREAD
 *      |                        `-------release, none waits----> LINGERING --arrival--> BY_THREAD
 *      `--fence behind--> AWAITING_FENCES --block of fences--> BY_THREAD
 *
 * AWAITING_FENCES also follows BY_THREAD, OFFERED and LINGERING when all fences are used and more are in flight.
 */
#ifndef HFI_ENTRY_H
#define HFI_ENTRY_H

#include "base/clock.h"
#include "base/list.h"
#include "core/policy/lease.h"

#define HFI_PASS_MOST        64             /* local passes in a row while another process waits */
#define HFI_PASS_MOST_NS     (20 * HFI_MS)
#define HFI_ECHOES           4
#define HFI_PERMITS_MOST     1000           /* of one grant */
#define HFI_BARGE_WINDOW_NS  (HFI_MS / 5)   /* how long other threads may barge in before a woken successor */

enum hfi_remote { HFI_NOTHING, HFI_ASKING, HFI_QUEUED, HFI_HELD };

enum hfi_holding {      /* what a lease that is HELD does in this process */
    HFI_NOT_HELD,       /* .remote is not HFI_HELD                                                                */
    HFI_BY_THREAD,      /* a thread holds it                                                                      */
    HFI_OFFERED,        /* free: the woken successor, a thread, is to take it, or a thread that barges in         */
    HFI_LINGERING,      /* free until linger_end: nobody waits, a thread that arrives may have it                 */
    HFI_AWAITING_FENCES /* the grant's fence was behind, or all fences are used: the block in flight will be used */
};

enum hfi_question {        /* what is in flight for the current token, or else is asked at ask_at */
    HFI_NEXT_ACQUIRE,      /* nothing in flight                                                         */
    HFI_NEXT_RECHECK,      /* nothing in flight; no change is expected, so a batched re-check is enough */
    HFI_ACQUIRE_IN_FLIGHT,
    HFI_RECHECK_IN_FLIGHT  /* batched */
};

enum hfi_hint { /* why the next question is not asked by its period alone */
    HFI_NO_HINT,
    HFI_MISSED, /* messages may have been missed since the question in flight left: ask again when it is answered */
    HFI_EARLY   /* a message, or the key's end: asked early, paced by HFI_PACE_NS */
};

enum hfi_verdict {
    HFI_WAITING = 0,
    HFI_GOT_LEASE,  /* .end, .fence                                                    */
    HFI_GOT_VALUE,  /* fetch: a value exists, the shell keeps it                       */
    HFI_REFUSED     /* .status; the shell may know more, as the last error of the name */
};

struct hfi_waiter { /* on the stack of the waiting thread, or in a pending */
    struct hfi_list  link;
    bool             once;      /* wait_ms 0: HF_BUSY instead of waiting */
    bool             again;     /* where threads share the lease: its owner has it already, so it comes in whatever waits */
    bool             beside_itself; /* its owner shares the lock by a downgrade: it comes in, or is refused, but never queues */
    bool             threadless; /* a pending's: no thread has to run before it has what is passed to it */
    int32_t          permits, limit; /* rules->counts: how many it wants, while no more than `limit` are out with them */
    int64_t          lease_ms, stop_ms, max_hold_ms, linger_ms;
    int64_t          since;     /* when it arrived */
    enum hfi_verdict verdict;
    hf_status        status;
    int64_t          successor_since; /* it is the successor: the oldest waiter, woken to take what is HELD; HFI_NEVER: it is not */
    bool             passed;    /* GOT_LEASE: another thread here had it before, or has it; false: it comes from the server */
    bool             overtaken; /* as successor it ran while another thread held the lease: the next pass is its own */
    int64_t          end;       /* V of the grant */
    int64_t          fence;
};

static inline bool hfi_waiter_is_successor(const struct hfi_waiter *waiter)
{
    return waiter->successor_since != HFI_NEVER;
}

struct hfi_entry_rules { /* shared by all entries of one use of a client */
    int64_t guard_ms;
    bool    native;           /* acquire by MULTI SET INCRBY TIME EXEC first; a fetch always uses the script */
    bool    shares;           /* readers, and a semaphore: threads of this process have the lease together */
    bool    counts;           /* a semaphore: a grant has a number of permits, and each thread takes some of them */
    bool    barges;           /* a release wakes the oldest waiter and leaves the lease free until it runs */
    bool    batch_rechecks;   /* a re-check that expects no change is sent with those of other names */
    int64_t phase;            /* offset of the grid of batched re-checks: processes do not ask at the same moment */
    bool    confirms;         /* a message alone grants nothing, for a failover could lose it: the waiter asks */
    bool    rides_out;        /* waiting calls outlast a server outage; a fetch has other answers */
    _Atomic(uint64_t) queued; /* entries in the server's queues or trying to get there: the more, the longer is R */
};

enum hfi_action_kind {
    HFI_SEND_NATIVE,   /* native acquire; with a fresh token if .fresh                    */
    HFI_SEND_WAIT,     /* acquire script, waiting; .fresh as above                        */
    HFI_SEND_TRY,      /* acquire script, trying; .fresh as above                         */
    HFI_SEND_MORE,     /* request another block of fences                                 */
    HFI_SEND_FLOOR,    /* fence_floor, then another block: the counter was behind (P8)    */
    HFI_GIVE_BACK,     /* release the held token; V is already withdrawn                  */
    HFI_SHRINK,        /* release its permits above .keep                                 */
    HFI_RETIRE_TOKEN,  /* retire a token: repeat its release until it is surely over (P5) */
    HFI_MOVE_END,      /* set the holder's V to .end                                      */
    HFI_LET_IN,        /* hfi_entry_let_in: not before V has moved, for the lease may prove to be over */
    HFI_TELL,          /* notify the holder of .event with .reason                        */
    HFI_EXPLAIN_LATE,  /* note why tries are refused now: the grant came too late to use  */
    HFI_WATCH_FOREIGN  /* .fresh true: listen for the key's end, with each answer that names a foreign holder; false: no more */
};

struct hfi_action {
    enum hfi_action_kind kind;
    bool fresh;
    int32_t keep;
    int64_t end;
    hf_event_kind event;
    hf_reason reason;
};

/* One event: when it happens, and what is then to be done. There is room for all actions of one event. The shell carries
 * them out and begins a new step. Waiters to be woken are linked into `woken` instead: there may be many. */
#define HFI_ACTIONS_MOST 12
struct hfi_step {
    int64_t now;
    int64_t rtt_ns; /* of the lane; only answers, grant messages and timers look at it */
    int count;
    struct hfi_action at[HFI_ACTIONS_MOST];
    struct hfi_waiter *successor; /* to be woken without a verdict, see hfi_entry_successor_runs; NULL: none */
    struct hfi_list woken; /* waiters with a verdict, to be woken */
};

void hfi_step_init(struct hfi_step *step, int64_t now, int64_t rtt_ns);

struct hfi_entry {
#ifdef HFI_CHECKED
    int64_t latest; /* time of the last event */
#endif
    const struct hfi_entry_rules *rules;
    struct hfi_list waiters;      /* oldest first */
    enum hfi_remote remote : 8;   /* both change by hfi_step_become only */
    enum hfi_holding holding : 8;
    enum hfi_question question : 8;
    bool     contended;           /* other processes were seen waiting, with any token: the next acquire is by script */
    bool     remote_waiters;      /* another process waits for the lease that this token has, or may have already */
    uint8_t  tried_status;        /* HF_BUSY or HF_FOREIGN */
    uint8_t  trouble;             /* hf_status: why the server cannot serve us now; HF_OK: it can */
    uint8_t  unheard;             /* R messages in a row that the holder did not receive; or grants that did not count */
    int64_t  ask_at;              /* when the next re-check or retry is due; HFI_NEVER: none is */
    int64_t  asked_for;           /* lease asked for by the last acquire, ns; the oldest waiter may be another by now */
    int64_t  tried_until;         /* until then a try that SET NX refuses gets tried_status; the script is not asked */
    int64_t  fence;               /* the last fence given under this name in this use, ever */
    uint64_t rng;                 /* state of the jitter */
    union {
        struct { /* until it is HELD; cleared with the token, but the place may pass to the next token */
            int64_t echoes[HFI_ECHOES];  /* stamps sent with this token, newest first (P2)   */
            int64_t claims[HFI_ECHOES];  /* the claim that was sent with each echo, ns,      */
            int32_t permits[HFI_ECHOES]; /* the number of permits,                           */
            int32_t limits[HFI_ECHOES];  /* and the limit                                    */
            int32_t greatest_limit;      /* of all questions sent with this token            */
            int64_t ticket, position;    /* in the remote queue; ticket 0: none              */
            int32_t asked_period_ms;     /* R of the last question                           */
            int32_t recorded_period_ms;  /* R of the last one that left a record; 0: none    */
            int64_t early_until;         /* the early questions are paid for (pace.h)        */
            enum hfi_hint hint : 8;
            uint8_t late;                /* LATE answers in a row */
            /* Facts that are no part of the question: each may come while it is in flight, and outlives a failure. */
            bool    requery_pending;     /* a grant came too late: an acquire follows the question in flight */
            bool    head_changed;        /* the oldest waiter is not that of the last acquire: its lease may differ */
            bool    watching;            /* subscribed to the key events of a foreign holder */
            bool    deaf;                /* messages may have been missed: once HELD, a renewal asks for waiters */
        } ask;
        struct { /* while HELD */
            struct hfi_lease_times times;
            int64_t  good_for;                     /* what the command that set V asked for, ns: a claim or a lease,
                                                    * perhaps that of an earlier holder */
            int64_t  shortest, lengthened_at;      /* a renewal sent up to lengthened_at counts for `shortest` only */
            int64_t  batch_since;
            int64_t  linger_end;                   /* of a lease that LINGERS, or of permits that no thread has */
            int64_t  fence_end;                    /* of the block that `fence` is in */
            int64_t  next_block;                   /* the first fence of the next block; 0: none */
            int64_t  wanted_at;                    /* when another process was last heard to wait */
            uint32_t next_block_size;
            int32_t  linger_ms;                    /* of the last local holder */
            int32_t  inside;                       /* rules->shares: threads that have the lease; rules->counts: their
                                                    * permits, */
            int32_t  permits;                      /* of so many that the token has */
            uint16_t more_below;                   /* ask for another block when fewer fences than this are left */
            uint8_t  passes;                       /* local passes in a row, counted up to HFI_PASS_MOST */
            bool     was_given : 1;                /* some thread has, or had, what the server granted */
            bool     more_asked : 1;               /* the next block is asked for; in any state of hfi_holding */
            bool     shrink_owed : 1;              /* the server may not have carried out the last SHRINK */
            uint8_t  shrinks_failed;               /* in a row: UNKNOWN */
            uint8_t  downgraded;                   /* downgrades that may have been carried out, at UINT8_MAX for good:
                                                    * others read beside the holder, no thread here may have it next */
            uint8_t  bad_fences;                   /* bad blocks in a row */
        } held;
    };
};

void hfi_entry_init(struct hfi_entry *entry, const struct hfi_entry_rules *rules, uint64_t seed);
/* Aborts if the entry contradicts itself between two events. Does nothing but in builds for development. */
#ifdef HFI_CHECKED
void hfi_entry_check(const struct hfi_entry *entry);
#else
static inline void hfi_entry_check(const struct hfi_entry *entry)
{
    (void)entry;
}
#endif
/* An acquire or a re-check of the current token is in flight. */
static inline bool hfi_entry_awaits_answer(const struct hfi_entry *entry)
{
    return entry->question >= HFI_ACQUIRE_IN_FLIGHT;
}
/* True: nothing is held, asked or waited for. */
bool hfi_entry_is_idle(const struct hfi_entry *entry);

/* A thread arrives. Its verdict may be set on return; the waiter is then in step->woken too. */
void hfi_entry_arrive(struct hfi_entry *entry, struct hfi_waiter *waiter, struct hfi_step *step);
/* The woken successor runs and has no verdict yet. */
void hfi_entry_successor_runs(struct hfi_entry *entry, struct hfi_waiter *waiter, struct hfi_step *step);
/* A waiting thread gives up (deadline, cancel). Only while its verdict is HFI_WAITING. */
void hfi_entry_leave(struct hfi_entry *entry, struct hfi_waiter *waiter, struct hfi_step *step);

/* The answer to an acquire of either form or to a re-check. For the current token only: the shell compares. */
enum hfi_answer_kind {
    HFI_GRANTED,     /* .fence, .sent_at                        */
    HFI_BUSY,        /* native: the key exists; try: held       */
    HFI_IN_QUEUE,    /* .left_ms, .position, .ticket, .ours, .unheard */
    HFI_LATE,        /* not_after had passed: the script has done nothing */
    HFI_FOREIGN_TYPE, /* a key of the name is another program's */
    HFI_HAS_VALUE,   /* fetch: the shell keeps the value         */
    HFI_NOT_SENT,    /* .status                                  */
    HFI_NO_ANSWER,
    HFI_ASK_ALONE,   /* batched re-check: something has changed, an acquire finds out what */
    HFI_CANNOT       /* an error reply: .status                  */
};
struct hfi_answer {
    enum hfi_answer_kind kind;
    bool      native;
    bool      together; /* BUSY: this name, or another one of the same command */
    bool      ours;
    bool      there;    /* the server may have a key or a place of the token */
    bool      in_doubt; /* the server may still execute an acquire of this token (P5) */
    bool      unheard;  /* R was published to the holder, which did not receive it */
    bool      anew;     /* GRANTED: the token had nothing before */
    bool      counts_not; /* NO_ANSWER: it was GRANTED, but too few replicas have it, or the server is in quarantine */
    hf_status status;
    int64_t   sent_at;  /* stamp of the command */
    int64_t   fence, left_ms, position, ticket;
    bool      fence_is_good;
    int32_t   permits;  /* GRANTED: how many the token has */
    int64_t   out;      /* and how many are out with them; 0: not known */
};
void hfi_entry_answered(struct hfi_entry *entry, const struct hfi_answer *answer, struct hfi_step *step);
/* The outcome of SEND_MORE or SEND_FLOOR. first above 0: a block of fences; 0: it was refused, or there was no memory
 * to ask; below 0: no answer. */
void hfi_entry_fences(struct hfi_entry *entry, int64_t first, int64_t count, bool good, struct hfi_step *step);
/* No block came, and none will: the counter's key belongs to another program. */
void hfi_entry_no_counter(struct hfi_entry *entry, struct hfi_step *step);
/* Messages that name the current token. hfi_entry_granted returns true if this grant is now what is held. */
bool hfi_entry_granted(struct hfi_entry *entry, int64_t echo, int64_t fence, bool good, struct hfi_step *step);
void hfi_entry_remote_waiter(struct hfi_entry *entry, struct hfi_step *step);
/* A renewal with this stamp says that no other process waits any more. */
void hfi_entry_no_remote_waiter(struct hfi_entry *entry, int64_t sent_at, struct hfi_step *step);
/* Readers that wait beside a held lease come in, if they may. */
void hfi_entry_let_in(struct hfi_entry *entry, struct hfi_step *step);
/* True: a reader that arrives now waits, for another process does and the batch of local readers is over. */
bool hfi_entry_is_shut(const struct hfi_entry *entry, int64_t now);
/* A message says that the server has another token of the same grant: a break, or a forgery. True: the lease is held,
 * and that token may stand for it. False: that token is of no use to this entry. */
bool hfi_entry_token_questioned(struct hfi_entry *entry, struct hfi_step *step);
/* A subscription is live (again); messages may have been missed. A waiting entry asks soon, batched with the client's
 * other names. A held lease is renewed now: the answer says whether another process waits. */
void hfi_entry_missed(struct hfi_entry *entry, struct hfi_step *step);
/* The server was away: all waiting names of this client ask, in batched re-checks where possible. */
void hfi_entry_ask_together(struct hfi_entry *entry, struct hfi_step *step);
/* An event of a foreign holder's key, or a message that the value is stored: ask soon. */
void hfi_entry_requery(struct hfi_entry *entry, struct hfi_step *step);

/* The holder releases the lease, or so many permits of it; `permits` is 1 for a lock. False: its end had passed, it is LOST
 * (the shell notifies the holder). `quietly`: no linger, no local pass (close; a load whose waiters do not want the
 * lease). */
bool hfi_entry_release(struct hfi_entry *entry, int32_t permits, bool quietly, struct hfi_step *step);
/* entry_permits.c: the grants of a semaphore are entries of their own (core/lock/semaphore.c). */
/* True: the waiter can have permits of this grant at once. */
bool hfi_entry_has_room(const struct hfi_entry *entry, const struct hfi_waiter *waiter, int64_t now);
/* The oldest waiter of `asking` has permits of this grant, if there is room. Both steps are of the same moment. */
bool hfi_entry_serve(struct hfi_entry *entry, struct hfi_entry *asking, struct hfi_step *step, struct hfi_step *of_asking);
/* True: its question is in flight, and who asked has been served meanwhile. Who wants as many may arrive there and wait for the
 * answer; for another waiter the question is given up. */
bool hfi_entry_is_unclaimed(const struct hfi_entry *entry);
bool hfi_entry_has_asked_for(const struct hfi_entry *entry, const struct hfi_waiter *waiter);
void hfi_entry_give_up_question(struct hfi_entry *entry, struct hfi_step *step);
/* hfi_entry_release in two halves, between which hfi_entry_serve may have given what is free to others: a thread gives
 * permits back; those that no thread has go back to the server, or linger. */
bool hfi_entry_free_permits(struct hfi_entry *entry, int32_t permits, struct hfi_step *step);
void hfi_entry_settle(struct hfi_entry *entry, bool quietly, struct hfi_step *step);
/* The same, but none lingers: the server is to be asked for more than they are. has_idle: there are any. */
bool hfi_entry_has_idle(const struct hfi_entry *entry);
void hfi_entry_yield(struct hfi_entry *entry, struct hfi_step *step);
/* The answer to a SHRINK: HF_OK; LOST, when the permits were gone already; UNKNOWN. A renewal asks what is there still, at once, and
 * SHRINK follows its answer if it was UNKNOWN. From the second UNKNOWN on the renewal follows within 400, 800, then 1600 ms. */
void hfi_entry_shrunk(struct hfi_entry *entry, hf_status status, int64_t now);
/* True: it has fewer than that by now, so a renewal that named so many and found the last one gone tells nothing. */
bool hfi_entry_has_shrunk(const struct hfi_entry *entry, int32_t permits);
/* R for another grant of the same semaphore. */
void hfi_entry_remote_waiter_beside(struct hfi_entry *entry, struct hfi_step *step);
/* True: its permits are given out, and threads wait beside it for more. They go on waiting at `other`, which is idle, and
 * asks. */
bool hfi_entry_is_overrun(const struct hfi_entry *entry);
void hfi_entry_move_waiters(struct hfi_entry *entry, struct hfi_entry *other, struct hfi_step *of_other);
/* The holder goes on as a reader, from now on; and that was not carried out. */
void hfi_entry_downgrade(struct hfi_entry *entry);
void hfi_entry_not_downgraded(struct hfi_entry *entry);
/* Fetch: all waiters get the value. The fill has freed the lock; if that is not certain, give_it_back releases it. */
void hfi_entry_filled(struct hfi_entry *entry, bool give_it_back, struct hfi_step *step);
/* A renewal has extended the current token. */
void hfi_entry_renewed(struct hfi_entry *entry, int64_t sent_at, struct hfi_step *step);
/* Make the next renewal due now. */
void hfi_entry_renew_now(struct hfi_entry *entry);
/* An authoritative end: gone, taken, revoked, closed. */
void hfi_entry_lost(struct hfi_entry *entry, hf_reason reason, struct hfi_step *step);
/* Refuse all waiters with this status. A token that is asked for or queued is given up. */
void hfi_entry_refuse_all(struct hfi_entry *entry, hf_status status, struct hfi_step *step);

/* What is sent together with those of other names of one tick, before the actions of its step are carried out. */
enum hfi_batch {
    HFI_BATCH_NOTHING,
    HFI_BATCH_RENEWAL, /* of the held token: hfi_entry_renew_params */
    HFI_BATCH_RECHECK  /* hfi_entry_recheck_params */
};
/* The timer has expired. */
enum hfi_batch hfi_entry_on_timer(struct hfi_entry *entry, struct hfi_step *step);
int64_t hfi_entry_next(const struct hfi_entry *entry); /* when the timer is due next; HFI_NEVER: no timer */
/* False: it is due no sooner than when this was called last. That spares most local passes the arithmetic. */
bool hfi_entry_may_be_due_sooner(struct hfi_entry *entry);

/* The parameters of a waiting acquire. Claim and patience are based on the R of this moment; the next R may differ. */
struct hfi_acquire_params {
    int64_t lease_ms, ttl_ms, period_ms, claim_ms, claim_ttl_ms, patience_ms, ticket;
    int32_t permits, limit, most; /* rules->counts; `most`: of use if no other process waits */
};
struct hfi_acquire_params hfi_entry_acquire_params(const struct hfi_entry *entry);
/* The parameters of a batched re-check with this stamp, for the lease of the last acquire. Reads no waiter: each is on
 * the stack of a thread that has slept for long, and out of the caches. */
struct hfi_acquire_params hfi_entry_recheck_params(struct hfi_entry *entry, int64_t stamp);
/* The shell lists an acquire with these parameters and this stamp, which is the echo that a hand-off may bring. */
void hfi_entry_sent(struct hfi_entry *entry, const struct hfi_acquire_params *params, int64_t stamp);

/* The holder's time of max_hold_ms begins now: it took the lease before it could use it. */
void hfi_entry_limit_hold(struct hfi_entry *entry, int64_t max_hold_ms, struct hfi_step *step);
/* What a renewal asks for, and how long it may wait for a connection that answers. `now` becomes its stamp. */
struct hfi_renew_params {
    int64_t ttl_ms, patience_ns;
    int32_t permits;
};
struct hfi_renew_params hfi_entry_renew_params(struct hfi_entry *entry, int64_t now);
/* The TTL for a command that is no renewal, such as one for more fences: no more than what is left of V. */
int64_t hfi_entry_question_ttl_ms(const struct hfi_entry *entry, int64_t now);
/* The status for a waiter whose time is over. */
hf_status hfi_entry_why_in_vain(const struct hfi_entry *entry, const struct hfi_waiter *waiter);

/* R, the re-check period in ms before jitter, for a queue position in a client with `queued` names in queues. It is
 * limited by the lease: a hand-off counts from the last re-check and must not bring a lease that is nearly over. */
int64_t hfi_recheck_ms(int64_t position, uint64_t queued, int64_t lease_ms);

#endif
