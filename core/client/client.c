/* SPDX-License-Identifier: MIT */
/* client.c - hf_client: from a URI to three running threads, and back. */
#include "core/context/context.h"
#include "core/context/dialects.h"
#include "core/context/callback.h"
#include "core/context/cancel.h"
#include "core/client/settings.h"
#include "core/lock/retire.h"
#include "core/lock/event_sink.h"
#include "core/lock/parts.h"
#include "core/lock/handle.h"
#include "core/lock/inbound.h"
#include "core/lock/grants.h"
#include "core/lock/lock_order.h"
#include "core/lock/members.h"
#include "core/lock/deadlock.h"
#include "core/lock/waits.h"
#include "core/lock/observer.h"
#include "core/lock/perform.h"
#include "core/fetch/aside.h"
#include "core/fetch/fetch.h"
#include "core/fetch/local.h"
#include "core/fetch/near.h"
#include "core/fetch/near_read.h"
#include "core/protocol/options.h"
#include "core/protocol/scripts.h"
#include "core/lock/server_time.h"
#include "core/fetch/shared.h"
#include "core/lock/table.h"
#include "core/lock/tick.h"
#include "core/lock/tracking.h"
#include "base/perturb.h"
#include "base/random.h"
#include "base/thread.h"
#include "pool/borrow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool in_background(void *self, void (*run)(void *arg), void *arg);

static bool is_idle(void *self)
{
    const hf_client *client = self;
    uint64_t ended = hfi_counted(client, released); /* first: see stats.c */
    return hfi_counted(client, acquired_remotely) + hfi_counted(client, acquired_locally) <= ended;
}

static void renew_all(void *self)
{
    hfi_tick_renew_all(self);
}

/* The scripts that every client needs. The source of any other is sent with its first use: on a narrow line the first
 * renewal must not stand behind what may never be needed. */
static const struct hfi_script *const scripts[] = {hfi_script_fence_floor, hfi_script_acquire, hfi_script_release,
                                                 hfi_script_renew, NULL};

static const struct hfi_lock_ops lock_ops = {
    .look = hfi_grants_look,
    .ring = hfi_tick_ring,
    .renew_all = hfi_tick_renew_all,
    .free_sink = hfi_event_sink_free,
    .part_told = hfi_parts_told,
};

static void kicked(void *self)
{
    hfi_cancel_kicked(self);
    hfi_members_kicked(self);
}

static void on_message(void *self, const char *channel, size_t channel_size, const char *message, size_t message_size)
{
    if (hfi_tracking_is_channel(channel, channel_size))
        hfi_near_told(self, message, message_size);
    hfi_inbound_message(self, channel, channel_size, message, message_size);
}

static const struct hfi_pool_ops ops = {
    .scripts = scripts,
    .handshake_floor = hfi_server_time_handshake_floor,
    .handshake_floored = hfi_server_time_handshake_floored,
    .lane_up = hfi_inbound_lane_up,
    .another_server = renew_all,
    .on_message = on_message,
    .subscribed = hfi_inbound_subscribed,
    .proved = hfi_near_proved,
    .is_idle = is_idle,
    .kicked = kicked,
    .in_background = in_background,
};

static hf_status refuse_in_log(hf_error *error)
{
    return hfi_fail(error, HF_INVALID, "note down what is to be done, and do it in a thread of your own",
                    "hf_* was called inside a log function");
}

hf_status hfi_client_enter(hf_client *client, hf_error *error)
{
    if (client == NULL)
        return hfi_fail(error, HF_INVALID, "pass the client that hf_client_open gave", "the client is NULL");
    if (hfi_client_is_forked(client))
        return hfi_fail(error, HF_FORKED, "open a client of its own in the child process", "the client belongs to the parent process");
    if (!hfi_thread_shield()) {
        hfi_thread_unshield();
        return refuse_in_log(error);
    }
    atomic_fetch_add(&client->calls, 1);
    HFI_PERTURB("counted-to-look");
    if (!atomic_load(&client->closing))
        return HF_OK;
    hfi_client_leave(client);
    return hfi_fail(error, HF_CLOSED, "", "the client is closed or closing");
}

void hfi_client_leave(hf_client *client)
{
    if (!atomic_load(&client->closing)) {
        HFI_PERTURB("open-to-uncount");
        (void)atomic_fetch_sub(&client->calls, 1); /* the client may be freed now */
    } else {
        hfi_mutex_lock(&client->time_mutex);
        (void)atomic_fetch_sub(&client->calls, 1);
        hfi_park_wake(&client->left);
        hfi_mutex_unlock(&client->time_mutex);
    }
    hfi_thread_unshield();
}

