/* SPDX-License-Identifier: MIT */
/*
 * entry.h - one lock name inside one process: who holds, who waits, what the remote side is doing. Pure.
 *
 * An entry is an actor. Something happens (a thread arrives or leaves, an answer or a message comes in, a point in time
 * passes); hfi_entry_*() takes it and appends what is to be done to a list of actions. The shell (core/lock/lock.c) holds the
 * entry's mutex around both, so commands are listed in the order in which they were decided (rule P4). The place in the
 * remote queue belongs to the entry, not to a thread (P6): threads come and go, the token stays until the last one left.
 *
 *   NOTHING --ask--> ASKING --QUEUED--> QUEUED --grant message, GRANTED--> HELD --release, loss--> NOTHING
 *                       `----GRANTED----------------------------------------^
 */
#ifndef HFI_ENTRY_H
#define HFI_ENTRY_H

#include "base/clock.h"
#include "base/list.h"
#include "core/policy/lease.h"

#define HFI_PASS_MOST     64              /* local passes in a row while somebody waits elsewhere */
#define HFI_PASS_MOST_NS  (20 * HFI_MS)
#define HFI_ECHOES        4
#define HFI_BARGE_WINDOW_NS       (HFI_MS / 5)     /* so long others may take what a called waiter has not come for */

enum hfi_remote { HFI_NOTHING, HFI_ASKING, HFI_QUEUED, HFI_HELD };

enum hfi_verdict {
    HFI_WAITING = 0,
    HFI_GOT_LEASE,  /* .end, .fence                                                  */
    HFI_GOT_VALUE,  /* fetch: there is a value, the shell has it                     */
    HFI_REFUSED     /* .status, and where the shell knows more, the entry's last error */
};

struct hfi_waiter { /* on the stack of a thread that waits */
    struct hfi_list  link;
    bool             once;     /* wait_ms 0: HF_BUSY instead of waiting */
    int64_t          lease_ms, stop_ms, max_hold_ms, linger_ms;
    enum hfi_verdict verdict;
    hf_status        status;
    bool             overtaken;     /* called, and it came while another thread had it: the next pass is its */
    int64_t          end;      /* V of what was granted */
    int64_t          fence;
};

struct hfi_entry_rules { /* the same for all entries of one use of a client */
    int64_t guard_ms;
    bool    native;     /* ask by MULTI SET INCRBY EXEC first; a fetch always asks by script */
    bool    barges;     /* a release leaves the lease free while it calls the oldest waiter */
    bool    batch_rechecks;   /* a re-check that expects no news goes with those of other names */
    int64_t phase;      /* of the grid on which those are due: not every process's at the same moment */
    bool    rides_out;  /* waiting calls outlast a server that is away; a fetch has other answers */
    _Atomic(uint64_t) queued; /* entries that wait in the server's queues, or to get there: many re-check less often */
};

enum hfi_action_kind {
    HFI_SEND_NATIVE,   /* with a fresh token if .fresh                                          */
    HFI_SEND_WAIT,     /* the acquire script, waiting; the token as above                       */
    HFI_SEND_TRY,      /* the acquire script, trying                                            */
    HFI_SEND_RECHECK,  /* we wait still: recheck.lua, with other names of this tick              */
    HFI_SEND_RENEW,    /* renew the held token for .lease_ms                                    */
    HFI_SEND_MORE,     /* another block of fences                                               */
    HFI_SEND_FLOOR,    /* fence_floor, then another block: the counter was behind (P8)          */
    HFI_GIVE_BACK,     /* release the held token: V is already withdrawn                        */
    HFI_RETIRE_TOKEN,   /* release a token given up, again and again until it is surely over (P5) */
    HFI_MOVE_END,      /* the holder's V is now .end                                            */
    HFI_TELL,          /* .event with .reason to the holder                                     */
    HFI_EXPLAIN_LATE,  /* what is refused now, is because a grant came after its lease          */
    HFI_WATCH_FOREIGN  /* .fresh true: listen to the key's events; false: no longer             */
};

struct hfi_action {
    enum hfi_action_kind kind;
    bool fresh;
    struct hfi_waiter *waiter;
    int64_t end;
    hf_event_kind event;
    hf_reason reason;
};

/* Room for all that one happening can cause besides waking waiters one by one; the shell performs and empties it
 * whenever a call returns. Waking all waiters is one action each, so those are chained through the list `woken`. */
#define HFI_ACTIONS_MOST 12
struct hfi_actions {
    int count;
    struct hfi_action at[HFI_ACTIONS_MOST];
    struct hfi_waiter *successor; /* to be woken without a verdict: hfi_entry_successor_runs; NULL: nobody */
    struct hfi_list woken; /* waiters with a verdict, to be woken */
};

void hfi_actions_init(struct hfi_actions *actions);

