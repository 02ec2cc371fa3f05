/* SPDX-License-Identifier: MIT */
/* near_proof_test.c - the rules of what is given out from memory, one function after the other, by numbers. */
#include "base/clock.h"
#include "core/policy/near_proof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TRACKER 7
#define RUN     40
#define LINE    3 /* the connection that is armed */

static struct hfi_near_lane lanes[2];
static struct hfi_near_proof proof;

static int begin(void **state)
{
    (void)state;
    lanes[0] = lanes[1] = (struct hfi_near_lane){0, 0, 0};
    proof = (struct hfi_near_proof){.count = 2, .lanes = lanes};
    return 0;
}

/* Good, of that lane's epoch, on the armed connection. */
static struct hfi_near_answer answer_at(int lane, int64_t stamp_ns)
{
    return (struct hfi_near_answer){lanes[lane].epoch, TRACKER, stamp_ns, LINE, RUN, true};
}

static void answered(int lane, struct hfi_near_answer answer)
{
    hfi_near_answered(&proof, lane, &answer);
}

static int begin_armed(void **state)
{
    (void)begin(state);
    (void)hfi_near_hears(&proof, TRACKER, RUN, 100);
    answered(0, answer_at(0, 110));
    answered(1, answer_at(1, 120));
    return 0;
}

/* ---- whom to ask for what ---- */

static void without_a_tracker_there_is_nothing_to_ask(void **state)
{
    (void)state;
    assert_int_equal(hfi_near_next(&proof, 0), HFI_NEAR_ASK_NOTHING);
    assert_int_equal(hfi_near_proved_ns(&proof, 0), 0);
}

static void a_tracker_is_armed_for_and_then_asked_about(void **state)
{
    (void)state;
    assert_true(hfi_near_hears(&proof, TRACKER, RUN, 100));
    assert_false(hfi_near_hears(&proof, TRACKER, RUN, 101));
    assert_int_equal(hfi_near_next(&proof, 0), HFI_NEAR_ARM);
    answered(0, answer_at(0, 110));
    assert_int_equal(hfi_near_next(&proof, 0), HFI_NEAR_BEAT);
    assert_int_equal(hfi_near_next(&proof, 1), HFI_NEAR_ARM);
}

/* ---- N3: epochs ---- */

static void an_arming_counts_only_where_all_of_it_fits(void **state)
{
    (void)state;
    (void)hfi_near_hears(&proof, TRACKER, RUN, 100);
    struct hfi_near_answer wrong[] = {answer_at(0, 110), answer_at(0, 110), answer_at(0, 110), answer_at(0, 110), answer_at(0, 110)};
    wrong[0].is_good = false;
    wrong[1].connection = 0;
    wrong[2].tracker = TRACKER + 1;
    wrong[3].run = RUN + 1;
    wrong[4].epoch = 1; /* it was no arming */
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        answered(0, wrong[i]);
        assert_int_equal(lanes[0].epoch, 0);
    }
    answered(0, answer_at(0, 110));
    assert_int_equal(lanes[0].epoch, 1);
    assert_int_equal(lanes[0].connection, LINE);
}

static void a_server_that_tells_no_run_arms_nothing(void **state)
{
    (void)state;
    (void)hfi_near_hears(&proof, TRACKER, 0, 100);
    struct hfi_near_answer nameless = answer_at(0, 110);
    nameless.run = 0;
    answered(0, nameless);
    assert_int_equal(lanes[0].epoch, 0);
}

static void no_two_lanes_and_no_two_armings_have_the_same_epoch(void **state)
{
    (void)state;
    assert_int_equal(lanes[0].epoch, 1);
    assert_int_equal(lanes[1].epoch, 2);
    hfi_near_met(&proof, 0, LINE + 1);
    answered(0, answer_at(0, 200));
    assert_int_equal(lanes[0].epoch, 3);
}

static void another_tracker_ends_all_epochs(void **state)
{
    (void)state;
    assert_true(hfi_near_hears(&proof, TRACKER + 1, RUN, 200));
    assert_int_equal(lanes[0].epoch, 0);
    assert_int_equal(lanes[1].epoch, 0);
    answered(0, answer_at(0, 210)); /* to an arming for the one before */
    assert_int_equal(lanes[0].epoch, 0);
}

static void the_same_tracker_at_another_run_is_another_one(void **state)
{
    (void)state;
    assert_true(hfi_near_hears(&proof, TRACKER, RUN + 1, 200));
    assert_int_equal(lanes[0].epoch, 0);
    answered(0, answer_at(0, 210));
    assert_int_equal(lanes[0].epoch, 0);
}

