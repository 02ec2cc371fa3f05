/* SPDX-License-Identifier: MIT */
/* recheck.h - batched re-checks: those of one watchdog tick that expect no news, in scripts of up to 32 names of one
 * lane. */
#ifndef HFI_RECHECK_H
#define HFI_RECHECK_H

#include "core/lock/lock.h"

struct hfi_rechecked_batch; /* recheck.c */

struct hfi_rechecks { /* of one tick */
    hf_client *client;
    int64_t now; /* their echo: read before any of them was listed (P2) */
    struct hfi_rechecked_batch *batches;
};

void hfi_rechecks_init(struct hfi_rechecks *rechecks, hf_client *client, int64_t now);
/* Adds a re-check of the lock's current token; mutex held. True: takes over the caller's reference. False: no
 * memory. */
bool hfi_rechecks_add(struct hfi_rechecks *rechecks, struct hfi_lock *lock);
/* Sends all that were added. No mutex held. */
void hfi_rechecks_send(struct hfi_rechecks *rechecks);

#endif
