/* SPDX-License-Identifier: MIT */
/* entry_permits_test.c - an entry whose grant has permits: who takes how many, and where those go that nobody has. */
#include "core/policy/fence.h"
#include "tests/support/entry_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct hft_thread wants(const char *name, int32_t permits)
{
    struct hft_thread thread = hft_thread(name);
    thread.waiter.permits = permits;
    thread.waiter.limit = 5;
    return thread;
}

static void count(struct hft_stand *s)
{
    hft_stand_init(s);
    s->rules.native = false;
    s->rules.shares = s->rules.counts = true;
}

static struct hfi_answer granted(int32_t permits)
{
    return (struct hfi_answer){.kind = HFI_GRANTED, .permits = permits};
}

/* Each has arrived, and all have a grant together. */
static void share(struct hft_stand *s, struct hft_thread *threads, int number)
{
    int32_t permits = 0;
    count(s);
    for (int i = 0; i < number; i++) {
        permits += threads[i].waiter.permits;
        (void)hft_arrive(s, &threads[i]);
    }
    (void)hft_answer(s, granted(permits));
}

static const struct hfi_answer queued = {.kind = HFI_IN_QUEUE, .ours = true, .left_ms = 9000, .ticket = 7};

/* The first one's question says how many all of them want, as far as the limit goes. */
static void threads_that_wait_share_a_grant_in_their_order(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 2), b = wants("b", 1), c = wants("c", 3);
    count(&s);
    assert_string_equal(hft_arrive(&s, &a), "wait!");
    assert_int_equal(s.asking.permits, 2);
    assert_int_equal(s.asking.most, 2);
    assert_int_equal(s.asking.limit, 5);
    (void)hft_arrive(&s, &b);
    (void)hft_arrive(&s, &c);
    assert_int_equal(hfi_entry_acquire_params(&s.entry).most, 3); /* with c's they would be six */
    assert_string_equal(hft_answer(&s, granted(3)), "a=lease b=lease");
    assert_true(hfi_entry_is_overrun(&s.entry)); /* c waits beside it */
    assert_true(a.waiter.fence != b.waiter.fence);
}

static void nobody_passes_who_wants_more_than_there_is(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 1), b = wants("b", 3), c = wants("c", 1);
    count(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_arrive(&s, &c);
    assert_string_equal(hft_answer(&s, granted(2)), "shrink:1 a=lease");
    assert_int_equal(s.entry.held.permits, 1);
}

/* The oldest waiter is another one than the one that was asked for: the place stays. */
static void a_grant_that_is_too_small_goes_back_and_the_place_stays(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 1), b = wants("b", 4);
    count(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, queued);
    int64_t echo = s.asked_at;
    (void)hft_arrive(&s, &b);
    s.now += 20 * HFI_MS;
    assert_string_equal(hft_leave(&s, &a), "wait"); /* it wants another number */
    assert_int_equal(s.asking.permits, 4);
    s.now += 20 * HFI_MS;
    assert_string_equal(hft_handed(&s, echo), "give-back wait!");
    assert_int_equal(s.asking.ticket, 7);
    (void)hft_answer(&s, queued);
    assert_string_equal(hft_handed(&s, s.asked_at), "b=lease");
}

static void what_nobody_has_goes_back(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread threads[] = {wants("a", 1), wants("b", 1), wants("c", 1)};
    share(&s, threads, 3);
    assert_string_equal(hft_release(&s, false), "shrink:2");
    assert_string_equal(hft_release(&s, false), "shrink:1");
    assert_int_equal(hfi_entry_renew_params(&s.entry, s.now).permits, 1);
    assert_string_equal(hft_release(&s, false), "give-back");
}

