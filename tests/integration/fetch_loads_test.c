/* SPDX-License-Identifier: MIT */
/* fetch_loads_test.c - whose load it is: loaders that come too late, values that cannot be stored, and who is told what. */
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

static void a_late_loaders_failure_is_nobodys_but_its_own(void **state)
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

static void what_is_not_to_be_kept_is_not_given_out_when_the_server_is_away(void **state)
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
    assert_int_equal(none.loads, 3);
    assert_int_equal(once.loads, 2 + 4);
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

static void what_was_seen_last_says_whether_it_was_stored_and_since_when_it_is_old(void **state)
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
        TEST(a_late_loaders_failure_is_nobodys_but_its_own),
        TEST(what_is_not_to_be_kept_is_not_given_out_when_the_server_is_away),
        TEST(a_full_server_is_not_away),
        TEST(a_server_that_refuses_writes_is_not_away),
        TEST(what_was_seen_last_says_whether_it_was_stored_and_since_when_it_is_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
