/* SPDX-License-Identifier: MIT */
/* inbound_test.c - messages, received and lost: which of them make a client ask the server, notify a holder, or do
 * nothing. */
#include "tests/scene/scene.h"
#include "tests/sim/pool_inside.h"
#include "core/context/context.h"
#include "core/policy/fence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "n" is held by `holder`, and `waiter` stands in its queue. */
struct pair {
    struct sim_process *holder, *other;
    hf_lease *lease;
    struct hft_actor waiter;
    char held[160], waits[160]; /* their tokens */
};

static void note_token(void *out, const char *member)
{
    (void)snprintf(out, 160, "%s", member);
}

static void lay(struct pair *pair, const hf_lock_options *options)
{
    pair->holder = hft_process(NULL);
    pair->other = hft_process(HF_CLIENT(.lanes = 1));
    pair->lease = hft_must_take(pair->holder, "n", options);
    (void)snprintf(pair->held, sizeof pair->held, "%s", hft_key("hf:{n}"));
    hft_take(&pair->waiter, pair->other, "n", HF_LOCK(.lease_ms = 10000, .wait_ms = 5000));
    HFT_UNTIL(hft_ran("acquire") == 1);
    hft_pass_ms(20);
    sim_keyspace_members(&sim_server->keys, "hf:queue:{n}:hf:{n}", note_token, pair->waits);
}

/* The grant message was published while the waiter's subscriber was away. The next re-check would be up to 440 ms
 * later. */
static void after_a_subscription_every_waiter_asks_again(void **state)
{
    (void)state;
    struct pair pair;
    lay(&pair, NULL);
    sim_wire_drop(hft_subscriber_wire(pair.other), true);
    HFT_UNTIL(hft_subscriber_wire(pair.other) == NULL);
    assert_int_equal(hft_released(pair.holder, pair.lease), HF_OK);
    assert_int_equal(pair.waiter.ended, 0);
    HFT_UNTIL(hft_subscriber_wire(pair.other) != NULL);
    int64_t subscribed = sim.now;
    HFT_UNTIL(pair.waiter.ended != 0);
    assert_int_equal(pair.waiter.status, HF_OK);
    assert_true(pair.waiter.ended - subscribed < 5 * HFI_MS);
}

struct fetching {
    struct sim_process *process;
    bool may_end; /* its load */
    hf_status status;
    int64_t ended;
};

static hf_status load(hf_loading *loading, void *arg)
{
    const struct fetching *fetching = arg;
    while (!fetching->may_end)
        sim_stop(HFI_MS);
    return hf_loading_set(loading, "x", 1);
}

static void fetch(void *arg)
{
    struct fetching *fetching = arg;
    hf_value *value;
    fetching->status = hf_fetch(fetching->process->client, "page", HF_FETCH(.load = load, .arg = arg), &value, NULL);
    if (fetching->status == HF_OK)
        hf_value_free(value);
    fetching->ended = sim.now;
}

/* The same of a value that was filled meanwhile. */
static void after_a_subscription_a_fetch_that_waits_acquires_at_once(void **state)
{
    (void)state;
    struct fetching loader = {.process = hft_process(NULL)}, waiter = {.process = hft_process(NULL), .may_end = true};
    sim_thread_start(loader.process, fetch, &loader);
    hft_pass_ms(10);
    sim_thread_start(waiter.process, fetch, &waiter);
    hft_pass_ms(20);
    sim_wire_drop(hft_subscriber_wire(waiter.process), true);
    HFT_UNTIL(hft_subscriber_wire(waiter.process) == NULL);
    loader.may_end = true;
    HFT_UNTIL(loader.ended != 0);
    assert_int_equal(waiter.ended, 0);
    HFT_UNTIL(hft_subscriber_wire(waiter.process) != NULL);
    int64_t subscribed = sim.now;
    HFT_UNTIL(waiter.ended != 0);
    assert_int_equal(waiter.status, HF_OK);
    assert_true(waiter.ended - subscribed < HFI_MS);
}

/* A waiter may have asked for the lease while the holder was not subscribed. The answer to a renewal tells. */
static void after_a_subscription_every_holder_renews_to_learn_of_waiters(void **state)
{
    (void)state;
    struct pair pair;
    lay(&pair, NULL);
    int renewed = hft_listed(pair.holder, "renew");
    sim_wire_drop(hft_subscriber_wire(pair.holder), true);
    HFT_UNTIL(hft_subscriber_wire(pair.holder) == NULL);
    HFT_UNTIL(hft_subscriber_wire(pair.holder) != NULL);
    hft_pass_ms(20);
    assert_int_equal(hft_listed(pair.holder, "renew"), renewed + 1);
    assert_int_equal(hft_released(pair.holder, pair.lease), HF_OK);
    HFT_UNTIL(pair.waiter.ended != 0);
}

