/* SPDX-License-Identifier: MIT */
/*
 * pool.h - all connections of one client to one deployment: lanes, borrowed connections, subscribers, and the
 * listener thread, which dials them and reads the subscribers and the replies that no thread waits for.
 *
 * The pool knows nothing of locks. It calls core through hfi_pool_ops (owner.h).
 */
#ifndef HFI_POOL_H
#define HFI_POOL_H

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "pool/lane.h"
#include "pool/owner.h"
#include "pool/topology.h"

struct hfi_pool;

/* Starts the listener (all signals blocked in it). Unless lazy, dials one lock lane and the reserved lane, and waits
 * for the lock lane, then until it is known who has to confirm, or connect_ms are over: HF_OK, UNAVAILABLE, DENIED,
 * PROTOCOL, NOMEM. Other lanes are dialled when first asked for.
 * *pool is set before the first call of an op. */
hf_status hfi_pool_open(const struct hfi_pool_settings *settings, const struct hfi_pool_ops *ops, void *self,
                        const struct hfi_clock *clock, const struct hfi_log *log, bool lazy, struct hfi_pool **pool,
                        hf_error *error);
/* Before close: commands listed so far, and threads that wait for the server, wait until until_ns at most. Commands
 * listed later are not affected. */
void hfi_pool_hurry(struct hfi_pool *pool, int64_t until_ns);
/* Flushes all lanes, reads every owed reply until until_ns, half-closes the connections, drains them and ends the
 * listener. When it returns, every command has had its `done`. False: some commands ended without an answer. */
bool hfi_pool_close(struct hfi_pool *pool, int64_t until_ns);
/* After close: frees the memory. NULL is a no-op. */
void hfi_pool_free(struct hfi_pool *pool);
/* In a fork child, instead of close: closes descriptors without writing or shutting down, frees nothing that a
 * thread of the parent may have been changing. */
void hfi_pool_forked(struct hfi_pool *pool);

/* The lane for a name: the same hash always gives the same lane. */
struct hfi_lane *hfi_pool_lane(struct hfi_pool *pool, enum hfi_lane_kind kind, uint64_t hash);
/* The lock lane for a name of which nothing is in flight: the one that suits the calling thread now (crowd.h). */
struct hfi_lane *hfi_pool_choose_lane(struct hfi_pool *pool);
/* The value lane for a read of the key with that hash: the one that suits the thread, of those that are connected to the run of a
 * server that the key's own lane met last, or to any while that one has met none; the own one if there is none, or the server does
 * not tell its run. */
struct hfi_lane *hfi_pool_read_lane(struct hfi_pool *pool, uint64_t hash);
/* For renewals: the reserved lane. If its oldest command has been unanswered for longer than patience_ns (over a slow
 * network: than two of its round trips), another lane that answers; the silent one is given up and dialled anew. */
struct hfi_lane *hfi_pool_answering(struct hfi_pool *pool, int64_t now_ns, int64_t patience_ns);
bool hfi_pool_is_lock_lane(const struct hfi_pool *pool, int index);
/* Why nothing can be sent now: fills *error from the last failed dial; its status (UNAVAILABLE, DENIED, PROTOCOL). */
hf_status hfi_pool_why_down(struct hfi_pool *pool, hf_error *error);
/* "/run/redis.sock" or "10.0.0.7:6379". */
const char *hfi_pool_server_name(const struct hfi_pool *pool);
void hfi_pool_server(const struct hfi_pool *pool, struct hfi_server *server); /* as of the last handshake */

bool hfi_pool_verifies(const struct hfi_pool *pool); /* as hfi_secure_verifies */

/* What sentinels say, as hfi_topology_report. False: there are none. */
bool hfi_pool_report(const struct hfi_pool *pool, bool asks_clocks, struct hfi_topology_report *report);

/* As hfi_topology_wait_for_replicas. */
void hfi_pool_wait_for_replicas(struct hfi_pool *pool, int64_t until_ns);

/* Async-signal-safe: makes the listener call ops->kicked. */
void hfi_pool_kick(struct hfi_pool *pool);

/* Subscriptions, counted: the first one subscribes, the last one unsubscribes. False: no memory. */
bool hfi_pool_subscribe(struct hfi_pool *pool, const char *channel, size_t size);
void hfi_pool_unsubscribe(struct hfi_pool *pool, const char *channel, size_t size);
/* HFI_INVALIDATIONS has a connection of its own, the tracker: its client id, for CLIENT TRACKING ON REDIRECT. 0: it is not
 * connected, as before that channel is wanted; -1: the server does not tell it. */
int64_t hfi_pool_tracker_id(const struct hfi_pool *pool);

/* Asks the tracker for a proof that it hears (ops->proved). Without a tracker nothing happens. */
void hfi_pool_prove(struct hfi_pool *pool);

void hfi_pool_count(struct hfi_pool *pool, struct hfi_pool_counts *counts);

#endif
