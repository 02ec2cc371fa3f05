/* SPDX-License-Identifier: MIT */
/* hear_test.c - messages, and what was missed: which of them make a client ask, tell a holder, or do nothing. */
#include "tests/scene/scene.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The hand-off was said while the waiter's subscriber was away. The next re-check would be up to 440 ms later. */
static void after_a_subscription_every_waiter_asks_again(void **state)
{
    (void)state;
    struct hft_actor waiter;
    struct sim_process *holder = hft_process(NULL), *other = hft_process(NULL);
    hf_lease *lease = hft_must_take(holder, "n", HF_LOCK(.lease_ms = 10000));
    hft_take(&waiter, other, "n", HF_LOCK(.lease_ms = 10000, .wait_ms = 5000));
    HFT_UNTIL(hft_ran("acquire") == 1);
    hft_pass_ms(20);
    sim_wire_drop(hft_subscriber_wire(other), true);
    HFT_UNTIL(hft_subscriber_wire(other) == NULL);
    assert_int_equal(hft_released(holder, lease), HF_OK);
    assert_int_equal(waiter.ended, 0);
    HFT_UNTIL(hft_subscriber_wire(other) != NULL);
    int64_t subscribed = sim.now;
    HFT_UNTIL(waiter.ended != 0);
    assert_int_equal(waiter.status, HF_OK);
    assert_true(waiter.ended - subscribed < 5 * HFI_MS);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(after_a_subscription_every_waiter_asks_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
