/* SPDX-License-Identifier: MIT */
/* owners_test.c - the owner of a lease when threads end, their kernel ids come again, and processes fork. */
#include "tests/support/pair.h"
#include "tests/support/fds.h"
#include "tests/support/takers.h"

#include <holdfast/redis.h>

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- a kernel id that comes again ---- */

struct taking { /* a thread that acquires the lock if it has the wanted kernel id */
    hf_client *client;
    hf_lock_options options;
    int wanted_tid; /* 0: any */
    int tid;
    hf_lease *lease;
    hf_status status;
};

static void *take_and_end(void *arg)
{
    struct taking *me = arg;
    me->tid = (int)gettid();
    if (me->wanted_tid == 0 || me->wanted_tid == me->tid)
        me->status = hf_lock_acquire(me->client, "owned", &me->options, &me->lease, NULL);
    return NULL;
}

/* Makes the kernel's next thread id the wanted one where that is allowed; else every id has to come round. */
static void ask_for_tid(int tid)
{
    FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
    if (last == NULL)
        return;
    (void)fprintf(last, "%d", tid - 1);
    (void)fclose(last);
}

/* False: the id did not come again in so many threads. */
static bool take_under_the_same_id(struct taking *me)
{
    enum { TRIES = 70000 };
    for (int i = 0; i < TRIES; i++) {
        pthread_t thread;
        ask_for_tid(me->wanted_tid);
        if (pthread_create(&thread, NULL, take_and_end, me) != 0)
            return false;
        (void)pthread_join(thread, NULL);
        if (me->tid == me->wanted_tid)
            return true;
    }
    return false;
}

static void must_be_somebody_else(struct fixture *f, bool reentrant)
{
    struct taking first = {.client = f->a, .options = *HF_LOCK(.reentrant = reentrant)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take_and_end, &first), 0);
    (void)pthread_join(thread, NULL);
    assert_int_equal(first.status, HF_OK);
    struct taking second = {.client = f->a, .options = first.options, .wanted_tid = first.tid};
    bool again = take_under_the_same_id(&second);
    hf_status released = hf_lease_release(first.lease, NULL);
    if (!again)
        skip(); /* this kernel has millions of ids, and does not let us choose */
    assert_int_equal(second.status, HF_BUSY);
    assert_int_equal(released, HF_OK);
}

static void a_thread_with_an_ended_ones_kernel_id_does_not_reenter_its_lease(void **state)
{
    must_be_somebody_else(*state, true);
}

static void a_thread_with_an_ended_ones_kernel_id_is_not_told_of_a_deadlock(void **state)
{
    must_be_somebody_else(*state, false);
}

/* ---- tasks ---- */

/* A pool's thread acquires a lease, gives it to an event loop, and takes the next job, perhaps for the same name. */
static void a_thread_that_gave_its_lease_away_waits_for_it(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "owned", NULL), *next;
    assert_int_equal(hf_lock_acquire(f->a, "owned", NULL, &next, &f->error), HF_DEADLOCK);
    assert_non_null(strstr(f->error.hint, "hf_lease_unbind"));
    assert_int_equal(hf_lease_unbind(lease, &f->error), HF_OK);
    assert_int_equal(hf_lock_acquire(f->a, "owned", NULL, &next, NULL), HF_BUSY);
    assert_int_equal(hf_lock_acquire(f->a, "owned", HF_LOCK(.reentrant = true), &next, NULL), HF_BUSY);
    struct hft_taker taker;
    hft_take(&taker, f->a, "owned", HF_LOCK(.wait_ms = HF_FOREVER));
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_bind(taker.lease, &f->error), HF_OK); /* and who takes one over owns it */
    assert_int_equal(hf_lock_acquire(f->a, "owned", NULL, &next, NULL), HF_DEADLOCK);
    assert_int_equal(hf_lease_release(taker.lease, &f->error), HF_OK);
    assert_int_equal(hf_lease_unbind(NULL, &f->error), HF_INVALID);
}

