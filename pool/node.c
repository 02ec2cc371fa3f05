/* SPDX-License-Identifier: MIT */
/* node.c - see node.h. */
#include "pool/node.h"
#include "base/perturb.h"
#include "pool/lane_private.h"
#include "pool/listener.h"
#include "pool/subscribe.h"

#include <stdlib.h>

static int reserved(const struct hfi_node *node)
{
    return node->lane_count - 1;
}

static enum hfi_lane_kind kind_of(const struct hfi_node *node, int index)
{
    if (index == reserved(node))
        return HFI_RESERVED_LANE;
    return (enum hfi_lane_kind)(index / node->peer.deployment->settings.lanes); /* lock, value, user */
}

int hfi_node_descriptors(const struct hfi_pool_settings *settings)
{
    return HFI_LANES_OF(settings->lanes) + settings->subscribers + 1; /* one of each, and of the tracker */
}

static bool build_lanes(struct hfi_node *node)
{
    int count = HFI_LANES_OF(node->peer.deployment->settings.lanes);
    node->lanes = calloc((size_t)count, sizeof(struct hfi_lane *));
    if (node->lanes == NULL)
        return false;
    node->lane_count = count;
    for (int i = count; i-- > 0;) { /* the reserved lane first */
        struct hfi_lane *lane = hfi_lane_new(&node->peer, node->listener, kind_of(node, i), i);
        node->lanes[i] = lane;
        if (lane == NULL)
            return false;
        lane->subscribers = node->subscribers;
        lane->renewals = node->lanes[reserved(node)];
    }
    return true;
}

struct hfi_node *hfi_node_new(struct hfi_deployment *deployment, struct hfi_listener *listener)
{
    struct hfi_node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return NULL;
    hfi_peer_init(&node->peer, deployment, &deployment->settings.endpoint, deployment->topology);
    node->listener = listener;
    node->subscribers = hfi_subscribers_new(&node->peer, listener, deployment->settings.subscribers);
    if (node->subscribers != NULL && build_lanes(node)) {
        node->peer.dialled_last = reserved(node) - 1; /* so the first lane is the first: hf_client_open waits for it */
        return node;
    }
    hfi_node_free(node);
    return NULL;
}

void hfi_node_free(struct hfi_node *node)
{
    if (node == NULL)
        return;
    for (int i = 0; i < node->lane_count; i++)
        hfi_lane_free(node->lanes[i]);
    free(node->lanes);
    hfi_subscribers_free(node->subscribers);
    hfi_peer_done(&node->peer);
    free(node);
}

void hfi_node_forked(struct hfi_node *node)
{
    for (int i = 0; i < node->lane_count; i++)
        hfi_lane_forked(node->lanes[i]);
    hfi_subscribers_forked(node->subscribers);
}

void hfi_node_maintain(struct hfi_node *node, int64_t now_ns, struct hfi_poll_set *set)
{
    int lanes = reserved(node), last = node->peer.dialled_last;
    hfi_lane_maintain(node->lanes[lanes], now_ns, set); /* renewals first */
    for (int i = 1; i <= lanes; i++) /* then the lane after the one that dialled last */
        hfi_lane_maintain(node->lanes[(last + i) % lanes], now_ns, set);
    hfi_subscribers_maintain(node->subscribers, now_ns, set);
}

void hfi_node_flush(struct hfi_node *node)
{
    for (int i = 0; i < node->lane_count; i++)
        hfi_lane_flush_now(node->lanes[i]);
}

void hfi_node_hurry(struct hfi_node *node, int64_t until_ns)
{
    for (int i = 0; i < node->lane_count; i++)
        hfi_lane_hurry(node->lanes[i], until_ns);
}

bool hfi_node_is_drained(const struct hfi_node *node)
{
    for (int i = 0; i < node->lane_count; i++)
        if (!hfi_lane_is_drained(node->lanes[i]))
            return false;
    return true;
}

void hfi_node_give_up(struct hfi_node *node, const char *why)
{
    hfi_peer_redirect(&node->peer);
    for (int i = 0; i < node->lane_count; i++)
        hfi_lane_redirect(node->lanes[i], why);
    hfi_subscribers_give_up(node->subscribers, why);
    hfi_listener_kick(node->listener);
}

bool hfi_node_need(struct hfi_node *node, const struct hfi_replicas *needed)
{
    bool all = true;
    for (int i = 0; i < node->lane_count; i++)
        all = hfi_lane_need(node->lanes[i], needed) && all;
    return all;
}

void hfi_node_half_close(struct hfi_node *node)
{
    for (int i = 0; i < node->lane_count; i++)
        hfi_lane_half_close(node->lanes[i]);
    hfi_subscribers_end(node->subscribers);
}

void hfi_node_drain(struct hfi_node *node, int64_t until_ns)
{
    for (int i = 0; i < node->lane_count; i++)
        hfi_lane_drain(node->lanes[i], until_ns);
}

/* ---- lanes ---- */

/* Names gather on the first ones, so this is the way that is left when a renewal gets no answer. */
static int last_lock_lane(const struct hfi_node *node)
{
    return node->peer.deployment->settings.lanes - 1;
}

static struct hfi_lane *warm(struct hfi_node *node, int index)
{
    struct hfi_lane *lane = node->lanes[index];
    if (atomic_load(&lane->state) != HFI_LANE_COLD)
        return lane;
    hfi_lane_lock(lane);
    bool first = atomic_load(&lane->state) == HFI_LANE_COLD;
    if (first)
        hfi_lane_set_state_locked(lane, HFI_LANE_DIALING);
    hfi_lane_unlock(lane);
    if (first && lane->kind == HFI_LOCK_LANE) {
        (void)warm(node, reserved(node)); /* there will be renewals */
        (void)warm(node, last_lock_lane(node));
    }
    if (first)
        hfi_listener_kick(node->listener);
    return lane;
}

