/* SPDX-License-Identifier: MIT */
/* breaks_test.c - an operator's break at any moment of a lease: while the holder is alive, the key is gone once it
 * has stopped. */
#include "tests/scene/scene.h"
#include "core/context/context.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static void note_token(void *out, const char *member)
{
    (void)snprintf(out, TOKEN_ROOM, "%s", member);
}

/* When the key is gone, ms after `since`. */
static double gone_ms(int64_t since)
{
    HFT_UNTIL(hft_key("hf:{n}")[0] == 0);
    return (double)(sim.now - since) / HFI_MS;
}

/* A renewal has just been sent, so the next one has to wait for its pace. */
static void a_holder_that_releases_before_its_renewal_releases_the_breaks_token_too(void **state)
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

/* The holder has stopped, so it is given no more time: what the break has left goes with the token itself, in one
 * packet. */
static void the_breaks_token_is_released_with_the_holders_own(void **state)
{
    (void)state;
    struct sim_process *holder = hft_process(NULL), *operator = hft_process(NULL);
    struct hft_actor giver;
    hf_lease *lease = hft_must_take(holder, "n", NULL);
    hft_publish(holder, "B %s - hf:{n}", hft_key("hf:{n}"));
    hft_pass_ms(1);
    hft_run(operator, break_it, operator);
    hft_pass_ms(1); /* it has heard of it, and has to wait with its question */
    assert_true(hft_is_valid(holder, lease));
    hft_give_back(&giver, holder, lease);
    int64_t given = sim.now;
    while (hft_listed(holder, "release") == 0)
        sim_run(sim.now + HFI_MS / 1000);
    assert_int_equal(hft_listed(holder, "release"), 2);
    assert_true(gone_ms(given) < 1);
    HFT_UNTIL(giver.ended != 0);
    assert_int_equal(giver.status, HF_LOST);
}

