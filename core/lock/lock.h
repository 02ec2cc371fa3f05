/* SPDX-License-Identifier: MIT */
/*
 * lock.h - the shell of an entry: its mutex, its keys, its lane, its token. What the entry decides is carried out here,
 * under the mutex, so that commands are listed in the order of the decisions; sending comes after the mutex.
 */
#ifndef HFI_LOCK_H
#define HFI_LOCK_H

#include "base/park.h"
#include "core/lock/alarm.h"
#include "core/context/context.h"
#include "core/lock/handle.h"
#include "core/protocol/key.h"
#include "core/protocol/wire.h"

struct hfi_slot;   /* table.c */
struct hfi_shared; /* fetch.c */
struct hfi_retirement; /* retire.c */

struct hfi_lock {
    /* Never changes. */
    hf_client *client;
    struct hfi_keys keys; /* behind this struct, in the same memory */
    struct hfi_lane *lane;
    struct hfi_slot *slot; /* table.c: counts the references */
    uint32_t slot_id;

    bool     watched; /* the mutex's too: events.c listens to its key, and has a reference */
    bool     refused; /* the mutex's too: trouble is what the server has answered, and not its silence */
    bool     queued;  /* the mutex's too: counted in the entry's rules */
    bool     in_doubt; /* the mutex's too: one of the token's acquires got no answer, release until it is surely over */
    pthread_mutex_t mutex;   /* for all that follows */
    struct hfi_entry entry;
    uint64_t grant, random;  /* of the current token: hfi_lock_token */
    uint64_t revoked;        /* the random digits that a break has put there instead, as a message said; 0 */
    int64_t  last_chance_us; /* largest not_after sent with the token, server time */
    int64_t  last_chance_ns; /* of its native form: until then, our time, it may still be executed */
    int64_t  may_live_ms;    /* the longest that its key may live after what was sent: a TTL, and before it a record's patience */
    struct hfi_retirement *retirements; /* tokens that are given back; NULL: none */
    hf_lease *holder;        /* a reference; NULL: nobody here */
    uint64_t short_holds;    /* that the histogram has not been told of: too short for a locked instruction each; */
    int64_t  short_ns;       /* how long they took together */
    struct hfi_alarm alarm;
    int64_t  alarm_at;       /* HFI_NEVER: not armed */
    hf_error *trouble;       /* more about entry.trouble; NULL: nothing more */
    struct hfi_shared *shared; /* HFI_FETCH: fetch.c; NULL before the first waiter */
};

struct hfi_acquirer { /* a thread that wants the lease, on its stack */
    struct hfi_waiter waiter;
    struct hfi_park   park;
    const hf_lock_options *options;
    uint64_t  owner;   /* the thread's number */
    uint64_t  thread;  /* this one's number, */
    int       tid;     /* and where .signal goes */
    bool      sleeps;  /* it has to be woken */
    bool      for_others; /* the time given to hfi_acquire is for the server's answer; others_ms begins when it is known that
                           * somebody else has the lease, or stands before us (HFI_FETCH) */
    int64_t   others_ms;
    hf_lease *lease; /* when the waiter has got it: the holder, with a reference for the acquirer. So long as a thread only
                      * waits it takes no memory, and no allocator makes a cache for it */
};

struct hfi_releaser { /* a thread that waits for its release's answer, on its stack */
    struct hfi_park park;
    bool      done;
    hf_status status; /* HF_OK, LOST (gone), UNKNOWN */
    hf_error *why;    /* UNKNOWN because the server refuses: filled */
};

/* Only the table calls these two. */
hf_status hfi_lock_new(hf_client *client, enum hfi_use use, const char *name, size_t size, uint64_t hash,
                       struct hfi_lock **lock, hf_error *error);
void hfi_lock_free(struct hfi_lock *lock);

/* Takes the mutex, and the time under it: a clock that was read before could date what others have decided since (P1).
 * Whatever an entry is told, it is told in the order of the clock. */
int64_t hfi_lock_enter(struct hfi_lock *lock);
/* The current token as it goes over the wire; its length. Mutex held. */
size_t hfi_lock_token(const struct hfi_lock *lock, char out[HFI_TOKEN_CAPACITY]);
/* Carries out what was decided; mutex held. `releaser` (or NULL) learns the answer of a HFI_GIVE_BACK among it. After
 * unlocking: hfi_lane_flush(lock->lane). */
void hfi_lock_perform(struct hfi_lock *lock, struct hfi_actions *actions, int64_t now, struct hfi_releaser *releaser);
/* The histogram is told of the short holds; mutex held, or nobody else knows it any more. */
void hfi_lock_tell_holds(struct hfi_lock *lock);
/* Something is about to be sent after which its key may live so long; mutex held. */
void hfi_lock_may_live(struct hfi_lock *lock, int64_t ms);
/* The alarm rings when the entry has something to look at; mutex held. */
void hfi_lock_set_timer(struct hfi_lock *lock);

#endif
