/* SPDX-License-Identifier: MIT */
/* readers_test.c - those who share a lock, where what they are told comes late, twice, or not at all. */
#include "tests/scene/scene.h"
#include "core/context/context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SHARED(...) HF_LOCK(.shared = true, __VA_ARGS__)
#define GUARD_MS    250

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
    assert_int_equal(hf_lease_reason(*(hf_lease **)arg), HF_REASON_REVOKED);
}

static double gone_ms(int64_t since)
{
    HFT_UNTIL(hft_key("hf:{n}")[0] == 0);
    return (double)(sim.now - since) / HFI_MS;
}

static void a_reader_hears_of_a_foreign_release(void **state)
{
    (void)state;
    struct hft_actor reader;
    struct sim_process *process = hft_process(NULL);
    hft_tell("SET hf:{n} theirs PX 60000");
    hft_take(&reader, process, "n", SHARED(.wait_ms = 5000));
    hft_pass_ms(50);
    hft_tell("DEL hf:{n}");
    int64_t freed = sim.now;
    HFT_UNTIL(reader.ended != 0);
    assert_int_equal(reader.status, HF_OK);
    assert_true(reader.ended - freed < 5 * HFI_MS);
}

/* And a third time: it still has its guard to stop. */
static void a_reader_has_its_time_to_stop_though_it_is_broken_twice(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL), *operator = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", SHARED(.lease_ms = 60000));
    hft_run(operator, break_it, operator);
    int64_t broken = sim.now;
    hft_pass_ms(20);
    assert_false(hft_is_valid(process, lease));
    hft_run(operator, break_it, operator);
    hft_run(operator, break_it, operator);
    double gone = gone_ms(broken);
    assert_true(gone >= GUARD_MS - 20 && gone < GUARD_MS + 20);
}

/* The message of it comes later than the answer. */
static void a_readers_verify_learns_of_a_break_and_gives_back_what_it_left(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL), *operator = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", SHARED(.lease_ms = 60000));
    hft_stall_down(hft_subscriber_wire(process), 5000);
    hft_run(operator, break_it, operator);
    int64_t broken = sim.now;
    hft_run(process, verify, &lease);
    assert_true(gone_ms(broken) < GUARD_MS + 20);
}

static void downgrade(void *arg)
{
    hf_error error;
    assert_int_equal(hf_lease_downgrade(*(hf_lease **)arg, &error), HF_LOST);
    assert_int_equal(hf_lease_reason(*(hf_lease **)arg), HF_REASON_REVOKED);
}

/* And is told why it was lost. */
static void who_gives_back_and_has_not_heard_of_a_break_gives_back_what_it_left(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        struct hft_actor releaser;
        struct sim_process *process = hft_process(NULL), *operator = hft_process(NULL);
        hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.shared = shared != 0));
        hft_stall_down(hft_subscriber_wire(process), 5000);
        hft_run(operator, break_it, operator);
        hft_give_back(&releaser, process, lease);
        HFT_UNTIL(releaser.ended != 0);
        assert_int_equal(releaser.status, HF_LOST);
        assert_non_null(strstr(releaser.error.message, hf_reason_text(HF_REASON_REVOKED)));
        assert_true(gone_ms(releaser.ended) < 20);
    }
}

static void who_downgrades_and_has_not_heard_of_a_break_has_its_time_to_stop(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL), *operator = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", NULL);
    hft_stall_down(hft_subscriber_wire(process), 5000);
    hft_run(operator, break_it, operator);
    hft_run(process, downgrade, &lease);
    double gone = gone_ms(sim.now);
    assert_true(gone >= GUARD_MS - 20 && gone < GUARD_MS + 20);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(a_reader_hears_of_a_foreign_release),
        TEST(a_reader_has_its_time_to_stop_though_it_is_broken_twice),
        TEST(a_readers_verify_learns_of_a_break_and_gives_back_what_it_left),
        TEST(who_gives_back_and_has_not_heard_of_a_break_gives_back_what_it_left),
        TEST(who_downgrades_and_has_not_heard_of_a_break_has_its_time_to_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
