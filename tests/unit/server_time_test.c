/* SPDX-License-Identifier: MIT */
/* server_time_test.c - the highest fence seen, while several threads are given fences; the limit of who knows no time. */
#include "core/lock/server_time.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define FIRST  ((INT64_C(1) << 60) + HFI_FENCE_BLOCK)
#define ROUNDS 100000

static struct hf_client client;
static _Atomic(int64_t) next_block;

/* How often a fence was given of which nothing was known right after it. */
static void *take(void *arg)
{
    int *forgotten = arg;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t first = FIRST + atomic_fetch_add(&next_block, 1) * HFI_FENCE_BLOCK;
        if (hfi_fence_accept(&client, first, HFI_FENCE_BLOCK, 0, 0, hfi_now(client.clock)))
            *forgotten += hfi_fence_seen(&client) < first + HFI_FENCE_BLOCK - 1;
        else
            *forgotten += 1;
    }
    return NULL;
}

/* Lua compares what a double holds. */
static void who_knows_no_time_sets_a_limit_that_no_clock_reaches(void **state)
{
    (void)state;
    assert_int_equal(hfi_server_time_not_after(&client, 0, 1), INT64_C(9000000000000000));
    assert_true(INT64_C(9000000000000000) < INT64_C(1) << 53);
}

static void whoever_is_given_a_fence_makes_it_known(void **state)
{
    (void)state;
    pthread_t threads[3];
    int forgotten[3] = {0};
    client.clock = &hfi_boottime;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take, &forgotten[i]), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(forgotten[i], 0);
    }
    assert_int_equal(hfi_fence_seen(&client), FIRST + INT64_C(3) * ROUNDS * HFI_FENCE_BLOCK - 1);
}

static void what_is_not_above_all_that_was_seen_when_it_was_asked_for_is_refused(void **state)
{
    (void)state;
    int64_t seen = hfi_fence_seen(&client);
    assert_false(hfi_fence_accept(&client, FIRST, HFI_FENCE_BLOCK, FIRST, 0, hfi_now(client.clock)));
    assert_true(hfi_fence_accept(&client, FIRST + HFI_FENCE_BLOCK, HFI_FENCE_BLOCK, FIRST, 0, hfi_now(client.clock)));
    assert_int_equal(hfi_fence_seen(&client), seen); /* it was given meanwhile */
}

static int set_up(void **state)
{
    (void)state;
    hfi_mutex_init(&client.time_mutex, HFI_RANK_INNER);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_knows_no_time_sets_a_limit_that_no_clock_reaches),
        cmocka_unit_test(whoever_is_given_a_fence_makes_it_known),
        cmocka_unit_test(what_is_not_above_all_that_was_seen_when_it_was_asked_for_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
