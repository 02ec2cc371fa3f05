/* SPDX-License-Identifier: MIT */
/* probes_test.c - who asks along what it waits for, in search of a ring: nobody that holds nothing, however long it waits. */
#include "tests/scene/scene.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void only_who_holds_a_lock_and_waits_long_for_another_sends_probes(void **state)
{
    (void)state;
    for (int holds = 0; holds < 2; holds++) {
        (void)hft_scene_begin(NULL);
        struct hft_actor waiter;
        struct sim_process *holder = hft_process(NULL), *process = hft_process(HF_CLIENT(.deadlock_ms = 100));
        hf_lease *theirs = hft_must_take(holder, "n", HF_LOCK(.owner = 1));
        if (holds)
            (void)hft_must_take(process, "m", HF_LOCK(.owner = 2));
        hft_take(&waiter, process, "n", HF_LOCK(.owner = 2, .wait_ms = 60000));
        hft_pass_ms(10000);
        assert_int_equal(hft_said('D') > 0, holds);
        assert_int_equal(waiter.ended, 0);
        assert_int_equal(hft_released(holder, theirs), HF_OK);
        HFT_UNTIL(waiter.ended != 0);
        assert_int_equal(waiter.status, HF_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_who_holds_a_lock_and_waits_long_for_another_sends_probes, hft_scene_begin, hft_scene_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
