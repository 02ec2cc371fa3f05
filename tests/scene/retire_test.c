/* SPDX-License-Identifier: MIT */
/* retire_test.c - the retirement of tokens: released until nothing of theirs can be executed, told to the waiters,
 * and forgotten. */
#include "tests/scene/scene.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_release_that_is_answered_once_is_sent_once(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    for (int i = 1; i <= 10; i++) {
        assert_int_equal(hft_released(process, hft_must_take(process, "n", NULL)), HF_OK);
        hft_pass_ms(1000);
        assert_int_equal(hft_listed(process, "release"), i);
    }
    assert_int_equal(hft_stats(process).hand_offs_given, 0);
}

static void a_release_says_what_became_of_the_key(void **state)
{
    (void)state;
    struct hft_actor waiter;
    struct sim_process *process = hft_process(NULL), *other = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", NULL);
    hft_tell("DEL hf:{n}");
    assert_int_equal(hft_released(process, lease), HF_LOST);
    lease = hft_must_take(process, "n", NULL);
    hft_tell("SET hf:{n} theirs PX 50");
    assert_int_equal(hft_released(process, lease), HF_LOST);
    hft_pass_ms(60);
    lease = hft_must_take(process, "n", NULL);
    hft_take(&waiter, other, "n", HF_LOCK(.wait_ms = 5000));
    hft_pass_ms(50);
    assert_int_equal(hft_released(process, lease), HF_OK);
    HFT_UNTIL(waiter.ended != 0);
    assert_int_equal(waiter.status, HF_OK);
    assert_int_equal(hft_stats(process).hand_offs_given, 1);
    assert_int_equal(hft_stats(other).hand_offs_taken, 1);
}

static void a_user_without_the_right_to_release_gets_an_error_that_names_it(void **state)
{
    (void)state;
    struct hft_actor giver;
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", NULL);
    sim_server->keys.forbidden = "GET";
    hft_give_back(&giver, process, lease);
    HFT_UNTIL(giver.ended != 0);
    assert_int_equal(giver.status, HF_UNKNOWN);
    assert_non_null(strstr(giver.error.message, "which is GET"));
}

/* The reply is lost with its connection: the caller that waits for it is told so, and the token is released again. */
static void a_release_without_an_answer_is_repeated(void **state)
{
    (void)state;
    struct hft_actor giver;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1, .command_ms = 300));
    hf_lease *lease = hft_must_take(process, "n", NULL);
    hft_pass_ms(20);
    hft_stall_up(hft_lock_wire(process), 60000);
    hft_give_back(&giver, process, lease);
    HFT_UNTIL(giver.ended != 0);
    assert_int_equal(giver.status, HF_UNKNOWN);
    assert_in_range((giver.ended - giver.began) / HFI_MS, 299, 305);
    assert_string_not_equal(hft_key("hf:{n}"), "");
    HFT_UNTIL(hft_key("hf:{n}")[0] == 0);
    assert_true(sim.now - giver.ended < 420 * HFI_MS);
    int sent = hft_listed(process, "release");
    assert_int_equal(sent, 2);
    hft_pass_ms(20000);
    assert_int_equal(hft_listed(process, "release"), sent);
}

static void while_the_server_is_silent_it_is_repeated_at_the_pace_of_re_checks(void **state)
{
    (void)state;
    struct hft_actor giver;
    struct sim_process *process = hft_process(HF_CLIENT(.command_ms = 100));
    hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.lease_ms = 600000));
    sim_server_freeze(sim.now + 5000 * HFI_MS);
    hft_give_back(&giver, process, lease);
    hft_pass_ms(4900);
    assert_int_equal(giver.status, HF_UNKNOWN);
    assert_in_range(hft_listed(process, "release"), 9, 13);
    HFT_UNTIL(hft_key("hf:{n}")[0] == 0);
}

