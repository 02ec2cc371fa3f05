/* SPDX-License-Identifier: MIT */
/* subscriber_test.c - subscriptions are acknowledged, counted, and made again by themselves after every loss. */
#include "tests/support/pool_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct hft_server *server;
static struct hft_pool kit;

static int start(void **state)
{
    hf_error error;
    (void)state;
    server = hft_server_start("save \"\"");
    hft_pool_init(&kit, server);
    kit.settings.subscribers = 2;
    kit.settings.command_ms = 300;
    if (hft_pool_open(&kit, NULL, &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        return -1;
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    hft_pool_close(&kit);
    hft_server_stop(server);
    return 0;
}

static int subscribed(void)
{
    (void)pthread_mutex_lock(&kit.owner.mutex);
    int count = kit.owner.subscribed;
    (void)pthread_mutex_unlock(&kit.owner.mutex);
    return count;
}

static int heard(void)
{
    (void)pthread_mutex_lock(&kit.owner.mutex);
    int count = kit.owner.heard;
    (void)pthread_mutex_unlock(&kit.owner.mutex);
    return count;
}

static bool is_on(const char *channel)
{
    return hft_is_subscribed(kit.pool, channel, strlen(channel));
}

static void on(const char *channel)
{
    assert_true(hfi_pool_subscribe(kit.pool, channel, strlen(channel)));
}

static void off(const char *channel)
{
    hfi_pool_unsubscribe(kit.pool, channel, strlen(channel));
}

static int64_t listeners(const char *channel)
{
    redisReply *reply = hft_server_ask(server, "PUBSUB NUMSUB %s", channel);
    int64_t count = reply->element[1]->integer;
    freeReplyObject(reply);
    return count;
}

static void assert_hears(const char *channel, const char *message)
{
    int before = heard();
    assert_int_equal(hft_server_ask_integer(server, "PUBLISH %s %s", channel, message), 1);
    HFT_UNTIL(heard() == before + 1);
    assert_string_equal(kit.owner.channel, channel);
    assert_string_equal(kit.owner.message, message);
}

static void a_subscription_is_acknowledged_and_hears_messages(void **state)
{
    (void)state;
    int before = subscribed();
    assert_false(is_on("news"));
    on("news");
    HFT_UNTIL(is_on("news"));
    HFT_UNTIL(subscribed() == before + 1);
    assert_hears("news", "first");
    assert_hears("news", "second");
    off("news");
    HFT_UNTIL(listeners("news") == 0);
    assert_false(is_on("news"));
}

static void a_channel_stays_until_the_last_one_leaves_it(void **state)
{
    (void)state;
    on("shared");
    on("shared");
    HFT_UNTIL(is_on("shared"));
    off("shared");
    assert_hears("shared", "still here");
    off("shared");
    HFT_UNTIL(listeners("shared") == 0);
    off("shared"); /* once too often: nothing */
    on("shared");
    HFT_UNTIL(is_on("shared"));
    assert_hears("shared", "again");
    off("shared");
}

static void coming_and_going_in_a_hurry_ends_as_the_last_wish_says(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        on("hurry");
        if (i % 3 == 0)
            HFT_UNTIL(is_on("hurry"));
        off("hurry");
    }
    on("hurry");
    HFT_UNTIL(is_on("hurry"));
    assert_hears("hurry", "awake");
    off("hurry");
    HFT_UNTIL(listeners("hurry") == 0);
}

static void thousands_of_channels_live_on_a_few_connections(void **state)
{
    char name[32];
    (void)state;
    int before = subscribed();
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof name, "many-%d", i);
        on(name);
    }
    HFT_UNTIL(subscribed() == before + 5000);
    assert_hears("many-0", "zero");
    assert_hears("many-4999", "last");
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof name, "many-%d", i);
        off(name);
    }
    redisReply *reply;
    size_t left;
    do {
        reply = hft_server_ask(server, "PUBSUB CHANNELS many-*");
        left = reply->elements;
        freeReplyObject(reply);
    } while (left > 0);
}

