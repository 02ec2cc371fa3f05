/* SPDX-License-Identifier: MIT */
/* replies_test.c - what error replies mean. */
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct row {
    const char *text;
    const char *prefix;
    hf_status status;
    bool executed, reconnect;
} rows[] = {
    {"LOADING Redis is loading the dataset in memory", "LOADING", HF_UNAVAILABLE, false, false},
    {"READONLY You can't write against a read only replica.", "READONLY", HF_UNAVAILABLE, false, true},
    {"MASTERDOWN Link with MASTER is down", "MASTERDOWN", HF_UNAVAILABLE, false, true},
    {"OOM command not allowed when used memory > 'maxmemory'.", "OOM", HF_UNAVAILABLE, false, false},
    {"MISCONF Redis is configured to save RDB snapshots", "MISCONF", HF_UNAVAILABLE, false, false},
    {"NOREPLICAS Not enough good replicas to write.", "NOREPLICAS", HF_UNAVAILABLE, false, false},
    {"BUSY Redis is busy running a script.", "BUSY", HF_UNAVAILABLE, false, false},
    {"ERR max number of clients reached", "ERR max number of clients reached", HF_UNAVAILABLE, false, true},
    {"CLUSTERDOWN The cluster is down", "CLUSTERDOWN", HF_UNAVAILABLE, false, false},
    {"TRYAGAIN Multiple keys request during rehashing of slot", "TRYAGAIN", HF_UNAVAILABLE, false, false},
    {"MOVED 3999 127.0.0.1:6381", "MOVED", HF_UNAVAILABLE, false, false},
    {"ASK 3999 127.0.0.1:6381", "ASK", HF_UNAVAILABLE, false, false},
    {"CROSSSLOT Keys in request don't hash to the same slot", "CROSSSLOT", HF_INVALID, false, false},
    {"NOAUTH Authentication required.", "NOAUTH", HF_DENIED, false, true},
    {"WRONGPASS invalid username-password pair or user is disabled.", "WRONGPASS", HF_DENIED, false, true},
    {"NOPERM this user has no permissions to run the 'set' command", "NOPERM", HF_DENIED, false, false},
    {"DENIED Redis is running in protected mode because", "DENIED", HF_DENIED, false, true},
    {"ERR AUTH <password> called without any password configured", "ERR AUTH", HF_DENIED, false, true},
    {"EXECABORT Transaction discarded because of previous errors.", "EXECABORT", HF_UNAVAILABLE, false,
     false},
    {"EXECABORT Transaction discarded because of: NOAUTH Authentication required.", "NOAUTH", HF_DENIED,
     false, true},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", "WRONGTYPE", HF_FOREIGN, false,
     false},
    {"NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT", HF_UNAVAILABLE, false, false},
    {"UNBLOCKED force unblock from blocking operation", "UNBLOCKED", HF_UNKNOWN, true, true},
    {"ERR unknown command 'FOO', with args beginning with: 'a' ", "ERR unknown command", HF_PROTOCOL, false,
     false},
    {"ERR unknown command `FOO`", "ERR unknown command", HF_PROTOCOL, false, false},
    {"ERR DB index is out of range", "ERR DB index is out of range", HF_INVALID, false, false},
    {"ERR Protocol error: invalid bulk length", "ERR Protocol error", HF_INTERNAL, false, true},
    {"ERR value is not an integer or out of range", "", HF_UNAVAILABLE, true, false},
    {"", "", HF_UNAVAILABLE, true, false},
    {"BUSYGROUP Consumer Group name already exists", "", HF_UNAVAILABLE, true, false},
    {"BUSYKEY Target key name already exists.", "", HF_UNAVAILABLE, true, false},
    {"ERR AUTHENTIC", "", HF_UNAVAILABLE, true, false},
    /* Out of the middle of a script: Redis 7, then Redis 6. */
    {"OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:1.", "OOM",
     HF_UNAVAILABLE, true, false},
    {"ERR Error running script (call to f_9a): @user_script:1: @user_script: 1: -OOM command not allowed",
     "OOM", HF_UNAVAILABLE, true, false},
    {"ERR ACL failure in script: User part has no permissions to run the 'set' command script: 1f, on @user_script:11.",
     "ERR ACL failure in script", HF_DENIED, true, false}, /* Redis 7.2, 8, Valkey */
    {"ERR Error running script (call to f_9a): @user_script:1: nil", "", HF_UNAVAILABLE, true, false},
};

static void every_error_reply_has_one_meaning(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        const struct hfi_meaning *meaning = hfi_reply_meaning(row->text, strlen(row->text));
        if (strcmp(meaning->prefix, row->prefix) != 0 || meaning->status != row->status ||
            meaning->executed != row->executed || meaning->reconnect != row->reconnect)
            fail_msg("%s: \"%s\" %s executed %d reconnect %d", row->text, meaning->prefix,
                     hf_status_name(meaning->status), meaning->executed, meaning->reconnect);
        assert_true(meaning->hint[0] != 0 && strlen(meaning->hint) < sizeof((hf_error *)0)->hint);
    }
}

