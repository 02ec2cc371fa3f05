/* SPDX-License-Identifier: MIT */
/* overload_test.c - a slow server is not away: calls with time wait for it, and when they have none the origin does
 * not get all the unshared loads at once. */
#include "core/context/context.h"
#include "pool/lane_private.h"
#include "tests/support/fds.h"
#include "tests/support/pages.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COMMAND_MS = 200, LONG_MS = 30000, A_SECOND = 50 };

static hf_value *must_fetch(struct fixture *f, hf_client *client, const char *key, const hf_fetch_options *options)
{
    hf_value *value;
    if (hf_fetch(client, key, options, &value, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
    return value;
}

static hf_source source_of(struct fixture *f, hf_client *client, const char *key, const hf_fetch_options *options)
{
    hf_value *value = must_fetch(f, client, key, options);
    hf_source source = value->source;
    hf_value_free(value);
    return source;
}

/* Its lane has answered before the server stops. */
static hf_client *client_of_a_frozen_server(struct fixture *f, int64_t connect_ms)
{
    struct hft_page page = {.data = "content"};
    hf_client *client =
        hft_client(f->server, HF_CLIENT(.command_ms = COMMAND_MS, .connect_ms = connect_ms, .lanes = 1, .local_bytes = HF_OFF));
    assert_int_equal(source_of(f, client, "before", HF_FETCH(.load = hft_load, .arg = &page)), HF_LOADED);
    hft_server_freeze(f->server);
    return client;
}

static void a_server_that_is_silent_for_less_than_may_be_waited_is_not_away(void **state)
{
    enum { THREADS = 4 };
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    struct hft_fetcher all[THREADS];
    hf_client *client = client_of_a_frozen_server(f, LONG_MS);
    for (int i = 0; i < THREADS; i++)
        hft_fetch(&all[i], client, "page", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = i == 0 ? HF_FOREVER : LONG_MS));
    const struct hfi_lane *lane = hfi_pool_lane(client->pool, HFI_VALUE_LANE, 0);
    HFT_UNTIL_TRUE(hfi_lane_is_down(lane));
    assert_false(hfi_lane_is_unreachable(lane));
    for (int i = 0; i < THREADS; i++)
        HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&all[i].tid)));
    hft_server_thaw(f->server);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(hft_fetched(&all[i]), HF_OK);
        assert_int_not_equal(all[i].value->source, HF_LOCAL);
        assert_true(all[i].value->stored);
        hf_value_free(all[i].value);
    }
    assert_int_equal(page.loads, 1);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_fetch_whose_wait_ms_is_over_loads_without_the_server(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    hf_client *client = client_of_a_frozen_server(f, LONG_MS);
    int64_t began_ms = hft_boottime_ms();
    assert_int_equal(source_of(f, client, "a", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = HF_OFF)), HF_LOCAL);
    assert_int_equal(source_of(f, client, "b", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = 3 * COMMAND_MS)), HF_LOCAL);
    assert_true(hft_boottime_ms() - began_ms >= 4 * COMMAND_MS);
    hft_server_thaw(f->server);
    assert_true(hft_closes(f->server, client, &f->error)); /* it may have been silent before it had said all of the first load */
}

static void a_server_that_answers_no_dial_is_away_for_those_who_would_wait_for_ever(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    hf_client *client = client_of_a_frozen_server(f, 2 * COMMAND_MS);
    hf_fetch_options forever = {.size = sizeof forever, .load = hft_load, .arg = &page, .wait_ms = HF_FOREVER};
    assert_int_equal(source_of(f, client, "page", &forever), HF_LOCAL);
    hft_server_thaw(f->server);
    HFT_UNTIL_TRUE(source_of(f, client, "page", &forever) != HF_LOCAL);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static bool refuses_ping(struct fixture *f)
{
    redisReply *reply = hft_server_ask(f->server, "PING");
    bool refuses = reply->type == REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    return refuses;
}

/* It would say so again, as often as it is asked. */
static void a_server_that_answers_with_an_error_is_asked_once(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    hf_value *value;
    hf_client *client = hft_client(f->server, HF_CLIENT(.lanes = 1, .local_bytes = HF_OFF));
    assert_int_equal(source_of(f, client, "before", HF_FETCH(.load = hft_load, .arg = &page)), HF_LOADED);
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET lua-time-limit 10"));
    redisContext *other = redisConnectUnix(hft_server_socket(f->server));
    assert_int_equal(redisAppendCommand(other, "EVAL %s 0", "while true do end"), REDIS_OK);
    int written = 0;
    while (!written)
        assert_int_equal(redisBufferWrite(other, &written), REDIS_OK);
    HFT_UNTIL_TRUE(refuses_ping(f));
    hf_stats before, after;
    hf_client_stats(client, &before);
    hf_status status = hf_fetch(client, "page", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = HF_FOREVER), &value, &f->error);
    hf_client_stats(client, &after);
    freeReplyObject(hft_server_ask(f->server, "SCRIPT KILL"));
    redisFree(other);
    assert_int_equal(status, HF_OK);
    assert_int_equal(value->source, HF_LOCAL);
    hf_value_free(value);
    assert_in_range(after.remote_commands - before.remote_commands, 1, 20);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void *kill_connections(void *arg)
{
    struct fixture *f = arg;
    for (int i = 0; i < 4; i++) {
        int64_t began_ms = hft_boottime_ms();
        HFT_UNTIL_TRUE(hft_boottime_ms() >= began_ms + 100);
        freeReplyObject(hft_server_ask(f->server, "CLIENT KILL TYPE normal SKIPME yes"));
    }
    return NULL;
}

/* While it waits for another process's load, which goes on. */
static void connections_that_end_while_it_waits_are_no_reason_to_load(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .stay = true}, other = {.data = "other"};
    struct hft_fetcher loader, guest;
    pthread_t killer;
    hft_fetch(&loader, f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = LONG_MS));
    HFT_UNTIL_TRUE(page.inside == 1);
    hft_fetch(&guest, f->b, "page", HF_FETCH(.load = hft_load, .arg = &other, .wait_ms = LONG_MS));
    HFT_UNTIL_TRUE(hft_waiting_here(f->b, "page") == 1);
    (void)pthread_create(&killer, NULL, kill_connections, f);
    (void)pthread_join(killer, NULL);
    hft_server_freeze(f->server);
    int64_t began_ms = hft_boottime_ms();
    HFT_UNTIL_TRUE(hft_boottime_ms() >= began_ms + 1500); /* the default command_ms, and half of it */
    hft_server_thaw(f->server);
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    assert_int_equal(hft_fetched(&guest), HF_OK);
    assert_int_not_equal(guest.value->source, HF_LOCAL);
    hf_value_free(loader.value);
    hf_value_free(guest.value);
}

