/* SPDX-License-Identifier: MIT */
/* near_trouble_test.c - values from memory while connections, messages and the server fail: none is given out that was gone for
 * longer than promised, and hits from memory come back by themselves. */
#include "tests/support/fleet.h"
#include "tests/support/near.h"
#include "tests/support/proxy.h"
#include "tests/support/trackers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LAG_MS  400
#define PX_MS   60000

static int page_version; /* now */
static struct {       /* of the proxy's judge */
    _Atomic(int) ms;      /* the answer to the next tracked read, and what is behind it; once */
    uint64_t reader;      /* the connection on which that GET was */
} late;

static int set_up(void **state)
{
    page_version = 0;
    late.reader = 0;
    atomic_store(&late.ms, 0);
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    f->server = hft_server_start(NULL);
    f->proxy = hft_proxy_start(f->server);
    f->page.data = "loaded";
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    hf_status status = f->client != NULL ? hf_client_close(f->client, NULL) : HF_OK;
    assert_true(status == HF_OK || status == HF_UNKNOWN); /* what was in flight when a connection ended may be in doubt still */
    hft_proxy_stop(f->proxy);
    hft_server_stop(f->server);
    free(f);
    return 0;
}

static void open_with(struct fixture *f, int64_t lag_ms, int64_t command_ms)
{
    f->client = hft_client_at(hft_proxy_url(f->proxy), HF_CLIENT(.near_lag_ms = lag_ms, .command_ms = command_ms, .lanes = 1));
}

static bool is_near_as(struct fixture *f, int version)
{
    hf_value *value = hft_near_fetch(f, "page", NEAR());
    bool is = value->source == HF_NEAR && strtol(value->data, NULL, 10) == version;
    hf_value_free(value);
    return is;
}

static void ask(struct fixture *f, const char *command)
{
    redisReply *reply = hft_server_ask(f->server, command);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", command, reply->str);
    freeReplyObject(reply);
}

static void set(struct fixture *f, int version)
{
    char command[64];
    (void)snprintf(command, sizeof command, "SET page %d PX %d", version, PX_MS);
    page_version = version;
    ask(f, command);
}

static int version_of(const hf_value *value)
{
    return value->source == HF_STALE ? 0 : (int)strtol(value->data, NULL, 10);
}

static void hold_back(struct fixture *f, enum hft_class class, int64_t ms)
{
    struct hft_network network = {.accept_nobody = false};
    network.to_client[class].delay_ns = ms * 1000000;
    hft_proxy_network(f->proxy, &network);
}

/* It is changed now: within bound_ms of that the old value may be given out, and not to any later call. */
static void is_seen_within(struct fixture *f, int64_t bound_ms, const hf_fetch_options *options)
{
    set(f, page_version + 1);
    int64_t gone_ms = hft_boottime_ms(), began_ms;
    int got;
    do {
        began_ms = hft_boottime_ms();
        hf_value *value = hft_near_fetch(f, "page", options);
        got = version_of(value);
        if (got != 0 && got != page_version && began_ms > gone_ms + 1 + bound_ms)
            fail_msg("version %d was given out (source %d) to a call that began %lld ms after version %d was there", got,
                     (int)value->source, (long long)(began_ms - gone_ms), page_version);
        hf_value_free(value);
    } while (got != page_version && began_ms < gone_ms + 20000);
    assert_int_equal(got, page_version);
}

static void all_is_well_again(struct fixture *f)
{
    hft_proxy_network(f->proxy, NULL);
    hft_come_near(f, "page");
    is_seen_within(f, LAG_MS, NEAR());
    hft_come_near(f, "page");
}

static void begin_near(struct fixture *f)
{
    open_with(f, LAG_MS, 1000);
    set(f, 1);
    hft_come_near(f, "page");
}

/* ---- connections ---- */

static void a_lane_that_is_killed(void **state)
{
    struct fixture *f = *state;
    begin_near(f);
    for (int i = 0; i < 5; i++) {
        hft_kill_first_redirecting(f->server);
        is_seen_within(f, LAG_MS, NEAR());
        hft_come_near(f, "page");
    }
    all_is_well_again(f);
}

static void a_tracker_that_is_killed(void **state)
{
    struct fixture *f = *state;
    begin_near(f);
    for (int i = 0; i < 5; i++) {
        hft_kill_tracker(f->server);
        is_seen_within(f, LAG_MS, NEAR());
        HFT_UNTIL_TRUE(hft_is_redirected(f->server));
        hft_come_near(f, "page");
    }
    all_is_well_again(f);
}

