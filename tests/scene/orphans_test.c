/* SPDX-License-Identifier: MIT */
/* orphans_test.c - orphans, tokens of this client that it no longer uses: what names them, what is released for
 * that, how often. */
#include "tests/scene/scene.h"
#include "core/context/context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ROOM 160

/* The token with another random word, with another grant number, or of another client. */
static void changed(const char *token, int colons, char by, char *out)
{
    (void)snprintf(out, ROOM, "%.*s", ROOM - 1, token);
    char *digit = out;
    for (int i = 0; i < colons; i++)
        digit = strchr(digit, ':') + 1;
    *digit = *digit == by ? (char)(by + 1) : by;
}

static void other_random(const char *token, char by, char *out)
{
    changed(token, 3, by, out);
}

static void set(const char *key, const char *token)
{
    char line[ROOM + 60];
    (void)snprintf(line, sizeof line, "SET %s %s PX 60000", key, token);
    hft_tell(line);
}

/* A lock "n" that this process had once, and the token it had. */
static struct sim_process *had_once(char *token)
{
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1));
    hf_lease *lease = hft_must_take(process, "n", NULL);
    (void)snprintf(token, ROOM, "%s", hft_key("hf:{n}"));
    assert_int_equal(hft_released(process, lease), HF_OK);
    hft_pass_ms(1000);
    return process;
}

static int released(const struct sim_process *process)
{
    return hft_listed(process, "release");
}

/* Whichever of them the key has, in whatever order they were named. */
static void tokens_of_one_lock_are_given_back_each_by_itself(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        char there = (char)('0' + round / 2 * 2);
        char token[ROOM], other[ROOM];
        (void)hft_scene_begin(NULL);
        struct sim_process *process = had_once(token);
        int before = released(process);
        sim_server_freeze(sim.now + 500 * HFI_MS);
        for (int i = 0; i <= 8; i += 2) {
            char by = (char)(round % 2 == 0 ? '0' + i : '8' - i); /* rising, falling */
            other_random(token, by, other);
            if (by == there)
                set("hf:{n}", other);
            for (int times = 0; times < 3; times++) /* who is being given back is not begun again */
                hft_publish(process, "R %s hf:{n}", other);
        }
        hft_pass_ms(400);
        assert_int_equal(released(process) - before, 5);
        hft_pass_ms(110);
        assert_string_equal(hft_key("hf:{n}"), "");
        hft_pass_ms(5000);
        assert_true(released(process) - before <= 10); /* FREE says no time: once more */
        before = released(process);
        hft_pass_ms(10000);
        assert_int_equal(released(process), before);
        hf_lease *lease = hft_must_take(process, "n", NULL);
        assert_int_equal(hft_released(process, lease), HF_OK);
    }
}

/* Forgeries from a token in use: its random word with other grants, its grant with another lock's key. */
static void a_token_is_its_grant_and_its_word_and_is_given_back_where_it_was(void **state)
{
    (void)state;
    char token[ROOM], other[ROOM];
    struct sim_process *process = had_once(token);
    int before = released(process);
    sim_server_freeze(sim.now + 100 * HFI_MS);
    for (const char *grant = "537"; *grant != 0; grant++) {
        changed(token, 2, *grant, other);
        hft_publish(process, "R %s hf:{n}", other);
        hft_pass_ms(1);
    }
    assert_int_equal(released(process) - before, 3);
    hft_publish(process, "R %s hf:{m}", other); /* it is this lock's grant */
    hft_pass_ms(1);
    assert_int_equal(released(process) - before, 3);
}

/* As if it were wanted by who waits. */
static void a_forgotten_grant_is_released(void **state)
{
    (void)state;
    char token[ROOM], other[ROOM];
    struct sim_process *process = had_once(token);
    other_random(token, '4', other);
    set("hf:{n}", other);
    hft_publish(process, "G %s 1 1 hf:{n}", other);
    hft_pass_ms(1);
    assert_string_equal(hft_key("hf:{n}"), "");
}

