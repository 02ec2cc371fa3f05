/* SPDX-License-Identifier: MIT */
/*
 * fetch.c - hf_fetch: a cached value, loaded once by the whole fleet.
 *
 *   read ----fresh: without the lock's entry, one GET------------> CACHED
 *     |------old: try for the lease, never wait: got it -> load, else STALE
 *     |------missing: seek the lease: got it -> load; somebody else's load came first -> SHARED, CACHED
 *     `------no server: the value last seen here -> STALE; else one load per process -> LOCAL
 */
#include "core/acquire.h"
#include "core/call.h"
#include "core/freshness.h"
#include "core/loading.h"
#include "core/local.h"
#include "core/options.h"
#include "core/shared.h"
#include "core/table.h"
#include "core/wait.h"
#include "base/perturb.h"
#include "base/random.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#define END_IS_KNOWN_FOR (1000 * HFI_MS)

struct fetch { /* one call, on its stack */
    hf_client *client;
    const char *key;
    size_t size;
    struct hfi_lane *lane;
    struct hfi_lock *lock;   /* a reference; NULL: not needed so far */
    const hf_fetch_options *options;
    int64_t began_ns, until_ns; /* for waiting on others */
    struct hfi_seen seen;
    struct hfi_body *found;  /* what Redis has: a reference; NULL: nothing */
    int64_t left_ms;         /* until its key ends; -1: never, -2: not known */
};

static hf_status answer(struct fetch *f, struct hfi_body *body, hf_source source, bool stored, int64_t fresh_ms,
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
    case HF_LOADED:
    case HF_LOCAL:
        break;
    }
    return hfi_value_new(body, source, stored, fresh_ms, value, error);
}

static void remember(struct fetch *f, struct hfi_body **body, int64_t left_ms, int64_t load_ms)
{
    int64_t now = hfi_now(f->client->clock);
    int64_t end = left_ms == -2 ? 0 : left_ms < 0 ? HFI_NEVER : now + left_ms * HFI_MS;
    hfi_local_saw(f->client, f->key, f->size, body, end, now, load_ms);
}

/* ---- read ---- */

/* The key's end is asked for at most once a second; in between the process knows it. */
static struct hfi_command *read_command(const struct fetch *f, bool with_end)
{
    const char *get[] = {"GET", f->key}, *pttl[] = {"PTTL", f->key}, *exec[] = {"EXEC"}, *multi[] = {"MULTI"};
    const size_t get_size[] = {3, f->size}, pttl_size[] = {4, f->size}, word_size[] = {4}, five[] = {5};
    if (!with_end)
        return hfi_command_new(2, get, get_size);
    struct hfi_command *command = hfi_command_new(1, multi, five);
    if (command != NULL && hfi_command_append(command, 2, get, get_size) &&
        hfi_command_append(command, 2, pttl, pttl_size) && hfi_command_append(command, 1, exec, word_size))
        return command;
    if (command != NULL)
        hfi_command_unref(command);
    return NULL;
}

/* A value as long as the one seen last is most often that one: then nothing is taken, copied or remembered anew. */
static struct hfi_body *body_of(const struct fetch *f, struct redisReply **reply)
{
    struct hfi_body *seen = f->seen.body;
    if (seen == NULL || seen->absent || seen->size != (size_t)(*reply)->len ||
        memcmp(seen->data, (*reply)->str, seen->size) != 0)
        return hfi_body_take(reply);
    hfi_body_ref(seen);
    return seen;
}

