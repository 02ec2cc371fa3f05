/* SPDX-License-Identifier: MIT */
/* crowd_test.c - over how many lanes the threads of a client spread, and which one a name takes. */
#include "pool/crowd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LANES 2
#define CALLS 1000 /* far more than it takes to be known */

/* So many threads are at work, and one in `between` of their calls finds one less that waits. Returns the last answer. */
static int spread_beside(bool looks, struct hfi_crowd *crowd, int threads, int between, int calls)
{
    int lanes = 0;
    for (int i = 0; i < calls; i++) {
        atomic_store(&crowd->waiting, threads - 1 - (threads > 1 && i % between == 0));
        lanes = hfi_crowd_lanes(crowd, LANES, looks);
    }
    return lanes;
}

static int spread(struct hfi_crowd *crowd, int threads, int between, int calls)
{
    return spread_beside(false, crowd, threads, between, calls);
}

static void as_many_threads_as_lanes_have_one_each(void **state)
{
    (void)state;
    for (int threads = 1; threads <= LANES; threads++) {
        struct hfi_crowd crowd = {0};
        assert_int_equal(spread(&crowd, threads, 2, CALLS), LANES);
    }
}

static void more_share_one(void **state)
{
    (void)state;
    for (int threads = LANES + 1; threads < 90; threads++) {
        struct hfi_crowd crowd = {0};
        assert_int_equal(spread(&crowd, threads, 8, CALLS), 1);
    }
}

static void very_many_have_several_again(void **state)
{
    struct hfi_crowd crowd = {0};
    (void)state;
    assert_int_equal(spread(&crowd, 512, 8, CALLS), LANES);
}

/* A name is placed at its first calls, and may not be free to move for long. */
static void a_crowd_is_known_in_a_few_calls(void **state)
{
    struct hfi_crowd crowd = {0};
    (void)state;
    assert_int_equal(spread(&crowd, 8, CALLS, 1), LANES);
    assert_int_equal(spread(&crowd, 8, CALLS, 8), 1);
}

static void where_threads_look_few_share_one_too(void **state)
{
    (void)state;
    for (int threads = 1; threads < 90; threads++) {
        struct hfi_crowd crowd = {0};
        assert_int_equal(spread_beside(true, &crowd, threads, 8, CALLS), 1);
    }
    struct hfi_crowd crowd = {0};
    assert_int_equal(spread_beside(true, &crowd, 512, 8, CALLS), LANES);
}

static void a_thread_has_others_beside_it_if_two_have_waited_of_late(void **state)
{
    struct hfi_crowd crowd = {0};
    (void)state;
    assert_false(hfi_crowd_has_others(&crowd));
    (void)spread(&crowd, 1, 2, CALLS);
    assert_false(hfi_crowd_has_others(&crowd));
    (void)spread(&crowd, 2, 2, 8); /* and one of each two calls finds nobody else */
    assert_true(hfi_crowd_has_others(&crowd));
    (void)spread(&crowd, 2, 2, CALLS);
    assert_true(hfi_crowd_has_others(&crowd));
    (void)spread(&crowd, 1, 2, CALLS);
    assert_false(hfi_crowd_has_others(&crowd));
}

static void its_end_is_known_later(void **state)
{
    struct hfi_crowd crowd = {0};
    (void)state;
    assert_int_equal(spread(&crowd, 8, 8, CALLS), 1);
    assert_int_equal(spread(&crowd, 2, 8, 20), 1);
    assert_int_equal(spread(&crowd, 2, 8, CALLS), LANES);
}

static void the_lane_that_fewest_wait_for_is_chosen(void **state)
{
    const struct hfi_crowd_seat seats[] = {{.is_up = true, .threads = 2}, {.is_up = true, .threads = 1}, {.is_up = true, .threads = 3}};
    (void)state;
    assert_int_equal(hfi_crowd_choose(seats, 3, 3, 0), 1);
    assert_int_equal(hfi_crowd_choose(seats, 3, 1, 1), 0); /* that is the one they share */
}

static void among_equals_a_thread_stays_where_it_was(void **state)
{
    const struct hfi_crowd_seat seats[] = {{.is_up = true}, {.is_up = true}, {.is_up = true}};
    (void)state;
    for (int last = 0; last < 3; last++)
        assert_int_equal(hfi_crowd_choose(seats, 3, 3, last), last);
    assert_int_equal(hfi_crowd_choose(seats, 3, 1, 2), 0);
    assert_int_equal(hfi_crowd_choose(seats, 3, 3, 7), 0); /* of another client, which had more lanes */
}

static void a_lane_is_dialled_where_it_spares_a_wait_alone(void **state)
{
    const struct hfi_crowd_seat idle[] = {{.is_up = true}, {.is_cold = true}}, busy[] = {{.is_up = true, .threads = 1}, {.is_cold = true}};
    (void)state;
    assert_int_equal(hfi_crowd_choose(idle, 2, 2, 1), 0);
    assert_int_equal(hfi_crowd_choose(busy, 2, 2, 0), 1);
}

static void a_lane_that_is_down_is_passed_over(void **state)
{
    const struct hfi_crowd_seat seats[] = {{.is_up = false}, {.is_up = true, .threads = 5}, {.is_up = false}};
    const struct hfi_crowd_seat down[] = {{.threads = 1}, {.threads = 0}};
    (void)state;
    assert_int_equal(hfi_crowd_choose(seats, 3, 3, 0), 1);
    assert_int_equal(hfi_crowd_choose(seats, 3, 1, 0), 1); /* also where all were to share the first */
    assert_int_equal(hfi_crowd_choose(down, 2, 2, 1), -1);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(as_many_threads_as_lanes_have_one_each),
        TEST(more_share_one),
        TEST(very_many_have_several_again),
        TEST(a_crowd_is_known_in_a_few_calls),
        TEST(where_threads_look_few_share_one_too),
        TEST(a_thread_has_others_beside_it_if_two_have_waited_of_late),
        TEST(its_end_is_known_later),
        TEST(the_lane_that_fewest_wait_for_is_chosen),
        TEST(among_equals_a_thread_stays_where_it_was),
        TEST(a_lane_is_dialled_where_it_spares_a_wait_alone),
        TEST(a_lane_that_is_down_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
