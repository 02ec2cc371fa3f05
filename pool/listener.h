/* SPDX-License-Identifier: MIT */
/* listener.h - the one network thread of a pool: it dials, reads the subscribers and the replies that no thread waits
 * for, and enforces deadlines. */
#ifndef HFI_LISTENER_H
#define HFI_LISTENER_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>

struct hfi_listener;
struct hfi_pool;

/* The descriptors and the deadline of the listener's poll(); filled anew before every sleep. */
typedef void hfi_ready_fn(void *self, short events, int64_t now_ns);
struct hfi_poll_set;
/* ready NULL: the descriptor only wakes the listener. */
void hfi_poll_set_add(struct hfi_poll_set *set, int fd, short events, hfi_ready_fn *ready, void *self);
void hfi_poll_set_again(struct hfi_poll_set *set,
                        int64_t at_ns); /* the listener looks again at at_ns, at the latest */

/* Starts the thread. pool->lanes and pool->subscribers must exist. Fails with NOMEM. */
hf_status hfi_listener_start(struct hfi_pool *pool, struct hfi_listener **listener, hf_error *error);
void hfi_listener_join(struct hfi_listener *listener); /* blocks; the thread ends when the pool closes */
void hfi_listener_free(struct hfi_listener *listener); /* after join; NULL is a no-op */
void hfi_listener_forked(struct hfi_listener *listener);

/* Makes the listener look at everything again. Any thread; never blocks. */
void hfi_listener_kick(struct hfi_listener *listener);
/* As hfi_listener_kick, if the listener would sleep past at_ns. Publish what is due then before the call. */
void hfi_listener_kick_before(struct hfi_listener *listener, int64_t at_ns);
void hfi_listener_kick_owner(struct hfi_listener *listener); /* ops->kicked; async-signal-safe */

#endif
