/* SPDX-License-Identifier: MIT */
/* entry_test.c - an entry that acquires and waits: which thread sends, which messages count, what the waiters get. */
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct hfi_answer granted = {.kind = HFI_GRANTED};
static const struct hfi_answer native_busy = {.kind = HFI_BUSY, .native = true};
static const struct hfi_answer busy = {.kind = HFI_BUSY}, other_type = {.kind = HFI_FOREIGN_TYPE};

static struct hfi_answer queued_at(int64_t position)
{
    return (struct hfi_answer){
        .kind = HFI_IN_QUEUE, .ours = true, .left_ms = 9000, .position = position, .ticket = 4711};
}

static void a_free_lock_takes_one_question_and_is_dated_by_its_stamp(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    int64_t stamp = s.now;
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_int_equal(hfi_entry_next(&s.entry), HFI_NEVER);
    hft_pass_ms(&s, 30);
    assert_string_equal(hft_answer(&s, granted), "a=lease");
    assert_int_equal(a.waiter.end, stamp + 10000 * HFI_MS);
    assert_int_equal(a.waiter.fence, s.counter);
    assert_string_equal(hft_release(&s, false), "give-back");
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void during_one_acquire_all_other_threads_wait_for_its_answer(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    hft_stand_init(&s);
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_arrive(&s, &b), "");
    assert_string_equal(hft_arrive(&s, &c), "");
    assert_string_equal(hft_answer(&s, granted), "a=lease");
    assert_string_equal(hft_release(&s, false), "b=lease");
    assert_string_equal(hft_release(&s, false), "c=lease");
    assert_string_equal(hft_release(&s, false), "give-back");
}

static void a_busy_lock_is_waited_for_by_script_under_the_same_token_and_place(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_answer(&s, native_busy), "wait");
    assert_int_equal(hfi_entry_acquire_params(&s.entry).ticket, 0);
    assert_string_equal(hft_answer(&s, queued_at(3)), "");
    int64_t asked = s.now;
    assert_string_equal(hft_look_next(&s), "wait");
    assert_in_range((uint64_t)(s.now - asked) / HFI_MS, 360, 440);
    assert_int_equal(hfi_entry_acquire_params(&s.entry).ticket, 4711);
    assert_string_equal(hft_answer(&s, queued_at(64)), "");
    assert_string_equal(hft_look_next(&s), "wait"); /* as its patience wants it */
    assert_string_equal(hft_answer(&s, queued_at(64)), "");
    asked = s.now;
    assert_string_equal(hft_look_next(&s), "wait");
    assert_in_range((uint64_t)(s.now - asked) / HFI_MS, 900, 1100);
    assert_string_equal(hft_answer(&s, granted), "a=lease");
}

static void a_question_brings_its_lease_claim_and_patience(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    struct hfi_acquire_params asking = hfi_entry_acquire_params(&s.entry);
    assert_int_equal(asking.ttl_ms, 10000 + 210 + 3 + 250);
    assert_int_equal(asking.claim_ttl_ms, 1000 + 21 + 3 + 250);
    assert_int_equal(asking.patience_ms, 1200);
    s.rules.queued = 251;
    assert_int_equal(hfi_entry_acquire_params(&s.entry).patience_ms, 3000);
    assert_int_equal(hfi_entry_acquire_params(&s.entry).claim_ms, 2500);
    s.rules.queued = 5001;
    assert_int_equal(hfi_entry_acquire_params(&s.entry).patience_ms, 6000);
    assert_int_equal(hfi_entry_acquire_params(&s.entry).claim_ms, 5000);
}

