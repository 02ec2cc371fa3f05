/* SPDX-License-Identifier: MIT */
/* deadlock.h - waits that wait for themselves, here or over other processes: found by probes (probe.h), and ended by
 * refusing the youngest wait of the ring with HF_DEADLOCK. docs/protocol.md says why that is one wait, and a real ring. */
#ifndef HFI_DEADLOCK_H
#define HFI_DEADLOCK_H

#include "core/context/context.h"
#include "core/protocol/message.h"

bool hfi_deadlocks_begin(hf_client *client, int64_t every_ns); /* false: no memory. The end: hfi_waits_end */
/* Message D or E. No mutex held. */
void hfi_deadlocks_message(hf_client *client, const struct hfi_message *message);

#endif
