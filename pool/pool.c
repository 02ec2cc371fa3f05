/* SPDX-License-Identifier: MIT */
/* pool.c - a pool as a whole: what its listener does, open, close, and which server has a call's lane. */
#include "pool/pool.h"
#include "base/descriptor.h"
#include "pool/borrow.h"
#include "pool/borrowers.h"
#include "pool/listener.h"
#include "pool/node.h"
#include "pool/pool_private.h"
#include "pool/secure.h"
#include "pool/subscribe.h"
#include "pool/times.h"
#include "pool/topology_one.h"
#include "pool/topology_sentinel.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static hf_status fail_memory(hf_error *error)
{
    return hfi_fail(error, HF_NOMEM, "raise the limit of open files",
                    "no memory or descriptors for a connection pool");
}

/* ---- what the listener does ---- */

static bool is_over(const struct hfi_pool *pool, int64_t now_ns)
{
    int64_t until_ns = atomic_load(&pool->deployment.closing_until_ns);
    if (until_ns == 0 || now_ns >= until_ns)
        return until_ns != 0;
    return hfi_node_is_drained(pool->node);
}

static bool look(void *self, int64_t now_ns, struct hfi_poll_set *set)
{
    struct hfi_pool *pool = self;
    struct hfi_polled polled;
    hfi_topology_maintain(pool->deployment.topology, now_ns, set);
    hfi_node_maintain(pool->node, now_ns, set);
    hfi_poll_set_again(set, hfi_borrowers_maintain(pool->borrowers, now_ns, &polled));
    hfi_poll_set_add(set, polled, NULL, NULL);
    if (atomic_load(&pool->deployment.closing_until_ns) != 0)
        hfi_poll_set_again(set, now_ns + HFI_CLOSING_TICK_NS);
    return !is_over(pool, now_ns);
}

static void woke(void *self, int64_t took_ns)
{
    struct hfi_pool *pool = self;
    hfi_costs_note_wake_up(&pool->deployment.costs, took_ns);
}

static void hang_up(void *self)
{
    struct hfi_pool *pool = self;
    hfi_topology_end(pool->deployment.topology);
    hfi_node_half_close(pool->node);
    hfi_node_drain(pool->node, atomic_load(&pool->deployment.closing_until_ns));
}

static void kicked(void *self)
{
    const struct hfi_deployment *deployment = &((const struct hfi_pool *)self)->deployment;
    if (deployment->ops.kicked != NULL)
        deployment->ops.kicked(deployment->self);
}

/* ---- open and close ---- */

static void found(void *self)
{
    hfi_listener_kick(((const struct hfi_pool *)self)->listener);
}

static void moved(void *self)
{
    hfi_node_give_up(((const struct hfi_pool *)self)->node, "the sentinels name another primary");
}

static bool needed(void *self, const struct hfi_replicas *replicas)
{
    return hfi_node_need(((const struct hfi_pool *)self)->node, replicas);
}

static bool in_background(void *self, void (*run)(void *arg), void *arg)
{
    const struct hfi_deployment *deployment = &((const struct hfi_pool *)self)->deployment;
    return deployment->ops.in_background != NULL && deployment->ops.in_background(deployment->self, run, arg);
}