static hf_status read(struct fetch *f, hf_error *error)
{
    redisReply *reply;
    int64_t now = f->began_ns;
    bool with_end = f->seen.end_ns <= now || now - f->seen.asked_ns > END_IS_KNOWN_FOR;
    hf_status status =
        hfi_call_done(f->client, f->lane, read_command(f, with_end), "cannot read the cached value", &reply, error);
    if (status != HF_OK)
        return status;
    bool both = with_end && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
    redisReply **got = both ? &reply->element[0] : &reply;
    if ((*got)->type == REDIS_REPLY_STRING) {
        f->left_ms = both ? hfi_wire_number(reply, 1, -1) : -2;
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
    if (f->left_ms == -2 && f->found == f->seen.body) /* the end is the one remembered with these bytes */
        f->left_ms = f->seen.end_ns == HFI_NEVER ? -1 : (f->seen.end_ns - now) / HFI_MS;
    else
        remember(f, &f->found, f->left_ms, 0);
    return status;
}

/* ---- load ---- */

struct filler { /* a thread that waits for its fill's answer, on its stack */
    struct fetch *f;
    hf_lease *lease;
    struct hf_loading *loading;
    struct hfi_park park;
    bool done, stored, refused;
    int64_t ttl_ms;
};

static int64_t kept_ms(const struct fetch *f, const struct hf_loading *loading)
{
    if (loading->body->absent)
        return f->options->negative_ttl_ms > 0 ? f->options->negative_ttl_ms : 0;
    if (loading->ttl_ms == HF_OFF || loading->body->size > f->client->max_value_bytes)
        return 0;
    return loading->ttl_ms + f->options->stale_ms;
}

static void filled(struct hfi_command *command)
{
    struct filler *filler = command->self;
    struct hfi_lock *lock = filler->f->lock;
    struct hfi_actions actions;
    struct hfi_script_reply said = {"", 0, 0};
    if (command->outcome == HFI_ANSWERED)
        said = hfi_wire_script_reply(command->reply);
    bool known = said.now_us != 0;
    hfi_actions_init(&actions);
    HFI_PERTURB("fill-answered");
    int64_t now = hfi_lock_enter(lock);
    filler->stored = strcmp(said.word, "FILLED") == 0;
    filler->refused = strcmp(said.word, "REFUSED") == 0;
    if (lock->holder == filler->lease && filler->refused) {
        hfi_entry_lost(&lock->entry, HF_REASON_GONE, now, &actions); /* who waits asks again */
    } else if (lock->holder == filler->lease) {
        struct hfi_body *body = filler->loading->body;
        int64_t left = filler->stored ? filler->ttl_ms : 0;
        hfi_shared_put(lock->shared, body, left, left - (body->absent ? 0 : filler->f->options->stale_ms), filler->stored);
        lock->shared->loaded_here = true;
        lock->holder = NULL;
        hfi_handle_unref(filler->lease); /* the lock's */
        hfi_entry_filled(&lock->entry, !known, &actions);
    }
    hfi_lock_perform(lock, &actions, now, NULL);
    filler->done = true;
    hfi_park_wake(&filler->park);
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_lane_flush(lock->lane);
    hfi_table_unref(lock); /* the filler may have gone on and let go of it */
}

/* Stores the value if the lease is still ours. *refused: it was thrown away, or somebody else has loaded since. */
static bool fill(struct fetch *f, hf_lease *lease, struct hf_loading *loading, bool *refused)
{
    struct hfi_lock *lock = f->lock;
    struct filler filler = {.f = f, .lease = lease, .loading = loading, .ttl_ms = kept_ms(f, loading)};
    enum hfi_filling filling = filler.ttl_ms <= 0       ? HFI_FILL_NOTHING
                               : loading->body->absent ? HFI_FILL_ABSENT
                                                        : HFI_FILL_VALUE;
    size_t size = filling == HFI_FILL_VALUE ? loading->body->size : 0;
    hfi_park_init(&filler.park);
    (void)pthread_mutex_lock(&lock->mutex);
    struct hfi_command *command = NULL;
    if (lock->holder == lease && hf_lease_is_valid(lease)) {
        char token[HFI_TOKEN_ROOM];
        (void)hfi_lock_token(lock, token);
        command = hfi_wire_fill(&lock->keys, token, filling, filler.ttl_ms, loading->body->data, size);
    }
    if (command == NULL) {
        (void)pthread_mutex_unlock(&lock->mutex);
        *refused = true;
        return false;
    }
    hfi_handle_withdraw(lease); /* P3 */
    HFI_PERTURB("withdrawn-to-filled");
    hfi_table_ref(lock);
    command->done = filled;
    command->self = &filler;
    command->stamp_ns = hfi_now(f->client->clock);
    command->until_ns = command->stamp_ns + f->client->command_ms * HFI_MS;
    hfi_lane_list(lock->lane, command);
    hfi_command_unref(command);
    while (!filler.done) {
        uint32_t ticket = hfi_park_ticket(&filler.park);
        (void)pthread_mutex_unlock(&lock->mutex);
        hfi_lane_flush(lock->lane);
        (void)hfi_lane_wait(lock->lane, &filler.park, ticket, HFI_NEVER);
        (void)pthread_mutex_lock(&lock->mutex);
    }
    (void)pthread_mutex_unlock(&lock->mutex);
    *refused = filler.refused;
    return filler.stored;
}

/* The loader's failure is everybody's here who waits for it; elsewhere the next in the queue tries. Who waits when the
 * lease is lost waits for another load. */
static void fail_waiters(struct fetch *f, const hf_lease *lease, const struct hf_loading *loading)
{
    struct hfi_lock *lock = f->lock;
    struct hfi_actions actions;
    hfi_actions_init(&actions);
    int64_t now = hfi_lock_enter(lock);
    if (lock->holder == lease && hf_lease_is_valid(lease)) {
        lock->shared->failure = loading->failure;
        hfi_entry_refuse_all(&lock->entry, HF_LOAD_FAILED, now, &actions);
    }
    hfi_lock_perform(lock, &actions, now, NULL);
    (void)pthread_mutex_unlock(&lock->mutex);
}

static void begin_loading(const struct fetch *f, hf_lease *lease, struct hf_loading *loading)
{
    *loading = (struct hf_loading){.client = f->client,
                                   .key = f->lock->keys.name,
                                   .key_size = f->lock->keys.name_size,
                                   .lease = lease,
                                   .ttl_ms = f->options->ttl_ms};
}

static hf_status load(struct fetch *f, hf_lease *lease, hf_value **value, hf_error *error)
{
    struct hf_loading loading;
    begin_loading(f, lease, &loading);
    hf_status status = hfi_loading_run(&loading, f->options->load, f->options->arg);
    hfi_count(f->client, loads);
    if (status != HF_OK) {
        hfi_count(f->client, load_failures);
        fail_waiters(f, lease, &loading);
        (void)hf_lease_post_release(lease, NULL);
        if (error != NULL)
            *error = loading.failure;
        return status;
    }
    bool refused, stored = fill(f, lease, &loading, &refused);
    (void)hf_lease_post_release(lease, NULL); /* its end was told by the fill, or it is lost */
    if (!refused)
        remember(f, &loading.body, stored ? kept_ms(f, &loading) : -2, loading.took_ms);
    int64_t fresh_ms = loading.body->absent ? f->options->negative_ttl_ms : loading.ttl_ms;
    status = answer(f, loading.body, HF_LOADED, stored, fresh_ms == HF_OFF ? 0 : fresh_ms, value, error);
    hfi_body_unref(loading.body);
    return status;
}

/* ---- seek ---- */

/* What only a fetch needs that finds nothing fresh: the lock's entry, and where its waiters share. */
static hf_status need_lock(struct fetch *f, hf_error *error)
{
    if (f->lock != NULL)
        return HF_OK;
    hf_status status = hfi_table_get(f->client, HFI_FETCH, f->key, f->size, &f->lock, error);
    if (status != HF_OK)
        return status;
    (void)pthread_mutex_lock(&f->lock->mutex);
    bool has_room = hfi_shared_of(f->lock) != NULL;
    (void)pthread_mutex_unlock(&f->lock->mutex);
    return has_room ? HF_OK : hfi_fail(error, HF_NOMEM, "", "no memory to fetch");
}

/* Waits for the lease or a value; `once`: does not wait. *lease, or *value, or a status that is neither. */
static hf_status seek(struct fetch *f, bool once, hf_lease **lease, hf_value **value, hf_error *error)
{
    hf_status status = need_lock(f, error);
    if (status != HF_OK)
        return status;
    struct hfi_lock *lock = f->lock;
    const hf_fetch_options *o = f->options;
    hf_lock_options options = {.size = sizeof options,
                               .lease_ms = o->lease_ms,
                               .wait_ms = once ? 0 : 1,
                               .max_hold_ms = o->max_load_ms == HF_FOREVER ? 0 : o->max_load_ms,
                               .stop_ms = o->lease_ms / 10 > 50 ? o->lease_ms / 10 : 50};
    struct hfi_seeker seeker;
    struct hfi_actions actions;
    struct hfi_body *body = NULL;
    int64_t fresh_ms = 0;
    bool stored = false, loaded_here = false;
    hfi_seeker_init(&seeker, &options);
    hfi_actions_init(&actions);
    (void)pthread_mutex_lock(&lock->mutex);
    /* What lives longer than what we found is somebody's newer load; after a miss, whatever is fresh will do. */
    int64_t enough = f->found != NULL && f->left_ms > o->stale_ms ? f->left_ms : o->stale_ms;
    if (lock->entry.remote == HFI_NOTHING)
        lock->shared->enough_ms = enough;
    int64_t now = hfi_now(f->client->clock);
    hfi_entry_arrive(&lock->entry, &seeker.waiter, now, &actions);
    hfi_lock_perform(lock, &actions, now, NULL);
    hfi_seek(lock, &seeker, once ? hfi_after_ms(now, f->client->command_ms + 500) : f->until_ns, o->cancel);
    if (seeker.waiter.verdict == HFI_GOT_LEASE) {
        hfi_table_ref(lock); /* the handle's */
    } else if (seeker.waiter.verdict == HFI_GOT_VALUE && lock->shared->body != NULL) {
        body = lock->shared->body;
        hfi_body_ref(body);
        fresh_ms = lock->shared->fresh_ms;
        stored = lock->shared->stored;
        loaded_here = lock->shared->loaded_here;
    } else if (seeker.waiter.verdict == HFI_GOT_VALUE) {
        status = hfi_fail(error, HF_NOMEM, "", "no memory for a value");
    } else if (seeker.waiter.status == HF_LOAD_FAILED) {
        status = lock->shared->failure.status;
        if (error != NULL)
            *error = lock->shared->failure;
    } else {
        status = hfi_lock_explain(lock, seeker.waiter.status, error);
    }
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_lane_flush(lock->lane);
    if (seeker.waiter.verdict == HFI_GOT_LEASE) {
        hfi_count(f->client, acquired_remotely);
        *lease = seeker.lease;
        return HF_OK;
    }
    if (body == NULL)
        return status;
    remember(f, &body, stored && fresh_ms > 0 && !body->absent ? fresh_ms + o->stale_ms : -2, 0);
    status = answer(f, body, loaded_here ? HF_SHARED : HF_CACHED, stored, fresh_ms, value, error);
    hfi_body_unref(body);
    return status;
}

/* ---- the server is away ---- */

/* Another thread of this process loads. The lock's mutex is held on entry, not on return. */
static hf_status share_local_load(struct fetch *f, hf_value **value, hf_error *error)
{
    struct hfi_lock *lock = f->lock;
    struct hfi_guest guest = {.done = false};
    struct hfi_wait wait;
    hfi_park_init(&guest.park);
    hfi_list_append(&lock->shared->parked, &guest.link);
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_wait_begin(&wait, f->client, f->options->cancel, &guest.park, f->until_ns);
    (void)pthread_mutex_lock(&lock->mutex);
    hf_status status = hfi_wait_for(&wait, &guest.done, &lock->mutex, NULL);
    hfi_list_remove(&guest.link);
    if (status != HF_OK)
        status = hfi_lock_explain(lock, status, error);
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_wait_end(&wait);
    if (status != HF_OK)
        return status;
    if (guest.status == HF_OK)
        status = answer(f, guest.body, HF_LOCAL, false, f->options->ttl_ms, value, error);
    else if (error != NULL)
        *error = guest.failure;
    hfi_body_unref(guest.body);
    return guest.status == HF_OK ? status : guest.status;
}

static hf_status load_locally(struct fetch *f, hf_value **value, hf_error *error)
{
    hf_status status = need_lock(f, error);
    if (status != HF_OK)
        return status;
    struct hfi_lock *lock = f->lock;
    struct hf_loading loading;
    (void)pthread_mutex_lock(&lock->mutex);
    if (lock->shared->loading)
        return share_local_load(f, value, error);
    lock->shared->loading = true;
    (void)pthread_mutex_unlock(&lock->mutex);
    begin_loading(f, NULL, &loading);
    status = hfi_loading_run(&loading, f->options->load, f->options->arg);
    hfi_count(f->client, loads);
    if (status == HF_OK)
        remember(f, &loading.body, -2, loading.took_ms);
    else
        hfi_count(f->client, load_failures);
    (void)pthread_mutex_lock(&lock->mutex);
    hfi_shared_end_load(lock->shared, status, loading.body, &loading.failure);
    (void)pthread_mutex_unlock(&lock->mutex);
    if (status == HF_OK)
        status = answer(f, loading.body, HF_LOCAL, false, f->options->ttl_ms, value, error);
    else if (error != NULL)
        *error = loading.failure;
    hfi_body_unref(loading.body);
    return status;
}

static hf_status without_server(struct fetch *f, hf_value **value, hf_error *error)
{
    if (f->seen.body == NULL) /* a local load may have ended while we found out */
        hfi_local_look(f->client, f->key, f->size, &f->seen);
    if (f->seen.body != NULL)
        return answer(f, f->seen.body, HF_STALE, true, 0, value, error);
    if (f->options->when_down == HF_FAIL)
        return error->status = HF_UNAVAILABLE;
    return load_locally(f, value, error);
}

/* ---- hf_fetch ---- */

static bool is_away(hf_status status)
{
    return status == HF_UNKNOWN || status == HF_UNAVAILABLE;
}

/* Stale beats failure: what was found is served unless something newer came. */
static hf_status refresh(struct fetch *f, bool is_old, hf_value **value, hf_error *error)
{
    hf_lease *lease = NULL;
    int64_t fresh_ms = f->left_ms - f->options->stale_ms;
    hf_status status = seek(f, true, &lease, value, error);
    if (status == HF_OK && lease != NULL)
        status = load(f, lease, value, error);
    if (status == HF_OK && *value != NULL)
        return HF_OK;
    return answer(f, f->found, is_old ? HF_STALE : HF_CACHED, true, fresh_ms, value, error);
}

static hf_status found(struct fetch *f, hf_value **value, hf_error *error)
{
    const hf_fetch_options *o = f->options;
    uint64_t dice = (uint64_t)f->began_ns;
    double u = (double)((hfi_dice(&dice) >> 11) + 1) / 9007199254740992.0; /* (0, 1] */
    int64_t fresh_ms = f->left_ms < 0 ? 0 : f->left_ms - o->stale_ms;
    switch (hfi_freshness(f->left_ms, o->stale_ms, o->early, f->seen.load_ms, u)) {
    case HFI_FRESH:
        return answer(f, f->found, HF_CACHED, true, fresh_ms, value, error);
    case HFI_NEARLY_OLD:
        return refresh(f, false, value, error);
    case HFI_OLD:
        return refresh(f, true, value, error);
    }
    return HF_INTERNAL;
}

static hf_status fetch(struct fetch *f, hf_value **value, hf_error *error)
{
    hf_lease *lease = NULL;
    hfi_local_look(f->client, f->key, f->size, &f->seen);
    hf_status status = read(f, error);
    if (is_away(status))
        return without_server(f, value, error);
    if (status != HF_OK)
        return status;
    if (f->found != NULL)
        return found(f, value, error);
    status = seek(f, f->options->wait_ms == HF_OFF, &lease, value, error);
    if (is_away(status))
        return without_server(f, value, error);
    if (status == HF_OK && lease != NULL)
        status = load(f, lease, value, error);
    return status;
}

static hf_status fetch_key(hf_client *client, const char *key, size_t size, const hf_fetch_options *o, hf_value **value,
                           hf_error *error)
{
    struct fetch f = {.client = client, .key = key, .size = size, .options = o, .left_ms = -2};
    char quoted[160];
    if (hfi_loader_is_at(client, key, size))
        return hfi_fail(error, HF_DEADLOCK, "a loader may fetch other keys only", "the loader of %s fetches that same key",
                        hfi_quote(quoted, sizeof quoted, key, size));
    hf_status status = hfi_fetch_key_check(client->key_template, key, size, error);
    if (status != HF_OK)
        return status;
    f.lane = hfi_pool_lane(client->pool, HFI_VALUE_LANE, hfi_name_hash(HFI_FETCH, key, size));
    f.began_ns = hfi_now(client->clock);
    f.until_ns = o->wait_ms == HF_OFF ? 0 : hfi_after_ms(f.began_ns, o->wait_ms);
    hfi_count(client, waiting);
    status = fetch(&f, value, error);
    hfi_uncount(client, waiting);
    hfi_body_unref(f.found);
    hfi_body_unref(f.seen.body);
    if (f.lock != NULL)
        hfi_table_unref(f.lock);
    return status;
}

hf_status hf_fetch(hf_client *client, const char *key, const hf_fetch_options *given, hf_value **value, hf_error *error)
{
    hf_fetch_options options;
    size_t size;
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
        status = hfi_name_check(key, options.key_size, "key", &size, error);
    if (status == HF_OK && hfi_counted(client, waiting) >= client->max_waiters)
        status = hfi_fail(error, HF_LIMIT, "raise max_waiters, or fetch with fewer threads",
                          "max_waiters (%zu) calls are under way already", client->max_waiters);
    if (status == HF_OK) {
        hf_error why = {.status = HF_OK}; /* what failed on the way to an answer is nobody's business */
        status = fetch_key(client, key, size, &options, value, &why);
        if (status != HF_OK && error != NULL)
            *error = why;
    }
    hfi_client_leave(client);
    return status;
}

hf_status hf_fetch_forget(hf_client *client, const char *key, hf_error *error)
{
    struct hfi_keys keys = {0};
    redisReply *reply = NULL;
    size_t size;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    status = hfi_name_check(key, 0, "key", &size, error);
    if (status == HF_OK)
        status = hfi_keys_make(client->key_template, HFI_FETCH, key, size, &keys, error);
    if (status == HF_OK) {
        struct hfi_lane *lane = hfi_pool_lane(client->pool, HFI_VALUE_LANE, hfi_name_hash(HFI_FETCH, key, size));
        hfi_local_forget(client, key, size);
        status = hfi_call_done(client, lane, hfi_wire_forget(&keys), "cannot forget the value", &reply, error);
    }
    if (reply != NULL)
        freeReplyObject(reply);
    hfi_keys_done(&keys);
    hfi_client_leave(client);
    return status;
}
