/* SPDX-License-Identifier: MIT */
/* costs_test.c - what a thread does while it waits for a reply, by what sends and wake-ups cost on machines of several kinds. */
#include "pool/costs.h"
#include "base/clock.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct hfi_trip none;

#define US      (HFI_MS / 1000)
#define SAMPLES 200 /* enough to be believed, wherever it was before */

static void measure(struct hfi_costs *costs, int64_t send_ns, int64_t wake_up_ns)
{
    for (int i = 0; i < SAMPLES; i++) {
        hfi_costs_note_send(costs, send_ns);
        hfi_costs_note_wake_up(costs, wake_up_ns);
    }
}

static bool looks(const struct hfi_costs *costs, int64_t trip_ns)
{
    struct hfi_trip trip = {.nearest_ns = trip_ns, .rtt_ns = trip_ns};
    return hfi_costs_looks(costs, &trip);
}

static bool is_over(int64_t rtt_ns, int64_t took_ns, int yields)
{
    struct hfi_trip trip = {.nearest_ns = rtt_ns, .rtt_ns = rtt_ns};
    return hfi_costs_look_is_over(&trip, took_ns, yields);
}

static void nothing_is_done_by_costs_that_are_not_known(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    assert_false(hfi_costs_is_near(&costs, 1));
    assert_false(hfi_costs_gathers(&costs, 1, 1000, 0));
    assert_false(looks(&costs, 1));
    assert_false(hfi_costs_is_long(&costs, HFI_MS, &none));
    assert_true(hfi_costs_is_long(&costs, HFI_MS + 1, &none)); /* whatever a wake-up costs */
    assert_int_equal(hfi_costs_grace_ns(&costs), 0);
    assert_true(hfi_costs_own_ns(&costs, 8) == 0);
    assert_true(hfi_costs_own_ns(&costs, 9) == 100 * HFI_MS); /* many have begun to sleep, and none of them is awake yet */
    assert_true(hfi_costs_follower_looks(&costs, 8));
    assert_false(hfi_costs_follower_looks(&costs, 9));
    hfi_costs_note_send(&costs, 8 * US);
    hfi_costs_note_wake_up(&costs, 10 * US);
    assert_false(hfi_costs_is_near(&costs, 0)); /* nor by trips that are not */
    assert_false(hfi_costs_gathers(&costs, 0, 1000, 0));
    assert_false(looks(&costs, 0));
}

static void a_send_costs_what_half_of_them_do(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    hfi_costs_note_send(&costs, 32 * US);
    assert_true(atomic_load(&costs.send_ns) == 32 * US);
    hfi_costs_note_send(&costs, 900 * US); /* one that is wrong moves it by an eighth */
    assert_true(atomic_load(&costs.send_ns) == 36 * US);
    hfi_costs_note_send(&costs, 0);
    assert_in_range(atomic_load(&costs.send_ns), 31 * US, 32 * US);
    for (int i = 0; i < SAMPLES; i++) {
        hfi_costs_note_send(&costs, 10 * US);
        hfi_costs_note_send(&costs, 10 * US);
        hfi_costs_note_send(&costs, HFI_MS); /* a third of them did: nothing but the median counts */
    }
    assert_in_range(atomic_load(&costs.send_ns), 8 * US, 14 * US);
}

/* Most are cheap, for a thread that looks keeps the CPU awake. */
static void a_wake_up_costs_what_it_does_where_the_cpu_idles(void **state)
{
    struct hfi_costs costs = {0}, cheap = {0};
    (void)state;
    for (int i = 0; i < 5 * SAMPLES; i++) {
        hfi_costs_note_wake_up(&costs, i % 4 == 0 ? 35 * US : 6 * US);
        hfi_costs_note_wake_up(&cheap, i % 40 == 0 ? 35 * US : 6 * US);
    }
    assert_in_range(atomic_load(&costs.wake_up_ns), 30 * US, 41 * US);
    assert_in_range(atomic_load(&cheap.wake_up_ns), 5 * US, 8 * US);
}

/* The first wake-up of a program may wait for a CPU for long, and so may the first send. */
static void a_first_wake_up_that_had_to_wait_is_soon_forgotten(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    hfi_costs_note_wake_up(&costs, 900 * US);
    for (int i = 0; i < 20; i++)
        hfi_costs_note_wake_up(&costs, 10 * US);
    assert_in_range(atomic_load(&costs.wake_up_ns), 100 * US, 160 * US);
}

