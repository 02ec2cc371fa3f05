/* SPDX-License-Identifier: MIT */
/* fetch_trouble_test.c - hf_fetch when the server is away, the loading process dies, and values are large. */
#include "tests/support/fds.h"
#include "tests/support/pages.h"
#include "tests/support/proxy.h"
#include "tests/support/takers.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MEGABYTE = 1 << 20 };

struct fixture {
    struct hft_server *server;
    hf_client *a, *b;
    struct hft_page page;
    hf_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->server = hft_server_start(NULL);
    f->a = hft_client(f->server, HF_CLIENT(.command_ms = 500, .max_value_bytes = 4 * MEGABYTE));
    f->b = hft_client(f->server, HF_CLIENT(.command_ms = 500, .max_value_bytes = 4 * MEGABYTE));
    f->page.data = "content";
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (hft_server_pid(f->server) != 0)
        hft_server_thaw(f->server);
    atomic_store(&f->page.stay, false);
    (void)hf_client_close(f->a, NULL);
    (void)hf_client_close(f->b, NULL);
    hft_server_stop(f->server);
    free(f);
    return 0;
}

static hf_value *must_fetch(struct fixture *f, hf_client *client, const char *key, const hf_fetch_options *options)
{
    hf_value *value;
    memset(&f->error, 0, sizeof f->error);
    if (hf_fetch(client, key, options, &value, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
    assert_int_equal(f->error.message[0], 0); /* left as it was */
    return value;
}

static hf_source must_source(struct fixture *f, const char *key)
{
    hf_value *value = must_fetch(f, f->a, key, HF_FETCH(.load = hft_load, .arg = &f->page));
    hf_source source = value->source;
    hf_value_free(value);
    return source;
}

static void expect(struct fixture *f, const char *key, hf_source source, const char *data)
{
    hf_value *value = must_fetch(f, f->a, key, HF_FETCH(.load = hft_load, .arg = &f->page));
    if (value->source != source)
        fail_msg("source %d, not %d", (int)value->source, (int)source);
    assert_string_equal(value->data, data);
    hf_value_free(value);
}

static void without_a_server_last_seen_values_are_stale_and_others_are_loaded_once_here(void **state)
{
    enum { THREADS = 16 };
    struct fixture *f = *state;
    struct hft_fetcher all[THREADS];
    hf_value *value;
    expect(f, "seen", HF_LOADED, "content");
    hft_server_kill(f->server);
    expect(f, "seen", HF_STALE, "content");
    assert_int_equal(f->page.loads, 1);
    f->page.stay = true;
    for (int i = 0; i < THREADS; i++)
        hft_fetch(&all[i], f->a, "unseen", HF_FETCH(.load = hft_load, .arg = &f->page, .wait_ms = 20000));
    HFT_UNTIL_TRUE(f->page.inside == 1);
    for (int i = 0; i < THREADS; i++) /* for the load: the server is away. Who were late would be served STALE */
        HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&all[i].tid)));
    atomic_store(&f->page.stay, false);
    int local = 0, stale = 0;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(hft_fetched(&all[i]), HF_OK);
        assert_string_equal(all[i].value->data, "content");
        local += all[i].value->source == HF_LOCAL;
        stale += all[i].value->source == HF_STALE;
        assert_true(all[i].value->source != HF_LOCAL || !all[i].value->stored);
        hf_value_free(all[i].value);
    }
    assert_int_equal(f->page.loads, 2);
    assert_int_equal(f->page.overlaps, 0);
    assert_int_equal(local + stale, THREADS);
    assert_true(local > 0);
    assert_int_equal(hf_fetch(f->a, "never", HF_FETCH(.load = hft_load, .arg = &f->page, .when_down = HF_FAIL), &value,
                              &f->error),
                     HF_UNAVAILABLE);
    assert_int_equal(f->error.status, HF_UNAVAILABLE);
    assert_true(f->error.message[0] != 0);
    f->page.answer = HF_LOAD_FAILED;
    assert_int_equal(hf_fetch(f->a, "never", HF_FETCH(.load = hft_load, .arg = &f->page), &value, &f->error),
                     HF_LOAD_FAILED);
    f->page.answer = HF_OK;
    hft_server_restart(f->server);
    HFT_UNTIL_TRUE(hf_fetch(f->a, "later", HF_FETCH(.load = hft_load, .arg = &f->page), &value, NULL) == HF_OK &&
                   (value->source == HF_LOADED || (hf_fetch_forget(f->a, "later", NULL), hf_value_free(value), false)));
    assert_true(value->stored);
    hf_value_free(value);
}

