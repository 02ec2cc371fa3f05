/* SPDX-License-Identifier: MIT */
/* calls.c - see calls.h. */
#include "tests/fault/calls.h"

#include <holdfast/redis.h>

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(struct hft_place *place)
{
    static char name[32];
    (void)snprintf(name, sizeof name, "call:%d", ++place->number);
    return name;
}

static hf_status take(struct hft_place *place, const char *name, int64_t wait_ms)
{
    return hf_lock_acquire(place->client, name,
                           HF_LOCK(.lease_ms = 400, .wait_ms = wait_ms, .event_fd = place->number % 2 == 0),
                           &place->lease, &place->error);
}

static bool hold(struct hft_place *place)
{
    return take(place, name_of(place), 3000) == HF_OK;
}

static hf_status call_open(struct hft_place *place)
{
    return hf_client_open(hft_server_url(place->server),
                          HF_CLIENT(.connect_ms = 300, .command_ms = 200, .close_ms = 200,
                                    .client_name = "opened", .key_template = "x:{%s}", .min_connections = 1),
                          &place->opened, &place->error);
}

static hf_status call_open_lazy(struct hft_place *place)
{
    hf_status status = hf_client_open(hft_server_url(place->server), HF_CLIENT(.lazy = true, .close_ms = 100),
                                      &place->opened, &place->error);
    if (status == HF_OK)
        status = hf_lock_acquire(place->opened, "lazy", HF_LOCK(.lease_ms = 200, .wait_ms = 100),
                                 &place->lease, &place->error);
    return status;
}

static bool open_one(struct hft_place *place)
{
    return hf_client_open(hft_server_url(place->server), HF_CLIENT(.close_ms = 200), &place->opened,
                          &place->error) == HF_OK;
}

static hf_status call_close(struct hft_place *place)
{
    hf_status status = hf_client_close(place->opened, &place->error);
    place->opened = NULL;
    return status;
}

static hf_status call_try(struct hft_place *place)
{
    return take(place, name_of(place), 0);
}

static hf_status call_wait(struct hft_place *place)
{
    return take(place, name_of(place), 500);
}

static hf_status call_busy(struct hft_place *place)
{
    return take(place, "taken", 0);
}

static hf_status call_wait_in_vain(struct hft_place *place)
{
    return hf_lock_acquire(place->client, "taken", HF_LOCK(.wait_ms = 30, .cancel = place->cancel),
                           &place->lease, &place->error);
}

/* It is decided whatever fails, at the latest when wait_ms ends. */
static hf_status call_start(struct hft_place *place)
{
    hf_pending *pending;
    hf_status status = hf_lock_acquire_start(place->client, name_of(place), HF_LOCK(.lease_ms = 400, .wait_ms = 500), NULL, NULL,
                                             &pending, &place->error);
    if (status != HF_OK)
        return status;
    int fd = hf_pending_fd(pending);
    for (int64_t until = hft_true_ns() + 5000 * HFT_NS_PER_MS; !hf_pending_is_done(pending) && hft_true_ns() < until;)
        (void)poll(&(struct pollfd){fd, POLLIN, 0}, fd >= 0, 1); /* which may be the call that fails */
    bool done = hf_pending_is_done(pending);
    status = hf_pending_take(pending, &place->lease, &place->error);
    return done ? status : HF_INTERNAL;
}

static hf_status call_start_and_cancel(struct hft_place *place)
{
    hf_pending *pending;
    hf_status status = hf_lock_acquire_start(place->client, "taken", HF_LOCK(.wait_ms = HF_FOREVER), NULL, NULL, &pending,
                                             &place->error);
    if (status == HF_OK)
        status = hf_pending_take(pending, &place->lease, &place->error);
    return status == HF_CANCELED ? HF_OK : status; /* as it must be, since another client holds the lock */
}

static hf_status call_permits(struct hft_place *place)
{
    return hf_semaphore_acquire(place->client, name_of(place), 3, 2, HF_LOCK(.lease_ms = 400, .wait_ms = 500), &place->lease,
                                &place->error);
}

static bool hold_permits(struct hft_place *place)
{
    return hf_semaphore_acquire(place->client, name_of(place), 3, 2, HF_LOCK(.lease_ms = 400, .wait_ms = 3000), &place->lease,
                                &place->error) == HF_OK &&
           hf_lease_permits(place->lease) == 2;
}

