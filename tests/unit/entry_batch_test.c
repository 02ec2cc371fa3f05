/* SPDX-License-Identifier: MIT */
/* entry_batch_test.c - re-checks that expect no news: when one may go in a batch with those of other names, and what
 * follows. */
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

static const struct hfi_answer waits = {.kind = HFI_IN_QUEUE, .ours = true, .left_ms = 9000, .ticket = 4711};
static const struct hfi_answer alone = {.kind = HFI_ASK_ALONE};

static struct hft_stand s;
static struct hft_thread a, b;

static int queue_at(int64_t position, int64_t lease_ms)
{
    hft_stand_init(&s);
    a = hft_thread("a");
    b = hft_thread("b");
    a.waiter.lease_ms = lease_ms;
    a.waiter.stop_ms = lease_ms / 10;
    s.rules.batch_rechecks = true;
    s.rules.phase = 7 * HFI_MS;
    hft_queue(&s, &a, position);
    return 0;
}

static int in_front(void **state)
{
    (void)state;
    return queue_at(0, 10000);
}

static int in_front_for_a_short_lease(void **state)
{
    (void)state;
    return queue_at(0, 300);
}

static int far_behind(void **state)
{
    (void)state;
    return queue_at(64, 10000);
}

static int with_its_re_check_under_way(void **state)
{
    (void)in_front(state);
    assert_string_equal(hft_look_next(&s), "re-check");
    return 0;
}

static void who_waits_goes_with_others_for_as_long_as_nothing_changes(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_string_equal(hft_look_next(&s), "re-check");
        assert_int_equal(hfi_entry_next(&s.entry), HFI_NEVER);
        assert_string_equal(hft_look(&s), "");
        assert_string_equal(hft_answer(&s, waits), "");
        assert_int_equal(s.entry.ask.ticket, 4711);
    }
}

static void it_is_due_on_the_grid_and_never_outside_its_period(void **state)
{
    const struct {
        uint64_t queued;
        int64_t period_ms;
    } cases[] = {{1, 400}, {251, 1000}, {5001, 2000}};
    (void)state;
    s.rtt = 3 * HFI_MS;
    for (int k = 0; k < 3; k++) {
        int64_t period = cases[k].period_ms * HFI_MS, grid = (k == 0 ? 40 : 80) * HFI_MS;
        atomic_store(&s.rules.queued, cases[k].queued);
        for (int i = 0; i < 500; i++) {
            s.now += i * 12345;
            (void)hft_look_next(&s);
            (void)hft_answer(&s, waits);
            int64_t next = hfi_entry_next(&s.entry);
            if (i == 0)
                continue; /* by the period that was asked for before */
            assert_int_equal((next - s.rules.phase) % grid, 0);
            assert_true(next >= s.now + (period - s.rtt) / 10 * 9 - grid);
            assert_true(next <= s.now + period + period / 10 - s.rtt); /* a question may follow, within 1.1 R and a round trip */
        }
    }
}

/* Wherever between two points the answer comes. */
static void names_that_ask_together_part(void **state)
{
    static const struct {
        uint64_t queued;
        int64_t grid_ms, rtt_ms;
    } cases[] = {{1, 40, 0}, {1, 40, 30}, {1, 40, 400}, {1000, 80, 0}, {1000, 80, 30}, {1000, 80, 1000}, {6000, 80, 30}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        int64_t grid = cases[k].grid_ms * HFI_MS;
        s.rtt = cases[k].rtt_ms * HFI_MS;
        atomic_store(&s.rules.queued, cases[k].queued);
        (void)hft_look_next(&s);
        (void)hft_answer(&s, waits);
        for (int64_t late = 0; late < grid; late += HFI_MS) {
            int64_t earliest = HFI_NEVER, latest = 0;
            for (int i = 0; i < 50; i++) {
                (void)hft_look_next(&s);
                s.now += grid - (s.now - s.rules.phase) % grid + late;
                (void)hft_answer(&s, waits);
                int64_t after = hfi_entry_next(&s.entry) - s.now;
                earliest = after < earliest ? after : earliest;
                latest = after > latest ? after : latest;
            }
            assert_true(latest - earliest >= grid);
        }
    }
}

