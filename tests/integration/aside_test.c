/* SPDX-License-Identifier: MIT */
/* aside_test.c - hf_fetch with loader threads: who waits for what and how long, what a caller still does itself, and what
 * becomes of loads that hang, fail, end their thread, or are overtaken by a close. */
#include "tests/support/child.h"
#include "tests/support/fds.h"
#include "tests/support/pages.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What a loader thread gets is a copy of this: a pointer to the page. */
struct errand {
    struct hft_page *page;
    _Atomic(pid_t) *ran_in; /* NULL, or the thread that loaded */
};

static hf_status load(hf_loading *loading, void *arg)
{
    const struct errand *errand = arg;
    if (errand->ran_in != NULL)
        atomic_store(errand->ran_in, gettid());
    return hft_load(loading, errand->page);
}

#define ASIDE(it, ...)                                                                                                       \
    HF_FETCH(.load = load, .arg = (it), .arg_size = sizeof(struct errand), .where = HF_LOAD_ASIDE, __VA_ARGS__)
#define REFRESH(it, ...)                                                                                                     \
    HF_FETCH(.load = load, .arg = (it), .arg_size = sizeof(struct errand), .where = HF_REFRESH_ASIDE, __VA_ARGS__)

static hf_source source_of(hf_client *client, const char *key, const hf_fetch_options *options, char *data)
{
    hf_value *value;
    hf_error error;
    if (hf_fetch(client, key, options, &value, &error) != HF_OK)
        fail_msg("%s", error.message);
    (void)snprintf(data, 32, "%s", value->absent ? "" : (const char *)value->data);
    hf_source source = value->source;
    hf_value_free(value);
    return source;
}

static uint64_t loads_aside(hf_client *client)
{
    hf_stats stats;
    hf_client_stats(client, &stats);
    return stats.loads_aside;
}

/* The page is there, and old: its ttl is over, not its stale time. */
static void make_old(struct fixture *f, hf_client *client, const char *key, const char *data)
{
    struct hft_page page = {.data = data};
    char got[32];
    assert_int_equal(source_of(client, key, HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 1, .stale_ms = 60000), got), HF_LOADED);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "PTTL %s", key) < 59990);
}

static void an_old_value_is_the_answer_at_once_and_a_loader_thread_replaces_it(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "new", .stay = true};
    _Atomic(pid_t) ran_in = 0;
    struct errand errand = {&page, &ran_in};
    char data[32];
    make_old(f, f->a, "page", "old");
    const hf_fetch_options *o = REFRESH(&errand, .ttl_ms = 60000, .stale_ms = 60000);
    assert_int_equal(source_of(f->a, "page", o, data), HF_STALE);
    assert_string_equal(data, "old");
    HFT_UNTIL_TRUE(page.inside == 1);
    uint64_t before = hft_commands(f->a);
    for (int i = 0; i < 20; i++)
        assert_int_equal(source_of(f->a, "page", o, data), HF_STALE);
    assert_in_range(hft_commands(f->a) - before, 20, 21); /* a GET each, and perhaps one for the value's end */
    atomic_store(&page.stay, false);
    HFT_UNTIL_TRUE(source_of(f->a, "page", o, data) == HF_CACHED);
    assert_string_equal(data, "new");
    assert_int_equal(page.loads, 1);
    assert_int_not_equal(ran_in, gettid());
    assert_int_equal(loads_aside(f->a), 1);
}

static void a_value_that_is_not_there_is_loaded_here_by_refresh_aside(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "here"};
    _Atomic(pid_t) ran_in = 0;
    struct errand errand = {&page, &ran_in};
    char data[32];
    assert_int_equal(source_of(f->a, "page", REFRESH(&errand, .ttl_ms = 60000), data), HF_LOADED);
    assert_int_equal(ran_in, gettid());
    assert_int_equal(loads_aside(f->a), 0);
}

