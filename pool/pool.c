/* SPDX-License-Identifier: MIT */
/* pool.c - a pool as a whole: open, close, choice of lanes, and what is known of the server. */
#include "pool/pool.h"
#include "base/descriptor.h"
#include "base/perturb.h"
#include "pool/borrowers.h"
#include "pool/lane_private.h"
#include "pool/listener.h"
#include "pool/subscribe.h"
#include "pool/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int reserved(const struct hfi_pool *pool)
{
    return pool->lane_count - 1;
}

static enum hfi_lane_kind kind_of(const struct hfi_pool *pool, int index)
{
    if (index == reserved(pool))
        return HFI_RESERVED_LANE;
    return (enum hfi_lane_kind)(index / pool->settings.lanes); /* lock, value, user */
}

static void found(void *self)
{
    const struct hfi_pool *pool = self;
    if (pool->listener != NULL)
        hfi_listener_kick(pool->listener);
}

static bool in_background(void *self, void (*run)(void *arg), void *arg)
{
    const struct hfi_pool *pool = self;
    return pool->ops.in_background != NULL && pool->ops.in_background(pool->self, run, arg);
}

static bool copy_settings(struct hfi_pool *pool, const struct hfi_pool_settings *settings)
{
    pool->settings = *settings;
    pool->settings.client_name = NULL;
    if (pool->settings.lanes < 1)
        pool->settings.lanes = 1;
    if (pool->settings.subscribers < 1)
        pool->settings.subscribers = 1;
    if (!hfi_endpoint_copy(&pool->settings.endpoint, &settings->endpoint))
        return false;
    pool->settings.client_name = strdup(settings->client_name != NULL ? settings->client_name : "");
    const struct hfi_endpoint *endpoint = &pool->settings.endpoint;
    if (endpoint->scheme != HFI_TCP)
        (void)snprintf(pool->server_name, sizeof pool->server_name, "%s",
                       endpoint->path != NULL ? endpoint->path : "");
    else if (strchr(endpoint->host, ':') != NULL)
        (void)snprintf(pool->server_name, sizeof pool->server_name, "[%s]:%d", endpoint->host, endpoint->port);
    else
        (void)snprintf(pool->server_name, sizeof pool->server_name, "%s:%d", endpoint->host, endpoint->port);
    return pool->settings.client_name != NULL;
}

static hf_status build(struct hfi_pool *pool, const struct hfi_pool_settings *settings, hf_error *error)
{
    const struct hfi_topology_ops topology_ops = {in_background, found, pool};
    if (!copy_settings(pool, settings))
        return hfi_fail(error, HF_NOMEM, NULL, "no memory for a connection pool");
    hf_status status =
        hfi_topology_new(&pool->settings.endpoint, pool->clock, &topology_ops, &pool->topology, error);
    if (status != HF_OK)
        return status;
    int count = HFI_LANES_OF(pool->settings.lanes);
    pool->lanes = calloc((size_t)count, sizeof(struct hfi_lane *));
    pool->hurry_fd = hfi_descriptor_event();
    pool->subscribers = hfi_subscribers_new(pool, pool->settings.subscribers);
    pool->borrowers = hfi_borrowers_new(pool);
    bool ok = pool->lanes != NULL && pool->hurry_fd >= 0 && pool->subscribers != NULL && pool->borrowers != NULL;
    if (ok)
        pool->lane_count = count;
    for (int i = 0; ok && i < count; i++) {
        pool->lanes[i] = hfi_lane_new(pool, kind_of(pool, i), i);
        ok = pool->lanes[i] != NULL;
    }
    if (!ok)
        return hfi_fail(error, HF_NOMEM, "raise the limit of open files",
                        "no memory or descriptors for a connection pool");
    return HF_OK;
}

/* Ends the listener, if it runs. After that every command has its outcome. */
static bool end(struct hfi_pool *pool, int64_t until_ns)
{
    atomic_store(&pool->closing_until_ns, until_ns > 0 ? until_ns : 1);
    for (int i = 0; i < pool->lane_count; i++)
        if (pool->lanes[i] != NULL)
            hfi_lane_flush(pool->lanes[i]);
    hfi_listener_kick(pool->listener);
    hfi_listener_join(pool->listener);
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_flush(pool->lanes[i]); /* commands listed too late come back UNSENT */
    hfi_borrowers_close(pool->borrowers);
    return !atomic_load(&pool->closed_short);
}

static void wait_for_verdict(struct hfi_pool *pool)
{
    hfi_mutex_lock(&pool->mutex);
    while (pool->verdicts == 0)
        hfi_mutex_wait(&pool->mutex, &pool->judged);
    hfi_mutex_unlock(&pool->mutex);
}

