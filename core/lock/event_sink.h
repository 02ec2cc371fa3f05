/* SPDX-License-Identifier: MIT */
/* event_sink.h - delivers the events of a lease to its owner by callback, signal and descriptor, and knows which thread
 * is signalled. */
#ifndef HFI_EVENT_SINK_H
#define HFI_EVENT_SINK_H

#include "base/mutex.h"
#include "core/lock/handle.h"

#define HFI_EVENTS_MOST 8

/* The notifications that the lock options ask for. Most leases have no sink. */
struct hfi_event_sink {
    hf_lease *lease;
    int    signal;
    _Atomic(int) tid;             /* kernel id of the thread that .signal goes to; 0: none */
    hf_event_kind signal_at;
    hf_event_fn *on_event;
    void  *arg;
    char  *label;

    struct hfi_mutex mutex;        /* guards the fields below */
    struct hfi_job job;
    bool     handed_out;          /* false: the caller of acquire does not know the lease yet, so events wait */
    bool     signal_waits;        /* a signal is due as soon as the lease is handed out */
    uint64_t thread;              /* number of the thread that has .tid; unlike a tid never reused; 0: none */
    uint64_t warned;              /* number of the thread that was signalled at AT_RISK; 0: none */
    bool     posted, released;
    uint64_t runner;              /* number of the thread that runs on_event now; 0: none */
    struct hfi_park quiet;        /* woken when the job is no longer posted */
    int      pending_count;
    struct { hf_event_kind kind; hf_reason reason; } pending[HFI_EVENTS_MOST];
    uint64_t sequence;
};

/* Gives the lease a sink if its options ask for one. `thread` is the number and `tid` the kernel id of the thread that
 * is signalled. False: no memory. */
bool hfi_event_sink_attach(hf_lease *lease, const hf_lock_options *options, uint64_t thread, int tid);
void hfi_event_sink_free(struct hfi_event_sink *sink); /* a member of hfi_lock_ops: with the lease's memory */

/* The lease's condition changes, and its owner is notified. For the lease of a lock, hfi_handle_tell does it. */
void hfi_handle_become(hf_lease *lease, hf_event_kind kind, hf_reason reason);
/* Called by the lock with its mutex held. Counts too, logs a loss, and tells the multilock that the lease is part of. */
void hfi_handle_tell(hf_lease *lease, hf_event_kind kind, hf_reason reason); /* LOST: withdraws V; the last event */
void hfi_handle_found_lost(const hf_lease *lease, hf_reason reason); /* by its release, which says so: counts and logs the loss */

/* Called by acquire once it is certain to return this lease; acquire must not touch the lease afterwards. No event is
 * delivered before: a callback may release the lease, and acquire may still give it back unseen. */
void hfi_handle_hand_out(hf_lease *lease);
/* Called by the owner's release with no mutex held. No callback starts afterwards, and a running one has returned
 * unless the caller is that callback. A posted job is withdrawn: it may be queued behind the very callback that
 * releases. */
void hfi_handle_stop_events(hf_lease *lease);
/* Fills *error with the reason of the loss. Returns LOST, or CLOSED if the client was closed. */
hf_status hfi_handle_lost(const hf_lease *lease, hf_error *error);
/* For a fork child, where any mutex may stay locked permanently: frees the child's copy and touches nothing else. */
void hfi_handle_forked(hf_lease *lease);

#endif