static void what_lost_its_cpu_says_nothing(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    hfi_costs_note_send(&costs, HFI_MS + 1);
    assert_true(atomic_load(&costs.send_ns) == 0);
    hfi_costs_note_wake_up(&costs, 30 * HFI_SECOND);
    hfi_costs_note_wake_up(&costs, HFI_MS + 1);
    assert_true(atomic_load(&costs.wake_up_ns) == 0);
    hfi_costs_note_wake_up(&costs, 30 * US);
    hfi_costs_note_wake_up(&costs, 3 * HFI_MS);
    assert_true(atomic_load(&costs.wake_up_ns) == 30 * US);
}

static void a_wrong_cost_does_no_harm(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    hfi_costs_note_wake_up(&costs, HFI_MS);
    hfi_costs_note_send(&costs, HFI_MS);
    assert_int_equal(hfi_costs_grace_ns(&costs), HFI_MS);
    assert_false(is_over(HFI_SECOND, HFI_MS - 1, 16));
    assert_true(is_over(HFI_SECOND, HFI_MS, 16));
    hfi_costs_note_yield(&costs, HFI_MS);
    assert_true(hfi_costs_is_long(&costs, HFI_MS + 1, &none));
    assert_false(looks(&costs, HFI_MS)); /* a look ends before such a trip does */
    assert_int_equal(hfi_costs_left_ns(HFI_SECOND), HFI_MS);
    assert_int_equal(hfi_costs_left_again_ns(HFI_MS), HFI_MS);
    assert_true(hfi_costs_is_near(&costs, HFI_MS - 1));
    assert_false(hfi_costs_is_near(&costs, HFI_MS));
    hfi_costs_note_sleep(&costs, 1000 * HFI_MS); /* CPU time: no other program's, but it may be an emulator's */
    assert_true(hfi_costs_own_ns(&costs, 10) == 20 * HFI_MS);
    assert_true(hfi_costs_own_ns(&costs, INT_MAX) == 100 * HFI_MS);
}

static void a_cost_never_becomes_unknown_again(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    for (int i = 0; i < 10 * SAMPLES; i++) {
        hfi_costs_note_send(&costs, 0);
        assert_true(atomic_load(&costs.send_ns) > 0);
    }
    measure(&costs, 8 * US, 10 * US);
    assert_in_range(atomic_load(&costs.send_ns), 7 * US, 9 * US);
}

static void a_server_is_near_by_what_a_send_costs(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    hfi_costs_note_send(&costs, 5 * US);
    assert_true(hfi_costs_is_near(&costs, 320 * US - 1));
    assert_false(hfi_costs_is_near(&costs, 320 * US));
}

static void commands_gather_where_so_many_are_under_way_that_a_reply_is_soon_there(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    hfi_costs_note_send(&costs, 5 * US);
    assert_false(hfi_costs_gathers(&costs, 20 * US, 4, 0));
    assert_true(hfi_costs_gathers(&costs, 20 * US, 5, 0));
    assert_false(hfi_costs_gathers(&costs, 320 * US, 1000, 0)); /* not near: each would wait for a trip more */
}

static int after_looks(int server_cpu, int count, int later_every)
{
    for (int i = 1; i <= count; i++)
        server_cpu = hfi_costs_note_found(server_cpu, i % later_every != 0 ? HFI_FOUND_AT_FIRST : HFI_FOUND_LATER);
    return server_cpu;
}

static void commands_gather_behind_one_where_a_reply_is_there_after_one_yield(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    hfi_costs_note_send(&costs, 5 * US);
    int sure = after_looks(0, 33, 1000);
    assert_false(hfi_costs_gathers(&costs, 20 * US, 1, after_looks(0, 32, 1000)));
    assert_true(hfi_costs_gathers(&costs, 20 * US, 1, sure));
    assert_false(hfi_costs_gathers(&costs, 20 * US, 0, sure)); /* no reply is to come: nobody would send it */
    assert_false(hfi_costs_gathers(&costs, 320 * US, 4, sure));
    int surer = after_looks(sure, 1000, 1000 + 1);
    assert_true(hfi_costs_gathers(&costs, 20 * US, 1, hfi_costs_note_found(surer, HFI_FOUND_LATER)));
    assert_false(hfi_costs_gathers(&costs, 20 * US, 1, after_looks(surer, 4, 1)));
    assert_true(hfi_costs_gathers(&costs, 20 * US, 1, after_looks(0, 1000, 20)));    /* a server on our CPU */
    for (int i = 0; i < 8; i++) /* one beside it, when there are so many threads that most looks are first ones */
        assert_false(hfi_costs_gathers(&costs, 20 * US, 1, after_looks(surer, 1000 + i, 5)));
    assert_true(after_looks(0, 1000, 1) == 0);
}