hf_status hfi_pool_open(const struct hfi_pool_settings *settings, const struct hfi_pool_ops *ops, void *self,
                        const struct hfi_clock *clock, const struct hfi_log *log, bool lazy,
                        struct hfi_pool **pool, hf_error *error)
{
    static const struct hfi_log silence = {NULL, NULL};
    struct hfi_pool *new = calloc(1, sizeof *new);
    *pool = NULL;
    if (new == NULL)
        return hfi_fail(error, HF_NOMEM, NULL, "no memory for a connection pool");
    new->ops = *ops;
    new->self = self;
    new->clock = clock;
    new->log = log != NULL ? *log : silence;
    new->server.uptime_s = -1;
    new->hurry_fd = -1;
    atomic_init(&new->hurry_ns, HFI_NEVER);
    hfi_mutex_init(&new->mutex, HFI_RANK_LEAF);
    (void)pthread_cond_init(&new->judged, NULL);
    hf_status status = build(new, settings, error);
    if (status == HF_OK) {
        *pool = new; /* from now on the listener calls the owner, which calls the pool */
        if (!lazy)
            (void)hfi_pool_lane(new, HFI_LOCK_LANE, 0);
        status = hfi_listener_start(new, &new->listener, error);
    }
    if (status == HF_OK && !lazy) {
        wait_for_verdict(new);
        if (!hfi_lane_is_up(new->lanes[0]))
            status = hfi_pool_why_down(new, error);
        if (status != HF_OK)
            (void)end(new, hfi_now(clock));
    }
    if (status != HF_OK) {
        hfi_pool_free(new);
        *pool = NULL;
    }
    return status;
}

bool hfi_pool_close(struct hfi_pool *pool, int64_t until_ns)
{
    return end(pool, until_ns);
}

void hfi_pool_free(struct hfi_pool *pool)
{
    if (pool == NULL)
        return;
    hfi_topology_free(
        pool->topology); /* first: a lookup that ends now must not kick a freed listener */
    hfi_listener_free(pool->listener);
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_free(pool->lanes[i]);
    free(pool->lanes);
    hfi_subscribers_free(pool->subscribers);
    hfi_borrowers_free(pool->borrowers);
    if (pool->hurry_fd >= 0)
        (void)close(pool->hurry_fd);
    free((char *)(uintptr_t)pool->settings.client_name);
    hfi_endpoint_done(&pool->settings.endpoint);
    (void)pthread_cond_destroy(&pool->judged);
    hfi_mutex_destroy(&pool->mutex);
    free(pool);
}

void hfi_pool_forked(struct hfi_pool *pool)
{
    hfi_listener_forked(pool->listener);
    (void)close(pool->hurry_fd);
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_forked(pool->lanes[i]);
    hfi_subscribers_forked(pool->subscribers);
    hfi_borrowers_forked(pool->borrowers);
}

/* ---- lanes ---- */

static struct hfi_lane *warm(struct hfi_pool *pool, int index)
{
    struct hfi_lane *lane = pool->lanes[index];
    if (atomic_load(&lane->state) != HFI_LANE_COLD)
        return lane;
    hfi_lane_lock(lane);
    bool first = atomic_load(&lane->state) == HFI_LANE_COLD;
    if (first)
        atomic_store(&lane->state, HFI_LANE_DIALING);
    hfi_lane_unlock(lane);
    if (first && lane->kind == HFI_LOCK_LANE)
        (void)warm(pool, reserved(pool)); /* there will be renewals */
    if (first && pool->listener != NULL)
        hfi_listener_kick(pool->listener);
    return lane;
}

struct hfi_lane *hfi_pool_lane(struct hfi_pool *pool, enum hfi_lane_kind kind, uint64_t hash)
{
    int index = (int)(hash % (uint64_t)pool->settings.lanes);
    if (kind == HFI_RESERVED_LANE)
        return warm(pool, reserved(pool));
    return warm(pool, (int)kind * pool->settings.lanes + index);
}

/* The time without an answer after which a lane is silent: patience_ns, or two of its usual round trips if that is
 * longer, but at most four times patience_ns. */
static int64_t silence_ns(const struct hfi_lane *lane, int64_t patience_ns)
{
    int64_t usual_ns = 2 * hfi_lane_rtt_ns(lane);
    if (usual_ns <= patience_ns)
        return patience_ns;
    return usual_ns < 4 * patience_ns ? usual_ns : 4 * patience_ns;
}

