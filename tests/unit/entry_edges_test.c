/* SPDX-License-Identifier: MIT */
/* entry_edges_test.c - acquires and waits exactly at their edges: positions, periods, echoes, what is forgotten. */
#include "core/policy/fence.h"
#include "core/policy/pace.h"
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SAMPLES 4000

static const struct hfi_answer granted = {.kind = HFI_GRANTED}, late = {.kind = HFI_LATE}, busy = {.kind = HFI_BUSY};

static struct hfi_answer in_queue(int64_t position, int64_t left_ms)
{
    return (struct hfi_answer){
        .kind = HFI_IN_QUEUE, .ours = true, .left_ms = left_ms, .position = position, .ticket = 4711};
}

static void an_entry_begins_with_nothing_whatever_was_in_its_memory(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    memset(&s.entry, 0x5a, sizeof s.entry);
    hfi_entry_init(&s.entry, &s.rules, 7);
    assert_true(hfi_entry_is_idle(&s.entry));
    assert_int_equal(hfi_entry_next(&s.entry), HFI_NEVER);
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_answer(&s, granted), "a=lease");
    assert_true(a.waiter.fence > HFT_FENCE);
    assert_string_equal(hft_release(&s, false), "give-back");
}

static void an_entry_that_holds_acquires_or_waits_is_not_idle(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    a.waiter.linger_ms = 500;
    (void)hft_arrive(&s, &a);
    assert_false(hfi_entry_is_idle(&s.entry));
    (void)hft_answer(&s, granted);
    assert_false(hfi_entry_is_idle(&s.entry));
    (void)hft_release(&s, false);
    assert_false(hfi_entry_is_idle(&s.entry)); /* it lingers */
    assert_string_equal(hft_wanted(&s), "give-back");
    assert_true(hfi_entry_is_idle(&s.entry));
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_NOT_SENT, .native = true, .status = HF_UNAVAILABLE});
    assert_int_equal(s.entry.remote, HFI_NOTHING);
    assert_false(hfi_entry_is_idle(&s.entry)); /* it waits for the server */
    (void)hft_leave(&s, &a);
    assert_true(hfi_entry_is_idle(&s.entry));
}

/* ---- when to ask again ---- */

static void position_63_is_the_last_that_asks_every_400_ms_unless_many_names_wait(void **state)
{
    (void)state;
    assert_int_equal(hfi_recheck_ms(0, 0, 10000), 400);
    assert_int_equal(hfi_recheck_ms(63, 250, 10000), 400);
    assert_int_equal(hfi_recheck_ms(64, 250, 10000), 1000);
    assert_int_equal(hfi_recheck_ms(0, 251, 10000), 1000);
    assert_int_equal(hfi_recheck_ms(64, 5000, 10000), 1000);
    assert_int_equal(hfi_recheck_ms(0, 5001, 10000), 2000);
    assert_int_equal(hfi_recheck_ms(64, 5001, 10000), 2000);
    assert_int_equal(hfi_recheck_ms(64, 5001, 5000), 2000);
    assert_int_equal(hfi_recheck_ms(64, 5001, 4995), 1998); /* or the claim were over before the next */
    assert_int_equal(hfi_recheck_ms(64, 5001, 2000), 800);
    assert_int_equal(hfi_recheck_ms(64, 5001, 1500), 600);
    assert_int_equal(hfi_recheck_ms(64, 5001, 300), 400);
}

static int64_t asks_in_ms(int64_t position, int64_t left_ms, uint64_t rng)
{
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    s.entry.rng = rng;
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_BUSY, .native = true});
    (void)hft_answer(&s, in_queue(position, left_ms));
    return (s.entry.ask_at - s.now) / HFI_MS;
}

static void positions_0_to_15_ask_when_the_holders_key_ends(void **state)
{
    (void)state;
    assert_int_equal(asks_in_ms(0, 0, 7), 2);
    assert_int_equal(asks_in_ms(0, 100, 7), 102);
    assert_int_equal(asks_in_ms(15, 100, 7), 252);
    assert_in_range(asks_in_ms(16, 100, 7), 360, 440);
    for (int i = 1; i <= SAMPLES; i++) { /* a re-check is due after 0.9 to 1.1 R, and the key may end in between */
        assert_in_range(asks_in_ms(0, 399, (uint64_t)i), 360, 401);
        assert_in_range(asks_in_ms(0, 420, (uint64_t)i), 360, 422);
        assert_in_range(asks_in_ms(0, 800, (uint64_t)i), 360, 440);
    }
}

