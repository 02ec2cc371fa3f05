/* SPDX-License-Identifier: MIT */
/* fetch_test.c - hf_fetch: one load for many callers, and what they get when the value is old, absent or failing, or
 * the server is away. */
#include "tests/support/fds.h"
#include "tests/support/pages.h"
#include "tests/support/takers.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct hft_server *server;
    hf_client *a, *b, *c;
    struct hft_page page;
    hf_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->server = hft_server_start(NULL);
    f->a = hft_client(f->server, HF_CLIENT(.command_ms = 5000, .max_value_bytes = 4 << 20));
    f->b = hft_client(f->server, HF_CLIENT(.command_ms = 5000, .max_value_bytes = 4 << 20));
    f->c = hft_client(f->server, NULL);
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
    (void)hf_client_close(f->c, NULL);
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

/* Fetches, expects this, frees. */
static void expect(struct fixture *f, hf_client *client, const hf_fetch_options *options, hf_source source, const char *data)
{
    hf_value *value = must_fetch(f, client, "page", options);
    if (value->source != source)
        fail_msg("source %d, not %d", (int)value->source, (int)source);
    assert_string_equal(value->data, data);
    assert_int_equal(value->size, strlen(data));
    assert_false(value->absent);
    hf_value_free(value);
}

#define PAGE(...) HF_FETCH(.load = hft_load, .arg = &f->page, __VA_ARGS__)

static void the_first_loads_the_rest_are_served_and_the_key_holds_the_plain_value(void **state)
{
    struct fixture *f = *state;
    expect(f, f->a, PAGE(.ttl_ms = 60000), HF_LOADED, "content");
    f->page.data = "another";
    expect(f, f->a, PAGE(.ttl_ms = 60000), HF_CACHED, "content");
    expect(f, f->b, PAGE(.ttl_ms = 60000), HF_CACHED, "content");
    assert_int_equal(f->page.loads, 1);
    redisReply *reply = hft_server_ask(f->server, "GET page");
    assert_string_equal(reply->str, "content");
    freeReplyObject(reply);
    assert_in_range(hft_server_ask_integer(f->server, "PTTL page"), 50000, 60000);
    hf_value *value = must_fetch(f, f->b, "page", PAGE(.ttl_ms = 60000));
    assert_true(value->stored);
    assert_in_range(value->fresh_ms, 50000, 60000);
    hf_value_free(value);
    hf_value_free(NULL);
    assert_int_equal(hft_lock_keys(f->server), 1);
}

static void another_value_of_the_same_size_is_another(void **state)
{
    struct fixture *f = *state;
    hf_stats stats;
    expect(f, f->a, PAGE(.ttl_ms = 60000), HF_LOADED, "content");
    hf_value *kept = must_fetch(f, f->b, "page", PAGE(.ttl_ms = 60000));
    expect(f, f->b, PAGE(.ttl_ms = 60000), HF_CACHED, "content"); /* the same bytes, the end not asked for */
    freeReplyObject(hft_server_ask(f->server, "SET page CONTENT KEEPTTL"));
    expect(f, f->b, PAGE(.ttl_ms = 60000), HF_CACHED, "CONTENT");
    expect(f, f->b, PAGE(.ttl_ms = 60000), HF_CACHED, "CONTENT");
    freeReplyObject(hft_server_ask(f->server, "SET page 5"));
    expect(f, f->b, PAGE(.ttl_ms = 60000), HF_CACHED, "5");
    assert_string_equal(kept->data, "content");
    hf_value_free(kept);
    hf_client_stats(f->b, &stats);
    assert_int_equal(stats.hits, 5);
    assert_int_equal(stats.acquired, 0);
}

