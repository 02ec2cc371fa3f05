/* SPDX-License-Identifier: MIT */
/* tracking_test.c - where keyspace events cannot be had, client tracking tells of the end of another library's lock. */
#include "tests/support/takers.h"
#include "tests/support/trackers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 7
/* A wait is armed by a re-check's answer, so the next one is 360 ms away, less what the test takes to see that. */
#define TOLD_MS 120

struct fixture {
    struct hft_server *server;
    hf_client *client;
    _Atomic(int) refusals;
    bool shares; /* who waits wants to share the lock */
    bool is_cut; /* its connections were killed */
};

static void count_refusals(hf_log_level level, const char *line, void *arg)
{
    if (level == HF_LOG_INFO && strstr(line, "client tracking is refused") != NULL)
        atomic_fetch_add((_Atomic(int) *)arg, 1);
}

static void open_as(struct fixture *f, const char *rights)
{
    char command[160];
    (void)snprintf(command, sizeof command, "ACL SETUSER web reset on >secret ~* &* +@all %s", rights);
    freeReplyObject(hft_server_ask(f->server, command));
    f->client = hft_client(f->server, HF_CLIENT(.user = "web", .password = "secret", .log = count_refusals, .log_arg = &f->refusals));
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    f->server = hft_server_start(NULL);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    hf_status status = hf_client_close(f->client, NULL);
    assert_true(status == HF_OK || (f->is_cut && status == HF_UNKNOWN)); /* what was in flight then may be in doubt still */
    hft_server_stop(f->server);
    free(f);
    return 0;
}

static void begin_to_wait(struct fixture *f, struct hft_taker *taker)
{
    freeReplyObject(hft_server_ask(f->server, "SET hf:{theirs} their-token PX 60000"));
    hft_take(taker, f->client, "theirs", HF_LOCK(.wait_ms = 20000, .shared = f->shares));
    HFT_UNTIL_TRUE(hft_queued(f->server, "theirs") == 1);
}

/* It alone: when the control channel is subscribed anew, all who wait ask for that reason. */
static void kill_tracker(struct fixture *f)
{
    hft_kill_tracker(f->server);
}

/* From `since` until the lock was had, and given back. */
static int64_t took_ms(struct hft_taker *taker, int64_t since_ms)
{
    assert_int_equal(hft_taken(taker), HF_OK);
    int64_t ms = taker->got_ms - since_ms;
    assert_int_equal(hf_lease_release(taker->lease, NULL), HF_OK);
    return ms;
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void assert_told(int64_t took[ROUNDS])
{
    qsort(took, ROUNDS, sizeof took[0], by_size);
    print_message("had %lld ms after it was free (median; the slowest %lld)\n", (long long)took[ROUNDS / 2],
                  (long long)took[ROUNDS - 1]);
    assert_true(took[ROUNDS / 2] < TOLD_MS);
}

/* Somebody waits, and the key is tracked; then `meanwhile` happens (NULL: nothing), and the key ends by this command. */
static void rounds_of(struct fixture *f, void (*meanwhile)(struct fixture *f), const char *end)
{
    struct hft_taker taker;
    int64_t took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        begin_to_wait(f, &taker);
        HFT_UNTIL_TRUE(hft_tracked(f->server) == 1);
        if (meanwhile != NULL)
            meanwhile(f);
        int64_t since_ms = hft_boottime_ms();
        freeReplyObject(hft_server_ask(f->server, end));
        took[i] = took_ms(&taker, since_ms);
    }
    assert_told(took);
}

static const char release[] = "DEL hf:{theirs}";

static void a_foreign_release_is_told(void **state)
{
    struct fixture *f = *state;
    open_as(f, "-config");
    assert_int_equal(hft_trackers(f->server), 0);
    rounds_of(f, NULL, release);
    assert_true(hft_dump_says(f->client, "client tracking instead"));
    assert_int_equal(hft_trackers(f->server), 1);
    assert_int_equal(atomic_load(&f->refusals), 0);
}

static void a_flush_is_told(void **state)
{
    open_as(*state, "-config");
    rounds_of(*state, NULL, "FLUSHALL");
}

static void events_that_may_not_be_switched_on_are_replaced_too(void **state)
{
    struct fixture *f = *state;
    f->client = hft_client(f->server, HF_CLIENT(.keyspace_events = "as-is"));
    rounds_of(f, NULL, release);
}

static void extend(struct fixture *f)
{
    int64_t asked = hft_server_calls(f->server, "client|caching");
    freeReplyObject(hft_server_ask(f->server, "PEXPIRE hf:{theirs} 70000"));
    HFT_UNTIL_TRUE(hft_server_calls(f->server, "client|caching") > asked && hft_tracked(f->server) == 1);
    assert_int_equal(hft_queued(f->server, "theirs"), 1); /* it waits on */
}

static void a_foreign_lock_that_is_extended_is_tracked_again(void **state)
{
    open_as(*state, "-config");
    rounds_of(*state, extend, release);
}

static void a_foreign_lock_that_is_about_to_end_is_told(void **state)
{
    open_as(*state, "-config");
    rounds_of(*state, NULL, "PEXPIRE hf:{theirs} 20");
}

static void replace_tracker(struct fixture *f)
{
    kill_tracker(f);
    HFT_UNTIL_TRUE(hft_trackers(f->server) == 1);
}

