/* SPDX-License-Identifier: MIT */
/* lock_test.c - hf_lock_acquire and release: order, times and fences of grants, and the keys in Redis. */
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <holdfast/redis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_free_lock_is_got_and_given_back(void **state)
{
    struct fixture *f = *state;
    char value[200];
    hf_lease *lease = must_take(f, f->a, "plain", NULL);
    assert_true(hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_state(lease), HF_LEASE_HELD);
    assert_int_equal(hf_lease_reason(lease), HF_REASON_NONE);
    assert_string_equal(hf_lease_name(lease), "plain");
    assert_in_range(hf_lease_remaining_ms(lease), 8000, 10000);
    hft_held_by(f->server, "plain", value, sizeof value);
    assert_memory_equal(value, "hf1:", 4);
    char pid[24];
    (void)snprintf(pid, sizeof pid, ":%ld", (long)getpid());
    assert_string_equal(value + strlen(value) - strlen(pid), pid);
    assert_in_range(hft_server_ask_integer(f->server, "PTTL hf:{plain}"), 10000 - 2000, 10000 + 210 + 3 + 250);
    assert_int_equal(hf_lease_verify(lease, &f->error), HF_OK);
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
    assert_int_equal(hft_server_ask_integer(f->server, "PTTL hf:fence"), -1);
}

static void a_held_lock_is_busy_for_a_try_and_times_out_for_a_wait(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "held", NULL), *other = (hf_lease *)f;
    hf_client *clients[] = {f->a, f->b};
    for (int i = 0; i < 2; i++) {
        struct hft_taker taker; /* another thread: this one would be DEADLOCK in its own client */
        hft_take(&taker, clients[i], "held", HF_LOCK(.wait_ms = 0));
        assert_int_equal(hft_taken(&taker), HF_BUSY);
        assert_null(taker.lease);
        assert_non_null(strstr(taker.error.message, "held"));
        hft_take(&taker, clients[i], "held", HF_LOCK(.wait_ms = 60));
        assert_int_equal(hft_taken(&taker), HF_TIMEOUT);
        assert_true(taker.got_ms - taker.began_ms >= 60);
        assert_int_equal(taker.error.status, HF_TIMEOUT);
    }
    assert_int_equal(hf_lock_acquire(f->b, "held", NULL, &other, NULL), HF_BUSY);
    assert_null(other);
    HFT_UNTIL_TRUE(hft_queued(f->server, "held") == 0); /* nothing is left of those who went */
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void a_local_waiter_gets_it_at_release_without_a_round_trip(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "local", NULL);
    int64_t fence = hf_lease_fence(lease);
    struct hft_taker taker;
    hft_take(&taker, f->a, "local", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "local") == 1);
    int64_t before = hft_server_calls(f->server, "set");
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_true(hf_lease_fence(taker.lease) > fence);
    assert_true(hft_server_calls(f->server, "set") <= before + 1);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

enum { THREADS = 8, ROUNDS = 60 };

struct contest {
    hf_client *clients[2];
    pthread_mutex_t mutex;
    int64_t fences[2 * THREADS * ROUNDS];
    int count, inside, wrong;
};

struct contestant {
    pthread_t thread;
    struct contest *contest;
    int number, kept; /* leases that it could not give back */
};

static bool answers(hf_client *client)
{
    redisReply *reply;
    if (hf_command(client, &reply, NULL, "PING") != HF_OK)
        return false;
    freeReplyObject(reply);
    return true;
}

static void *compete(void *arg)
{
    struct contestant *me = arg;
    struct contest *c = me->contest;
    for (int i = 0; i < ROUNDS; i++) {
        hf_lease *lease;
        hf_status status = hf_lock_acquire(c->clients[me->number % 2], "contest", HF_LOCK(.wait_ms = 30000), &lease, NULL);
        (void)pthread_mutex_lock(&c->mutex);
        c->wrong += status != HF_OK || c->inside++ != 0;
        if (status == HF_OK)
            c->fences[c->count++] = hf_lease_fence(lease);
        (void)pthread_mutex_unlock(&c->mutex);
        bool answered = i % 8 != 0 || answers(c->clients[me->number % 2]); /* a section that takes a while */
        (void)pthread_mutex_lock(&c->mutex);
        c->wrong += !answered;
        c->inside--;
        (void)pthread_mutex_unlock(&c->mutex);
        if (status == HF_OK && hf_lease_release(lease, NULL) != HF_OK)
            me->kept++;
    }
    return NULL;
}