/* The record is fresh for three of the R with which its acquire was sent, whatever R is when the answer comes. */
static void an_acquire_sent_while_few_wait_is_repeated_in_time_though_many_wait_by_then(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    s.rules.queued = 100;
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_answer(&s, native_busy), "wait");
    s.rules.queued = 6000; /* refused: and yet it may have left a record */
    (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_CANNOT, .status = HF_UNAVAILABLE});
    assert_true(hfi_entry_next(&s.entry) - s.now <= 440 * HFI_MS);
    s.rules.queued = 100;
    assert_string_equal(hft_look_next(&s), "wait");
    int64_t asked = s.now;
    s.rules.queued = 6000;
    (void)hft_answer(&s, queued_at(0));
    assert_string_equal(hft_look_next(&s), "wait");
    assert_true(s.now - asked <= 440 * HFI_MS);
    asked = s.now; /* sent with R 2000, but refused: the record is still the first acquire's */
    (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_CANNOT, .status = HF_UNAVAILABLE});
    assert_string_equal(hft_look_next(&s), "wait");
    assert_true(s.now - asked <= 440 * HFI_MS);
    (void)hft_answer(&s, queued_at(0));
    asked = s.now;
    assert_string_equal(hft_look_next(&s), "wait");
    assert_in_range(s.now - asked, 1800 * HFI_MS, 2200 * HFI_MS);
}

static void a_try_that_finds_it_busy_asks_the_script_once_a_second(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_try("a");
    hft_stand_init(&s);
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_answer(&s, native_busy), "try");
    assert_string_equal(hft_answer(&s, busy), "a=BUSY");
    assert_true(hfi_entry_is_idle(&s.entry));
    hft_pass_ms(&s, 999);
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_answer(&s, native_busy), "a=BUSY");
    hft_pass_ms(&s, 1);
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_answer(&s, native_busy), "try");
}

static void a_try_that_the_holder_does_not_hear_is_repeated_before_the_second_is_over(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_try("a");
    const struct hfi_answer unheard = {.kind = HFI_BUSY, .unheard = true}, heard = {.kind = HFI_BUSY};
    hft_stand_init(&s);
    for (int round = 0; round < 2; round++) {
        for (int64_t ms = 10; ms <= 2000; ms *= 2) {
            assert_string_equal(hft_arrive(&s, &a), "native!");
            assert_string_equal(hft_answer(&s, native_busy), "try");
            assert_string_equal(hft_answer(&s, unheard), "a=BUSY");
            hft_pass_ms(&s, (ms < 1000 ? ms : 1000) - 1);
            assert_string_equal(hft_arrive(&s, &a), "native!");
            assert_string_equal(hft_answer(&s, native_busy), "a=BUSY");
            hft_pass_ms(&s, 1);
        }
        assert_string_equal(hft_arrive(&s, &a), "native!");
        assert_string_equal(hft_answer(&s, native_busy), "try");
        assert_string_equal(hft_answer(&s, heard), "a=BUSY"); /* another holder, and the next one begins anew */
        hft_pass_ms(&s, 1000);
    }
}

static void a_try_learns_of_another_type_and_remembers_it_for_a_second(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_try("a");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_answer(&s, native_busy), "try");
    assert_string_equal(hft_answer(&s, other_type), "close a=FOREIGN");
    assert_true(hfi_entry_next(&s.entry) != HFI_NEVER); /* it is kept in mind until then */
    hft_pass_ms(&s, 500);
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_answer(&s, native_busy), "a=FOREIGN");
    hft_pass_ms(&s, 501);
    assert_string_equal(hft_look(&s), "");
    assert_int_equal(hfi_entry_next(&s.entry), HFI_NEVER);
}

static void a_try_never_waits_for_other_threads_of_its_process(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_try("b");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_arrive(&s, &b), "b=BUSY");
    (void)hft_answer(&s, granted);
    assert_string_equal(hft_arrive(&s, &b), "b=BUSY");
}

static void a_waiter_behind_a_try_goes_on_by_script(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_try("a"), b = hft_thread("b");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_answer(&s, native_busy), "try");
    assert_string_equal(hft_answer(&s, busy), "wait a=BUSY");
    assert_string_equal(hft_answer(&s, granted), "b=lease");
}

static void a_known_queue_is_joined_by_script_at_once_but_tried_natively(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_try("b");
    hft_stand_init(&s);
    hft_queue(&s, &a, 1);
    assert_string_equal(hft_leave(&s, &a), "close");
    assert_string_equal(hft_arrive(&s, &a), "wait!");
    assert_string_equal(hft_leave(&s, &a), "close");
    assert_string_equal(hft_arrive(&s, &b), "native!");
}

