/* SPDX-License-Identifier: MIT */
/* entry_passes_test.c - a lease that passes from thread to thread: what it keeps, and what the next thread's options
 * change. */
#include "core/policy/fence.h"
#include "core/policy/pace.h"
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct hfi_answer granted = {.kind = HFI_GRANTED};

/* `to` waits and gets it. */
static void pass(struct hft_stand *s, struct hft_thread *to)
{
    assert_string_equal(hft_arrive(s, to), "");
    (void)hft_release(s, false);
    assert_int_equal(to->waiter.verdict, HFI_GOT_LEASE);
}

/* ---- what the next one wants ---- */

/* Round trips of a second: a renewal is overdue after four of them, whichever thread holds. */
static void a_thread_that_wants_the_same_has_the_same(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    s.rtt = 1000 * HFI_MS;
    hft_hold(&s, &a);
    struct hfi_lease_times before = s.entry.held.times;
    hft_pass_ms(&s, 100);
    pass(&s, &b);
    assert_memory_equal(&s.entry.held.times, &before, sizeof before);
}

static void a_longer_stop_is_told_as_early_as_it_was_wanted(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) { /* longer, shorter */
        struct hft_stand s;
        struct hft_thread a = hft_thread("a"), b = hft_thread("b");
        hft_stand_init(&s);
        b.waiter.stop_ms = i == 0 ? 3000 : 500;
        hft_hold(&s, &a);
        pass(&s, &b);
        assert_int_equal(s.entry.held.times.full_stop, b.waiter.stop_ms * HFI_MS);
    }
}

static void a_shorter_or_longer_lease_is_begun_as_such(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a"), b = hft_thread("b");
        hft_stand_init(&s);
        b.waiter.lease_ms = i == 0 ? 20000 : 5000;
        hft_hold(&s, &a);
        pass(&s, &b);
        assert_int_equal(s.entry.held.times.length, b.waiter.lease_ms * HFI_MS);
    }
}

static void the_next_ones_max_hold_counts_from_its_own_begin(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    b.waiter.max_hold_ms = 1500;
    hft_hold(&s, &a);
    hft_pass_ms(&s, 300);
    pass(&s, &b);
    hft_pass_ms(&s, 499);
    assert_string_equal(hft_look(&s), "");
    hft_pass_ms(&s, 1);
    assert_string_equal(hft_look(&s), "at-risk:MAX_HOLD");
    hft_pass_ms(&s, 999);
    assert_string_equal(hft_look(&s), "");
    hft_pass_ms(&s, 1);
    assert_string_equal(hft_look(&s), "lost:MAX_HOLD give-back");
}

static void a_max_hold_is_not_inherited(void **state)
{
    (void)state;
    for (int told = 0; told < 2; told++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a"), b = hft_thread("b");
        hft_stand_init(&s);
        a.waiter.max_hold_ms = 500;
        hft_hold(&s, &a);
        if (told)
            assert_string_equal(hft_look_next(&s), "at-risk:MAX_HOLD");
        pass(&s, &b);
        assert_int_equal(s.entry.held.times.hold_end, HFI_NEVER);
        assert_int_equal(s.entry.held.times.condition, HF_LEASE_HELD);
        assert_string_equal(hft_look_next(&s), "renew");
    }
}

/* It was told to the one before; the next one hears of it by itself. */
static void a_risk_is_told_anew_to_the_next_one(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    hft_hold(&s, &a);
    while (strcmp(hft_look_next(&s), "renew at-risk:UNCONFIRMED") != 0 && strcmp(s.did, "at-risk:UNCONFIRMED") != 0)
        assert_string_equal(s.did, "renew");
    pass(&s, &b);
    assert_int_equal(s.entry.held.times.condition, HF_LEASE_HELD);
    while (strstr(hft_look_next(&s), "at-risk:UNCONFIRMED") == NULL)
        assert_true(strcmp(s.did, "renew") == 0);
}

