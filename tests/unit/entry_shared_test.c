/* SPDX-License-Identifier: MIT */
/* entry_shared_test.c - an entry whose threads share the lease: who comes in beside whom, who waits outside, who is the
 * last one out. */
#include "core/policy/fence.h"
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct hfi_answer granted = {.kind = HFI_GRANTED};

static void share(struct hft_stand *s)
{
    hft_stand_init(s);
    s->rules.native = false;
    s->rules.shares = true;
}

/* The first of them asks by the script, and both come in with its grant. */
static void share_by_two(struct hft_stand *s, struct hft_thread *a, struct hft_thread *b)
{
    share(s);
    assert_string_equal(hft_arrive(s, a), "wait!");
    assert_string_equal(hft_arrive(s, b), "");
    assert_string_equal(hft_answer(s, granted), "a=lease b=lease");
}

static void all_who_wait_come_in_with_one_grant_and_one_fence(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    share_by_two(&s, &a, &b);
    hft_pass_ms(&s, 1000);
    assert_string_equal(hft_arrive(&s, &c), "c=lease");
    assert_true(a.waiter.fence == b.waiter.fence && b.waiter.fence == c.waiter.fence);
    assert_true(a.waiter.fence == s.counter);
    assert_true(a.waiter.end == c.waiter.end);
}

static void the_last_one_out_gives_it_back(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    share_by_two(&s, &a, &b);
    assert_string_equal(hft_release(&s, false), "");
    assert_int_equal(s.entry.holding, HFI_BY_THREAD);
    assert_string_equal(hft_release(&s, false), "give-back");
}

static void a_later_grant_has_a_later_fence(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    share(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, granted);
    assert_string_equal(hft_release(&s, false), "give-back");
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_answer(&s, granted), "b=lease");
    assert_true(b.waiter.fence > a.waiter.fence);
}

/* Its V may prove to be over while it is moved. Who came in first would have a lease that has gone back. */
static void nobody_comes_in_by_a_renewal_before_the_end_has_moved(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    struct hfi_step step;
    share(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, granted);
    hft_pass_ms(&s, 9500);
    assert_string_equal(hft_arrive(&s, &b), ""); /* a's is at risk */
    hfi_step_init(&step, s.now, s.rtt);
    hfi_entry_renewed(&s.entry, s.now - HFI_MS, &step);
    assert_int_equal(step.at[0].kind, HFI_MOVE_END);
    assert_int_equal(b.waiter.verdict, HFI_WAITING);
    hfi_entry_lost(&s.entry, HF_REASON_EXPIRED, &step);
    hfi_entry_let_in(&s.entry, &step);
    assert_int_equal(b.waiter.verdict, HFI_WAITING);
    assert_int_equal(s.entry.remote, HFI_ASKING);
}

/* The process that shut the door may have been killed. */
static void who_waits_at_a_shut_door_asks_whether_it_still_has_to(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    share_by_two(&s, &a, &b);
    (void)hft_wanted(&s);
    s.now += 20 * HFI_MS;
    assert_true(hfi_entry_next(&s.entry) > s.now + 1000 * HFI_MS); /* nobody waits here */
    assert_string_equal(hft_arrive(&s, &c), "");
    assert_int_equal(hfi_entry_next(&s.entry), s.now + 380 * HFI_MS);
    assert_string_equal(hft_look_next(&s), "renew");
    (void)hft_renewed(&s, s.sent_at);
    (void)hft_wanted(&s); /* it does */
    assert_int_equal(hfi_entry_next(&s.entry), s.now + 400 * HFI_MS);
}

/* Nobody has it alone: the answer to the one who asks is theirs too. */
static void a_try_rides_on_the_question_of_another_reader(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_try("b"), c = hft_thread("c"), d = hft_try("d");
    share(&s);
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_arrive(&s, &b), "");
    assert_string_equal(hft_answer(&s, granted), "a=lease b=lease");
    (void)hft_release(&s, false);
    (void)hft_release(&s, false);
    (void)hft_arrive(&s, &c);
    assert_string_equal(hft_arrive(&s, &d), "");
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_IN_QUEUE, .ours = true, .left_ms = 9000, .ticket = 1}), "d=BUSY");
}

/* A question that was sent again comes behind the downgrade, and is answered with a fence only. */
static void a_late_grant_does_not_move_the_end_of_a_downgraded_lease(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    s.rules.native = false;
    (void)hft_arrive(&s, &a);
    int64_t echo = s.asked_at;
    (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_IN_QUEUE, .ours = true, .left_ms = 9000, .ticket = 1});
    (void)hft_look_next(&s);
    assert_string_equal(hft_handed(&s, echo), "a=lease");
    hfi_entry_downgrade(&s.entry);
    int64_t end = hfi_lease_end(&s.entry.held.times);
    (void)hft_answer(&s, granted);
    assert_true(hfi_lease_end(&s.entry.held.times) == end);
}