static void a_fetch_never_asks_natively(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_try("b");
    hft_stand_init(&s);
    s.rules.native = false;
    assert_string_equal(hft_arrive(&s, &a), "wait!");
    assert_string_equal(hft_leave(&s, &a), "close");
    assert_string_equal(hft_arrive(&s, &b), "try!");
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_BUSY}), "b=BUSY");
}

static void the_place_belongs_to_the_entry_and_is_left_by_the_last(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    hft_stand_init(&s);
    hft_queue(&s, &a, 2);
    (void)hft_arrive(&s, &b);
    (void)hft_arrive(&s, &c);
    assert_string_equal(hft_leave(&s, &a), "");
    assert_string_equal(hft_leave(&s, &c), "");
    assert_int_equal(hfi_entry_acquire_params(&s.entry).ticket, 4713);
    assert_string_equal(hft_look_next(&s), "wait");
    assert_string_equal(hft_answer(&s, queued_at(0)), "");
    assert_string_equal(hft_leave(&s, &b), "close");
    assert_true(hfi_entry_is_idle(&s.entry));
    assert_int_equal(hfi_entry_next(&s.entry), HFI_NEVER);
    assert_int_equal(hfi_entry_acquire_params(&s.entry).ticket, 0);
}

static void an_heir_of_an_acquire_for_a_shorter_lease_gets_no_more_than_it_asked_for(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    a.waiter.lease_ms = 500;
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_leave(&s, &a), "");
    assert_string_equal(hft_answer(&s, granted), "b=lease");
    assert_int_equal(b.waiter.end, s.asked_at + 500 * HFI_MS); /* the server keeps the key for no longer */
    assert_string_equal(hft_look_next(&s), "renew");
    assert_in_range(s.now - s.asked_at, 230 * HFI_MS, 250 * HFI_MS); /* at half, or up to 20 ms before: see on_grid */
    assert_string_equal(hft_renewed(&s, s.now), "end"); /* that one asked for all of b's */
    assert_int_equal(s.entry.held.times.end, s.now + 10000 * HFI_MS);
}

static void an_heir_of_an_acquire_for_a_longer_lease_gets_its_own(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    b.waiter.lease_ms = 500;
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_leave(&s, &a);
    assert_string_equal(hft_answer(&s, granted), "b=lease");
    assert_int_equal(b.waiter.end, s.asked_at + 500 * HFI_MS);
}

static void a_grant_message_is_dated_by_our_own_echo(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    int64_t echo = s.asked_at;
    hft_pass_ms(&s, 300);
    assert_string_equal(hft_handed(&s, echo), "a=lease");
    assert_int_equal(a.waiter.end, echo + 1000 * HFI_MS);
    assert_int_equal(hfi_entry_next(&s.entry),
                     echo + 500 * HFI_MS); /* the first renewal confirms the claim */
    assert_string_equal(hft_look_next(&s), "renew");
}

static void an_echo_of_one_of_the_last_re_checks_counts_too(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    int64_t echo = s.asked_at;
    assert_string_equal(hft_look_next(&s), "wait");
    (void)hft_answer(&s, queued_at(0));
    hft_pass_ms(&s, 10);
    assert_string_equal(hft_handed(&s, echo), "a=lease");
    assert_int_equal(a.waiter.end, echo + 1000 * HFI_MS);
}

/* A hand-off that is lost in a failover would leave a holder whom nobody remembers. */
static void where_replicas_confirm_a_grant_message_is_only_a_question(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    s.rules.confirms = true;
    hft_queue(&s, &a, 0);
    hft_pass_ms(&s, 1);
    assert_string_equal(hft_handed(&s, s.asked_at), "wait"); /* at once, with the same token */
    assert_string_equal(hft_answer(&s, granted), "a=lease");
}

static void a_grant_message_with_another_echo_is_only_a_hint(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_handed(&s, s.asked_at + 1), "wait");
    assert_string_equal(hft_handed(&s, 0), ""); /* a question is under way; one more when it is answered */
    hft_pass_ms(&s, 10);
    assert_string_equal(hft_answer(&s, queued_at(0)), "wait");
    assert_string_equal(hft_answer(&s, queued_at(0)), "");
    assert_int_equal(a.waiter.verdict, HFI_WAITING);
}

