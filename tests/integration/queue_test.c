/* SPDX-License-Identifier: MIT */
/* queue_test.c - who stands in the remote queue, dead or alive, and whether a busy holder gets to know that anybody does. */
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

/* It asked a moment ago, stands before all others, and no client hears its channel any more. */
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

/* ---- a busy holder ---- */

enum { THREADS = 6 };

struct crowd { /* threads of one client that have a lock all the time, one after the other */
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
        hft_pause(INT64_MAX, "a section's work"); /* so long that others stand in line */
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

/* Who stands in the queue here says nothing itself: neither R, nor a re-check that would repeat it. */
static void a_holder_without_messages_learns_of_a_waiter_by_its_renewals(void **state)
{
    struct fixture *f = *state;
    struct crowd crowd;
    begin(&crowd, client_without(f, "-subscribe"), 1500);
    stand_killed(f);
    HFT_UNTIL_TRUE(has_killed(f));
    end(f, &crowd);
}

static void what_was_said_while_it_could_not_hear_a_holder_supposes_when_it_can(void **state)
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
        TEST(a_holder_without_messages_learns_of_a_waiter_by_its_renewals),
        TEST(what_was_said_while_it_could_not_hear_a_holder_supposes_when_it_can),
        TEST(a_renewal_passes_where_the_queue_may_not_be_looked_at),
        TEST(a_client_that_only_waits_leaves_the_fence_counter_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