struct hfi_lane *hfi_node_lane(struct hfi_node *node, enum hfi_lane_kind kind, uint64_t hash)
{
    int index = (int)(hash % (uint64_t)node->peer.deployment->settings.lanes);
    if (kind == HFI_RESERVED_LANE)
        return warm(node, reserved(node));
    return warm(node, (int)kind * node->peer.deployment->settings.lanes + index);
}

_Static_assert((int)HFI_CROWDS == (int)HFI_USER_LANE, "of the kinds before it threads choose the lane");

#define SEATS 64 /* the most that the option `lanes` allows */

/* The lane of each kind that this thread took last. Only a hint: it may be another client's number. */
static _Thread_local int taken_last[HFI_CROWDS];

/* NULL: none is up, nor can be dialled. run: of those that are up, only lanes that have met it; 0: all. */
static struct hfi_lane *choose(struct hfi_node *node, enum hfi_lane_kind kind, bool dials, uint64_t run)
{
    struct hfi_deployment *deployment = node->peer.deployment;
    int all = deployment->settings.lanes, lanes = all < SEATS ? all : SEATS, first = (int)kind * all;
    struct hfi_crowd_seat seats[SEATS];
    for (int i = 0; i < lanes; i++) {
        const struct hfi_lane *lane = node->lanes[first + i];
        int state = atomic_load(&lane->state);
        seats[i].is_up = state == HFI_LANE_UP && (run == 0 || atomic_load(&lane->run) == run);
        seats[i].is_cold = state == HFI_LANE_COLD && dials;
        seats[i].threads = atomic_load_explicit(&lane->threads, memory_order_relaxed);
    }
    const struct hfi_lane *shared = node->lanes[first];
    bool looks = atomic_load_explicit(&shared->readers_look, memory_order_relaxed) &&
                 !atomic_load_explicit(&shared->is_silent, memory_order_relaxed);
    int spread = hfi_crowd_lanes(&deployment->crowds[kind], lanes, looks);
    int index = hfi_crowd_choose(seats, lanes, spread, taken_last[kind]);
    if (index < 0)
        return NULL;
    taken_last[kind] = index;
    return warm(node, first + index);
}

struct hfi_lane *hfi_node_choose_lane(struct hfi_node *node)
{
    bool dials = atomic_load(&node->lanes[0]->state) == HFI_LANE_UP; /* while the server is away each call would dial one */
    struct hfi_lane *lane = choose(node, HFI_LOCK_LANE, dials, 0);
    return lane != NULL ? lane : warm(node, 0);
}

struct hfi_lane *hfi_node_read_lane(struct hfi_node *node, uint64_t hash)
{
    struct hfi_lane *own = hfi_node_lane(node, HFI_VALUE_LANE, hash);
    bool had_answers = atomic_load(&own->times_up) > 0;
    uint64_t run = atomic_load(&own->run);
    if (had_answers && run == 0)
        return own;
    struct hfi_lane *lane = choose(node, HFI_VALUE_LANE, atomic_load(&own->state) == HFI_LANE_UP, run);
    return lane != NULL && atomic_load(&lane->state) == HFI_LANE_UP && (run == 0 || atomic_load(&lane->run) == run) ? lane : own;
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

struct hfi_lane *hfi_node_answering(struct hfi_node *node, int64_t now_ns, int64_t patience_ns)
{
    const struct hfi_pool_settings *settings = &node->peer.deployment->settings;
    if (settings->replicas != 0) /* a replica that stands still is no silent server: a confirmation may be asked for twice */
        patience_ns += 2 * settings->replicas_ms * HFI_MS;
    struct hfi_lane *own = warm(node, reserved(node));
    if (answers(own, now_ns, patience_ns))
        return own;
    if (hfi_lane_is_up(own)) {
        atomic_store(&own->silent_ns, now_ns - silence_ns(own, patience_ns));
        HFI_PERTURB("silent-to-kick");
        hfi_listener_kick(node->listener);
    }
    for (int i = 0, last = last_lock_lane(node); node->lanes[i]->kind != HFI_USER_LANE; i++) {
        struct hfi_lane *lane = node->lanes[i <= last ? last - i : i];
        if (answers(lane, now_ns, patience_ns))
            return lane;
    }
    return own;
}

bool hfi_node_is_lock_lane(const struct hfi_node *node, int index)
{
    return kind_of(node, index) == HFI_LOCK_LANE;
}

void hfi_node_count(const struct hfi_node *node, struct hfi_pool_counts *counts)
{
    counts->failovers += atomic_load(&node->peer.redirections);
    for (int i = 0; i < node->lane_count; i++) {
        struct hfi_lane *lane = node->lanes[i];
        hfi_lane_lock(lane);
        counts->acks_short += lane->acks_short;
        counts->commands += lane->staged;
        counts->round_trips += lane->sends;
        int64_t trip_ns = atomic_load(&lane->nearest_rtt_ns);
        if (trip_ns != 0 && (counts->trip_ns == 0 || trip_ns < counts->trip_ns))
            counts->trip_ns = trip_ns;
        uint64_t times_up = atomic_load(&lane->times_up);
        counts->reconnects += times_up > 1 ? times_up - 1 : 0;
        hfi_lane_unlock(lane);
    }
}
