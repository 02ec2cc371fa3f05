/* SPDX-License-Identifier: MIT */
/* entry_held_test.c - an entry that holds: passes, batches, lingering, fences, renewals, loss, release. */
#include "core/policy/fence.h"
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct hfi_answer granted = {.kind = HFI_GRANTED};
static const struct hfi_answer bad = {.kind = HFI_GRANTED, .fence = 5};

/* `to` waits, the holder releases: the lease passes, with the next fence and the same end. */
static void pass(struct hft_stand *s, struct hft_thread *from, struct hft_thread *to)
{
    int64_t end = s->entry.held.times.end;
    assert_string_equal(hft_arrive(s, to), "");
    const char *did = hft_release(s, false);
    assert_int_equal(strncmp(did + strlen(did) - 6, "=lease", 6), 0);
    assert_int_equal(to->waiter.end, end);
    assert_true(to->waiter.fence > from->waiter.fence);
}

static void passes_cost_no_command_while_no_other_process_waits(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread t[2] = {hft_thread("a"), hft_thread("b")};
    hft_stand_init(&s);
    hft_hold(&s, &t[0]);
    for (int i = 0; i < 250; i++) {
        assert_string_equal(hft_arrive(&s, &t[(i + 1) % 2]), "");
        assert_string_equal(hft_release(&s, false), i % 2 == 0 ? "b=lease" : "a=lease");
        assert_int_equal(t[(i + 1) % 2].waiter.fence, t[i % 2].waiter.fence + 1);
        hft_pass_ms(&s, 1);
    }
}

static void the_64th_pass_is_the_last_once_another_process_waits(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread t[2] = {hft_thread("a"), hft_thread("b")};
    hft_stand_init(&s);
    hft_hold(&s, &t[0]);
    assert_string_equal(hft_wanted(&s), "");
    for (int i = 0; i < 64; i++)
        pass(&s, &t[i % 2], &t[(i + 1) % 2]);
    (void)hft_arrive(&s, &t[1]);
    assert_string_equal(hft_release(&s, false), "give-back wait!"); /* in the queue, like anybody */
}

static void twenty_ms_end_a_batch_once_another_process_waits(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    hft_hold(&s, &a);
    s.now += 20 * HFI_MS - 1;
    pass(&s, &a, &b);
    (void)hft_wanted(&s);
    pass(&s, &b, &a);
    s.now += 1;
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_release(&s, false), "give-back wait!");
}

