/* SPDX-License-Identifier: MIT */
/* near_test.c - values from memory: given out without a command, and not once the key has changed, however it did. */
#include "tests/support/near.h"
#include "tests/support/trackers.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LAG_MS  20000 /* so long that only a message can have ended what was near */

static _Atomic(int) refusals; /* lines in the log */

static void count_refusals(hf_log_level level, const char *line, void *arg)
{
    (void)arg;
    if (level == HF_LOG_WARNING && strstr(line, "near_ms has no effect") != NULL)
        atomic_fetch_add(&refusals, 1);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    f->server = hft_server_start(NULL);
    f->client = hft_client(f->server, HF_CLIENT(.near_lag_ms = LAG_MS, .log = count_refusals));
    refusals = 0;
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
    hft_come_near(f, "page");
    ask(f, "CONFIG RESETSTAT");
    for (int i = 0; i < 1000; i++) {
        hf_value *value = hft_near_fetch(f, "page", NEAR());
        assert_int_equal(value->source, HF_NEAR);
        assert_string_equal(value->data, "there");
        assert_true(value->stored);
        assert_in_range(value->fresh_ms, 50000, 60000);
        hf_value_free(value);
    }
    assert_int_equal(hft_server_calls(f->server, "get"), 0);
    assert_int_equal(f->page.loads, 0);
    assert_true(hft_near_stats(f).hits_near >= 1000);
    assert_int_equal(hft_near_stats(f).near_values, 1);
    hf_value *value = hft_near_fetch(f, "page", HF_FETCH(.load = hft_load, .arg = &f->page));
    assert_int_equal(value->source, HF_CACHED); /* who does not ask for it gets nothing from memory */
    hf_value_free(value);
}

/* Near, then changed by this: what is given out once the change was told. */
static void is_told(struct fixture *f, const char *before, const char *change, const char *after)
{
    ask(f, "DEL page");
    ask(f, before);
    hft_come_near(f, "page");
    uint64_t told = hft_near_stats(f).near_told;
    ask(f, change);
    HFT_UNTIL_TRUE(hft_near_stats(f).near_told > told || hft_near_source(f, "page") != HF_NEAR);
    hf_value *value = hft_near_fetch(f, "page", NEAR());
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
    is_told(f, old, "PEXPIRE page 0", "loaded");
}

static void a_shorter_life_is_told_too(void **state)
{
    struct fixture *f = *state;
    ask(f, "SET page old PX 60000");
    hft_come_near(f, "page");
    uint64_t told = hft_near_stats(f).near_told;
    ask(f, "PEXPIRE page 5000");
    HFT_UNTIL_TRUE(hft_near_stats(f).near_told > told);
    hf_value *value = hft_near_fetch(f, "page", NEAR());
    assert_int_equal(value->source, HF_CACHED);
    assert_in_range(value->fresh_ms, 1, 5000);
    hf_value_free(value);
}

/* Here it never ends, so no answer is earlier than what is remembered. */
static void reads_that_ask_the_server_learn_of_its_end_once_a_second(void **state)
{
    enum { READS = 200 };
    struct fixture *f = *state;
    ask(f, "SET page there");
    hft_come_near(f, "page");
    const hf_fetch_options *plain = HF_FETCH(.load = hft_load, .arg = &f->page);
    int64_t asked = hft_server_calls(f->server, "pttl"), began_ms;
    do { /* the last answer is a second old then */
        began_ms = hft_boottime_ms();
        hf_value_free(hft_near_fetch(f, "page", plain));
    } while (hft_server_calls(f->server, "pttl") == asked);
    asked = hft_server_calls(f->server, "pttl");
    for (int i = 0; i < READS; i++)
        hf_value_free(hft_near_fetch(f, "page", plain));
    int64_t seconds = (hft_boottime_ms() - began_ms) / 1000;
    assert_in_range(hft_server_calls(f->server, "pttl") - asked, 0, seconds + 1);
    assert_true(seconds + 1 < READS);
}

