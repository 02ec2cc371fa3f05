/* SPDX-License-Identifier: MIT */
/* orphan_test.c - orphans: keys with a token that its living process no longer uses, set by an acquire that was
 * executed long after it was given up. A waiter has them cleared away at once. */
#include "tests/support/messages.h"
#include "tests/support/pages.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* protocol.md: 1.1 R, two round trips, 50 ms. */
enum { WORST_MS = 440 + 50, LONG_MS = 30000 };

static char *value_of(struct fixture *f, const char *key)
{
    redisReply *reply = hft_server_ask(f->server, "GET %b", key, strlen(key));
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    char *value = strdup(reply->str);
    freeReplyObject(reply);
    return value;
}

/* A token of this client that it has forgotten: it would know of one released just now. The caller frees it. */
static char *spent_token(struct fixture *f, hf_client *client, const char *name)
{
    char key[64];
    hf_lease *lease = must_take(f, client, name, NULL);
    (void)snprintf(key, sizeof key, "hf:{%s}", name);
    char *token = value_of(f, key);
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    hft_other_random(token);
    return token;
}

/* What a SET NX leaves that was sent with this token and executed now. */
static void execute_late(struct fixture *f, const char *key, const char *token)
{
    freeReplyObject(hft_server_ask(f->server, "SET %b %s PX %d", key, strlen(key), token, LONG_MS));
}

static int64_t wait_ms(struct fixture *f, hf_client *client, const char *name)
{
    int64_t began = hft_boottime_ms();
    hf_lease *lease = must_take(f, client, name, HF_LOCK(.wait_ms = 20000));
    int64_t took = hft_boottime_ms() - began;
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    return took;
}

static void an_orphan_of_a_live_process_blocks_a_newcomer_for_a_moment_only(void **state)
{
    struct fixture *f = *state;
    char *token = spent_token(f, f->a, "x");
    execute_late(f, "hf:{x}", token);
    assert_in_range((uintmax_t)wait_ms(f, f->b, "x"), 0, WORST_MS);
    assert_int_equal(hft_lock_keys(f->server), 0);
    free(token);
}

static void an_orphan_that_comes_while_they_wait_is_seen_at_the_re_check(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    char *token = spent_token(f, f->a, "x");
    freeReplyObject(hft_server_ask(f->server, "SET hf:{x} hf1:of-a-dead-one PX %d", LONG_MS));
    hft_take(&taker, f->b, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "x") == 1);
    int64_t began = hft_boottime_ms();
    execute_late(f, "hf:{x}", token);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_in_range((uintmax_t)(taker.got_ms - began), 0, WORST_MS);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    free(token);
}

/* A failover has lost the release that was answered. The first revoke may come so soon that it seems to have crossed
 * it. */
static void a_release_that_the_server_has_lost_is_repeated(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "x", NULL);
    char *token = value_of(f, "hf:{x}");
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    execute_late(f, "hf:{x}", token);
    assert_in_range((uintmax_t)wait_ms(f, f->b, "x"), 0, 2 * WORST_MS);
    assert_int_equal(hft_lock_keys(f->server), 0);
    free(token);
}

/* The server did not know the acquire's script, but that of the release behind it. So the acquire is executed last. */
static void a_grant_that_comes_after_the_answer_to_its_release_is_given_back(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_lease *lease = must_take(f, f->a, "x", NULL);
    hft_take(&taker, f->b, "x", HF_LOCK(.wait_ms = 50)); /* from now on it asks by script */
    assert_int_equal(hft_taken(&taker), HF_TIMEOUT);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "SCRIPT FLUSH"));
    assert_int_equal(hf_lease_release(must_take(f, f->a, "y", NULL), NULL), HF_OK);
    hft_server_freeze(f->server);
    hft_take(&taker, f->b, "x", HF_LOCK(.wait_ms = 50, .lease_ms = LONG_MS));
    assert_int_equal(hft_taken(&taker), HF_TIMEOUT);
    hft_server_thaw(f->server);
    HFT_UNTIL_TRUE(hft_server_calls(f->server, "eval") >= 2 && hft_lock_keys(f->server) == 0); /* and a floor, if */
}

