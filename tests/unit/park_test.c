/* SPDX-License-Identifier: MIT */
/* park_test.c - sleeping and being woken. A lost wake shows as a test that does not end. */
#include "base/park.h"
#include "base/clock.h"
#include "tests/support/fds.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS 20000
#define KICKS 500 /* each is two threads that sleep, and a busy machine lets them wait for every one */

static void a_wake_between_ticket_and_wait_is_not_lost(void **state)
{
    (void)state;
    struct hfi_park park;
    hfi_park_init(&park);
    uint32_t ticket = hfi_park_epoch(&park);
    assert_false(hfi_park_is_woken(&park, ticket));
    hfi_park_wake(&park);
    assert_true(hfi_park_is_woken(&park, ticket));
    assert_true(hfi_park_wait(&park, ticket, HFI_NEVER));
}

static void a_wake_before_the_ticket_does_not_count(void **state)
{
    (void)state;
    struct hfi_park park;
    hfi_park_init(&park);
    hfi_park_wake(&park);
    uint32_t ticket = hfi_park_epoch(&park);
    assert_false(hfi_park_wait(&park, ticket, hfi_now(&hfi_boottime) + HFI_MS));
}

static void the_next_ticket_is_the_one_after_one_wake(void **state)
{
    (void)state;
    struct hfi_park park;
    hfi_park_init(&park);
    uint32_t ticket = hfi_park_epoch(&park);
    hfi_park_wake(&park);
    assert_int_equal(hfi_park_epoch(&park), hfi_park_next(ticket));
    assert_false(hfi_park_is_woken(&park, hfi_park_next(ticket)));
    hfi_park_wake(&park);
    assert_true(hfi_park_is_woken(&park, hfi_park_next(ticket)));
    assert_int_equal(hfi_park_next(INT32_MAX), 0);
}

static void the_wait_ends_at_its_time_and_not_before(void **state)
{
    (void)state;
    struct hfi_park park;
    hfi_park_init(&park);
    int64_t least_late = INT64_MAX;
    for (int i = 0; i < 5; i++) { /* a busy machine is late now and then, a wrong deadline every time */
        int64_t until = hfi_now(&hfi_boottime) + 20 * HFI_MS;
        assert_false(hfi_park_wait(&park, hfi_park_epoch(&park), until));
        int64_t late = hfi_now(&hfi_boottime) - until;
        assert_true(late >= 0);
        least_late = late < least_late ? late : least_late;
    }
    assert_true(least_late < 100 * HFI_MS);
    assert_false(hfi_park_wait(&park, hfi_park_epoch(&park), hfi_now(&hfi_boottime) - HFI_MS));
    assert_false(hfi_park_wait(&park, hfi_park_epoch(&park), 0));
}

struct duel {
    struct hfi_park mine, theirs;
    _Atomic(int) turn; /* even: ours, odd: the other thread's */
};

static void *answer(void *arg)
{
    struct duel *duel = arg;
    for (int round = 0; round < ROUNDS; round++) {
        for (;;) {
            uint32_t ticket = hfi_park_epoch(&duel->theirs);
            if (atomic_load(&duel->turn) == 2 * round + 1)
                break;
            (void)hfi_park_wait(&duel->theirs, ticket, HFI_NEVER);
        }
        atomic_store(&duel->turn, 2 * round + 2);
        hfi_park_wake(&duel->mine);
    }
    return NULL;
}

static void two_threads_wake_each_other_for_ever_so_long(void **state)
{
    (void)state;
    static struct duel duel;
    pthread_t other;
    hfi_park_init(&duel.mine);
    hfi_park_init(&duel.theirs);
    assert_int_equal(pthread_create(&other, NULL, answer, &duel), 0);
    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&duel.turn, 2 * round + 1);
        hfi_park_wake(&duel.theirs);
        for (;;) {
            uint32_t ticket = hfi_park_epoch(&duel.mine);
            if (atomic_load(&duel.turn) == 2 * round + 2)
                break;
            (void)hfi_park_wait(&duel.mine, ticket, HFI_NEVER);
        }
    }
    assert_int_equal(pthread_join(other, NULL), 0);
}

#define CROWD 8

struct crowd {
    struct hfi_park park;
    uint32_t ticket;
    _Atomic(int) woken;
    _Atomic(int) tids[CROWD], came;
};

