/* SPDX-License-Identifier: MIT */
/* shared.h - the value for the threads that wait on one fetch lock, and the one load per process that runs without a
 * lease while the server is away. The lock's mutex guards all of it. */
#ifndef HFI_SHARED_H
#define HFI_SHARED_H

#include "core/lock/lock.h"
#include "core/fetch/value.h"

struct hfi_shared {
    struct hfi_body *body;  /* the last value that came to this lock; NULL: none yet, or no memory for it */
    int64_t  came_ns;       /* when it came */
    int64_t  left_ms;       /* from its arrival to its key's end; -1: never */
    int64_t  ttl_ms;        /* if it was not stored: how long its loader says it is good */
    int64_t  enough_ms;     /* data that lives longer answers the acquire under way */
    bool     stored;
    bool     loaded_here;   /* loaded by a thread of this process; else from the server's answer */
    bool     asking;        /* a token's first acquire is under way: not yet known whether another process loads */
    hf_error failure;       /* of the last loader that failed */
    /* The load without a lease. */
    bool     loading;
    struct hfi_list parked; /* struct hfi_guest */
};

struct hfi_guest { /* a thread that waits for a local load, on its stack */
    struct hfi_list link;
    struct hfi_park park;
    bool done;
    hf_status status;       /* of the load */
    struct hfi_body *body;  /* the guest's to unref; NULL unless HF_OK */
    int64_t fresh_ms;       /* of it */
    hf_error failure;       /* the loader's error if it failed */
};

/* lock->shared, made if there is none; NULL: no memory. Mutex held. */
struct hfi_shared *hfi_shared_of(struct hfi_lock *lock);
void hfi_shared_put(struct hfi_shared *shared, struct hfi_body *body, int64_t now, int64_t left_ms, int64_t ttl_ms, bool stored);
/* A fetch lock's calls up into this room. take: stores what the acquire script's VALUE (moved out of the reply) or
 * ABSENT brought. look: called after every event of the entry; wakes the waiters when a token's first acquire is
 * answered, because it is then known whether another process loads. */
extern const struct hfi_fetch_ops hfi_shared_ops;
/* The local load has ended: gives its result to all guests and wakes them. */
void hfi_shared_end_load(struct hfi_shared *shared, hf_status status, struct hfi_body *body, int64_t fresh_ms,
                         const hf_error *failure);
/* Wakes the guests, so that they check what else may end their wait. */
void hfi_shared_wake(struct hfi_shared *shared);

#endif