static void a_frozen_server_costs_a_command_and_then_nothing_fails(void **state)
{
    struct fixture *f = *state;
    expect(f, "seen", HF_LOADED, "content");
    hft_server_freeze(f->server);
    for (int i = 0; i < 5; i++) {
        int64_t began_ms = hft_boottime_ms();
        expect(f, "seen", HF_STALE, "content");
        assert_true(hft_boottime_ms() - began_ms < 5000);
    }
    f->page.data = "local";
    expect(f, "unseen", HF_LOCAL, "local");
    hft_server_thaw(f->server);
    f->page.data = "after";
    for (;;) {
        hf_value *value = must_fetch(f, f->a, "after", HF_FETCH(.load = hft_load, .arg = &f->page));
        hf_source source = value->source;
        hf_value_free(value);
        if (source == HF_LOADED)
            break;
        assert_true(source == HF_LOCAL || source == HF_STALE);
    }
    while (must_source(f, "seen") == HF_STALE) /* its lane may still be dialling */
        ;
    expect(f, "seen", HF_CACHED, "content");
}

/* One loads without the server, and stays at it. */
static void begin_a_local_load(struct fixture *f, hf_client *client, struct hft_fetcher *loader)
{
    hft_server_kill(f->server);
    f->page.stay = true;
    hft_fetch(loader, client, "alone", HF_FETCH(.load = hft_load, .arg = &f->page));
    HFT_UNTIL_TRUE(f->page.inside == 1);
}

static void end_a_local_load(struct fixture *f, struct hft_fetcher *loader)
{
    atomic_store(&f->page.stay, false);
    assert_int_equal(hft_fetched(loader), HF_OK);
    assert_int_equal(loader->value->source, HF_LOCAL);
    hf_value_free(loader->value);
}

static void a_cancel_fired_before_the_wait_for_a_local_load_ends_it(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher loader, guest;
    hf_cancel *cancel;
    assert_int_equal(hf_cancel_open(f->a, &cancel, NULL), HF_OK);
    begin_a_local_load(f, f->a, &loader);
    hf_cancel_fire(cancel);
    hft_fetch(&guest, f->a, "alone", HF_FETCH(.load = hft_load, .arg = &f->page, .wait_ms = HF_FOREVER, .cancel = cancel));
    HFT_UNTIL_TRUE(atomic_load(&guest.done));
    assert_int_equal(hft_fetched(&guest), HF_CANCELED);
    hf_value *value;
    assert_int_equal(hf_fetch(f->a, "alone", HF_FETCH(.load = hft_load, .arg = &f->page, .wait_ms = 20), &value, &f->error),
                     HF_TIMEOUT);
    assert_string_equal(f->error.message, "\"alone\" was not loaded within wait_ms");
    hf_cancel_reset(cancel);
    hft_fetch(&guest, f->a, "alone", HF_FETCH(.load = hft_load, .arg = &f->page, .wait_ms = HF_FOREVER, .cancel = cancel));
    HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&guest.tid)));
    hf_cancel_fire(cancel);
    HFT_UNTIL_TRUE(atomic_load(&guest.done));
    assert_int_equal(hft_fetched(&guest), HF_CANCELED);
    end_a_local_load(f, &loader);
    assert_int_equal(f->page.loads, 1);
    hf_cancel_close(cancel);
}

static void *close_it(void *arg)
{
    (void)hf_client_close(arg, NULL);
    return NULL;
}

static void close_ends_the_wait_for_a_local_load_and_not_the_load(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher loader, guest;
    pthread_t closing;
    hf_client *client = hft_client(f->server, NULL);
    begin_a_local_load(f, client, &loader);
    hft_fetch(&guest, client, "alone", HF_FETCH(.load = hft_load, .arg = &f->page, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&guest.tid)));
    (void)pthread_create(&closing, NULL, close_it, client);
    HFT_UNTIL_TRUE(atomic_load(&guest.done));
    assert_int_equal(hft_fetched(&guest), HF_CLOSED);
    assert_false(atomic_load(&loader.done));
    end_a_local_load(f, &loader);
    (void)pthread_join(closing, NULL);
}