static void an_alarm_that_comes_early_asks_nothing(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 3);
    hft_pass_ms(&s, 300);
    assert_string_equal(hft_look(&s), "");
    assert_string_equal(hft_look_next(&s), "wait");
    hft_pass_ms(&s, 5000);
    assert_string_equal(hft_look(&s), ""); /* one question at a time */
}

/* The least and the most time to the next acquire, in us, among many waiters that acquire together. */
static void spread(int64_t rtt_ms, int64_t *least, int64_t *most)
{
    *least = INT64_MAX;
    *most = 0;
    for (int i = 1; i <= SAMPLES; i++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a");
        hft_stand_init(&s);
        s.rules.batch_rechecks = true;
        s.rules.phase = i % 40 * HFI_MS;
        s.rtt = rtt_ms * HFI_MS;
        s.entry.rng = (uint64_t)i;
        hft_queue(&s, &a, 0);
        int64_t away = (s.entry.ask_at - s.now) / 1000;
        *least = away < *least ? away : *least;
        *most = away > *most ? away : *most;
    }
}

/* A round trip sooner than 400 ms, by a quarter at most; up to a tenth to either side. */
static void a_batched_re_check_allows_for_a_round_trip_up_to_a_quarter(void **state)
{
    (void)state;
    static const int64_t cases[][2] = {{0, 400}, {90, 310}, {100, 300}, {120, 300}, {200, 300}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t least, most, period_us = cases[i][1] * 1000;
        spread(cases[i][0], &least, &most);
        assert_true(most <= period_us / 10 * 11);
        assert_true(most > period_us / 1000 * 1090); /* and it is used to the end */
        assert_true(least >= period_us / 10 * 9 - 40000);
        assert_true(least < period_us / 10 * 9 + 20000);
    }
}

/* ---- what is forgotten with a token ---- */

static void three_late_answers_are_counted_from_the_first_of_this_token(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    s.rules.native = false;
    assert_string_equal(hft_arrive(&s, &a), "wait!");
    assert_string_equal(hft_answer(&s, late), "wait");
    assert_string_equal(hft_answer(&s, granted), "a=lease");
    assert_string_equal(hft_release(&s, false), "give-back");
    assert_string_equal(hft_arrive(&s, &b), "wait!");
    assert_string_equal(hft_answer(&s, late), "wait");
    assert_string_equal(hft_answer(&s, late), "wait");
    assert_string_equal(hft_answer(&s, late), "close b=UNAVAILABLE");
}

static void a_grant_with_an_echo_of_an_earlier_token_is_only_a_hint(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    int64_t echo = s.asked_at;
    assert_string_equal(hft_leave(&s, &a), "close");
    hft_pass_ms(&s, 10);
    assert_string_equal(hft_arrive(&s, &b), "wait!");
    assert_string_equal(hft_answer(&s, in_queue(0, 9000)), "");
    assert_string_equal(hft_handed(&s, echo), "wait"); /* it may own it: the server knows */
    assert_int_equal(b.waiter.verdict, HFI_WAITING);
}

static void the_last_four_echoes_count(void **state)
{
    (void)state;
    for (int which = 0; which < 5; which++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a");
        int64_t echoes[5];
        hft_stand_init(&s);
        hft_queue(&s, &a, 0);
        for (int i = 0; i < 5; i++) {
            echoes[i] = s.asked_at;
            hft_pass_ms(&s, HFI_PACE_NS / HFI_MS);
            if (i < 4) {
                assert_string_equal(hft_nudged(&s), "wait");
                (void)hft_answer(&s, in_queue(0, 9000));
            }
        }
        assert_string_equal(hft_handed(&s, echoes[which]), which == 0 ? "wait" : "a=lease");
    }
}

static void a_revoke_without_a_holder_is_not_remembered(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    a.waiter.linger_ms = 500;
    assert_string_equal(hft_wanted(&s), "");
    hft_hold(&s, &a);
    assert_string_equal(hft_release(&s, false), ""); /* it lingers */
}

