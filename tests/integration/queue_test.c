/* SPDX-License-Identifier: MIT */
/* queue_test.c - the remote queue: its living and dead waiters, and whether a busy holder learns that it is not
 * empty. */
#include "core/protocol/scripts.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DEAD "hf1:000000000000000000000000000000aa:1:0123456789abcdef:gone:1"

static void tell(struct fixture *f, const char *words)
{
    redisReply *reply = hft_server_ask(f->server, words);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", words, reply->str);
    freeReplyObject(reply);
}

/* A waiter whose process was killed: its acquire is recent, it is first in the queue, and its channel has no
 * subscriber. */
static void stand_killed(struct fixture *f)
{
    tell(f, "ZADD hf:queue:{x}:hf:{x} 1 " DEAD);
    freeReplyObject(hft_server_ask(f->server, "HSET hf:wait:{x}:hf:{x} " DEAD " %s", "9000000000000000 1 60000"));
}

static bool has_killed(struct fixture *f)
{
    char held[200];
    hft_held_by(f->server, "x", held, sizeof held);
    return strcmp(held, DEAD) == 0;
}

static hf_client *client_without(struct fixture *f, const char *right)
{
    char words[120];
    (void)snprintf(words, sizeof words, "ACL SETUSER less on >pw ~* &* +@all %s", right);
    tell(f, words);
    return hft_client(f->server, HF_CLIENT(.user = "less", .password = "pw"));
}

/* ---- the dead ---- */

/* `holder` gives it back, with a killed waiter in front of a live one. */
static void the_live_one_has_it(struct fixture *f, hf_client *holder)
{
    struct hft_taker taker;
    hft_until_it_listens(f, f->b); /* while nobody is heard, only the order counts */
    hf_lease *lease = must_take(f, holder, "x", HF_LOCK(.lease_ms = 30000));
    hft_take(&taker, f->b, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "x") == 1);
    stand_killed(f);
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    assert_int_equal(hft_lock_exists(f->server, "x"), 1);
    assert_false(has_killed(f));
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
}

static void a_pattern_subscriber_does_not_make_a_dead_waiter_alive(void **state)
{
    struct fixture *f = *state;
    redisContext *monitor = redisConnectUnix(hft_server_socket(f->server));
    freeReplyObject(redisCommand(monitor, "PSUBSCRIBE *"));
    the_live_one_has_it(f, f->a);
    redisFree(monitor);
}

static void where_listeners_may_not_be_counted_a_message_counts_them(void **state)
{
    struct fixture *f = *state;
    hf_client *less = client_without(f, "-pubsub");
    the_live_one_has_it(f, less);
    assert_int_equal(hf_client_close(less, NULL), HF_OK);
}

/* A crash loop behind a long holder leaves many waiters. `gone`: a key that is deleted in the same transaction. */
static void stand_old(struct fixture *f, int count, const char *gone)
{
    freeReplyObject(hft_server_ask(f->server,
                                   "EVAL %s 3 hf:queue:{x}:hf:{x} hf:wait:{x}:hf:{x} %s %d",
                                   "redis.call('DEL', KEYS[3])\n"
                                   "for i = 1, ARGV[1] do\n"
                                   "redis.call('ZADD', KEYS[1], i, 'hf1:' .. string.format('%032x', i) .. ':1:7:gone:1')\n"
                                   "redis.call('HSET', KEYS[2], 'hf1:' .. string.format('%032x', i) .. ':1:7:gone:1',\n"
                                   "'1000 1 1274')\n"
                                   "end\n",
                                   gone, count));
}

