/* SPDX-License-Identifier: MIT */
/* retirement.h - one token's retirement: its release is sent until an answer shows that nothing of the token can be
 * executed later. in_doubt.c decides when that is so, and when the next release is sent; retire.c decides which tokens
 * are retired. */
#ifndef HFI_RETIREMENT_H
#define HFI_RETIREMENT_H

#include "core/lock/lock.h"
#include "core/policy/in_doubt.h"

struct hfi_retirement {
    struct hfi_retirement *next, **link; /* in lock->retirements; what points to this one */
    struct hfi_lock *lock;    /* the home; a reference; its mutex guards the fields below */
    struct hfi_lock *of;      /* the home or that grant of it whose own token this was, lives as long; NULL: an orphan, or what
                               * a break has left */
    struct hfi_alarm alarm;
    struct hfi_token token;
    struct hfi_in_doubt in_doubt;
    int64_t left_ns;          /* until then the server may have a key or a place of the token; 0: it never had one */
    int64_t not_before_ns;    /* earliest time of the next release; a revoked holder has until then to stop */
    struct hfi_releaser *releaser;
    bool    wanted;           /* another process is to be told first */
    bool    asked;            /* a release was sent at least once */
    bool    asking;
    bool    once_more;        /* an acquire of the token was executed, perhaps behind the release in flight */
    bool    over;             /* no longer in the list */
    int     references;       /* of the list, a command in flight, the armed alarm */
    _Atomic(void *) *cached;  /* where its memory is left */
};

/* Each with the lock's mutex held. */

/* The retirement of this token, or NULL. */
struct hfi_retirement *hfi_retirement_find(struct hfi_lock *lock, struct hfi_token token);
/* Adds a retirement to the lock's list. ends_ns: when the key has expired by itself. NULL: no memory; the key is left
 * to expire, and noted. */
struct hfi_retirement *hfi_retirement_begin(struct hfi_lock *lock, struct hfi_token token, int64_t ends_ns, int64_t left_ns);
/* Sends a release now if it is due and none is in flight. Without memory for the command the alarm tries again. */
void hfi_retirement_send(struct hfi_retirement *retirement, int64_t now);
/* Puts the server's refusal into the error of the releasing thread; NULL: none waits. */
void hfi_retirement_note_refusal(const struct hfi_lock *lock, const struct hfi_command *command, struct hfi_releaser *releaser);
/* The client is closed: the releasing thread is told UNKNOWN, the key is noted as left, and the retirement ends. The
 * caller has a reference to the lock. */
void hfi_retirement_abandon(struct hfi_retirement *retirement);

/* The word for a token's mark; a mark ages (in_doubt.h). client->retired has the marks of tokens that were given back
 * a moment ago and are over: a message that names one is merely late. That is common, for the next waiter's R often
 * crosses the holder's release. A token that may come alive again is marked in client->healed instead: its mark paces
 * the next release that a message leads to. Any thread. */
_Atomic(uint64_t) *hfi_retirement_mark(_Atomic(uint64_t) marks[HFI_MARKS], struct hfi_token token);

#endif
