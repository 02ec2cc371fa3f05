/* SPDX-License-Identifier: MIT */
/* lease_pass_test.c - a lease that passes from thread to thread: what stays of its renewals, and of a silence. */
#include "base/clock.h"
#include "core/policy/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define T0  (INT64_C(5000) * 1000 * HFI_MS)
#define RTT (HFI_MS / 5)

static struct hfi_lease_times lease_of(int64_t lease_ms)
{
    struct hfi_lease_times times;
    hfi_lease_begin(&times, T0 + lease_ms * HFI_MS, lease_ms * HFI_MS, lease_ms, 50, 0, T0, RTT);
    return times;
}

static void pass(struct hfi_lease_times *times, int64_t good_for_ms, int64_t lease_ms, int64_t at_ms)
{
    hfi_lease_pass(times, good_for_ms * HFI_MS, lease_ms, 50, 0, T0 + at_ms * HFI_MS);
}

static void a_thread_that_takes_over_a_longer_lease_renews_it_within_a_third_of_its_own(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of(60000);
    pass(&times, 60000, 12000, 100);
    assert_int_equal(times.end, T0 + 60000 * HFI_MS);
    assert_int_equal(times.length, 12000 * HFI_MS);
    assert_int_equal(times.renew_next, T0 + 4100 * HFI_MS);
    for (int at = 200; at < 4000; at += 100) { /* and no later because it is passed on and on */
        pass(&times, 60000, 12000, at);
        assert_int_equal(times.renew_next, T0 + 4100 * HFI_MS);
    }
}

static void what_was_asked_is_asked_again_at_its_pace_whoever_has_it(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of(12000);
    assert_true(hfi_lease_on_timer(&times, T0 + 4000 * HFI_MS, RTT).renew);
    int64_t next = times.renew_next;
    for (int i = 0; i < 6; i++) { /* by 60 s it should have been renewed long ago */
        pass(&times, 12000, i % 2 == 0 ? 60000 : 12000, 4010 + i);
        assert_int_equal(times.renew_next, next);
        assert_int_equal(times.tried_at, T0 + 4000 * HFI_MS);
    }
}

static void a_silence_begins_with_the_stamp_of_the_first_question(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of(12000);
    hfi_lease_sent(&times, T0); /* nothing was asked */
    assert_int_equal(times.silent_since, HFI_NEVER);
    assert_true(hfi_lease_on_timer(&times, T0 + 4000 * HFI_MS, RTT).renew);
    hfi_lease_sent(&times, T0 + 4000 * HFI_MS - 50000);
    assert_int_equal(times.silent_since, T0 + 4000 * HFI_MS - 50000);
    int64_t second = hfi_lease_next(&times);
    assert_true(hfi_lease_on_timer(&times, second, RTT).renew);
    hfi_lease_sent(&times, second - 50000);
    assert_int_equal(times.silent_since, T0 + 4000 * HFI_MS - 50000);
    pass(&times, 12000, 60000, 4700);
    assert_int_equal(times.silent_since, T0 + 4000 * HFI_MS - 50000);
}

static void its_own_answer_ends_it_and_an_earlier_ones_does_not(void **state)
{
    (void)state;
    struct hfi_lease_times times = lease_of(60000);
    pass(&times, 60000, 1000, 0);
    int64_t now = hfi_lease_next(&times), stamp = now - 50000;
    assert_true(hfi_lease_on_timer(&times, now, RTT).renew);
    hfi_lease_sent(&times, stamp);
    (void)hfi_lease_renewed(&times, stamp - 1, HFI_MS * 1000, now + 1, RTT);
    assert_int_equal(times.silent_since, stamp);
    (void)hfi_lease_renewed(&times, stamp, HFI_MS * 1000, now + 1, RTT);
    assert_int_equal(times.silent_since, HFI_NEVER);
    assert_int_equal(times.end, T0 + 60000 * HFI_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_takes_over_a_longer_lease_renews_it_within_a_third_of_its_own),
        cmocka_unit_test(what_was_asked_is_asked_again_at_its_pace_whoever_has_it),
        cmocka_unit_test(a_silence_begins_with_the_stamp_of_the_first_question),
        cmocka_unit_test(its_own_answer_ends_it_and_an_earlier_ones_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
