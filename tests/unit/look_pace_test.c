/* SPDX-License-Identifier: MIT */
/* look_pace_test.c - when all locks are looked at again. */
#include "base/clock.h"
#include "core/policy/look_pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define EVERY (50 * HFI_MS)

struct looker {
    struct hfi_look_pace pace;
    int64_t now;
};

static int64_t look(struct looker *looker, int64_t took)
{
    int64_t began = looker->now;
    looker->now += took;
    return hfi_look_pause_ns(&looker->pace, began, looker->now, EVERY);
}

static int64_t look_and_pause(struct looker *looker, int64_t took)
{
    int64_t pause = look(looker, took);
    looker->now += pause;
    return pause;
}

static void looks_take_a_hundredth_of_a_cpu(void **state)
{
    (void)state;
    struct looker looker = {0};
    assert_int_equal(look_and_pause(&looker, 2 * HFI_MS), EVERY); /* the first one */
    for (int i = 0; i < 5; i++)
        assert_int_equal(look_and_pause(&looker, 2 * HFI_MS), 200 * HFI_MS);
}

static void one_look_that_got_no_cpu_delays_nothing(void **state)
{
    (void)state;
    struct looker looker = {0};
    for (int i = 0; i < 10; i++) {
        assert_int_equal(look_and_pause(&looker, 300 * HFI_MS), EVERY);
        assert_int_equal(look_and_pause(&looker, HFI_MS / 10), EVERY);
        assert_int_equal(look_and_pause(&looker, HFI_MS / 10), EVERY);
    }
}

static void every_second_look_that_is_dear_is_paid_for(void **state)
{
    (void)state;
    struct looker looker = {0};
    int64_t took = 0;
    for (int i = 0; i < 100; i++) {
        int64_t dear = i % 2 == 0 ? 20 * HFI_MS : HFI_MS / 10;
        took += dear;
        (void)look_and_pause(&looker, dear);
    }
    assert_true(took * 90 < looker.now);
}

/* Calls that wait no longer than until the next look or two: nobody waits at the end of the pause, and a little later somebody
 * does. Each dear look could be the first one. */
static void looks_with_gaps_between_are_paid_for(void **state)
{
    (void)state;
    for (int64_t gap = 0; gap < 1000 * HFI_MS; gap += 10 * HFI_MS) {
        struct looker looker = {0};
        int64_t took = 0;
        for (int i = 0; i < 200; i++) {
            took += 5 * HFI_MS;
            (void)look_and_pause(&looker, 5 * HFI_MS);
            looker.now += i % 2 == 0 ? gap : 0;
        }
        assert_true(took * 90 < looker.now);
    }
}

static void looks_long_ago_delay_nothing(void **state)
{
    (void)state;
    struct looker looker = {0};
    for (int i = 0; i < 2; i++)
        (void)look(&looker, 300 * HFI_MS);
    looker.now += 20 * HFI_SECOND;
    assert_int_equal(look(&looker, HFI_MS / 10), EVERY);
}

static void no_pause_for_a_look_is_longer_than_ten_seconds(void **state)
{
    (void)state;
    struct looker looker = {0};
    (void)look(&looker, 3600 * HFI_SECOND);
    assert_int_equal(look(&looker, 3600 * HFI_SECOND), 10 * HFI_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_take_a_hundredth_of_a_cpu),
        cmocka_unit_test(one_look_that_got_no_cpu_delays_nothing),
        cmocka_unit_test(every_second_look_that_is_dear_is_paid_for),
        cmocka_unit_test(looks_with_gaps_between_are_paid_for),
        cmocka_unit_test(looks_long_ago_delay_nothing),
        cmocka_unit_test(no_pause_for_a_look_is_longer_than_ten_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
