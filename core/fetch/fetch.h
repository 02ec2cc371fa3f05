/* SPDX-License-Identifier: MIT */
/* fetch.h - one call of hf_fetch, shared by its four parts: fetch.c reads and decides, fetch_acquire.c gets the lease
 * or the value of another caller's load, fetch_fill.c loads and stores, fetch_alone.c works without the server. */
#ifndef HFI_FETCH_H
#define HFI_FETCH_H

#include "core/fetch/loading.h"
#include "core/fetch/near.h"
#include "core/lock/lock.h"

struct hfi_fetch { /* on the caller's stack */
    hf_client *client;
    const struct hfi_name *key;
    struct hfi_lane *lane;
    struct hfi_lock *lock;   /* a reference; NULL: not needed so far */
    const hf_fetch_options *options;
    int64_t since_ns;        /* when the call began */
    int64_t began_ns;        /* when this attempt began */
    bool again;              /* an earlier attempt got no answer */
    bool answers;            /* the server answered with an error, which it would repeat */
    int cuts;                /* attempts during which the connection ended for another reason than silence */
    int64_t alone_until_ns;  /* without the server: how long to wait for another thread's load, or a turn */
    struct hfi_seen seen;
    struct hfi_body *found;  /* what Redis has, or memory: a reference; NULL: nothing */
    bool is_near;            /* it is from memory */
    int vain;                /* times that what another thread had read was not to be used: after some this one reads for itself */
    struct hfi_near_reading near; /* of the last read; epoch 0: what it brings may not be near */
    bool refused;            /* the server answered UNAVAILABLE: it is there, but refuses writes */
    int64_t left_ms;         /* until the key of `found` ends; -1: never, -2: not known */
};

/* fetch.c. Counts the source and makes the caller's value: HF_OK or NOMEM. */
hf_status hfi_fetch_answer(struct hfi_fetch *f, struct hfi_body *body, hf_source source, bool stored, int64_t fresh_ms,
                           hf_value **value, hf_error *error);
/* Remembers *body as the value last seen; left_ms as above, load_ms 0: not known. If the remembered body has the same
 * bytes, it replaces *body (local.h). */
void hfi_fetch_remember(struct hfi_fetch *f, struct hfi_body **body, int64_t left_ms, int64_t load_ms, bool stored);
/* Remembers that there is none, near if f->near says that it may be; left_ms: until that is asked again. */
void hfi_fetch_remember_absent(struct hfi_fetch *f, struct hfi_body **body, int64_t left_ms);
/* Remembers what this caller has loaded, unless its ttl forbids to keep it. left_ms -1: it was not stored. */
void hfi_fetch_remember_load(struct hfi_fetch *f, struct hf_loading *loading, int64_t left_ms);
/* Runs the caller's loader once; lease NULL: without a lease. Returns as hfi_loading_run does. */
hf_status hfi_fetch_load(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading);

/* fetch_acquire.c. Gets f->lock, and its `shared` for the waiters. Only a fetch that finds nothing fresh needs them. */
hf_status hfi_fetch_need_lock(struct hfi_fetch *f, hf_error *error);
/* Called before and after a wait for another caller's load. LIMIT: too many calls wait. */
hf_status hfi_fetch_begin_wait(struct hfi_fetch *f, hf_error *error);
void hfi_fetch_end_wait(struct hfi_fetch *f);
/* Waits for the lease or a value; once: does not wait. HF_OK with *lease or *value, else neither. */
hf_status hfi_fetch_acquire(struct hfi_fetch *f, bool once, hf_lease **lease, hf_value **value, hf_error *error);

/* fetch_fill.c. Loads and stores the value under the lease, and releases it. */
hf_status hfi_fetch_fill(struct hfi_fetch *f, hf_lease *lease, hf_value **value, hf_error *error);

/* fetch_alone.c. For a server that is away, or refuses (f->refused); error says why on entry. */
hf_status hfi_fetch_alone(struct hfi_fetch *f, hf_value **value, hf_error *error);

#endif