static void a_client_without_local_bytes_remembers_nothing(void **state)
{
    struct fixture *f = *state;
    hf_client *client = hft_client(f->server, HF_CLIENT(.local_bytes = HF_OFF, .command_ms = 300));
    hf_value *value = must_fetch(f, client, "seen", HF_FETCH(.load = hft_load, .arg = &f->page));
    hf_value_free(value);
    hft_server_kill(f->server);
    assert_int_equal(hf_fetch(client, "seen", HF_FETCH(.load = hft_load, .arg = &f->page, .when_down = HF_FAIL), &value,
                              NULL),
                     HF_UNAVAILABLE);
    value = must_fetch(f, client, "seen", HF_FETCH(.load = hft_load, .arg = &f->page));
    assert_int_equal(value->source, HF_LOCAL);
    hf_value_free(value);
    (void)hf_client_close(client, NULL);
}

static int load_for_ever(int from, int to, void *arg)
{
    struct hft_page page = {.data = "never"};
    struct hft_fetcher fetcher;
    char word;
    hf_client *client = hft_client(arg, NULL);
    page.stay = true;
    if (read(from, &word, 1) != 1)
        return 1;
    hft_fetch(&fetcher, client, "page", HF_FETCH(.load = hft_load, .arg = &page, .lease_ms = 500));
    while (page.inside == 0)
        (void)poll(NULL, 0, 1);
    if (write(to, "l", 1) != 1)
        return 2;
    return read(from, &word, 1) == 1 ? 3 : 4;
}

