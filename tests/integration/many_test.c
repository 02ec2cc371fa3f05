/* SPDX-License-Identifier: MIT */
/* many_test.c - hf_fetch_many: several keys with one round trip and one run of the loader, all or some, whatever others do. */
#include "base/clock.h"
#include "tests/support/pages.h"
#include "tests/support/proxy.h"
#include "tests/support/takers.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ITEMS 300 /* more than are in flight at once */

struct origin { /* what load_many does, and what is seen of it */
    _Atomic(int) runs, keys;
    _Atomic(bool) stay;
    int64_t takes_ms;
    const char *leaves, *fails; /* keys that it does not answer, that it fails */
    hf_status returns;
};

struct fixture {
    struct hft_server *server;
    hf_client *a, *b;
    struct origin origin;
    struct hft_page page;
    hf_fetch_item items[ITEMS];
    char names[ITEMS][16];
    hf_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    f->server = hft_server_start(NULL);
    f->a = hft_client(f->server, HF_CLIENT(.command_ms = 5000));
    f->b = hft_client(f->server, HF_CLIENT(.command_ms = 5000));
    f->page.data = "one";
    for (int i = 0; i < ITEMS; i++) {
        (void)snprintf(f->names[i], sizeof f->names[i], "k%d", i);
        f->items[i].key = f->names[i];
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    atomic_store(&f->origin.stay, false);
    atomic_store(&f->page.stay, false);
    assert_int_equal(hf_client_close(f->a, NULL), HF_OK);
    assert_int_equal(hf_client_close(f->b, NULL), HF_OK);
    hft_server_stop(f->server);
    free(f);
    return 0;
}

/* The value of a key is "of KEY". */
static hf_status load_many(hf_loading *const *loadings, size_t count, void *arg)
{
    struct origin *origin = arg;
    atomic_fetch_add(&origin->runs, 1);
    atomic_fetch_add(&origin->keys, (int)count);
    int64_t began_ms = hft_boottime_ms();
    while (atomic_load(&origin->stay) || hft_boottime_ms() < began_ms + origin->takes_ms)
        (void)sched_yield();
    for (size_t i = 0; i < count; i++) {
        char text[32];
        const char *key = hf_loading_key(loadings[i]);
        int size = snprintf(text, sizeof text, "of %s", key);
        if (origin->fails != NULL && strcmp(key, origin->fails) == 0)
            (void)hf_loading_fail(loadings[i], EIO, "no\nsuch \x1b thing");
        else if (origin->leaves == NULL || strcmp(key, origin->leaves) != 0)
            (void)hf_loading_set(loadings[i], text, (size_t)size);
    }
    return origin->returns;
}

#define MANY(...) HF_FETCH(.load_many = load_many, .arg = &f->origin, __VA_ARGS__)

static void expect(const hf_fetch_item *item, hf_source source)
{
    char text[32];
    (void)snprintf(text, sizeof text, "of %s", item->key);
    assert_int_equal(item->status, HF_OK);
    assert_string_equal(item->value->data, text);
    if (item->value->source != source)
        fail_msg("%s: source %d, not %d", item->key, (int)item->value->source, (int)source);
}

static void free_all(struct fixture *f, int count)
{
    for (int i = 0; i < count; i++)
        hf_value_free(f->items[i].value);
}

static void fetch(struct fixture *f, hf_client *client, int count, const hf_fetch_options *options)
{
    if (hf_fetch_many(client, f->items, (size_t)count, options, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
}

static void all_that_is_missing_is_loaded_by_one_run_and_then_read(void **state)
{
    struct fixture *f = *state;
    hf_stats before, after;
    fetch(f, f->a, ITEMS, MANY(.ttl_ms = 60000));
    for (int i = 0; i < ITEMS; i++)
        expect(&f->items[i], HF_LOADED);
    assert_int_equal(f->origin.runs, 1);
    assert_int_equal(f->origin.keys, ITEMS);
    free_all(f, ITEMS);
    hf_client_stats(f->b, &before);
    fetch(f, f->b, ITEMS, MANY(.ttl_ms = 60000));
    hf_client_stats(f->b, &after);
    for (int i = 0; i < ITEMS; i++)
        expect(&f->items[i], HF_CACHED);
    assert_int_equal(f->origin.runs, 1);
    /* The listener takes along what is listed already when it reads: how many sends there are is a matter of time. */
    assert_in_range(after.remote_round_trips - before.remote_round_trips, 1, ITEMS / 3);
    free_all(f, ITEMS);
}

static void only_what_is_missing_is_loaded(void **state)
{
    struct fixture *f = *state;
    freeReplyObject(hft_server_ask(f->server, "MSET k0 %s k2 %s", "of_k0", "of_k2"));
    fetch(f, f->a, 4, MANY(.ttl_ms = 60000));
    assert_int_equal(f->origin.keys, 2);
    assert_string_equal(f->items[0].value->data, "of_k0");
    expect(&f->items[1], HF_LOADED);
    assert_int_equal(f->items[2].value->source, HF_CACHED);
    expect(&f->items[3], HF_LOADED);
    free_all(f, 4);
}

/* With those that have not, in one more round trip. */
static void what_has_changed_is_judged_by_its_own_end(void **state)
{
    struct fixture *f = *state;
    fetch(f, f->a, 4, MANY(.ttl_ms = 60000));
    free_all(f, 4);
    freeReplyObject(hft_server_ask(f->server, "SET k1 theirs PX 30000"));
    freeReplyObject(hft_server_ask(f->server, "SET k2 theirs PX 20000"));
    int64_t gets = hft_server_calls(f->server, "get");
    fetch(f, f->a, 4, MANY(.ttl_ms = 60000));
    assert_int_equal(hft_server_calls(f->server, "get") - gets, 4 + 2);
    for (int i = 0; i < 4; i++)
        assert_int_equal(f->items[i].value->source, HF_CACHED);
    assert_in_range(f->items[1].value->fresh_ms, 1, 30000);
    assert_in_range(f->items[2].value->fresh_ms, 1, 20000);
    free_all(f, 4);
    assert_int_equal(f->origin.keys, 4);
}

static void a_key_twice_is_loaded_once(void **state)
{
    struct fixture *f = *state;
    f->items[1].key = f->items[2].key = "k0";
    fetch(f, f->a, 4, MANY(.ttl_ms = 60000));
    assert_int_equal(f->origin.keys, 2);
    expect(&f->items[0], HF_LOADED);
    assert_string_equal(f->items[1].value->data, "of k0");
    assert_string_equal(f->items[2].value->data, "of k0");
    expect(&f->items[3], HF_LOADED);
    free_all(f, 4);
}

/* Nor is it where nothing can be read afterwards. */
static void a_key_twice_is_loaded_once_that_is_not_kept(void **state)
{
    struct fixture *f = *state;
    f->items[2].key = "k0";
    f->origin.fails = "k0";
    assert_int_equal(hf_fetch_many(f->a, f->items, 3, MANY(.ttl_ms = 60000), &f->error), HF_LOAD_FAILED);
    assert_int_equal(f->items[2].status, HF_LOAD_FAILED);
    assert_null(f->items[2].value);
    assert_int_equal(f->origin.keys, 2);
    free_all(f, 3);
    f->page.absent = true;
    for (int away = 0; away < 2; away++) {
        fetch(f, f->a, 3, HF_FETCH(.load = hft_load, .arg = &f->page, .ttl_ms = 60000));
        assert_true(f->items[0].value->absent && f->items[2].value->absent);
        assert_int_equal(f->items[2].value->source, away ? HF_LOCAL : HF_SHARED);
        assert_int_equal(f->page.loads, away ? 1 + 2 : 1);
        free_all(f, 3);
        hft_server_kill(f->server);
        f->items[1].key = "k3";
    }
    hft_server_restart(f->server);
}

static void hide_k0_once(const struct hft_request *request, struct hft_judgement *judgement, void *arg)
{
    _Atomic(int) *reads = arg;
    if (hft_request_is(request, "GET", "k0") && atomic_fetch_add(reads, 1) == 1) {
        judgement->sentence = HFT_ANSWER;
        judgement->text = "$-1\r\n";
    }
}

/* One of the two finds the old value, and loads in vain; the other one finds none: it was deleted in between, say. */
static void a_key_twice_has_an_old_value_twice(void **state)
{
    struct fixture *f = *state;
    struct hft_proxy *proxy = hft_proxy_start(f->server);
    hf_client *client = hft_client_at(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 5000));
    _Atomic(int) reads = 0;
    freeReplyObject(hft_server_ask(f->server, "SET k0 %s PX 500000", "old")); /* by 100 s */
    f->items[2].key = "k0";
    f->origin.fails = "k0";
    hft_proxy_judge(proxy, hide_k0_once, &reads);
    fetch(f, client, 3, MANY(.ttl_ms = 1000, .stale_ms = 600000));
    for (int i = 0; i < 3; i += 2) {
        assert_int_equal(f->items[i].status, HF_OK);
        assert_non_null(f->items[i].value);
        assert_int_equal(f->items[i].value->source, HF_STALE);
    }
    free_all(f, 3);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    hft_proxy_stop(proxy);
}

static void without_load_many_load_runs_for_each(void **state)
{
    struct fixture *f = *state;
    fetch(f, f->a, 5, HF_FETCH(.load = hft_load, .arg = &f->page, .ttl_ms = 60000));
    assert_int_equal(f->page.loads, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(f->items[i].value->data, "one");
    free_all(f, 5);
}

static void an_item_fails_by_itself(void **state)
{
    struct fixture *f = *state;
    f->origin.leaves = "k1";
    f->origin.fails = "k3";
    f->origin.returns = HF_OK;
    f->items[2].key = "";
    assert_int_equal(hf_fetch_many(f->a, f->items, 5, MANY(.ttl_ms = 60000), &f->error), HF_LOAD_FAILED);
    assert_non_null(strstr(f->error.message, "k1"));
    expect(&f->items[0], HF_LOADED);
    assert_int_equal(f->items[1].status, HF_LOAD_FAILED);
    assert_null(f->items[1].value);
    assert_int_equal(f->items[2].status, HF_INVALID);
    assert_int_equal(f->items[3].status, HF_LOAD_FAILED);
    expect(&f->items[4], HF_LOADED);
    free_all(f, 5);
    f->items[2].key = "k2";
    f->origin.leaves = f->origin.fails = NULL;
    fetch(f, f->b, 5, MANY(.ttl_ms = 60000)); /* no lease was left behind */
    assert_int_equal(f->origin.keys, 4 + 3);
    free_all(f, 5);
}

static void an_old_value_is_the_answer_where_another_loads(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher fetcher;
    freeReplyObject(hft_server_ask(f->server, "SET k1 %s PX 500000", "of k1")); /* old by 100 s */
    atomic_store(&f->page.stay, true);
    hft_fetch(&fetcher, f->b, "k1", HF_FETCH(.load = hft_load, .arg = &f->page, .ttl_ms = 1000, .stale_ms = 600000));
    HFT_UNTIL_TRUE(atomic_load(&f->page.inside) == 1);
    fetch(f, f->a, 3, MANY(.ttl_ms = 1000, .stale_ms = 600000));
    expect(&f->items[1], HF_STALE);
    free_all(f, 3);
    atomic_store(&f->page.stay, false);
    assert_int_equal(hft_fetched(&fetcher), HF_OK);
    hf_value_free(fetcher.value);
    freeReplyObject(hft_server_ask(f->server, "SET k2 %s PX 500000", "of k2"));
    fetch(f, f->b, 3, MANY(.ttl_ms = 1000, .stale_ms = 600000));
    expect(&f->items[2], HF_LOADED);
    free_all(f, 3);
}

static void what_another_loads_is_waited_for(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher fetcher;
    atomic_store(&f->page.stay, true);
    hft_fetch(&fetcher, f->b, "k1", HF_FETCH(.load = hft_load, .arg = &f->page, .ttl_ms = 60000));
    HFT_UNTIL_TRUE(atomic_load(&f->page.inside) == 1);
    assert_int_equal(hf_fetch_many(f->a, f->items, 3, MANY(.ttl_ms = 60000, .wait_ms = 1000), &f->error), HF_TIMEOUT);
    assert_int_equal(f->items[1].status, HF_TIMEOUT);
    expect(&f->items[0], HF_LOADED);
    expect(&f->items[2], HF_LOADED);
    free_all(f, 3);
    atomic_store(&f->page.stay, false);
    fetch(f, f->a, 3, MANY(.ttl_ms = 60000));
    assert_string_equal(f->items[1].value->data, "one");
    assert_int_equal(f->origin.keys, 2);
    free_all(f, 3);
    assert_int_equal(hft_fetched(&fetcher), HF_OK);
    hf_value_free(fetcher.value);
}

/* Its own loads have used up the time. */
static void what_another_loads_is_late_then(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher fetcher;
    atomic_store(&f->page.stay, true);
    f->origin.takes_ms = 100;
    hft_fetch(&fetcher, f->b, "k1", HF_FETCH(.load = hft_load, .arg = &f->page, .ttl_ms = 60000));
    HFT_UNTIL_TRUE(atomic_load(&f->page.inside) == 1);
    assert_int_equal(hf_fetch_many(f->a, f->items, 3, MANY(.ttl_ms = 60000, .wait_ms = 50), &f->error), HF_TIMEOUT);
    assert_string_equal(f->error.message, "\"k1\" was not loaded within wait_ms");
    free_all(f, 3);
    assert_int_equal(hf_fetch_many(f->a, f->items, 3, MANY(.ttl_ms = 60000, .wait_ms = HF_OFF), &f->error), HF_BUSY);
    free_all(f, 3);
    atomic_store(&f->page.stay, false);
    assert_int_equal(hft_fetched(&fetcher), HF_OK);
    hf_value_free(fetcher.value);
}

struct crosser {
    pthread_t thread;
    struct fixture *f;
    hf_client *client;
    bool backwards;
    int failed;
};

static void *cross(void *arg)
{
    struct crosser *me = arg;
    for (int round = 0; round < 40; round++) {
        hf_fetch_item items[20] = {0};
        char names[20][16];
        for (int i = 0; i < 20; i++) {
            (void)snprintf(names[i], sizeof names[i], "r%d:%d", round, me->backwards ? 19 - i : i);
            items[i].key = names[i];
        }
        me->failed += hf_fetch_many(me->client, items, 20,
                                    HF_FETCH(.load_many = load_many, .arg = &me->f->origin, .ttl_ms = 60000), NULL) != HF_OK;
        for (int i = 0; i < 20; i++)
            hf_value_free(items[i].value);
    }
    return NULL;
}

static void two_calls_over_the_same_keys_in_any_order_end(void **state)
{
    struct fixture *f = *state;
    struct crosser crossers[4];
    for (int i = 0; i < 4; i++) {
        crossers[i] = (struct crosser){.f = f, .client = i < 2 ? f->a : f->b, .backwards = i % 2};
        assert_int_equal(pthread_create(&crossers[i].thread, NULL, cross, &crossers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        (void)pthread_join(crossers[i].thread, NULL);
        assert_int_equal(crossers[i].failed, 0);
    }
    assert_int_equal(f->origin.keys, 40 * 20); /* each once */
}

static void near_ones_cost_nothing(void **state)
{
    struct fixture *f = *state;
    const hf_fetch_options *near = MANY(.ttl_ms = 60000, .near_ms = 60000);
    bool all = false;
    while (!all) {
        fetch(f, f->a, 10, near);
        all = true;
        for (int i = 0; i < 10; i++)
            all = all && f->items[i].value->source == HF_NEAR;
        free_all(f, 10);
    }
    freeReplyObject(hft_server_ask(f->server, "CONFIG RESETSTAT"));
    fetch(f, f->a, 10, near);
    for (int i = 0; i < 10; i++)
        expect(&f->items[i], HF_NEAR);
    assert_int_equal(hft_server_calls(f->server, "get"), 0);
    free_all(f, 10);
}

static void without_a_server_the_last_seen_ones_are_the_answer(void **state)
{
    struct fixture *f = *state;
    fetch(f, f->a, 3, MANY(.ttl_ms = 60000));
    free_all(f, 3);
    hft_server_kill(f->server);
    HFT_UNTIL_TRUE(hf_fetch_many(f->a, f->items, 4, MANY(.ttl_ms = 60000, .wait_ms = HF_OFF), &f->error) == HF_OK);
    for (int i = 0; i < 3; i++)
        expect(&f->items[i], HF_STALE);
    expect(&f->items[3], HF_LOCAL);
    free_all(f, 4);
    hft_server_restart(f->server);
}

static void a_cancel_ends_it_and_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    hf_cancel *cancel;
    assert_int_equal(hf_cancel_open(f->a, &cancel, NULL), HF_OK);
    hf_cancel_fire(cancel);
    assert_int_equal(hf_fetch_many(f->a, f->items, 3, MANY(.cancel = cancel), &f->error), HF_CANCELED);
    for (int i = 0; i < 3; i++)
        assert_null(f->items[i].value);
    hf_cancel_close(cancel);
    fetch(f, f->b, 3, MANY(.ttl_ms = 60000));
    free_all(f, 3);
}

static hf_status load_the_same(hf_loading *const *loadings, size_t count, void *arg)
{
    struct fixture *f = arg;
    hf_value *value;
    for (size_t i = 0; i < count; i++) {
        hf_status status = hf_fetch(f->a, hf_loading_key(loadings[i]), HF_FETCH(.load = hft_load, .arg = &f->page), &value, NULL);
        (void)hf_loading_set(loadings[i], status == HF_DEADLOCK ? "of deadlock" : "?", status == HF_DEADLOCK ? 11 : 1);
    }
    return HF_OK;
}

/* Each wants the other one. */
static hf_status load_with_the_other(hf_loading *loading, void *arg)
{
    struct fixture *f = arg;
    hf_value *value;
    const char *other = strcmp(hf_loading_key(loading), "k0") == 0 ? "k1" : "k0";
    hf_status status = hf_fetch(f->a, other, HF_FETCH(.load = hft_load, .arg = &f->page), &value, NULL);
    if (status == HF_OK)
        hf_value_free(value);
    return hf_loading_set(loading, hf_status_name(status), strlen(hf_status_name(status)));
}

static void a_loader_that_wants_another_of_the_call_is_told_at_once(void **state)
{
    struct fixture *f = *state;
    fetch(f, f->a, 2, HF_FETCH(.load = load_with_the_other, .arg = f, .ttl_ms = 60000));
    assert_string_equal(f->items[0].value->data, hf_status_name(HF_DEADLOCK));
    assert_string_equal(f->items[1].value->data, hf_status_name(HF_OK)); /* that one is loaded by now */
    free_all(f, 2);
}

/* The first one takes longer than any of them may. */
static hf_status load_slowly(hf_loading *loading, void *arg)
{
    int64_t until_ns = hfi_after_ms(hfi_now(&hfi_boottime), 400);
    (void)arg;
    while (strcmp(hf_loading_key(loading), "k0") == 0 && hfi_now(&hfi_boottime) < until_ns)
        (void)sched_yield();
    return hf_loading_set(loading, "slow", 4);
}

static void who_comes_too_late_has_the_old_value_or_waits_anew(void **state)
{
    struct fixture *f = *state;
    freeReplyObject(hft_server_ask(f->server, "SET k1 %s PX 50000", "of k1")); /* old */
    fetch(f, f->a, 3, HF_FETCH(.load = load_slowly, .ttl_ms = 1000, .stale_ms = 60000, .max_load_ms = 300, .wait_ms = 5000));
    assert_false(f->items[0].value->stored);
    expect(&f->items[1], HF_STALE);
    assert_int_equal(f->items[2].value->source, HF_LOADED);
    assert_true(f->items[2].value->stored);
    free_all(f, 3);
}

/* The words of a loader that fails are its own, whoever won the lease, and what it returns. */
static void one_key_by_load_many_fails_with_the_loaders_words(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher fetcher;
    f->origin.fails = "k0";
    atomic_store(&f->page.stay, true);
    f->page.ttl_ms = HF_OFF; /* it is not stored: who waits loads it anew */
    f->page.answer = HF_LOAD_FAILED;
    hft_fetch(&fetcher, f->b, "k0", HF_FETCH(.load = hft_load, .arg = &f->page));
    HFT_UNTIL_TRUE(atomic_load(&f->page.inside) == 1);
    atomic_store(&f->page.stay, false);
    assert_int_equal(hf_fetch_many(f->a, f->items, 1, MANY(.ttl_ms = 60000), &f->error), HF_LOAD_FAILED);
    assert_int_equal(f->error.os_errno, EIO);
    assert_non_null(strstr(f->error.message, "no\\x0asuch \\x1b thing"));
    (void)hft_fetched(&fetcher);
}

static void what_is_known_of_an_end_is_what_was_read(void **state)
{
    struct fixture *f = *state;
    freeReplyObject(hft_server_ask(f->server, "SET k0 %s PX 50000", "of k0"));
    for (int i = 0; i < 5; i++) {
        fetch(f, f->a, 1, MANY(.ttl_ms = 40000, .stale_ms = 20000, .near_ms = i % 2 == 0 ? 0 : 1));
        assert_in_range(f->items[0].value->fresh_ms, 25000, 30000);
        free_all(f, 1);
    }
}

static void nonsense_is_refused_at_the_first_call(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(hf_fetch_many(f->a, NULL, 0, MANY(), NULL), HF_OK);
    assert_int_equal(hf_fetch_many(f->a, NULL, 1, MANY(), NULL), HF_INVALID);
    hf_fetch_item *too_many = calloc(HF_FETCH_MANY_MAX + 1, sizeof *too_many);
    assert_int_equal(hf_fetch_many(f->a, too_many, HF_FETCH_MANY_MAX + 1, MANY(), NULL), HF_INVALID);
    assert_int_equal(too_many[HF_FETCH_MANY_MAX - 1].status, HF_INVALID);
    free(too_many);
    assert_int_equal(hf_fetch_many(f->a, f->items, 2, HF_FETCH(), &f->error), HF_INVALID);
    assert_int_equal(f->items[1].status, HF_INVALID);
    assert_int_equal(hf_fetch_many(f->a, f->items, 2, MANY(.where = HF_LOAD_ASIDE, .arg_size = 8), &f->error), HF_INVALID);
    assert_int_equal(hf_fetch_many(f->a, f->items, 2, MANY(.key_size = 2), &f->error), HF_INVALID);
    assert_int_equal(hf_fetch_many(NULL, f->items, 2, MANY(), &f->error), HF_INVALID);
    f->items[0].reserved_word = 1;
    assert_int_equal(hf_fetch_many(f->a, f->items, 2, MANY(), &f->error), HF_INVALID);
    f->items[0].reserved_word = 0;
    expect(&f->items[1], HF_LOADED);
    hf_value_free(f->items[1].value);
    fetch(f, f->a, 1, HF_FETCH(.load_many = load_the_same, .arg = f));
    assert_string_equal(f->items[0].value->data, "of deadlock");
    free_all(f, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(all_that_is_missing_is_loaded_by_one_run_and_then_read),
        TEST(only_what_is_missing_is_loaded),
        TEST(what_has_changed_is_judged_by_its_own_end),
        TEST(a_key_twice_is_loaded_once),
        TEST(a_key_twice_is_loaded_once_that_is_not_kept),
        TEST(a_key_twice_has_an_old_value_twice),
        TEST(without_load_many_load_runs_for_each),
        TEST(an_item_fails_by_itself),
        TEST(an_old_value_is_the_answer_where_another_loads),
        TEST(what_another_loads_is_waited_for),
        TEST(what_another_loads_is_late_then),
        TEST(two_calls_over_the_same_keys_in_any_order_end),
        TEST(near_ones_cost_nothing),
        TEST(without_a_server_the_last_seen_ones_are_the_answer),
        TEST(a_cancel_ends_it_and_leaves_nothing),
        TEST(a_loader_that_wants_another_of_the_call_is_told_at_once),
        TEST(who_comes_too_late_has_the_old_value_or_waits_anew),
        TEST(one_key_by_load_many_fails_with_the_loaders_words),
        TEST(what_is_known_of_an_end_is_what_was_read),
        TEST(nonsense_is_refused_at_the_first_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
