/* SPDX-License-Identifier: MIT */
/* entry_others_test.c - what was begun for one thread is taken over by another with other options: its own lease,
 * stop, max_hold and linger count, and a try never stays in a queue. */
#include "core/policy/fence.h"
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct hfi_answer granted = {.kind = HFI_GRANTED};
static const struct hfi_answer bad = {.kind = HFI_GRANTED, .fence = 5};
static const struct hfi_answer native_busy = {.kind = HFI_BUSY, .native = true};

/* a has used all fences but `left` of its first block, more are under way; b was called and is not here yet. */
static void call_with_fences_left(struct hft_stand *s, struct hft_thread *a, struct hft_thread *b, int left)
{
    hft_stand_init(s);
    s->rules.barges = true;
    hft_hold(s, a);
    s->entry.fence = s->entry.held.fence_end - left;
    s->entry.held.more_asked = true;
    assert_string_equal(hft_arrive(s, b), "");
    assert_string_equal(hft_release(s, false), "call:b");
}

static void a_try_behind_a_called_thread_gets_it_or_is_busy_at_once(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_try("c"), d = hft_try("d");
    call_with_fences_left(&s, &a, &b, 1);
    assert_string_equal(hft_arrive(&s, &c), "c=lease"); /* with the last fence */
    assert_string_equal(hft_release(&s, false), "");    /* b waits for more */

    call_with_fences_left(&s, &a, &b, 1);
    s.entry.fence++;
    assert_string_equal(hft_arrive(&s, &c), "c=BUSY"); /* the fences under way are b's */
    assert_string_equal(hft_arrive(&s, &d), "d=BUSY");
    assert_string_equal(hft_fences(&s, s.entry.fence + 1, HFI_FENCE_BLOCK, true), "b=lease");

    call_with_fences_left(&s, &a, &b, 1);
    s.entry.fence++;
    s.entry.held.more_asked = false;
    assert_string_equal(hft_arrive(&s, &c), "give-back native! c=BUSY"); /* b asks again, and c is behind it */
    assert_string_equal(hft_answer(&s, native_busy), "wait");

    call_with_fences_left(&s, &a, &b, 1);
    hft_pass_ms(&s, 9000); /* the last second is for stopping */
    assert_string_equal(hft_arrive(&s, &c), "give-back native! c=BUSY");
}

static void a_try_that_is_alone_waits_for_the_fences_under_way(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), c = hft_try("c");
    a.waiter.linger_ms = 1000;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    s.entry.fence = s.entry.held.fence_end;
    s.entry.held.more_asked = true;
    assert_string_equal(hft_release(&s, false), "");
    assert_string_equal(hft_arrive(&s, &c), "");
    assert_string_equal(hft_fences(&s, s.entry.fence + 1, HFI_FENCE_BLOCK, true), "c=lease");
}

/* a's grant had a bad fence; a has left when the good ones come, and b gets the lease. */
static void take_over_after_a_bad_fence(struct hft_stand *s, struct hft_thread *a, struct hft_thread *b)
{
    hft_stand_init(s);
    (void)hft_arrive(s, a);
    (void)hft_arrive(s, b);
    assert_string_equal(hft_answer(s, bad), "floor");
    assert_string_equal(hft_leave(s, a), "");
    hft_pass_ms(s, 50);
    (void)hft_fences(s, HFT_FENCE, 16 * HFI_FENCE_BLOCK, true);
    assert_int_equal(b->waiter.verdict, HFI_GOT_LEASE);
}

static void no_thread_inherits_the_times_of_one_that_left_during_a_fence_repair(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    a.waiter.max_hold_ms = 100;
    take_over_after_a_bad_fence(&s, &a, &b);
    assert_string_equal(hft_look_next(&s), "renew"); /* not "at-risk:MAX_HOLD" */

    struct hft_thread c = hft_thread("c"), d = hft_thread("d");
    d.waiter.max_hold_ms = 3000;
    take_over_after_a_bad_fence(&s, &c, &d);
    int64_t given = s.now;
    assert_string_equal(hft_look_next(&s), "at-risk:MAX_HOLD");
    assert_string_equal(hft_look_next(&s), "lost:MAX_HOLD give-back");
    assert_int_equal(s.now, given + 3000 * HFI_MS); /* since it has it, not since it was asked for */

    struct hft_thread e = hft_thread("e"), f = hft_thread("f");
    e.waiter.lease_ms = 600; /* asked for: f wants 10 s of it, which only a renewal can bring */
    e.waiter.stop_ms = 60;
    take_over_after_a_bad_fence(&s, &e, &f);
    assert_int_equal(f.waiter.end, s.asked_at + 600 * HFI_MS);
    assert_string_equal(hft_look_next(&s), "renew");
    assert_string_equal(hft_renewed(&s, s.now), "end");
    assert_int_equal(s.entry.held.times.end, s.now + 10000 * HFI_MS);

    struct hft_thread g = hft_thread("g"), h = hft_thread("h");
    h.waiter.stop_ms = 3000;
    take_over_after_a_bad_fence(&s, &g, &h);
    assert_int_equal(s.entry.held.times.stop, 3000 * HFI_MS);
}

