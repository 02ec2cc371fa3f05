/* SPDX-License-Identifier: MIT */
/* renew_test.c - renewals: when they are sent, what their answers do, and to whom. */
#include "tests/scene/scene.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The first renewal of a lease of 3 s is due after 1 s. Its way to the server takes so long that the lease has been given
 * back and had anew: the server says "another's" of a token that nobody uses any more. */
static void an_answer_to_an_earlier_grants_renewal_says_nothing_of_the_current_one(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    hf_lease *first = hft_must_take(process, "n", HF_LOCK(.lease_ms = 3000));
    hft_stall_up(hft_reserved_wire(process), 1200);
    HFT_UNTIL(hft_listed(process, "renew") == 1);
    assert_int_equal(hft_released(process, first), HF_OK);
    hf_lease *second = hft_must_take(process, "n", HF_LOCK(.lease_ms = 3000));
    HFT_UNTIL(hft_ran("renew") == 1);
    hft_pass_ms(5);
    assert_int_equal(hft_stats(process).lost, 0);
    assert_true(hft_is_valid(process, second));
    assert_int_equal(hft_released(process, second), HF_OK);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(an_answer_to_an_earlier_grants_renewal_says_nothing_of_the_current_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