static void a_caller_waits_for_a_loader_thread_as_for_others(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .stay = true};
    struct errand errand = {&page, NULL};
    struct hft_fetcher first, second, here;
    hft_fetch(&first, f->a, "page", ASIDE(&errand, .ttl_ms = 60000));
    HFT_UNTIL_TRUE(page.inside == 1);
    hft_fetch(&second, f->a, "page", ASIDE(&errand, .ttl_ms = 60000));
    hft_fetch(&here, f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 60000));
    hf_stats stats;
    HFT_UNTIL_TRUE((hf_client_stats(f->a, &stats), stats.waiting == 3));
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&first), HF_OK);
    assert_int_equal(hft_fetched(&second), HF_OK);
    assert_int_equal(hft_fetched(&here), HF_OK);
    assert_int_equal(first.value->source, HF_LOADED);
    assert_int_equal(second.value->source, HF_SHARED);
    assert_int_equal(here.value->source, HF_SHARED);
    assert_true(first.value->stored && second.value->stored);
    assert_in_range(second.value->fresh_ms, 1, 60000);
    hf_value_free(first.value);
    hf_value_free(second.value);
    hf_value_free(here.value);
    assert_int_equal(page.loads, 1);
    HFT_UNTIL_TRUE((hf_client_stats(f->a, &stats), stats.waiting == 0));
}

static void after_wait_ms_the_caller_goes_and_the_load_is_stored_all_the_same(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "late", .stay = true};
    struct errand errand = {&page, NULL};
    hf_value *value;
    hf_error error;
    char data[32];
    int64_t began_ms = hft_boottime_ms();
    assert_int_equal(hf_fetch(f->a, "page", ASIDE(&errand, .wait_ms = 50), &value, &error), HF_TIMEOUT);
    assert_true(hft_boottime_ms() - began_ms >= 49);
    assert_non_null(strstr(error.message, "within wait_ms"));
    assert_null(value);
    HFT_UNTIL_TRUE(page.inside == 1);
    assert_false(page.unwanted); /* nobody waits, and still it is wanted */
    atomic_store(&page.stay, false);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS page") == 1);
    assert_int_equal(source_of(f->a, "page", ASIDE(&errand, .wait_ms = 50), data), HF_CACHED);
    assert_int_equal(page.loads, 1);
}

static void without_wait_it_is_a_prefetch(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "ahead"};
    struct errand errand = {&page, NULL};
    hf_value *value;
    hf_error error;
    char data[32];
    assert_int_equal(hf_fetch(f->a, "page", ASIDE(&errand, .wait_ms = HF_OFF), &value, &error), HF_BUSY);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS page") == 1);
    assert_int_equal(source_of(f->b, "page", ASIDE(&errand, .wait_ms = HF_OFF), data), HF_CACHED);
    assert_string_equal(data, "ahead");
    assert_int_equal(page.loads, 1);
}

/* What it says is the last word on the old one. */
static void a_refresh_that_brings_nothing_to_keep_takes_the_old_value_away(void **state)
{
    struct fixture *f = *state;
    struct hft_page pages[] = {{.data = "", .absent = true}, {.data = "once", .ttl_ms = HF_OFF}};
    char data[32];
    for (int i = 0; i < 2; i++) {
        struct errand errand = {&pages[i], NULL};
        make_old(f, f->b, "page", "old");
        assert_int_equal(source_of(f->a, "page", REFRESH(&errand, .ttl_ms = 1, .stale_ms = 60000), data), HF_STALE);
        HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS page") == 0);
        assert_int_equal(source_of(f->a, "page", REFRESH(&errand, .ttl_ms = 1, .stale_ms = 60000), data), HF_LOADED);
        assert_int_equal(pages[i].loads, 2);
    }
}

static void with_soft_ms_the_new_value_is_awaited_so_long_and_no_longer(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "new"};
    struct errand errand = {&page, NULL};
    char data[32];
    make_old(f, f->a, "page", "old");
    assert_int_equal(source_of(f->a, "page", REFRESH(&errand, .ttl_ms = 1, .stale_ms = 60000, .soft_ms = 20000), data), HF_LOADED);
    assert_string_equal(data, "new");
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "PTTL page") < 59990);
    atomic_store(&page.stay, true);
    int64_t began_ms = hft_boottime_ms();
    assert_int_equal(source_of(f->a, "page", REFRESH(&errand, .stale_ms = 60000, .soft_ms = 40), data), HF_STALE);
    assert_true(hft_boottime_ms() - began_ms >= 39);
    assert_string_equal(data, "new");
    atomic_store(&page.stay, false);
    HFT_UNTIL_TRUE(source_of(f->a, "page", REFRESH(&errand, .stale_ms = 60000), data) == HF_CACHED);
    assert_int_equal(page.loads, 2);
}

