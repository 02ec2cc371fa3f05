/* SPDX-License-Identifier: MIT */
/* pool.c - a pool as a whole: what its listener does, open, close, and the choice of lanes. */
#include "pool/pool.h"
#include "base/perturb.h"
#include "pool/borrow.h"
#include "pool/borrowers.h"
#include "pool/lane_private.h"
#include "pool/listener.h"
#include "pool/pool_private.h"
#include "pool/secure.h"
#include "pool/subscribe.h"
#include "pool/topology.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CLOSING_TICK_NS (2 * HFI_MS) /* user threads that drain a lane do not kick us: look this often */

static hf_status fail_memory(hf_error *error)
{
    return hfi_fail(error, HF_NOMEM, "raise the limit of open files",
                    "no memory or descriptors for a connection pool");
}

static int reserved(const struct hfi_pool *pool)
{
    return pool->lane_count - 1;
}

static enum hfi_lane_kind kind_of(const struct hfi_pool *pool, int index)
{
    if (index == reserved(pool))
        return HFI_RESERVED_LANE;
    return (enum hfi_lane_kind)(index / pool->deployment.settings.lanes); /* lock, value, user */
}

/* ---- what the listener does ---- */

static bool is_over(const struct hfi_pool *pool, int64_t now_ns)
{
    int64_t until_ns = atomic_load(&pool->deployment.closing_until_ns);
    if (until_ns == 0 || now_ns >= until_ns)
        return until_ns != 0;
    for (int i = 0; i < pool->lane_count; i++)
        if (!hfi_lane_is_drained(pool->lanes[i]))
            return false;
    return true;
}

static bool look(void *self, int64_t now_ns, struct hfi_poll_set *set)
{
    struct hfi_pool *pool = self;
    int fd = -1;
    short events = 0;
    int lanes = reserved(pool), last = pool->deployment.dialled_last;
    hfi_lane_maintain(pool->lanes[lanes], now_ns, set); /* renewals first */
    for (int i = 1; i <= lanes; i++) /* then the lane after the one that dialled last */
        hfi_lane_maintain(pool->lanes[(last + i) % lanes], now_ns, set);
    hfi_subscribers_maintain(pool->subscribers, now_ns, set);
    hfi_poll_set_again(set, hfi_borrowers_maintain(pool->borrowers, now_ns, &fd, &events));
    hfi_poll_set_add(set, fd, events, NULL, NULL);
    if (atomic_load(&pool->deployment.closing_until_ns) != 0)
        hfi_poll_set_again(set, now_ns + CLOSING_TICK_NS);
    return !is_over(pool, now_ns);
}

