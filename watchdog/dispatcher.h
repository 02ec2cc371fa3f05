/* SPDX-License-Identifier: MIT */
/* dispatcher.h - runs users' callbacks, one at a time, in its own thread or in the caller's loop; and chores that may
 * block, always in a thread of their own. */
#ifndef HFI_DISPATCHER_H
#define HFI_DISPATCHER_H

#include "base/error.h"
#include "base/list.h"

struct hfi_dispatcher;

struct hfi_job { /* embedded in its owner; a posted job must not be posted again before it has run */
    struct hfi_list link; /* hfi_list_init before its first use */
    void (*run)(struct hfi_job *job); /* the job may have been freed when it returns */
};

/* caller_runs: HF_DISPATCH_CALLER, posted jobs wait for hfi_dispatcher_run. Chores have a thread of their own, which
 * the first chore starts: a name lookup delays no callback, and a slow callback delays no reconnect. NOMEM. */
hf_status hfi_dispatcher_start(bool caller_runs, struct hfi_dispatcher **dispatcher, hf_error *error);
/* Runs what is posted (in this thread, in CALLER mode too), then ends and joins its threads. NULL is a no-op. */
void hfi_dispatcher_stop(struct hfi_dispatcher *dispatcher);
/* Frees a stopped dispatcher. Until then jobs can be withdrawn, though none is left to withdraw. NULL is a no-op. */
void hfi_dispatcher_free(struct hfi_dispatcher *dispatcher);

void hfi_dispatcher_post(struct hfi_dispatcher *dispatcher, struct hfi_job *job); /* any thread, never blocks */
/* False: the chore is not taken, because there is no thread to be had. A chore may outlive the dispatcher: one that
 * hangs for longer than a moment when the dispatcher stops is left behind, so it must own what it touches. */
bool hfi_dispatcher_chore(struct hfi_dispatcher *dispatcher, struct hfi_job *job);
/* Takes a posted job back. True: it will not run. False: it is running, has run, or was not posted. */
bool hfi_dispatcher_withdraw(struct hfi_dispatcher *dispatcher, struct hfi_job *job);

void   hfi_dispatcher_forked(struct hfi_dispatcher *dispatcher); /* in a fork child: closes the descriptor, and nothing else */
int    hfi_dispatcher_fd(struct hfi_dispatcher *dispatcher); /* CALLER: readable while jobs wait; -1 in THREAD mode */
size_t hfi_dispatcher_run(struct hfi_dispatcher *dispatcher); /* CALLER: runs those that wait now; returns how many */

#endif
