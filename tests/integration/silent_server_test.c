/* SPDX-License-Identifier: MIT */
/* silent_server_test.c - a server that answers nothing delays neither a cancel nor a close by more than they allow. */
#include "tests/support/fds.h"
#include "tests/support/pages.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <holdfast/redis.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { LONG_MS = 30000, CLOSE_MS = 100, SOON_MS = 5000 };

static hf_client *patient_client(struct fixture *f)
{
    return hft_client(f->server, HF_CLIENT(.command_ms = LONG_MS, .connect_ms = LONG_MS, .close_ms = CLOSE_MS));
}

/* ---- cancel ---- */

static void a_cancel_ends_the_wait_for_a_silent_servers_value(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    struct hft_fetcher fetcher;
    hf_cancel *cancel;
    hf_value *value;
    hf_stats stats;
    hf_client *client = patient_client(f);
    assert_int_equal(hf_cancel_open(client, &cancel, NULL), HF_OK);
    assert_int_equal(hf_fetch(client, "page", HF_FETCH(.load = hft_load, .arg = &page), &value, NULL), HF_OK);
    hf_value_free(value);
    hft_server_freeze(f->server);
    hft_fetch(&fetcher, client, "page", HF_FETCH(.load = hft_load, .arg = &page, .cancel = cancel));
    HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&fetcher.tid)));
    hf_cancel_fire(cancel);
    HFT_UNTIL_TRUE(atomic_load(&fetcher.done));
    hft_server_thaw(f->server);
    assert_int_equal(hft_fetched(&fetcher), HF_CANCELED);
    assert_non_null(strstr(fetcher.error.message, "page"));
    assert_int_equal(hf_fetch(client, "page", HF_FETCH(.load = hft_load, .arg = &page), &value, NULL), HF_OK);
    assert_int_equal(value->source, HF_CACHED); /* its reply was nobody's any more, and did nobody harm */
    hf_value_free(value);
    hf_client_stats(client, &stats);
    assert_int_equal(stats.reconnects, 0);
    assert_int_equal(page.loads, 1);
    hf_cancel_close(cancel);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_cancel_during_the_storing_gives_what_was_loaded(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .stay = true};
    struct hft_fetcher fetcher;
    hf_cancel *cancel;
    hf_client *client = patient_client(f);
    assert_int_equal(hf_cancel_open(client, &cancel, NULL), HF_OK);
    hft_fetch(&fetcher, client, "page", HF_FETCH(.load = hft_load, .arg = &page, .cancel = cancel));
    HFT_UNTIL_TRUE(page.inside == 1);
    hft_server_freeze(f->server);
    hf_cancel_fire(cancel);
    atomic_store(&page.stay, false);
    HFT_UNTIL_TRUE(atomic_load(&fetcher.done));
    hft_server_thaw(f->server);
    assert_int_equal(hft_fetched(&fetcher), HF_OK);
    assert_string_equal(fetcher.value->data, "content");
    assert_false(fetcher.value->stored); /* so far as anybody knows */
    hf_value_free(fetcher.value);
    HFT_UNTIL_TRUE(hft_lock_exists(f->server, "page") == 0); /* the fill went out, and frees the lock */
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS page") == 1);
    hf_cancel_close(cancel);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

/* ---- close ---- */

struct waiting { /* a call that waits for an answer, in a thread of its own */
    const char *name;
    void (*prepare)(struct waiting *me);
    hf_status (*call)(struct waiting *me);
    hf_client *client;
    hf_lease *lease;
    hf_conn *conn;
    struct hft_page page;
    pthread_t thread;
    _Atomic(int) tid;
    hf_status status;
};

static void take_one(struct waiting *me)
{
    assert_int_equal(hf_lock_acquire(me->client, me->name, NULL, &me->lease, NULL), HF_OK);
}