static void a_claim_with_less_than_a_quarter_left_is_asked_for_again(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    int64_t echo = s.asked_at;
    s.now = echo + 750 * HFI_MS + 1;
    assert_string_equal(hft_handed(&s, echo), "wait");
    assert_string_equal(hft_answer(&s, granted), "a=lease");
    assert_int_equal(a.waiter.end, s.now + 10000 * HFI_MS);

    struct hft_thread b = hft_thread("b");
    hft_stand_init(&s);
    hft_queue(&s, &b, 0);
    echo = s.asked_at;
    s.now = echo + 750 * HFI_MS;
    assert_string_equal(hft_handed(&s, echo), "b=lease");
}

static void messages_without_a_receiver_are_ignored(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    assert_string_equal(hft_handed(&s, s.now), "");
    assert_string_equal(hft_wanted(&s), "");
    assert_string_equal(hft_nudged(&s), "");
    hft_hold(&s, &a);
    assert_string_equal(hft_handed(&s, s.asked_at), ""); /* doubled */
    assert_string_equal(hft_nudged(&s), "");
}

static void no_late_answer_moves_a_held_entry_back(void **state)
{
    (void)state;
    static const enum hfi_answer_kind kinds[] = {HFI_IN_QUEUE,  HFI_BUSY,      HFI_LATE,   HFI_FOREIGN_TYPE,
                                                 HFI_HAS_VALUE, HFI_NO_ANSWER, HFI_CANNOT, HFI_NOT_SENT};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a"), b = hft_thread("b");
        hft_stand_init(&s);
        (void)hft_arrive(&s, &a);
        (void)hft_answer(&s, native_busy); /* its script is under way and overtaken by the message */
        (void)hft_arrive(&s, &b);
        assert_string_equal(hft_handed(&s, s.asked_at), "a=lease");
        assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = kinds[i], .status = HF_DENIED}), "");
        assert_int_equal(s.entry.remote, HFI_HELD);
        assert_int_equal(b.waiter.verdict, HFI_WAITING);
        assert_string_equal(hft_release(&s, false), "b=lease");
    }
}

static void a_re_check_granted_after_the_message_confirms_the_claim(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    int64_t echo = s.asked_at;
    assert_string_equal(hft_look_next(&s), "wait");
    assert_string_equal(hft_handed(&s, echo), "a=lease");
    assert_string_equal(hft_answer(&s, granted), "end");
    assert_int_equal(s.entry.held.times.end, s.asked_at + 10000 * HFI_MS);
}

/* The key was the token's when the message was sent, and the question found it free: meanwhile another may have had it. */
static void a_re_check_that_takes_the_lock_anew_after_the_message_is_a_loss(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    struct hfi_answer anew = granted;
    anew.anew = true;
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    int64_t echo = s.asked_at;
    assert_string_equal(hft_look_next(&s), "wait");
    assert_string_equal(hft_handed(&s, echo), "a=lease");
    assert_string_equal(hft_answer(&s, anew), "lost:GONE give-back");
    assert_int_equal(s.entry.remote, HFI_NOTHING);
}

static void such_a_re_check_for_a_shorter_lease_confirms_no_more(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    a.waiter.lease_ms = 1500;
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    (void)hft_arrive(&s, &b);
    int64_t echo = s.asked_at;
    assert_string_equal(hft_look_next(&s), "wait"); /* for a's 1.5 s */
    assert_string_equal(hft_leave(&s, &a), "");
    assert_string_equal(hft_handed(&s, echo), "b=lease");
    assert_string_equal(hft_answer(&s, granted), "end");
    assert_int_equal(s.entry.held.times.end, s.asked_at + 1500 * HFI_MS);
}

static void a_grant_processed_too_late_is_given_back_and_asked_for_anew(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_try("b");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    hft_pass_ms(&s, 7500);
    assert_string_equal(hft_answer(&s, granted), "explain-late give-back native!");
    hft_pass_ms(&s, 7499);
    assert_string_equal(hft_answer(&s, granted), "a=lease");
    assert_string_equal(hft_release(&s, false), "give-back");
    (void)hft_arrive(&s, &b);
    hft_pass_ms(&s, 7500);
    assert_string_equal(hft_answer(&s, granted), "explain-late give-back b=UNAVAILABLE");
}

