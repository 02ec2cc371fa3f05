/* SPDX-License-Identifier: MIT */
/* aside.h - the loader threads of a client and their jobs: one for a key, two lists of those that wait for a thread, and
 * the calls that wait for a job. What a job does is passed in (hfi_aside_run): here nothing is known of servers. */
#ifndef HFI_ASIDE_H
#define HFI_ASIDE_H

#include "core/context/context.h"
#include "core/fetch/near.h"
#include "core/policy/load_queue.h"
#include "core/protocol/name.h"

#include <stdio.h>

struct hfi_aside_job {
    /* aside.c's; its mutex guards all of these */
    struct hfi_list link;    /* among those that wait for a thread, or those that run */
    struct hfi_list waiters; /* struct hfi_aside_waiter */
    enum { HFI_JOB_MADE, HFI_JOB_QUEUED, HFI_JOB_RUNS } state; /* MADE: the copy of arg is being made */
    enum hfi_load_kind kind; /* fixed when it runs */
    int64_t since_ns;        /* when it came into this state */
    hf_cancel *cancel;       /* fired when the last waiter leaves; NULL: it does not wait for others */

    /* What to do: the job's own copies. Only the thread that runs it changes options.cancel and .wait_ms. */
    struct hfi_name key;
    hf_fetch_options options; /* the poster's, with arg a copy (NULL: none), where HF_LOAD_HERE, cancel NULL */
    struct hfi_body *old;     /* what is to be replaced: a reference; NULL: nothing */
    int64_t left_ms;          /* from posted_ns until the key of `old` ends */
    int64_t posted_ns;
    bool    is_read;          /* its poster has read that there is none, */
    struct hfi_near_reading near; /* in this way */

    /* What came out: set by hfi_aside_run, in its thread. */
    hf_status status;
    hf_value *value;          /* NULL unless HF_OK */
    int64_t   came_ns;        /* the value is for the calls that had joined before */
    bool      is_late;        /* thrown away by a forget, or another load: for the call whose job it is alone */
    hf_error  error;
    char text[];              /* of the key, with a NUL */
};

struct hfi_aside_waiter { /* a call that waits for a job, on its stack */
    struct hfi_list link;
    struct hfi_park park;
    struct hfi_aside_job *job; /* while not done */
    bool done;
    int64_t joined_ns;
    bool is_owner;             /* the job was made for this call */
    /* The job's result, once done. BUSY, CANCELED: there is none, though nothing has failed; ask again. */
    hf_status status;
    hf_error error;
    struct hfi_body *body;     /* the waiter's to unref; NULL unless HF_OK */
    hf_source source;
    bool stored;
    int64_t fresh_ms;          /* by stale_ms, which is the job's */
    int64_t stale_ms;
};

struct hfi_aside_order { /* what a call wants */
    const struct hfi_name *key;
    enum hfi_load_kind kind;
    const hf_fetch_options *options;
    struct hfi_body *old;
    int64_t left_ms;
    bool is_read;
    struct hfi_near_reading near;
};

/* Runs a job in a loader thread, no mutex held, and sets what came out. If it ends the thread instead of returning, its own
 * clean-up handler has done so. */
typedef void hfi_aside_run(hf_client *client, struct hfi_aside_job *job);

/* False: no memory. loaders HF_OFF: client->aside stays NULL. */
bool hfi_aside_open(hf_client *client, int loaders, hfi_aside_run *run);
/* Drops the jobs that no thread has begun, answers their waiters with CLOSED, and wakes all others. */
void hfi_aside_close(hf_client *client);
void hfi_aside_stop(hf_client *client); /* after that: ends and joins the threads. No job runs any more, or is about to end */
void hfi_aside_free(hf_client *client);

/* HF_OK: the key has a job, and the waiter (NULL: none) is to wait for it. BUSY: it may not be tried again yet. LIMIT: no
 * place. NOMEM, CLOSED. The error is filled unless BUSY. Calls options->copy_arg, in this thread, if a job is made. */
hf_status hfi_aside_post(hf_client *client, const struct hfi_aside_order *order, struct hfi_aside_waiter *waiter,
                         hf_error *error);
/* HF_OK: the waiter is done. Else CANCELED, CLOSED or TIMEOUT: it has left, and the job goes on. */
hf_status hfi_aside_wait(hf_client *client, struct hfi_aside_waiter *waiter, hf_cancel *cancel, int64_t until_ns);

/* Around a job's wait for others, in its thread: options.cancel ends it when nobody waits for the job any more, and .wait_ms
 * is HF_FOREVER; HF_OFF if nobody does now. */
void hfi_aside_begin_seek(hf_client *client, struct hfi_aside_job *job);
void hfi_aside_end_seek(hf_client *client, struct hfi_aside_job *job);

size_t hfi_aside_queued(const hf_client *client);
void   hfi_aside_dump(const hf_client *client, FILE *out); /* a line for each job: how long it has been there, who waits */

#endif
