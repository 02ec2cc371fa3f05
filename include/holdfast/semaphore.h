/* SPDX-License-Identifier: MIT */
/* semaphore.h - take permits, of which there is a limited number. */
#ifndef HOLDFAST_SEMAPHORE_H
#define HOLDFAST_SEMAPHORE_H

#include <holdfast/async.h>
#include <holdfast/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_LIMIT_MAX   100000 /* of one semaphore */
#define HF_PERMITS_MAX 1000   /* of one call      */

/*
 * Take `permits` of the `limit` permits that the semaphore `name` has: all of them or none, in the order of asking, so that
 * who wants many is not passed by those who want few. Semaphores have names and keys of their own: lock "x" and semaphore
 * "x" do not meet, and the client's key_template does not apply.
 *
 * Nobody stores the limit. A call is let in when no more permits than its own `limit` are out with those that it gets, or
 * when another thread of this process passes on what it had. So a new limit needs no migration: while programs with
 * different limits run, nobody is let in when more than the greatest of them are out; a smaller one takes from nobody, it waits
 * until enough have been given back. So do those that ask after it, whatever their limit: nobody passes it.
 *
 * Returns  HF_OK and *lease, as hf_lock_acquire: one lease for all its permits. A process that dies gives them back when
 *          its lease and guard are over. The fence is unique, but holders are several, and a permit
 *          that passes between threads keeps to the fences of its own grant: it does not tell who came first.
 *          hf_lease_verify, hf_lease_release and events are those of a lock's lease; threads whose permits came in one
 *          grant learn of its loss together.
 * Threads  any. A permit may pass from one thread of a process to the next without the server. Any thread may take permits
 *          again while it holds some: two threads that do can wait for each other, which nobody detects.
 * Blocks   wait_ms. With 0 one round trip, command_ms at most.
 * Owns     the caller, who releases it once.
 * Errors   as hf_lock_acquire, but for DEADLOCK. INVALID: limit is not 1 .. HF_LIMIT_MAX, permits is not 1 .. limit or above
 *          HF_PERMITS_MAX; .shared, .reentrant, .order_class and .max_hold_ms are for locks.
 */
HF_API HF_NODISCARD hf_status hf_semaphore_acquire(hf_client *client, const char *name, int limit, int permits,
                                                   const hf_lock_options *options, hf_lease **lease, hf_error *error);

/* The same for an event loop: as hf_lock_acquire_start. */
HF_API HF_NODISCARD hf_status hf_semaphore_acquire_start(hf_client *client, const char *name, int limit, int permits,
                                                         const hf_lock_options *options, hf_done_fn *done, void *done_arg,
                                                         hf_pending **pending, hf_error *error);

/*
 * How many permits a lease has.
 *
 * Returns  the number, the same after loss; 1 for a lock, 0 for NULL.
 * Threads  any. Async-signal-safe.
 * Blocks   never.
 * Owns     nothing changes hands.
 * Errors   none.
 */
HF_API int hf_lease_permits(const hf_lease *lease);

/*
 * For operators, as hf_lock_info, _list, _waiters, _break and _break_now. `visit` is called for each grant, not for each
 * permit; a process may have several grants. Of a semaphore it sees those of the 4096 permits that end first, 64 grants at
 * most. A break takes all permits from all holders by one script: the more permits are out, the longer do
 * all other clients of the server wait for it.
 *
 * Returns, Threads, Blocks, Owns, Errors  as those of locks.
 */
HF_API hf_status hf_semaphore_info(hf_client *client, const char *name, hf_holder_fn *visit, void *arg, hf_error *error);
HF_API hf_status hf_semaphore_list(hf_client *client, const char *glob, hf_holder_fn *visit, void *arg, hf_error *error);
HF_API hf_status hf_semaphore_waiters(hf_client *client, const char *name, hf_waiter_fn *visit, void *arg, hf_error *error);
HF_API hf_status hf_semaphore_break(hf_client *client, const char *name, bool *had_holder, hf_error *error);
HF_API hf_status hf_semaphore_break_now(hf_client *client, const char *name, bool *had_holder, hf_error *error);

#ifdef __cplusplus
}
#endif
#endif