void hfi_client_unref(hf_client *client)
{
    if (atomic_fetch_sub(&client->references, 1) != 1)
        return;
    (void)hfi_thread_shield(); /* close() is a cancellation point */
    hfi_pool_free(client->pool);
    hfi_dispatcher_free(client->dispatcher);
    hfi_table_free(client);
    hfi_members_free(client);
    hfi_local_free(client);
    hfi_near_free(client);
    hfi_near_reads_free(client);
    hfi_aside_free(client);
    hfi_loss_log_free(&client->loss_log);
    hfi_lock_order_free(client->order);
    hfi_waits_free(client->lock_waits);
    hfi_wiped_give(client->wiped, client->alive);
    hfi_wiped_free(client->wiped);
    hfi_random_supply_free(client->random);
    hfi_mutex_destroy(&client->time_mutex);
    hfi_mutex_destroy(&client->cancel_mutex);
    hfi_mutex_destroy(&client->inquiry_mutex);
    hfi_mutex_destroy(&client->observer_mutex);
    free(client->samples);
    free(client->floors_asked_ns);
    free(client->free_ns);
    free(client->name);
    free(client->key_template);
    hfi_dialects_free(client);
    free(client->keyspace_events);
    free(client);
    hfi_thread_unshield();
}

struct background { /* a chore of the pool, run by a thread that may block: watchdog/dispatcher.h */
    struct hfi_job job;
    void (*run)(void *arg);
    void *arg;
};

static void run_background(struct hfi_job *job)
{
    struct background *background = hfi_container_of(job, struct background, job);
    background->run(background->arg);
    free(background);
}

static bool in_background(void *self, void (*run)(void *arg), void *arg)
{
    hf_client *client = self;
    struct background *background = calloc(1, sizeof *background);
    if (background == NULL)
        return false;
    hfi_list_init(&background->job.link);
    background->job.run = run_background;
    background->run = run;
    background->arg = arg;
    if (hfi_dispatcher_chore(client->dispatcher, &background->job))
        return true;
    free(background);
    return false;
}

/* phase: of the grid of re-checks, any part of more than one step. In quarantine a message may be of a server that was lost since. */
static void set_rules(struct hfi_entry_rules rules[HFI_USES], const hf_client_options *o, int64_t phase)
{
    for (int use = 0; use < HFI_USES; use++)
        rules[use] = (struct hfi_entry_rules){
            .guard_ms = o->guard_ms == HF_OFF ? 0 : o->guard_ms,
            .native = use == HFI_MUTEX,
            .shares = use == HFI_SHARED || use == HFI_SEMAPHORE, .counts = use == HFI_SEMAPHORE,
            .barges = use == HFI_MUTEX || use == HFI_DIALECT,
            .batch_rechecks = use == HFI_MUTEX || use == HFI_SHARED,
            .phase = phase,
            .rides_out = use != HFI_FETCH,
            .confirms = o->replicas != 0 || (o->quarantine_ms != 0 && use != HFI_FETCH),
        };
}

