/* SPDX-License-Identifier: MIT */
/*
 * fetch.c - hf_fetch: a cached value, loaded once for the whole fleet.
 *
 *   read ----fresh: one GET, no lock ----------------------------> CACHED
 *     |------old: try the lease without waiting: granted -> load; else STALE (by a job of a loader thread, where `where` says so)
 *     |------missing: acquire the lease: granted -> load; another caller's load came first -> SHARED, CACHED (likewise)
 *     `------no server: the value last seen by this process -> STALE; else one load per process -> LOCAL
 */
#include "core/context/call.h"
#include "core/fetch/fetch.h"
#include "core/fetch/read_lane.h"
#include "core/policy/freshness.h"
#include "core/protocol/options.h"
#include "core/protocol/wire.h"
#include "core/lock/table.h"
#include "base/perturb.h"
#include "base/random.h"
#include "base/rare.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#define CUTS_MOST 3

hf_status hfi_fetch_answer(struct hfi_fetch *f, struct hfi_body *body, hf_source source, bool stored, int64_t fresh_ms,
                        hf_value **value, hf_error *error)
{
    if (f->job != NULL) /* no caller's answer yet */
        return hfi_value_new(body, source, stored, fresh_ms, value, error);
    switch (source) {
    case HF_CACHED:
        hfi_count(f->client, hits);
        break;
    case HF_SHARED:
        hfi_count(f->client, hits_shared);
        break;
    case HF_STALE:
        hfi_count(f->client, hits_stale);
        break;
    case HF_NEAR:
        hfi_count(f->client, hits_near);
        break;
    case HF_LOADED:
    case HF_LOCAL:
        break;
    }
    return hfi_value_new(body, source, stored, fresh_ms, value, error);
}

/* ---- hf_fetch ---- */

static bool is_away(hf_status status)
{
    return status == HF_UNKNOWN || status == HF_UNAVAILABLE;
}

static _Atomic(uint64_t) *busy_mark(const struct hfi_fetch *f)
{
    return &f->client->busy[f->key->hash % HFI_BUSY_MARKS];
}

/* If another caller is loading, marks the value: no read of this process tries for the lease in the next 10 ms. */
static hf_status try_for_it(struct hfi_fetch *f, hf_lease **lease, hf_value **value, hf_error *error)
{
    _Atomic(uint64_t) *mark = busy_mark(f);
    if (hfi_freshness_is_busy(atomic_load(mark), f->key->hash, f->began_ns))
        return HF_BUSY;
    hf_status status = hfi_fetch_need_lock(f, error);
    if (status == HF_OK)
        status = hfi_fetch_acquire(f, true, lease, value, error);
    if (status == HF_BUSY)
        atomic_store(mark, hfi_freshness_busy_mark(f->key->hash, hfi_now(f->client->clock)));
    return status;
}

HFI_RARE hf_status hfi_fetch_reload(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    hf_lease *lease = NULL;
    hf_status status = try_for_it(f, &lease, value, error);
    if (status == HF_OK && lease != NULL)
        status = hfi_fetch_fill(f, lease, value, error);
    return status;
}

/* True: a loader thread has the load. A loader's own fetches load where they are, or all loader threads could wait
 * for one to be free. */
static bool goes_aside(const struct hfi_fetch *f, hf_load_where least)
{
    return f->options->where >= least && !hfi_loader_is_running();
}

/* Stale beats failure: the value found is served unless a newer one came. */
static HFI_RARE hf_status refresh(struct hfi_fetch *f, bool is_old, hf_value **value, hf_error *error)
{
    int64_t fresh_ms = f->left_ms - f->options->stale_ms;
    hf_status status = HF_BUSY;
    if (!goes_aside(f, HF_REFRESH_ASIDE))
        status = hfi_fetch_reload(f, value, error);
    else if (!hfi_freshness_is_busy(atomic_load(busy_mark(f)), f->key->hash, f->began_ns))
        status = hfi_fetch_refresh_aside(f, is_old ? f->options->soft_ms : 0, value, error);
    if (status == HF_OK)
        return HF_OK;
    return hfi_fetch_answer(f, f->found, is_old ? HF_STALE : f->is_near ? HF_NEAR : HF_CACHED, true, fresh_ms, value, error);
}