/* ---- renewals under way ---- */

static void attempts_under_way_go_on_at_their_pace(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    b.waiter.stop_ms = 500;
    hft_hold(&s, &a);
    assert_string_equal(hft_look_next(&s), "renew");
    int64_t next = s.entry.held.times.renew_next;
    assert_true(next > s.now);
    hft_pass_ms(&s, 1);
    pass(&s, &b);
    assert_int_equal(s.entry.held.times.renew_next, next);
}

static void a_renewal_that_is_wanted_at_once_is_not_put_off_by_a_pass(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    b.waiter.stop_ms = 500;
    hft_hold(&s, &a);
    hfi_entry_renew_now(&s.entry);
    pass(&s, &b);
    assert_string_equal(hft_look(&s), "renew");
}

/* 5 s, then 10 s, then 10 s again: the renewals sent in between asked for 10 s. */
static void only_a_longer_lease_makes_the_older_renewals_short(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    hft_stand_init(&s);
    a.waiter.lease_ms = 5000;
    c.waiter.stop_ms = 500;
    hft_hold(&s, &a);
    hft_pass_ms(&s, 10);
    pass(&s, &b);
    hft_pass_ms(&s, 10);
    int64_t sent = s.now;
    hft_pass_ms(&s, 10);
    pass(&s, &c);
    assert_string_equal(hft_renewed(&s, sent), "end");
    assert_int_equal(s.entry.held.times.end, sent + 10000 * HFI_MS);
}

static void a_renewal_of_the_same_moment_asked_for_the_shorter_lease(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    a.waiter.lease_ms = 5000;
    hft_hold(&s, &a);
    hft_pass_ms(&s, 10);
    pass(&s, &b);
    int64_t moment = s.now;
    hft_pass_ms(&s, 10);
    assert_string_equal(hft_renewed(&s, moment), "end");
    assert_int_equal(s.entry.held.times.end, moment + 5000 * HFI_MS);
    assert_string_equal(hft_renewed(&s, moment + 1), "end");
    assert_int_equal(s.entry.held.times.end, moment + 1 + 10000 * HFI_MS);
}

static void a_renewal_asks_for_the_key_and_waits_for_less_than_an_attempt(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    a.waiter.lease_ms = 3900;
    hft_hold(&s, &a);
    struct hfi_renew_params renewing = hfi_entry_renew_params(&s.entry, s.now);
    assert_int_equal(renewing.ttl_ms, 3900 + 82 + 3 + 250);
    assert_int_equal(renewing.patience_ns, 150 * HFI_MS); /* three quarters of 200 ms */
}

/* Answers that come after the lease was released move nothing, whatever the memory is used for by then. */
static void answers_after_a_release_are_ignored(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    hft_queue(&s, &a, 3);
    struct hfi_entry before = s.entry;
    hft_pass_ms(&s, 1);
    assert_string_equal(hft_renewed(&s, s.now), "");
    assert_string_equal(hft_fences(&s, HFT_FENCE + 9 * HFI_FENCE_BLOCK, HFI_FENCE_BLOCK, true), "");
    assert_string_equal(hft_fences(&s, 0, HFI_FENCE_BLOCK, false), "");
    assert_string_equal(hft_filled(&s, true), "");
    assert_int_equal(s.entry.ask.ticket, before.ask.ticket);
    assert_int_equal(s.entry.ask.position, before.ask.position);
    assert_memory_equal(s.entry.ask.echoes, before.ask.echoes, sizeof before.ask.echoes);
    assert_int_equal(s.entry.remote, HFI_QUEUED);
    assert_int_equal(a.waiter.verdict, HFI_WAITING);
    assert_string_equal(hft_leave(&s, &a), "close");
    assert_string_equal(hft_renewed(&s, s.now), "");
    assert_string_equal(hft_filled(&s, true), "");
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_answer(&s, granted), "b=lease");
}

/* ---- fences ---- */

