/* SPDX-License-Identifier: MIT */
/* fetch_same_test.c - a load that finds the old value still good: hf_loading_old and hf_loading_same. */
#include "tests/support/fds.h"
#include "tests/support/pages.h"
#include "tests/support/lock_lanes.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OLD(...) HF_FETCH(.load = hft_load, .ttl_ms = 1, .stale_ms = 60000, __VA_ARGS__)

static hf_value *must_fetch(struct fixture *f, hf_client *client, const hf_fetch_options *options)
{
    hf_value *value;
    if (hf_fetch(client, "page", options, &value, &f->error) != HF_OK)
        fail_msg("%s: %s", hf_status_name(f->error.status), f->error.message);
    return value;
}

static void expect(struct fixture *f, hf_client *client, const hf_fetch_options *options, hf_source source, const char *data)
{
    hf_value *value = must_fetch(f, client, options);
    if (value->source != source)
        fail_msg("source %d, not %d", (int)value->source, (int)source);
    assert_string_equal(value->data, data);
    assert_true(value->stored);
    hf_value_free(value);
}

static bool is_old(struct fixture *f)
{
    return hft_server_ask_integer(f->server, "PTTL page") < 60000;
}

static uint64_t sames(hf_client *client)
{
    hf_stats stats;
    hf_client_stats(client, &stats);
    return stats.loads_same;
}

static int64_t bytes_in(struct fixture *f)
{
    redisReply *reply = hft_server_ask(f->server, "INFO stats");
    int64_t bytes = strtoll(strstr(reply->str, "total_net_input_bytes:") + 22, NULL, 10);
    freeReplyObject(reply);
    return bytes;
}

static void what_is_still_good_gets_another_end_and_is_not_sent_again(void **state)
{
    enum { SIZE = 200000 };
    struct fixture *f = *state;
    char *data = malloc(SIZE);
    assert_non_null(data);
    memset(data, 'x', SIZE);
    struct hft_page page = {.data = data, .size = SIZE};
    hf_value_free(must_fetch(f, f->a, OLD(.arg = &page)));
    assert_string_equal(page.old, "-");
    assert_int_equal(page.old_size, 0);
    HFT_UNTIL_TRUE(is_old(f));
    page.same = true;
    page.ttl_ms = 90000;
    int64_t before = bytes_in(f);
    hf_value *value = must_fetch(f, f->b, OLD(.arg = &page)); /* b has never seen it */
    assert_true(bytes_in(f) - before < SIZE / 10);
    assert_int_equal(value->source, HF_LOADED);
    assert_true(value->stored);
    assert_int_equal(value->size, SIZE);
    assert_memory_equal(value->data, data, SIZE);
    assert_int_equal(value->fresh_ms, 90000);
    hf_value_free(value);
    assert_int_equal(page.old_size, SIZE);
    assert_in_range(hft_server_ask_integer(f->server, "PTTL page"), 140000, 150000);
    assert_int_equal(hft_server_ask_integer(f->server, "STRLEN page"), SIZE);
    assert_int_equal(hft_lock_keys(f->server), 1); /* the fence counter */
    assert_int_equal(sames(f->b), 1);
    assert_int_equal(sames(f->a), 0);
    free(data);
}

static void the_waiters_get_it_too_and_it_is_what_was_seen_last(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    struct hft_fetcher loader, here, there;
    expect(f, f->a, OLD(.arg = &page), HF_LOADED, "content");
    HFT_UNTIL_TRUE(is_old(f));
    freeReplyObject(hft_server_ask(f->server, "DEL page"));
    page.same = true;
    page.stay = true;
    const hf_fetch_options *fresh = HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 60000);
    hft_fetch(&loader, f->a, "page", fresh);
    HFT_UNTIL_TRUE(page.inside == 1);
    hft_fetch(&here, f->a, "page", fresh);
    hft_fetch(&there, f->b, "page", fresh);
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "page") == 1 && hft_waiting_here(f->b, "page") == 1);
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    assert_int_equal(hft_fetched(&here), HF_OK);
    assert_int_equal(hft_fetched(&there), HF_OK);
    assert_int_equal(loader.value->source, HF_LOADED);
    assert_int_equal(here.value->source, HF_SHARED);
    assert_string_equal(here.value->data, "content");
    assert_string_equal(there.value->data, "content");
    assert_int_equal(page.loads, 2);
    hf_value_free(loader.value);
    hf_value_free(here.value);
    hf_value_free(there.value);
    hft_server_kill(f->server);
    expect(f, f->a, OLD(.arg = &page), HF_STALE, "content");
    hft_server_restart(f->server);
}

