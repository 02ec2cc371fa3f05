/* SPDX-License-Identifier: MIT */
/* dialects_tracking_test.c - what lives on when it is released, a count or a set, where client tracking tells of it. */
#include "tests/support/lock_lanes.h"
#include "tests/support/speaker.h"
#include "tests/support/trackers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROUNDS 7
/* A wait is armed by a re-check's answer, so the next one is 360 ms away, less what the test takes to see that. */
#define TOLD_MS 120

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* They take "x", somebody waits, and the key is tracked; then `meanwhile` happens, and they give it back. */
static void rounds_of(struct hft_speaker *f, const char *dialect, const char *take,
                      void (*meanwhile)(struct hft_speaker *f), const char *give)
{
    struct hft_taker taker;
    int64_t took[ROUNDS];
    f->client = hft_client(f->server, HF_CLIENT(.dialect = dialect, .keyspace_events = "as-is"));
    for (int i = 0; i < ROUNDS; i++) {
        HFT_DO(f, take);
        hft_take(&taker, f->client, "x", HF_LOCK(.wait_ms = 20000));
        HFT_UNTIL_TRUE(hft_tracked(f->server) == 1);
        meanwhile(f);
        int64_t given_ms = hft_boottime_ms();
        HFT_DO(f, give);
        assert_int_equal(hft_taken(&taker), HF_OK);
        took[i] = taker.got_ms - given_ms;
        assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    }
    qsort(took, ROUNDS, sizeof took[0], by_size);
    print_message("had %lld ms after it was free (median; the slowest %lld)\n", (long long)took[ROUNDS / 2], (long long)took[ROUNDS - 1]);
    assert_true(took[ROUNDS / 2] < TOLD_MS);
}

/* It is told to nobody, and found when the key is tracked for the next one. */
static void kill_tracker(struct hft_speaker *f)
{
    hft_kill_tracker(f->server);
}

static void a_count_that_fell_before_it_was_tracked_is_seen(void **state)
{
    rounds_of(*state, "counter", "INCR x", kill_tracker, "DECR x");
}

static void a_member_that_went_before_its_set_was_tracked_is_seen(void **state)
{
    rounds_of(*state, "set", "SADD locks x other", kill_tracker, "SREM locks x");
}

/* Of which the waiter is told, and asks. */
static void change_something_else(struct hft_speaker *f)
{
    int64_t asked = hft_server_calls(f->server, "smismember");
    HFT_DO(f, "SADD locks more", "SREM locks more");
    HFT_UNTIL_TRUE(hft_server_calls(f->server, "smismember") > asked);
}

/* By commands on the connection that tracks. */
static void change_it_ourselves(struct hft_speaker *f)
{
    hf_lease *lease;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hf_lock_acquire(f->client, "y", NULL, &lease, NULL), HF_OK);
        assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    }
}

static void a_set_that_we_have_changed_is_tracked_still(void **state)
{
    rounds_of(*state, "set", "SADD locks x other", change_it_ourselves, "SREM locks x");
}

static void a_set_that_has_changed_before_is_tracked_still(void **state)
{
    rounds_of(*state, "set", "SADD locks x other", change_something_else, "SREM locks x");
}

/* Half of the names wait on another connection than the one that tracks the set for all, which is the first that redirects. They
 * take that one, for the first is as if others waited there. */
static void a_set_is_tracked_still_when_that_connection_is_lost(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker taker;
    int64_t took[8];
    char name[8], command[40];
    for (int i = 0; i < 8; i++) {
        f->client = hft_client(f->server, HF_CLIENT(.dialect = "set", .keyspace_events = "as-is", .lanes = 2));
        for (int warm = 0; warm < 8; warm++) {
            (void)snprintf(name, sizeof name, "w%d", warm);
            assert_int_equal(hft_lock_once(f->client, name, 0, NULL), HF_OK);
        }
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)snprintf(command, sizeof command, "SADD locks %s", name);
        HFT_DO(f, command);
        HFT_UNTIL_TRUE(hft_lane_is_up(f->client, 1));
        hft_lane_waits(f->client, 0, i % 2);
        hft_readers_look(f->client, false, false);
        hft_take(&taker, f->client, name, HF_LOCK(.wait_ms = 20000));
        HFT_UNTIL_TRUE(hft_tracked(f->server) == 1);
        hft_lane_waits(f->client, 0, -(i % 2));
        change_something_else(f);
        HFT_UNTIL_TRUE(hft_tracked(f->server) == 1);
        hft_kill_first_redirecting(f->server);
        (void)snprintf(command, sizeof command, "SREM locks %s", name);
        int64_t given_ms = hft_boottime_ms();
        HFT_DO(f, command);
        assert_int_equal(hft_taken(&taker), HF_OK);
        took[i] = taker.got_ms - given_ms;
        assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
        assert_int_equal(hf_client_close(f->client, NULL), HF_OK);
        f->client = NULL;
    }
    qsort(took, 8, sizeof took[0], by_size);
    print_message("had %lld ms after it was free (the slowest but one; that %lld)\n", (long long)took[6], (long long)took[7]);
    assert_true(took[6] < TOLD_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_count_that_fell_before_it_was_tracked_is_seen, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_member_that_went_before_its_set_was_tracked_is_seen, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_set_that_has_changed_before_is_tracked_still, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_set_that_we_have_changed_is_tracked_still, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_set_is_tracked_still_when_that_connection_is_lost, hft_speaker_begin, hft_speaker_end),
    };
    return cmocka_run_group_tests_name("dialects_tracking", tests, NULL, NULL);
}
