/* SPDX-License-Identifier: MIT */
/* load_queue.h - loads that are to run in loader threads: which are taken, which one is next, when another thread is
 * needed, and when a load that failed is tried again. Pure. */
#ifndef HFI_LOAD_QUEUE_H
#define HFI_LOAD_QUEUE_H

#include <holdfast/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HFI_LOADS_QUEUED 64 /* for each loader thread, at most: one that takes 10 ms is then begun within 0.64 s */

enum hfi_load_kind {
    HFI_REFRESH, /* there is an old value, which is given out meanwhile */
    HFI_LOAD     /* there is none: callers may wait for it */
};

struct hfi_load_queue {
    int    loaders;  /* threads there may be */
    int    threads;  /* that are there */
    int    idle;     /* of these: nobody has called them to a job */
    size_t queued;   /* jobs that no thread has begun */
    bool   closed;
};

enum hfi_load_place {
    HFI_LOAD_NEW,    /* a job is made */
    HFI_LOAD_JOINED, /* the key has a job: one is enough */
    HFI_LOAD_PAUSED, /* the last one failed a moment ago */
    HFI_LOAD_FULL,
    HFI_LOAD_CLOSED
};

/* has_job: of the same key. not_before_ns: of the key, 0: at once. A load that has no old value never pauses. */
enum hfi_load_place hfi_load_queue_place(const struct hfi_load_queue *queue, enum hfi_load_kind kind, bool has_job,
                                         int64_t not_before_ns, int64_t now_ns);
/* A thread is to be started: all that are there have something to do. */
bool hfi_load_queue_needs_thread(const struct hfi_load_queue *queue);
/* The list to take the next job from. Call it only if one of the two has a job. */
enum hfi_load_kind hfi_load_queue_next(bool has_loads);
/* From when on the key may be refreshed again after a job that ended so; 0: at once. retry_ms may be HF_OFF. */
int64_t hfi_load_queue_not_before(hf_status status, int64_t retry_ms, int64_t now_ns);

#endif
