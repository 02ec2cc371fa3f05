/* SPDX-License-Identifier: MIT */
/*
 * lane_private.h - a lane as lane.c (listing, writing, outcomes), lane_read.c (the reader's role) and lane_maintain.c
 * (the listener's part: dial, deadlines, tear down, farewell) see it.
 *
 * Two roles and a mutex. Whoever has the write role drains the inbox and sends; whoever has the read role
 * receives and parses; each role owns its buffer, and neither holds the mutex during a system call. The mutex
 * guards the lists between them. A command moves inbox -> queue (taken, no byte given to the socket) ->
 * flight (its bytes may leave) -> finished (its outcome is set) -> done. Only the finishing thread calls
 * `done`, holding nothing.
 *
 * A connection that is given up is shut down at once, by anybody; it is closed by the listener, when it has
 * the write role and nobody reads.
 */
#ifndef HFI_LANE_PRIVATE_H
#define HFI_LANE_PRIVATE_H

#include "base/buffer.h"
#include "pool/backoff.h"
#include "pool/dial.h"
#include "pool/framing.h"
#include "pool/pool_private.h"
#include "pool/transport.h"

enum hfi_lane_state {
    HFI_LANE_COLD,    /* nobody has asked for it yet                                      */
    HFI_LANE_DIALING, /* no connection: one is being dialled, or the next dial is not due */
    HFI_LANE_UP,
    HFI_LANE_BROKEN, /* given up; the listener is to close it and dial anew              */
    HFI_LANE_CLOSED  /* for good                                                         */
};

/* Why commands come back unsent, while there is no connection. */
enum hfi_lane_trouble {
    HFI_NO_TROUBLE, /* they do not */
    HFI_SILENT,     /* the server was, and whether it answers a dial is not known: patient ones stay */
    HFI_UNREACHABLE /* the last dial failed */
};

/* What the listener does for a lane until it looks again. Its poll() may sleep through a reply that a reader takes from
 * under it: only what has a point in time is sure to end. */
enum hfi_lane_watch {
    HFI_UNWATCHED,       /* it hears of a hang-up: who leaves anything to it kicks it */
    HFI_POLLS_REPLIES,   /* and of the next reply that nobody takes before it: leave nothing else to it */
    HFI_LOOKS_SOON       /* within half a millisecond, whatever happens: leave it anything */
};

struct hfi_lane {
    struct hfi_pool *pool;
    enum hfi_lane_kind kind;
    int index;
    size_t reply_most;

    struct hfi_inbox inbox;     /* listed, not yet taken */
    _Atomic(bool) writing;      /* the write role is taken */
    _Atomic(bool) again;        /* there is something to write that the inbox does not show */
    _Atomic(int) state;         /* enum hfi_lane_state; changed under the mutex */
    _Atomic(int) trouble;       /* enum hfi_lane_trouble */
    _Atomic(unsigned) cuts;     /* connections that ended otherwise than by silence */
    _Atomic(bool) blocked;      /* the socket took not all of `out`: wait for POLLOUT */
    _Atomic(int64_t) silent_ns; /* not 0: give it up if a command sent by then is still unanswered */
    _Atomic(int64_t) rtt_ns;
    _Atomic(int64_t) nearest_rtt_ns; /* the shortest lately: how far the server is, whatever the load */

    struct hfi_buffer out; /* the writer's */

    struct redisReader *parser; /* the reader's, down to yields_kept */
    size_t unparsed;            /* bytes since the last complete reply, where replies are not sifted; where they are: */
    struct hfi_frame frame;     /* of the reply that is coming in; */
    bool skips;                 /* it is too much, and none of it is kept */
    char *in;
    size_t in_capacity;
    int spin_score;  /* > 0: polling the socket has paid lately */
    int spin_pause;  /* sleeps until it is tried again */
    int spin_misses; /* tries in a row that missed */
    int yield_pause;  /* sleeps until others are let pass before one again */
    int yield_misses; /* times that it took too long, */
    int yields_kept;  /* and since then did not */
    int wake_fd;    /* the reader sleeps on it beside the socket */

    struct hfi_connection connection; /* changed with both roles free and the mutex held */