static void a_lane_that_connects_anew_ends_its_epoch_alone(void **state)
{
    (void)state;
    hfi_near_met(&proof, 0, LINE);
    assert_int_equal(lanes[0].epoch, 1);
    hfi_near_met(&proof, 0, LINE + 1);
    assert_int_equal(lanes[0].epoch, 0);
    assert_int_equal(lanes[1].epoch, 2);
    struct hfi_near_answer beat = answer_at(1, 200);
    beat.connection = LINE + 1;
    answered(1, beat);
    assert_int_equal(lanes[1].epoch, 0);
}

static void an_answer_that_does_not_fit_ends_the_epoch(void **state)
{
    for (int i = 0; i < 3; i++) {
        (void)begin_armed(state);
        struct hfi_near_answer beat = answer_at(0, 200);
        beat.is_good = i != 0;
        beat.tracker += i == 1;
        beat.run += i == 2;
        answered(0, beat);
        assert_int_equal(lanes[0].epoch, 0);
        assert_int_equal(lanes[1].epoch, 2);
    }
}

static void no_answer_ends_nothing_and_proves_nothing(void **state)
{
    (void)state;
    struct hfi_near_answer silence = answer_at(0, 200);
    silence.connection = 0;
    silence.is_good = false;
    (void)hfi_near_hears(&proof, TRACKER, RUN, 200);
    answered(0, silence);
    assert_int_equal(lanes[0].epoch, 1);
    assert_int_equal(hfi_near_proved_ns(&proof, 0), 110);
}

static void an_answer_to_an_earlier_epochs_question_says_nothing(void **state)
{
    (void)state;
    struct hfi_near_answer good = answer_at(0, 300), bad = answer_at(0, 310), arming = answer_at(0, 320);
    arming.epoch = 0;
    bad.is_good = false;
    hfi_near_all_changed(&proof);
    uint64_t epoch = lanes[0].epoch;
    (void)hfi_near_hears(&proof, TRACKER, RUN, 400);
    answered(0, good);
    answered(0, bad);
    answered(0, arming);
    assert_int_equal(lanes[0].epoch, epoch);
    assert_int_equal(hfi_near_proved_ns(&proof, 0), 110);
}

static void when_all_may_have_changed_armed_lanes_begin_an_epoch(void **state)
{
    (void)state;
    hfi_near_met(&proof, 1, LINE + 1);
    hfi_near_all_changed(&proof);
    assert_int_equal(lanes[0].epoch, 3);
    assert_int_equal(lanes[1].epoch, 0);
    assert_int_equal(hfi_near_proved_ns(&proof, 0), 100);
}

/* ---- N4: what is proved ---- */

static void what_is_proved_is_the_older_of_both(void **state)
{
    (void)state;
    assert_int_equal(hfi_near_proved_ns(&proof, 0), 100);
    (void)hfi_near_hears(&proof, TRACKER, RUN, 200);
    assert_int_equal(hfi_near_proved_ns(&proof, 0), 110);
    assert_int_equal(hfi_near_proved_ns(&proof, 1), 120);
    answered(0, answer_at(0, 150));
    assert_int_equal(hfi_near_proved_ns(&proof, 0), 150);
    answered(0, answer_at(0, 300));
    assert_int_equal(hfi_near_proved_ns(&proof, 0), 200);
    assert_int_equal(hfi_near_proved_ns(&proof, 1), 120);
}

static void answers_out_of_order_prove_no_less(void **state)
{
    (void)state;
    (void)hfi_near_hears(&proof, TRACKER, RUN, 300);
    (void)hfi_near_hears(&proof, TRACKER, RUN, 200);
    answered(0, answer_at(0, 290));
    answered(0, answer_at(0, 280));
    assert_int_equal(hfi_near_proved_ns(&proof, 0), 290);
}

static void another_trackers_word_does_not_count_from_the_first_ones_time(void **state)
{
    (void)state;
    (void)hfi_near_hears(&proof, TRACKER, RUN, 900);
    (void)hfi_near_hears(&proof, TRACKER + 1, RUN, 500); /* its PING was listed earlier than that PONG came */
    struct hfi_near_answer arming = answer_at(0, 910);
    arming.tracker = TRACKER + 1;
    answered(0, arming);
    assert_int_equal(hfi_near_proved_ns(&proof, 0), 500);
}

static void without_an_epoch_nothing_is_proved(void **state)
{
    (void)state;
    hfi_near_met(&proof, 0, LINE + 1);
    assert_int_equal(hfi_near_proved_ns(&proof, 0), 0);
}

/* ---- N5: given out or not ---- */

#define AT(ms) ((ms) * HFI_MS)