static void commands_gather_behind_one_where_replies_are_there_at_once(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    hfi_costs_note_send(&costs, 5 * US);
    int own = hfi_costs_note_found(after_looks(0, 1000, 1000), HFI_FOUND_AT_ONCE), score = own;
    assert_true(hfi_costs_gathers(&costs, 20 * US, 1, own));
    assert_false(hfi_costs_gathers(&costs, 20 * US, 0, own));
    assert_false(hfi_costs_gathers(&costs, 320 * US, 4, own));
    for (int i = 0; i < 10000; i++) { /* one of 25 finds */
        score = hfi_costs_note_found(score, i % 25 == 0 ? HFI_FOUND_AT_ONCE : (enum hfi_found)(HFI_FOUND_BEFORE + i % 3));
        assert_true(hfi_costs_has_own_cpu(score));
        assert_false(hfi_costs_has_our_cpu(score));
    }
    for (int i = 0; i < 512 + 128; i++)
        score = hfi_costs_note_found(score, HFI_FOUND_BEFORE);
    assert_int_equal(score, 0); /* these tell no more */
    assert_false(hfi_costs_has_own_cpu(score));
}

/* A reader that lost the CPU finds some at once, too. */
static void few_found_at_once_do_not_hide_that_the_server_has_our_cpu(void **state)
{
    int score = after_looks(0, 1000, 1000), ours = 0;
    (void)state;
    for (int i = 1; i <= 4000; i++) {
        score = hfi_costs_note_found(score, i % 400 == 0 ? HFI_FOUND_AT_ONCE : HFI_FOUND_AT_FIRST);
        ours += hfi_costs_has_our_cpu(score);
    }
    assert_true(ours > 4000 * 3 / 4 - 128);
}

/* While the server works at one, and the next is on its way. */
static void a_third_of_the_threads_commands_are_a_group(void **state)
{
    (void)state;
    for (int threads = 0; threads < 5; threads++) /* and the one that has listed its own */
        assert_true(hfi_costs_is_group(1, threads));
    assert_false(hfi_costs_is_group(1, 5));
    assert_true(hfi_costs_is_group(2, 5));
    assert_false(hfi_costs_is_group(20, 63));
    assert_true(hfi_costs_is_group(21, 63));
}

/* What a look is worth is the wake-up; what it takes is the trip. */
static void looking_pays_where_a_wake_up_is_dear_or_the_server_beside(void **state)
{
    static const struct {
        int64_t wake_up_us, trip_us;
        bool looks;
    } machines[] = {{8, 30, true},    {8, 63, true},    {8, 64, false},   {35, 32, true},    {35, 270, true},
                    {35, 300, false}, {120, 140, true}, {10, 300, false}, {35, 1000, false}, {120, 5000, false}};
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        struct hfi_costs costs = {0};
        hfi_costs_note_wake_up(&costs, machines[i].wake_up_us * US);
        assert_int_equal(looks(&costs, machines[i].trip_us * US), machines[i].looks);
    }
}

/* Where others use the CPU meanwhile a look costs nothing but a few yields. */
static void looking_pays_where_a_trip_is_a_few_yields_long(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    hfi_costs_note_wake_up(&costs, 10 * US);
    assert_false(looks(&costs, 80 * US));
    hfi_costs_note_yield(&costs, 20 * US);
    assert_true(looks(&costs, 320 * US - 1));
    assert_false(looks(&costs, 320 * US));
    for (int i = 0; i < SAMPLES; i++)
        hfi_costs_note_yield(&costs, i % 3 == 0 ? 900 * US : US); /* the median counts */
    assert_false(looks(&costs, 80 * US));
}

