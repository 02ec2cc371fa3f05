/* SPDX-License-Identifier: MIT */
/* counters.h - a client's counters for its locks; the pool has its own. Relaxed: for statistics and max_waiters. */
#ifndef HFI_COUNTERS_H
#define HFI_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/* A lease is counted when it is granted and when it ends; the number held is the difference. */
#define HFI_COUNTERS(X)                                                                                        \
    X(acquired_locally) X(busy) X(timeouts) X(canceled) X(lost) X(released) X(renewals) X(renewals_failed)     \
    X(hand_offs_given) X(hand_offs_taken) X(loads) X(load_failures) X(hits) X(hits_stale) X(hits_shared)       \
    X(hits_near) X(near_reads) X(near_told) X(near_lapses) X(loads_aside) X(loads_refused)                     \
    X(loads_same) X(waiting) X(at_risk)

struct hfi_counters {
#define X(name) _Atomic(uint64_t) name;
    HFI_COUNTERS(X)
#undef X
    _Atomic(uint64_t) acquired_remotely;
};

#define hfi_count(client, name) \
    ((void)atomic_fetch_add_explicit(&(client)->counters.name, 1, memory_order_relaxed))
#define hfi_uncount(client, name) \
    ((void)atomic_fetch_sub_explicit(&(client)->counters.name, 1, memory_order_relaxed))
#define hfi_counted(client, name) atomic_load_explicit(&(client)->counters.name, memory_order_relaxed)

#endif