/* What was on its way with the connection is lost, including the answer of the last acquire. */
static void after_a_connection_came_up_every_waiter_asks_again(void **state)
{
    (void)state;
    struct pair pair;
    lay(&pair, NULL);
    int asked = hft_listed(pair.other, "recheck");
    sim_wire_drop(hft_lock_wire(pair.other), true);
    hft_pass_ms(60);
    assert_true(hft_listed(pair.other, "recheck") > asked);
    assert_int_equal(hft_released(pair.holder, pair.lease), HF_OK);
    HFT_UNTIL(pair.waiter.ended != 0);
    assert_int_equal(pair.waiter.status, HF_OK);
}

static uint64_t commands_of(struct sim_process *process, int lane)
{
    return process->client->pool->lanes[lane].commands;
}

/* The others have lost nothing. */
static void a_waiter_on_another_connection_acquires_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    for (int dropped = 0; dropped < 2; dropped++) {
        struct hft_actor waiters[8];
        (void)hft_scene_begin(NULL);
        struct sim_process *holder = hft_process(NULL), *process = hft_process(HF_CLIENT(.lanes = 2));
        for (int i = 0; i < 8; i++)
            (void)hft_must_take(holder, names[i], HF_LOCK(.lease_ms = 60000));
        for (int i = 0; i < 8; i++)
            hft_take(&waiters[i], process, names[i], HF_LOCK(.wait_ms = 60000));
        hft_pass_ms(50);
        uint64_t before = commands_of(process, !dropped), here = commands_of(process, dropped);
        assert_true(before > 0 && here > 0);
        sim_wire_drop(process->client->pool->lanes[dropped].wire, true);
        hft_pass_ms(60);
        assert_true(commands_of(process, dropped) > here);
        assert_int_equal(commands_of(process, !dropped), before);
    }
}

/* ---- G ---- */

static int64_t echo_of(const struct pair *pair)
{
    char line[200];
    long long echo = 0;
    (void)snprintf(line, sizeof line, "HGET hf:wait:{n}:hf:{n} %s", pair->waits);
    (void)sscanf(hft_answered(line), "%*d %lld", &echo);
    return echo;
}

static int64_t good_fence(void)
{
    return (sim_server_us() + 3600000000) * HFI_FENCE_BLOCK;
}

/* A reader of the queue can forge a grant message; only the fence and the renewal stand between it and two holders. */
static void a_grant_counts_with_this_token_and_an_echo_of_its_own(void **state)
{
    (void)state;
    struct pair pair;
    lay(&pair, NULL);
    int asked = hft_listed(pair.other, "acquire");
    hft_publish(pair.other, "G %s %lld %lld hf:{n}", pair.waits, (long long)echo_of(&pair) + 1, (long long)good_fence());
    hft_pass_ms(5);
    assert_int_equal(pair.waiter.ended, 0);
    assert_int_equal(hft_listed(pair.other, "acquire"), asked + 1); /* it may own it: only an answer can tell */
    hft_publish(pair.other, "G %s 0 %lld hf:{n}", pair.waits, (long long)good_fence());
    hft_pass_ms(15);
    assert_int_equal(pair.waiter.ended, 0);
    hft_publish(pair.other, "G %s %lld %lld hf:{n}", pair.held, (long long)echo_of(&pair), (long long)good_fence());
    hft_pass_ms(15);
    assert_int_equal(pair.waiter.ended, 0);
    hft_tell("DEL hf:{n}");
    char line[220];
    (void)snprintf(line, sizeof line, "SET hf:{n} %s PX 1274", pair.waits);
    hft_tell(line);
    int64_t fence = good_fence();
    asked = hft_listed(pair.other, "acquire");
    hft_publish(pair.other, "G %s %lld %lld hf:{n}", pair.waits, (long long)echo_of(&pair), (long long)fence);
    HFT_UNTIL(pair.waiter.ended != 0);
    assert_int_equal(pair.waiter.status, HF_OK);
    assert_int_equal(hf_lease_fence(pair.waiter.lease), fence);
    assert_int_equal(hft_listed(pair.other, "acquire"), asked);
    assert_int_equal(hft_stats(pair.other).hand_offs_taken, 1);
    hft_pass_ms(1000);
    assert_true(hft_is_valid(pair.other, pair.waiter.lease));
    assert_int_equal(hft_stats(pair.other).renewals, 1); /* of a claim: at half of its second */
}