static void fences_have_19_digits_and_rise_over_all_threads_and_clients(void **state)
{
    struct fixture *f = *state;
    struct contest *contest = calloc(1, sizeof *contest);
    struct contestant all[THREADS];
    contest->clients[0] = f->a;
    contest->clients[1] = f->b;
    (void)pthread_mutex_init(&contest->mutex, NULL);
    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct contestant){.contest = contest, .number = i};
        (void)pthread_create(&all[i].thread, NULL, compete, &all[i]);
    }
    int kept = 0;
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(all[i].thread, NULL);
        kept += all[i].kept;
    }
    assert_int_equal(kept, 0);
    assert_int_equal(contest->wrong, 0);
    assert_int_equal(contest->count, THREADS * ROUNDS);
    for (int i = 0; i < contest->count; i++) {
        assert_true(contest->fences[i] >= INT64_C(1000000000000000000));
        assert_true(i == 0 || contest->fences[i] > contest->fences[i - 1]);
    }
    assert_int_equal(hft_lock_keys(f->server), 0);
    free(contest);
}

static void a_foreign_value_set_in_between_is_not_deleted(void **state)
{
    struct fixture *f = *state;
    char value[200];
    hf_lease *lease = must_take(f, f->a, "stolen", NULL);
    freeReplyObject(hft_server_ask(f->server, "SET hf:{stolen} somebody-else"));
    assert_int_equal(hf_lease_release(lease, &f->error), HF_LOST);
    assert_int_equal(f->error.status, HF_LOST);
    assert_true(f->error.message[0] != 0);
    hft_held_by(f->server, "stolen", value, sizeof value);
    assert_string_equal(value, "somebody-else");
}

static void a_release_after_the_lease_ended_is_lost(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "late", HF_LOCK(.lease_ms = 200));
    hft_server_freeze(f->server);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    hft_server_thaw(f->server);
    assert_int_equal(hf_lease_release(lease, &f->error), HF_LOST);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
}

static void clients_hand_off_in_the_order_they_came(void **state)
{
    enum { OTHERS = 4 };
    struct fixture *f = *state;
    hf_client *others[OTHERS];
    struct hft_taker takers[OTHERS];
    hf_lease *lease = must_take(f, f->a, "fifo", NULL);
    int64_t fence = hf_lease_fence(lease);
    for (int i = 0; i < OTHERS; i++) {
        others[i] = hft_client(f->server, NULL);
        hft_take(&takers[i], others[i], "fifo", HF_LOCK(.wait_ms = 20000));
        HFT_UNTIL_TRUE(hft_queued(f->server, "fifo") == i + 1);
    }
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    for (int i = 0; i < OTHERS; i++) {
        HFT_UNTIL_TRUE(atomic_load(&takers[i].done));
        for (int j = i + 1; j < OTHERS; j++)
            assert_false(atomic_load(&takers[j].done));
        assert_int_equal(hft_taken(&takers[i]), HF_OK);
        assert_true(hf_lease_fence(takers[i].lease) > fence);
        fence = hf_lease_fence(takers[i].lease);
        assert_int_equal(hf_lease_release(takers[i].lease, NULL), HF_OK);
    }
    for (int i = 0; i < OTHERS; i++)
        assert_int_equal(hf_client_close(others[i], NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

/* They asked a moment ago, and nobody hears their channels any more. */
static void killed_waiters_at_the_head_cost_nothing(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_lease *lease = must_take(f, f->a, "x", HF_LOCK(.lease_ms = 30000));
    hft_take(&taker, f->b, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "x") == 1);
    for (int i = 0; i < 63; i++) {
        char token[100];
        (void)snprintf(token, sizeof token, "hf1:%032x:1:0123456789abcdef:gone:1", i);
        assert_int_equal(hft_server_ask_integer(f->server, "ZADD hf:queue:{x}:hf:{x} %d %s", i + 1, token), 1);
        freeReplyObject(hft_server_ask(f->server, "HSET hf:wait:{x}:hf:{x} %s %s", token,
                                       "9000000000000000 1 1271"));
    }
    int64_t released = hft_boottime_ms();
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_in_range((uintmax_t)(taker.got_ms - released), 0, 440); /* a claim for each or for one of them is 1271 */
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
}

static void a_hand_off_is_renewed_to_its_full_length(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_lease *lease = must_take(f, f->a, "claim", NULL);
    hft_take(&taker, f->b, "claim", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "claim") == 1);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    HFT_UNTIL_TRUE(hf_lease_remaining_ms(taker.lease) > 5000);
    assert_true(hf_lease_is_valid(taker.lease));
    hf_stats stats;
    hf_client_stats(f->b, &stats);
    assert_int_equal(stats.lost, 0);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
}

static void a_waiter_is_served_while_pubsub_connections_are_killed_all_the_time(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_lease *lease = must_take(f, f->a, "deaf", NULL);
    hft_take(&taker, f->b, "deaf", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "deaf") == 1);
    int64_t released_ms = hft_boottime_ms();
    freeReplyObject(hft_server_ask(f->server, "CLIENT KILL TYPE pubsub"));
    assert_int_equal(hf_lease_post_release(lease, NULL), HF_OK);
    while (!atomic_load(&taker.done)) {
        freeReplyObject(hft_server_ask(f->server, "CLIENT KILL TYPE pubsub"));
        assert_true(hft_boottime_ms() - released_ms < 20000);
    }
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
}

