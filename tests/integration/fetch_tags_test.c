/* SPDX-License-Identifier: MIT */
/* fetch_tags_test.c - values with tags, and what hf_fetch_forget_tag leaves of them: at the server, in a load under way, and in
 * this process. */
#include "tests/support/fds.h"
#include "tests/support/pages.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE(...) HF_FETCH(.load = hft_load, .arg = &page, __VA_ARGS__)

static hf_value *must_fetch(struct fixture *f, hf_client *client, const char *key, const hf_fetch_options *options)
{
    hf_value *value;
    if (hf_fetch(client, key, options, &value, &f->error) != HF_OK)
        fail_msg("%s: %s", hf_status_name(f->error.status), f->error.message);
    return value;
}

static void expect(struct fixture *f, hf_client *client, const char *key, const hf_fetch_options *options, hf_source source,
                   const char *data)
{
    hf_value *value = must_fetch(f, client, key, options);
    if (value->source != source)
        fail_msg("source %d of %s, not %d", (int)value->source, key, (int)source);
    assert_string_equal(value->data, data);
    hf_value_free(value);
}

static bool exists(struct fixture *f, const char *key)
{
    return hft_server_ask_integer(f->server, "EXISTS %s", key) == 1;
}

static size_t purge(struct fixture *f, hf_client *client, const char *tag)
{
    size_t forgotten = 99;
    if (hf_fetch_forget_tag(client, tag, &forgotten, &f->error) != HF_OK)
        fail_msg("%s: %s", hf_status_name(f->error.status), f->error.message);
    return forgotten;
}

static void the_values_of_a_tag_go_and_no_others(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "first", .tags = {"product:42", "shop", "product:42"}};
    expect(f, f->a, "one", PAGE(.ttl_ms = 60000), HF_LOADED, "first");
    expect(f, f->b, "two", PAGE(.ttl_ms = 90000), HF_LOADED, "first");
    page.tags[0] = "product:43";
    page.tags[2] = NULL;
    expect(f, f->b, "three", PAGE(.ttl_ms = 60000), HF_LOADED, "first");
    assert_int_equal(page.tagged, HF_OK); /* one named twice is one */
    assert_int_equal(hft_server_ask_integer(f->server, "ZCARD hf:tag:{product:42}"), 2);
    assert_in_range(hft_server_ask_integer(f->server, "PTTL hf:tag:{product:42}"), 80000, 90000);
    assert_in_range(hft_server_ask_integer(f->server, "PTTL hf:tag:{product:43}"), 50000, 60000);
    assert_int_equal(purge(f, f->b, "product:42"), 2);
    assert_false(exists(f, "one"));
    assert_false(exists(f, "two"));
    assert_true(exists(f, "three"));
    page.data = "second";
    expect(f, f->a, "one", PAGE(.ttl_ms = 60000), HF_LOADED, "second");
    expect(f, f->a, "three", PAGE(.ttl_ms = 60000), HF_CACHED, "first");
    assert_int_equal(purge(f, f->a, "shop"), 2); /* one, for the second time, and three */
    assert_int_equal(purge(f, f->a, "shop"), 0);
    assert_int_equal(purge(f, f->a, "nobody's"), 0);
    assert_int_equal(hf_fetch_forget_tag(f->a, "shop", NULL, NULL), HF_OK);
}

static void a_load_that_began_before_is_not_stored_and_its_waiters_load_anew(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "old", .stay = true, .tags = {"x"}}, newer = {.data = "new", .tags = {"x"}};
    struct hft_fetcher loader, here, there;
    hft_fetch(&loader, f->a, "page", PAGE(.ttl_ms = 60000));
    HFT_UNTIL_TRUE(page.inside == 1);
    const hf_fetch_options *later = HF_FETCH(.load = hft_load, .arg = &newer, .ttl_ms = 60000);
    hft_fetch(&here, f->a, "page", later);
    hft_fetch(&there, f->b, "page", later);
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "page") == 1 && hft_waiting_here(f->b, "page") == 1);
    assert_int_equal(purge(f, f->b, "x"), 0);
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    assert_int_equal(hft_fetched(&here), HF_OK);
    assert_int_equal(hft_fetched(&there), HF_OK);
    assert_int_equal(loader.value->source, HF_LOADED);
    assert_string_equal(loader.value->data, "old");
    assert_false(loader.value->stored);
    assert_string_equal(here.value->data, "new");
    assert_string_equal(there.value->data, "new");
    assert_int_equal(newer.loads, 1); /* theirs is stored, and shared */
    hf_value_free(loader.value);
    hf_value_free(here.value);
    hf_value_free(there.value);
    expect(f, f->a, "page", later, HF_CACHED, "new");
    assert_int_equal(purge(f, f->a, "x"), 1);
}