struct hfi_entry {
#ifdef HFI_CHECKED
    int64_t latest; /* the time of what happened last */
#endif
    const struct hfi_entry_rules *rules;
    struct hfi_list waiters;      /* oldest first */
    enum hfi_remote remote : 8;
    bool     in_flight;              /* an acquire of the current token is under way        */
    bool     requery_pending;        /* we own it, says a grant: ask again at once          */
    bool     early;               /* something was heard, or the key ends: ask before a re-check's time, see HFI_PACE_NS */
    bool     contended;           /* ask by script: somebody else was seen waiting       */
    bool     batchable;               /* the next question expects no news: a re-check with others' will do */
    bool     recheck_in_flight;          /* what is under way is one                            */
    bool     missed;              /* something that was said, perhaps, since it left      */
    bool     head_changed;          /* than the waiter that the last acquire asked for: it may want another lease */
    bool     watching;            /* key events of a foreign holder                      */
    bool     remote_waiters;              /* held, or about to be: somebody waits elsewhere      */
    bool     deaf;                /* when this was asked for: once held, it is renewed, to know whether somebody waits */
    bool     is_held_here;        /* a thread has it; false: lingering, or waiting for a good fence */
    bool     awaiting_fences;             /* no fence for the next one: behind when it was granted, or used up with more under way */
    bool     more_asked;
    uint8_t  tried_status;        /* HF_BUSY or HF_FOREIGN                               */
    uint8_t  trouble;             /* hf_status: why the server cannot serve us now; HF_OK: it can */
    uint8_t  late;                /* LATE answers in a row                               */
    uint8_t  bad_fences;          /* in a row, for what is held                          */
    uint8_t  passes;              /* local ones in a row; no more are counted than are allowed */
    uint16_t more_below;          /* with fewer fences than that left another block is asked for */
    uint8_t  unheard;             /* wishes (R) in a row that the holder did not hear    */
    struct hfi_waiter *successor;    /* woken to take what is held, not here yet; NULL: nobody */
    int64_t  ask_at;              /* next re-check or retry; HFI_NEVER                   */
    int64_t  asked_for;           /* the lease that the acquire under way asked for, ns: its oldest waiter may be another */
    int64_t  tried_until;         /* a try has asked the script within the last second: what it said still stands */
    int64_t  fence;               /* the last one given, ever */
    uint64_t rng;                /* jitter's state */
    union {
        struct { /* until it is HELD; zero while NOTHING */
            int64_t echoes[HFI_ECHOES];  /* stamps sent with this token, newest first (P2)      */
            int64_t claims[HFI_ECHOES];  /* what a hand-off with that echo is good for, ns      */
            int64_t ticket, position;    /* in the remote queue; ticket 0: none                 */
            int32_t asked_period_ms;     /* the R by which the last question counted            */
            int32_t recorded_period_ms;  /* and the last one that left a record; 0: none has    */
            int64_t early_at;            /* the last question that was early                    */
        };
        struct { /* while HELD */
            struct hfi_lease_times times;
            int64_t  good_for;            /* what set V asked for, ns: a claim, a lease, perhaps another holder's lease */
            int64_t  shortest, lengthened_at; /* what was sent up to then asked for no more than the shortest lease so far */
            int64_t  successor_since;
            int64_t  batch_since, linger_end;
            int64_t  linger_ms;           /* of the last local holder */
            int64_t  fence_end;           /* of the block that `fence` is in */
            int64_t  next_block, next_block_end;    /* the next block; 0: none */
        };
    };
};

void hfi_entry_init(struct hfi_entry *entry, const struct hfi_entry_rules *rules, uint64_t seed);
/* Nothing held, asked or waited for. */
bool hfi_entry_is_idle(const struct hfi_entry *entry);

/* A thread comes. Its verdict may be there when this returns (it is in actions->woken too). */
void hfi_entry_arrive(struct hfi_entry *entry, struct hfi_waiter *waiter, int64_t now, struct hfi_actions *actions);
/* The called waiter runs, without a verdict so far. */
void hfi_entry_successor_runs(struct hfi_entry *entry, struct hfi_waiter *waiter, int64_t now, struct hfi_actions *actions);
/* A waiting thread gives up (deadline, cancel). Only while its verdict is HFI_WAITING. */
void hfi_entry_leave(struct hfi_entry *entry, struct hfi_waiter *waiter, int64_t now, struct hfi_actions *actions);

/* The answer to an acquire, whichever form, or to a re-check. For the current token only: the shell compares. */
enum hfi_answer_kind {
    HFI_GRANTED,     /* .fence, .sent_at                        */
    HFI_BUSY,        /* native: the key exists; try: held       */
    HFI_IN_QUEUE,    /* .left_ms, .position, .ticket, .ours, .unheard */
    HFI_LATE,
    HFI_FOREIGN_TYPE,
    HFI_HAS_VALUE,   /* fetch: .the shell keeps the value        */
    HFI_NOT_SENT,    /* .status                                  */
    HFI_NO_ANSWER,
    HFI_ASK_ALONE,   /* a re-check among others': something is new, an acquire of its own finds out what */
    HFI_CANNOT       /* an error reply: .status                  */
};
struct hfi_answer {
    enum hfi_answer_kind kind;
    bool      native;
    bool      ours;
    bool      in_doubt; /* the server may have done it, or may do it yet (P5) */
    bool      unheard; /* the holder was told that we wait, and nobody heard it */
    hf_status status;
    int64_t   sent_at; /* stamp of the command */
    int64_t   fence, left_ms, position, ticket;
    bool      fence_is_good;
};
void hfi_entry_answered(struct hfi_entry *entry, const struct hfi_answer *answer, int64_t now, int64_t rtt_ns,
                        struct hfi_actions *actions);
