/* SPDX-License-Identifier: MIT */
/*
 * fetch.c - hf_fetch: a cached value, loaded once for the whole fleet.
 *
 *   read ----fresh: one GET, no lock ----------------------------> CACHED
 *     |------old: try the lease without waiting: granted -> load; else STALE
 *     |------missing: acquire the lease: granted -> load; another caller's load came first -> SHARED, CACHED
 *     `------no server: the value last seen by this process -> STALE; else one load per process -> LOCAL
 */
#include "core/context/call.h"
#include "core/fetch/fetch.h"
#include "core/fetch/near_read.h"
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

#define END_IS_KNOWN_FOR (1000 * HFI_MS)
#define CUTS_MOST        3
#define VAIN_MOST        3

hf_status hfi_fetch_answer(struct hfi_fetch *f, struct hfi_body *body, hf_source source, bool stored, int64_t fresh_ms,
                        hf_value **value, hf_error *error)
{
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

/* near_left_ms: as left_ms, of a value that this call's tracked read has found; -2: it was another one. */
static bool remember(struct hfi_fetch *f, struct hfi_body **body, int64_t left_ms, int64_t near_left_ms, int64_t load_ms, bool stored)
{
    HFI_PERTURB("seen-to-remember");
    int64_t now = hfi_now(f->client->clock);
    int64_t end = left_ms == -2 ? 0 : left_ms < 0 ? HFI_NEVER : now + left_ms * HFI_MS;
    struct hfi_seen saw = {*body, end, now, load_ms, stored, f->seen.forgets, {0, 0, 0}};
    if (f->near.epoch != 0 && near_left_ms != -2) /* the end counts from before the read, so it is not late */
        saw.near = (struct hfi_near_mark){f->near.epoch, f->near.stamp_ns,
                                          near_left_ms < 0 ? HFI_NEVER : hfi_after_ms(f->near.stamp_ns, near_left_ms)};
    bool is_near = hfi_local_observe(f->client, f->key, &saw, f->near.changes);
    *body = saw.body;
    return is_near;
}

void hfi_fetch_remember(struct hfi_fetch *f, struct hfi_body **body, int64_t left_ms, int64_t load_ms, bool stored)
{
    (void)remember(f, body, left_ms, -2, load_ms, stored);
}

void hfi_fetch_remember_absent(struct hfi_fetch *f, struct hfi_body **body, int64_t left_ms)
{
    (void)remember(f, body, -2, left_ms, 0, true);
}

void hfi_fetch_remember_load(struct hfi_fetch *f, struct hf_loading *loading, int64_t left_ms)
{
    bool kept = loading->body->absent ? f->options->negative_ttl_ms > 0 : loading->ttl_ms != HF_OFF;
    if (kept)
        hfi_fetch_remember(f, &loading->body, left_ms < 0 ? -2 : left_ms, loading->took_ms, left_ms >= 0);
    else
        hfi_local_forget(f->client, f->key); /* the remembered value is no longer the last one seen */
}

/* ---- read ---- */

/* with_end: PTTL too. The key's end is read at most once a second; in between the remembered end serves. */
static struct hfi_command *read_command(const struct hfi_fetch *f, bool with_end)
{
    struct hfi_command *command = with_end ? hfi_wire_get_pttl(f->key) : hfi_wire_get(f->key);
    if (command != NULL)
        command->patient = f->again;
    return command;
}

static hf_status ask(struct hfi_fetch *f, struct hfi_command *command, redisReply **reply, hf_error *error)
{
    hf_status status = hfi_call(f->client, f->lane, command, f->options->cancel, reply, error);
    if (status != HF_OK || (*reply)->type != REDIS_REPLY_ERROR)
        return status;
    f->answers = true;
    status = hfi_reply_fail(*reply, "cannot read the cached value", hfi_pool_server_name(f->client->pool), error);
    freeReplyObject(*reply);
    *reply = NULL;
    return status;
}

/* A server that is out of memory queues nothing in a MULTI, so PTTL and GET go apart. PTTL goes first: the value that
 * GET then reads ends no earlier than PTTL said. */
static hf_status ask_apart(struct hfi_fetch *f, redisReply **reply, hf_error *error)
{
    hf_status status = ask(f, hfi_wire_pttl(f->key), reply, error);
    if (status != HF_OK)
        return status;
    f->left_ms = (*reply)->type == REDIS_REPLY_INTEGER ? (*reply)->integer : -2;
    freeReplyObject(*reply);
    return ask(f, read_command(f, false), reply, error);
}

static hf_status ask_together(struct hfi_fetch *f, redisReply **reply, hf_error *error)
{
    hf_status status = hfi_call(f->client, f->lane, read_command(f, true), f->options->cancel, reply, error);
    if (status != HF_OK || (*reply)->type != REDIS_REPLY_ERROR)
        return status;
    freeReplyObject(*reply);
    return ask_apart(f, reply, error);
}

/* A value of the same size as the one last seen is most often the same. If the bytes match, the remembered body serves:
 * nothing is taken from the reply, copied or remembered again. */
static struct hfi_body *body_of(const struct hfi_fetch *f, struct redisReply **reply)
{
    struct hfi_body *seen = f->seen.body;
    if (seen == NULL || seen->absent || seen->size != (size_t)(*reply)->len ||
        memcmp(seen->data, (*reply)->str, seen->size) != 0)
        return hfi_body_take(reply);
    hfi_body_ref(seen);
    return seen;
}

/* A server that does not track it, or refuses the transaction, is read as if nothing was to be near. */
static hf_status ask_tracked(struct hfi_fetch *f, redisReply **reply, hf_error *error)
{
    uint32_t connection;
    struct hfi_command *command = hfi_wire_near_read(f->key);
    if (command != NULL)
        command->patient = f->again;
    hf_status status = hfi_call_on(f->client, f->lane, command, f->options->cancel, reply, &connection, error);
    if (status != HF_OK)
        return status;
    bool sound = (*reply)->type == REDIS_REPLY_ARRAY && (*reply)->elements == 3;
    HFI_PERTURB("near-reply-to-keep");
    if (!hfi_near_end(f->client, f->key, &f->near, connection, sound && (*reply)->element[0]->type == REDIS_REPLY_STATUS))
        f->near.epoch = 0;
    if (sound)
        return HF_OK;
    freeReplyObject(*reply);
    return ask_together(f, reply, error);
}

/* *is_kept: what was found is near now. */
static hf_status read(struct hfi_fetch *f, bool *is_kept, hf_error *error)
{
    redisReply *reply;
    int64_t now = f->began_ns;
    bool tracked = f->near.epoch != 0;
    bool with_end = tracked || f->seen.end_ns <= now || now - f->seen.asked_ns > END_IS_KNOWN_FOR;
    hf_status status = tracked    ? ask_tracked(f, &reply, error)
                       : with_end ? ask_together(f, &reply, error)
                                  : ask(f, read_command(f, false), &reply, error);
    *is_kept = false;
    if (status != HF_OK)
        return status;
    bool both = with_end && reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2;
    redisReply **got = both ? &reply->element[reply->elements - 2] : &reply;
    if ((*got)->type == REDIS_REPLY_STRING) {
        if (both)
            f->left_ms = hfi_wire_number(reply, reply->elements - 1, -1);
        f->found = body_of(f, got);
        status = f->found != NULL ? HF_OK : hfi_fail(error, HF_NOMEM, "", "no memory for a value");
    } else if ((*got)->type == REDIS_REPLY_ERROR) {
        status = hfi_fail(error, HF_FOREIGN, "another program keeps something else under this key; choose another one",
                          "the cached value is not a string");
    } else if ((*got)->type != REDIS_REPLY_NIL) {
        status = hfi_fail(error, HF_PROTOCOL, "", "the server's answer to GET has another form");
    }
    freeReplyObject(reply);
    if (f->found == NULL)
        return status;
    if (f->left_ms == -2 && f->found == f->seen.body) /* use the end remembered with these bytes */
        f->left_ms = f->seen.end_ns == HFI_NEVER ? -1 : (f->seen.end_ns - now) / HFI_MS;
    else
        *is_kept = remember(f, &f->found, f->left_ms, f->left_ms, 0, true);
    return status;
}

/* The reader's value serves a call that began while it was read, unless that took so long that it may be too old. It serves nobody
 * if the key has changed meanwhile. */
static hf_status take_from_reader(struct hfi_fetch *f, struct hfi_near_read *read, bool *is_taken, hf_error *error)
{
    int64_t lag_ms = hfi_near_lag_ms(f->client), near_ms = f->options->near_ms;
    hf_status status = hfi_near_read_wait(f->client, read, f->options->cancel, hfi_after_ms(f->began_ns, f->client->command_ms + 500));
    if (status == HF_CANCELED)
        return hfi_fail(error, HF_CANCELED, "", "waiting for the server was canceled");
    *is_taken = status == HF_OK && read->found.is_good &&
                f->began_ns < hfi_after_ms(read->found.stamp_ns, near_ms < lag_ms ? near_ms : lag_ms);
    if (*is_taken) {
        f->found = read->found.body;
        f->left_ms = read->found.left_ms;
        f->near.stamp_ns = read->found.stamp_ns;
    } else if (status == HF_OK) {
        hfi_body_unref(read->found.body);
    }
    return HF_OK;
}

static hf_status read_for_all(struct hfi_fetch *f, struct hfi_near_read *read_by_all, hf_error *error)
{
    bool is_kept;
    hf_status status = read(f, &is_kept, error);
    const struct hfi_near_found found = {status == HF_OK && (f->found == NULL || is_kept), f->found, f->left_ms, f->near.stamp_ns};
    hfi_near_read_end(f->client, read_by_all, &found);
    return status;
}

static hf_status read_value(struct hfi_fetch *f, hf_error *error)
{
    struct hfi_near_read together;
    bool is_taken = false, is_kept;
    hf_status status = HF_OK;
    for (; status == HF_OK && !is_taken; f->vain += !is_taken) {
        f->near.epoch = 0;
        if (f->options->near_ms > 0)
            hfi_near_begin(f->client, f->key, f->lane, &f->near);
        if (f->near.epoch == 0 || f->vain == VAIN_MOST)
            return read(f, &is_kept, error);
        if (hfi_near_read_begin(f->client, f->key, &f->near, &together))
            return read_for_all(f, &together, error);
        status = take_from_reader(f, &together, &is_taken, error);
    }
    return status;
}

/* ---- load ---- */

hf_status hfi_fetch_load(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading)
{
    *loading = (struct hf_loading){.client = f->client,
                                   .key = f->lock->keys.name,
                                   .key_size = f->lock->keys.name_size,
                                   .lease = lease,
                                   .ttl_ms = f->options->ttl_ms};
    hf_status status = hfi_loading_run(loading, f->options->load, f->options->arg);
    hfi_count(f->client, loads);
    if (status == HF_OK) /* if two threads update the mean at once, one load is not counted: harmless */
        atomic_store(&f->client->load_ms, hfi_freshness_mean_ms(atomic_load(&f->client->load_ms), loading->took_ms));
    else
        hfi_count(f->client, load_failures);
    return status;
}

/* ---- hf_fetch ---- */

static bool is_away(hf_status status)
{
    return status == HF_UNKNOWN || status == HF_UNAVAILABLE;
}

/* If another caller is loading, marks the value: no read of this process tries for the lease in the next 10 ms. */
static hf_status try_for_it(struct hfi_fetch *f, hf_lease **lease, hf_value **value, hf_error *error)
{
    _Atomic(uint64_t) *mark = &f->client->busy[f->key->hash % HFI_BUSY_MARKS];
    if (hfi_freshness_is_busy(atomic_load(mark), f->key->hash, f->began_ns))
        return HF_BUSY;
    hf_status status = hfi_fetch_need_lock(f, error);
    if (status == HF_OK)
        status = hfi_fetch_acquire(f, true, lease, value, error);
    if (status == HF_BUSY)
        atomic_store(mark, hfi_freshness_busy_mark(f->key->hash, hfi_now(f->client->clock)));
    return status;
}

/* Stale beats failure: the value found is served unless a newer one came. */
static HFI_RARE hf_status refresh(struct hfi_fetch *f, bool is_old, hf_value **value, hf_error *error)
{
    hf_lease *lease = NULL;
    int64_t fresh_ms = f->left_ms - f->options->stale_ms;
    hf_status status = try_for_it(f, &lease, value, error);
    if (status == HF_OK && lease != NULL)
        status = hfi_fetch_fill(f, lease, value, error);
    if (status == HF_OK && *value != NULL)
        return HF_OK;
    return hfi_fetch_answer(f, f->found, is_old ? HF_STALE : f->is_near ? HF_NEAR : HF_CACHED, true, fresh_ms, value, error);
}

static hf_status found(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    const hf_fetch_options *o = f->options;
    uint64_t rng = (uint64_t)f->began_ns;
    double u = (double)((hfi_rng_next(&rng) >> 11) + 1) / 9007199254740992.0; /* (0, 1] */
    int64_t fresh_ms = f->left_ms < 0 ? 0 : f->left_ms - o->stale_ms;
    int64_t load_ms = hfi_freshness_load_ms(f->seen.load_ms, atomic_load(&f->client->load_ms), o->ttl_ms);
    switch (hfi_freshness(f->left_ms, o->stale_ms, o->early, load_ms, u)) {
    case HFI_FRESH:
        return hfi_fetch_answer(f, f->found, f->is_near ? HF_NEAR : HF_CACHED, true, fresh_ms, value, error);
    case HFI_NEARLY_OLD:
        return refresh(f, false, value, error);
    case HFI_OLD:
        return refresh(f, true, value, error);
    }
    return HF_INTERNAL;
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

static hf_status attempt(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    hf_lease *lease = NULL;
    f->began_ns = hfi_now(f->client->clock);
    f->left_ms = -2;
    unsigned cuts = hfi_lane_cuts(f->lane);
    hf_status status = read_value(f, error);
    if (status == HF_OK && f->found != NULL)
        return found(f, value, error);
    if (status == HF_OK)
        status = miss(f, &lease, value, error);
    if (status == HF_OK && lease != NULL)
        status = hfi_fetch_fill(f, lease, value, error);
    f->cuts += hfi_lane_cuts(f->lane) != cuts;
    return status;
}

static hf_status fetch(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    char quoted[160];
    hf_status status;
    do {
        hfi_body_unref(f->seen.body);
        hfi_local_look(f->client, f->key, &f->seen);
        status = attempt(f, value, error);
        f->again = is_away(status);
    } while (f->again && f->seen.body == NULL && !is_gone(f));
    if (f->again)
        return without_server(f, value, error);
    if (status == HF_CANCELED)
        return hfi_fail(error, status, "", "fetching %s was canceled",
                        hfi_quote(quoted, sizeof quoted, f->key->text, f->key->size));
    return status;
}

static bool look_near(struct hfi_fetch *f)
{
    f->began_ns = f->since_ns;
    hfi_near_look(f->client, f->key, f->options->near_ms, f->began_ns, &f->seen);
    f->found = f->seen.body;
    f->seen.body = NULL;
    f->is_near = f->found != NULL;
    return f->is_near;
}

/* What a GET would have found: it may be nearly old, or old, and then one of all callers loads it anew. */
static hf_status give_near(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    int64_t end_ns = f->seen.near.end_ns;
    hf_status status;
    f->left_ms = end_ns == HFI_NEVER ? -1 : (end_ns - f->began_ns) / HFI_MS;
    if (f->found->absent)
        status = hfi_fetch_answer(f, f->found, HF_NEAR, true, f->left_ms, value, error);
    else
        status = found(f, value, error);
    hfi_body_unref(f->found);
    if (f->lock != NULL)
        hfi_table_unref(f->lock);
    return status;
}

static hf_status fetch_key(hf_client *client, const struct hfi_name *key, const hf_fetch_options *o, hf_value **value,
                           hf_error *error)
{
    struct hfi_fetch f = {.client = client, .key = key, .options = o};
    char quoted[160];
    if (hfi_loader_is_at(client, key))
        return hfi_fail(error, HF_DEADLOCK, "a loader may fetch other keys only", "the loader of %s fetches that same key",
                        hfi_quote(quoted, sizeof quoted, key->text, key->size));
    f.since_ns = hfi_now(client->clock);
    if (o->near_ms > 0 && look_near(&f))
        return give_near(&f, value, error);
    hf_status status = hfi_fetch_key_check(client->key_template, key->text, key->size, error);
    if (status != HF_OK)
        return status;
    f.lane = hfi_pool_lane(client->pool, HFI_VALUE_LANE, key->hash);
    status = fetch(&f, value, error);
    hfi_body_unref(f.found);
    hfi_body_unref(f.seen.body);
    if (f.lock != NULL)
        hfi_table_unref(f.lock);
    return status;
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
    status = hfi_options_take(&options, sizeof options, given, "HF_FETCH", error);
    if (status == HF_OK)
        status = hfi_fetch_options_check(&options, client->lease_ms, error);
    if (status == HF_OK)
        status = hfi_lease_check(options.lease_ms, client->max_lease_ms, error);
    if (status == HF_OK)
        status = hfi_name_take(HFI_FETCH, text, options.key_size, &key, error);
    if (status == HF_OK) {
        hf_error why = {.status = HF_OK}; /* failures on the way to an answer do not reach the caller */
        status = fetch_key(client, &key, &options, value, &why);
        if (status != HF_OK && error != NULL)
            *error = why;
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
