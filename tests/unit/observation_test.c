/* SPDX-License-Identifier: MIT */
/* observation_test.c - when an observer looks, asks and tells. */
#include "core/policy/observation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NOW INT64_C(5000000000000)
#define MS  HFI_MS

enum { LOOK = HFI_OBSERVE_LOOK, ASK = HFI_OBSERVE_ASK, TELL = HFI_OBSERVE_TELL };

static struct hfi_observation begun(void)
{
    struct hfi_observation o;
    hfi_observation_begin(&o, 7, NOW);
    return o;
}

/* A look at NOW that was answered `rtt_ms` later. */
static struct hfi_observation answered(enum hfi_sight sight, int64_t left_ms, int64_t rtt_ms)
{
    struct hfi_observation o = begun();
    assert_int_equal(hfi_observation_due(&o, NOW), LOOK);
    hfi_observation_looked(&o, sight, left_ms, NOW + rtt_ms * MS);
    return o;
}

static void it_looks_at_once_and_once_at_a_time(void **state)
{
    (void)state;
    struct hfi_observation o = begun();
    assert_int_equal(hfi_observation_next(&o), NOW);
    assert_int_equal(hfi_observation_due(&o, NOW), LOOK);
    assert_true(hfi_observation_next(&o) == HFI_NEVER);
    assert_int_equal(hfi_observation_due(&o, NOW + 60000 * MS), 0);
}

static void it_looks_every_second_by_itself(void **state)
{
    (void)state;
    int64_t least = HFI_NEVER, most = 0;
    struct hfi_observation o = begun();
    for (int64_t now = NOW, i = 0; i < 1000; i++, now = o.look_at) {
        assert_int_equal(hfi_observation_due(&o, now), LOOK);
        hfi_observation_looked(&o, i % 2 == 0 ? HFI_SAW_SAME : HFI_SAW_NOTHING, -1, now + MS);
        int64_t period = hfi_observation_next(&o) - now;
        least = period < least ? period : least;
        most = period > most ? period : most;
    }
    assert_in_range((uintmax_t)least, 900 * MS, 910 * MS);
    assert_in_range((uintmax_t)most, 1090 * MS, 1100 * MS);
}

static void it_looks_behind_the_end_of_the_key(void **state)
{
    (void)state;
    struct hfi_observation o = answered(HFI_SAW_SAME, 300, 4);
    assert_int_equal(hfi_observation_next(&o), NOW + (4 + 300 + 2) * MS);
    o = answered(HFI_SAW_SAME, 5000, 4);
    assert_true(hfi_observation_next(&o) <= NOW + 1100 * MS);
    o = answered(HFI_SAW_SAME, 0, 4); /* paced */
    assert_int_equal(hfi_observation_next(&o), NOW + 10 * MS);
    o = answered(HFI_SAW_NOTHING, 0, 4); /* what was not answered has no end */
    assert_true(hfi_observation_next(&o) >= NOW + 900 * MS);
}

static void a_notice_makes_it_look_at_once_but_not_more_often_than_the_pace(void **state)
{
    (void)state;
    struct hfi_observation o = answered(HFI_SAW_SAME, -1, 1);
    hfi_observation_notice(&o, NOW + 3 * MS);
    assert_int_equal(hfi_observation_next(&o), NOW + 10 * MS);
    o = answered(HFI_SAW_SAME, -1, 1);
    hfi_observation_notice(&o, NOW + 50 * MS);
    hfi_observation_notice(&o, NOW + 51 * MS); /* does not put it off */
    assert_int_equal(hfi_observation_due(&o, NOW + 50 * MS), LOOK);
}

