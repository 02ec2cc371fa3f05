/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "pool/pace.h"
#include "pool/times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define US        (HFI_MS / 1000)
#define FOLLOWERS 60

struct world { /* in which each way has its speed */
    struct hfi_pace pace;
    int64_t now_ns;
    int followers;
    int64_t slept_us, looked_us; /* between two waits of the crowd */
    int64_t late_us;             /* so long ago some looked at the clock */
    int turns, looked;           /* how many, and in how many of them they looked */
};

/* Till the turn has ended. */
static void have_turn(struct world *world)
{
    bool looks = hfi_pace_looks(&world->pace);
    int64_t began_ns = world->pace.began_ns;
    while (world->pace.began_ns == began_ns) {
        world->now_ns += (looks ? world->looked_us : world->slept_us) * US;
        hfi_pace_count(&world->pace);
        hfi_pace_note(&world->pace, world->now_ns, world->followers);
        if (world->late_us > 0 && world->pace.began_ns == began_ns)
            hfi_pace_note(&world->pace, world->now_ns - world->late_us * US, world->followers);
    }
    world->turns++;
    world->looked += looks;
}

static void have_turns(struct world *world, int turns)
{
    world->turns = world->looked = 0;
    while (world->turns < turns)
        have_turn(world);
}

static struct world begun(int64_t slept_us, int64_t looked_us)
{
    struct world world = {.now_ns = HFI_SECOND, .followers = FOLLOWERS, .slept_us = slept_us, .looked_us = looked_us};
    have_turn(&world);
    return world;
}

static void they_sleep_till_to_look_was_faster_three_times(void **state)
{
    struct world world = begun(10, 8);
    (void)state;
    assert_false(hfi_pace_looks(&world.pace));
    for (int i = 0; i < 3; i++) {
        assert_false(world.pace.usual);
        have_turns(&world, 2); /* one asleep, one of looks */
        assert_int_equal(world.looked, 1);
    }
    assert_true(hfi_pace_looks(&world.pace));
    have_turns(&world, 1000);
    assert_true(world.looked > 970);
}

static void they_sleep_where_that_is_as_fast(void **state)
{
    struct world world = begun(100, 94); /* less than a sixteenth: looks use more of the CPU */
    (void)state;
    have_turns(&world, 1000);
    assert_in_range(world.looked, 1000 / 62, 1000 / 62 + 7); /* and to look is tried ever more rarely, but not never */
    assert_false(hfi_pace_looks(&world.pace));
}

/* It is settled that they look, and to sleep has just been tried. */
static struct world looking(void)
{
    struct world world = begun(10, 8);
    have_turns(&world, 500);
    assert_true(world.looked > 470);
    while (hfi_pace_looks(&world.pace))
        have_turn(&world);
    have_turn(&world);
    return world;
}

static void they_sleep_again_where_to_look_has_grown_slow(void **state)
{
    const struct {
        int64_t looked_us;
        int turns; /* till that is settled */
    } cases[] = {{12, 64 + 9}, {1000, 6}, {HFI_TURN_NS / US, 6}}; /* slower, much, and so that nothing goes on */
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct world world = looking();
        world.looked_us = cases[i].looked_us;
        have_turns(&world, cases[i].turns);
        have_turns(&world, 1000);
        assert_true(world.looked < 30);
    }
}

static void a_turn_of_looks_that_have_grown_slow_ends(void **state)
{
    struct world world = looking();
    (void)state;
    int64_t began_ns = world.now_ns;
    world.looked_us = 1000;
    have_turns(&world, 2 * 3);
    assert_true(world.now_ns - began_ns < 200 * HFI_MS);
}

static void looks_that_grow_slow_bit_by_bit_end_too(void **state)
{
    struct world world = looking();
    (void)state;
    int64_t began_ns = world.now_ns;
    for (int i = 0; i < 15; i++) {
        world.looked_us = world.looked_us < 1000 ? world.looked_us * 3 / 2 : 1000;
        have_turn(&world);
    }
    assert_false(world.pace.usual);
    assert_true(world.now_ns - began_ns < 500 * HFI_MS);
}

