/* SPDX-License-Identifier: MIT */
/* log_test.c - what the log is told, when, and what that costs. */
#include "tests/support/fds.h"
#include "tests/support/lock_lanes.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct said {
    _Atomic(int) lines;
    char last[256];
    hf_client *client;
};

/* The log may ask the client, whoever lost the lease. */
static void write_log(hf_log_level level, const char *line, void *arg)
{
    struct said *said = arg;
    hf_stats stats;
    if (level > HF_LOG_WARNING || strstr(line, "was lost") == NULL)
        return;
    hf_client_stats(said->client, &stats);
    (void)snprintf(said->last, sizeof said->last, "%s", line);
    atomic_fetch_add(&said->lines, 1);
}

static void a_lost_lease_is_a_line_of_the_log(void **state)
{
    struct fixture *f = *state;
    struct said said = {.lines = 0};
    hf_stats stats;
    char fence[32];
    said.client = hft_client(f->server, HF_CLIENT(.log = write_log, .log_arg = &said));
    hf_lease *lease = must_take(f, said.client, "logged", HF_LOCK(.lease_ms = 1500));
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{logged}"));
    HFT_UNTIL_TRUE(atomic_load(&said.lines) == 1);
    (void)snprintf(fence, sizeof fence, "%lld", (long long)hf_lease_fence(lease));
    assert_non_null(strstr(said.last, "\"logged\""));
    assert_non_null(strstr(said.last, fence));
    assert_non_null(strstr(said.last, hf_reason_text(HF_REASON_GONE)));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    lease = must_take(f, said.client, "found", HF_LOCK(.max_hold_ms = 200));
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST); /* whoever finds it first: the log is told once */
    HFT_UNTIL_TRUE(atomic_load(&said.lines) == 2);
    lease = must_take(f, said.client, "deleted", NULL);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{deleted}"));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST); /* no renewal has found it */
    HFT_UNTIL_TRUE(atomic_load(&said.lines) == 3);
    assert_non_null(strstr(said.last, "\"deleted\""));
    hf_client_stats(said.client, &stats);
    assert_int_equal(stats.lost, 3);
    lease = must_take(f, said.client, "kept", NULL);
    assert_int_equal(hf_client_close(said.client, NULL), HF_OK);
    assert_int_equal(said.lines, 3); /* what is given back at the end is not lost */
    assert_int_equal(hf_lease_release(lease, NULL), HF_CLOSED);
}

/* Takes as long as it takes to lose all other leases of the client, if the log call held up their renewals. */
static void write_slowly(hf_log_level level, const char *line, void *arg)
{
    if (level <= HF_LOG_WARNING && strstr(line, "was lost") != NULL) {
        atomic_fetch_add((_Atomic(int) *)arg, 1);
        (void)poll(NULL, 0, 20);
    }
}

static void a_slow_log_costs_no_lease(void **state)
{
    enum { LOST = 100 };
    struct fixture *f = *state;
    _Atomic(int) lines = 0;
    hf_lease *leases[LOST];
    hf_client *client = hft_client(f->server, HF_CLIENT(.log = write_slowly, .log_arg = &lines));
    hf_lease *kept = must_take(f, client, "kept", HF_LOCK(.lease_ms = 1000));
    for (int i = 0; i < LOST; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "lost%d", i);
        leases[i] = must_take(f, client, name, HF_LOCK(.max_hold_ms = 1000));
    }
    HFT_UNTIL_TRUE(atomic_load(&lines) >= LOST / 2);
    assert_true(hf_lease_is_valid(kept));
    for (int i = 0; i < LOST; i++)
        assert_int_equal(hf_lease_release(leases[i], NULL), HF_LOST);
    assert_int_equal(hf_lease_release(kept, NULL), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    assert_int_equal(lines, LOST); /* all of them, and none after close */
}

static void count_refusals(hf_log_level level, const char *line, void *arg)
{
    _Atomic(int) *lines = arg;
    if (level == HF_LOG_WARNING && strstr(line, "refuses a subscription") != NULL)
        atomic_fetch_add(lines, 1);
}

/* Each wait for a foreign key would be a line of its own. */
static void a_right_that_is_missing_is_said_once_a_connection(void **state)
{
    struct fixture *f = *state;
    _Atomic(int) lines = 0;
    hf_lease *none;
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER deaf on >pw ~* &hf:* +@all -unsubscribe"));
    hf_client *deaf = hft_client(f->server, HF_CLIENT(.user = "deaf", .password = "pw", .log = count_refusals, .log_arg = &lines));
    for (int i = 0; i < 8; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "x%d", i);
        freeReplyObject(hft_server_ask(f->server, "SET hf:{%s} theirs", name));
        assert_int_equal(hf_lock_acquire(deaf, name, HF_LOCK(.wait_ms = 20), &none, NULL), HF_TIMEOUT);
    }
    HFT_UNTIL_TRUE(atomic_load(&lines) >= 1);
    assert_int_equal(hf_client_close(deaf, NULL), HF_OK);
    assert_int_equal(lines, 1);
    freeReplyObject(hft_server_ask(f->server, "FLUSHALL"));
}

struct stuck { /* a log function inside its first line of a lost lease */
    _Atomic(int) lines;
    _Atomic(bool) go_on;
    _Atomic(int) lines_before; /* the callback */
};

