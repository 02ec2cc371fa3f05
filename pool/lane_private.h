/* SPDX-License-Identifier: MIT */
/*
 * lane_private.h - what lane.c (listing, writing, outcomes), lane_gather.c (who sends), lane_wait.c (the read role),
 * lane_read.c (replies), lane_sift.c (long replies), lane_confirm.c (confirmations by replicas), lane_maintain.c (the
 * listener's part: deadlines, close) and lane_dial.c (a lane that is down) share of a lane.
 *
 * Two roles and a mutex. The thread with the write role drains the inbox and sends; the thread with the read role
 * receives and parses. Each role owns its buffer, and neither holds the mutex during a system call. The mutex guards
 * the lists between them. A command moves inbox -> queue (taken, no byte given to the socket) -> in_flight (its bytes
 * may leave) -> held (answered, where a confirmation is under way) -> completed (its outcome is set) -> done. Only the
 * thread in hfi_lane_run_completions calls `done`, with no mutex held.
 *
 * Any thread that gives a connection up shuts it down at once. Only the listener closes it, when it has the write role
 * and the read role is free.
 */
#ifndef HFI_LANE_PRIVATE_H
#define HFI_LANE_PRIVATE_H

#include "base/buffer.h"
#include "base/mutex.h"
#include "pool/backoff.h"
#include "pool/costs.h"
#include "pool/framing.h"
#include "pool/lane.h"
#include "pool/peer.h"
#include "pool/transport.h"
#include "pool/trial.h"

struct hfi_dial;
struct hfi_listener;
struct hfi_replicas;
struct hfi_subscribers;

enum hfi_lane_state {
    HFI_LANE_COLD,    /* not used yet, so not dialled                                     */
    HFI_LANE_DIALING, /* no connection: one is being dialled, or the next dial is not due */
    HFI_LANE_UP,
    HFI_LANE_BROKEN,  /* given up; the listener is to close it and dial anew              */
    HFI_LANE_CLOSED   /* for good                                                         */
};

/* Why a lane without a connection returns its commands UNSENT. */
enum hfi_lane_trouble {
    HFI_NO_TROUBLE, /* its commands stay queued */
    HFI_SILENT,     /* the server was silent, and no dial has succeeded or failed since: `patient` ones stay queued */
    HFI_UNREACHABLE /* the last dial failed */
};

/* What the listener's current poll() covers for a lane. A reader may take a reply before poll() sees it, so only a
 * timeout is sure to end the poll(). */
enum hfi_lane_watch {
    HFI_UNWATCHED,     /* hang-ups only: a thread that leaves work to the listener must kick it */
    HFI_POLLS_REPLIES, /* also the next reply, unless a reader takes it first: leave no other work to it */
    HFI_LOOKS_SOON     /* ends within hfi_costs_grace_ns in any case: any work may be left to it */
};

struct hfi_lane {
    struct hfi_peer *peer;
    struct hfi_deployment *deployment; /* peer's */
    struct hfi_listener *listener;
    enum hfi_lane_kind kind;
    int index;

    struct hfi_inbox inbox;     /* listed, not yet taken, */
    _Atomic(int) listed;        /* so many commands */
    _Atomic(bool) writing;      /* the write role is taken */
    _Atomic(bool) again;        /* there is work for the write role that the inbox does not show */
    _Atomic(int) state;         /* enum hfi_lane_state; changed by hfi_lane_set_state_locked */
    _Atomic(int) trouble;       /* enum hfi_lane_trouble */
    _Atomic(unsigned) cuts;     /* connections that ended for a reason other than silence */
    _Atomic(bool) blocked;      /* the socket did not take all of `out`: wait for POLLOUT */
    _Atomic(int64_t) silent_ns; /* not 0: give the connection up if a command sent by then is still unanswered */
    _Atomic(bool) keeps_cpu;    /* the reader's last yield was short: no other program wants the CPU */
    _Atomic(bool) gave_cpu;     /* since then another thread's was long */
    _Atomic(int)  server_cpu;   /* (read role) a score: whose CPU does the server have? hfi_costs_note_found */
    _Atomic(bool) gathers;      /* a thread is in hfi_lane_gather, and sends what is listed meanwhile */
    _Atomic(bool) unattended;   /* a thread that does not wait here has listed something, and nothing was taken since */
    _Atomic(bool) looks_again;  /* a thread is the reader, or about to be, and tests the inbox soon, whatever the server says */
    _Atomic(bool) readers_look; /* before they sleep, unless looks pause: it pays by the costs, and no other program wants the CPU */
    _Atomic(bool) is_silent;    /* (read role) nothing came since the reader's last sleep began */
    _Atomic(int) threads;       /* in hfi_lane_wait */
    _Atomic(int64_t) rtt_ns;
    _Atomic(int64_t) nearest_rtt_ns; /* recent minimum: the distance to the server, whatever the load */

