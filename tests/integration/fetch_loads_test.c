/* SPDX-License-Identifier: MIT */
/* fetch_loads_test.c - loads that go wrong: loaders that are too late, values that cannot be stored, and what each
 * caller is told. */
#include "tests/support/fds.h"
#include "tests/support/pages.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_late_loaders_failure_goes_to_its_own_caller_only(void **state)
{
    enum { WAITERS = 3 };
    struct fixture *f = *state;
    struct hft_page late = {.data = "late", .stay = true, .answer = HF_LOAD_FAILED}, living = {.data = "living", .stay = true};
    struct hft_fetcher first, second, waiters[WAITERS];
    hft_fetch(&first, f->a, "page", HF_FETCH(.load = hft_load, .arg = &late, .max_load_ms = 100, .lease_ms = 400));
    HFT_UNTIL_TRUE(late.inside == 1);
    hft_fetch(&second, f->a, "page", HF_FETCH(.load = hft_load, .arg = &living, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(living.inside == 1); /* the first one's lease is over */
    for (int i = 0; i < WAITERS; i++)
        hft_fetch(&waiters[i], f->a, "page", HF_FETCH(.load = hft_load, .arg = &living, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "page") == WAITERS);
    atomic_store(&late.stay, false);
    assert_int_equal(hft_fetched(&first), HF_LOAD_FAILED);
    int still_waiting = hft_waiting_here(f->a, "page");
    atomic_store(&living.stay, false);
    assert_int_equal(still_waiting, WAITERS);
    assert_int_equal(hft_fetched(&second), HF_OK);
    assert_int_equal(second.value->source, HF_LOADED);
    assert_true(second.value->stored);
    hf_value_free(second.value);
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(hft_fetched(&waiters[i]), HF_OK);
        assert_int_equal(waiters[i].value->source, HF_SHARED);
        assert_string_equal(waiters[i].value->data, "living");
        hf_value_free(waiters[i].value);
    }
    assert_int_equal(living.loads, 1);
}

/* ---- how long is waited, and for whom ---- */

static void wait_ms_is_for_others_and_not_for_the_servers_answers(void **state)
{
    enum { FAR_MS = 60 };
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    struct hft_fetcher fetcher;
    hft_fetch(&fetcher, f->a, "first", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = 5)); /* else its lane is dialled */
    assert_int_equal(hft_fetched(&fetcher), HF_OK);
    hf_value_free(fetcher.value);
    freeReplyObject(hft_server_ask(f->server, "CLIENT PAUSE %d WRITE", FAR_MS)); /* reads go on, scripts wait */
    hft_fetch(&fetcher, f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = 5));
    assert_int_equal(hft_fetched(&fetcher), HF_OK);
    assert_int_equal(fetcher.value->source, HF_LOADED);
    hf_value_free(fetcher.value);
    hft_server_freeze(f->server);
    int64_t began_ms = hft_boottime_ms();
    hft_fetch(&fetcher, f->a, "other", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = 5));
    HFT_UNTIL_TRUE(hft_boottime_ms() > began_ms + FAR_MS);
    hft_server_thaw(f->server);
    assert_int_equal(hft_fetched(&fetcher), HF_OK);
    assert_int_equal(fetcher.value->source, HF_LOADED);
    hf_value_free(fetcher.value);
    assert_int_equal(page.loads, 3);
}

static void wait_ms_begins_when_another_load_is_seen(void **state)
{
    enum { WAIT_MS = 150, FAR_MS = 300 };
    struct fixture *f = *state;
    struct hft_page theirs = {.data = "theirs", .stay = true}, ours = {.data = "ours"};
    struct hft_fetcher first, second, third;
    hft_fetch(&first, f->b, "page", HF_FETCH(.load = hft_load, .arg = &theirs));
    HFT_UNTIL_TRUE(theirs.inside == 1);
    freeReplyObject(hft_server_ask(f->server, "CLIENT PAUSE %d WRITE", FAR_MS));
    int64_t began_ms = hft_boottime_ms();
    hft_fetch(&second, f->a, "page", HF_FETCH(.load = hft_load, .arg = &ours, .wait_ms = WAIT_MS));
    hft_fetch(&third, f->a, "page", HF_FETCH(.load = hft_load, .arg = &ours, .wait_ms = WAIT_MS));
    hf_status status = hft_fetched(&second), other = hft_fetched(&third);
    int64_t took_ms = hft_boottime_ms() - began_ms;
    atomic_store(&theirs.stay, false);
    assert_int_equal(hft_fetched(&first), HF_OK);
    hf_value_free(first.value);
    assert_int_equal(status, HF_TIMEOUT);
    assert_int_equal(other, HF_TIMEOUT);
    assert_true(took_ms >= FAR_MS + WAIT_MS - 50); /* the pause may have begun a little before */
    assert_true(took_ms < 10000);
    assert_int_equal(ours.loads, 0);
}