static void a_cancel_ends_the_wait_and_not_the_load(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .stay = true};
    struct errand errand = {&page, NULL};
    struct hft_fetcher fetcher;
    hf_cancel *cancel;
    assert_int_equal(hf_cancel_open(f->a, &cancel, NULL), HF_OK);
    hft_fetch(&fetcher, f->a, "page", ASIDE(&errand, .cancel = cancel, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(page.inside == 1);
    hf_cancel_fire(cancel);
    assert_int_equal(hft_fetched(&fetcher), HF_CANCELED);
    hf_cancel_close(cancel);
    atomic_store(&page.stay, false);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS page") == 1);
    assert_int_equal(page.loads, 1);
}

/* The server answers the loader thread's questions later than any caller waits. */
static void nobody_waits_any_more_and_it_is_loaded_all_the_same(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "slow"};
    struct errand errand = {&page, NULL};
    struct hft_fetcher canceled;
    hf_cancel *cancel;
    hf_value *value;
    char data[32];
    assert_int_equal(hf_cancel_open(f->a, &cancel, NULL), HF_OK);
    hft_until_connected(f);
    assert_int_equal(source_of(f->a, "first", ASIDE(&errand, .ttl_ms = 60000), data), HF_LOADED); /* the server knows the script */
    freeReplyObject(hft_server_ask(f->server, "CLIENT PAUSE 60000 WRITE"));
    hft_fetch(&canceled, f->a, "canceled", ASIDE(&errand, .cancel = cancel));
    assert_int_equal(hf_fetch(f->a, "late", ASIDE(&errand, .wait_ms = 30), &value, NULL), HF_TIMEOUT);
    hf_cancel_fire(cancel);
    assert_int_equal(hft_fetched(&canceled), HF_CANCELED);
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "late") + hft_waiting_here(f->a, "canceled") == 0); /* the jobs do not either */
    freeReplyObject(hft_server_ask(f->server, "CLIENT UNPAUSE"));
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS late canceled") == 2);
    assert_int_equal(page.loads, 1 + 2);
    hf_cancel_close(cancel);
}

