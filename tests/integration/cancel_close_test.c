/* SPDX-License-Identifier: MIT */
/* cancel_close_test.c - how a wait is ended from outside: hf_cancel, hf_client_close, fork. */
#include "tests/support/pair.h"
#include "tests/support/canceled.h"
#include "tests/support/fds.h"
#include "tests/support/takers.h"

#include <holdfast/redis.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static hf_cancel *must_make_cancel(hf_client *client)
{
    hf_cancel *cancel;
    assert_int_equal(hf_cancel_open(client, &cancel, NULL), HF_OK);
    return cancel;
}

static void a_fired_cancel_ends_all_waits_that_share_it_and_later_ones(void **state)
{
    enum { WAITERS = 6 };
    struct fixture *f = *state;
    struct hft_taker takers[WAITERS], other;
    hf_lease *lease = must_take(f, f->a, "wait", NULL);
    hf_cancel *cancel = must_make_cancel(f->b);
    for (int i = 0; i < WAITERS; i++)
        hft_take(&takers[i], f->b, i % 2 == 0 ? "wait" : "wait2",
                 HF_LOCK(.wait_ms = HF_FOREVER, .lease_ms = 60000, .cancel = cancel));
    hft_take(&other, f->b, "wait", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "wait") == 1);
    hf_cancel_fire(cancel);
    hf_cancel_fire(cancel);
    int canceled = 0, got = 0;
    for (int i = 0; i < WAITERS; i++) { /* "wait2" is free: one of its waiters has it, and the rest wait on it */
        hf_status status = hft_taken(&takers[i]);
        canceled += status == HF_CANCELED;
        got += status == HF_OK;
        if (status == HF_OK)
            assert_int_equal(hf_lease_release(takers[i].lease, NULL), HF_OK);
    }
    assert_int_equal(canceled + got, WAITERS);
    assert_true(got <= WAITERS / 2);
    assert_true(canceled >= WAITERS / 2);
    /* Sticky: a later wait does not begin. */
    int64_t began_ms = hft_boottime_ms();
    hf_lease *none;
    assert_int_equal(hf_lock_acquire(f->b, "wait", HF_LOCK(.wait_ms = HF_FOREVER, .cancel = cancel), &none, &f->error),
                     HF_CANCELED);
    assert_true(hft_boottime_ms() - began_ms < 10000);
    assert_non_null(strstr(f->error.message, "wait"));
    /* Made as new, and those who did not share it are still there. */
    hf_cancel_reset(cancel);
    assert_int_equal(hf_lock_acquire(f->b, "wait", HF_LOCK(.wait_ms = 20, .cancel = cancel), &none, NULL), HF_TIMEOUT);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&other), HF_OK);
    assert_int_equal(hf_lease_release(other.lease, NULL), HF_OK);
    hf_cancel_close(cancel);
    hf_cancel_close(NULL);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    hf_stats stats;
    hf_client_stats(f->b, &stats);
    assert_int_equal(stats.canceled, canceled + 1);
}

static hf_cancel *cancel_in_handler;

static void fire_it(int number)
{
    (void)number;
    hf_cancel_fire(cancel_in_handler);
}