static void after_a_cut_all_channels_are_subscribed_and_acknowledged_again(void **state)
{
    (void)state;
    static const char *const names[] = {"one", "two", "three", "four"};
    for (int i = 0; i < 4; i++)
        on(names[i]);
    for (int i = 0; i < 4; i++)
        HFT_UNTIL(is_on(names[i]));
    int before = subscribed();
    assert_true(hft_server_ask_integer(server, "CLIENT KILL TYPE pubsub") >= 1);
    HFT_UNTIL(subscribed() == before + 4);
    for (int i = 0; i < 4; i++) {
        assert_true(is_on(names[i]));
        assert_hears(names[i], "back");
    }
}

static void a_restarted_server_is_told_all_channels_again(void **state)
{
    (void)state;
    int before = subscribed();
    hft_server_kill(server);
    HFT_UNTIL(!is_on("one") && !is_on("two") && !is_on("three") && !is_on("four"));
    hft_server_restart(server);
    HFT_UNTIL(subscribed() >= before + 4);
    assert_hears("three", "anew");
}

/* The address moves while the old primary lives on as a replica: the subscription's connection to it never breaks. */
static void a_subscription_follows_the_lanes_to_another_primary(void **state)
{
    struct hft_server *next = hft_server_start_tcp("save \"\"");
    struct hft_pool moving;
    struct hft_call call;
    hf_error error;
    char address[120];
    (void)state;
    (void)snprintf(address, sizeof address, "%s/moves.sock", hft_server_folder(next));
    assert_int_equal(symlink(hft_server_socket(server), address), 0);
    hft_pool_init(&moving, server);
    moving.settings.endpoint.path = address;
    assert_int_equal(hft_pool_open(&moving, NULL, &error), HF_OK);
    assert_true(hfi_pool_subscribe(moving.pool, "news", 4));
    HFT_UNTIL(listeners("news") == 1);
    assert_int_equal(unlink(address), 0);
    assert_int_equal(symlink(hft_server_socket(next), address), 0);
    freeReplyObject(hft_server_ask(server, "REPLICAOF 127.0.0.1 %d", hft_server_port(next)));
    struct hfi_lane *lane = hfi_pool_lane(moving.pool, HFI_LOCK_LANE, 0);
    hft_ask(lane, &call, "SET a 1"); /* READONLY: the lane dials anew */
    hft_call_done(&call);
    HFT_UNTIL(hft_server_ask_integer(next, "PUBLISH news here") == 1);
    assert_int_equal(listeners("news"), 0);
    HFT_UNTIL(hft_is_subscribed(moving.pool, "news", 4));
    hft_pool_close(&moving);
    freeReplyObject(hft_server_ask(server, "REPLICAOF NO ONE"));
    hft_server_stop(next);
}

static void a_silent_subscription_is_noticed_and_dialled_anew(void **state)
{
    (void)state;
    int before = subscribed();
    hft_server_freeze(server);
    on("frozen"); /* not acknowledged within command_ms */
    HFT_UNTIL(!is_on("one") || !is_on("two") || !is_on("three") || !is_on("four"));
    assert_false(is_on("frozen"));
    hft_server_thaw(server);
    HFT_UNTIL(is_on("frozen") && is_on("one") && is_on("two") && is_on("three") && is_on("four"));
    assert_true(subscribed() > before);
    HFT_UNTIL(listeners("frozen") == 1); /* the server drops the connection that we gave up */
    assert_hears("frozen", "thawed");
}

static void an_idle_subscription_is_asked_for_a_sign_of_life(void **state)
{
    (void)state;
    int64_t pings = hft_server_calls(server, "ping");
    (void)atomic_fetch_add(&kit.owner.ahead_ns, 3500 * HFI_MS); /* so much quiet time */
    on("wake the listener");
    HFT_UNTIL(hft_server_calls(server, "ping") > pings);
    HFT_UNTIL(is_on("one") && is_on("two") && is_on("three") && is_on("four"));
}

