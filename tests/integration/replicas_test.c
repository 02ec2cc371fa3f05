/* SPDX-License-Identifier: MIT */
/* replicas_test.c - replicas=N, replicas=all and quarantine_ms: a lease that a failover could lose, or has, is none. Real servers and
 * sentinels. */
#include <holdfast/holdfast.h>

#include "tests/support/fleet.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A primary with two replicas, and three sentinels that are slow to act. */
static int start(void **state)
{
    struct hft_fleet *fleet = calloc(1, sizeof *fleet);
    hft_fleet_start(fleet, 3, 3, 30000, NULL);
    *state = fleet;
    return 0;
}

static int start_hasty(void **state)
{
    struct hft_fleet *fleet = calloc(1, sizeof *fleet);
    hft_fleet_start(fleet, 3, 3, HFT_FLEET_DOWN_MS, NULL);
    *state = fleet;
    return 0;
}

static int stop(void **state)
{
    hft_fleet_stop(*state);
    free(*state);
    return 0;
}

static hf_client *open_client(const char *url, int replicas)
{
    return hft_client_at(url, HF_CLIENT(.replicas = replicas));
}

static void confirmed_leases_work_as_others_do(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *one = open_client(hft_server_url(fleet->server[0]), 2), *other = open_client(hft_server_url(fleet->server[0]), 2);
    struct hft_taker taker;
    hf_lease *lease;
    hf_stats stats;
    assert_int_equal(hf_lock_acquire(one, "name", NULL, &lease, NULL), HF_OK);
    hft_take(&taker, other, "name", HF_LOCK(.wait_ms = 15000));
    HFT_UNTIL_TRUE(hft_queued(fleet->server[0], "name") == 1);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK); /* handed over: it asks, and that is confirmed */
    assert_true(taker.got_ms - taker.began_ms < 15000);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_semaphore_acquire(one, "permits", 3, 2, HF_LOCK(.wait_ms = 5000), &lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_true(hft_server_calls(fleet->server[0], "wait") > 0);
    hf_client_stats(other, &stats);
    assert_int_equal(stats.acks_short, 0);
    assert_int_equal(hf_client_close(one, NULL), HF_OK);
    assert_int_equal(hf_client_close(other, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(fleet->server[0]), 0);
}

static void what_no_replica_has_is_no_lease(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client = open_client(hft_server_url(fleet->server[0]), 2);
    hf_error error;
    hf_stats stats;
    hft_server_freeze(fleet->server[1]);
    assert_int_equal(hft_lock_once(client, "name", 0, &error), HF_UNAVAILABLE);
    assert_non_null(strstr(error.message, "1 of 2 replicas confirmed the lease"));
    assert_int_equal(hft_lock_once(client, "name", 1500, &error), HF_UNAVAILABLE);
    assert_non_null(strstr(error.message, "1 of 2 replicas confirmed the lease"));
    hf_client_stats(client, &stats);
    assert_true(stats.acks_short > 1);
    HFT_UNTIL_TRUE(hft_lock_exists(fleet->server[0], "name") == 0); /* given back all the same */
    hft_server_thaw(fleet->server[1]);
    assert_int_equal(hft_lock_once(client, "name", 15000, &error), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

/* They would wait one after the other: whoever comes meanwhile waits for the next one. */
static void a_lane_asks_for_one_confirmation_at_a_time(void **state)
{
    enum { TAKERS = 24 };
    struct hft_fleet *fleet = *state;
    struct hft_taker takers[TAKERS];
    char url[300], names[TAKERS][16];
    (void)snprintf(url, sizeof url, "%s?lanes=1", hft_server_url(fleet->server[0]));
    hf_client *client = open_client(url, 2);
    assert_int_equal(hft_lock_once(client, "name", 15000, NULL), HF_OK);
    hft_server_freeze(fleet->server[1]);
    int64_t before = hft_server_calls(fleet->server[0], "wait"), began_ms = hft_boottime_ms();
    for (int i = 0; i < TAKERS; i++) {
        uint64_t sent = hft_commands(client);
        (void)snprintf(names[i], sizeof names[i], "name-%d", i);
        hft_take(&takers[i], client, names[i], HF_LOCK(.wait_ms = 1000));
        HFT_UNTIL_TRUE(hft_commands(client) > sent); /* it goes alone */
    }
    for (int i = 0; i < TAKERS; i++)
        assert_int_equal(hft_taken(&takers[i]), HF_UNAVAILABLE);
    int64_t took_ms = hft_boottime_ms() - began_ms, waits = hft_server_calls(fleet->server[0], "wait") - before;
    assert_in_range(waits, 2, took_ms / 100 + 2); /* each takes replicas_ms */
    hft_server_thaw(fleet->server[1]);
    assert_int_equal(hft_lock_once(client, "name", 15000, NULL), HF_OK);
    (void)hf_client_close(client, NULL);
}

static void a_renewal_that_no_replica_has_does_not_count(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client = open_client(hft_server_url(fleet->server[0]), 1);
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(client, "name", HF_LOCK(.lease_ms = 1500, .wait_ms = 15000), &lease, NULL), HF_OK);
    HFT_WHILE_RENEWED(client, 2, hf_lease_is_valid(lease));
    hft_server_freeze(fleet->server[1]);
    HFT_WHILE_RENEWED(client, 2, hf_lease_is_valid(lease)); /* one of two is enough */
    hft_server_freeze(fleet->server[2]);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    hft_server_thaw(fleet->server[1]);
    hft_server_thaw(fleet->server[2]);
    assert_int_equal(hft_lock_once(client, "name", 15000, NULL), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

/* Whoever is connected may be counted, and another one be promoted. */
static void all_means_every_one_that_could_be_promoted(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client = open_client(fleet->url, HF_ALL);
    hf_error error;
    assert_int_equal(hft_lock_once(client, "name", 15000, NULL), HF_OK);
    hft_server_freeze(fleet->server[2]);
    assert_int_equal(hft_lock_once(client, "name", 0, &error), HF_UNAVAILABLE);
    assert_non_null(strstr(error.message, "1 of 2 replicas confirmed the lease"));
    hft_server_thaw(fleet->server[2]);
    assert_int_equal(hft_lock_once(client, "name", 15000, &error), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

struct looked_for {
    const char *words;
    hf_log_level level;
    bool is_found;
};

static bool look_for(const hf_finding *finding, void *arg)
{
    struct looked_for *what = arg;
    what->is_found = what->is_found || (finding->level == what->level && strstr(finding->what, what->words) != NULL);
    return true;
}

static bool doctor_says(const char *url, const hf_client_options *options, hf_log_level level, const char *words)
{
    struct looked_for what = {words, level, false};
    hf_client *client = hft_client_at(url, options);
    assert_int_equal(hf_client_check(client, look_for, &what, NULL), HF_OK);
    (void)hf_client_close(client, NULL);
    return what.is_found;
}

static void doctor_says_what_a_failover_can_do(void **state)
{
    struct hft_fleet *fleet = *state;
    const char *url = fleet->url;
    assert_true(doctor_says(url, NULL, HF_LOG_WARNING, "a failover can lose leases"));
    assert_true(doctor_says(url, NULL, HF_LOG_INFO, "3 of 3 sentinels answer"));
    assert_true(doctor_says(url, HF_CLIENT(.replicas = HF_ALL), HF_LOG_WARNING, "end in a failover"));
    assert_true(doctor_says(url, HF_CLIENT(.replicas = HF_ALL, .lease_ms = 128000), HF_LOG_INFO, "2 replicas have to confirm"));
    assert_true(doctor_says(url, HF_CLIENT(.quarantine_ms = 20000), HF_LOG_WARNING, "quarantine_ms is below"));
    assert_true(doctor_says(url, HF_CLIENT(.quarantine_ms = 31000, .lazy = true), HF_LOG_WARNING, "grants nothing for 31000 ms"));
    assert_true(doctor_says(url, HF_CLIENT(.quarantine_ms = 31000, .max_lease_ms = 10000), HF_LOG_INFO, "grants nothing for 31000 ms"));
    assert_false(doctor_says(hft_server_url(fleet->server[0]), NULL, HF_LOG_WARNING, "failover"));
}

/* A primary alone grants nothing. That nobody could be promoted it says while the sentinels' votes are fresh. */
static bool nobody_confirms(hf_client *client)
{
    hf_error error;
    assert_int_equal(hft_lock_once(client, "name", 300, &error), HF_UNAVAILABLE);
    return strstr(error.message, "none is known that could be promoted") != NULL;
}

static void who_is_down_is_not_waited_for(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client = open_client(fleet->url, HF_ALL);
    hft_server_freeze(fleet->server[2]);
    assert_int_equal(hft_lock_once(client, "name", 15000, NULL), HF_OK); /* when most sentinels call it down */
    hft_server_freeze(fleet->server[1]);
    HFT_UNTIL_TRUE(hft_dump_says(client, "; 0 replicas have to confirm"));
    HFT_UNTIL_TRUE(nobody_confirms(client));
    hf_client *new = hft_client_at(fleet->url, HF_CLIENT(.replicas = HF_ALL, .connect_ms = 600000)); /* that nobody could is known */
    assert_int_equal(hf_client_close(new, NULL), HF_OK);
    hft_server_thaw(fleet->server[1]);
    hft_server_thaw(fleet->server[2]);
    assert_int_equal(hft_lock_once(client, "name", 15000, NULL), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_confirmed_lease_outlives_its_primary(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client = open_client(fleet->url, HF_ALL);
    hf_lease *lease;
    hf_stats stats;
    int before = hft_fleet_primary(fleet);
    assert_int_equal(hf_lock_acquire(client, "name", HF_LOCK(.lease_ms = 20000, .wait_ms = 15000), &lease, NULL), HF_OK);
    hft_server_kill(fleet->server[before]);
    int next = hft_fleet_wait_for_another(fleet, before);
    HFT_UNTIL_TRUE(hft_server_calls(fleet->server[next], "wait") > 1); /* renewals are confirmed there */
    HFT_WHILE_RENEWED(client, 1, hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(hft_lock_once(client, "name", 1000, NULL) == HF_OK);
    hf_client_stats(client, &stats);
    assert_true(stats.failovers >= 1);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_new_server_grants_nothing_while_it_is_in_quarantine(void **state)
{
    struct hft_fleet *fleet = *state;
    struct hft_server *server = fleet->server[0];
    hf_client *client, *other;
    hf_lease *lease;
    hf_error error;
    struct hft_taker taker;
    freeReplyObject(hft_server_ask(server, "DEL hf:since")); /* clients of the tests before have met it */
    int64_t began_ms = hft_boottime_ms();
    assert_int_equal(hf_client_open(hft_server_url(server), HF_CLIENT(.quarantine_ms = 2000), &client, &error), HF_OK);
    assert_int_equal(hft_lock_once(client, "name", 0, &error), HF_UNAVAILABLE);
    assert_non_null(strstr(error.message, "the server is new, and grants nothing for"));
    assert_true(error.retry_ms > 0 && error.retry_ms < 2100);
    assert_int_equal(hf_lock_acquire(client, "name", HF_LOCK(.wait_ms = 15000), &lease, &error), HF_OK);
    assert_true(hft_boottime_ms() - began_ms >= 2000);
    assert_int_equal(hf_client_open(hft_server_url(server), HF_CLIENT(.quarantine_ms = 2000), &other, &error), HF_OK);
    hft_take(&taker, other, "name", HF_LOCK(.wait_ms = 15000)); /* it is over for everybody */
    HFT_UNTIL_TRUE(hft_queued(server, "name") == 1);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(other, NULL), HF_OK);
    hft_server_restart(server);
    HFT_UNTIL_TRUE(hft_lock_once(client, "name", 0, &error) == HF_UNAVAILABLE && strstr(error.message, "the server is new") != NULL);
    assert_int_equal(hft_lock_once(client, "name", 15000, &error), HF_OK);
    (void)hf_client_close(client, NULL);
    freeReplyObject(hft_server_ask(server, "ACL SETUSER few on nopass ~* &* +@all -info"));
    assert_int_equal(hf_client_open(hft_server_url(server), HF_CLIENT(.user = "few", .quarantine_ms = 2000), &client, &error),
                     HF_DENIED);
    assert_non_null(strstr(error.message, "run id"));
}

static bool has_refused(struct hft_server *server)
{
    redisReply *reply = hft_server_ask(server, "INFO errorstats");
    bool has = strstr(reply->str, "errorstat_NOREPLICAS") != NULL;
    freeReplyObject(reply);
    return has;
}

/* What a connection does not learn when it is made, it learns when it is made again. */
static void a_server_that_refuses_to_write_for_a_moment_is_not_new(void **state)
{
    struct hft_fleet *fleet = *state;
    struct hft_server *server = fleet->server[0];
    hf_client *client;
    hf_lease *lease;
    hf_error error;
    assert_int_equal(hf_client_open(hft_server_url(server), HF_CLIENT(.quarantine_ms = 5000), &client, &error), HF_OK);
    assert_int_equal(hf_lock_acquire(client, "name", HF_LOCK(.lease_ms = 3000, .wait_ms = 15000), &lease, &error), HF_OK);
    freeReplyObject(hft_server_ask(server, "CONFIG SET min-replicas-to-write 9"));
    freeReplyObject(hft_server_ask(server, "CLIENT KILL TYPE normal SKIPME yes"));
    HFT_UNTIL_TRUE(has_refused(server));
    freeReplyObject(hft_server_ask(server, "CONFIG SET min-replicas-to-write 0"));
    HFT_WHILE_RENEWED(client, 4, hf_lease_is_valid(lease)); /* longer than a lease */
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    (void)hf_client_close(client, NULL);
}

/* The first try may be what has its connection made. */
static void a_try_over_a_new_connection_says_how_long(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client;
    hf_error error;
    freeReplyObject(hft_server_ask(fleet->server[0], "DEL hf:since"));
    assert_int_equal(hf_client_open(hft_server_url(fleet->server[0]), HF_CLIENT(.quarantine_ms = 5000, .lazy = true), &client, &error),
                     HF_OK);
    assert_int_equal(hft_lock_once(client, "name", 0, &error), HF_UNAVAILABLE);
    assert_non_null(strstr(error.message, "the server is new, and grants nothing for"));
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void wrong_numbers_and_missing_rights_are_told(void **state)
{
    struct hft_fleet *fleet = *state;
    static const struct {
        const char *query, *words;
    } wrong[] = {
        {"?replicas=all", "the URI names no sentinels"},
        {"?replicas=17", "replicas is 17"},
        {"?replicas=-1", "replicas is -1"},
        {"?replicas=some", "replicas"},
        {"?replicas=1&replicas_ms=501", "replicas_ms is more than half of command_ms"},
        {"?lease_ms=all", "lease_ms"},
        {"?lease_ms=6000&max_lease_ms=5000", "lease_ms is above max_lease_ms"},
    };
    hf_client *client;
    hf_error error;
    char url[300];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void)snprintf(url, sizeof url, "%s%s", hft_server_url(fleet->server[0]), wrong[i].query);
        assert_int_equal(hf_client_open(url, NULL, &client, &error), HF_INVALID);
        if (strstr(error.message, wrong[i].words) == NULL)
            fail_msg("%s: %s", wrong[i].query, error.message);
    }
    client = NULL;
    (void)snprintf(url, sizeof url, "%s?max_lease_ms=20000", hft_server_url(fleet->server[0]));
    assert_int_equal(hf_client_open(url, NULL, &client, &error), HF_OK);
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(client, "name", HF_LOCK(.lease_ms = 20001), &lease, &error), HF_INVALID);
    assert_int_equal(hf_lock_acquire(client, "name", HF_LOCK(.lease_ms = 20000), &lease, &error), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    freeReplyObject(hft_server_ask(fleet->server[0], "ACL SETUSER few on nopass ~* &* +@all -wait"));
    assert_int_equal(hf_client_open(hft_server_url(fleet->server[0]), HF_CLIENT(.user = "few", .replicas = 1), &client, &error),
                     HF_DENIED);
    assert_non_null(strstr(error.message, "wait"));
}

/* A client that hears no sentinel may get the name from the former primary, when the key ends there. */
static void no_lease_outlives_its_primary_into_quarantine(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client;
    hf_lease *lease;
    hf_error error;
    assert_int_equal(hf_client_open(fleet->url, HF_CLIENT(.quarantine_ms = 6000), &client, &error), HF_OK);
    assert_int_equal(hf_lock_acquire(client, "name", HF_LOCK(.lease_ms = 2000, .wait_ms = 15000), &lease, &error), HF_OK);
    HFT_WHILE_RENEWED(client, 2, hf_lease_is_valid(lease));
    (void)hft_fleet_fail_over(fleet);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    (void)hf_client_close(client, NULL);
}

int main(void)
{
    const struct CMUnitTest of_one_fleet[] = {
        cmocka_unit_test(confirmed_leases_work_as_others_do),
        cmocka_unit_test(what_no_replica_has_is_no_lease),
        cmocka_unit_test(a_lane_asks_for_one_confirmation_at_a_time),
        cmocka_unit_test(a_renewal_that_no_replica_has_does_not_count),
        cmocka_unit_test(all_means_every_one_that_could_be_promoted),
        cmocka_unit_test(a_server_that_refuses_to_write_for_a_moment_is_not_new),
        cmocka_unit_test(a_try_over_a_new_connection_says_how_long),
        cmocka_unit_test(doctor_says_what_a_failover_can_do),
        cmocka_unit_test(wrong_numbers_and_missing_rights_are_told),
        cmocka_unit_test(a_new_server_grants_nothing_while_it_is_in_quarantine), /* the last one: it restarts the primary */
    };
    const struct CMUnitTest of_another[] = {
        cmocka_unit_test(who_is_down_is_not_waited_for),
        cmocka_unit_test(a_confirmed_lease_outlives_its_primary), /* it kills the primary, */
        cmocka_unit_test(no_lease_outlives_its_primary_into_quarantine), /* and this deposes the next one */
    };
    return cmocka_run_group_tests(of_one_fleet, start, stop) + cmocka_run_group_tests(of_another, start_hasty, stop);
}
