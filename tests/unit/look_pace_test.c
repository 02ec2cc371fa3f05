/* SPDX-License-Identifier: MIT */
/* look_pace_test.c - when all locks are looked at again. */
#include "base/clock.h"
#include "core/policy/look_pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define EVERY (50 * HFI_MS)

static void looks_take_a_hundredth_of_a_cpu(void **state)
{
    (void)state;
    struct hfi_look_pace pace = {0};
    assert_int_equal(hfi_look_pause_ns(&pace, 2 * HFI_MS, EVERY), EVERY); /* the first one */
    for (int i = 0; i < 5; i++)
        assert_int_equal(hfi_look_pause_ns(&pace, 2 * HFI_MS, EVERY), 200 * HFI_MS);
}

static void one_look_that_got_no_cpu_delays_nothing(void **state)
{
    (void)state;
    struct hfi_look_pace pace = {0};
    for (int i = 0; i < 10; i++) {
        assert_int_equal(hfi_look_pause_ns(&pace, 300 * HFI_MS, EVERY), EVERY);
        assert_int_equal(hfi_look_pause_ns(&pace, HFI_MS / 10, EVERY), EVERY);
        assert_int_equal(hfi_look_pause_ns(&pace, HFI_MS / 10, EVERY), EVERY);
    }
}

static void every_second_look_that_is_dear_is_paid_for(void **state)
{
    (void)state;
    struct hfi_look_pace pace = {0};
    int64_t took = 0, paused = 0;
    for (int i = 0; i < 100; i++) {
        int64_t look = i % 2 == 0 ? 20 * HFI_MS : HFI_MS / 10;
        took += look;
        paused += hfi_look_pause_ns(&pace, look, EVERY);
    }
    assert_true(took * 90 < paused);
}

static void no_pause_is_longer_than_ten_seconds(void **state)
{
    (void)state;
    struct hfi_look_pace pace = {0};
    (void)hfi_look_pause_ns(&pace, INT64_MAX, EVERY);
    assert_int_equal(hfi_look_pause_ns(&pace, INT64_MAX, EVERY), 10 * HFI_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_take_a_hundredth_of_a_cpu),
        cmocka_unit_test(one_look_that_got_no_cpu_delays_nothing),
        cmocka_unit_test(every_second_look_that_is_dear_is_paid_for),
        cmocka_unit_test(no_pause_is_longer_than_ten_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
