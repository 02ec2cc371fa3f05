/* SPDX-License-Identifier: MIT */
/* event_sink.h - what the owner of a lease is told of it, by callback, signal and descriptor, and who that is. */
#ifndef HFI_EVENT_SINK_H
#define HFI_EVENT_SINK_H

#include "core/lock/handle.h"

#define HFI_EVENTS_MOST 8

/* What the owner asked for besides the lease: most leases have none. */
struct hfi_event_sink {
    hf_lease *lease;
    int    signal;
    _Atomic(int) tid;             /* the thread that gets it */
    hf_event_kind signal_at;
    hf_event_fn *on_event;
    void  *arg;
    char  *label;

    pthread_mutex_t mutex;        /* for what follows */
    struct hfi_job job;
    bool     handed_out;          /* by acquire: before, its caller knows nothing of it, and events wait */
    bool     signal_waits;
    uint64_t thread;              /* whose tid that is, by a number that is never used again; 0: nobody's */
    uint64_t warned;              /* the one that was sent the signal for what may end yet; 0: none */
    bool     posted, released;
    uint64_t runner;              /* the thread that runs on_event now; 0: none */
    struct hfi_park quiet;        /* woken when nothing is posted any more */
    int      pending_count;
    struct { hf_event_kind kind; hf_reason reason; } pending[HFI_EVENTS_MOST];
    uint64_t sequence;
};

/* False: no memory. What needs no ear gets none. */
bool hfi_event_sink_attach(hf_lease *lease, const hf_lock_options *options, uint64_t thread, int tid);
void hfi_event_sink_free(struct hfi_event_sink *sink); /* NULL is a no-op */

/* By the lock, its mutex held. */
void hfi_handle_tell(hf_lease *lease, hf_event_kind kind, hf_reason reason); /* LOST: withdraws and latches */
void hfi_handle_log_loss(const hf_lease *lease, hf_reason reason);

/* By acquire when it is sure to return this lease; it does not look at it afterwards. Until then nobody is told anything:
 * a callback may release the lease, and acquire may give it back unseen. */
void hfi_handle_hand_out(hf_lease *lease);
/* By the owner's release, no mutex held: no event starts after it; a running one has returned, unless this is it. One that
 * is posted is taken back: it may stand behind the very callback that releases. */
void hfi_handle_stop_events(hf_lease *lease);
/* LOST, and why: fills *error. */
hf_status hfi_handle_lost(const hf_lease *lease, hf_error *error);

#endif