static hf_status call_start_permits(struct hft_place *place)
{
    hf_pending *pending;
    hf_status status = hf_semaphore_acquire_start(place->client, name_of(place), 3, 1, HF_LOCK(.lease_ms = 400, .wait_ms = 500),
                                                  NULL, NULL, &pending, &place->error);
    if (status == HF_OK)
        status = hf_pending_take(pending, &place->lease, &place->error);
    return status == HF_CANCELED ? HF_OK : status; /* no answer yet */
}

static hf_status take_two(struct hft_place *place, int64_t wait_ms)
{
    char other[40];
    const char *const names[] = {name_of(place), other};
    (void)snprintf(other, sizeof other, "%s+", names[0]);
    return hf_multilock_acquire(place->client, names, 2,
                                HF_LOCK(.lease_ms = 400, .wait_ms = wait_ms, .event_fd = place->number % 2 == 0),
                                &place->lease, &place->error);
}

static hf_status call_try_two(struct hft_place *place)
{
    return take_two(place, 0);
}

static hf_status call_wait_for_two(struct hft_place *place)
{
    return take_two(place, 500);
}

static bool hold_two(struct hft_place *place)
{
    return take_two(place, 3000) == HF_OK;
}

static hf_status call_read_fence(struct hft_place *place)
{
    return hf_lease_fence_of(place->lease, hf_lease_name(place->lease)) > 0 ? HF_OK : HF_INTERNAL;
}

static hf_status call_release(struct hft_place *place)
{
    hf_lease *lease = place->lease;
    place->lease = NULL;
    return hf_lease_release(lease, &place->error);
}

static hf_status call_post_release(struct hft_place *place)
{
    hf_lease *lease = place->lease;
    place->lease = NULL;
    return hf_lease_post_release(lease, &place->error);
}

static hf_status call_verify(struct hft_place *place)
{
    return hf_lease_verify(place->lease, &place->error);
}

static hf_status call_downgrade(struct hft_place *place)
{
    return hf_lease_downgrade(place->lease, &place->error);
}

static hf_status call_event_fd(struct hft_place *place)
{
    return hf_lease_event_fd(place->lease) >= 0 ? HF_OK : HF_NOMEM;
}

static hf_status call_bind(struct hft_place *place)
{
    return hf_lease_bind(place->lease, &place->error);
}

static hf_status call_parse(struct hft_place *place)
{
    hf_lock_options options = *HF_LOCK(0);
    hf_status status = hf_lock_options_parse(&options, "lease_ms", "2500", &place->error);
    return status == HF_OK ? hf_lock_options_parse(&options, "owner_label", "job", &place->error) : status;
}

static hf_status call_unbind(struct hft_place *place)
{
    return hf_lease_unbind(place->lease, &place->error);
}

static bool see_holder(const hf_holder *holder, void *arg)
{
    (void)holder;
    (void)arg;
    return true;
}

static hf_status call_info(struct hft_place *place)
{
    return hf_lock_info(place->client, "taken", see_holder, NULL, &place->error);
}

static hf_status call_list(struct hft_place *place)
{
    return hf_lock_list(place->client, "*", see_holder, NULL, &place->error);
}

static bool see_waiter(const hf_waiter *waiter, void *arg)
{
    (void)waiter;
    (void)arg;
    return true;
}

static hf_status call_waiters(struct hft_place *place)
{
    return hf_lock_waiters(place->client, "nobodys", see_waiter, NULL, &place->error);
}

static hf_status call_break(struct hft_place *place)
{
    bool had;
    return hf_lock_break(place->other, hf_lease_name(place->lease), &had, &place->error);
}

static hf_status call_break_now(struct hft_place *place)
{
    bool had;
    return hf_lock_break_now(place->other, hf_lease_name(place->lease), &had, &place->error);
}

static hf_status call_permits_info(struct hft_place *place)
{
    return hf_semaphore_info(place->client, hf_lease_name(place->lease), see_holder, NULL, &place->error);
}

static hf_status call_permits_list(struct hft_place *place)
{
    return hf_semaphore_list(place->client, "*", see_holder, NULL, &place->error);
}

static hf_status call_permits_waiters(struct hft_place *place)
{
    return hf_semaphore_waiters(place->client, "nobodys", see_waiter, NULL, &place->error);
}

static hf_status call_permits_break(struct hft_place *place)
{
    bool had;
    return hf_semaphore_break(place->other, hf_lease_name(place->lease), &had, &place->error);
}

static hf_status call_permits_break_now(struct hft_place *place)
{
    bool had;
    return hf_semaphore_break_now(place->other, hf_lease_name(place->lease), &had, &place->error);
}

