/* SPDX-License-Identifier: MIT */
/* entry_pace_test.c - how often a waiting entry may acquire, whatever messages, answers and errors it gets. */
#include "core/policy/fence.h"
#include "core/policy/pace.h"
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct hfi_answer granted = {.kind = HFI_GRANTED};

static struct hfi_answer queued(int64_t left_ms, int64_t position)
{
    return (struct hfi_answer){
        .kind = HFI_IN_QUEUE, .ours = true, .left_ms = left_ms, .position = position, .ticket = 4711};
}

enum message { GRANT, WISH, NUDGE, DOUBT, MESSAGES };

static const char *tell(struct hft_stand *s, enum message message)
{
    switch (message) {
    case GRANT: /* with an echo that was never sent */
        return hft_handed(s, 1);
    case WISH:
        return hft_wanted(s);
    case NUDGE:
        return hft_nudged(s);
    case DOUBT:
        return hft_doubted(s);
    case MESSAGES:
        break;
    }
    return "";
}

/* Sends one of these messages a round trip, a tenth of a millisecond, for a second; returns the number of acquires. */
static int flood(struct hft_stand *s, enum message message)
{
    int asked = 0;
    for (int i = 0; i < 10000; i++, s->now += HFI_MS / 10) {
        asked += strstr(tell(s, message), "wait") != NULL;
        if (hfi_entry_next(&s->entry) <= s->now)
            asked += strstr(hft_look(s), "wait") != NULL;
        if (hfi_entry_awaits_answer(&s->entry) && i % 2 == 1)
            asked += strstr(hft_answer(s, queued(9000, 0)), "wait") != NULL;
    }
    return asked;
}

static void a_flooded_waiter_acquires_a_hundred_times_a_second_at_most(void **state)
{
    (void)state;
    for (enum message message = 0; message < MESSAGES; message++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a");
        hft_stand_init(&s);
        hft_queue(&s, &a, 0);
        int asked = flood(&s, message);
        if (asked < 90 || asked > 102)
            fail_msg("flooded with messages of kind %d it asked %d times in a second", message, asked);
        assert_int_equal(hfi_entry_acquire_params(&s.entry).ticket, 4711);
        if (hfi_entry_awaits_answer(&s.entry))
            assert_string_equal(hft_answer(&s, granted), "a=lease");
    }
}

static void two_messages_are_asked_about_at_once_and_the_next_when_ten_ms_are_over(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0); /* has just asked */
    assert_string_equal(hft_nudged(&s), "wait");
    int64_t first = s.now;
    assert_string_equal(hft_answer(&s, queued(9000, 0)), "");
    assert_string_equal(hft_nudged(&s), "wait");
    assert_string_equal(hft_answer(&s, queued(9000, 0)), "");
    hft_pass_ms(&s, 3);
    assert_string_equal(hft_wanted(&s), "");
    assert_string_equal(hft_nudged(&s), "");
    assert_string_equal(hft_look_next(&s), "wait");
    assert_int_equal(s.now, first + HFI_PACE_NS);
    assert_string_equal(hft_wanted(&s), ""); /* while it is under way: one more */
    assert_string_equal(hft_answer(&s, queued(9000, 0)), "");
    assert_string_equal(hft_look_next(&s), "wait");
    assert_int_equal(s.now, first + 2 * HFI_PACE_NS);
    assert_string_equal(hft_answer(&s, queued(9000, 0)), "");
    assert_true(hfi_entry_next(&s.entry) >= s.now + 360 * HFI_MS); /* nothing was heard since */
}

/* Questions that something else makes due are early ones, too, and not paced: they are no debt. */
static void many_that_were_due_delay_the_next_by_no_more_than_ten_ms(void **state)
{
    (void)state;
    int64_t until = 0;
    for (int i = 0; i < 20; i++)
        until = hfi_pace_paid_ns(until, 5 * HFI_PACE_NS);
    assert_int_equal(hfi_pace_next_ns(until, 0), 6 * HFI_PACE_NS);
}