/* A release without an answer waits for its 400 ms; a message that names its token sends it at once, but not twice
 * in 10 ms. */
static void a_message_makes_a_release_go_at_once_and_not_more_often_than_the_pace(void **state)
{
    (void)state;
    char token[ROOM];
    struct hft_actor giver;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1, .command_ms = 300));
    hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.lease_ms = 60000));
    (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
    sim_server_refuse(SIM_NO_DISK);
    hft_give_back(&giver, process, lease);
    HFT_UNTIL(giver.ended != 0);
    assert_int_equal(giver.status, HF_UNKNOWN);
    assert_non_null(strstr(giver.error.message, "refuses"));
    int before = released(process);
    hft_pass_ms(50);
    for (int i = 0; i < 100; i++) {
        hft_publish(process, "R %s hf:{n}", token);
        hft_pass_ms(1);
    }
    assert_in_range(released(process) - before, 9, 11);
    hft_pass_ms(20);
    before = released(process);
    hft_publish(process, "F %s", token); /* whatever it is that names it, and without the key */
    hft_pass_ms(1);
    assert_int_equal(released(process) - before, 1);
    sim_server_refuse(SIM_TAKES_ALL);
    hft_pass_ms(10);
    hft_publish(process, "R %s hf:{n}", token);
    hft_pass_ms(1);
    assert_string_equal(hft_key("hf:{n}"), "");
}

static void a_refused_release_is_repeated_ever_more_seldom_and_not_for_ever(void **state)
{
    (void)state;
    struct hft_actor giver;
    struct sim_process *process = hft_process(HF_CLIENT(.command_ms = 1340));
    hf_lease *lease = hft_must_take(process, "n", NULL);
    sim_server_refuse(SIM_NO_DISK);
    hft_give_back(&giver, process, lease);
    static const struct {
        int at_ms, sent;
    } steps[] = {{390, 1}, {450, 2}, {1150, 2}, {1290, 3}, {2750, 3}, {2900, 4}};
    int64_t begun = sim.now;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        sim_run(begun + steps[i].at_ms * HFI_MS);
        assert_int_equal(released(process), steps[i].sent);
    }
    /* After that every 1600 ms, until command_ms and the key's 10,463 ms are over and the record is gone: 11.8 s. */
    sim_run(begun + 20000 * HFI_MS);
    int sent = released(process);
    assert_int_equal(sent, 9);
    hft_pass_ms(20000);
    assert_int_equal(released(process), sent);
}

/* ---- breaks ---- */

static void the_token_of_a_break_without_a_holder_is_released(void **state)
{
    (void)state;
    char token[ROOM], revoked[ROOM];
    struct sim_process *process = had_once(token);
    hft_revoked(token, '1', revoked);
    set("hf:{n}", revoked);
    hft_publish(process, "B %s %s", token, revoked);
    hft_pass_ms(5);
    assert_string_equal(hft_key("hf:{n}"), revoked); /* who waited with the broken token asks first */
    hft_pass_ms(10);
    assert_string_equal(hft_key("hf:{n}"), "");
}

