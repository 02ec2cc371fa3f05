/* SPDX-License-Identifier: MIT */
/* pool_private.h - a pool as the files of this floor see it. */
#ifndef HFI_POOL_PRIVATE_H
#define HFI_POOL_PRIVATE_H

#include "pool/backoff.h"
#include "pool/pool.h"

#include <pthread.h>

struct hfi_borrowers;
struct hfi_listener;
struct hfi_subscribers;
struct hfi_topology;

struct hfi_pool {
    struct hfi_pool_settings settings; /* place and client_name are ours */
    struct hfi_pool_ops ops;
    void *self; /* for ops */
    const struct hfi_clock *clock;
    struct hfi_log log;
    char server_name[128];

    struct hfi_topology *topology;
    struct hfi_lane **lanes; /* lock lanes, value lanes, the reserved lane */
    int lane_count;
    struct hfi_subscribers *subscribers;
    struct hfi_listener *listener;
    struct hfi_borrowers *borrowers;
    struct hfi_losses losses; /* the listener's alone, as what follows */
    int64_t scripts_sent_ns;  /* when a connection last brought scripts along; 0: never */

    _Atomic(int64_t) closing_until_ns; /* 0: open; else close has begun, and gives the net that long */
    _Atomic(int64_t) hurry_ns;         /* HFI_NEVER: nobody is hurried. Readable on hurry_fd when somebody is */
    int hurry_fd;
    _Atomic(bool) closed_short;        /* since it was hurried, or closed, a command has ended without an answer */

    pthread_mutex_t mutex; /* all below; a leaf: nothing else is locked under it */
    pthread_cond_t judged; /* `verdicts` has grown */
    int verdicts;          /* dials of the first lock lane that came up or failed */
    hf_error why;          /* of the last dial that failed; HF_OK before the first */
    struct hfi_server server;
    unsigned primaries;    /* how often a lane met another server than the one before, by its run id; 0: never */
};

/* Whether it is dialled or not. */
const struct hfi_lane *hfi_pool_renewals_lane(const struct hfi_pool *pool);
void hfi_pool_note_failure(struct hfi_pool *pool, const hf_error *error);
void hfi_pool_note_server(struct hfi_pool *pool, const struct hfi_server *server);
unsigned hfi_pool_primaries(struct hfi_pool *pool);
/* A lane met another server since `primaries` was that count, and it is not the one of this run id. */
bool hfi_pool_has_moved(struct hfi_pool *pool, unsigned primaries, const char *run_id);
void hfi_pool_note_verdict(struct hfi_pool *pool);

#endif
