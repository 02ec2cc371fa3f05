/* SPDX-License-Identifier: MIT */
/*
 * many.c - hf_fetch_many: several keys in one call.
 *
 *   1. from memory; the rest is read, all reads listed before the first answer is waited for
 *   2. old: a loader thread's, or with 3, and then the old one is the answer if the lease is not to be had
 *   3. missing: tries for all leases, waiting for none; one run of the loader for those that were had; all fills at once
 *   4. what others load: one after the other, by hf_fetch's own way, holding nothing
 */
#include "base/rare.h"
#include "core/context/callback.h"
#include "core/context/calls.h"
#include "core/fetch/fetch.h"
#include "core/protocol/options.h"
#include "pool/replies.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE 256 /* commands in flight: more of them cost the server's memory, and gain nothing */

enum state {
    READS,   /* to be read, or being read   */
    OLD,     /* a loader thread is to load  */
    TRIES,   /* for the lease               */
    LOADS,   /* has the lease               */
    WAITS,   /* for others: step 4          */
    DONE
};

struct part { /* one item */
    hf_fetch_item *item;
    struct hfi_name key;
    struct hfi_fetch fetch;
    enum state state;
    enum hfi_freshness freshness; /* of what was found */
    int64_t since_ns;             /* from then on it waits for others */
    struct hfi_fetch_asking asking;
    hf_lease *lease;
    struct hf_loading loading;
    struct hfi_callback callback;
    struct hfi_filler *filler;
    bool failed; /* its load */
    hf_error error;
};

struct many {
    hf_client *client;
    const hf_fetch_options *options;
    struct part *parts;
    size_t count;
    int64_t since_ns;
};

static void end(struct part *part, hf_status status)
{
    part->state = DONE;
    part->item->status = status;
}

static void begin_part(struct many *many, struct part *part, hf_fetch_item *item)
{
    part->item = item;
    part->since_ns = many->since_ns;
    part->error.status = HF_OK;
    part->fetch = (struct hfi_fetch){.client = many->client, .key = &part->key, .options = many->options, .since_ns = many->since_ns,
                                     .began_ns = many->since_ns, .left_ms = -2};
    hf_status status = HF_OK;
    if (item->reserved_word != 0)
        status = hfi_fail(&part->error, HF_INVALID, "zero the items first", "a reserved field of an item is not 0");
    if (status == HF_OK)
        status = hfi_name_take(HFI_FETCH, item->key, item->key_size, &part->key, &part->error);
    if (status == HF_OK)
        status = hfi_loader_check(many->client, &part->key, &part->error);
    if (status == HF_OK)
        status = hfi_fetch_key_check(many->client->key_template, part->key.text, part->key.size, &part->error);
    if (status != HF_OK)
        end(part, status);
    else
        part->fetch.lane = part->fetch.reads = hfi_pool_lane(many->client->pool, HFI_VALUE_LANE, part->key.hash);
}

/* ---- 1, 2 ---- */

static void take_found(struct part *part)
{
    struct hfi_fetch *f = &part->fetch;
    bool here = f->options->where == HF_LOAD_HERE || hfi_loader_is_running();
    part->freshness = hfi_fetch_judge(f);
    if (part->freshness == HFI_FRESH)
        end(part, hfi_fetch_give(f, HFI_FRESH, &part->item->value, &part->error));
    else
        part->state = here ? TRIES : OLD;
}

/* Once all is read: soft_ms is for all of them together. */
static void load_aside(struct part *part)
{
    struct hfi_fetch *f = &part->fetch;
    const hf_fetch_options *all = f->options;
    hf_fetch_options options = *all;
    int64_t spent_ms = (hfi_now(f->client->clock) - f->since_ns) / HFI_MS;
    options.soft_ms = all->soft_ms > spent_ms ? all->soft_ms - spent_ms : 0;
    f->options = &options;
    end(part, hfi_fetch_give(f, part->freshness, &part->item->value, &part->error));
    f->options = all;
}

/* Stale beats failure. */
static void end_old(struct part *part)
{
    struct hfi_fetch *f = &part->fetch;
    hf_source source = part->freshness == HFI_OLD ? HF_STALE : f->is_near ? HF_NEAR : HF_CACHED;
    end(part, hfi_fetch_answer(f, f->found, source, true, f->left_ms - f->options->stale_ms, &part->item->value, &part->error));
}