static void that_there_is_none_is_refused_likewise(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "", .absent = true, .stay = true, .tags = {"x"}};
    struct hft_fetcher loader;
    hft_fetch(&loader, f->a, "page", PAGE(.negative_ttl_ms = 60000));
    HFT_UNTIL_TRUE(page.inside == 1);
    (void)purge(f, f->a, "x");
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    assert_true(loader.value->absent);
    assert_false(loader.value->stored);
    hf_value_free(loader.value);
    page.absent = false;
    page.data = "new";
    expect(f, f->b, "page", PAGE(), HF_LOADED, "new");
}

/* However soon: no clock has to tell what came first. */
static void a_load_that_begins_after_it_is_stored(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .tags = {"x"}};
    int wrong = 0;
    for (int i = 0; i < 500; i++) {
        wrong += purge(f, i % 2 == 0 ? f->a : f->b, "x") != (i > 0);
        hf_value *value = must_fetch(f, f->a, "page", PAGE(.ttl_ms = 60000));
        wrong += value->source != HF_LOADED || !value->stored;
        hf_value_free(value);
    }
    assert_int_equal(wrong, 0);
}

static void what_is_still_good_goes_with_the_tags_that_were_named_again(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .tags = {"x"}};
    expect(f, f->a, "page", PAGE(.ttl_ms = 1, .stale_ms = 30000), HF_LOADED, "content");
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "PTTL page") < 30000);
    page.same = true;
    expect(f, f->b, "page", PAGE(.ttl_ms = 60000, .stale_ms = 30000), HF_LOADED, "content");
    assert_in_range(hft_server_ask_integer(f->server, "PTTL hf:tag:{x}"), 80000, 90000);
    assert_int_equal(purge(f, f->a, "x"), 1);
    assert_false(exists(f, "page"));
}

static void more_than_one_script_takes_go_as_well(void **state)
{
    enum { VALUES = 600 };
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .tags = {"x"}};
    char key[400];
    for (int i = 0; i < VALUES; i++) {
        (void)snprintf(key, sizeof key, "page%d", i);
        hf_value_free(must_fetch(f, f->a, key, PAGE(.ttl_ms = 60000)));
    }
    assert_int_equal(hft_server_ask_integer(f->server, "DBSIZE"), VALUES + 2); /* the tag, and the fence counter */
    int64_t before = hft_server_calls(f->server, "del");
    assert_int_equal(purge(f, f->a, "x"), VALUES);
    assert_int_equal(hft_server_calls(f->server, "del") - before, 3); /* scripts of 250 */
    assert_int_equal(hft_server_ask_integer(f->server, "DBSIZE"), 2);
    hf_client *small = hft_client(f->server, HF_CLIENT(.max_value_bytes = 100)); /* its lanes pass over longer replies */
    memset(key, 'k', sizeof key);
    for (int i = 0; i < VALUES; i++) {
        (void)snprintf(key + 380, 20, "%d", i);
        hf_value_free(must_fetch(f, small, key, PAGE(.ttl_ms = 60000)));
    }
    assert_int_equal(purge(f, small, "x"), VALUES);
    assert_int_equal(hf_client_close(small, NULL), HF_OK);
}

/* The index keeps it as long as it can be read, and 2 ms. */
static void until_over(struct fixture *f, const char *key)
{
    HFT_UNTIL_TRUE(!exists(f, key));
    int64_t gone_ms = hft_boottime_ms();
    HFT_UNTIL_TRUE(hft_boottime_ms() > gone_ms + 4);
}

