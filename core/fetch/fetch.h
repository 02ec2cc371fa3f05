/* SPDX-License-Identifier: MIT */
/* fetch.h - one call of hf_fetch, as its four parts see it: fetch.c reads and decides, fetch_acquire.c gets the lease or
 * another's value, fetch_fill.c loads and stores, fetch_alone.c does without the server. */
#ifndef HFI_FETCH_H
#define HFI_FETCH_H

#include "core/fetch/loading.h"
#include "core/fetch/local.h"
#include "core/lock/lock.h"

struct hfi_fetch { /* on the caller's stack */
    hf_client *client;
    const char *key;
    size_t size;
    uint64_t hash;
    struct hfi_lane *lane;
    struct hfi_lock *lock;   /* a reference; NULL: not needed so far */
    const hf_fetch_options *options;
    int64_t since_ns;        /* the call's beginning */
    int64_t began_ns;        /* this attempt's */
    bool again;              /* the server has not answered an attempt before */
    bool answers;            /* with an error: it is there, and would say the same again */
    int cuts;                /* attempts that met the end of a connection which was not given up for silence */
    int64_t alone_until_ns;  /* without the server: others' loads and turns are waited for until then */
    struct hfi_seen seen;
    struct hfi_body *found;  /* what Redis has: a reference; NULL: nothing */
    bool refused;            /* UNAVAILABLE was the server's answer: it is there, and lets nobody write */
    int64_t left_ms;         /* until its key ends; -1: never, -2: not known */
};

/* fetch.c */
hf_status hfi_fetch_answer(struct hfi_fetch *f, struct hfi_body *body, hf_source source, bool stored, int64_t fresh_ms,
                           hf_value **value, hf_error *error);
/* What this process has seen last; left_ms as above, load_ms 0: not known. A body of the same bytes gives way (local.h). */
void hfi_fetch_remember(struct hfi_fetch *f, struct hfi_body **body, int64_t left_ms, int64_t load_ms, bool stored);
/* What this caller has loaded: unless its ttl says that it is not to be kept anywhere. left_ms -1: it was not stored. */
void hfi_fetch_remember_load(struct hfi_fetch *f, struct hf_loading *loading, int64_t left_ms);
/* One run of the caller's loader; lease NULL: without. As hfi_loading_run. */
hf_status hfi_fetch_load(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading);

/* fetch_acquire.c. The lock's entry, and where its waiters share: what only a fetch needs that finds nothing fresh. */
hf_status hfi_fetch_need_lock(struct hfi_fetch *f, hf_error *error);
/* Around a wait for another's load: LIMIT if too many calls wait. */
hf_status hfi_fetch_begin_wait(struct hfi_fetch *f, hf_error *error);
void hfi_fetch_end_wait(struct hfi_fetch *f);
/* Waits for the lease or a value; `once`: does not wait. *lease, or *value, or a status that is neither. */
hf_status hfi_fetch_acquire(struct hfi_fetch *f, bool once, hf_lease **lease, hf_value **value, hf_error *error);

/* fetch_fill.c. With the lease, which is released. */
hf_status hfi_fetch_fill(struct hfi_fetch *f, hf_lease *lease, hf_value **value, hf_error *error);

/* fetch_alone.c. The server is away, or refuses (f->refused); error says why. */
hf_status hfi_fetch_alone(struct hfi_fetch *f, hf_value **value, hf_error *error);

#endif