static void of_64_threads_in_each_of_three_clients_one_loads(void **state)
{
    enum { THREADS = 64 };
    struct fixture *f = *state;
    hf_client *clients[] = {f->a, f->b, f->c};
    struct hft_fetcher *all = calloc(3 * THREADS, sizeof *all);
    int counts[HF_LOCAL + 1] = {0}, wrong = 0;
    f->page.stay = true;
    for (int i = 0; i < 3 * THREADS; i++)
        hft_fetch(&all[i], clients[i % 3], "page", PAGE(.wait_ms = 20000));
    HFT_UNTIL_TRUE(f->page.inside == 1);
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "page") + hft_waiting_here(f->b, "page") + hft_waiting_here(f->c, "page") ==
                   3 * THREADS - 1);
    atomic_store(&f->page.stay, false);
    for (int i = 0; i < 3 * THREADS; i++) {
        wrong += hft_fetched(&all[i]) != HF_OK || all[i].value->size != 7 || memcmp(all[i].value->data, "content", 8) != 0;
        if (all[i].status == HF_OK)
            counts[all[i].value->source]++;
        hf_value_free(all[i].value);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(f->page.loads, 1);
    assert_int_equal(counts[HF_LOADED], 1);
    assert_int_equal(counts[HF_STALE] + counts[HF_LOCAL], 0);
    assert_true(counts[HF_SHARED] >= THREADS - 1); /* those of the loading client got it from the thread itself */
    assert_int_equal(hft_lock_keys(f->server), 1);
    free(all);
}

static void an_old_value_is_served_while_one_caller_reloads(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher reloading;
    hf_value *value;
    freeReplyObject(hft_server_ask(f->server, "SET page content PX 30000")); /* 30 s of its 60 s in old age are over */
    int before = f->page.loads;
    f->page.data = "renewed";
    f->page.stay = true;
    hft_fetch(&reloading, f->a, "page", PAGE(.ttl_ms = 100000, .stale_ms = 60000));
    HFT_UNTIL_TRUE(f->page.inside == 1);
    expect(f, f->a, PAGE(.ttl_ms = 100000, .stale_ms = 60000), HF_STALE, "content");
    value = must_fetch(f, f->b, "page", PAGE(.ttl_ms = 100000, .stale_ms = 60000));
    assert_int_equal(value->source, HF_STALE);
    assert_in_range(-value->fresh_ms, 25000, 45000);
    hf_value_free(value);
    atomic_store(&f->page.stay, false);
    assert_int_equal(hft_fetched(&reloading), HF_OK);
    assert_int_equal(reloading.value->source, HF_LOADED);
    hf_value_free(reloading.value);
    assert_int_equal(f->page.loads, before + 1);
    expect(f, f->b, PAGE(.ttl_ms = 100000, .stale_ms = 60000), HF_CACHED, "renewed");
    assert_in_range(hft_server_ask_integer(f->server, "PTTL page"), 150000, 160000);
    /* A reload that fails is no failure as long as there is something. */
    freeReplyObject(hft_server_ask(f->server, "SET page older PX 30000"));
    f->page.answer = HF_LOAD_FAILED;
    expect(f, f->c, PAGE(.ttl_ms = 100000, .stale_ms = 60000), HF_STALE, "older");
    assert_int_equal(f->page.loads, before + 2);
}

static void early_refresh_loads_before_the_end(void **state)
{
    struct fixture *f = *state;
    expect(f, f->a, PAGE(.ttl_ms = 60000), HF_LOADED, "content");
    expect(f, f->a, PAGE(.ttl_ms = 60000, .early = 1.0), HF_CACHED, "content"); /* a load took 1 ms */
    int64_t begun_ms = hft_boottime_ms();
    while (f->page.loads == 1 && hft_boottime_ms() - begun_ms < 20000) {
        hf_value *value = must_fetch(f, f->a, "page", PAGE(.ttl_ms = 60000, .early = 1000.0));
        assert_true(value->source == HF_CACHED || value->source == HF_LOADED);
        hf_value_free(value);
        freeReplyObject(hft_server_ask(f->server, "PEXPIRE page 400"));
    }
    assert_true(f->page.loads > 1);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS page"), 1);
}

