/* SPDX-License-Identifier: MIT */
/* buffer_test.c - a buffer against a plain array. */
#include "base/buffer.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void an_empty_buffer_has_nothing_and_may_be_done(void **state)
{
    (void)state;
    struct hfi_buffer buffer = {0};
    assert_int_equal(hfi_buffer_size(&buffer), 0);
    assert_true(hfi_buffer_append(&buffer, NULL, 0));
    hfi_buffer_done(&buffer);
    hfi_buffer_done(&buffer);
}

static void appended_bytes_come_out_in_order_whatever_was_consumed_between(void **state)
{
    (void)state;
    static char written[400000];
    struct hfi_buffer buffer = {0};
    uint64_t rng = 1;
    size_t in = 0, out = 0;
    for (size_t i = 0; i < sizeof written; i++)
        written[i] = (char)hfi_rng_next(&rng);
    while (out < sizeof written) {
        size_t size = hfi_rng_next(&rng) % 3000;
        if (in + size > sizeof written)
            size = sizeof written - in;
        assert_true(hfi_buffer_append(&buffer, written + in, size));
        in += size;
        assert_int_equal(hfi_buffer_size(&buffer), in - out);
        assert_memory_equal(hfi_buffer_data(&buffer), written + out, in - out);
        size = in == sizeof written ? in - out : hfi_rng_next(&rng) % (in - out + 1);
        hfi_buffer_eat(&buffer, size);
        out += size;
    }
    assert_int_equal(hfi_buffer_size(&buffer), 0);
    hfi_buffer_done(&buffer);
}

static void a_consumed_stream_does_not_make_it_grow(void **state)
{
    (void)state;
    struct hfi_buffer buffer = {0};
    char some[100] = {0};
    for (int i = 0; i < 100000; i++) {
        assert_true(hfi_buffer_append(&buffer, some, sizeof some));
        if (i > 0)
            hfi_buffer_eat(&buffer, sizeof some); /* never quite empty */
    }
    assert_true(buffer.capacity <= 1024);
    hfi_buffer_done(&buffer);
}

static void a_reserved_buffer_does_not_move(void **state)
{
    (void)state;
    struct hfi_buffer buffer = {0};
    assert_true(hfi_buffer_append(&buffer, "ab", 2));
    const char *at = hfi_buffer_reserve(&buffer, 5000);
    assert_non_null(at);
    assert_int_equal(hfi_buffer_size(&buffer), 2);
    for (int i = 0; i < 1000; i++)
        assert_true(hfi_buffer_append(&buffer, "xxxxx", 5));
    assert_ptr_equal(hfi_buffer_data(&buffer), at - 2);
    assert_int_equal(hfi_buffer_size(&buffer), 5002);
    assert_memory_equal(hfi_buffer_data(&buffer), "abxxx", 5);
    hfi_buffer_done(&buffer);
}

static void a_failed_reservation_leaves_the_content_alone(void **state)
{
    (void)state;
    struct hfi_buffer buffer = {0};
    assert_true(hfi_buffer_append(&buffer, "keep", 4));
    assert_null(hfi_buffer_reserve(&buffer, SIZE_MAX));
    assert_null(hfi_buffer_reserve(&buffer, SIZE_MAX - 2));
    assert_int_equal(hfi_buffer_size(&buffer), 4);
    assert_memory_equal(hfi_buffer_data(&buffer), "keep", 4);
    hfi_buffer_done(&buffer);
}

static void printed_text_is_appended_without_its_end(void **state)
{
    (void)state;
    struct hfi_buffer buffer = {0};
    for (int i = 0; i < 1000; i++)
        assert_true(hfi_buffer_print(&buffer, "%03d,", i));
    assert_int_equal(hfi_buffer_size(&buffer), 4000);
    assert_memory_equal(hfi_buffer_data(&buffer), "000,001,", 8);
    assert_memory_equal(hfi_buffer_data(&buffer) + 3992, "998,999,", 8);
    hfi_buffer_done(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_has_nothing_and_may_be_done),
        cmocka_unit_test(appended_bytes_come_out_in_order_whatever_was_consumed_between),
        cmocka_unit_test(a_consumed_stream_does_not_make_it_grow),
        cmocka_unit_test(a_reserved_buffer_does_not_move),
        cmocka_unit_test(a_failed_reservation_leaves_the_content_alone),
        cmocka_unit_test(printed_text_is_appended_without_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