enum hfi_freshness hfi_fetch_judge(const struct hfi_fetch *f)
{
    const hf_fetch_options *o = f->options;
    uint64_t rng = (uint64_t)f->began_ns;
    double u = (double)((hfi_rng_next(&rng) >> 11) + 1) / 9007199254740992.0; /* (0, 1] */
    int64_t load_ms = hfi_freshness_load_ms(f->seen.load_ms, atomic_load(&f->client->load_ms), o->ttl_ms);
    return f->found->absent ? HFI_FRESH : hfi_freshness(f->left_ms, o->stale_ms, o->early, load_ms, u);
}

hf_status hfi_fetch_give(struct hfi_fetch *f, enum hfi_freshness freshness, hf_value **value, hf_error *error)
{
    int64_t stale_ms = f->found->absent ? 0 : f->options->stale_ms;
    if (freshness != HFI_FRESH)
        return refresh(f, freshness == HFI_OLD, value, error);
    return hfi_fetch_answer(f, f->found, f->is_near ? HF_NEAR : HF_CACHED, true, f->left_ms < 0 ? 0 : f->left_ms - stale_ms, value, error);
}

static hf_status found(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    return hfi_fetch_give(f, hfi_fetch_judge(f), value, error);
}

static hf_status miss(struct hfi_fetch *f, hf_lease **lease, hf_value **value, hf_error *error)
{
    bool once = f->options->wait_ms == HF_OFF;
    hf_status status = hfi_fetch_need_lock(f, error);
    if (status == HF_OK && !once)
        status = hfi_fetch_begin_wait(f, error);
    if (status != HF_OK)
        return status;
    status = hfi_fetch_acquire(f, once, lease, value, error);
    if (!once)
        hfi_fetch_end_wait(f);
    return status;
}

static hf_status without_server(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    char quoted[160];
    if (f->seen.body == NULL && goes_aside(f, HF_LOAD_ASIDE))
        return hfi_fetch_load_aside(f, value, error);
    if (!atomic_load(&f->client->closing))
        return hfi_fetch_alone(f, value, error);
    return hfi_fail(error, HF_CLOSED, "", "the client was closed while %s was fetched",
                    hfi_quote(quoted, sizeof quoted, f->key->text, f->key->size));
}

/* A silent server may only be slow. It counts as gone if it cannot be connected to, or has been silent for as long as
 * this call may wait. A server that refuses, or hangs up repeatedly, is gone too: it would do so again. */
static bool is_gone(const struct hfi_fetch *f)
{
    int64_t wait_ms = f->options->wait_ms;
    return f->refused || f->answers || f->cuts >= CUTS_MOST || wait_ms == HF_OFF ||
           atomic_load(&f->client->closing) ||
           hfi_lane_is_unreachable(f->lane) || hfi_now(f->client->clock) >= hfi_after_ms(f->since_ns, wait_ms);
}

static unsigned cuts_of(const struct hfi_fetch *f)
{
    return hfi_lane_cuts(f->lane) + hfi_lane_cuts(f->reads);
}

static hf_status attempt(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    hf_lease *lease = NULL;
    f->began_ns = hfi_now(f->client->clock);
    f->left_ms = -2;
    unsigned cuts = cuts_of(f);
    bool is_read = f->is_read;
    f->is_read = false;
    hf_status status = is_read ? HF_OK : hfi_fetch_read(f, error);
    if (status == HF_OK && f->found != NULL)
        return found(f, value, error);
    if (status == HF_OK && goes_aside(f, HF_LOAD_ASIDE))
        return hfi_fetch_load_aside(f, value, error);
    if (status == HF_OK)
        status = miss(f, &lease, value, error);
    if (status == HF_OK && lease != NULL)
        status = hfi_fetch_fill(f, lease, value, error);
    f->cuts += cuts_of(f) != cuts;
    return status;
}

hf_status hfi_fetch_attempts(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    char quoted[160];
    hf_status status;
    do {
        hfi_body_unref(f->seen.body);
        hfi_local_look(f->client, f->key, &f->seen);
        status = attempt(f, value, error);
        f->again = is_away(status) && !f->went_aside;
        if (f->again) /* the lane of its lease and fill may be down though another one is up */
            f->reads = f->lane;
    } while (f->again && f->seen.body == NULL && !goes_aside(f, HF_LOAD_ASIDE) && !is_gone(f));
    if (f->again)
        return without_server(f, value, error);
    if (status == HF_CANCELED)
        return hfi_fail(error, status, "", "fetching %s was canceled",
                        hfi_quote(quoted, sizeof quoted, f->key->text, f->key->size));
    return status;
}