static void a_process_asks_seldom_whether_another_one_still_reloads(void **state)
{
    enum { READS = 2000 };
    struct fixture *f = *state;
    struct hft_page theirs = {.data = "theirs"}, ours = {.data = "ours"};
    const hf_fetch_options *old = HF_FETCH(.load = hft_load, .arg = &ours, .ttl_ms = 1, .stale_ms = 60000);
    hf_value *value;
    struct hft_fetcher first;
    int stale = 0;
    assert_int_equal(hf_fetch(f->b, "page", HF_FETCH(.load = hft_load, .arg = &theirs, .ttl_ms = 1, .stale_ms = 60000), &value,
                              NULL),
                     HF_OK);
    hf_value_free(value);
    atomic_store(&theirs.stay, true);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "PTTL page") < 59990);
    hft_fetch(&first, f->b, "page", HF_FETCH(.load = hft_load, .arg = &theirs, .ttl_ms = 1, .stale_ms = 60000));
    HFT_UNTIL_TRUE(theirs.inside == 1);
    int64_t before = hft_server_calls(f->server, "evalsha"), began_ms = hft_boottime_ms();
    for (int i = 0; i < READS; i++) {
        if (hf_fetch(f->a, "page", old, &value, NULL) != HF_OK)
            continue;
        stale += value->source == HF_STALE;
        hf_value_free(value);
    }
    int64_t asked = hft_server_calls(f->server, "evalsha") - before, took_ms = hft_boottime_ms() - began_ms;
    atomic_store(&theirs.stay, false);
    assert_int_equal(hft_fetched(&first), HF_OK);
    hf_value_free(first.value);
    print_message("%lld questions in %lld ms\n", (long long)asked, (long long)took_ms);
    assert_int_equal(stale, READS);
    assert_int_equal(ours.loads, 0);
    assert_true(asked <= 3 + took_ms / 5); /* one question in 10 ms, and those of a renewal or the fence counter */
}

static void a_served_thread_does_not_count_as_waiting(void **state)
{
    enum { THREADS = 8, ROUNDS = 100 };
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    struct hft_fetcher all[THREADS], loader;
    hf_client *client = hft_client(f->server, HF_CLIENT(.max_waiters = 1));
    hf_value *value;
    int wrong = 0;
    assert_int_equal(hf_fetch(client, "page", HF_FETCH(.load = hft_load, .arg = &page), &value, NULL), HF_OK);
    hf_value_free(value);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++)
            hft_fetch(&all[i], client, "page", HF_FETCH(.load = hft_load, .arg = &page));
        for (int i = 0; i < THREADS; i++) {
            wrong += hft_fetched(&all[i]) != HF_OK;
            hf_value_free(all[i].value);
        }
    }
    page.stay = true; /* who waits for a load, does */
    hft_fetch(&loader, client, "other", HF_FETCH(.load = hft_load, .arg = &page));
    HFT_UNTIL_TRUE(page.inside == 1);
    hft_fetch(&all[0], client, "other", HF_FETCH(.load = hft_load, .arg = &page));
    HFT_UNTIL_TRUE(hft_waiting_here(client, "other") == 1);
    hf_status status = hf_fetch(client, "other", HF_FETCH(.load = hft_load, .arg = &page), &value, NULL);
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    assert_int_equal(hft_fetched(&all[0]), HF_OK);
    hf_value_free(loader.value);
    hf_value_free(all[0].value);
    assert_int_equal(wrong, 0);
    assert_int_equal(status, HF_LIMIT);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_fetch_without_wait_is_busy_during_a_local_load_too(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .stay = true};
    struct hft_fetcher loader;
    hf_value *value;
    hft_server_kill(f->server);
    hft_fetch(&loader, f->a, "page", HF_FETCH(.load = hft_load, .arg = &page));
    HFT_UNTIL_TRUE(page.inside == 1);
    hf_status status = hf_fetch(f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = HF_OFF), &value, NULL);
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    hf_value_free(loader.value);
    assert_int_equal(status, HF_BUSY);
    hft_server_restart(f->server);
}

/* ---- whose idea of age it is ---- */

static void each_caller_judges_a_shared_value_by_its_own_stale_ms(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .stay = true};
    struct hft_fetcher loader, modest, strict;
    hft_fetch(&loader, f->b, "page", HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 20000, .stale_ms = 10000));
    HFT_UNTIL_TRUE(page.inside == 1);
    hft_fetch(&strict, f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "page") == 1);
    hft_fetch(&modest, f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .stale_ms = 10000, .wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "page") == 2);
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    assert_int_equal(hft_fetched(&strict), HF_OK);
    assert_int_equal(hft_fetched(&modest), HF_OK);
    assert_int_equal(page.loads, 1);
    assert_in_range(strict.value->fresh_ms, 25000, 30000);
    assert_in_range(modest.value->fresh_ms, 15000, 20000);
    hf_value_free(loader.value);
    hf_value_free(strict.value);
    hf_value_free(modest.value);
}