static void what_has_grown_slow_in_both_ways_is_measured_anew(void **state)
{
    struct world world = looking();
    (void)state;
    world.slept_us = 100;
    world.looked_us = 80;
    have_turns(&world, 1000);
    assert_true(world.looked > 970);
    world = begun(10, 12);
    have_turns(&world, 500);
    world.slept_us = 40;
    world.looked_us = 25; /* more than twice what to sleep took */
    have_turns(&world, 1000);
    assert_true(world.looked > 850);
}

static void a_slow_turn_asleep_is_no_reason_to_look(void **state)
{
    struct world world = begun(10, 40);
    int looked = 0;
    (void)state;
    have_turns(&world, 500);
    for (int i = 0; i < 1000; i++) {
        world.slept_us = i % 5 == 0 ? 30 : 10;
        have_turns(&world, 1);
        looked += world.looked;
    }
    assert_in_range(looked, 1000 / 62, 1000 / 62 + 7);
}

/* Its turns are over before their time is. */
static void a_small_crowd_looks_where_that_is_faster_too(void **state)
{
    struct world world = {.now_ns = HFI_SECOND, .followers = 12, .slept_us = 10, .looked_us = 8};
    (void)state;
    have_turns(&world, 500);
    assert_true(world.looked > 470);
}

static void one_pause_does_not_end_looks(void **state)
{
    struct world world = looking();
    (void)state;
    world.now_ns += HFI_TURN_NS;
    have_turns(&world, 100);
    assert_true(world.looked > 93);
}

static void they_sleep_again_where_a_crowd_only_comes_and_goes(void **state)
{
    struct world world = looking();
    (void)state;
    for (int i = 0; i < 100; i++) {
        world.now_ns += HFI_TURN_NS;
        have_turn(&world);
        assert_true(i < 2 * 3 || !hfi_pace_looks(&world.pace));
    }
    have_turns(&world, 500); /* it has come to stay */
    assert_true(world.looked > 470);
}

/* Bursts of a turn and a half: it is always the same turns that are void. */
static void they_sleep_again_where_every_other_turn_is_void(void **state)
{
    (void)state;
    for (int settled = 7; settled < 30; settled++) {
        struct world world = begun(10, 8);
        have_turns(&world, settled);
        world.looked_us = 14;
        for (int i = 0; i < 200; i++) {
            world.now_ns += i % 2 * HFI_TURN_NS * 6 / 10;
            have_turn(&world);
            assert_true(i < 50 || !world.pace.usual);
        }
    }
}

static void a_pause_in_a_trial_bounds_no_turn(void **state)
{
    struct world world = looking();
    (void)state;
    while (hfi_pace_looks(&world.pace))
        have_turn(&world);
    world.now_ns += 10 * HFI_SECOND;
    have_turn(&world);
    assert_true(hfi_pace_looks(&world.pace));
    int64_t began_ns = world.now_ns;
    world.looked_us = 4000;
    have_turn(&world);
    assert_true(world.now_ns - began_ns < 50 * HFI_MS);
}

/* How many of a hundred waits are looked for. */
static int64_t have_bursts(struct world *world, int64_t burst_ns, int64_t lasting_ns)
{
    int64_t waits = 0, looked = 0;
    for (int64_t until_ns = world->now_ns + lasting_ns; world->now_ns < until_ns; world->now_ns += HFI_TURN_NS * 6 / 10)
        for (int64_t over_ns = world->now_ns + burst_ns; world->now_ns < over_ns;) {
            bool looks = hfi_pace_looks(&world->pace);
            world->now_ns += (looks ? world->looked_us : world->slept_us) * US;
            hfi_pace_count(&world->pace);
            hfi_pace_note(&world->pace, world->now_ns, world->followers);
            waits++;
            looked += looks;
        }
    return 100 * looked / waits;
}