/* How many passes its blocks are good for, and the last fence of them. */
static int passes_until_it_ends(struct hft_stand *s, struct hft_thread t[2], int64_t *last)
{
    int count = 0;
    for (;; count++) {
        struct hft_thread *next = &t[(count + 1) % 2];
        (void)hft_arrive(s, next);
        *last = t[count % 2].waiter.fence;
        (void)hft_release(s, false);
        if (next->waiter.verdict != HFI_GOT_LEASE)
            return count;
        assert_true(next->waiter.fence > *last);
    }
}

static void a_block_is_used_to_its_last_fence_and_no_further(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread t[2] = {hft_thread("a"), hft_thread("b")};
    int64_t last, first, spare;
    hft_stand_init(&s);
    hft_hold(&s, &t[0]);
    first = t[0].waiter.fence;
    spare = first + 9 * HFI_FENCE_BLOCK;
    s.entry.held.more_asked = true;
    assert_string_equal(hft_fences(&s, spare, 2 * HFI_FENCE_BLOCK, true), "");
    assert_int_equal(passes_until_it_ends(&s, t, &last), 3 * HFI_FENCE_BLOCK - 1);
    assert_int_equal(last, spare + 2 * HFI_FENCE_BLOCK - 1);
}

static void a_block_of_fences_that_was_waited_for_is_used_up_too(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread t[2] = {hft_thread("a"), hft_thread("b")};
    int64_t last, first = HFT_FENCE + 5 * HFI_FENCE_BLOCK;
    hft_stand_init(&s);
    (void)hft_arrive(&s, &t[0]);
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_GRANTED, .fence = 5}), "floor");
    (void)hft_fences(&s, first, HFI_FENCE_BLOCK, true);
    assert_int_equal(t[0].waiter.fence, first);
    (void)hft_fences(&s, 0, 0, false); /* no more come */
    assert_int_equal(passes_until_it_ends(&s, t, &last), HFI_FENCE_BLOCK - 1);
    assert_int_equal(last, first + HFI_FENCE_BLOCK - 1);
}

/* The fences had run out: the thread that waits for them gets the lease as by a pass, with its own stop. */
static void a_thread_that_waited_for_fences_gets_its_own_options(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread t[2] = {hft_thread("a"), hft_thread("b")}, c = hft_thread("c");
    hft_stand_init(&s);
    c.waiter.stop_ms = 2500;
    c.waiter.max_hold_ms = 700;
    hft_hold(&s, &t[0]);
    for (int i = 1; s.entry.fence < s.entry.held.fence_end; i++)
        pass(&s, &t[i % 2]);
    assert_true(s.entry.held.more_asked);
    assert_string_equal(hft_arrive(&s, &c), "");
    assert_string_equal(hft_release(&s, false), "");
    (void)hft_fences(&s, HFT_FENCE + 20 * HFI_FENCE_BLOCK, HFI_FENCE_BLOCK, true);
    assert_int_equal(c.waiter.verdict, HFI_GOT_LEASE);
    assert_int_equal(s.entry.held.times.full_stop, 2500 * HFI_MS);
    assert_int_equal(s.entry.held.times.hold_end, s.now + 700 * HFI_MS);
}

/* After an answer without fences the next request goes when half of what is left then is used, not at every pass. */
static void a_refused_block_is_asked_for_again_when_half_of_the_rest_is_used(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread t[2] = {hft_thread("a"), hft_thread("b")};
    int i = 1;
    hft_stand_init(&s);
    hft_hold(&s, &t[0]);
    for (; !s.entry.held.more_asked; i++)
        pass(&s, &t[i % 2]);
    for (int times = 0; times < 4; times++) {
        int64_t left = s.entry.held.fence_end - s.entry.fence;
        assert_string_equal(hft_fences(&s, 0, 0, false), "");
        for (; !s.entry.held.more_asked; i++)
            pass(&s, &t[i % 2]);
        assert_int_equal(s.entry.held.fence_end - s.entry.fence, left / 2 - 1);
    }
}

