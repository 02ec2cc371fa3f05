/* SPDX-License-Identifier: MIT */
/* withheld_test.c - services that withhold commands: what is put up with, and the one sentence where nothing helps. */
#include "core/context/context.h"
#include "core/protocol/scripts.h"
#include "tests/support/script_source.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOREVER HF_LOCK(.wait_ms = HF_FOREVER)
#define ASKED   200 /* times */

static struct hft_server *server;
static hf_error error;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    char line[512];
    va_list words;
    va_start(words, format);
    (void)vsnprintf(line, sizeof line, format, words);
    va_end(words);
    redisReply *reply = hft_server_ask(server, line);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", line, reply->str);
    freeReplyObject(reply);
}

static int start_with(const char *config)
{
    hft_server_stop(server);
    server = hft_server_start(config);
    memset(&error, 0, sizeof error);
    return 0;
}

static int start(void **state)
{
    (void)state;
    return start_with("user part on >pw ~* &* +@all");
}

static int stop(void **state)
{
    (void)state;
    hft_server_stop(server);
    server = NULL;
    return 0;
}

static const hf_client_options as_part = {.size = sizeof as_part, .user = "part", .password = "pw"};

static void is_refused_with(hf_status status, const char *in_message, const char *in_hint)
{
    hf_client *client = NULL;
    assert_int_equal(hf_client_open(hft_server_url(server), &as_part, &client, &error), status);
    if (strstr(error.message, in_message) == NULL || strstr(error.hint, in_hint) == NULL)
        fail_msg("%s / %s", error.message, error.hint);
}

static void lock_and_release(hf_client *client, const char *name)
{
    hf_lease *lease;
    if (hf_lock_acquire(client, name, FOREVER, &lease, &error) != HF_OK)
        fail_msg("%s", error.message);
    assert_int_equal(hf_lease_release(lease, &error), HF_OK);
}

/* ---- without some, or all, of six commands ---- */

static void a_lock_goes_from_one_to_the_other(hf_client *a, hf_client *b)
{
    struct hft_taker taker;
    hf_lease *lease;
    if (hf_lock_acquire(a, "x", NULL, &lease, &error) != HF_OK)
        fail_msg("%s", error.message);
    hft_take(&taker, b, "x", FOREVER);
    HFT_UNTIL_TRUE(hft_queued(server, "x") == 1);
    assert_int_equal(hf_lease_release(lease, &error), HF_OK);
    if (hft_taken(&taker) != HF_OK)
        fail_msg("%s", taker.error.message);
    assert_int_equal(hf_lease_release(taker.lease, &error), HF_OK);
}

static void whatever_of_six_commands_is_withheld_a_lock_goes_from_hand_to_hand(void **state)
{
    static const char *const withheld[] = {"time", "client", "config", "role", "info", "script|load"};
    (void)state;
    for (unsigned without = 0; without < 64; without++) {
        char rights[128] = "ACL SETUSER part +@all";
        for (unsigned i = 0; i < 6; i++)
            if (without >> i & 1)
                (void)snprintf(rights + strlen(rights), sizeof rights - strlen(rights), " -%s", withheld[i]);
        say("FLUSHALL");
        say("SCRIPT FLUSH");
        say("%s", rights);
        hf_client *a = hft_client(server, &as_part), *b = hft_client(server, &as_part);
        a_lock_goes_from_one_to_the_other(a, b);
        assert_int_equal(hft_server_ask_integer(server, "EXISTS hf:clock:0"), without & 1);
        assert_int_equal(hf_client_close(a, &error), HF_OK);
        assert_int_equal(hf_client_close(b, &error), HF_OK);
    }
}

static void what_a_user_was_never_allowed_may_be_unknown_to_all(void **state)
{
    (void)state;
    (void)start_with("rename-command ROLE \"\"\nrename-command CONFIG \"\"\nrename-command CLIENT \"\"");
    hf_client *client = hft_client(server, NULL);
    lock_and_release(client, "x");
    struct hfi_lane *lane = hfi_pool_lane(client->pool, HFI_LOCK_LANE, 0);
    uint64_t cuts = hfi_lane_cuts(lane);
    lock_and_release(client, "x");
    assert_int_equal(hfi_lane_cuts(lane), cuts);
    assert_int_equal(hf_client_close(client, &error), HF_OK);
}

