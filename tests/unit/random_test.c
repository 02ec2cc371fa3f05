/* SPDX-License-Identifier: MIT */
/* random_test.c - bytes, dice and jitter. */
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void random_bytes_differ_and_stay_inside_their_room(void **state)
{
    (void)state;
    unsigned char one[40] = {0}, other[40] = {0}, zero[8] = {0};
    assert_true(hfi_random(one, 32));
    assert_true(hfi_random(other, 32));
    assert_memory_not_equal(one, other, 32);
    assert_memory_equal(one + 32, zero, 8);
    assert_true(hfi_random(NULL, 0));
}

static void the_same_state_rolls_the_same_dice(void **state)
{
    (void)state;
    uint64_t one = 42, other = 42, third = 43;
    for (int i = 0; i < 100; i++)
        assert_true(hfi_dice(&one) == hfi_dice(&other));
    assert_true(hfi_dice(&one) != hfi_dice(&third));
}

static void jitter_keeps_within_its_part_and_uses_both_sides(void **state)
{
    (void)state;
    uint64_t dice = 7;
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 10000; i++) {
        int64_t value = hfi_jitter(&dice, 1000, 0.1);
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    assert_true(least >= 900 && least <= 905);
    assert_true(most <= 1100 && most >= 1095);
    assert_int_equal(hfi_jitter(&dice, 0, 0.5), 0);
    assert_int_equal(hfi_jitter(&dice, 77, 0), 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_bytes_differ_and_stay_inside_their_room),
        cmocka_unit_test(the_same_state_rolls_the_same_dice),
        cmocka_unit_test(jitter_keeps_within_its_part_and_uses_both_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