static void hang_up(void *self)
{
    struct hfi_pool *pool = self;
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_half_close(pool->lanes[i]);
    hfi_subscribers_end(pool->subscribers);
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_drain(pool->lanes[i], atomic_load(&pool->deployment.closing_until_ns));
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

static bool in_background(void *self, void (*run)(void *arg), void *arg)
{
    const struct hfi_deployment *deployment = &((const struct hfi_pool *)self)->deployment;
    return deployment->ops.in_background != NULL && deployment->ops.in_background(deployment->self, run, arg);
}

static bool build_lanes(struct hfi_pool *pool)
{
    int count = HFI_LANES_OF(pool->deployment.settings.lanes);
    pool->lanes = calloc((size_t)count, sizeof(struct hfi_lane *));
    if (pool->lanes == NULL)
        return false;
    pool->lane_count = count;
    for (int i = count; i-- > 0;) { /* the reserved lane first */
        struct hfi_lane *lane = hfi_lane_new(&pool->deployment, pool->listener, kind_of(pool, i), i);
        pool->lanes[i] = lane;
        if (lane == NULL)
            return false;
        lane->subscribers = pool->subscribers;
        lane->renewals = pool->lanes[reserved(pool)];
    }
    return true;
}

static hf_status build(struct hfi_pool *pool, const struct hfi_pool_settings *settings, hf_error *error)
{
    const struct hfi_topology_ops topology_ops = {in_background, found, pool};
    const struct hfi_listener_ops listener_ops = {look, hang_up, kicked, pool};
    struct hfi_deployment *deployment = &pool->deployment;
    if (!hfi_deployment_init(deployment, settings))
        return fail_memory(error);
    hf_status status = hfi_topology_new(&deployment->settings.endpoint, deployment->clock, &topology_ops,
                                        &deployment->topology, error);
    if (status != HF_OK)
        return status;
    if (deployment->settings.endpoint.tls)
        status = hfi_secure_open(&settings->tls, &deployment->log, &deployment->secure, error);
    if (status != HF_OK)
        return status;
    int subscribers = deployment->settings.subscribers;
    /* One of each lane and subscriber, one of the borrowers. */
    int descriptors = HFI_LANES_OF(deployment->settings.lanes) + subscribers + 1;
    pool->listener = hfi_listener_new(&listener_ops, deployment->clock, (size_t)descriptors);
    pool->subscribers = hfi_subscribers_new(deployment, pool->listener, subscribers);
    pool->borrowers = hfi_borrowers_new(deployment);
    bool ok = pool->listener != NULL && pool->subscribers != NULL && pool->borrowers != NULL && build_lanes(pool);
    return ok ? HF_OK : fail_memory(error);
}

/* Ends the listener. After that every command has its outcome. */
static bool end(struct hfi_pool *pool, int64_t until_ns)
{
    atomic_store(&pool->deployment.closing_until_ns, until_ns > 0 ? until_ns : 1);
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_flush(pool->lanes[i]);
    hfi_listener_kick(pool->listener);
    hfi_listener_join(pool->listener);
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_flush(pool->lanes[i]); /* commands listed too late come back UNSENT */
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
    hf_status status = build(new, settings, error);
    if (status == HF_OK) {
        *pool = new; /* from now on the listener calls the owner, which calls the pool */
        if (!lazy)
            (void)hfi_pool_lane(new, HFI_LOCK_LANE, 0);
        status = hfi_listener_start(new->listener, error);
    }
    if (status == HF_OK && !lazy) {
        hfi_deployment_wait_for_verdict(&new->deployment);
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

void hfi_pool_hurry(struct hfi_pool *pool, int64_t until_ns)
{
    struct hfi_deployment *deployment = &pool->deployment;
    if (atomic_load(&deployment->hurry_ns) == HFI_NEVER) {
        atomic_store(&deployment->hurry_ns, until_ns);
        (void)eventfd_write(deployment->hurry_fd, 1); /* never read, so later waiters see it too */
        hfi_topology_hurry(deployment->topology);
    }
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_hurry(pool->lanes[i], until_ns);
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
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_free(pool->lanes[i]);
    free(pool->lanes);
    hfi_subscribers_free(pool->subscribers);
    hfi_borrowers_free(pool->borrowers);
    hfi_secure_free(pool->deployment.secure);
    hfi_deployment_done(&pool->deployment);
    free(pool);
}

void hfi_pool_forked(struct hfi_pool *pool)
{
    hfi_listener_forked(pool->listener);
    (void)close(pool->deployment.hurry_fd);
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
        hfi_lane_set_state_locked(lane, HFI_LANE_DIALING);
    hfi_lane_unlock(lane);
    if (first && lane->kind == HFI_LOCK_LANE)
        (void)warm(pool, reserved(pool)); /* there will be renewals */
    if (first)
        hfi_listener_kick(pool->listener);
    return lane;
}

struct hfi_lane *hfi_pool_lane(struct hfi_pool *pool, enum hfi_lane_kind kind, uint64_t hash)
{
    int index = (int)(hash % (uint64_t)pool->deployment.settings.lanes);
    if (kind == HFI_RESERVED_LANE)
        return warm(pool, reserved(pool));
    return warm(pool, (int)kind * pool->deployment.settings.lanes + index);
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

bool hfi_pool_is_lock_lane(const struct hfi_pool *pool, int index)
{
    return kind_of(pool, index) == HFI_LOCK_LANE;
}

/* ---- what is known of the server ---- */

hf_status hfi_pool_why_down(struct hfi_pool *pool, hf_error *error)
{
    return hfi_deployment_why_down(&pool->deployment, error);
}

const char *hfi_pool_server_name(const struct hfi_pool *pool)
{
    return pool->deployment.server_name;
}

void hfi_pool_server(const struct hfi_pool *pool, struct hfi_server *server)
{
    hfi_deployment_server(&((struct hfi_pool *)(uintptr_t)pool)->deployment, server);
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
