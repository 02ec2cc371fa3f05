/* SPDX-License-Identifier: MIT */
/* entry_barge_test.c - a release that calls the oldest waiter leaves the lease free until that thread runs. */
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void begin(struct hft_stand *s, struct hft_thread *holder, struct hft_thread *first, struct hft_thread *second)
{
    hft_stand_init(s);
    s->rules.barges = true;
    hft_hold(s, holder);
    (void)hft_arrive(s, first);
    (void)hft_arrive(s, second);
    assert_string_equal(hft_release(s, false), "call:b");
}

static void the_called_thread_takes_it_when_it_runs(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    begin(&s, &a, &b, &c);
    assert_string_equal(hft_come(&s, &c), ""); /* it was not called */
    assert_string_equal(hft_come(&s, &b), "b=lease");
    assert_string_equal(hft_come(&s, &b), "");
    assert_string_equal(hft_release(&s, false), "call:c");
}

static void an_arriving_thread_barges_and_the_successor_is_next(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c"), d = hft_try("d");
    begin(&s, &a, &b, &c);
    assert_string_equal(hft_arrive(&s, &d), "d=lease");
    assert_true(d.waiter.fence > a.waiter.fence);
    assert_string_equal(hft_come(&s, &b), ""); /* it is here, and waits */
    assert_string_equal(hft_release(&s, false), "b=lease");
    assert_true(b.waiter.fence > d.waiter.fence);
}

static void a_successor_is_waited_for_no_longer_than_200_us(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c"), d = hft_thread("d");
    begin(&s, &a, &b, &c);
    (void)hft_arrive(&s, &d);
    s.now += HFI_BARGE_WINDOW_NS - 1;
    assert_string_equal(hft_release(&s, false), ""); /* still free for whoever runs */
    assert_string_equal(hft_arrive(&s, &d), "d=lease");
    s.now += 1;
    assert_string_equal(hft_release(&s, false), "b=lease");
}

static void when_the_called_one_leaves_the_next_is_called_and_after_the_last_it_goes_back(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    begin(&s, &a, &b, &c);
    assert_string_equal(hft_leave(&s, &b), "call:c");
    assert_string_equal(hft_leave(&s, &c), "give-back");
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void a_loss_while_it_is_free_makes_those_who_wait_ask_again(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    begin(&s, &a, &b, &c);
    assert_string_equal(hft_lost(&s, HF_REASON_GONE), "give-back native!");
    assert_string_equal(hft_come(&s, &b), "");
}

static void a_waiter_without_a_thread_has_it_at_once(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c"), d = hft_thread("d");
    b.waiter.threadless = d.waiter.threadless = true;
    hft_stand_init(&s);
    s.rules.barges = true;
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_arrive(&s, &c);
    (void)hft_arrive(&s, &d);
    assert_string_equal(hft_release(&s, false), "b=lease"); /* nobody can come before it */
    assert_string_equal(hft_release(&s, false), "call:c");
    assert_string_equal(hft_leave(&s, &c), "d=lease"); /* what was offered to c is passed on, offered to nobody */
    assert_string_equal(hft_release(&s, false), "give-back");
}

static void too_little_for_a_waiter_without_a_thread_goes_back(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    c.waiter.threadless = true;
    c.waiter.stop_ms = 9900;
    hft_stand_init(&s);
    s.rules.barges = true;
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_arrive(&s, &c);
    hft_pass_ms(&s, 200);
    assert_string_equal(hft_release(&s, false), "call:b");
    assert_string_equal(hft_leave(&s, &b), "give-back native!");
}

static void refusing_all_waiters_leaves_nothing_held(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    begin(&s, &a, &b, &c);
    assert_string_equal(hft_refuse_all(&s, HF_CLOSED), "give-back b=CLOSED c=CLOSED");
    assert_true(hfi_entry_is_idle(&s.entry));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_called_thread_takes_it_when_it_runs),
        cmocka_unit_test(an_arriving_thread_barges_and_the_successor_is_next),
        cmocka_unit_test(a_successor_is_waited_for_no_longer_than_200_us),
        cmocka_unit_test(when_the_called_one_leaves_the_next_is_called_and_after_the_last_it_goes_back),
        cmocka_unit_test(a_loss_while_it_is_free_makes_those_who_wait_ask_again),
        cmocka_unit_test(a_waiter_without_a_thread_has_it_at_once),
        cmocka_unit_test(too_little_for_a_waiter_without_a_thread_goes_back),
        cmocka_unit_test(refusing_all_waiters_leaves_nothing_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