static void a_channel_without_right_is_refused_and_the_others_work(void **state)
{
    struct hft_pool poor;
    (void)state;
    redisReply *reply = hft_server_ask(server, "ACL SETUSER poor on >secret ~* +@all resetchannels &ok-*");
    freeReplyObject(reply);
    hft_pool_init(&poor, server);
    poor.settings.endpoint.user = (char *)(uintptr_t) "poor";
    poor.settings.endpoint.password = (char *)(uintptr_t) "secret";
    assert_int_equal(hft_pool_open(&poor, NULL, NULL), HF_OK);
    assert_true(hfi_pool_subscribe(poor.pool, "ok-1", 4));
    assert_true(hfi_pool_subscribe(poor.pool, "forbidden", 9));
    assert_true(hfi_pool_subscribe(poor.pool, "ok-2", 4));
    HFT_UNTIL(hft_is_subscribed(poor.pool, "ok-1", 4) && hft_is_subscribed(poor.pool, "ok-2", 4));
    assert_false(hft_is_subscribed(poor.pool, "forbidden", 9));
    hft_pool_close(&poor);
}

/* ---- invalidations ---- */

static void track(struct hfi_lane *lane, const char *key)
{
    struct hft_call call;
    char words[120];
    (void)snprintf(words, sizeof words, "CLIENT TRACKING ON REDIRECT %lld", (long long)hfi_pool_tracker_id(kit.pool));
    hft_ask(lane, &call, words);
    assert_string_equal(call.reply->str, "OK");
    hft_call_done(&call);
    (void)snprintf(words, sizeof words, "GET %s", key);
    hft_ask(lane, &call, words);
    hft_call_done(&call);
}

static void hears_that(const char *change, const char *key)
{
    int before = heard();
    freeReplyObject(hft_server_ask(server, change));
    HFT_UNTIL(heard() == before + 1);
    assert_string_equal(kit.owner.channel, HFI_INVALIDATIONS);
    assert_string_equal(kit.owner.message, key);
}

static void invalidations_come_to_a_connection_of_their_own(void **state)
{
    struct hfi_lane *lane = hfi_pool_lane(kit.pool, HFI_USER_LANE, 0);
    (void)state;
    assert_int_equal(hfi_pool_tracker_id(kit.pool), 0);
    on(HFI_INVALIDATIONS);
    HFT_UNTIL(is_on(HFI_INVALIDATIONS));
    int64_t id = hfi_pool_tracker_id(kit.pool);
    assert_true(id > 0);
    track(lane, "page");
    hears_that("SET page new", "page");
    track(lane, "page");
    hears_that("FLUSHALL", "");
    assert_hears(HFI_INVALIDATIONS, "a stranger's word");
    assert_int_equal(hft_server_ask_integer(server, "CLIENT KILL ID %lld", (long long)id), 1);
    HFT_UNTIL(is_on(HFI_INVALIDATIONS) && hfi_pool_tracker_id(kit.pool) > id);
    track(lane, "page");
    hears_that("SET page newer", "page");
    off(HFI_INVALIDATIONS);
}

static void a_tracker_without_the_right_to_an_id_says_so(void **state)
{
    struct hft_pool poor;
    (void)state;
    freeReplyObject(hft_server_ask(server, "ACL SETUSER nameless on >secret ~* &* +@all -client|id"));
    hft_pool_init(&poor, server);
    poor.settings.endpoint.user = (char *)(uintptr_t) "nameless";
    poor.settings.endpoint.password = (char *)(uintptr_t) "secret";
    assert_int_equal(hft_pool_open(&poor, NULL, NULL), HF_OK);
    assert_true(hfi_pool_subscribe(poor.pool, HFI_INVALIDATIONS, strlen(HFI_INVALIDATIONS)));
    HFT_UNTIL(hft_is_subscribed(poor.pool, HFI_INVALIDATIONS, strlen(HFI_INVALIDATIONS)));
    assert_int_equal(hfi_pool_tracker_id(poor.pool), -1);
    hft_pool_close(&poor);
}

/* ---- who waits for a message ---- */

struct listening {
    struct hft_pool *pool;
    int goal;
    bool in_time;
};

