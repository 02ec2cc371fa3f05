/* SPDX-License-Identifier: MIT */
/* multilock.h - take the leases on several names, all or none. */
#ifndef HOLDFAST_MULTILOCK_H
#define HOLDFAST_MULTILOCK_H

#include <holdfast/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_NAMES_MAX 64 /* of one multilock */

/*
 * Take the locks of all these names, given in any order, or none. Sets that overlap cannot block each other for ever. A
 * thread that holds another lock already and then asks for a set can, as with any second lock.
 *
 * Where nobody holds or waits for any of them this is one round trip. Else they are taken one after the other, in one
 * order that all processes share, and each is kept, and renewed, while the next is waited for. With wait_ms 0 nobody
 * waits: what was taken before a name turned out to be busy goes back at once.
 *
 * Returns  HF_OK and *lease: one for all names. It is valid while each of them is, at risk while one of them is, and LOST
 *          when the first is; its release gives all of them back. hf_lease_fence is 0: hf_lease_fence_of has the fence
 *          of each name. hf_lease_name is the first name of the order.
 * Threads  any.
 * Blocks   wait_ms for all together; with 0 twice command_ms at most. Its release blocks as long as that of one lock,
 *          hf_lease_verify a round trip for each name.
 * Owns     the caller, who releases it once. `names` is copied. max_hold_ms begins when all are held.
 * Errors   as hf_lock_acquire; the message names the lock. While all are asked for at once, another thread's try of one of
 *          them (wait_ms 0) is BUSY, though the call may get none in the end. INVALID: no name, more than HF_NAMES_MAX, a name twice,
 *          .name_size (names end with a NUL byte), .reentrant, .shared.
 */
HF_API HF_NODISCARD hf_status hf_multilock_acquire(hf_client *client, const char *const *names, size_t count,
                                                   const hf_lock_options *options, hf_lease **lease, hf_error *error);

/*
 * The fence of one name of a multilock; of another lease, its own name's.
 *
 * Returns  the fence, the same after loss; 0: the name is not in it, or something is NULL.
 * Threads  any.
 * Blocks   never.
 * Owns     nothing changes hands.
 * Errors   none.
 */
HF_API int64_t hf_lease_fence_of(const hf_lease *lease, const char *name);

#ifdef __cplusplus
}
#endif
#endif
