/* SPDX-License-Identifier: MIT */
/* framing_test.c - where a reply ends, in whatever pieces it comes, and which replies are refused as too large
 * before they are complete. */
#include "pool/framing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 1000 };

static const char *const replies[] = {"+OK\r\n",
                                      "-ERR no\r\n",
                                      "-ERR a line\nin two\r\n",
                                      ":-12\r\n",
                                      "$-1\r\n",
                                      "*-1\r\n",
                                      "*0\r\n",
                                      "$0\r\n\r\n",
                                      "$5\r\na\r\nbc\r\n",
                                      "*2\r\n$3\r\n$9\r\r\n:7\r\n",
                                      "*3\r\n*0\r\n*2\r\n+a\r\n*1\r\n$1\r\nx\r\n*-1\r\n",
                                      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
                                      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*2\r\n*0\r\n:1\r\n",
                                      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*-1\r\n",
                                      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*2\r\n:1\r\n$1\r\n\n\r\n"};
enum { COUNT = sizeof replies / sizeof replies[0] };

static void a_reply_ends_where_the_next_one_begins_in_pieces_of_any_size(void **state)
{
    char stream[2048] = "";
    (void)state;
    for (int i = 0; i < COUNT; i++)
        (void)strcat(stream, replies[i]);
    for (size_t piece = 1; piece <= strlen(stream); piece++) {
        struct hfi_frame frame = {0};
        size_t at = 0, begun = 0, seen = 0;
        while (at < strlen(stream)) {
            size_t size = piece - at % piece, left = strlen(stream) - at;
            size_t used = hfi_frame_eat(&frame, stream + at, size < left ? size : left);
            assert_in_range(used, 1, size);
            at += used;
            assert_false(hfi_frame_is_wrong(&frame));
            if (!hfi_frame_is_whole(&frame))
                continue;
            assert_int_equal(at - begun, strlen(replies[seen]));
            assert_int_equal(frame.bytes, at - begun);
            begun = at;
            seen++;
            frame = (struct hfi_frame){0};
        }
        assert_int_equal(seen, COUNT);
    }
}

static bool is_too_much(const char *bytes, size_t most)
{
    struct hfi_frame frame = {0};
    (void)hfi_frame_eat(&frame, bytes, strlen(bytes));
    return hfi_frame_is_too_much(&frame, most);
}

static void a_too_large_reply_shows_in_its_announced_length(void **state)
{
    (void)state;
    assert_false(is_too_much("$900\r\n", MOST));
    assert_true(is_too_much("$1000\r\n", MOST));
    assert_true(is_too_much("$281474976710656\r\n", MOST));
    assert_false(is_too_much("*200\r\n", MOST));
    assert_true(is_too_much("*300\r\n", MOST));
    assert_true(is_too_much("*2\r\n$500\r\n", 500));
    assert_true(is_too_much("*3\r\n:1\r\n*300\r\n", MOST));
    assert_false(is_too_much("+OK\r\n", 5));
    assert_true(is_too_much("+OK\r\n", 4));
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(is_too_much(replies[i], MOST), i >= COUNT - 3); /* nine deep */
    assert_true(is_too_much("-no end of words", 8));
}

static void bytes_that_are_no_reply_are_an_error(void **state)
{
    static const char *const wrong[] = {"x", "\r\n", "%1\r\n", "$a\r\n", "*1-\r\n", "$9999999999999999\r\n", "$1 \r\n", "_\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct hfi_frame frame = {0};
        size_t used = hfi_frame_eat(&frame, wrong[i], strlen(wrong[i]));
        assert_true(hfi_frame_is_wrong(&frame) && !hfi_frame_is_whole(&frame));
        assert_true(used <= strlen(wrong[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_ends_where_the_next_one_begins_in_pieces_of_any_size),
        cmocka_unit_test(a_too_large_reply_shows_in_its_announced_length),
        cmocka_unit_test(bytes_that_are_no_reply_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