/* A loader thread that waits for another process's load is free again when nobody waits for it. */
static void a_thread_does_not_wait_for_others_longer_than_its_callers(void **state)
{
    struct fixture *f = *state;
    struct hft_page theirs = {.data = "theirs", .stay = true}, page = {.data = "ours"};
    struct errand errand = {&page, NULL};
    struct hft_fetcher other, joins;
    hf_client *client = hft_client(f->server, HF_CLIENT(.loaders = 1));
    hf_value *value;
    char data[32];
    hft_fetch(&other, f->b, "page", HF_FETCH(.load = hft_load, .arg = &theirs));
    HFT_UNTIL_TRUE(theirs.inside == 1);
    assert_int_equal(hf_fetch(client, "page", ASIDE(&errand, .wait_ms = 50), &value, NULL), HF_TIMEOUT);
    assert_int_equal(source_of(client, "another", ASIDE(&errand, .wait_ms = HF_FOREVER), data), HF_LOADED);
    hft_fetch(&joins, client, "page", ASIDE(&errand, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_waiting_here(client, "page") == 2); /* for the job; and the job, for the load */
    atomic_store(&theirs.stay, false);
    assert_int_equal(hft_fetched(&other), HF_OK);
    assert_int_equal(hft_fetched(&joins), HF_OK);
    assert_int_equal(joins.value->source, HF_CACHED);
    assert_string_equal(joins.value->data, "theirs");
    hf_value_free(other.value);
    hf_value_free(joins.value);
    assert_int_equal(page.loads, 1);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_failed_load_is_told_to_who_waits_and_the_old_value_is_given_out_for_retry_ms(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "", .answer = HF_LOAD_FAILED};
    struct errand errand = {&page, NULL};
    hf_value *value;
    hf_error error;
    char data[32];
    assert_int_equal(hf_fetch(f->a, "none", ASIDE(&errand, .ttl_ms = 1000), &value, &error), HF_LOAD_FAILED);
    assert_non_null(strstr(error.message, "the origin is closed"));
    make_old(f, f->a, "page", "old");
    assert_int_equal(page.loads, 1);
    const hf_fetch_options *o = REFRESH(&errand, .stale_ms = 60000, .soft_ms = 20000, .retry_ms = 86400000);
    for (int i = 0; i < 30; i++)
        assert_int_equal(source_of(f->a, "page", o, data), HF_STALE);
    assert_string_equal(data, "old");
    assert_int_equal(page.loads, 2);
    assert_int_equal(source_of(f->b, "page", REFRESH(&errand, .stale_ms = 60000, .soft_ms = 20000, .retry_ms = HF_OFF), data), HF_STALE);
    assert_int_equal(source_of(f->b, "page", REFRESH(&errand, .stale_ms = 60000, .soft_ms = 20000, .retry_ms = HF_OFF), data), HF_STALE);
    assert_int_equal(page.loads, 4); /* each process for itself; without a pause, each time */
    page.answer = HF_OK;
    page.nothing = true;
    assert_int_equal(hf_fetch(f->a, "none", ASIDE(&errand, .ttl_ms = 1000), &value, &error), HF_LOAD_FAILED);
    page.nothing = false;
    page.twice = true;
    assert_int_equal(source_of(f->a, "none", ASIDE(&errand, .ttl_ms = 1000), data), HF_LOADED);
    assert_int_equal(page.second, HF_INVALID);
}

static void a_full_queue_refuses_loads_and_gives_out_what_is_old(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .stay = true};
    struct errand errand = {&page, NULL};
    hf_client *client = hft_client(f->server, HF_CLIENT(.loaders = 1));
    hf_value *value;
    hf_error error;
    hf_stats stats;
    char key[16], data[32];
    make_old(f, client, "old", "old");
    for (int i = 0; i < 65; i++) {
        (void)snprintf(key, sizeof key, "key:%d", i);
        assert_int_equal(hf_fetch(client, key, ASIDE(&errand, .wait_ms = HF_OFF), &value, NULL), HF_BUSY);
        if (i == 0)
            HFT_UNTIL_TRUE(page.inside == 1);
    }
    hf_status status = hf_fetch(client, "more", ASIDE(&errand, .ttl_ms = 1000), &value, &error);
    hf_source source = source_of(client, "old", REFRESH(&errand, .stale_ms = 60000), data);
    hf_client_stats(client, &stats);
    int64_t leases = hft_server_ask_integer(f->server, "EXISTS hf:fetch:{key:1} hf:fetch:{key:2} hf:fetch:{key:3}");
    int64_t first = hft_server_ask_integer(f->server, "EXISTS hf:fetch:{key:0}");
    atomic_store(&page.stay, false);
    assert_int_equal(status, HF_LIMIT);
    assert_string_equal(error.hint, "raise loaders");
    assert_int_equal(source, HF_STALE);
    assert_int_equal(stats.loads_queued, 64);
    assert_int_equal(stats.loads_refused, 2);
    assert_int_equal(first, 1);
    assert_int_equal(leases, 0); /* none is taken before a thread runs the job */
    HFT_UNTIL_TRUE((hf_client_stats(client, &stats), stats.loads_aside == 65));
    assert_int_equal(stats.loads_queued, 0);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

/* ---- loaders that fetch ---- */

struct ring {
    hf_client *client;
    int deep; /* so many keys more */
    hf_status own;
};

static hf_status load_ring(hf_loading *loading, void *arg)
{
    const struct ring *ring = arg;
    struct ring next = {ring->client, ring->deep - 1, HF_OK};
    hf_value *value;
    hf_status status = HF_OK;
    char key[32], mine[32];
    (void)snprintf(mine, sizeof mine, "ring:%d", ring->deep);
    (void)snprintf(key, sizeof key, "ring:%d", ring->deep - 1);
    next.own = hf_fetch(ring->client, mine, HF_FETCH(.load = load_ring, .arg = &next, .arg_size = sizeof next,
                        .where = HF_LOAD_ASIDE), &value, NULL);
    if (next.own != HF_DEADLOCK)
        return hf_loading_fail(loading, 0, "its own key");
    if (ring->deep > 0)
        status = hf_fetch(ring->client, key, HF_FETCH(.load = load_ring, .arg = &next, .arg_size = sizeof next,
                          .where = HF_LOAD_ASIDE), &value, NULL);
    if (status != HF_OK)
        return hf_loading_fail(loading, 0, "the next one");
    if (ring->deep > 0)
        hf_value_free(value);
    return hf_loading_set(loading, "ring", 4);
}

static void loaders_that_fetch_load_where_they_are(void **state)
{
    enum { FETCHERS = 4 };
    struct fixture *f = *state;
    hf_client *client = hft_client(f->server, HF_CLIENT(.loaders = 1));
    struct ring ring = {client, 5, HF_OK};
    struct hft_fetcher all[FETCHERS];
    for (int i = 0; i < FETCHERS; i++)
        hft_fetch(&all[i], client, "ring:5", HF_FETCH(.load = load_ring, .arg = &ring, .arg_size = sizeof ring,
                  .where = HF_LOAD_ASIDE, .wait_ms = HF_FOREVER));
    for (int i = 0; i < FETCHERS; i++) {
        assert_int_equal(hft_fetched(&all[i]), HF_OK);
        hf_value_free(all[i].value);
    }
    assert_int_equal(loads_aside(client), 1); /* the others are of the loader's own fetches */
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

/* ---- threads that end, hang, are closed or forked ---- */

static hf_status load_and_exit(hf_loading *loading, void *arg)
{
    (void)arg;
    (void)hf_loading_set(loading, "lost", 4);
    pthread_exit(NULL);
}

static void a_loader_that_ends_its_thread_has_failed(void **state)
{
    enum { ROUNDS = 3 };
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    struct errand errand = {&page, NULL};
    hf_client *client = hft_client(f->server, HF_CLIENT(.loaders = 1));
    hf_value *value;
    hf_error error;
    char data[32];
    int64_t began_ms = hft_boottime_ms();
    for (int i = 0; i < ROUNDS; i++) {
        hf_status status = hf_fetch(client, "page", HF_FETCH(.load = load_and_exit, .where = HF_LOAD_ASIDE, .wait_ms = 60000),
                                    &value, &error);
        assert_int_equal(status, HF_LOAD_FAILED);
        assert_non_null(strstr(error.message, "ended its thread"));
    }
    assert_int_equal(source_of(client, "page", ASIDE(&errand, .wait_ms = 60000), data), HF_LOADED); /* its lease is free */
    assert_true(hft_boottime_ms() - began_ms < 20000);
    assert_int_equal(hf_client_close(client, NULL), HF_OK); /* and no call is under way */
}

static void *close_it(void *arg)
{
    (void)hf_client_close(arg, NULL);
    return NULL;
}

static void a_close_drops_queued_loads_and_waits_for_the_one_that_runs(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .stay = true};
    struct errand errand = {&page, NULL};
    hf_client *client = hft_client(f->server, HF_CLIENT(.loaders = 1));
    struct hft_fetcher running, queued;
    hf_stats stats;
    hft_fetch(&running, client, "runs", ASIDE(&errand, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(page.inside == 1);
    hft_fetch(&queued, client, "queued", ASIDE(&errand, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE((hf_client_stats(client, &stats), stats.loads_queued == 1));
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    hf_status dumped = hf_client_dump(client, out);
    (void)fclose(out);
    bool is_listed = strstr(text, "aside \"runs\"") != NULL && strstr(text, "aside \"queued\"") != NULL;
    free(text);
    pthread_t closer;
    assert_int_equal(pthread_create(&closer, NULL, close_it, client), 0);
    assert_int_equal(hft_fetched(&queued), HF_CLOSED);
    assert_int_equal(hft_fetched(&running), HF_CLOSED);
    HFT_UNTIL_TRUE(atomic_load(&page.unwanted));
    assert_int_equal(page.inside, 1);
    atomic_store(&page.stay, false);
    (void)pthread_join(closer, NULL);
    assert_int_equal(page.loads, 1);
    assert_int_equal(page.inside, 0);
    assert_int_equal(dumped, HF_OK);
    assert_true(is_listed);
}

static void a_fork_child_runs_nothing_and_frees_nothing(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .stay = true};
    struct errand errand = {&page, NULL};
    hf_value *value;
    int result = 0;
    assert_int_equal(hf_fetch(f->a, "page", ASIDE(&errand, .wait_ms = HF_OFF), &value, NULL), HF_BUSY);
    HFT_UNTIL_TRUE(page.inside == 1);
    pid_t child = hft_fork();
    if (child == 0) {
        hf_status said = hf_fetch(f->a, "page", ASIDE(&errand, .wait_ms = 1000), &value, NULL);
        hf_status closed = hf_client_close(f->a, NULL);
        _exit(said == HF_FORKED && closed == HF_FORKED && page.loads == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    atomic_store(&page.stay, false);
    assert_int_equal(result, 0);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS page") == 1);
}

static void a_hung_loader_costs_its_thread_and_the_lease_only_max_load_ms(void **state)
{
    struct fixture *f = *state;
    struct hft_page hung = {.data = "late", .stay = true}, page = {.data = "content"};
    struct errand hangs = {&hung, NULL}, errand = {&page, NULL};
    hf_client *client = hft_client(f->server, HF_CLIENT(.loaders = 2));
    hf_value *value;
    char data[32];
    const hf_fetch_options *o = ASIDE(&hangs, .wait_ms = HF_OFF, .max_load_ms = 100, .lease_ms = 400);
    assert_int_equal(hf_fetch(client, "page", o, &value, NULL), HF_BUSY);
    HFT_UNTIL_TRUE(hung.inside == 1);
    assert_int_equal(source_of(client, "other", ASIDE(&errand, .wait_ms = 60000), data), HF_LOADED); /* by the other thread */
    assert_int_equal(source_of(f->b, "page", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = 60000), data), HF_LOADED);
    HFT_UNTIL_TRUE(atomic_load(&hung.unwanted));
    atomic_store(&hung.stay, false);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    redisReply *reply = hft_server_ask(f->server, "GET page");
    assert_string_equal(reply->str, "content"); /* the late one is not stored */
    freeReplyObject(reply);
}

/* ---- without the server; forgotten; shortened ---- */

static void without_the_server_a_loader_thread_loads_too(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "alone"};
    _Atomic(pid_t) ran_in = 0;
    struct errand errand = {&page, &ran_in};
    hf_value *value;
    hf_error error;
    char data[32];
    hft_server_kill(f->server);
    assert_int_equal(source_of(f->a, "page", ASIDE(&errand, .wait_ms = 60000), data), HF_LOCAL);
    assert_int_not_equal(ran_in, gettid());
    assert_int_equal(source_of(f->a, "page", ASIDE(&errand, .wait_ms = 60000), data), HF_STALE);
    assert_int_equal(hf_fetch(f->a, "other", ASIDE(&errand, .when_down = HF_FAIL, .wait_ms = 60000), &value, &error), HF_UNAVAILABLE);
    assert_int_equal(page.loads, 1);
    hft_server_restart(f->server);
}

static void a_load_without_a_lease_is_not_wanted_once_the_client_closes(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "alone", .stay = true};
    struct errand errand = {&page, NULL};
    hf_client *client = hft_client(f->server, HF_CLIENT(.command_ms = 200));
    pthread_t closer;
    hf_value *value;
    hft_server_kill(f->server);
    assert_int_equal(hf_fetch(client, "page", ASIDE(&errand, .wait_ms = HF_OFF), &value, NULL), HF_BUSY);
    HFT_UNTIL_TRUE(page.inside == 1);
    bool was_wanted = !atomic_load(&page.unwanted);
    assert_int_equal(pthread_create(&closer, NULL, close_it, client), 0);
    HFT_UNTIL_TRUE(atomic_load(&page.unwanted));
    atomic_store(&page.stay, false);
    (void)pthread_join(closer, NULL);
    assert_true(was_wanted);
    hft_server_restart(f->server);
}

static void a_load_that_was_overtaken_by_a_forget_is_not_shared(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "before", .stay = true}, after = {.data = "after"};
    struct errand errand = {&page, NULL}, later = {&after, NULL};
    struct hft_fetcher first, second;
    hft_fetch(&first, f->a, "page", ASIDE(&errand, .wait_ms = 60000));
    HFT_UNTIL_TRUE(page.inside == 1);
    assert_int_equal(hf_fetch_forget(f->a, "page", NULL), HF_OK);
    hft_fetch(&second, f->a, "page", ASIDE(&later, .wait_ms = 60000));
    hf_stats stats;
    HFT_UNTIL_TRUE((hf_client_stats(f->a, &stats), stats.waiting == 2));
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&first), HF_OK);
    assert_int_equal(hft_fetched(&second), HF_OK);
    assert_string_equal(first.value->data, "before"); /* its own load; it began before */
    assert_false(first.value->stored);
    assert_string_equal(second.value->data, "after");
    hf_value_free(first.value);
    hf_value_free(second.value);
}

