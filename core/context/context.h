/* SPDX-License-Identifier: MIT */
/* context.h - struct hf_client, which the files of core/ share. A field belongs to the file named beside it. */
#ifndef HFI_CONTEXT_H
#define HFI_CONTEXT_H

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/park.h"
#include "base/wiped.h"
#include "core/context/counters.h"
#include "core/context/histogram.h"
#include "core/context/loss_log.h"
#include "core/policy/entry.h"
#include "core/policy/fence.h"
#include "core/protocol/name.h"
#include "core/protocol/token.h"
#include "pool/embedded.h"
#include "pool/pool.h"
#include "watchdog/dispatcher.h"
#include "watchdog/watchdog.h"

#include <pthread.h>

struct hfi_table;
struct hfi_local_cache;
struct hfi_aside;
struct hfi_near;
struct hfi_near_reads;

/* For the next lease of a thread whose number maps to it: see cached.h. Not two of them in one cache line. */
#define HFI_CACHED 64
struct hfi_cached {
    _Alignas(16) _Atomic(void *) handle; /* handle.c: blank, but with its V word and its client reference */
    _Atomic(void *) retirement;          /* retirement.c: bare memory */
    char apart[48];
};

#define HFI_DIALECTS    64 /* of one client, at most */
#define HFI_BUSY_MARKS  256
#define HFI_READ_CLAIMS 64
#define HFI_MARKS       64 /* of tokens: retire.c */

struct hfi_alarm;
struct hfi_tick;
struct hfi_event_sink;
struct hfi_lock_order;
struct hfi_member_set;
struct hfi_waits;
struct hfi_lock;
struct hfi_shared;
struct redisReply;

struct hfi_lock_ops { /* calls up inside core/lock; the table is in client/client.c */
    void (*ring)(struct hfi_alarm *alarm, struct hfi_tick *tick); /* of each lock's alarm: tick.c */
    void (*renew_all)(hf_client *client);                         /* the server's clock was stepped: tick.c */
    void (*look)(struct hfi_lock *home, int64_t now);             /* at a semaphore's grants: grants.c */
    void (*free_sink)(struct hfi_event_sink *sink);               /* of a lease: event_sink.c */
    void (*part_told)(hf_lease *part, hf_event_kind kind, hf_reason reason); /* of a multilock: parts.c */
};

struct hfi_fetch_ops { /* a fetch lock's calls up into the room above: fetch/shared.c */
    void (*take)(struct hfi_lock *lock, struct redisReply *reply);
    void (*look)(struct hfi_lock *lock);
    int64_t (*enough_ms)(const struct hfi_shared *shared);
    void (*free)(struct hfi_shared *shared);
};

struct hf_client {
    _Atomic(int64_t) *alive;      /* client.c: 1; reads 0 in a fork child */
    _Atomic(int)  references;     /* client.c: user, leases, cancels, commands under way; memory only */
    _Atomic(int)  calls;          /* client.c: calls under way */
    _Atomic(bool) closing;        /* client.c */
    struct hfi_park left;         /* client.c: woken when a call leaves a closing client, under time_mutex */
    const struct hfi_clock *clock;
    struct hfi_log log;
    struct hfi_pool *pool;
    struct hfi_watchdog *watchdog;
    struct hfi_dispatcher *dispatcher;
    struct hfi_embedded *embedded;
    struct hfi_wiped *wiped;
    struct hfi_random_supply *random; /* for tokens */
    struct hfi_identity identity;
    char   *name;                 /* client_name */
    char   *key_template;
    int64_t lease_ms, command_ms, close_ms;
    int64_t max_lease_ms;         /* 0: none */
    int64_t quarantine_ms;        /* 0: none */
    int     replicas;             /* that have to confirm; 0: none; HF_ALL */
    int64_t local_bytes;          /* HF_OFF: none */
    size_t  max_waiters, max_value_bytes;
    struct hfi_lock_order *order; /* lock_order.c; NULL: orders are not checked */
    struct hfi_waits *lock_waits; /* waits.c; NULL: deadlocks are not looked for */
    bool    has_dispatcher_thread;