static void after_the_tracker_was_killed_a_release_is_told_again(void **state)
{
    open_as(*state, "-config");
    rounds_of(*state, replace_tracker, release);
}

static void a_release_while_nobody_listens_is_found_when_the_tracker_is_back(void **state)
{
    open_as(*state, "-config");
    rounds_of(*state, kill_tracker, release);
}

static void cut_lanes(struct fixture *f)
{
    f->is_cut = true;
    freeReplyObject(hft_server_ask(f->server, "CLIENT KILL TYPE normal SKIPME yes"));
    HFT_UNTIL_TRUE(hft_is_redirected(f->server));
}

static void a_lane_that_was_lost_tracks_again(void **state)
{
    open_as(*state, "-config");
    rounds_of(*state, cut_lanes, release);
}

static void a_reader_is_told_of_a_foreign_release(void **state)
{
    struct fixture *f = *state;
    f->shares = true;
    open_as(f, "-config");
    rounds_of(f, NULL, release);
}

/* Each of the three rights; what is refused is said once, and not asked for again. The first time a key may be tracked before the
 * channel is refused. */
static void refused(void **state, const char *rights)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    open_as(f, rights);
    for (int i = 0; i < 2; i++) {
        begin_to_wait(f, &taker);
        HFT_UNTIL_TRUE(atomic_load(&f->refusals) == 1);
        assert_true(i == 0 || hft_tracked(f->server) == 0);
        freeReplyObject(hft_server_ask(f->server, release));
        (void)took_ms(&taker, 0);
    }
    assert_int_equal(atomic_load(&f->refusals), 1);
    assert_true(hft_dump_says(f->client, "client tracking is refused"));
}

static void without_the_right_to_track_the_recheck_finds_the_release(void **state)
{
    refused(state, "-config -client|tracking");
}

static void without_the_right_to_name_a_key_the_recheck_finds_the_release(void **state)
{
    refused(state, "-config -client|caching");
}

static void without_the_right_to_an_id_the_recheck_finds_the_release(void **state)
{
    refused(state, "-config -client|id");
}

static void without_the_right_to_the_channel_the_recheck_finds_the_release(void **state)
{
    refused(state, "-config resetchannels &hf:* &__keyspace@*");
}

static void without_the_right_to_info_the_recheck_finds_the_release(void **state)
{
    refused(state, "-config -info");
}

static bool note_told(const hf_finding *finding, void *arg)
{
    *(bool *)arg = *(bool *)arg || strstr(finding->what, "client tracking instead") != NULL;
    return true;
}

static void doctor_tells_whether_it_can_be_had(void **state)
{
    struct fixture *f = *state;
    static const char *const rights[] = {"-config", "-config -client|caching", "-config resetchannels &hf:* &__keyspace@*"};
    for (int i = 0; i < 3; i++) {
        bool told = false;
        open_as(f, rights[i]);
        assert_int_equal(hf_client_check(f->client, note_told, &told, NULL), HF_OK);
        assert_int_equal(told, i == 0);
        if (i < 2)
            assert_int_equal(hf_client_close(f->client, NULL), HF_OK);
    }
}

static int64_t tracking_calls(struct hft_server *server)
{
    return hft_server_calls(server, "client|id") + hft_server_calls(server, "client|tracking") +
           hft_server_calls(server, "client|caching");
}

static void where_events_work_nothing_is_tracked(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    open_as(f, "");
    begin_to_wait(f, &taker);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "PUBLISH __keyspace@0__:hf:{theirs} nothing") > 0);
    freeReplyObject(hft_server_ask(f->server, release));
    (void)took_ms(&taker, 0);
    assert_int_equal(tracking_calls(f->server), 0);
    assert_int_equal(hft_trackers(f->server), 0);
}

static void off_means_no_tracking_either(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    f->client = hft_client(f->server, HF_CLIENT(.keyspace_events = "off"));
    begin_to_wait(f, &taker);
    int64_t asked = hft_server_calls(f->server, "evalsha");
    HFT_UNTIL_TRUE(hft_server_calls(f->server, "evalsha") > asked); /* a re-check */
    freeReplyObject(hft_server_ask(f->server, release));
    (void)took_ms(&taker, 0);
    assert_int_equal(tracking_calls(f->server), 0);
    assert_int_equal(hft_trackers(f->server), 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_foreign_release_is_told),
        TEST(a_flush_is_told),
        TEST(events_that_may_not_be_switched_on_are_replaced_too),
        TEST(a_foreign_lock_that_is_extended_is_tracked_again),
        TEST(a_foreign_lock_that_is_about_to_end_is_told),
        TEST(after_the_tracker_was_killed_a_release_is_told_again),
        TEST(a_release_while_nobody_listens_is_found_when_the_tracker_is_back),
        TEST(a_lane_that_was_lost_tracks_again),
        TEST(a_reader_is_told_of_a_foreign_release),
        TEST(without_the_right_to_track_the_recheck_finds_the_release),
        TEST(without_the_right_to_name_a_key_the_recheck_finds_the_release),
        TEST(without_the_right_to_an_id_the_recheck_finds_the_release),
        TEST(without_the_right_to_the_channel_the_recheck_finds_the_release),
        TEST(without_the_right_to_info_the_recheck_finds_the_release),
        TEST(doctor_tells_whether_it_can_be_had),
        TEST(where_events_work_nothing_is_tracked),
        TEST(off_means_no_tracking_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
