/* SPDX-License-Identifier: MIT */
/* election.h - one leader of many: a lock that is held for long, and watched by others. To stand: hf_lock_acquire with
 * HF_FOREVER and an .owner_label that says where you are. To lead: keep the lease. To resign: release it. */
#ifndef HOLDFAST_ELECTION_H
#define HOLDFAST_ELECTION_H

#include <holdfast/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hf_observer hf_observer;

typedef struct hf_leader { /* ours, valid during the call; new fields are added at its end */
    size_t      size;
    const char *name, *host, *label; /* host "": another library has the key. label: any bytes, see below   */
    int64_t     pid, fence, held_ms; /* held_ms -1: it has not answered, so fence is 0 and label ""         */
    int64_t     remaining_ms;        /* of the key when it was looked at, so the lease plus the guard       */
} hf_leader;

/* Runs where on_event runs, one at a time: first with what is, then at each change, and once more when a leader that had
 * not answered does. `leader` NULL: nobody leads. A slow one may miss a leader in between, never the last. What it is
 * told was true when the server was looked at; only the leader itself knows what is true now. Label, fence and held_ms are
 * what a message said, and whoever may publish can make one up: show them, and decide nothing by them. */
typedef void hf_leader_fn(hf_observer *observer, const hf_leader *leader, void *arg);

/*
 * Watch who holds lock `name`, without standing for it. A leader with an .owner_label is seen at once, any other one
 * within 1.1 s. A process leads as one: what its threads pass among themselves, and a lease that lingers
 * after its release, is told as the first thread's until the process gives it back.
 *
 * Returns  HF_OK and *observer, which is set before `changed` is called first; else *observer is NULL.
 * Threads  any.
 * Blocks   never.
 * Owns     the caller, until hf_observer_close. `arg` must live as long. After hf_client_close nothing is told any more,
 *          and the observer still has to be closed.
 * Errors   INVALID: fix the argument that the message names. NOMEM, FORKED, CLOSED: as for every call. A server that is
 *          away, or refuses, is none: `changed` is called when it answers.
 */
HF_API HF_NODISCARD hf_status hf_election_observe(hf_client *client, const char *name, hf_leader_fn *changed, void *arg,
                                                  hf_observer **observer, hf_error *error);

/*
 * Stop watching. NULL is a no-op.
 *
 * Returns  nothing; `changed` is not called again.
 * Threads  one, once; inside `changed` too.
 * Blocks   while `changed` of this observer runs in another thread, so hold no mutex that it takes.
 * Owns     the observer is gone. In a fork child that is all that happens.
 * Errors   none.
 */
HF_API void hf_observer_close(hf_observer *observer);

#ifdef __cplusplus
}
#endif
#endif
