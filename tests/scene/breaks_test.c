/* SPDX-License-Identifier: MIT */
/* breaks_test.c - an operator's break, whenever it comes: the holder is alive, so the key is gone when it has stopped. */
#include "tests/scene/scene.h"
#include "core/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define TOKEN_ROOM 200
#define GUARD_MS   250

static void break_it(void *arg)
{
    struct sim_process *operator = arg;
    hf_error error;
    if (hf_lock_break(operator->client, "n", NULL, &error) != HF_OK)
        fail_msg("%s", error.message);
}

static void verify(void *arg)
{
    hf_error error;
    assert_int_equal(hf_lease_verify(*(hf_lease **)arg, &error), HF_LOST);
}

/* When the key is gone, ms after `since`. */
static double gone_ms(int64_t since)
{
    HFT_UNTIL(hft_key("hf:{n}")[0] == 0);
    return (double)(sim.now - since) / HFI_MS;
}

/* A renewal has just been asked for, so that another has to wait for its pace. */
static void a_holder_that_releases_before_it_could_ask_gives_back_what_the_break_has_left(void **state)
{
    (void)state;
    for (int paced = 0; paced < 2; paced++) {
        struct sim_process *holder = hft_process(NULL), *operator = hft_process(NULL);
        hf_lease *lease = hft_must_take(holder, "n", NULL);
        char token[TOKEN_ROOM];
        (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
        if (paced) {
            hft_publish(holder, "B %s - hf:{n}", token);
            hft_pass_ms(1);
        }
        hft_run(operator, break_it, operator);
        int64_t broken = sim.now;
        hft_pass_ms(1);
        (void)hft_released(holder, lease);
        assert_true(gone_ms(broken) < GUARD_MS + 5);
    }
}

static void who_verifies_learns_of_the_break_and_has_its_time_to_stop(void **state)
{
    (void)state;
    struct sim_process *holder = hft_process(NULL), *operator = hft_process(NULL);
    hf_lease *lease = hft_must_take(holder, "n", NULL);
    hft_stall_down(hft_subscriber_wire(holder), 60000); /* it hears nothing */
    hft_run(operator, break_it, operator);
    int64_t broken = sim.now;
    hft_run(holder, verify, &lease);
    assert_false(hft_is_valid(holder, lease));
    assert_int_equal(hf_lease_reason(lease), HF_REASON_REVOKED);
    double gone = gone_ms(broken);
    assert_true(gone >= GUARD_MS && gone < GUARD_MS + 5);
}

/* The renewal that the first one caused says what that has left; by now it is something else. */
static void a_second_break_while_the_first_is_asked_about_does_no_harm(void **state)
{
    (void)state;
    for (int64_t stalled_ms = 0; stalled_ms <= 6; stalled_ms += 6) {
        struct sim_process *holder = hft_process(NULL), *operator = hft_process(NULL);
        hf_lease *lease = hft_must_take(holder, "n", NULL);
        if (stalled_ms > 0)
            hft_stall_down(hft_reserved_wire(holder), stalled_ms);
        hft_run(operator, break_it, operator);
        int64_t broken = sim.now;
        hft_pass_ms(2);
        hft_run(operator, break_it, operator);
        HFT_UNTIL(!hft_is_valid(holder, lease));
        assert_true(gone_ms(broken) < GUARD_MS + 15);
        (void)hft_released(holder, lease);
    }
}

/* A failover has lost its release, and its lock is long forgotten here. */
static void what_nobody_remembers_is_cleared_away_too(void **state)
{
    (void)state;
    struct sim_process *once = hft_process(NULL), *operator = hft_process(NULL);
    hf_lease *lease = hft_must_take(once, "n", NULL);
    char line[TOKEN_ROOM + 60], name[20];
    (void)snprintf(line, sizeof line, "SET hf:{n} %s PX 10463", hft_key("hf:{n}"));
    assert_int_equal(hft_released(once, lease), HF_OK);
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(name, sizeof name, "x%d", i);
        assert_int_equal(hft_released(once, hft_must_take(once, name, NULL)), HF_OK);
    }
    hft_tell(line);
    hft_run(operator, break_it, operator);
    assert_true(gone_ms(sim.now) < 15);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(a_holder_that_releases_before_it_could_ask_gives_back_what_the_break_has_left),
        TEST(who_verifies_learns_of_the_break_and_has_its_time_to_stop),
        TEST(a_second_break_while_the_first_is_asked_about_does_no_harm),
        TEST(what_nobody_remembers_is_cleared_away_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
