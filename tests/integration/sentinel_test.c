/* SPDX-License-Identifier: MIT */
/* sentinel_test.c - sentinel://: the primary that sentinels name is found, followed and, when it is another one, left at
 * once. Real servers and sentinels. */
#include <holdfast/holdfast.h>
#include <holdfast/redis.h>

#include "tests/support/fleet.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int start_three(void **state)
{
    struct hft_fleet *fleet = calloc(1, sizeof *fleet);
    hft_fleet_start(fleet, 3, 3, HFT_FLEET_DOWN_MS, NULL);
    *state = fleet;
    return 0;
}

static int start_two(void **state)
{
    struct hft_fleet *fleet = calloc(1, sizeof *fleet);
    hft_fleet_start(fleet, 1, 2, HFT_FLEET_DOWN_MS, NULL);
    *state = fleet;
    return 0;
}

static int start_one(void **state)
{
    struct hft_fleet *fleet = calloc(1, sizeof *fleet);
    hft_fleet_start(fleet, 2, 1, HFT_FLEET_DOWN_MS, NULL);
    *state = fleet;
    return 0;
}

static int start_with_a_password(void **state)
{
    struct hft_fleet *fleet = calloc(1, sizeof *fleet);
    hft_fleet_start(fleet, 2, 1, HFT_FLEET_DOWN_MS, NULL);
    freeReplyObject(hft_server_ask(fleet->sentinel[0], "ACL SETUSER watcher on >seen resetchannels &+switch-master -@all "
                                   "+client|setname +role +info +subscribe +sentinel|master +sentinel|replicas "
                                   "+sentinel|sentinels +sentinel|myid"));
    freeReplyObject(hft_server_ask(fleet->sentinel[0], "ACL SETUSER default off"));
    *state = fleet;
    return 0;
}

static int stop(void **state)
{
    hft_fleet_stop(*state);
    free(*state);
    return 0;
}

static bool locks(hf_client *client, const char *name)
{
    hf_lease *lease;
    return hf_lock_acquire(client, name, HF_LOCK(.wait_ms = 1000), &lease, NULL) == HF_OK && hf_lease_release(lease, NULL) == HF_OK;
}

/* The run id of the server that the client's commands go to; it is the caller's to free. */
static char *asked_server(hf_client *client)
{
    redisReply *reply = NULL;
    char *port = NULL;
    if (hf_command(client, &reply, NULL, "CONFIG GET port") == HF_OK && reply->type == REDIS_REPLY_ARRAY)
        port = strdup(reply->element[1]->str);
    if (reply != NULL)
        freeReplyObject(reply);
    return port;
}

static bool is_at(hf_client *client, const struct hft_server *server)
{
    char *port = asked_server(client);
    bool same = port != NULL && atoi(port) == hft_server_port(server);
    free(port);
    return same;
}

static void the_primary_is_found_and_followed_over_a_planned_failover(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client = hft_client_at(fleet->url, NULL);
    assert_true(is_at(client, fleet->server[0]));
    assert_true(locks(client, "name"));
    int next = hft_fleet_fail_over(fleet);
    HFT_UNTIL_TRUE(is_at(client, fleet->server[next]));
    HFT_UNTIL_TRUE(locks(client, "name"));
    assert_int_not_equal(next, 0);
    (void)hf_client_close(client, NULL);
}

static void it_is_followed_when_it_is_killed_and_when_sentinels_are(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client = hft_client_at(fleet->url, NULL);
    int before = hft_fleet_primary(fleet);
    assert_true(locks(client, "name"));
    hft_server_kill(fleet->server[before]);
    int next = hft_fleet_wait_for_another(fleet, before);
    HFT_UNTIL_TRUE(locks(client, "name"));
    assert_true(is_at(client, fleet->server[next]));
    for (int i = 0; i < fleet->sentinels; i++)
        hft_server_kill(fleet->sentinel[i]);
    HFT_WHILE_RENEWED(client, 0, locks(client, "name")); /* no sentinel is needed while connections hold */
    assert_true(locks(client, "name"));
    (void)hf_client_close(client, NULL);
}