/* The rest of the grant stays, so nobody retires the token: renewals ask until the server answers. */
static void what_could_not_be_given_back_is_given_back_when_the_server_answers(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread threads[] = {wants("a", 1), wants("b", 1), wants("c", 1)};
    share(&s, threads, 3);
    assert_string_equal(hft_release(&s, false), "shrink:2");
    hfi_entry_shrunk(&s.entry, HF_OK, s.now);
    hft_pass_ms(&s, 100);
    assert_string_equal(hft_look(&s), ""); /* no renewal is due */
    assert_string_equal(hft_release(&s, false), "shrink:1");
    hfi_entry_shrunk(&s.entry, HF_UNKNOWN, s.now);
    assert_string_equal(hft_look(&s), "renew");
    for (int64_t ms = 400; ms <= 1600; ms *= 2) { /* perhaps it is refused for ever, or cannot be sent */
        hft_pass_ms(&s, 1);
        assert_string_equal(hft_renewed(&s, s.sent_at), "end shrink:1");
        assert_string_equal(hft_renewed(&s, s.sent_at), "");
        hft_pass_ms(&s, 100);
        hfi_entry_shrunk(&s.entry, HF_UNKNOWN, s.now);
        hft_pass_ms(&s, ms - 1);
        assert_string_equal(hft_look(&s), "");
        hft_pass_ms(&s, 1);
        assert_string_equal(hft_look(&s), "renew");
    }
    hft_pass_ms(&s, 1);
    assert_string_equal(hft_renewed(&s, s.sent_at), "end shrink:1");
}

static void what_was_owed_for_one_grant_is_not_owed_for_the_next(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread threads[] = {wants("a", 1), wants("b", 1)}, c = wants("c", 1);
    share(&s, threads, 2);
    assert_string_equal(hft_release(&s, false), "shrink:1");
    hfi_entry_shrunk(&s.entry, HF_UNKNOWN, s.now);
    assert_string_equal(hft_release(&s, false), "give-back");
    (void)hft_arrive(&s, &c);
    (void)hft_answer(&s, granted(1));
    hft_pass_ms(&s, 1);
    assert_string_equal(hft_renewed(&s, s.now), "end");
}

/* The others' permits may be gone too. */
static void a_permit_that_was_gone_makes_a_renewal_ask_for_the_others(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread threads[] = {wants("a", 1), wants("b", 1)};
    share(&s, threads, 2);
    assert_string_equal(hft_release(&s, false), "shrink:1");
    hft_pass_ms(&s, 100);
    hfi_entry_shrunk(&s.entry, HF_LOST, s.now);
    assert_string_equal(hft_look(&s), "renew");
    assert_string_equal(hft_renewed(&s, s.sent_at), "end");
}

static void a_renewal_of_more_than_are_kept_says_nothing(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread threads[] = {wants("a", 1), wants("b", 1)};
    share(&s, threads, 2);
    assert_false(hfi_entry_has_shrunk(&s.entry, 2));
    (void)hft_release(&s, false);
    assert_true(hfi_entry_has_shrunk(&s.entry, 2));
    assert_false(hfi_entry_has_shrunk(&s.entry, 1));
}

/* The message told of three, and the server has one: a failover, or a break, was between. */
static void an_answer_with_fewer_than_the_message_told_of_is_a_loss(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 3);
    count(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, queued);
    s.now += 20 * HFI_MS;
    assert_string_equal(hft_handed(&s, s.asked_at), "a=lease");
    assert_string_equal(hft_answer(&s, granted(1)), "lost:GONE give-back");
}

static void who_wants_fewer_of_them_out_is_not_asked_for(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 1), b = wants("b", 1), c = wants("c", 1);
    count(&s);
    a.waiter.limit = b.waiter.limit = 10;
    c.waiter.limit = 2;
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_arrive(&s, &c);
    assert_int_equal(hfi_entry_acquire_params(&s.entry).most, 2);
}

/* Who asked with the greater limit has left. */
static void a_grant_by_a_greater_limit_goes_back(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 1), b = wants("b", 1);
    count(&s);
    a.waiter.limit = 10;
    b.waiter.limit = 2;
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, queued);
    int64_t echo = s.asked_at;
    (void)hft_arrive(&s, &b);
    s.now += 20 * HFI_MS;
    (void)hft_leave(&s, &a);
    s.now += 20 * HFI_MS;
    assert_string_equal(hft_handed(&s, echo), "give-back wait!");
}

