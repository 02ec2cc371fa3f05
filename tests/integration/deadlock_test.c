/* SPDX-License-Identifier: MIT */
/* deadlock_test.c - owners that wait for each other, in one client or over several: one of them is refused, and no other
 * call is. */
#include "tests/support/fds.h"
#include "tests/support/messages.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 8, DEADLOCK_MS = 20 };

struct ring {
    struct fixture *f;
    hf_client *clients[MOST];
    int count;
    _Atomic(int) holding;
};

struct member { /* holds the lock of its number, wants the next one's */
    struct ring *ring;
    int number;
    pthread_t thread;
    hf_status held, status;
    hf_error error;
};

static hf_client *client_of(struct fixture *f)
{
    return hft_client(f->server, HF_CLIENT(.deadlock_ms = DEADLOCK_MS));
}

static void *hold_and_want(void *arg)
{
    struct member *me = arg;
    struct ring *ring = me->ring;
    char own[24], next[24];
    hf_lease *held, *wanted;
    (void)snprintf(own, sizeof own, "ring %d", me->number);
    (void)snprintf(next, sizeof next, "ring %d", (me->number + 1) % ring->count);
    me->held = hf_lock_acquire(ring->clients[me->number], own, HF_LOCK(.wait_ms = 20000), &held, &me->error);
    (void)atomic_fetch_add(&ring->holding, 1);
    while (atomic_load(&ring->holding) < ring->count)
        hft_pause(hft_boottime_ms() + 20000, "all hold");
    me->status = hf_lock_acquire(ring->clients[me->number], next, HF_LOCK(.wait_ms = 20000), &wanted, &me->error);
    if (me->status == HF_OK)
        (void)hf_lease_release(wanted, NULL);
    (void)hf_lease_release(held, NULL);
    return NULL;
}

/* One victim; its message tells the whole ring. */
static void play(struct ring *ring)
{
    struct member members[MOST];
    int victims = 0;
    atomic_store(&ring->holding, 0);
    for (int i = 0; i < ring->count; i++) {
        members[i] = (struct member){.ring = ring, .number = i};
        assert_int_equal(pthread_create(&members[i].thread, NULL, hold_and_want, &members[i]), 0);
    }
    for (int i = 0; i < ring->count; i++)
        (void)pthread_join(members[i].thread, NULL);
    for (int i = 0; i < ring->count; i++) {
        assert_int_equal(members[i].held, HF_OK);
        if (members[i].status == HF_OK)
            continue;
        assert_int_equal(members[i].status, HF_DEADLOCK);
        victims++;
        for (int n = 0; n < ring->count && ring->count <= 4; n++) {
            char name[24];
            (void)snprintf(name, sizeof name, "ring_%d", n);
            if (strstr(members[i].error.message, name) == NULL)
                fail_msg("no word of %s: %s", name, members[i].error.message);
        }
        assert_non_null(strstr(members[i].error.message, "held here"));
        assert_non_null(strstr(members[i].error.hint, "hf_multilock_acquire"));
    }
    assert_int_equal(victims, 1);
    HFT_UNTIL_TRUE(hft_lock_keys(ring->f->server) == 0);
}

static void rings(struct fixture *f, int members, int clients, int rounds)
{
    struct ring ring = {.f = f, .count = members};
    hf_client *all[MOST];
    for (int i = 0; i < clients; i++)
        all[i] = client_of(f);
    for (int i = 0; i < members; i++)
        ring.clients[i] = all[i % clients];
    for (int round = 0; round < rounds; round++)
        play(&ring);
    for (int i = 0; i < clients; i++)
        assert_true(hft_closes(f->server, all[i], &f->error));
}

static void two_threads_of_a_client_have_one_victim(void **state)
{
    rings(*state, 2, 1, 10);
}

static void two_clients_have_one_victim(void **state)
{
    rings(*state, 2, 2, 20);
}

static void three_clients_have_one_victim(void **state)
{
    rings(*state, 3, 3, 20);
}

static void eight_owners_of_four_clients_have_one_victim(void **state)
{
    rings(*state, 8, 4, 10);
}

/* Its holder waits for nothing, whatever its other locks are. */
static void a_wait_outside_of_a_ring_is_not_refused(void **state)
{
    struct fixture *f = *state;
    hf_client *one = client_of(f), *other = client_of(f);
    hf_lease *wanted = must_take(f, one, "wanted", NULL), *held = must_take(f, other, "held", NULL), *lease;
    struct hft_taker waits_for_held;
    hft_take(&waits_for_held, one, "held", HF_LOCK(.wait_ms = HF_FOREVER)); /* a thread that holds nothing */
    HFT_UNTIL_TRUE(hft_queued(f->server, "held") == 1);
    assert_int_equal(hf_lock_acquire(other, "wanted", HF_LOCK(.wait_ms = 20 * DEADLOCK_MS), &lease, &f->error), HF_TIMEOUT);
    assert_int_equal(hf_lease_release(held, NULL), HF_OK);
    assert_int_equal(hft_taken(&waits_for_held), HF_OK);
    assert_int_equal(hf_lease_release(waits_for_held.lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(wanted, NULL), HF_OK);
    assert_true(hft_closes(f->server, one, &f->error));
    assert_true(hft_closes(f->server, other, &f->error));
}

struct slowness {
    struct hft_server *server;
    _Atomic(bool) over;
};

/* The server runs for a moment in each 15 ms, so that a round trip takes as long. */
static void *slow_down(void *arg)
{
    struct slowness *slowness = arg;
    while (!atomic_load(&slowness->over)) {
        hft_server_freeze(slowness->server);
        (void)nanosleep(&(struct timespec){.tv_nsec = 14800000}, NULL);
        hft_server_thaw(slowness->server);
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return NULL;
}

/* Looks come faster than both walks over the clients end. */
static void a_ring_is_found_though_its_walks_outlast_a_look(void **state)
{
    struct fixture *f = *state;
    struct slowness slowness = {.server = f->server};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, slow_down, &slowness), 0);
    rings(f, 8, 4, 1);
    atomic_store(&slowness.over, true);
    (void)pthread_join(thread, NULL);
}