static void borrow_one(struct waiting *me)
{
    assert_int_equal(hf_conn_borrow(me->client, 0, &me->conn, NULL), HF_OK);
}

static hf_status acquire(struct waiting *me)
{
    return hf_lock_acquire(me->client, me->name, NULL, &me->lease, NULL);
}

static hf_status release(struct waiting *me)
{
    hf_lease *lease = me->lease;
    me->lease = NULL;
    return hf_lease_release(lease, NULL);
}

static hf_status verify(struct waiting *me)
{
    return hf_lease_verify(me->lease, NULL);
}

static hf_status fetch(struct waiting *me)
{
    hf_value *value;
    hf_status status = hf_fetch(me->client, me->name, HF_FETCH(.load = hft_load, .arg = &me->page), &value, NULL);
    hf_value_free(value);
    return status;
}

static hf_status forget(struct waiting *me)
{
    return hf_fetch_forget(me->client, me->name, NULL);
}

static hf_status command(struct waiting *me)
{
    redisReply *reply;
    hf_status status = hf_command(me->client, &reply, NULL, "PING");
    if (status == HF_OK)
        freeReplyObject(reply);
    return status;
}

static hf_status borrow(struct waiting *me)
{
    return hf_conn_borrow(me->client, HF_FOREVER, &me->conn, NULL);
}

static hf_status give_back(struct waiting *me)
{
    hf_conn_return(me->conn);
    me->conn = NULL;
    return HF_OK;
}

static bool see(const hf_holder *holder, void *arg)
{
    (void)holder;
    (void)arg;
    return true;
}

static bool find(const hf_finding *finding, void *arg)
{
    (void)finding;
    (void)arg;
    return true;
}

static hf_status info(struct waiting *me)
{
    return hf_lock_info(me->client, "x", see, NULL, NULL);
}

static hf_status list(struct waiting *me)
{
    return hf_lock_list(me->client, NULL, see, NULL, NULL);
}

static hf_status check(struct waiting *me)
{
    return hf_client_check(me->client, find, NULL, NULL);
}

static hf_status break_it(struct waiting *me)
{
    return hf_lock_break(me->client, "x", NULL, NULL);
}

static void *wait_for_answer(void *arg)
{
    struct waiting *me = arg;
    atomic_store(&me->tid, (int)gettid());
    me->status = me->call(me);
    return NULL;
}

static void close_takes_no_longer_than_its_time_whatever_waits_for_an_answer(void **state)
{
    struct fixture *f = *state;
    struct waiting all[] = {
        {.name = "acquire", .call = acquire},
        {.name = "release", .prepare = take_one, .call = release},
        {.name = "verify", .prepare = take_one, .call = verify},
        {.name = "fetch", .call = fetch, .page.data = "x"},
        {.name = "fill", .call = fetch, .page = {.data = "x", .stay = true}},
        {.name = "forget", .call = forget},
        {.name = "command", .call = command},
        {.name = "return", .prepare = borrow_one, .call = give_back},
        {.name = "borrow", .call = borrow},
        {.name = "info", .call = info},
        {.name = "list", .call = list},
        {.name = "check", .call = check},
        {.name = "break", .call = break_it},
    };
    enum { CALLS = sizeof all / sizeof all[0], FILL = 4 };
    hf_client *client = patient_client(f);
    for (int i = 0; i < CALLS; i++) {
        all[i].client = client;
        if (all[i].prepare != NULL)
            all[i].prepare(&all[i]);
    }
    (void)pthread_create(&all[FILL].thread, NULL, wait_for_answer, &all[FILL]);
    HFT_UNTIL_TRUE(all[FILL].page.inside == 1);
    hft_server_freeze(f->server);
    for (int i = 0; i < CALLS; i++)
        if (i != FILL)
            (void)pthread_create(&all[i].thread, NULL, wait_for_answer, &all[i]);
    atomic_store(&all[FILL].page.stay, false);
    for (int i = 0; i < CALLS; i++)
        HFT_UNTIL_TRUE(atomic_load(&all[i].tid) != 0 && hft_is_asleep(atomic_load(&all[i].tid)));
    int64_t began_ms = hft_boottime_ms();
    hf_status status = hf_client_close(client, NULL);
    int64_t took_ms = hft_boottime_ms() - began_ms;
    for (int i = 0; i < CALLS; i++)
        (void)pthread_join(all[i].thread, NULL);
    hft_server_thaw(f->server);
    print_message("closed after %lld ms\n", (long long)took_ms);
    for (int i = 0; i < CALLS; i++) {
        print_message("%-8s %s\n", all[i].name, hf_status_name(all[i].status));
        bool own_value = i == FILL && all[i].status == HF_OK; /* the loader's, not stored */
        bool nothing_to_say = all[i].call == give_back;
        assert_true(own_value || nothing_to_say || all[i].status == HF_CLOSED || all[i].status == HF_UNKNOWN);
        (void)hf_lease_release(all[i].lease, NULL);
        hf_conn_discard(all[i].conn);
    }
    assert_int_equal(status, HF_UNKNOWN);
    assert_in_range(took_ms, 0, SOON_MS);
}

