/* SPDX-License-Identifier: MIT */
/* pending_loop_test.c - many pendings on one thread; take inside `done`, beside it, in a fork child; close while pendings
 * are out. */
#include "tests/support/pair.h"
#include "tests/support/child.h"
#include "tests/support/fds.h"
#include "tests/support/takers.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- ten thousand on one thread ---- */

enum { PENDINGS = 10000, NAMES = 100 };

static struct loop {
    hf_pending *pendings[PENDINGS];
    int dones[PENDINGS], got[NAMES]; /* how many have the name now */
    int granted, canceled, wrong;
    unsigned seed;
} loop;

/* Any of those that are left. */
static void cancel_one(void)
{
    hf_lease *lease;
    long i = rand_r(&loop.seed) % PENDINGS;
    while (loop.pendings[i] == NULL)
        i = (i + 1) % PENDINGS;
    hf_pending *pending = loop.pendings[i];
    loop.pendings[i] = NULL;
    loop.canceled++;
    hf_status status = hf_pending_take(pending, &lease, NULL);
    if (status == HF_OK) /* decided, and not dispatched yet */
        loop.wrong += hf_lease_post_release(lease, NULL) != HF_OK;
    else
        loop.wrong += status != HF_CANCELED;
}

static void give_back_at_once(hf_pending *pending, void *arg)
{
    long i = (hf_pending **)arg - loop.pendings;
    hf_lease *lease;
    loop.dones[i]++;
    if (pending != loop.pendings[i])
        loop.wrong++;
    loop.pendings[i] = NULL;
    if (hf_pending_take(pending, &lease, NULL) != HF_OK || loop.got[i % NAMES]++ != 0 || !hf_lease_is_valid(lease)) {
        loop.wrong++;
        return;
    }
    loop.granted++;
    loop.got[i % NAMES]--;
    loop.wrong += hf_lease_post_release(lease, NULL) != HF_OK;
    if (loop.granted % 9 == 5 && loop.granted + loop.canceled < PENDINGS)
        cancel_one();
}

