/* SPDX-License-Identifier: MIT */
/* callbacks_test.c - every call of the API inside every kind of callback, also while the client is being closed: the
 * call is answered, or refused with a message, and nothing hangs. */
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <holdfast/redis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum place { EVENT, DISPATCH, LOADER, INFO, LIST, CHECK, LOG, PLACES };
static const char *const places[PLACES] = {"event", "dispatch", "loader", "info", "list", "check", "log"};

struct cell { /* one call in one place */
    _Atomic(bool) ready; /* for the log, which may write a line at any time */
    struct fixture *f;
    enum place place;
    const struct call *call;
    bool while_closing;
    hf_client *client;
    hf_lease *lost, *held; /* of `lost` the events are; nobody but the call looks after `held` */
    hf_cancel *cancel;
    hf_conn *conn;
    hf_value *value;
    _Atomic(bool) inside, go, over, closed;
    hf_status status, close_status;
    hf_error error;
    pthread_t thread, closing;
};

struct call {
    const char *name;
    hf_status (*make)(struct cell *cell, hf_error *error);
    hf_status open, closing, in_log; /* what it answers */
};

/* ---- the calls ---- */

static hf_status take(struct cell *cell, hf_error *error)
{
    hf_lease *lease;
    hf_status status = hf_lock_acquire(cell->client, "free", NULL, &lease, error);
    return status == HF_OK ? hf_lease_release(lease, error) : status;
}

static hf_status take_all(struct cell *cell, hf_error *error)
{
    static const char *const names[] = {"free", "free too"};
    hf_lease *lease;
    hf_status status = hf_multilock_acquire(cell->client, names, 2, NULL, &lease, error);
    return status == HF_OK ? hf_lease_release(lease, error) : status;
}

static hf_status wait_for_all(struct cell *cell, hf_error *error)
{
    static const char *const names[] = {"free", "theirs"};
    hf_lease *lease;
    return hf_multilock_acquire(cell->client, names, 2, HF_LOCK(.wait_ms = cell->while_closing ? HF_FOREVER : 20), &lease, error);
}

static hf_status wait_for(struct cell *cell, hf_error *error)
{
    hf_lease *lease;
    return hf_lock_acquire(cell->client, "theirs", HF_LOCK(.wait_ms = cell->while_closing ? HF_FOREVER : 20), &lease, error);
}

static hf_status start_and_take(struct cell *cell, hf_error *error)
{
    hf_pending *pending;
    hf_lease *lease;
    hf_status status = hf_lock_acquire_start(cell->client, "theirs", HF_LOCK(.wait_ms = HF_FOREVER), NULL, NULL, &pending, error);
    return status == HF_OK ? hf_pending_take(pending, &lease, error) : status;
}

static hf_status release(struct cell *cell, hf_error *error)
{
    hf_lease *lease = cell->held;
    cell->held = NULL;
    return hf_lease_release(lease, error);
}

static hf_status post_release(struct cell *cell, hf_error *error)
{
    hf_lease *lease = cell->held;
    cell->held = NULL;
    return hf_lease_post_release(lease, error);
}

static hf_status verify(struct cell *cell, hf_error *error)
{
    return hf_lease_verify(cell->held, error);
}

static hf_status bind(struct cell *cell, hf_error *error)
{
    return hf_lease_bind(cell->held, error);
}

static hf_status unbind(struct cell *cell, hf_error *error)
{
    return hf_lease_unbind(cell->held, error);
}

static hf_status read_lease(struct cell *cell, hf_error *error)
{
    (void)error;
    (void)hf_lease_is_valid(cell->held);
    (void)hf_lease_remaining_ms(cell->held);
    bool ok = hf_lease_fence(cell->held) > 0 && hf_lease_event_fd(cell->held) >= 0;
    return ok && hf_lease_name(cell->held)[0] != 0 && hf_reason_text(hf_lease_reason(cell->held)) != NULL ? HF_OK : HF_INTERNAL;
}

static hf_status give(hf_loading *loading, void *arg)
{
    (void)arg;
    return hf_loading_set(loading, "x", 1);
}

static hf_status fetch(struct cell *cell, hf_error *error)
{
    hf_value *value;
    hf_status status = hf_fetch(cell->client, "inner", HF_FETCH(.load = give), &value, error);
    hf_value_free(value);
    return status;
}