/* The message of that grant is lost; the answer to the question with the smaller limit brings it. But it may bring one of its own. */
static void a_grant_by_a_greater_limit_that_an_answer_brings_goes_back(void **state)
{
    (void)state;
    static const struct {
        int32_t first; /* the limit of who has left */
        int64_t out;
        int unanswered;
        const char *then;
    } cases[] = {{10, 2, 0, "b=lease"}, {10, 3, 0, "give-back wait!"}, {10, 10, 5, "give-back"},
                 {2, 3, 0, "b=lease"}}; /* others came with a greater one */
    for (int i = 0; i < 4; i++) {
        struct hft_stand s;
        struct hft_thread a = wants("a", 1), b = wants("b", 1);
        struct hfi_answer answer = granted(1);
        count(&s);
        a.waiter.limit = cases[i].first;
        b.waiter.limit = 2;
        answer.out = cases[i].out;
        (void)hft_arrive(&s, &a);
        (void)hft_answer(&s, queued);
        (void)hft_arrive(&s, &b);
        hft_pass_ms(&s, 20);
        assert_string_equal(hft_leave(&s, &a), i < 3 ? "wait" : "");
        if (i == 3) /* it wants the same */
            assert_string_equal(hft_look_next(&s), "wait");
        assert_int_equal(s.asking.limit, 2);
        for (int lost = 0; lost < cases[i].unanswered; lost++) {
            (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_NO_ANSWER});
            (void)hft_look_next(&s);
        }
        assert_string_equal(hft_answer(&s, answer), cases[i].then);
    }
}

/* The place has the numbers of a try that is refused now; who waits behind it wants others. */
static void a_refused_try_does_not_leave_its_numbers_to_the_next_one(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 3), try = hft_try("try"), b = wants("b", 1);
    try.waiter.permits = 3;
    try.waiter.limit = 5;
    count(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &try);
    (void)hft_arrive(&s, &b);
    (void)hft_leave(&s, &a);
    s.now += 20 * HFI_MS;
    assert_string_equal(hft_answer(&s, queued), "wait try=BUSY");
    assert_int_equal(s.asking.permits, 1);
}

static void a_try_does_not_wait_for_a_question_that_nobody_asks(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 1), try = hft_try("try");
    try.waiter.permits = 1;
    try.waiter.limit = 5;
    count(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, (struct hfi_answer){.kind = HFI_CANNOT, .status = HF_UNAVAILABLE});
    assert_string_equal(hft_arrive(&s, &try), "try=UNAVAILABLE");
}

static void what_lingers_is_taken_again_or_goes_back_in_time(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 2), b = wants("b", 1), c = wants("c", 1), d = wants("d", 2);
    count(&s);
    a.waiter.linger_ms = b.waiter.linger_ms = c.waiter.linger_ms = 500;
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_answer(&s, granted(3));
    assert_string_equal(hft_release(&s, false), "");
    assert_true(hfi_entry_has_room(&s.entry, &c.waiter, s.now));
    assert_false(hfi_entry_has_room(&s.entry, &d.waiter, s.now));
    assert_string_equal(hft_arrive(&s, &c), "c=lease");
    assert_string_equal(hft_release(&s, false), "");
    int64_t end = s.now + 500 * HFI_MS;
    assert_int_equal(hfi_entry_next(&s.entry), end);
    s.now = end;
    assert_string_equal(hft_look(&s), "shrink:2");
    assert_string_equal(hft_wanted(&s), "");
    assert_string_equal(hft_release(&s, false), "shrink:1"); /* wanted: nothing lingers any more */
}

static void what_lingers_goes_back_when_another_process_waits(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 1), b = wants("b", 1);
    count(&s);
    a.waiter.linger_ms = b.waiter.linger_ms = 500;
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_answer(&s, granted(2));
    (void)hft_release(&s, false);
    assert_string_equal(hft_wanted(&s), "shrink:1");
    assert_string_equal(hft_release(&s, false), "give-back");
}

/* The message names another grant of this process, and comes before the answer. */
static void what_an_answer_brings_is_wanted_if_another_process_came_meanwhile(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 1), b = wants("b", 1);
    count(&s);
    a.waiter.linger_ms = b.waiter.linger_ms = 500;
    assert_string_equal(hft_wanted_beside(&s), ""); /* nothing is asked for: nobody waits for it */
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    assert_string_equal(hft_wanted_beside(&s), ""); /* nor does it ask again */
    (void)hft_answer(&s, granted(2));
    assert_string_equal(hft_release(&s, false), "shrink:1");
    assert_string_equal(hft_release(&s, false), "give-back");
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, granted(1));
    assert_string_equal(hft_release(&s, false), ""); /* that was the other token's */
    assert_string_equal(hft_wanted_beside(&s), "give-back");
}