static hf_status failed(const char *text, hf_error *error)
{
    char copy[256];
    (void)snprintf(copy, sizeof copy, "%s", text);
    redisReply reply = {.type = REDIS_REPLY_ERROR, .str = copy, .len = strlen(copy)};
    return hfi_reply_fail(&reply, "cannot acquire \"x\"", "10.0.0.7:6379", error);
}

static void an_error_says_what_failed_where_and_what_to_do(void **state)
{
    (void)state;
    hf_error error;
    assert_int_equal(failed("NOPERM this user has no permissions to run the 'set' command", &error),
                     HF_DENIED);
    assert_int_equal(error.status, HF_DENIED);
    assert_string_equal(error.server, "10.0.0.7:6379");
    assert_non_null(strstr(error.message, "cannot acquire \"x\""));
    assert_non_null(strstr(error.message, "'set' command"));
    assert_true(error.hint[0] != 0);
    assert_int_equal(failed("LOADING Redis is loading", &error), HF_UNAVAILABLE);
    assert_true(error.retry_ms > 0);
    assert_int_equal(failed("LOADING Redis is loading", NULL), HF_UNAVAILABLE);
}

static void a_node_of_a_cluster_is_named_as_that(void **state)
{
    static const char *const words[] = {"MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381", "CLUSTERDOWN Hash slot not served",
                                        "CROSSSLOT Keys in request don't hash to the same slot"};
    hf_error error;
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        (void)failed(words[i], &error);
        assert_non_null(strstr(error.message, "this is a cluster"));
        assert_non_null(strstr(error.hint, "does not speak to clusters yet"));
        assert_true(hfi_reply_is_of_cluster(words[i], strlen(words[i])));
    }
    assert_false(hfi_reply_is_of_cluster("LOADING", 7));
}

static void the_arguments_of_an_unknown_command_are_never_shown(void **state)
{
    (void)state;
    hf_error error;
    assert_int_equal(failed("ERR unknown command 'AUTH', with args beginning with: 'me' 'hunter2' ", &error),
                     HF_PROTOCOL);
    assert_non_null(strstr(error.message, "'AUTH'"));
    assert_null(strstr(error.message, "hunter2"));
    assert_null(strstr(error.message, "'me'"));
}

static void an_answer_of_the_wrong_type_is_internal(void **state)
{
    (void)state;
    hf_error error;
    redisReply reply = {.type = REDIS_REPLY_INTEGER};
    assert_int_equal(hfi_reply_fail(&reply, "cannot acquire \"x\"", "s", &error), HF_INTERNAL);
    assert_int_equal(hfi_reply_fail(NULL, "cannot acquire \"x\"", "s", &error), HF_INTERNAL);
}

static void a_field_of_info_is_a_line_that_begins_with_its_name(void **state)
{
    (void)state;
    char text[] = "# Server\r\nredis_version:7.2.4\r\nold_run_id:x\r\nrun_id:abc\r\nempty:\r\nlast:9", out[8];
    redisReply reply = {.type = REDIS_REPLY_STRING, .str = text, .len = sizeof text - 1};
    assert_true(hfi_reply_info(&reply, "redis_version", out, sizeof out));
    assert_string_equal(out, "7.2.4");
    assert_true(hfi_reply_info(&reply, "run_id", out, sizeof out));
    assert_string_equal(out, "abc");
    assert_false(hfi_reply_info(&reply, "redis", out, sizeof out));
    assert_string_equal(out, "abc");
    assert_true(hfi_reply_info(&reply, "last", out, sizeof out));
    assert_string_equal(out, "9");
    assert_true(hfi_reply_info(&reply, "redis_version", out, 4)); /* as much as fits */
    assert_string_equal(out, "7.2");
    assert_true(hfi_reply_info(&reply, "empty", out, sizeof out));
    assert_string_equal(out, "");
    assert_false(hfi_reply_info(&(redisReply){.type = REDIS_REPLY_NIL}, "last", out, sizeof out));
    assert_false(hfi_reply_info(NULL, "last", out, sizeof out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_reply_has_one_meaning),
        cmocka_unit_test(an_error_says_what_failed_where_and_what_to_do),
        cmocka_unit_test(a_node_of_a_cluster_is_named_as_that),
        cmocka_unit_test(the_arguments_of_an_unknown_command_are_never_shown),
        cmocka_unit_test(an_answer_of_the_wrong_type_is_internal),
        cmocka_unit_test(a_field_of_info_is_a_line_that_begins_with_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