static void its_own_forget_and_load_leave_nothing_older(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 50; i++) {
        ask(f, "SET page old PX 60000");
        hft_come_near(f, "page");
        assert_int_equal(hf_fetch_forget(f->client, "page", &f->error), HF_OK);
        hf_value *value = hft_near_fetch(f, "page", NEAR());
        assert_string_equal(value->data, "loaded");
        hf_value_free(value);
        value = hft_near_fetch(f, "page", NEAR());
        assert_string_equal(value->data, "loaded");
        hf_value_free(value);
    }
}

/* ---- told for other reasons ---- */

static void an_eviction_is_told(void **state)
{
    struct fixture *f = *state;
    ask(f, "SET page there");
    hft_come_near(f, "page");
    uint64_t told = hft_near_stats(f).near_told;
    ask(f, "CONFIG SET maxmemory-policy allkeys-random maxmemory 1");
    HFT_UNTIL_TRUE(hft_near_stats(f).near_told > told);
    ask(f, "CONFIG SET maxmemory-policy noeviction maxmemory 0");
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS page"), 0);
    assert_int_equal(hft_near_source(f, "page"), HF_LOADED);
}

static bool is_new(struct fixture *f, const char *key)
{
    hf_value *value = hft_near_fetch(f, key, NEAR());
    bool is = strcmp(value->data, "new") == 0;
    hf_value_free(value);
    return is;
}

/* It forgets keys when it has time, so a message may be about any of them. */
static void a_server_that_remembers_few_keys_tells_of_the_others(void **state)
{
    struct fixture *f = *state;
    char key[16];
    ask(f, "CONFIG SET tracking-table-max-keys 1");
    for (int i = 0; i < 5; i++) {
        (void)snprintf(key, sizeof key, "page%d", i);
        freeReplyObject(hft_server_ask(f->server, "SET %s old", key));
        hft_come_near(f, key);
    }
    HFT_UNTIL_TRUE(hft_near_stats(f).near_told >= 4);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(key, sizeof key, "page%d", i);
        freeReplyObject(hft_server_ask(f->server, "SET %s new", key));
        HFT_UNTIL_TRUE(is_new(f, key));
    }
}

/* ---- "there is none" ---- */

#define NONE(...) NEAR(.negative_ttl_ms = 60000, __VA_ARGS__)

static bool is_none_near(struct fixture *f)
{
    hf_value *value = hft_near_fetch(f, "page", NONE());
    bool is = value->absent && value->source == HF_NEAR;
    hf_value_free(value);
    return is;
}

static void none_comes_near(struct fixture *f)
{
    f->page.absent = true;
    HFT_UNTIL_TRUE(is_none_near(f));
    f->page.absent = false;
}

static void that_there_is_none_costs_no_command_either(void **state)
{
    struct fixture *f = *state;
    none_comes_near(f);
    int loads = f->page.loads;
    ask(f, "CONFIG RESETSTAT");
    for (int i = 0; i < 1000; i++)
        assert_true(is_none_near(f));
    assert_int_equal(hft_server_calls(f->server, "get"), 0);
    assert_int_equal(hft_server_calls(f->server, "evalsha"), 0);
    assert_int_equal(f->page.loads, loads);
}

static void that_there_is_one_now_is_told(void **state)
{
    struct fixture *f = *state;
    none_comes_near(f);
    uint64_t told = hft_near_stats(f).near_told;
    ask(f, "SET page there");
    HFT_UNTIL_TRUE(hft_near_stats(f).near_told > told);
    hf_value *value = hft_near_fetch(f, "page", NONE());
    assert_string_equal(value->data, "there");
    hf_value_free(value);
}

