/* SPDX-License-Identifier: MIT */
/* entry_trouble_test.c - an entry whose server is late, silent, away, refuses, or has a key of another type: no
 * thread hangs. */
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct hfi_answer granted = {.kind = HFI_GRANTED};
static const struct hfi_answer native_busy = {.kind = HFI_BUSY, .native = true};
static const struct hfi_answer late = {.kind = HFI_LATE};
static const struct hfi_answer no_answer = {.kind = HFI_NO_ANSWER};

static struct hfi_answer queued_at(int64_t position)
{
    return (struct hfi_answer){
        .kind = HFI_IN_QUEUE, .ours = true, .left_ms = 9000, .position = position, .ticket = 4711};
}

static struct hfi_answer cannot(hf_status status)
{
    return (struct hfi_answer){.kind = HFI_CANNOT, .status = status};
}

static void three_late_in_a_row_are_a_server_that_cannot_be_used(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    hft_queue(&s, &a, 1);
    (void)hft_arrive(&s, &b);
    (void)hft_look_next(&s);
    assert_string_equal(hft_answer(&s, late), "wait");
    assert_string_equal(hft_answer(&s, late), "wait");
    assert_string_equal(hft_answer(&s, queued_at(1)), "");
    (void)hft_look_next(&s);
    assert_string_equal(hft_answer(&s, late), "wait");
    assert_string_equal(hft_answer(&s, late), "wait");
    assert_string_equal(hft_answer(&s, late), "close a=UNAVAILABLE b=UNAVAILABLE");
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void without_an_answer_the_same_token_goes_on_by_script(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_try("b");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    struct hfi_answer none = no_answer;
    none.native = true;
    assert_string_equal(hft_answer(&s, none), "");
    assert_int_equal(s.entry.trouble, HF_UNAVAILABLE);
    assert_string_equal(hft_arrive(&s, &b), "b=UNAVAILABLE");
    assert_string_equal(hft_look_next(&s), "wait");
    assert_string_equal(hft_answer(&s, granted), "a=lease");
    assert_int_equal(s.entry.trouble, HF_OK);

    hft_stand_init(&s);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_answer(&s, none), "close b=UNAVAILABLE");
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void an_unsent_acquire_is_repeated_later_with_a_fresh_token(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    struct hfi_answer unsent = {.kind = HFI_NOT_SENT, .status = HF_UNAVAILABLE, .native = true};
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_answer(&s, unsent), "");
    assert_true(hfi_entry_next(&s.entry) > s.now + 300 * HFI_MS);
    assert_string_equal(hft_look_next(&s), "native!");
    (void)hft_answer(&s, native_busy);
    (void)hft_answer(&s, queued_at(1));
    (void)hft_look_next(&s);
    unsent.native = false; /* a re-check: the place in the queue stays */
    assert_string_equal(hft_answer(&s, unsent), "");
    assert_string_equal(hft_look_next(&s), "wait");
    assert_int_equal(hfi_entry_acquire_params(&s.entry).ticket, 4711);
}

static void a_nudge_ends_the_wait_for_a_server_that_was_away(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_NOT_SENT, .status = HF_UNAVAILABLE, .native = true});
    assert_string_equal(hft_nudged(&s), "native!");
}

static void a_server_that_cannot_now_is_ridden_out_one_that_will_not_is_told(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_answer(&s, cannot(HF_UNAVAILABLE)), "");
    assert_true(hfi_entry_next(&s.entry) > s.now + 300 * HFI_MS);
    assert_string_equal(hft_look_next(&s), "wait");
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_NOT_SENT, .status = HF_NOMEM}), "");
    assert_string_equal(hft_look_next(&s), "wait"); /* want of memory passes too */
    assert_string_equal(hft_answer(&s, cannot(HF_DENIED)), "close a=DENIED b=DENIED");
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void without_ride_out_all_waiters_get_that_the_server_is_away(void **state)
{
    (void)state;
    static const enum hfi_answer_kind kinds[] = {HFI_NO_ANSWER, HFI_NOT_SENT, HFI_CANNOT};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a"), b = hft_thread("b");
        hft_stand_init(&s);
        s.rules.native = s.rules.rides_out = false;
        (void)hft_arrive(&s, &a);
        (void)hft_arrive(&s, &b);
        assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = kinds[i], .status = HF_UNAVAILABLE}),
                            "close a=UNAVAILABLE b=UNAVAILABLE");
        assert_true(hfi_entry_is_idle(&s.entry));
    }
}

static void an_earlier_trouble_is_not_reported_again(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_try("b");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_answer(&s, cannot(HF_UNAVAILABLE)), "close b=UNAVAILABLE");
    hft_pass_ms(&s, 60000);
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_arrive(&s, &b), "b=BUSY");
    assert_int_equal(s.entry.trouble, HF_OK);
}

static void a_foreign_type_and_a_value_answer_everybody(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_FOREIGN_TYPE}),
                        "close a=FOREIGN b=FOREIGN");
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_HAS_VALUE}), "a=value b=value");
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void a_refused_token_in_doubt_is_retired(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_try("a");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_answer(&s, native_busy), "try");
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_BUSY, .in_doubt = true}), "close a=BUSY");
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_HAS_VALUE, .in_doubt = true}), "close a=value");
}

static void refusing_all_leaves_no_waiter(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    hft_queue(&s, &a, 1);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_refuse_all(&s, HF_CLOSED), "close a=CLOSED b=CLOSED");
    assert_true(hfi_entry_is_idle(&s.entry));
    hft_stand_init(&s);
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_refuse_all(&s, HF_LOAD_FAILED), "b=LOAD_FAILED");
    assert_string_equal(hft_release(&s, false), "give-back");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_late_in_a_row_are_a_server_that_cannot_be_used),
        cmocka_unit_test(without_an_answer_the_same_token_goes_on_by_script),
        cmocka_unit_test(an_unsent_acquire_is_repeated_later_with_a_fresh_token),
        cmocka_unit_test(a_nudge_ends_the_wait_for_a_server_that_was_away),
        cmocka_unit_test(a_server_that_cannot_now_is_ridden_out_one_that_will_not_is_told),
        cmocka_unit_test(without_ride_out_all_waiters_get_that_the_server_is_away),
        cmocka_unit_test(an_earlier_trouble_is_not_reported_again),
        cmocka_unit_test(a_foreign_type_and_a_value_answer_everybody),
        cmocka_unit_test(a_refused_token_in_doubt_is_retired),
        cmocka_unit_test(refusing_all_leaves_no_waiter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
