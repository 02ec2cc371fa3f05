/* SPDX-License-Identifier: MIT */
/* listener.h - the one network thread of a pool: it dials, reads the subscribers and the replies that no thread waits
 * for, and enforces deadlines. It does so through calls that the pool hands in, and knows no connection itself. */
#ifndef HFI_LISTENER_H
#define HFI_LISTENER_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hfi_listener;

/* A descriptor is ready, with these events of poll(). */
typedef void hfi_ready_fn(void *self, short events, int64_t now_ns);
/* What to wait for. `number`: hfi_descriptor_number of the descriptor. fd -1: nothing. */
struct hfi_polled {
    int fd;
    uint32_t number;
    short events; /* of poll() */
};
/* The descriptors and the deadline of the listener's sleep; filled anew before each. */
struct hfi_poll_set;
/* ready NULL: the descriptor only wakes the listener. */
void hfi_poll_set_add(struct hfi_poll_set *set, struct hfi_polled polled, hfi_ready_fn *ready, void *self);
/* The listener looks again at at_ns, at the latest. */
void hfi_poll_set_again(struct hfi_poll_set *set, int64_t at_ns);

/* What the listener does is its owner's: calls in the listener's thread. */
struct hfi_listener_ops {
    /* Before every poll(): does what is due, and adds what to wait for to the empty set. False: there is no poll() any
     * more. */
    bool (*look)(void *self, int64_t now_ns, struct hfi_poll_set *set);
    void (*end)(void *self);    /* then this, and the thread ends */
    void (*kicked)(void *self); /* hfi_listener_kick_owner was called */
    void (*woke)(void *self, int64_t took_ns); /* so long after another thread's kick, from a sleep */
    void *self;
};

/* `look` adds at most `descriptors`. It may be kicked before it starts. NULL: no memory or descriptor. */
struct hfi_listener *hfi_listener_new(const struct hfi_listener_ops *ops, const struct hfi_clock *clock,
                                      size_t descriptors);
hf_status hfi_listener_start(struct hfi_listener *listener, hf_error *error); /* starts the thread; NOMEM */
void hfi_listener_join(struct hfi_listener *listener); /* blocks; the thread ends when it is over */
void hfi_listener_free(struct hfi_listener *listener); /* not started, or after join; NULL is a no-op */
void hfi_listener_forked(struct hfi_listener *listener);

/* Makes the listener look at everything again. Any thread; never blocks. */
void hfi_listener_kick(struct hfi_listener *listener);
/* As hfi_listener_kick, if the listener would sleep past at_ns. Publish what is due then before the call. */
void hfi_listener_kick_before(struct hfi_listener *listener, int64_t at_ns);
void hfi_listener_kick_owner(struct hfi_listener *listener); /* ops->kicked is called; async-signal-safe */

#endif
