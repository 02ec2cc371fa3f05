/* SPDX-License-Identifier: MIT */
/* server_time_test.c - what a client knows of its server's clock, and what it does when that was stepped (P0). */
#include "tests/scene/scene.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Leases of 10 s are renewed after 3.3 s. A step of 100 ms is within the guard, and more than 5 ms and 2 %. The first that
 * tells of it is the fence floor, which goes in front of an acquire once a second. */
static void a_step_of_the_servers_clock_has_all_leases_renewed_at_once(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    hf_lease *first = hft_must_take(process, "a", HF_LOCK(.lease_ms = 10000));
    hf_lease *second = hft_must_take(process, "b", HF_LOCK(.lease_ms = 10000));
    hft_pass_ms(1100);
    assert_int_equal(hft_ran("renew"), 0);
    sim_server_step(100000);
    int64_t stepped = sim.now;
    hf_lease *third = hft_must_take(process, "c", HF_LOCK(.lease_ms = 10000));
    HFT_UNTIL(hft_stats(process).renewals == 3);
    assert_true(sim.now - stepped < 10 * HFI_MS);
    assert_true(hft_is_valid(process, third));
    assert_true(hft_is_valid(process, first) && hft_is_valid(process, second));
}

static void a_clock_that_is_not_stepped_has_none_renewed(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    (void)hft_must_take(process, "a", HF_LOCK(.lease_ms = 10000));
    for (int i = 0; i < 30; i++) {
        hft_pass_ms(100);
        assert_int_equal(hft_released(process, hft_must_take(process, "c", HF_LOCK(.lease_ms = 10000))), HF_OK);
    }
    assert_int_equal(hft_stats(process).renewals, 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(a_step_of_the_servers_clock_has_all_leases_renewed_at_once),
        TEST(a_clock_that_is_not_stepped_has_none_renewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
