/* SPDX-License-Identifier: MIT */
/* poll_set.h - what the listener waits for, in an epoll that is told of changes alone. Filled anew before every sleep:
 * begin, hfi_poll_set_add (listener.h) for each, end, wait, dispatch. All of it belongs to the listener's thread. */
#ifndef HFI_POLL_SET_H
#define HFI_POLL_SET_H

#include "pool/listener.h"

struct watched;

struct hfi_poll_set {
    int epoll_fd;
    struct watched *all;
    size_t count, capacity;
    size_t next;   /* where the next one is looked for first: they come in the order of the turn before */
    uint32_t turn; /* counts `begin` */
    int64_t now_ns, again_ns;
};

bool hfi_poll_set_init(struct hfi_poll_set *set, size_t most); /* false: no memory or descriptor; done is still due */
void hfi_poll_set_done(struct hfi_poll_set *set);

void hfi_poll_set_begin(struct hfi_poll_set *set, int64_t now_ns);
void hfi_poll_set_end(struct hfi_poll_set *set); /* forgets what was not added since `begin` */
/* Sleeps until one of them is ready, or again_ns. False: none is. */
bool hfi_poll_set_wait(struct hfi_poll_set *set, const struct hfi_clock *clock);
void hfi_poll_set_dispatch(struct hfi_poll_set *set, int64_t now_ns); /* calls `ready` of those that are */

#endif