/* From another grant of the same process, where threads wait. */
static void the_oldest_waiter_is_served_from_what_comes_free(void **state)
{
    (void)state;
    struct hft_stand s, other;
    struct hft_thread a = wants("a", 2), b = wants("b", 1), c = wants("c", 3);
    struct hfi_step step, of_asking;
    count(&s);
    count(&other);
    (void)hft_arrive(&s, &a);
    (void)hft_answer(&s, granted(2));
    (void)hft_arrive(&other, &b);
    (void)hft_arrive(&other, &c);
    hfi_step_init(&step, s.now, s.rtt);
    hfi_step_init(&of_asking, s.now, s.rtt);
    assert_false(hfi_entry_serve(&s.entry, &other.entry, &step, &of_asking));
    assert_true(hfi_entry_free_permits(&s.entry, 2, &step));
    assert_true(hfi_entry_serve(&s.entry, &other.entry, &step, &of_asking));
    assert_int_equal(b.waiter.verdict, HFI_GOT_LEASE);
    assert_false(hfi_entry_serve(&s.entry, &other.entry, &step, &of_asking)); /* c wants three */
    hfi_entry_settle(&s.entry, true, &step);
    assert_int_equal(s.entry.held.permits, 1);
    assert_int_equal(c.waiter.verdict, HFI_WAITING);
}

/* Its only waiter has been served by another grant, or so. */
static void serve_from_another(struct hft_stand *asking, struct hft_thread *waiting)
{
    struct hft_stand other;
    struct hft_thread holder = wants("holder", 1);
    struct hfi_step step, of_asking;
    count(&other);
    (void)hft_arrive(&other, &holder);
    (void)hft_answer(&other, granted(1));
    hfi_step_init(&step, other.now, other.rtt);
    hfi_step_init(&of_asking, asking->now, asking->rtt);
    assert_true(hfi_entry_free_permits(&other.entry, 1, &step));
    assert_true(hfi_entry_serve(&other.entry, &asking->entry, &step, &of_asking));
    assert_int_equal(waiting->waiter.verdict, HFI_GOT_LEASE);
    assert_int_equal(of_asking.count, 0);
}

static void a_question_is_left_to_the_next_one_that_wants_as_many(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 1), b = wants("b", 1), c = wants("c", 2);
    count(&s);
    assert_string_equal(hft_arrive(&s, &a), "wait!");
    assert_false(hfi_entry_is_unclaimed(&s.entry));
    serve_from_another(&s, &a);
    assert_true(hfi_entry_is_unclaimed(&s.entry));
    assert_true(hfi_entry_has_asked_for(&s.entry, &b.waiter));
    assert_false(hfi_entry_has_asked_for(&s.entry, &c.waiter));
    c.waiter.permits = 1;
    c.waiter.limit = 4;
    assert_false(hfi_entry_has_asked_for(&s.entry, &c.waiter));
    assert_string_equal(hft_arrive(&s, &b), "");
    assert_string_equal(hft_answer(&s, granted(1)), "b=lease");
}

/* What a message told of a question that nobody waited for may be newer than its answer. */
static void who_takes_over_a_question_asks_behind_a_message_for_it(void **state)
{
    (void)state;
    for (int handed = 0; handed < 3; handed++) {
        struct hft_stand s;
        struct hft_thread a = wants("a", 1), b = wants("b", 1);
        struct hfi_answer in_queue = {.kind = HFI_IN_QUEUE, .ticket = 7, .left_ms = 1000, .ours = true};
        count(&s);
        assert_string_equal(hft_arrive(&s, &a), "wait!");
        serve_from_another(&s, &a);
        if (handed == 1)
            assert_string_equal(hft_handed(&s, s.asked_at), "");
        else if (handed == 2)
            assert_string_equal(hft_nudged(&s), "");
        assert_string_equal(hft_arrive(&s, &b), "");
        assert_string_equal(hft_answer(&s, in_queue), handed != 0 ? "wait" : "");
    }
}

