/* SPDX-License-Identifier: MIT */
/* pool.c - the pool as core sees it (pool/pool.h): its lanes together, their opening and close. */
#include "pool/borrow.h"
#include "pool/embedded.h"
#include "tests/sim/pool_inside.h"
#include "tests/sim/server.h"

#include <stdlib.h>
#include <string.h>

struct hfi_lane *hfi_pool_lane(struct hfi_pool *pool, enum hfi_lane_kind kind, uint64_t hash)
{
    int place = (int)(hash % (uint64_t)pool->settings.lanes);
    if (kind == HFI_RESERVED_LANE)
        return sim_lane_warm(&pool->lanes[pool->lane_count - 1]);
    return sim_lane_warm(&pool->lanes[kind == HFI_LOCK_LANE ? place : pool->settings.lanes + place]);
}

/* Another each time, so that a name changes its lane whenever it may. */
struct hfi_lane *hfi_pool_choose_lane(struct hfi_pool *pool)
{
    return hfi_pool_lane(pool, HFI_LOCK_LANE, pool->chosen++);
}

/* Another each time, if it is connected to the same run. */
struct hfi_lane *hfi_pool_read_lane(struct hfi_pool *pool, uint64_t hash)
{
    struct hfi_lane *own = hfi_pool_lane(pool, HFI_VALUE_LANE, hash), *lane = hfi_pool_lane(pool, HFI_VALUE_LANE, pool->chosen++);
    return own->state == UP && lane->state == UP && strcmp(own->run_id, lane->run_id) == 0 ? lane : own;
}

static bool answers(const struct hfi_lane *lane, int64_t now_ns, int64_t patience_ns)
{
    int64_t since = hfi_lane_waits_since_ns(lane);
    return lane->state == UP && (since == HFI_NEVER || now_ns - since <= patience_ns);
}

struct hfi_lane *hfi_pool_answering(struct hfi_pool *pool, int64_t now_ns, int64_t patience_ns)
{
    struct hfi_lane *own = &pool->lanes[pool->lane_count - 1];
    if (pool->settings.replicas != 0) /* a replica that stands still is no silent server: a confirmation may be asked for twice */
        patience_ns += 2 * pool->settings.replicas_ms * HFI_MS;
    if (answers(own, now_ns, patience_ns))
        return own;
    if (own->state == UP) {
        sim_lane_give_up(own, true, "the server is silent");
        sim_lane_finish(own);
    }
    for (int i = 0, last = pool->settings.lanes - 1; i < pool->lane_count - 1; i++) {
        struct hfi_lane *lane = &pool->lanes[i <= last ? last - i : i];
        if (answers(lane, now_ns, patience_ns))
            return lane;
    }
    return own;
}

hf_status hfi_pool_open(const struct hfi_pool_settings *settings, const struct hfi_pool_ops *ops, void *self,
                        const struct hfi_clock *clock, const struct hfi_log *log, bool lazy,
                        struct hfi_pool **out, hf_error *error)
{
    struct hfi_pool *pool = calloc(1, sizeof *pool);
    (void)clock;
    (void)log;
    if (pool == NULL)
        abort();
    pool->settings = *settings;
    pool->ops = *ops;
    pool->self = self;
    pool->process = sim.self;
    pool->lane_count = 2 * settings->lanes + 1;
    pool->lanes = calloc((size_t)pool->lane_count, sizeof *pool->lanes);
    hfi_park_init(&pool->quiet);
    for (int i = 0; i < pool->lane_count; i++) {
        struct hfi_lane *lane = &pool->lanes[i];
        lane->pool = pool;
        lane->index = i;
        lane->kind = i == pool->lane_count - 1 ? HFI_RESERVED_LANE
                     : i < settings->lanes     ? HFI_LOCK_LANE
                                               : HFI_VALUE_LANE;
        hfi_list_init(&lane->queue);
        hfi_list_init(&lane->flight);
        hfi_list_init(&lane->held);
        hfi_list_init(&lane->finished);
        hfi_backoff_init(&lane->backoff, sim_roll());
    }
    *out = pool;
    sim_subscriber_begin(pool);
    if (settings->endpoint.scheme == HFI_SENTINEL)
        pool->topology = sim_topology_new(pool);
    (void)hfi_pool_lane(pool, HFI_LOCK_LANE, 0);
    (void)hfi_pool_lane(pool, HFI_RESERVED_LANE, 0);
    while (!lazy && pool->verdicts == 0)
        (void)hfi_park_wait(&pool->quiet, hfi_park_epoch(&pool->quiet), HFI_NEVER);
    if (lazy || pool->lanes[0].state == UP)
        return HF_OK;
    hf_status status = hfi_pool_why_down(pool, error);
    (void)hfi_pool_close(pool, 0);
    *out = NULL;
    return status;
}

enum hfi_where sim_pool_primary(const struct hfi_pool *pool, struct sim_server **server)
{
    if (pool->topology != NULL)
        return sim_topology_primary(pool->topology, server);
    *server = sim_server;
    return HFI_FOUND;
}

void sim_pool_moves(struct hfi_pool *pool)
{
    static const char why[] = "the sentinels name another primary";
    pool->is_redirected = true;
    for (int i = pool->lane_count; i-- > 0;)
        sim_lane_redirect(&pool->lanes[i], why);
    sim_subscriber_gives_up(pool);
}