static void nothing_of_a_tag_outlives_its_values(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .tags = {"x", "y", "{z}"}};
    hf_value_free(must_fetch(f, f->a, "short", PAGE(.ttl_ms = 30)));
    hf_value_free(must_fetch(f, f->a, "long", PAGE(.ttl_ms = 300)));
    assert_in_range(hft_server_ask_integer(f->server, "PTTL hf:tag::{z}"), 1, 300);
    until_over(f, "short");
    hf_value_free(must_fetch(f, f->a, "other", PAGE(.ttl_ms = 30)));
    assert_true(hft_server_ask_integer(f->server, "ZCARD hf:tag:{x}") <= 2); /* "short" has left */
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS hf:tag:{x} hf:tag:{y} hf:tag::{z}") == 0);
}

static void a_tag_that_is_another_programs_key_keeps_a_value_from_being_stored(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .tags = {"x", "y"}};
    size_t forgotten;
    freeReplyObject(hft_server_ask(f->server, "SET hf:tag:{y} theirs"));
    hf_value *value = must_fetch(f, f->a, "page", PAGE(.ttl_ms = 60000));
    assert_int_equal(value->source, HF_LOADED);
    assert_false(value->stored);
    hf_value_free(value);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS page hf:tag:{x} hf:fetch:{page}"), 0);
    assert_int_equal(hf_fetch_forget_tag(f->a, "y", &forgotten, &f->error), HF_FOREIGN);
    assert_non_null(strstr(f->error.message, "hf:tag:{y}"));
    assert_int_equal(forgotten, 0);
    redisReply *reply = hft_server_ask(f->server, "GET hf:tag:{y}");
    assert_string_equal(reply->str, "theirs");
    freeReplyObject(reply);
}

static void a_value_whose_tag_is_refused_is_not_stored(void **state)
{
    static const char *const nine[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
    struct fixture *f = *state;
    char longest[HF_NAME_MAX + 2];
    memset(longest, 't', sizeof longest);
    longest[HF_NAME_MAX + 1] = 0;
    const char *const wrong[] = {"", longest};
    struct hft_page page = {.data = "content"};
    for (int i = 0; i < 2; i++) {
        page.tags[0] = wrong[i];
        page.tagged = HF_OK;
        hf_value *value = must_fetch(f, f->a, "page", PAGE());
        assert_int_equal(page.tagged, HF_INVALID);
        assert_false(value->stored);
        hf_value_free(value);
        assert_int_equal(hf_fetch_forget_tag(f->a, wrong[i], NULL, &f->error), HF_INVALID);
        assert_non_null(strstr(f->error.message, "tag"));
    }
    assert_int_equal(hf_fetch_forget_tag(f->a, NULL, NULL, &f->error), HF_INVALID);
    memcpy(page.tags, nine, sizeof nine);
    page.tagged = HF_OK;
    hf_value *value = must_fetch(f, f->a, "page", PAGE());
    assert_int_equal(page.tagged, HF_LIMIT);
    assert_false(value->stored);
    hf_value_free(value);
    page.tags[8] = NULL;
    longest[HF_NAME_MAX] = 0;
    page.tags[7] = longest;
    page.tagged = HF_OK;
    value = must_fetch(f, f->a, "page", PAGE());
    assert_int_equal(page.tagged, HF_OK);
    assert_true(value->stored);
    hf_value_free(value);
    assert_int_equal(purge(f, f->a, longest), 1);
}

/* ---- this process ---- */

#define DOWN(page) HF_FETCH(.load = hft_load, .arg = &(page), .ttl_ms = 60000)

static void this_process_keeps_none_of_them_nor_what_the_index_has_dropped(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "old", .tags = {"x"}}, other = {.data = "other", .tags = {"y"}}, newer = {.data = "new"};
    expect(f, f->b, "page", PAGE(.ttl_ms = 60000), HF_LOADED, "old");
    expect(f, f->a, "page", PAGE(.ttl_ms = 60000), HF_CACHED, "old"); /* its tags are not known here */
    expect(f, f->a, "over", PAGE(.ttl_ms = 20), HF_LOADED, "old");
    expect(f, f->a, "other", HF_FETCH(.load = hft_load, .arg = &other, .ttl_ms = 60000), HF_LOADED, "other");
    until_over(f, "over");
    expect(f, f->b, "another", PAGE(.ttl_ms = 60000), HF_LOADED, "old"); /* drops "over" from the index */
    assert_int_equal(hft_server_ask_integer(f->server, "ZCARD hf:tag:{x}"), 2);
    assert_int_equal(purge(f, f->a, "x"), 2);
    hft_server_kill(f->server);
    expect(f, f->a, "other", DOWN(newer), HF_STALE, "other");
    expect(f, f->a, "page", DOWN(newer), HF_LOCAL, "new");
    expect(f, f->a, "over", DOWN(newer), HF_LOCAL, "new");
    hft_server_restart(f->server);
}

