/* SPDX-License-Identifier: MIT */
/* acquirer.h - who acquires a lease: a thread, which waits for it, or a pending (pending.c), which does what a thread
 * does but for that. */
#ifndef HFI_ACQUIRER_H
#define HFI_ACQUIRER_H

#include "core/lock/lock.h"

/* Initialises *acquirer, for the calling thread. The options must stay valid until the acquire ends. */
void hfi_acquirer_init(struct hfi_acquirer *acquirer, struct hfi_lock *lock, const hf_lock_options *options);
/* The number of the owner that the options name: .owner, or this thread's. */
uint64_t hfi_owner_of(const hf_lock_options *options);

/* Re-entry; mutex held. HF_OK: the owner has the same lease once more. HF_BUSY: this owner does not hold it, or reads it,
 * and reads it once more when it arrives. DEADLOCK. */
hf_status hfi_acquirer_reenter(struct hfi_lock *lock, struct hfi_acquirer *acquirer, hf_lease **lease, hf_error *error);
/* It arrives at its lock, or at one of the semaphore's grants. Mutex held. */
void hfi_acquirer_arrive(struct hfi_acquirer *acquirer, int64_t now);
/* It was not granted the lease on its arrival. A reader whose owner reads already comes in whatever waits. Mutex held. */
void hfi_acquirer_has_to_wait(const struct hfi_lock *lock, struct hfi_acquirer *acquirer);
/* Blocks until the acquirer has its verdict. If until_ns passes, the cancel fires or the client closes first, the
 * acquirer leaves the entry and is HFI_REFUSED with TIMEOUT (or the reason why the server could not serve), CANCELED or
 * CLOSED. The lock's mutex is held on entry and on return, and released while the thread sleeps. */
void hfi_acquirer_wait(struct hfi_acquirer *acquirer, int64_t until_ns, hf_cancel *cancel);
/* The acquirer, HFI_WAITING until now, leaves the entry and is HFI_REFUSED: CANCELED, CLOSED, or TIMEOUT, which becomes
 * the reason why the server could not serve, if there is one. Mutex held. */
void hfi_acquirer_give_up(struct hfi_acquirer *acquirer, hf_status over, int64_t now);
/* As hfi_lock_explain, for a refused acquirer; to be called once. Mutex held. */
hf_status hfi_acquirer_explain(struct hfi_acquirer *acquirer, hf_error *error);
hf_status hfi_acquirer_explain_itself(const struct hfi_acquirer *acquirer, hf_error *error);

/* This owner shares the lock and wants it alone, or the other way round: it would wait for itself. If it has downgraded its lease
 * and wants to share the lock once more (*beside_itself), it does so only behind one who wants it alone. No mutex held. */
bool hfi_owner_waits_for_itself(const struct hfi_lock *lock, uint64_t owner, bool *beside_itself);

#endif