static hf_status forget(struct cell *cell, hf_error *error)
{
    return hf_fetch_forget(cell->client, "inner", error);
}

static hf_status free_value(struct cell *cell, hf_error *error)
{
    (void)error;
    hf_value_free(cell->value);
    cell->value = NULL;
    return HF_OK;
}

static hf_status command(struct cell *cell, hf_error *error)
{
    redisReply *reply;
    hf_status status = hf_command(cell->client, &reply, error, "PING");
    if (status == HF_OK)
        freeReplyObject(reply);
    return status;
}

static hf_status borrow(struct cell *cell, hf_error *error)
{
    hf_conn *conn;
    hf_status status = hf_conn_borrow(cell->client, 1000, &conn, error);
    hf_conn_return(conn);
    return status;
}

static hf_status give_conn_back(struct cell *cell, hf_error *error)
{
    (void)error;
    hf_conn_return(cell->conn);
    cell->conn = NULL;
    return HF_OK;
}

static hf_status discard_conn(struct cell *cell, hf_error *error)
{
    (void)error;
    hf_conn_discard(cell->conn);
    cell->conn = NULL;
    return HF_OK;
}

static bool see_holder(const hf_holder *holder, void *arg)
{
    (void)holder;
    (void)arg;
    return true;
}

static bool see_finding(const hf_finding *finding, void *arg)
{
    (void)finding;
    (void)arg;
    return true;
}

static hf_status info(struct cell *cell, hf_error *error)
{
    return hf_lock_info(cell->client, "theirs", see_holder, NULL, error);
}

static hf_status list(struct cell *cell, hf_error *error)
{
    return hf_lock_list(cell->client, NULL, see_holder, NULL, error);
}

static bool see_waiter(const hf_waiter *waiter, void *arg)
{
    (void)waiter;
    (void)arg;
    return true;
}

static hf_status waiters(struct cell *cell, hf_error *error)
{
    return hf_lock_waiters(cell->client, "theirs", see_waiter, NULL, error);
}

static hf_status check(struct cell *cell, hf_error *error)
{
    return hf_client_check(cell->client, see_finding, NULL, error);
}

static hf_status break_lock(struct cell *cell, hf_error *error)
{
    return hf_lock_break(cell->client, "nobodys", NULL, error);
}

static hf_status count(struct cell *cell, hf_error *error)
{
    (void)error;
    hf_stats stats;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    hf_client_stats(cell->client, &stats);
    bool ok = hf_client_metrics(cell->client, out) == HF_OK && hf_client_dump(cell->client, out) == HF_OK;
    (void)fclose(out);
    free(text);
    return ok ? HF_OK : HF_INTERNAL;
}

static hf_status dispatch(struct cell *cell, hf_error *error)
{
    (void)error;
    (void)hf_client_fd(cell->client);
    (void)hf_client_dispatch(cell->client);
    return HF_OK;
}

static hf_status make_cancel(struct cell *cell, hf_error *error)
{
    hf_cancel *cancel;
    hf_status status = hf_cancel_open(cell->client, &cancel, error);
    hf_cancel_close(cancel);
    return status;
}

static hf_status use_cancel(struct cell *cell, hf_error *error)
{
    (void)error;
    hf_cancel_fire(cell->cancel);
    hf_cancel_reset(cell->cancel);
    hf_cancel_close(cell->cancel);
    cell->cancel = NULL;
    return HF_OK;
}

static hf_status close_client(struct cell *cell, hf_error *error)
{
    return hf_client_close(cell->client, error);
}

static hf_status open_another(struct cell *cell, hf_error *error)
{
    hf_client *another;
    hf_status status = hf_client_open(hft_server_url(cell->f->server), NULL, &another, error);
    if (status == HF_OK)
        status = hf_client_close(another, error);
    return status;
}

static void see_leader(hf_observer *observer, const hf_leader *leader, void *arg)
{
    (void)observer;
    (void)leader;
    (void)arg;
}

static hf_status observe(struct cell *cell, hf_error *error)
{
    hf_observer *observer;
    hf_status status = hf_election_observe(cell->client, "theirs", see_leader, NULL, &observer, error);
    hf_observer_close(observer);
    return status;
}