/* A process that has loaded nothing knows no load time, and one that keeps no values forgets it. */
static void early_refresh_works_in_processes_that_only_read(void **state)
{
    struct fixture *f = *state;
    hf_client *readers[] = {f->b, hft_client(f->server, HF_CLIENT(.local_bytes = HF_OFF))};
    expect(f, f->a, PAGE(.ttl_ms = 60000), HF_LOADED, "content");
    for (int i = 0; i < 2; i++) {
        int before = f->page.loads;
        int64_t begun_ms = hft_boottime_ms();
        while (f->page.loads == before && hft_boottime_ms() - begun_ms < 5000) {
            hf_value *value = must_fetch(f, readers[i], "page", PAGE(.ttl_ms = 60000, .early = 1000.0));
            assert_true(value->source == HF_CACHED || value->source == HF_LOADED);
            hf_value_free(value);
            freeReplyObject(hft_server_ask(f->server, "PEXPIRE page 400"));
        }
        assert_true(f->page.loads > before);
        assert_int_equal(hft_server_ask_integer(f->server, "EXISTS page"), 1);
    }
    assert_int_equal(hf_client_close(readers[1], NULL), HF_OK);
}

static void that_there_is_none_is_remembered_if_asked_for(void **state)
{
    struct fixture *f = *state;
    f->page.absent = true;
    for (int i = 0; i < 3; i++) {
        hf_value *value = must_fetch(f, i == 1 ? f->b : f->a, "page", PAGE(.negative_ttl_ms = 60000));
        assert_true(value->absent);
        assert_null(value->data);
        assert_int_equal(value->size, 0);
        assert_int_equal(value->source, i == 0 ? HF_LOADED : HF_CACHED);
        hf_value_free(value);
    }
    assert_int_equal(f->page.loads, 1);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS page"), 0);
    for (int i = 0; i < 2; i++)
        hf_value_free(must_fetch(f, f->a, "other", PAGE(.ttl_ms = 1000)));
    assert_int_equal(f->page.loads, 3);
    assert_int_equal(hf_fetch_forget(f->a, "page", NULL), HF_OK);
    f->page.absent = false;
    expect(f, f->b, PAGE(.negative_ttl_ms = 60000), HF_LOADED, "content");
    expect(f, f->a, PAGE(.negative_ttl_ms = 60000), HF_CACHED, "content");
}

static void a_failure_is_told_to_the_waiters_here_and_the_next_client_tries(void **state)
{
    enum { LOCAL = 5 };
    struct fixture *f = *state;
    struct hft_page theirs = {.data = "theirs"};
    struct hft_fetcher first, local[LOCAL], remote;
    f->page.stay = true;
    f->page.answer = HF_LOAD_FAILED;
    hft_fetch(&first, f->a, "page", PAGE(.wait_ms = 20000));
    HFT_UNTIL_TRUE(f->page.inside == 1);
    for (int i = 0; i < LOCAL; i++)
        hft_fetch(&local[i], f->a, "page", PAGE(.wait_ms = 20000));
    hft_fetch(&remote, f->b, "page", HF_FETCH(.load = hft_load, .arg = &theirs, .wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS hf:queue:{page}:hf:fetch:{page}") == 1);
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "page") == LOCAL);
    atomic_store(&f->page.stay, false);
    assert_int_equal(hft_fetched(&first), HF_LOAD_FAILED);
    assert_non_null(strstr(first.error.message, "the origin is closed"));
    assert_int_equal(first.error.os_errno, ENOENT);
    for (int i = 0; i < LOCAL; i++) {
        assert_int_equal(hft_fetched(&local[i]), HF_LOAD_FAILED);
        assert_non_null(strstr(local[i].error.message, "the origin is closed"));
        assert_int_equal(local[i].error.os_errno, ENOENT);
    }
    assert_int_equal(f->page.loads, 1);
    assert_int_equal(hft_fetched(&remote), HF_OK);
    assert_int_equal(remote.value->source, HF_LOADED);
    hf_value_free(remote.value);
    assert_int_equal(theirs.loads, 1);
}