static void a_lane_that_is_gone_at_the_server_and_open_here(void **state)
{
    struct fixture *f = *state;
    begin_near(f);
    assert_true(hft_proxy_freeze_present(f->proxy, 1u << HFT_COMMANDS) > 0);
    hft_kill_first_redirecting(f->server);
    is_seen_within(f, LAG_MS, NEAR());
    all_is_well_again(f);
}

/* To whom the lane redirects is dead, and the lane does not know. */
static void a_tracker_that_is_gone_at_the_server_and_open_here(void **state)
{
    struct fixture *f = *state;
    begin_near(f);
    assert_true(hft_proxy_freeze_present(f->proxy, 1u << HFT_SUBSCRIBER) > 0);
    hft_kill_tracker(f->server);
    is_seen_within(f, LAG_MS, NEAR());
    all_is_well_again(f);
}

static void messages_that_are_late(void **state)
{
    struct fixture *f = *state;
    begin_near(f);
    hold_back(f, HFT_SUBSCRIBER, 700);
    is_seen_within(f, LAG_MS, NEAR());
    all_is_well_again(f);
}

static void near_ms_bounds_it_too(void **state)
{
    struct fixture *f = *state;
    open_with(f, 20000, 1000);
    set(f, 1);
    hft_come_near(f, "page");
    hold_back(f, HFT_SUBSCRIBER, 900);
    is_seen_within(f, 150, HF_FETCH(.load = hft_load, .arg = &f->page, .near_ms = 150));
    hft_proxy_network(f->proxy, NULL);
}

static void the_keys_end_needs_no_message(void **state)
{
    struct fixture *f = *state;
    open_with(f, 20000, 1000);
    ask(f, "SET page 1 PX 500");
    int64_t end_ms = hft_boottime_ms() + 502, began_ms;
    hft_come_near(f, "page");
    hold_back(f, HFT_SUBSCRIBER, 900);
    do {
        began_ms = hft_boottime_ms();
        hf_value *value = hft_near_fetch(f, "page", NEAR());
        assert_true(version_of(value) != 1 || began_ms <= end_ms);
        hf_value_free(value);
    } while (began_ms <= end_ms);
    assert_int_equal(f->page.loads, 1);
    hft_proxy_network(f->proxy, NULL);
}

/* ---- answers that messages overtake ---- */

static void judge(const struct hft_request *request, struct hft_judgement *judgement, void *arg)
{
    (void)arg;
    if (request->class == HFT_COMMANDS && hft_request_is(request, "GET", "page"))
        late.reader = request->connection;
    if (request->connection != late.reader || !hft_request_is(request, "EXEC", NULL) || atomic_load(&late.ms) == 0)
        return;
    judgement->sentence = HFT_LATE_REPLY;
    judgement->delay_ns = (int64_t)atomic_exchange(&late.ms, 0) * 1000000;
}

/* Begins a read of version 2 whose answer comes so late; it is executed when this returns. */
static void begin_late_read(struct fixture *f, struct hft_fetcher *fetcher, int late_ms, const hf_fetch_options *options)
{
    open_with(f, 20000, 10000);
    set(f, 1);
    hft_come_near(f, "page");
    uint64_t told = hft_near_stats(f).near_told;
    set(f, 2);
    HFT_UNTIL_TRUE(hft_near_stats(f).near_told > told);
    hft_proxy_judge(f->proxy, judge, NULL);
    int64_t gets = hft_server_calls(f->server, "get");
    atomic_store(&late.ms, late_ms);
    hft_fetch(fetcher, f->client, "page", options);
    HFT_UNTIL_TRUE(hft_server_calls(f->server, "get") > gets);
}

static void end_late_read(struct hft_fetcher *fetcher)
{
    assert_int_equal(hft_fetched(fetcher), HF_OK);
    assert_int_equal(version_of(fetcher->value), 2);
    hf_value_free(fetcher->value);
}

static void what_has_changed_before_its_answer_is_not_near(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher fetcher;
    begin_late_read(f, &fetcher, 700, NEAR());
    uint64_t told = hft_near_stats(f).near_told;
    set(f, 3);
    HFT_UNTIL_TRUE(hft_near_stats(f).near_told > told);
    end_late_read(&fetcher);
    is_seen_within(f, 0, NEAR()); /* but for the change that it makes itself, which no message has overtaken */
    hft_proxy_judge(f->proxy, NULL, NULL);
}