/* ---- what comes while a question is under way ---- */

/* A hint that came during an acquire causes the next one when that is answered, and the third 10 ms later. */
static void a_hint_during_an_acquire_causes_one_more(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_look_next(&s), "wait");
    assert_string_equal(hft_wanted(&s), "");
    assert_string_equal(hft_wanted(&s), "");
    assert_string_equal(hft_answer(&s, in_queue(0, 9000)), "wait");
    assert_int_equal(hfi_entry_next(&s.entry), HFI_NEVER);
    int64_t asked = s.now;
    assert_string_equal(hft_nudged(&s), "");
    assert_string_equal(hft_answer(&s, in_queue(0, 9000)), "wait");
    assert_string_equal(hft_nudged(&s), "");
    assert_string_equal(hft_answer(&s, in_queue(0, 9000)), "");
    assert_int_equal(hfi_entry_next(&s.entry), asked + HFI_PACE_NS);
    assert_string_equal(hft_look_next(&s), "wait");
    assert_string_equal(hft_answer(&s, in_queue(0, 9000)), "");
    assert_true(hfi_entry_next(&s.entry) > s.now + 300 * HFI_MS);
}

/* A grant message with an old echo of this waiter: it is genuine, and no new acquire may go before it is checked. */
static void a_late_grant_during_an_acquire_is_checked_at_once(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    int64_t echo = s.asked_at;
    hft_pass_ms(&s, 800);
    assert_string_equal(hft_look(&s), "wait");
    assert_string_equal(hft_handed(&s, echo), "");
    struct hfi_answer foreign = in_queue(0, 9000);
    foreign.ours = false;
    assert_string_equal(hft_answer(&s, foreign), "wait");
    assert_int_equal(hfi_entry_next(&s.entry), HFI_NEVER);
    assert_string_equal(hft_answer(&s, foreign), "watch");
}

static void the_fences_of_a_grant_that_a_message_was_faster_than_are_kept(void **state)
{
    (void)state;
    for (int good = 0; good < 2; good++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a");
        hft_stand_init(&s);
        hft_queue(&s, &a, 0);
        assert_string_equal(hft_nudged(&s), "wait");
        assert_string_equal(hft_handed(&s, s.asked_at), "a=lease");
        int64_t block = s.counter + 10 * HFI_FENCE_BLOCK;
        (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_GRANTED, .fence = block, .fence_is_good = good});
        assert_int_equal(s.entry.held.next_block, good ? block : 0);
    }
}

static void a_leaver_does_not_disturb_the_successor(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    hft_stand_init(&s);
    s.rules.barges = true;
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_arrive(&s, &c);
    assert_string_equal(hft_release(&s, false), "call:b");
    assert_string_equal(hft_leave(&s, &c), "");
    assert_string_equal(hft_come(&s, &b), "b=lease");
}

static void a_successor_that_leaves_while_another_holds_wakes_no_thread(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c"), d = hft_thread("d");
    hft_stand_init(&s);
    s.rules.barges = true;
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_arrive(&s, &c);
    assert_string_equal(hft_release(&s, false), "call:b");
    assert_string_equal(hft_arrive(&s, &d), "d=lease");
    assert_string_equal(hft_leave(&s, &b), "");
    assert_string_equal(hft_release(&s, false), "call:c");
}

static void a_failed_wait_reports_the_trouble_or_the_time(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    s.rules.batch_rechecks = true;
    hft_queue(&s, &a, 0);
    assert_int_equal(hfi_entry_why_in_vain(&s.entry, &a.waiter), HF_TIMEOUT);
    assert_string_equal(hft_look_next(&s), "re-check");
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_ASK_ALONE}), "wait");
    assert_int_equal(hfi_entry_why_in_vain(&s.entry, &a.waiter), HF_TIMEOUT);
    (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_NO_ANSWER});
    assert_int_equal(hfi_entry_why_in_vain(&s.entry, &a.waiter), HF_UNAVAILABLE);
}

