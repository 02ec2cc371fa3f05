/* SPDX-License-Identifier: MIT */
/* loading.h - one run of a user's loader, in the thread that called hf_fetch or in a loader thread. */
#ifndef HFI_LOADING_H
#define HFI_LOADING_H

#include "core/context/context.h"
#include "core/fetch/value.h"
#include "core/protocol/wire.h"

struct hf_loading {
    hf_client  *client;
    const char *key;         /* ends with NUL */
    size_t      key_size;
    hf_lease   *lease;       /* NULL: a load without a lease */
    int64_t     ttl_ms;      /* HF_OFF: do not store */
    int64_t     absent_ms;   /* the same, if it says "there is none"; 0: do not store */
    bool        is_aside;    /* in a loader thread: the client's close does not find its caller waiting */
    struct hfi_body *old;    /* what this load would replace; NULL: nothing. The fetch's reference, until the loader is back */
    int64_t     old_from_ms, old_till_ms; /* if the server still has it, it ends between these, server time; 0: it has it not */
    bool        failed;      /* hf_loading_fail was called */
    bool        answered;    /* set, give, same or absent was called */
    bool        same;        /* the old one is still good: body is old */
    bool        untagged;    /* a tag of the value could not be noted: not to be stored */
    struct hfi_tags tags;
    struct hfi_body *body;   /* NULL: not answered, or no memory for it */
    hf_error    failure;     /* what hf_loading_fail said */
    int64_t     took_ms;
};

/* Runs the loader. HF_OK: loading->body is the caller's to unref; else LOAD_FAILED, NOMEM, INVALID with
 * loading->failure filled. */
hf_status hfi_loading_run(struct hf_loading *loading, hf_load_fn *load, hf_load_many_fn *load_many, void *arg); /* load NULL: load_many */
/* One run for several. statuses[i]: as of hfi_loading_run. False: no memory, nothing has run. */
bool hfi_loading_run_many(struct hf_loading *const *loadings, size_t count, hf_load_many_fn *load_many, void *arg, hf_status *statuses);
/* Frees what belongs to the load: its body, its tags. */
void hfi_loading_done(struct hf_loading *loading);
int64_t hfi_loading_fresh_ms(const struct hf_loading *loading); /* for how long its value is; 0: it is not kept */
/* DEADLOCK in a thread that is running a loader of this client for this key. */
hf_status hfi_loader_check(const hf_client *client, const struct hfi_name *key, hf_error *error);
bool hfi_loader_is_running(void); /* in this thread, of any client */

#endif