/* One whose call has ended and that we do not know yet; -1: none. */
static int one_more(const struct hft_taker *takers, const bool *had, int count)
{
    for (int i = 0; i < count; i++)
        if (!had[i] && atomic_load(&takers[i].done))
            return i;
    return -1;
}

/* One after the other is given the lock while the others, of the same owner, wait for it. */
static void threads_of_an_owner_that_take_turns_are_no_ring(void **state)
{
    enum { THREADS = 3 };
    struct fixture *f = *state;
    struct hft_taker takers[THREADS];
    hf_client *client = client_of(f);
    hf_lease *before = must_take(f, client, "turns", NULL);
    bool had[THREADS] = {false};
    for (int i = 0; i < THREADS; i++)
        hft_take(&takers[i], client, "turns", HF_LOCK(.owner = 7, .lease_ms = 900, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_waiting_here(client, "turns") == THREADS);
    assert_int_equal(hf_lease_release(before, NULL), HF_OK);
    for (int turn = 0; turn < THREADS; turn++) {
        int next = -1;
        HFT_UNTIL_TRUE((next = one_more(takers, had, THREADS)) >= 0);
        had[next] = true;
        HFT_WHILE_RENEWED(client, 1, one_more(takers, had, THREADS) < 0); /* after 300 ms, several looks */
        assert_int_equal(hft_taken(&takers[next]), HF_OK);
        assert_int_equal(hf_lease_release(takers[next].lease, NULL), HF_OK);
    }
    assert_true(hft_closes(f->server, client, &f->error));
}

/* Looks as often as they are asked for would take most of a CPU here. */
static void looks_use_little_of_a_cpu_however_many_locks_there_are(void **state)
{
    enum { LOCKS = 10000, WATCHED_MS = 1000 };
    struct fixture *f = *state;
    int others = hft_thread_named("hf-watchdog"); /* of a client of before */
    hf_client *client = hft_client(f->server, HF_CLIENT(.deadlock_ms = 1));
    int watchdog = hft_thread_named("hf-watchdog");
    hf_lease **held = calloc(LOCKS, sizeof *held), *wanted = must_take(f, f->a, "wanted", NULL);
    assert_int_not_equal(watchdog, others);
    assert_non_null(held);
    for (int i = 0; i < LOCKS; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "held %d", i);
        held[i] = must_take(f, client, name, HF_LOCK(.lease_ms = 600000));
    }
    struct hft_taker taker;
    hft_take(&taker, client, "wanted", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "wanted") == 1);
    int64_t began_ms = hft_boottime_ms(), until_ms = began_ms + 20000;
    long used = hft_thread_ticks(watchdog);
    while (hft_boottime_ms() < began_ms + WATCHED_MS)
        hft_pause(until_ms, "looks");
    used = hft_thread_ticks(watchdog) - used;
    double share = (double)used / (double)sysconf(_SC_CLK_TCK) / ((double)(hft_boottime_ms() - began_ms) / 1000);
    assert_int_equal(hf_lease_release(wanted, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    for (int i = 0; i < LOCKS; i++)
        assert_int_equal(hf_lease_release(held[i], NULL), HF_OK);
    free(held);
    assert_true(hft_closes(f->server, client, &f->error));
    if (share > 0.1)
        fail_msg("the watchdog used %.0f %% of a CPU", 100 * share);
}

/* The hops name the client, but no token that it could have made. */
static void a_made_up_second_walk_is_not_passed_on(void **state)
{
    struct fixture *f = *state;
    hf_client *client = client_of(f);
    char token[200], id[33];
    hf_lease *lease = must_take(f, client, "held", NULL);
    hft_held_by(f->server, "held", token, sizeof token);
    (void)snprintf(id, sizeof id, "%.32s", token + strlen("hf1:"));
    int64_t before = hft_server_calls(f->server, "publish");
    hft_send_message(f->server, "E hf1:%s:1:0000000000000000:h:1 1.a.1.1 0 hf1:%s:1:0000000000000000:h:1,1,1,n", id, id);
    hft_send_message(f->server, "E %s 1.a.1.1 0 %s,1,1,n/hf1:%s:1:0000000000000000:h:1,1,1,n", token, token, id);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    for (int i = 0; i < 100; i++) /* what it published to itself would come back in a round trip */
        assert_int_equal(hf_lease_release(must_take(f, client, "held", NULL), NULL), HF_OK);
    assert_in_range(hft_server_calls(f->server, "publish") - before, 2, 4);
    assert_true(hft_closes(f->server, client, &f->error));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(two_threads_of_a_client_have_one_victim),
        TEST(two_clients_have_one_victim),
        TEST(three_clients_have_one_victim),
        TEST(eight_owners_of_four_clients_have_one_victim),
        TEST(a_wait_outside_of_a_ring_is_not_refused),
        TEST(a_ring_is_found_though_its_walks_outlast_a_look),
        TEST(threads_of_an_owner_that_take_turns_are_no_ring),
        TEST(looks_use_little_of_a_cpu_however_many_locks_there_are),
        TEST(a_made_up_second_walk_is_not_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
