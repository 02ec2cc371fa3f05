/* SPDX-License-Identifier: MIT */
/*
 * deployment.h - the server of a pool, as all connections of the pool know it: its address, the settings, the owner's
 * ops, what the server has said of itself, and until when it is waited for. Nothing here knows a connection.
 */
#ifndef HFI_DEPLOYMENT_H
#define HFI_DEPLOYMENT_H

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "pool/backoff.h"
#include "pool/owner.h"
#include "pool/turns.h"

#include <pthread.h>
#include <stdatomic.h>

struct hfi_secure;
struct hfi_topology;

struct hfi_deployment {
    struct hfi_pool_settings settings; /* endpoint and client_name are our own copies */
    struct hfi_pool_ops ops;
    void *self; /* for ops */
    const struct hfi_clock *clock;
    struct hfi_log log;
    char server_name[128];
    struct hfi_topology *topology;
    struct hfi_secure *secure; /* NULL: in the clear */

    struct hfi_losses losses; /* used by the listener only, like the next four */
    struct hfi_turns turns;
    int dialled_last;        /* the lane whose dial was the last to begin; not the reserved one */
    int64_t scripts_sent_ns; /* when a handshake last loaded scripts; 0: never */
    int loading;             /* handshakes that have sent scripts, and are not over */

    _Atomic(int64_t) closing_until_ns; /* 0: open; else close has begun and waits for the network until then */
    _Atomic(int64_t) hurry_ns;         /* until_ns of the first hfi_pool_hurry; HFI_NEVER: not called yet */
    int hurry_fd;                      /* readable once hurry_ns is set */
    _Atomic(bool) closed_short;        /* since hurry or close began, a command has ended without an answer */

    struct hfi_mutex mutex; /* guards all below; a leaf: nothing else is locked under it */
    pthread_cond_t judged;  /* `verdicts` has grown */
    int verdicts;           /* dials of the first lock lane that came up or failed */
    hf_error why;           /* of the last dial that failed; HF_OK before the first */
    struct hfi_server server;
    unsigned primaries; /* how many handshakes of lanes met another run id than the one before */
};

/* For a zeroed deployment whose ops, self, clock and log are set. False: no memory or descriptor; done is still due. */
bool hfi_deployment_init(struct hfi_deployment *deployment, const struct hfi_pool_settings *settings);
void hfi_deployment_done(struct hfi_deployment *deployment); /* the topology is its maker's */

void hfi_deployment_note_failure(struct hfi_deployment *deployment, const hf_error *error);
void hfi_deployment_note_server(struct hfi_deployment *deployment, const struct hfi_server *server);
void hfi_deployment_note_verdict(struct hfi_deployment *deployment);
void hfi_deployment_wait_for_verdict(struct hfi_deployment *deployment);
unsigned hfi_deployment_primaries(struct hfi_deployment *deployment);
/* True if a lane has met another server since the count was `primaries`, and the run id of that server is not
 * `run_id`. */
bool hfi_deployment_has_moved(struct hfi_deployment *deployment, unsigned primaries, const char *run_id);
/* As hfi_pool_why_down and hfi_pool_server. */
hf_status hfi_deployment_why_down(struct hfi_deployment *deployment, hf_error *error);
void hfi_deployment_server(struct hfi_deployment *deployment, struct hfi_server *server);

#endif