static void a_shared_value_that_was_not_stored_is_as_fresh_as_for_its_loader(void **state)
{
    enum { SIZE = 2000 };
    struct fixture *f = *state;
    char data[SIZE];
    memset(data, 'x', SIZE);
    struct hft_page page = {.data = data, .size = SIZE, .stay = true};
    struct hft_fetcher loader, waiter;
    hf_client *client = hft_client(f->server, HF_CLIENT(.max_value_bytes = SIZE - 1));
    const hf_fetch_options *options = HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 5000, .stale_ms = 10000);
    hft_fetch(&loader, client, "page", options);
    HFT_UNTIL_TRUE(page.inside == 1);
    hft_fetch(&waiter, client, "page", options);
    HFT_UNTIL_TRUE(hft_waiting_here(client, "page") == 1);
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    assert_int_equal(hft_fetched(&waiter), HF_OK);
    assert_int_equal(waiter.value->source, HF_SHARED);
    assert_false(waiter.value->stored);
    assert_int_equal(loader.value->fresh_ms, 5000);
    assert_int_equal(waiter.value->fresh_ms, 5000);
    hf_value_free(loader.value);
    hf_value_free(waiter.value);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_time_that_no_option_could_have_is_passed_over(void **state)
{
    struct fixture *f = *state;
    static const int64_t times[] = {INT64_MAX, INT64_MAX - 60000, -5, INT64_MIN, HF_FOREVER};
    struct hft_page page = {.data = "content"};
    hf_value *value;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        page.ttl_ms = times[i];
        assert_int_equal(hf_fetch(f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 30000, .stale_ms = 60000),
                                  &value, NULL),
                         HF_OK);
        assert_true(value->stored);
        assert_int_equal(value->fresh_ms, 30000);
        hf_value_free(value);
        assert_in_range(hft_server_ask_integer(f->server, "PTTL page"), 80000, 90000);
        assert_int_equal(hf_fetch_forget(f->a, "page", NULL), HF_OK);
    }
}

static void a_load_that_outlives_its_time_is_at_risk_no_longer_than_it_runs(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content", .stay = true};
    struct hft_fetcher loader;
    hf_stats stats;
    hft_fetch(&loader, f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .max_load_ms = 1000, .lease_ms = 60000));
    HFT_UNTIL_TRUE((hf_client_stats(f->a, &stats), stats.at_risk == 1)); /* for the last half of that time */
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&loader), HF_OK);
    assert_true(loader.value->stored);
    hf_value_free(loader.value);
    hf_client_stats(f->a, &stats);
    assert_int_equal(stats.at_risk, 0);
}

/* ---- what is not stored ---- */

static hf_source fetched(struct fixture *f, const char *key, struct hft_page *page, const hf_fetch_options *given, bool *stored)
{
    hf_value *value;
    hf_fetch_options options = *given;
    options.load = hft_load;
    options.arg = page;
    if (hf_fetch(f->a, key, &options, &value, &f->error) != HF_OK)
        fail_msg("%s: %s", hf_status_name(f->error.status), f->error.message);
    hf_source source = value->source;
    *stored = value->stored;
    hf_value_free(value);
    return source;
}

static void a_value_that_is_not_kept_is_not_served_when_the_server_is_away(void **state)
{
    struct fixture *f = *state;
    struct hft_page none = {.data = "", .absent = true}, once = {.data = "once", .ttl_ms = HF_OFF};
    struct hft_page older = {.data = "older"};
    bool stored;
    assert_int_equal(fetched(f, "none", &none, HF_FETCH(.ttl_ms = 60000), &stored), HF_LOADED);
    assert_int_equal(fetched(f, "once", &once, HF_FETCH(.ttl_ms = 60000), &stored), HF_LOADED);
    assert_false(stored);
    assert_int_equal(fetched(f, "page", &older, HF_FETCH(.ttl_ms = 1), &stored), HF_LOADED);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS page") == 0);
    assert_int_equal(fetched(f, "page", &once, HF_FETCH(.ttl_ms = 60000), &stored), HF_LOADED);
    hft_server_kill(f->server);
    for (int i = 0; i < 2; i++) { /* a local load is no reason to keep it either */
        assert_int_equal(fetched(f, "none", &none, HF_FETCH(.ttl_ms = 60000), &stored), HF_LOCAL);
        assert_int_equal(fetched(f, "once", &once, HF_FETCH(.ttl_ms = 60000), &stored), HF_LOCAL);
        assert_int_equal(fetched(f, "page", &once, HF_FETCH(.ttl_ms = 60000), &stored), HF_LOCAL);
    }
    hf_value *value;
    assert_int_equal(hf_fetch(f->a, "once", HF_FETCH(.load = hft_load, .arg = &once, .ttl_ms = 60000), &value, NULL), HF_OK);
    assert_int_equal(value->fresh_ms, 0);
    hf_value_free(value);
    assert_int_equal(none.loads, 3);
    assert_int_equal(once.loads, 2 + 4 + 1);
    hft_server_restart(f->server);
}