static void a_try_and_a_wait_after_it_are_both_answered(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_try("a"), b = hft_thread("b");
    hft_stand_init(&s);
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_arrive(&s, &b), "");
    struct hfi_answer native = busy;
    native.native = true;
    assert_string_equal(hft_answer(&s, native), "try");
    assert_string_equal(hft_answer(&s, busy), "wait a=BUSY");
}

/* The last renewal reaches to the end of max_hold, and the key only the guard further. */
static void a_renewal_asks_for_no_more_than_max_hold_leaves(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    a.waiter.max_hold_ms = 12000;
    hft_hold(&s, &a);
    int64_t begun = s.now, lengths[] = {8667, 0};
    for (int i = 0; lengths[i] != 0; i++) {
        assert_string_equal(hft_look_next(&s), "renew");
        int64_t left = begun + 12000 * HFI_MS - s.now, asked = (left + HFI_MS - 1) / HFI_MS;
        assert_in_range(asked, lengths[i] - 20, lengths[i] + 20);
        assert_int_equal(hfi_entry_renew_params(&s.entry, s.now).ttl_ms, asked + hfi_guard_ms(asked, s.rules.guard_ms));
        assert_string_equal(hft_renewed(&s, s.now), "end");
    }
    assert_int_equal(hfi_lease_end(&s.entry.held.times), begun + 12000 * HFI_MS);
    assert_string_equal(hft_look_next(&s), "at-risk:MAX_HOLD");
    assert_string_equal(hft_look_next(&s), "lost:MAX_HOLD give-back");
    assert_int_equal(s.now, begun + 12000 * HFI_MS);
}

/* To the nanosecond: a part of a millisecond is asked for as a whole one. */
static void the_rest_of_max_hold_is_rounded_up(void **state)
{
    (void)state;
    const int64_t left_ns[] = {1, HFI_MS, HFI_MS + 1, 5 * HFI_MS, 5 * HFI_MS + 1, 6 * HFI_MS - 1}, asked_ms[] = {1, 1, 2, 5, 6, 6};
    for (size_t i = 0; i < sizeof left_ns / sizeof left_ns[0]; i++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a");
        hft_stand_init(&s);
        a.waiter.max_hold_ms = 6000;
        hft_hold(&s, &a);
        int64_t now = s.entry.held.times.hold_end - left_ns[i];
        assert_int_equal(hfi_entry_renew_params(&s.entry, now).ttl_ms, asked_ms[i] + hfi_guard_ms(asked_ms[i], s.rules.guard_ms));
    }
}

static void a_question_that_was_answered_is_asked_no_more(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    a.waiter.max_hold_ms = 8000;
    hft_hold(&s, &a);
    hft_pass_ms(&s, 1000);
    assert_string_equal(hft_doubted(&s), "held");
    assert_string_equal(hft_look(&s), "renew");
    int64_t sent = s.now;
    hft_pass_ms(&s, 1);
    assert_string_equal(hft_renewed(&s, sent), "");
    hft_pass_ms(&s, 4000);
    assert_string_equal(hft_look(&s), "");
}

/* A renewal for a short lease is a mere claim for a thread that wants a longer one, and is renewed at once. */
static void a_renewal_for_a_shorter_lease_is_a_claim_for_a_longer_one(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    hft_stand_init(&s);
    b.waiter.lease_ms = 600;
    b.waiter.stop_ms = 60;
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    hft_pass_ms(&s, 9000);
    (void)hft_look(&s);
    hft_pass_ms(&s, 500); /* a's second is over when b has it, and b needs 60 ms */
    assert_string_equal(hft_release(&s, false), "b=lease");
    (void)hft_look_next(&s);
    assert_string_equal(hft_renewed(&s, s.now), "end safe-again");
    int64_t end = s.entry.held.times.end;
    (void)hft_arrive(&s, &c);
    s.now = end - 400 * HFI_MS; /* less than c's second to stop */
    assert_string_equal(hft_release(&s, false), "c=lease");
}

static void what_is_left_is_passed_on_if_a_renewal_can_still_come_through(void **state)
{
    (void)state;
    const int64_t rtt_ns = 7 * HFI_MS, enough = 4 * rtt_ns + HFI_PACE_NS;
    for (int more = 0; more < 2; more++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a"), b = hft_thread("b");
        hft_stand_init(&s);
        b.waiter.stop_ms = 1;
        hft_hold(&s, &a);
        s.entry.held.times.rtt = rtt_ns;
        (void)hft_arrive(&s, &b);
        s.now = s.entry.held.times.end - enough - more;
        if (more)
            assert_string_equal(hft_release(&s, false), "b=lease");
        else
            assert_null(strstr(hft_release(&s, false), "b=lease"));
    }
}