static void a_signal_handler_may_fire_it(void **state)
{
    struct fixture *f = *state;
    struct sigaction action = {.sa_handler = fire_it};
    struct hft_taker taker;
    HFT_NEEDS_PROMPT_SIGNALS();
    (void)sigaction(SIGUSR1, &action, NULL);
    hf_lease *lease = must_take(f, f->a, "handler", NULL);
    for (int i = 0; i < 10; i++) {
        cancel_in_handler = must_make_cancel(f->b);
        hft_take(&taker, f->b, "handler", HF_LOCK(.wait_ms = HF_FOREVER, .cancel = cancel_in_handler));
        HFT_UNTIL_TRUE(hft_queued(f->server, "handler") == 1);
        (void)pthread_kill(taker.thread, SIGUSR1);
        assert_int_equal(hft_taken(&taker), HF_CANCELED);
        hf_cancel_close(cancel_in_handler);
        HFT_UNTIL_TRUE(hft_queued(f->server, "handler") == 0);
    }
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void ignore_it(int number)
{
    (void)number;
}

static void signals_alone_do_not_end_a_wait(void **state)
{
    struct fixture *f = *state;
    struct sigaction action = {.sa_handler = ignore_it};
    struct hft_taker taker;
    (void)sigaction(SIGUSR1, &action, NULL);
    hf_lease *lease = must_take(f, f->a, "eintr", NULL);
    hft_take(&taker, f->b, "eintr", HF_LOCK(.wait_ms = 200));
    while (!atomic_load(&taker.done)) {
        (void)pthread_kill(taker.thread, SIGUSR1);
        (void)poll(NULL, 0, 2);
    }
    assert_int_equal(hft_taken(&taker), HF_TIMEOUT);
    assert_true(taker.got_ms - taker.began_ms >= 200);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void a_canceled_requester_promotes_a_waiter_and_keeps_its_place(void **state)
{
    struct fixture *f = *state;
    struct hft_taker first, second, later;
    hf_client *third = hft_client(f->server, NULL);
    hf_cancel *cancel = must_make_cancel(f->b);
    hf_lease *lease = must_take(f, f->a, "place", NULL);
    hft_take(&first, f->b, "place", HF_LOCK(.wait_ms = HF_FOREVER, .cancel = cancel));
    HFT_UNTIL_TRUE(hft_queued(f->server, "place") == 1);
    hft_take(&second, f->b, "place", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_waiting_here(f->b, "place") == 2);
    hft_take(&later, third, "place", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "place") == 2);
    hf_cancel_fire(cancel);
    assert_int_equal(hft_taken(&first), HF_CANCELED);
    assert_int_equal(hft_queued(f->server, "place"), 2);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&second), HF_OK);
    assert_false(atomic_load(&later.done));
    assert_int_equal(hf_lease_release(second.lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&later), HF_OK);
    assert_int_equal(hf_lease_release(later.lease, NULL), HF_OK);
    hf_cancel_close(cancel);
    assert_int_equal(hf_client_close(third, NULL), HF_OK);
}

static _Atomic(int) losses;

static void count_loss(hf_lease *lease, const hf_event *event, void *arg)
{
    (void)lease;
    (void)arg;
    if (event->kind == HF_EVENT_LOST && event->reason == HF_REASON_CLOSED)
        atomic_fetch_add(&losses, 1);
}

static void close_wakes_waiters_loses_leases_and_gives_all_keys_back(void **state)
{
    enum { LEASES = 40 };
    struct fixture *f = *state;
    struct hft_taker waiting, local;
    hf_lease *leases[LEASES];
    hf_client *client = hft_client(f->server, NULL);
    hf_lease *theirs = must_take(f, f->b, "theirs", NULL);
    char name[24];
    atomic_store(&losses, 0);
    for (int i = 0; i < LEASES; i++) {
        (void)snprintf(name, sizeof name, "mine%d", i);
        leases[i] = must_take(f, client, name, HF_LOCK(.on_event = count_loss, .event_fd = true));
    }
    hf_lease *lingering = must_take(f, client, "lingering", HF_LOCK(.linger_ms = 60000));
    assert_int_equal(hf_lease_release(lingering, NULL), HF_OK);
    hft_take(&waiting, client, "theirs", HF_LOCK(.wait_ms = HF_FOREVER));
    hft_take(&local, client, "mine0", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "theirs") == 1);
    assert_int_equal(hf_client_close(client, &f->error), HF_OK);
    assert_int_equal(hft_taken(&waiting), HF_CLOSED);
    assert_int_equal(hft_taken(&local), HF_CLOSED);
    assert_int_equal(atomic_load(&losses), LEASES);
    assert_int_equal(hft_queued(f->server, "theirs"), 0);
    assert_int_equal(hft_lock_keys(f->server), 1);
    for (int i = 0; i < LEASES; i++) {
        struct pollfd in = {hf_lease_event_fd(leases[i]), POLLIN, 0};
        assert_false(hf_lease_is_valid(leases[i]));
        assert_int_equal(hf_lease_reason(leases[i]), HF_REASON_CLOSED);
        assert_int_equal(hf_lease_state(leases[i]), HF_LEASE_LOST);
        assert_int_equal(poll(&in, 1, 0), 1);
        assert_true(hf_lease_fence(leases[i]) > 0);
        assert_int_equal(hf_lease_verify(leases[i], NULL), HF_CLOSED);
        assert_int_equal(hf_lease_bind(leases[i], NULL), HF_CLOSED);
        (void)snprintf(name, sizeof name, "mine%d", i);
        assert_string_equal(hf_lease_name(leases[i]), name);
        hf_status status = i % 2 == 0 ? hf_lease_release(leases[i], &f->error) : hf_lease_post_release(leases[i], &f->error);
        assert_int_equal(status, HF_CLOSED);
    }
    assert_int_equal(hf_lease_release(theirs, NULL), HF_OK);
    assert_int_equal(hf_client_close(NULL, NULL), HF_OK);
}