static bool see_finding(const hf_finding *finding, void *arg)
{
    (void)finding;
    (void)arg;
    return true;
}

static hf_status call_check(struct hft_place *place)
{
    return hf_client_check(place->client, see_finding, NULL, &place->error);
}

static hf_status call_stats(struct hft_place *place)
{
    hf_stats stats;
    hf_client_stats(place->client, &stats);
    return HF_OK;
}

static hf_status call_metrics(struct hft_place *place)
{
    const hf_client *all[] = {place->client};
    hf_status status = hf_clients_metrics(all, 1, place->out);
    return status == HF_OK ? hf_client_metrics(place->client, place->out) : status;
}

static hf_status call_dump(struct hft_place *place)
{
    return hf_client_dump(place->client, place->out);
}

static hf_status call_cancel(struct hft_place *place)
{
    hf_cancel *cancel;
    hf_status status = hf_cancel_open(place->client, &cancel, &place->error);
    if (status != HF_OK)
        return status;
    hf_cancel_fire(cancel);
    hf_cancel_reset(cancel);
    hf_cancel_close(cancel);
    return HF_OK;
}

static void see_leader(hf_observer *observer, const hf_leader *leader, void *arg)
{
    (void)observer;
    (void)leader;
    (void)arg;
}

static hf_status call_observe(struct hft_place *place)
{
    hf_observer *observer;
    hf_status status = hf_election_observe(place->client, "taken", see_leader, NULL, &observer, &place->error);
    hf_observer_close(observer);
    return status;
}

static hf_status call_command(struct hft_place *place)
{
    struct redisReply *reply;
    hf_status status = hf_command(place->client, &reply, &place->error, "ECHO %s", "abc");
    if (status == HF_OK)
        freeReplyObject(reply);
    return status;
}

static hf_status call_borrow(struct hft_place *place)
{
    struct hf_conn *conn;
    hf_status status = hf_conn_borrow(place->client, 300, &conn, &place->error);
    if (status != HF_OK)
        return status;
    void *reply = redisCommand(hf_conn_context(conn), "PING");
    if (reply != NULL)
        freeReplyObject(reply);
    if (place->number++ % 2 == 0)
        hf_conn_return(conn);
    else
        hf_conn_discard(conn);
    return HF_OK;
}

static hf_status load_copy(hf_loading *loading, void *arg)
{
    (void)arg;
    hf_loading_set_ttl(loading, 300);
    return hf_loading_set(loading, hf_loading_key(loading), 5);
}

static hf_status load_given(hf_loading *loading, void *arg)
{
    (void)arg;
    if (hf_loading_lease(loading) != NULL && !hf_loading_is_wanted(loading))
        return hf_loading_fail(loading, ECANCELED, "nobody wants it");
    char *data = strdup("given");
    if (data == NULL)
        return hf_loading_fail(loading, ENOMEM, "no memory for a page");
    return hf_loading_give(loading, data, 5, free);
}

static hf_status load_nothing(hf_loading *loading, void *arg)
{
    (void)arg;
    return hf_loading_absent(loading);
}

/* What is old is still good. */
static hf_status load_tagged(hf_loading *loading, void *arg)
{
    (void)arg;
    hf_status status = hf_loading_tag(loading, "tag");
    if (status != HF_OK)
        return status;
    return hf_loading_old(loading, NULL) != NULL ? hf_loading_same(loading) : hf_loading_set(loading, "tagged", 6);
}

static hf_status fetch_by(struct hft_place *place, hf_load_fn *load)
{
    char key[40];
    hf_value *value;
    (void)snprintf(key, sizeof key, "page:%s", name_of(place));
    hf_status status = HF_OK;
    for (int i = 0; i < 2 && status == HF_OK; i++) { /* a miss, then a hit */
        status = hf_fetch(
            place->client, key,
            HF_FETCH(.load = load, .ttl_ms = 500, .negative_ttl_ms = 300, .lease_ms = 300, .wait_ms = 300),
            &value, &place->error);
        if (status == HF_OK)
            hf_value_free(value);
    }
    return status;
}

static hf_status call_fetch(struct hft_place *place)
{
    return fetch_by(place, load_copy);
}

static hf_status call_fetch_given(struct hft_place *place)
{
    return fetch_by(place, load_given);
}

static hf_status call_fetch_absent(struct hft_place *place)
{
    return fetch_by(place, load_nothing);
}

