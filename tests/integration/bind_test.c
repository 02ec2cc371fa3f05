/* SPDX-License-Identifier: MIT */
/* bind_test.c - the owner of a lease, and the thread that gets its signal, when the lease goes from one thread to
 * another or to none. */
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static _Atomic(int) signals_seen; /* by more than one thread */
static _Atomic(pthread_t) signaled_thread;

static void on_signal(int number)
{
    int before = errno;
    (void)number;
    atomic_store(&signaled_thread, pthread_self());
    signals_seen++;
    errno = before;
}

static void install(int number)
{
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(number, &action, NULL);
    signals_seen = 0;
}

static void *hold_in_poll(void *arg)
{
    hf_lease *lease = arg;
    sigset_t none;
    (void)sigemptyset(&none);
    if (hf_lease_bind(lease, NULL) != HF_OK)
        return NULL;
    while (signals_seen == 0)
        (void)poll(NULL, 0, 1);
    return lease;
}

static void a_lease_without_an_owner_sends_no_signal(void **state)
{
    struct fixture *f = *state;
    install(SIGUSR2);
    hf_lease *lease = must_take(f, f->a, "unbound", HF_LOCK(.lease_ms = 1500, .signal = SIGUSR2));
    assert_int_equal(hf_lease_unbind(lease, NULL), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{unbound}"));
    HFT_UNTIL_TRUE(hf_lease_state(lease) == HF_LEASE_LOST);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST); /* all is told */
    assert_int_equal(signals_seen, 0);
}

/* AT_RISK came while no thread owned the lease: its next owner is signalled at the loss. */
static void a_warning_without_an_owner_is_sent_at_the_loss(void **state)
{
    struct fixture *f = *state;
    install(SIGUSR2);
    hf_lease *lease = must_take(f, f->a, "owed", HF_LOCK(.lease_ms = 3000, .stop_ms = 1500, .signal = SIGUSR2,
                                                         .signal_at = HF_EVENT_AT_RISK));
    assert_int_equal(hf_lease_unbind(lease, NULL), HF_OK);
    hft_server_freeze(f->server);
    HFT_UNTIL_TRUE(hf_lease_reason(lease) == HF_REASON_ENDING);
    hf_status bound = hf_lease_bind(lease, NULL);
    HFT_UNTIL_TRUE(bound != HF_OK || signals_seen != 0);
    hft_server_thaw(f->server);
    assert_int_equal(bound, HF_OK);
    assert_int_equal(signals_seen, 1);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
}

static void *bind_and_stay(void *arg)
{
    hf_lease *lease = arg;
    hf_status status = hf_lease_bind(lease, NULL);
    while (status == HF_OK && signals_seen < 2) /* a thread that has ended is not signalled */
        (void)poll(NULL, 0, 1);
    return NULL;
}

/* Once each: the thread that got the warning, and the owner at the time of the loss. */
static void a_warning_that_was_sent_is_not_sent_again_but_to_another_thread(void **state)
{
    for (int other = 0; other < 2; other++) {
        struct fixture *f = *state;
        pthread_t thread;
        install(SIGUSR2);
        hf_lease *lease = must_take(f, f->a, other ? "other" : "sent",
                                    HF_LOCK(.wait_ms = 20000, .lease_ms = 3000, .stop_ms = 1500, .signal = SIGUSR2,
                                            .signal_at = HF_EVENT_AT_RISK));
        hft_server_freeze(f->server);
        HFT_UNTIL_TRUE(signals_seen != 0);
        hf_status unbound = hf_lease_unbind(lease, NULL), bound = HF_OK;
        if (other)
            (void)pthread_create(&thread, NULL, bind_and_stay, lease);
        else
            bound = hf_lease_bind(lease, NULL);
        HFT_UNTIL_TRUE(hf_lease_state(lease) == HF_LEASE_LOST);
        if (other) {
            HFT_UNTIL_TRUE(signals_seen == 2);
            (void)pthread_join(thread, NULL);
        }
        hft_server_thaw(f->server);
        assert_int_equal(unbound, HF_OK);
        assert_int_equal(bound, HF_OK);
        assert_int_equal(hf_lease_release(lease, NULL), HF_LOST); /* all is told */
        assert_int_equal(signals_seen, 1 + other);
    }
}

static void the_bound_thread_gets_the_signal(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    void *seen;
    hf_lease *again;
    install(SIGUSR2);
    hf_lease *lease = must_take(f, f->a, "bound", HF_LOCK(.lease_ms = 1500, .signal = SIGUSR2));
    (void)pthread_create(&thread, NULL, hold_in_poll, lease);
    /* Once it is bound there, this thread is not the holder any more. */
    HFT_UNTIL_TRUE(hf_lock_acquire(f->a, "bound", NULL, &again, NULL) == HF_BUSY);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{bound}"));
    (void)pthread_join(thread, &seen);
    assert_non_null(seen);
    assert_true(pthread_equal(atomic_load(&signaled_thread), thread));
    assert_int_equal(hf_lease_bind(lease, &f->error), HF_LOST);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_lease_without_an_owner_sends_no_signal),
        TEST(a_warning_without_an_owner_is_sent_at_the_loss),
        TEST(a_warning_that_was_sent_is_not_sent_again_but_to_another_thread),
        TEST(the_bound_thread_gets_the_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