static int heard_by(struct hft_pool *pool)
{
    (void)pthread_mutex_lock(&pool->owner.mutex);
    int count = pool->owner.heard;
    (void)pthread_mutex_unlock(&pool->owner.mutex);
    return count;
}

static void *wait_for_messages(void *arg)
{
    struct listening *me = arg;
    int64_t until_ns = hft_in_ms(20000);
    me->in_time = true;
    while (me->in_time) {
        uint32_t ticket = hfi_park_epoch(&me->pool->owner.changed);
        if (heard_by(me->pool) >= me->goal)
            break;
        me->in_time = hfi_lane_wait(hfi_pool_lane(me->pool->pool, HFI_LOCK_LANE, 0), &me->pool->owner.changed,
                                    ticket, until_ns);
    }
    return NULL;
}

static void open_and_subscribe(struct hft_pool *pool)
{
    hft_pool_init(pool, server);
    assert_int_equal(hft_pool_open(pool, NULL, NULL), HF_OK);
    assert_true(hfi_pool_subscribe(pool->pool, "ear", 3));
    HFT_UNTIL(hft_is_subscribed(pool->pool, "ear", 3));
}

/* One message comes, to a thread that waits: the listener is kept elsewhere meanwhile. */
static void hear_without_the_listener(struct hft_pool *pool, void *(*wait)(void *))
{
    pthread_t thread;
    struct listening me = {pool, 1, false};
    atomic_store(&pool->owner.keeps_listener, true);
    hfi_pool_kick(pool->pool);
    HFT_UNTIL(atomic_load(&pool->owner.kicks) == 1);
    assert_int_equal(pthread_create(&thread, NULL, wait, &me), 0);
    assert_int_equal(hft_server_ask_integer(server, "PUBLISH ear %s", "you"), 1);
    (void)pthread_join(thread, NULL);
    atomic_store(&pool->owner.keeps_listener, false);
    assert_true(me.in_time);
}

static void a_waiting_thread_hears_by_itself(void **state)
{
    struct hft_pool pool;
    (void)state;
    open_and_subscribe(&pool);
    hear_without_the_listener(&pool, wait_for_messages);
    assert_int_equal(hft_server_ask_integer(server, "PUBLISH ear %s", "nobody waits"), 1);
    HFT_UNTIL(heard_by(&pool) == 2);
    hft_pool_close(&pool);
}

static void a_message_that_waiting_threads_read_is_delivered_once(void **state)
{
    enum { THREADS = 3, MESSAGES = 2000 };
    struct hft_pool pool;
    struct listening all[THREADS];
    pthread_t threads[THREADS];
    (void)state;
    open_and_subscribe(&pool);
    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct listening){&pool, MESSAGES, false};
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_messages, &all[i]), 0);
    }
    for (int i = 0; i < MESSAGES; i++)
        assert_int_equal(hft_server_ask_integer(server, "PUBLISH ear %d", i), 1);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_true(all[i].in_time);
    }
    assert_int_equal(heard_by(&pool), MESSAGES);
    assert_string_equal(pool.owner.message, "1999");
    hft_pool_close(&pool);
}

/* ---- who asks because of a message ---- */

static struct hfi_lane *asked_on;
static _Atomic(int) answers;

static void answered(struct hfi_command *command)
{
    struct hft_owner *owner = command->self;
    atomic_fetch_add(&answers, command->outcome == HFI_ANSWERED);
    hfi_park_wake(&owner->changed);
}

static void ask(struct hft_owner *owner)
{
    struct hfi_command *command = hft_command("PING", HFI_NEVER);
    command->done = answered;
    command->self = owner;
    hfi_lane_list(asked_on, command);
    hfi_command_unref(command);
    hfi_lane_flush(asked_on);
}

static void ask_and_leave(struct hft_owner *owner)
{
    ask(owner);
    hfi_park_wake(&owner->changed);
}

