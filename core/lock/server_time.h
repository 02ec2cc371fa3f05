/* SPDX-License-Identifier: MIT */
/* server_time.h - one client's knowledge of its server's clock and fence counter: the shell around fence.h. */
#ifndef HFI_SERVER_TIME_H
#define HFI_SERVER_TIME_H

#include "core/context/context.h"

/* Records the server time that a reply on this lane carried. If the server's clock was stepped, the client renews all
 * its leases at once. */
void    hfi_server_time_observe(hf_client *client, int lane, int64_t server_us, int64_t sent_ns, int64_t answered_ns);
/* not_after of an acquire or re-check: the server time after which its script does nothing (P5). */
int64_t hfi_server_time_not_after(hf_client *client, int lane, int64_t now_ns);
int64_t hfi_server_time_at_least(hf_client *client, int64_t now_ns); /* 0: unknown */
/* An upper bound of the time at the lane's server, to date a grant (P8): what this connection told last, plus all that has
 * passed since that was asked. Above every fence if it has told none. */
int64_t hfi_server_time_at_most(hf_client *client, int lane, int64_t now_ns);
/* The server's milliseconds that two moments of ours are no earlier, and no later than, by the lane's last sample, and with what
 * an end that was remembered may be off. 0: there is no sample. */
void    hfi_server_time_between(hf_client *client, int lane, int64_t first_ns, int64_t last_ns, int64_t *first_ms, int64_t *last_ms);
/* True: the lane's last sample is so young, and had so short a round trip, that hfi_server_time_at_most dates a native
 * grant asked for now. */
bool    hfi_server_time_is_known(hf_client *client, int lane, int64_t now_ns);

/* The highest fence accepted so far; to be read when a block is requested. */
int64_t hfi_fence_seen(const hf_client *client);
/* True: this block is ahead of all fences known when it was requested (at asked_ns, our clock), and was granted by a
 * counter that was ahead of the server's clock (granted_us; 0: the reply did not say). It is then remembered as seen. */
bool    hfi_fence_accept(hf_client *client, int64_t first, int64_t size, int64_t seen_when_asked, int64_t granted_us,
                         int64_t asked_ns);

/* ops->handshake_floor and ops->handshake_floored of the pool: fence_floor in every handshake. */
struct hfi_command *hfi_server_time_handshake_floor(void *self, const struct hfi_server *server);
hf_status hfi_server_time_handshake_floored(void *self, int lane, int64_t sent_ns, const struct redisReply *reply,
                                            hf_error *error);
/* Lists a fence_floor with the highest fence seen and the estimate of the server's time, unless one was listed on this lane
 * within every_ns. */
void hfi_server_time_floor(hf_client *client, struct hfi_lane *lane, int64_t every_ns, int64_t now_ns);
/* The distance of the floors that native acquires send in front of themselves. They keep the counter ahead of the
 * clock (P8) without a round trip of their own, and cost nothing while the client is idle or waits. Scripts put the
 * counter ahead themselves. */
#define HFI_FLOOR_NS (500 * HFI_MS)

#endif