    /* The listener's alone. */
    struct hfi_dial *dial;
    struct hfi_backoff backoff;
    int64_t dial_due_ns;
    int64_t up_ns; /* since when it is up */
    bool hung_up; /* it saw the hang-up that the reader is about to see */
    uint64_t staged_seen;

    pthread_mutex_t mutex; /* all below */
    pthread_cond_t quiet;  /* CLOSED: a role was given back */
    struct hfi_list queue, in_flight, completed, waiters;
    bool reading;                 /* the read role is taken */
    bool completing;               /* somebody calls `done` just now */
    bool down_untold;             /* ops->lane_down is owed, after the last `done` */
    bool announcing;              /* ops->lane_up runs: lane_down waits */
    _Atomic(int) watch;           /* enum hfi_lane_watch; changed under the mutex */
    bool drop_after;              /* the command at the head has been told that the connection is useless */
    bool role_check_due;                 /* a user's command was told so: ROLE is asked in front of the next command */
    int64_t nearest_ns;           /* no deadline in queue or flight is before this */
    int64_t answered_ns;          /* the last reply; for P10 */
    _Atomic(int) in_flight_count, waiting; /* in flight; in waiters */
    int posted;                   /* of those in flight, nobody waits for so many */
    uint64_t staged, sends, times_up;
    hf_error why; /* the connection was given up */
};

/* lane.c */
struct hfi_lane *hfi_lane_new(struct hfi_pool *pool, enum hfi_lane_kind kind,
                              int index);  /* NULL: no memory, no fd */
void hfi_lane_free(struct hfi_lane *lane); /* closed, or never used; NULL is a no-op */
/* Runs the `done` of all that is finished, and ops->lane_down if it is owed; or leaves it to the thread that
 * is at it. */
void hfi_lane_run_completions(struct hfi_lane *lane);
void hfi_lane_flush_now(struct hfi_lane *lane); /* by the reader, for those who left it to it */
/* Everything in flight is UNANSWERED now, but for what has certainly not left. Then call hfi_lane_run_completions. */
void hfi_lane_give_up_locked(struct hfi_lane *lane, hf_status status, int os_errno, const char *why);
void hfi_lane_take_locked(struct hfi_lane *lane); /* inbox -> queue */
void hfi_lane_complete_locked(struct hfi_lane *lane, struct hfi_command *command, enum hfi_outcome outcome);
bool hfi_lane_is_near(const struct hfi_lane *lane); /* on this machine, or as good as */
bool hfi_lane_is_master_reply(const struct redisReply *reply);
bool hfi_lane_is_role_check(const struct hfi_command *command);
void hfi_lane_lock(struct hfi_lane *lane);
void hfi_lane_unlock(struct hfi_lane *lane);

/* lane_sift.c */
bool hfi_lane_is_sifted(const struct hfi_lane *lane); /* else a reply that is too long ends the connection */
/* With the read role: so many bytes of `in` have come. False: the connection was given up. */
bool hfi_lane_sift(struct hfi_lane *lane, size_t size, bool fresh);

/* lane_read.c */
/* With the read role: all complete replies that the parser holds. False: the connection was given up. */
bool hfi_lane_match_all(struct hfi_lane *lane, bool fresh);
/* A reply was thrown away. False: nobody had asked for it, the connection was given up. */
bool hfi_lane_pass_over_locked(struct hfi_lane *lane, int64_t now_ns);
/* The listener's turn at reading, unless somebody else has the role. */
void hfi_lane_read_some(struct hfi_lane *lane);

/* lane_maintain.c */
struct hfi_poll_set;
void hfi_lane_maintain(struct hfi_lane *lane, int64_t now_ns, struct hfi_poll_set *set); /* before every poll() */
void hfi_lane_hurry(struct hfi_lane *lane, int64_t until_ns); /* hfi_pool_hurry */
bool hfi_lane_is_drained(struct hfi_lane *lane); /* nothing is owed to anybody */
/* CLOSED from now on: what is left ends as it is, and the server is told by shutdown(SHUT_WR). */
void hfi_lane_half_close(struct hfi_lane *lane);
void hfi_lane_drain(struct hfi_lane *lane, int64_t until_ns); /* reads to the end, closes */
void hfi_lane_forked(struct hfi_lane *lane);                 /* closes descriptors, touches nothing else */

#endif