static void a_break_names_a_token_of_this_grant_and_client_or_none(void **state)
{
    (void)state;
    char token[ROOM], other[ROOM];
    struct sim_process *process = had_once(token);
    for (int i = 0; i < 2; i++)
        assert_int_equal(hft_released(process, hft_must_take(process, "n", NULL)), HF_OK);
    hf_lease *lease = hft_must_take(process, "n", NULL); /* the fourth grant */
    (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
    assert_int_equal(hft_released(process, lease), HF_OK);
    hft_pass_ms(1000);
    int before = released(process);
    hft_publish(process, "B %s -", token);
    hft_publish(process, "B %s", token);
    for (char grant = '2'; grant <= '6'; grant += 4) {
        changed(token, 2, grant, other);
        hft_publish(process, "B %s %s", token, other);
    }
    changed(token, 1, '7', other);
    hft_publish(process, "B %s %s", token, other);
    hft_pass_ms(2000);
    assert_int_equal(released(process), before);
}

/* Two grants of one lock, both broken: each holder has its own time. */
static void the_time_to_stop_is_that_of_the_grant(void **state)
{
    (void)state;
    for (int older = 0; older < 2; older++) { /* whose holder has its time */
        char tokens[2][ROOM], revoked[ROOM];
        hf_lease *leases[2];
        (void)hft_scene_begin(NULL);
        struct sim_process *process = hft_process(HF_CLIENT(.guard_ms = 400));
        for (int i = 0; i < 2; i++) {
            leases[i] = hft_must_take(process, "n", NULL);
            (void)snprintf(tokens[i], ROOM, "%s", hft_key("hf:{n}"));
            if (i == !older) {
                hft_revoked(tokens[i], '4', revoked);
                set("hf:{n}", revoked);
                hft_publish(process, "B %s %s", tokens[i], revoked);
                HFT_UNTIL(!hft_is_valid(process, leases[i]));
                hft_tell("DEL hf:{n}");
            } else {
                assert_int_equal(hft_released(process, leases[i]), HF_OK);
            }
        }
        hft_pass_ms(150); /* too long ago for a message that crossed a release */
        hft_revoked(tokens[older], '8', revoked);
        set("hf:{n}", revoked);
        hft_publish(process, "B %s %s", tokens[older], revoked);
        hft_pass_ms(20);
        assert_string_equal(hft_key("hf:{n}"), "");
    }
}

/* The holder was notified of the first break a moment ago and has guard_ms to stop, no less and no more, whatever the second
 * one puts there, and whether somebody waits for it. */
static void a_second_break_leaves_the_holder_its_time(void **state)
{
    (void)state;
    for (int wanted = 0; wanted < 2; wanted++) {
        char token[ROOM], first[ROOM], second[ROOM];
        struct sim_process *process = hft_process(HF_CLIENT(.guard_ms = 300));
        hf_lease *lease = hft_must_take(process, "n", NULL);
        (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
        hft_revoked(token, '4', first);
        hft_revoked(token, '8', second);
        set("hf:{n}", first);
        hft_publish(process, "B %s %s", token, first);
        int64_t told = sim.now;
        HFT_UNTIL(!hft_is_valid(process, lease));
        hft_pass_ms(50);
        set("hf:{n}", second);
        hft_publish(process, "B %s %s", first, second);
        if (wanted)
            hft_publish(process, "R %s hf:{n}", second);
        sim_run(told + 299 * HFI_MS);
        assert_string_equal(hft_key("hf:{n}"), second);
        hft_pass_ms(15);
        assert_string_equal(hft_key("hf:{n}"), "");
    }
}

static void a_client_that_closes_leaves_no_revoked_key_behind(void **state)
{
    (void)state;
    char token[ROOM], revoked[ROOM];
    struct sim_process *process = hft_process(HF_CLIENT(.guard_ms = 5000));
    hf_lease *lease = hft_must_take(process, "n", NULL);
    (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
    hft_revoked(token, '1', revoked);
    set("hf:{n}", revoked);
    hft_publish(process, "B %s %s", token, revoked);
    HFT_UNTIL(!hft_is_valid(process, lease));
    hft_pass_ms(20);
    assert_string_equal(hft_key("hf:{n}"), revoked);
    assert_int_equal(hft_close(process), HF_OK);
    assert_string_equal(hft_key("hf:{n}"), "");
}

/* ---- an acquire that is executed behind its release ---- */

/* A native acquire, which the server obeys at any time. Its connection brought no answer to it nor to its release,
 * so the release is repeated when the key that it may have set cannot live longer. */
static void an_acquire_that_comes_after_its_releases_answer_is_released_again(void **state)
{
    (void)state;
    struct hft_actor actor;
    struct sim_process *holder = hft_process(NULL);
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1, .command_ms = 200));
    hf_lease *lease = hft_must_take(holder, "n", NULL);
    hft_pass_ms(20);
    int64_t begun = sim.now;
    hft_stall_up(hft_lock_wire(process), 700);
    hft_take(&actor, process, "n", HF_LOCK(.wait_ms = 100, .lease_ms = 1000));
    HFT_UNTIL(actor.ended != 0 && released(process) == 1);
    hft_lose_last(hft_lock_wire(process)); /* the server has the bytes of the acquire, and no more will come */
    HFT_UNTIL(hft_ran("release") == 1); /* on the next connection */
    assert_int_equal(hft_released(holder, lease), HF_OK);
    HFT_UNTIL(hft_key("hf:{n}")[0] != 0);
    assert_true(sim.now - begun >= 700 * HFI_MS);
    HFT_UNTIL(hft_key("hf:{n}")[0] == 0);
    assert_in_range((sim.now - begun) / HFI_MS, 701, 1290); /* its own end would have been after 1,974 ms */
}

static void fire(void *arg)
{
    hf_cancel_fire(arg);
}

struct opening {
    struct sim_process *process;
    hf_cancel *cancel;
};

static void open_cancel(void *arg)
{
    struct opening *opening = arg;
    if (hf_cancel_open(opening->process->client, &opening->cancel, NULL) != HF_OK)
        opening->cancel = NULL;
}

/* The server does not know its script, so the acquire is sent again; by then its caller has given up, and its release
 * goes before it. */
static void send_again_behind_the_release(struct sim_process *process, struct hft_actor *waiter)
{
    static struct opening opening;
    opening = (struct opening){.process = process};
    (void)hft_must_take(hft_process(NULL), "n", NULL);
    hft_run(process, open_cancel, &opening);
    assert_non_null(opening.cancel);
    sim_network.delay_least = sim_network.delay_most = HFI_MS;
    hft_take(waiter, process, "n", HF_LOCK(.wait_ms = 5000, .cancel = opening.cancel));
    HFT_UNTIL(hft_listed(process, "acquire") == 1);
    sim_server_forget_scripts(true);
    sim_run(sim.now + 11 * HFI_MS / 10); /* it has been refused */
    memset(sim_server->scripts_known, 1, sizeof sim_server->scripts_known);
    hft_run(process, fire, opening.cancel);
}

static const char *places(void)
{
    return hft_answered("ZRANGE hf:queue:{n}:hf:{n} 0 -1");
}

static void an_acquire_that_had_to_be_sent_again_leaves_no_place_behind(void **state)
{
    (void)state;
    struct hft_actor waiter;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1));
    send_again_behind_the_release(process, &waiter);
    HFT_UNTIL(waiter.ended != 0);
    assert_int_equal(waiter.status, HF_CANCELED);
    HFT_UNTIL(hft_ran("acquire") == 1);
    assert_int_equal(hft_ran("release"), 1); /* before it */
    assert_string_not_equal(places(), "");
    hft_pass_ms(5);
    assert_int_equal(hft_ran("release"), 2);
    assert_string_equal(places(), "");
    hft_pass_ms(5000);
    assert_in_range(hft_ran("release"), 2, 3);
}