static void it_passes_all_of_the_old(struct fixture *f, int count)
{
    struct hft_taker first, second, newcomer;
    hf_client *c = hft_client(f->server, NULL);
    hf_lease *lease = must_take(f, f->a, "x", HF_LOCK(.lease_ms = 30000));
    hft_take(&first, f->b, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "x") == 1);
    hft_take(&second, c, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "x") == 2);
    stand_old(f, count, "none");
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    assert_int_equal(hft_lock_exists(f->server, "x"), 1); /* nobody can come in between */
    hft_take(&newcomer, f->a, "x", HF_LOCK(.wait_ms = 20000));
    assert_int_equal(hft_taken(&first), HF_OK);
    int64_t fence = hf_lease_fence(first.lease);
    assert_int_equal(hf_lease_release(first.lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&second), HF_OK);
    assert_true(hf_lease_fence(second.lease) > fence);
    fence = hf_lease_fence(second.lease);
    assert_int_equal(hf_lease_release(second.lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&newcomer), HF_OK);
    assert_true(hf_lease_fence(newcomer.lease) > fence);
    assert_int_equal(hf_lease_release(newcomer.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(c, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void two_hundred_old_records_in_front_do_not_cost_the_order(void **state)
{
    it_passes_all_of_the_old(*state, 200);
}

static void nor_do_twenty_thousand(void **state)
{
    it_passes_all_of_the_old(*state, 20000);
}

/* Nobody holds it, and there are more old records than a script drops. */
static void a_waiter_comes_to_the_end_of_them_without_a_pause(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    tell(f, "SET hf:{x} " DEAD " PX 60000");
    hft_take(&taker, f->b, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "x") == 1);
    int64_t before = hft_server_calls(f->server, "evalsha");
    stand_old(f, 20000, "hf:{x}");
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_in_range((uintmax_t)(hft_server_calls(f->server, "evalsha") - before), 20, 26);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
}

/* ---- who is told first ---- */

static redisContext *monitor_of(struct fixture *f)
{
    redisContext *monitor = redisConnectUnix(hft_server_socket(f->server));
    assert_true(monitor != NULL && redisSetTimeout(monitor, (struct timeval){20, 0}) == REDIS_OK);
    freeReplyObject(redisCommand(monitor, "MONITOR"));
    return monitor;
}

/* Reads on to the next release, and ends. Whether the server was sent a PING just before it must be as `expected`. */
static void must_be_behind_a_ping(redisContext *monitor, const struct hfi_script *release, bool expected)
{
    char before[400] = "";
    for (bool is_release = false; !is_release;) {
        void *reply;
        if (redisGetReply(monitor, &reply) != REDIS_OK)
            fail_msg("MONITOR: %s", monitor->errstr);
        const char *line = ((redisReply *)reply)->str;
        is_release = strstr(line, "\"EVALSHA\"") != NULL && strstr(line, release->sha1) != NULL; /* a handshake names scripts too */
        if (is_release && (strstr(before, "\"PING\"") != NULL) != expected)
            fail_msg("%s, behind %s", line, before);
        (void)snprintf(before, sizeof before, "%s", line);
        freeReplyObject(reply);
    }
    redisFree(monitor);
}

static void take_one(struct hft_taker *taker, hf_client *client, int permits)
{
    const hf_lock_options *options = HF_LOCK(.linger_ms = 20000, .wait_ms = 20000);
    if (permits > 0)
        hft_take_permits(taker, client, "x", 1, permits, options);
    else
        hft_take(taker, client, "x", options);
    assert_int_equal(hft_taken(taker), HF_OK);
}

/* It lingers, so it is given back because of the waiter. */
static void who_waits_is_told_before_the_holder_is_answered(void **state)
{
    struct fixture *f = *state;
    for (int permits = 0; permits < 2; permits++) {
        struct hft_taker holder, waiter;
        const struct hfi_script *release = permits > 0 ? hfi_script_release_permits : hfi_script_release;
        redisContext *monitor = monitor_of(f);
        take_one(&holder, f->a, permits);
        assert_int_equal(hf_lease_release(holder.lease, NULL), HF_OK);
        take_one(&waiter, f->b, permits);
        must_be_behind_a_ping(monitor, release, true);
        monitor = monitor_of(f);
        assert_int_equal(hf_lease_post_release(waiter.lease, NULL), HF_OK);
        assert_int_equal(hf_client_close(f->b, NULL), HF_OK);
        must_be_behind_a_ping(monitor, release, false); /* nobody waits: it would cost for nothing */
        f->b = hft_client(f->server, NULL);
    }
}

static void who_leaves_the_queue_tells_nobody(void **state)
{
    struct fixture *f = *state;
    struct hft_taker waiter;
    hf_lease *lease = must_take(f, f->a, "x", NULL);
    redisContext *monitor = monitor_of(f);
    hft_take(&waiter, f->b, "x", HF_LOCK(.wait_ms = 200));
    assert_int_equal(hft_taken(&waiter), HF_TIMEOUT);
    must_be_behind_a_ping(monitor, hfi_script_release, false);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

/* ---- a busy holder ---- */

enum { THREADS = 6 };

struct crowd { /* threads of one client that hold a lock all the time, one after the other */
    hf_client *client;
    hf_lock_options options;
    _Atomic(bool) over;
    _Atomic(int) sections, wrong;
    pthread_t threads[THREADS];
};

static size_t listeners(struct fixture *f)
{
    redisReply *reply = hft_server_ask(f->server, "PUBSUB CHANNELS hf:c:*");
    size_t count = reply->elements;
    freeReplyObject(reply);
    return count;
}

static void *keep_busy(void *arg)
{
    struct crowd *crowd = arg;
    while (!atomic_load(&crowd->over)) {
        hf_lease *lease;
        if (hf_lock_acquire(crowd->client, "x", &crowd->options, &lease, NULL) != HF_OK) {
            atomic_fetch_add(&crowd->wrong, 1);
            return NULL;
        }
        atomic_fetch_add(&crowd->sections, 1);
        int64_t until_ms = hft_boottime_ms() + 20000;
        do /* a section takes a millisecond at least: `begin` counts some hundred till all is settled */
            hft_pause(until_ms, "others in line");
        while (hft_waiting_here(crowd->client, "x") == 0 && !atomic_load(&crowd->over));
        if (hf_lease_release(lease, NULL) != HF_OK)
            atomic_fetch_add(&crowd->wrong, 1);
    }
    return NULL;
}

static void begin(struct crowd *crowd, hf_client *client, int64_t lease_ms)
{
    memset(crowd, 0, sizeof *crowd);
    crowd->client = client;
    crowd->options = *HF_LOCK(.wait_ms = HF_FOREVER);
    crowd->options.lease_ms = lease_ms;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&crowd->threads[i], NULL, keep_busy, crowd), 0);
    int seen = atomic_load(&crowd->sections);
    HFT_UNTIL_TRUE(atomic_load(&crowd->sections) > seen + 200); /* what was supposed at its start is over */
    HFT_UNTIL_TRUE(hft_waiting_here(client, "x") > 1);
}

static void end(struct fixture *f, struct crowd *crowd)
{
    atomic_store(&crowd->over, true);
    tell(f, "DEL hf:{x}"); /* of the one that stood in the queue */
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(crowd->threads[i], NULL);
    assert_int_equal(atomic_load(&crowd->wrong), 0);
    assert_int_equal(hf_client_close(crowd->client, NULL), HF_OK);
}

/* The waiter in the queue is made by hand: it sends neither R nor a re-check that would repeat it. */
static void a_holder_without_messages_learns_of_a_waiter_by_its_renewals(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;
    begin(&crowd, client_without(f, "-subscribe"), 1500);
    stand_killed(f);
    HFT_UNTIL_TRUE(has_killed(f));
    end(f, &crowd);
}

static void a_new_subscription_makes_a_holder_assume_a_missed_revoke(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;
    hf_client *client = hft_client(f->server, NULL);
    HFT_UNTIL_TRUE(listeners(f) == 3);
    begin(&crowd, client, 240000); /* no renewal before the test is over */
    stand_killed(f);
    for (int seen = atomic_load(&crowd.sections); atomic_load(&crowd.sections) < seen + 10 * THREADS;)
        assert_false(has_killed(f)); /* it knows nothing yet */
    tell(f, "CLIENT KILL TYPE pubsub");
    HFT_UNTIL_TRUE(has_killed(f));
    end(f, &crowd);
}

static void a_renewal_passes_where_the_queue_may_not_be_looked_at(void **state)
{
    struct fixture *f = *state;
    hf_client *less = client_without(f, "-exists");
    hf_lease *lease = must_take(f, less, "x", HF_LOCK(.lease_ms = 1500));
    HFT_WHILE_RENEWED(less, 2, hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(less, NULL), HF_OK);
}

/* ---- what waiting costs ---- */

static void a_client_that_only_waits_leaves_the_fence_counter_alone(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_lease *lease = must_take(f, f->a, "x", HF_LOCK(.lease_ms = 60000));
    hft_take(&taker, f->b, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "x") == 1);
    hft_until_connected(f);
    int64_t floors = hft_server_calls(f->server, "persist"), said = hft_server_calls(f->server, "hset");
    HFT_UNTIL_TRUE(hft_server_calls(f->server, "hset") >= said + 5); /* two seconds */
    assert_int_equal(hft_server_calls(f->server, "persist"), floors);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_pattern_subscriber_does_not_make_a_dead_waiter_alive),
        TEST(where_listeners_may_not_be_counted_a_message_counts_them),
        TEST(two_hundred_old_records_in_front_do_not_cost_the_order),
        TEST(nor_do_twenty_thousand),
        TEST(a_waiter_comes_to_the_end_of_them_without_a_pause),
        TEST(who_waits_is_told_before_the_holder_is_answered),
        TEST(who_leaves_the_queue_tells_nobody),
        TEST(a_holder_without_messages_learns_of_a_waiter_by_its_renewals),
        TEST(a_new_subscription_makes_a_holder_assume_a_missed_revoke),
        TEST(a_renewal_passes_where_the_queue_may_not_be_looked_at),
        TEST(a_client_that_only_waits_leaves_the_fence_counter_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
