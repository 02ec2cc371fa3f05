/* SPDX-License-Identifier: MIT */
/* peer.c - see peer.h. */
#include "pool/peer.h"

#include <stdio.h>
#include <string.h>

static void name_server(const struct hfi_endpoint *endpoint, char *name, size_t size)
{
    if (endpoint->scheme == HFI_SENTINEL)
        (void)snprintf(name, size, "%s", endpoint->service);
    else if (endpoint->scheme != HFI_TCP)
        (void)snprintf(name, size, "%s", endpoint->path != NULL ? endpoint->path : "");
    else if (strchr(endpoint->host, ':') != NULL)
        (void)snprintf(name, size, "[%s]:%d", endpoint->host, endpoint->port);
    else
        (void)snprintf(name, size, "%s:%d", endpoint->host, endpoint->port);
}

void hfi_peer_init(struct hfi_peer *peer, struct hfi_deployment *deployment, const struct hfi_endpoint *endpoint,
                   struct hfi_topology *topology)
{
    peer->deployment = deployment;
    peer->endpoint = endpoint;
    peer->topology = topology;
    name_server(endpoint, peer->name, sizeof peer->name);
    peer->server.uptime_s = -1;
    hfi_mutex_init(&peer->mutex, HFI_RANK_LEAF);
    (void)pthread_cond_init(&peer->judged, NULL);
}

void hfi_peer_done(struct hfi_peer *peer)
{
    (void)pthread_cond_destroy(&peer->judged);
    hfi_mutex_destroy(&peer->mutex);
}

/* ---- what is known of the server ---- */

void hfi_peer_note_failure(struct hfi_peer *peer, const hf_error *error)
{
    hfi_mutex_lock(&peer->mutex);
    peer->why = *error;
    hfi_mutex_unlock(&peer->mutex);
}

void hfi_peer_redirect(struct hfi_peer *peer)
{
    peer->is_redirected = true; /* it may not tell its run id */
    (void)atomic_fetch_add(&peer->redirections, 1);
}

void hfi_peer_replace(struct hfi_peer *peer, struct hfi_topology *topology)
{
    peer->topology = topology;
    name_server(peer->endpoint, peer->name, sizeof peer->name);
    hfi_peer_redirect(peer);
}

static bool is_same_run(const struct hfi_server *server, const char *run_id)
{
    return run_id[0] != 0 && strcmp(server->run_id, run_id) == 0;
}

bool hfi_peer_note_server(struct hfi_peer *peer, const struct hfi_server *server)
{
    hfi_mutex_lock(&peer->mutex);
    const char *before = peer->server.run_id;
    bool is_another = peer->is_redirected || (server->run_id[0] != 0 && before[0] != 0 && strcmp(server->run_id, before) != 0);
    if (is_another)
        (void)atomic_fetch_add(&peer->primaries, 1);
    peer->is_redirected = false;
    peer->server = *server;
    hfi_mutex_unlock(&peer->mutex);
    return is_another;
}

unsigned hfi_peer_primaries(struct hfi_peer *peer)
{
    return atomic_load(&peer->primaries);
}

bool hfi_peer_has_moved(struct hfi_peer *peer, unsigned primaries, const char *run_id)
{
    hfi_mutex_lock(&peer->mutex);
    bool moved = atomic_load(&peer->primaries) != primaries && strcmp(peer->server.run_id, run_id) != 0;
    hfi_mutex_unlock(&peer->mutex);
    return moved;
}

bool hfi_peer_clock_by_key(struct hfi_peer *peer, const struct hfi_server *server)
{
    hfi_mutex_lock(&peer->mutex);
    bool by_key = peer->server.clock_by_key && is_same_run(server, peer->server.run_id);
    hfi_mutex_unlock(&peer->mutex);
    return by_key;
}

hf_status hfi_peer_why_down(struct hfi_peer *peer, hf_error *error)
{
    hfi_mutex_lock(&peer->mutex);
    hf_error why = peer->why;
    hfi_mutex_unlock(&peer->mutex);
    if (why.status == HF_OK) {
        (void)hfi_fail(&why, HF_UNAVAILABLE, "try again in a moment", "there is no connection to %s yet",
                       peer->name);
        hfi_fail_server(&why, peer->name);
        hfi_fail_retry(&why, -1);
    }
    if (error != NULL)
        *error = why;
    return why.status;
}

void hfi_peer_server(struct hfi_peer *peer, struct hfi_server *server)
{
    hfi_mutex_lock(&peer->mutex);
    *server = peer->server;
    hfi_mutex_unlock(&peer->mutex);
}

/* ---- the first dial ---- */

void hfi_peer_note_verdict(struct hfi_peer *peer)
{
    hfi_mutex_lock(&peer->mutex);
    peer->verdicts++;
    (void)pthread_cond_broadcast(&peer->judged);
    hfi_mutex_unlock(&peer->mutex);
}

void hfi_peer_wait_for_verdict(struct hfi_peer *peer)
{
    hfi_mutex_lock(&peer->mutex);
    while (peer->verdicts == 0)
        hfi_mutex_wait(&peer->mutex, &peer->judged);
    hfi_mutex_unlock(&peer->mutex);
}
