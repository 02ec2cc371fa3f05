/* SPDX-License-Identifier: MIT */
/* entry_early_test.c - messages that come before the answer they belong to. Found by the simulator. */
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct hfi_answer granted = {.kind = HFI_GRANTED};

static void a_lease_that_is_wanted_before_it_is_known_does_not_linger(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    a.waiter.linger_ms = 5000;
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_wanted(&s), "");
    assert_string_equal(hft_answer(&s, granted), "a=lease");
    assert_string_equal(hft_release(&s, false), "give-back");
}

static void a_lease_that_is_revoked_before_it_is_known_is_nobodys(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_doubted(&s), "close native!");
    assert_int_equal(a.waiter.verdict, HFI_WAITING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_that_is_wanted_before_it_is_known_does_not_linger),
        cmocka_unit_test(a_lease_that_is_revoked_before_it_is_known_is_nobodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