static void without_any_message_a_waiter_is_served_by_its_timed_recheck(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_stats stats;
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER deaf on >pw ~* &* +@all -subscribe"));
    hf_client *deaf = hft_client(f->server, HF_CLIENT(.user = "deaf", .password = "pw"));
    hf_lease *lease = must_take(f, f->a, "deaf", NULL);
    hft_take(&taker, deaf, "deaf", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "deaf") == 1);
    int64_t released_ms = hft_boottime_ms();
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    print_message("served %lld ms after the release\n", (long long)(taker.got_ms - released_ms));
    assert_true(taker.got_ms - released_ms < 5000); /* 1.1 R + a round trip, and a machine that does other things */
    hf_client_stats(deaf, &stats);
    assert_int_equal(stats.hand_offs_taken, 0);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(deaf, NULL), HF_OK);
}

static void a_foreign_string_is_waited_for_and_its_end_wakes_us(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    freeReplyObject(hft_server_ask(f->server, "SET hf:{theirs} their-token PX 60000"));
    assert_int_equal(hf_lock_acquire(f->a, "theirs", NULL, &taker.lease, NULL), HF_BUSY);
    hft_take(&taker, f->a, "theirs", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "theirs") == 1);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "PUBLISH __keyspace@0__:hf:{theirs} nothing") > 0);
    int64_t rechecks = hft_server_calls(f->server, "evalsha"), deleted_ms = hft_boottime_ms();
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{theirs}"));
    assert_int_equal(hft_taken(&taker), HF_OK);
    print_message("woken %lld ms after DEL, by %lld scripts\n", (long long)(taker.got_ms - deleted_ms),
                  (long long)(hft_server_calls(f->server, "evalsha") - rechecks));
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void without_keyspace_events_a_foreign_release_is_seen_too(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_client *deaf = hft_client(f->server, HF_CLIENT(.keyspace_events = "off"));
    freeReplyObject(hft_server_ask(f->server, "SET hf:{theirs2} their-token"));
    hft_take(&taker, deaf, "theirs2", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "theirs2") == 1);
    assert_int_equal(hft_server_ask_integer(f->server, "PUBLISH __keyspace@0__:hf:{theirs2} nothing"), 0);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{theirs2}"));
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(deaf, NULL), HF_OK);
}

static void a_key_of_another_type_is_foreign_and_left_alone(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease;
    freeReplyObject(hft_server_ask(f->server, "RPUSH hf:{list} a b"));
    assert_int_equal(hf_lock_acquire(f->a, "list", HF_LOCK(.wait_ms = 5000), &lease, &f->error), HF_FOREIGN);
    assert_non_null(strstr(f->error.message, "list"));
    assert_true(f->error.hint[0] != 0);
    for (int i = 0; i < 3; i++) /* SET NX does not look at the type; the script does, once a second */
        assert_int_equal(hf_lock_acquire(f->a, "list", NULL, &lease, &f->error), HF_FOREIGN);
    assert_int_equal(hft_server_ask_integer(f->server, "LLEN hf:{list}"), 2);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 1);
}

