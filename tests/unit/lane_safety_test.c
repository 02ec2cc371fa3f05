/* SPDX-License-Identifier: MIT */
/* lane_safety_test.c - the commands that hf_command refuses, and those that it accepts. */
#include "core/protocol/lane_safety.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool is_refused(const char *line)
{
    char copy[200], *rest = NULL;
    const char *argv[16];
    size_t sizes[16];
    int argc = 0;
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        argv[argc] = word;
        sizes[argc++] = strlen(word);
    }
    return hfi_lane_unsafe(argc, argv, sizes) != NULL;
}

static void what_blocks_binds_or_changes_a_connection_is_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {"BLPOP a 0",
                                        "BRPOP a 0",
                                        "BRPOPLPUSH a b 0",
                                        "BLMOVE a b LEFT LEFT 0",
                                        "BLMPOP 0 1 a LEFT",
                                        "BZPOPMIN a 0",
                                        "BZPOPMAX a 0",
                                        "BZMPOP 0 1 a MIN",
                                        "WAIT 1 0",
                                        "WAITAOF 1 1 0",
                                        "XREAD BLOCK 0 STREAMS a $",
                                        "xread count 2 block 0 streams a $",
                                        "XREADGROUP GROUP g c BLOCK 0 STREAMS a >",
                                        "MULTI",
                                        "EXEC",
                                        "DISCARD",
                                        "WATCH a",
                                        "UNWATCH",
                                        "SUBSCRIBE c",
                                        "PSUBSCRIBE c",
                                        "SSUBSCRIBE c",
                                        "UNSUBSCRIBE",
                                        "PUNSUBSCRIBE",
                                        "SUNSUBSCRIBE",
                                        "MONITOR",
                                        "SYNC",
                                        "PSYNC ? -1",
                                        "SELECT 1",
                                        "AUTH x",
                                        "HELLO 3",
                                        "RESET",
                                        "QUIT",
                                        "READONLY",
                                        "READWRITE",
                                        "ASKING",
                                        "CLIENT REPLY OFF",
                                        "CLIENT TRACKING ON",
                                        "client no-evict on",
                                        "CLIENT NO-TOUCH ON",
                                        "CLIENT SETNAME x",
                                        "CLIENT CACHING YES",
                                        "CLIENT IMPORT-SOURCE ON",
                                        "POST / HTTP/1.1",
                                        "Host: example.org",
                                        "SCRIPT DEBUG YES",
                                        "blpop a 0",
                                        "mUlTi"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (!is_refused(lines[i]))
            fail_msg("%s was not refused", lines[i]);
}

static void ordinary_commands_are_carried(void **state)
{
    (void)state;
    static const char *const lines[] = {"GET a",
                                        "SET MULTI BLOCK",
                                        "LPOP a",
                                        "XREAD STREAMS BLOCK 0",
                                        "XREAD COUNT 1 STREAMS a 0",
                                        "XREADGROUP GROUP BLOCK c STREAMS a >",
                                        "XREADGROUP GROUP g BLOCK COUNT 1 STREAMS a >",
                                        "CLIENT ID",
                                        "CLIENT LIST",
                                        "CLIENT",
                                        "SCRIPT LOAD x",
                                        "EVAL x 0",
                                        "PUBLISH c m",
                                        "BLPOPS",
                                        "MULT",
                                        "INFO",
                                        "CONFIG GET x"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (is_refused(lines[i]))
            fail_msg("%s was refused", lines[i]);
}

static void a_name_is_compared_by_its_size_and_not_up_to_a_nul(void **state)
{
    (void)state;
    const char *argv[] = {"MULTIPLY"};
    const size_t all[] = {8}, five[] = {5};
    assert_null(hfi_lane_unsafe(1, argv, all));
    assert_non_null(hfi_lane_unsafe(1, argv, five));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_blocks_binds_or_changes_a_connection_is_refused),
        cmocka_unit_test(ordinary_commands_are_carried),
        cmocka_unit_test(a_name_is_compared_by_its_size_and_not_up_to_a_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