/* ---- the clock ---- */

static int64_t time_of(redisReply *reply, size_t at)
{
    int64_t us = at == 0 && reply->element[0]->type == REDIS_REPLY_INTEGER
                     ? reply->element[0]->integer
                     : strtoll(reply->element[0]->str, NULL, 10) * 1000000 + strtoll(reply->element[1]->str, NULL, 10);
    freeReplyObject(reply);
    return us;
}

static void the_key_tells_the_same_time(void **state)
{
    const char *floor = hft_script_source(hfi_script_other(hfi_script_fence_floor));
    (void)state;
    assert_string_equal(hfi_script_name(hfi_script_other(hfi_script_fence_floor)), "fence_floor");
    for (int i = 0; i < ASKED; i++) {
        int64_t before = time_of(hft_server_ask(server, "TIME"), 0);
        int64_t now = time_of(hft_server_ask(server, "EVAL %s 1 hf:fence 0 0", floor), 0);
        int64_t after = time_of(hft_server_ask(server, "TIME"), 0);
        assert_in_range(now, before - 1000, after + 1000);
        if (i % 20 == 19)
            say("PERSIST hf:clock:0"); /* another program's doing */
    }
}

static void a_full_server_renews_and_releases_by_that_clock(void **state)
{
    (void)state;
    say("ACL SETUSER part -time");
    hf_client *client = hft_client(server, &as_part);
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(client, "x", HF_LOCK(.lease_ms = 900), &lease, &error), HF_OK);
    say("CONFIG SET maxmemory 1");
    HFT_WHILE_RENEWED(client, 3, hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, &error), HF_OK);
    assert_int_equal(hft_lock_exists(server, "x"), 0);
    assert_int_equal(hf_client_close(client, &error), HF_OK);
}

static void it_is_found_out_once(void **state)
{
    (void)state;
    say("ACL SETUSER part -time");
    hf_client *client = hft_client(server, &as_part);
    struct hfi_server told;
    hfi_pool_server(client->pool, &told);
    assert_true(told.clock_by_key);
    lock_and_release(client, "x");
    say("ACL LOG RESET");
    for (int i = 0; i < 3; i++) { /* its connections come again */
        (void)hft_server_ask_integer(server, "CLIENT KILL USER part");
        lock_and_release(client, "x");
    }
    redisReply *log = hft_server_ask(server, "ACL LOG");
    assert_int_equal(log->elements, 0);
    freeReplyObject(log);
    hft_server_restart(server); /* a new run, which allows it all */
    lock_and_release(client, "x");
    hfi_pool_server(client->pool, &told);
    assert_false(told.clock_by_key);
    assert_int_equal(hft_server_ask_integer(server, "EXISTS hf:clock:0"), 0);
    (void)hf_client_close(client, NULL); /* HF_UNKNOWN where a cut was found while a request was being sent */
}

static void a_right_that_is_taken_away_later_is_found_missing_by_the_next_command(void **state)
{
    struct hft_taker taker;
    (void)state;
    hf_client *a = hft_client(server, &as_part), *b = hft_client(server, &as_part);
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(a, "x", NULL, &lease, &error), HF_OK);
    say("ACL SETUSER part -time");
    hft_take(&taker, b, "x", FOREVER); /* over a connection whose scripts ask for TIME */
    HFT_UNTIL_TRUE(hft_queued(server, "x") == 1);
    assert_int_equal(hf_lease_release(lease, &error), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, &error), HF_OK);
    assert_int_equal(hf_client_close(a, &error), HF_OK);
    assert_int_equal(hf_client_close(b, &error), HF_OK);
}