/* Each pause ends a turn, so trials may come at the same turn of each burst: at the one with the pause. */
static void they_look_where_that_is_faster_in_bursts(void **state)
{
    (void)state;
    for (int64_t burst = 63; burst <= 330; burst += 3) {
        struct world world = {.now_ns = HFI_SECOND, .followers = 12, .slept_us = 40, .looked_us = 48};
        assert_true(have_bursts(&world, burst * HFI_MS, 10 * HFI_SECOND) < 10);
        world.looked_us = 32;
        (void)have_bursts(&world, burst * HFI_MS, 30 * HFI_SECOND);
        assert_true(have_bursts(&world, burst * HFI_MS, 30 * HFI_SECOND) > 80);
    }
}

/* Of the trials of looks some have a pause in them, others are won. */
static void short_bursts_with_a_pause_in_some_trials_look_too(void **state)
{
    (void)state;
    for (int64_t burst = 32; burst <= 40; burst++) {
        struct world world = {.now_ns = HFI_SECOND, .followers = 12, .slept_us = 40, .looked_us = 32};
        (void)have_bursts(&world, burst * HFI_MS, 60 * HFI_SECOND);
        assert_true(world.pace.usual);
    }
}

static void have_turns_till_they_look(struct world *world)
{
    for (int i = 0; i < 65 && !hfi_pace_looks(&world->pace); i++)
        have_turn(world);
    assert_true(hfi_pace_looks(&world->pace));
}

/* By chance, or by other programs. */
static void a_turn_or_two_decide_nothing(void **state)
{
    struct world world = begun(10, 12);
    (void)state;
    have_turns(&world, 200);
    world.looked_us = 5;
    for (int i = 0; i < 2; i++) {
        have_turns_till_they_look(&world);
        have_turn(&world);
    }
    world.looked_us = 12;
    have_turns(&world, 200);
    assert_true(world.looked < 20);
}

static void a_lost_trial_takes_one_won_off(void **state)
{
    struct world world = begun(10, 8);
    (void)state;
    have_turns(&world, 2 * 2);
    world.looked_us = 20;
    have_turns(&world, 2);
    world.looked_us = 8;
    have_turns(&world, 2);
    assert_false(world.pace.usual);
    have_turns(&world, 2);
    assert_true(world.pace.usual);
}

static void pauses_after_two_trials_won_do_not_make_more_trials(void **state)
{
    struct world world = {.now_ns = HFI_SECOND, .followers = 12, .slept_us = 40, .looked_us = 32};
    (void)state;
    have_turns(&world, 1 + 2 * 2);
    assert_int_equal(world.pace.wins, 2);
    assert_true(have_bursts(&world, 15 * HFI_MS, 30 * HFI_SECOND) < 10);
}

static void a_turn_lasts_till_each_has_waited_often(void **state)
{
    struct world world = begun(1000, 1000);
    int64_t began_ns = world.now_ns;
    (void)state;
    have_turn(&world);
    assert_true(world.now_ns - began_ns >= 16 * FOLLOWERS * HFI_MS);
    world.slept_us = world.looked_us = 1;
    began_ns = world.now_ns;
    have_turn(&world);
    assert_true(world.now_ns - began_ns == HFI_TURN_NS);
}

/* Its waits took long for another reason than the way that they had. */
static void a_turn_without_a_crowd_for_a_while_says_nothing(void **state)
{
    struct world world = begun(10, 8);
    (void)state;
    have_turn(&world);
    assert_true(hfi_pace_looks(&world.pace)); /* a trial, */
    for (int i = 0; i < 100; i++) {
        world.now_ns += (i % 2 == 0 ? 1 : 2) * HFI_TURN_NS / 2; /* within which it happens, or as it ends */
        have_turn(&world);
        assert_false(hfi_pace_looks(&world.pace)); /* which is over with its turn */
    }
    have_turns(&world, 100);
    assert_true(world.looked > 80);
}

static void a_trial_of_looks_without_a_crowd_is_lost(void **state)
{
    struct world world = begun(10, 8);
    (void)state;
    for (int i = 0; i < 5; i++) {
        have_turns_till_they_look(&world);
        world.now_ns += HFI_TURN_NS;
        have_turn(&world);
        assert_false(world.pace.usual);
    }
}

