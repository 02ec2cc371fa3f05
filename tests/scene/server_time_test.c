/* SPDX-License-Identifier: MIT */
/* server_time_test.c - a client's knowledge of its server's clock, and its reaction when that clock is stepped (P0). */
#include "tests/scene/scene.h"

#include "core/policy/fence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Leases of 10 s are renewed after 3.3 s. A step of 100 ms is within the guard, and more than 5 ms and 2 %. The
 * first answer that shows it is the fence floor's, which is sent before an acquire twice a second. */
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

/* Any answer that contains the time shows the step: of a release that hands off the lease, of a renewal. */
static void other_answers_tell_of_a_step_too(void **state)
{
    (void)state;
    for (int renewal = 0; renewal < 2; renewal++) {
        struct hft_actor waiter;
        (void)hft_scene_begin(NULL);
        struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1)), *other = hft_process(NULL);
        (void)hft_must_take(process, "a", HF_LOCK(.lease_ms = 10000));
        hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.lease_ms = renewal ? 300 : 10000));
        hft_take(&waiter, other, "n", HF_LOCK(.lease_ms = 10000, .wait_ms = 5000));
        hft_pass_ms(renewal ? 150 : 50); /* the lane on which they go has told it before */
        uint64_t before = hft_stats(process).renewals;
        sim_server_step(100000);
        if (!renewal)
            assert_int_equal(hft_released(process, lease), HF_OK);
        hft_pass_ms(renewal ? 110 : 5);
        assert_true(hft_stats(process).renewals - before >= (renewal ? 2 : 1)); /* its own, and the one of 10 s */
    }
}

/* A refused floor dates no grant (P8), but the time that the connection before was told still shows the step. */
static void a_step_shows_across_a_handshake_whose_floor_was_refused(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1));
    (void)hft_must_take(process, "a", HF_LOCK(.lease_ms = 60000));
    (void)hft_must_take(process, "b", HF_LOCK(.lease_ms = 60000));
    hft_pass_ms(1100);
    sim_server_refuse(SIM_NO_DISK);
    sim_wire_drop(hft_lock_wire(process), true);
    sim_server_step(300000);
    hft_pass_ms(300);
    sim_server_refuse(SIM_TAKES_ALL);
    assert_int_equal(hft_stats(process).renewals, 0);
    (void)hft_must_take(process, "c", HF_LOCK(.lease_ms = 60000));
    HFT_UNTIL(hft_stats(process).renewals >= 2);
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

/* ---- the server's time until which it may obey a script: as long as the sender still uses the answer ---- */

/* From now on by the server's clock, in ms, what the last acquire said. */
static double obeyed_for_ms(void)
{
    return (double)(strtoll(hft_argument("acquire", 3), NULL, 10) - sim_server_us()) / 1000;
}

/* "n" is another's, so this asks the script. */
static void ask(struct sim_process *process, const char *name)
{
    struct hft_actor actor;
    int before = hft_ran("acquire");
    hft_take(&actor, process, name, HF_LOCK(.wait_ms = 50));
    HFT_UNTIL(hft_ran("acquire") > before);
    double left = obeyed_for_ms();
    HFT_UNTIL(actor.ended != 0);
    assert_int_equal(actor.status, HF_TIMEOUT);
    assert_true(left >= 700 - 0.3);
    assert_true(left <= 700 + 100); /* 2 % of what has passed since the lane's last answer, and 1 ms */
}

static void a_script_is_obeyed_while_its_sender_waits_for_it_and_no_longer(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d"}; /* they go by both lanes */
    struct sim_process *holder = hft_process(NULL), *process = hft_process(HF_CLIENT(.command_ms = 700));
    for (int i = 0; i < 4; i++)
        (void)hft_must_take(holder, names[i], HF_LOCK(.lease_ms = 600000));
    for (int second = 0; second < 100; second++) {
        ask(process, names[second % 4]);
        hft_pass_ms(900);
    }
}

/* Native acquires and releases of free locks bring no time. The floor that is sent before them does, on either lane. */
static void while_nothing_tells_the_time_the_floor_does(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d"}, *const others[] = {"e", "f", "g", "h"};
    struct sim_process *holder = hft_process(NULL), *process = hft_process(HF_CLIENT(.command_ms = 700));
    for (int i = 0; i < 4; i++)
        (void)hft_must_take(holder, names[i], HF_LOCK(.lease_ms = 600000));
    for (int second = 0; second < 100; second++) {
        assert_int_equal(hft_released(process, hft_must_take(process, others[second % 4], NULL)), HF_OK);
        hft_pass_ms(1000);
    }
    for (int i = 0; i < 4; i++)
        ask(process, names[i]);
}