static void what_this_process_saw_last_helps_after_its_key_has_ended(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    expect(f, f->a, HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 20), HF_LOADED, "content");
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS page") == 0);
    page.same = true;
    hft_until_connected(f);
    HFT_UNTIL_TRUE(hft_value_lane_is_up(f->a, 0) && hft_value_lane_is_up(f->a, 1));
    int64_t before = hft_server_calls(f->server, "evalsha");
    expect(f, f->a, HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 60000), HF_LOADED, "content");
    assert_true(hft_server_calls(f->server, "evalsha") - before <= 2); /* the acquire, and one fill */
    assert_string_equal(page.old, "content");
    expect(f, f->b, HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 60000), HF_CACHED, "content");
    assert_int_equal(sames(f->a), 1);
}

static void what_has_gone_meanwhile_is_sent_again(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    struct hft_fetcher loader;
    expect(f, f->a, OLD(.arg = &page), HF_LOADED, "content");
    HFT_UNTIL_TRUE(is_old(f));
    page.same = true;
    page.stay = true;
    hft_fetch(&loader, f->b, "page", OLD(.arg = &page));
    HFT_UNTIL_TRUE(page.inside == 1);
    freeReplyObject(hft_server_ask(f->server, "DEL page")); /* evicted, say */
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    assert_int_equal(loader.value->source, HF_LOADED);
    assert_true(loader.value->stored);
    assert_string_equal(loader.value->data, "content");
    hf_value_free(loader.value);
    redisReply *reply = hft_server_ask(f->server, "GET page");
    assert_string_equal(reply->str, "content");
    freeReplyObject(reply);
    assert_int_equal(hft_lock_keys(f->server), 1);
}

static void *the_page_itself(void *arg)
{
    return arg;
}

/* Not by each read: what was tried a moment ago is not tried again. */
static bool is_loaded_anew(struct fixture *f, hf_client *client, const hf_fetch_options *options, int loads)
{
    const struct hft_page *page = options->arg;
    hf_value_free(must_fetch(f, client, options));
    return page->loads > loads;
}

/* Its end, as this process knows it, is off by no more than the server forgives. */
static void what_memory_has_is_not_sent_again_either(void **state)
{
    enum { SIZE = 200000, TIMES = 20 };
    struct fixture *f = *state;
    char *data = calloc(1, SIZE);
    assert_non_null(data);
    struct hft_page page = {.data = data, .size = SIZE};
    hf_client *client = hft_client(f->server, HF_CLIENT(.loaders = 1));
    hf_value_free(must_fetch(f, client, OLD(.arg = &page)));
    page.same = true;
    for (int where = HF_LOAD_HERE; where <= HF_REFRESH_ASIDE; where++)
        for (int near = 0; near <= 1; near++) {
            int64_t before = bytes_in(f);
            for (int i = 0; i < TIMES; i++) {
                int loads = page.loads;
                HFT_UNTIL_TRUE(is_old(f));
                const hf_fetch_options *options = OLD(.arg = &page, .where = (hf_load_where)where, .near_ms = near * 60000,
                                                      .copy_arg = the_page_itself);
                HFT_UNTIL_TRUE(is_loaded_anew(f, client, options, loads));
            }
            HFT_UNTIL_TRUE(sames(client) == (uint64_t)page.loads - 1);
            assert_true(bytes_in(f) - before < TIMES * SIZE / 4); /* a machine that stops for long may cost some */
        }
    free(data);
    assert_true(hft_closes(f->server, client, &f->error));
}

/* While its refresh waits for a thread, the value is replaced, the new one grows old, and the origin goes back to the first. */
static void what_was_replaced_before_its_load_is_not_what_goes_on(void **state)
{
    struct fixture *f = *state;
    struct hft_page first = {.data = "first"}, busy = {.data = "", .stay = true}, other = {.data = "other"};
    hf_client *client = hft_client(f->server, HF_CLIENT(.loaders = 1));
    hf_value *value;
    expect(f, client, OLD(.arg = &first), HF_LOADED, "first");
    HFT_UNTIL_TRUE(is_old(f));
    first.same = true;
    const hf_fetch_options *occupies = HF_FETCH(.load = hft_load, .arg = &busy, .where = HF_LOAD_ASIDE, .wait_ms = HF_OFF,
                                                .copy_arg = the_page_itself);
    assert_int_equal(hf_fetch(client, "busy", occupies, &value, NULL), HF_BUSY);
    HFT_UNTIL_TRUE(busy.inside == 1);
    expect(f, client, OLD(.arg = &first, .where = HF_REFRESH_ASIDE, .copy_arg = the_page_itself), HF_STALE, "first");
    freeReplyObject(hft_server_ask(f->server, "DEL page"));
    expect(f, f->b, HF_FETCH(.load = hft_load, .arg = &other, .ttl_ms = 1, .stale_ms = 50000), HF_LOADED, "other");
    atomic_store(&busy.stay, false);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "PTTL page") > 55000); /* the answer is stored */
    redisReply *reply = hft_server_ask(f->server, "GET page");
    assert_string_equal(reply->str, "first");
    freeReplyObject(reply);
    assert_string_equal(first.old, "first");
    assert_int_equal(sames(client), 1);
    assert_true(hft_closes(f->server, client, &f->error));
}

