/* SPDX-License-Identifier: MIT */
/* race_test.c - when each of a server's addresses has its turn. */
#include "pool/race.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NOW   (1000000 * HFI_MS)
#define UNTIL (NOW + 2000 * HFI_MS)

static void a_single_address_begins_at_once_and_has_all_the_time(void **state)
{
    struct hfi_race race;
    (void)state;
    hfi_race_init(&race, 1, NOW, UNTIL);
    assert_int_equal(hfi_race_begin(&race, NOW), 0);
    assert_int_equal(hfi_race_begin(&race, UNTIL), -1);
    assert_int_equal(hfi_race_again_ns(&race), HFI_NEVER);
    assert_false(hfi_race_is_lost(&race));
    hfi_race_failed(&race, NOW);
    assert_true(hfi_race_is_lost(&race));
}

static void the_next_one_begins_after_a_quarter_of_a_second_beside_those_before(void **state)
{
    struct hfi_race race;
    (void)state;
    hfi_race_init(&race, 3, NOW, UNTIL);
    assert_int_equal(hfi_race_again_ns(&race), NOW);
    assert_int_equal(hfi_race_begin(&race, NOW), 0);
    assert_int_equal(hfi_race_begin(&race, NOW), -1);
    assert_int_equal(hfi_race_again_ns(&race), NOW + 250 * HFI_MS);
    assert_int_equal(hfi_race_begin(&race, NOW + 250 * HFI_MS - 1), -1);
    assert_int_equal(hfi_race_begin(&race, NOW + 400 * HFI_MS), 1); /* we were late: that is no reason to hurry */
    assert_int_equal(hfi_race_begin(&race, NOW + 649 * HFI_MS), -1);
    assert_int_equal(hfi_race_begin(&race, NOW + 650 * HFI_MS), 2);
    assert_int_equal(race.running, 3);
}

static void a_failed_address_makes_room_for_the_next_at_once(void **state)
{
    struct hfi_race race;
    (void)state;
    hfi_race_init(&race, 3, NOW, UNTIL);
    assert_int_equal(hfi_race_begin(&race, NOW), 0);
    hfi_race_failed(&race, NOW + 1);
    assert_int_equal(hfi_race_begin(&race, NOW + 1), 1);
    assert_int_equal(hfi_race_begin(&race, NOW + 2), -1);
    hfi_race_failed(&race, NOW + 2);
    assert_int_equal(hfi_race_begin(&race, NOW + 2), 2);
    assert_false(hfi_race_is_lost(&race));
    hfi_race_failed(&race, NOW + 3);
    assert_true(hfi_race_is_lost(&race));
    assert_int_equal(hfi_race_begin(&race, UNTIL), -1);
}

static void in_a_short_time_all_have_their_turn(void **state)
{
    struct hfi_race race;
    (void)state;
    for (int count = 1; count <= HFI_RACERS_MOST; count++) {
        int64_t until_ns = NOW + 40 * HFI_MS;
        hfi_race_init(&race, count, NOW, until_ns);
        for (int i = 0; i < count; i++) {
            assert_true(hfi_race_again_ns(&race) < until_ns);
            assert_int_equal(hfi_race_begin(&race, hfi_race_again_ns(&race)), i);
        }
    }
}

static void a_postponed_address_has_its_turn_again(void **state)
{
    struct hfi_race race;
    (void)state;
    hfi_race_init(&race, 1, NOW, UNTIL);
    assert_int_equal(hfi_race_begin(&race, NOW), 0);
    hfi_race_postponed(&race, NOW + 5);
    assert_false(hfi_race_is_lost(&race));
    assert_int_equal(hfi_race_again_ns(&race), NOW + 5);
    assert_int_equal(hfi_race_begin(&race, NOW + 4), -1);
    assert_int_equal(hfi_race_begin(&race, NOW + 5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_address_begins_at_once_and_has_all_the_time),
        cmocka_unit_test(the_next_one_begins_after_a_quarter_of_a_second_beside_those_before),
        cmocka_unit_test(a_failed_address_makes_room_for_the_next_at_once),
        cmocka_unit_test(in_a_short_time_all_have_their_turn),
        cmocka_unit_test(a_postponed_address_has_its_turn_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