/* 150 ms each way: when an answer arrives, the server's clock has gone on since it was written. */
static void a_server_time_dates_from_the_request(void **state)
{
    (void)state;
    struct hft_actor actor;
    (void)hft_must_take(hft_process(NULL), "a", HF_LOCK(.lease_ms = 600000));
    sim_network.delay_least = sim_network.delay_most = 150 * HFI_MS;
    struct sim_process *process = hft_process(HF_CLIENT(.command_ms = 700, .connect_ms = 5000));
    hft_take(&actor, process, "a", HF_LOCK(.wait_ms = 3000));
    HFT_UNTIL(hft_ran("acquire") > 0);
    assert_true(obeyed_for_ms() >= 700 - 150 - 0.3);
    HFT_UNTIL(actor.ended != 0);
}

static hf_status load(hf_loading *loading, void *arg)
{
    (void)arg;
    return hf_loading_set(loading, "x", 1);
}

struct fetching {
    struct sim_process *process;
    hf_status status;
};

static void fetch(void *arg)
{
    struct fetching *fetching = arg;
    hf_value *value;
    fetching->status = hf_fetch(fetching->process->client, "page", HF_FETCH(.load = load), &value, NULL);
    if (fetching->status == HF_OK)
        hf_value_free(value);
}

/* The first question of a client that has never been connected. */
static void without_the_servers_time_a_script_has_no_limit(void **state)
{
    (void)state;
    hf_error error;
    struct fetching fetching = {.status = HF_OK};
    assert_int_equal(hft_open(&fetching.process, HF_CLIENT(.lazy = true), &error), HF_OK);
    hft_run(fetching.process, fetch, &fetching);
    assert_int_equal(fetching.status, HF_OK);
    assert_true(strtoll(hft_argument("acquire", 3), NULL, 10) > sim_server_us());
    assert_int_equal(hft_ran("acquire"), 1); /* it was not late */
}

/* ---- fences ---- */

static void twice_a_second_the_counter_is_put_ahead_of_the_clock(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1));
    int before = hft_listed(process, "fence_floor");
    for (int i = 0; i < 100; i++) {
        assert_int_equal(hft_released(process, hft_must_take(process, "n", NULL)), HF_OK);
        hft_pass_ms(40);
    }
    assert_in_range(hft_listed(process, "fence_floor") - before, 7, 9);
    hft_pass_ms(60000);
    assert_in_range(hft_listed(process, "fence_floor") - before, 7, 9); /* nobody asks, nobody needs it */
}

static void set_counter(int64_t blocks)
{
    char text[40];
    (void)snprintf(text, sizeof text, "SET hf:fence %lld", (long long)blocks * HFI_FENCE_BLOCK);
    hft_tell(text);
}

static void good_fences_cost_no_second_question(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d"}; /* they go by both lanes */
    struct sim_process *process = hft_process(NULL);
    int64_t before = 0;
    for (int i = 0; i < 20; i++) {
        hf_lease *lease = hft_must_take(process, names[i % 4], NULL);
        assert_true(hf_lease_fence(lease) > before);
        before = hf_lease_fence(lease);
        assert_int_equal(hft_released(process, lease), HF_OK);
        hft_pass_ms(300);
    }
    assert_int_equal(hft_listed(process, "more"), 0);
}

/* What the server executes for one acquire from so far away. */
static uint64_t commands_of_an_acquire(int64_t delay_ms)
{
    (void)hft_scene_begin(NULL);
    sim_network.delay_least = sim_network.delay_most = delay_ms * HFI_MS;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1, .connect_ms = 5000, .command_ms = 5000));
    assert_int_equal(hft_released(process, hft_must_take(process, "a", HF_LOCK(.wait_ms = 5000))), HF_OK);
    uint64_t before = sim_server->commands;
    hf_lease *lease = hft_must_take(process, "b", HF_LOCK(.wait_ms = 5000));
    uint64_t commands = sim_server->commands - before;
    assert_int_equal(hft_listed(process, "more"), 0);
    assert_int_equal(hft_released(process, lease), HF_OK);
    return commands;
}

/* On a long road, a time that is asked for twice a second is too old to date a grant. */
static void the_time_is_asked_for_where_the_road_is_long(void **state)
{
    (void)state;
    assert_int_equal(commands_of_an_acquire(0), 2);   /* SET, INCRBY */
    assert_int_equal(commands_of_an_acquire(150), 4); /* and TIME; and fence_floor, as half a second is over */
}

static void a_counter_that_fell_below_what_was_seen_is_not_believed(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1)); /* no handshake that would mend it */
    set_counter(sim_server_us() + 3600000000);
    hf_lease *first = hft_must_take(process, "a", NULL);
    set_counter(sim_server_us() + 1800000000);
    hf_lease *second = hft_must_take(process, "b", NULL);
    assert_true(hf_lease_fence(second) > hf_lease_fence(first));
    assert_int_equal(hft_listed(process, "more"), 1);
}