static void a_grant_whose_fence_is_behind_the_clock_gives_none_such(void **state)
{
    (void)state;
    struct pair pair;
    char line[220];
    lay(&pair, NULL);
    (void)snprintf(line, sizeof line, "SET hf:{n} %s PX 1274", pair.waits);
    hft_tell(line);
    int64_t behind = (sim_server_us() - 10000000) * HFI_FENCE_BLOCK;
    hft_publish(pair.other, "G %s %lld %lld hf:{n}", pair.waits, (long long)echo_of(&pair), (long long)behind);
    HFT_UNTIL(pair.waiter.ended != 0);
    assert_int_equal(pair.waiter.status, HF_OK);
    assert_true(hf_lease_fence(pair.waiter.lease) / HFI_FENCE_BLOCK >= sim_server_us());
}

/* Nobody else waits: it lingers, as it would after an answer. */
static void a_lease_that_a_message_brought_may_linger(void **state)
{
    (void)state;
    struct hft_actor waiter;
    struct sim_process *holder = hft_process(NULL), *other = hft_process(NULL);
    hf_lease *lease = hft_must_take(holder, "n", NULL);
    hft_take(&waiter, other, "n", HF_LOCK(.lease_ms = 10000, .wait_ms = 5000, .linger_ms = 5000));
    hft_pass_ms(20);
    assert_int_equal(hft_released(holder, lease), HF_OK);
    HFT_UNTIL(waiter.ended != 0);
    assert_int_equal(hft_stats(other).hand_offs_taken, 1);
    assert_int_equal(hft_released(other, waiter.lease), HF_OK);
    hft_pass_ms(100);
    assert_string_not_equal(hft_key("hf:{n}"), "");
}

static void set_counter(int64_t ahead_us)
{
    char line[60];
    (void)snprintf(line, sizeof line, "SET hf:fence %lld", (long long)(sim_server_us() + ahead_us) * HFI_FENCE_BLOCK);
    hft_tell(line);
}

static void the_fence_of_a_grant_is_one_that_was_seen(void **state)
{
    (void)state;
    struct hft_actor waiter;
    struct sim_process *holder = hft_process(NULL), *other = hft_process(HF_CLIENT(.lanes = 1));
    hf_lease *lease = hft_must_take(holder, "n", NULL);
    hft_take(&waiter, other, "n", HF_LOCK(.lease_ms = 10000, .wait_ms = 5000));
    hft_pass_ms(20);
    set_counter(3600000000);
    assert_int_equal(hft_released(holder, lease), HF_OK);
    HFT_UNTIL(waiter.ended != 0);
    set_counter(1800000000); /* lost, and another program's clock is ahead of ours */
    assert_true(hf_lease_fence(hft_must_take(other, "m", NULL)) > hf_lease_fence(waiter.lease));
}

/* ---- R ---- */