static void more_fences_cost_the_key_no_more_than_is_believed(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_hold(&s, &a);
    int64_t end = s.entry.held.times.end;
    assert_int_equal(hfi_entry_question_ttl_ms(&s.entry, end - 7000 * HFI_MS), 7000);
    assert_int_equal(hfi_entry_question_ttl_ms(&s.entry, end - 2 * HFI_MS), 2);
    assert_int_equal(hfi_entry_question_ttl_ms(&s.entry, end - HFI_MS), 1);
    assert_int_equal(hfi_entry_question_ttl_ms(&s.entry, end), 1); /* a PEXPIRE of 0 would delete it */
    assert_int_equal(hfi_entry_question_ttl_ms(&s.entry, end + 5 * HFI_MS), 1);
}

/* ---- the end ---- */

static void at_the_moment_of_the_stop_margin_no_thread_is_granted(void **state)
{
    (void)state;
    for (int early = 0; early < 2; early++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a"), b = hft_thread("b");
        hft_stand_init(&s);
        hft_hold(&s, &a);
        s.now = s.entry.held.times.end - s.entry.held.times.stop - early;
        (void)hft_arrive(&s, &b);
        assert_string_equal(hft_release(&s, false), early ? "b=lease" : "give-back native!");
    }
}

/* The linger time is over, and a renewal is due at the same moment: the lease is released and not renewed. */
static void a_lease_that_lingers_no_more_is_not_renewed(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    a.waiter.linger_ms = 5000;
    hft_hold(&s, &a);
    (void)hft_release(&s, false);
    hft_pass_ms(&s, 5000);
    assert_string_equal(hft_look(&s), "give-back");
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void a_millisecond_is_enough_to_linger(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    a.waiter.linger_ms = 1;
    hft_hold(&s, &a);
    assert_string_equal(hft_release(&s, false), "");
    assert_string_equal(hft_look_next(&s), "give-back");
}

/* Renewals tell of a loss and of waiters: a long lease would be silent for its third, whichever thread holds it. */
static void a_taken_over_longer_lease_is_renewed_as_often_as_ones_own(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) { /* the renewal of the one before may be under way */
        struct hft_stand s;
        struct hft_thread a = hft_thread("a"), b = hft_thread("b");
        a.waiter.lease_ms = 300000;
        b.waiter.lease_ms = 1000;
        b.waiter.stop_ms = 100;
        hft_stand_init(&s);
        hft_hold(&s, &a);
        int64_t end = s.entry.held.times.end, sent = s.now;
        if (late)
            assert_string_equal(hft_look_next(&s), "renew");
        sent = late ? s.now : sent;
        (void)hft_arrive(&s, &b);
        hft_pass_ms(&s, 20);
        int64_t passed = s.now;
        assert_string_equal(hft_release(&s, false), "b=lease");
        assert_int_equal(b.waiter.end, end); /* it is kept so long, and may be believed so long */
        if (late)
            assert_string_equal(hft_renewed(&s, sent), "");
        for (int i = 0; i < 20; i++) {
            assert_string_equal(hft_look_next(&s), "renew");
            assert_in_range(s.now - passed, 300 * HFI_MS, 334 * HFI_MS);
            passed = s.now;
            assert_string_equal(hft_renewed(&s, s.now), "");
        }
        (void)hft_arrive(&s, &a);
        assert_string_equal(hft_release(&s, false), "a=lease");
        assert_int_equal(a.waiter.end, end);
    }
}

