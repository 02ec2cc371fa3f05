/* SPDX-License-Identifier: MIT */
/* subscribe.h - the subscribers: a few connections, any number of channels. They belong to the listener thread, except
 * what is in subscribe_wait.c: _wait, _want, _unwant, _prove, _tracker_id. */
#ifndef HFI_SUBSCRIBE_H
#define HFI_SUBSCRIBE_H

#include "base/park.h"

#include <stddef.h>

struct hfi_listener;
struct hfi_poll_set;
struct hfi_peer;
struct hfi_subscribers;

/* So many, and the tracker. NULL: no memory or descriptor. */
struct hfi_subscribers *hfi_subscribers_new(struct hfi_peer *peer, struct hfi_listener *listener, int count);
void hfi_subscribers_free(struct hfi_subscribers *subscribers); /* NULL is a no-op */
void hfi_subscribers_maintain(struct hfi_subscribers *subscribers, int64_t now_ns, struct hfi_poll_set *set);
/* As hfi_park_wait, for any thread that waits for a message. Meanwhile one such thread at a time polls the connections
 * beside the listener: a message that it receives itself need not pass through another thread. Returns early, not woken, if
 * *in_flight is not 0 after a message: what was asked because of it has an answer, which the thread can read itself. *in_vain, at
 * first 0, counts what came, messages and answers to PINGs, and has not woken it: after some it leaves all to the listener. */
bool hfi_subscribers_wait(struct hfi_subscribers *subscribers, struct hfi_park *park, uint32_t epoch, int64_t until_ns,
                          const _Atomic(int) *in_flight, int *in_vain);
/* As hfi_pool_subscribe and hfi_pool_unsubscribe, for any thread. */
bool hfi_subscribers_want(struct hfi_subscribers *subscribers, const char *name, size_t size);
void hfi_subscribers_unwant(struct hfi_subscribers *subscribers, const char *name, size_t size);
void hfi_subscribers_prove(struct hfi_subscribers *subscribers); /* as hfi_pool_prove */
int64_t hfi_subscribers_tracker_id(const struct hfi_subscribers *subscribers); /* as hfi_pool_tracker_id */
/* The listener: dials all of them anew, because another server is meant now. */
void hfi_subscribers_give_up(struct hfi_subscribers *subscribers, const char *why);
void hfi_subscribers_end(struct hfi_subscribers *subscribers); /* closes the connections */
void hfi_subscribers_forked(struct hfi_subscribers *subscribers); /* closes descriptors, touches nothing else */

#endif