/* As doctor advises: +time; and the other one is taken away. */
static void rights_that_are_exchanged_are_found_by_the_next_connection(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        say("ACL SETUSER part +@all -time");
        hf_client *client = hft_client(server, &as_part);
        lock_and_release(client, "x");
        say("ACL SETUSER part +time -pexpiretime");
        if (cut)
            (void)hft_server_ask_integer(server, "CLIENT KILL USER part");
        hf_lease *lease;
        HFT_UNTIL_TRUE(hf_lock_acquire(client, "x", FOREVER, &lease, &error) == HF_OK);
        assert_int_equal(hf_lease_release(lease, &error), HF_OK);
        (void)hf_client_close(client, &error); /* UNKNOWN: what was under way when its connections were killed */
    }
}

static void a_command_that_is_renamed_for_all_is_a_clock_withheld(void **state)
{
    (void)state;
    (void)start_with("rename-command TIME \"\"");
    hf_client *a = hft_client(server, NULL), *b = hft_client(server, NULL);
    a_lock_goes_from_one_to_the_other(a, b);
    assert_int_equal(hft_server_ask_integer(server, "EXISTS hf:clock:0"), 1);
    assert_int_equal(hf_client_close(a, &error), HF_OK);
    assert_int_equal(hf_client_close(b, &error), HF_OK);
}

static bool count_holder(const hf_holder *holder, void *arg)
{
    *(int *)arg += holder->fence >= 0;
    return true;
}

/* Its only connection has asked for no floor, and its script is not at the server. */
static void who_only_looks_finds_out_too(void **state)
{
    int holders = 0;
    (void)state;
    hf_client *holder = hft_client(server, NULL);
    hf_lease *lease;
    assert_int_equal(hf_semaphore_acquire(holder, "s", 2, 1, NULL, &lease, &error), HF_OK);
    say("ACL SETUSER part -time");
    hf_client_options lazy = as_part;
    lazy.lazy = true;
    hf_client *client = hft_client(server, &lazy);
    if (hf_semaphore_info(client, "s", count_holder, &holders, &error) != HF_OK)
        fail_msg("%s", error.message);
    assert_int_equal(holders, 1);
    assert_int_equal(hf_lease_release(lease, &error), HF_OK);
    assert_int_equal(hf_client_close(client, &error), HF_OK);
    assert_int_equal(hf_client_close(holder, &error), HF_OK);
}

static void without_any_clock_one_sentence_says_so(void **state)
{
    (void)state;
    say("ACL SETUSER part -time -pexpiretime");
    is_refused_with(HF_DENIED, "neither TIME nor PEXPIRETIME", "+time");
    (void)start_with("user part on >pw ~* &* +@all -time\nrename-command PEXPIRETIME \"\""); /* as before Redis 7.0 */
    is_refused_with(HF_PROTOCOL, "knows no PEXPIRETIME", "Redis 7.0");
    say("ACL SETUSER part +time");
    hf_client *client = hft_client(server, &as_part);
    lock_and_release(client, "x");
    assert_int_equal(hf_client_close(client, &error), HF_OK);
}

/* ---- no scripts, and clusters ---- */

static void a_service_without_scripts_is_no_service_for_locks(void **state)
{
    static const char *const without[] = {"rename-command EVALSHA \"\"", "rename-command EVAL \"\"",
                                          "rename-command EVALSHA \"\"\nrename-command EVAL \"\"\nrename-command SCRIPT \"\""};
    (void)state;
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        char config[200];
        (void)snprintf(config, sizeof config, "user part on >pw ~* &* +@all -script\n%s", without[i]);
        (void)start_with(config);
        is_refused_with(HF_PROTOCOL, "this service has no scripts", "EVAL");
    }
}

static bool serves_its_slots(void)
{
    redisReply *info = hft_server_ask(server, "CLUSTER INFO");
    bool serves = strstr(info->str, "cluster_state:ok") != NULL;
    freeReplyObject(info);
    return serves;
}

