/* SPDX-License-Identifier: MIT */
/* lock.h - what an entry lives in: its keys, its lane, its token. perform.h carries its decisions out. A client may hold a
 * hundred thousand of them, so what only some have is not in all: a semaphore's part stands behind the struct. */
#ifndef HFI_LOCK_H
#define HFI_LOCK_H

#include "base/mutex.h"
#include "base/park.h"
#include "core/lock/alarm.h"
#include "core/context/context.h"
#include "core/protocol/key.h"
#include "core/protocol/token.h"

#include <holdfast/lock.h>

struct hfi_slot;       /* table.c */
struct hfi_shared;     /* fetch/shared.c */
struct hfi_retirement; /* retirement.h */

struct hfi_grant { /* what a lock has besides as one grant of a semaphore */
    struct hfi_lock *home;           /* never changes: the lock that the table finds by name; itself, or of a further grant another */
    struct hfi_lock *_Atomic beside; /* of a home, a further grant of the semaphore; of that, the next. They end with the home */
    struct hfi_lock *asking;         /* (mutex) of a home: the grant at which threads wait, or did; for grants.c */
    bool looking;                    /* (mutex) of a home: grants.c is at work on the grants */
    struct hfi_shrinking *shrinkings, **last_shrinking; /* (mutex) in flight, in the order in which they were sent; the end of them */
};

struct hfi_lock {
    /* Never changes. */
    hf_client *client;
    struct hfi_keys keys;     /* stored behind this struct, in the same memory */
    struct hfi_slot *slot;    /* table.c: counts the references; all grants of a semaphore have one */
    struct hfi_mutex *mutex;  /* table.c: guards the fields below; other locks may have the same */
    uint32_t slot_id;

    uint32_t questions; /* acquires without an answer yet, of whatever token */
    uint32_t pendings;  /* of a home: acquirers that have no thread: the listener reads what answers them at once */
    _Atomic(bool) cached; /* table.c: `recent` has a reference */
    bool     watched;   /* key_events.c is subscribed to its key, and has a reference */
    bool     refused;   /* trouble is an answer of the server, not its silence */
    bool     queued;    /* counted in `queued` of the entry's rules */
    bool     there;     /* the server may have a key or a place of the token */
    bool     in_doubt;  /* an acquire of the token got no answer: release the token until it is certainly over */
    bool     announced; /* announce.c has said that the token has the lock */
    uint32_t may_live_ms; /* longest life of its key after what was sent: a record's patience, then the TTL */
    struct hfi_lane *_Atomic lane; /* changed with the mutex held, by lane_choice.c alone */
    struct hfi_entry entry;
    struct hfi_token token;   /* the current one */
    uint64_t revoked;         /* random bits of the token that a break left of the same grant, according to a message; 0: none */
    int64_t  last_chance_us; /* largest not_after sent with the token, server time */
    int64_t  last_chance_ns; /* our time until which its native acquire may still be executed */
    struct hfi_retirement *retirements; /* of a home: retirements of earlier tokens; NULL: none */
    hf_lease *holder;        /* a reference; NULL: no holder in this process. HFI_SHARED: the first of them, each a reference */
    uint32_t short_holds;    /* not yet in the histogram: too short to pay an atomic instruction for each; */
    uint32_t short_ns;       /* their total duration */
    struct hfi_alarm alarm;
    int64_t  alarm_at;       /* HFI_NEVER: not armed */
    hf_error *trouble;       /* details of entry.trouble; NULL: none */
    struct hfi_shared *shared; /* HFI_FETCH: fetch/shared.c; NULL before the first waiter */
    struct hfi_grant grant[];  /* HFI_SEMAPHORE: one; else none */
};