static void a_free_lease_that_is_wanted_goes_back_whatever_the_batch(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    a.waiter.linger_ms = 5000;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    (void)hft_wanted(&s);
    assert_string_equal(hft_release(&s, false), "give-back");
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void a_lingering_lease_is_had_again_from_memory(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_try("b");
    a.waiter.linger_ms = 500;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    assert_string_equal(hft_release(&s, false), "");
    hft_pass_ms(&s, 499);
    assert_string_equal(hft_arrive(&s, &b), "b=lease");
    assert_int_equal(b.waiter.fence, a.waiter.fence + 1);
    assert_int_equal(b.waiter.end, a.waiter.end);
    hft_pass_ms(&s, 10000 / 10);
    assert_string_equal(hft_look(&s), "");
    assert_string_equal(hft_release(&s, false), "give-back"); /* b did not want to linger */
}

static void a_lingering_lease_goes_back_when_its_time_is_over(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    a.waiter.linger_ms = 500;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    (void)hft_release(&s, false);
    int64_t released = s.now;
    assert_string_equal(hft_look_next(&s), "give-back");
    assert_int_equal(s.now, released + 500 * HFI_MS);
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void a_lingering_lease_goes_back_at_once_when_it_is_wanted(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    a.waiter.linger_ms = 500;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    (void)hft_release(&s, false);
    assert_string_equal(hft_wanted(&s), "give-back");
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void a_lingering_lease_is_renewed_also_after_a_max_hold(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    a.waiter.linger_ms = 60000;
    a.waiter.max_hold_ms = 100;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    assert_string_equal(hft_look_next(&s), "at-risk:MAX_HOLD");
    assert_string_equal(hft_release(&s, false), "");
    assert_string_equal(hft_look_next(&s), "renew");
    assert_true(s.now < s.asked_at + 3400 * HFI_MS);
    assert_string_equal(hft_renewed(&s, s.now), ""); /* nobody to be told */
    assert_int_equal(s.entry.held.times.end, s.now + 10000 * HFI_MS);
}

static void a_lingering_lease_in_its_last_second_is_not_given_to_anybody(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    a.waiter.linger_ms = 60000;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    (void)hft_release(&s, false);
    hft_pass_ms(&s, 9000);
    assert_string_equal(hft_arrive(&s, &b), "give-back native!");
}

static void another_block_is_asked_for_early_and_used_when_the_first_ends(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread t[2] = {hft_thread("a"), hft_thread("b")};
    hft_stand_init(&s);
    hft_hold(&s, &t[0]);
    int64_t first = t[0].waiter.fence;
    for (int i = 0; i < 255; i++)
        pass(&s, &t[i % 2], &t[(i + 1) % 2]);
    (void)hft_arrive(&s, &t[0]);
    assert_string_equal(hft_release(&s, false), "more a=lease");
    assert_int_equal(t[0].waiter.fence, first + 256);
    int64_t spare = first + 40 * HFI_FENCE_BLOCK;
    assert_string_equal(hft_fences(&s, spare, HFI_FENCE_BLOCK, true), "");
    for (int i = 0; i < 1791; i++)
        pass(&s, &t[i % 2], &t[(i + 1) % 2]);
    assert_int_equal(t[1].waiter.fence, first + 2047);
    (void)hft_arrive(&s, &t[0]);
    assert_string_equal(hft_release(&s, false), "more a=lease"); /* and the next one, a block ahead */
    assert_int_equal(t[0].waiter.fence, spare);
}

static void without_fences_nothing_passes(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread t[2] = {hft_thread("a"), hft_thread("b")};
    hft_stand_init(&s);
    hft_hold(&s, &t[0]);
    for (int i = 0; i < 2047; i++) {
        pass(&s, &t[i % 2], &t[(i + 1) % 2]);
        (void)hft_fences(&s, i % 2 == 0 ? 0 : s.entry.held.fence_end, HFI_FENCE_BLOCK,
                         i % 2 != 0); /* none; none ahead */
    }
    (void)hft_arrive(&s, &t[0]);
    assert_string_equal(hft_release(&s, false), "give-back native!");
}

/* The first block is used up, the next one is asked for and not here: the lease has no holder, t[0] waits. */
static void use_all_fences(struct hft_stand *s, struct hft_thread t[2])
{
    t[0] = hft_thread("a");
    t[1] = hft_thread("b");
    hft_stand_init(s);
    hft_hold(s, &t[0]);
    for (int i = 0; i < 2047; i++)
        pass(s, &t[i % 2], &t[(i + 1) % 2]);
    assert_string_equal(hft_arrive(s, &t[0]), "");
    assert_string_equal(hft_release(s, false), "");
}

static void an_arrival_without_fences_waits_for_those_under_way(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread t[2], c = hft_thread("c"), d = hft_thread("d");
    use_all_fences(&s, t);
    int64_t last = t[1].waiter.fence, end = s.entry.held.times.end;
    assert_string_equal(hft_arrive(&s, &c), "");
    d.waiter.once = true;
    assert_string_equal(hft_arrive(&s, &d), "d=BUSY");
    assert_string_equal(hft_fences(&s, last + 1, 16 * HFI_FENCE_BLOCK, true), "a=lease");
    assert_int_equal(t[0].waiter.fence, last + 1);
    assert_int_equal(t[0].waiter.end, end);
    assert_string_equal(hft_release(&s, false), "c=lease");
    assert_int_equal(c.waiter.fence, last + 2);
    use_all_fences(&s, t);
    assert_string_equal(hft_fences(&s, 0, 0, false), "give-back native!"); /* none: asked for anew, with the lease */
}

static void a_lingering_lease_without_fences_waits_for_them_too(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread t[2];
    use_all_fences(&s, t);
    (void)hft_fences(&s, t[1].waiter.fence + 1, 1, true);
    t[1].waiter.linger_ms = s.entry.held.linger_ms = 5000;
    (void)hft_release(&s, false);
    assert_string_equal(hft_arrive(&s, &t[1]), "");
    assert_string_equal(hft_fences(&s, t[0].waiter.fence + 1, HFI_FENCE_BLOCK, true), "b=lease");
    assert_int_equal(t[1].waiter.fence, t[0].waiter.fence + 1);
}

static void fences_that_come_too_late_or_without_a_waiter_grant_nothing(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread t[2];
    use_all_fences(&s, t);
    assert_string_equal(hft_leave(&s, &t[0]), "give-back");
    use_all_fences(&s, t);
    hft_pass_ms(&s, 9000);
    assert_string_equal(hft_fences(&s, t[1].waiter.fence + 1, HFI_FENCE_BLOCK, true), "give-back native!");
}

static void a_bad_fence_is_not_used_before_the_floor_brought_a_good_one(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_answer(&s, bad), "floor");
    assert_string_equal(hft_fences(&s, 0, 0, false), "floor");
    assert_string_equal(hft_fences(&s, HFT_FENCE, 16 * HFI_FENCE_BLOCK, true), "a=lease");
    assert_int_equal(a.waiter.fence, HFT_FENCE);
    assert_int_equal(a.waiter.end, s.asked_at + 10000 * HFI_MS);
    assert_string_equal(hft_release(&s, false), "give-back");
}

static void without_an_answer_the_lease_goes_back_and_is_asked_for_again(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_answer(&s, bad), "floor");
    assert_string_equal(hft_fences(&s, -1, 0, false), "give-back native!");
}

static void a_counter_of_another_program_is_reported_to_the_thread_that_needs_a_fence(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_GRANTED, .fence = 7, .native = true}), "floor");
    assert_string_equal(hft_no_counter(&s), "give-back a=FOREIGN b=FOREIGN");
    assert_true(hfi_entry_is_idle(&s.entry));
    assert_string_equal(hft_no_counter(&s), ""); /* too late, and about nothing that is held */
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_no_counter(&s), ""); /* there are fences left */
    assert_string_equal(hft_release(&s, false), "b=lease");
}