static void what_was_flushed_before_its_answer_is_not_near(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher fetcher;
    begin_late_read(f, &fetcher, 700, NEAR());
    uint64_t told = hft_near_stats(f).near_told;
    ask(f, "FLUSHALL");
    set(f, 3);
    ask(f, "PUBLISH __redis__:invalidate something"); /* behind the word of the flush */
    HFT_UNTIL_TRUE(hft_near_stats(f).near_told > told);
    end_late_read(&fetcher);
    hf_value *value = hft_near_fetch(f, "page", NEAR());
    assert_int_equal(version_of(value), 3);
    hf_value_free(value);
    hft_proxy_judge(f->proxy, NULL, NULL);
}

static void what_is_near_is_as_old_as_its_read(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher fetcher;
    const hf_fetch_options options = *HF_FETCH(.load = hft_load, .arg = &f->page, .near_ms = 2000);
    begin_late_read(f, &fetcher, 1500, &options);
    int64_t read_ms = hft_boottime_ms() + 1, began_ms; /* or before */
    end_late_read(&fetcher);
    bool is_near = true;
    while (is_near) {
        began_ms = hft_boottime_ms();
        hf_value *value = hft_near_fetch(f, "page", &options);
        is_near = value->source == HF_NEAR;
        assert_true(!is_near || began_ms <= read_ms + 2000);
        assert_true(!is_near || value->fresh_ms <= PX_MS - (began_ms - read_ms));
        hf_value_free(value);
    }
    hft_proxy_judge(f->proxy, NULL, NULL);
}

/* It is long: between the moment at which its process voids the older value, and that at which it is on its way, another thread
 * may read that; the answer comes when the load has been stored, whose message comes later still. */
static void what_was_read_while_a_load_was_stored_is_not_near_after_it(void **state)
{
    enum { ROUNDS = 5, LONG = 4 << 20 };
    struct fixture *f = *state;
    struct hft_fetcher loader;
    char *made = calloc(1, LONG + 1);
    assert_non_null(made);
    f->client = hft_client_at(hft_proxy_url(f->proxy), HF_CLIENT(.near_lag_ms = 20000, .command_ms = 10000, .lanes = 1,
                                                                 .local_bytes = 64 << 20));
    f->page.data = made;
    hft_proxy_judge(f->proxy, judge, NULL);
    for (int i = 1; i <= ROUNDS; i++) {
        memset(made, '0' + i, LONG);
        set(f, i);
        HFT_UNTIL_TRUE(is_near_as(f, i));
        hold_back(f, HFT_SUBSCRIBER, 1500);
        atomic_store(&late.ms, 500);
        hft_fetch(&loader, f->client, "page", NEAR(.stale_ms = 10 * PX_MS));
        while (hft_near_source(f, "page") == HF_NEAR)
            continue;
        assert_int_equal(hft_fetched(&loader), HF_OK);
        assert_int_equal(loader.value->source, HF_LOADED);
        hf_value *value = hft_near_fetch(f, "page", NEAR());
        assert_int_equal(value->size, LONG);
        hf_value_free(value);
        hf_value_free(loader.value);
        hft_proxy_network(f->proxy, NULL);
    }
    hft_proxy_judge(f->proxy, NULL, NULL);
    free(made);
}

static void a_cancel_ends_the_wait_for_anothers_read(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher reader, waiter;
    hf_cancel *cancel;
    begin_late_read(f, &reader, 1500, NEAR());
    assert_int_equal(hf_cancel_open(f->client, &cancel, &f->error), HF_OK);
    hft_fetch(&waiter, f->client, "page", NEAR(.cancel = cancel));
    HFT_UNTIL_TRUE(atomic_load(&waiter.tid) != 0);
    hf_cancel_fire(cancel);
    assert_int_equal(hft_fetched(&waiter), HF_CANCELED);
    assert_false(atomic_load(&reader.done));
    end_late_read(&reader);
    hf_cancel_close(cancel);
    hft_proxy_judge(f->proxy, NULL, NULL);
}

static void a_close_ends_the_read_and_the_waits_for_it(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher fetchers[5];
    begin_late_read(f, &fetchers[0], 8000, NEAR());
    for (int i = 1; i < 5; i++)
        hft_fetch(&fetchers[i], f->client, "page", NEAR());
    for (int i = 1; i < 5; i++)
        HFT_UNTIL_TRUE(atomic_load(&fetchers[i].tid) != 0);
    int64_t began_ms = hft_boottime_ms();
    (void)hf_client_close(f->client, NULL);
    f->client = NULL;
    for (int i = 0; i < 5; i++) {
        hf_status status = hft_fetched(&fetchers[i]);
        assert_true(status == HF_CLOSED || status == HF_OK);
        hf_value_free(fetchers[i].value);
    }
    assert_true(hft_boottime_ms() - began_ms < 7000); /* the answer would have come later */
}