static hf_status closed_inside;

static void close_inside(hf_lease *lease, const hf_event *event, void *arg)
{
    (void)lease;
    if (event->kind == HF_EVENT_LOST) {
        closed_inside = hf_client_close(arg, NULL);
        atomic_fetch_add(&losses, 1);
    }
}

static hf_status close_in_loader(hf_loading *loading, void *arg)
{
    closed_inside = hf_client_close(arg, NULL);
    return hf_loading_set(loading, "x", 1);
}

static void close_inside_a_callback_or_loader_is_invalid_and_closes_nothing(void **state)
{
    struct fixture *f = *state;
    hf_value *value;
    atomic_store(&losses, 0);
    closed_inside = HF_OK;
    hf_lease *lease = must_take(f, f->a, "inside", HF_LOCK(.lease_ms = 300, .on_event = close_inside, .arg = f->a));
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{inside}"));
    HFT_UNTIL_TRUE(atomic_load(&losses) == 1);
    assert_int_equal(closed_inside, HF_INVALID);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    closed_inside = HF_OK;
    assert_int_equal(hf_fetch(f->a, "page", HF_FETCH(.load = close_in_loader, .arg = f->a), &value, NULL), HF_OK);
    assert_int_equal(closed_inside, HF_INVALID);
    hf_value_free(value);
    lease = must_take(f, f->a, "inside", NULL);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void *ask_in_vain(void *arg)
{
    redisReply *reply;
    return hf_command(arg, &reply, NULL, "GET x") == HF_OK ? NULL : arg;
}

static void close_does_not_speak_of_a_command_that_leaves_no_lock(void **state)
{
    struct fixture *f = *state;
    hf_client *client = hft_client(f->server, HF_CLIENT(.close_ms = 300));
    redisReply *reply;
    hf_stats before, stats;
    pthread_t thread;
    void *failed;
    assert_int_equal(hf_command(client, &reply, &f->error, "PING"), HF_OK);
    freeReplyObject(reply);
    hf_client_stats(client, &before);
    hft_server_freeze(f->server);
    assert_int_equal(pthread_create(&thread, NULL, ask_in_vain, client), 0);
    do
        hf_client_stats(client, &stats);
    while (stats.remote_commands == before.remote_commands);
    hf_status status = hf_client_close(client, &f->error);
    assert_int_equal(pthread_join(thread, &failed), 0);
    hft_server_thaw(f->server);
    assert_non_null(failed);
    assert_int_equal(status, HF_OK);
}

static void close_while_threads_work_ends_them_all_and_leaves_nothing(void **state)
{
    enum { THREADS = 8, ROUNDS = 15 };
    struct fixture *f = *state;
    for (int round = 0; round < ROUNDS; round++) {
        struct hft_taker takers[THREADS];
        hf_client *client = hft_client(f->server, NULL);
        for (int i = 0; i < THREADS; i++)
            hft_take(&takers[i], client, i % 2 == 0 ? "busy" : "busier", HF_LOCK(.wait_ms = HF_FOREVER));
        hf_stats stats;
        do
            hf_client_stats(client, &stats);
        while (stats.waiting + stats.held < THREADS);
        assert_int_equal(hf_client_close(client, &f->error), HF_OK);
        for (int i = 0; i < THREADS; i++) {
            hf_status status = hft_taken(&takers[i]);
            assert_true(status == HF_OK || status == HF_CLOSED);
            if (status == HF_OK)
                assert_int_equal(hf_lease_release(takers[i].lease, NULL), HF_CLOSED);
        }
        assert_int_equal(hft_lock_keys(f->server), 0);
    }
}

static void close_while_the_server_is_silent_ends_in_time_and_says_so(void **state)
{
    struct fixture *f = *state;
    hf_client *client = hft_client(f->server, HF_CLIENT(.close_ms = 200));
    hf_lease *lease = must_take(f, client, "silent", NULL);
    hft_server_freeze(f->server);
    int64_t began_ms = hft_boottime_ms();
    hf_status status = hf_client_close(client, &f->error);
    int64_t took_ms = hft_boottime_ms() - began_ms;
    hft_server_thaw(f->server);
    assert_int_equal(status, HF_UNKNOWN);
    assert_true(took_ms < 5000);
    assert_int_equal(hf_lease_release(lease, NULL), HF_CLOSED);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0); /* the release was in the server's socket */
}