static void a_ttl_is_shortened_and_the_caller_is_told(void **state)
{
    enum { PAGES = 40 };
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"}, none = {.absent = true, .data = ""};
    int64_t least = INT64_MAX, most = 0;
    hf_value *value;
    for (int i = 0; i < PAGES; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "page:%d", i);
        page.ttl_ms = i % 2 == 0 ? 0 : 1000000;
        const hf_fetch_options *o = HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 1000000, .jitter = 0.5);
        assert_int_equal(hf_fetch(f->a, key, o, &value, NULL), HF_OK);
        int64_t left_ms = hft_server_ask_integer(f->server, "PTTL %s", key);
        assert_in_range(value->fresh_ms, 500000, 1000000);
        assert_true(left_ms <= value->fresh_ms && left_ms > value->fresh_ms - 20000);
        least = value->fresh_ms < least ? value->fresh_ms : least;
        most = value->fresh_ms > most ? value->fresh_ms : most;
        hf_value_free(value);
    }
    assert_true(most - least > 100000); /* of 500 000: not all at once */
    const hf_fetch_options *o = HF_FETCH(.load = hft_load, .arg = &none, .negative_ttl_ms = 1000000, .jitter = 0.9);
    assert_int_equal(hf_fetch(f->a, "none", o, &value, NULL), HF_OK);
    assert_true(value->absent);
    assert_in_range(value->fresh_ms, 100000, 999999);
    hf_value_free(value);
}

