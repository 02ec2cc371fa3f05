/* SPDX-License-Identifier: MIT */
/* trial_test.c - when a reader spins and yields, with the numbers of pool/lane_wait.c. */
#include "pool/trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct hfi_trial_rules spin = {.score_most = 8, .hits = 1, .pause = 64, .pause_most = 1024};
static const struct hfi_trial_rules yields = {.score_most = 1, .hits = 64, .pause = 64, .pause_most = 1024};

static const struct hfi_trial_rules lone = {
    .score_most = 256, .miss_takes = 4, .hits = 64, .pause = 256, .pause_most = 16384, .score_again = 256};

#define SHORT true
#define LONG  false

/* The number of questions in a row that are answered with no. The first yes is taken, too. */
static int pause_of(struct hfi_trial *trial)
{
    int noes = 0;
    for (; !hfi_trial_ask(trial, 1); noes++)
        assert_false(hfi_trial_is_on(trial));
    return noes;
}

static void note(struct hfi_trial *trial, bool hit, int times)
{
    for (int i = 0; i < times; i++) {
        assert_true(hfi_trial_ask(trial, 1));
        hfi_trial_note(trial, &spin, hit);
    }
}

static void take(struct hfi_trial *trial, bool is_short, int times)
{
    for (int i = 0; i < times; i++) {
        assert_true(hfi_trial_is_on(trial));
        hfi_trial_note(trial, &yields, is_short);
    }
}

static void the_first_question_says_yes_and_one_miss_begins_a_pause(void **state)
{
    struct hfi_trial trial = {0};
    (void)state;
    assert_true(hfi_trial_is_on(&trial));
    note(&trial, false, 1);
    assert_false(hfi_trial_is_on(&trial));
    assert_int_equal(pause_of(&trial), 63); /* the sixty-fourth question says yes */
    assert_true(hfi_trial_is_on(&trial));
}

static void pauses_double_up_to_the_maximum(void **state)
{
    static const int expected[] = {64, 128, 256, 512, 1024, 1024, 1024};
    struct hfi_trial trial = {0};
    (void)state;
    assert_true(hfi_trial_ask(&trial, 1));
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        hfi_trial_note(&trial, &spin, false);
        assert_int_equal(pause_of(&trial), expected[i] - 1);
    }
}

static void a_hit_makes_the_next_pause_the_first_one_again(void **state)
{
    struct hfi_trial trial = {0};
    (void)state;
    for (int pauses = 0; pauses < 10; pauses++) {
        for (int i = 0; i < pauses; i++) {
            (void)pause_of(&trial);
            hfi_trial_note(&trial, &spin, false);
        }
        (void)pause_of(&trial);
        hfi_trial_note(&trial, &spin, true);
        note(&trial, false, 2); /* after the pause the score was 1, and the hit made it 2 */
        assert_int_equal(pause_of(&trial), 63);
        hfi_trial_note(&trial, &spin, false);
        assert_int_equal(pause_of(&trial), 127);
    }
}

static void the_score_rises_up_to_its_limit_and_falls(void **state)
{
    (void)state;
    for (int hits = 0; hits < 20; hits++) {
        struct hfi_trial trial = {0};
        int score = hits < 7 ? 1 + hits : 8;
        note(&trial, true, hits);
        note(&trial, false, score - 1);
        assert_true(hfi_trial_is_on(&trial));
        note(&trial, false, 1);
        assert_false(hfi_trial_is_on(&trial));
        assert_int_equal(pause_of(&trial), 63);
    }
}

static void hits_between_misses_keep_it_on(void **state)
{
    struct hfi_trial trial = {0};
    (void)state;
    note(&trial, true, 1);
    for (int i = 0; i < 1000; i++) {
        note(&trial, false, 1);
        note(&trial, true, 1);
    }
    note(&trial, false, 1);
    assert_true(hfi_trial_is_on(&trial));
    note(&trial, false, 1);
    assert_false(hfi_trial_is_on(&trial));
}

static void a_try_that_is_not_noted_changes_nothing(void **state)
{
    struct hfi_trial trial = {0};
    (void)state;
    note(&trial, true, 2);
    for (int i = 0; i < 1000; i++)
        assert_true(hfi_trial_ask(&trial, 1));
    note(&trial, false, 2);
    assert_true(hfi_trial_is_on(&trial));
    note(&trial, false, 1);
    assert_false(hfi_trial_is_on(&trial));
}

static void a_yield_that_took_too_long_pauses_for_so_many_sleeps(void **state)
{
    static const int expected[] = {64, 128, 256, 512, 1024, 1024};
    struct hfi_trial trial = {0};
    (void)state;
    assert_true(hfi_trial_ask(&trial, 1));
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        take(&trial, SHORT, 63); /* one too few to be forgiven, and the score does not rise */
        take(&trial, LONG, 1);
        assert_int_equal(pause_of(&trial), expected[i] - 1);
    }
}