static void three_bad_fences_are_a_server_that_cannot_be_used(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_answer(&s, bad), "floor");
    assert_string_equal(hft_fences(&s, 7, 9, false), "floor");
    assert_string_equal(hft_fences(&s, 7, 9, false), "floor");
    assert_string_equal(hft_fences(&s, 7, 9, false), "give-back a=UNAVAILABLE b=UNAVAILABLE");
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void a_fence_not_above_the_last_of_the_name_is_bad_though_marked_good(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    hft_hold(&s, &a);
    pass(&s, &a, &b);
    assert_string_equal(hft_release(&s, false), "give-back");
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_handed_fence(&s, s.asked_at, b.waiter.fence, true), "floor");
    assert_string_equal(hft_fences(&s, b.waiter.fence, 2048, true), "floor");
    assert_string_equal(hft_fences(&s, b.waiter.fence + 1, 2048, true), "a=lease");
    assert_int_equal(a.waiter.fence, b.waiter.fence + 1);
}

static void a_lease_without_waiters_is_released_during_a_fence_repair(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_answer(&s, bad), "floor");
    assert_string_equal(hft_arrive(&s, &b), "");
    assert_string_equal(hft_leave(&s, &a), "");
    assert_string_equal(hft_leave(&s, &b), "give-back");
    assert_string_equal(hft_fences(&s, HFT_FENCE, 2048, true), "");
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void a_fence_that_comes_when_the_lease_is_nearly_over_grants_nothing(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, bad);
    hft_pass_ms(&s, 9000);
    assert_string_equal(hft_fences(&s, HFT_FENCE, 2048, true), "give-back native!");
}