static void wrong_options_are_refused_whatever_the_cache_holds(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    char data[32];
    hf_value *value;
    hf_error error;
    hf_client *none = hft_client(f->server, HF_CLIENT(.loaders = HF_OFF));
    assert_int_equal(source_of(f->a, "page", HF_FETCH(.load = hft_load, .arg = &page), data), HF_LOADED);
    const hf_fetch_options *o = HF_FETCH(.load = hft_load, .arg = &page, .where = HF_REFRESH_ASIDE);
    assert_int_equal(hf_fetch(f->a, "page", o, &value, &error), HF_INVALID);
    assert_non_null(strstr(error.message, "arg"));
    assert_int_equal(hf_fetch(none, "page", HF_FETCH(.load = hft_load, .where = HF_REFRESH_ASIDE), &value, &error), HF_INVALID);
    assert_non_null(strstr(error.message, "loaders"));
    assert_int_equal(hf_fetch(f->a, "page", HF_FETCH(.load = hft_load, .soft_ms = 5), &value, &error), HF_INVALID);
    assert_int_equal(hf_client_close(none, NULL), HF_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_old_value_is_the_answer_at_once_and_a_loader_thread_replaces_it),
        TEST(a_value_that_is_not_there_is_loaded_here_by_refresh_aside),
        TEST(a_caller_waits_for_a_loader_thread_as_for_others),
        TEST(after_wait_ms_the_caller_goes_and_the_load_is_stored_all_the_same),
        TEST(without_wait_it_is_a_prefetch),
        TEST(a_refresh_that_brings_nothing_to_keep_takes_the_old_value_away),
        TEST(with_soft_ms_the_new_value_is_awaited_so_long_and_no_longer),
        TEST(a_cancel_ends_the_wait_and_not_the_load),
        TEST(nobody_waits_any_more_and_it_is_loaded_all_the_same),
        TEST(a_thread_does_not_wait_for_others_longer_than_its_callers),
        TEST(a_failed_load_is_told_to_who_waits_and_the_old_value_is_given_out_for_retry_ms),
        TEST(a_full_queue_refuses_loads_and_gives_out_what_is_old),
        TEST(loaders_that_fetch_load_where_they_are),
        TEST(a_loader_that_ends_its_thread_has_failed),
        TEST(a_close_drops_queued_loads_and_waits_for_the_one_that_runs),
        TEST(a_fork_child_runs_nothing_and_frees_nothing),
        TEST(a_hung_loader_costs_its_thread_and_the_lease_only_max_load_ms),
        TEST(without_the_server_a_loader_thread_loads_too),
        TEST(a_load_without_a_lease_is_not_wanted_once_the_client_closes),
        TEST(a_load_that_was_overtaken_by_a_forget_is_not_shared),
        TEST(a_ttl_is_shortened_and_the_caller_is_told),
        TEST(wrong_options_are_refused_whatever_the_cache_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