static void far_behind_it_is_due_after_a_second(void **state)
{
    (void)state;
    struct hfi_answer far = waits;
    far.position = 64;
    assert_true(hfi_entry_next(&s.entry) <= s.now + 440 * HFI_MS); /* the record that is there promises no more */
    assert_string_equal(hft_look_next(&s), "re-check");
    assert_int_equal(s.asking.patience_ms, 3000);
    (void)hft_answer(&s, far);
    assert_true(hfi_entry_next(&s.entry) >= s.now + 820 * HFI_MS);
    assert_true(hfi_entry_next(&s.entry) <= s.now + 1100 * HFI_MS);
}

static void what_is_not_plainly_waiting_asks_alone_at_once_with_the_same_token(void **state)
{
    (void)state;
    assert_string_equal(hft_answer(&s, alone), "wait");
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_GRANTED}), "a=lease");
}

static void a_grant_with_the_echo_of_a_re_check_counts_for_a_claim_from_then(void **state)
{
    (void)state;
    int64_t echo = s.asked_at;
    assert_int_equal(s.asking.claim_ttl_ms, 1000 + 21 + 3 + 250);
    assert_int_equal(s.asking.patience_ms, 1200);
    hft_pass_ms(&s, 30);
    assert_string_equal(hft_handed(&s, echo), "a=lease");
    assert_int_equal(a.waiter.end, echo + 1000 * HFI_MS);
    assert_string_equal(hft_answer(&s, waits), ""); /* it was overtaken */
    assert_int_equal(s.entry.remote, HFI_HELD);
    assert_string_equal(hft_answer(&s, alone), "");
}

static void a_claim_is_never_longer_than_the_record_says(void **state)
{
    (void)state;
    (void)hft_look_next(&s);
    assert_int_equal(s.asking.claim_ttl_ms, 300 + 7 + 3 + 250);
    assert_string_equal(hft_handed(&s, s.asked_at), "a=lease");
    assert_int_equal(a.waiter.end, s.asked_at + 300 * HFI_MS);
}

static void when_the_holders_key_ends_it_asks_alone(void **state)
{
    (void)state;
    struct hfi_answer soon = waits;
    soon.left_ms = 50;
    (void)hft_answer(&s, soon);
    assert_int_equal(hfi_entry_next(&s.entry), s.now + 52 * HFI_MS);
    assert_string_equal(hft_look_next(&s), "wait");
}

static int64_t next_in_ms(const char *says)
{
    int64_t asked = s.now;
    assert_string_equal(hft_look_next(&s), says);
    return (s.now - asked) / HFI_MS;
}

/* The holder may be subscribing just now; one that is dead or not subscribed costs six acquires more. */
static void what_the_holder_did_not_hear_is_said_again_soon_and_less_and_less(void **state)
{
    (void)state;
    struct hfi_answer unheard = waits;
    unheard.unheard = true;
    for (int64_t ms = 10; ms <= 320; ms *= 2) {
        (void)hft_answer(&s, unheard);
        assert_in_range(next_in_ms("re-check"), ms * 9 / 10 - 1, ms * 11 / 10);
    }
    for (int i = 0; i < 3; i++) {
        (void)hft_answer(&s, unheard);
        assert_in_range(next_in_ms("re-check"), 355, 440);
    }
    (void)hft_answer(&s, waits);
    assert_in_range(next_in_ms("re-check"), 355, 440);
    (void)hft_answer(&s, unheard);
    assert_in_range(next_in_ms("re-check"), 8, 11);
}