static void a_notice_during_a_look_is_newer_than_its_answer(void **state)
{
    (void)state;
    struct hfi_observation o = begun();
    assert_int_equal(hfi_observation_due(&o, NOW), LOOK);
    hfi_observation_notice(&o, NOW + MS);
    assert_true(hfi_observation_next(&o) == HFI_NEVER);
    hfi_observation_looked(&o, HFI_SAW_SAME, -1, NOW + 20 * MS);
    assert_int_equal(hfi_observation_due(&o, NOW + 20 * MS), LOOK);
    hfi_observation_looked(&o, HFI_SAW_SAME, -1, NOW + 21 * MS); /* and counts once */
    assert_true(hfi_observation_next(&o) >= NOW + 900 * MS);
}

static void nobody_is_told_at_once(void **state)
{
    (void)state;
    struct hfi_observation o = answered(HFI_SAW_NOBODY, -1, 1);
    assert_int_equal(hfi_observation_due(&o, NOW + MS), TELL);
    assert_int_equal(hfi_observation_due(&o, NOW + 2 * MS), 0);
}

static void a_holder_is_asked_and_told_when_it_answers(void **state)
{
    (void)state;
    struct hfi_observation o = answered(HFI_SAW_HOLDER, -1, 1);
    assert_int_equal(hfi_observation_due(&o, NOW + MS), ASK);
    assert_true(hfi_observation_answered(&o, NOW + 2 * MS));
    assert_int_equal(hfi_observation_due(&o, NOW + 2 * MS), TELL);
    assert_false(hfi_observation_answered(&o, NOW + 3 * MS)); /* somebody made up a second answer */
    assert_int_equal(hfi_observation_due(&o, NOW + 800 * MS), 0);
}

/* It may be dead, or may have begun to listen a moment after the question. */
static void a_holder_that_does_not_answer_is_told_and_asked_again(void **state)
{
    (void)state;
    struct hfi_observation o = answered(HFI_SAW_HOLDER, -1, 5);
    int asked = 0, told = 0;
    int64_t now = NOW + 5 * MS, last = now;
    for (; now <= NOW + 20000 * MS; now += MS) {
        unsigned due = hfi_observation_due(&o, now);
        if ((due & LOOK) != 0)
            hfi_observation_looked(&o, HFI_SAW_SAME, -1, now);
        if ((due & ASK) != 0) {
            assert_true(now - last <= 1000 * MS);
            last = now;
            asked++;
        }
        if ((due & TELL) != 0) {
            assert_int_equal(now, NOW + (5 + 200 + 2 * 5) * MS);
            told++;
        }
    }
    assert_int_equal(told, 1);
    assert_in_range(asked, 20, 30);
    assert_true(hfi_observation_answered(&o, now));
    assert_int_equal(hfi_observation_due(&o, now) & TELL, TELL);
}

static void a_holder_that_has_gone_is_asked_no_more(void **state)
{
    (void)state;
    struct hfi_observation o = answered(HFI_SAW_HOLDER, -1, 1);
    assert_int_equal(hfi_observation_due(&o, NOW + MS), ASK);
    hfi_observation_notice(&o, NOW + 10 * MS);
    assert_int_equal(hfi_observation_due(&o, NOW + 10 * MS), LOOK);
    hfi_observation_looked(&o, HFI_SAW_NOBODY, -1, NOW + 11 * MS);
    assert_false(hfi_observation_answered(&o, NOW + 12 * MS));
    assert_int_equal(hfi_observation_due(&o, NOW + 850 * MS), TELL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_looks_at_once_and_once_at_a_time),
        cmocka_unit_test(it_looks_every_second_by_itself),
        cmocka_unit_test(it_looks_behind_the_end_of_the_key),
        cmocka_unit_test(a_notice_makes_it_look_at_once_but_not_more_often_than_the_pace),
        cmocka_unit_test(a_notice_during_a_look_is_newer_than_its_answer),
        cmocka_unit_test(nobody_is_told_at_once),
        cmocka_unit_test(a_holder_is_asked_and_told_when_it_answers),
        cmocka_unit_test(a_holder_that_does_not_answer_is_told_and_asked_again),
        cmocka_unit_test(a_holder_that_has_gone_is_asked_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