static void a_crowd_that_seldom_waits_is_one(void **state)
{
    struct world world = begun(4000, 3000);
    (void)state;
    have_turns(&world, 100);
    assert_true(world.looked > 80);
}

/* They lost the CPU since. */
static void who_looked_at_the_clock_long_ago_makes_no_turn_void(void **state)
{
    struct world world = {.now_ns = HFI_SECOND, .followers = FOLLOWERS, .slept_us = 10, .looked_us = 8, .late_us = 8000};
    (void)state;
    have_turns(&world, 100);
    assert_true(world.looked > 80);
}

/* The count of followers misses one whose clock was older. */
static void a_turn_of_nobody_takes_some_waits_too(void **state)
{
    struct world world = begun(4000, 4000);
    (void)state;
    world.followers = 0;
    int64_t began_ns = world.now_ns;
    have_turn(&world);
    assert_true(world.now_ns - began_ns >= 16 * 4 * HFI_MS);
}

static void a_way_that_is_much_slower_has_no_long_turn(void **state)
{
    struct world world = begun(20, 200);
    (void)state;
    have_turns(&world, 2);
    assert_int_equal(world.looked, 1);
    int64_t began_ns = world.now_ns;
    have_turns(&world, 2);
    assert_true(world.now_ns - began_ns < (1 + 2) * 16 * FOLLOWERS * 20 * US + 2 * HFI_TURN_NS);
    world = looking();
    world.slept_us = 200;
    began_ns = world.now_ns;
    have_turns(&world, 62);
    assert_true(world.looked < 62 && world.now_ns - began_ns < (62 + 2 * 2) * HFI_TURN_NS);
}

/* It takes the server's CPU: hardly any reply comes, and to wait is not begun again. */
static void a_way_in_which_nothing_goes_on_is_tried_as_rarely_as_a_slow_one(void **state)
{
    struct world world = begun(20, HFI_TURN_NS / US);
    (void)state;
    have_turns(&world, 1000);
    assert_in_range(world.looked, 1000 / 62, 1000 / 62 + 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_sleep_till_to_look_was_faster_three_times),
        cmocka_unit_test(they_sleep_where_that_is_as_fast),
        cmocka_unit_test(they_sleep_again_where_to_look_has_grown_slow),
        cmocka_unit_test(a_turn_of_looks_that_have_grown_slow_ends),
        cmocka_unit_test(looks_that_grow_slow_bit_by_bit_end_too),
        cmocka_unit_test(what_has_grown_slow_in_both_ways_is_measured_anew),
        cmocka_unit_test(a_slow_turn_asleep_is_no_reason_to_look),
        cmocka_unit_test(a_small_crowd_looks_where_that_is_faster_too),
        cmocka_unit_test(one_pause_does_not_end_looks),
        cmocka_unit_test(they_sleep_again_where_a_crowd_only_comes_and_goes),
        cmocka_unit_test(they_sleep_again_where_every_other_turn_is_void),
        cmocka_unit_test(a_pause_in_a_trial_bounds_no_turn),
        cmocka_unit_test(they_look_where_that_is_faster_in_bursts),
        cmocka_unit_test(short_bursts_with_a_pause_in_some_trials_look_too),
        cmocka_unit_test(a_turn_or_two_decide_nothing),
        cmocka_unit_test(a_lost_trial_takes_one_won_off),
        cmocka_unit_test(pauses_after_two_trials_won_do_not_make_more_trials),
        cmocka_unit_test(a_turn_lasts_till_each_has_waited_often),
        cmocka_unit_test(a_turn_without_a_crowd_for_a_while_says_nothing),
        cmocka_unit_test(a_trial_of_looks_without_a_crowd_is_lost),
        cmocka_unit_test(a_crowd_that_seldom_waits_is_one),
        cmocka_unit_test(who_looked_at_the_clock_long_ago_makes_no_turn_void),
        cmocka_unit_test(a_turn_of_nobody_takes_some_waits_too),
        cmocka_unit_test(a_way_that_is_much_slower_has_no_long_turn),
        cmocka_unit_test(a_way_in_which_nothing_goes_on_is_tried_as_rarely_as_a_slow_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