static void a_token_given_up_while_others_wait_leaves_its_place_to_the_next(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_look_next(&s), "wait");
    hft_pass_ms(&s, 7500);
    assert_string_equal(hft_answer(&s, granted), "explain-late give-back wait!");
    assert_int_equal(hfi_entry_acquire_params(&s.entry).ticket, 4711);
    assert_string_equal(hft_answer(&s, queued_at(0)), "");
    hft_pass_ms(&s, 10);
    assert_string_equal(hft_doubted(&s), "close wait!");
    assert_int_equal(hfi_entry_acquire_params(&s.entry).ticket, 4711);
    assert_string_equal(hft_leave(&s, &a), "close");
    assert_true(hfi_entry_is_idle(&s.entry));
    assert_string_equal(hft_arrive(&s, &a), "wait!"); /* nobody's place is kept for who comes later */
    assert_int_equal(hfi_entry_acquire_params(&s.entry).ticket, 0);
}

static void a_doubt_about_a_held_lease_is_a_question_to_the_server(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    assert_string_equal(hft_doubted(&s), "");
    hft_hold(&s, &a);
    assert_string_equal(hft_doubted(&s), "held");
    assert_string_equal(hft_look(&s), "renew");
}

static void a_waiter_asks_again_within_the_patience_it_was_given(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 100); /* far behind: nobody knew that when it asked */
    for (int i = 0; i < 200; i++) {
        int64_t asked = s.asked_at, patience = i == 0 ? 1200 : 3000;
        assert_string_equal(hft_look_next(&s), "wait");
        assert_in_range((uint64_t)(s.now - asked) / HFI_MS, 3 * patience / 10, 11 * patience / 30);
        assert_int_equal(hfi_entry_acquire_params(&s.entry).patience_ms, 3000);
        assert_string_equal(hft_answer(&s, queued_at(100)), "");
    }
    assert_string_equal(hft_look_next(&s), "wait");
    assert_string_equal(hft_answer(&s, queued_at(5)), "");
    int64_t nearer = s.now;
    assert_string_equal(hft_look_next(&s), "wait");
    assert_in_range((uint64_t)(s.now - nearer) / HFI_MS, 360, 440);
}

static void a_revoke_for_a_waiting_token_or_a_nudge_asks_at_once(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_wanted(&s), "wait");
    assert_string_equal(hft_wanted(&s), "");
    hft_pass_ms(&s, 10);
    assert_string_equal(hft_answer(&s, queued_at(0)), "wait");
    assert_string_equal(hft_answer(&s, queued_at(0)), "");
    hft_pass_ms(&s, 10);
    assert_string_equal(hft_nudged(&s), "wait");
}

static void only_the_first_behind_a_foreign_holder_listen_to_its_key(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    struct hfi_answer foreign = queued_at(3);
    foreign.ours = false;
    hft_stand_init(&s);
    hft_queue(&s, &a, 3);
    assert_string_equal(hft_answer(&s, foreign), "");
    foreign.position = 2;
    assert_string_equal(hft_answer(&s, foreign), "watch");
    assert_string_equal(hft_answer(&s, foreign), "watch"); /* each time: client tracking tells of one change only */
    assert_string_equal(hft_nudged(&s), "wait");
    assert_string_equal(hft_answer(&s, queued_at(1)), "unwatch");
    assert_string_equal(hft_answer(&s, foreign), "watch");
    assert_string_equal(hft_handed(&s, s.asked_at), "unwatch a=lease");
    assert_string_equal(hft_release(&s, false), "give-back");
    hft_queue(&s, &a, 3);
    assert_string_equal(hft_answer(&s, foreign), "watch");
    assert_string_equal(hft_leave(&s, &a), "close unwatch");
}

static void the_first_look_when_the_holders_key_ends(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    struct hfi_answer soon = queued_at(0);
    soon.left_ms = 50;
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    (void)hft_answer(&s, soon);
    assert_int_equal(hfi_entry_next(&s.entry), s.now + 52 * HFI_MS);
    assert_string_equal(hft_look_next(&s), "wait");
    soon.position = 2;
    (void)hft_answer(&s, soon);
    assert_int_equal(hfi_entry_next(&s.entry), s.now + 72 * HFI_MS);
    assert_string_equal(hft_look_next(&s), "wait");
    soon.position = 40;
    (void)hft_answer(&s, soon);
    assert_true(hfi_entry_next(&s.entry) >= s.now + 360 * HFI_MS);
}