/* Keys as long as URLs: a fetch waits for one, gets its message, forgets it and is canceled as with a short key. */
/* Its bytes are not those whose end is known. */
static void what_another_program_has_put_there_is_judged_by_its_own_end(void **state)
{
    struct fixture *f = *state;
    hf_value *value;
    assert_int_equal(hf_fetch(f->a, "page", PAGE(.ttl_ms = 60000), &value, &f->error), HF_OK);
    hf_value_free(value);
    freeReplyObject(hft_server_ask(f->server, "SET page theirs PX 30000"));
    assert_int_equal(hf_fetch(f->a, "page", PAGE(.ttl_ms = 60000), &value, &f->error), HF_OK);
    assert_int_equal(value->source, HF_CACHED);
    assert_in_range(value->fresh_ms, 1, 30000);
    hf_value_free(value);
    freeReplyObject(hft_server_ask(f->server, "SET page older PX 20000"));
    assert_int_equal(hf_fetch(f->a, "page", PAGE(.ttl_ms = 60000, .stale_ms = 40000), &value, &f->error), HF_OK);
    assert_int_equal(value->source, HF_LOADED);
    hf_value_free(value);
}

static void a_key_may_be_as_long_as_a_page(void **state)
{
    struct fixture *f = *state;
    struct hft_page theirs = {.data = "theirs"};
    struct hft_fetcher first, remote;
    char key[HF_KEY_MAX + 2];
    hf_value *value;
    memset(key, 'k', sizeof key);
    key[HF_KEY_MAX] = 0;
    f->page.stay = true;
    hft_fetch(&first, f->a, key, PAGE(.wait_ms = 20000, .lease_ms = 900));
    HFT_UNTIL_TRUE(f->page.inside == 1);
    hft_fetch(&remote, f->b, key, HF_FETCH(.load = hft_load, .arg = &theirs, .wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS hf:queue:{%s}:hf:fetch:{%s}", key, key) == 1);
    HFT_WHILE_RENEWED(f->a, 2, !atomic_load(&remote.done));
    atomic_store(&f->page.stay, false);
    assert_int_equal(hft_fetched(&first), HF_OK);
    assert_int_equal(first.value->source, HF_LOADED);
    assert_true(first.value->stored);
    hf_value_free(first.value);
    assert_int_equal(hft_fetched(&remote), HF_OK);
    assert_int_equal(remote.value->source, HF_CACHED);
    hf_value_free(remote.value);
    assert_int_equal(hf_fetch_forget(f->b, key, NULL), HF_OK);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS %s", key), 0);
    key[HF_KEY_MAX] = 'k';
    key[HF_KEY_MAX + 1] = 0;
    assert_int_equal(hf_fetch(f->a, key, PAGE(.wait_ms = HF_OFF), &value, &f->error), HF_INVALID);
    assert_non_null(strstr(f->error.message, "4096"));
}

static void answers_of_a_loader_are_checked(void **state)
{
    struct fixture *f = *state;
    hf_value *value;
    f->page.nothing = true;
    assert_int_equal(hf_fetch(f->a, "page", PAGE(.ttl_ms = 1000), &value, &f->error), HF_LOAD_FAILED);
    assert_non_null(strstr(f->error.message, "gave no value"));
    f->page.nothing = false;
    f->page.answer = HF_BUSY;
    assert_int_equal(hf_fetch(f->a, "page", PAGE(.ttl_ms = 1000), &value, &f->error), HF_LOAD_FAILED);
    f->page.answer = HF_OK;
    f->page.twice = true;
    expect(f, f->a, PAGE(.ttl_ms = 1000), HF_LOADED, "content");
    assert_int_equal(f->page.second, HF_INVALID);
    f->page.twice = false;
    f->page.give = true;
    assert_int_equal(hf_fetch_forget(f->a, "page", NULL), HF_OK);
    expect(f, f->a, PAGE(.ttl_ms = 1000), HF_LOADED, "content");
    f->page.ttl_ms = HF_OFF;
    value = must_fetch(f, f->a, "unstored", PAGE(.ttl_ms = 1000));
    assert_false(value->stored);
    hf_value_free(value);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS unstored"), 0);
    f->page.ttl_ms = 7000;
    value = must_fetch(f, f->a, "short", PAGE(.ttl_ms = 100000));
    assert_in_range(value->fresh_ms, 6000, 7000);
    hf_value_free(value);
    assert_in_range(hft_server_ask_integer(f->server, "PTTL short"), 6000, 7000);
    assert_int_equal(hf_fetch(f->a, "page", HF_FETCH(.ttl_ms = 5), &value, &f->error), HF_INVALID);
    assert_non_null(strstr(f->error.message, "load"));
    assert_int_equal(hf_fetch(f->a, "", PAGE(.ttl_ms = 5), &value, &f->error), HF_INVALID);
    assert_int_equal(hf_fetch(f->a, "x", PAGE(.early = -1), &value, &f->error), HF_INVALID);
    assert_int_equal(hf_fetch(f->a, "x", PAGE(.wait_ms = -3), &value, &f->error), HF_INVALID);
}

static void waiting_for_others_has_an_end(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher first, second;
    hf_value *value;
    f->page.stay = true;
    hft_fetch(&first, f->a, "page", PAGE(.wait_ms = 20000));
    HFT_UNTIL_TRUE(f->page.inside == 1);
    hf_client *clients[] = {f->a, f->b};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hf_fetch(clients[i], "page", PAGE(.wait_ms = HF_OFF), &value, &f->error), HF_BUSY);
        assert_null(value);
        assert_int_equal(hf_fetch(clients[i], "page", PAGE(.wait_ms = 50), &value, &f->error), HF_TIMEOUT);
        hf_cancel *cancel;
        assert_int_equal(hf_cancel_open(clients[i], &cancel, NULL), HF_OK);
        hft_fetch(&second, clients[i], "page", PAGE(.wait_ms = HF_FOREVER, .cancel = cancel));
        HFT_UNTIL_TRUE(hft_waiting_here(clients[i], "page") == 1);
        hf_cancel_fire(cancel);
        assert_int_equal(hft_fetched(&second), HF_CANCELED);
        hf_cancel_close(cancel);
    }
    atomic_store(&f->page.stay, false);
    assert_int_equal(hft_fetched(&first), HF_OK);
    hf_value_free(first.value);
    assert_int_equal(f->page.loads, 1);
}

