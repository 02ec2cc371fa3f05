/* SPDX-License-Identifier: MIT */
/* oracle_beside_test.c - does the oracle object to what must not be between other programs and us? As oracle_test.c. */
#include "tests/sim/objections.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define FENCE INT64_C(3666000000000000000)
#define MS    INT64_C(1000000)

static void one_of_theirs_beside_one_of_ours_is_seen(void **state)
{
    (void)state;
    sim_oracle_beside(&oracle, 0, 1, 0, 1);
    sim_oracle_beside(&oracle, 0, 0, 1, 1);
    assert_int_equal(objections, 0);
    sim_oracle_beside(&oracle, 0, 1, 1, 1);
    assert_objects("one-holder", "1 of ours have it and 1 of theirs");
    sim_oracle_beside(&oracle, 0, 2, 1, 3);
    assert_int_equal(objections, 0);
    sim_oracle_beside(&oracle, 0, 2, 2, 3);
    assert_objects("one-holder", "2 of ours have it and 2 of theirs");
}

static void several_tokens_have_several_holders_and_no_order(void **state)
{
    (void)state;
    sim_oracle_has_room(&oracle, 0, 2);
    (void)sim_oracle_granted(&oracle, 0, FENCE + 4096, 0);
    int second = sim_oracle_granted(&oracle, 0, FENCE + 2048, 0);
    assert_int_equal(objections, 0);
    (void)sim_oracle_granted(&oracle, 0, FENCE + 8192, 0);
    assert_objects("one-holder", "two holders");
    sim_oracle_releases(&oracle, second);
    sim_oracle_released(&oracle, second, true, true);
}

static void one_fence_for_two_holders_of_tokens_is_seen(void **state)
{
    (void)state;
    sim_oracle_has_room(&oracle, 0, 2);
    (void)sim_oracle_granted(&oracle, 0, FENCE, 0);
    (void)sim_oracle_granted(&oracle, 0, FENCE, 0);
    assert_objects("fences-rise", "comes after");
}

static void who_was_broken_by_force_may_overlap_until_it_hears(void **state)
{
    (void)state;
    int first = sim_oracle_granted(&oracle, 0, FENCE, 10 * MS);
    sim_oracle_broken_now(&oracle, first, 20 * MS);
    sim_oracle_backed(&oracle, first, false, 21 * MS);
    (void)sim_oracle_granted(&oracle, 0, FENCE + 2048, 22 * MS);
    assert_int_equal(objections, 0);
    (void)sim_oracle_granted(&oracle, 0, FENCE + 4096, 23 * MS);
    assert_objects("one-holder", "two holders");
}

static void a_mark_too_few_or_too_many_is_seen(void **state)
{
    (void)state;
    sim_oracle_marks(&oracle, 0, 2, 2);
    assert_int_equal(objections, 0);
    sim_oracle_marks(&oracle, 0, 1, 2);
    assert_objects("marks-add-up", "the server has 1 marks");
    sim_oracle_marks(&oracle, 0, 3, 2);
    assert_objects("marks-add-up", "the server has 3 marks");
}

static void a_mark_for_a_waiter_that_hears_nothing_is_seen(void **state)
{
    (void)state;
    sim_oracle_marked(&oracle, true, false);
    sim_oracle_marked(&oracle, false, true);
    assert_int_equal(objections, 0);
    sim_oracle_marked(&oracle, false, false);
    assert_objects("none-to-the-deaf", "hears nothing");
}

static void who_waits_among_them_and_is_not_told_is_seen(void **state)
{
    (void)state;
    sim_oracle_told_them(&oracle, 0, true);
    assert_int_equal(objections, 0);
    sim_oracle_told_them(&oracle, 0, false);
    assert_objects("theirs-are-told", "not told");
}

static void a_turn_that_does_not_come_is_seen(void **state)
{
    (void)state;
    sim_oracle_their_turn(&oracle, 0, 10000 * MS, 10500 * MS);
    assert_int_equal(objections, 0);
    sim_oracle_their_turn(&oracle, 0, 10501 * MS, 10500 * MS);
    assert_objects("their-turn", "none gets it");
}

static void a_key_that_stays_without_an_end_is_seen(void **state)
{
    (void)state;
    sim_oracle_endless(&oracle, 0, 500 * MS, 600 * MS);
    assert_int_equal(objections, 0);
    sim_oracle_endless(&oracle, 0, 601 * MS, 600 * MS);
    assert_objects("ends-anyway", "no end for");
}

static void each_change_allows_a_question_more(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        sim_oracle_news(&oracle, 0);
        sim_oracle_asks(&oracle, 1, 0, i * 10 * MS);
    }
    assert_int_equal(objections, 0);
    for (int i = 200; i < 230 && objections == 0; i++)
        sim_oracle_asks(&oracle, 1, 0, i * 10 * MS);
    assert_objects("few-questions", "process 1 asks for name 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_of_theirs_beside_one_of_ours_is_seen, begin),
        cmocka_unit_test_setup(several_tokens_have_several_holders_and_no_order, begin),
        cmocka_unit_test_setup(one_fence_for_two_holders_of_tokens_is_seen, begin),
        cmocka_unit_test_setup(who_was_broken_by_force_may_overlap_until_it_hears, begin),
        cmocka_unit_test_setup(a_mark_too_few_or_too_many_is_seen, begin),
        cmocka_unit_test_setup(a_mark_for_a_waiter_that_hears_nothing_is_seen, begin),
        cmocka_unit_test_setup(who_waits_among_them_and_is_not_told_is_seen, begin),
        cmocka_unit_test_setup(a_turn_that_does_not_come_is_seen, begin),
        cmocka_unit_test_setup(a_key_that_stays_without_an_end_is_seen, begin),
        cmocka_unit_test_setup(each_change_allows_a_question_more, begin),
    };
    return cmocka_run_group_tests_name("oracle beside", tests, NULL, NULL);
}
