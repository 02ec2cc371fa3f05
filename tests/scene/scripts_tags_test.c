/* SPDX-License-Identifier: MIT */
/* scripts_tags_test.c - what the scripts do with the tags of a fetched value: fill, forget_tag. */
#include "tests/scene/script_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define AT(ms) "17900000" #ms /* the end of a life, server ms; now is 1790000000000 */

static void store(const char *line)
{
    (void)tell("SET K A PX 500");
    assert_string_equal(hft_script(line, hfi_script_fill), "FILLED now");
}

static void a_value_is_noted_under_its_tags_until_it_is_over(void **state)
{
    (void)state;
    store(TAGGED "A value 800 apple F+1");
    IS("GET V", "apple");
    IS("ZRANGE T 0 -1 WITHSCORES", "V " AT(00800));
    IS("ZRANGE U 0 -1 WITHSCORES", "V " AT(00800));
    IS("PTTL T", "800");
    IS("PTTL U", "800");
    store(TAGGED "A value 300 pear F+1"); /* whoever saw the first one counts on its end */
    IS("ZRANGE T 0 -1 WITHSCORES", "V " AT(00800));
    IS("PTTL T", "800");
    store(TAGGED "A same 900 4," AT(00300) "," AT(00300) " F+1");
    IS("GET V", "pear");
    IS("ZRANGE T 0 -1 WITHSCORES", "V " AT(00900));
    IS("PTTL T", "900");
}

static void nothing_is_noted_of_what_is_no_value_or_is_not_stored(void **state)
{
    (void)state;
    store(TAGGED "A absent 800 _ F+1");
    IS("EXISTS T", "0");
    (void)tell("SET K A PX 500");
    SAYS(fill, TAGGED "A nothing 0 _ F+1", "FREE now");
    (void)tell("SET K A PX 500");
    SAYS(fill, TAGGED "A value 0 apple F+1", "FREE now"); /* no expiry of 0 */
    (void)tell("SET K A PX 500");
    SAYS(fill, TAGGED "A same 800 _ F+1", "MISSING now");
    hft_fill_memory(true);
    SAYS(fill, TAGGED "A value 800 apple F+1", "FREE now");
    IS("EXISTS T", "0");
}

static void ended_values_leave_the_index_three_at_a_time(void **state)
{
    (void)state;
    (void)tell("ZADD T 1 a");
    (void)tell("ZADD T 2 b");
    (void)tell("ZADD T 3 c");
    (void)tell("ZADD T 4 d");
    (void)tell("ZADD T 1790000000900 e");
    (void)tell("PEXPIRE T 900");
    store(TAGGED "A value 800 apple F+1");
    IS("ZRANGE T 0 -1", "d V e");
    store(TAGGED "A value 800 apple F+1");
    IS("ZRANGE T 0 -1", "V e");
    IS("PTTL T", "900"); /* as long as the longest */
}

/* Who forgets the tag has to find it. */
static void a_value_stays_in_the_index_while_it_can_be_read(void **state)
{
    (void)state;
    (void)tell("ZADD T 1789999999999 a"); /* rounded */
    (void)tell("ZADD T 1789999999990 b");
    store(TAGGED "A value 800 apple F+1");
    IS("ZRANGE T 0 -1", "a V");
}

static void a_tag_is_forgotten_with_its_values_and_keeps_a_mark_for_a_day(void **state)
{
    (void)state;
    store(TAGGED "A value 800 apple F+1");
    (void)tell("ZADD T " AT(00900) " gone");
    SAYS(forget_tag, "2 T F", "DONE now 1 V gone");
    IS("GET V", "-");
    IS("ZRANGE T 0 -1 WITHSCORES", "3.665920004096002e+18"); /* '', and F+1 */
    IS("PTTL T", "86400000");
    IS("ZRANGE U 0 -1", "V"); /* until it is over, or forgotten too */
    SAYS(forget_tag, "2 U F", "DONE now 0 V");
    SAYS(forget_tag, "2 U F", "DONE now 0");
}

static void a_load_that_began_before_stores_nothing(void **state)
{
    static const char *const fills[] = {"A value 800 apple F+1", "A same 800 _ F+1", "A absent 800 _ F+1", "A nothing 0 _ F+1"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        hft_scripts_begin(state);
        SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "GRANTED now F+1");
        SAYS(forget_tag, "2 U F", "DONE now 0");
        (void)tell("SET V pear PX 300");
        wait_in_line("B");
        assert_string_equal(hft_script(strcat(strcpy((char[80]){0}, TAGGED), fills[i]), hfi_script_fill),
                            "REFUSED now | B< G B 70 F+3 K"); /* the next one loads what is true now */
        IS("GET V", "pear");
        IS("PTTL V", "300");
        IS("GET M", "-");
        IS("EXISTS T", "0");
        SAYS(fill, TAGGED "B value 800 apple F+3", "FILLED now");
        IS("ZRANGE U 0 -1", "V"); /* and the mark, which has no name */
    }
}