static void forgetting_during_a_load_keeps_it_from_being_stored(void **state)
{
    struct fixture *f = *state;
    hf_value *value;
    expect(f, f->a, PAGE(.ttl_ms = 60000), HF_LOADED, "content");
    assert_int_equal(hf_fetch_forget(f->b, "page", NULL), HF_OK);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS page"), 0);
    f->page.forgets = f->b;
    f->page.data = "outdated";
    value = must_fetch(f, f->a, "page", PAGE(.ttl_ms = 60000));
    assert_int_equal(f->page.forgot, HF_OK);
    assert_int_equal(value->source, HF_LOADED);
    assert_false(value->stored);
    hf_value_free(value);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS page"), 0);
    f->page.forgets = NULL;
    f->page.data = "new";
    expect(f, f->c, PAGE(.ttl_ms = 60000), HF_LOADED, "new");
}

static void *forget_page(void *arg)
{
    struct hft_fetcher *me = arg;
    atomic_store(&me->tid, (int)gettid());
    me->status = hf_fetch_forget(me->client, "page", &me->error);
    return NULL;
}

static void a_read_sent_before_a_forget_is_not_kept_after_it(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher reader, forgetter = {.client = f->a};
    expect(f, f->b, PAGE(), HF_LOADED, "content");
    hft_server_freeze(f->server);
    hft_fetch(&reader, f->a, "page", PAGE());
    HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&reader.tid)));
    (void)pthread_create(&forgetter.thread, NULL, forget_page, &forgetter);
    HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&forgetter.tid)));
    hft_server_thaw(f->server);
    assert_int_equal(hft_fetched(&reader), HF_OK);
    hf_value_free(reader.value);
    assert_int_equal(hft_fetched(&forgetter), HF_OK);
    hft_server_kill(f->server);
    f->page.data = "new";
    expect(f, f->a, PAGE(), HF_LOCAL, "new");
}