/* ---- the handshake's floor ---- */

static void a_server_that_cannot_write_is_one_for_renewals_and_releases(void **state)
{
    (void)state;
    hf_error error;
    struct sim_process *process;
    sim_server_refuse(SIM_NO_DISK);
    assert_int_equal(hft_open(&process, NULL, &error), HF_OK);
}

/* The floor was refused in the handshake: it is sent before the next native acquire there, however soon that comes. */
static void a_floor_that_was_refused_is_owed(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1));
    assert_int_equal(hft_released(process, hft_must_take(process, "x", NULL)), HF_OK);
    sim_server_refuse(SIM_NO_DISK);
    sim_wire_drop(hft_lock_wire(process), true);
    hft_pass_ms(300); /* the lane is there again */
    sim_server_refuse(SIM_TAKES_ALL);
    for (int owed = 1; owed >= 0; owed--) {
        int before = hft_ran("fence_floor");
        assert_int_equal(hft_released(process, hft_must_take(process, "n", NULL)), HF_OK);
        assert_int_equal(hft_ran("fence_floor") - before, owed);
    }
}

/* The counter is set back by a failover, whose new primary refused the handshakes' floors for a while. */
static void a_counter_that_was_set_back_is_put_ahead_before_it_is_believed(void **state)
{
    (void)state;
    for (int script = 0; script < 2; script++) {
        struct hft_actor actor;
        (void)hft_scene_begin(NULL);
        struct sim_process *other = hft_process(NULL), *process = hft_process(HF_CLIENT(.lanes = 1));
        hf_lease *lease = script ? hft_must_take(other, "n", NULL) : NULL;
        assert_int_equal(hft_released(process, hft_must_take(process, "x", NULL)), HF_OK);
        char text[60];
        (void)snprintf(text, sizeof text, "SET hf:fence %lld", (long long)(sim_server_us() + 1300000) * HFI_FENCE_BLOCK);
        hft_tell(text);
        sim_server_refuse(SIM_NO_DISK);
        sim_wire_drop(hft_lock_wire(process), true);
        hft_pass_ms(300); /* the lane is there again */
        hft_take(&actor, process, "n", HF_LOCK(.wait_ms = 5000));
        hft_pass_ms(10);
        sim_server_refuse(SIM_TAKES_ALL);
        int64_t least = (sim_server_us() + 1000000) * HFI_FENCE_BLOCK;
        if (lease != NULL)
            assert_int_equal(hft_released(other, lease), HF_OK);
        HFT_UNTIL(actor.ended != 0);
        assert_int_equal(actor.status, HF_OK);
        assert_true(hf_lease_fence(actor.lease) > least);
        assert_int_equal(hft_released(process, actor.lease), HF_OK);
    }
}

static void a_counter_of_another_type_is_nothing_to_work_with(void **state)
{
    (void)state;
    hf_error error;
    struct sim_process *process;
    hft_tell("HSET hf:fence apple pear");
    assert_int_not_equal(hft_open(&process, NULL, &error), HF_OK);
    assert_non_null(strstr(error.message, "hf:fence"));
}

static void a_user_without_the_right_to_the_counter_gets_an_error_that_names_it(void **state)
{
    (void)state;
    hf_error error;
    struct sim_process *process;
    sim_server->keys.forbidden = "GET";
    assert_int_not_equal(hft_open(&process, NULL, &error), HF_OK);
    assert_non_null(strstr(error.message, "which is GET"));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(a_step_of_the_servers_clock_has_all_leases_renewed_at_once),
        TEST(other_answers_tell_of_a_step_too),
        TEST(a_step_shows_across_a_handshake_whose_floor_was_refused),
        TEST(a_clock_that_is_not_stepped_has_none_renewed),
        TEST(a_script_is_obeyed_while_its_sender_waits_for_it_and_no_longer),
        TEST(while_nothing_tells_the_time_the_floor_does),
        TEST(a_server_time_dates_from_the_request),
        TEST(without_the_servers_time_a_script_has_no_limit),
        TEST(twice_a_second_the_counter_is_put_ahead_of_the_clock),
        TEST(good_fences_cost_no_second_question),
        TEST(the_time_is_asked_for_where_the_road_is_long),
        TEST(a_counter_that_fell_below_what_was_seen_is_not_believed),
        TEST(a_server_that_cannot_write_is_one_for_renewals_and_releases),
        TEST(a_floor_that_was_refused_is_owed),
        TEST(a_counter_that_was_set_back_is_put_ahead_before_it_is_believed),
        TEST(a_counter_of_another_type_is_nothing_to_work_with),
        TEST(a_user_without_the_right_to_the_counter_gets_an_error_that_names_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