/* Fences order a purge and a grant, whatever the counter and the clock have gone through. */
static void a_mark_is_above_each_fence_before_and_below_each_after(void **state)
{
    (void)state;
    (void)tell("SET F F+9");
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "GRANTED now F+10");
    SAYS(forget_tag, "2 T F", "DONE now 0");
    SAYS(fill, TAGGED "A value 800 apple F+10", "REFUSED now");
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "GRANTED now F+12");
    SAYS(fill, TAGGED "A value 800 apple F+12", "FILLED now");
    (void)tell("DEL F V"); /* lost: begun anew by the clock */
    SAYS(forget_tag, "2 U F", "DONE now 0 V");
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "GRANTED now F+2");
    SAYS(fill, "7 K Q W F V M U A value 800 apple F+2", "FILLED now");
    (void)tell("DEL V");
    SAYS(forget_tag, "2 U F", "DONE now 0 V");
    hft_behind_us = 10000000;
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "GRANTED now-10000000 F+4");
    SAYS(fill, "7 K Q W F V M U A value 800 apple F+4", "FILLED now-10000000");
    hft_behind_us = 0;
    (void)tell("DEL F");
    (void)tell("HSET F a b");
    SAYS(forget_tag, "2 U F", "DONE now 0 V");
}

static void a_tag_of_another_type_is_left_alone(void **state)
{
    (void)state;
    (void)tell("HSET U a b");
    (void)tell("SET K A PX 500");
    (void)tell("SET V pear PX 300");
    wait_in_line("AB");
    SAYS(fill, TAGGED "A value 800 apple F+1", "FOREIGN now tag | B< G B 71 F+1 K");
    IS("GET V", "pear");
    IS("EXISTS T", "0");
    IS("HGET U a", "b");
    IS("PTTL U", "-1");
    SAYS(forget_tag, "2 U F", "FOREIGN now tag");
    IS("HGET U a", "b");
    IS("PTTL U", "-1");
}

static void where_there_are_both_another_type_and_a_purge_the_waiters_load_again(void **state)
{
    (void)state;
    SAYS(forget_tag, "2 U F", "DONE now 0");
    (void)tell("HSET T a b");
    (void)tell("SET K A PX 500");
    SAYS(fill, TAGGED "A value 800 apple F+0", "REFUSED now");
}

static void a_full_server_forgets_a_tag(void **state)
{
    (void)state;
    store(TAGGED "A value 800 apple F+1");
    hft_fill_memory(true);
    SAYS(forget_tag, "2 T F", "DONE now 1 V");
    SAYS(forget_tag, "2 X F", "DONE now 0"); /* nor is a mark refused where there was nothing */
    IS("ZRANGE X 0 -1 WITHSCORES", "3.6659200040960041e+18");
}

static void so_many_are_forgotten_at_a_time(void **state)
{
    char line[400];
    (void)state;
    for (int i = 0; i < 251; i++) {
        (void)snprintf(line, sizeof line, "ZADD T 179000000%04d key%d", i, i);
        (void)tell(line);
    }
    assert_memory_equal(hft_script("2 T F", hfi_script_forget_tag), "MORE now 0 key0 key1 ", 21);
    IS("ZRANGE T 0 -2", "key250");
    SAYS(forget_tag, "2 T F", "DONE now 0 key250");
    for (int i = 0; i < 250; i++) { /* 150 bytes each: 32 KiB are 219 of them */
        (void)snprintf(line, sizeof line, "ZADD T 179000000%04d %0150d", i, i);
        (void)tell(line);
    }
    assert_memory_equal(hft_script("2 T F", hfi_script_forget_tag), "MORE now 0 ", 11);
    IS("ZCARD T", "32"); /* and the mark */
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, hft_scripts_begin)
    const struct CMUnitTest tests[] = {
        TEST(a_value_is_noted_under_its_tags_until_it_is_over),
        TEST(nothing_is_noted_of_what_is_no_value_or_is_not_stored),
        TEST(ended_values_leave_the_index_three_at_a_time),
        TEST(a_value_stays_in_the_index_while_it_can_be_read),
        TEST(a_tag_is_forgotten_with_its_values_and_keeps_a_mark_for_a_day),
        TEST(a_load_that_began_before_stores_nothing),
        TEST(a_mark_is_above_each_fence_before_and_below_each_after),
        TEST(a_tag_of_another_type_is_left_alone),
        TEST(where_there_are_both_another_type_and_a_purge_the_waiters_load_again),
        TEST(a_full_server_forgets_a_tag),
        TEST(so_many_are_forgotten_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
