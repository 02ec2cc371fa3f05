/* SPDX-License-Identifier: MIT */
/* inbound.h - what the pool's subscribers and lanes report, brought to the locks it concerns. In the listener's
 * thread, or that of a caller who waits for a message: one at a time. */
#ifndef HFI_INBOUND_H
#define HFI_INBOUND_H

#include "core/context/context.h"

/* hfi_pool_ops */
void hfi_inbound_message(void *self, const char *channel, size_t channel_size, const char *message, size_t size);
void hfi_inbound_subscribed(void *self, const char *channel, size_t channel_size);
void hfi_inbound_lane_up(void *self, int lane);
void hfi_inbound_lane_down(void *self, int lane);

#endif