/* A short lease that was not extended has less time left than a long one would have by now. */
static void a_taken_over_shorter_lease_is_not_reported_overdue(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    b.waiter.lease_ms = 1000;
    b.waiter.stop_ms = 100;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_release(&s, false), "b=lease");
    int64_t begun = s.now;
    while (s.now - begun < 5500 * HFI_MS) {
        assert_string_equal(hft_look_next(&s), "renew");
        assert_string_equal(hft_renewed(&s, s.now), "");
    }
    hft_pass_ms(&s, 20);
    (void)hft_arrive(&s, &c);
    assert_string_equal(hft_release(&s, false), "c=lease");
    int64_t passed = s.now;
    assert_string_equal(hft_look_next(&s), "renew"); /* when b's would have been */
    assert_true(s.now - passed < 334 * HFI_MS);
    int64_t asked = s.sent_at;
    while (strstr(hft_look_next(&s), "at-risk:UNCONFIRMED") == NULL) /* nothing is answered any more */
        assert_true(s.now - asked < 900 * HFI_MS);
    assert_int_equal(s.now - asked, 10000 * HFI_MS / 12);
}

/* Passed to and fro between a long lease and a short one: each judges by its own length how long no answer has come. */
static void a_silence_is_not_forgotten_by_passes(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    struct hft_thread *holder = &a, *next = &b;
    b.waiter.lease_ms = 60000;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    assert_string_equal(hft_look_next(&s), "renew");
    int64_t asked = s.sent_at;
    while (s.now - asked < 4500 * HFI_MS) {
        int64_t until = s.now + (holder == &a ? 700 : 20) * HFI_MS, grace = holder->waiter.lease_ms * HFI_MS / 12;
        bool told = false;
        while (hfi_entry_next(&s.entry) < until)
            told = strstr(hft_look_next(&s), "at-risk:UNCONFIRMED") != NULL || told;
        assert_int_equal(told, until > asked + grace);
        hft_pass_ms(&s, (until - s.now) / HFI_MS);
        pass(&s, next);
        struct hft_thread *last = holder;
        holder = next;
        next = last;
    }
}

static void a_long_way_to_the_server_is_not_forgotten_by_a_pass(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    b.waiter.stop_ms = 500;
    hft_stand_init(&s);
    s.rtt = 400 * HFI_MS;
    hft_hold(&s, &a);
    assert_string_equal(hft_look_next(&s), "renew");
    int64_t asked = s.sent_at;
    pass(&s, &b);
    while (strstr(hft_look_next(&s), "at-risk:UNCONFIRMED") == NULL)
        assert_true(s.now - asked < 1700 * HFI_MS);
    assert_int_equal(s.now - asked, 1600 * HFI_MS);
}

/* Passed from 60 s to 1 s: for 50 s no answer moves V, and yet each ends the silence that its renewal began. */
static void an_answer_ends_a_silence_though_it_moves_nothing(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    a.waiter.lease_ms = 60000;
    b.waiter.lease_ms = 1000;
    b.waiter.stop_ms = 100;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    pass(&s, &b);
    for (int i = 0; i < 20; i++) {
        assert_string_equal(hft_look_next(&s), "renew");
        hft_pass_ms(&s, 1);
        assert_string_equal(hft_renewed(&s, s.sent_at), "");
    }
    assert_string_equal(hft_look_next(&s), "renew"); /* not answered, */
    assert_string_equal(hft_look_next(&s), "renew");
    assert_string_equal(hft_look_next(&s), "at-risk:UNCONFIRMED");
    while (strcmp(hft_look_next(&s), "renew") != 0)
        ;
    hft_pass_ms(&s, 1);
    assert_string_equal(hft_renewed(&s, s.sent_at), "safe-again"); /* and this one is */
    assert_int_equal(s.entry.held.times.condition, HF_LEASE_HELD);
}

/* After max_hold stopped the renewals a check was sent and answered; the next thread is told of no silence. */
static void a_question_that_was_answered_is_not_held_against_the_next(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    a.waiter.max_hold_ms = 6000;
    hft_hold(&s, &a);
    hft_pass_ms(&s, 1000);
    assert_string_equal(hft_look(&s), "");
    (void)hft_missed(&s);
    assert_string_equal(hft_look(&s), "renew");
    hft_pass_ms(&s, 1);
    assert_string_equal(hft_renewed(&s, s.sent_at), "");
    hft_pass_ms(&s, 1500);
    pass(&s, &b);
    assert_null(strstr(hft_look(&s), "UNCONFIRMED"));
}