static void a_holder_is_told_of_risk_safety_and_loss_in_turn(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    hft_hold(&s, &a);
    int64_t stamp = s.asked_at;
    assert_string_equal(hft_look_next(&s), "renew");
    assert_in_range((uint64_t)(s.now - stamp) / HFI_MS, 3313, 3334);
    s.now = stamp + 5000 * HFI_MS;
    assert_string_equal(hft_look(&s), "renew at-risk:UNCONFIRMED");
    assert_string_equal(hft_renewed(&s, s.now), "end safe-again");
    stamp = s.now;
    assert_string_equal(hft_renewed(&s, s.now - 1), ""); /* an older one, late */
    s.now = stamp + 9000 * HFI_MS;
    assert_string_equal(hft_look(&s), "renew at-risk:ENDING");
    s.now = stamp + 10000 * HFI_MS;
    assert_string_equal(hft_look(&s), "lost:EXPIRED give-back");
    assert_string_equal(hft_look(&s), "");
    assert_string_equal(hft_renewed(&s, s.now), "");
    assert_true(hfi_entry_is_idle(&s.entry));
}

static void a_loss_the_server_reports_notifies_the_holder_and_makes_waiters_acquire(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    assert_string_equal(hft_lost(&s, HF_REASON_GONE), "");
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_lost(&s, HF_REASON_TAKEN), "lost:TAKEN give-back native!");
    assert_string_equal(hft_answer(&s, granted), "b=lease");
}

static void a_token_revoked_before_its_answer_is_given_up_and_acquired_anew(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    hft_stand_init(&s);
    (void)hft_arrive(&s, &a);
    assert_string_equal(hft_doubted(&s), "close native!");
    assert_string_equal(hft_answer(&s, (struct hfi_answer){.kind = HFI_BUSY, .native = true}), "wait");
    hft_pass_ms(&s, 10);
    assert_string_equal(hft_doubted(&s), "close native!");
    assert_string_equal(hft_lost(&s, HF_REASON_CLOSED), "");
    assert_string_equal(hft_answer(&s, granted), "a=lease");
}

static void a_doubt_goes_with_the_lease_to_the_next_thread(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    b.waiter.lease_ms = 5000;
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_doubted(&s), "held");
    assert_string_equal(hft_release(&s, false), "b=lease");
    assert_string_equal(hft_look(&s), "renew");
}

/* The answer counts for the length that the renewal asked for, not for more: not even for the next thread, which has
 * no max_hold (P1). */
static void a_question_before_max_hold_lengthens_no_ones_lease(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    a.waiter.max_hold_ms = 6000;
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    hft_pass_ms(&s, 5000);
    assert_string_equal(hft_look(&s), "at-risk:MAX_HOLD");
    assert_string_equal(hft_doubted(&s), "held");
    assert_string_equal(hft_look(&s), "renew");
    int64_t sent = s.now, end = s.entry.held.times.end;
    assert_int_equal(hfi_entry_renew_params(&s.entry, s.now).ttl_ms, 1000 + hfi_guard_ms(1000, s.rules.guard_ms));
    hft_pass_ms(&s, 1);
    assert_string_equal(hft_renewed(&s, sent), "");
    assert_string_equal(hft_release(&s, false), "b=lease");
    assert_string_equal(hft_renewed(&s, sent), "");
    assert_int_equal(s.entry.held.times.end, end);
    assert_int_equal(hfi_entry_renew_params(&s.entry, s.now).ttl_ms, 10000 + hfi_guard_ms(10000, s.rules.guard_ms));
    assert_string_equal(hft_renewed(&s, s.now), "end");
}

static void a_revoke_before_the_grant_is_remembered(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    a.waiter.linger_ms = 5000;
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    assert_string_equal(hft_wanted(&s), "wait");
    assert_string_equal(hft_answer(&s, granted), "a=lease");
    assert_string_equal(hft_release(&s, false), "give-back");
    assert_string_equal(hft_arrive(&s, &a), "wait!");
    assert_string_equal(hft_answer(&s, granted), "a=lease"); /* but not in its next tenure */
    assert_string_equal(hft_release(&s, false), "");
}

