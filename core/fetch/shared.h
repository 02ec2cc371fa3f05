/* SPDX-License-Identifier: MIT */
/* shared.h - the value that the threads waiting on one fetch lock get, and the one load per process that goes without a
 * lease while the server is away. The lock's mutex guards all of it. */
#ifndef HFI_SHARED_H
#define HFI_SHARED_H

#include "core/lock/lock.h"
#include "core/fetch/value.h"

struct hfi_shared {
    struct hfi_body *body;  /* the last value that came to this lock; NULL: none yet, or no memory for it */
    int64_t  left_ms;       /* until its key ends, when it came; -1: never */
    int64_t  ttl_ms;        /* if it was not stored: for how long its loader thought it good */
    int64_t  enough_ms;     /* data that lives longer is an answer to the question under way */
    bool     stored;
    bool     loaded_here;   /* by a thread of this process; else it came with the server's answer */
    bool     asking;        /* for the first time with a token: those who wait do not know yet whether others load */
    hf_error failure;       /* of the last loader that failed */
    /* Loading without a lease. */
    bool     loading;
    struct hfi_list parked; /* struct hfi_guest */
};

struct hfi_guest { /* a thread that waits for a local load, on its stack */
    struct hfi_list link;
    struct hfi_park park;
    bool done;
    hf_status status;       /* of the load, */
    struct hfi_body *body;  /* the guest's to unref; NULL unless HF_OK, */
    hf_error failure;       /* and the loader's words if it failed */
};

/* lock->shared, made if need be; NULL: no memory. */
struct hfi_shared *hfi_shared_of(struct hfi_lock *lock);
void hfi_shared_put(struct hfi_shared *shared, struct hfi_body *body, int64_t left_ms, int64_t ttl_ms, bool stored);
/* What a lock calls up. `take`: from the acquire script's VALUE, which is taken out of the reply, or ABSENT. `look`: after
 * whatever has happened to the entry; who waits is woken when it is known that others load. */
extern const struct hfi_fetch_ops hfi_shared_ops;
/* The local load has ended so: for all who wait for it. */
void hfi_shared_end_load(struct hfi_shared *shared, hf_status status, struct hfi_body *body, const hf_error *failure);
/* Wakes them to look at what else may end their wait. */
void hfi_shared_wake(struct hfi_shared *shared);

#endif