static void a_task_is_one_owner_whatever_threads_work_on_it(void **state)
{
    struct fixture *f = *state;
    struct taking first = {.client = f->a, .options = *HF_LOCK(.owner = 7, .reentrant = true)};
    hf_lease *again, *lease;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take_and_end, &first), 0);
    (void)pthread_join(thread, NULL);
    assert_int_equal(first.status, HF_OK);
    assert_int_equal(hf_lock_acquire(f->a, "owned", &first.options, &again, NULL), HF_OK);
    assert_ptr_equal(again, first.lease);
    assert_int_equal(hf_lease_release(again, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(f->a, "owned", HF_LOCK(.owner = 7), &lease, &f->error), HF_DEADLOCK);
    assert_non_null(strstr(f->error.message, "this owner"));
    assert_int_equal(hf_lock_acquire(f->a, "owned", HF_LOCK(.owner = 8, .reentrant = true), &lease, NULL), HF_BUSY);
    assert_int_equal(hf_lock_acquire(f->a, "owned", HF_LOCK(.reentrant = true), &lease, NULL), HF_BUSY);
    assert_int_equal(hf_lease_bind(first.lease, NULL), HF_OK); /* for .signal; the task stays its owner */
    assert_int_equal(hf_lock_acquire(f->a, "owned", HF_LOCK(.reentrant = true), &lease, NULL), HF_BUSY);
    assert_int_equal(hf_lock_acquire(f->a, "owned", &first.options, &again, NULL), HF_OK);
    assert_int_equal(hf_lease_release(again, NULL), HF_OK);
    assert_int_equal(hf_lease_release(first.lease, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(f->a, "owned", HF_LOCK(.owner = UINT64_C(1) << 63), &lease, &f->error), HF_INVALID);
    assert_non_null(strstr(f->error.message, "9223372036854775808"));
    assert_int_equal(hf_lock_acquire(f->a, "owned", HF_LOCK(.owner = (UINT64_C(1) << 63) - 1), &lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void *take_and_give_back(void *arg)
{
    struct taking *me = arg;
    for (int i = 0; i < 3000 && me->status == HF_OK; i++) {
        me->status = hf_lock_acquire(me->client, "owned", &me->options, &me->lease, NULL);
        if (me->status == HF_OK)
            me->status = hf_lease_release(me->lease, NULL);
    }
    return NULL;
}

/* One thread re-enters at the moment when the other releases: each has its own, and the last release ends the lease. */
static void two_threads_of_a_task_take_and_give_back_at_once(void **state)
{
    struct fixture *f = *state;
    struct taking me[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        me[i] = (struct taking){.client = f->a, .options = *HF_LOCK(.owner = 7, .reentrant = true, .wait_ms = 20000)};
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give_back, &me[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(me[i].status, HF_OK);
    }
    hf_stats stats;
    hf_client_stats(f->a, &stats);
    assert_int_equal(stats.held, 0);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
}

/* ---- fork ---- */

static volatile sig_atomic_t signals_seen;

static void count_signal(int number)
{
    (void)number;
    signals_seen++;
}

static int lose_a_lease(int from, int to, void *arg)
{
    struct hft_server *server = arg;
    struct sigaction action = {.sa_handler = count_signal};
    struct redisReply *reply;
    hf_lease *lease;
    char word;
    (void)sigaction(SIGUSR1, &action, NULL);
    if (read(from, &word, 1) != 1)
        return 1;
    hf_client *client = hft_client(server, NULL);
    if (hf_lock_acquire(client, "owned", HF_LOCK(.lease_ms = 300, .signal = SIGUSR1), &lease, NULL) != HF_OK ||
        hf_command(client, &reply, NULL, "DEL %s", "hf:{owned}") != HF_OK)
        return 2;
    freeReplyObject(reply);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    HFT_UNTIL_TRUE(hf_lease_state(lease) == HF_LEASE_LOST && signals_seen == 1);
    if (hf_lease_release(lease, NULL) != HF_LOST || hf_client_close(client, NULL) != HF_OK || write(to, "s", 1) != 1)
        return 3;
    return 0;
}

static void a_fork_child_of_a_thread_that_used_the_library_gets_its_own_signals(void **state)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_process child;
    hf_lease *lease;
    (void)state;
    hf_client *client = hft_client(server, NULL); /* gone again before the fork, with its threads */
    assert_int_equal(hf_lock_acquire(client, "owned", NULL, &lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    hft_process_start(&child, lose_a_lease, server);
    hft_process_tell(&child, 'g');
    char heard = hft_process_read(&child);
    int code = hft_process_end(&child);
    hft_server_stop(server);
    assert_int_equal(code, 0);
    assert_int_equal(heard, 's');
}

/* The descriptor shows when the handle is freed. */
static int give_back_twice(hf_lease *lease)
{
    int before = hft_open_descriptors();
    if (hf_lease_release(lease, NULL) != HF_FORKED || hft_open_descriptors() != before)
        return 1;
    if (hf_lease_reason(lease) != HF_REASON_FORKED)
        return 2;
    return hf_lease_release(lease, NULL) == HF_FORKED && hft_open_descriptors() == before - 1 ? 0 : 3;
}

static void a_fork_child_gives_a_lease_back_as_often_as_its_owner_took_it(void **state)
{
    struct fixture *f = *state;
    hf_lease *again, *lease = must_take(f, f->a, "owned", HF_LOCK(.reentrant = true, .event_fd = true));
    assert_int_equal(hf_lock_acquire(f->a, "owned", HF_LOCK(.reentrant = true), &again, NULL), HF_OK);
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(give_back_twice(lease));
    assert_int_not_equal(child, -1);
    (void)waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(hf_lease_release(again, NULL), HF_OK);
    assert_true(hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void who_reenters_without_a_descriptor_has_it_once_less(void **state)
{
    struct fixture *f = *state;
    struct rlimit limit;
    hf_lease *again, *lease = must_take(f, f->a, "owned", HF_LOCK(.reentrant = true));
    hft_until_connected(f); /* they open nothing from here on */
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, limit.rlim_max}), 0);
    hf_status status = hf_lock_acquire(f->a, "owned", HF_LOCK(.reentrant = true, .event_fd = true), &again, &f->error);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(status, HF_NOMEM);
    assert_null(again); /* HF_AUTO_LEASE would give back what the owner has */
    assert_true(f->error.os_errno == EMFILE && hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fork_child_of_a_thread_that_used_the_library_gets_its_own_signals),
        TEST(a_thread_with_an_ended_ones_kernel_id_does_not_reenter_its_lease),
        TEST(a_thread_with_an_ended_ones_kernel_id_is_not_told_of_a_deadlock),
        TEST(a_thread_that_gave_its_lease_away_waits_for_it),
        TEST(a_task_is_one_owner_whatever_threads_work_on_it),
        TEST(a_fork_child_gives_a_lease_back_as_often_as_its_owner_took_it),
        TEST(who_reenters_without_a_descriptor_has_it_once_less),
        TEST(two_threads_of_a_task_take_and_give_back_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
