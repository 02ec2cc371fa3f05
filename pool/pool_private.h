/* SPDX-License-Identifier: MIT */
/* pool_private.h - what the files of pool/ share of a pool. */
#ifndef HFI_POOL_PRIVATE_H
#define HFI_POOL_PRIVATE_H

#include "base/mutex.h"
#include "pool/backoff.h"
#include "pool/pool.h"

#include <pthread.h>

struct hfi_borrowers;
struct hfi_listener;
struct hfi_subscribers;
struct hfi_topology;

struct hfi_pool {
    struct hfi_pool_settings settings; /* endpoint and client_name are our own copies */
    struct hfi_pool_ops ops;
    void *self; /* for ops */
    const struct hfi_clock *clock;
    struct hfi_log log;
    char server_name[128];

    struct hfi_topology *topology;
    struct hfi_lane **lanes; /* lock, value and user lanes, the reserved lane */
    int lane_count;
    struct hfi_subscribers *subscribers;
    struct hfi_listener *listener;
    struct hfi_borrowers *borrowers;
    struct hfi_losses losses; /* used by the listener only, like scripts_sent_ns */
    int64_t scripts_sent_ns;  /* when a handshake last loaded scripts; 0: never */

    _Atomic(int64_t) closing_until_ns; /* 0: open; else close has begun and waits for the network until then */
    _Atomic(int64_t) hurry_ns;         /* until_ns of the first hfi_pool_hurry; HFI_NEVER: not called yet */
    int hurry_fd;                      /* readable once hurry_ns is set */
    _Atomic(bool) closed_short;        /* since hurry or close began, a command has ended without an answer */

    struct hfi_mutex mutex; /* guards all below; a leaf: nothing else is locked under it */
    pthread_cond_t judged; /* `verdicts` has grown */
    int verdicts;          /* dials of the first lock lane that came up or failed */
    hf_error why;          /* of the last dial that failed; HF_OK before the first */
    struct hfi_server server;
    unsigned primaries;    /* how many handshakes of lanes met another run id than the one before */
};

/* The reserved lane, whether it is dialled or not. */
const struct hfi_lane *hfi_pool_renewals_lane(const struct hfi_pool *pool);
void hfi_pool_note_failure(struct hfi_pool *pool, const hf_error *error);
void hfi_pool_note_server(struct hfi_pool *pool, const struct hfi_server *server);
unsigned hfi_pool_primaries(struct hfi_pool *pool);
/* True if a lane has met another server since the count was `primaries`, and the run id of that server is not
 * `run_id`. */
bool hfi_pool_has_moved(struct hfi_pool *pool, unsigned primaries, const char *run_id);
void hfi_pool_note_verdict(struct hfi_pool *pool);

#endif