struct hfi_acquirer { /* a thread that acquires the lease, on its stack; or in a pending */
    struct hfi_waiter waiter;
    struct hfi_lock  *lock; /* where it waits; its mutex guards this too. With a semaphore that may become another grant */
    struct hfi_park   park; /* a thread's */
    const hf_lock_options *options;
    uint64_t  owner;   /* options->owner, or the thread's number; a pending's 0: nobody */
    uint64_t  thread;  /* the thread's number, */
    int       tid;     /* and its kernel id, which .signal goes to; a pending's are 0 */
    /* Says that the verdict is there, under the lock's mutex. NULL: the thread has not begun to wait, and will see it. */
    void    (*wake)(struct hfi_acquirer *acquirer);
    bool      for_others; /* until_ns of hfi_acquirer_wait limits the wait for the server's answer only; others_ms begins once
                           * another holder, or a waiter ahead of this one, is known (HFI_FETCH) */
    int64_t   others_ms;
    uint64_t  wait_number; /* deadlock.c has looked at this wait; 0: not yet */
    uint64_t  wait_nonce;  /* only who has seen a probe of this wait knows it */
    int64_t   start_us;    /* estimated server time of its begin, fixed then */
    hf_error *ring;        /* why it is refused with DEADLOCK; hfi_acquirer_explain frees it */
    hf_lease *lease; /* HFI_GOT_LEASE: the holder, with a reference for the acquirer; before: NULL, or the handle that it will be.
                      * A thread that only waits allocates nothing, so the allocator makes no cache for it */
};

struct hfi_releaser { /* a thread that waits for its release's answer, on its stack */
    struct hfi_park park;
    bool      done;
    hf_status status; /* HF_OK, LOST (gone, or `revoked`), UNKNOWN */
    bool      revoked;
    hf_error *why;    /* filled if UNKNOWN because the server refuses */
};

enum hfi_overtaken { HFI_NOT_OVERTAKEN, HFI_MAYBE_OVERTAKEN, HFI_OVERTAKEN };

struct hfi_shrinking { /* a release of a grant's permits above `keep`; context of its command (shrink.c) */
    struct hfi_shrinking *next;
    struct hfi_releaser *releaser;
    uint64_t grant;
    int32_t  keep;
    enum hfi_overtaken overtaken; /* by a later one */
};

/* A release of the grant's permits above `keep` was carried out, or may have been, while those listed before `until` (NULL: all)
 * are in flight: what they would give back is given back. Mutex held. */
void hfi_lock_overtake(struct hfi_lock *lock, const struct hfi_shrinking *until, uint64_t grant, int32_t keep,
                       enum hfi_overtaken how);

/* Only the table calls these two. */
hf_status hfi_lock_new(hf_client *client, const struct hfi_name *name, struct hfi_lock **lock, hf_error *error);
void hfi_lock_free(struct hfi_lock *lock);
/* A further grant of a semaphore; mutex held. NULL: no memory. */
struct hfi_lock *hfi_lock_beside(struct hfi_lock *home);
/* The grant that has, or had last, a token of this number; else the home. Mutex held. */
struct hfi_lock *hfi_lock_of_grant(struct hfi_lock *home, uint64_t grant);
/* The next grant after this one; NULL: there is no other. */
static inline struct hfi_lock *hfi_lock_next(const struct hfi_lock *lock)
{
    return lock->keys.use == HFI_SEMAPHORE ? atomic_load_explicit(&lock->grant->beside, memory_order_acquire) : NULL;
}
/* The lock that the table finds by its name. */
static inline struct hfi_lock *hfi_lock_home(struct hfi_lock *lock)
{
    return lock->keys.use == HFI_SEMAPHORE ? lock->grant->home : lock;
}

/* Locks the mutex and returns the time read under it. A time read before could be older than what other threads have
 * decided since (P1). So an entry receives all events in the order of the clock. */
int64_t hfi_lock_enter(struct hfi_lock *lock);
/* Unlocks the mutex, then sends what was listed. */
void hfi_lock_leave(struct hfi_lock *lock);
/* Adds the short holds to the histogram; mutex held, or no other thread can reach the lock any more. */
void hfi_lock_tell_holds(struct hfi_lock *lock);
/* A command is about to be sent after which the key may live for `ms`; mutex held. */
void hfi_lock_may_live(struct hfi_lock *lock, int64_t ms);

#endif