static hf_client *make(const hf_client_options *o, const unsigned char random[16])
{
    char host[256] = "", name[160];
    hf_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return NULL;
    atomic_init(&client->references, 1);
    hfi_mutex_init(&client->time_mutex, HFI_RANK_INNER);
    hfi_mutex_init(&client->cancel_mutex, HFI_RANK_INNER);
    hfi_mutex_init(&client->inquiry_mutex, HFI_RANK_INNER);
    hfi_mutex_init(&client->observer_mutex, HFI_RANK_INNER);
    hfi_list_init(&client->cancels);
    hfi_loss_log_init(&client->loss_log);
    hfi_list_init(&client->inquiries);
    hfi_list_init(&client->observers);
    hfi_park_init(&client->left);
    client->clock = &hfi_boottime;
    client->log = (struct hfi_log){o->log, o->log_arg};
    client->lease_ms = o->lease_ms;
    client->max_lease_ms = o->max_lease_ms;
    client->quarantine_ms = o->quarantine_ms;
    client->replicas = o->replicas;
    client->command_ms = o->command_ms;
    client->close_ms = o->close_ms == HF_OFF ? 0 : o->close_ms;
    client->local_bytes = o->local_bytes;
    client->max_waiters = o->max_waiters;
    client->max_value_bytes = o->max_value_bytes;
    client->lock_ops = &lock_ops;
    client->fetch_ops = &hfi_shared_ops;
    set_rules(client->rules, o, (random[0] * 256 + random[1]) * (HFI_MS / 256));
    if (o->client_name == NULL) /* CLIENT SETNAME refuses a blank in the program's name */
        (void)snprintf(name, sizeof name, "%.100s-%ld", program_invocation_short_name, (long)getpid());
    for (char *at = name; o->client_name == NULL && *at != 0; at++)
        if (*at <= ' ' || *at > '~')
            *at = '_';
    client->name = strdup(o->client_name != NULL ? o->client_name : name);
    client->keyspace_events = strdup(o->keyspace_events);
    client->key_template = o->key_template != NULL ? strdup(o->key_template) : NULL;
    client->order = o->check_order ? hfi_lock_order_new() : NULL;
    client->random = hfi_random_supply_new();
    client->wiped = hfi_wiped_new();
    client->alive = client->wiped != NULL ? hfi_wiped_take(client->wiped) : NULL;
    client->sample_count = HFI_LANES_OF(o->lanes);
    client->samples = calloc((size_t)client->sample_count, sizeof *client->samples);
    client->floors_asked_ns = calloc((size_t)client->sample_count, sizeof *client->floors_asked_ns);
    client->free_ns = calloc((size_t)client->sample_count, sizeof *client->free_ns);
    (void)gethostname(host, sizeof host - 1);
    if (client->alive == NULL || client->random == NULL || client->name == NULL || client->keyspace_events == NULL ||
        client->samples == NULL || client->floors_asked_ns == NULL || client->free_ns == NULL ||
        (o->key_template != NULL && client->key_template == NULL) ||
        (o->check_order && client->order == NULL) || (o->deadlock_ms > 0 && !hfi_deadlocks_begin(client, o->deadlock_ms * HFI_MS)) ||
        !hfi_table_open(client) || !hfi_local_open(client) || !hfi_near_open(client, o->lanes, o->near_lag_ms) ||
        !hfi_near_reads_open(client) || !hfi_aside_open(client, o->loaders, hfi_fetch_run)) {
        hfi_client_unref(client);
        return NULL;
    }
    hfi_identity_make(&client->identity, random, host, (int64_t)getpid());
    atomic_store(client->alive, 1);
    return client;
}

static hf_status start(hf_client *client, struct hfi_settings *settings, hf_error *error)
{
    const hf_client_options *o = &settings->options;
    struct hfi_endpoint *endpoint = &settings->endpoint;
    const char *socket;
    char *path;
    hf_status status = hfi_dialects_begin(client, o->dialect, error);
    if (status != HF_OK)
        return status;
    if (endpoint->scheme == HFI_EMBEDDED) {
        int64_t until = hfi_after_ms(hfi_now(client->clock), o->connect_ms);
        status = hfi_embedded_join(endpoint->path, until, &client->embedded, &socket, error);
        if (status != HF_OK)
            return status;
        path = strdup(socket);
        if (path == NULL)
            return hfi_fail(error, HF_NOMEM, "", "no memory for a client");
        free(endpoint->path);
        endpoint->path = path;
    }
    const struct hfi_pool_settings pool = hfi_settings_of_pool(settings, client->name);
    client->database = endpoint->database;
    client->has_dispatcher_thread = o->dispatch == HF_DISPATCH_THREAD;
    status = hfi_watchdog_start(client->clock, hfi_tick_due, client, &client->watchdog, error);
    if (status == HF_OK)
        status = hfi_dispatcher_start(o->dispatch == HF_DISPATCH_CALLER, &client->dispatcher, error);
    if (status == HF_OK)
        status = hfi_pool_open(&pool, &ops, client, client->clock, &client->log, o->lazy, &client->pool, error);
    if (status == HF_OK &&
        !hfi_pool_subscribe(client->pool, client->identity.channel, HFI_CHANNEL_SIZE))
        status = hfi_fail(error, HF_NOMEM, "", "no memory for a client");
    return status;
}

/* Ends all threads and connections; the memory stays for leases that are still out. False: a key of ours may still be
 * at the server, because an answer did not come, or the release of a token was refused (keys_left_ns). */
static bool stop(hf_client *client)
{
    bool all = true;
    hfi_aside_stop(client);
    hfi_observers_stop(client);
    hfi_waits_end(client->lock_waits);
    if (client->pool != NULL)
        all = hfi_pool_close(client->pool, hfi_after_ms(hfi_now(client->clock), client->close_ms));
    hfi_retire_stop(client);
    hfi_table_forget(client);
    hfi_watchdog_stop(client->watchdog);
    hfi_dispatcher_stop(client->dispatcher);
    hfi_handle_free_cached(client);
    hfi_retire_free_cached(client);
    hfi_embedded_leave(client->embedded);
    client->watchdog = NULL;
    client->embedded = NULL;
    return all && hfi_now(client->clock) >= atomic_load(&client->keys_left_ns);
}

