/* SPDX-License-Identifier: MIT */
/* dialects_sets_test.c - names that are members of other programs' sets: several sets of one client, and what is told of each. */
#include "tests/support/speaker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WOKEN_MS 200 /* a re-check is 400 ms away */

static void wait_for(struct hft_speaker *f, struct hft_taker *taker, const char *dialect, const char *name, const char *key)
{
    hft_take(taker, f->client, name, HF_LOCK(.dialect = dialect, .wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "PUBLISH __keyspace@0__:%s nothing", key) == 1);
    HFT_UNTIL_TRUE(hft_waiting_here(f->client, name) == 1);
}

static void assert_woken(struct hft_taker *taker, int64_t given_ms)
{
    assert_int_equal(hft_taken(taker), HF_OK);
    assert_true(taker->got_ms - given_ms < WOKEN_MS);
    assert_int_equal(hf_lease_release(taker->lease, NULL), HF_OK);
}

static void a_set_that_nobody_waits_for_is_not_asked_about(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker taker;
    hf_lease *lease;
    f->client = hft_client(f->server, NULL);
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.dialect = "set:a"), &lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(f->client, "z", HF_LOCK(.lease_ms = 900), &lease, NULL), HF_OK);
    HFT_DO(f, "SADD b y");
    wait_for(f, &taker, "set:b", "y", "b");
    for (int i = 0; i < 10; i++)
        HFT_DO(f, "MULTI", "SADD b other", "SREM b other", "SADD b other", "SREM b other", "EXEC");
    int64_t asked = hft_server_calls(f->server, "smismember");
    HFT_WHILE_RENEWED(f->client, 4, hft_server_calls(f->server, "smismember") - asked < 20);
    int64_t given_ms = hft_boottime_ms();
    HFT_DO(f, "SREM b y");
    assert_woken(&taker, given_ms);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void two_sets_that_change_at_once_are_both_asked_about(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker x, y;
    f->client = hft_client(f->server, NULL);
    for (int i = 0; i < 4; i++) {
        HFT_DO(f, "SADD a x other", "SADD b y other");
        wait_for(f, &x, "set:a", "x", "a");
        wait_for(f, &y, "set:b", "y", "b");
        bool is_x = i % 2 == 0;
        int64_t given_ms = hft_boottime_ms();
        HFT_DO(f, "MULTI", is_x ? "SREM b other" : "SREM a other", is_x ? "SREM a x" : "SREM b y", "EXEC");
        assert_woken(is_x ? &x : &y, given_ms);
        given_ms = hft_boottime_ms();
        HFT_DO(f, is_x ? "SREM b y" : "SREM a x");
        assert_woken(is_x ? &y : &x, given_ms);
    }
}

/* Whatever changes it, and however often. */
static void a_set_that_goes_on_changing_is_asked_about_at_a_pace(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker taker;
    f->client = hft_client(f->server, NULL);
    HFT_DO(f, "SADD locks x other");
    wait_for(f, &taker, "set", "x", "locks");
    int64_t asked = hft_server_calls(f->server, "smismember"), began_ms = hft_boottime_ms();
    for (int i = 0; i < 2000; i++)
        HFT_DO(f, "SREM locks other", "SADD locks other");
    asked = hft_server_calls(f->server, "smismember") - asked;
    assert_in_range(asked, 1, (hft_boottime_ms() - began_ms) / 10 + 3);
    int64_t given_ms = hft_boottime_ms();
    HFT_DO(f, "SREM locks x");
    assert_woken(&taker, given_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_set_that_nobody_waits_for_is_not_asked_about, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(two_sets_that_change_at_once_are_both_asked_about, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_set_that_goes_on_changing_is_asked_about_at_a_pace, hft_speaker_begin, hft_speaker_end),
    };
    return cmocka_run_group_tests_name("dialects_sets", tests, NULL, NULL);
}