static enum hfi_near_verdict judged(uint64_t marked, uint64_t epoch, int64_t now_ns, int64_t end_ns, int64_t near_ms, int64_t lag_ms)
{
    const struct hfi_near_mark mark = {marked, AT(1000), end_ns}; /* read at 1000, proved at 1500 */
    return hfi_near_judge(&mark, epoch, AT(1500), near_ms, lag_ms, now_ns);
}

static void it_is_good_while_all_four_hold(void **state)
{
    (void)state;
    assert_int_equal(judged(1, 1, AT(1600), HFI_NEVER, 5000, 300), HFI_NEAR_GOOD);
}

static void a_value_of_another_epoch_is_over(void **state)
{
    (void)state;
    assert_int_equal(judged(1, 2, AT(1600), HFI_NEVER, 5000, 300), HFI_NEAR_OVER);
    assert_int_equal(judged(1, 0, AT(1600), HFI_NEVER, 5000, 300), HFI_NEAR_OVER);
}

static void what_never_was_near_is_over_though_no_lane_is_armed(void **state)
{
    (void)state;
    assert_int_equal(judged(0, 0, AT(1600), HFI_NEVER, 5000, 300), HFI_NEAR_OVER);
}

static void it_is_over_at_the_end_of_its_key_not_after(void **state)
{
    (void)state;
    assert_int_equal(judged(1, 1, AT(1600) - 1, AT(1600), 5000, 300), HFI_NEAR_GOOD);
    assert_int_equal(judged(1, 1, AT(1600), AT(1600), 5000, 300), HFI_NEAR_OVER);
}

static void it_is_over_near_ms_after_it_was_read(void **state)
{
    (void)state;
    assert_int_equal(judged(1, 1, AT(1700) - 1, HFI_NEVER, 700, 300), HFI_NEAR_GOOD);
    assert_int_equal(judged(1, 1, AT(1700), HFI_NEVER, 700, 300), HFI_NEAR_OVER);
}

static void it_waits_for_a_proof_when_the_last_one_is_old(void **state)
{
    (void)state;
    assert_int_equal(judged(1, 1, AT(1800) - 1, HFI_NEVER, 5000, 300), HFI_NEAR_GOOD);
    assert_int_equal(judged(1, 1, AT(1800), HFI_NEVER, 5000, 300), HFI_NEAR_UNPROVED);
    assert_int_equal(judged(1, 1, AT(6000), HFI_NEVER, 5000, 300), HFI_NEAR_OVER); /* a proof would not help */
}

static void ends_beyond_all_numbers_are_no_ends(void **state)
{
    (void)state;
    assert_int_equal(judged(1, 1, AT(1600), HFI_NEVER, INT64_MAX, INT64_MAX), HFI_NEAR_GOOD);
}

int main(void)
{
#define ARMED(test) cmocka_unit_test_setup(test, begin_armed)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_a_tracker_there_is_nothing_to_ask, begin),
        cmocka_unit_test_setup(a_tracker_is_armed_for_and_then_asked_about, begin),
        cmocka_unit_test_setup(an_arming_counts_only_where_all_of_it_fits, begin),
        cmocka_unit_test_setup(a_server_that_tells_no_run_arms_nothing, begin),
        ARMED(no_two_lanes_and_no_two_armings_have_the_same_epoch),
        ARMED(another_tracker_ends_all_epochs),
        ARMED(the_same_tracker_at_another_run_is_another_one),
        ARMED(a_lane_that_connects_anew_ends_its_epoch_alone),
        ARMED(an_answer_that_does_not_fit_ends_the_epoch),
        ARMED(no_answer_ends_nothing_and_proves_nothing),
        ARMED(an_answer_to_an_earlier_epochs_question_says_nothing),
        ARMED(when_all_may_have_changed_armed_lanes_begin_an_epoch),
        ARMED(what_is_proved_is_the_older_of_both),
        ARMED(answers_out_of_order_prove_no_less),
        ARMED(another_trackers_word_does_not_count_from_the_first_ones_time),
        ARMED(without_an_epoch_nothing_is_proved),
        cmocka_unit_test(it_is_good_while_all_four_hold),
        cmocka_unit_test(a_value_of_another_epoch_is_over),
        cmocka_unit_test(what_never_was_near_is_over_though_no_lane_is_armed),
        cmocka_unit_test(it_is_over_at_the_end_of_its_key_not_after),
        cmocka_unit_test(it_is_over_near_ms_after_it_was_read),
        cmocka_unit_test(it_waits_for_a_proof_when_the_last_one_is_old),
        cmocka_unit_test(ends_beyond_all_numbers_are_no_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
