/* SPDX-License-Identifier: MIT */
/* random_test.c - bytes, random numbers and jitter. */
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void words_from_the_supply_do_not_come_twice(void **state)
{
    (void)state;
    uint64_t words[100];
    struct hfi_random_supply *supply = hfi_random_supply_new();
    assert_non_null(supply);
    for (int i = 0; i < 100; i++) {
        assert_true(hfi_random_word(supply, &words[i]));
        assert_true(words[i] != 0);
        for (int before = 0; before < i; before++)
            assert_true(words[before] != words[i]);
    }
    hfi_random_supply_free(supply);
    hfi_random_supply_free(NULL);
}

/* The words in supply at the fork are the parent's; the child fetches its own. */
static void a_fork_child_has_none_of_the_parents_words(void **state)
{
    (void)state;
    uint64_t first, theirs[40], ours;
    int ends[2];
    struct hfi_random_supply *supply = hfi_random_supply_new();
    assert_non_null(supply);
    assert_true(hfi_random_word(supply, &first));
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool ok = true;
        for (int i = 0; i < 40; i++)
            ok = hfi_random_word(supply, &theirs[i]) && ok;
        _exit(ok && write(ends[1], theirs, sizeof theirs) == (ssize_t)sizeof theirs ? 0 : 1);
    }
    assert_int_equal(read(ends[0], theirs, sizeof theirs), sizeof theirs);
    for (int i = 0; i < 40; i++) {
        assert_true(hfi_random_word(supply, &ours));
        for (int j = 0; j < 40; j++)
            assert_true(ours != theirs[j]);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
    hfi_random_supply_free(supply);
}

static void the_same_state_rolls_the_same_dice(void **state)
{
    (void)state;
    uint64_t one = 42, other = 42, third = 43;
    for (int i = 0; i < 100; i++)
        assert_true(hfi_rng_next(&one) == hfi_rng_next(&other));
    assert_true(hfi_rng_next(&one) != hfi_rng_next(&third));
}

static void jitter_keeps_within_its_part_and_uses_both_sides(void **state)
{
    (void)state;
    uint64_t rng = 7;
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 10000; i++) {
        int64_t value = hfi_jitter(&rng, 1000, 0.1);
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    assert_true(least >= 900 && least <= 905);
    assert_true(most <= 1100 && most >= 1095);
    assert_int_equal(hfi_jitter(&rng, 0, 0.5), 0);
    assert_int_equal(hfi_jitter(&rng, 77, 0), 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_bytes_differ_and_stay_inside_their_room),
        cmocka_unit_test(words_from_the_supply_do_not_come_twice),
        cmocka_unit_test(a_fork_child_has_none_of_the_parents_words),
        cmocka_unit_test(the_same_state_rolls_the_same_dice),
        cmocka_unit_test(jitter_keeps_within_its_part_and_uses_both_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