static void *purge_x(void *arg)
{
    struct hft_fetcher *me = arg;
    atomic_store(&me->tid, (int)gettid());
    me->status = hf_fetch_forget_tag(me->client, "x", NULL, &me->error);
    return NULL;
}

static void a_read_sent_before_it_is_not_kept_after_it(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "old", .tags = {"x"}}, newer = {.data = "new"};
    hf_client *client = hft_client(f->server, HF_CLIENT(.command_ms = 5000));
    struct hft_fetcher reader, purger = {.client = client};
    expect(f, f->b, "page", PAGE(.ttl_ms = 60000), HF_LOADED, "old");
    expect(f, client, "other", HF_FETCH(.load = hft_load, .arg = &newer), HF_LOADED, "new"); /* its lanes are up */
    hft_server_freeze(f->server);
    hft_fetch(&reader, client, "page", PAGE(.ttl_ms = 60000));
    HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&reader.tid)));
    (void)pthread_create(&purger.thread, NULL, purge_x, &purger);
    HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&purger.tid)));
    hft_server_thaw(f->server);
    assert_int_equal(hft_fetched(&reader), HF_OK);
    hf_value_free(reader.value);
    assert_int_equal(hft_fetched(&purger), HF_OK);
    hft_server_kill(f->server);
    expect(f, client, "page", DOWN(newer), HF_LOCAL, "new");
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    hft_server_restart(f->server);
}

static void without_an_answer_this_process_keeps_nothing(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "old", .tags = {"x"}}, newer = {.data = "new"};
    hf_client *client = hft_client(f->server, HF_CLIENT(.command_ms = 100, .lanes = 1));
    expect(f, client, "page", PAGE(.ttl_ms = 60000), HF_LOADED, "old");
    assert_int_equal(purge(f, client, "y"), 0); /* the server knows the script from here on */
    hft_server_freeze(f->server);
    assert_int_equal(hf_fetch_forget_tag(client, "x", NULL, &f->error), HF_UNKNOWN);
    hft_server_thaw(f->server);
    HFT_UNTIL_TRUE(!exists(f, "page")); /* it was executed all the same, and named nobody the keys */
    HFT_UNTIL_TRUE(hf_fetch_forget_tag(client, "x", NULL, NULL) == HF_OK); /* the second time, none are there */
    hft_server_kill(f->server);
    expect(f, client, "page", DOWN(newer), HF_LOCAL, "new");
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    hft_server_restart(f->server);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_values_of_a_tag_go_and_no_others),
        TEST(a_load_that_began_before_is_not_stored_and_its_waiters_load_anew),
        TEST(that_there_is_none_is_refused_likewise),
        TEST(a_load_that_begins_after_it_is_stored),
        TEST(what_is_still_good_goes_with_the_tags_that_were_named_again),
        TEST(more_than_one_script_takes_go_as_well),
        TEST(nothing_of_a_tag_outlives_its_values),
        TEST(a_tag_that_is_another_programs_key_keeps_a_value_from_being_stored),
        TEST(a_value_whose_tag_is_refused_is_not_stored),
        TEST(this_process_keeps_none_of_them_nor_what_the_index_has_dropped),
        TEST(a_read_sent_before_it_is_not_kept_after_it),
        TEST(without_an_answer_this_process_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