/* A waiter's error names the key; a holder releases, and nothing is left. */
static void a_side_key_of_another_type_is_named_and_keeps_nothing_held(void **state)
{
    struct fixture *f = *state;
    static const char *const keys[] = {"hf:queue:{x}:hf:{x}", "hf:wait:{x}:hf:{x}"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        hf_lease *lease = must_take(f, f->a, "x", HF_LOCK(.lease_ms = 1500)), *other;
        freeReplyObject(hft_server_ask(f->server, "RPUSH %s theirs", keys[i]));
        assert_int_equal(hf_lock_acquire(f->b, "x", HF_LOCK(.wait_ms = 20000), &other, &f->error), HF_FOREIGN);
        if (strstr(f->error.message, keys[i]) == NULL || f->error.hint[0] == 0)
            fail_msg("%s is not named: %s", keys[i], f->error.message);
        assert_int_equal(hf_lock_acquire(f->b, "x", NULL, &other, NULL), HF_BUSY); /* a try need not wait */
        HFT_WHILE_RENEWED(f->a, 1, hf_lease_is_valid(lease));
        assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
        assert_int_equal(hft_lock_keys(f->server), 1);
        lease = must_take(f, f->b, "x", HF_LOCK(.wait_ms = 20000));
        assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
        assert_int_equal(hft_server_ask_integer(f->server, "DEL %s", keys[i]), 1);
    }
}