/* 4 round trips are more than a twelfth of the short lease, though less than one of the long. */
static void in_short_hands_a_round_trip_is_as_long_as_before(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    s.rtt = 60 * HFI_MS;
    b.waiter.lease_ms = 500;
    b.waiter.stop_ms = 50;
    hft_hold(&s, &a);
    pass(&s, &b);
    assert_string_equal(hft_look_next(&s), "renew");
    int64_t sent = s.sent_at;
    const char *said;
    while (strstr(said = hft_look_next(&s), "UNCONFIRMED") == NULL)
        assert_string_equal(said, "renew");
    assert_int_equal(s.now - sent, 240 * HFI_MS);
}

/* Another connection tells of a step of the server's clock, while an answer from before it was on its way. */
static void a_renewal_that_is_wanted_at_once_is_not_settled_by_the_one_before(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_hold(&s, &a);
    assert_string_equal(hft_look_next(&s), "renew");
    hft_pass_ms(&s, 1);
    hfi_entry_renew_now(&s.entry);
    assert_string_equal(hft_renewed(&s, s.sent_at), "end");
    assert_true(hfi_entry_next(&s.entry) <= s.now + HFI_PACE_NS);
    assert_string_equal(hft_look_next(&s), "renew");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_wants_the_same_has_the_same),
        cmocka_unit_test(a_longer_stop_is_told_as_early_as_it_was_wanted),
        cmocka_unit_test(a_shorter_or_longer_lease_is_begun_as_such),
        cmocka_unit_test(the_next_ones_max_hold_counts_from_its_own_begin),
        cmocka_unit_test(a_max_hold_is_not_inherited),
        cmocka_unit_test(a_risk_is_told_anew_to_the_next_one),
        cmocka_unit_test(attempts_under_way_go_on_at_their_pace),
        cmocka_unit_test(a_renewal_that_is_wanted_at_once_is_not_put_off_by_a_pass),
        cmocka_unit_test(only_a_longer_lease_makes_the_older_renewals_short),
        cmocka_unit_test(a_renewal_of_the_same_moment_asked_for_the_shorter_lease),
        cmocka_unit_test(a_renewal_asks_for_the_key_and_waits_for_less_than_an_attempt),
        cmocka_unit_test(answers_after_a_release_are_ignored),
        cmocka_unit_test(a_block_is_used_to_its_last_fence_and_no_further),
        cmocka_unit_test(a_block_of_fences_that_was_waited_for_is_used_up_too),
        cmocka_unit_test(a_thread_that_waited_for_fences_gets_its_own_options),
        cmocka_unit_test(a_refused_block_is_asked_for_again_when_half_of_the_rest_is_used),
        cmocka_unit_test(more_fences_cost_the_key_no_more_than_is_believed),
        cmocka_unit_test(at_the_moment_of_the_stop_margin_no_thread_is_granted),
        cmocka_unit_test(a_lease_that_lingers_no_more_is_not_renewed),
        cmocka_unit_test(a_millisecond_is_enough_to_linger),
        cmocka_unit_test(a_taken_over_longer_lease_is_renewed_as_often_as_ones_own),
        cmocka_unit_test(a_taken_over_shorter_lease_is_not_reported_overdue),
        cmocka_unit_test(a_silence_is_not_forgotten_by_passes),
        cmocka_unit_test(a_long_way_to_the_server_is_not_forgotten_by_a_pass),
        cmocka_unit_test(an_answer_ends_a_silence_though_it_moves_nothing),
        cmocka_unit_test(a_question_that_was_answered_is_not_held_against_the_next),
        cmocka_unit_test(in_short_hands_a_round_trip_is_as_long_as_before),
        cmocka_unit_test(a_renewal_that_is_wanted_at_once_is_not_settled_by_the_one_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