static const struct call calls[] = {
    {"hf_lock_acquire", take, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_lock_acquire, waiting", wait_for, HF_TIMEOUT, HF_CLOSED, HF_INVALID},
    {"hf_multilock_acquire", take_all, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_multilock_acquire, waiting", wait_for_all, HF_TIMEOUT, HF_CLOSED, HF_INVALID},
    {"hf_lock_acquire_start and hf_pending_take", start_and_take, HF_CANCELED, HF_CLOSED, HF_INVALID},
    {"hf_lease_release of another", release, HF_OK, HF_CLOSED, HF_OK},
    {"hf_lease_post_release of another", post_release, HF_OK, HF_CLOSED, HF_OK},
    {"hf_lease_verify", verify, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_lease_bind", bind, HF_OK, HF_CLOSED, HF_OK},
    {"hf_lease_unbind", unbind, HF_OK, HF_CLOSED, HF_OK},
    {"hf_lease_is_valid and their like", read_lease, HF_OK, HF_OK, HF_OK},
    {"hf_fetch", fetch, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_fetch_forget", forget, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_value_free", free_value, HF_OK, HF_OK, HF_OK},
    {"hf_command", command, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_conn_borrow", borrow, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_conn_return", give_conn_back, HF_OK, HF_OK, HF_OK},
    {"hf_conn_discard", discard_conn, HF_OK, HF_OK, HF_OK},
    {"hf_lock_info", info, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_lock_list", list, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_lock_waiters", waiters, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_lock_break", break_lock, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_election_observe, hf_observer_close", observe, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_client_check", check, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_client_stats, _metrics, _dump", count, HF_OK, HF_OK, HF_OK},
    {"hf_client_fd, _dispatch", dispatch, HF_OK, HF_OK, HF_OK},
    {"hf_cancel_open", make_cancel, HF_OK, HF_CLOSED, HF_INVALID},
    {"hf_cancel_fire, _reset, _close", use_cancel, HF_OK, HF_OK, HF_OK},
    {"hf_client_close", close_client, HF_INVALID, HF_INVALID, HF_INVALID},
    {"hf_client_open of another", open_another, HF_OK, HF_OK, HF_INVALID},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* ---- the places ---- */

static void until(const struct cell *cell, const _Atomic(bool) *flag, const char *what)
{
    int64_t until_ms = hft_boottime_ms() + 20000;
    while (!atomic_load(flag)) {
        if (hft_boottime_ms() > until_ms) {
            (void)fprintf(stderr, "%s in %s%s: %s hangs\n", cell->call->name, places[cell->place],
                          cell->while_closing ? " while closing" : "", what);
            _exit(1);
        }
        (void)sched_yield();
    }
}

/* In the callback; the first time counts. */
static void visit_cell(struct cell *cell)
{
    if (atomic_exchange(&cell->inside, true))
        return;
    until(cell, &cell->go, "the test itself");
    cell->error.message[0] = 0;
    cell->status = cell->call->make(cell, &cell->error);
    atomic_store(&cell->over, true);
}

static void in_event(hf_lease *lease, const hf_event *event, void *arg)
{
    (void)lease;
    (void)event;
    visit_cell(arg);
}

static void ignore_event(hf_lease *lease, const hf_event *event, void *arg)
{
    (void)lease;
    (void)event;
    (void)arg;
}

static hf_status in_loader(hf_loading *loading, void *arg)
{
    visit_cell(arg);
    return hf_loading_set(loading, "x", 1);
}

static bool in_holder(const hf_holder *holder, void *arg)
{
    (void)holder;
    visit_cell(arg);
    return true;
}

static bool in_finding(const hf_finding *finding, void *arg)
{
    (void)finding;
    visit_cell(arg);
    return true;
}

static void in_log(hf_log_level level, const char *line, void *arg)
{
    struct cell *cell = arg;
    (void)level;
    (void)line;
    if (cell->place == LOG && atomic_load(&cell->ready))
        visit_cell(cell);
}

/* A program's thread: it does what brings the callback. */
static void *bring_it(void *arg)
{
    struct cell *cell = arg;
    hf_client *client = cell->client;
    hf_value *value;
    switch (cell->place) {
    case EVENT:
    case DISPATCH:
        (void)hf_lease_verify(cell->lost, NULL); /* the key is gone */
        if (cell->place == DISPATCH)
            (void)hf_client_dispatch(client);
        break;
    case LOADER:
        if (hf_fetch(client, "outer", HF_FETCH(.load = in_loader, .arg = cell), &value, NULL) == HF_OK)
            hf_value_free(value);
        break;
    case INFO:
        (void)hf_lock_info(client, "theirs", in_holder, cell, NULL);
        break;
    case LIST:
        (void)hf_lock_list(client, NULL, in_holder, cell, NULL);
        break;
    case CHECK:
        (void)hf_client_check(client, in_finding, cell, NULL);
        break;
    case LOG: /* the connections are lost, and the listener says so */
    case PLACES:
        break;
    }
    until(cell, &cell->over, "the call");
    return NULL;
}

static void *close_it(void *arg)
{
    struct cell *cell = arg;
    cell->close_status = hf_client_close(cell->client, NULL);
    atomic_store(&cell->closed, true);
    return NULL;
}

static void prepare(struct cell *cell)
{
    struct fixture *f = cell->f;
    freeReplyObject(hft_server_ask(f->server, "DEL outer inner"));
    cell->client = hft_client(f->server, HF_CLIENT(.log = in_log, .log_arg = cell,
                                                   .dispatch = cell->place == DISPATCH ? HF_DISPATCH_CALLER : HF_DISPATCH_THREAD));
    /* A close that was answered UNKNOWN left both names to their keys' end. */
    cell->lost = must_take(f, cell->client, "lost", HF_LOCK(.wait_ms = HF_FOREVER, .on_event = in_event, .arg = cell));
    cell->held = must_take(f, cell->client, "held", HF_LOCK(.wait_ms = HF_FOREVER, .on_event = ignore_event));
    assert_int_equal(hf_conn_borrow(cell->client, 1000, &cell->conn, NULL), HF_OK);
    assert_int_equal(hf_fetch(cell->client, "value", HF_FETCH(.load = give), &cell->value, NULL), HF_OK);
    if (cell->place == EVENT || cell->place == DISPATCH)
        assert_int_equal(hft_server_ask_integer(f->server, "DEL hf:{lost}"), 1);
    assert_int_equal(hf_cancel_open(cell->client, &cell->cancel, NULL), HF_OK);
    atomic_store(&cell->ready, true);
}

static void clear_up(struct cell *cell)
{
    hf_cancel *cancel = cell->cancel;
    atomic_store(&cell->ready, false);
    cell->cancel = NULL;
    hf_cancel_close(cancel);
    hf_value_free(cell->value);
    hf_conn_return(cell->conn);
    (void)hf_lease_release(cell->held, NULL);
    (void)hf_lease_release(cell->lost, NULL);
}

static bool is_closing(struct cell *cell)
{
    hf_cancel *cancel;
    hf_status status = hf_cancel_open(cell->client, &cancel, NULL);
    hf_cancel_close(cancel);
    return status == HF_CLOSED;
}

/* NULL: as it should be. */
static const char *judge(const struct cell *cell)
{
    hf_status expected = cell->place == LOG      ? cell->call->in_log
                         : cell->while_closing ? cell->call->closing
                                               : cell->call->open;
    if (cell->place == LOG && cell->while_closing && expected == HF_OK)
        expected = cell->call->closing;
    if (cell->status != expected)
        return hf_status_name(expected);
    if (cell->status != HF_OK && cell->error.message[0] == 0)
        return "words";
    return cell->close_status == HF_OK || cell->close_status == HF_UNKNOWN ? NULL : "a clean close";
}

static const char *run_cell(struct fixture *f, const struct call *call, enum place place, bool while_closing, char *out)
{
    struct cell cell = {.f = f, .place = place, .call = call, .while_closing = while_closing};
    prepare(&cell);
    (void)pthread_create(&cell.thread, NULL, bring_it, &cell);
    if (place == LOG)
        freeReplyObject(hft_server_ask(f->server, "CLIENT KILL TYPE normal SKIPME yes"));
    until(&cell, &cell.inside, "the callback");
    if (while_closing) {
        (void)pthread_create(&cell.closing, NULL, close_it, &cell);
        HFT_UNTIL_TRUE(is_closing(&cell) && !hf_lease_is_valid(cell.held)); /* what is out has been given back */
    }
    atomic_store(&cell.go, true);
    until(&cell, &cell.over, "the call");
    (void)pthread_join(cell.thread, NULL);
    if (!while_closing) /* with what is still held */
        (void)pthread_create(&cell.closing, NULL, close_it, &cell);
    until(&cell, &cell.closed, "close");
    (void)pthread_join(cell.closing, NULL);
    clear_up(&cell);
    (void)sprintf(out, " %8.8s", hf_status_name(cell.status) + 3);
    return judge(&cell);
}

static void every_call_in_every_callback(struct fixture *f, bool while_closing)
{
    int wrong = 0;
    hf_lease *theirs = must_take(f, f->b, "theirs", NULL);
    char line[16 * (PLACES + 3)], *at = line + sprintf(line, "%-32s", while_closing ? "while closing" : "");
    for (int place = 0; place < PLACES; place++)
        at += sprintf(at, " %8s", places[place]);
    print_message("%s\n", line);
    for (int i = 0; i < CALLS; i++) {
        at = line + sprintf(line, "%-32s", calls[i].name);
        for (int place = 0; place < PLACES; place++) {
            const char *missed = run_cell(f, &calls[i], (enum place)place, while_closing, at);
            at += strlen(at);
            if (missed != NULL)
                print_message("%s in %s: %s, not %s\n", calls[i].name, places[place], at - 8, missed);
            wrong += missed != NULL;
        }
        print_message("%s\n", line);
    }
    assert_int_equal(hf_lease_release(theirs, NULL), HF_OK);
    assert_int_equal(wrong, 0);
}

static void every_call_inside_every_callback_is_answered_or_refused(void **state)
{
    every_call_in_every_callback(*state, false);
}

static void every_call_inside_every_callback_is_answered_or_refused_while_the_client_is_closed(void **state)
{
    every_call_in_every_callback(*state, true);
}

/* ---- callbacks of a closing client that release each other's leases ---- */

enum { LEASES = 32 };

static struct {
    pthread_mutex_t mutex;
    hf_lease *leases[LEASES];
    int released;
} ring = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void release_another(hf_lease *lease, const hf_event *event, void *arg)
{
    hf_lease *another = NULL;
    (void)arg;
    if (event->kind != HF_EVENT_LOST)
        return;
    (void)pthread_mutex_lock(&ring.mutex);
    for (int i = 0; i < LEASES && another == NULL; i++)
        if (ring.leases[i] != NULL && ring.leases[i] != lease) {
            another = ring.leases[i];
            ring.leases[i] = NULL;
        }
    (void)pthread_mutex_unlock(&ring.mutex);
    if (another != NULL && hf_lease_release(another, NULL) == HF_CLOSED)
        ring.released++;
}

static void close_ends_though_each_callback_releases_another_lease(void **state)
{
    enum { ROUNDS = 20 };
    struct fixture *f = *state;
    char name[24];
    for (int round = 0; round < ROUNDS; round++) {
        struct cell cell = {.f = f, .call = &calls[2], .while_closing = true};
        cell.client = hft_client(f->server, NULL);
        ring.released = 0;
        for (int i = 0; i < LEASES; i++) {
            (void)snprintf(name, sizeof name, "ring%d", i);
            ring.leases[i] = must_take(f, cell.client, name, HF_LOCK(.on_event = release_another));
        }
        (void)pthread_create(&cell.closing, NULL, close_it, &cell);
        until(&cell, &cell.closed, "close");
        (void)pthread_join(cell.closing, NULL);
        assert_int_equal(cell.close_status, HF_OK);
        assert_true(ring.released > 0);
        for (int i = 0; i < LEASES; i++)
            (void)hf_lease_release(ring.leases[i], NULL);
    }
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(close_ends_though_each_callback_releases_another_lease),
        TEST(every_call_inside_every_callback_is_answered_or_refused),
        TEST(every_call_inside_every_callback_is_answered_or_refused_while_the_client_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
