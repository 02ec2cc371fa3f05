/* SPDX-License-Identifier: MIT */
/* script_test.c - scripts of both clocks, and what becomes of a script's command that was refused. */
#include "core/protocol/scripts.h"
#include "pool/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct hfi_script *const timed[] = {hfi_script_acquire, hfi_script_release, hfi_script_renew, hfi_script_fence_floor,
                                                 hfi_script_release_permits, hfi_script_recheck};
#define FORBIDDEN "ERR The user executing the script can't run this command or subcommand"
#define TIMED (sizeof timed / sizeof timed[0])

static struct hfi_command *command_of(const struct hfi_script *script)
{
    const char *const words[] = {"key", "argument"};
    struct hfi_command *command = hfi_command_script(script, 1, 2, words, NULL);
    assert_non_null(command);
    return command;
}

/* What Redis 7 says of the line where a command stands. */
static const char *refusal(const struct hfi_script *script, const char *what, const char *call)
{
    static char said[256];
    char *source = hfi_script_source(script), *at = strstr(source, call);
    int line = 1;
    assert_non_null(at);
    for (const char *before = source; before < at; before++)
        line += *before == '\n';
    (void)snprintf(said, sizeof said, "%s script: 0123, on @user_script:%d.", what, line);
    free(source);
    return said;
}

static void assert_same(const struct hfi_command *one, const struct hfi_command *other)
{
    assert_int_equal(one->size, other->size);
    assert_memory_equal(one->bytes, other->bytes, one->size);
}

static void the_other_set_differs_in_the_clock_alone(void **state)
{
    (void)state;
    assert_null(hfi_script_other(hfi_script_look));
    for (size_t i = 0; i < TIMED; i++) {
        const struct hfi_script *by_key = hfi_script_other(timed[i]);
        assert_true(by_key->clock == HFI_ASKS_KEY && timed[i]->clock == HFI_ASKS_TIME);
        assert_ptr_equal(hfi_script_other(by_key), timed[i]);
        assert_string_equal(hfi_script_name(by_key), hfi_script_name(timed[i]));
        assert_string_not_equal(by_key->sha1, timed[i]->sha1);
        char *source = hfi_script_source(timed[i]), *other = hfi_script_source(by_key);
        char *end = strstr(source, "local function"), *other_end = strstr(other, "local function");
        assert_non_null(strstr(source, "call('TIME')"));
        assert_null(strstr(other, "'TIME'"));
        if (end != NULL)
            assert_string_equal(end, other_end);
        free(source);
        free(other);
    }
}

static void a_command_takes_the_set_of_its_server(void **state)
{
    (void)state;
    for (size_t i = 0; i < TIMED; i++) {
        struct hfi_command *command = command_of(timed[i]), *plain = command_of(timed[i]), *other = command_of(hfi_script_other(timed[i]));
        hfi_command_use_clock(command, false);
        assert_same(command, plain);
        hfi_command_use_clock(command, true);
        assert_same(command, other);
        hfi_command_use_clock(command, true); /* once more, on another connection, */
        assert_same(command, other);
        hfi_command_use_clock(command, false); /* and on one to a server that allows TIME */
        assert_same(command, plain);
        hfi_command_unref(command);
        hfi_command_unref(plain);
        hfi_command_unref(other);
    }
    struct hfi_command *look = command_of(hfi_script_look), *plain = command_of(hfi_script_look);
    hfi_command_use_clock(look, true);
    assert_same(look, plain);
    hfi_command_unref(look);
    hfi_command_unref(plain);
}

static void where_the_time_is_refused_the_other_clock_is_asked(void **state)
{
    static const char *const words[] = {"ERR This Redis command is not allowed from script",
                                        FORBIDDEN,
                                        "ERR ACL failure in script: User part has no permissions to run the 'time' command",
                                        "ERR Unknown Redis command called from script",
                                        "ERR Unknown command called from script"};
    enum { WORDS = sizeof words / sizeof words[0] };
    (void)state;
    for (size_t i = 0; i < TIMED; i++) {
        for (size_t j = 0; j < 2 * WORDS; j++) { /* half of them have been sent as EVAL before */
            bool by_key = false;
            struct hfi_command *command = command_of(timed[i]), *other = command_of(hfi_script_other(timed[i]));
            assert_true(j < WORDS || hfi_command_mend(command, "NOSCRIPT No matching script.", &by_key));
            assert_false(by_key);
            const char *refused = refusal(timed[i], words[j % WORDS], "call('TIME')");
            assert_true(hfi_command_mend(command, refused, &by_key));
            assert_true(by_key);
            assert_true(hfi_command_mend(other, "NOSCRIPT No matching script.", &by_key));
            assert_same(command, other);
            assert_false(hfi_command_mend(command, refused, &by_key)); /* it is not sent for ever */
            assert_false(hfi_command_mend(command, "NOSCRIPT No matching script.", &by_key));
            hfi_command_unref(command);
            hfi_command_unref(other);
        }
    }
}

