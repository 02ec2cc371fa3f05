/* SPDX-License-Identifier: MIT */
/* acquire.h - a thread acquires a lease, and waits for it; and what a pending (pending.c) does as a thread does it. */
#ifndef HFI_ACQUIRE_H
#define HFI_ACQUIRE_H

#include "core/lock/lock.h"
#include "core/protocol/name.h"

/* Blocks until the acquirer has its verdict. If until_ns passes, the cancel fires or the client closes first, the
 * acquirer leaves the entry and is HFI_REFUSED with TIMEOUT (or the reason why the server could not serve), CANCELED or
 * CLOSED. The lock's mutex is held on entry and on return, and released while the thread sleeps. */
void hfi_acquire(struct hfi_acquirer *acquirer, int64_t until_ns, hf_cancel *cancel);
/* Initialises *acquirer, for the calling thread. The options must stay valid until the acquire ends. */
void hfi_acquirer_init(struct hfi_acquirer *acquirer, struct hfi_lock *lock, const hf_lock_options *options);
/* It arrives at its lock, or at one of the semaphore's grants. Mutex held. */
void hfi_acquirer_arrive(struct hfi_acquirer *acquirer, int64_t now);

/* The number of the owner that the options name: .owner, or this thread's. */
uint64_t hfi_owner_of(const hf_lock_options *options);

/* The options of an acquire, checked, with their defaults. LIMIT: as many calls wait already as may. */
hf_status hfi_acquire_options(hf_client *client, const hf_lock_options *given, hf_lock_options *options, hf_error *error);
/* What hf_lock_acquire does with checked options, but its count of refusals. The caller hands the lease out. */
hf_status hfi_lock_take(hf_client *client, const struct hfi_name *name, const hf_lock_options *options, hf_lease **lease,
                        hf_error *error);
/* The same for permits of a semaphore. */
hf_status hfi_permits_take(hf_client *client, const struct hfi_name *name, int32_t permits, int32_t limit,
                           const hf_lock_options *options, hf_lease **lease, hf_error *error);
/* The same, and the name. */
hf_status hfi_acquire_prepare(hf_client *client, const char *text, const hf_lock_options *given, hf_lock_options *options,
                              struct hfi_name *name, hf_error *error);
/* Re-entry; mutex held. HF_OK: the owner has the same lease once more. HF_BUSY: this owner does not hold it, or reads it,
 * and reads it once more when it arrives. DEADLOCK. */
hf_status hfi_acquirer_reenter(struct hfi_lock *lock, struct hfi_acquirer *acquirer, hf_lease **lease, hf_error *error);
/* This owner shares the lock and wants it alone, or the other way round: it would wait for itself. If it has downgraded its lease
 * and wants to share the lock once more (*beside_itself), it does so only behind one who wants it alone. No mutex held. */
bool hfi_owner_waits_for_itself(const struct hfi_lock *lock, uint64_t owner, bool *beside_itself);
hf_status hfi_acquirer_explain_itself(const struct hfi_acquirer *acquirer, hf_error *error);
/* It was not granted the lease on its arrival. A reader whose owner reads already comes in whatever waits. Mutex held. */
void hfi_acquirer_has_to_wait(const struct hfi_lock *lock, struct hfi_acquirer *acquirer);
/* The acquirer, HFI_WAITING until now, leaves the entry and is HFI_REFUSED: CANCELED, CLOSED, or TIMEOUT, which becomes
 * the reason why the server could not serve, if there is one. Mutex held. */
void hfi_acquirer_give_up(struct hfi_acquirer *acquirer, hf_status over, int64_t now);
/* As hfi_lock_explain, for a refused acquirer; to be called once. Mutex held. */
hf_status hfi_acquirer_explain(struct hfi_acquirer *acquirer, hf_error *error);
/* hf_lease_event_fd has failed just now, though it may succeed later. The options ask for the descriptor at once, so
 * without it the lease is given back. Returns NOMEM. */
hf_status hfi_acquire_without_event_fd(hf_lease *lease, hf_error *error);
void hfi_acquire_count_refusal(hf_client *client, hf_status status); /* BUSY, TIMEOUT, CANCELED */

#endif
