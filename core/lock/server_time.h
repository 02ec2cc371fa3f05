/* SPDX-License-Identifier: MIT */
/* server_time.h - one client's knowledge of its server's clock and fence counter: the shell around fence.h. */
#ifndef HFI_SERVER_TIME_H
#define HFI_SERVER_TIME_H

#include "core/context/context.h"

/* A reply on this lane carried server time. A clock that was stepped makes the client renew all its leases at once. */
void    hfi_server_time_observe(hf_client *client, int lane, int64_t server_us, int64_t sent_ns, int64_t answered_ns);
/* Hygiene for the scripts: later than this, in server time, the command must not be executed (P5). */
int64_t hfi_server_time_not_after(hf_client *client, int lane, int64_t now_ns);
int64_t hfi_server_time_at_least(hf_client *client, int64_t now_ns); /* 0: unknown */

/* The highest fence given so far: to be read when a block is asked for. */
int64_t hfi_fence_seen(const hf_client *client);
/* Is this block ahead of all that was known when it was asked for? Remembers it if so. */
bool    hfi_fence_accept(hf_client *client, int64_t first, int64_t size, int64_t seen_when_asked, int64_t granted_us);

/* ops->greeting and ops->greeted of the pool: fence_floor in every handshake. */
struct hfi_command *hfi_server_time_handshake_floor(void *self, int lane);
hf_status hfi_server_time_handshake_floored(void *self, int lane, const struct hfi_server *server, int64_t sent_ns,
                                  const struct redisReply *reply, hf_error *error);
/* Lists a fence floor, with all that is known here. */
void hfi_server_time_floor(hf_client *client, struct hfi_lane *lane, int64_t now_ns);
/* Before a native acquire is listed on this lane, twice a second: the counter stays ahead of the clock (P8), at the price
 * of no round trip and of nothing while the client is idle or waits. Scripts put it ahead themselves. */
void hfi_server_time_advance_floor(hf_client *client, struct hfi_lane *lane, int64_t now_ns);

#endif