static void a_lingering_lease_goes_back_when_it_is_wanted(void **state)
{
    (void)state;
    struct sim_process *holder = hft_process(NULL);
    hf_lease *lease = hft_must_take(holder, "n", HF_LOCK(.lease_ms = 10000, .linger_ms = 5000));
    char token[160];
    (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
    assert_int_equal(hft_released(holder, lease), HF_OK);
    hft_pass_ms(100);
    assert_string_equal(hft_key("hf:{n}"), token);
    hft_publish(holder, "R %s hf:{n}", token);
    hft_pass_ms(1);
    assert_string_equal(hft_key("hf:{n}"), "");
}

/* The token of another grant of this lock: an earlier one, long released, or a forged one. */
static void a_message_about_another_grant_is_not_about_this_one(void **state)
{
    (void)state;
    for (char grant = '2'; grant <= '4'; grant += 2) {
        (void)hft_scene_begin(NULL);
        struct sim_process *holder = hft_process(NULL);
        for (int i = 0; i < 2; i++)
            assert_int_equal(hft_released(holder, hft_must_take(holder, "n", NULL)), HF_OK);
        hf_lease *lease = hft_must_take(holder, "n", HF_LOCK(.lease_ms = 10000, .linger_ms = 5000));
        char token[160], other[160];
        (void)snprintf(token, sizeof token, "%s", hft_key("hf:{n}"));
        (void)snprintf(other, sizeof other, "%s", token);
        char *digit = strchr(strchr(other, ':') + 1, ':') + 1;
        assert_int_equal(*digit, '3');
        *digit = grant;
        assert_int_equal(hft_released(holder, lease), HF_OK);
        hft_publish(holder, "R %s hf:{n}", other);
        hft_publish(holder, "B %s -", other);
        hft_pass_ms(50);
        assert_string_equal(hft_key("hf:{n}"), token);
        assert_int_equal(hft_listed(holder, "renew"), 0);
    }
}

static void a_message_about_an_unknown_lock_is_ignored(void **state)
{
    (void)state;
    struct pair pair;
    lay(&pair, NULL);
    char token[160], line[220];
    (void)snprintf(token, sizeof token, "%.37s3ffffff%s", pair.held, strchr(pair.held + 37, ':'));
    hft_publish(pair.holder, "R %s hf:{n}", token);
    hft_publish(pair.holder, "R %s", token);
    (void)snprintf(line, sizeof line, "SET hf:{other} %s PX 60000", token);
    hft_tell(line);
    hft_publish(pair.holder, "R %s hf:{other}", token); /* but by its key it is found */
    hft_pass_ms(5);
    assert_string_equal(hft_key("hf:{other}"), "");
    hft_publish(pair.holder, "B %s -", token);
    hft_pass_ms(5);
    assert_true(hft_is_valid(pair.holder, pair.lease));
    assert_string_equal(hft_key("hf:{n}"), pair.held);
}

static void a_held_lease_stays_though_it_is_wanted(void **state)
{
    (void)state;
    struct pair pair;
    lay(&pair, HF_LOCK(.lease_ms = 10000, .linger_ms = 5000));
    hft_publish(pair.holder, "R %s hf:{n}", pair.held);
    hft_pass_ms(50);
    assert_true(hft_is_valid(pair.holder, pair.lease));
    assert_string_equal(hft_key("hf:{n}"), pair.held);
    assert_int_equal(hft_released(pair.holder, pair.lease), HF_OK); /* and lingers no more */
    HFT_UNTIL(pair.waiter.ended != 0);
    assert_true(pair.waiter.ended - sim.now < HFI_MS);
}

/* It is said to own the lock, and does not know of it. */
static void a_waiter_that_a_message_calls_holder_acquires_at_once(void **state)
{
    (void)state;
    struct pair pair;
    lay(&pair, NULL);
    int asked = hft_listed(pair.other, "acquire");
    hft_publish(pair.other, "R %s hf:{n}", pair.waits);
    hft_pass_ms(1);
    assert_int_equal(hft_listed(pair.other, "acquire"), asked + 1);
    hft_pass_ms(50);
    assert_int_equal(hft_listed(pair.other, "acquire"), asked + 1); /* once */
}

/* ---- F and others ---- */

static void a_fetch_that_waits_acquires_when_the_value_is_stored(void **state)
{
    (void)state;
    struct pair pair;
    lay(&pair, NULL);
    int asked = hft_listed(pair.other, "acquire");
    hft_publish(pair.other, "F %s", pair.waits);
    hft_pass_ms(1);
    assert_int_equal(hft_listed(pair.other, "acquire"), asked + 1);
    hft_publish(pair.holder, "F %s", pair.held);
    hft_pass_ms(1);
    assert_true(hft_is_valid(pair.holder, pair.lease));
}

static void an_unrelated_message_moves_no_thread(void **state)
{
    (void)state;
    struct pair pair;
    lay(&pair, NULL);
    int sent = hft_listed(NULL, "acquire") + hft_listed(NULL, "release") + hft_listed(NULL, "renew");
    hft_publish(pair.other, "R %s hf:{n}", pair.held); /* another client's token */
    hft_publish(pair.other, "X %s hf:{n}", pair.waits);
    hft_publish(pair.other, "P");
    hft_publish(pair.other, "R");
    hft_publish(pair.other, "R hf1:short hf:{n}");
    hft_publish(pair.other, "G %s", pair.waits);
    hft_publish(pair.holder, "I %s not-a-channel", pair.held);
    char *digit = strchr(pair.held + 37, ':') + 1;
    *digit = *digit == '0' ? '1' : '0';
    hft_publish(pair.holder, "A %s 1 1 what-nobody-has-asked", pair.held);
    hft_pass_ms(20);
    assert_int_equal(hft_listed(NULL, "acquire") + hft_listed(NULL, "release") + hft_listed(NULL, "renew"), sent);
    assert_int_equal(hft_said('A'), 0);
    assert_true(hft_is_valid(pair.holder, pair.lease));
    assert_int_equal(pair.waiter.ended, 0);
}

static void only_the_client_that_is_asked_answers(void **state)
{
    (void)state;
    struct pair pair;
    lay(&pair, NULL);
    const char *channel = pair.other->client->identity.channel;
    hft_publish(pair.holder, "F %s %s", pair.held, channel);
    hft_publish(pair.holder, "R %s %s", pair.held, channel);
    hft_pass_ms(5);
    assert_int_equal(hft_said('A'), 0);
    hft_publish(pair.holder, "I %s %s", pair.held, channel);
    hft_pass_ms(5);
    assert_int_equal(hft_said('A'), 1);
    assert_true(hft_is_valid(pair.holder, pair.lease));
}

/* ---- a doubted holder ---- */

/* A token of this grant that is not this one: left by a break whose message was lost, or forged. The server knows
 * which. */
static void a_doubted_holder_asks_the_server(void **state)
{
    (void)state;
    struct pair pair;
    lay(&pair, NULL);
    char token[160];
    for (int i = 1; i <= 2; i++) { /* below it, above it */
        (void)snprintf(token, sizeof token, "%s", pair.held);
        char *random = strchr(strchr(strchr(token, ':') + 1, ':') + 1, ':') + 1;
        memset(random, i == 1 ? '0' : 'f', strcspn(random, ":"));
        assert_string_not_equal(token, pair.held);
        hft_publish(pair.holder, "R %s hf:{n}", token);
        hft_pass_ms(20);
        assert_int_equal(hft_stats(pair.holder).renewals, i);
        assert_true(hft_is_valid(pair.holder, pair.lease));
    }
    char line[220];
    (void)snprintf(line, sizeof line, "SET hf:{n} %s KEEPTTL", token);
    hft_tell(line);
    hft_pass_ms(20);
    hft_publish(pair.holder, "R %s hf:{n}", token);
    hft_pass_ms(5);
    assert_false(hft_is_valid(pair.holder, pair.lease));
}

/* The message goes to the holder's subscriber, then a renewal and its answer; a forged message costs the renewal
 * only. */
static void a_break_is_over_a_round_trip_after_its_message(void **state)
{
    (void)state;
    struct pair pair;
    lay(&pair, NULL);
    char token[160];
    hft_revoked(pair.held, '1', token);
    hft_publish(pair.holder, "B %s %s", pair.held, token);
    hft_pass_ms(100);
    assert_true(hft_is_valid(pair.holder, pair.lease));
    assert_int_equal(hft_listed(pair.holder, "renew"), 1);
    char line[220];
    (void)snprintf(line, sizeof line, "SET hf:{n} %s KEEPTTL", token);
    hft_tell(line);
    int64_t began = sim.now;
    hft_publish(pair.holder, "B %s %s", pair.held, token);
    HFT_UNTIL(!hft_is_valid(pair.holder, pair.lease));
    assert_true(sim.now - began < 3 * HFT_TRIP_NS + HFI_MS / 5);
    HFT_UNTIL(pair.waiter.ended != 0);
    assert_int_equal(pair.waiter.status, HF_OK);
    int64_t waited = pair.waiter.ended - began;
    assert_true(waited >= 250 * HFI_MS && waited < 252 * HFI_MS); /* guard_ms to stop, and five ways */
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(after_a_subscription_every_waiter_asks_again),
        TEST(after_a_subscription_a_fetch_that_waits_acquires_at_once),
        TEST(after_a_subscription_every_holder_renews_to_learn_of_waiters),
        TEST(after_a_connection_came_up_every_waiter_asks_again),
        TEST(a_waiter_on_another_connection_acquires_nothing),
        TEST(a_grant_counts_with_this_token_and_an_echo_of_its_own),
        TEST(a_grant_whose_fence_is_behind_the_clock_gives_none_such),
        TEST(a_lingering_lease_goes_back_when_it_is_wanted),
        TEST(a_held_lease_stays_though_it_is_wanted),
        TEST(a_waiter_that_a_message_calls_holder_acquires_at_once),
        TEST(a_fetch_that_waits_acquires_when_the_value_is_stored),
        TEST(an_unrelated_message_moves_no_thread),
        TEST(only_the_client_that_is_asked_answers),
        TEST(a_lease_that_a_message_brought_may_linger),
        TEST(the_fence_of_a_grant_is_one_that_was_seen),
        TEST(a_message_about_another_grant_is_not_about_this_one),
        TEST(a_message_about_an_unknown_lock_is_ignored),
        TEST(a_doubted_holder_asks_the_server),
        TEST(a_break_is_over_a_round_trip_after_its_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