static void that_it_was_forgotten_is_told_to_who_has_it_near(void **state)
{
    struct fixture *f = *state;
    hf_client *other = hft_client(f->server, NULL);
    none_comes_near(f);
    uint64_t told = hft_near_stats(f).near_told;
    assert_int_equal(hf_fetch_forget(other, "page", &f->error), HF_OK);
    HFT_UNTIL_TRUE(hft_near_stats(f).near_told > told);
    hf_value *value = hft_near_fetch(f, "page", NONE());
    assert_int_equal(value->source, HF_LOADED);
    assert_string_equal(value->data, "loaded");
    hf_value_free(value);
    assert_int_equal(hf_client_close(other, NULL), HF_OK);
}

static void that_there_is_none_ends_in_memory_as_at_the_server(void **state)
{
    struct fixture *f = *state;
    bool is_near = false, was_near = false;
    f->page.absent = true;
    int64_t loaded_ms, began_ms = 0;
    hf_value_free(hft_near_fetch(f, "other", NEAR())); /* so that the lane is armed by then, or soon */
    hf_value_free(hft_near_fetch(f, "page", NEAR(.negative_ttl_ms = 1500)));
    loaded_ms = hft_boottime_ms() + 1;
    while (f->page.loads == 2) {
        began_ms = hft_boottime_ms();
        hf_value *value = hft_near_fetch(f, "page", NEAR(.negative_ttl_ms = 1500));
        is_near = value->source == HF_NEAR;
        was_near = was_near || is_near;
        assert_true(!is_near || began_ms <= loaded_ms + 1501);
        hf_value_free(value);
    }
    assert_true(was_near);
}

/* ---- memory ---- */

static void a_value_above_a_quarter_of_the_memory_is_asked_for(void **state)
{
    struct fixture *f = *state;
    char key[] = "page", value[3001];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = 0;
    assert_int_equal(hf_client_close(f->client, NULL), HF_OK);
    f->client = hft_client(f->server, HF_CLIENT(.near_lag_ms = LAG_MS, .local_bytes = 8000));
    freeReplyObject(hft_server_ask(f->server, "SET small there"));
    hft_come_near(f, "small");
    freeReplyObject(hft_server_ask(f->server, "SET %s %s", key, value));
    for (int i = 0; i < 20; i++) {
        hf_value *got = hft_near_fetch(f, key, NEAR());
        assert_int_equal(got->source, HF_CACHED);
        assert_string_equal(got->data, value);
        hf_value_free(got);
    }
    assert_int_equal(hft_near_stats(f).near_values, 1);
    assert_int_equal(hft_near_source(f, "small"), HF_NEAR);
}

/* ---- a crowd on one key ---- */

enum { CROWD = 64, FORGETS = 40 };

struct crowd {
    struct fixture *f;
    _Atomic(bool) stop;
    _Atomic(int) origin, least; /* what a load makes now; what a call may get that begins now */
    _Atomic(int) loads, wrong;
};

static hf_status load_count(hf_loading *loading, void *arg)
{
    struct crowd *crowd = arg;
    char value[16];
    (void)snprintf(value, sizeof value, "%d", atomic_load(&crowd->origin));
    (void)atomic_fetch_add(&crowd->loads, 1);
    return hf_loading_set(loading, value, strlen(value));
}

static void *read_on(void *arg)
{
    struct crowd *crowd = arg;
    hf_value *value;
    while (!atomic_load(&crowd->stop)) {
        int least = atomic_load(&crowd->least);
        const hf_fetch_options *options = HF_FETCH(.load = load_count, .arg = crowd, .near_ms = HFT_NEAR_MS);
        hf_status status = hf_fetch(crowd->f->client, "hot", options, &value, NULL);
        if (status != HF_OK || (int)strtol(value->data, NULL, 10) < least)
            (void)atomic_fetch_add(&crowd->wrong, 1);
        hf_value_free(value);
        (void)sched_yield();
    }
    return NULL;
}