/* The acquire that is sent again gets no answer: the connection is lost before. */
static void an_acquire_that_was_sent_again_without_an_answer_leaves_no_place_either(void **state)
{
    (void)state;
    struct hft_actor waiter;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1, .command_ms = 200));
    send_again_behind_the_release(process, &waiter);
    HFT_UNTIL(hft_ran("acquire") == 1);
    sim_run(sim.now + HFI_MS / 2); /* the release before it has been answered */
    hft_stall_down(hft_lock_wire(process), 1000);
    assert_string_not_equal(places(), "");
    hft_pass_ms(700); /* the connection is given up after 200 ms, and the release repeated 400 ms later */
    assert_string_equal(places(), "");
    hft_pass_ms(5000);
    assert_in_range(hft_ran("release"), 2, 4);
}

static hf_status load_nothing(hf_loading *loading, void *arg)
{
    (void)arg;
    return hf_loading_fail(loading, 0, "no");
}

static void fetch_page(void *arg)
{
    struct opening *opening = arg;
    hf_value *value = NULL;
    (void)!hf_fetch(opening->process->client, "page", HF_FETCH(.load = load_nothing, .cancel = opening->cancel, .wait_ms = 5000), &value,
                    NULL);
    hf_value_free(value);
}

/* After an hour without an answer the server's clock is known to 2 %: the server may obey a script for 72 s. */
static void it_is_released_again_once_the_server_refuses_it_for_certain(void **state)
{
    (void)state;
    static struct opening opening;
    opening.process = hft_process(HF_CLIENT(.lanes = 1, .command_ms = 200));
    hft_run(opening.process, open_cancel, &opening);
    hft_run(opening.process, fetch_page, &opening);
    hft_pass_ms(3600 * 1000);
    sim_network.delay_least = sim_network.delay_most = HFI_MS;
    sim_server_forget_scripts(true);
    sim_thread_start(opening.process, fetch_page, &opening);
    HFT_UNTIL(hft_listed(opening.process, "acquire") == 2);
    sim_run(sim.now + 11 * HFI_MS / 10);
    memset(sim_server->scripts_known, 1, sizeof sim_server->scripts_known);
    hft_run(opening.process, fire, opening.cancel);
    HFT_UNTIL(hft_ran("acquire") == 2);
    sim_run(sim.now + HFI_MS / 2);
    hft_stall_down(hft_value_wire(opening.process), 1000);
    hft_pass_ms(60 * 1000);
    assert_string_equal(hft_key("hf:fetch:{page}"), "");
    int before = hft_ran("release");
    hft_pass_ms(10 * 1000);
    assert_int_equal(hft_ran("release"), before);
    hft_pass_ms(10 * 1000);
    assert_int_equal(hft_ran("release"), before + 1);
}

