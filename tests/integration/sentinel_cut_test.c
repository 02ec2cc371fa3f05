/* SPDX-License-Identifier: MIT */
/* sentinel_cut_test.c - whoever hears no sentinel does not know for long who could be promoted; and one that refuses to say
 * something is heard, too. Real servers and sentinels. */
#include <holdfast/holdfast.h>

#include "tests/support/fleet.h"
#include "tests/support/takers.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int start(void **state)
{
    struct hft_fleet *fleet = calloc(1, sizeof *fleet);
    hft_fleet_start(fleet, 2, 3, 30000, NULL);
    *state = fleet;
    return 0;
}

static int stop(void **state)
{
    hft_fleet_stop(*state);
    free(*state);
    return 0;
}

static void tell_all(const struct hft_fleet *fleet, const char *command)
{
    for (int i = 0; i < fleet->sentinels; i++)
        freeReplyObject(hft_server_ask(fleet->sentinel[i], command));
}

/* A replica that is attached meanwhile would not be waited for, and be promoted. */
static void who_is_cut_off_from_all_sentinels_grants_and_renews_nothing(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_lease *lease, *other;
    hf_error error;
    tell_all(fleet, "ACL SETUSER app on >word allchannels +@all");
    hf_client *all = hft_client_at(fleet->url, HF_CLIENT(.replicas = HF_ALL, .sentinel_user = "app", .sentinel_password = "word"));
    hf_client *one = hft_client_at(fleet->url, HF_CLIENT(.replicas = 1, .sentinel_user = "app", .sentinel_password = "word"));
    assert_int_equal(hf_lock_acquire(all, "held", HF_LOCK(.lease_ms = 2000, .wait_ms = 15000), &lease, &error), HF_OK);
    assert_int_equal(hf_lock_acquire(one, "other", HF_LOCK(.lease_ms = 2000, .wait_ms = 15000), &other, &error), HF_OK);
    HFT_WHILE_RENEWED(all, 6, hf_lease_is_valid(lease)); /* more than three seconds: each answer counts anew */
    tell_all(fleet, "ACL SETUSER app off");
    tell_all(fleet, "CLIENT KILL USER app");
    HFT_UNTIL_TRUE(hft_lock_once(all, "name", 0, &error) == HF_UNAVAILABLE &&
                   strstr(error.message, "none is known that could be promoted") != NULL);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    HFT_WHILE_RENEWED(one, 2, hf_lease_is_valid(other)); /* any replica is enough for it */
    assert_int_equal(hft_lock_once(one, "name", 15000, &error), HF_OK);
    tell_all(fleet, "ACL SETUSER app on");
    HFT_UNTIL_TRUE(hft_lock_once(all, "name", 0, &error) == HF_OK);
    assert_int_equal(hf_lease_release(other, NULL), HF_OK);
    assert_int_equal(hf_client_close(all, NULL), HF_OK);
    assert_int_equal(hf_client_close(one, NULL), HF_OK);
}

static void a_sentinel_that_may_not_be_asked_for_the_primary_says_so(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_client *client;
    hf_error error;
    tell_all(fleet, "ACL SETUSER few on >secret allchannels +@all -sentinel|master");
    assert_int_equal(hf_client_open(fleet->url, HF_CLIENT(.sentinel_user = "few", .sentinel_password = "secret"), &client, &error),
                     HF_DENIED);
    assert_non_null(strstr(error.message, "refuses sentinel|master"));
    assert_non_null(strstr(error.message, "NOPERM"));
    assert_non_null(strstr(error.hint, "+sentinel|master"));
    assert_null(strstr(error.message, "secret"));
}

static void count_refusals(hf_log_level level, const char *message, void *arg)
{
    if (level == HF_LOG_WARNING && strstr(message, "refuses sentinel|replicas") != NULL)
        (void)atomic_fetch_add((_Atomic(int) *)arg, 1);
}

/* Since ACL LOG RESET; the same refusals are one line with a count. */
static long long refused(struct hft_server *sentinel)
{
    redisReply *lines = hft_server_ask(sentinel, "ACL LOG");
    long long times = lines->elements > 0 && lines->element[0]->elements > 1 ? lines->element[0]->element[1]->integer : 0;
    freeReplyObject(lines);
    return times;
}

static void a_sentinel_that_may_not_be_asked_for_replicas_is_told_of_once(void **state)
{
    struct hft_fleet *fleet = *state;
    hf_error error;
    _Atomic(int) refusals = 0;
    tell_all(fleet, "ACL SETUSER less on >word allchannels +@all -sentinel|replicas");
    hf_client *client = hft_client_at(fleet->url, HF_CLIENT(.replicas = HF_ALL, .sentinel_user = "less", .sentinel_password = "word",
                                                            .log = count_refusals, .log_arg = &refusals));
    HFT_UNTIL_TRUE(atomic_load(&refusals) == fleet->sentinels);
    assert_int_equal(hft_lock_once(client, "name", 0, &error), HF_UNAVAILABLE);
    tell_all(fleet, "ACL LOG RESET");
    HFT_UNTIL_TRUE(refused(fleet->sentinel[0]) > 3);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    assert_int_equal(atomic_load(&refusals), fleet->sentinels);
}

struct opener {
    const char *url;
    hf_status opened, locked;
};

static void *open_and_try(void *arg)
{
    struct opener *opener = arg;
    hf_client *client;
    const hf_client_options *options =
        HF_CLIENT(.replicas = HF_ALL, .connect_ms = 15000, .command_ms = 15000, .replicas_ms = 5000, .sentinel_user = "late",
                  .sentinel_password = "word");
    opener->opened = hf_client_open(opener->url, options, &client, NULL);
    opener->locked = opener->opened == HF_OK ? hft_lock_once(client, "name", 0, NULL) : HF_CLOSED;
    (void)hf_client_close(client, NULL);
    return NULL;
}

/* A client is open when it has heard whose confirmation counts: so its first try can succeed. */
static void who_has_to_confirm_is_known_when_a_client_is_open(void **state)
{
    struct hft_fleet *fleet = *state;
    static struct opener opener; /* after a failure the thread may still use it */
    pthread_t thread;
    opener.url = fleet->url;
    tell_all(fleet, "ACL SETUSER late on >word allchannels +@all -sentinel|replicas");
    tell_all(fleet, "ACL LOG RESET");
    assert_int_equal(pthread_create(&thread, NULL, open_and_try, &opener), 0);
    HFT_UNTIL_TRUE(refused(fleet->sentinel[0]) > 3); /* it has known for long who the primary is */
    tell_all(fleet, "ACL SETUSER late +sentinel|replicas");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(opener.opened, HF_OK);
    assert_int_equal(opener.locked, HF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_cut_off_from_all_sentinels_grants_and_renews_nothing),
        cmocka_unit_test(a_sentinel_that_may_not_be_asked_for_the_primary_says_so),
        cmocka_unit_test(a_sentinel_that_may_not_be_asked_for_replicas_is_told_of_once),
        cmocka_unit_test(who_has_to_confirm_is_known_when_a_client_is_open),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