/* Whoever does not wait is not counted with those who do. */
static void a_fetch_that_does_not_wait_for_a_local_load_is_busy(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .stay = true};
    struct hft_fetcher loader, guest;
    hf_value *value;
    hf_client *client = hft_client(f->server, HF_CLIENT(.max_waiters = 1));
    hft_server_kill(f->server);
    hft_fetch(&loader, client, "page", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = LONG_MS));
    HFT_UNTIL_TRUE(page.inside == 1);
    hft_fetch(&guest, client, "page", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = LONG_MS));
    HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&guest.tid)));
    assert_int_equal(hf_fetch(client, "page", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = HF_OFF), &value, &f->error),
                     HF_BUSY);
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    assert_int_equal(hft_fetched(&guest), HF_OK);
    hf_value_free(loader.value);
    hf_value_free(guest.value);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

/* ---- so many local loads a second ---- */

struct crowd {
    struct hft_fetcher *fetchers;
    char (*keys)[16];
    int count;
};

/* Each wants a value of its own. */
static void begin_some(struct crowd *crowd, hf_client *client, struct hft_page *page, int count, int round, hf_cancel *cancel)
{
    crowd->count = count;
    crowd->fetchers = calloc((size_t)count, sizeof *crowd->fetchers);
    crowd->keys = calloc((size_t)count, sizeof *crowd->keys);
    for (int i = 0; i < count; i++) {
        (void)snprintf(crowd->keys[i], sizeof crowd->keys[i], "c%d-%d", round, i);
        hft_fetch(&crowd->fetchers[i], client, crowd->keys[i],
                  HF_FETCH(.load = hft_load, .arg = page, .wait_ms = LONG_MS, .cancel = cancel));
    }
}

static void begin(struct crowd *crowd, hf_client *client, struct hft_page *page, int count)
{
    begin_some(crowd, client, page, count, 0, NULL);
}

static void free_crowd(struct crowd *crowd)
{
    free(crowd->fetchers);
    free(crowd->keys);
}

static void end(struct crowd *crowd)
{
    for (int i = 0; i < crowd->count; i++) {
        assert_int_equal(hft_fetched(&crowd->fetchers[i]), HF_OK);
        assert_int_equal(crowd->fetchers[i].value->source, HF_LOCAL);
        hf_value_free(crowd->fetchers[i].value);
    }
    free_crowd(crowd);
}

static void without_a_server_only_so_many_values_a_second_are_loaded(void **state)
{
    enum { MANY = 3 * A_SECOND };
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    struct crowd crowd;
    hft_server_kill(f->server);
    int64_t began_ms = hft_boottime_ms();
    begin(&crowd, f->a, &page, MANY);
    end(&crowd);
    int64_t took_ms = hft_boottime_ms() - began_ms;
    assert_int_equal(page.loads, MANY);
    assert_true(took_ms >= 1000 * (MANY - A_SECOND) / A_SECOND - 20);
}