static hf_status open_client(const char *uri, const hf_client_options *given, hf_client **client_out, hf_error *error)
{
    struct hfi_settings settings;
    if (client_out == NULL)
        return hfi_fail(error, HF_INVALID, "", "the place for the client is NULL");
    *client_out = NULL;
    hf_status status = hfi_settings_read(&settings, uri != NULL ? uri : secure_getenv("HOLDFAST_URL"), given, error);
    hf_client *client = NULL;
    unsigned char random[16];
    if (status == HF_OK && !hfi_random(random, sizeof random))
        status = hfi_random_fail(error, "a client");
    if (status == HF_OK) {
        client = make(&settings.options, random);
        status = client == NULL ? hfi_fail(error, HF_NOMEM, "", "no memory for a client") : start(client, &settings, error);
    }
    hfi_settings_done(&settings);
    if (status != HF_OK && client != NULL) {
        atomic_store(&client->closing, true);
        (void)stop(client);
        hfi_client_unref(client);
    } else if (status == HF_OK) {
        *client_out = client;
    }
    return status;
}

hf_status hf_client_open(const char *uri, const hf_client_options *options, hf_client **client, hf_error *error)
{
    hf_status status =
        hfi_thread_shield() ? open_client(uri, options, client, error) : refuse_in_log(error);
    hfi_thread_unshield();
    return status;
}

/* `last_time`: no call is under way any more. */
static void end_lock(struct hfi_lock *lock, void *last_time)
{
    struct hfi_step step;
    int64_t now = hfi_lock_enter(lock);
    hfi_step_init(&step, now, 0);
    hfi_entry_refuse_all(&lock->entry, HF_CLOSED, &step);
    hfi_entry_lost(&lock->entry, HF_REASON_CLOSED, &step);
    hfi_lock_perform(lock, &step, NULL);
    if (lock->shared != NULL)
        hfi_shared_wake(lock->shared);
    hfi_retire_hasten(lock, *(bool *)last_time, now);
    hfi_mutex_unlock(lock->mutex);
}

/* Waiting calls are woken and see `closing`; running loaders are waited for. */
static void wait_for_calls(hf_client *client)
{
    bool last_time = false;
    for (;;) {
        uint32_t epoch = hfi_park_epoch(&client->left);
        if (atomic_load(&client->calls) == 0)
            break;
        hfi_table_each(client, end_lock, &last_time);
        hfi_borrow_end(client->pool);
        hfi_pool_hurry(client->pool, hfi_after_ms(hfi_now(client->clock), client->close_ms));
        (void)hfi_park_wait(&client->left, epoch, hfi_after_ms(hfi_now(client->clock), 100));
    }
    hfi_mutex_lock(&client->time_mutex); /* until the hfi_client_leave() that woke us has let go of it */
    hfi_mutex_unlock(&client->time_mutex);
}

static hf_status close_forked(hf_client *client, hf_error *error)
{
    hfi_pool_forked(client->pool);
    hfi_dispatcher_forked(client->dispatcher);
    hfi_embedded_leave(client->embedded);
    return hfi_fail(error, HF_FORKED, "the parent's client lives on", "the client belongs to the parent process");
}

static hf_status close_client(hf_client *client, hf_error *error)
{
    if (client == NULL)
        return HF_OK;
    if (hfi_client_is_forked(client))
        return close_forked(client, error);
    if (hfi_callback_is_inside(client))
        return hfi_fail(error, HF_INVALID, "close it from another thread, or after the callback",
                        "hf_client_close was called inside a callback, loader or visit of this client");
    if (atomic_exchange(&client->closing, true))
        return hfi_fail(error, HF_CLOSED, "", "the client is closed already");
    HFI_PERTURB("closing-to-wait");
    hfi_aside_close(client);
    wait_for_calls(client);
    bool last_time = true;
    hfi_table_each(client, end_lock, &last_time);
    bool all = stop(client);
    hfi_client_unref(client);
    return all ? HF_OK
               : hfi_fail(error, HF_UNKNOWN, "they end by themselves after their lease",
                          "the server did not confirm that all leases were given back");
}

hf_status hf_client_close(hf_client *client, hf_error *error)
{
    hf_status status = hfi_thread_shield() ? close_client(client, error) : refuse_in_log(error);
    hfi_thread_unshield();
    return status;
}

int hf_client_fd(hf_client *client)
{
    return client == NULL || hfi_client_is_forked(client) ? -1 : hfi_dispatcher_fd(client->dispatcher);
}

size_t hf_client_dispatch(hf_client *client)
{
    if (hfi_client_enter(client, NULL) != HF_OK)
        return 0;
    size_t ran = client->has_dispatcher_thread ? 0 : hfi_dispatcher_run(client->dispatcher);
    hfi_client_leave(client);
    return ran;
}
