/* SPDX-License-Identifier: MIT */
/* handle.h - hf_lease: what the user holds of a lease. Its V is withdrawn and its end told (core/lock/event_sink.h) by the lock it came
 * from, under that lock's mutex; its ear's mutex comes after it. */
#ifndef HFI_HANDLE_H
#define HFI_HANDLE_H

#include "base/inbox.h"
#include "base/park.h"
#include "core/context/context.h"

#include <holdfast/lock.h>

struct hfi_lock;
struct hfi_event_sink;

struct hf_lease {
    hf_client *client;            /* a reference, as long as there is this memory */
    struct hfi_lock *lock;        /* a reference from the grant to the owner's release */
    _Atomic(int64_t) *end;        /* V; 0: withdrawn; below: found over. In memory that a fork child reads as 0 */
    struct hfi_event_sink *sink;          /* NULL: nobody asked to be told */
    int64_t fence;
    int64_t since_ns;             /* granted */
    int64_t hold_end;             /* max_hold_ms; HFI_NEVER */
    _Atomic(int) references;      /* the owner, the lock that calls it its holder, a posted event */
    _Atomic(int) event_fd;        /* -1: none made */
    _Atomic(uint64_t) owner;      /* the acquiring or bound thread's number, the program's own, or 0: nobody */
    int     depth;                /* re-entries besides the first; lock's mutex */
    _Atomic(uint8_t) condition, reason;
    bool    reentrant;
};

/* With two references, the owner's and the lock's; its end is 0, its owner `owner`; the thread that is told
 * has this number, and `tid` to the kernel.
 * NULL: no memory. The event fd that options may ask for is the owner's to make. */
hf_lease *hfi_handle_new(struct hfi_lock *lock, const hf_lock_options *options, uint64_t owner, uint64_t thread, int tid);
void hfi_handle_ref(hf_lease *lease);
void hfi_handle_unref(hf_lease *lease);
void hfi_handle_drop(hf_lease *lease, int count); /* so many references */

/* By the lock, its mutex held. */
void hfi_handle_begin(hf_lease *lease, int64_t end, int64_t fence, int64_t hold_end, int64_t now);
/* Forward, and only while it lives. False: somebody has found it over before, so it is, whatever the server says. */
bool hfi_handle_move_end(hf_lease *lease, int64_t end, int64_t now);
void hfi_handle_withdraw(hf_lease *lease);                           /* V = 0 */

/* Out of its lock, without a word to its owner. */
void hfi_handle_end(hf_lease *lease);

/* The spare ones, of a closing client whose threads have ended. */
void hfi_handle_free_cached(hf_client *client);

/* In a fork child, where any mutex may be locked for ever: the child's copy is freed, nothing else is touched. */
void hfi_handle_forked(hf_lease *lease);

#endif