/* What a GET would have found: it may be nearly old, or old, and then one of all callers loads it anew. */
bool hfi_fetch_look_near(struct hfi_fetch *f)
{
    f->began_ns = f->since_ns;
    hfi_near_look(f->client, f->key, f->options->near_ms, f->began_ns, &f->seen);
    f->found = f->seen.body;
    f->seen.body = NULL;
    f->is_near = f->found != NULL;
    f->end_from_ns = f->end_till_ns = f->seen.near.end_ns;
    f->left_ms = !f->is_near                             ? -2
                 : f->seen.near.end_ns == HFI_NEVER ? -1
                                                    : (f->seen.near.end_ns - f->began_ns) / HFI_MS;
    return f->is_near;
}

void hfi_fetch_done(struct hfi_fetch *f)
{
    hfi_body_unref(f->found);
    hfi_body_unref(f->seen.body);
    hfi_fetch_drop_lock(f);
}

static hf_status fetch_key(hf_client *client, const struct hfi_name *key, const hf_fetch_options *o, hf_value **value,
                           hf_error *error)
{
    struct hfi_fetch f = {.client = client, .key = key, .options = o};
    f.since_ns = hfi_now(client->clock);
    hf_status status = hfi_loader_check(client, key, error);
    if (status != HF_OK)
        return status;
    if (o->near_ms > 0 && hfi_fetch_look_near(&f)) {
        status = found(&f, value, error);
    } else {
        status = hfi_fetch_key_check(client->key_template, key->text, key->size, error);
        f.lane = hfi_pool_lane(client->pool, HFI_VALUE_LANE, key->hash);
        f.reads = o->near_ms > 0 ? f.lane : hfi_read_lane_choose(client, key->hash); /* the key's tracks */
        if (status == HF_OK)
            status = hfi_fetch_attempts(&f, value, error);
    }
    hfi_fetch_done(&f);
    return status;
}

hf_status hfi_fetch_take_options(hf_client *client, const hf_fetch_options *given, bool many, hf_fetch_options *options, hf_error *error)
{
    hf_status status = hfi_options_take(options, sizeof *options, given, "HF_FETCH", error);
    if (status == HF_OK)
        status = hfi_fetch_options_check(options, client->lease_ms, many, error);
    if (status == HF_OK)
        status = hfi_lease_check(options->lease_ms, client->max_lease_ms, error);
    return status == HF_OK ? hfi_fetch_where_check(options, client->aside != NULL, error) : status;
}

hf_status hf_fetch(hf_client *client, const char *text, const hf_fetch_options *given, hf_value **value, hf_error *error)
{
    hf_fetch_options options;
    struct hfi_name key;
    if (value == NULL)
        return hfi_fail(error, HF_INVALID, "", "the place for the value is NULL");
    *value = NULL;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    status = hfi_fetch_take_options(client, given, false, &options, error);
    if (status == HF_OK)
        status = hfi_name_take(HFI_FETCH, text, options.key_size, &key, error);
    if (status == HF_OK) {
        hf_error why = {.status = HF_OK}; /* failures on the way to an answer do not reach the caller */
        status = hfi_fail_by(error, fetch_key(client, &key, &options, value, &why), &why);
    }
    hfi_client_leave(client);
    return status;
}

HFI_RARE hf_status hf_fetch_forget(hf_client *client, const char *text, hf_error *error)
{
    struct hfi_keys keys = {0};
    redisReply *reply = NULL;
    struct hfi_name key;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    status = hfi_name_take(HFI_FETCH, text, 0, &key, error);
    if (status == HF_OK)
        status = hfi_keys_make(client->key_template, &key, &keys, error);
    if (status == HF_OK) {
        struct hfi_lane *lane = hfi_pool_lane(client->pool, HFI_VALUE_LANE, key.hash);
        hfi_local_changed(client, &key);
        status = hfi_call_done(client, lane, hfi_wire_forget(&keys), NULL, "cannot forget the value", &reply, error);
        hfi_local_forget(client, &key); /* only now: a value read from here on was there after the forget */
    }
    if (reply != NULL)
        freeReplyObject(reply);
    hfi_keys_done(&keys);
    hfi_client_leave(client);
    return status;
}
