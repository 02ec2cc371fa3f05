/* SPDX-License-Identifier: MIT */
/* deadlock.h - waits that wait for themselves, here or over other processes: found by probes (probe.h), and ended by
 * refusing the youngest wait of the ring with HF_DEADLOCK. docs/protocol.md says why that is one wait, and a real ring. */
#ifndef HFI_DEADLOCK_H
#define HFI_DEADLOCK_H

#include "core/context/context.h"
#include "core/protocol/message.h"

struct hfi_deadlocks; /* of a client; NULL: deadlock_ms is HF_OFF */

struct hfi_deadlocks *hfi_deadlocks_new(hf_client *client, int64_t every_ns); /* NULL: no memory */
void hfi_deadlocks_free(struct hfi_deadlocks *deadlocks); /* NULL is a no-op */
/* For close, before pool and watchdog end: looks no more, and drops its references. */
void hfi_deadlocks_stop(hf_client *client);

/* A call begins to wait. Any mutex of a lower rank may be held. */
void hfi_deadlocks_wait_begins(hf_client *client, int64_t now);
/* Message D or E. No mutex held. */
void hfi_deadlocks_message(hf_client *client, const struct hfi_message *message);

#endif
