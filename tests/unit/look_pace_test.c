/* SPDX-License-Identifier: MIT */
/* look_pace_test.c - when all locks are looked at again. */
#include "base/clock.h"
#include "core/policy/look_pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define EVERY (50 * HFI_MS)

static void a_look_takes_a_hundredth_of_a_cpu(void **state)
{
    (void)state;
    int64_t before = 0;
    assert_int_equal(hfi_look_pause_ns(&before, 2 * HFI_MS, EVERY), EVERY); /* the first one */
    assert_int_equal(hfi_look_pause_ns(&before, 2 * HFI_MS, EVERY), 200 * HFI_MS);
    assert_int_equal(hfi_look_pause_ns(&before, HFI_MS / 10, EVERY), EVERY);
    assert_int_equal(hfi_look_pause_ns(&before, HFI_MS / 10, EVERY), EVERY);
}

static void one_look_that_got_no_cpu_delays_nothing(void **state)
{
    (void)state;
    int64_t before = 0;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(hfi_look_pause_ns(&before, 300 * HFI_MS, EVERY), EVERY);
        assert_int_equal(hfi_look_pause_ns(&before, HFI_MS / 10, EVERY), EVERY);
    }
}

static void no_pause_is_longer_than_ten_seconds(void **state)
{
    (void)state;
    int64_t before = 0;
    (void)hfi_look_pause_ns(&before, INT64_MAX, EVERY);
    assert_int_equal(hfi_look_pause_ns(&before, INT64_MAX, EVERY), 10 * HFI_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_takes_a_hundredth_of_a_cpu),
        cmocka_unit_test(one_look_that_got_no_cpu_delays_nothing),
        cmocka_unit_test(no_pause_is_longer_than_ten_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
