/* SPDX-License-Identifier: MIT */
/* near_test.c - values from memory: given out without a command, and not once the key has changed, however it did. */
#include "tests/support/pages.h"
#include "tests/support/takers.h"
#include "tests/support/trackers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NEAR_MS 60000
#define LAG_MS  20000 /* so long that only a message can have ended what was near */

struct fixture {
    struct hft_server *server;
    hf_client *client;
    struct hft_page page;
    hf_error error;
    _Atomic(int) refusals;
};

static void count_refusals(hf_log_level level, const char *line, void *arg)
{
    if (level == HF_LOG_WARNING && strstr(line, "near_ms has no effect") != NULL)
        atomic_fetch_add((_Atomic(int) *)arg, 1);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    f->server = hft_server_start(NULL);
    f->client = hft_client(f->server, HF_CLIENT(.near_lag_ms = LAG_MS, .log = count_refusals, .log_arg = &f->refusals));
    f->page.data = "loaded";
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(hf_client_close(f->client, NULL), HF_OK);
    hft_server_stop(f->server);
    free(f);
    return 0;
}

#define NEAR(...) HF_FETCH(.load = hft_load, .arg = &f->page, .near_ms = NEAR_MS, __VA_ARGS__)

static hf_value *fetch(struct fixture *f, const char *key, const hf_fetch_options *options)
{
    hf_value *value;
    if (hf_fetch(f->client, key, options, &value, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
    return value;
}

static hf_source source_of(struct fixture *f, const char *key)
{
    hf_value *value = fetch(f, key, NEAR());
    hf_source source = value->source;
    hf_value_free(value);
    return source;
}

static void come_near(struct fixture *f, const char *key)
{
    HFT_UNTIL_TRUE(source_of(f, key) == HF_NEAR);
}

static hf_stats stats(struct fixture *f)
{
    hf_stats now;
    hf_client_stats(f->client, &now);
    return now;
}

static void ask(struct fixture *f, const char *command)
{
    redisReply *reply = hft_server_ask(f->server, command);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", command, reply->str);
    freeReplyObject(reply);
}

static void a_hit_from_memory_costs_no_command(void **state)
{
    struct fixture *f = *state;
    ask(f, "SET page there PX 60000");
    come_near(f, "page");
    ask(f, "CONFIG RESETSTAT");
    for (int i = 0; i < 1000; i++) {
        hf_value *value = fetch(f, "page", NEAR());
        assert_int_equal(value->source, HF_NEAR);
        assert_string_equal(value->data, "there");
        assert_true(value->stored);
        assert_in_range(value->fresh_ms, 50000, 60000);
        hf_value_free(value);
    }
    assert_int_equal(hft_server_calls(f->server, "get"), 0);
    assert_int_equal(f->page.loads, 0);
    assert_true(stats(f).hits_near >= 1000);
    assert_int_equal(stats(f).near_values, 1);
    hf_value *value = fetch(f, "page", HF_FETCH(.load = hft_load, .arg = &f->page));
    assert_int_equal(value->source, HF_CACHED); /* who does not ask for it gets nothing from memory */
    hf_value_free(value);
}

/* Near, then changed by this: what is given out once the change was told. */
static void is_told(struct fixture *f, const char *before, const char *change, const char *after)
{
    ask(f, "DEL page");
    ask(f, before);
    come_near(f, "page");
    uint64_t told = stats(f).near_told;
    ask(f, change);
    HFT_UNTIL_TRUE(stats(f).near_told > told || source_of(f, "page") != HF_NEAR);
    hf_value *value = fetch(f, "page", NEAR());
    if (strcmp(value->data, after) != 0)
        fail_msg("%s: %s, not %s (source %d)", change, (const char *)value->data, after, (int)value->source);
    hf_value_free(value);
}

static void each_way_to_change_it_is_told(void **state)
{
    struct fixture *f = *state;
    static const char old[] = "SET page old PX 60000";
    is_told(f, old, "SET page new PX 60000", "new");
    is_told(f, old, "APPEND page er", "older");
    is_told(f, old, "EVAL return(redis.call('SET',KEYS[1],'new')) 1 page", "new");
    is_told(f, old, "DEL page", "loaded");
    is_told(f, old, "UNLINK page", "loaded");
    is_told(f, old, "GETDEL page", "loaded");
    is_told(f, old, "RENAME page other", "loaded");
    is_told(f, old, "FLUSHDB", "loaded");
    is_told(f, old, "FLUSHALL ASYNC", "loaded");
    ask(f, "SET other new");
    is_told(f, old, "RENAME other page", "new");
    ask(f, "SET other new");
    is_told(f, old, "COPY other page REPLACE", "new");
    is_told(f, old, "PEXPIREAT page 1", "loaded");
}

static void a_shorter_life_is_told_too(void **state)
{
    struct fixture *f = *state;
    ask(f, "SET page old PX 60000");
    come_near(f, "page");
    uint64_t told = stats(f).near_told;
    ask(f, "PEXPIRE page 5000");
    HFT_UNTIL_TRUE(stats(f).near_told > told);
    hf_value *value = fetch(f, "page", NEAR());
    assert_int_equal(value->source, HF_CACHED);
    assert_in_range(value->fresh_ms, 1, 5000);
    hf_value_free(value);
}

static void its_own_forget_and_load_leave_nothing_older(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 50; i++) {
        ask(f, "SET page old PX 60000");
        come_near(f, "page");
        assert_int_equal(hf_fetch_forget(f->client, "page", &f->error), HF_OK);
        hf_value *value = fetch(f, "page", NEAR());
        assert_string_equal(value->data, "loaded");
        hf_value_free(value);
        value = fetch(f, "page", NEAR());
        assert_string_equal(value->data, "loaded");
        hf_value_free(value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_hit_from_memory_costs_no_command, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_way_to_change_it_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_shorter_life_is_told_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(its_own_forget_and_load_leave_nothing_older, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
