/* SPDX-License-Identifier: MIT */
/* renew.h - the renewals of one watchdog tick, in scripts of up to 32, on a connection that answers. */
#ifndef HFI_RENEW_H
#define HFI_RENEW_H

#include "core/lock/lock.h"
#include "core/protocol/wire.h"

struct hfi_renewed_batch; /* renew.c */

struct hfi_renewals { /* of one tick */
    hf_client *client;
    int64_t now;         /* every renewal's stamp: read before any of them was listed */
    int64_t patience_ns; /* shortest interval between attempts in the batch */
    struct hfi_renewed_batch *batch;
    struct hfi_renewal what[HFI_RENEW_MOST];
};

void hfi_renewals_init(struct hfi_renewals *renewals, hf_client *client, int64_t now);
/* Adds a renewal of the lock's current token; mutex held. Semaphores' are in renewals of their own. */
void hfi_renewals_add(struct hfi_renewals *renewals, struct hfi_lock *lock, const struct hfi_renew_params *params);
/* Sends the added renewals if there are `at_least` or more; must be called when there are HFI_RENEW_MOST. No mutex
 * held. */
void hfi_renewals_send(struct hfi_renewals *renewals, int at_least);

#endif