static void a_look_is_over_after_a_few_trips_and_yields(void **state)
{
    (void)state;
    assert_false(is_over(60 * US, 240 * US - 1, 1000));
    assert_true(is_over(60 * US, 240 * US, 16));
    assert_false(is_over(60 * US, HFI_MS - 1, 15)); /* on one CPU each yield is a part of the trip */
    assert_true(is_over(60 * US, HFI_MS, 1));
}

/* On one CPU a thread that yields waits for the others, and for the server: 110 to 200 us with three threads, where a wake-up takes 4. */
static void a_yield_is_not_long_for_what_some_trips_take(void **state)
{
    struct hfi_costs costs = {0};
    const struct hfi_trip near = {.nearest_ns = 16 * US}, far = {.nearest_ns = 100 * US};
    (void)state;
    hfi_costs_note_wake_up(&costs, 4 * US);
    assert_false(hfi_costs_is_long(&costs, 256 * US, &near));
    assert_true(hfi_costs_is_long(&costs, 256 * US + 1, &near));
    assert_false(hfi_costs_is_long(&costs, HFI_MS, &far));
    assert_true(hfi_costs_is_long(&costs, HFI_MS + 1, &far));
}

static void a_yield_is_long_by_what_a_wake_up_costs(void **state)
{
    struct hfi_costs cheap = {0}, dear = {0};
    (void)state;
    hfi_costs_note_wake_up(&cheap, 10 * US);
    hfi_costs_note_wake_up(&dear, 120 * US);
    assert_false(hfi_costs_is_long(&cheap, 160 * US, &none));
    assert_true(hfi_costs_is_long(&cheap, 160 * US + 1, &none));
    assert_false(hfi_costs_is_long(&dear, HFI_MS, &none));
    assert_true(hfi_costs_is_long(&dear, HFI_MS + 1, &none)); /* what a scheduler gives to a program that computes, at least */
}

/* Of the CPU a sleep uses some 4 us where a wake-up is cheap; a send takes 8 us in either place. */
static void a_crowd_looks_at_once_where_a_sleep_costs_as_much_as_some_sends(void **state)
{
    struct hfi_costs cheap = {0}, dear = {0};
    (void)state;
    hfi_costs_note_sleep(&cheap, 4 * US);
    hfi_costs_note_sleep(&dear, 90 * US);
    assert_true(hfi_costs_follower_looks(&dear, 500)); /* what a send costs is not known before there is one */
    hfi_costs_note_send(&cheap, 8 * US);
    hfi_costs_note_send(&dear, 8 * US);
    assert_true(hfi_costs_follower_looks(&cheap, 8));
    assert_false(hfi_costs_follower_looks(&cheap, 9));
    assert_true(hfi_costs_follower_looks(&dear, 500));
}

/* Where each of 500 threads uses 90 us to wake up, the one that yields has the CPU again 45 ms later: no other program had it. */
static void what_followers_use_is_no_sign_of_other_programs_nor_of_a_busy_server(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    hfi_costs_note_wake_up(&costs, 10 * US);
    hfi_costs_note_sleep(&costs, 90 * US);
    int64_t own_ns = hfi_costs_own_ns(&costs, 10);
    assert_true(own_ns == 1800 * US); /* and as much for what each does then */
    assert_true(hfi_costs_own_ns(&costs, 500) == 90 * HFI_MS);
    const struct hfi_trip own = {.own_ns = own_ns};
    assert_false(hfi_costs_is_long(&costs, 2 * own_ns + 160 * US, &own)); /* some had the CPU twice */
    assert_true(hfi_costs_is_long(&costs, 2 * own_ns + 160 * US + 1, &own));

    struct hfi_trip trip = {.nearest_ns = 30 * US, .rtt_ns = own_ns + 79 * US, .own_ns = own_ns};
    assert_true(hfi_costs_looks(&costs, &trip));
    assert_false(hfi_costs_look_is_over(&trip, own_ns + HFI_MS - 1, 1000));
    assert_true(hfi_costs_look_is_over(&trip, own_ns + HFI_MS, 0));
    trip.rtt_ns = own_ns + 80 * US; /* the server has other clients, too */
    assert_false(hfi_costs_looks(&costs, &trip));
    trip = (struct hfi_trip){.nearest_ns = 200 * US, .rtt_ns = 300 * US, .own_ns = own_ns}; /* it is far */
    assert_false(hfi_costs_looks(&costs, &trip));
    trip.nearest_ns = 0; /* it is another one, and may be far */
    assert_false(hfi_costs_looks(&costs, &trip));
}

