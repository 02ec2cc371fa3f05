/* SPDX-License-Identifier: MIT */
/* events.h - keyspace events: they wake those who wait behind another library's lock (P9), and nobody else. Never
 * required: without them the timed re-check finds out. */
#ifndef HFI_EVENTS_H
#define HFI_EVENTS_H

#include "core/context/context.h"

struct hfi_lock;

enum hfi_events_state {
    HFI_EVENTS_UNKNOWN,   /* not asked yet                          */
    HFI_EVENTS_OFF,       /* the option says not to subscribe       */
    HFI_EVENTS_ON,        /* the server sends what is needed        */
    HFI_EVENTS_MISSING,   /* it does not, and "as-is" forbids to change that */
    HFI_EVENTS_FORBIDDEN  /* it does not, or may not; CONFIG is refused */
};
const char *hfi_events_text(enum hfi_events_state state);

/* The flags that are missing from what is configured for K, g, x and e to be sent, merged: writes the new setting to out.
 * False: nothing is missing. Pure. */
bool hfi_events_merge(const char *configured, char *out, size_t capacity);

/* A lane came up: look at the configuration of the server, and mend it if allowed. Lists commands, never blocks. */
void hfi_events_look(hf_client *client, int lane);
/* Listen to the lock key's events, or no longer; the lock's mutex held. */
void hfi_events_watch(struct hfi_lock *lock, bool on);
void hfi_events_on_message(hf_client *client, const char *channel, size_t channel_size, const char *event, size_t size);
void hfi_events_subscribed(hf_client *client, const char *channel, size_t channel_size);

#endif
