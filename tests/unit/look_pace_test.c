/* SPDX-License-Identifier: MIT */
/* look_pace_test.c - when all locks are looked at again. */
#include "base/clock.h"
#include "core/policy/look_pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define EVERY (50 * HFI_MS)

static void looks_use_a_hundredth_of_a_cpu(void **state)
{
    (void)state;
    assert_int_equal(hfi_look_pause_ns(2 * HFI_MS, EVERY), 200 * HFI_MS);
}

static void cheap_looks_come_as_often_as_was_asked_for(void **state)
{
    (void)state;
    assert_int_equal(hfi_look_pause_ns(0, EVERY), EVERY);
    assert_int_equal(hfi_look_pause_ns(HFI_MS / 10, EVERY), EVERY);
}

static void no_look_is_paid_for_with_more_than_ten_seconds(void **state)
{
    (void)state;
    assert_int_equal(hfi_look_pause_ns(INT64_MAX, EVERY), 10 * HFI_SECOND);
    assert_int_equal(hfi_look_pause_ns(INT64_MAX, 20 * HFI_SECOND), 20 * HFI_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_use_a_hundredth_of_a_cpu),
        cmocka_unit_test(cheap_looks_come_as_often_as_was_asked_for),
        cmocka_unit_test(no_look_is_paid_for_with_more_than_ten_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