/* Its warning comes as early as before, though the lease is a claim for the longer one now. */
static void who_is_in_is_warned_as_early_beside_one_with_a_longer_lease(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    a.waiter.lease_ms = 1000;
    a.waiter.stop_ms = 900;
    b.waiter.lease_ms = 60000;
    share(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, granted);
    int64_t stop = s.entry.held.times.stop;
    assert_string_equal(hft_arrive(&s, &b), "b=lease");
    assert_true(s.entry.held.times.stop >= stop);
}

static void wanted_by_another_process_it_is_shut_after_20_ms(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c"), d = hft_thread("d");
    share_by_two(&s, &a, &b);
    (void)hft_wanted(&s);
    s.now += 20 * HFI_MS - 1;
    assert_string_equal(hft_arrive(&s, &c), "c=lease");
    s.now += 1;
    assert_string_equal(hft_arrive(&s, &d), "");
    assert_string_equal(hft_release(&s, false), "");
    assert_string_equal(hft_release(&s, false), "");
    assert_string_equal(hft_release(&s, false), "give-back wait!"); /* d queues, like anybody */
}

static void wanted_by_another_process_it_is_shut_after_64_threads(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread t[65], last = hft_thread("last");
    share(&s);
    t[0] = hft_thread("t");
    (void)hft_arrive(&s, &t[0]);
    (void)hft_answer(&s, granted);
    (void)hft_wanted(&s);
    for (int i = 1; i < 65; i++) {
        t[i] = hft_thread("t");
        assert_string_equal(hft_arrive(&s, &t[i]), "t=lease");
    }
    assert_string_equal(hft_arrive(&s, &last), "");
}

static void while_it_is_shut_a_try_is_busy_and_who_is_in_comes_in_again(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), again = hft_thread("again"), tries = hft_try("try");
    share_by_two(&s, &a, &b);
    (void)hft_wanted(&s);
    hft_pass_ms(&s, 20);
    assert_string_equal(hft_arrive(&s, &tries), "try=BUSY");
    again.waiter.again = true;
    assert_string_equal(hft_arrive(&s, &again), "again=lease");
}

static void when_nobody_waits_any_more_it_is_open_again(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    share_by_two(&s, &a, &b);
    (void)hft_wanted(&s);
    int64_t wanted = s.now;
    hft_pass_ms(&s, 20);
    assert_string_equal(hft_arrive(&s, &c), "");
    assert_string_equal(hft_unwanted(&s, wanted), ""); /* the renewal was executed before, perhaps */
    assert_string_equal(hft_unwanted(&s, wanted + 1), "c=lease");
}

static void it_lingers_when_the_last_one_is_out_and_goes_back_when_it_is_wanted(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    share_by_two(&s, &a, &b);
    s.entry.held.linger_ms = 5000;
    (void)hft_release(&s, false);
    assert_string_equal(hft_release(&s, false), "");
    assert_int_equal(s.entry.holding, HFI_LINGERING);
    assert_string_equal(hft_arrive(&s, &c), "c=lease");
    assert_true(c.waiter.fence == a.waiter.fence);
    s.entry.held.linger_ms = 5000;
    assert_string_equal(hft_release(&s, false), "");
    assert_string_equal(hft_wanted(&s), "give-back");
}

static void it_is_as_long_as_the_longest_and_warns_as_early_as_the_earliest(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), lengthy = hft_thread("lengthy"), careful = hft_thread("careful");
    share(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, granted);
    lengthy.waiter.lease_ms = 30000;
    careful.waiter.lease_ms = 5000;
    careful.waiter.stop_ms = 3000;
    assert_string_equal(hft_arrive(&s, &lengthy), "lengthy=lease");
    assert_string_equal(hft_arrive(&s, &careful), "careful=lease");
    assert_int_equal(s.entry.held.times.length, 30000 * HFI_MS);
    assert_int_equal(s.entry.held.times.full_stop, 3000 * HFI_MS);
}

/* What was asked for while the shorter length was wanted counts for that only (P1). */
static void a_renewal_of_before_counts_for_the_length_of_before(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), lengthy = hft_thread("lengthy");
    share(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, granted);
    while (strcmp(hft_look_next(&s), "renew") != 0)
        continue;
    int64_t sent_at = s.sent_at;
    lengthy.waiter.lease_ms = 30000;
    (void)hft_arrive(&s, &lengthy);
    (void)hft_renewed(&s, sent_at);
    assert_int_equal(s.entry.held.times.end, sent_at + 10000 * HFI_MS);
}

static void nobody_joins_readers_at_risk_until_they_are_safe_again(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    share(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, granted);
    while (strstr(hft_look_next(&s), "at-risk:") == NULL)
        continue;
    assert_string_equal(hft_arrive(&s, &b), "");
    assert_string_equal(hft_renewed(&s, s.sent_at), "end safe-again b=lease");
}