static void a_re_check_that_a_message_brings_forward_is_an_acquire(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    s.rules.batch_rechecks = true;
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_look_next(&s), "re-check");
    assert_string_equal(hft_nudged(&s), "");
    assert_string_equal(hft_answer(&s, queued(9000, 0)), "wait");
    assert_string_equal(hft_answer(&s, queued(9000, 0)), "");
    assert_string_equal(hft_nudged(&s), "wait");
    assert_string_equal(hft_answer(&s, queued(9000, 0)), "");
    assert_string_equal(hft_nudged(&s), "");
    assert_string_equal(hft_look_next(&s), "wait");
}

/* The key may hold this token already, all the more where a replica has it first; the message makes the waiter
 * check. */
static void a_grant_with_a_known_echo_is_never_held_back(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    int64_t echo = s.asked_at;
    s.now = echo + 800 * HFI_MS; /* the claim is nearly over */
    assert_string_equal(hft_nudged(&s), "wait");
    assert_string_equal(hft_nudged(&s), "");
    assert_string_equal(hft_handed(&s, echo), "");
    assert_string_equal(hft_answer(&s, queued(9000, 0)), "wait"); /* for the grant; the nudge is answered with it */
    assert_string_equal(hft_answer(&s, queued(9000, 0)), "");
    assert_string_equal(hft_handed(&s, echo), "wait");
    assert_string_equal(hft_answer(&s, granted), "a=lease");
}

static void a_break_changes_the_token_at_once_and_asks_when_its_turn_comes(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_doubted(&s), "close wait!");
    int64_t first = s.now;
    assert_string_equal(hft_answer(&s, queued(9000, 0)), "");
    assert_string_equal(hft_doubted(&s), "close wait!");
    hft_pass_ms(&s, 4);
    assert_string_equal(hft_answer(&s, queued(9000, 0)), "");
    assert_string_equal(hft_doubted(&s), "close");
    assert_string_equal(hft_doubted(&s), "");
    struct hft_thread b = hft_try("b");
    assert_string_equal(hft_arrive(&s, &b), "b=BUSY");
    assert_string_equal(hft_look_next(&s), "wait!");
    assert_int_equal(s.now, first + HFI_PACE_NS);
    assert_int_equal(hfi_entry_acquire_params(&s.entry).ticket, 4711);
}

/* The key is always about to end: another program takes it for a millisecond again and again, or a server says so. */
static void a_key_that_is_always_about_to_end_is_looked_at_every_ten_ms(void **state)
{
    (void)state;
    static const int64_t positions[] = {0, 1, 15, 16, 500};
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a");
        int asked = 0;
        hft_stand_init(&s);
        hft_queue(&s, &a, positions[i]);
        (void)hft_answer(&s, queued(0, positions[i]));
        for (int64_t end = s.now + 1000 * HFI_MS; hfi_entry_next(&s.entry) < end; asked++) {
            assert_string_equal(hft_look_next(&s), "wait");
            assert_string_equal(hft_answer(&s, queued(0, positions[i])), "");
        }
        assert_in_range(asked, 5, 101); /* also from far behind: with nothing left there may be no holder at all */
    }
}

static void an_error_that_comes_at_once_is_met_again_after_a_re_checks_time(void **state)
{
    (void)state;
    static const hf_status statuses[] = {HF_UNAVAILABLE, HF_NOMEM};
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        struct hft_stand s;
        struct hft_thread a = hft_thread("a");
        int asked = 0;
        hft_stand_init(&s);
        hft_queue(&s, &a, 0);
        for (int64_t end = s.now + 10000 * HFI_MS; hfi_entry_next(&s.entry) < end; asked++) {
            assert_string_equal(hft_look_next(&s), "wait");
            assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_CANNOT, .status = statuses[i]}), "");
        }
        assert_in_range(asked, 20, 28);
        assert_int_equal(hfi_entry_why_in_vain(&s.entry, &a.waiter), statuses[i]);
    }
}

static void answers_that_are_lost_at_once_are_asked_for_every_ten_ms(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    int asked = 0;
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_look_next(&s), "wait");
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_NO_ANSWER}), "");
    assert_true(hfi_entry_next(&s.entry) <= s.now); /* the first one at once */
    for (int64_t end = s.now + 1000 * HFI_MS; hfi_entry_next(&s.entry) < end && asked < 10000; asked++) {
        assert_string_equal(hft_look_next(&s), "wait");
        assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_NO_ANSWER}), "");
    }
    assert_in_range(asked, 90, 101);
}