static void a_full_server_is_not_away(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"}, kept = {.data = "kept"};
    bool stored;
    assert_int_equal(fetched(f, "kept", &kept, HF_FETCH(.ttl_ms = 60000), &stored), HF_LOADED);
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxmemory 1"));
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(fetched(f, "page", &page, HF_FETCH(.ttl_ms = 60000), &stored), HF_LOADED);
        assert_false(stored);
        assert_int_equal(page.loads, i); /* nothing older is taken for it */
    }
    assert_int_equal(fetched(f, "kept", &kept, HF_FETCH(.ttl_ms = 60000), &stored), HF_CACHED);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS hf:fetch:{page} hf:queue:{page}:hf:fetch:{page}") == 0);
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxmemory 0"));
    assert_int_equal(fetched(f, "page", &page, HF_FETCH(.ttl_ms = 60000), &stored), HF_LOADED);
    assert_true(stored);
}

static void a_server_that_refuses_writes_is_not_away(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"}, old = {.data = "old"};
    hf_value *value;
    bool stored;
    assert_int_equal(fetched(f, "old", &old, HF_FETCH(.ttl_ms = 1, .stale_ms = 60000), &stored), HF_LOADED);
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET min-replicas-to-write 1"));
    for (int i = 1; i <= 3; i++) { /* without a lease, for there is none to be had */
        assert_int_equal(fetched(f, "page", &page, HF_FETCH(.ttl_ms = 60000), &stored), HF_LOCAL);
        assert_false(stored);
        assert_int_equal(page.loads, i);
    }
    assert_int_equal(hf_fetch(f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .when_down = HF_FAIL), &value, &f->error),
                     HF_UNAVAILABLE);
    assert_non_null(strstr(f->error.message, "NOREPLICAS"));
    HFT_UNTIL_TRUE(fetched(f, "old", &old, HF_FETCH(.ttl_ms = 1, .stale_ms = 60000), &stored) == HF_STALE);
    assert_int_equal(old.loads, 1);
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET min-replicas-to-write 0"));
    assert_int_equal(fetched(f, "page", &page, HF_FETCH(.ttl_ms = 60000), &stored), HF_LOADED);
    assert_true(stored);
}

static void a_last_seen_value_says_whether_it_was_stored_and_its_age(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"}, local = {.data = "local"};
    hf_value *value;
    bool stored;
    assert_int_equal(fetched(f, "page", &page, HF_FETCH(.ttl_ms = 1, .stale_ms = 60000), &stored), HF_LOADED);
    int64_t loaded_ms = hft_boottime_ms();
    hft_server_kill(f->server);
    HFT_UNTIL_TRUE(hft_boottime_ms() > loaded_ms + 20);
    assert_int_equal(hf_fetch(f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .ttl_ms = 1, .stale_ms = 60000), &value, NULL),
                     HF_OK);
    assert_int_equal(value->source, HF_STALE);
    assert_true(value->stored && value->fresh_ms <= -10);
    hf_value_free(value);
    assert_int_equal(fetched(f, "local", &local, HF_FETCH(.ttl_ms = 60000), &stored), HF_LOCAL);
    assert_int_equal(fetched(f, "local", &local, HF_FETCH(.ttl_ms = 60000), &stored), HF_STALE);
    assert_false(stored);
    hft_server_restart(f->server);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_late_loaders_failure_goes_to_its_own_caller_only),
        TEST(wait_ms_is_for_others_and_not_for_the_servers_answers),
        TEST(wait_ms_begins_when_another_load_is_seen),
        TEST(a_process_asks_seldom_whether_another_one_still_reloads),
        TEST(a_served_thread_does_not_count_as_waiting),
        TEST(a_fetch_without_wait_is_busy_during_a_local_load_too),
        TEST(each_caller_judges_a_shared_value_by_its_own_stale_ms),
        TEST(a_shared_value_that_was_not_stored_is_as_fresh_as_for_its_loader),
        TEST(a_time_that_no_option_could_have_is_passed_over),
        TEST(a_load_that_outlives_its_time_is_at_risk_no_longer_than_it_runs),
        TEST(a_value_that_is_not_kept_is_not_served_when_the_server_is_away),
        TEST(a_full_server_is_not_away),
        TEST(a_server_that_refuses_writes_is_not_away),
        TEST(a_last_seen_value_says_whether_it_was_stored_and_its_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
