/* SPDX-License-Identifier: MIT */
/* server_time_test.c - the highest fence seen, while several threads are given fences; the time limit of a script
 * while the server's time is unknown. */
#include "core/lock/server_time.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define FIRST  ((INT64_C(1) << 60) + HFI_FENCE_BLOCK)
#define ROUNDS 100000
#define NOW_US INT64_C(1800000000000000)

static struct hf_client client;
static _Atomic(int64_t) next_block;

/* Counts the fences that were given and not known right afterwards. */
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
static void an_unknown_time_gives_a_limit_that_no_clock_reaches(void **state)
{
    (void)state;
    assert_int_equal(hfi_server_time_not_after(&client, 0, 1), INT64_C(9000000000000000));
    assert_int_equal(hfi_server_time_at_most(&client, 0, 1), INT64_C(9000000000000000));
    assert_false(hfi_server_time_is_known(&client, 0, 10500 * HFI_MS));
    assert_true(INT64_C(9000000000000000) < INT64_C(1) << 53);
}

static void an_accepted_fence_is_known_at_once(void **state)
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

static void a_fence_not_above_all_seen_at_its_request_is_refused(void **state)
{
    (void)state;
    int64_t seen = hfi_fence_seen(&client);
    assert_false(hfi_fence_accept(&client, FIRST, HFI_FENCE_BLOCK, FIRST, 0, hfi_now(client.clock)));
    assert_true(hfi_fence_accept(&client, FIRST + HFI_FENCE_BLOCK, HFI_FENCE_BLOCK, FIRST, 0, hfi_now(client.clock)));
    assert_int_equal(hfi_fence_seen(&client), seen); /* it was given meanwhile */
}

/* Asked for at 10 s, answered at 10.2 s: the server wrote it in between. */
static void a_grant_is_dated_from_when_the_last_time_was_asked_for(void **state)
{
    (void)state;
    hfi_server_time_observe(&client, 0, NOW_US, 10000 * HFI_MS, 10200 * HFI_MS);
    assert_int_equal(hfi_server_time_at_most(&client, 0, 10500 * HFI_MS), NOW_US + 500000 + 10000 + 1000);
    assert_int_equal(hfi_server_time_at_most(&client, 0, 9000 * HFI_MS), NOW_US + 1000);
    assert_true(hfi_server_time_is_known(&client, 0, 10749 * HFI_MS));
    assert_false(hfi_server_time_is_known(&client, 0, 10750 * HFI_MS)); /* too long ago */
    hfi_server_time_observe(&client, 0, NOW_US + 1000000, 11000 * HFI_MS, 11249 * HFI_MS);
    assert_true(hfi_server_time_is_known(&client, 0, 11300 * HFI_MS));
    hfi_server_time_observe(&client, 0, NOW_US + 1000000, 11000 * HFI_MS, 11250 * HFI_MS);
    assert_false(hfi_server_time_is_known(&client, 0, 11300 * HFI_MS)); /* too far away */
}

/* The next connection may be to another server, with another clock. */
static void a_connection_that_told_no_time_dates_nothing(void **state)
{
    (void)state;
    char text[] = "NOREPLICAS few";
    struct redisReply refusal = {.type = REDIS_REPLY_ERROR, .str = text, .len = sizeof text - 1};
    hfi_server_time_observe(&client, 0, NOW_US, 10000 * HFI_MS, 10001 * HFI_MS);
    assert_true(hfi_server_time_is_known(&client, 0, 10500 * HFI_MS));
    assert_int_equal(hfi_server_time_handshake_floored(&client, 0, 0, &refusal, NULL), HF_OK);
    assert_false(hfi_server_time_is_known(&client, 0, 10500 * HFI_MS));
    assert_true(hfi_server_time_at_most(&client, 0, 10000 * HFI_MS) > INT64_MAX / HFI_FENCE_BLOCK);
    client.command_ms = 1000; /* but how long a script may be obeyed it still says, */
    assert_int_equal(hfi_server_time_not_after(&client, 0, 10000 * HFI_MS), NOW_US + 1000 + 1000000);
    assert_true(hfi_sample_is_stepped(client.samples, NOW_US + 300000, 10010 * HFI_MS, 10011 * HFI_MS)); /* and a step */
    client.command_ms = 0;
}

static int set_up(void **state)
{
    (void)state;
    static struct hfi_sample sample;
    static _Atomic(int64_t) asked_ns;
    client.samples = &sample;
    client.floors_asked_ns = &asked_ns;
    client.sample_count = 1;
    hfi_mutex_init(&client.time_mutex, HFI_RANK_INNER);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_time_gives_a_limit_that_no_clock_reaches),
        cmocka_unit_test(an_accepted_fence_is_known_at_once),
        cmocka_unit_test(a_fence_not_above_all_seen_at_its_request_is_refused),
        cmocka_unit_test(a_grant_is_dated_from_when_the_last_time_was_asked_for),
        cmocka_unit_test(a_connection_that_told_no_time_dates_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