static void a_loss_without_a_holder_notifies_no_thread(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a");
    a.waiter.linger_ms = 500;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    (void)hft_release(&s, false);
    assert_string_equal(hft_lost(&s, HF_REASON_GONE), "give-back");
}

static void a_renewal_asked_for_by_a_shorter_lease_extends_a_longer_one_by_no_more(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    a.waiter.lease_ms = 1000;
    a.waiter.stop_ms = 100;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    assert_string_equal(hft_look_next(&s), "renew"); /* for 1 s: the shell takes the length now */
    int64_t sent = s.now;
    hft_pass_ms(&s, 1);
    pass(&s, &a, &b);
    assert_string_equal(hft_renewed(&s, sent), "end");
    assert_int_equal(s.entry.held.times.end, sent + 1000 * HFI_MS);
    assert_string_equal(hft_look_next(&s), "renew"); /* soon, and for b's 10 s */
    assert_true(s.now <= sent + 500 * HFI_MS);
    assert_string_equal(hft_renewed(&s, s.now), "end");
    assert_int_equal(s.entry.held.times.end, s.now + 10000 * HFI_MS);
}

static void whatever_leases_took_turns_no_renewal_counts_for_more_than_it_asked(void **state)
{
    (void)state;
    static const int64_t leases[] = {1000, 10000, 5000, 20000};
    struct hft_stand s;
    struct hft_thread t[4] = {hft_thread("a"), hft_thread("b"), hft_thread("c"), hft_thread("d")};
    hft_stand_init(&s);
    for (int i = 0; i < 4; i++) {
        t[i].waiter.lease_ms = leases[i];
        t[i].waiter.stop_ms = 50;
    }
    hft_hold(&s, &t[0]);
    assert_string_equal(hft_look_next(&s), "renew");
    int64_t sent = s.now;
    for (int i = 0; i < 3; i++) {
        hft_pass_ms(&s, 1);
        pass(&s, &t[i], &t[i + 1]);
    }
    assert_string_equal(hft_renewed(&s, sent), "end");
    assert_int_equal(s.entry.held.times.end, sent + 1000 * HFI_MS);
}

static void a_claim_passes_on_with_its_own_pace(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    hft_queue(&s, &a, 0);
    int64_t echo = s.asked_at;
    assert_string_equal(hft_handed(&s, echo), "a=lease");
    pass(&s, &a, &b);
    assert_int_equal(b.waiter.end, echo + 1000 * HFI_MS);
    assert_int_equal(hfi_entry_next(&s.entry), echo + 500 * HFI_MS);
    assert_string_equal(hft_look_next(&s), "renew");
    pass(&s, &b, &a); /* the renewal under way is not asked for again */
    assert_string_equal(hft_look(&s), "");
    assert_string_equal(hft_renewed(&s, echo + 500 * HFI_MS), "end");
    assert_int_equal(s.entry.held.times.end, echo + 10500 * HFI_MS);
}

static void the_end_of_a_lease_refuses_its_release(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    s.now = s.asked_at + 10000 * HFI_MS;
    assert_string_equal(hft_release(&s, false), "refused: "); /* the shell makes a loss of it */
    assert_string_equal(hft_lost(&s, HF_REASON_EXPIRED), "lost:EXPIRED give-back native!");
}

static void no_thread_is_granted_during_the_stop_margin(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    hft_stand_init(&s);
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    s.now = s.asked_at + 9000 * HFI_MS;
    assert_string_equal(hft_release(&s, false), "give-back native!");
}

static void a_quiet_release_keeps_nothing_and_passes_to_no_thread(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b");
    a.waiter.linger_ms = 500;
    hft_stand_init(&s);
    hft_hold(&s, &a);
    assert_string_equal(hft_release(&s, true), "give-back");
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_release(&s, true), "give-back native!");
    assert_int_equal(b.waiter.verdict, HFI_WAITING);
}

