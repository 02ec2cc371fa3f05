/* SPDX-License-Identifier: MIT */
/* handle.h - hf_lease: what the user holds of a lease, and how it is told. Its V is withdrawn and its end told by the
 * lock it came from, under that lock's mutex; its ear's mutex comes after it. */
#ifndef HFI_HANDLE_H
#define HFI_HANDLE_H

#include "base/park.h"
#include "core/client.h"

#include <holdfast/lock.h>

#define HFI_EVENTS_MOST 8

struct hfi_lock;

struct hfi_ear;

struct hf_lease {
    hf_client *client;            /* a reference, as long as there is this memory */
    struct hfi_lock *lock;        /* a reference from the grant to the owner's release */
    _Atomic(int64_t) *end;        /* V; 0: withdrawn; below: found over. In memory that a fork child reads as 0 */
    struct hfi_ear *ear;          /* NULL: nobody asked to be told */
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

/* What the owner asked for besides the lease: most leases have none. */
struct hfi_ear {
    hf_lease *lease;
    int    signal;
    _Atomic(int) tid;             /* the thread that gets it */
    hf_event_kind signal_at;
    hf_event_fn *on_event;
    void  *arg;
    char  *label;

    pthread_mutex_t mutex;        /* for what follows */
    struct hfi_call call;
    bool     handed_out;          /* by acquire: before, its caller knows nothing of it, and events wait */
    bool     signal_waits;
    int      warned;              /* the thread that was sent the signal for what may end yet; 0: none */
    bool     posted, released;
    uint64_t runner;              /* the thread that runs on_event now; 0: none */
    struct hfi_park quiet;        /* woken when nothing is posted any more */
    int      pending_count;
    struct { hf_event_kind kind; hf_reason reason; } pending[HFI_EVENTS_MOST];
    uint64_t sequence;
};

/* With two references, the owner's and the lock's; its end is 0, its thread's number is `owner`, and `tid` to the kernel.
 * NULL: no memory. The event fd that options may ask for is the owner's to make. */
hf_lease *hfi_handle_new(struct hfi_lock *lock, const hf_lock_options *options, uint64_t owner, int tid);
void hfi_handle_ref(hf_lease *lease);
void hfi_handle_unref(hf_lease *lease);
void hfi_handle_drop(hf_lease *lease, int count); /* so many references */

/* By the lock, its mutex held. */
void hfi_handle_begin(hf_lease *lease, int64_t end, int64_t fence, int64_t hold_end, int64_t now);
/* Forward, and only while it lives. False: somebody has found it over before, so it is, whatever the server says. */
bool hfi_handle_move_end(hf_lease *lease, int64_t end, int64_t now);
void hfi_handle_withdraw(hf_lease *lease);                           /* V = 0 */
void hfi_handle_tell(hf_lease *lease, hf_event_kind kind, hf_reason reason); /* LOST: withdraws and latches */

/* Out of its lock, without a word to its owner. */
void hfi_handle_end(hf_lease *lease);

/* By acquire when it is sure to return this lease; it does not look at it afterwards. Until then nobody is told anything:
 * a callback may release the lease, and acquire may give it back unseen. */
void hfi_handle_hand_out(hf_lease *lease);

/* By the owner's release, no mutex held: no event starts after it; a running one has returned, unless this is it. One that
 * is posted is taken back: it may stand behind the very callback that releases. */
void hfi_handle_hush(hf_lease *lease);

/* The spare ones, of a closing client whose threads have ended. */
void hfi_handle_free_spares(hf_client *client);

/* In a fork child, where any mutex may be locked for ever: the child's copy is freed, nothing else is touched. */
void hfi_handle_forked(hf_lease *lease);

#endif