static void a_node_of_a_cluster_is_called_that(void **state)
{
    static const char hint[] = "Holdfast does not speak to clusters yet: name one primary";
    hf_lease *lease;
    (void)state;
    char config[100];
    (void)snprintf(config, sizeof config, "cluster-enabled yes\ncluster-port %d\nuser part on >pw ~* &* +@all", hft_free_port());
    (void)start_with(config);
    is_refused_with(HF_PROTOCOL, "is a node of a cluster", hint);
    say("ACL SETUSER part -info"); /* and where it is not told */
    is_refused_with(HF_UNAVAILABLE, "this is a cluster, the server says \"CLUSTERDOWN", hint);
    say("CLUSTER ADDSLOTSRANGE 0 16383");
    HFT_UNTIL_TRUE(serves_its_slots());
    hf_client *client = hft_client(server, &as_part);
    assert_int_equal(hf_lock_acquire(client, "x", HF_LOCK(.wait_ms = 5000), &lease, &error), HF_INVALID);
    assert_non_null(strstr(error.message, "this is a cluster, the server says \"CROSSSLOT"));
    assert_string_equal(error.hint, hint);
    (void)hf_client_close(client, NULL);
}

/* ---- the doctor ---- */

static bool collect(const hf_finding *finding, void *arg)
{
    char *text = arg;
    (void)snprintf(text + strlen(text), 8192 - strlen(text), "%s | %s\n", finding->what, finding->remedy);
    return true;
}

static void diagnose(const char *rights, char text[8192])
{
    say("ACL SETUSER part +@all %s", rights);
    hf_client *client = hft_client(server, &as_part);
    text[0] = 0;
    assert_int_equal(hf_client_check(client, collect, text, &error), HF_OK);
    assert_int_equal(hf_client_close(client, &error), HF_OK);
}

static void the_doctor_names_what_is_lost_and_remedies_within_reach(void **state)
{
    static const char *const lost[] = {"nor its run id", "does not tell its role", "the key hf:clock:0"};
    static char text[8192];
    (void)state;
    diagnose("-info -role -time", text);
    for (size_t i = 0; i < 3; i++)
        if (strstr(text, lost[i]) == NULL)
            fail_msg("%s: %s", lost[i], text);
    assert_non_null(strstr(text, "| ACL SETUSER <user> +role"));
    assert_non_null(strstr(text, "| ACL SETUSER <user> +time"));
    diagnose("-info -role -time -acl", text);
    assert_null(strstr(text, "ACL SETUSER"));
    assert_non_null(strstr(text, "| in the service's own settings: +role"));
    diagnose("", text);
    for (size_t i = 0; i < 3; i++)
        assert_null(strstr(text, lost[i]));
    assert_non_null(strstr(text, "| CONFIG SET appendonly yes"));
    diagnose("-config", text);
    assert_null(strstr(text, "CONFIG SET"));
    assert_non_null(strstr(text, "| in the service's own settings: appendonly yes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(whatever_of_six_commands_is_withheld_a_lock_goes_from_hand_to_hand, start),
        cmocka_unit_test_setup(what_a_user_was_never_allowed_may_be_unknown_to_all, start),
        cmocka_unit_test_setup(the_key_tells_the_same_time, start),
        cmocka_unit_test_setup(a_full_server_renews_and_releases_by_that_clock, start),
        cmocka_unit_test_setup(it_is_found_out_once, start),
        cmocka_unit_test_setup(a_right_that_is_taken_away_later_is_found_missing_by_the_next_command, start),
        cmocka_unit_test_setup(rights_that_are_exchanged_are_found_by_the_next_connection, start),
        cmocka_unit_test_setup(a_command_that_is_renamed_for_all_is_a_clock_withheld, start),
        cmocka_unit_test_setup(who_only_looks_finds_out_too, start),
        cmocka_unit_test_setup(without_any_clock_one_sentence_says_so, start),
        cmocka_unit_test_setup(a_service_without_scripts_is_no_service_for_locks, start),
        cmocka_unit_test_setup(a_node_of_a_cluster_is_called_that, start),
        cmocka_unit_test_setup(the_doctor_names_what_is_lost_and_remedies_within_reach, start),
    };
    return cmocka_run_group_tests(tests, NULL, stop);
}