static void *wait_for_the_answer(void *arg)
{
    struct listening *me = arg;
    int64_t until_ns = hft_in_ms(20000);
    me->in_time = true;
    while (me->in_time) {
        uint32_t ticket = hfi_park_epoch(&me->pool->owner.changed);
        if (atomic_load(&answers) > 0)
            break;
        me->in_time = hfi_lane_wait(asked_on, &me->pool->owner.changed, ticket, until_ns);
    }
    return NULL;
}

static void open_and_ask(struct hft_pool *pool, void (*hears)(struct hft_owner *))
{
    open_and_subscribe(pool);
    asked_on = hfi_pool_lane(pool->pool, HFI_LOCK_LANE, 0);
    atomic_store(&answers, 0);
    pool->owner.hears = hears;
}

static void who_asks_because_of_a_message_reads_the_answer(void **state)
{
    struct hft_pool pool;
    (void)state;
    open_and_ask(&pool, ask);
    hear_without_the_listener(&pool, wait_for_the_answer);
    hft_pool_close(&pool);
}

/* The listener may have looked around for the same message before the thread had asked. */
static void what_it_does_not_read_the_listener_does(void **state)
{
    enum { ROUNDS = 300, LATE = ROUNDS / 20, LATE_MS = 500 };
    struct hft_pool pool;
    int late = 0; /* the listener looks around once a second in any case */
    (void)state;
    open_and_ask(&pool, ask_and_leave);
    for (int i = 1; i <= ROUNDS; i++) {
        pthread_t thread;
        struct listening me = {&pool, i, false};
        assert_int_equal(pthread_create(&thread, NULL, wait_for_messages, &me), 0);
        assert_int_equal(hft_server_ask_integer(server, "PUBLISH ear %s", "you"), 1);
        (void)pthread_join(thread, NULL);
        assert_true(me.in_time);
        int64_t late_ns = hft_in_ms(LATE_MS);
        HFT_UNTIL(atomic_load(&answers) == i);
        late += hft_now() > late_ns;
        assert_in_range(late, 0, LATE);
    }
    hft_pool_close(&pool);
}

static void a_waiting_thread_outlives_its_subscription(void **state)
{
    struct hft_pool pool;
    pthread_t thread;
    (void)state;
    open_and_subscribe(&pool);
    struct listening me = {&pool, 4, false};
    assert_int_equal(pthread_create(&thread, NULL, wait_for_messages, &me), 0);
    while (heard_by(&pool) < 4) { /* who is cut off in between hears no message of that moment */
        redisReply *reply = hft_server_ask(server, "CLIENT KILL TYPE pubsub");
        freeReplyObject(reply);
        HFT_UNTIL(hft_server_ask_integer(server, "PUBLISH ear %s", "again") == 1);
    }
    (void)pthread_join(thread, NULL);
    assert_true(me.in_time);
    hft_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_subscription_is_acknowledged_and_hears_messages),
        cmocka_unit_test(a_channel_stays_until_the_last_one_leaves_it),
        cmocka_unit_test(coming_and_going_in_a_hurry_ends_as_the_last_wish_says),
        cmocka_unit_test(thousands_of_channels_live_on_a_few_connections),
        cmocka_unit_test(after_a_cut_all_channels_are_subscribed_and_acknowledged_again),
        cmocka_unit_test(a_restarted_server_is_told_all_channels_again),
        cmocka_unit_test(a_subscription_follows_the_lanes_to_another_primary),
        cmocka_unit_test(a_silent_subscription_is_noticed_and_dialled_anew),
        cmocka_unit_test(an_idle_subscription_is_asked_for_a_sign_of_life),
        cmocka_unit_test(a_channel_without_right_is_refused_and_the_others_work),
        cmocka_unit_test(invalidations_come_to_a_connection_of_their_own),
        cmocka_unit_test(a_tracker_without_the_right_to_an_id_says_so),
        cmocka_unit_test(a_waiting_thread_hears_by_itself),
        cmocka_unit_test(a_message_that_waiting_threads_read_is_delivered_once),
        cmocka_unit_test(a_waiting_thread_outlives_its_subscription),
        cmocka_unit_test(who_asks_because_of_a_message_reads_the_answer),
        cmocka_unit_test(what_it_does_not_read_the_listener_does),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
