/* SPDX-License-Identifier: MIT */
/* reply_schema_test.c - a reply of another form is an error: after one wrong byte, the reply behind it may be
 * another command's. */
#include "core/protocol/reply_schema.h"
#include "pool/parser.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TIME "*2\r\n$10\r\n1799999999\r\n$6\r\n000005\r\n" /* as TIME says it */

static bool fits(hfi_reply_validator *form, int expects, const char *bytes)
{
    struct hfi_command command = {.element_count = expects};
    redisReader *reader = hfi_parser_create(1 << 20);
    void *reply = NULL;
    assert_non_null(reader);
    assert_int_equal(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    bool answer = form(&command, reply);
    freeReplyObject(reply);
    redisReaderFree(reader);
    return answer;
}

static void the_replies_of_the_scripts_fit_their_schemas(void **state)
{
    (void)state;
    assert_true(fits(hfi_schema_native, 3, "*3\r\n+OK\r\n:3676627372906831873\r\n" TIME));
    assert_true(fits(hfi_schema_native, 3, "*3\r\n$-1\r\n:3676627372906831873\r\n" TIME));
    assert_true(fits(hfi_schema_native, 3, "*3\r\n+OK\r\n-ERR value is not an integer\r\n" TIME));
    assert_true(fits(hfi_schema_native, 2, "*2\r\n+OK\r\n:3676627372906831873\r\n"));
    assert_true(fits(hfi_schema_native, 2, "*2\r\n$-1\r\n:3676627372906831873\r\n"));
    assert_true(fits(hfi_schema_acquire, 0, "*3\r\n$7\r\nGRANTED\r\n$2\r\n17\r\n$2\r\n99\r\n"));
    assert_true(fits(hfi_schema_acquire, 0,
                     "*7\r\n$6\r\nQUEUED\r\n$2\r\n17\r\n$2\r\n-1\r\n:0\r\n$2\r\n17\r\n:1\r\n:0\r\n"));
    assert_true(fits(hfi_schema_acquire, 0, "*5\r\n$4\r\nBUSY\r\n$2\r\n17\r\n$1\r\n5\r\n:0\r\n:-1\r\n"));
    assert_true(fits(hfi_schema_acquire, 0, "*4\r\n$5\r\nVALUE\r\n$2\r\n17\r\n$0\r\n\r\n$1\r\n5\r\n"));
    assert_true(fits(hfi_schema_acquire, 0, "*7\r\n$6\r\nQUEUED\r\n:17\r\n:-1\r\n:0\r\n$2\r\n17\r\n:1\r\n:1\r\n"));
    assert_true(fits(hfi_schema_release, 0, "$4\r\nFREE\r\n"));
    assert_true(fits(hfi_schema_release, 0, "*2\r\n$6\r\nHANDED\r\n:17\r\n"));
    assert_true(fits(hfi_schema_release, 0, "*2\r\n$4\r\nMORE\r\n:17\r\n"));
    assert_true(fits(hfi_schema_more, 0, "*3\r\n$7\r\nFOREIGN\r\n:17\r\n$5\r\nfence\r\n"));
    assert_true(fits(hfi_schema_take_many, 0, "*3\r\n$7\r\nGRANTED\r\n:17\r\n:99\r\n"));
    assert_true(fits(hfi_schema_take_many, 0, "*3\r\n$4\r\nBUSY\r\n:17\r\n:2\r\n"));
    assert_true(fits(hfi_schema_take_many, 0, "*2\r\n$4\r\nLATE\r\n:17\r\n"));
    assert_true(fits(hfi_schema_take_many, 0, "*3\r\n$7\r\nFOREIGN\r\n:17\r\n$5\r\nfence\r\n"));
    assert_true(fits(hfi_schema_fill, 0, "*2\r\n$7\r\nMISSING\r\n:17\r\n"));
    assert_true(fits(hfi_schema_fill, 0, "*3\r\n$7\r\nFOREIGN\r\n:17\r\n$3\r\ntag\r\n"));
    assert_true(fits(hfi_schema_forget_tag, 0, "*3\r\n$4\r\nDONE\r\n:17\r\n:0\r\n"));
    assert_true(fits(hfi_schema_forget_tag, 0, "*5\r\n$4\r\nMORE\r\n:17\r\n:1\r\n$1\r\na\r\n$1\r\nb\r\n"));
    assert_true(fits(hfi_schema_forget_tag, 0, "*3\r\n$7\r\nFOREIGN\r\n:17\r\n$3\r\ntag\r\n"));
    assert_true(fits(hfi_schema_renew, 4, "*4\r\n$2\r\n17\r\n:1\r\n:4\r\n$6\r\nhf1:ab\r\n"));
    assert_true(fits(hfi_schema_floor, 0, "*2\r\n$2\r\n17\r\n$2\r\n99\r\n"));
    assert_true(fits(hfi_schema_recheck, 4, "*4\r\n$2\r\n17\r\n:0\r\n$12\r\n9999 12 1 -1\r\n$8\r\n-1 0 1 0\r\n"));
    assert_true(fits(hfi_schema_recheck, 3, "*3\r\n$2\r\n17\r\n$9\r\n-1 0 0 -1\r\n$8\r\n77 0 1 1\r\n"));
    assert_true(fits(hfi_schema_look, 0, "*1\r\n$4\r\nFREE\r\n"));
    assert_true(fits(hfi_schema_look, 0, "*4\r\n$4\r\nHELD\r\n$3\r\nhf1\r\n:-1\r\n:0\r\n"));
}

static void a_refusal_with_one_wrong_byte_is_no_grant(void **state)
{
    (void)state;
    assert_false(fits(hfi_schema_native, 3, "*3\r\n+-1\r\n:3676627372906831873\r\n" TIME));
    assert_false(fits(hfi_schema_native, 3, "*3\r\n:-1\r\n:3676627372906831873\r\n" TIME));
    assert_false(fits(hfi_schema_native, 3, "*3\r\n+OK\r\n:3676627372906831873\r\n:17\r\n"));
    assert_false(fits(hfi_schema_native, 3, "*3\r\n+OK\r\n:3676627372906831873\r\n*2\r\n$1\r\nx\r\n$1\r\n5\r\n"));
    assert_false(fits(hfi_schema_native, 3, "*3\r\n+OK\r\n:3676627372906831873\r\n*2\r\n$1\r\n5\r\n$7\r\n1000000\r\n"));
    assert_false(fits(hfi_schema_native, 3, "*3\r\n+OK\r\n:3676627372906831873\r\n*2\r\n$1\r\n5\r\n$2\r\n-1\r\n"));
    assert_false(fits(hfi_schema_native, 3, "*3\r\n+OK\r\n:3676627372906831873\r\n*1\r\n$1\r\n5\r\n"));
}

static void an_answer_that_is_too_short_leaves_its_rest_to_the_next_one(void **state)
{
    (void)state;
    assert_false(fits(hfi_schema_native, 3, "*2\r\n+OK\r\n:3676627372906831873\r\n"));
    assert_false(fits(hfi_schema_native, 2, "*3\r\n+OK\r\n:3676627372906831873\r\n" TIME));
    assert_false(fits(hfi_schema_native, 2, "*1\r\n+OK\r\n"));
    assert_false(fits(hfi_schema_acquire, 0, "*2\r\n$7\r\nGRANTED\r\n$2\r\n17\r\n$2\r\n99\r\n"));
    assert_false(fits(hfi_schema_release, 0, "*1\r\n$4\r\nFREE\r\n$2\r\n17\r\n"));
    assert_false(fits(hfi_schema_release, 0, "*1\r\n$6\r\nHANDED\r\n:17\r\n"));
    assert_false(fits(hfi_schema_renew, 3, "*2\r\n$2\r\n17\r\n:1\r\n:1\r\n"));
    assert_false(fits(hfi_schema_floor, 0, "*1\r\n$2\r\n17\r\n"));
}

static void an_answer_that_is_too_long_has_eaten_the_next_one(void **state)
{
    (void)state;
    assert_false(fits(hfi_schema_acquire, 0,
                      "*4\r\n$7\r\nGRANTED\r\n$2\r\n17\r\n$2\r\n99\r\n*2\r\n$4\r\nFREE\r\n$2\r\n17\r\n"));
    assert_false(fits(hfi_schema_renew, 2, "*3\r\n$2\r\n17\r\n:1\r\n:1\r\n"));
}

static void the_answer_to_another_question_does_not_fit(void **state)
{
    (void)state;
    assert_false(fits(hfi_schema_acquire, 0, "*2\r\n$4\r\nFREE\r\n$2\r\n17\r\n"));
    assert_false(fits(hfi_schema_release, 0, "*3\r\n$7\r\nGRANTED\r\n$2\r\n17\r\n$2\r\n99\r\n"));
    assert_false(fits(hfi_schema_release, 0, "$4\r\nGONE\r\n"));
    assert_false(fits(hfi_schema_take_many, 0, "*5\r\n$4\r\nBUSY\r\n:17\r\n:5\r\n:0\r\n:-1\r\n"));
    assert_false(fits(hfi_schema_take_many, 0, "*2\r\n$7\r\nGRANTED\r\n:17\r\n"));
    assert_false(fits(hfi_schema_take_many, 0, "$4\r\nBUSY\r\n"));
    assert_false(fits(hfi_schema_fill, 0, "*2\r\n$7\r\nFOREIGN\r\n:17\r\n"));
    assert_false(fits(hfi_schema_forget_tag, 0, "*2\r\n$4\r\nDONE\r\n:17\r\n"));
    assert_false(fits(hfi_schema_forget_tag, 0, "*4\r\n$4\r\nDONE\r\n:17\r\n:1\r\n:1\r\n"));
    assert_false(fits(hfi_schema_forget_tag, 0, "*3\r\n$4\r\nFREE\r\n:17\r\n:1\r\n"));
    assert_false(fits(hfi_schema_forget_tag, 0, "$4\r\nDONE\r\n"));
    assert_false(fits(hfi_schema_look, 0, "$4\r\nFREE\r\n"));
    assert_false(fits(hfi_schema_look, 0, "*3\r\n$4\r\nHELD\r\n$3\r\nhf1\r\n:-1\r\n"));
    assert_false(fits(hfi_schema_release, 0, "$6\r\nHANDED\r\n"));
    assert_false(fits(hfi_schema_acquire, 0, "$4\r\nFREE\r\n"));
    assert_false(fits(hfi_schema_renew, 2, "*2\r\n$2\r\n17\r\n:6\r\n"));
    static const char *const places[] = {":1",           "$7\r\n9 0 2 0",  "$7\r\nx 0 1 0",  "$7\r\n9 - 1 0", "$8\r\n9 0 1 00",
                                         "$5\r\n9 0 1", "$8\r\n9 0 1 0 ", "$8\r\n9 0 1 -0", "$7\r\n9 0 0 0", "$7\r\nGRANTED"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char bytes[64];
        (void)snprintf(bytes, sizeof bytes, "*2\r\n$2\r\n17\r\n%s\r\n", places[i]);
        assert_false(fits(hfi_schema_recheck, 2, bytes));
    }
    assert_false(fits(hfi_schema_recheck, 3, "*2\r\n$2\r\n17\r\n:0\r\n"));
    assert_false(fits(hfi_schema_acquire, 0, "*3\r\n$7\r\nGRANTED\r\n$2\r\n1x\r\n$2\r\n99\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_replies_of_the_scripts_fit_their_schemas),
        cmocka_unit_test(a_refusal_with_one_wrong_byte_is_no_grant),
        cmocka_unit_test(an_answer_that_is_too_short_leaves_its_rest_to_the_next_one),
        cmocka_unit_test(an_answer_that_is_too_long_has_eaten_the_next_one),
        cmocka_unit_test(the_answer_to_another_question_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
