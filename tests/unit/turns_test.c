/* SPDX-License-Identifier: MIT */
/* turns_test.c - how many lost lanes dial at once over a slow link. */
#include "pool/turns.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NOW   (1000000 * HFI_MS)
#define ROAD  (50 * HFI_MS)
#define ALONE (150 * HFI_MS)

/* Begins as many as may, at most `most`. */
static int begin(struct hfi_turns *turns, int most, int64_t now_ns)
{
    int begun = 0;
    while (begun < most && hfi_turns_next_ns(turns, ROAD, now_ns) <= now_ns) {
        hfi_turns_begin(turns, now_ns);
        begun++;
    }
    return begun;
}

static void end(struct hfi_turns *turns, int count, bool whole, int64_t begun_ns, int64_t took_ns)
{
    while (count-- > 0)
        hfi_turns_end(turns, whole, begun_ns, begun_ns + took_ns);
}

/* Of those that come up together the last one has nobody beside it. */
static void over_a_wide_link_their_number_doubles(void **state)
{
    static const int expected[] = {2, 3, 5, 9, 17};
    (void)state;
    struct hfi_turns turns = {0};
    int64_t now = NOW;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++, now += ALONE) {
        assert_int_equal(begin(&turns, 1000, now), expected[i]);
        end(&turns, expected[i], true, now, ALONE + (i > 0 ? ALONE / 4 : 0));
    }
}

/* The line is shared: n dials take n times as long. */
static void over_a_narrow_link_a_few_dial_at_once(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    int64_t now = NOW;
    for (int round = 0; round < 20; round++) {
        int begun = begin(&turns, 1000, now);
        assert_in_range(begun, 2, 3);
        end(&turns, begun, true, now, begun * ALONE);
        now += begun * ALONE;
    }
}

static void what_takes_longer_takes_turns_away(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    for (int round = 0; round < 3; round++)
        end(&turns, begin(&turns, 1000, NOW), true, NOW, ALONE);
    assert_int_equal(begin(&turns, 1000, NOW), 9);
    end(&turns, 9, true, NOW, ALONE * 5 / 4 + 4);
    assert_int_equal(begin(&turns, 1000, NOW), 2);
}

static void one_dial_after_another_teaches_nothing(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    for (int i = 0; i < 20; i++) {
        assert_int_equal(begin(&turns, 1, NOW + i * ALONE), 1);
        end(&turns, 1, true, NOW + i * ALONE, ALONE);
    }
    assert_int_equal(begin(&turns, 1000, NOW + 20 * ALONE), 2);
}

static void dials_that_fail_or_are_of_another_kind_teach_nothing(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    for (int round = 0; round < 5; round++) {
        assert_int_equal(begin(&turns, 1000, NOW), 2);
        end(&turns, 2, false, NOW, HFI_MS);
    }
    assert_int_equal(turns.best_ns, 0);
}

static void what_was_learned_is_forgotten_after_a_pause(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    for (int round = 0; round < 3; round++)
        end(&turns, begin(&turns, 1000, NOW), true, NOW, ALONE);
    struct hfi_turns later = turns;
    assert_int_equal(begin(&turns, 1000, NOW + ALONE + 8 * ALONE), 9);
    assert_int_equal(begin(&later, 1000, NOW + ALONE + 8 * ALONE + 1), 2);
}

static void a_dial_that_hangs_lets_another_begin_after_a_while(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    assert_int_equal(begin(&turns, 1000, NOW), 2);
    assert_int_equal(hfi_turns_next_ns(&turns, ROAD, NOW + 1), NOW + 8 * ROAD);
    assert_int_equal(begin(&turns, 1000, NOW + 8 * ROAD + 1), 1); /* one for each such time */
    turns = (struct hfi_turns){0};
    assert_int_equal(begin(&turns, 1000, NOW), 2);
    end(&turns, 1, true, NOW, 2 * ALONE);
    assert_int_equal(begin(&turns, 1000, NOW + 2 * ALONE), 2);
    assert_int_equal(hfi_turns_next_ns(&turns, ROAD, NOW + 2 * ALONE), NOW + 2 * ALONE + 8 * 2 * ALONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_a_wide_link_their_number_doubles),
        cmocka_unit_test(over_a_narrow_link_a_few_dial_at_once),
        cmocka_unit_test(what_takes_longer_takes_turns_away),
        cmocka_unit_test(one_dial_after_another_teaches_nothing),
        cmocka_unit_test(dials_that_fail_or_are_of_another_kind_teach_nothing),
        cmocka_unit_test(what_was_learned_is_forgotten_after_a_pause),
        cmocka_unit_test(a_dial_that_hangs_lets_another_begin_after_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
