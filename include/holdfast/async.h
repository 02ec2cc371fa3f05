/* SPDX-License-Identifier: MIT */
/* async.h - acquiring without a thread that waits, for event loops. Nothing here blocks. Give back with
 * hf_lease_post_release. */
#ifndef HOLDFAST_ASYNC_H
#define HOLDFAST_ASYNC_H

#include <holdfast/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A question under way. Whoever began it ends it with exactly one hf_pending_take, at any time:
 *
 *   STARTED --decided--> DONE --take--> its result            STARTED --take--> HF_CANCELED, nothing is held
 *
 * It is decided when it is granted or refused, when its wait_ms are over, and when its client closes. What was granted
 * is kept, and renewed, until it is taken, but not beyond max_hold_ms.
 */
typedef struct hf_pending hf_pending;

/* Called once when it is decided, by whoever calls on_event: the client's dispatcher, hf_client_dispatch, or
 * hf_client_close. Never by start, though the dispatcher may be faster than start's return; *pending is set by then. Not
 * called any more once take has begun. It may call take. */
typedef void hf_done_fn(hf_pending *pending, void *arg);

/*
 * Begin to take a lock. `done` may be NULL: then ask hf_pending_is_done, or poll hf_pending_fd.
 *
 * Returns  HF_OK and *pending; else *pending is NULL and nothing was begun. With wait_ms 0, too, the answer comes later.
 * Threads  any. The lease belongs to no thread: without .owner there is no HF_DEADLOCK, and .signal needs
 *          hf_lease_bind. on_event is called after take at the earliest. Owners are compared when it begins: of two
 *          with one .owner, even .reentrant, the second waits for the first if that is not decided yet.
 * Blocks   never. A name that is looked up, a server that is dialled: in our threads.
 * Owns     the caller, until hf_pending_take. Everything is copied except done_arg and .arg.
 * Errors   INVALID, LIMIT, NOMEM, FORKED, CLOSED as hf_lock_acquire. INVALID also: .cancel, since take is the cancel;
 *          .reentrant without .owner. All other statuses come with take.
 */
HF_API HF_NODISCARD hf_status hf_lock_acquire_start(hf_client *client, const char *name,
                                                    const hf_lock_options *options, hf_done_fn *done, void *done_arg,
                                                    hf_pending **pending, hf_error *error);

/*
 * Is it decided?
 *
 * Returns  true once it is, for ever; false for NULL.
 * Threads  any, until take is called.
 * Blocks   never.
 * Owns     nothing changes hands.
 * Errors   none.
 */
HF_API bool hf_pending_is_done(const hf_pending *pending);

/*
 * For loops that do not run hf_client_dispatch: a descriptor that is readable once it is decided, for ever. One
 * hf_client_fd for all of them costs less.
 *
 * Returns  the descriptor, made by the first call; or -1 and errno.
 * Threads  any, until take is called.
 * Blocks   never.
 * Owns     the pending: never read, write or close it, and take it out of an epoll set before hf_pending_take.
 * Errors   EMFILE, ENFILE, ENOMEM: raise the limit, or use `done`. EINVAL: NULL.
 */
HF_API int hf_pending_fd(hf_pending *pending);

/*
 * The end of it: its result if it is decided, else it is canceled.
 *
 * Returns  what hf_lock_acquire would have returned, and *lease as there.
 * Threads  one, once; also inside `done`, of this pending or another; also after hf_client_close, as a release.
 * Blocks   never, but while `done` of this pending runs in another thread: until that has returned.
 * Owns     `pending` is freed, whatever is returned; the lease is the caller's.
 * Errors   those of hf_lock_acquire. CANCELED: it was not decided; what may still be granted is given back by us.
 *          LOST, CLOSED: it was granted, and lost before this call; nothing is held. FORKED: the parent has it.
 *          INVALID: an argument is NULL; nothing was freed, call again.
 */
HF_API hf_status hf_pending_take(hf_pending *pending, hf_lease **lease, hf_error *error);

#ifdef __cplusplus
}
#endif
#endif