/* It would say R, and nobody else does. */
static void a_killed_waiter_at_the_head_does_not_keep_it(void **state)
{
    struct fixture *f = *state;
    char *token = spent_token(f, f->a, "x");
    execute_late(f, "hf:{x}", token);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(hft_server_ask_integer(f->server, "ZADD hf:queue:{x}:hf:{x} %d gone%d", i, i), 1);
        freeReplyObject(hft_server_ask(f->server, "HSET hf:wait:{x}:hf:{x} gone%d %s", i, "1000 1 1271"));
    }
    assert_in_range((uintmax_t)wait_ms(f, f->b, "x"), 0, WORST_MS);
    free(token);
}

static void its_own_process_is_not_blocked_by_it_either(void **state)
{
    struct fixture *f = *state;
    char *token = spent_token(f, f->a, "x");
    execute_late(f, "hf:{x}", token);
    assert_in_range((uintmax_t)wait_ms(f, f->a, "x"), 0, WORST_MS);
    free(token);
}

static void a_try_uncovers_it_for_the_next(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease;
    char *token = spent_token(f, f->a, "x");
    execute_late(f, "hf:{x}", token);
    assert_int_equal(hf_lock_acquire(f->b, "x", NULL, &lease, &f->error), HF_BUSY);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    assert_int_equal(hf_lock_acquire(f->b, "x", NULL, &lease, &f->error), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    free(token);
}

static void names_of_any_form_and_fetches_are_healed(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name, *key;
    } forms[] = {{"two words", "hf:{two words}"}, {"in {tag}", "hf::in {tag}"}, {" ", "hf:{ }"}};
    char *token = spent_token(f, f->a, "x");
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        execute_late(f, forms[i].key, token);
        assert_in_range((uintmax_t)wait_ms(f, f->b, forms[i].name), 0, WORST_MS);
    }
    struct hft_page page = {.data = "a page", .size = 6};
    hf_value *value;
    execute_late(f, "hf:fetch:{page}", token);
    int64_t began = hft_boottime_ms();
    assert_int_equal(hf_fetch(f->b, "page", HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 1000, .wait_ms = 20000),
                              &value, &f->error),
                     HF_OK);
    assert_in_range((uintmax_t)(hft_boottime_ms() - began), 0, WORST_MS);
    hf_value_free(value);
    hf_client *c = hft_client(f->server, HF_CLIENT(.key_template = "{app}:%s:lock"));
    free(token);
    hf_lease *lease = must_take(f, c, "a b", NULL);
    token = value_of(f, "{app}:a b:lock");
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    hft_other_random(token);
    execute_late(f, "{app}:a b:lock", token);
    assert_in_range((uintmax_t)wait_ms(f, c, "a b"), 0, WORST_MS);
    assert_int_equal(hf_client_close(c, NULL), HF_OK);
    free(token);
}

static void made_up_messages_take_nothing_from_anybody(void **state)
{
    struct fixture *f = *state;
    char *spent = spent_token(f, f->a, "x");
    hf_lease *lease = must_take(f, f->a, "held", HF_LOCK(.lease_ms = 20000));
    hf_lease *theirs = must_take(f, f->b, "theirs", HF_LOCK(.lease_ms = 20000));
    char *token = value_of(f, "hf:{held}"), *other = strdup(token), longest[2000];
    hft_revoke(other); /* the same grant, as a break would leave it */
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    freeReplyObject(hft_server_ask(f->server, "SET elsewhere kept"));
    const char *const said[][2] = {{token, "hf:{theirs}"}, {spent, "hf:{held}"},   {spent, "hf:{theirs}"}, {other, "hf:{held}"},
                                   {spent, "elsewhere"},   {spent, "hf:fence"},    {spent, longest},       {spent, "hf:{"},
                                   {other, "hf:{theirs}"}, {spent, "hf:queue:{held}:hf:{held}"}};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        hft_send_message(f->server, "R %s %s", said[i][0], said[i][1]);
        hft_send_message(f->server, "G %s 1 2", said[i][0]);
        hft_send_message(f->server, "G %s 1 2 hf:{theirs}", said[i][0]);
    }
    /* What was heard has been answered when a later one is. */
    execute_late(f, "hf:{last}", spent);
    assert_in_range((uintmax_t)wait_ms(f, f->b, "last"), 0, WORST_MS);
    assert_true(hf_lease_is_valid(lease) && hf_lease_is_valid(theirs));
    assert_int_equal(hf_lease_verify(lease, &f->error), HF_OK);
    assert_int_equal(hf_lease_verify(theirs, &f->error), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(theirs, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 1);
    free(spent);
    free(token);
    free(other);
}