static void under_a_template_the_keys_of_locks_are_no_pages(void **state)
{
    struct fixture *f = *state;
    hf_client *client = hft_client(f->server, HF_CLIENT(.key_template = "%s:lock"));
    hf_lease *lease, *other;
    hf_value *value;
    assert_int_equal(hf_lock_acquire(client, "a", NULL, &lease, &f->error), HF_OK);
    assert_int_equal(hf_fetch(client, "a:lock", PAGE(.stale_ms = 60000), &value, &f->error), HF_INVALID);
    assert_non_null(strstr(f->error.message, "a:lock"));
    assert_int_equal(hf_fetch_forget(client, "a:lock", &f->error), HF_INVALID);
    assert_int_equal(hf_lock_acquire(client, "a", HF_LOCK(.wait_ms = 1), &other, NULL), HF_DEADLOCK);
    assert_int_equal(hf_lease_verify(lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(f->page.loads, 0);
    value = must_fetch(f, client, ":lock", PAGE(.ttl_ms = 60000)); /* a lock has a name */
    hf_value_free(value);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_hung_loader_loses_its_lease_and_is_not_stored(void **state)
{
    struct fixture *f = *state;
    struct hft_page theirs = {.data = "theirs"};
    struct hft_fetcher hung;
    f->page.stay = true;
    hft_fetch(&hung, f->a, "page", PAGE(.max_load_ms = 100, .lease_ms = 400, .wait_ms = 20000));
    HFT_UNTIL_TRUE(f->page.inside == 1);
    expect(f, f->b, HF_FETCH(.load = hft_load, .arg = &theirs, .wait_ms = 20000), HF_LOADED, "theirs");
    HFT_UNTIL_TRUE(atomic_load(&f->page.unwanted));
    atomic_store(&f->page.stay, false);
    assert_int_equal(hft_fetched(&hung), HF_OK);
    assert_false(hung.value->stored);
    assert_string_equal(hung.value->data, "content");
    hf_value_free(hung.value);
    expect(f, f->c, PAGE(.ttl_ms = 1000), HF_CACHED, "theirs");
}

static void a_lease_lost_during_a_load_means_not_stored(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher loader;
    f->page.stay = true;
    hft_fetch(&loader, f->a, "page", PAGE(.wait_ms = 20000));
    HFT_UNTIL_TRUE(f->page.inside == 1);
    assert_int_equal(hft_server_ask_integer(f->server, "DEL hf:fetch:{page}"), 1);
    atomic_store(&f->page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    assert_int_equal(loader.value->source, HF_LOADED);
    assert_false(loader.value->stored);
    hf_value_free(loader.value);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS page"), 0);
    expect(f, f->b, PAGE(.ttl_ms = 60000), HF_LOADED, "content");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_first_loads_the_rest_are_served_and_the_key_holds_the_plain_value),
        TEST(another_value_of_the_same_size_is_another),
        TEST(of_64_threads_in_each_of_three_clients_one_loads),
        TEST(an_old_value_is_served_while_one_caller_reloads),
        TEST(early_refresh_loads_before_the_end),
        TEST(early_refresh_works_in_processes_that_only_read),
        TEST(that_there_is_none_is_remembered_if_asked_for),
        TEST(a_failure_is_told_to_the_waiters_here_and_the_next_client_tries),
        TEST(what_another_program_has_put_there_is_judged_by_its_own_end),
        TEST(a_key_may_be_as_long_as_a_page),
        TEST(answers_of_a_loader_are_checked),
        TEST(waiting_for_others_has_an_end),
        TEST(forgetting_during_a_load_keeps_it_from_being_stored),
        TEST(a_read_sent_before_a_forget_is_not_kept_after_it),
        TEST(under_a_template_the_keys_of_locks_are_no_pages),
        TEST(a_hung_loader_loses_its_lease_and_is_not_stored),
        TEST(a_lease_lost_during_a_load_means_not_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