static void a_fill_answers_all_waiters_and_ends_the_lease(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = hft_thread("a"), b = hft_thread("b"), c = hft_thread("c");
    hft_stand_init(&s);
    assert_string_equal(hft_filled(&s, false), "");
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_arrive(&s, &c);
    assert_string_equal(hft_filled(&s, false), "b=value c=value");
    assert_true(hfi_entry_is_idle(&s.entry));
    hft_hold(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_filled(&s, true),
                        "give-back b=value"); /* nobody knows whether it freed the lock */
    assert_true(hfi_entry_is_idle(&s.entry));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_cost_no_command_while_no_other_process_waits),
        cmocka_unit_test(the_64th_pass_is_the_last_once_another_process_waits),
        cmocka_unit_test(twenty_ms_end_a_batch_once_another_process_waits),
        cmocka_unit_test(a_free_lease_that_is_wanted_goes_back_whatever_the_batch),
        cmocka_unit_test(a_lingering_lease_is_had_again_from_memory),
        cmocka_unit_test(a_lingering_lease_goes_back_when_its_time_is_over),
        cmocka_unit_test(a_lingering_lease_goes_back_at_once_when_it_is_wanted),
        cmocka_unit_test(a_lingering_lease_is_renewed_also_after_a_max_hold),
        cmocka_unit_test(a_lingering_lease_in_its_last_second_is_not_given_to_anybody),
        cmocka_unit_test(another_block_is_asked_for_early_and_used_when_the_first_ends),
        cmocka_unit_test(without_fences_nothing_passes),
        cmocka_unit_test(an_arrival_without_fences_waits_for_those_under_way),
        cmocka_unit_test(a_lingering_lease_without_fences_waits_for_them_too),
        cmocka_unit_test(fences_that_come_too_late_or_without_a_waiter_grant_nothing),
        cmocka_unit_test(a_bad_fence_is_not_used_before_the_floor_brought_a_good_one),
        cmocka_unit_test(without_an_answer_the_lease_goes_back_and_is_asked_for_again),
        cmocka_unit_test(a_counter_of_another_program_is_reported_to_the_thread_that_needs_a_fence),
        cmocka_unit_test(three_bad_fences_are_a_server_that_cannot_be_used),
        cmocka_unit_test(a_fence_not_above_the_last_of_the_name_is_bad_though_marked_good),
        cmocka_unit_test(a_lease_without_waiters_is_released_during_a_fence_repair),
        cmocka_unit_test(a_fence_that_comes_when_the_lease_is_nearly_over_grants_nothing),
        cmocka_unit_test(a_holder_is_told_of_risk_safety_and_loss_in_turn),
        cmocka_unit_test(a_loss_the_server_reports_notifies_the_holder_and_makes_waiters_acquire),
        cmocka_unit_test(a_token_revoked_before_its_answer_is_given_up_and_acquired_anew),
        cmocka_unit_test(a_doubt_goes_with_the_lease_to_the_next_thread),
        cmocka_unit_test(a_question_before_max_hold_lengthens_no_ones_lease),
        cmocka_unit_test(a_revoke_before_the_grant_is_remembered),
        cmocka_unit_test(a_loss_without_a_holder_notifies_no_thread),
        cmocka_unit_test(a_renewal_asked_for_by_a_shorter_lease_extends_a_longer_one_by_no_more),
        cmocka_unit_test(whatever_leases_took_turns_no_renewal_counts_for_more_than_it_asked),
        cmocka_unit_test(a_claim_passes_on_with_its_own_pace),
        cmocka_unit_test(the_end_of_a_lease_refuses_its_release),
        cmocka_unit_test(no_thread_is_granted_during_the_stop_margin),
        cmocka_unit_test(a_quiet_release_keeps_nothing_and_passes_to_no_thread),
        cmocka_unit_test(a_fill_answers_all_waiters_and_ends_the_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
