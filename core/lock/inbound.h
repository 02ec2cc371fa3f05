/* SPDX-License-Identifier: MIT */
/* inbound.h - brings what the pool's subscribers and lanes report to the locks concerned. Called by one thread at a
 * time: the listener's, or that of a caller that waits for a message. */
#ifndef HFI_INBOUND_H
#define HFI_INBOUND_H

#include "core/context/context.h"

/* Members of hfi_pool_ops. */
void hfi_inbound_message(void *self, const char *channel, size_t channel_size, const char *message, size_t size);
void hfi_inbound_subscribed(void *self, const char *channel, size_t channel_size);
void hfi_inbound_lane_up(void *self, int lane);

#endif