/* An acquire that its caller gave up may still be executed, until the server's time limit for it. */
static void a_token_in_doubt_is_released_until_nothing_of_it_can_be_executed(void **state)
{
    (void)state;
    struct hft_actor actor;
    struct sim_process *holder = hft_process(NULL);
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1, .command_ms = 200));
    hf_lease *lease = hft_must_take(holder, "n", NULL);
    hft_pass_ms(20);
    struct sim_wire *wire = hft_lock_wire(process);
    hft_stall_up(wire, 350); /* given up by its client before, executed after */
    hft_take(&actor, process, "n", HF_LOCK(.wait_ms = 100, .lease_ms = 1000));
    HFT_UNTIL(actor.ended != 0);
    hft_lose_last(wire); /* its first release, which would arrive with it */
    assert_int_equal(hft_released(holder, lease), HF_OK);
    HFT_UNTIL(hft_key("hf:{n}")[0] != 0); /* the old connection brings it */
    int64_t came = sim.now;
    HFT_UNTIL(hft_key("hf:{n}")[0] == 0);
    assert_true(sim.now - came < 450 * HFI_MS); /* not when its TTL is over, after 1,274 ms */
    int sent = hft_listed(process, "release");
    HFT_UNTIL(sim.now > came + 1300 * HFI_MS);
    assert_true(hft_listed(process, "release") - sent <= 3);
    sent = hft_listed(process, "release");
    hft_pass_ms(10000);
    assert_int_equal(hft_listed(process, "release"), sent); /* then it is over */
}

/* A release drops 1024 expired waiters and no more; it is repeated as long as there are others. */
static void a_release_that_has_old_waiters_to_drop_goes_on_at_once(void **state)
{
    (void)state;
    struct hft_actor giver;
    char line[80];
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", NULL);
    for (int i = 0; i < 2500; i++) {
        (void)snprintf(line, sizeof line, "ZADD hf:queue:{n}:hf:{n} %d who-was-%d", i + 1, i);
        hft_tell(line);
    }
    hft_give_back(&giver, process, lease);
    HFT_UNTIL(giver.ended != 0);
    assert_int_equal(giver.status, HF_OK);
    assert_true(giver.ended - giver.began < 7 * HFT_TRIP_NS);
    assert_int_equal(hft_ran("release"), 3);
    assert_string_equal(hft_key("hf:{n}"), "");
    hft_pass_ms(5000);
    assert_int_equal(hft_ran("release"), 3);
}

/* A try has sent its release when the answer says that it has a place in the queue. */
static void a_place_that_is_being_given_back_is_given_back_once(void **state)
{
    (void)state;
    struct hft_actor waiter;
    struct sim_process *holder = hft_process(NULL), *process = hft_process(HF_CLIENT(.lanes = 1));
    (void)hft_must_take(holder, "n", NULL);
    hft_take(&waiter, process, "n", HF_LOCK(.wait_ms = 20));
    HFT_UNTIL(hft_ran("acquire") == 1);
    hft_stall_down(hft_lock_wire(process), 100);
    HFT_UNTIL(waiter.ended != 0);
    assert_int_equal(hft_ran("release"), 0);
    HFT_UNTIL(hft_ran("release") == 1);
    hft_pass_ms(1000);
    assert_int_equal(hft_listed(process, "release"), 1);
    assert_string_equal(hft_answered("ZRANGE hf:queue:{n}:hf:{n} 0 -1"), "");
}

/* ---- messages about tokens that nobody has any more ---- */

static void made_up(const char *token, char *out, size_t room)
{
    (void)snprintf(out, room, "%s", token);
    char *digit = strchr(strchr(strchr(out, ':') + 1, ':') + 1, ':') + 1;
    *digit = *digit == '0' ? '1' : '0';
}

