/* SPDX-License-Identifier: MIT */
/* handle.h - hf_lease, the user's handle of a lease. The lock that granted the lease withdraws its V and announces its
 * end (core/lock/event_sink.h) under the lock's mutex; the sink's mutex is taken after that one. */
#ifndef HFI_HANDLE_H
#define HFI_HANDLE_H

#include "base/inbox.h"
#include "base/mutex.h"
#include "base/park.h"
#include "core/context/context.h"

#include <holdfast/lock.h>

struct hfi_lock;
struct hfi_event_sink;
struct hfi_listed;

struct hfi_part { /* of a multilock's lease: the lease of one of its names */
    hf_lease *lease;
    int references; /* to be dropped when the whole ends */
    hf_reason at_risk; /* NONE: it is not */
};

struct hfi_parts { /* the leases of a multilock, in the order of their locks' keys */
    struct hfi_mutex mutex; /* guards the fields below but the leases; orders what is told of the whole */
    hf_reason told; /* with the last AT_RISK; NONE: the whole is not at risk */
    bool over;      /* LOST was told, or the release has begun: nothing more is told */
    int count;
    struct hfi_part at[];
};

struct hf_lease {
    hf_client *client;            /* a reference, for the lifetime of this memory */
    struct hfi_lock *lock;        /* a reference from the grant to the owner's release; of a multilock: its first part's */
    struct hfi_list beside;       /* the ring of those that hold the lock together with this one; the lock's mutex */
    struct hfi_parts *parts;      /* NULL: the lease of one lock. Else of a multilock: no lock's holder, valid while all are */
    hf_lease *whole;              /* the multilock's lease that this one is a part of, or NULL; the lock's mutex */
    _Atomic(int64_t) *end;        /* V; 0: withdrawn; negative: found over. In memory that a fork child reads as 0 */
    struct hfi_listed *listed;    /* lock_order.c, under its mutex; NULL: not listed */
    struct hfi_event_sink *sink;  /* NULL: the options ask for no notification */
    int64_t fence;
    int64_t since_ns;             /* when it was granted */
    int64_t hold_end;             /* the end that max_hold_ms sets; HFI_NEVER: none */
    _Atomic(int) references;      /* the owner's, the lock's while this is its holder, a posted job's */
    _Atomic(int) event_fd;        /* -1: not made */
    _Atomic(uint64_t) owner;      /* number of the acquiring or bound thread, or the program's .owner; 0: unbound */
    uint16_t permits;             /* 1 for a lock */
    uint16_t depth;               /* re-entries after the first acquire; guarded by the lock's mutex, except in a fork child */
    _Atomic(uint8_t) condition, reason;
    bool    reentrant;
    bool    holds;                /* it is the lock's holder, or one of them; the lock's mutex */
};

/* Returns a handle with two references, the owner's and the lock's, and V 0; of no lock yet. The event fd and the sink
 * that options may ask for are not made here. NULL: no memory. */
hf_lease *hfi_handle_new(hf_client *client, const hf_lock_options *options, uint64_t owner);
/* The same, if the last lease of this owner number has left its memory; else NULL. */
hf_lease *hfi_handle_left(hf_client *client, const hf_lock_options *options, uint64_t owner);
void hfi_handle_ref(hf_lease *lease);
void hfi_handle_unref(hf_lease *lease);
void hfi_handle_drop(hf_lease *lease, int count); /* drops `count` references */

/* Called by the lock with its mutex held. */
/* It becomes the lock's holder, or one of them; and is that no longer. The lock's reference is the caller's business. */
void hfi_handle_join(struct hfi_lock *lock, hf_lease *lease);
void hfi_handle_part(struct hfi_lock *lock, hf_lease *lease);
/* The holder to go on with after lock->holder, or after another one; NULL: there is no other. */
hf_lease *hfi_handle_next(const struct hfi_lock *lock, const hf_lease *holder);
void hfi_handle_begin(hf_lease *lease, int64_t end, int64_t fence, int64_t hold_end, int64_t now);
/* Moves V forward, unless it is withdrawn or past. False: a reader has found the lease over, so it is over whatever the
 * server says. */
bool hfi_handle_move_end(hf_lease *lease, int64_t end, int64_t now);
void hfi_handle_withdraw(hf_lease *lease);                           /* V = 0 */

/* The lease leaves its lock without an event: corrects the at_risk counter. */
void hfi_handle_end(hf_lease *lease);

/* Frees the handles left for the next leases of a closing client whose threads have ended. */
void hfi_handle_free_cached(hf_client *client);

#endif