static void write_and_wait(hf_log_level level, const char *line, void *arg)
{
    struct stuck *stuck = arg;
    if (level > HF_LOG_WARNING || strstr(line, "was lost") == NULL)
        return;
    (void)atomic_fetch_add(&stuck->lines, 1);
    while (!atomic_load(&stuck->go_on))
        (void)poll(NULL, 0, 1);
}

static void hear(hf_lease *lease, const hf_event *event, void *arg)
{
    struct stuck *stuck = arg;
    (void)lease;
    if (event->kind == HF_EVENT_LOST)
        atomic_store(&stuck->lines_before, atomic_load(&stuck->lines));
}

static uint64_t lost_by(const hf_client *client)
{
    hf_stats stats;
    hf_client_stats(client, &stats);
    return stats.lost;
}

static void a_callback_waits_for_one_line_and_no_more(void **state)
{
    enum { LOST = 20 };
    struct fixture *f = *state;
    struct stuck stuck = {.lines_before = -1};
    FILE *nowhere = fopen("/dev/null", "w");
    hf_lease *leases[LOST];
    hf_client *client = hft_client(f->server, HF_CLIENT(.log = write_and_wait, .log_arg = &stuck));
    for (int i = 0; i < LOST; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "lost%d", i);
        leases[i] = must_take(f, client, name, HF_LOCK(.max_hold_ms = 500));
    }
    hf_lease *told = must_take(f, client, "told", HF_LOCK(.max_hold_ms = 1000, .on_event = hear, .arg = &stuck));
    HFT_UNTIL_TRUE(atomic_load(&stuck.lines) == 1);
    HFT_UNTIL_TRUE(lost_by(client) == LOST + 1); /* a lease that is over is LOST before it is told */
    assert_int_equal(hf_client_dump(client, nowhere), HF_OK); /* through each lock's mutex, under which it is posted */
    atomic_store(&stuck.go_on, true);
    HFT_UNTIL_TRUE(atomic_load(&stuck.lines) == LOST + 1);
    assert_int_equal(stuck.lines_before, 1);
    for (int i = 0; i < LOST; i++)
        assert_int_equal(hf_lease_release(leases[i], NULL), HF_LOST);
    assert_int_equal(hf_lease_release(told, NULL), HF_LOST);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    (void)fclose(nowhere);
}

struct summary {
    int lines;
    char last[256];
};

static void sum_up(hf_log_level level, const char *line, void *arg)
{
    struct summary *summary = arg;
    if (level > HF_LOG_WARNING || strstr(line, " lost") == NULL)
        return;
    summary->lines++;
    (void)snprintf(summary->last, sizeof summary->last, "%s", line);
}

/* Whoever asked for no callback does not call hf_client_dispatch. */
static void a_log_that_is_not_dispatched_keeps_no_lease_and_no_descriptor(void **state)
{
    enum { LOST = 150, LINES = 100 };
    struct fixture *f = *state;
    struct summary summary = {0};
    hf_client *client =
        hft_client(f->server, HF_CLIENT(.log = sum_up, .log_arg = &summary, .dispatch = HF_DISPATCH_CALLER));
    assert_int_equal(hf_lease_release(must_take(f, client, "first", NULL), NULL), HF_OK);
    HFT_UNTIL_TRUE(hft_is_connected(client));
    int open = hft_open_descriptors();
    hf_lease *leases[LOST];
    for (int i = 0; i < LOST; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "lost%d", i);
        leases[i] = must_take(f, client, name, HF_LOCK(.max_hold_ms = 500, .event_fd = true));
    }
    for (int i = 0; i < LOST; i++) {
        HFT_UNTIL_TRUE(hf_lease_state(leases[i]) == HF_LEASE_LOST);
        assert_int_equal(hf_lease_release(leases[i], NULL), HF_LOST);
    }
    assert_true(hft_comes_down_to(hft_open_descriptors, open));
    assert_int_equal(summary.lines, 0);
    for (int i = 0; i < LINES; i++)
        assert_int_equal(hf_client_dispatch(client), 1);
    assert_int_equal(hf_client_dispatch(client), 0);
    assert_int_equal(summary.lines, LINES + 1);
    assert_non_null(strstr(summary.last, "50 more leases were lost"));
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    assert_int_equal(summary.lines, LINES + 1);
}

static void count_switches(hf_log_level level, const char *line, void *arg)
{
    if (level == HF_LOG_INFO && strstr(line, "switched on keyspace events") != NULL)
        atomic_fetch_add((_Atomic(int) *)arg, 1);
}

static void each_change_of_the_servers_configuration_is_a_line(void **state)
{
    (void)state;
    _Atomic(int) lines = 0;
    struct hft_server *server = hft_server_start(NULL); /* where no other client may do it */
    hf_client *client = hft_client(server, HF_CLIENT(.log = count_switches, .log_arg = &lines));
    HFT_UNTIL_TRUE(atomic_load(&lines) == 1);
    freeReplyObject(hft_server_ask(server, "CONFIG SET notify-keyspace-events %s", ""));
    freeReplyObject(hft_server_ask(server, "CLIENT KILL TYPE normal SKIPME yes"));
    HFT_UNTIL_TRUE(atomic_load(&lines) >= 2);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    hft_server_stop(server);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_lost_lease_is_a_line_of_the_log),
        TEST(a_slow_log_costs_no_lease),
        TEST(a_callback_waits_for_one_line_and_no_more),
        TEST(a_log_that_is_not_dispatched_keeps_no_lease_and_no_descriptor),
        TEST(a_right_that_is_missing_is_said_once_a_connection),
        cmocka_unit_test(each_change_of_the_servers_configuration_is_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