static void a_fetch_that_cannot_wait_for_a_turn_gets_a_retry_time(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    hf_status status = HF_OK;
    int loads = 0;
    hft_server_kill(f->server);
    for (; status == HF_OK && loads < 20 * A_SECOND; loads++) {
        char key[16];
        hf_value *value;
        (void)snprintf(key, sizeof key, "k%d", loads);
        status = hf_fetch(f->a, key, HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = HF_OFF), &value, &f->error);
        if (status == HF_OK)
            hf_value_free(value);
    }
    assert_int_equal(status, HF_UNAVAILABLE);
    assert_in_range(loads, A_SECOND, 20 * A_SECOND - 1);
    assert_non_null(strstr(f->error.message, "50 values a second"));
    assert_in_range(f->error.retry_ms, 0, 1000);
}

static void a_cancel_ends_the_wait_for_a_turn_and_leaves_the_load_to_the_others(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    struct hft_fetcher canceled, other;
    struct crowd crowd;
    hf_cancel *cancel;
    assert_int_equal(hf_cancel_open(f->a, &cancel, NULL), HF_OK);
    hft_server_kill(f->server);
    begin(&crowd, f->a, &page, 5 * A_SECOND); /* four seconds' worth of turns are taken */
    for (int i = 0; i < crowd.count; i++)
        HFT_UNTIL_TRUE(atomic_load(&crowd.fetchers[i].done) || hft_is_asleep(atomic_load(&crowd.fetchers[i].tid)));
    hft_fetch(&canceled, f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = HF_FOREVER, .cancel = cancel));
    HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&canceled.tid)));
    hft_fetch(&other, f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&other.tid)));
    hf_cancel_fire(cancel);
    assert_int_equal(hft_fetched(&canceled), HF_CANCELED);
    assert_int_equal(hft_fetched(&other), HF_OK);
    assert_int_equal(other.value->source, HF_LOCAL);
    hf_value_free(other.value);
    end(&crowd);
    assert_int_equal(page.loads, 5 * A_SECOND + 1);
    hf_cancel_close(cancel);
}

/* A request's deadline, again and again: later callers get the turns of those that gave up. */
static void a_fetch_that_gives_up_waiting_for_a_turn_blocks_no_other(void **state)
{
    enum { THREADS = 100, ROUNDS = 6 };
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    hf_cancel *cancel;
    int loads[ROUNDS];
    assert_int_equal(hf_cancel_open(f->a, &cancel, NULL), HF_OK);
    hft_server_kill(f->server);
    for (int round = 0; round < ROUNDS; round++) {
        struct crowd crowd;
        begin_some(&crowd, f->a, &page, THREADS, round, cancel);
        int64_t began_ms = hft_boottime_ms();
        HFT_UNTIL_TRUE(hft_boottime_ms() >= began_ms + 500);
        hf_cancel_fire(cancel);
        for (int i = 0; i < THREADS; i++)
            if (hft_fetched(&crowd.fetchers[i]) == HF_OK)
                hf_value_free(crowd.fetchers[i].value);
        hf_cancel_reset(cancel);
        free_crowd(&crowd);
        loads[round] = page.loads;
    }
    for (int round = 2; round < ROUNDS; round++)
        assert_true(loads[round] > loads[round - 1]);
    hf_cancel_close(cancel);
}

static void *close_it(void *arg)
{
    (void)hf_client_close(arg, NULL);
    return NULL;
}

static void close_ends_the_wait_for_a_turn(void **state)
{
    enum { THREADS = 6 * A_SECOND };
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    struct crowd crowd;
    pthread_t closing;
    hf_client *client = hft_client(f->server, HF_CLIENT(.close_ms = 100));
    hft_server_kill(f->server);
    begin_some(&crowd, client, &page, THREADS, 0, NULL);
    for (int i = 0; i < THREADS; i++)
        HFT_UNTIL_TRUE(atomic_load(&crowd.fetchers[i].done) || hft_is_asleep(atomic_load(&crowd.fetchers[i].tid)));
    (void)pthread_create(&closing, NULL, close_it, client);
    int closed = 0;
    for (int i = 0; i < THREADS; i++) {
        hf_status status = hft_fetched(&crowd.fetchers[i]);
        closed += status == HF_CLOSED;
        if (status == HF_OK)
            hf_value_free(crowd.fetchers[i].value);
    }
    (void)pthread_join(closing, NULL);
    free_crowd(&crowd);
    assert_true(closed > A_SECOND); /* by turns it would have been five seconds later, and they loaded */
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_server_that_is_silent_for_less_than_may_be_waited_is_not_away),
        TEST(a_fetch_whose_wait_ms_is_over_loads_without_the_server),
        TEST(a_server_that_answers_no_dial_is_away_for_those_who_would_wait_for_ever),
        TEST(a_server_that_answers_with_an_error_is_asked_once),
        TEST(connections_that_end_while_it_waits_are_no_reason_to_load),
        TEST(a_fetch_that_does_not_wait_for_a_local_load_is_busy),
        TEST(without_a_server_only_so_many_values_a_second_are_loaded),
        TEST(a_fetch_that_cannot_wait_for_a_turn_gets_a_retry_time),
        TEST(a_fetch_that_gives_up_waiting_for_a_turn_blocks_no_other),
        TEST(close_ends_the_wait_for_a_turn),
        TEST(a_cancel_ends_the_wait_for_a_turn_and_leaves_the_load_to_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