/* The error is NOREPLICAS, as of a primary that has lost its replica; the release comes before the close, or from
 * it. */
static void close_tells_of_a_release_that_the_server_refuses(void **state)
{
    struct fixture *f = *state;
    for (int released = 0; released < 2; released++) {
        hf_client *client = hft_client(f->server, NULL);
        hf_lease *lease = must_take(f, client, "kept", NULL);
        freeReplyObject(hft_server_ask(f->server, "CONFIG SET min-replicas-to-write 1"));
        if (released)
            assert_int_equal(hf_lease_release(lease, &f->error), HF_UNKNOWN);
        assert_int_equal(hf_client_close(client, &f->error), HF_UNKNOWN);
        freeReplyObject(hft_server_ask(f->server, "CONFIG SET min-replicas-to-write 0"));
        assert_int_equal(hft_server_ask_integer(f->server, "DEL hf:{kept}"), 1);
        if (!released)
            assert_int_equal(hf_lease_release(lease, NULL), HF_CLOSED);
    }
}

static void opening_and_closing_again_and_again_leaves_no_descriptor_and_no_thread(void **state)
{
    struct fixture *f = calloc(1, sizeof *f); /* without clients that are still dialling */
    (void)state;
    f->server = hft_server_start(NULL);
    const char *wish = getenv("HOLDFAST_TEST_CYCLES");
    int cycles = wish != NULL ? atoi(wish) : 200, descriptors = hft_open_descriptors(), threads = hft_running_threads();
    for (int i = 0; i < cycles; i++) {
        hf_client *client = hft_client(f->server, HF_CLIENT(.lazy = i % 3 == 2));
        hf_lease *lease = NULL;
        if (i % 2 == 0)
            lease = must_take(f, client, "cycle", HF_LOCK(.wait_ms = 10000, .event_fd = true));
        if (i % 4 == 0)
            assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
        assert_int_equal(hf_client_close(client, &f->error), HF_OK);
        if (i % 4 == 2)
            assert_int_equal(hf_lease_release(lease, NULL), HF_CLOSED);
    }
    assert_int_equal(hft_open_descriptors(), descriptors);
    assert_true(hft_comes_down_to(hft_running_threads, threads));
    assert_int_equal(hft_lock_keys(f->server), 0);
    hft_server_stop(f->server);
    free(f);
}

