/* SPDX-License-Identifier: MIT */
/*
 * pool.h - all connections of one client to one deployment: lanes, borrowed connections, subscribers, and the
 * listener thread, which dials them and reads the subscribers and the replies that no thread waits for.
 *
 * The pool knows nothing of locks. It calls core through hfi_pool_ops.
 */
#ifndef HFI_POOL_H
#define HFI_POOL_H

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "pool/lane.h"
#include "pool/uri.h"

struct hfi_pool;
struct redisReply;

enum hfi_lane_kind {
    HFI_LOCK_LANE,    /* locks; a reply is at most 64 KiB */
    HFI_VALUE_LANE,   /* hf_fetch; a reply is at most max_value_bytes, a longer one is passed over */
    HFI_USER_LANE,    /* users' commands and operators' queries; the same limit */
    HFI_RESERVED_LANE /* renewals only */
};

/* What the handshake of a connection says of the server. */
struct hfi_server {
    int  version;     /* 70015 for 7.0.15; 0: unknown (no right to INFO) */
    char run_id[48];  /* "": unknown */
    int64_t uptime_s; /* -1: unknown */
};

/* Calls to the owner of the pool. They come from the listener, or from a waiting thread where marked (*). None may
 * block; each may list and flush commands. */
struct hfi_pool_ops {
    /* The handshake of a lane, after AUTH, SELECT, CLIENT SETNAME, ROLE = master and INFO, makes one further round
     * trip. It loads those of `scripts` that the server lacks, and sends the command that `handshake_floor` returns
     * (NULL: none). The reply goes to `handshake_floored`, which refuses the connection if it returns anything but
     * HF_OK (and says why in *error). A user lane does without. */
    const struct hfi_script *const *scripts; /* ended by NULL; fewer than 64 */
    struct hfi_command *(*handshake_floor)(void *self, int lane);
    hf_status (*handshake_floored)(void *self, int lane, const struct hfi_server *server, int64_t sent_ns,
                         const struct redisReply *reply, hf_error *error);
    void (*lane_up)(void *self, int lane);
    /* (*) Every command of which a byte may have left has its outcome; the others wait for the next connection. */
    void (*lane_down)(void *self, int lane);
    /* (*, as is `subscribed`) A message on a channel that we subscribe to. The calls come one at a time. */
    void (*on_message)(void *self, const char *channel, size_t channel_size, const char *message, size_t message_size);
    /* The server has acknowledged the subscription: the first time, and again after every reconnect. */
    void (*subscribed)(void *self, const char *channel, size_t channel_size);
    /* hfi_pool_kick was called. */
    void (*kicked)(void *self);
    /* Runs `run(arg)` soon in a thread that may block (name lookup). */
    bool (*in_background)(void *self, void (*run)(void *arg), void *arg);
};

struct hfi_pool_settings {
    struct hfi_endpoint endpoint; /* address, user and database (pool/uri.h); deep-copied */
    const char *client_name;      /* CLIENT SETNAME */
    int64_t connect_ms, command_ms;
    int     lanes, subscribers;
    int     min_connections, max_connections;
    int64_t idle_ms, lifetime_ms; /* HF_OFF: no limit */
    size_t  max_value_bytes;
};

/* Starts the listener (all signals blocked in it). Unless lazy, dials one lock lane and the reserved lane, and waits
 * for the lock lane: HF_OK, UNAVAILABLE, DENIED, PROTOCOL, NOMEM. Other lanes are dialled when first asked for.
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

/* The number of lanes of a pool with `lanes` of each kind, and the reserved one. */
#define HFI_LANES_OF(lanes) (3 * (lanes) + 1)
/* The lane for a name: the same hash always gives the same lane. */
struct hfi_lane *hfi_pool_lane(struct hfi_pool *pool, enum hfi_lane_kind kind, uint64_t hash);
/* For renewals: the reserved lane, or another one that is up and whose oldest unanswered command is younger than
 * patience_ns. A reserved lane that is silent for longer is given up and dialled anew. */
struct hfi_lane *hfi_pool_answering(struct hfi_pool *pool, int64_t now_ns, int64_t patience_ns);
bool hfi_pool_is_lock_lane(const struct hfi_pool *pool, int index);
int  hfi_pool_lane_count(const struct hfi_pool *pool); /* lane indexes are below it */
/* Why nothing can be sent now: fills *error from the last failed dial; its status (UNAVAILABLE, DENIED, PROTOCOL). */
hf_status hfi_pool_why_down(struct hfi_pool *pool, hf_error *error);
/* "/run/redis.sock" or "10.0.0.7:6379". */
const char *hfi_pool_server_name(const struct hfi_pool *pool);
void hfi_pool_server(const struct hfi_pool *pool, struct hfi_server *server); /* as of the last handshake */

/* Async-signal-safe: makes the listener call ops->kicked. */
void hfi_pool_kick(struct hfi_pool *pool);

/* Subscriptions, counted: the first one subscribes, the last one unsubscribes. False: no memory. */
bool hfi_pool_subscribe(struct hfi_pool *pool, const char *channel, size_t size);
void hfi_pool_unsubscribe(struct hfi_pool *pool, const char *channel, size_t size);
bool hfi_pool_is_subscribed(struct hfi_pool *pool, const char *channel, size_t size); /* acknowledged, and not lost */

/* The counters of SHOW POOLS and of the lanes. */
struct hfi_pool_counts {
    uint64_t commands, round_trips, reconnects;
    uint64_t cl_active, cl_waiting, sv_active, sv_idle, sv_used, sv_tested, sv_login, maxwait_us;
};
void hfi_pool_count(struct hfi_pool *pool, struct hfi_pool_counts *counts);

#endif
