/* SPDX-License-Identifier: MIT */
/* multilock_test.c - several locks at once: all or none, one lease that is lost with any of them. */
#include "tests/support/fds.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const three[] = {"m2", "m1", "m3"};

static hf_lease *must_take_all(struct fixture *f, hf_client *client, const char *const *names, size_t count,
                               const hf_lock_options *options)
{
    hf_lease *lease;
    hf_status status = hf_multilock_acquire(client, names, count, options, &lease, &f->error);
    if (status != HF_OK)
        fail_msg("%s (%s)", f->error.message, f->error.hint);
    return lease;
}

static void names_that_are_free_are_taken_by_one_command(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(hf_lease_release(must_take_all(f, f->a, three, 3, NULL), NULL), HF_OK); /* the script is known now */
    hft_until_it_listens(f, f->a);
    uint64_t sent = hft_commands(f->a);
    hf_lease *lease = must_take_all(f, f->a, three, 3, NULL);
    assert_int_equal(hft_commands(f->a), sent + 1);
    assert_int_equal(hft_lock_keys(f->server), 3);
    assert_true(hf_lease_is_valid(lease));
    assert_true(hf_lease_remaining_ms(lease) > 5000);
    assert_int_equal(hf_lease_state(lease), HF_LEASE_HELD);
    assert_string_equal(hf_lease_name(lease), "m1");
    assert_int_equal(hf_lease_fence(lease), 0);
    assert_true(hf_lease_fence_of(lease, "m1") > INT64_C(1000000000000000000));
    assert_true(hf_lease_fence_of(lease, "m2") >= hf_lease_fence_of(lease, "m1") + 2048);
    assert_true(hf_lease_fence_of(lease, "m3") >= hf_lease_fence_of(lease, "m2") + 2048);
    assert_int_equal(hf_lease_fence_of(lease, "m4"), 0);
    assert_int_equal(hf_lease_fence_of(lease, NULL), 0);
    assert_int_equal(hf_lease_fence_of(NULL, "m1"), 0);
    assert_int_equal(hf_lease_verify(lease, &f->error), HF_OK);
    int64_t before = hf_lease_fence_of(lease, "m3");
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
    lease = must_take(f, f->b, "m3", NULL);
    assert_true(hf_lease_fence(lease) > before);
    assert_int_equal(hf_lease_fence_of(lease, "m3"), hf_lease_fence(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void a_try_that_meets_a_busy_name_takes_none(void **state)
{
    struct fixture *f = *state;
    hf_lease *held = must_take(f, f->b, "m3", NULL), *lease = held;
    assert_int_equal(hf_multilock_acquire(f->a, three, 3, NULL, &lease, &f->error), HF_BUSY);
    assert_null(lease);
    assert_non_null(strstr(f->error.message, "\"m3\""));
    assert_int_equal(hft_lock_keys(f->server), 1);
    assert_int_equal(hf_lease_release(held, NULL), HF_OK);
    held = must_take(f, f->a, "m3", NULL); /* the same where a thread of this process has it */
    assert_int_equal(hf_lease_unbind(held, NULL), HF_OK);
    assert_int_equal(hf_multilock_acquire(f->a, three, 3, NULL, &lease, &f->error), HF_BUSY);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 1);
    assert_int_equal(hf_lease_release(held, NULL), HF_OK);
    held = must_take_all(f, f->a, three, 3, NULL);
    assert_int_equal(hf_lease_release(held, NULL), HF_OK);
}

static void names_that_linger_here_are_taken_without_the_server(void **state)
{
    struct fixture *f = *state;
    hf_lease *one = must_take(f, f->a, "m2", HF_LOCK(.linger_ms = 60000));
    assert_int_equal(hf_lease_release(one, NULL), HF_OK);
    hf_lease *all = must_take_all(f, f->a, three, 3, NULL);
    assert_int_equal(hft_lock_keys(f->server), 3);
    assert_int_equal(hf_lease_release(all, &f->error), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

struct set_taker {
    pthread_t thread;
    hf_client *client;
    hf_lock_options options;
    hf_status status;
    hf_error error;
    hf_lease *lease;
};

static void *take_set(void *arg)
{
    struct set_taker *me = arg;
    me->status = hf_multilock_acquire(me->client, three, 3, &me->options, &me->lease, &me->error);
    return NULL;
}

static void who_waits_for_a_set_gets_it_when_all_are_free(void **state)
{
    struct fixture *f = *state;
    hf_lease *first = must_take(f, f->b, "m1", NULL), *second = must_take(f, f->b, "m3", NULL);
    struct set_taker taker = {.client = f->a, .options = *HF_LOCK(.wait_ms = HF_FOREVER)};
    assert_int_equal(pthread_create(&taker.thread, NULL, take_set, &taker), 0);
    HFT_UNTIL_TRUE(hft_queued(f->server, "m1") == 1);
    assert_int_equal(hft_lock_exists(f->server, "m2"), 0); /* it waits in the order of the keys and holds nothing beyond */
    assert_int_equal(hf_lease_release(first, NULL), HF_OK);
    HFT_UNTIL_TRUE(hft_queued(f->server, "m3") == 1);
    assert_int_equal(hft_lock_exists(f->server, "m1"), 1);
    assert_int_equal(hft_lock_exists(f->server, "m2"), 1);
    assert_int_equal(hf_lease_release(second, NULL), HF_OK);
    (void)pthread_join(taker.thread, NULL);
    assert_int_equal(taker.status, HF_OK);
    assert_int_equal(taker.error.message[0], 0); /* that it was not free at once is no error */
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void a_wait_that_ends_gives_back_what_it_had(void **state)
{
    struct fixture *f = *state;
    hf_lease *held = must_take(f, f->b, "m3", NULL), *lease;
    assert_int_equal(hf_multilock_acquire(f->a, three, 3, HF_LOCK(.wait_ms = 500), &lease, &f->error), HF_TIMEOUT);
    assert_non_null(strstr(f->error.message, "\"m3\""));
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 1);
    hf_cancel *cancel;
    assert_int_equal(hf_cancel_open(f->a, &cancel, NULL), HF_OK);
    struct set_taker taker = {.client = f->a, .options = *HF_LOCK(.wait_ms = HF_FOREVER, .cancel = cancel)};
    assert_int_equal(pthread_create(&taker.thread, NULL, take_set, &taker), 0);
    HFT_UNTIL_TRUE(hft_queued(f->server, "m3") == 1);
    hf_cancel_fire(cancel);
    (void)pthread_join(taker.thread, NULL);
    hf_cancel_close(cancel);
    assert_int_equal(taker.status, HF_CANCELED);
    assert_null(taker.lease);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 1);
    assert_int_equal(hf_lease_release(held, NULL), HF_OK);
}

/* ---- sets that overlap ---- */

enum { NAMES = 6, THREADS = 8, ROUNDS = 60 };
static const char *const all_names[NAMES] = {"s0", "s1", "s2", "s3", "s4", "s5"};
static _Atomic(int) inside[NAMES];
static _Atomic(int64_t) last_fence[NAMES];

struct overlapper {
    pthread_t thread;
    hf_client *client;
    unsigned seed;
    int overlaps, backwards;
    hf_status status;
    hf_error error;
};

static void use(struct overlapper *me, const hf_lease *lease, const int *picked, int count)
{
    for (int i = 0; i < count; i++) {
        int64_t fence = hf_lease_fence_of(lease, all_names[picked[i]]);
        me->overlaps += atomic_fetch_add(&inside[picked[i]], 1) != 0;
        me->backwards += atomic_exchange(&last_fence[picked[i]], fence) >= fence;
    }
    for (int i = 0; i < count; i++)
        atomic_fetch_sub(&inside[picked[i]], 1);
}

static void *overlap(void *arg)
{
    struct overlapper *me = arg;
    for (int round = 0; round < ROUNDS && me->status == HF_OK; round++) {
        const char *names[NAMES];
        int picked[NAMES], count = 0;
        unsigned which = 1 + (unsigned)rand_r(&me->seed) % ((1u << NAMES) - 1), turn = (unsigned)rand_r(&me->seed);
        for (unsigned i = 0; i < NAMES; i++)
            if ((which >> (i + turn) % NAMES & 1) != 0)
                picked[count++] = (int)((i + turn) % NAMES);
        for (int i = 0; i < count; i++)
            names[i] = all_names[picked[i]];
        hf_lease *lease;
        me->status = hf_multilock_acquire(me->client, names, (size_t)count, HF_LOCK(.wait_ms = 20000), &lease, &me->error);
        if (me->status != HF_OK)
            break;
        use(me, lease, picked, count);
        me->status = hf_lease_release(lease, &me->error);
    }
    return NULL;
}

static void sets_that_overlap_do_not_block_each_other(void **state)
{
    struct fixture *f = *state;
    struct overlapper me[THREADS];
    for (int i = 0; i < THREADS; i++) {
        me[i] = (struct overlapper){.client = i % 2 == 0 ? f->a : f->b, .seed = (unsigned)i};
        assert_int_equal(pthread_create(&me[i].thread, NULL, overlap, &me[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(me[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        if (me[i].status != HF_OK)
            fail_msg("%s", me[i].error.message);
        assert_int_equal(me[i].overlaps, 0);
        assert_int_equal(me[i].backwards, 0);
    }
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
}

/* ---- its end ---- */

struct heard {
    _Atomic(int) lost, others;
    _Atomic(int) reason;
};

static void hear(hf_lease *lease, const hf_event *event, void *arg)
{
    struct heard *heard = arg;
    (void)lease;
    if (event->kind != HF_EVENT_LOST) {
        atomic_fetch_add(&heard->others, 1);
        return;
    }
    atomic_store(&heard->reason, (int)event->reason);
    atomic_fetch_add(&heard->lost, 1);
}

static void it_is_lost_with_the_first_of_its_names(void **state)
{
    struct fixture *f = *state;
    struct heard heard = {0};
    hf_lease *lease = must_take_all(f, f->a, three, 3,
                                    HF_LOCK(.lease_ms = 900, .on_event = hear, .arg = &heard, .event_fd = true));
    struct pollfd fd = {.fd = hf_lease_event_fd(lease), .events = POLLIN};
    HFT_WHILE_RENEWED(f->a, 4, hf_lease_is_valid(lease));
    assert_int_equal(poll(&fd, 1, 0), 0);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{m2} hf:{m3}"));
    HFT_UNTIL_TRUE(atomic_load(&heard.lost) > 0);
    assert_false(hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_remaining_ms(lease), 0);
    assert_int_equal(hf_lease_state(lease), HF_LEASE_LOST);
    assert_int_equal(hf_lease_reason(lease), HF_REASON_GONE);
    assert_int_equal(poll(&fd, 1, 0), 1);
    assert_int_equal(hft_lock_exists(f->server, "m1"), 1); /* its other names go back with it */
    assert_int_equal(hf_lease_release(lease, &f->error), HF_LOST);
    assert_non_null(strstr(f->error.message, "\"m"));
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    assert_int_equal(atomic_load(&heard.lost), 1);
    assert_int_equal(atomic_load(&heard.reason), HF_REASON_GONE);
}

static void it_is_at_risk_while_a_part_is(void **state)
{
    struct fixture *f = *state;
    struct heard heard = {0};
    hf_lease *lease = must_take_all(f, f->a, three, 3, HF_LOCK(.lease_ms = 2000, .on_event = hear, .arg = &heard));
    hft_server_freeze(f->server);
    HFT_UNTIL_TRUE(atomic_load(&heard.others) >= 1); /* AT_RISK, once for all of them */
    assert_true(hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_state(lease), HF_LEASE_AT_RISK);
    hft_server_thaw(f->server);
    HFT_UNTIL_TRUE(hf_lease_state(lease) == HF_LEASE_HELD || !hf_lease_is_valid(lease));
    assert_true(hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    assert_int_equal(atomic_load(&heard.lost), 0);
}

static _Atomic(int) released_inside; /* its status + 1 */

static void release_inside(hf_lease *lease, const hf_event *event, void *arg)
{
    (void)arg;
    bool read = hf_lease_fence_of(lease, "m2") > 0 && strcmp(hf_lease_name(lease), "m1") == 0;
    if (event->kind == HF_EVENT_LOST && read)
        atomic_store(&released_inside, (int)hf_lease_release(lease, NULL) + 1);
}

static void a_callback_may_release_it(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take_all(f, f->a, three, 3, HF_LOCK(.max_hold_ms = 100, .on_event = release_inside));
    (void)lease; /* it is the callback's now */
    HFT_UNTIL_TRUE(atomic_load(&released_inside) != 0);
    assert_int_equal(atomic_load(&released_inside), HF_LOST + 1);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
}

static void max_hold_ends_it(void **state)
{
    struct fixture *f = *state;
    struct heard heard = {0};
    hf_lease *lease = must_take_all(f, f->a, three, 3, HF_LOCK(.max_hold_ms = 400, .on_event = hear, .arg = &heard));
    assert_true(hf_lease_is_valid(lease));
    assert_true(hf_lease_remaining_ms(lease) <= 400);
    HFT_UNTIL_TRUE(atomic_load(&heard.lost) == 1);
    assert_int_equal(atomic_load(&heard.reason), HF_REASON_MAX_HOLD);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
}

static void a_client_that_closes_ends_it(void **state)
{
    struct fixture *f = *state;
    hf_client *client = hft_client(f->server, NULL);
    hf_lease *lease = must_take_all(f, client, three, 3, NULL);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    assert_false(hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_reason(lease), HF_REASON_CLOSED);
    assert_int_equal(hf_lease_release(lease, NULL), HF_CLOSED);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void a_fork_child_has_none(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take_all(f, f->a, three, 3, HF_LOCK(.event_fd = true));
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(hf_lease_is_valid(lease) || hf_lease_release(lease, NULL) != HF_FORKED);
    assert_int_not_equal(child, -1);
    (void)waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_true(hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

/* ---- owners, and what cannot be ---- */

static void its_owner_is_that_of_all_names(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take_all(f, f->a, three, 3, NULL), *more;
    const char *const other[] = {"m0", "m2"};
    assert_int_equal(hf_lock_acquire(f->a, "m2", NULL, &more, NULL), HF_DEADLOCK);
    assert_int_equal(hf_multilock_acquire(f->a, other, 2, HF_LOCK(.wait_ms = HF_FOREVER), &more, &f->error), HF_DEADLOCK);
    HFT_UNTIL_TRUE(hft_lock_exists(f->server, "m0") == 0);
    assert_int_equal(hf_lease_unbind(lease, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(f->a, "m2", NULL, &more, NULL), HF_BUSY);
    assert_int_equal(hf_lease_bind(lease, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(f->a, "m2", NULL, &more, NULL), HF_DEADLOCK);
    assert_int_equal(hf_lease_post_release(lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
}

static void must_be_invalid(struct fixture *f, const char *const *names, size_t count, const hf_lock_options *options)
{
    hf_lease *lease;
    assert_int_equal(hf_multilock_acquire(f->a, names, count, options, &lease, &f->error), HF_INVALID);
    assert_null(lease);
    assert_true(strlen(f->error.message) > 0);
}

static void bad_input_is_refused_and_takes_nothing(void **state)
{
    struct fixture *f = *state;
    const char *const twice[] = {"m1", "m2", "m1"}, *const empty[] = {"m1", ""}, *const none[] = {"m1", NULL};
    const char *many[HF_NAMES_MAX + 1];
    char texts[HF_NAMES_MAX + 1][8];
    for (int i = 0; i <= HF_NAMES_MAX; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "n%d", i);
        many[i] = texts[i];
    }
    must_be_invalid(f, NULL, 1, NULL);
    must_be_invalid(f, three, 0, NULL);
    must_be_invalid(f, many, HF_NAMES_MAX + 1, NULL);
    must_be_invalid(f, twice, 3, HF_LOCK(.wait_ms = HF_FOREVER));
    must_be_invalid(f, empty, 2, NULL);
    must_be_invalid(f, none, 2, NULL);
    must_be_invalid(f, three, 3, HF_LOCK(.reentrant = true));
    must_be_invalid(f, three, 3, HF_LOCK(.name_size = 2));
    assert_int_equal(hf_multilock_acquire(f->a, three, 3, NULL, NULL, &f->error), HF_INVALID);
    assert_int_equal(hft_lock_keys(f->server), 0);
    hf_lease *lease = must_take_all(f, f->a, many, HF_NAMES_MAX, NULL);
    assert_int_equal(hft_lock_keys(f->server), HF_NAMES_MAX);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void a_key_of_another_type_is_told(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease;
    freeReplyObject(hft_server_ask(f->server, "SADD hf:{m2} x"));
    for (int tries = 0; tries < 3; tries++) {
        assert_int_equal(hf_multilock_acquire(f->a, three, 3, NULL, &lease, &f->error), HF_FOREIGN);
        assert_non_null(strstr(f->error.message, "m2"));
        assert_int_equal(hf_lock_acquire(f->a, "m2", NULL, &lease, &f->error), HF_FOREIGN);
    }
    assert_int_equal(hf_multilock_acquire(f->a, three, 3, HF_LOCK(.wait_ms = 5000), &lease, &f->error), HF_FOREIGN);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 1);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{m2}"));
    freeReplyObject(hft_server_ask(f->server, "SET hf:fence x"));
    assert_int_equal(hf_multilock_acquire(f->a, three, 3, NULL, &lease, &f->error), HF_FOREIGN);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:fence"));
}

static void a_full_server_gives_leases_all_the_same(void **state)
{
    struct fixture *f = *state;
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxmemory 1"));
    hf_lease *lease = must_take_all(f, f->a, three, 3, NULL);
    assert_int_equal(hft_lock_keys(f->server), 3);
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxmemory 0"));
}

static void a_server_that_is_away_is_told_or_waited_out(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease;
    hf_client *client = hft_client(f->server, NULL);
    hft_server_kill(f->server);
    assert_int_equal(hf_multilock_acquire(client, three, 3, NULL, &lease, &f->error), HF_UNAVAILABLE);
    struct set_taker taker = {.client = client, .options = *HF_LOCK(.wait_ms = HF_FOREVER)};
    assert_int_equal(pthread_create(&taker.thread, NULL, take_set, &taker), 0);
    hft_server_restart(f->server);
    (void)pthread_join(taker.thread, NULL);
    assert_int_equal(taker.status, HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    hf_status closed = hf_client_close(client, NULL);
    assert_true(closed == HF_OK || closed == HF_UNKNOWN); /* it may not know what became of what the first server got */
}

/* A client that closes ends all parts; that one was lost before is what the caller must know. */
static void a_lost_part_outweighs_a_closed_client(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        hf_client *client = hft_client(f->server, NULL);
        hf_lease *lease = must_take_all(f, client, three, 3, HF_LOCK(.lease_ms = 600));
        freeReplyObject(hft_server_ask(f->server, "DEL hf:{%s}", three[i]));
        HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
        (void)hf_client_close(client, NULL);
        assert_int_equal(hf_lease_release(lease, &f->error), HF_LOST);
    }
}

/* The owner of a name would wait for itself, behind names for which it waits for others. */
static void what_its_owner_holds_is_found_before_anything_is_waited_for(void **state)
{
    struct fixture *f = *state;
    hf_lease *theirs = must_take(f, f->b, "m1", NULL), *own = must_take(f, f->a, "m3", NULL), *lease;
    assert_int_equal(hf_multilock_acquire(f->a, three, 3, HF_LOCK(.wait_ms = 3000), &lease, &f->error), HF_DEADLOCK);
    assert_non_null(strstr(f->error.message, "\"m3\""));
    assert_int_equal(hft_queued(f->server, "m1"), 0);
    assert_int_equal(hf_lease_release(own, NULL), HF_OK);
    assert_int_equal(hf_lease_release(theirs, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

/* What was never sent left nothing at the server, so there is nothing to release there. */
static void tries_in_an_outage_leave_no_releases_behind(void **state)
{
    enum { TRIES = 50 };
    struct fixture *f = *state;
    hf_lease *lease;
    hf_client *client = hft_client(f->server, NULL);
    hft_server_kill(f->server);
    while (hf_multilock_acquire(client, three, 3, NULL, &lease, &f->error) == HF_OK)
        (void)hf_lease_release(lease, NULL);
    for (int i = 0; i < TRIES; i++) /* a lane that is down sends nothing */
        assert_int_equal(hf_multilock_acquire(client, three, 3, NULL, &lease, &f->error), HF_UNAVAILABLE);
    hft_server_restart(f->server);
    lease = must_take_all(f, client, three, 3, HF_LOCK(.wait_ms = 20000));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    (void)hf_client_close(client, NULL);
    int64_t scripts = hft_server_calls(f->server, "evalsha") + hft_server_calls(f->server, "eval");
    assert_in_range(scripts, 1, TRIES);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(names_that_are_free_are_taken_by_one_command),
        TEST(a_try_that_meets_a_busy_name_takes_none),
        TEST(names_that_linger_here_are_taken_without_the_server),
        TEST(who_waits_for_a_set_gets_it_when_all_are_free),
        TEST(a_wait_that_ends_gives_back_what_it_had),
        TEST(sets_that_overlap_do_not_block_each_other),
        TEST(it_is_lost_with_the_first_of_its_names),
        TEST(it_is_at_risk_while_a_part_is),
        TEST(a_callback_may_release_it),
        TEST(max_hold_ends_it),
        TEST(a_client_that_closes_ends_it),
        TEST(a_fork_child_has_none),
        TEST(its_owner_is_that_of_all_names),
        TEST(bad_input_is_refused_and_takes_nothing),
        TEST(a_key_of_another_type_is_told),
        TEST(a_full_server_gives_leases_all_the_same),
        TEST(a_server_that_is_away_is_told_or_waited_out),
        TEST(a_lost_part_outweighs_a_closed_client),
        TEST(what_its_owner_holds_is_found_before_anything_is_waited_for),
        TEST(tries_in_an_outage_leave_no_releases_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
