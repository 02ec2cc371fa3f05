/* SPDX-License-Identifier: MIT */
/* message_test.c - a control channel is open to every client: a message is parsed as it is meant, or not at all. */
#include "base/random.h"
#include "core/protocol/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct hfi_message message_of(const char *text)
{
    struct hfi_message message;
    if (!hfi_message_parse(text, strlen(text), &message))
        fail_msg("%s was not understood", text);
    return message;
}

static void assert_words(const char *start, size_t size, const char *expected)
{
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(start, expected, size);
}

static void a_grant_names_token_echo_and_fence(void **state)
{
    (void)state;
    struct hfi_message message = message_of("G hf1:ab:1 1234567890 3686400000000000000");
    assert_int_equal(message.letter, 'G');
    assert_words(message.token, message.token_size, "hf1:ab:1");
    assert_int_equal(message.echo, 1234567890);
    assert_int_equal(message.fence, INT64_C(3686400000000000000));
    assert_int_equal(message.key_size, 0);
}

static void a_grant_and_a_wish_name_the_key_to_the_end(void **state)
{
    (void)state;
    struct hfi_message message = message_of("G hf1:ab:1 12 34 hf:{a b}");
    assert_int_equal(message.fence, 34);
    assert_words(message.key, message.key_size, "hf:{a b}");
    message = message_of("R hf1:ab:1 hf:{a b }");
    assert_words(message.token, message.token_size, "hf1:ab:1");
    assert_words(message.key, message.key_size, "hf:{a b }");
    message = message_of("R hf1:ab:1"); /* as older programs say it */
    assert_int_equal(message.key_size, 0);
}

static void the_other_letters_bring_their_fields(void **state)
{
    (void)state;
    struct hfi_message message = message_of("R tok");
    assert_int_equal(message.letter, 'R');
    assert_words(message.token, message.token_size, "tok");
    assert_int_equal(message_of("F tok").letter, 'F');
    message = message_of("B tok revoked");
    assert_words(message.rest, message.rest_size, "revoked");
    assert_int_equal(message.key_size, 0);
    message = message_of("B tok revoked hf:{a b}");
    assert_words(message.rest, message.rest_size, "revoked");
    assert_words(message.key, message.key_size, "hf:{a b}");
    message = message_of("B tok -");
    assert_words(message.rest, message.rest_size, "-");
    message = message_of("I tok hf:c:00");
    assert_words(message.rest, message.rest_size, "hf:c:00");
    message = message_of("A tok 77 1500 a label of words");
    assert_int_equal(message.fence, 77);
    assert_int_equal(message.held_ms, 1500);
    assert_words(message.rest, message.rest_size, "a label of words");
    message = message_of("A tok 77 1500 ");
    assert_int_equal(message.rest_size, 0);
    message = message_of("A tok 77 1500");
    assert_int_equal(message.rest_size, 0);
}

static void fields_that_a_later_version_appends_are_skipped(void **state)
{
    (void)state;
    assert_words(message_of("F tok more").token, 3, "tok");
}

static void anything_else_is_no_message(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        " ",
                                        "G",
                                        "G ",
                                        "G tok",
                                        "G tok 1",
                                        "G tok 1 ",
                                        "G tok  1 2",
                                        "G tok x 2",
                                        "G tok 1 x",
                                        "G tok -1 2",
                                        "G tok 1 2x",
                                        "G tok 1 99999999999999999999",
                                        "G tok 1 9223372036854775808",
                                        "GG tok 1 2",
                                        "g tok 1 2",
                                        "R",
                                        "R ",
                                        "R  ",
                                        "F",
                                        "B tok",
                                        "B tok ",
                                        "I tok",
                                        "A tok 1",
                                        "A tok 1 x",
                                        "Z tok",
                                        "tok",
                                        "\n",
                                        "G\ntok\n1\n2"};
    struct hfi_message message;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (hfi_message_parse(texts[i], strlen(texts[i]), &message))
            fail_msg("\"%s\" was understood", texts[i]);
    assert_int_equal(message_of("G tok 1 9223372036854775807").fence, INT64_MAX);
}

static void an_inquiry_and_its_answer_are_read_as_they_were_printed(void **state)
{
    (void)state;
    char text[HFI_MESSAGE_CAPACITY], answer[HFI_MESSAGE_CAPACITY];
    hfi_message_print_inquiry("tok and more", 3, "hf:c:me", text);
    assert_string_equal(text, "I tok hf:c:me");
    struct hfi_message inquiry = message_of(text);
    hfi_message_print_answer(&inquiry, 7, 1500, "a label", answer);
    assert_string_equal(answer, "A tok 7 1500 a label");
    assert_words(message_of(answer).rest, message_of(answer).rest_size, "a label");
}

/* Exact sizes on the heap, so that the sanitizers see a read past the end. Every pointer points into the message. */
static void no_bytes_make_the_parser_stumble(void **state)
{
    (void)state;
    static const char alphabet[] = "GRFBIA  0123456789t-";
    uint64_t rng = 11;
    int understood = 0;
    for (int i = 0; i < 100000; i++) {
        struct hfi_message message;
        size_t size = (size_t)(hfi_rng_next(&rng) % 40);
        char *text = malloc(size > 0 ? size : 1);
        assert_non_null(text);
        for (size_t at = 0; at < size; at++)
            text[at] = hfi_rng_next(&rng) % 50 == 0 ? (char)hfi_rng_next(&rng)
                                                 : alphabet[hfi_rng_next(&rng) % (sizeof alphabet - 1)];
        if (hfi_message_parse(text, size, &message)) {
            understood++;
            assert_true(message.token_size > 0);
            assert_true(message.token > text && message.token + message.token_size <= text + size);
            assert_true(message.echo >= 0 && message.fence >= 0 && message.held_ms >= 0);
            if (message.rest != NULL)
                assert_true(message.rest >= message.token && message.rest + message.rest_size <= text + size);
        }
        free(text);
    }
    assert_true(understood > 100);
}

static void a_notice_is_told_from_everything_else(void **state)
{
    (void)state;
    char text[HFI_MESSAGE_CAPACITY];
    struct hfi_message message;
    hfi_message_print_notice("-", text);
    assert_string_equal(text, "L -");
    assert_true(hfi_message_is_notice(text, strlen(text)));
    static const char *const others[] = {"", "L", "L ", "LL x", "l x", "del", "expired", "G x"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(hfi_message_is_notice(others[i], strlen(others[i])));
    assert_false(hfi_message_parse("L hf1:x", 7, &message)); /* on a control channel it is nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grant_names_token_echo_and_fence),
        cmocka_unit_test(a_grant_and_a_wish_name_the_key_to_the_end),
        cmocka_unit_test(the_other_letters_bring_their_fields),
        cmocka_unit_test(fields_that_a_later_version_appends_are_skipped),
        cmocka_unit_test(anything_else_is_no_message),
        cmocka_unit_test(an_inquiry_and_its_answer_are_read_as_they_were_printed),
        cmocka_unit_test(a_notice_is_told_from_everything_else),
        cmocka_unit_test(no_bytes_make_the_parser_stumble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