static void ten_thousand_on_one_thread_are_each_decided_once(void **state)
{
    struct fixture *f = *state;
    char name[16];
    hf_lease *theirs[NAMES];
    hf_client *client = hft_client(f->server, HF_CLIENT(.dispatch = HF_DISPATCH_CALLER));
    loop = (struct loop){.seed = 17};
    for (int i = 0; i < NAMES; i++) { /* another process has half of them, for a while */
        (void)snprintf(name, sizeof name, "many%d", i);
        theirs[i] = i % 2 == 0 ? must_take(f, f->a, name, HF_LOCK(.lease_ms = 60000)) : NULL;
    }
    hf_lease *warm = must_take(f, client, "warm", NULL);
    assert_int_equal(hf_lease_release(warm, NULL), HF_OK);
    int threads = hft_running_threads();
    for (long i = 0; i < PENDINGS; i++) {
        (void)snprintf(name, sizeof name, "many%ld", i % NAMES);
        hf_status status = hf_lock_acquire_start(client, name, HF_LOCK(.wait_ms = HF_FOREVER), give_back_at_once,
                                                 &loop.pendings[i], &loop.pendings[i], &f->error);
        if (status != HF_OK)
            fail_msg("%s", f->error.message);
    }
    assert_true(hft_running_threads() <= threads);
    assert_int_equal(loop.granted, 0);
    struct pollfd in = {hf_client_fd(client), POLLIN, 0};
    int64_t until_ms = hft_boottime_ms() + 60000;
    for (int turn = 0; loop.granted + loop.canceled < PENDINGS; turn++) {
        assert_true(hft_boottime_ms() < until_ms);
        if (turn < 100)
            cancel_one(); /* hardly one of these is decided */
        if (turn < NAMES && theirs[turn] != NULL)
            assert_int_equal(hf_lease_post_release(theirs[turn], NULL), HF_OK);
        (void)poll(&in, 1, turn < NAMES ? 0 : 1000);
        (void)hf_client_dispatch(client);
    }
    assert_int_equal(loop.wrong, 0);
    assert_true(loop.canceled >= PENDINGS / 10);
    for (int i = 0; i < PENDINGS; i++) {
        assert_null(loop.pendings[i]);
        assert_true(loop.dones[i] <= 1);
    }
    hf_stats stats;
    hf_client_stats(client, &stats);
    assert_int_equal(stats.waiting, 0);
    assert_int_equal(stats.held, 0);
    assert_true(hft_running_threads() <= threads);
    assert_int_equal(hf_client_dispatch(client), 0);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

/* ---- done and take ---- */

struct scene {
    _Atomic(hf_pending *) pending;
    _Atomic(bool) inside, go, left, taken;
    _Atomic(int) dones, taker;
    hf_status status;
    hf_lease *lease;
    bool left_before_taken;
    struct scene *other; /* is taken inside done */
};

static void take_inside(hf_pending *pending, void *arg)
{
    struct scene *scene = arg;
    struct scene *other = scene->other != NULL ? scene->other : scene;
    (void)pending;
    scene->dones++;
    other->status = hf_pending_take(atomic_load(&other->pending), &other->lease, NULL);
    atomic_store(&scene->left, true);
}

static void count_done(hf_pending *pending, void *arg)
{
    struct scene *scene = arg;
    (void)pending;
    scene->dones++;
}

static void must_start(struct fixture *f, hf_client *client, const char *name, hf_done_fn *done, struct scene *scene)
{
    hf_pending *pending;
    if (hf_lock_acquire_start(client, name, HF_LOCK(.wait_ms = HF_FOREVER), done, scene, &pending, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
    atomic_store(&scene->pending, pending);
}

static void done_may_take_its_own_or_another(void **state)
{
    struct fixture *f = *state;
    struct scene own = {.dones = 0}, other = {.dones = 0}, taker = {.other = &other};
    hf_lease *lease = must_take(f, f->b, "own", NULL);
    must_start(f, f->a, "own", take_inside, &own); /* its `done` comes when `pending` is stored */
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(atomic_load(&own.left));
    assert_int_equal(own.status, HF_OK);
    lease = must_take(f, f->b, "first", NULL);
    must_start(f, f->a, "first", take_inside, &taker);
    must_start(f, f->a, "own", count_done, &other);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(atomic_load(&taker.left));
    assert_int_equal(other.status, HF_CANCELED);
    assert_int_equal(hf_lease_release(own.lease, NULL), HF_OK);
    assert_int_equal(hf_pending_take(taker.pending, &taker.lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(atomic_load(&other.dones), 0);
    assert_int_equal(own.dones, 1);
}

static void stay_inside(hf_pending *pending, void *arg)
{
    struct scene *scene = arg;
    (void)pending;
    scene->dones++;
    atomic_store(&scene->inside, true);
    while (!atomic_load(&scene->go))
        (void)poll(NULL, 0, 1);
    atomic_store(&scene->left, true);
}

static void *take_beside(void *arg)
{
    struct scene *scene = arg;
    atomic_store(&scene->taker, (int)gettid());
    scene->status = hf_pending_take(atomic_load(&scene->pending), &scene->lease, NULL);
    scene->left_before_taken = atomic_load(&scene->left);
    atomic_store(&scene->taken, true);
    return NULL;
}

static void take_waits_for_a_done_that_runs_elsewhere(void **state)
{
    struct fixture *f = *state;
    struct scene scene = {.dones = 0}, behind = {.dones = 0};
    pthread_t thread;
    must_start(f, f->a, "beside", stay_inside, &scene);
    HFT_UNTIL_TRUE(atomic_load(&scene.inside));
    /* One that is decided, and whose `done` is queued behind the one that runs: it is taken back. */
    must_start(f, f->a, "behind", count_done, &behind);
    HFT_UNTIL_TRUE(hf_pending_is_done(behind.pending));
    assert_int_equal(hf_pending_take(behind.pending, &behind.lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(behind.lease, NULL), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, take_beside, &scene), 0);
    HFT_UNTIL_TRUE(atomic_load(&scene.taker) != 0 && hft_is_asleep(atomic_load(&scene.taker)));
    assert_false(atomic_load(&scene.taken));
    atomic_store(&scene.go, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(scene.left_before_taken);
    assert_int_equal(scene.status, HF_OK);
    assert_int_equal(hf_lease_release(scene.lease, NULL), HF_OK);
    assert_int_equal(behind.dones, 0);
    assert_int_equal(scene.dones, 1);
}

/* ---- close, fork ---- */

static void close_decides_what_is_out_and_take_is_still_owed(void **state)
{
    enum { OUT = 30 };
    struct fixture *f = *state;
    struct scene waits[OUT], granted = {.dones = 0}, told = {.dones = 0};
    hf_client *client = hft_client(f->server, NULL);
    hf_lease *theirs = must_take(f, f->a, "closes", NULL), *lease;
    memset(waits, 0, sizeof waits);
    must_start(f, client, "granted", count_done, &granted);
    HFT_UNTIL_TRUE(hf_pending_is_done(granted.pending));
    for (int i = 0; i < OUT; i++)
        must_start(f, client, i % 2 == 0 ? "closes" : "granted", count_done, &waits[i]);
    must_start(f, client, "closes", take_inside, &told); /* in the middle of close */
    HFT_UNTIL_TRUE(hft_queued(f->server, "closes") == 1);
    int fd = hf_pending_fd(waits[0].pending);
    assert_int_equal(hf_client_close(client, &f->error), HF_OK);
    assert_int_equal(told.status, HF_CLOSED);
    assert_int_equal(told.dones, 1);
    assert_int_equal(poll(&(struct pollfd){fd, POLLIN, 0}, 1, 0), 1);
    for (int i = 0; i < OUT; i++) {
        assert_true(hf_pending_is_done(waits[i].pending));
        assert_int_equal(waits[i].dones, 1);
        assert_int_equal(hf_pending_take(waits[i].pending, &lease, &f->error), HF_CLOSED);
        assert_null(lease);
        assert_int_equal(f->error.status, HF_CLOSED);
    }
    assert_int_equal(granted.dones, 1);
    assert_int_equal(hf_pending_take(granted.pending, &lease, &f->error), HF_CLOSED);
    assert_null(lease);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 1);
    assert_int_equal(hf_lease_release(theirs, NULL), HF_OK);
}

static void a_fork_child_has_copies_that_are_worth_nothing(void **state)
{
    struct fixture *f = *state;
    struct scene waits = {.dones = 0}, granted = {.dones = 0};
    hf_lease *theirs = must_take(f, f->a, "fork", NULL);
    hf_client *client = hft_client(f->server, NULL);
    must_start(f, client, "fork", count_done, &waits);
    must_start(f, client, "forked", count_done, &granted);
    HFT_UNTIL_TRUE(hft_queued(f->server, "fork") == 1 && atomic_load(&granted.dones) == 1);
    int fd = hf_pending_fd(waits.pending);
    pid_t child = hft_fork();
    if (child == 0) {
        hf_lease *lease = (hf_lease *)f;
        hf_pending *none;
        bool right = hf_pending_take(waits.pending, &lease, &f->error) == HF_FORKED && lease == NULL &&
                     f->error.status == HF_FORKED && poll(&(struct pollfd){fd, POLLIN, 0}, 1, 0) == 1 &&
                     hf_pending_take(granted.pending, &lease, NULL) == HF_FORKED && lease == NULL &&
                     hf_lock_acquire_start(client, "x", NULL, NULL, NULL, &none, NULL) == HF_FORKED && none == NULL;
        _exit(right ? 0 : 1);
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    assert_int_equal(hft_queued(f->server, "fork"), 1);
    assert_int_equal(hf_lease_release(theirs, NULL), HF_OK);
    HFT_UNTIL_TRUE(atomic_load(&waits.dones) == 1);
    assert_int_equal(hf_pending_take(waits.pending, &waits.lease, NULL), HF_OK);
    assert_int_equal(hf_pending_take(granted.pending, &granted.lease, NULL), HF_OK);
    assert_true(hf_lease_is_valid(waits.lease) && hf_lease_is_valid(granted.lease));
    assert_int_equal(hf_lease_release(waits.lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(granted.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, hft_pair_set_up, hft_pair_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ten_thousand_on_one_thread_are_each_decided_once),
        TEST(done_may_take_its_own_or_another),
        TEST(take_waits_for_a_done_that_runs_elsewhere),
        TEST(close_decides_what_is_out_and_take_is_still_owed),
        TEST(a_fork_child_has_copies_that_are_worth_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
