/* SPDX-License-Identifier: MIT */
/* subscribe.h - the subscribers: a few connections, any number of channels. The listener's alone, but for
 * what pool.h offers to every thread (hfi_pool_subscribe and its sisters are in subscribe.c too). */
#ifndef HFI_SUBSCRIBE_H
#define HFI_SUBSCRIBE_H

#include "pool/listener.h"

struct hfi_subscribers;

struct hfi_subscribers *hfi_subscribers_new(struct hfi_pool *pool, int count); /* NULL: no memory */
void hfi_subscribers_free(struct hfi_subscribers *subscribers);                /* NULL is a no-op */
int hfi_subscribers_count(const struct hfi_subscribers *subscribers);
void hfi_subscribers_tend(struct hfi_subscribers *subscribers, int64_t now_ns, struct hfi_poll_set *set);
void hfi_subscribers_end(struct hfi_subscribers *subscribers); /* closes the connections */
void hfi_subscribers_forked(
    struct hfi_subscribers *subscribers); /* closes descriptors, touches nothing else */

#endif