static bool is_settled(const struct hfi_pool *pool)
{
    for (int i = 0; i < pool->lane_count; i++)
        if (!hfi_list_is_empty(&pool->lanes[i].queue) || !hfi_list_is_empty(&pool->lanes[i].flight) ||
            !hfi_list_is_empty(&pool->lanes[i].held) || pool->lanes[i].finishing)
            return false;
    return true;
}

static bool is_busy(const struct hfi_pool *pool)
{
    bool busy = pool->subscriber.hearing || pool->kicks > 0;
    for (int i = 0; i < pool->lane_count; i++)
        busy = busy || sim_lane_is_busy(&pool->lanes[i]);
    return busy;
}

bool hfi_pool_close(struct hfi_pool *pool, int64_t until_ns)
{
    pool->closing = true;
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_flush(&pool->lanes[i]);
    while (!is_settled(pool) && hfi_now(&hfi_boottime) < until_ns)
        (void)hfi_park_wait(&pool->quiet, hfi_park_epoch(&pool->quiet), until_ns);
    for (int i = 0; i < pool->lane_count; i++) {
        struct hfi_lane *lane = &pool->lanes[i];
        if (lane->state == UP)
            sim_lane_give_up(lane, false, "the client closes");
        lane->state = CLOSED;
        hfi_lane_flush(lane);
    }
    sim_subscriber_end(pool);
    while (is_busy(pool)) /* nothing of it is called afterwards */
        (void)hfi_park_wait(&pool->quiet, hfi_park_epoch(&pool->quiet), HFI_NEVER);
    pool->closed = true;
    return !pool->closed_short;
}

void hfi_pool_hurry(struct hfi_pool *pool, int64_t until_ns)
{
    pool->hurried = true;
    for (int i = 0; i < pool->lane_count; i++)
        sim_lane_hurry(&pool->lanes[i], until_ns);
}

void hfi_pool_free(struct hfi_pool *pool)
{
    (void)pool; /* events under way may still name it, so the end of the history frees everything */
}

void hfi_pool_forked(struct hfi_pool *pool)
{
    (void)pool; /* nobody forks here */
}

bool hfi_pool_is_lock_lane(const struct hfi_pool *pool, int index)
{
    return index < pool->settings.lanes;
}

hf_status hfi_pool_why_down(struct hfi_pool *pool, hf_error *error)
{
    hf_error why = pool->why;
    if (why.status == HF_OK)
        (void)hfi_fail(&why, HF_UNAVAILABLE, "", "there is no connection yet");
    if (error != NULL)
        *error = why;
    return why.status;
}

const char *hfi_pool_server_name(const struct hfi_pool *pool)
{
    (void)pool;
    return "virtual:6379";
}

bool hfi_pool_report(const struct hfi_pool *pool, bool asks_clocks, struct hfi_topology_report *report)
{
    (void)pool, (void)asks_clocks, (void)report;
    return false;
}

void hfi_pool_server(const struct hfi_pool *pool, struct hfi_server *server)
{
    *server = pool->server;
}

static void kicked(void *what, int64_t number)
{
    struct hfi_pool *pool = what;
    (void)number;
    if (pool->closed)
        return;
    pool->kicks++;
    pool->ops.kicked(pool->self);
    pool->kicks--;
    if (pool->closing)
        hfi_park_wake(&pool->quiet);
}

void hfi_pool_kick(struct hfi_pool *pool)
{
    sim_at(sim.now, pool->process, kicked, pool, 0);
}

void hfi_pool_count(struct hfi_pool *pool, struct hfi_pool_counts *counts)
{
    *counts = (struct hfi_pool_counts){0};
    for (int i = 0; i < pool->lane_count; i++)
        counts->commands += pool->lanes[i].commands;
}

/* ---- calls that histories do not make: borrowed connections, an embedded server ---- */

hf_status hfi_borrow(struct hfi_pool *pool, int64_t until_ns, struct hfi_borrowed **borrowed, hf_error *error)
{
    (void)pool;
    (void)until_ns;
    *borrowed = NULL;
    return hfi_fail(error, HF_UNAVAILABLE, "", "nothing is lent in a simulation");
}

struct redisContext *hfi_borrowed_context(struct hfi_borrowed *borrowed)
{
    (void)borrowed;
    return NULL;
}

void hfi_borrow_return(struct hfi_borrowed *borrowed)
{
    (void)borrowed;
}

void hfi_borrow_discard(struct hfi_borrowed *borrowed)
{
    (void)borrowed;
}

void hfi_borrow_forked(struct hfi_borrowed *borrowed)
{
    (void)borrowed;
}

void hfi_borrow_end(struct hfi_pool *pool)
{
    (void)pool;
}

hf_status hfi_embedded_join(const char *name, int64_t until_ns, struct hfi_embedded **share,
                            const char **path, hf_error *error)
{
    (void)name;
    (void)until_ns;
    *share = NULL;
    *path = NULL;
    return hfi_fail(error, HF_UNAVAILABLE, "", "no server is started in a simulation");
}

void hfi_embedded_leave(struct hfi_embedded *share)
{
    (void)share;
}