/* Else an owner that reads once more would wait for its own lease, which is renewed meanwhile. */
static void far_from_the_server_they_come_in_beside_a_lease_that_is_renewed(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    share(&s);
    s.rtt = 220 * HFI_MS;
    a.waiter.lease_ms = b.waiter.lease_ms = 1000;
    a.waiter.stop_ms = b.waiter.stop_ms = 100;
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_answer(&s, granted), "a=lease");
    hft_pass_ms(&s, 220);
    assert_string_equal(hft_arrive(&s, &b), "b=lease");
}

static void a_loss_ends_it_for_all_and_the_waiting_ask_anew(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    share_by_two(&s, &a, &b);
    (void)hft_wanted(&s);
    hft_pass_ms(&s, 20);
    (void)hft_arrive(&s, &c);
    assert_string_equal(hft_lost(&s, HF_REASON_GONE), "lost:GONE give-back wait!");
}

static void after_a_bad_fence_all_come_in_with_the_block_that_follows(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    share(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_GRANTED, .fence = 5}), "floor");
    assert_string_equal(hft_fences(&s, HFT_FENCE + 4096, 2048, true), "a=lease b=lease");
    assert_true(a.waiter.fence == HFT_FENCE + 4096 && b.waiter.fence == a.waiter.fence);
}

/* It has the lock with readers of other processes now. */
static void a_downgraded_lease_goes_to_nobody_here(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    hft_stand_init(&s);
    a.waiter.linger_ms = 5000;
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_GRANTED, .native = true});
    hfi_entry_downgrade(&s.entry);
    assert_string_equal(hft_arrive(&s, &b), "");
    assert_string_equal(hft_release(&s, false), "give-back native!");
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_GRANTED, .native = true}), "b=lease");
    assert_string_equal(hft_arrive(&s, &c), "");
    assert_string_equal(hft_release(&s, false), "c=lease"); /* the next one is alone again, and passed on */
}

/* As long as each that was asked for is known to have done nothing. */
static void what_was_not_downgraded_is_passed_on(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_GRANTED, .native = true});
    hfi_entry_downgrade(&s.entry);
    hfi_entry_downgrade(&s.entry);
    hfi_entry_not_downgraded(&s.entry);
    assert_true(s.entry.held.downgraded);
    hfi_entry_not_downgraded(&s.entry);
    assert_string_equal(hft_arrive(&s, &b), "");
    assert_string_equal(hft_release(&s, false), "b=lease");
    for (int i = 0; i < 300; i++)
        hfi_entry_downgrade(&s.entry);
    for (int i = 0; i < 300; i++)
        hfi_entry_not_downgraded(&s.entry);
    assert_string_equal(hft_arrive(&s, &c), "");
    assert_string_equal(hft_release(&s, false), "give-back native!"); /* they were too many to be counted */
    hfi_entry_not_downgraded(&s.entry); /* an answer that comes late */
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_GRANTED, .native = true}), "c=lease");
}

static void a_downgraded_lease_does_not_linger(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    a.waiter.linger_ms = 5000;
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_GRANTED, .native = true});
    hfi_entry_downgrade(&s.entry);
    assert_string_equal(hft_release(&s, false), "give-back");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_who_wait_come_in_with_one_grant_and_one_fence),
        cmocka_unit_test(the_last_one_out_gives_it_back),
        cmocka_unit_test(a_later_grant_has_a_later_fence),
        cmocka_unit_test(nobody_comes_in_by_a_renewal_before_the_end_has_moved),
        cmocka_unit_test(who_waits_at_a_shut_door_asks_whether_it_still_has_to),
        cmocka_unit_test(a_try_rides_on_the_question_of_another_reader),
        cmocka_unit_test(a_late_grant_does_not_move_the_end_of_a_downgraded_lease),
        cmocka_unit_test(who_is_in_is_warned_as_early_beside_one_with_a_longer_lease),
        cmocka_unit_test(wanted_by_another_process_it_is_shut_after_20_ms),
        cmocka_unit_test(wanted_by_another_process_it_is_shut_after_64_threads),
        cmocka_unit_test(while_it_is_shut_a_try_is_busy_and_who_is_in_comes_in_again),
        cmocka_unit_test(when_nobody_waits_any_more_it_is_open_again),
        cmocka_unit_test(it_lingers_when_the_last_one_is_out_and_goes_back_when_it_is_wanted),
        cmocka_unit_test(it_is_as_long_as_the_longest_and_warns_as_early_as_the_earliest),
        cmocka_unit_test(a_renewal_of_before_counts_for_the_length_of_before),
        cmocka_unit_test(nobody_joins_readers_at_risk_until_they_are_safe_again),
        cmocka_unit_test(far_from_the_server_they_come_in_beside_a_lease_that_is_renewed),
        cmocka_unit_test(a_loss_ends_it_for_all_and_the_waiting_ask_anew),
        cmocka_unit_test(after_a_bad_fence_all_come_in_with_the_block_that_follows),
        cmocka_unit_test(a_downgraded_lease_goes_to_nobody_here),
        cmocka_unit_test(a_downgraded_lease_does_not_linger),
        cmocka_unit_test(what_was_not_downgraded_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