static int live_in_the_child(hf_client *client, hf_lease *lease, hf_cancel *cancel)
{
    hf_error error;
    hf_lease *other;
    hf_value *value;
    hf_cancel *second;
    if (hf_lease_is_valid(lease) || hf_lease_remaining_ms(lease) != 0 || hf_lease_state(lease) != HF_LEASE_LOST)
        return 1;
    if (hf_lease_reason(lease) != HF_REASON_FORKED)
        return 2;
    if (hf_lock_acquire(client, "x", NULL, &other, &error) != HF_FORKED || other != NULL || error.message[0] == 0)
        return 3;
    if (hf_fetch(client, "x", HF_FETCH(.load = close_in_loader), &value, &error) != HF_FORKED)
        return 4;
    if (hf_lease_verify(lease, &error) != HF_FORKED || hf_lease_bind(lease, &error) != HF_FORKED)
        return 5;
    if (hf_cancel_open(client, &second, &error) != HF_FORKED || hf_lock_break(client, "x", NULL, &error) != HF_FORKED)
        return 6;
    hf_cancel_fire(cancel);
    hf_cancel_close(cancel);
    if (hf_lease_release(lease, &error) != HF_FORKED)
        return 7;
    if (hf_client_dump(client, stderr) != HF_FORKED || hf_client_metrics(client, stderr) != HF_FORKED)
        return 8;
    if (hf_client_close(client, &error) != HF_FORKED)
        return 9;
    return 0;
}