static void take_reply(struct hfi_calls *calls, size_t index, struct part *part)
{
    struct redisReply *reply;
    uint32_t connection;
    hf_status status = hfi_calls_take(calls, index, part->fetch.options->cancel, &reply, &connection, &part->error);
    bool again = false;
    if (status == HF_OK)
        status = hfi_fetch_read_end(&part->fetch, reply, connection, &again, &part->error);
    if (again)
        return;
    if (status == HF_OK && part->fetch.found != NULL)
        take_found(part);
    else if (status == HF_OK)
        part->state = TRIES;
    else if (status == HF_BUSY || status == HF_UNKNOWN || status == HF_UNAVAILABLE)
        part->state = WAITS; /* hf_fetch's own way knows what to do */
    else
        end(part, status);
}

static bool is_to_be_read(const struct part *parts, size_t count)
{
    size_t i = 0;
    while (i < count && parts[i].state != READS)
        i++;
    return i < count;
}

static void read_some(struct many *many, struct hfi_calls *calls, struct part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i].state == READS) {
            struct hfi_fetch *f = &parts[i].fetch;
            hfi_body_unref(f->seen.body);
            hfi_local_look(many->client, f->key, &f->seen);
            f->left_ms = -2;
            f->began_ns = hfi_now(many->client->clock);
            hfi_calls_list(calls, i, f->lane, hfi_fetch_read_begin(f));
        }
    for (size_t i = 0; i < count; i++)
        if (parts[i].state == READS)
            hfi_lane_flush(parts[i].fetch.lane);
    for (size_t i = 0; i < count; i++)
        if (parts[i].state == READS)
            take_reply(calls, i, &parts[i]);
}

static void read_batch(struct many *many, struct part *parts, size_t count)
{
    /* The second time what has changed since it was read last, with its end. */
    for (int turn = 0; turn < 2 && is_to_be_read(parts, count); turn++) {
        struct hfi_calls *calls = hfi_calls_new(many->client, count);
        if (calls != NULL)
            read_some(many, calls, parts, count);
        for (size_t i = 0; calls == NULL && i < count; i++)
            if (parts[i].state == READS)
                end(&parts[i], hfi_fail(&parts[i].error, HF_NOMEM, "", "no memory for a command"));
        hfi_calls_free(calls);
    }
    for (size_t i = 0; i < count; i++) /* and has changed once more */
        if (parts[i].state == READS)
            parts[i].state = WAITS;
}

static void read_all(struct many *many)
{
    for (size_t i = 0; i < many->count && many->options->near_ms > 0; i++)
        if (many->parts[i].state == READS && hfi_fetch_look_near(&many->parts[i].fetch))
            take_found(&many->parts[i]);
    for (size_t first = 0; first < many->count; first += AT_ONCE)
        read_batch(many, many->parts + first, many->count - first < AT_ONCE ? many->count - first : AT_ONCE);
}

/* ---- 3 ---- */

static void end_try(struct part *part)
{
    struct hfi_fetch *f = &part->fetch;
    hf_status status = hfi_fetch_try_end(f, &part->asking, &part->lease, &part->item->value, &part->error);
    if (status == HF_OK && part->lease != NULL)
        part->state = LOADS;
    else if (status == HF_OK)
        end(part, HF_OK);
    else if (f->found != NULL)
        end_old(part);
    else if (status == HF_CANCELED || status == HF_CLOSED || status == HF_NOMEM || status == HF_FOREIGN)
        end(part, status);
    else
        part->state = WAITS;
}

static void begin_try(struct part *part)
{
    hf_status status = hfi_fetch_need_lock(&part->fetch, &part->error);
    if (status == HF_OK)
        hfi_fetch_try_begin(&part->fetch, &part->asking);
    else if (part->fetch.found != NULL)
        end_old(part);
    else
        end(part, status);
}

static void try_all(struct many *many)
{
    for (size_t first = 0; first < many->count; first += AT_ONCE) {
        size_t next = many->count - first < AT_ONCE ? many->count : first + AT_ONCE;
        for (size_t i = first; i < next; i++)
            if (many->parts[i].state == TRIES)
                begin_try(&many->parts[i]);
        for (size_t i = first; i < next; i++)
            if (many->parts[i].state == TRIES)
                hfi_lane_flush(many->parts[i].fetch.lock->lane);
        for (size_t i = first; i < next; i++)
            if (many->parts[i].state == TRIES)
                end_try(&many->parts[i]);
    }
}

static void fail_load(struct part *part)
{
    hf_status status = part->loading.failure.status;
    struct hfi_fetch *f = &part->fetch;
    part->failed = true;
    hfi_fetch_fail(f, part->lease, &part->loading.failure);
    part->error = part->loading.failure;
    hfi_loading_done(&part->loading);
    if (f->found != NULL)
        end_old(part);
    else
        end(part, status);
}