static void so_many_short_yields_in_a_row_make_the_next_pause_the_first_one_again(void **state)
{
    struct hfi_trial trial = {0};
    (void)state;
    for (int enough = 64; enough < 200; enough += 45) {
        assert_true(hfi_trial_ask(&trial, 1));
        for (int i = 0; i < 3; i++) {
            take(&trial, LONG, 1);
            assert_int_equal(pause_of(&trial), (64 << i) - 1);
        }
        take(&trial, SHORT, enough);
        take(&trial, LONG, 1);
        assert_int_equal(pause_of(&trial), 63);
        take(&trial, SHORT, enough); /* and again: the count began anew */
    }
}

static void short_yields_of_before_a_long_one_do_not_count(void **state)
{
    struct hfi_trial trial = {0};
    (void)state;
    assert_true(hfi_trial_ask(&trial, 1));
    take(&trial, LONG, 1);
    assert_int_equal(pause_of(&trial), 63);
    take(&trial, SHORT, 40);
    take(&trial, LONG, 1);
    assert_int_equal(pause_of(&trial), 127);
    take(&trial, SHORT, 40);
    take(&trial, LONG, 1);
    assert_int_equal(pause_of(&trial), 255);
}

/* The number of long ones in a row that begin a pause. */
static int long_ones(struct hfi_trial *trial)
{
    int count = 0;
    for (; hfi_trial_is_on(trial); count++)
        hfi_trial_note(trial, &lone, LONG);
    return count;
}

static void behind_a_pause_so_many_misses_begin_the_next_one(void **state)
{
    static const int pauses[] = {256, 512, 1024, 2048, 4096, 8192, 16384, 16384};
    struct hfi_trial trial = {0};
    (void)state;
    assert_true(hfi_trial_ask(&trial, 1));
    assert_int_equal(long_ones(&trial), 1); /* nothing is known yet */
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        assert_int_equal(pause_of(&trial), pauses[i] - 1);
        assert_int_equal(long_ones(&trial), 64);
    }
    (void)pause_of(&trial);
    for (int i = 0; i < 64; i++)
        hfi_trial_note(&trial, &lone, SHORT);
    assert_int_equal(long_ones(&trial), 64);
    assert_int_equal(pause_of(&trial), 255);
}

/* Of the trial that has just begun again. */
static int one_long_of(int count, int most)
{
    struct hfi_trial trial = {0};
    int noted = 0;
    (void)long_ones(&trial);
    (void)pause_of(&trial);
    for (; hfi_trial_is_on(&trial) && noted < most; noted++)
        hfi_trial_note(&trial, &lone, noted % count == 0 ? LONG : SHORT);
    return noted;
}

static void more_than_one_long_of_five_begin_a_pause(void **state)
{
    (void)state;
    assert_int_equal(one_long_of(5, 10000), 10000);
    assert_in_range(one_long_of(4, 10000), 64, 1100);
    assert_in_range(one_long_of(2, 10000), 64, 180);
}

static void a_question_may_stand_for_several(void **state)
{
    struct hfi_trial trial = {0};
    (void)state;
    assert_true(hfi_trial_ask(&trial, 5));
    hfi_trial_note(&trial, &yields, LONG);
    for (int i = 0; i < 3; i++)
        assert_false(hfi_trial_ask(&trial, 20));
    assert_true(hfi_trial_ask(&trial, 4));
    hfi_trial_note(&trial, &yields, LONG);
    assert_true(hfi_trial_ask(&trial, 1000)); /* more than are left */
    assert_true(hfi_trial_is_on(&trial));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_question_says_yes_and_one_miss_begins_a_pause),
        cmocka_unit_test(pauses_double_up_to_the_maximum),
        cmocka_unit_test(a_hit_makes_the_next_pause_the_first_one_again),
        cmocka_unit_test(the_score_rises_up_to_its_limit_and_falls),
        cmocka_unit_test(hits_between_misses_keep_it_on),
        cmocka_unit_test(a_try_that_is_not_noted_changes_nothing),
        cmocka_unit_test(a_yield_that_took_too_long_pauses_for_so_many_sleeps),
        cmocka_unit_test(so_many_short_yields_in_a_row_make_the_next_pause_the_first_one_again),
        cmocka_unit_test(short_yields_of_before_a_long_one_do_not_count),
        cmocka_unit_test(behind_a_pause_so_many_misses_begin_the_next_one),
        cmocka_unit_test(more_than_one_long_of_five_begin_a_pause),
        cmocka_unit_test(a_question_may_stand_for_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
