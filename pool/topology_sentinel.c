/* SPDX-License-Identifier: MIT */
/* topology_sentinel.c - see topology_sentinel.h. sentinel.c decides; here are the connections. */
#include "pool/topology_sentinel.h"
#include "base/descriptor.h"
#include "pool/dial.h"
#include "pool/lane_private.h"
#include "pool/listener.h"
#include "pool/subscribe.h"
#include "pool/topology_one.h"
#include "pool/topology_sentinel_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char channel[] = "+switch-master";

static struct by_sentinels *all_of(struct hfi_topology *topology)
{
    return (struct by_sentinels *)(void *)topology; /* its first member */
}

static bool in_background(void *self, void (*run)(void *arg), void *arg)
{
    const struct by_sentinels *all = self;
    return all->ops.in_background(all->ops.self, run, arg);
}

/* The address of a host, the primary's or a sentinel's. */
static void found_address(void *self)
{
    struct by_sentinels *all = self;
    hfi_park_wake(&all->topology.looked);
    all->ops.found(all->ops.self);
}

struct hfi_topology_ops hfi_by_sentinels_ops(struct by_sentinels *all)
{
    return (struct hfi_topology_ops){.in_background = in_background, .found = found_address, .self = all};
}

bool hfi_by_sentinels_all_confirm(const struct by_sentinels *all)
{
    return all->served->settings.replicas == HF_ALL;
}

static void on_switch(void *self, const char *name, size_t name_size, const char *message, size_t message_size)
{
    struct by_sentinels *all = self;
    if (name_size != sizeof channel - 1 || memcmp(name, channel, name_size) != 0 ||
        !hfi_sentinel_is_about(message, message_size, all->service))
        return;
    hfi_by_sentinels_doubt(all); /* the message has no epoch */
}

static void maintain(struct hfi_topology *topology, int64_t now_ns, struct hfi_poll_set *set)
{
    hfi_by_sentinels_watch_clocks(all_of(topology), now_ns, set);
    hfi_by_sentinels_ask(all_of(topology), now_ns, set);
}

/* ---- the calls ---- */

static enum hfi_where primary(struct hfi_topology *topology, struct hfi_addresses *addresses, hf_error *error)
{
    struct by_sentinels *all = all_of(topology);
    enum hfi_where where = HFI_LOOKING;
    hfi_mutex_lock(&all->mutex);
    if (all->primary != NULL) {
        where = hfi_topology_primary(all->primary, addresses, error);
    } else if (all->has_failed) {
        where = HFI_NOT_FOUND;
        if (error != NULL)
            *error = all->why;
    }
    hfi_mutex_unlock(&all->mutex);
    return where;
}

static void rate(struct hfi_topology *topology, const struct hfi_address *address, bool good)
{
    struct by_sentinels *all = all_of(topology);
    hfi_mutex_lock(&all->mutex);
    if (all->primary != NULL)
        hfi_topology_rate(all->primary, address, good);
    hfi_mutex_unlock(&all->mutex);
    if (!good)
        hfi_by_sentinels_doubt(all);
}

static bool report(struct hfi_topology *topology, bool asks_clocks, struct hfi_topology_report *report)
{
    struct by_sentinels *all = all_of(topology);
    hfi_mutex_lock(&all->mutex);
    *report = all->report;
    hfi_mutex_unlock(&all->mutex);
    if (asks_clocks) { /* behind the copy, whose round is then the one before */
        atomic_store(&all->wants_clocks, true);
        hfi_listener_kick(all->listener);
    }
    return true;
}

static void end(struct hfi_topology *topology)
{
    struct by_sentinels *all = all_of(topology);
    hfi_clocks_end(&all->clocks);
    for (int i = 0; i < all->count; i++) {
        hfi_lane_half_close(all->list[i].lane);
        hfi_subscribers_end(all->list[i].subscribers);
        hfi_lane_drain(all->list[i].lane, 0); /* they owe us nothing */
    }
}

static void forked(struct hfi_topology *topology)
{
    const struct by_sentinels *all = all_of(topology);
    for (int i = 0; i < all->count; i++) {
        hfi_lane_forked(all->list[i].lane);
        hfi_subscribers_forked(all->list[i].subscribers);
    }
    hfi_dial_forked(all->clocks.dial);
    (void)close(all->deployment.hurry_fd);
}

static void drop(struct sentinel *one)
{
    hfi_lane_free(one->lane);
    hfi_subscribers_free(one->subscribers);
    hfi_topology_free(one->topology);
    free(one->said);
    if (one->peer.deployment != NULL)
        hfi_peer_done(&one->peer);
    hfi_endpoint_done(&one->endpoint);
    *one = (struct sentinel){0};
}

static void free_all(struct hfi_topology *topology)
{
    struct by_sentinels *all = all_of(topology);
    hfi_topology_free(all->primary);
    for (int i = 0; i < all->count; i++)
        drop(&all->list[i]);
    hfi_endpoint_done(&all->endpoint);
    hfi_deployment_done(&all->deployment);
    hfi_mutex_destroy(&all->mutex);
    free(all->service);
    free(all);
}

static const struct hfi_topology_kind kind = {
    .free = free_all, .primary = primary, .rate = rate, .report = report, .maintain = maintain, .end = end,
    .forked = forked};