/* A block of fences came (SEND_MORE, SEND_FLOOR); first 0: none, it was refused; below: no answer came. */
void hfi_entry_fences(struct hfi_entry *entry, int64_t first, int64_t count, bool good, int64_t now,
                      struct hfi_actions *actions);
/* No block came, and none will: the counter's key is another program's. */
void hfi_entry_no_counter(struct hfi_entry *entry, struct hfi_actions *actions);
/* Messages that name the current token. True: this is what it is held by. */
bool hfi_entry_granted(struct hfi_entry *entry, int64_t echo, int64_t fence, bool good, int64_t now, int64_t rtt_ns,
                       struct hfi_actions *actions);
void hfi_entry_remote_waiter(struct hfi_entry *entry, int64_t now, struct hfi_actions *actions);
/* The server is said to have another token than this one, of the same grant: a break, or a made-up message. True: what is
 * there may stand for what is held. False: it is nobody's now. */
bool hfi_entry_token_questioned(struct hfi_entry *entry, int64_t now, struct hfi_actions *actions);
/* A subscription is live (again); messages may have been missed. Who waits asks soon, together with this client's other
 * names; who holds renews now: the answer says whether somebody waits. */
void hfi_entry_missed(struct hfi_entry *entry, int64_t now, struct hfi_actions *actions);
/* The server was away: all names of this client ask, as many as can in one script. */
void hfi_entry_ask_together(struct hfi_entry *entry, int64_t now, struct hfi_actions *actions);
/* Something about a foreign holder's key, or a value that is there: ask soon. */
void hfi_entry_requery(struct hfi_entry *entry, int64_t now, struct hfi_actions *actions);

/* The holder gives it back. False: its end had passed, it is LOST (told by the shell). `quietly`: keep nothing, pass to
 * nobody (close; a load whose waiters have other plans). */
bool hfi_entry_release(struct hfi_entry *entry, int64_t now, bool quietly, struct hfi_actions *actions);
/* A fetch: all who wait get the value. The fill has freed the lock, unless nobody knows: then it is given back. */
void hfi_entry_filled(struct hfi_entry *entry, bool give_it_back, struct hfi_actions *actions);
/* A renewal's verdict for the current token. */
void hfi_entry_renewed(struct hfi_entry *entry, int64_t sent_at, int64_t now, int64_t rtt_ns, struct hfi_actions *actions);
/* The next renewal is due now. */
void hfi_entry_renew_now(struct hfi_entry *entry);
/* An authoritative end: gone, taken, revoked, closed. */
void hfi_entry_lost(struct hfi_entry *entry, hf_reason reason, int64_t now, struct hfi_actions *actions);
/* All waiters get this verdict; a token that waits is given up. */
void hfi_entry_refuse_all(struct hfi_entry *entry, hf_status status, int64_t now, struct hfi_actions *actions);

/* Time passed. */
void    hfi_entry_on_timer(struct hfi_entry *entry, int64_t now, int64_t rtt_ns, struct hfi_actions *actions);
int64_t hfi_entry_next(const struct hfi_entry *entry); /* the next point to look at; HFI_NEVER */

/* What goes out with a waiting acquire. Claim and patience are for the R of that moment, which the next may not be. */
struct hfi_acquire_params {
    int64_t lease_ms, ttl_ms, period_ms, claim_ms, claim_ttl_ms, patience_ms, ticket;
};
struct hfi_acquire_params hfi_entry_acquire_params(const struct hfi_entry *entry);
/* What goes out with a re-check among others' and this stamp, for the lease of the question before. It looks at no
 * waiter: each is on a stack that nobody has touched for long. */
struct hfi_acquire_params hfi_entry_recheck_params(struct hfi_entry *entry, int64_t stamp);
/* The shell listed an acquire of this content with this stamp; it is the echo that a hand-off may bring. */
void hfi_entry_sent(struct hfi_entry *entry, const struct hfi_acquire_params *params, int64_t stamp);

/* What a renewal asks for, and how long it may wait for a connection that answers. */
struct hfi_renew_params {
    int64_t ttl_ms, patience_ns;
};
struct hfi_renew_params hfi_entry_renew_params(struct hfi_entry *entry, int64_t now);
/* What a question that is no renewal, such as one for more fences, may extend the key to: no more than is believed. */
int64_t hfi_entry_question_ttl_ms(const struct hfi_entry *entry, int64_t now);
/* A waiter's time is over: what it is told. */
hf_status hfi_entry_why_in_vain(const struct hfi_entry *entry, const struct hfi_waiter *waiter);

/* R, the re-check period, ms, before jitter: for a queue position, in a client of which so many names are in queues. Not so
 * long that a hand-off that counts from the last one would bring a lease that is nearly over. */
int64_t hfi_recheck_ms(int64_t position, uint64_t queued, int64_t lease_ms);

#endif
