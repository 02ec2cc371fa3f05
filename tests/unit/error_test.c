/* SPDX-License-Identifier: MIT */
/* error_test.c - the one list of statuses, and the form of a caller's error. */
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void every_status_has_its_name_its_number_and_a_text(void **state)
{
    (void)state;
    assert_int_equal(HF_OK, 0);
#define X(name, number, text)                                                                                  \
    assert_int_equal(HF_##name, number);                                                                       \
    assert_string_equal(hf_status_name(HF_##name), "HF_" #name);                                               \
    assert_string_equal(hf_status_text(HF_##name), text);
    HF_STATUS_MAP(X)
#undef X
}

static void an_unknown_status_is_named_too(void **state)
{
    (void)state;
    assert_non_null(hf_status_name((hf_status)4711));
    assert_true(strlen(hf_status_text((hf_status)-1)) > 0);
}

static void the_version_is_the_headers(void **state)
{
    (void)state;
    char expected[32];
    (void)snprintf(expected, sizeof expected, "%d.%d.%d", HF_VERSION_MAJOR, HF_VERSION_MINOR, HF_VERSION_PATCH);
    assert_string_equal(hf_version(), expected);
}

static void a_failure_writes_every_field(void **state)
{
    (void)state;
    hf_error error, empty = {0};
    memset(&error, 0x5a, sizeof error);
    assert_int_equal(hfi_fail(&error, HF_INVALID, "do this", "%s is %d", "wait_ms", -7), HF_INVALID);
    assert_int_equal(error.status, HF_INVALID);
    assert_string_equal(error.message, "wait_ms is -7");
    assert_string_equal(error.hint, "do this");
    assert_string_equal(error.server, "");
    assert_int_equal(error.os_errno, 0);
    assert_int_equal(error.retry_ms, 0);
    assert_memory_equal(error.reserved, empty.reserved, sizeof error.reserved);
}

static void further_facts_are_added_and_the_next_failure_forgets_them(void **state)
{
    (void)state;
    hf_error error;
    (void)hfi_fail(&error, HF_UNAVAILABLE, NULL, "refused");
    hfi_fail_server(&error, "10.0.0.7:6379");
    hfi_fail_errno(&error, 111);
    hfi_fail_retry(&error, 250);
    assert_string_equal(error.server, "10.0.0.7:6379");
    assert_int_equal(error.os_errno, 111);
    assert_int_equal(error.retry_ms, 250);
    assert_string_equal(error.hint, "");
    (void)hfi_fail(&error, HF_BUSY, NULL, "busy");
    assert_string_equal(error.server, "");
    assert_int_equal(error.os_errno, 0);
    assert_int_equal(error.retry_ms, 0);
}

static void the_error_argument_may_be_null(void **state)
{
    (void)state;
    assert_int_equal(hfi_fail(NULL, HF_NOMEM, NULL, "%d", 1), HF_NOMEM);
    hfi_fail_server(NULL, "x");
    hfi_fail_errno(NULL, 1);
    hfi_fail_retry(NULL, 1);
}

static void a_too_long_text_is_cut_inside_its_field(void **state)
{
    (void)state;
    char much[1000];
    hf_error error;
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = 0;
    (void)hfi_fail(&error, HF_INVALID, much, "%s", much);
    hfi_fail_server(&error, much);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    assert_int_equal(strlen(error.hint), sizeof error.hint - 1);
    assert_int_equal(strlen(error.server), sizeof error.server - 1);
    assert_int_equal(error.status, HF_INVALID);
}

static void foreign_bytes_are_quoted_and_escaped(void **state)
{
    (void)state;
    char out[64];
    assert_string_equal(hfi_quote(out, sizeof out, "plain", 5), "\"plain\"");
    assert_string_equal(hfi_quote(out, sizeof out, "a\n\"\\\0\xff", 6), "\"a\\x0a\\x22\\x5c\\x00\\xff\"");
    assert_string_equal(hfi_quote(out, sizeof out, "", 0), "\"\"");
}

static void foreign_bytes_never_overrun_the_room_they_get(void **state)
{
    (void)state;
    char bytes[100], out[64];
    for (int kind = 0; kind < 2; kind++) {
        memset(bytes, kind == 0 ? 'x' : '\n', sizeof bytes);
        for (size_t room = 0; room <= 40; room++) {
            memset(out, '#', sizeof out);
            (void)hfi_quote(out, room, bytes, sizeof bytes);
            for (size_t i = room; i < sizeof out; i++)
                assert_int_equal(out[i], '#');
            if (room > 0)
                assert_non_null(memchr(out, 0, room));
            if (room >= 8)
                assert_string_equal(out + strlen(out) - 4, "...\"");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_name_its_number_and_a_text),
        cmocka_unit_test(an_unknown_status_is_named_too),
        cmocka_unit_test(the_version_is_the_headers),
        cmocka_unit_test(a_failure_writes_every_field),
        cmocka_unit_test(further_facts_are_added_and_the_next_failure_forgets_them),
        cmocka_unit_test(the_error_argument_may_be_null),
        cmocka_unit_test(a_too_long_text_is_cut_inside_its_field),
        cmocka_unit_test(foreign_bytes_are_quoted_and_escaped),
        cmocka_unit_test(foreign_bytes_never_overrun_the_room_they_get),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
