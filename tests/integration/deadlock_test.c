/* SPDX-License-Identifier: MIT */
/* deadlock_test.c - owners that wait for each other, in one client or over several: one of them is refused, and no other
 * call is. */
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(two_threads_of_a_client_have_one_victim),
        TEST(two_clients_have_one_victim),
        TEST(three_clients_have_one_victim),
        TEST(eight_owners_of_four_clients_have_one_victim),
        TEST(a_wait_outside_of_a_ring_is_not_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
