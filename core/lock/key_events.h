/* SPDX-License-Identifier: MIT */
/* key_events.h - keyspace events wake only waiters behind another library's lock (P9). They are never required: without
 * them the timed re-check finds the release. */
#ifndef HFI_KEY_EVENTS_H
#define HFI_KEY_EVENTS_H

#include "core/context/context.h"

struct hfi_lock;

enum hfi_key_events_state {
    HFI_EVENTS_UNKNOWN,   /* not asked yet                          */
    HFI_EVENTS_OFF,       /* the option says not to subscribe       */
    HFI_EVENTS_ON,        /* the server sends what is needed        */
    HFI_EVENTS_MISSING,   /* the server does not send it, and "as-is" forbids CONFIG SET */
    HFI_EVENTS_FORBIDDEN  /* CONFIG is refused: the server does not send it, or does not say whether it does */
};
const char *hfi_key_events_text(enum hfi_key_events_state state);

/* Writes to out the configured flags, completed so that K and the classes that are needed, such as "gxe", are sent. False:
 * nothing was missing. Pure. */
bool hfi_key_events_merge(const char *configured, const char *needed, char *out, size_t capacity);

/* For a lane that came up: reads the server's configuration and completes it if allowed. Lists commands, never
 * blocks. */
void hfi_key_events_look(hf_client *client, int lane);
/* A dialect has come that needs other classes of events. */
void hfi_key_events_look_again(hf_client *client);
/* Subscribes to the events of the lock's key, or unsubscribes; the lock's mutex held. */
void hfi_key_events_watch(struct hfi_lock *lock, bool on);
/* The key that its waiters are watching has gone, or has changed: they ask the server soon. Locks the mutex. */
void hfi_key_events_requery(struct hfi_lock *lock);
/* The key that the events of this channel are about, which lies in its text; NULL: it is not such a channel. */
const char *hfi_key_events_key(const hf_client *client, const char *channel, size_t channel_size, size_t *size);
bool hfi_key_events_is_end(const char *event, size_t size); /* after this event the lock may be free */

#endif