/* A word that is no token, one of another client, the token itself. */
static void a_token_that_no_break_can_have_left_is_not_released(void **state)
{
    (void)state;
    for (int left = 0; left < 3; left++) {
        (void)hft_scene_begin(NULL);
        struct sim_process *holder = hft_process(NULL);
        hf_lease *lease = hft_must_take(holder, "n", NULL);
        char token[TOKEN_ROOM], others[TOKEN_ROOM];
        (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
        (void)snprintf(others, sizeof others, "%s", token);
        others[4] = others[4] == '0' ? '1' : '0';
        hft_publish(holder, "B %s %s hf:{n}", token, left == 0 ? "-" : left == 1 ? others : token);
        hft_pass_ms(20);
        assert_true(hft_is_valid(holder, lease));
        assert_int_equal(hft_released(holder, lease), HF_OK);
        hft_pass_ms(1000);
        assert_int_equal(hft_listed(holder, "release"), 1);
    }
}

/* Whoever knows the number of the last token may guess the next one, and send a message of its break; that release finds the living
 * token of the same number. */
static void a_made_up_break_of_the_next_grant_releases_nothing(void **state)
{
    (void)state;
    for (int revoked = 0; revoked < 2; revoked++) {
        (void)hft_scene_begin(NULL);
        struct sim_process *holder = hft_process(NULL);
        uint64_t grants[2];
        char token[TOKEN_ROOM], made_up[2 * TOKEN_ROOM];
        for (int i = 0; i < 2; i++) {
            hf_lease *lease = hft_must_take(holder, "n", NULL);
            (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
            assert_int_equal(sscanf(token, "hf1:%*32[^:]:%" SCNx64, &grants[i]), 1);
            assert_int_equal(hft_released(holder, lease), HF_OK);
        }
        (void)snprintf(made_up, sizeof made_up, "%.36s:%" PRIx64 ":%s12345678%s", token, 2 * grants[1] - grants[0],
                       revoked ? "ffffffff" : "12345678", strchr(strchr(token + 37, ':') + 1, ':'));
        hft_publish(holder, "B %s %s hf:{n}", made_up, made_up);
        hft_pass_ms(1); /* it has been heard, and its release waits for its pace */
        hf_lease *lease = hft_must_take(holder, "n", NULL);
        assert_memory_equal(hft_key("hf:{n}"), made_up, (size_t)(strchr(made_up + 37, ':') - made_up));
        hft_pass_ms(1000);
        assert_true(hft_is_valid(holder, lease));
        assert_string_not_equal(hft_key("hf:{n}"), "");
    }
}

/* The process owned the lock and did not know. It had nothing to stop, and keeps its place in the queue. */
static void a_lock_that_a_break_took_from_a_waiter_is_released_at_once(void **state)
{
    (void)state;
    struct sim_process *holder = hft_process(NULL), *other = hft_process(NULL);
    struct hft_actor waiter;
    char waits[TOKEN_ROOM], revoked[TOKEN_ROOM], line[TOKEN_ROOM + 40];
    (void)hft_must_take(holder, "n", NULL);
    hft_take(&waiter, other, "n", HF_LOCK(.wait_ms = 5000));
    hft_pass_ms(20);
    sim_keyspace_members(&sim_server->keys, "hf:queue:{n}:hf:{n}", note_token, waits);
    hft_revoked(waits, '1', revoked);
    (void)snprintf(line, sizeof line, "SET hf:{n} %s PX 60000", revoked);
    hft_tell(line);
    hft_publish(other, "B %s %s hf:{n}", waits, revoked);
    int64_t broken = sim.now;
    HFT_UNTIL(waiter.ended != 0);
    assert_int_equal(waiter.status, HF_OK);
    assert_true(waiter.ended - broken < 20 * HFI_MS);
}

static void verify_learns_of_the_break_and_leaves_the_holder_its_time_to_stop(void **state)
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

/* The renewal that the first break caused brings the token that it left; by now the key holds another one. */
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
static void a_breaks_token_of_a_forgotten_grant_is_released_too(void **state)
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

/* The holder's process has forgotten the lock by then, and with it the length of the lease. */
static void a_breaks_token_of_a_forgotten_grant_is_released_though_the_first_release_is_lost(void **state)
{
    (void)state;
    struct sim_process *once = hft_process(HF_CLIENT(.lanes = 1)), *operator = hft_process(NULL);
    hf_lease *lease = hft_must_take(once, "n", HF_LOCK(.lease_ms = 60000));
    char line[TOKEN_ROOM + 60], name[20];
    (void)snprintf(line, sizeof line, "SET hf:{n} %s PX 61513", hft_key("hf:{n}"));
    assert_int_equal(hft_released(once, lease), HF_OK);
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(name, sizeof name, "x%d", i);
        assert_int_equal(hft_released(once, hft_must_take(once, name, NULL)), HF_OK);
    }
    hft_tell(line);
    int before = hft_listed(once, "release");
    hft_run(operator, break_it, operator);
    HFT_UNTIL(hft_listed(once, "release") > before);
    hft_lose_last(hft_lock_wire(once));
    hft_pass_ms(5000);
    assert_string_equal(hft_key("hf:{n}"), "");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(a_holder_that_releases_before_its_renewal_releases_the_breaks_token_too),
        TEST(the_breaks_token_is_released_with_the_holders_own),
        TEST(a_token_that_no_break_can_have_left_is_not_released),
        TEST(a_made_up_break_of_the_next_grant_releases_nothing),
        TEST(a_lock_that_a_break_took_from_a_waiter_is_released_at_once),
        TEST(verify_learns_of_the_break_and_leaves_the_holder_its_time_to_stop),
        TEST(a_second_break_while_the_first_is_asked_about_does_no_harm),
        TEST(a_breaks_token_of_a_forgotten_grant_is_released_too),
        TEST(a_breaks_token_of_a_forgotten_grant_is_released_though_the_first_release_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
