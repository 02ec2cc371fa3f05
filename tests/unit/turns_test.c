/* SPDX-License-Identifier: MIT */
/* turns_test.c - how many lost lanes dial at once over a slow link. */
#include "pool/turns.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NOW   (1000000 * HFI_MS)
#define ALONE (150 * HFI_MS)

static bool may(struct hfi_turns *turns, int64_t now_ns)
{
    return hfi_turns_next_ns(turns, now_ns) <= now_ns;
}

/* Begins as many as may, at most `most`. */
static int begin(struct hfi_turns *turns, int most, int64_t now_ns)
{
    int begun = 0;
    while (begun < most && may(turns, now_ns)) {
        hfi_turns_begin(turns, now_ns);
        begun++;
    }
    return begun;
}

static void without_a_limit_any_number_dials_at_once(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    assert_int_equal(begin(&turns, 1000, NOW), 1000);
}

/* Each dial takes as long as one alone: as many more may dial as have come up. */
static void over_a_wide_link_their_number_doubles(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    int64_t now = NOW;
    hfi_turns_limit(&turns, ALONE);
    for (int expected = 2; expected <= 16; expected *= 2) {
        assert_int_equal(begin(&turns, 1000, now), expected);
        assert_int_equal(hfi_turns_next_ns(&turns, now), now + 8 * ALONE);
        for (int i = 0; i < expected; i++)
            hfi_turns_end(&turns, true, now, now + ALONE);
        now += ALONE;
    }
}

/* The link is shared: n dials take n times as long. */
static void over_a_narrow_link_two_dial_at_once(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    int64_t now = NOW;
    hfi_turns_limit(&turns, ALONE);
    for (int round = 0; round < 8; round++) {
        int begun = begin(&turns, 1000, now);
        assert_int_equal(begun, 2);
        for (int i = 0; i < begun; i++)
            hfi_turns_end(&turns, true, now, now + begun * ALONE);
        now += begun * ALONE;
    }
}

/* The link becomes narrow while eight dial. */
static void what_takes_longer_than_alone_takes_turns_away(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    hfi_turns_limit(&turns, ALONE);
    for (int round = 0; round < 2; round++)
        for (int i = begin(&turns, 1000, NOW); i-- > 0;)
            hfi_turns_end(&turns, true, NOW, NOW + ALONE * 5 / 4);
    assert_int_equal(begin(&turns, 1000, NOW), 8);
    for (int i = 0; i < 8; i++)
        hfi_turns_end(&turns, true, NOW, NOW + ALONE * 5 / 4 + 1000);
    assert_int_equal(begin(&turns, 1000, NOW), 2);
}

/* The reserved lane is lost once more meanwhile. */
static void what_has_been_learned_is_kept(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    hfi_turns_limit(&turns, ALONE);
    for (int i = begin(&turns, 1000, NOW); i-- > 0;)
        hfi_turns_end(&turns, true, NOW, NOW + ALONE);
    hfi_turns_limit(&turns, ALONE);
    assert_int_equal(begin(&turns, 1000, NOW), 4);
}

static void the_first_dial_may_have_been_slow_for_another_reason(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    hfi_turns_limit(&turns, 10 * ALONE);
    (void)begin(&turns, 1, NOW);
    hfi_turns_end(&turns, true, NOW, NOW + ALONE);
    for (int i = begin(&turns, 1000, NOW); i-- > 0;)
        hfi_turns_end(&turns, true, NOW, NOW + 2 * ALONE); /* not wide after all */
    assert_int_equal(begin(&turns, 1000, NOW), 2);
}

static void a_dial_that_hangs_or_fails_ends_the_limit(void **state)
{
    (void)state;
    struct hfi_turns turns = {0};
    hfi_turns_limit(&turns, ALONE);
    assert_int_equal(begin(&turns, 1000, NOW), 2);
    assert_int_equal(begin(&turns, 1000, NOW + 8 * ALONE - 1), 0);
    assert_int_equal(begin(&turns, 1000, NOW + 8 * ALONE), 1000);
    turns = (struct hfi_turns){0};
    hfi_turns_limit(&turns, ALONE);
    assert_int_equal(begin(&turns, 1000, NOW), 2);
    hfi_turns_end(&turns, false, NOW, NOW + 1);
    assert_int_equal(begin(&turns, 1000, NOW + 1), 1000);
    hfi_turns_limit(&turns, ALONE); /* those that hang still count, and are waited for once more */
    assert_int_equal(begin(&turns, 1000, NOW + 2), 0);
    assert_int_equal(begin(&turns, 1000, NOW + 1 + 8 * ALONE), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_limit_any_number_dials_at_once),
        cmocka_unit_test(over_a_wide_link_their_number_doubles),
        cmocka_unit_test(over_a_narrow_link_two_dial_at_once),
        cmocka_unit_test(what_takes_longer_than_alone_takes_turns_away),
        cmocka_unit_test(what_has_been_learned_is_kept),
        cmocka_unit_test(the_first_dial_may_have_been_slow_for_another_reason),
        cmocka_unit_test(a_dial_that_hangs_or_fails_ends_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
