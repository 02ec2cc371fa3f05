/* SPDX-License-Identifier: MIT */
/* many_names_test.c - a client that waits for many names re-checks each less often, and the claims that it is given
 * last longer. */
#include "tests/scene/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { NAMES = 260, MANY = 250 };

/* The claim's length in the last re-check, its guard included: 2.5 times 400 ms, or 2.5 times a second. */
#define OF_FEW  "1274"
#define OF_MANY "2806"

static void only_waiting_names_are_counted(void **state)
{
    (void)state;
    static struct hft_actor waiters[NAMES];
    static char names[NAMES][16];
    static hf_lease *held[NAMES];
    struct sim_process *holder = hft_process(NULL), *process = hft_process(NULL);
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        held[i] = hft_must_take(holder, names[i], NULL);
    }
    for (int i = 0; i < MANY; i++)
        hft_take(&waiters[i], process, names[i], HF_LOCK(.wait_ms = HF_FOREVER));
    hft_pass_ms(3000);
    assert_string_equal(hft_argument("recheck", 4), OF_FEW);
    for (int i = MANY; i < NAMES; i++)
        hft_take(&waiters[i], process, names[i], HF_LOCK(.wait_ms = HF_FOREVER));
    hft_pass_ms(3000);
    assert_string_equal(hft_argument("recheck", 4), OF_MANY);
    for (int i = 0; i < NAMES - MANY; i++) {
        assert_int_equal(hft_released(holder, held[i]), HF_OK);
        HFT_UNTIL(waiters[i].ended != 0);
        assert_int_equal(waiters[i].status, HF_OK);
    }
    hft_pass_ms(3000);
    assert_string_equal(hft_argument("recheck", 4), OF_FEW);
    assert_int_equal(hft_close(process), HF_OK);
    assert_int_equal(hft_close(holder), HF_OK);
}

/* Hundreds of threads that wait for one name are one name. */
static void calls_for_one_name_are_not_many_names(void **state)
{
    (void)state;
    static struct hft_actor waiters[NAMES];
    struct sim_process *holder = hft_process(NULL), *process = hft_process(NULL);
    (void)hft_must_take(holder, "n", NULL);
    for (int i = 0; i < NAMES; i++)
        hft_take(&waiters[i], process, "n", HF_LOCK(.wait_ms = HF_FOREVER));
    hft_pass_ms(3000);
    assert_string_equal(hft_argument("recheck", 4), OF_FEW);
    assert_int_equal(hft_close(process), HF_OK);
    assert_int_equal(hft_close(holder), HF_OK);
}

/* A server's error keeps the waiters out of the queues; they re-check as seldom as in them. */
static void names_that_are_refused_are_counted_too(void **state)
{
    (void)state;
    static struct hft_actor waiters[NAMES];
    static char names[NAMES][16];
    struct sim_process *process = hft_process(NULL);
    sim_server_refuse(SIM_NO_DISK);
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        hft_take(&waiters[i], process, names[i], HF_LOCK(.wait_ms = HF_FOREVER));
    }
    hft_pass_ms(3000);
    uint64_t sent = hft_stats(process).remote_commands;
    hft_pass_ms(5000);
    assert_in_range(hft_stats(process).remote_commands - sent, 4 * NAMES, 6 * NAMES); /* 13 each, if it were every 400 ms */
    sim_server_refuse(SIM_TAKES_ALL);
    assert_int_equal(hft_close(process), HF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_waiting_names_are_counted, hft_scene_begin, hft_scene_end),
        cmocka_unit_test_setup_teardown(names_that_are_refused_are_counted_too, hft_scene_begin, hft_scene_end),
        cmocka_unit_test_setup_teardown(calls_for_one_name_are_not_many_names, hft_scene_begin, hft_scene_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