static void what_is_granted_to_nobody_goes_back(void **state)
{
    (void)state;
    static const struct {
        enum hfi_answer_kind kind;
        const char *then;
    } answers[] = {{HFI_GRANTED, "give-back"}, {HFI_IN_QUEUE, "close"}, {HFI_LATE, "close"}, {HFI_NO_ANSWER, "close"},
                   {HFI_FOREIGN_TYPE, "close"}, {HFI_CANNOT, "close"}};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct hft_stand s;
        struct hft_thread a = wants("a", 1);
        count(&s);
        (void)hft_arrive(&s, &a);
        serve_from_another(&s, &a);
        struct hfi_answer answer = {.kind = answers[i].kind, .permits = 1, .status = HF_UNAVAILABLE, .ours = true, .ticket = 7};
        assert_string_equal(hft_answer(&s, answer), answers[i].then);
        assert_true(hfi_entry_is_idle(&s.entry));
    }
}

static void who_waits_beside_a_full_grant_asks_at_another(void **state)
{
    (void)state;
    struct hft_stand s, other;
    struct hft_thread a = wants("a", 1), b = wants("b", 1);
    struct hfi_step step;
    count(&s);
    count(&other);
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_answer(&s, granted(1));
    hfi_step_init(&step, s.now, s.rtt);
    hfi_entry_move_waiters(&s.entry, &other.entry, &step);
    assert_int_equal(step.at[0].kind, HFI_SEND_WAIT);
    assert_true(step.at[0].fresh);
    assert_false(hfi_entry_is_overrun(&s.entry));
    assert_string_equal(hft_release(&s, false), "give-back");
    hfi_entry_leave(&other.entry, &b.waiter, &step);
}

static void a_used_up_block_of_fences_serves_nobody(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 1), b = wants("b", 1), c = wants("c", 1);
    count(&s);
    a.waiter.linger_ms = b.waiter.linger_ms = 60000;
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_answer(&s, granted(2));
    (void)hft_release(&s, false);
    s.entry.fence = s.entry.held.fence_end;
    assert_false(hfi_entry_has_room(&s.entry, &c.waiter, s.now));
}

static void a_loss_is_everybodys(void **state)
{
    (void)state;
    struct hft_stand s;
    struct hft_thread a = wants("a", 2), b = wants("b", 1);
    count(&s);
    (void)hft_arrive(&s, &a);
    (void)hft_arrive(&s, &b);
    (void)hft_answer(&s, granted(3));
    assert_string_equal(hft_lost(&s, HF_REASON_GONE), "lost:GONE give-back");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_wait_share_a_grant_in_their_order),
        cmocka_unit_test(nobody_passes_who_wants_more_than_there_is),
        cmocka_unit_test(a_grant_that_is_too_small_goes_back_and_the_place_stays),
        cmocka_unit_test(what_nobody_has_goes_back),
        cmocka_unit_test(what_could_not_be_given_back_is_given_back_when_the_server_answers),
        cmocka_unit_test(what_was_owed_for_one_grant_is_not_owed_for_the_next),
        cmocka_unit_test(a_permit_that_was_gone_makes_a_renewal_ask_for_the_others),
        cmocka_unit_test(a_renewal_of_more_than_are_kept_says_nothing),
        cmocka_unit_test(an_answer_with_fewer_than_the_message_told_of_is_a_loss),
        cmocka_unit_test(who_wants_fewer_of_them_out_is_not_asked_for),
        cmocka_unit_test(a_grant_by_a_greater_limit_goes_back),
        cmocka_unit_test(a_grant_by_a_greater_limit_that_an_answer_brings_goes_back),
        cmocka_unit_test(a_refused_try_does_not_leave_its_numbers_to_the_next_one),
        cmocka_unit_test(a_try_does_not_wait_for_a_question_that_nobody_asks),
        cmocka_unit_test(what_lingers_is_taken_again_or_goes_back_in_time),
        cmocka_unit_test(what_lingers_goes_back_when_another_process_waits),
        cmocka_unit_test(what_an_answer_brings_is_wanted_if_another_process_came_meanwhile),
        cmocka_unit_test(the_oldest_waiter_is_served_from_what_comes_free),
        cmocka_unit_test(a_question_is_left_to_the_next_one_that_wants_as_many),
        cmocka_unit_test(who_takes_over_a_question_asks_behind_a_message_for_it),
        cmocka_unit_test(what_is_granted_to_nobody_goes_back),
        cmocka_unit_test(who_waits_beside_a_full_grant_asks_at_another),
        cmocka_unit_test(a_used_up_block_of_fences_serves_nobody),
        cmocka_unit_test(a_loss_is_everybodys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