/* False: no memory or descriptor. */
static bool make(struct sentinel *one, struct by_sentinels *all, const char *host, int port)
{
    struct hfi_endpoint endpoint = all->endpoint;
    endpoint.host = (char *)(uintptr_t)host;
    endpoint.port = port;
    one->all = all;
    one->index = all->count;
    if (!hfi_endpoint_copy(&one->endpoint, &endpoint))
        return false;
    const struct hfi_topology_ops own = hfi_by_sentinels_ops(all);
    if (hfi_topology_one_new(&one->endpoint, all->deployment.clock, &own, &one->topology, NULL) != HF_OK)
        return false;
    hfi_peer_init(&one->peer, &all->deployment, &one->endpoint, one->topology);
    one->peer.is_sentinel = true;
    one->lane = hfi_lane_new(&one->peer, all->listener, HFI_SENTINEL_LANE, one->index);
    one->subscribers = hfi_subscribers_new(&one->peer, all->listener, 1);
    one->said = calloc(1, sizeof *one->said);
    if (one->lane == NULL || one->subscribers == NULL || one->said == NULL)
        return false;
    one->lane->subscribers = one->subscribers;
    one->lane->renewals = one->lane;
    hfi_lane_lock(one->lane);
    hfi_lane_set_state_locked(one->lane, HFI_LANE_DIALING);
    hfi_lane_unlock(one->lane);
    return hfi_subscribers_want(one->subscribers, channel, sizeof channel - 1);
}

/* Its place and its connections to the one at `host`. False: no memory. */
static bool give(struct sentinel *one, const char *host, int port)
{
    static const char why[] = "it was silent, and no other sentinel lists it any more";
    struct by_sentinels *all = one->all;
    struct hfi_endpoint endpoint = one->endpoint;
    struct hfi_topology *topology, *before = one->topology;
    const struct hfi_topology_ops own = hfi_by_sentinels_ops(all);
    endpoint.port = port;
    endpoint.host = strdup(host);
    if (endpoint.host == NULL || hfi_topology_one_new(&endpoint, all->deployment.clock, &own, &topology, NULL) != HF_OK) {
        free(endpoint.host);
        return false;
    }
    hfi_lane_redirect(one->lane, why); /* what was asked there is answered by that */
    hfi_subscribers_give_up(one->subscribers, why);
    free(one->endpoint.host);
    one->endpoint = endpoint;
    one->topology = topology;
    hfi_peer_replace(&one->peer, topology);
    hfi_topology_free(before);
    hfi_council_give(&all->council, one->index);
    one->has_told = one->said->is_given = one->is_refused = false;
    one->listed_ns = one->asked_ns = 0;
    return true;
}

int hfi_by_sentinels_add(struct by_sentinels *all, const char *host, int port)
{
    int index = all->count;
    if (index == HFI_SENTINELS_MOST) {
        index = hfi_council_spare(&all->council);
        return index >= 0 && give(&all->list[index], host, port) ? index : -1;
    }
    if (!make(&all->list[index], all, host, port)) {
        drop(&all->list[index]);
        return -1;
    }
    all->count = all->council.count = index + 1; /* whole, for a fork child */
    return index;
}

hf_status hfi_topology_sentinel_new(struct hfi_deployment *deployment, struct hfi_listener *listener,
                                    const struct hfi_pool_settings *settings, const struct hfi_topology_ops *ops,
                                    struct hfi_topology **topology, hf_error *error)
{
    struct by_sentinels *all = calloc(1, sizeof *all);
    *topology = NULL;
    if (all == NULL)
        return hfi_fail(error, HF_NOMEM, NULL, "no memory for a connection pool");
    hfi_topology_init(&all->topology, &kind);
    hfi_mutex_init(&all->mutex, HFI_RANK_MIDDLE); /* the primary's own topology has one below it */
    all->ops = *ops;
    all->served = all->clocks.deployment = deployment;
    all->clocks_ns = settings->replicas == HF_ALL ? 0 : HFI_NEVER;
    all->report.knows_replicas = settings->replicas != HF_ALL;
    all->promotable.needed.until_ns = HFI_NEVER;
    all->listener = listener;
    all->judge_ns = HFI_NEVER;
    all->deployment.clock = deployment->clock;
    all->deployment.log = deployment->log;
    all->deployment.secure = deployment->secure;
    all->deployment.ops.on_message = on_switch;
    all->deployment.self = all;
    const struct hfi_pool_settings theirs = {
        .client_name = settings->client_name,
        .connect_ms = settings->connect_ms,
        .command_ms = settings->command_ms,
        .lanes = 1,
        .subscribers = 1,
    };
    bool good = hfi_deployment_init(&all->deployment, &theirs);
    all->service = strdup(settings->endpoint.service);
    const struct hfi_endpoint rights = {.scheme = HFI_TCP,
                                        .tls = settings->endpoint.tls,
                                        .user = (char *)(uintptr_t)settings->sentinel_user,
                                        .password = (char *)(uintptr_t)settings->sentinel_password};
    good = hfi_endpoint_copy(&all->endpoint, &rights) && good && all->service != NULL;
    for (int i = 0; good && i < settings->endpoint.host_count; i++)
        good = hfi_by_sentinels_add(all, settings->endpoint.hosts[i].name, settings->endpoint.hosts[i].port) >= 0;
    if (good) {
        *topology = &all->topology;
        return HF_OK;
    }
    free_all(&all->topology);
    return hfi_fail(error, HF_NOMEM, "raise the limit of open files", "no memory or descriptors for a connection pool");
}