    struct hfi_buffer out; /* owned by the write role */

    struct redisReader *parser; /* owned by the read role, down to yields */
    size_t unparsed;            /* bytes since the last complete reply, on a lane that is not sifted */
    struct hfi_frame frame;     /* of the incoming reply, on a sifted lane */
    bool goes_on;               /* the last receive was long, or ended within a reply: more may have been there */
    bool skips;                 /* the incoming reply is too much, and none of it is kept */
    char *in;
    size_t in_capacity;
    struct hfi_trial looks;  /* does looking at the socket pay? A hit: it found something */
    struct hfi_trial yields; /* does yielding pay? A hit: the yield was short */
    struct hfi_trial lone_yields; /* and one before a sleep, for a reader who is alone? A hit: it was short, and found a reply */
    int wake_fd;             /* eventfd that the reader polls beside the socket */

    struct hfi_connection connection; /* changed with both roles free and the mutex held */

    struct hfi_subscribers *subscribers; /* where a thread waits for messages while it has nothing to read here */
    const struct hfi_lane *renewals;     /* the reserved lane, whether it is dialled or not */
    size_t reply_most;

    /* Used by the listener only. */
    struct hfi_dial *dial;
    struct hfi_backoff backoff;
    int64_t dial_due_ns; /* when the next dial may begin */
    int64_t dialled_ns;  /* when the last one began */
    int64_t up_ns; /* since when the lane is up */
    bool hung_up;  /* the listener saw a hang-up that the reader is about to see */
    bool redirected; /* given up because another server is meant now: that one is dialled at once */
    uint64_t staged_seen;

    struct hfi_mutex mutex; /* guards all below */
    pthread_cond_t quiet;  /* CLOSED: the read role was given back, or the last `done` has returned */
    struct hfi_list queue, in_flight, held, completed, waiters;
    struct hfi_replicas *needed; /* that could be promoted; NULL: not known yet */
    int64_t written;             /* by the last ROLE in front of a WAIT; */
    int connected;               /* how many replicas, by the last one behind it */
    bool confirming;             /* a confirmation is asked for: there is one at a time, */
    bool confirms_again;         /* and one more when it is answered */
    bool reading;        /* the read role is taken */
    bool completing;     /* a thread is calling `done` */
    _Atomic(int) watch;  /* enum hfi_lane_watch; changed under the mutex */
    bool drop_after;     /* the head's reply says that the connection is useless: give it up after the head */
    _Atomic(bool) clock_by_key; /* of the server that it is connected to (owner.h) */
    bool role_check_due; /* a command got such a reply: if it was a user's, ROLE is asked in front of the next one */
    int64_t nearest_ns;  /* no deadline in queue or in_flight is before this */
    int64_t answered_ns; /* time of the last reply; for P10 */
    _Atomic(int) in_flight_count, waiting; /* lengths of in_flight and waiters */
    int threadless;      /* commands in flight that no thread waits for, */
    int prompt;          /* and those of them that are HFI_AWAITED_PROMPTLY */
    uint64_t staged, sends, acks_short;
    _Atomic(uint64_t) times_up;
    unsigned primaries; /* of the peer, when the lane last met its server or asked for its role; another: it asks first */
    _Atomic(uint64_t) run; /* of the server that it is connected to; 0: it does not tell */
    hf_error why; /* why the connection was given up */
};