/* One run for all that have their lease. */
static void load_together(struct many *many, struct hf_loading **loadings, struct part **parts, hf_status *statuses, size_t count)
{
    const hf_fetch_options *o = many->options;
    if (!hfi_loading_run_many(loadings, count, o->load_many, o->arg, statuses))
        for (size_t i = 0; i < count; i++)
            statuses[i] = hfi_fail(&loadings[i]->failure, HF_NOMEM, "", "no memory to load");
    for (size_t i = 0; i < count; i++)
        hfi_fetch_load_end(&parts[i]->fetch, loadings[i], statuses[i]);
}

/* The time that a load may take began with its lease: if that is over, it waits like others, from now on. */
static void load_one(struct part *part)
{
    struct hfi_fetch *f = &part->fetch;
    if (!hf_lease_is_valid(part->lease)) {
        (void)hf_lease_post_release(part->lease, NULL);
        part->since_ns = hfi_now(f->client->clock);
        part->state = WAITS;
        if (f->found != NULL)
            end_old(part);
        return;
    }
    if (hfi_fetch_load(f, part->lease, &part->loading) != HF_OK) {
        fail_load(part);
        return;
    }
    part->filler = hfi_fetch_fill_begin(f, part->lease, &part->loading);
    hfi_lane_flush(f->lock->lane); /* the next load may take long */
    if (part->filler == NULL) /* nothing to wait for: the lease is not to be kept meanwhile */
        end(part, hfi_fetch_fill_end(f, part->lease, &part->loading, NULL, &part->item->value, &part->error));
}

/* A loader that fetches one whose turn is still to come would wait for this very thread. */
static void load_each(struct part **parts, size_t count)
{
    for (size_t i = count; i-- > 0;)
        hfi_callback_begin(&parts[i]->callback, parts[i]->fetch.client, &parts[i]->loading);
    for (size_t i = 0; i < count; i++) {
        hfi_callback_end(&parts[i]->callback);
        load_one(parts[i]);
    }
}

static void load_all(struct many *many, struct hf_loading **loadings, struct part **parts, hf_status *statuses)
{
    size_t count = 0;
    for (size_t i = 0; i < many->count; i++)
        if (many->parts[i].state == LOADS) {
            struct part *part = parts[count] = &many->parts[i];
            loadings[count++] = &part->loading;
            hfi_fetch_load_begin(&part->fetch, part->lease, &part->loading);
        }
    if (many->options->load_many == NULL) {
        load_each(parts, count);
    } else if (count > 0) {
        load_together(many, loadings, parts, statuses, count);
        for (size_t i = 0; i < count; i++)
            if (statuses[i] != HF_OK)
                fail_load(parts[i]);
            else
                parts[i]->filler = hfi_fetch_fill_begin(&parts[i]->fetch, parts[i]->lease, loadings[i]);
    }
    for (size_t i = 0; i < count; i++)
        if (parts[i]->state == LOADS)
            hfi_lane_flush(parts[i]->fetch.lock->lane);
    for (size_t i = 0; i < count; i++)
        if (parts[i]->state == LOADS)
            end(parts[i], hfi_fetch_fill_end(&parts[i]->fetch, parts[i]->lease, loadings[i], parts[i]->filler, &parts[i]->item->value,
                                             &parts[i]->error));
}

/* ---- 4 ---- */

/* The same key stands before it, and this call has loaded it, or failed to. */
static bool take_from_twin(struct many *many, struct part *part)
{
    struct part *twin = many->parts;
    while (twin < part && (twin->key.hash != part->key.hash || twin->key.size != part->key.size ||
                           memcmp(twin->key.text, part->key.text, part->key.size) != 0))
        twin++;
    const hf_value *value = twin->item->value;
    hf_status status = twin->item->status;
    bool failed = status != HF_OK && (twin->failed || status == HF_LOAD_FAILED); /* else an old value has been its answer */
    if (twin == part || !(failed || (value != NULL && (value->source == HF_LOADED || value->source == HF_LOCAL))))
        return false;
    struct hfi_fetch f = {.client = many->client, .key = &part->key, .options = many->options};
    part->error = twin->error;
    end(part, failed ? status
                     : hfi_fetch_answer(&f, hfi_value_body(value), value->source == HF_LOADED ? HF_SHARED : HF_LOCAL, value->stored,
                                        value->fresh_ms, &part->item->value, &part->error));
    return true;
}