/* The acquire that is sent again ends in an error after it has taken a place in the queue. */
static void an_acquire_that_was_sent_again_and_failed_leaves_no_place_either(void **state)
{
    (void)state;
    struct hft_actor waiter;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1));
    sim_server->keys.forbidden = "HSET";
    send_again_behind_the_release(process, &waiter);
    HFT_UNTIL(waiter.ended != 0);
    hft_pass_ms(50);
    sim_server->keys.forbidden = NULL;
    assert_int_equal(hft_ran("release"), 2);
    assert_string_equal(places(), "");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(tokens_of_one_lock_are_given_back_each_by_itself),
        TEST(a_token_is_its_grant_and_its_word_and_is_given_back_where_it_was),
        TEST(a_forgotten_grant_is_released),
        TEST(a_message_makes_a_release_go_at_once_and_not_more_often_than_the_pace),
        TEST(a_refused_release_is_repeated_ever_more_seldom_and_not_for_ever),
        TEST(the_token_of_a_break_without_a_holder_is_released),
        TEST(a_break_names_a_token_of_this_grant_and_client_or_none),
        TEST(the_time_to_stop_is_that_of_the_grant),
        TEST(a_second_break_leaves_the_holder_its_time),
        TEST(a_client_that_closes_leaves_no_revoked_key_behind),
        TEST(an_acquire_that_comes_after_its_releases_answer_is_released_again),
        TEST(an_acquire_that_had_to_be_sent_again_leaves_no_place_behind),
        TEST(an_acquire_that_was_sent_again_without_an_answer_leaves_no_place_either),
        TEST(it_is_released_again_once_the_server_refuses_it_for_certain),
        TEST(an_acquire_that_was_sent_again_and_failed_leaves_no_place_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
