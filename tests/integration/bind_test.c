/* SPDX-License-Identifier: MIT */
/* bind_test.c - whom a lease belongs to, and who is signalled, when it goes from one thread to another or to none; and what
 * the log is told. */
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

static void what_nobody_owns_signals_nobody(void **state)
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

/* The end was announced while nobody owned it: who has taken it over is signalled at the loss. */
static void a_warning_that_nobody_was_sent_is_owed_at_the_loss(void **state)
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
    while (status == HF_OK && hf_lease_is_valid(lease))
        (void)poll(NULL, 0, 1);
    return NULL;
}

/* Once each: the thread that was warned, and the one that has it at the loss. */
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

struct said {
    _Atomic(int) lines;
    char last[256];
    hf_client *client;
};

/* The log may ask the client, whoever lost the lease. */
static void write_log(hf_log_level level, const char *line, void *arg)
{
    struct said *said = arg;
    hf_stats stats;
    if (level > HF_LOG_WARNING || strstr(line, "was lost") == NULL)
        return;
    hf_client_stats(said->client, &stats);
    (void)snprintf(said->last, sizeof said->last, "%s", line);
    atomic_fetch_add(&said->lines, 1);
}

static void a_lost_lease_is_a_line_of_the_log(void **state)
{
    struct fixture *f = *state;
    struct said said = {.lines = 0};
    char fence[32];
    said.client = hft_client(f->server, HF_CLIENT(.log = write_log, .log_arg = &said));
    hf_lease *lease = must_take(f, said.client, "logged", HF_LOCK(.lease_ms = 1500));
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{logged}"));
    HFT_UNTIL_TRUE(atomic_load(&said.lines) == 1);
    (void)snprintf(fence, sizeof fence, "%lld", (long long)hf_lease_fence(lease));
    assert_non_null(strstr(said.last, "\"logged\""));
    assert_non_null(strstr(said.last, fence));
    assert_non_null(strstr(said.last, hf_reason_text(HF_REASON_GONE)));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    lease = must_take(f, said.client, "found", HF_LOCK(.lease_ms = 100, .max_hold_ms = 1));
    hf_status status = hf_lease_release(lease, NULL); /* whoever finds it first: the log is told once */
    if (status == HF_LOST)
        HFT_UNTIL_TRUE(atomic_load(&said.lines) == 2);
    lease = must_take(f, said.client, "kept", NULL);
    assert_int_equal(hf_client_close(said.client, NULL), HF_OK);
    assert_int_equal(said.lines, status == HF_LOST ? 2 : 1); /* what is given back at the end is not lost */
    assert_int_equal(hf_lease_release(lease, NULL), HF_CLOSED);
}

/* As long as all other leases of its client take to be lost, if it kept who renews them. */
static void write_slowly(hf_log_level level, const char *line, void *arg)
{
    if (level <= HF_LOG_WARNING && strstr(line, "was lost") != NULL) {
        atomic_fetch_add((_Atomic(int) *)arg, 1);
        (void)poll(NULL, 0, 20);
    }
}

static void a_slow_log_costs_no_lease(void **state)
{
    enum { LOST = 100 };
    struct fixture *f = *state;
    _Atomic(int) lines = 0;
    hf_lease *leases[LOST];
    hf_client *client = hft_client(f->server, HF_CLIENT(.log = write_slowly, .log_arg = &lines));
    hf_lease *kept = must_take(f, client, "kept", HF_LOCK(.lease_ms = 1000));
    for (int i = 0; i < LOST; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "lost%d", i);
        leases[i] = must_take(f, client, name, HF_LOCK(.max_hold_ms = 1000));
    }
    HFT_UNTIL_TRUE(atomic_load(&lines) >= LOST / 2);
    assert_true(hf_lease_is_valid(kept));
    for (int i = 0; i < LOST; i++)
        assert_int_equal(hf_lease_release(leases[i], NULL), HF_LOST);
    assert_int_equal(hf_lease_release(kept, NULL), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    assert_int_equal(lines, LOST); /* all of them, and none after close */
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_nobody_owns_signals_nobody),
        TEST(a_warning_that_nobody_was_sent_is_owed_at_the_loss),
        TEST(a_warning_that_was_sent_is_not_sent_again_but_to_another_thread),
        TEST(the_bound_thread_gets_the_signal),
        TEST(a_lost_lease_is_a_line_of_the_log),
        TEST(a_slow_log_costs_no_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
