/* SPDX-License-Identifier: MIT */
/*
 * peer.h - one server, as all connections to it know it: its name, what it has said of itself, why it cannot be reached,
 * and whose turn it is to dial it. Nothing here knows a connection.
 */
#ifndef HFI_PEER_H
#define HFI_PEER_H

#include "base/mutex.h"
#include "pool/backoff.h"
#include "pool/deployment.h"
#include "pool/turns.h"

#include <pthread.h>
#include <stdatomic.h>

struct hfi_peer {
    struct hfi_deployment *deployment;
    const struct hfi_endpoint *endpoint; /* user, password, database */
    struct hfi_topology *topology;       /* finds its addresses */
    bool is_sentinel;                    /* else it has to be a primary */
    char name[128];                      /* in messages */

    struct hfi_losses losses; /* used by the listener only, like the next four */
    struct hfi_turns turns;
    int dialled_last;        /* the lane whose dial was the last to begin; not the reserved one */
    int64_t scripts_sent_ns; /* when a handshake last loaded scripts; 0: never */
    int loading;             /* handshakes that have sent scripts, and are not over */
    bool is_redirected;      /* another server is meant than the one that `server` is about */
    _Atomic(unsigned) redirections; /* how often that has happened; read by any thread */

    struct hfi_mutex mutex; /* guards all below; a leaf: nothing else is locked under it */
    pthread_cond_t judged;  /* `verdicts` has grown */
    int verdicts;           /* dials of the first lock lane that came up or failed */
    hf_error why;           /* of the last dial that failed, or what a sentinel refused since; HF_OK before the first */
    struct hfi_server server;
    _Atomic(unsigned) primaries; /* how many handshakes of lanes met another run id than the one before; read by any thread */
};

/* Of a zeroed peer. endpoint and topology stay the caller's, and have to outlive the peer. */
void hfi_peer_init(struct hfi_peer *peer, struct hfi_deployment *deployment, const struct hfi_endpoint *endpoint,
                   struct hfi_topology *topology);
void hfi_peer_done(struct hfi_peer *peer);

void hfi_peer_redirect(struct hfi_peer *peer); /* the listener: another server is meant now */
/* The same, of a peer that the listener alone knows: it is found by `topology` now, and `endpoint` was changed. */
void hfi_peer_replace(struct hfi_peer *peer, struct hfi_topology *topology);
void hfi_peer_note_failure(struct hfi_peer *peer, const hf_error *error);
/* The listener. True: it is another one than before. */
bool hfi_peer_note_server(struct hfi_peer *peer, const struct hfi_server *server);
void hfi_peer_note_verdict(struct hfi_peer *peer);
void hfi_peer_wait_for_verdict(struct hfi_peer *peer);
unsigned hfi_peer_primaries(struct hfi_peer *peer);
/* True if a lane has met another server since the count was `primaries`, and the run id of that server is not
 * `run_id`. */
bool hfi_peer_has_moved(struct hfi_peer *peer, unsigned primaries, const char *run_id);
/* What lanes have found out of this run of the server. One that does not tell its run id is another with each connection. */
bool hfi_peer_clock_by_key(struct hfi_peer *peer, const struct hfi_server *server);
/* As hfi_pool_why_down and hfi_pool_server. */
hf_status hfi_peer_why_down(struct hfi_peer *peer, hf_error *error);
void hfi_peer_server(struct hfi_peer *peer, struct hfi_server *server);

#endif
