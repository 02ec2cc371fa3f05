/* SPDX-License-Identifier: MIT */
/* pending_test.c - hf_lock_acquire_start and hf_pending_take: when a pending is decided, and what becomes of it. */
#include "tests/support/pair.h"
#include "tests/support/canceled.h"
#include "tests/support/fds.h"
#include "tests/support/takers.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct note { /* of one pending: what `done` saw */
    hf_pending *pending;
    _Atomic(int) dones;
    bool takes; /* inside `done` */
    hf_status status;
    hf_lease *lease;
    hf_error error;
    int order; /* of its grant; 0: none */
};

static int granted; /* so many were, in the dispatching thread */

static void note_done(hf_pending *pending, void *arg)
{
    struct note *note = arg;
    if (pending != note->pending || !hf_pending_is_done(pending))
        note->status = HF_INTERNAL;
    if (note->takes) {
        note->status = hf_pending_take(pending, &note->lease, &note->error);
        note->pending = NULL;
        if (note->status == HF_OK)
            note->order = ++granted;
    }
    atomic_fetch_add(&note->dones, 1);
}

static void must_start(struct fixture *f, hf_client *client, const char *name, const hf_lock_options *options,
                       hf_done_fn *done, struct note *note)
{
    if (hf_lock_acquire_start(client, name, options, done, note, &note->pending, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
}

/* The loop of a program that has nothing else to do. */
static void dispatch_until(hf_client *client, const _Atomic(int) *dones)
{
    struct pollfd in = {hf_client_fd(client), POLLIN, 0};
    int64_t until_ms = hft_boottime_ms() + 20000;
    while (atomic_load(dones) == 0) {
        assert_true(hft_boottime_ms() < until_ms);
        (void)poll(&in, 1, 1000);
        (void)hf_client_dispatch(client);
    }
}

static hf_status take(struct note *note)
{
    hf_pending *pending = note->pending;
    note->pending = NULL;
    return note->status = hf_pending_take(pending, &note->lease, &note->error);
}

static hf_client *open_loop(const struct fixture *f)
{
    return hft_client(f->server, HF_CLIENT(.dispatch = HF_DISPATCH_CALLER));
}

static void a_free_lock_is_begun_decided_told_and_taken(void **state)
{
    struct fixture *f = *state;
    struct note note = {.pending = NULL};
    hf_lease *other;
    hf_client *loop = open_loop(f);
    must_start(f, loop, "free", HF_LOCK(.wait_ms = 5000), note_done, &note);
    assert_int_equal(atomic_load(&note.dones), 0);
    dispatch_until(loop, &note.dones);
    assert_int_equal(atomic_load(&note.dones), 1);
    assert_int_equal(take(&note), HF_OK);
    assert_true(hf_lease_is_valid(note.lease));
    assert_string_equal(hf_lease_name(note.lease), "free");
    assert_true(hf_lease_fence(note.lease) > 0);
    assert_int_equal(hft_lock_exists(f->server, "free"), 1);
    /* It belongs to no thread. */
    assert_int_equal(hf_lock_acquire(loop, "free", NULL, &other, NULL), HF_BUSY);
    assert_int_equal(hf_lease_bind(note.lease, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(loop, "free", NULL, &other, NULL), HF_DEADLOCK);
    assert_int_equal(hf_lease_post_release(note.lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    /* Had at once, from the lease that stays: told all the same, and not inside start. */
    other = must_take(f, loop, "lingers", HF_LOCK(.linger_ms = 60000));
    assert_int_equal(hf_lease_release(other, NULL), HF_OK);
    note = (struct note){.takes = true};
    must_start(f, loop, "lingers", NULL, note_done, &note);
    assert_true(hf_pending_is_done(note.pending));
    assert_int_equal(atomic_load(&note.dones), 0);
    assert_int_equal(hf_client_dispatch(loop), 1);
    assert_int_equal(note.status, HF_OK);
    assert_int_equal(hf_lease_release(note.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(loop, NULL), HF_OK);
}

static void what_cannot_be_begun_is_refused_at_once(void **state)
{
    struct fixture *f = *state;
    hf_pending *pending = (hf_pending *)f;
    hf_lease *lease;
    hf_cancel *cancel;
    assert_int_equal(hf_cancel_open(f->a, &cancel, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire_start(f->a, "x", HF_LOCK(.cancel = cancel), NULL, NULL, &pending, &f->error), HF_INVALID);
    assert_null(pending);
    assert_non_null(strstr(f->error.hint, "hf_pending_take"));
    assert_int_equal(hf_lock_acquire_start(f->a, "x", HF_LOCK(.reentrant = true), NULL, NULL, &pending, NULL), HF_INVALID);
    assert_int_equal(hf_lock_acquire_start(f->a, "", NULL, NULL, NULL, &pending, NULL), HF_INVALID);
    assert_int_equal(hf_lock_acquire_start(f->a, "x", HF_LOCK(.lease_ms = 1), NULL, NULL, &pending, NULL), HF_INVALID);
    assert_int_equal(hf_lock_acquire_start(f->a, "x", NULL, NULL, NULL, NULL, NULL), HF_INVALID);
    assert_int_equal(hf_lock_acquire_start(NULL, "x", NULL, NULL, NULL, &pending, NULL), HF_INVALID);
    assert_int_equal(hf_pending_take(NULL, &lease, NULL), HF_INVALID);
    assert_false(hf_pending_is_done(NULL));
    errno = 0;
    assert_int_equal(hf_pending_fd(NULL), -1);
    assert_int_equal(errno, EINVAL);
    hf_cancel_close(cancel);
    /* max_waiters counts them too. */
    hf_client *few = hft_client(f->server, HF_CLIENT(.max_waiters = 1));
    lease = must_take(f, f->a, "limit", NULL);
    struct note note = {.pending = NULL};
    must_start(f, few, "limit", HF_LOCK(.wait_ms = HF_FOREVER), NULL, &note);
    assert_int_equal(hf_lock_acquire_start(few, "limit", NULL, NULL, NULL, &pending, NULL), HF_LIMIT);
    assert_int_equal(hf_pending_take(note.pending, NULL, NULL), HF_INVALID); /* it is still there */
    assert_int_equal(take(&note), HF_CANCELED);
    assert_int_equal(hf_lock_acquire_start(few, "limit", NULL, NULL, NULL, &note.pending, NULL), HF_OK);
    HFT_UNTIL_TRUE(hf_pending_is_done(note.pending));
    assert_int_equal(take(&note), HF_BUSY);
    assert_int_equal(hf_client_close(few, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire_start(f->b, "gone", NULL, NULL, NULL, &note.pending, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(hf_pending_is_done(note.pending));
    assert_int_equal(take(&note), HF_OK);
    assert_int_equal(hf_lease_release(note.lease, NULL), HF_OK);
}

static void a_held_lock_is_busy_for_a_try_and_times_out_for_a_wait(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "held", NULL);
    hf_client *clients[] = {f->a, f->b};
    for (int i = 0; i < 2; i++) {
        struct note try = {.pending = NULL}, wait = {.pending = NULL};
        int64_t began_ms = hft_boottime_ms();
        must_start(f, clients[i], "held", NULL, note_done, &try);
        must_start(f, clients[i], "held", HF_LOCK(.wait_ms = 60), note_done, &wait);
        HFT_UNTIL_TRUE(atomic_load(&try.dones) == 1 && atomic_load(&wait.dones) == 1);
        assert_true(hft_boottime_ms() - began_ms >= 60);
        assert_int_equal(take(&try), HF_BUSY);
        assert_null(try.lease);
        assert_non_null(strstr(try.error.message, "held"));
        assert_int_equal(take(&wait), HF_TIMEOUT);
        assert_null(wait.lease);
        assert_int_equal(wait.error.status, HF_TIMEOUT);
        HFT_UNTIL_TRUE(hft_queued(f->server, "held") == 0);
        hf_stats stats;
        hf_client_stats(clients[i], &stats);
        assert_int_equal(stats.busy, 1);
        assert_int_equal(stats.timeouts, 1);
        assert_int_equal(stats.waiting, 0);
    }
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void take_before_the_end_is_a_cancel_and_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct note queued = {.pending = NULL}, asked = {.pending = NULL};
    hf_lease *lease = must_take(f, f->a, "cancel", NULL);
    must_start(f, f->b, "cancel", HF_LOCK(.wait_ms = HF_FOREVER), note_done, &queued);
    HFT_UNTIL_TRUE(hft_queued(f->server, "cancel") == 1);
    assert_false(hf_pending_is_done(queued.pending));
    assert_int_equal(take(&queued), HF_CANCELED);
    assert_null(queued.lease);
    HFT_UNTIL_TRUE(hft_queued(f->server, "cancel") == 0);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    /* Asked of a server that answers later: what it still grants is given back. */
    hft_server_freeze(f->server);
    must_start(f, f->b, "cancel", HF_LOCK(.wait_ms = HF_FOREVER), note_done, &asked);
    assert_int_equal(take(&asked), HF_CANCELED);
    hft_server_thaw(f->server);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    lease = must_take(f, f->a, "cancel", HF_LOCK(.wait_ms = 20000));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(atomic_load(&queued.dones) + atomic_load(&asked.dones), 0);
    hf_stats stats;
    hf_client_stats(f->b, &stats);
    assert_int_equal(stats.canceled, 2);
    assert_int_equal(stats.waiting, 0);
}

static void pendings_and_threads_get_it_in_the_order_of_their_arrival(void **state)
{
    struct fixture *f = *state;
    struct note first = {.pending = NULL}, third = {.pending = NULL}, far = {.pending = NULL};
    struct hft_taker second;
    hf_client *other = hft_client(f->server, NULL);
    hf_lease *lease = must_take(f, f->a, "order", NULL);
    must_start(f, f->b, "order", HF_LOCK(.wait_ms = HF_FOREVER), NULL, &first);
    HFT_UNTIL_TRUE(hft_queued(f->server, "order") == 1);
    must_start(f, other, "order", HF_LOCK(.wait_ms = HF_FOREVER), NULL, &far);
    HFT_UNTIL_TRUE(hft_queued(f->server, "order") == 2);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(hf_pending_is_done(first.pending));
    assert_int_equal(take(&first), HF_OK);
    assert_false(hf_pending_is_done(far.pending));
    assert_int_equal(hf_lease_release(first.lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(hf_pending_is_done(far.pending));
    assert_int_equal(take(&far), HF_OK);
    assert_int_equal(hf_lease_release(far.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(other, NULL), HF_OK);
    /* In one process. What is passed to a pending is its own at once, so nobody overtakes it. */
    lease = must_take(f, f->a, "order", HF_LOCK(.wait_ms = 20000));
    must_start(f, f->a, "order", HF_LOCK(.wait_ms = HF_FOREVER), NULL, &first);
    hft_take(&second, f->a, "order", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "order") == 2);
    must_start(f, f->a, "order", HF_LOCK(.wait_ms = HF_FOREVER), NULL, &third);
    int64_t fence = hf_lease_fence(lease);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_true(hf_pending_is_done(first.pending));
    assert_false(atomic_load(&second.done));
    assert_int_equal(take(&first), HF_OK);
    assert_true(hf_lease_fence(first.lease) > fence);
    fence = hf_lease_fence(first.lease);
    assert_int_equal(hf_lease_release(first.lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&second), HF_OK);
    assert_true(hf_lease_fence(second.lease) > fence);
    assert_false(hf_pending_is_done(third.pending));
    assert_int_equal(hf_lease_release(second.lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(hf_pending_is_done(third.pending));
    assert_int_equal(take(&third), HF_OK);
    assert_int_equal(hf_lease_release(third.lease, NULL), HF_OK);
}

static void what_was_granted_is_kept_and_renewed_until_it_is_taken(void **state)
{
    struct fixture *f = *state;
    struct note note = {.pending = NULL};
    must_start(f, f->a, "kept", HF_LOCK(.lease_ms = 900), NULL, &note);
    HFT_UNTIL_TRUE(hf_pending_is_done(note.pending));
    HFT_WHILE_RENEWED(f->a, 6, hft_lock_exists(f->server, "kept") == 1); /* two leases long */
    assert_int_equal(take(&note), HF_OK);
    assert_true(hf_lease_is_valid(note.lease));
    assert_int_equal(hf_lease_release(note.lease, NULL), HF_OK);
}

static _Atomic(int) events, at_risks;

static void count_event(hf_lease *lease, const hf_event *event, void *arg)
{
    (void)lease;
    (void)arg;
    atomic_fetch_add(&events, 1);
    if (event->kind == HF_EVENT_AT_RISK)
        atomic_fetch_add(&at_risks, 1);
}

static void what_is_lost_before_take_is_lost_and_nobody_is_told_of_it_twice(void **state)
{
    struct fixture *f = *state;
    struct note lost = {.pending = NULL}, ends = {.pending = NULL};
    hf_stats stats = {0};
    must_start(f, f->a, "lost", HF_LOCK(.lease_ms = 900, .on_event = count_event), NULL, &lost);
    HFT_UNTIL_TRUE(hf_pending_is_done(lost.pending));
    assert_int_equal(hft_server_ask_integer(f->server, "DEL hf:{lost}"), 1);
    HFT_UNTIL_TRUE((hf_client_stats(f->a, &stats), stats.lost == 1));
    assert_int_equal(take(&lost), HF_LOST);
    assert_null(lost.lease);
    assert_int_equal(lost.error.status, HF_LOST);
    assert_int_equal(hft_lock_keys(f->server), 0);
    assert_int_equal(atomic_load(&events), 0);
    hf_client_stats(f->a, &stats);
    assert_int_equal(stats.held, 0);
    /* An event of a lease that nobody has yet waits for take. */
    must_start(f, f->a, "ends", HF_LOCK(.max_hold_ms = 20000, .stop_ms = 19990, .lease_ms = 60000, .on_event = count_event),
               NULL, &ends);
    HFT_UNTIL_TRUE((hf_client_stats(f->a, &stats), stats.at_risk == 1));
    assert_int_equal(atomic_load(&events), 0);
    assert_int_equal(take(&ends), HF_OK);
    HFT_UNTIL_TRUE(atomic_load(&at_risks) == 1);
    assert_int_equal(hf_lease_release(ends.lease, NULL), HF_OK);
}

static void an_owner_is_compared_as_in_a_threads_acquire(void **state)
{
    struct fixture *f = *state;
    struct note first = {.pending = NULL}, again = {.pending = NULL};
    const hf_lock_options *options = HF_LOCK(.owner = 7, .reentrant = true, .wait_ms = HF_FOREVER);
    must_start(f, f->a, "owner", options, NULL, &first);
    HFT_UNTIL_TRUE(hf_pending_is_done(first.pending));
    must_start(f, f->a, "owner", HF_LOCK(.owner = 7, .wait_ms = HF_FOREVER), note_done, &again);
    HFT_UNTIL_TRUE(atomic_load(&again.dones) == 1);
    assert_int_equal(take(&again), HF_DEADLOCK);
    assert_non_null(strstr(again.error.message, "owner"));
    must_start(f, f->a, "owner", options, NULL, &again);
    assert_true(hf_pending_is_done(again.pending));
    assert_int_equal(take(&first), HF_OK);
    assert_int_equal(take(&again), HF_OK);
    assert_ptr_equal(first.lease, again.lease);
    assert_int_equal(hf_lease_post_release(again.lease, NULL), HF_OK);
    assert_true(hf_lease_is_valid(first.lease));
    must_start(f, f->a, "owner", HF_LOCK(.owner = 8), NULL, &again);
    HFT_UNTIL_TRUE(hf_pending_is_done(again.pending));
    assert_int_equal(take(&again), HF_BUSY);
    assert_int_equal(hf_lease_release(first.lease, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static bool is_readable(int fd)
{
    struct pollfd in = {fd, POLLIN, 0};
    return poll(&in, 1, 0) == 1;
}

static void its_descriptor_is_readable_from_then_on(void **state)
{
    struct fixture *f = *state;
    struct note early = {.pending = NULL}, late = {.pending = NULL};
    assert_int_equal(hf_lease_release(must_take(f, f->b, "fd", NULL), NULL), HF_OK); /* their lanes are connected */
    assert_int_equal(hf_lease_release(must_take(f, f->b, "fd2", NULL), NULL), HF_OK);
    hf_lease *lease = must_take(f, f->a, "fd", NULL);
    assert_int_equal(hft_lock_keys(f->server), 1); /* the test's own connection too */
    hft_until_connected(f);
    int before = hft_open_descriptors();
    must_start(f, f->b, "fd", HF_LOCK(.wait_ms = 20000, .event_fd = true), NULL, &early);
    int fd = hf_pending_fd(early.pending);
    assert_true(fd > 2);
    assert_int_equal(hf_pending_fd(early.pending), fd);
    HFT_UNTIL_TRUE(hft_queued(f->server, "fd") == 1);
    assert_false(is_readable(fd));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    struct pollfd in = {fd, POLLIN, 0};
    assert_int_equal(poll(&in, 1, 20000), 1);
    assert_true(hf_pending_is_done(early.pending));
    must_start(f, f->b, "fd2", NULL, NULL, &late);
    HFT_UNTIL_TRUE(hf_pending_is_done(late.pending));
    assert_true(is_readable(hf_pending_fd(late.pending)));
    assert_true(is_readable(fd));
    assert_int_equal(take(&late), HF_OK);
    assert_int_equal(hf_lease_release(late.lease, NULL), HF_OK);
    assert_int_equal(take(&early), HF_OK);
    assert_false(is_readable(hf_lease_event_fd(early.lease)));
    assert_int_equal(hf_lease_release(early.lease, NULL), HF_OK);
    assert_true(hft_comes_down_to(hft_open_descriptors, before));
}

static void a_server_that_goes_away_is_waited_for_as_threads_wait_for_it(void **state)
{
    struct fixture *f = *state;
    struct note try = {.pending = NULL}, wait = {.pending = NULL}, longer = {.pending = NULL};
    hf_client *one = hft_client(f->server, NULL), *two = hft_client(f->server, NULL);
    hf_lease *lease = must_take(f, one, "away", NULL);
    must_start(f, two, "away", HF_LOCK(.wait_ms = HF_FOREVER), NULL, &longer);
    HFT_UNTIL_TRUE(hft_queued(f->server, "away") == 1);
    hft_server_kill(f->server);
    must_start(f, two, "away", HF_LOCK(.wait_ms = 3000), NULL, &wait); /* more than a re-check */
    HFT_UNTIL_TRUE(hf_pending_is_done(wait.pending));
    assert_int_equal(take(&wait), HF_UNAVAILABLE);
    must_start(f, two, "other", NULL, NULL, &try);
    HFT_UNTIL_TRUE(hf_pending_is_done(try.pending));
    assert_int_equal(take(&try), HF_UNAVAILABLE);
    assert_true(try.error.server[0] != 0);
    assert_false(hf_pending_is_done(longer.pending));
    hft_server_restart(f->server);
    HFT_UNTIL_TRUE(hf_pending_is_done(longer.pending));
    assert_int_equal(take(&longer), HF_OK);
    assert_int_equal(hf_lease_release(longer.lease, NULL), HF_OK);
    (void)hf_lease_release(lease, NULL);
    (void)hf_client_close(one, NULL); /* they may not know what became of the tokens that died with the server */
    (void)hf_client_close(two, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, hft_pair_set_up, hft_pair_tear_down)

static void ask_for_fd(void *arg)
{
    (void)hf_pending_fd(arg);
}

static void a_canceled_thread_leaves_a_descriptor_that_tells(void **state)
{
    struct fixture *f = *state;
    hf_pending *pending;
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire_start(f->a, "x", NULL, NULL, NULL, &pending, NULL), HF_OK);
    HFT_UNTIL_TRUE(hf_pending_is_done(pending));
    assert_true(hft_call_canceled(ask_for_fd, pending));
    struct pollfd in = {hf_pending_fd(pending), POLLIN, 0};
    assert_int_equal(poll(&in, 1, 0), 1);
    assert_int_equal(hf_pending_take(pending, &lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_canceled_thread_leaves_a_descriptor_that_tells),
        TEST(a_free_lock_is_begun_decided_told_and_taken),
        TEST(what_cannot_be_begun_is_refused_at_once),
        TEST(a_held_lock_is_busy_for_a_try_and_times_out_for_a_wait),
        TEST(take_before_the_end_is_a_cancel_and_leaves_nothing),
        TEST(pendings_and_threads_get_it_in_the_order_of_their_arrival),
        TEST(what_was_granted_is_kept_and_renewed_until_it_is_taken),
        TEST(what_is_lost_before_take_is_lost_and_nobody_is_told_of_it_twice),
        TEST(an_owner_is_compared_as_in_a_threads_acquire),
        TEST(its_descriptor_is_readable_from_then_on),
        TEST(a_server_that_goes_away_is_waited_for_as_threads_wait_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
