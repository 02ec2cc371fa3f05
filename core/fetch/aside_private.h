/* SPDX-License-Identifier: MIT */
/* aside_private.h - what aside.c (jobs, and the calls that wait for them) and loader.c (the threads that run them) share. */
#ifndef HFI_ASIDE_PRIVATE_H
#define HFI_ASIDE_PRIVATE_H

#include "core/fetch/aside.h"
#include "base/set.h"

#define HFI_PAUSES 256

struct hfi_loader { /* a place for a thread */
    struct hfi_aside *aside;
    pthread_t thread;
    bool taken;
    struct hfi_list link;      /* among the idle ones */
    struct hfi_park park;
    struct hfi_aside_job *job; /* only its own thread looks at it */
};

struct hfi_aside {
    hf_client *client;
    hfi_aside_run *run;
    struct hfi_mutex mutex; /* guards all below, and of each job what aside.h says */
    struct hfi_load_queue queue;
    struct hfi_set jobs;    /* all of them, by key */
    struct hfi_list lists[HFI_LOAD + 1]; /* those that wait for a thread, oldest first */
    struct hfi_list running;
    struct hfi_list idle;   /* struct hfi_loader */
    struct hfi_park ended;  /* woken when a job has left `running` */
    bool stops;
    struct { /* by hash: another key's failure may take the place; then this one is tried again too soon */
        uint64_t hash;
        int64_t  not_before_ns;
    } pauses[HFI_PAUSES];
    struct hfi_loader loaders[];
};

/* aside.c. Around a job's end: free_arg, no mutex held; the result to all who wait, and out of the books; the memory. */
void hfi_aside_end_copy(hf_client *client, struct hfi_aside_job *job);
void hfi_aside_finish(struct hfi_aside *aside, struct hfi_aside_job *job); /* mutex held */
void hfi_aside_drop(hf_client *client, struct hfi_aside_job *job);

/* loader.c. Somebody comes for what waits: a thread that is idle, or a new one. Mutex held. */
void hfi_loaders_serve(struct hfi_aside *aside);

#endif