static void a_fence_counter_of_another_type_is_named_and_nothing_is_granted(void **state)
{
    struct fixture *f = *state;
    hf_lease *held = must_take(f, f->a, "held", NULL), *lease;
    /* In one: a lane that is dialled meanwhile would make the counter anew. */
    static const char spoil[] = "redis.call('DEL', KEYS[1]) return redis.call('RPUSH', KEYS[1], 'theirs')";
    assert_int_equal(hft_server_ask_integer(f->server, "EVAL %s 1 hf:fence", spoil), 1);
    for (int64_t wait_ms = 0; wait_ms <= 20000; wait_ms += 20000) {
        assert_int_equal(hf_lock_acquire(f->b, "x", HF_LOCK(.wait_ms = wait_ms), &lease, &f->error), HF_FOREIGN);
        if (strstr(f->error.message, "hf:fence") == NULL)
            fail_msg("hf:fence is not named: %s", f->error.message);
        HFT_UNTIL_TRUE(hft_lock_exists(f->server, "x") == 0);
    }
    assert_int_equal(hf_lease_release(held, &f->error), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void names_may_have_any_bytes_but_nul_and_need_no_terminator(void **state)
{
    struct fixture *f = *state;
    char longest[HF_NAME_MAX];
    memset(longest, 'n', sizeof longest);
    hf_lease *lease = must_take(f, f->a, longest, HF_LOCK(.name_size = sizeof longest));
    assert_int_equal(strlen(hf_lease_name(lease)), HF_NAME_MAX);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    lease = must_take(f, f->a, "abcdef", HF_LOCK(.name_size = 3));
    assert_int_equal(hft_lock_exists(f->server, "abc"), 1);
    assert_string_equal(hf_lease_name(lease), "abc");
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    static const char *const odd[] = {"{tag}rest", "a}b", "a{b", "{}", "\x01\xff \r\n", "%s*?[", "fence", "fetch:x", "c:0"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        hf_lease *second;
        lease = must_take(f, f->a, odd[i], NULL);
        assert_int_equal(hf_lock_acquire(f->b, odd[i], NULL, &second, NULL), HF_BUSY);
        assert_int_equal(hf_lease_verify(lease, NULL), HF_OK);
        assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    }
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void a_key_template_says_where_locks_are(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease;
    hf_client *client = hft_client(f->server, HF_CLIENT(.key_template = "app:%s:lock"));
    lease = must_take(f, client, "job", NULL);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS app:job:lock"), 1);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
    assert_int_equal(hf_client_open(hft_server_url(f->server), HF_CLIENT(.key_template = "lock"), &client, &f->error),
                     HF_INVALID);
    assert_non_null(strstr(f->error.message, "key_template"));
    client = hft_client(f->server, HF_CLIENT(.key_template = "hf:%s"));
    assert_int_equal(hf_lock_acquire(client, "fence", NULL, &lease, &f->error), HF_INVALID);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_thread_that_holds_it_gets_deadlock_or_reenters(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "again", HF_LOCK(.reentrant = true)), *second;
    assert_int_equal(hf_lock_acquire(f->a, "again", HF_LOCK(.wait_ms = HF_FOREVER), &second, &f->error), HF_DEADLOCK);
    assert_null(second);
    second = must_take(f, f->a, "again", HF_LOCK(.reentrant = true));
    assert_true(hf_lease_fence(second) == hf_lease_fence(lease));
    assert_int_equal(hf_lease_release(second, NULL), HF_OK);
    assert_true(hf_lease_is_valid(lease));
    assert_int_equal(hft_lock_exists(f->server, "again"), 1);
    struct hft_taker taker;
    hft_take(&taker, f->a, "again", HF_LOCK(.reentrant = true));
    assert_int_equal(hft_taken(&taker), HF_BUSY);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
    lease = must_take(f, f->a, "again", NULL);
    assert_int_equal(hf_lock_acquire(f->a, "again", HF_LOCK(.reentrant = true), &second, NULL), HF_DEADLOCK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void it_is_reentered_65535_times_at_most(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "deep", HF_LOCK(.reentrant = true)), *again;
    int failed = 0;
    for (int i = 0; i < UINT16_MAX; i++)
        failed += hf_lock_acquire(f->a, "deep", HF_LOCK(.reentrant = true), &again, NULL) != HF_OK || again != lease;
    assert_int_equal(failed, 0);
    assert_int_equal(hf_lock_acquire(f->a, "deep", HF_LOCK(.reentrant = true), &again, &f->error), HF_INVALID);
    assert_non_null(strstr(f->error.message, "65,536"));
    for (int i = 0; i < UINT16_MAX; i++)
        failed += hf_lease_release(lease, NULL) != HF_OK || !hf_lease_is_valid(lease);
    assert_int_equal(failed, 0);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void a_lingering_lease_is_taken_again_in_memory_and_given_up_when_asked_for(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "linger", HF_LOCK(.linger_ms = 60000));
    int64_t fence = hf_lease_fence(lease);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_lock_exists(f->server, "linger"), 1);
    hft_until_connected(f);
    int64_t scripts = hft_server_calls(f->server, "evalsha"), sets = hft_server_calls(f->server, "set");
    lease = must_take(f, f->a, "linger", HF_LOCK(.linger_ms = 60000));
    assert_true(hf_lease_fence(lease) > fence);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_true(hft_server_calls(f->server, "evalsha") <= scripts + 1); /* the fence counter's once-a-second call */
    assert_true(hft_server_calls(f->server, "set") <= sets + 1);
    int64_t began_ms = hft_boottime_ms();
    lease = must_take(f, f->b, "linger", HF_LOCK(.wait_ms = 20000));
    print_message("given up %lld ms after it was asked for\n", (long long)(hft_boottime_ms() - began_ms));
    assert_true(hft_boottime_ms() - began_ms < 5000);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void a_lingering_lease_ends_by_itself(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "short", HF_LOCK(.linger_ms = 50));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
}

static void a_lease_lives_far_longer_than_its_length(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "long", HF_LOCK(.lease_ms = 1000)), *other;
    HFT_WHILE_RENEWED(f->a, 9, hf_lease_is_valid(lease) &&
                                   hf_lock_acquire(f->b, "long", NULL, &other, NULL) == HF_BUSY);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void max_hold_ends_the_lease_and_the_next_gets_it(void **state)
{
    struct fixture *f = *state;
    int64_t began_ms = hft_boottime_ms();
    hf_lease *lease = must_take(f, f->a, "hold", HF_LOCK(.lease_ms = 60000, .max_hold_ms = 600));
    assert_in_range(hft_server_ask_integer(f->server, "PTTL hf:{hold}"), 0, 2000); /* a second, or the road and 600 ms */
    hf_lease *next = must_take(f, f->b, "hold", HF_LOCK(.wait_ms = HF_FOREVER));
    assert_in_range(hft_boottime_ms() - began_ms, 600, 20000); /* not when the lease would have ended */
    assert_false(hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_state(lease), HF_LEASE_LOST);
    assert_int_equal(hf_lease_reason(lease), HF_REASON_MAX_HOLD);
    assert_int_equal(hf_lease_release(lease, &f->error), HF_LOST);
    assert_int_equal(hf_lease_release(next, NULL), HF_OK);
}

static void a_posted_release_frees_the_lock_too(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 50; i++) {
        hf_lease *lease = must_take(f, f->a, "posted", HF_LOCK(.wait_ms = 5000));
        assert_int_equal(hf_lease_post_release(lease, &f->error), HF_OK);
    }
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    assert_int_equal(hf_lease_release(NULL, NULL), HF_OK);
    assert_int_equal(hf_lease_post_release(NULL, NULL), HF_OK);
}

static int hold_until_killed(int from, int to, void *arg)
{
    struct hft_server *server = arg;
    hf_client *client = hft_client(server, NULL);
    hf_lease *lease;
    char word;
    if (hf_lock_acquire(client, "killed", HF_LOCK(.lease_ms = 500), &lease, NULL) != HF_OK || write(to, "h", 1) != 1)
        return 1;
    while (read(from, &word, 1) > 0)
        ;
    return 0;
}

static void a_killed_holder_costs_no_more_than_its_lease_and_guard(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct hft_process process;
    (void)state;
    f->server = hft_server_start(NULL);
    hft_process_start(&process, hold_until_killed, f->server);
    f->a = hft_client(f->server, NULL);
    assert_int_equal(hft_process_read(&process), 'h');
    struct hft_taker taker;
    hft_take(&taker, f->a, "killed", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "killed") == 1);
    hft_process_kill(&process);
    int64_t killed_ms = hft_boottime_ms();
    assert_int_equal(hft_taken(&taker), HF_OK);
    print_message("the next has it %lld ms after the kill\n", (long long)(taker.got_ms - killed_ms));
    assert_true(taker.got_ms - killed_ms < 500 + 11 + 3 + 250 + 1000);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(f->a, NULL), HF_OK);
    hft_server_stop(f->server);
    free(f);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_free_lock_is_got_and_given_back),
        TEST(a_held_lock_is_busy_for_a_try_and_times_out_for_a_wait),
        TEST(a_local_waiter_gets_it_at_release_without_a_round_trip),
        TEST(fences_have_19_digits_and_rise_over_all_threads_and_clients),
        TEST(a_foreign_value_set_in_between_is_not_deleted),
        TEST(a_release_after_the_lease_ended_is_lost),
        TEST(clients_hand_off_in_the_order_they_came),
        TEST(killed_waiters_at_the_head_cost_nothing),
        TEST(a_hand_off_is_renewed_to_its_full_length),
        TEST(a_waiter_is_served_while_pubsub_connections_are_killed_all_the_time),
        TEST(without_any_message_a_waiter_is_served_by_its_timed_recheck),
        TEST(a_foreign_string_is_waited_for_and_its_end_wakes_us),
        TEST(without_keyspace_events_a_foreign_release_is_seen_too),
        TEST(a_key_of_another_type_is_foreign_and_left_alone),
        TEST(a_side_key_of_another_type_is_named_and_keeps_nothing_held),
        TEST(a_fence_counter_of_another_type_is_named_and_nothing_is_granted),
        TEST(names_may_have_any_bytes_but_nul_and_need_no_terminator),
        TEST(a_key_template_says_where_locks_are),
        TEST(a_thread_that_holds_it_gets_deadlock_or_reenters),
        TEST(it_is_reentered_65535_times_at_most),
        TEST(a_lingering_lease_is_taken_again_in_memory_and_given_up_when_asked_for),
        TEST(a_lingering_lease_ends_by_itself),
        TEST(a_lease_lives_far_longer_than_its_length),
        TEST(max_hold_ends_the_lease_and_the_next_gets_it),
        TEST(a_posted_release_frees_the_lock_too),
        cmocka_unit_test(a_killed_holder_costs_no_more_than_its_lease_and_guard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