static void *copy_text(void *arg)
{
    return strdup(arg);
}

static hf_status call_fetch_aside(struct hft_place *place)
{
    char key[40];
    hf_value *value;
    (void)snprintf(key, sizeof key, "page:%s", name_of(place));
    hf_status status = hf_fetch(place->client, key,
                                HF_FETCH(.load = load_copy, .arg = key, .copy_arg = copy_text, .free_arg = free, .ttl_ms = 500,
                                         .lease_ms = 300, .wait_ms = 300, .where = HF_LOAD_ASIDE),
                                &value, &place->error);
    if (status == HF_OK)
        hf_value_free(value);
    return status;
}

static hf_status call_fetch_many(struct hft_place *place)
{
    char keys[3][48];
    hf_fetch_item items[3] = {{0}};
    for (int i = 0; i < 3; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "page:%s:%d", name_of(place), i);
        items[i].key = keys[i];
    }
    hf_status status = hf_fetch_many(place->client, items, 3,
                                     HF_FETCH(.load = load_copy, .ttl_ms = 500, .lease_ms = 300, .wait_ms = 300, .near_ms = 400),
                                     &place->error);
    for (int i = 0; i < 3; i++)
        hf_value_free(items[i].value);
    return status;
}

/* Calls that only read: they cannot fail, so a fault must not break them either. */
static hf_status call_look(struct hft_place *place)
{
    const hf_lease *lease = place->lease;
    bool well = !hf_lease_is_valid(lease) || (hf_lease_remaining_ms(lease) >= 0 && hf_lease_fence(lease) > 0);
    well = well && hf_lease_state(lease) <= HF_LEASE_LOST && hf_lease_name(lease)[0] != 0 &&
           hf_reason_text(hf_lease_reason(lease)) != NULL && hf_status_text(HF_OK) != NULL &&
           hf_status_name(HF_OK) != NULL && hf_version()[0] != 0 && hf_status_count() > 0 &&
           hf_client_options_init(NULL, 0) > 0 && hf_lock_options_init(NULL, 0) > 0 && hf_fetch_options_init(NULL, 0) > 0;
    return well ? HF_OK : HF_INTERNAL;
}

static hf_status call_dispatch(struct hft_place *place)
{
    hf_status status =
        hf_client_open(hft_server_url(place->server),
                       HF_CLIENT(.dispatch = HF_DISPATCH_CALLER, .connect_ms = 300, .close_ms = 200),
                       &place->opened, &place->error);
    if (status == HF_OK && (hf_client_fd(place->opened) < 0 || hf_client_dispatch(place->opened) != 0 ||
                            hf_client_lease_ms(place->opened) != 10000))
        status = HF_INTERNAL;
    return status;
}

static hf_status call_command_argv(struct hft_place *place)
{
    static const char *const words[] = {"ECHO", "a\0b"};
    static const size_t sizes[] = {4, 3};
    struct redisReply *reply;
    hf_status status = hf_command_argv(place->client, &reply, &place->error, 2, words, sizes);
    if (status == HF_OK)
        freeReplyObject(reply);
    return status;
}

static hf_status call_fetch_same(struct hft_place *place)
{
    hf_value *value;
    const char *key = name_of(place);
    hf_status status = HF_OK;
    for (int i = 0; i < 2 && status == HF_OK; i++) {
        const hf_fetch_options *options = HF_FETCH(.load = load_tagged, .ttl_ms = 1, .stale_ms = 300, .lease_ms = 300, .wait_ms = 300);
        status = hf_fetch(place->client, key, options, &value, &place->error);
        if (status == HF_OK)
            hf_value_free(value);
    }
    return status;
}

static hf_status call_forget_tag(struct hft_place *place)
{
    size_t forgotten;
    return hf_fetch_forget_tag(place->client, "tag", &forgotten, &place->error);
}

static hf_status call_forget(struct hft_place *place)
{
    return hf_fetch_forget(place->client, "page", &place->error);
}