static bool answers(const struct hfi_lane *lane, int64_t now_ns, int64_t patience_ns)
{
    if (!hfi_lane_is_up(lane))
        return false;
    int64_t since_ns = hfi_lane_waits_since_ns(lane);
    return since_ns == HFI_NEVER || now_ns - since_ns <= silence_ns(lane, patience_ns);
}

struct hfi_lane *hfi_pool_answering(struct hfi_pool *pool, int64_t now_ns, int64_t patience_ns)
{
    struct hfi_lane *own = warm(pool, reserved(pool));
    if (answers(own, now_ns, patience_ns))
        return own;
    if (hfi_lane_is_up(own)) {
        atomic_store(&own->silent_ns, now_ns - silence_ns(own, patience_ns));
        HFI_PERTURB("silent-to-kick");
        hfi_listener_kick(pool->listener);
    }
    for (int i = 0; i < reserved(pool) && pool->lanes[i]->kind != HFI_USER_LANE; i++)
        if (answers(pool->lanes[i], now_ns, patience_ns))
            return pool->lanes[i];
    return own;
}

const struct hfi_lane *hfi_pool_renewals_lane(const struct hfi_pool *pool)
{
    return pool->lanes[reserved(pool)];
}

bool hfi_pool_is_lock_lane(const struct hfi_pool *pool, int index)
{
    return kind_of(pool, index) == HFI_LOCK_LANE;
}

int hfi_pool_lane_count(const struct hfi_pool *pool)
{
    return pool->lane_count;
}

/* ---- what is known of the server ---- */

void hfi_pool_note_failure(struct hfi_pool *pool, const hf_error *error)
{
    hfi_mutex_lock(&pool->mutex);
    pool->why = *error;
    hfi_mutex_unlock(&pool->mutex);
}

void hfi_pool_note_server(struct hfi_pool *pool, const struct hfi_server *server)
{
    hfi_mutex_lock(&pool->mutex);
    if (server->run_id[0] != 0 && pool->server.run_id[0] != 0 && strcmp(server->run_id, pool->server.run_id) != 0)
        pool->primaries++;
    pool->server = *server;
    hfi_mutex_unlock(&pool->mutex);
}

unsigned hfi_pool_primaries(struct hfi_pool *pool)
{
    hfi_mutex_lock(&pool->mutex);
    unsigned primaries = pool->primaries;
    hfi_mutex_unlock(&pool->mutex);
    return primaries;
}

bool hfi_pool_has_moved(struct hfi_pool *pool, unsigned primaries, const char *run_id)
{
    hfi_mutex_lock(&pool->mutex);
    bool moved = pool->primaries != primaries && strcmp(pool->server.run_id, run_id) != 0;
    hfi_mutex_unlock(&pool->mutex);
    return moved;
}

void hfi_pool_note_verdict(struct hfi_pool *pool)
{
    hfi_mutex_lock(&pool->mutex);
    pool->verdicts++;
    (void)pthread_cond_broadcast(&pool->judged);
    hfi_mutex_unlock(&pool->mutex);
}

hf_status hfi_pool_why_down(struct hfi_pool *pool, hf_error *error)
{
    hfi_mutex_lock(&pool->mutex);
    hf_error why = pool->why;
    hfi_mutex_unlock(&pool->mutex);
    if (why.status == HF_OK) {
        (void)hfi_fail(&why, HF_UNAVAILABLE, "try again in a moment", "there is no connection to %s yet",
                       pool->server_name);
        hfi_fail_server(&why, pool->server_name);
        hfi_fail_retry(&why, -1);
    }
    if (error != NULL)
        *error = why;
    return why.status;
}

const char *hfi_pool_server_name(const struct hfi_pool *pool)
{
    return pool->server_name;
}

void hfi_pool_server(const struct hfi_pool *pool, struct hfi_server *server)
{
    struct hfi_pool *locked = (struct hfi_pool *)(uintptr_t)pool;
    hfi_mutex_lock(&locked->mutex);
    *server = pool->server;
    hfi_mutex_unlock(&locked->mutex);
}

void hfi_pool_kick(struct hfi_pool *pool)
{
    hfi_listener_kick_owner(pool->listener);
}

void hfi_pool_count(struct hfi_pool *pool, struct hfi_pool_counts *counts)
{
    *counts = (struct hfi_pool_counts){0};
    for (int i = 0; i < pool->lane_count; i++) {
        struct hfi_lane *lane = pool->lanes[i];
        hfi_lane_lock(lane);
        counts->commands += lane->staged;
        counts->round_trips += lane->sends;
        counts->reconnects += lane->times_up > 1 ? lane->times_up - 1 : 0;
        hfi_lane_unlock(lane);
    }
    hfi_borrowers_count(pool->borrowers, counts);
}