    struct hfi_table *table;      /* table.c */
    struct hfi_entry_rules rules[HFI_USES]; /* by enum hfi_use */
    const struct hfi_dialect *dialect;    /* dialects.c; NULL: none */
    struct hfi_dialect *_Atomic dialects; /* all that are known, that one among them */
    _Atomic(bool) shares;         /* a lock was asked for with .shared */
    const struct hfi_lock_ops *lock_ops;
    const struct hfi_fetch_ops *fetch_ops;
    _Atomic(uint64_t) grants;     /* table.c: grant numbers given */
    struct hfi_cached cached[HFI_CACHED];

    struct hfi_mutex time_mutex;   /* server_time.c: guards these three */
    struct hfi_server_clock server_clock;
    struct hfi_sample *samples;   /* by lane index */
    int    sample_count;
    _Atomic(int64_t) fence_seen;  /* server_time.c: the highest fence that this client has accepted */
    _Atomic(int64_t) *free_ns;    /* quarantine.c; by lane index: when its server may grant */
    _Atomic(int64_t) *floors_asked_ns; /* server_time.c; by lane index: when its last floor was sent; 0: it was refused */

    _Atomic(uint64_t) retired[HFI_MARKS]; /* retire.c, by random digits: marks of tokens that are over, */
    _Atomic(uint64_t) healed[HFI_MARKS];  /* and of those in doubt, lest messages release them too often */
    _Atomic(int64_t)  longest_ms;         /* lock.c: the longest life of any key after what was sent */
    _Atomic(int64_t)  keys_left_ns;       /* retire.c: until then a key of a token that was given up may live */

    struct hfi_mutex cancel_mutex; /* cancel.c */
    struct hfi_list cancels;

    _Atomic(int) events_state;    /* enum hfi_key_events_state, of key_events.c */
    _Atomic(bool) events_asked;   /* a lane is changing the setting: other lanes need not */
    _Atomic(int64_t) events_set_ns; /* when the server confirmed the change */
    _Atomic(int) tracking_state;  /* enum hfi_tracking_state, of tracking.c */
    _Atomic(bool) tracker_heard;  /* tracking.c: that subscription was in force once */
    struct hfi_job untracked;     /* tracking.c: logs that there is no tracker */
    _Atomic(bool) tracker_wanted; /* tracking.c: it is subscribed to HFI_INVALIDATIONS */
    const struct hfi_dialect *_Atomic events_known; /* key_events.c: the newest dialect when the flags were set last */
    _Atomic(struct hfi_member_set *) sets[HFI_DIALECTS]; /* members.c, by the dialect's number; NULL: none has changed */
    char  *keyspace_events;       /* "auto", "as-is", "off" */
    int    database;

    struct hfi_mutex inquiry_mutex; /* info.c */
    struct hfi_list inquiries;

    struct hfi_mutex observer_mutex; /* observer.c */
    struct hfi_list observers;

    struct hfi_loss_log loss_log;

    struct hfi_local_cache *local; /* local.c */
    struct hfi_near *near;        /* near.c */
    struct hfi_near_reads *near_reads; /* near_read.c */
    struct hfi_aside *aside;      /* aside.c; NULL: no loader threads */
    _Atomic(int64_t) local_turn;  /* fetch_alone.c: turn of the last load without a lease (freshness.h) */
    _Atomic(int64_t) load_ms;     /* load.c: mean time of a load; 0: none yet */
    _Atomic(int) read_claims[HFI_READ_CLAIMS]; /* read_lane.c, by hash */
    _Atomic(uint64_t) busy[HFI_BUSY_MARKS]; /* fetch.c, by hash: values that another process was loading a moment ago */
    struct hfi_counters counters;
    struct hfi_histogram waits, holds;
};

/* Every public call of a client begins with hfi_client_enter: HF_OK, or CLOSED, FORKED, INVALID (NULL) with the error
 * filled. After HF_OK the call ends with hfi_client_leave. */
hf_status hfi_client_enter(hf_client *client, hf_error *error);
void      hfi_client_leave(hf_client *client);
/* A reference keeps only the memory: leases outlive their client's connections. */
static inline void hfi_client_ref(hf_client *client)
{
    atomic_fetch_add(&client->references, 1);
}

void hfi_client_unref(hf_client *client);
static inline bool hfi_client_is_forked(const hf_client *client)
{
    return atomic_load_explicit(client->alive, memory_order_relaxed) == 0;
}

#endif