static void *sleep_in_crowd(void *arg)
{
    struct crowd *crowd = arg;
    atomic_store(&crowd->tids[atomic_fetch_add(&crowd->came, 1)], (int)gettid());
    if (hfi_park_wait(&crowd->park, crowd->ticket, HFI_NEVER))
        atomic_fetch_add(&crowd->woken, 1);
    return NULL;
}

/* A sleeper that is not woken looks again by itself after a second: that would not be a wake. */
static void one_wake_wakes_all_sleepers(void **state)
{
    (void)state;
    static struct crowd crowd;
    pthread_t threads[CROWD];
    hfi_park_init(&crowd.park);
    crowd.ticket = hfi_park_epoch(&crowd.park);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sleep_in_crowd, &crowd), 0);
    for (int i = 0; i < CROWD; i++)
        while (atomic_load(&crowd.tids[i]) == 0 || !hft_is_asleep(atomic_load(&crowd.tids[i])))
            (void)sched_yield();
    int64_t woken = hfi_now(&hfi_boottime);
    hfi_park_wake(&crowd.park);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&crowd.woken), CROWD);
    assert_true(hfi_now(&hfi_boottime) - woken < 900 * HFI_MS);
}

struct sleeper {
    struct hfi_park park;
    _Atomic(int) tid;
    _Atomic(bool) up;
};

static void *sleep_alone(void *arg)
{
    struct sleeper *sleeper = arg;
    uint32_t ticket = hfi_park_epoch(&sleeper->park);
    atomic_store(&sleeper->tid, (int)gettid());
    (void)hfi_park_wait(&sleeper->park, ticket, HFI_NEVER);
    atomic_store(&sleeper->up, true);
    return NULL;
}

static void lie_down(struct sleeper *sleeper, pthread_t *thread)
{
    assert_int_equal(pthread_create(thread, NULL, sleep_alone, sleeper), 0);
    while (atomic_load(&sleeper->tid) == 0 || !hft_is_asleep(atomic_load(&sleeper->tid)))
        (void)sched_yield();
}

/* So many park between the two that the places have come round. */
static void a_sleeper_that_shares_a_bucket_sleeps_on(void **state)
{
    (void)state;
    static struct sleeper first, second;
    pthread_t threads[2];
    hfi_park_init(&first.park);
    lie_down(&first, &threads[0]);
    do {
        hfi_park_init(&second.park);
        assert_false(hfi_park_wait(&second.park, hfi_park_epoch(&second.park), 0));
    } while (second.park.bucket_bit != first.park.bucket_bit);
    lie_down(&second, &threads[1]);
    hfi_park_wake(&second.park);
    assert_int_equal(pthread_join(threads[1], NULL), 0);
    while (!hft_is_asleep(first.tid)) /* it may have looked */
        (void)sched_yield();
    assert_false(first.up);
    hfi_park_wake(&first.park);
    assert_int_equal(pthread_join(threads[0], NULL), 0);
}

static void held_wakes_wake_when_let_go(void **state)
{
    (void)state;
    static struct sleeper sleepers[CROWD];
    pthread_t threads[CROWD];
    for (int i = 0; i < CROWD; i++) {
        hfi_park_init(&sleepers[i].park);
        lie_down(&sleepers[i], &threads[i]);
    }
    hfi_park_hold();
    hfi_park_hold();
    for (int i = 0; i < CROWD; i++)
        hfi_park_wake(&sleepers[i].park);
    hfi_park_let_go();
    for (int i = 0; i < CROWD; i++)
        assert_true(hft_is_asleep(sleepers[i].tid));
    hfi_park_let_go();
    int64_t woken = hfi_now(&hfi_boottime);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(hfi_now(&hfi_boottime) - woken < 900 * HFI_MS);
}

static void ignore(int signal)
{
    (void)signal;
}

struct disturbed {
    pthread_t sleeper;
    _Atomic(bool) over;
};

static void *disturb(void *arg)
{
    struct disturbed *disturbed = arg;
    while (!atomic_load(&disturbed->over)) {
        (void)pthread_kill(disturbed->sleeper, SIGUSR1);
        (void)usleep(500);
    }
    return NULL;
}