static void a_service_may_not_name_the_line(void **state)
{
    bool by_key = false;
    (void)state;
    struct hfi_command *command = command_of(hfi_script_renew);
    assert_true(hfi_command_mend(command, "ERR This command is not allowed from script", &by_key) && by_key);
    assert_false(hfi_command_mend(command, "ERR This command is not allowed from script", &by_key));
    hfi_command_unref(command);
}

static void an_inlined_command_takes_the_set_of_its_server_too(void **state)
{
    bool by_key = false;
    (void)state;
    struct hfi_command *command = command_of(hfi_script_renew), *other = command_of(hfi_script_other(hfi_script_renew));
    assert_true(hfi_command_mend(command, "NOSCRIPT", &by_key) && hfi_command_mend(other, "NOSCRIPT", &by_key));
    hfi_command_use_clock(command, true);
    assert_same(command, other);
    hfi_command_unref(command);
    hfi_command_unref(other);
}

static void assert_behind_a_ping(const struct hfi_command *command, const struct hfi_command *plain)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    size_t size = sizeof ping - 1;
    assert_int_equal(command->replies, 2);
    assert_int_equal(command->size, size + plain->size);
    assert_memory_equal(command->bytes, ping, size);
    assert_memory_equal(command->bytes + size, plain->bytes, plain->size);
}

static void what_stands_behind_a_ping_is_mended_as_what_stands_alone(void **state)
{
    bool by_key = false;
    (void)state;
    struct hfi_command *command = command_of(hfi_script_release), *plain = command_of(hfi_script_release);
    assert_true(hfi_command_ping_first(command));
    assert_behind_a_ping(command, plain);
    for (int i = 0; i < 2; i++) { /* by its digest, then with its source */
        hfi_command_use_clock(command, true);
        hfi_command_use_clock(plain, true);
        assert_behind_a_ping(command, plain);
        hfi_command_use_clock(command, false);
        hfi_command_use_clock(plain, false);
        assert_behind_a_ping(command, plain);
        assert_int_equal(hfi_command_mend(command, "NOSCRIPT", &by_key), i == 0);
        assert_int_equal(hfi_command_mend(plain, "NOSCRIPT", &by_key), i == 0);
    }
    hfi_command_unref(command);
    hfi_command_unref(plain);
}

static void what_else_is_refused_is_refused_for_good(void **state)
{
    const char *const words[] = {"PING"};
    bool by_key = false;
    (void)state;
    struct hfi_command *command = command_of(hfi_script_renew), *ping = hfi_command_new(1, words, NULL);
    assert_false(hfi_command_mend(command, refusal(hfi_script_renew, "ERR no", "call('PTTL'"), &by_key));
    assert_false(hfi_command_mend(command, refusal(hfi_script_renew, "MISCONF no", "call('TIME')"), &by_key));
    assert_false(hfi_command_mend(command, refusal(hfi_script_renew, FORBIDDEN, "call('PTTL'"), &by_key));
    assert_false(hfi_command_mend(command, FORBIDDEN " script: 0123, on @user_script:100000.", &by_key));
    assert_false(hfi_command_mend(command, FORBIDDEN " script: 0123, on @user_script:.", &by_key));
    assert_false(hfi_command_mend(command, FORBIDDEN, &by_key));
    assert_false(hfi_command_mend(command, "OOM command not allowed", &by_key));
    assert_false(hfi_command_mend(ping, "NOSCRIPT", &by_key));
    assert_false(by_key);
    hfi_command_unref(command);
    hfi_command_unref(ping);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_other_set_differs_in_the_clock_alone),
        cmocka_unit_test(a_command_takes_the_set_of_its_server),
        cmocka_unit_test(where_the_time_is_refused_the_other_clock_is_asked),
        cmocka_unit_test(a_service_may_not_name_the_line),
        cmocka_unit_test(an_inlined_command_takes_the_set_of_its_server_too),
        cmocka_unit_test(what_stands_behind_a_ping_is_mended_as_what_stands_alone),
        cmocka_unit_test(what_else_is_refused_is_refused_for_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
