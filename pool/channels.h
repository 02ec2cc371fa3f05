/* SPDX-License-Identifier: MIT */
/* channels.h - the channels that are wanted, with reference counts, and the state of each subscription at the server.
 * No I/O; has its own mutex. */
#ifndef HFI_CHANNELS_H
#define HFI_CHANNELS_H

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hfi_channel {
    struct hfi_list chain; /* in its hash bucket */
    struct hfi_list all;   /* in its subscriber's list */
    struct hfi_list todo;  /* in its subscriber's to-do list: `wanted` may differ from what was sent to the server */
    int subscriber;
    int wanted; /* subscribe calls without a matching unsubscribe */
    int owed;   /* replies that the server still owes */
    bool asked; /* the last command sent for it is SUBSCRIBE */
    bool live;  /* the server has confirmed it, and the connection is up */
    uint64_t hash;
    size_t size;
    char name[];
};

enum hfi_channel_step { HFI_CHANNEL_REST, HFI_CHANNEL_ASK, HFI_CHANNEL_DROP, HFI_CHANNEL_LIVE };

struct hfi_channels;

/* Of so many subscribers, numbered from 0, and of one more that has HFI_INVALIDATIONS to itself. NULL: no memory. */
struct hfi_channels *hfi_channels_new(int subscribers);
void hfi_channels_free(struct hfi_channels *channels);  /* NULL is a no-op */

/* Any thread. *changed: the subscriber now has something to do. */
bool hfi_channels_want(struct hfi_channels *channels, const char *name, size_t size,
                       bool *changed); /* false: no memory */
void hfi_channels_unwant(struct hfi_channels *channels, const char *name, size_t size, bool *changed);
bool hfi_channels_is_live(struct hfi_channels *channels, const char *name, size_t size);

/* For the listener. A channel that one of these calls has returned stays in memory until the listener's next call. */
bool hfi_channels_any(struct hfi_channels *channels, int subscriber); /* true: it needs a connection */
/* The next channel with something to do. *step: ASK sends SUBSCRIBE, DROP sends UNSUBSCRIBE (both count as sent from
 * now on), LIVE reports that it is live already. NULL: no more. */
struct hfi_channel *hfi_channels_next(struct hfi_channels *channels, int subscriber,
                                      enum hfi_channel_step *step);
/* The server has confirmed the oldest command for this channel. True: it is live now. */
bool hfi_channels_confirm(struct hfi_channels *channels, struct hfi_channel *channel);
/* The server has answered the oldest command for this channel with an error. True: it was SUBSCRIBE; else the channel may be gone now. */
bool hfi_channels_refuse(struct hfi_channels *channels, struct hfi_channel *channel);
void hfi_channels_lose(struct hfi_channels *channels,
                       int subscriber); /* the connection is gone: all wanted channels are subscribed anew */

#endif