static void another_wait_for_it_begins_anew_to_say_so(void **state)
{
    (void)state;
    struct hfi_answer unheard = waits;
    unheard.unheard = true;
    for (int i = 0; i < 7; i++) {
        (void)hft_answer(&s, unheard);
        (void)hft_look_next(&s);
    }
    assert_string_equal(hft_leave(&s, &a), "close");
    assert_string_equal(hft_arrive(&s, &a), "wait!");
    (void)hft_answer(&s, unheard);
    assert_in_range(next_in_ms("re-check"), 8, 11);
}

/* left 0: there are expired records in front, and the script has dropped as many as it may. */
static void old_records_in_front_are_asked_about_at_once_as_long_as_there_are_fewer(void **state)
{
    (void)state;
    (void)queue_at(6000, 10000);
    struct hfi_answer more = waits;
    more.left_ms = 0;
    for (more.position = 5000; more.position > 900; more.position -= 1024) {
        (void)hft_answer(&s, more);
        assert_int_equal(next_in_ms("wait"), 0);
    }
    more.position += 1024;
    (void)hft_answer(&s, more); /* no nearer than before */
    assert_int_equal(next_in_ms("wait"), 162);
}

static void the_first_answer_that_there_are_more_is_asked_about_at_once(void **state)
{
    (void)state;
    hft_stand_init(&s);
    a = hft_thread("a");
    assert_string_equal(hft_arrive(&s, &a), "native!");
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_BUSY, .native = true}), "wait");
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_IN_QUEUE, .position = 2000, .ticket = 7}), "");
    assert_int_equal(next_in_ms("wait"), 0);
}

static void another_oldest_waiter_asks_alone_for_its_own_lease(void **state)
{
    (void)state;
    b.waiter.lease_ms = 500;
    assert_string_equal(hft_arrive(&s, &b), "");
    assert_string_equal(hft_leave(&s, &a), "");
    assert_string_equal(hft_look_next(&s), "wait");
    (void)hft_answer(&s, waits);
    assert_string_equal(hft_look_next(&s), "re-check");
}

static void whose_oldest_waiter_left_while_it_asked_does_so_too(void **state)
{
    (void)state;
    assert_string_equal(hft_arrive(&s, &b), "");
    assert_string_equal(hft_look_next(&s), "re-check");
    assert_string_equal(hft_leave(&s, &a), "");
    assert_string_equal(hft_answer(&s, waits), "");
    assert_string_equal(hft_look_next(&s), "wait");
}

static void a_wish_heard_meanwhile_is_asked_about(void **state)
{
    (void)state;
    assert_string_equal(hft_wanted(&s), ""); /* R for one that waits: it may own the name without knowing */
    assert_string_equal(hft_answer(&s, waits), "wait");
}

/* A failed re-check leaves no token in doubt, and after an outage ten thousand names are not re-checked one by one. */
static void whatever_became_of_a_re_check_another_will_do(void **state)
{
    (void)state;
    static const enum hfi_answer_kind kinds[] = {HFI_NO_ANSWER, HFI_NOT_SENT, HFI_CANNOT};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = kinds[i], .status = HF_UNAVAILABLE}), "");
        assert_int_equal(s.entry.trouble, HF_UNAVAILABLE);
        assert_string_equal(hft_look_next(&s), "re-check");
    }
    assert_string_equal(hft_answer(&s, waits), "");
    assert_int_equal(s.entry.trouble, HF_OK);
}

/* Names learn one after the other that messages may be missed; asked for by one timer, they go by one script. */
static void assert_soon_and_at_a_moment_in_common(void)
{
    int64_t next = hfi_entry_next(&s.entry);
    assert_in_range(next, s.now + 1, s.now + 2 * HFI_MS);
    assert_int_equal(next % (2 * HFI_MS), 0);
}