/* lane.c */
/* `subscribers` and `renewals` are for the caller to set. NULL: no memory, no fd. */
struct hfi_lane *hfi_lane_new(struct hfi_peer *peer, struct hfi_listener *listener, enum hfi_lane_kind kind, int index);
void hfi_lane_free(struct hfi_lane *lane); /* after close, or never used; NULL is a no-op */
/* Runs `done` of all completed commands, or leaves that to the thread that is doing it already. */
void hfi_lane_run_completions(struct hfi_lane *lane);
void hfi_lane_flush_now(struct hfi_lane *lane); /* also sends what other threads left to the reader */
/* The socket is to tell when it takes more. Not while a thread that has lost its CPU is about to try: the socket would tell on and on. */
bool hfi_lane_waits_for_room(const struct hfi_lane *lane);
/* Everything in flight becomes UNANSWERED, except commands that have certainly not left: they go back to the queue. The
 * caller has to call hfi_lane_run_completions. */
void hfi_lane_give_up_locked(struct hfi_lane *lane, hf_status status, int os_errno, const char *why);
void hfi_lane_take_locked(struct hfi_lane *lane); /* inbox -> queue */
void hfi_lane_complete_locked(struct hfi_lane *lane, struct hfi_command *command, enum hfi_outcome outcome);
bool hfi_lane_is_role_check(const struct hfi_command *command);
void hfi_lane_lock(struct hfi_lane *lane);
void hfi_lane_unlock(struct hfi_lane *lane);

/* lane_gather.c */
bool hfi_lane_is_near(const struct hfi_lane *lane); /* so near that a command may wait for others */
void hfi_lane_note_found(struct hfi_lane *lane, enum hfi_found found); /* (read role) */
int  hfi_lane_server_cpu(const struct hfi_lane *lane); /* the score; see costs.h */
bool hfi_lane_is_left(const struct hfi_lane *lane);   /* the reader will send what this thread has listed */
bool hfi_lane_keeps_cpu(const struct hfi_lane *lane); /* no other program wants the CPU of our threads */
/* A thread is about to send the first command to a server that has our CPU: it yields once before, so that other threads list theirs.
 * True: another thread does so already, and sends this one's. */
bool hfi_lane_gather(struct hfi_lane *lane);
/* Another thread does so, and sends what this one has listed too. Not what no thread here waits for, since the one that gathers may have
 * lost its CPU; nor for a thread that waits for messages: it would not see its answer. */
bool hfi_lane_is_gathered(const struct hfi_lane *lane);

/* lane_confirm.c */
bool hfi_lane_is_confirmation(const struct hfi_command *command);
/* The replicas that could be promoted are these, from now on; for HF_ALL. */
bool hfi_lane_need(struct hfi_lane *lane, const struct hfi_replicas *needed); /* false: no memory, so nothing is confirmed */
bool hfi_lane_needs_confirmation(const struct hfi_lane *lane, const struct hfi_command *command);
/* Puts the question into the queue. False: one is under way, or there is no memory, and the connection was given up. */
bool hfi_lane_ask_for_confirmation_locked(struct hfi_lane *lane, int64_t now_ns);
void hfi_lane_lack_memory_locked(struct hfi_lane *lane, struct hfi_command *command); /* to send it: UNSENT */
void hfi_lane_drop_held_locked(struct hfi_lane *lane); /* they become UNANSWERED; the confirmation is not asked for any more */
/* The command was answered: completes it, or holds it until the confirmation behind it is answered, and with it what was
 * answered in between. */
void hfi_lane_settle_locked(struct hfi_lane *lane, struct hfi_command *command);

/* lane_check.c, in builds for development alone */
#ifdef HFI_CHECKED
void hfi_lane_check_locked(const struct hfi_lane *lane);
void hfi_lane_check_step_locked(const struct hfi_lane *lane, enum hfi_lane_state state);
#else
#define hfi_lane_check_locked(lane) ((void)0)
#define hfi_lane_check_step_locked(lane, state) ((void)0)
#endif

