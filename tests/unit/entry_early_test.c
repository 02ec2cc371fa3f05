/* SPDX-License-Identifier: MIT */
/* entry_early_test.c - messages that come before the answer they belong to. Found by the simulator. */
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct hfi_answer granted = {.kind = HFI_GRANTED};

static void a_lease_that_is_wanted_before_it_is_known_does_not_linger(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    a.waiter.linger_ms = 5000;
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_wanted(&s), "");
    assert_string_equal(hft_answer(&s, granted), "a=lease");
    assert_string_equal(hft_release(&s, false), "give-back");
}

static void a_lease_that_is_revoked_before_its_answer_is_not_granted(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_doubted(&s), "close native!");
    assert_int_equal(a.waiter.verdict, HFI_WAITING);
}

/* The hand-off may have been asked for with the claim of a thread that has left. */
static void a_hand_off_is_no_longer_than_the_new_holders_lease(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    b.waiter.lease_ms = 100;
    b.waiter.stop_ms = 10;
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    int64_t echo = s.asked_at;
    (void)hft_arrive(&s, &b);
    (void)hft_leave(&s, &a);
    hft_pass_ms(&s, 5);
    assert_string_equal(hft_handed(&s, echo), "b=lease");
    assert_int_equal(b.waiter.end, echo + 100 * HFI_MS);
}

/* A renewal's answer says whether somebody waits. */
static void assert_renewed_now(struct hft_stand *s)
{
    int64_t now = s->now;
    assert_string_equal(hft_look_next(s), "renew");
    assert_int_equal(s->now, now);
}

static void a_new_subscription_makes_a_holder_renew_to_learn_of_waiters(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    assert_string_equal(hft_missed(&s), "");
    hft_hold(&s, &a);
    hft_pass_ms(&s, 5);
    assert_string_equal(hft_missed(&s), "");
    assert_renewed_now(&s);
    assert_string_equal(hft_renewed(&s, s.now), "end");
    hft_pass_ms(&s, 100);
    assert_string_equal(hft_look(&s), ""); /* once */
}

static void an_acquire_sent_before_the_subscription_renews_once_it_holds(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_missed(&s), "");
    assert_string_equal(hft_answer(&s, granted), "a=lease");
    assert_renewed_now(&s);
    assert_string_equal(hft_release(&s, false), "give-back");
    hft_hold(&s, &a);
    assert_string_equal(hft_look(&s), ""); /* this one was asked for later */
}

static void a_new_subscription_makes_a_waiter_acquire_and_then_renew(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    hft_pass_ms(&s, 100);
    assert_string_equal(hft_missed(&s), "wait");
    assert_string_equal(hft_handed(&s, s.asked_at), "a=lease");
    assert_renewed_now(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hand_off_is_no_longer_than_the_new_holders_lease),
        cmocka_unit_test(a_lease_that_is_wanted_before_it_is_known_does_not_linger),
        cmocka_unit_test(a_lease_that_is_revoked_before_its_answer_is_not_granted),
        cmocka_unit_test(a_new_subscription_makes_a_holder_renew_to_learn_of_waiters),
        cmocka_unit_test(an_acquire_sent_before_the_subscription_renews_once_it_holds),
        cmocka_unit_test(a_new_subscription_makes_a_waiter_acquire_and_then_renew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