static void a_lease_without_a_holder_has_no_max_hold(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    a.waiter.max_hold_ms = 100;
    hft_stand_init(&s);
    s.rules.barges = true;
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    hft_pass_ms(&s, 99);
    assert_string_equal(hft_release(&s, false), "call:b");
    assert_string_equal(hft_look_next(&s), "renew"); /* b's thread is slow to run: it goes on being renewed */
    assert_string_equal(hft_renewed(&s, s.now), "");
    assert_string_equal(hft_come(&s, &b), "b=lease");
    assert_string_equal(hft_look_next(&s), "renew");
}

/* A thread that needs three of the ten seconds to stop is not let in when two are left, whatever the thread before
 * it needed. */
static void no_thread_gets_a_lease_with_less_left_than_its_stop_ms(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    b.waiter.stop_ms = 3000;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    hft_pass_ms(&s, 8000);
    assert_string_equal(hft_release(&s, false), "give-back native!");

    a.waiter.linger_ms = 60000;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    (void)hft_release(&s, false);
    hft_pass_ms(&s, 8000);
    assert_string_equal(hft_arrive(&s, &b), "give-back native!");

    hft_stand_init(&s);
    (void)hft_arrive(&s, &b);
    (void)hft_answer(&s, bad);
    struct hft_thread c = hft_thread("c");
    (void)hft_arrive(&s, &c);
    (void)hft_leave(&s, &b);
    hft_pass_ms(&s, 8000);
    assert_string_equal(hft_fences(&s, HFT_FENCE, HFI_FENCE_BLOCK, true), "c=lease"); /* c needs one */
}

/* d arrives and needs more of the lease than is left; that is enough for b, which was called. */
static void an_arrival_that_needs_more_time_leaves_the_lease_to_the_successor(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_try("c"), d = hft_thread("d");
    c.waiter.stop_ms = d.waiter.stop_ms = 3000;
    call_with_fences_left(&s, &a, &b, 100);
    hft_pass_ms(&s, 8000);
    assert_string_equal(hft_arrive(&s, &c), "c=BUSY");
    assert_string_equal(hft_arrive(&s, &d), "");
    assert_string_equal(hft_come(&s, &b), "b=lease");
    assert_string_equal(hft_release(&s, false), "give-back native!");
}

static void a_try_whose_time_ends_is_told_that_the_server_cannot_be_used(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_try("b");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_answer(&s, native_busy), "try"); /* not answered either */
    assert_int_equal(hfi_entry_why_in_vain(&s.entry, &b.waiter), HF_UNAVAILABLE);
    assert_string_equal(hft_leave(&s, &b), "close");
    hft_queue(&s, &a, 0);
    assert_int_equal(hfi_entry_why_in_vain(&s.entry, &a.waiter), HF_TIMEOUT);
    assert_string_equal(hft_answer(&s, granted), "a=lease");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_try_behind_a_called_thread_gets_it_or_is_busy_at_once),
        cmocka_unit_test(a_try_that_is_alone_waits_for_the_fences_under_way),
        cmocka_unit_test(no_thread_inherits_the_times_of_one_that_left_during_a_fence_repair),
        cmocka_unit_test(a_lease_without_a_holder_has_no_max_hold),
        cmocka_unit_test(no_thread_gets_a_lease_with_less_left_than_its_stop_ms),
        cmocka_unit_test(an_arrival_that_needs_more_time_leaves_the_lease_to_the_successor),
        cmocka_unit_test(a_try_whose_time_ends_is_told_that_the_server_cannot_be_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
