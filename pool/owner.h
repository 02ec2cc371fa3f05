/* SPDX-License-Identifier: MIT */
/* owner.h - what passes between a pool and its owner: the settings, the calls up, what a server says of itself, and the
 * counters. */
#ifndef HFI_OWNER_H
#define HFI_OWNER_H

#include "base/error.h"
#include "base/hash.h"
#include "pool/tls/tls.h"
#include "pool/uri.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* On it the server tells which keys have changed that a lane asked it to track (CLIENT TRACKING ... REDIRECT). */
#define HFI_INVALIDATIONS "__redis__:invalidate"

struct hfi_command;
struct hfi_script;
struct redisReply;

/* What the handshake of a connection says of the server. */
struct hfi_server {
    int  version;     /* 70015 for 7.0.15; 0: unknown (no right to INFO) */
    char run_id[48];  /* "": unknown */
    int64_t uptime_s; /* -1: unknown */
    bool clock_by_key; /* its scripts may not ask for TIME, and have a key for a clock (clock_by_key.lua) */
};

/* Tells one run of a server from another, as its run id does, in one word; 0: the server does not tell. */
static inline uint64_t hfi_server_run(const char *run_id)
{
    return run_id[0] != 0 ? hfi_hash(HFI_HASH_BEGIN, run_id, strlen(run_id)) : 0;
}

/* Calls to the owner of the pool. They come from the listener, or from a waiting thread where marked (*). None may
 * block; each may list and flush commands. */
struct hfi_pool_ops {
    /* The handshake of a lane, after AUTH, SELECT, CLIENT SETNAME, ROLE = master and INFO, makes one further round
     * trip. It loads those of `scripts` that the server lacks, and sends the command that `handshake_floor` returns
     * (NULL: no memory). The reply goes to `handshake_floored`, which refuses the connection if it returns anything but
     * HF_OK (and says why in *error). A user lane does without. */
    const struct hfi_script *const *scripts; /* ended by NULL; fewer than 64 */
    struct hfi_command *(*handshake_floor)(void *self, const struct hfi_server *server);
    hf_status (*handshake_floored)(void *self, int lane, int64_t sent_ns, const struct redisReply *reply, hf_error *error);
    void (*lane_up)(void *self, int lane);
    /* By sentinels: a lane has met another server than lanes did before. What that one does not know is lost. */
    void (*another_server)(void *self);
    /* (*, as is `subscribed`) A message on a channel that we subscribe to. The calls come one at a time. On HFI_INVALIDATIONS
     * it is the name of a key; NULL: any key may have changed. */
    void (*on_message)(void *self, const char *channel, size_t channel_size, const char *message, size_t message_size);
    /* The server has acknowledged the subscription: the first time, and again after every reconnect. */
    void (*subscribed)(void *self, const char *channel, size_t channel_size);
    /* (*) hfi_pool_prove: the tracker of this client id, at this run of the server, listens to HFI_INVALIDATIONS, and has heard of
     * all that the server told it before stamp_ns: the calls of on_message for that are over. */
    void (*proved)(void *self, int64_t tracker, uint64_t run, int64_t stamp_ns);
    /* Nothing is held, so who the primary is may be learned later. NULL: it never is. */
    bool (*is_idle)(void *self);
    /* hfi_pool_kick was called. */
    void (*kicked)(void *self);
    /* Runs `run(arg)` soon in a thread that may block (name lookup). False: no memory, or no such thread. */
    bool (*in_background)(void *self, void (*run)(void *arg), void *arg);
};

struct hfi_pool_settings {
    struct hfi_endpoint endpoint; /* address, user and database (pool/uri.h); deep-copied */
    const char *sentinel_user, *sentinel_password; /* as those two of the endpoint, at the sentinels; used during open alone */
    struct hfi_tls_settings tls;  /* for an endpoint of TLS; its strings are used during open alone */
    const char *client_name;      /* CLIENT SETNAME */
    int64_t connect_ms, command_ms;
    int     lanes, subscribers;
    int     min_connections, max_connections;
    int64_t idle_ms, lifetime_ms; /* HF_OFF: no limit */
    int     replicas;             /* how many confirm a command; 0: none; HF_ALL: those that could be promoted */
    int64_t replicas_ms;          /* how long one confirmation is waited for */
    int64_t clocks_ms;            /* so far apart the clocks of servers may be */
    size_t  max_value_bytes;
};

/* The counters of SHOW POOLS and of the lanes. */
struct hfi_pool_counts {
    uint64_t commands, round_trips, reconnects, failovers, acks_short;
    uint64_t cl_active, cl_waiting, sv_active, sv_idle, sv_used, sv_tested, sv_login, maxwait_us;
    int64_t wake_up_ns, send_ns, yield_ns, sleep_ns, trip_ns; /* what they cost here (costs.h); 0: not known */
    bool crowd_looks; /* threads look for their wake-ups now, however many they are (pace.h) */
};

#endif