const struct hft_public_call hft_public_calls[] = {{"open", NULL, call_open},
                                                   {"open lazy", NULL, call_open_lazy},
                                                   {"close", open_one, call_close},
                                                   {"try", NULL, call_try},
                                                   {"wait", NULL, call_wait},
                                                   {"busy", NULL, call_busy},
                                                   {"wait in vain", NULL, call_wait_in_vain},
                                                   {"start", NULL, call_start},
                                                   {"start and cancel", NULL, call_start_and_cancel},
                                                   {"permits", NULL, call_permits},
                                                   {"start permits", NULL, call_start_permits},
                                                   {"release permits", hold_permits, call_release},
                                                   {"verify permits", hold_permits, call_verify},
                                                   {"try two", NULL, call_try_two},
                                                   {"wait for two", NULL, call_wait_for_two},
                                                   {"fence_of", hold_two, call_read_fence},
                                                   {"release two", hold_two, call_release},
                                                   {"post_release two", hold_two, call_post_release},
                                                   {"verify two", hold_two, call_verify},
                                                   {"release", hold, call_release},
                                                   {"post_release", hold, call_post_release},
                                                   {"verify", hold, call_verify},
                                                   {"downgrade", hold, call_downgrade},
                                                   {"event_fd", hold, call_event_fd},
                                                   {"bind", hold, call_bind},
                                                   {"unbind", hold, call_unbind},
                                                   {"parse", hold, call_parse},
                                                   {"info", NULL, call_info},
                                                   {"list", NULL, call_list},
                                                   {"waiters", NULL, call_waiters},
                                                   {"break", hold, call_break},
                                                   {"break now", hold, call_break_now},
                                                   {"info permits", hold_permits, call_permits_info},
                                                   {"list permits", NULL, call_permits_list},
                                                   {"waiters of permits", NULL, call_permits_waiters},
                                                   {"break permits", hold_permits, call_permits_break},
                                                   {"break permits now", hold_permits, call_permits_break_now},
                                                   {"check", NULL, call_check},
                                                   {"stats", NULL, call_stats},
                                                   {"metrics", NULL, call_metrics},
                                                   {"dump", NULL, call_dump},
                                                   {"cancel", NULL, call_cancel},
                                                   {"observe", NULL, call_observe},
                                                   {"command", NULL, call_command},
                                                   {"borrow", NULL, call_borrow},
                                                   {"command_argv", NULL, call_command_argv},
                                                   {"look", hold, call_look},
                                                   {"dispatch", NULL, call_dispatch},
                                                   {"fetch given", NULL, call_fetch_given},
                                                   {"fetch absent", NULL, call_fetch_absent},
                                                   {"fetch aside", NULL, call_fetch_aside},
                                                   {"fetch", NULL, call_fetch},
                                                   {"fetch many", NULL, call_fetch_many},
                                                   {"fetch same", NULL, call_fetch_same},
                                                   {"forget", NULL, call_forget},
                                                   {"forget tag", NULL, call_forget_tag},
                                                   {.name = NULL}};

static void warm_up(hf_client *client) /* the lanes, a borrowed connection */
{
    struct hf_conn *conn;
    for (int i = 0; i < 8; i++) {
        char name[48];
        hf_lease *lease;
        (void)snprintf(name, sizeof name, "warm:%d", i);
        if (hf_lock_acquire(client, name, HF_LOCK(.wait_ms = 3000), &lease, NULL) == HF_OK)
            (void)hf_lease_release(lease, NULL);
    }
    if (hf_conn_borrow(client, 3000, &conn, NULL) == HF_OK)
        hf_conn_return(conn);
}

void hft_place_open(struct hft_place *place)
{
    *place = (struct hft_place){.server = hft_server_start(NULL)};
    place->client = hft_open(hft_server_url(place->server), HF_CLIENT(.command_ms = 200, .connect_ms = 500));
    place->other = hft_open(hft_server_url(place->server), NULL);
    place->out = fopen("/dev/null", "we");

    if (place->out == NULL || hf_cancel_open(place->client, &place->cancel, NULL) != HF_OK ||
        hf_lock_acquire(place->other, "taken", HF_LOCK(.lease_ms = 60000), &place->taken, NULL) != HF_OK)
        exit(1);
    warm_up(place->client);
}

void hft_place_tidy(struct hft_place *place)
{
    if (place->lease != NULL)
        (void)hf_lease_release(place->lease, NULL);
    place->lease = NULL;
    if (place->opened != NULL)
        (void)hf_client_close(place->opened, NULL);
    place->opened = NULL;
}

void hft_place_close(struct hft_place *place)
{
    hft_place_tidy(place);
    if (place->taken != NULL)
        (void)hf_lease_release(place->taken, NULL);
    hf_cancel_close(place->cancel);
    (void)hf_client_close(place->client, NULL);
    (void)hf_client_close(place->other, NULL);
    (void)fclose(place->out);
    hft_server_stop(place->server);
}