/* With a waiter's own token and echo, and a fence that could be: it asks, and waits on. */
static void a_made_up_grant_of_another_key_turns_nobody_away(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_lease *lease = must_take(f, f->a, "x", HF_LOCK(.lease_ms = LONG_MS));
    hft_take(&taker, f->b, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "x") == 1);
    int64_t fence = hft_server_ask_integer(f->server, "INCRBY hf:fence 2048"), asked = hft_server_calls(f->server, "evalsha");
    redisReply *record = hft_server_ask(f->server, "HGETALL hf:wait:{x}:hf:{x}");
    char echo[40];
    assert_int_equal(sscanf(record->element[1]->str, "%*s %39s", echo), 1);
    hft_send_message(f->server, "G %s %s %lld hf:{y}", record->element[0]->str, echo, (long long)fence);
    HFT_UNTIL_TRUE(hft_server_calls(f->server, "evalsha") > asked);
    assert_int_equal(hft_queued(f->server, "x"), 1);
    freeReplyObject(record);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
}

/* The B is lost: only the waiter's revoke names the token that the break has left. */
static void a_break_that_was_not_heard_ends_the_holder_before_the_next_begins(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_lease *lease = must_take(f, f->a, "x", HF_LOCK(.lease_ms = 30000));
    char *token = value_of(f, "hf:{x}");
    hft_revoke(token);
    int64_t broken_ms = hft_boottime_ms(); /* a renewal may find it out before anybody waits */
    execute_late(f, "hf:{x}", token);
    hft_take(&taker, f->b, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(atomic_load(&taker.done) || !hf_lease_is_valid(lease));
    assert_false(hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_reason(lease), HF_REASON_REVOKED);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_in_range((uintmax_t)(taker.got_ms - broken_ms), 250, 250 + 2 * WORST_MS); /* guard_ms to stop */
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    free(token);
}

/* Without MULTI its SET is executed by itself, and the client may not release it either. */
static void an_orphan_of_a_user_without_multi_is_reported_by_close(void **state)
{
    struct fixture *f = *state;
    hf_client *client = NULL;
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER part on >pw ~* &* +@all -multi -del"));
    assert_int_equal(hf_client_open(hft_server_url(f->server), HF_CLIENT(.user = "part", .password = "pw"), &client,
                                    &f->error),
                     HF_OK);
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(client, "x", NULL, &lease, NULL), HF_DENIED);
    assert_int_equal(hf_client_close(client, NULL), HF_UNKNOWN);
    assert_int_equal(hft_lock_exists(f->server, "x"), 1);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_orphan_of_a_live_process_blocks_a_newcomer_for_a_moment_only),
        TEST(an_orphan_that_comes_while_they_wait_is_seen_at_the_re_check),
        TEST(a_release_that_the_server_has_lost_is_repeated),
        TEST(a_grant_that_comes_after_the_answer_to_its_release_is_given_back),
        TEST(a_killed_waiter_at_the_head_does_not_keep_it),
        TEST(its_own_process_is_not_blocked_by_it_either),
        TEST(a_try_uncovers_it_for_the_next),
        TEST(names_of_any_form_and_fetches_are_healed),
        TEST(made_up_messages_take_nothing_from_anybody),
        TEST(a_made_up_grant_of_another_key_turns_nobody_away),
        TEST(a_break_that_was_not_heard_ends_the_holder_before_the_next_begins),
        TEST(an_orphan_of_a_user_without_multi_is_reported_by_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
