/* SPDX-License-Identifier: MIT */
/* tracking.h - where keyspace events cannot be had, the server's client tracking tells when the key of another library's
 * lock changes (P9). It tells of one change: each answer that names a foreign holder arms it anew. */
#ifndef HFI_TRACKING_H
#define HFI_TRACKING_H

#include "core/context/context.h"

struct hfi_lock;

enum hfi_tracking_state {
    HFI_TRACKING_UNTRIED, /* nobody had to wait behind another library's lock, or the server did not answer yet */
    HFI_TRACKING_ON,
    HFI_TRACKING_REFUSED  /* for good: the server does not know it, or the user has no right to it */
};

/* True: keyspace events cannot be had, and are not "off". */
bool hfi_tracking_is_needed(const hf_client *client);
const char *hfi_tracking_text(const hf_client *client); /* to go behind that of the keyspace events */
/* If it is needed, and the lock's key is watched: asks to be told of the key's next change. Lists a command; mutex held. */
void hfi_tracking_arm(struct hfi_lock *lock, int64_t now);
/* Whom the server is to tell, for who tracks a key by a question of its own; 0: nobody now. */
int64_t hfi_tracking_id(const hf_client *client);
bool hfi_tracking_is_channel(const char *channel, size_t size); /* the one on which that is told */
/* The server tells us from now on, and may have told nobody before: whatever is watched is armed anew. */
void hfi_tracking_subscribed(hf_client *client);

#endif