static void what_was_forgotten_meanwhile_is_not_stored(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    expect(f, f->a, OLD(.arg = &page), HF_LOADED, "content");
    HFT_UNTIL_TRUE(is_old(f));
    page.same = true;
    page.forgets = f->b;
    hf_value *value = must_fetch(f, f->a, OLD(.arg = &page));
    assert_int_equal(value->source, HF_LOADED);
    assert_false(value->stored);
    hf_value_free(value);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS page"), 0);
}

static void who_is_canceled_gives_the_lease_back_where_the_value_is_gone(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    struct hft_fetcher loader;
    hf_cancel *cancel;
    hf_stats stats;
    expect(f, f->a, OLD(.arg = &page), HF_LOADED, "content");
    HFT_UNTIL_TRUE(is_old(f));
    assert_int_equal(hf_cancel_open(f->a, &cancel, NULL), HF_OK);
    page.same = true;
    page.stay = true;
    hft_fetch(&loader, f->a, "page", OLD(.arg = &page, .cancel = cancel, .lease_ms = 60000));
    HFT_UNTIL_TRUE(page.inside == 1);
    freeReplyObject(hft_server_ask(f->server, "DEL page"));
    freeReplyObject(hft_server_ask(f->server, "CLIENT PAUSE 10000 WRITE")); /* the fill waits */
    atomic_store(&page.stay, false);
    HFT_UNTIL_TRUE(hft_is_asleep(loader.tid));
    hf_cancel_fire(cancel);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    assert_string_equal(loader.value->data, "content");
    assert_false(loader.value->stored);
    hf_value_free(loader.value);
    freeReplyObject(hft_server_ask(f->server, "CLIENT UNPAUSE"));
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS hf:fetch:{page}") == 0); /* at once, not when it ends */
    hf_client_stats(f->a, &stats);
    assert_int_equal(stats.lost, 0);
    hf_cancel_close(cancel);
}

/* Milliseconds are rounded, here and there. */
static void an_early_refresh_is_not_told_the_value_that_it_has(void **state)
{
    enum { READS = 100 };
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    for (int i = 0; i < READS; i++) /* with this `early` one in a hundred is served as it is */
        hf_value_free(must_fetch(f, f->a, HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 10, .stale_ms = 60000, .early = 1000)));
    print_message("%d loads of %d\n", page.loads, READS);
    assert_true(page.loads > READS * 8 / 10);
}

static void where_nothing_is_old_same_is_invalid(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .same = true}, none = {.data = "", .absent = true};
    hf_value *value;
    assert_int_equal(hf_fetch(f->a, "page", OLD(.arg = &page), &value, &f->error), HF_INVALID);
    assert_non_null(strstr(f->error.message, "there is none"));
    assert_string_equal(page.old, "-");
    value = must_fetch(f, f->a, OLD(.arg = &none, .negative_ttl_ms = 20));
    assert_true(value->absent);
    hf_value_free(value);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS hf:absent:{page}:hf:fetch:{page}") == 0);
    assert_int_equal(hf_fetch(f->a, "page", OLD(.arg = &page), &value, &f->error), HF_INVALID); /* "there is none" is no value */
    assert_string_equal(page.old, "-");
    assert_int_equal(sames(f->a), 0);
}

static void an_answer_is_given_once(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    expect(f, f->a, OLD(.arg = &page), HF_LOADED, "content");
    HFT_UNTIL_TRUE(is_old(f));
    page.same = page.twice = true;
    expect(f, f->a, OLD(.arg = &page), HF_LOADED, "content");
    assert_int_equal(page.second, HF_INVALID);
}

static void a_load_without_the_server_keeps_the_old_value_too(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    expect(f, f->a, HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 20), HF_LOADED, "content");
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS page") == 0);
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET min-replicas-to-write 1"));
    page.same = true;
    hf_value *value = must_fetch(f, f->a, HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 60000));
    assert_int_equal(value->source, HF_LOCAL);
    assert_string_equal(value->data, "content");
    assert_string_equal(page.old, "content");
    hf_value_free(value);
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET min-replicas-to-write 0"));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_still_good_gets_another_end_and_is_not_sent_again),
        TEST(the_waiters_get_it_too_and_it_is_what_was_seen_last),
        TEST(what_this_process_saw_last_helps_after_its_key_has_ended),
        TEST(what_has_gone_meanwhile_is_sent_again),
        TEST(what_memory_has_is_not_sent_again_either),
        TEST(what_was_replaced_before_its_load_is_not_what_goes_on),
        TEST(what_was_forgotten_meanwhile_is_not_stored),
        TEST(who_is_canceled_gives_the_lease_back_where_the_value_is_gone),
        TEST(an_early_refresh_is_not_told_the_value_that_it_has),
        TEST(where_nothing_is_old_same_is_invalid),
        TEST(an_answer_is_given_once),
        TEST(a_load_without_the_server_keeps_the_old_value_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