static void after_a_killed_loader_the_next_one_starts_by_itself(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct hft_process other;
    struct hft_fetcher fetcher;
    (void)state;
    f->server = hft_server_start(NULL);
    hft_process_start(&other, load_for_ever, f->server);
    f->a = hft_client(f->server, NULL);
    f->page.data = "ours";
    hft_process_tell(&other, 'g');
    assert_int_equal(hft_process_read(&other), 'l');
    hft_fetch(&fetcher, f->a, "page", HF_FETCH(.load = hft_load, .arg = &f->page, .wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS hf:queue:{page}:hf:fetch:{page}") == 1);
    hft_process_kill(&other);
    int64_t killed_ms = hft_boottime_ms();
    HFT_UNTIL_TRUE(f->page.loads == 1);
    int64_t took_ms = hft_boottime_ms() - killed_ms;
    print_message("the next load began %lld ms after the kill\n", (long long)took_ms);
    assert_true(took_ms < 500 + 11 + 3 + 250 + 1000);
    assert_int_equal(hft_fetched(&fetcher), HF_OK);
    assert_string_equal(fetcher.value->data, "ours");
    hf_value_free(fetcher.value);
    assert_int_equal(hf_client_close(f->a, NULL), HF_OK);
    hft_server_stop(f->server);
    free(f);
}

static void a_megabyte_is_a_value_and_too_much_is_given_but_not_stored(void **state)
{
    struct fixture *f = *state;
    char *data = malloc(5 * MEGABYTE);
    for (int i = 0; i < 5 * MEGABYTE; i++)
        data[i] = (char)(i * 7 + i / 251);
    f->page.data = data;
    f->page.size = MEGABYTE;
    for (int i = 0; i < 3; i++) {
        hf_value *value = must_fetch(f, i == 1 ? f->b : f->a, "large", HF_FETCH(.load = hft_load, .arg = &f->page));
        assert_int_equal(value->size, MEGABYTE);
        assert_memory_equal(value->data, data, MEGABYTE);
        assert_int_equal(((const char *)value->data)[MEGABYTE], 0);
        assert_int_equal(value->source, i == 0 ? HF_LOADED : HF_CACHED);
        assert_true(value->stored);
        hf_value_free(value);
    }
    f->page.size = 5 * MEGABYTE;
    hf_value *value = must_fetch(f, f->a, "too large", HF_FETCH(.load = hft_load, .arg = &f->page));
    assert_int_equal(value->size, 5 * MEGABYTE);
    assert_memory_equal(value->data, data, 5 * MEGABYTE);
    assert_false(value->stored);
    hf_value_free(value);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS %s", "toolarge"), 0);
    assert_int_equal(hft_lock_keys(f->server), 1);
    free(data);
}

static void a_too_large_value_of_another_program_is_a_limit_error(void **state)
{
    struct fixture *f = *state;
    hf_value *value;
    hf_client *small = hft_client(f->server, HF_CLIENT(.max_value_bytes = 100000));
    freeReplyObject(hft_server_ask(f->server, "SETRANGE foreign 200000 x"));
    hf_status status = hf_fetch(small, "foreign", HF_FETCH(.load = hft_load, .arg = &f->page), &value, &f->error);
    if (status != HF_LIMIT)
        fail_msg("%s %s", hf_status_name(status), status != HF_OK ? f->error.message : "");
    assert_non_null(strstr(f->error.hint, "max_value_bytes"));
    assert_int_equal(hf_client_close(small, NULL), HF_OK);
}

static void a_key_of_another_type_is_foreign(void **state)
{
    struct fixture *f = *state;
    hf_value *value;
    freeReplyObject(hft_server_ask(f->server, "RPUSH list x"));
    for (int i = 0; i < 2; i++)
        assert_int_equal(hf_fetch(f->a, "list", HF_FETCH(.load = hft_load, .arg = &f->page), &value, &f->error), HF_FOREIGN);
    assert_int_equal(hft_server_ask_integer(f->server, "LLEN list"), 1);
    assert_int_equal(hft_lock_keys(f->server), 1);
}

static void an_absent_mark_of_another_type_is_named_and_marks_nothing(void **state)
{
    struct fixture *f = *state;
    hf_value *value;
    freeReplyObject(hft_server_ask(f->server, "RPUSH hf:absent:{page}:hf:fetch:{page} x"));
    assert_int_equal(hf_fetch(f->a, "page", HF_FETCH(.load = hft_load, .arg = &f->page), &value, &f->error), HF_FOREIGN);
    assert_non_null(strstr(f->error.message, "hf:absent:{page}"));
    assert_int_equal(hft_lock_keys(f->server), 1);
}

static void a_queue_of_another_type_hinders_no_load(void **state)
{
    struct fixture *f = *state;
    freeReplyObject(hft_server_ask(f->server, "RPUSH hf:queue:{page}:hf:fetch:{page} x"));
    hf_value *value = must_fetch(f, f->a, "page", HF_FETCH(.load = hft_load, .arg = &f->page));
    assert_true(value->stored);
    hf_value_free(value);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS hf:fetch:{page}"), 0);
    assert_int_equal(hf_fetch_forget(f->a, "page", &f->error), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 1);
}

static void a_value_outlives_its_client(void **state)
{
    struct fixture *f = *state;
    hf_client *client = hft_client(f->server, NULL);
    hf_value *value = must_fetch(f, client, "page", HF_FETCH(.load = hft_load, .arg = &f->page));
    hf_value *again = must_fetch(f, client, "page", HF_FETCH(.load = hft_load, .arg = &f->page));
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    assert_string_equal(value->data, "content");
    assert_string_equal(again->data, "content");
    hf_value_free(value);
    hf_value_free(again);
}

struct busy {
    pthread_t thread;
    hf_client *client;
    _Atomic(bool) ends;
    int fetched, wrong;
    struct hft_page page;
};

static void *fetch_megabytes(void *arg)
{
    struct busy *busy = arg;
    while (!atomic_load(&busy->ends)) {
        hf_value *value;
        if (hf_fetch(busy->client, "heavy", HF_FETCH(.load = hft_load, .arg = &busy->page), &value, NULL) != HF_OK) {
            busy->wrong++;
            continue;
        }
        busy->wrong += value->size != MEGABYTE;
        busy->fetched++;
        hf_value_free(value);
    }
    return NULL;
}

static void locks_go_on_while_megabytes_come_in(void **state)
{
    struct fixture *f = *state;
    struct busy busy = {.client = f->a};
    char *data = calloc(1, MEGABYTE);
    busy.page.data = data;
    busy.page.size = MEGABYTE;
    (void)pthread_create(&busy.thread, NULL, fetch_megabytes, &busy);
    for (int i = 0; i < 200; i++) {
        hf_lease *lease;
        assert_int_equal(hf_lock_acquire(f->a, "light", HF_LOCK(.wait_ms = 20000), &lease, &f->error), HF_OK);
        assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    }
    atomic_store(&busy.ends, true);
    (void)pthread_join(busy.thread, NULL);
    free(data);
    assert_int_equal(busy.wrong, 0);
    assert_true(busy.fetched > 0);
    assert_int_equal(busy.page.loads, 1);
}

static hf_status fetch_more(hf_loading *loading, void *arg)
{
    struct fixture *f = arg;
    hf_value *value;
    if (hf_fetch(f->a, hf_loading_key(loading), HF_FETCH(.load = hft_load, .arg = &f->page), &value, NULL) != HF_DEADLOCK)
        return hf_loading_fail(loading, 0, "the same key was no deadlock");
    if (hf_fetch(f->a, "part", HF_FETCH(.load = hft_load, .arg = &f->page), &value, NULL) != HF_OK)
        return hf_loading_fail(loading, 0, "another key failed");
    bool holds = hf_lease_is_valid(hf_loading_lease(loading)) && hf_lease_fence(hf_loading_lease(loading)) > 0;
    hf_status status = holds ? hf_loading_set(loading, value->data, value->size) : hf_loading_fail(loading, 0, "no lease");
    hf_value_free(value);
    return status;
}

static void a_loader_may_fetch_other_keys_but_not_its_own(void **state)
{
    struct fixture *f = *state;
    hf_value *value = must_fetch(f, f->a, "whole", HF_FETCH(.load = fetch_more, .arg = f));
    assert_string_equal(value->data, "content");
    hf_value_free(value);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS part whole"), 2);
}

/* The answer to the first question of the key comes so late that a message grants the lease before it. */
static void judge(const struct hft_request *request, struct hft_judgement *judgement, void *arg)
{
    static const char key[] = "hf:fetch:{page}";
    _Atomic(bool) *asked = arg;
    bool asks = hft_request_is(request, "EVALSHA", NULL) && request->words > 3 && request->size[3] == sizeof key - 1 &&
                memcmp(request->word[3], key, sizeof key - 1) == 0;
    if (!asks || atomic_exchange(asked, true))
        return;
    judgement->sentence = HFT_LATE_REPLY;
    judgement->delay_ns = 2000 * INT64_C(1000000);
}

/* It may be executed after a break, and take the key by the same token again; then what was loaded before the break would be stored. */
static void what_is_loaded_while_a_question_has_no_answer_is_given_out_but_not_stored(void **state)
{
    struct fixture *f = *state;
    struct hft_proxy *proxy = hft_proxy_start(f->server);
    hf_client *late = hft_client_at(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 10000, .close_ms = 10000));
    struct hft_page other = {.data = "other"};
    struct hft_fetcher holder, waiter;
    _Atomic(bool) asked = false;
    f->page.stay = true;
    f->page.answer = HF_LOAD_FAILED;
    hft_fetch(&holder, f->b, "page", HF_FETCH(.load = hft_load, .arg = &f->page));
    HFT_UNTIL_TRUE(f->page.inside == 1);
    hft_proxy_judge(proxy, judge, &asked);
    hft_fetch(&waiter, late, "page", HF_FETCH(.load = hft_load, .arg = &other));
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "ZCARD hf:queue:{page}:hf:fetch:{page}") == 1);
    atomic_store(&f->page.stay, false);
    assert_int_equal(hft_fetched(&holder), HF_LOAD_FAILED);

    assert_int_equal(hft_fetched(&waiter), HF_OK);
    assert_int_equal(waiter.value->source, HF_LOADED);
    assert_string_equal(waiter.value->data, "other");
    assert_false(waiter.value->stored);
    hf_value_free(waiter.value);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS page"), 0);
    f->page.answer = HF_OK;
    expect(f, "page", HF_LOADED, "content"); /* the lease was given back */
    assert_int_equal(hf_client_close(late, NULL), HF_OK);
    hft_proxy_stop(proxy);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(without_a_server_last_seen_values_are_stale_and_others_are_loaded_once_here),
        TEST(a_frozen_server_costs_a_command_and_then_nothing_fails),
        TEST(a_cancel_fired_before_the_wait_for_a_local_load_ends_it),
        TEST(close_ends_the_wait_for_a_local_load_and_not_the_load),
        TEST(a_client_without_local_bytes_remembers_nothing),
        cmocka_unit_test(after_a_killed_loader_the_next_one_starts_by_itself),
        TEST(a_megabyte_is_a_value_and_too_much_is_given_but_not_stored),
        TEST(a_too_large_value_of_another_program_is_a_limit_error),
        TEST(a_key_of_another_type_is_foreign),
        TEST(an_absent_mark_of_another_type_is_named_and_marks_nothing),
        TEST(a_queue_of_another_type_hinders_no_load),
        TEST(a_value_outlives_its_client),
        TEST(locks_go_on_while_megabytes_come_in),
        TEST(a_loader_may_fetch_other_keys_but_not_its_own),
        TEST(what_is_loaded_while_a_question_has_no_answer_is_given_out_but_not_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