static void who_names_no_sentinels_of_the_service_is_told(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client;
    hf_error error;
    char url[256];
    (void)snprintf(url, sizeof url, "%.*s/another", (int)(strrchr(fleet->url, '/') - fleet->url), fleet->url);
    assert_int_equal(hf_client_open(url, NULL, &client, &error), HF_INVALID);
    assert_non_null(strstr(error.message, "know no service another"));
    (void)snprintf(url, sizeof url, "sentinel://127.0.0.1:%d/mymaster", hft_server_port(fleet->server[0]));
    assert_int_equal(hf_client_open(url, NULL, &client, &error), HF_UNAVAILABLE);
    assert_non_null(strstr(error.message, "is no sentinel, its role is \"master\""));
    assert_int_equal(hf_client_open("sentinel://127.0.0.1:1,127.0.0.1:2/mymaster", NULL, &client, &error), HF_UNAVAILABLE);
    assert_non_null(strstr(error.message, "no sentinel names the primary of mymaster"));
    assert_int_equal(hf_client_open("redis://127.0.0.1:1?sentinel_user=a", NULL, &client, &error), HF_INVALID);
}

static void one_sentinel_that_answers_is_enough(void **state)
{
    struct hft_fleet *fleet = *state;
    char url[256];
    (void)snprintf(url, sizeof url, "sentinel://127.0.0.1:1,127.0.0.1:%d/mymaster", hft_server_port(fleet->sentinel[2]));
    hf_client *client = hft_client_at(url, NULL);
    assert_true(locks(client, "name"));
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void one_that_the_uri_names_twice_is_one(void **state)
{
    struct hft_fleet *fleet = *state;
    char url[256];
    int port = hft_server_port(fleet->sentinel[0]);
    (void)snprintf(url, sizeof url, "sentinel://127.0.0.1:%d,localhost:%d/mymaster", port, port);
    hf_client *client = hft_client_at(url, HF_CLIENT(.replicas = HF_ALL));
    HFT_UNTIL_TRUE(locks(client, "name"));
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

struct sought {
    const char *words;
    bool found;
};

static bool seek(const hf_finding *finding, void *arg)
{
    struct sought *sought = arg;
    sought->found = strstr(finding->what, sought->words) != NULL;
    return !sought->found;
}

static bool is_found(hf_client *client, const char *words)
{
    struct sought sought = {words, false};
    return hf_client_check(client, seek, &sought, NULL) == HF_OK && sought.found;
}

static hf_client *client_of_one(const struct hft_fleet *fleet, const hf_client_options *options)
{
    char url[100];
    (void)snprintf(url, sizeof url, "sentinel://127.0.0.1:%d/mymaster", hft_server_port(fleet->sentinel[0]));
    return hft_client_at(url, options);
}

static void the_other_sentinels_are_found_and_asked(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client = client_of_one(fleet, HF_CLIENT(.replicas = HF_ALL, .lease_ms = 20000));
    HFT_UNTIL_TRUE(is_found(client, "3 of 3 sentinels answer"));
    hft_server_kill(fleet->sentinel[0]);
    hft_server_kill(fleet->server[1]); /* it takes two votes of three to leave it out */
    HFT_UNTIL_TRUE(is_found(client, "1 replicas have to confirm"));
    HFT_UNTIL_TRUE(locks(client, "name"));
    hft_server_kill(fleet->server[0]);
    HFT_UNTIL_TRUE(is_at(client, fleet->server[2]));
    assert_true(is_found(client, "2 of 3 sentinels answer"));
    (void)hf_client_close(client, NULL);
}

static bool knows_others(struct hft_server *sentinel, size_t count)
{
    redisReply *others = hft_server_ask(sentinel, "SENTINEL SENTINELS mymaster");
    bool knows = others->elements == count;
    freeReplyObject(others);
    return knows;
}

/* To the sentinels they are further ones: nobody is at their ports. False: the first sentinel has not heard it. */
static bool make_up_sentinels(const struct hft_fleet *fleet, int count)
{
    char command[300];
    for (int i = 1; i <= count; i++) {
        (void)snprintf(command, sizeof command, "PUBLISH __sentinel__:hello 127.0.0.1,%d,%040d,0,mymaster,127.0.0.1,%d,0", i, i,
                       hft_server_port(fleet->server[0]));
        freeReplyObject(hft_server_ask(fleet->server[0], command));
    }
    return knows_others(fleet->sentinel[0], (size_t)count);
}

static void one_that_nobody_lists_any_more_gives_its_place_to_another(void **state)
{
    struct hft_fleet *fleet = *state;
    hft_server_freeze(fleet->sentinel[1]);
    freeReplyObject(hft_server_ask(fleet->sentinel[0], "SENTINEL RESET mymaster"));
    HFT_UNTIL_TRUE(make_up_sentinels(fleet, 20)); /* it subscribes anew first */
    hf_client *client = client_of_one(fleet, HF_CLIENT(.replicas = HF_ALL)); /* it asks each second */
    HFT_UNTIL_TRUE(is_found(client, "1 of 21 sentinels answer"));
    hft_server_thaw(fleet->sentinel[1]);
    freeReplyObject(hft_server_ask(fleet->sentinel[0], "SENTINEL RESET mymaster"));
    HFT_UNTIL_TRUE(is_found(client, "2 of 2")); /* 21 or 22, as the other one has heard: two do not outvote so many */
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

struct silence {
    long s;          /* for how long the client of this name has not asked it anything; -1: it never has */
    long asked_at_s; /* since it is connected */
};

static struct silence silence(struct hft_server *sentinel, const char *name)
{
    char words[64];
    struct silence silent = {-1, -1};
    (void)snprintf(words, sizeof words, " name=%s ", name);
    redisReply *reply = hft_server_ask(sentinel, "CLIENT LIST");
    for (char *rest = reply->str, *line; (line = strsep(&rest, "\n")) != NULL;) {
        const char *age = strstr(line, " age="), *idle = strstr(line, " idle=");
        if (strstr(line, words) == NULL || strstr(line, " cmd=sentinel") == NULL || age == NULL || idle == NULL)
            continue;
        silent.s = strtol(idle + 6, NULL, 10);
        silent.asked_at_s = strtol(age + 5, NULL, 10) - silent.s;
    }
    freeReplyObject(reply);
    return silent;
}

static bool has_asked(struct hft_server *sentinel, const char *name, long *last_s)
{
    long before_s = *last_s;
    *last_s = silence(sentinel, name).asked_at_s;
    return *last_s > before_s;
}

static void who_holds_nothing_asks_seldom(void **state)
{
    struct hft_fleet *fleet = *state;
    struct hft_server *sentinel = fleet->sentinel[1];
    hf_lease *lease;
    int times = 0;
    long last_s = -1;
    hf_client *client = hft_client_at(fleet->url, HF_CLIENT(.client_name = "seldom"));
    hf_client *often = hft_client_at(fleet->url, HF_CLIENT(.client_name = "often", .replicas = HF_ALL));
    HFT_UNTIL_TRUE(silence(sentinel, "seldom").s >= 3);
    assert_in_range(silence(sentinel, "often").s, 0, 2);
    assert_int_equal(hf_client_close(often, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(client, "name", NULL, &lease, NULL), HF_OK);
    HFT_UNTIL_TRUE((times += has_asked(sentinel, "seldom", &last_s)) == 4); /* every ten seconds this would not be in time */
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void sentinels_have_a_password_of_their_own(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client;
    hf_error error;
    char url[400];
    assert_int_equal(hf_client_open(fleet->url, NULL, &client, &error), HF_DENIED);
    assert_int_equal(hf_client_open(fleet->url, HF_CLIENT(.sentinel_user = "watcher", .sentinel_password = "seen",
                                                          .replicas = HF_ALL), &client, &error), HF_OK);
    HFT_UNTIL_TRUE(locks(client, "name"));
    redisReply *refused = hft_server_ask(fleet->sentinel[0], "ACL LOG");
    assert_int_equal(refused->elements, 0);
    freeReplyObject(refused);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    (void)snprintf(url, sizeof url, "%s?sentinel_user=watcher&sentinel_password=wrong", fleet->url);
    assert_int_equal(hf_client_open(url, NULL, &client, &error), HF_DENIED);
    assert_null(strstr(error.message, "wrong"));
}

int main(void)
{
    const struct CMUnitTest of_one_fleet[] = {
        cmocka_unit_test(who_names_no_sentinels_of_the_service_is_told),
        cmocka_unit_test(one_sentinel_that_answers_is_enough),
        cmocka_unit_test(who_holds_nothing_asks_seldom),
        cmocka_unit_test(the_primary_is_found_and_followed_over_a_planned_failover),
    };
    const struct CMUnitTest of_their_own[] = {
        cmocka_unit_test_setup_teardown(the_other_sentinels_are_found_and_asked, start_three, stop),
        cmocka_unit_test_setup_teardown(one_that_nobody_lists_any_more_gives_its_place_to_another, start_two, stop),
        cmocka_unit_test_setup_teardown(one_that_the_uri_names_twice_is_one, start_one, stop),
        cmocka_unit_test_setup_teardown(it_is_followed_when_it_is_killed_and_when_sentinels_are, start_three, stop),
        cmocka_unit_test_setup_teardown(sentinels_have_a_password_of_their_own, start_with_a_password, stop),
    };
    return cmocka_run_group_tests(of_one_fleet, start_three, stop) + cmocka_run_group_tests(of_their_own, NULL, NULL);
}