static void a_fork_child_owns_nothing_and_disturbs_nothing(void **state)
{
    struct fixture *f = *state;
    hf_stats before, after;
    hf_lease *lease = must_take(f, f->a, "parent", HF_LOCK(.lease_ms = 2000));
    hf_cancel *cancel = must_make_cancel(f->a);
    hf_client_stats(f->a, &before);
    for (int way = 0; way < 3; way++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0 && way == 0)
            _exit(live_in_the_child(f->a, lease, cancel));
        if (child == 0 && way == 1)
            _exit(hf_lease_post_release(lease, NULL) == HF_FORKED && hf_client_close(f->a, NULL) == HF_FORKED ? 0 : 1);
        if (child == 0) {
            (void)hf_lease_is_valid(lease);
            _exit(0);
        }
        (void)waitpid(child, &status, 0);
        assert_int_equal(status, 0);
    }
    /* Over the same connections. A shorter lease would have them made anew when a busy machine is silent for a while. */
    HFT_WHILE_RENEWED(f->a, 3, hf_lease_is_valid(lease));
    if (hf_lease_verify(lease, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
    hf_client_stats(f->a, &after);
    assert_int_equal(after.reconnects, before.reconnects);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    hf_lease *none;
    hf_lease *theirs = must_take(f, f->b, "parent", NULL);
    assert_int_equal(hf_lock_acquire(f->a, "parent", HF_LOCK(.wait_ms = 30, .cancel = cancel), &none, NULL), HF_TIMEOUT);
    assert_int_equal(hf_lease_release(theirs, NULL), HF_OK);
    hf_cancel_close(cancel);
}

static void a_fork_childs_copies_of_descriptors_go_with_its_close(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "copies", NULL);
    hf_client *loop = hft_client(f->server, HF_CLIENT(.dispatch = HF_DISPATCH_CALLER));
    int loop_fd = hf_client_fd(loop);
    pid_t child = fork();
    if (child == 0) {
        int before = hft_open_descriptors();
        (void)hf_client_close(loop, NULL);
        if (fcntl(loop_fd, F_GETFD) != -1)
            _exit(2);
        (void)hf_client_close(f->a, NULL);
        (void)hf_client_close(f->b, NULL);
        /* Each client has two kinds of lanes, the reserved one, a subscriber. */
        _exit(hft_open_descriptors() <= before - 2 * 4 ? 0 : 1);
    }
    int status = -1;
    (void)waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(hf_client_close(loop, NULL), HF_OK);
    assert_int_equal(hf_lease_verify(lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void release(void *arg)
{
    (void)hf_lease_release(arg, NULL);
}

static void take(void *arg)
{
    hf_lease *lease;
    (void)hf_pending_take(arg, &lease, NULL);
}

static void a_canceled_thread_that_gives_a_handle_back_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    hft_until_connected(f);
    int before = hft_open_descriptors();
    hf_client *client = hft_client(f->server, NULL);
    hf_pending *pending;
    hf_lease *lease = must_take(f, client, "x", HF_LOCK(.event_fd = true));
    assert_int_equal(hf_lock_acquire_start(client, "y", NULL, NULL, NULL, &pending, NULL), HF_OK);
    HFT_UNTIL_TRUE(hf_pending_is_done(pending));
    assert_true(hf_pending_fd(pending) >= 0);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    assert_true(hft_call_canceled(release, lease));
    assert_true(hft_call_canceled(take, pending));
    assert_true(hft_comes_down_to(hft_open_descriptors, before));
}

struct slow_look { /* a dump to a file that takes its time */
    hf_client *client;
    _Atomic(bool) inside, goes_on, closed;
    bool closed_inside; /* the looker writes it */
    hf_status closed_with;
};

static ssize_t write_slowly(void *arg, const char *text, size_t size)
{
    struct slow_look *look = arg;
    int64_t began_ms = hft_boottime_ms();
    (void)text;
    bool is_first = !atomic_exchange(&look->inside, true);
    while (!atomic_load(&look->goes_on))
        hft_pause(began_ms + 20000, "the other thread closes");
    while (is_first && hft_boottime_ms() < began_ms + 200 && !atomic_load(&look->closed)) /* for what must not come */
        hft_pause(began_ms + 20000, "close");
    look->closed_inside = look->closed_inside || atomic_load(&look->closed);
    return (ssize_t)size;
}

static void *close_beside(void *arg)
{
    struct slow_look *look = arg;
    look->closed_with = hf_client_close(look->client, NULL);
    atomic_store(&look->closed, true);
    return NULL;
}

static void *look_slowly(void *arg)
{
    FILE *file = fopencookie(arg, "w", (cookie_io_functions_t){.write = write_slowly});
    struct slow_look *look = arg;
    setvbuf(file, NULL, _IONBF, 0);
    (void)hf_client_dump(look->client, file);
    (void)fclose(file);
    return NULL;
}

static void close_waits_for_a_look(void **state)
{
    struct fixture *f = *state;
    struct slow_look look = {.client = hft_client(f->server, NULL)};
    pthread_t looker, closer;
    hf_lease *none;
    assert_int_equal(pthread_create(&looker, NULL, look_slowly, &look), 0);
    HFT_UNTIL_TRUE(atomic_load(&look.inside));
    assert_int_equal(pthread_create(&closer, NULL, close_beside, &look), 0);
    HFT_UNTIL_TRUE(atomic_load(&look.closed) || hf_lock_acquire(look.client, "", NULL, &none, NULL) == HF_CLOSED);
    atomic_store(&look.goes_on, true);
    assert_int_equal(pthread_join(looker, NULL), 0);
    assert_int_equal(pthread_join(closer, NULL), 0);
    assert_false(look.closed_inside);
    assert_int_equal(look.closed_with, HF_OK);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_fired_cancel_ends_all_waits_that_share_it_and_later_ones),
        TEST(a_signal_handler_may_fire_it),
        TEST(signals_alone_do_not_end_a_wait),
        TEST(a_canceled_requester_promotes_a_waiter_and_keeps_its_place),
        TEST(close_wakes_waiters_loses_leases_and_gives_all_keys_back),
        TEST(close_inside_a_callback_or_loader_is_invalid_and_closes_nothing),
        TEST(close_does_not_speak_of_a_command_that_leaves_no_lock),
        TEST(close_while_threads_work_ends_them_all_and_leaves_nothing),
        TEST(close_while_the_server_is_silent_ends_in_time_and_says_so),
        TEST(close_tells_of_a_release_that_the_server_refuses),
        cmocka_unit_test(opening_and_closing_again_and_again_leaves_no_descriptor_and_no_thread),
        TEST(a_fork_child_owns_nothing_and_disturbs_nothing),
        TEST(a_fork_childs_copies_of_descriptors_go_with_its_close),
        TEST(a_canceled_thread_that_gives_a_handle_back_leaves_nothing),
        TEST(close_waits_for_a_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