static hf_status build(struct hfi_pool *pool, const struct hfi_pool_settings *settings, hf_error *error)
{
    const struct hfi_topology_ops topology_ops = {
        .in_background = in_background, .found = found, .needed = needed, .moved = moved, .self = pool};
    const struct hfi_listener_ops listener_ops = {look, hang_up, kicked, woke, pool};
    struct hfi_deployment *deployment = &pool->deployment;
    if (!hfi_deployment_init(deployment, settings))
        return fail_memory(error);
    hf_status status = HF_OK;
    const struct hfi_endpoint *endpoint = &deployment->settings.endpoint;
    bool by_sentinels = endpoint->scheme == HFI_SENTINEL;
    if (endpoint->tls)
        status = hfi_secure_open(&settings->tls, &deployment->log, &deployment->secure, error);
    if (status != HF_OK)
        return status;
    int descriptors = hfi_node_descriptors(&deployment->settings) + 1; /* one of the borrowers */
    if (by_sentinels)
        descriptors += HFI_SENTINEL_DESCRIPTORS;
    pool->listener = hfi_listener_new(&listener_ops, deployment->clock, (size_t)descriptors);
    if (pool->listener == NULL)
        return fail_memory(error);
    status = by_sentinels ? hfi_topology_sentinel_new(deployment, pool->listener, settings, &topology_ops,
                                                      &deployment->topology, error)
                          : hfi_topology_one_new(endpoint, deployment->clock, &topology_ops, &deployment->topology, error);
    if (status != HF_OK)
        return status;
    pool->node = hfi_node_new(deployment, pool->listener);
    pool->borrowers = pool->node != NULL ? hfi_borrowers_new(&pool->node->peer) : NULL;
    return pool->borrowers != NULL ? HF_OK : fail_memory(error);
}

/* Ends the listener. After that every command has its outcome. */
static bool end(struct hfi_pool *pool, int64_t until_ns)
{
    atomic_store(&pool->deployment.closing_until_ns, until_ns > 0 ? until_ns : 1);
    hfi_node_flush(pool->node);
    hfi_listener_kick(pool->listener);
    hfi_listener_join(pool->listener);
    hfi_node_flush(pool->node); /* commands listed too late come back UNSENT */
    hfi_borrow_end(pool);
    hfi_borrowers_close(pool->borrowers);
    return !atomic_load(&pool->deployment.closed_short);
}

hf_status hfi_pool_open(const struct hfi_pool_settings *settings, const struct hfi_pool_ops *ops, void *self,
                        const struct hfi_clock *clock, const struct hfi_log *log, bool lazy,
                        struct hfi_pool **pool, hf_error *error)
{
    static const struct hfi_log silence = {NULL, NULL};
    struct hfi_pool *new = calloc(1, sizeof *new);
    *pool = NULL;
    if (new == NULL)
        return fail_memory(error);
    new->deployment.ops = *ops;
    new->deployment.self = self;
    new->deployment.clock = clock;
    new->deployment.log = log != NULL ? *log : silence;
    int64_t until_ns = hfi_after_ms(hfi_now(clock), settings->connect_ms);
    hf_status status = build(new, settings, error);
    if (status == HF_OK) {
        *pool = new; /* from now on the listener calls the owner, which calls the pool */
        if (!lazy)
            (void)hfi_pool_lane(new, HFI_LOCK_LANE, 0);
        status = hfi_listener_start(new->listener, error);
    }
    if (status == HF_OK && !lazy) {
        hfi_peer_wait_for_verdict(&new->node->peer);
        if (!hfi_lane_is_up(hfi_pool_lane(new, HFI_LOCK_LANE, 0)))
            status = hfi_pool_why_down(new, error);
        else
            hfi_pool_wait_for_replicas(new, until_ns);
        if (status != HF_OK)
            (void)end(new, hfi_now(clock));
    }
    if (status != HF_OK) {
        hfi_pool_free(new);
        *pool = NULL;
    }
    return status;
}

void hfi_pool_hurry(struct hfi_pool *pool, int64_t until_ns)
{
    struct hfi_deployment *deployment = &pool->deployment;
    if (atomic_load(&deployment->hurry_ns) == HFI_NEVER) {
        atomic_store(&deployment->hurry_ns, until_ns);
        hfi_event_set(deployment->hurry_fd); /* never read, so later waiters see it too */
        hfi_topology_hurry(deployment->topology);
    }
    hfi_node_hurry(pool->node, until_ns);
    hfi_listener_kick(pool->listener);
}

bool hfi_pool_close(struct hfi_pool *pool, int64_t until_ns)
{
    return end(pool, until_ns);
}