/* ---- what a mistake of one would change ---- */

static void a_counter_that_is_gone_takes_no_lease_from_its_holder(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_no_counter(&s), "");
    assert_int_equal(s.entry.holding, HFI_BY_THREAD);
    assert_string_equal(hft_release(&s, false), "b=lease");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_no_counter(&s), ""); /* the answer of a lease that is over by now */
}

static void keys_without_an_end_are_watched_and_keys_that_are_gone_are_not(void **state)
{
    (void)state;
    static const struct {
        int64_t left_ms;
        bool watched;
    } cases[] = {{-1, true}, {0, false}, {1, true}, {5000, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a");
        hft_stand_init(&s);
        (void)hft_arrive(&s, &a);
        (void)hft_answer(&s, busy);
        struct hfi_answer foreign = in_queue(1, cases[i].left_ms);
        foreign.ours = false;
        (void)hft_answer(&s, foreign);
        assert_int_equal(s.entry.ask.watching, cases[i].watched);
    }
}

static void a_name_that_is_to_be_asked_for_alone_is_not_in_trouble(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_ASK_ALONE, .status = HF_UNAVAILABLE}), "wait");
    assert_int_equal(s.entry.trouble, HF_OK);
}

static void the_shortest_max_hold_counts_from_the_pass(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    b.waiter.max_hold_ms = 1;
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_release(&s, false), "b=lease");
    assert_int_equal(s.entry.held.times.hold_end, s.now + HFI_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_begins_with_nothing_whatever_was_in_its_memory),
        cmocka_unit_test(an_entry_that_holds_acquires_or_waits_is_not_idle),
        cmocka_unit_test(position_63_is_the_last_that_asks_every_400_ms_unless_many_names_wait),
        cmocka_unit_test(positions_0_to_15_ask_when_the_holders_key_ends),
        cmocka_unit_test(an_alarm_that_comes_early_asks_nothing),
        cmocka_unit_test(a_batched_re_check_allows_for_a_round_trip_up_to_a_quarter),
        cmocka_unit_test(three_late_answers_are_counted_from_the_first_of_this_token),
        cmocka_unit_test(a_grant_with_an_echo_of_an_earlier_token_is_only_a_hint),
        cmocka_unit_test(the_last_four_echoes_count),
        cmocka_unit_test(a_revoke_without_a_holder_is_not_remembered),
        cmocka_unit_test(a_hint_during_an_acquire_causes_one_more),
        cmocka_unit_test(a_late_grant_during_an_acquire_is_checked_at_once),
        cmocka_unit_test(the_fences_of_a_grant_that_a_message_was_faster_than_are_kept),
        cmocka_unit_test(a_leaver_does_not_disturb_the_successor),
        cmocka_unit_test(a_successor_that_leaves_while_another_holds_wakes_no_thread),
        cmocka_unit_test(a_failed_wait_reports_the_trouble_or_the_time),
        cmocka_unit_test(a_renewal_asks_for_no_more_than_max_hold_leaves),
        cmocka_unit_test(the_rest_of_max_hold_is_rounded_up),
        cmocka_unit_test(a_question_that_was_answered_is_asked_no_more),
        cmocka_unit_test(a_renewal_for_a_shorter_lease_is_a_claim_for_a_longer_one),
        cmocka_unit_test(what_is_left_is_passed_on_if_a_renewal_can_still_come_through),
        cmocka_unit_test(a_try_and_a_wait_after_it_are_both_answered),
        cmocka_unit_test(a_counter_that_is_gone_takes_no_lease_from_its_holder),
        cmocka_unit_test(keys_without_an_end_are_watched_and_keys_that_are_gone_are_not),
        cmocka_unit_test(a_name_that_is_to_be_asked_for_alone_is_not_in_trouble),
        cmocka_unit_test(the_shortest_max_hold_counts_from_the_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
