/* SPDX-License-Identifier: MIT */
/* acquire.h - the parts of hf_lock_acquire that other calls need as well. */
#ifndef HFI_ACQUIRE_H
#define HFI_ACQUIRE_H

#include "core/lock/lock.h"
#include "core/protocol/name.h"

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
/* The name as the options, or the client, have it spelled. what: what no dialect has; NULL: nothing of that is asked for. HF_OK,
 * INVALID, LIMIT, NOMEM. */
hf_status hfi_acquire_speak(hf_client *client, const hf_lock_options *options, const char *what, struct hfi_name *name,
                            hf_error *error);
/* hf_lease_event_fd has failed just now, though it may succeed later. The options ask for the descriptor at once, so
 * without it the lease is given back. Returns NOMEM. */
hf_status hfi_acquire_without_event_fd(hf_lease *lease, hf_error *error);
void hfi_acquire_count_refusal(hf_client *client, hf_status status); /* BUSY, TIMEOUT, CANCELED */

#endif