static void a_message_that_crossed_the_release_sends_no_other(void **state)
{
    (void)state;
    char token[160];
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", NULL);
    (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
    assert_int_equal(hft_released(process, lease), HF_OK);
    hft_publish(process, "R %s hf:{n}", token);
    hft_pass_ms(90);
    hft_publish(process, "R %s hf:{n}", token);
    hft_pass_ms(5);
    assert_int_equal(hft_listed(process, "release"), 1);
    hft_pass_ms(10);
    hft_publish(process, "R %s hf:{n}", token); /* after more than 100 ms it comes from a server that forgot the release */
    hft_pass_ms(5);
    assert_int_equal(hft_listed(process, "release"), 2);
}

static void an_orphan_that_a_message_names_is_released(void **state)
{
    (void)state;
    char token[160], line[260];
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", NULL);
    made_up(hft_key("hf:{n}"), token, sizeof token);
    assert_int_equal(hft_released(process, lease), HF_OK);
    (void)snprintf(line, sizeof line, "SET hf:{other} %s PX 60000", token);
    hft_tell(line);
    hft_publish(process, "F %s hf:{other}", token); /* says nothing of who holds it */
    hft_publish(process, "I %s hf:{other}", token);
    hft_publish(process, "R %s", token); /* names no key */
    hft_publish(process, "R %s no-lock", token);
    hft_pass_ms(50);
    assert_string_equal(hft_key("hf:{other}"), token);
    hft_publish(process, "R %s hf:{other}", token);
    hft_pass_ms(5);
    assert_string_equal(hft_key("hf:{other}"), "");
    hft_pass_ms(5000);
    int sent = hft_listed(process, "release");
    assert_in_range(sent, 2, 3);
    hft_pass_ms(5000);
    assert_int_equal(hft_listed(process, "release"), sent);
}

/* ---- an operator's break ---- */

static void a_revoked_lease_is_released_when_the_holder_has_had_its_time(void **state)
{
    (void)state;
    char token[160], revoked[160], line[260];
    struct sim_process *process = hft_process(HF_CLIENT(.guard_ms = 200));
    hf_lease *lease = hft_must_take(process, "n", NULL);
    (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
    hft_revoked(token, '1', revoked);
    (void)snprintf(line, sizeof line, "SET hf:{n} %s KEEPTTL", revoked);
    hft_tell(line);
    hft_publish(process, "B %s %s", token, revoked);
    int64_t told = sim.now;
    HFT_UNTIL(!hft_is_valid(process, lease));
    assert_true(sim.now - told < 5 * HFI_MS);
    HFT_UNTIL(hft_key("hf:{n}")[0] == 0);
    assert_in_range((sim.now - told) / HFI_MS, 200, 210);
    assert_int_equal(hft_released(process, lease), HF_LOST);
}

/* ---- what it costs ---- */

struct cycles {
    struct sim_process *process;
    int from, to;
    bool over;
};

static void cycle(void *arg)
{
    struct cycles *cycles = arg;
    for (int i = cycles->from; i < cycles->to; i++) {
        char name[16];
        hf_lease *lease;
        (void)snprintf(name, sizeof name, "n%d", i);
        if (hf_lock_acquire(cycles->process->client, name, NULL, &lease, NULL) == HF_OK && i % 3 != 0)
            (void)hf_lease_release(lease, NULL);
        else
            (void)hf_lease_post_release(lease, NULL);
    }
    cycles->over = true;
}

/* Some locks stay in the table. A retirement, or a lock that one keeps, would be 300 bytes and more each. */
static void a_released_lease_leaves_no_memory_behind(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    size_t in_use[3];
    for (int i = 0; i < 3; i++) {
        struct cycles cycles = {.process = process, .from = 3000 * i, .to = 3000 * (i + 1)};
        sim_thread_start(process, cycle, &cycles);
        for (int64_t until = sim.now + 3600 * 1000 * HFI_MS; !cycles.over && sim.now < until;)
            hft_pass_ms(100);
        assert_true(cycles.over);
        in_use[i] = mallinfo2().uordblks;
    }
    print_message("%zu, %zu, %zu bytes\n", in_use[0], in_use[1], in_use[2]);
    assert_true(in_use[2] < in_use[1] + 3000 * 50);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(a_release_that_is_answered_once_is_sent_once),
        TEST(a_release_says_what_became_of_the_key),
        TEST(a_user_without_the_right_to_release_gets_an_error_that_names_it),
        TEST(a_release_without_an_answer_is_repeated),
        TEST(while_the_server_is_silent_it_is_repeated_at_the_pace_of_re_checks),
        TEST(a_token_in_doubt_is_released_until_nothing_of_it_can_be_executed),
        TEST(a_release_that_has_old_waiters_to_drop_goes_on_at_once),
        TEST(a_place_that_is_being_given_back_is_given_back_once),
        TEST(a_message_that_crossed_the_release_sends_no_other),
        TEST(an_orphan_that_a_message_names_is_released),
        TEST(a_revoked_lease_is_released_when_the_holder_has_had_its_time),
        TEST(a_released_lease_leaves_no_memory_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
