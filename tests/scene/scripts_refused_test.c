/* SPDX-License-Identifier: MIT */
/* scripts_refused_test.c - scripts that are refused a command: a key beside the lock is another program's, the user
 * lacks a right, the memory is full. */
#include "tests/scene/script_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* ---- another program's key ---- */

static void by_a_counter_that_is_none_nothing_is_granted(void **state)
{
    static const char *const theirs[] = {"HSET F a b", "SET F X", "SET F 9223372036854775807"};
    for (int i = 0; i < 3; i++) {
        (void)hft_scripts_begin(state);
        (void)tell("DEL F");
        (void)tell(theirs[i]);
        SAYS(acquire, LOCK "A 1316 now try 7 0 900 5000", "FOREIGN now fence");
        IS("GET K", "-");
        (void)tell("SET K A PX 500");
        SAYS(acquire, LOCK "A 1316 now wait 7 0 900 5000", "FOREIGN now fence");
        SAYS(more, LOCK "A 700 4096", "FOREIGN now fence");
        IS("GET K", "A");
        wait_in_line("B");
        SAYS(release, LOCK "A", "FREE"); /* as if nobody waited */
        IS("GET K", "-");
    }
}

static void a_counter_that_is_no_number_is_left_as_it_is(void **state)
{
    (void)state;
    (void)tell("SET F X PX 500");
    SAYS(fence_floor, "1 F 0 0", "WRONGTYPE The fence counter is not a number");
    IS("GET F", "X");
    IS("PTTL F", "500");
    (void)tell("DEL F");
    (void)tell("HSET F a b");
    SAYS(fence_floor, "1 F 0 0", "WRONGTYPE Operation against a key holding the wrong kind of value");
    IS("HGET F a", "b");
}

static void where_queue_or_records_are_another_programs_no_waiter_is_queued(void **state)
{
    static const char *const theirs[][2] = {{"Q", "queue"}, {"W", "wait"}};
    char line[80];
    for (int i = 0; i < 2; i++) {
        (void)hft_scripts_begin(state);
        (void)snprintf(line, sizeof line, "SET %s X", theirs[i][0]);
        (void)tell(line);
        SAYS(acquire, LOCK "D 500 now wait 7 0 900 5000", "GRANTED now F+1"); /* who need not wait gets it */
        (void)snprintf(line, sizeof line, "FOREIGN now %s", theirs[i][1]);
        SAYS(acquire, LOCK "A 1316 now wait 7 0 900 5000", line);
        SAYS(release, LOCK "A", "GONE now");
        IS("GET K", "D");
        SAYS(release, LOCK "D", "FREE");
        IS("GET K", "-");
        (void)snprintf(line, sizeof line, "GET %s", theirs[i][0]);
        IS(line, "X");
        IS(i == 0 ? "HGET W A" : "ZRANGE Q 0 -1", i == 0 ? "-" : "");
    }
}

/* ---- a right that is missing ---- */

static void a_key_that_may_not_be_read_is_neither_free_nor_lost(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    hft_forbid("GET", "K");
    SAYS(acquire, LOCK "A 1316 now wait 7 0 900 5000", NO_RIGHT);
    SAYS(release, LOCK "A", NO_RIGHT);
    SAYS(renew, "1 K A 700 Q", "now 5");
    SAYS(break, LOCK "fedcba9876543210", NO_RIGHT);
    IS("GET K", "A");
    IS("PTTL K", "500");
}

static void a_renewal_passes_where_the_queue_may_not_be_looked_at(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    hft_forbid("EXISTS", "Q");
    SAYS(renew, "1 K A 700 Q", "now 1");
    IS("PTTL K", "700");
}

/* It would cost more than all else that this release does. */
static void a_release_without_waiters_does_not_ask_for_the_time(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    hft_forbid("TIME", NULL);
    SAYS(release, LOCK "A", "FREE");
    IS("GET K", "-");
}

/* ---- a full memory ---- */

/* As a script's first write the server refuses SET, INCRBY, ZADD and HSET, never a command that only removes. */
static void a_full_memory_stops_no_holder_and_no_waiter(void **state)
{
    (void)state;
    hft_fill_memory(true);
    SAYS(acquire, LOCK "A 500 now try 7 0 900 5000", "GRANTED now F+1");
    SAYS(acquire, LOCK "B 1316 now wait 7 0 900 5000", "QUEUED now 500 0 now 1 1 | A< R A K");
    SAYS(break, LOCK "fedcba9876543210",
         "BROKEN now | A< B A hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1f:fedcba9876543210:host:1 K");
    SAYS(release, "4 K Q W F hf1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1f:fedcba9876543210:host:1",
         "HANDED now | B< G B 7 F+2 K");
    SAYS(fence_floor, "1 F F+5 0", "now F+5");
    IS("GET F", "F+5");
}

/* ---- the clock is a key ---- */

#define BY_KEY(script, line, answer) assert_string_equal(hft_script(line, hfi_script_other(hfi_script_##script)), answer)

static void where_time_is_refused_a_key_tells_the_same(void **state)
{
    (void)state;
    hft_forbid("TIME", NULL);
    BY_KEY(fence_floor, "1 F 0 0", "now F+0");
    BY_KEY(acquire, LOCK "A 500 now try 7 0 900 5000", "GRANTED now F+1");
    (void)tell("PERSIST hf:clock:0"); /* another program's doing */
    BY_KEY(acquire, LOCK "B 1316 now wait 7 0 900 5000", "QUEUED now 500 0 now 1 1 | A< R A K");
    BY_KEY(release, LOCK "A", "HANDED now | B< G B 7 F+2 K");
    (void)tell("DEL hf:clock:0");
    BY_KEY(renew, "1 K B 700 Q", "now 1");
}

/* The clock's key is there from then on, and is only read. */
static void a_full_memory_stops_no_clock(void **state)
{
    (void)state;
    BY_KEY(renew, "0", "now");
    hft_fill_memory(true);
    (void)tell("SET K A PX 500"); /* refused */
    BY_KEY(acquire, LOCK "A 500 now try 7 0 900 5000", "GRANTED now F+1");
    BY_KEY(renew, "1 K A 700 Q", "now 1");
    (void)tell("ZADD Q 1 B");
    BY_KEY(release, LOCK "A", "FREE");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, hft_scripts_begin)
    const struct CMUnitTest tests[] = {
        TEST(by_a_counter_that_is_none_nothing_is_granted),
        TEST(a_counter_that_is_no_number_is_left_as_it_is),
        TEST(where_queue_or_records_are_another_programs_no_waiter_is_queued),
        TEST(a_key_that_may_not_be_read_is_neither_free_nor_lost),
        TEST(a_renewal_passes_where_the_queue_may_not_be_looked_at),
        TEST(a_release_without_waiters_does_not_ask_for_the_time),
        TEST(a_full_memory_stops_no_holder_and_no_waiter),
        TEST(where_time_is_refused_a_key_tells_the_same),
        TEST(a_full_memory_stops_no_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
