/* SPDX-License-Identifier: MIT */
/* quarantine.h - the time for which a server grants nothing after it has become the primary, or has begun anew: until then the
 * one before may have granted what this one does not know (quarantine_ms). By lane, for each may meet another server. */
#ifndef HFI_QUARANTINE_H
#define HFI_QUARANTINE_H

#include "core/lock/lock.h"

/* A handshake's command said that the server has been there since since_us, by its own clock, on which it is now_us. */
void hfi_quarantine_note(hf_client *client, int lane, int64_t since_us, int64_t now_us);
/* How long the server of this lane neither grants nor renews yet; 0: it does both. */
int64_t hfi_quarantine_of_lane_ns(const hf_client *client, int lane, int64_t now);
/* The same for a lock's own lane. A fetch's lock knows no quarantine: its value may be loaded twice. */
int64_t hfi_quarantine_left_ns(const struct hfi_lock *lock, int64_t now);

#endif