/* While 500 threads wake up on the server's CPU all trips take 50 ms, and they explain it. */
static void the_distance_does_not_grow_by_what_our_own_threads_explain(void **state)
{
    int64_t nearest_ns = 0, own_ns = 50 * HFI_MS;
    (void)state;
    nearest_ns = hfi_costs_nearest_ns(nearest_ns, 3 * HFI_MS, own_ns);
    assert_true(nearest_ns == 3 * HFI_MS);
    nearest_ns = hfi_costs_nearest_ns(nearest_ns, 40 * US, own_ns);
    assert_true(nearest_ns == 40 * US);
    for (int i = 0; i < 10000; i++)
        nearest_ns = hfi_costs_nearest_ns(nearest_ns, own_ns, own_ns);
    assert_true(nearest_ns == 40 * US);
    for (int i = 0; i < 10000; i++) /* it has moved */
        nearest_ns = hfi_costs_nearest_ns(nearest_ns, own_ns + 5 * HFI_MS, own_ns);
    assert_true(nearest_ns > 4900 * US && nearest_ns <= 5 * HFI_MS);
    assert_true(hfi_costs_nearest_ns(0, 0, 0) == 1);
    assert_true(hfi_costs_nearest_ns(1, 2, 0) == 2);
}

static void a_pause_is_shorter_where_many_sleep_through_it(void **state)
{
    (void)state;
    assert_int_equal(hfi_costs_sleeps(0), 1);
    assert_int_equal(hfi_costs_sleeps(HFI_MS), 5);
    assert_int_equal(hfi_costs_sleeps(100 * HFI_MS), 401);
}

static void times_follow_the_trips(void **state)
{
    struct hfi_costs costs = {0};
    (void)state;
    assert_int_equal(hfi_costs_left_ns(70 * US), 280 * US);
    assert_int_equal(hfi_costs_left_again_ns(280 * US), 560 * US);
    hfi_costs_note_wake_up(&costs, 30 * US);
    assert_int_equal(hfi_costs_grace_ns(&costs), 480 * US); /* the listener is woken for a sixteenth of the time */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_done_by_costs_that_are_not_known),
        cmocka_unit_test(a_send_costs_what_half_of_them_do),
        cmocka_unit_test(a_wake_up_costs_what_it_does_where_the_cpu_idles),
        cmocka_unit_test(a_first_wake_up_that_had_to_wait_is_soon_forgotten),
        cmocka_unit_test(what_lost_its_cpu_says_nothing),
        cmocka_unit_test(a_wrong_cost_does_no_harm),
        cmocka_unit_test(a_cost_never_becomes_unknown_again),
        cmocka_unit_test(a_server_is_near_by_what_a_send_costs),
        cmocka_unit_test(commands_gather_where_so_many_are_under_way_that_a_reply_is_soon_there),
        cmocka_unit_test(commands_gather_behind_one_where_a_reply_is_there_after_one_yield),
        cmocka_unit_test(commands_gather_behind_one_where_replies_are_there_at_once),
        cmocka_unit_test(a_third_of_the_threads_commands_are_a_group),
        cmocka_unit_test(few_found_at_once_do_not_hide_that_the_server_has_our_cpu),
        cmocka_unit_test(looking_pays_where_a_wake_up_is_dear_or_the_server_beside),
        cmocka_unit_test(looking_pays_where_a_trip_is_a_few_yields_long),
        cmocka_unit_test(a_look_is_over_after_a_few_trips_and_yields),
        cmocka_unit_test(a_yield_is_long_by_what_a_wake_up_costs),
        cmocka_unit_test(a_yield_is_not_long_for_what_some_trips_take),
        cmocka_unit_test(a_crowd_looks_at_once_where_a_sleep_costs_as_much_as_some_sends),
        cmocka_unit_test(what_followers_use_is_no_sign_of_other_programs_nor_of_a_busy_server),
        cmocka_unit_test(the_distance_does_not_grow_by_what_our_own_threads_explain),
        cmocka_unit_test(a_pause_is_shorter_where_many_sleep_through_it),
        cmocka_unit_test(times_follow_the_trips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