/* As of a primary whose replicas do not confirm, but say so at once. */
static void grants_that_do_not_count_are_asked_for_soon_and_then_once_in_r(void **state)
{
    static const int pauses_ms[] = {10, 20, 40, 80, 160, 320, 400, 400};
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_look_next(&s), "wait");
    for (size_t i = 0; i < sizeof pauses_ms / sizeof pauses_ms[0]; i++) {
        assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_NO_ANSWER, .counts_not = true}), "");
        assert_int_equal(hfi_entry_next(&s.entry) - s.now, pauses_ms[i] * HFI_MS);
        assert_string_equal(hft_look_next(&s), "wait");
    }
}

static void doubts_about_a_held_lease_renew_it_a_hundred_times_a_second_at_most(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    int renewed = 0;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    for (int i = 0; i < 10000; i++, s.now += HFI_MS / 10) {
        assert_string_equal(hft_doubted(&s), "held");
        if (hfi_entry_next(&s.entry) <= s.now && strstr(hft_look(&s), "renew") != NULL) {
            renewed++;
            (void)hft_renewed(&s, s.now);
        }
        if (i % 5 == 0) { /* nor does a pass to a thread with another lease length begin the count anew */
            b.waiter.lease_ms = 9000 + i % 10 * 100;
            (void)hft_arrive(&s, &b);
            (void)hft_release(&s, false);
        }
    }
    assert_in_range(renewed, 90, 101);
}

/* A place in the queue is for a waiter. Threads that leave before the next token may be sent take it with them. */
static void a_place_kept_for_another_token_goes_with_its_last_waiter(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(hft_doubted(&s), "close wait!");
        (void)hft_answer(&s, queued(9000, 0));
    }
    assert_string_equal(hft_doubted(&s), "close");
    assert_int_equal(s.entry.ask.ticket, 4711);
    (void)hft_leave(&s, &a);
    assert_string_equal(hft_arrive(&s, &b), "wait!");
    assert_int_equal(s.entry.ask.ticket, 0);
    assert_int_equal(s.entry.ask.position, 0);
}

/* Each in vain leaves half of what was left: a first block has 2,048. */
static void count_questions_for_more(bool no_counter)
{
    struct hft_stand s;
    struct hft_thread t[2] = {hft_thread("a"), hft_thread("b")};
    int asked = 0;
    hft_stand_init(&s);
    hft_hold(&s, &t[0]);
    for (int i = 0; i < 2047; i++) {
        (void)hft_arrive(&s, &t[(i + 1) % 2]);
        const char *did = hft_release(&s, false);
        asked += strstr(did, "more") != NULL;
        assert_non_null(strstr(did, "=lease"));
        if (s.entry.held.more_asked)
            (void)(no_counter ? hft_no_counter(&s) : hft_fences(&s, 0, 0, false));
    }
    assert_in_range(asked, 1, 12);
}

static void a_server_that_has_no_more_fences_is_asked_for_them_eleven_times_a_block(void **state)
{
    (void)state;
    count_questions_for_more(false);
    count_questions_for_more(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flooded_waiter_acquires_a_hundred_times_a_second_at_most),
        cmocka_unit_test(many_that_were_due_delay_the_next_by_no_more_than_ten_ms),
        cmocka_unit_test(two_messages_are_asked_about_at_once_and_the_next_when_ten_ms_are_over),
        cmocka_unit_test(a_re_check_that_a_message_brings_forward_is_an_acquire),
        cmocka_unit_test(a_grant_with_a_known_echo_is_never_held_back),
        cmocka_unit_test(a_break_changes_the_token_at_once_and_asks_when_its_turn_comes),
        cmocka_unit_test(a_key_that_is_always_about_to_end_is_looked_at_every_ten_ms),
        cmocka_unit_test(an_error_that_comes_at_once_is_met_again_after_a_re_checks_time),
        cmocka_unit_test(answers_that_are_lost_at_once_are_asked_for_every_ten_ms),
        cmocka_unit_test(grants_that_do_not_count_are_asked_for_soon_and_then_once_in_r),
        cmocka_unit_test(doubts_about_a_held_lease_renew_it_a_hundred_times_a_second_at_most),
        cmocka_unit_test(a_place_kept_for_another_token_goes_with_its_last_waiter),
        cmocka_unit_test(a_server_that_has_no_more_fences_is_asked_for_them_eleven_times_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