/* ---- how often it is found out ---- */

static void fetch_all(hf_client *client, struct hft_page *page, hf_source source)
{
    for (int i = 0; i < 40; i++) {
        char key[8];
        hf_value *value;
        hf_error error;
        (void)snprintf(key, sizeof key, "k%d", i);
        if (hf_fetch(client, key, HF_FETCH(.load = hft_load, .arg = page), &value, &error) != HF_OK)
            fail_msg("%s", error.message);
        assert_int_equal(value->source, source);
        hf_value_free(value);
    }
}

static void each_lane_finds_out_once_that_the_server_is_silent(void **state)
{
    enum { LANES = 8, COMMAND_MS = 300 };
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    hf_client *client = hft_client(f->server, HF_CLIENT(.lanes = LANES, .command_ms = COMMAND_MS, .connect_ms = LONG_MS));
    fetch_all(client, &page, HF_LOADED);
    hft_server_freeze(f->server);
    int64_t began_ms = hft_boottime_ms();
    fetch_all(client, &page, HF_STALE);
    int64_t took_ms = hft_boottime_ms() - began_ms;
    hft_server_thaw(f->server);
    assert_in_range(took_ms, COMMAND_MS, 2 * LANES * COMMAND_MS); /* 40 would find out, if nobody told another one */
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

/* ---- what a waiting time is for ---- */

static void *borrow_for_a_moment(void *arg)
{
    struct waiting *me = arg;
    atomic_store(&me->tid, (int)gettid());
    me->status = hf_conn_borrow(me->client, 20, &me->conn, NULL);
    return NULL;
}

static void a_connection_that_is_made_may_take_longer_than_one_is_waited_for(void **state)
{
    struct fixture *f = *state;
    struct waiting me = {.client = patient_client(f)};
    hft_server_freeze(f->server);
    int64_t began_ms = hft_boottime_ms();
    (void)pthread_create(&me.thread, NULL, borrow_for_a_moment, &me);
    HFT_UNTIL_TRUE(hft_boottime_ms() > began_ms + 60);
    hft_server_thaw(f->server);
    (void)pthread_join(me.thread, NULL);
    assert_int_equal(me.status, HF_OK);
    hf_conn_return(me.conn);
    assert_int_equal(hf_client_close(me.client, NULL), HF_OK);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_cancel_ends_the_wait_for_a_silent_servers_value),
        TEST(a_cancel_during_the_storing_gives_what_was_loaded),
        TEST(close_takes_no_longer_than_its_time_whatever_waits_for_an_answer),
        TEST(each_lane_finds_out_once_that_the_server_is_silent),
        TEST(a_connection_that_is_made_may_take_longer_than_one_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