static void signals_are_ridden_out(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = ignore}; /* no SA_RESTART */
    struct disturbed disturbed = {.sleeper = pthread_self()};
    struct hfi_park park;
    pthread_t other;
    hfi_park_init(&park);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(pthread_create(&other, NULL, disturb, &disturbed), 0);
    int64_t until = hfi_now(&hfi_boottime) + 30 * HFI_MS;
    bool woken = hfi_park_wait(&park, hfi_park_epoch(&park), until);
    int64_t after = hfi_now(&hfi_boottime);
    atomic_store(&disturbed.over, true);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_false(woken);
    assert_true(after >= until);
}

struct polled_duel {
    struct duel duel;
    int kick_fd;
    _Atomic(int) kicks; /* that were there when it looked */
    _Atomic(bool) over;
};

static void *poll_until_woken(void *arg)
{
    struct polled_duel *polled = arg;
    struct duel *duel = &polled->duel;
    struct pollfd kick = {.fd = polled->kick_fd, .events = POLLIN};
    bool last = false;
    for (int round = 0; !last; round++) {
        for (;;) {
            uint32_t ticket = hfi_park_epoch(&duel->theirs);
            if (atomic_load(&duel->turn) == 2 * round + 1)
                break;
            hfi_park_kick(&duel->theirs, kick.fd);
            if (!hfi_park_is_woken(&duel->theirs, ticket))
                (void)poll(&kick, 1, -1);
            hfi_park_kick(&duel->theirs, -1);
            eventfd_t count;
            if (eventfd_read(kick.fd, &count) == 0)
                (void)atomic_fetch_add(&polled->kicks, (int)count);
        }
        last = atomic_load(&polled->over); /* it was set before this turn */
        atomic_store(&duel->turn, 2 * round + 2);
        hfi_park_wake(&duel->mine);
    }
    return NULL;
}

/* Whether it polls already when it is woken is up to the machine, so not rounds are counted but kicks. */
static void a_polling_thread_is_kicked_by_the_wake(void **state)
{
    (void)state;
    static struct polled_duel polled;
    struct duel *duel = &polled.duel;
    pthread_t other;
    hfi_park_init(&duel->mine);
    hfi_park_init(&duel->theirs);
    polled.kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(polled.kick_fd >= 0);
    assert_int_equal(pthread_create(&other, NULL, poll_until_woken, &polled), 0);
    for (int round = 0; !atomic_load(&polled.over); round++) {
        if (atomic_load(&polled.kicks) >= KICKS)
            atomic_store(&polled.over, true);
        atomic_store(&duel->turn, 2 * round + 1);
        hfi_park_wake(&duel->theirs);
        for (;;) {
            uint32_t ticket = hfi_park_epoch(&duel->mine);
            if (atomic_load(&duel->turn) == 2 * round + 2)
                break;
            (void)hfi_park_wait(&duel->mine, ticket, HFI_NEVER);
        }
    }
    assert_int_equal(pthread_join(other, NULL), 0);
    (void)close(polled.kick_fd);
}

/* With nobody who would have to be woken, so that there may be many. */
static void every_wake_of_one_that_polls_is_a_kick(void **state)
{
    (void)state;
    struct hfi_park park;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(fd >= 0);
    hfi_park_init(&park);
    hfi_park_kick(&park, fd);
    for (int i = 0; i < ROUNDS; i++) {
        eventfd_t kicks = 0;
        hfi_park_wake(&park);
        assert_int_equal(eventfd_read(fd, &kicks), 0);
        assert_int_equal(kicks, 1);
    }
    hfi_park_kick(&park, -1);
    hfi_park_wake(&park);
    eventfd_t none;
    assert_int_equal(eventfd_read(fd, &none), -1);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wake_between_ticket_and_wait_is_not_lost),
        cmocka_unit_test(a_wake_before_the_ticket_does_not_count),
        cmocka_unit_test(the_next_ticket_is_the_one_after_one_wake),
        cmocka_unit_test(the_wait_ends_at_its_time_and_not_before),
        cmocka_unit_test(two_threads_wake_each_other_for_ever_so_long),
        cmocka_unit_test(one_wake_wakes_all_sleepers),
        cmocka_unit_test(a_sleeper_that_shares_a_bucket_sleeps_on),
        cmocka_unit_test(held_wakes_wake_when_let_go),
        cmocka_unit_test(signals_are_ridden_out),
        cmocka_unit_test(a_polling_thread_is_kicked_by_the_wake),
        cmocka_unit_test(every_wake_of_one_that_polls_is_a_kick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
