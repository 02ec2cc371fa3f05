/* SPDX-License-Identifier: MIT */
/* scripts_crowd_test.c - a long queue: which waiters a script drops, which it passes over for the next holder, and
 * where it stops, at the edge of each bound. */
#include "tests/scene/script_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CROWD(number) "hf1:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:" number ":0123456789abcdef:host:1"
#define FRESH "now+5_7_900"

/* Puts this many waiters in front of the queue; one without a record counts as silent. */
static void stand_in_front(int count, const char *record)
{
    char line[160];
    for (int i = 0; i < count; i++) {
        (void)snprintf(line, sizeof line, "ZADD Q %d " CROWD("%d"), i - count, i);
        (void)tell(line);
        if (record == NULL)
            continue;
        (void)snprintf(line, sizeof line, "HSET W " CROWD("%d") " %s", i, record);
        (void)tell(line);
    }
}

static void a_release_drops_1024_silent_ones_and_says_that_there_may_be_more(void **state)
{
    static const struct {
        int silent;
        const char *waits, *answer, *holds, *left;
    } cases[] = {
        {1023, "A", "HANDED now | A< G A 70 F+1 K", "A", "0"},
        {1024, "A", "MORE now", "D", "1"},
        {1025, "A", "MORE now", "D", "2"},
        {1024, "", "FREE", "-", "0"},
        {1025, "", "MORE now", "D", "1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)hft_scripts_begin(state);
        (void)tell("SET K D PX 500");
        wait_in_line(cases[i].waits);
        stand_in_front(cases[i].silent, NULL);
        SAYS(release, LOCK "D", cases[i].answer);
        IS("GET K", cases[i].holds);
        IS("ZCARD Q", cases[i].left);
    }
    SAYS(release, LOCK "D", "FREE"); /* it asks again, and the last one goes */
    IS("ZCARD Q", "0");
}

/* 0 ms left: ask again at once. */
static void an_acquire_behind_more_silent_waiters_than_a_script_drops_is_repeated(void **state)
{
    (void)state;
    stand_in_front(1025, NULL);
    SAYS(acquire, LOCK "A 1316 now try 7 0 900 5000", "BUSY now 0 0 -1");
    IS("ZCARD Q", "1");
    stand_in_front(1025, NULL);
    SAYS(acquire, LOCK "A 1316 now wait 7 0 900 5000", "QUEUED now 0 1 now 0 -1");
    IS("GET K", "-");
    SAYS(acquire, LOCK "A 1316 now wait 7 now 900 5000", "GRANTED now F+1");
    IS("ZCARD Q", "0");
}

static void a_re_check_drops_1024_silent_ones_in_front_of_it(void **state)
{
    static const struct {
        int silent;
        const char *answer;
    } cases[] = {
        {1023, "QUEUED now 500 0 1 1 1 | D< R D K"},
        {1024, "QUEUED now 500 0 1 1 1 | D< R D K"},
        {1025, "QUEUED now 0 1 1 0 -1"},
        {1026, "QUEUED now 0 2 1 0 -1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)hft_scripts_begin(state);
        (void)tell("SET K D PX 500");
        wait_in_line("A");
        stand_in_front(cases[i].silent, NULL);
        SAYS(acquire, LOCK "A 1316 now wait 7 1 900 5000", cases[i].answer);
    }
}

static void at_most_63_unsubscribed_waiters_are_passed_over(void **state)
{
    static const struct {
        int unheard;
        const char *holds;
    } cases[] = {{1, "E"}, {63, "E"}, {64, CROWD("0")}, {65, CROWD("0")}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)hft_scripts_begin(state);
        hft_hearers = "e";
        (void)tell("SET K A PX 500");
        wait_in_line("E");
        stand_in_front(cases[i].unheard, FRESH);
        (void)hft_script(LOCK "A", hfi_script_release);
        IS("GET K", cases[i].holds);
    }
}

/* A script gives permits to 64 waiters at most. The next one is told to ask, and so lets in the next 64. */
static void who_comes_after_the_first_64_that_get_permits_is_called(void **state)
{
    static const struct {
        int waiting;
        bool called;
    } cases[] = {{64, false}, {65, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)hft_scripts_begin(state);
        (void)tell("ZADD K now+500000 A#1");
        stand_in_front(cases[i].waiting, FRESH "_1_100");
        const char *answer = hft_script(LOCK "A 0", hfi_script_release_permits);
        assert_true((strstr(answer, "F " CROWD("64")) != NULL) == cases[i].called);
        IS("ZCARD K", "64");
    }
    SAYS(acquire_permits, LOCK CROWD("64") " 1316 now wait 7 1 900_1_100 5000 1", "GRANTED now F+65 1 65");
}

static void an_unsubscribed_caller_waits_for_its_turn(void **state)
{
    (void)state;
    hft_hearers = "";
    wait_in_line("AD");
    SAYS(acquire, LOCK "D 1316 now wait 7 2 900 5000", "QUEUED now 900 0 2 1 0 | A< G A 70 F+1 K | A< R A K | A< R A K");
    (void)tell("DEL K");
    SAYS(acquire, LOCK "D 1316 now wait 7 2 900 5000", "GRANTED now F+2"); /* it is the first */
    IS("ZCARD Q", "0");
    IS("HGET W D", "-");
}

/* Queue and records may be evicted one by one. */
static void the_rest_of_a_lost_queue_goes_with_a_release(void **state)
{
    (void)state;
    (void)tell("SET K D PX 500");
    wait_in_line("AB");
    (void)tell("DEL W");
    SAYS(release, LOCK "D", "FREE");
    IS("ZCARD Q", "0");
    (void)tell("SET K A PX 500");
    wait_in_line("AB");
    (void)tell("ZREM Q A");
    (void)tell("HDEL W B");
    SAYS(release, LOCK "A", "FREE");
    IS("HGET W A", "-");
    IS("GET K", "-");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, hft_scripts_begin)
    const struct CMUnitTest tests[] = {
        TEST(a_release_drops_1024_silent_ones_and_says_that_there_may_be_more),
        TEST(an_acquire_behind_more_silent_waiters_than_a_script_drops_is_repeated),
        TEST(a_re_check_drops_1024_silent_ones_in_front_of_it),
        TEST(at_most_63_unsubscribed_waiters_are_passed_over),
        TEST(who_comes_after_the_first_64_that_get_permits_is_called),
        TEST(an_unsubscribed_caller_waits_for_its_turn),
        TEST(the_rest_of_a_lost_queue_goes_with_a_release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
