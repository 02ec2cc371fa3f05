/* SPDX-License-Identifier: MIT */
/* foreign_test.c - waiting behind another program's lock: a client listens to its key's events, and re-checks for
 * those that it missed. */
#include "tests/scene/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The second one's channel is as long as a client's own. */
static const char *const names[] = {"n", "seventeen-letters", "another-name-altogether"};

static void tell_of(const char *command, const char *name, const char *rest)
{
    char line[100];
    (void)snprintf(line, sizeof line, "%s hf:{%s}%s", command, name, rest);
    hft_tell(line);
}

/* A scene of its own. */
static struct sim_process *behind_a_foreign_lock(const char *name)
{
    (void)hft_scene_begin(NULL);
    struct sim_process *process = hft_process(NULL);
    tell_of("SET", name, " theirs PX 60000");
    return process;
}

static void a_foreign_release_is_heard(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct hft_actor waiter;
        struct sim_process *process = behind_a_foreign_lock(names[i]);
        hft_take(&waiter, process, names[i], HF_LOCK(.wait_ms = 5000));
        hft_pass_ms(50);
        tell_of("DEL", names[i], "");
        int64_t freed = sim.now;
        HFT_UNTIL(waiter.ended != 0);
        assert_int_equal(waiter.status, HF_OK);
        assert_true(waiter.ended - freed < 5 * HFI_MS);
    }
}

/* Not even what would be one on its own channel. */
static void a_key_event_is_no_message_to_a_holder(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct hft_actor waiter;
        char channel[80], text[200];
        struct sim_process *process = behind_a_foreign_lock(names[i]);
        hf_lease *lease = hft_must_take(process, "held", HF_LOCK(.lease_ms = 60000));
        hft_take(&waiter, process, names[i], HF_LOCK(.wait_ms = 5000));
        hft_pass_ms(50);
        (void)snprintf(channel, sizeof channel, "__keyspace@0__:hf:{%s}", names[i]);
        assert_true(sim_server_is_heard(channel));
        (void)snprintf(text, sizeof text, "B %s - hf:{held}", hft_key("hf:{held}"));
        (void)sim_server->keys.publish(NULL, channel, strlen(channel), text, strlen(text));
        hft_pass_ms(50);
        assert_int_equal(hft_listed(process, "renew"), 0); /* nor is it in doubt for who begins to listen */
        assert_true(hft_is_valid(process, lease));
    }
}

/* Before its subscription was there. */
static void a_missed_key_event_is_repaired_by_an_acquire(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct hft_actor waiter;
        struct sim_process *process = behind_a_foreign_lock(names[i]);
        hft_stall_up(hft_subscriber_wire(process), 50);
        hft_take(&waiter, process, names[i], HF_LOCK(.wait_ms = 5000));
        hft_pass_ms(20);
        tell_of("DEL", names[i], "");
        hft_pass_ms(25);
        assert_int_equal(waiter.ended, 0);
        hft_pass_ms(10);
        assert_int_not_equal(waiter.ended, 0);
        assert_int_equal(waiter.status, HF_OK);
    }
}

static void a_server_that_came_back_is_asked_for_its_events_again(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    assert_non_null(strchr(sim_server->notify, 'K'));
    sim_server_crash(sim.now + 50 * HFI_MS, true, 0, SIM_CLOSED);
    assert_int_equal(sim_server->notify[0], 0);
    struct hft_actor waiter;
    hft_tell("SET hf:{n} theirs PX 60000");
    hft_take(&waiter, process, "n", HF_LOCK(.wait_ms = 5000));
    hft_pass_ms(2000);
    assert_non_null(strchr(sim_server->notify, 'K'));
    hft_tell("DEL hf:{n}");
    HFT_UNTIL(waiter.ended != 0);
    assert_int_equal(waiter.status, HF_OK);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(a_foreign_release_is_heard),
        TEST(a_key_event_is_no_message_to_a_holder),
        TEST(a_missed_key_event_is_repaired_by_an_acquire),
        TEST(a_server_that_came_back_is_asked_for_its_events_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
