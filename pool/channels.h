/* SPDX-License-Identifier: MIT */
/* channels.h - which channels are wanted, how often, and how far the server is with them. No I/O; a mutex of
 * its own. */
#ifndef HFI_CHANNELS_H
#define HFI_CHANNELS_H

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hfi_channel {
    struct hfi_list chain; /* of its hash bucket */
    struct hfi_list all;   /* of its subscriber */
    struct hfi_list todo;  /* of its subscriber: the wish may differ from what the server was told */
    int subscriber;
    int wanted; /* so many subscribe calls without an unsubscribe */
    int owed;   /* answers of the server that are still to come */
    bool asked; /* the last thing the server was told is SUBSCRIBE */
    bool live;  /* it has confirmed, and the connection stands */
    uint64_t hash;
    size_t size;
    char name[];
};

enum hfi_channel_step { HFI_CHANNEL_REST, HFI_CHANNEL_ASK, HFI_CHANNEL_DROP, HFI_CHANNEL_LIVE };

struct hfi_channels;

struct hfi_channels *hfi_channels_new(int subscribers); /* NULL: no memory */
void hfi_channels_free(struct hfi_channels *channels);  /* NULL is a no-op */

/* Any thread. changed: the subscriber has something to do. */
bool hfi_channels_want(struct hfi_channels *channels, const char *name, size_t size,
                       bool *changed); /* false: no memory */
void hfi_channels_unwant(struct hfi_channels *channels, const char *name, size_t size, bool *changed);
bool hfi_channels_is_live(struct hfi_channels *channels, const char *name, size_t size);

/* The listener. A channel it was given stays until it calls again. */
bool hfi_channels_any(struct hfi_channels *channels, int subscriber); /* worth a connection */
/* The next channel of which something is to be done, and what: SUBSCRIBE, UNSUBSCRIBE (both count as asked
 * from now on), or tell that it is live already. NULL: nothing more. */
struct hfi_channel *hfi_channels_next(struct hfi_channels *channels, int subscriber,
                                      enum hfi_channel_step *step);
/* The server has confirmed the oldest thing asked of this channel. True: it is live now. */
bool hfi_channels_confirm(struct hfi_channels *channels, struct hfi_channel *channel);
void hfi_channels_refuse(struct hfi_channels *channels, struct hfi_channel *channel);
void hfi_channels_lose(struct hfi_channels *channels,
                       int subscriber); /* the connection is gone: all to be asked anew */

#endif