static void a_crowd_asks_seldom_and_gets_nothing_that_was_forgotten(void **state)
{
    struct crowd crowd = {.f = *state};
    pthread_t threads[CROWD];
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &crowd), 0);
    HFT_UNTIL_TRUE(hft_near_stats(crowd.f).hits_near > 1000);
    int64_t reads = (int64_t)hft_near_stats(crowd.f).near_reads;
    for (int i = 1; i <= FORGETS; i++) {
        atomic_store(&crowd.origin, i);
        assert_int_equal(hf_fetch_forget(crowd.f->client, "hot", NULL), HF_OK);
        atomic_store(&crowd.least, i);
        uint64_t hits = hft_near_stats(crowd.f).hits_near;
        HFT_UNTIL_TRUE(hft_near_stats(crowd.f).hits_near > hits + 1000);
    }
    reads = (int64_t)hft_near_stats(crowd.f).near_reads - reads;
    atomic_store(&crowd.stop, true);
    for (int i = 0; i < CROWD; i++)
        (void)pthread_join(threads[i], NULL);
    print_message("%.1f reads and %.1f loads a forget\n", (double)reads / FORGETS, (double)atomic_load(&crowd.loads) / FORGETS);
    assert_int_equal(atomic_load(&crowd.wrong), 0);
    assert_true(reads <= 16 * FORGETS);
}

/* ---- rights ---- */

static void without(struct fixture *f, const char *rights)
{
    char command[160];
    assert_int_equal(hf_client_close(f->client, NULL), HF_OK);
    (void)snprintf(command, sizeof command, "ACL SETUSER web reset on >secret ~* &* +@all %s", rights);
    ask(f, command);
    ask(f, "SET page there");
    atomic_store(&refusals, 0);
    f->client = hft_client(f->server, HF_CLIENT(.user = "web", .password = "secret", .near_lag_ms = 100, .log = count_refusals));
    int64_t until_ms = hft_boottime_ms() + 20000;
    while (atomic_load(&refusals) == 0) {
        hft_pause(until_ms, rights);
        hf_value *value = hft_near_fetch(f, "page", NEAR());
        assert_int_equal(value->source, HF_CACHED);
        assert_string_equal(value->data, "there");
        hf_value_free(value);
    }
    for (int i = 0; i < 20; i++)
        assert_int_equal(hft_near_source(f, "page"), HF_CACHED);
    assert_int_equal(hf_fetch_forget(f->client, "page", &f->error), HF_OK);
    assert_int_equal(hft_near_source(f, "page"), HF_LOADED);
    assert_int_equal(hft_near_source(f, "page"), HF_CACHED);
    assert_int_equal(hft_near_stats(f).hits_near, 0);
    assert_int_equal(hft_near_stats(f).near_values, 0);
    assert_int_equal(atomic_load(&refusals), 1);
}

static void where_the_server_does_not_track_all_is_as_without(void **state)
{
    without(*state, "-client|tracking");
    without(*state, "-client|caching");
    without(*state, "-client|getredir");
    without(*state, "-client|id");
    without(*state, "resetchannels &hf:*");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_hit_from_memory_costs_no_command, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_way_to_change_it_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_shorter_life_is_told_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_that_ask_the_server_learn_of_its_end_once_a_second, set_up, tear_down),
        cmocka_unit_test_setup_teardown(its_own_forget_and_load_leave_nothing_older, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_eviction_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_remembers_few_keys_tells_of_the_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(that_there_is_none_costs_no_command_either, set_up, tear_down),
        cmocka_unit_test_setup_teardown(that_there_is_one_now_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(that_it_was_forgotten_is_told_to_who_has_it_near, set_up, tear_down),
        cmocka_unit_test_setup_teardown(that_there_is_none_ends_in_memory_as_at_the_server, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_value_above_a_quarter_of_the_memory_is_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_crowd_asks_seldom_and_gets_nothing_that_was_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(where_the_server_does_not_track_all_is_as_without, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