static void a_key_that_never_ends_or_in_a_thousand_years_is_re_checked_as_ever(void **state)
{
    (void)state;
    static const int64_t lefts[] = {-1, 100000, INT64_C(100000000000000), INT64_MAX};
    for (size_t i = 0; i < sizeof lefts / sizeof lefts[0]; i++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a");
        struct hfi_answer foreign = queued_at(0);
        foreign.ours = false;
        foreign.left_ms = lefts[i];
        hft_stand_init(&s);
        hft_queue(&s, &a, 0);
        (void)hft_answer(&s, foreign);
        assert_true(hfi_entry_next(&s.entry) >= s.now + 360 * HFI_MS);
        assert_true(hfi_entry_next(&s.entry) <= s.now + 440 * HFI_MS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_lock_takes_one_question_and_is_dated_by_its_stamp),
        cmocka_unit_test(during_one_acquire_all_other_threads_wait_for_its_answer),
        cmocka_unit_test(a_busy_lock_is_waited_for_by_script_under_the_same_token_and_place),
        cmocka_unit_test(a_question_brings_its_lease_claim_and_patience),
        cmocka_unit_test(an_acquire_sent_while_few_wait_is_repeated_in_time_though_many_wait_by_then),
        cmocka_unit_test(a_try_that_finds_it_busy_asks_the_script_once_a_second),
        cmocka_unit_test(a_try_that_the_holder_does_not_hear_is_repeated_before_the_second_is_over),
        cmocka_unit_test(a_try_learns_of_another_type_and_remembers_it_for_a_second),
        cmocka_unit_test(a_try_never_waits_for_other_threads_of_its_process),
        cmocka_unit_test(a_waiter_behind_a_try_goes_on_by_script),
        cmocka_unit_test(a_known_queue_is_joined_by_script_at_once_but_tried_natively),
        cmocka_unit_test(a_fetch_never_asks_natively),
        cmocka_unit_test(the_place_belongs_to_the_entry_and_is_left_by_the_last),
        cmocka_unit_test(an_heir_of_an_acquire_for_a_shorter_lease_gets_no_more_than_it_asked_for),
        cmocka_unit_test(an_heir_of_an_acquire_for_a_longer_lease_gets_its_own),
        cmocka_unit_test(a_grant_message_is_dated_by_our_own_echo),
        cmocka_unit_test(an_echo_of_one_of_the_last_re_checks_counts_too),
        cmocka_unit_test(where_replicas_confirm_a_grant_message_is_only_a_question),
        cmocka_unit_test(a_grant_message_with_another_echo_is_only_a_hint),
        cmocka_unit_test(a_claim_with_less_than_a_quarter_left_is_asked_for_again),
        cmocka_unit_test(messages_without_a_receiver_are_ignored),
        cmocka_unit_test(no_late_answer_moves_a_held_entry_back),
        cmocka_unit_test(a_re_check_granted_after_the_message_confirms_the_claim),
        cmocka_unit_test(a_re_check_that_takes_the_lock_anew_after_the_message_is_a_loss),
        cmocka_unit_test(such_a_re_check_for_a_shorter_lease_confirms_no_more),
        cmocka_unit_test(a_grant_processed_too_late_is_given_back_and_asked_for_anew),
        cmocka_unit_test(a_token_given_up_while_others_wait_leaves_its_place_to_the_next),
        cmocka_unit_test(a_doubt_about_a_held_lease_is_a_question_to_the_server),
        cmocka_unit_test(a_waiter_asks_again_within_the_patience_it_was_given),
        cmocka_unit_test(a_revoke_for_a_waiting_token_or_a_nudge_asks_at_once),
        cmocka_unit_test(only_the_first_behind_a_foreign_holder_listen_to_its_key),
        cmocka_unit_test(the_first_look_when_the_holders_key_ends),
        cmocka_unit_test(a_key_that_never_ends_or_in_a_thousand_years_is_re_checked_as_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