/* The listener's current poll() does not see to it in time that the replies in flight are read: it has to be kicked. */
static inline bool hfi_lane_is_overlooked_locked(const struct hfi_lane *lane)
{
    int watch = atomic_load(&lane->watch);
    return watch == HFI_UNWATCHED || (watch == HFI_LOOKS_SOON && lane->prompt > 0);
}

/* Whoever changes `state` calls this. */
static inline void hfi_lane_set_state_locked(struct hfi_lane *lane, enum hfi_lane_state state)
{
    hfi_lane_check_step_locked(lane, state);
    atomic_store(&lane->state, state);
}

/* lane_sift.c */
bool hfi_lane_is_sifted(const struct hfi_lane *lane); /* false: a reply that is too long ends the connection */
/* Needs the read role. Handles the `size` bytes received into `in`. False: the connection was given up. */
bool hfi_lane_sift(struct hfi_lane *lane, size_t size, bool fresh);

/* lane_read.c */
/* Needs the read role. Matches all complete replies in the parser to their commands. False: the connection was given
 * up. */
bool hfi_lane_match_all(struct hfi_lane *lane, bool fresh);
/* A reply was discarded: counts it for the command at the head. False: there is none, the connection was given up. */
bool hfi_lane_pass_over_locked(struct hfi_lane *lane, int64_t now_ns);
enum hfi_taken { HFI_GOT, HFI_EMPTY, HFI_OVER }; /* OVER: the connection was given up */
/* Needs the read role. Receives and handles what the socket has now. fresh: the socket was empty at the last look. */
enum hfi_taken hfi_lane_take_in(struct hfi_lane *lane, bool fresh);

/* lane_wait.c */
bool hfi_lane_is_read_next(const struct hfi_lane *lane); /* by this thread, once it is through with a message */
int64_t hfi_lane_own_ns(const struct hfi_lane *lane, int64_t now_ns); /* see costs.h */
/* The listener reads what has come, unless another thread has the read role. */
void hfi_lane_read_some(struct hfi_lane *lane);

/* lane_dial.c */
struct hfi_poll_set;
/* The lane is closed; or it is being dialled, the last dial failed or the server was silent, and no dial has succeeded
 * since. Commands come back UNSENT, but `patient` ones only if the lane is unreachable. */
bool hfi_lane_is_down(const struct hfi_lane *lane);
void hfi_lane_maintain_dialing(struct hfi_lane *lane, int64_t now_ns, struct hfi_poll_set *set);
/* Closes the connection if both roles are free. Otherwise the thread that has a role kicks the listener when it gives
 * the role back. */
void hfi_lane_tear_down(struct hfi_lane *lane, int64_t now_ns);

/* lane_maintain.c */
void hfi_lane_flush_again(struct hfi_lane *lane); /* what is queued too, or back it comes; `done` is called */
void hfi_lane_sweep_locked(struct hfi_lane *lane, int64_t now_ns); /* whose deadline has passed */
void hfi_lane_maintain(struct hfi_lane *lane, int64_t now_ns, struct hfi_poll_set *set); /* before every poll() */
void hfi_lane_hurry(struct hfi_lane *lane, int64_t until_ns); /* hfi_pool_hurry */
/* The listener: gives up the connection, or the dial under way, because another server is meant now. */
void hfi_lane_redirect(struct hfi_lane *lane, const char *why);
bool hfi_lane_is_drained(struct hfi_lane *lane); /* no command waits to be sent, for its reply or for its `done` */
/* The lane becomes CLOSED: commands in flight end UNANSWERED, queued ones UNSENT, and shutdown(SHUT_WR) tells the
 * server. */
void hfi_lane_half_close(struct hfi_lane *lane);
void hfi_lane_drain(struct hfi_lane *lane, int64_t until_ns); /* reads to the end of the stream, closes */
void hfi_lane_forked(struct hfi_lane *lane);                  /* closes descriptors, touches nothing else */

#endif
