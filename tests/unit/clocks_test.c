/* SPDX-License-Identifier: MIT */
/* clocks_test.c - servers' clocks are compared: apart is only what the round trips cannot explain. */
#include "base/clock.h"
#include "pool/clocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void clocks_that_agree_are_not_apart(void **state)
{
    const struct hfi_clock_look looks[] = {
        {.ahead_ns = 5 * HFI_MS, .rtt_ns = 2 * HFI_MS}, {.ahead_ns = 6 * HFI_MS, .rtt_ns = 0}, {.ahead_ns = 5 * HFI_MS, .rtt_ns = HFI_MS}};
    int ahead = -1, behind = -1;
    (void)state;
    assert_int_equal(hfi_clocks_apart_ns(looks, 0, &ahead, &behind), 0);
    assert_int_equal(hfi_clocks_apart_ns(looks, 1, &ahead, &behind), 0);
    assert_int_equal(hfi_clocks_apart_ns(looks, 2, &ahead, &behind), 0); /* half a round trip explains it */
    assert_int_equal(ahead, -1);
    assert_int_equal(hfi_clocks_apart_ns(looks, 3, &ahead, &behind), HFI_MS / 2);
    assert_int_equal(ahead, 1);
    assert_int_equal(behind, 2);
}

static void the_two_that_are_furthest_apart_are_named(void **state)
{
    const struct hfi_clock_look looks[] = {{.ahead_ns = -50 * HFI_MS, .rtt_ns = HFI_MS},
                                           {.ahead_ns = -700 * HFI_MS, .rtt_ns = 3 * HFI_MS},
                                           {.ahead_ns = -900 * HFI_MS, .rtt_ns = 900 * HFI_MS}, /* nobody knows */
                                           {.ahead_ns = 20 * HFI_MS, .rtt_ns = HFI_MS}};
    int ahead, behind;
    (void)state;
    assert_int_equal(hfi_clocks_apart_ns(looks, 4, &ahead, &behind), 718 * HFI_MS);
    assert_int_equal(ahead, 3);
    assert_int_equal(behind, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_that_agree_are_not_apart),
        cmocka_unit_test(the_two_that_are_furthest_apart_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