static void wait_for(struct many *many, struct part *part)
{
    if (take_from_twin(many, part))
        return;
    struct hfi_fetch f = {.client = many->client, .key = &part->key, .since_ns = hfi_now(many->client->clock),
                          .lane = part->fetch.lane, .reads = part->fetch.lane};
    hf_fetch_options options = *many->options;
    int64_t spent_ms = (f.since_ns - part->since_ns) / HFI_MS;
    bool is_over = options.wait_ms > 0 && spent_ms >= options.wait_ms;
    if (options.wait_ms > 0)
        options.wait_ms = is_over ? HF_OFF : options.wait_ms - spent_ms;
    f.options = &options;
    part->error.status = HF_OK;
    hf_status status = hfi_fetch_attempts(&f, &part->item->value, &part->error);
    end(part, status == HF_BUSY && is_over ? hfi_fetch_explain(&f, HF_TIMEOUT, &part->error) : status);
    hfi_fetch_done(&f);
}

/* ---- hf_fetch_many ---- */

static hf_status first_failure(struct many *many, hf_error *error)
{
    for (size_t i = 0; i < many->count; i++)
        if (many->parts[i].item->status != HF_OK) {
            if (error != NULL)
                *error = many->parts[i].error;
            return many->parts[i].item->status;
        }
    return HF_OK;
}

static hf_status fetch_all(struct many *many, hf_fetch_item *items, hf_error *error)
{
    struct hf_loading **loadings = calloc(many->count, sizeof(void *));
    struct part **parts = calloc(many->count, sizeof(void *));
    hf_status *statuses = calloc(many->count, sizeof *statuses);
    many->parts = calloc(many->count, sizeof *many->parts);
    bool has_room = loadings != NULL && parts != NULL && statuses != NULL && many->parts != NULL;
    hf_status status = has_room ? HF_OK : hfi_fail(error, HF_NOMEM, "", "no memory to fetch %zu values", many->count);
    for (size_t i = 0; has_room && i < many->count; i++)
        begin_part(many, &many->parts[i], &items[i]);
    if (has_room) {
        read_all(many);
        for (size_t i = 0; i < many->count; i++)
            if (many->parts[i].state == OLD)
                load_aside(&many->parts[i]);
        try_all(many);
        load_all(many, loadings, parts, statuses);
        for (size_t i = 0; i < many->count; i++)
            if (many->parts[i].state == WAITS)
                wait_for(many, &many->parts[i]);
        for (size_t i = 0; i < many->count; i++)
            hfi_fetch_done(&many->parts[i].fetch);
        status = first_failure(many, error);
    }
    for (size_t i = 0; !has_room && i < many->count; i++)
        items[i].status = status;
    free(many->parts);
    free(statuses);
    free(parts);
    free(loadings);
    return status;
}

static hf_status take_items(hf_fetch_item *items, size_t count, hf_error *error)
{
    hf_status status = HF_OK;
    if (items == NULL && count > 0)
        return hfi_fail(error, HF_INVALID, "", "items is NULL");
    if (count > HF_FETCH_MANY_MAX)
        status = hfi_fail(error, HF_INVALID, "fetch them in several calls", "%zu items are more than %d", count, HF_FETCH_MANY_MAX);
    for (size_t i = 0; i < count && i < HF_FETCH_MANY_MAX; i++) {
        items[i].value = NULL;
        items[i].status = status;
    }
    return status;
}

HFI_RARE hf_status hf_fetch_many(hf_client *client, hf_fetch_item *items, size_t count, const hf_fetch_options *given, hf_error *error)
{
    hf_fetch_options options;
    hf_status status = take_items(items, count, error);
    if (status != HF_OK)
        return status;
    status = hfi_client_enter(client, error);
    bool entered = status == HF_OK;
    if (status == HF_OK)
        status = hfi_fetch_take_options(client, given, true, &options, error);
    if (status == HF_OK && options.where == HF_LOAD_ASIDE)
        status = hfi_fail(error, HF_INVALID, "HF_REFRESH_ASIDE, or load here", "where is HF_LOAD_ASIDE, which hf_fetch_many has not");
    if (status == HF_OK && options.key_size != 0)
        status = hfi_fail(error, HF_INVALID, "each item has its own", "there is key_size for hf_fetch_many");
    for (size_t i = 0; status != HF_OK && i < count; i++)
        items[i].status = status;
    if (status == HF_OK && count > 0) {
        struct many many = {.client = client, .options = &options, .count = count, .since_ns = hfi_now(client->clock)};
        status = fetch_all(&many, items, error);
    }
    if (entered)
        hfi_client_leave(client);
    return status;
}