static void what_may_have_been_missed_is_asked_about_soon_and_together(void **state)
{
    (void)state;
    s.now += 300 * 1000;
    assert_string_equal(hft_missed(&s), ""); /* the timer's: it collects them */
    assert_soon_and_at_a_moment_in_common();
    assert_string_equal(hft_look_next(&s), "re-check");
    assert_string_equal(hft_missed(&s), ""); /* it left before that */
    assert_string_equal(hft_missed(&s), "");
    assert_string_equal(hft_answer(&s, waits), "");
    assert_soon_and_at_a_moment_in_common();
    assert_string_equal(hft_look_next(&s), "re-check");
    assert_string_equal(hft_answer(&s, waits), "");
    assert_true(hfi_entry_next(&s.entry) > s.now + 300 * HFI_MS);
}

static void who_stands_in_no_queue_so_far_asks_alone_when_a_server_comes_back(void **state)
{
    (void)state;
    hft_stand_init(&s);
    s.rules.batch_rechecks = true;
    a = hft_thread("a");
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_NOT_SENT, .status = HF_UNAVAILABLE, .native = true});
    assert_string_equal(hft_missed(&s), "native!");
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_GRANTED, .native = true}), "a=lease");
    assert_string_equal(hft_missed(&s), "");
}

static void whose_last_waiter_leaves_gives_up_its_token_though_it_asks(void **state)
{
    (void)state;
    assert_string_equal(hft_leave(&s, &a), "close");
    assert_int_equal(s.entry.remote, HFI_NOTHING);
}

static void where_names_do_not_go_together_each_asks_alone(void **state)
{
    (void)state;
    hft_stand_init(&s);
    a = hft_thread("a");
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_look_next(&s), "wait");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(who_waits_goes_with_others_for_as_long_as_nothing_changes, in_front),
        cmocka_unit_test_setup(it_is_due_on_the_grid_and_never_outside_its_period, in_front),
        cmocka_unit_test_setup(names_that_ask_together_part, in_front),
        cmocka_unit_test_setup(far_behind_it_is_due_after_a_second, far_behind),
        cmocka_unit_test_setup(what_is_not_plainly_waiting_asks_alone_at_once_with_the_same_token, with_its_re_check_under_way),
        cmocka_unit_test_setup(a_grant_with_the_echo_of_a_re_check_counts_for_a_claim_from_then, with_its_re_check_under_way),
        cmocka_unit_test_setup(a_claim_is_never_longer_than_the_record_says, in_front_for_a_short_lease),
        cmocka_unit_test_setup(when_the_holders_key_ends_it_asks_alone, with_its_re_check_under_way),
        cmocka_unit_test_setup(what_the_holder_did_not_hear_is_said_again_soon_and_less_and_less, with_its_re_check_under_way),
        cmocka_unit_test_setup(another_wait_for_it_begins_anew_to_say_so, with_its_re_check_under_way),
        cmocka_unit_test(old_records_in_front_are_asked_about_at_once_as_long_as_there_are_fewer),
        cmocka_unit_test(the_first_answer_that_there_are_more_is_asked_about_at_once),
        cmocka_unit_test_setup(another_oldest_waiter_asks_alone_for_its_own_lease, in_front),
        cmocka_unit_test_setup(whose_oldest_waiter_left_while_it_asked_does_so_too, in_front),
        cmocka_unit_test_setup(a_wish_heard_meanwhile_is_asked_about, with_its_re_check_under_way),
        cmocka_unit_test_setup(whatever_became_of_a_re_check_another_will_do, with_its_re_check_under_way),
        cmocka_unit_test_setup(what_may_have_been_missed_is_asked_about_soon_and_together, in_front),
        cmocka_unit_test(who_stands_in_no_queue_so_far_asks_alone_when_a_server_comes_back),
        cmocka_unit_test_setup(whose_last_waiter_leaves_gives_up_its_token_though_it_asks, with_its_re_check_under_way),
        cmocka_unit_test(where_names_do_not_go_together_each_asks_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