/* ---- the server ---- */

static void after_a_freeze_the_same_values_are_near(void **state)
{
    struct fixture *f = *state;
    struct hft_fetcher fetcher;
    char key[16];
    open_with(f, 200, 5000);
    set(f, 1);
    hft_come_near(f, "page");
    for (int i = 0; i < 10; i++) {
        (void)snprintf(key, sizeof key, "page%d", i);
        freeReplyObject(hft_server_ask(f->server, "SET %s there", key));
        hft_come_near(f, key);
    }
    hft_come_near(f, "page");
    uint64_t lapses = hft_near_stats(f).near_lapses;
    hft_server_freeze(f->server);
    int64_t lapsed_ms = hft_boottime_ms() + 250;
    HFT_UNTIL_TRUE(hft_boottime_ms() > lapsed_ms);
    hft_fetch(&fetcher, f->client, "page", NEAR());
    HFT_UNTIL_TRUE(hft_near_stats(f).near_lapses > lapses);
    assert_false(atomic_load(&fetcher.done)); /* the server is asked */
    hft_server_thaw(f->server);
    assert_int_equal(hft_fetched(&fetcher), HF_OK);
    hf_value_free(fetcher.value);
    hft_come_near(f, "page");
    uint64_t reads = hft_near_stats(f).near_reads;
    for (int i = 0; i < 10; i++) {
        (void)snprintf(key, sizeof key, "page%d", i);
        assert_int_equal(hft_near_source(f, key), HF_NEAR);
    }
    assert_int_equal(hft_near_stats(f).near_reads, reads);
}

static void another_run_of_the_server_is_another_server(void **state)
{
    struct fixture *f = *state;
    begin_near(f);
    for (int i = 0; i < 3; i++) {
        hft_server_restart(f->server);
        is_seen_within(f, LAG_MS, NEAR());
        hft_come_near(f, "page");
    }
    all_is_well_again(f);
}

/* Until the client has gone over, the former primary is the server that it knows. */
static void another_primary_is_followed(void **state)
{
    struct fixture *f = *state;
    struct hft_fleet fleet = {0};
    struct hft_server *own = f->server;
    hft_fleet_start(&fleet, 2, 1, HFT_FLEET_DOWN_MS, NULL);
    f->server = fleet.server[0];
    f->client = hft_client_at(fleet.url, HF_CLIENT(.near_lag_ms = LAG_MS));
    set(f, 1);
    hft_come_near(f, "page");
    f->server = fleet.server[hft_fleet_fail_over(&fleet)];
    set(f, 2);
    int got = 1;
    for (int64_t until_ms = hft_boottime_ms() + 20000; got != 2; hft_pause(until_ms, "the new primary's value")) {
        hf_value *value = hft_near_fetch(f, "page", NEAR());
        got = version_of(value);
        hf_value_free(value);
    }
    hft_come_near(f, "page");
    for (int i = 0; i < 3; i++) {
        is_seen_within(f, LAG_MS, NEAR());
        hft_come_near(f, "page");
    }
    (void)hf_client_close(f->client, NULL);
    f->client = NULL;
    f->server = own;
    hft_fleet_stop(&fleet);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_lane_that_is_killed),
        CASE(a_tracker_that_is_killed),
        CASE(a_lane_that_is_gone_at_the_server_and_open_here),
        CASE(a_tracker_that_is_gone_at_the_server_and_open_here),
        CASE(messages_that_are_late),
        CASE(near_ms_bounds_it_too),
        CASE(the_keys_end_needs_no_message),
        CASE(what_has_changed_before_its_answer_is_not_near),
        CASE(what_was_flushed_before_its_answer_is_not_near),
        CASE(what_is_near_is_as_old_as_its_read),
        CASE(what_was_read_while_a_load_was_stored_is_not_near_after_it),
        CASE(a_cancel_ends_the_wait_for_anothers_read),
        CASE(a_close_ends_the_read_and_the_waits_for_it),
        CASE(after_a_freeze_the_same_values_are_near),
        CASE(another_run_of_the_server_is_another_server),
        CASE(another_primary_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
