/* SPDX-License-Identifier: MIT */
/*
 * lock.h - the shell of an entry: its mutex, its keys, its lane, its token. The entry's decisions are carried out here,
 * under the mutex, so that commands are listed in the order of the decisions. They are sent after unlocking.
 */
#ifndef HFI_LOCK_H
#define HFI_LOCK_H

#include "base/mutex.h"
#include "base/park.h"
#include "core/lock/alarm.h"
#include "core/context/context.h"
#include "core/lock/handle.h"
#include "core/protocol/key.h"
#include "core/protocol/wire.h"

struct hfi_slot;       /* table.c */
struct hfi_shared;     /* fetch/shared.c */
struct hfi_retirement; /* retire.c */

struct hfi_lock {
    /* Never changes. */
    hf_client *client;
    struct hfi_keys keys; /* stored behind this struct, in the same memory */
    struct hfi_lane *lane;
    struct hfi_slot *slot; /* table.c: counts the references */
    uint32_t slot_id;

    bool     watched;  /* (mutex) events.c is subscribed to its key, and has a reference */
    bool     refused;  /* (mutex) trouble is an answer of the server, not its silence */
    bool     queued;   /* (mutex) counted in `queued` of the entry's rules */
    bool     in_doubt; /* (mutex) an acquire of the token got no answer: release the token until it is certainly over */
    struct hfi_mutex mutex;   /* guards the fields below, and those marked (mutex) */
    struct hfi_entry entry;
    uint64_t grant, random;  /* of the current token: hfi_lock_token */
    uint64_t revoked;        /* random digits of the token that a break left instead, according to a message; 0: none */
    int64_t  last_chance_us; /* largest not_after sent with the token, server time */
    int64_t  last_chance_ns; /* our time until which its native acquire may still be executed */
    int64_t  may_live_ms;    /* longest life of its key after what was sent: a TTL, and before it a record's patience */
    struct hfi_retirement *retirements; /* retirements of earlier tokens; NULL: none */
    hf_lease *holder;        /* a reference; NULL: no holder in this process */
    uint64_t short_holds;    /* not yet in the histogram: too short to pay an atomic instruction for each */
    int64_t  short_ns;       /* their total duration */
    struct hfi_alarm alarm;
    int64_t  alarm_at;       /* HFI_NEVER: not armed */
    hf_error *trouble;       /* details of entry.trouble; NULL: none */
    struct hfi_shared *shared; /* HFI_FETCH: fetch/shared.c; NULL before the first waiter */
};

struct hfi_acquirer { /* a thread that acquires the lease, on its stack */
    struct hfi_waiter waiter;
    struct hfi_park   park;
    const hf_lock_options *options;
    uint64_t  owner;   /* options->owner, or the thread's number */
    uint64_t  thread;  /* the thread's number, */
    int       tid;     /* and its kernel id, which .signal goes to */
    bool      sleeps;  /* the thread has to be woken for its verdict */
    bool      for_others; /* until_ns of hfi_acquire limits the wait for the server's answer only; others_ms begins once
                           * another holder, or a waiter ahead of this one, is known (HFI_FETCH) */
    int64_t   others_ms;
    hf_lease *lease; /* HFI_GOT_LEASE: the holder, with a reference for the acquirer. A thread that only waits allocates
                      * nothing, so the allocator makes no cache for it */
};

struct hfi_releaser { /* a thread that waits for its release's answer, on its stack */
    struct hfi_park park;
    bool      done;
    hf_status status; /* HF_OK, LOST (gone), UNKNOWN */
    hf_error *why;    /* filled if UNKNOWN because the server refuses */
};

/* Only the table calls these two. */
hf_status hfi_lock_new(hf_client *client, enum hfi_use use, const char *name, size_t size, uint64_t hash,
                       struct hfi_lock **lock, hf_error *error);
void hfi_lock_free(struct hfi_lock *lock);

/* Locks the mutex and returns the time read under it. A time read before could be older than what other threads have
 * decided since (P1). So an entry receives all events in the order of the clock. */
int64_t hfi_lock_enter(struct hfi_lock *lock);
/* Writes the current token as it is sent and returns its length. Mutex held. */
size_t hfi_lock_token(const struct hfi_lock *lock, char out[HFI_TOKEN_CAPACITY]);
/* Carries out the entry's actions; mutex held. `releaser` (or NULL) receives the answer to a HFI_GIVE_BACK among them.
 * Call hfi_lane_flush(lock->lane) after unlocking. */
void hfi_lock_perform(struct hfi_lock *lock, struct hfi_step *step, struct hfi_releaser *releaser);
/* Adds the short holds to the histogram; mutex held, or no other thread can reach the lock any more. */
void hfi_lock_tell_holds(struct hfi_lock *lock);
/* A command is about to be sent after which the key may live for `ms`; mutex held. */
void hfi_lock_may_live(struct hfi_lock *lock, int64_t ms);
/* Arms the alarm for the next time at which the entry has something to do; mutex held. */
void hfi_lock_set_timer(struct hfi_lock *lock);

#endif