void hfi_pool_free(struct hfi_pool *pool)
{
    if (pool == NULL)
        return;
    /* First: a lookup that ends now must not kick a freed listener. */
    hfi_topology_free(pool->deployment.topology);
    hfi_listener_free(pool->listener);
    hfi_borrowers_free(pool->borrowers);
    hfi_node_free(pool->node);
    hfi_secure_free(pool->deployment.secure);
    hfi_deployment_done(&pool->deployment);
    free(pool);
}

void hfi_pool_forked(struct hfi_pool *pool)
{
    hfi_listener_forked(pool->listener);
    (void)close(pool->deployment.hurry_fd);
    hfi_topology_forked(pool->deployment.topology);
    hfi_node_forked(pool->node);
    hfi_borrowers_forked(pool->borrowers);
}

/* ---- lanes ---- */

struct hfi_lane *hfi_pool_lane(struct hfi_pool *pool, enum hfi_lane_kind kind, uint64_t hash)
{
    return hfi_node_lane(pool->node, kind, hash);
}

struct hfi_lane *hfi_pool_choose_lane(struct hfi_pool *pool)
{
    return hfi_node_choose_lane(pool->node);
}

struct hfi_lane *hfi_pool_read_lane(struct hfi_pool *pool, uint64_t hash)
{
    return hfi_node_read_lane(pool->node, hash);
}

struct hfi_lane *hfi_pool_answering(struct hfi_pool *pool, int64_t now_ns, int64_t patience_ns)
{
    return hfi_node_answering(pool->node, now_ns, patience_ns);
}

bool hfi_pool_is_lock_lane(const struct hfi_pool *pool, int index)
{
    return hfi_node_is_lock_lane(pool->node, index);
}

/* ---- subscriptions ---- */

bool hfi_pool_subscribe(struct hfi_pool *pool, const char *channel, size_t size)
{
    return hfi_subscribers_want(pool->node->subscribers, channel, size);
}

void hfi_pool_unsubscribe(struct hfi_pool *pool, const char *channel, size_t size)
{
    hfi_subscribers_unwant(pool->node->subscribers, channel, size);
}

void hfi_pool_prove(struct hfi_pool *pool)
{
    hfi_subscribers_prove(pool->node->subscribers);
}

int64_t hfi_pool_tracker_id(const struct hfi_pool *pool)
{
    return hfi_subscribers_tracker_id(pool->node->subscribers);
}

/* ---- what is known of the server ---- */

hf_status hfi_pool_why_down(struct hfi_pool *pool, hf_error *error)
{
    return hfi_peer_why_down(&pool->node->peer, error);
}

const char *hfi_pool_server_name(const struct hfi_pool *pool)
{
    return pool->node->peer.name;
}

void hfi_pool_server(const struct hfi_pool *pool, struct hfi_server *server)
{
    hfi_peer_server(&pool->node->peer, server);
}

bool hfi_pool_verifies(const struct hfi_pool *pool)
{
    return hfi_secure_verifies(pool->deployment.secure);
}

bool hfi_pool_report(const struct hfi_pool *pool, bool asks_clocks, struct hfi_topology_report *report)
{
    return hfi_topology_report(pool->deployment.topology, asks_clocks, report);
}

void hfi_pool_wait_for_replicas(struct hfi_pool *pool, int64_t until_ns)
{
    hfi_topology_wait_for_replicas(pool->deployment.topology, until_ns);
}

void hfi_pool_kick(struct hfi_pool *pool)
{
    hfi_listener_kick_owner(pool->listener);
}

void hfi_pool_count(struct hfi_pool *pool, struct hfi_pool_counts *counts)
{
    *counts = (struct hfi_pool_counts){0};
    const struct hfi_costs *costs = &pool->deployment.costs;
    counts->wake_up_ns = atomic_load(&costs->wake_up_ns);
    counts->send_ns = atomic_load(&costs->send_ns);
    counts->yield_ns = atomic_load(&costs->yield_ns);
    counts->sleep_ns = atomic_load(&costs->sleep_ns);
    counts->crowd_looks = hfi_deployment_follower_looks(&pool->deployment, INT_MAX);
    hfi_node_count(pool->node, counts);
    hfi_borrowers_count(pool->borrowers, counts);
}
