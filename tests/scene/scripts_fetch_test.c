/* SPDX-License-Identifier: MIT */
/* scripts_fetch_test.c - what the scripts do with a fetched value: acquire, fill, forget. */
#include "tests/scene/script_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_value_that_lives_long_enough_is_the_answer_of_a_fetch(void **state)
{
    (void)state;
    wait_in_line("A");
    (void)tell("SET V apple PX 501");
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "VALUE now apple 501");
    IS("ZRANGE Q 0 -1", "");
    IS("HGET W A", "-");
    IS("GET K", "-");
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 501", "GRANTED now F+1"); /* it is to be loaded again */
    (void)tell("DEL K");
    (void)tell("SET V apple");
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 501", "VALUE now apple -1");
}

static void a_value_that_is_to_be_replaced_is_not_read(void **state)
{
    (void)state;
    (void)tell("SET V apple PX 500");
    (void)tell("SET M 1 PX 500");
    hft_forbid("GET", "V"); /* it may be long */
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "GRANTED now F+1");
    SAYS(acquire, FETCH "B 1316 now wait 7 1 900 5000 499", NO_RIGHT);
}

static void that_there_is_none_is_the_answer_where_there_is_no_value(void **state)
{
    (void)state;
    wait_in_line("A");
    (void)tell("SET M 1 PX 300");
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "ABSENT now 300");
    IS("ZRANGE Q 0 -1", "");
    IS("GET K", "-");
    (void)tell("SET M 1");
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "ABSENT now -1");
    (void)tell("SET V apple PX 400");
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "GRANTED now F+1"); /* a value that ends soon is one */
}

static void a_missing_value_is_to_be_loaded(void **state)
{
    (void)state;
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "GRANTED now F+1");
    IS("GET K", "A");
    SAYS(acquire, FETCH "B 1316 now try 7 1 900 5000 500", "BUSY now 1316 1 1 | A< R A K");
}

static void data_of_another_type_are_not_loaded(void **state)
{
    (void)state;
    wait_in_line("A");
    (void)tell("HSET V a b");
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "FOREIGN now data");
    IS("ZRANGE Q 0 -1", "");
    IS("GET K", "-");
    (void)tell("PEXPIRE V 400"); /* nor where an end is near */
    wait_in_line("A");
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "FOREIGN now data");
    IS("ZRANGE Q 0 -1", "");
    IS("GET K", "-");
    IS("PTTL V", "400");
    (void)tell("DEL V");
    (void)tell("HSET M a b");
    wait_in_line("A");
    SAYS(acquire, FETCH "A 1316 now wait 7 1 900 5000 500", "FOREIGN now absent");
    IS("ZRANGE Q 0 -1", "");
    IS("GET K", "-");
}

static void data_that_became_another_type_during_the_load_are_left_alone(void **state)
{
    static const char *const fills[] = {"A value 800 apple", "A same 800 0,0,9000000000000", "A absent 800 .", "A nothing 0 ."};
    (void)state;
    for (int i = 0; i < 4; i++) {
        hft_scripts_begin(state);
        (void)tell("SET K A PX 500");
        (void)tell("HSET V a b");
        (void)tell("PEXPIRE V 400");
        wait_in_line("AB");
        assert_string_equal(hft_script(strcat(strcpy((char[80]){0}, FETCH), fills[i]), hfi_script_fill),
                            "FOREIGN now data | B< G B 71 F+1 K"); /* it will be told */
        IS("HGET V a", "b");
        IS("PTTL V", "400");
        IS("GET M", "-");
    }
}

static void a_fill_stores_frees_and_notifies_the_waiters(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    (void)tell("SET M 1 PX 500");
    wait_in_line("ABC");
    SAYS(fill, FETCH "A value 800 apple", "FILLED now | B< F B | C< F C");
    IS("GET V", "apple");
    IS("PTTL V", "800");
    IS("GET M", "-");
    IS("GET K", "-");
    IS("ZRANGE Q 0 -1", "");
    IS("HGET W A", "-");
    IS("HGET W C", "-");
}

static void a_fill_that_there_is_none_takes_the_old_value_away(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    (void)tell("SET V apple PX 500");
    wait_in_line("B");
    SAYS(fill, FETCH "A absent 800 .", "FILLED now | B< F B");
    IS("GET V", "-");
    IS("PTTL M", "800");
    IS("GET K", "-");
}

static void a_value_that_is_still_good_gets_another_end(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    (void)tell("SET V apple PX 300");
    (void)tell("SET M 1 PX 500");
    wait_in_line("AB");
    SAYS(fill, FETCH "A same 800 5,1790000000290,1790000000300", "FILLED now | B< F B");
    IS("GET V", "apple");
    IS("PTTL V", "800");
    IS("GET M", "-");
    IS("GET K", "-");
    IS("ZRANGE Q 0 -1", "");
}

static void one_that_is_not_there_any_more_is_missing_and_the_lease_goes_on(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    wait_in_line("B");
    SAYS(fill, FETCH "A same 800 0,0,9000000000000", "MISSING now");
    IS("GET K", "A");
    IS("ZRANGE Q 0 -1", "B");
    SAYS(fill, FETCH "A value 800 apple", "FILLED now | B< F B");
    (void)tell("SET K B PX 500");
    SAYS(fill, FETCH "A same 800 _", "REFUSED now"); /* whoever has no lease gives no other end */
    IS("PTTL V", "800");
}

static void one_that_has_been_replaced_is_missing_too(void **state)
{
    static const char *const others[] = {"A same 800 4,1790000000300,1790000000300", "A same 800 6,1790000000300,1790000000300",
                                         "A same 800 5,1790000000301,1790000000302", "A same 800 5,1790000000298,1790000000299",
                                         "A same 800 _"};
    (void)state;
    (void)tell("SET K A PX 500");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        (void)tell("SET V apple PX 300");
        assert_string_equal(hft_script(strcat(strcpy((char[80]){0}, FETCH), others[i]), hfi_script_fill), "MISSING now");
        IS("PTTL V", "300");
    }
    (void)tell("SET V apple");
    SAYS(fill, FETCH "A same 800 5,1790000000000,1790000000300", "MISSING now"); /* it has no end */
    IS("PTTL V", "-1");
}

static void a_full_server_lets_a_value_go_on(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    (void)tell("SET V apple PX 300");
    hft_fill_memory(true);
    SAYS(fill, FETCH "A same 800 5,1790000000300,1790000000310", "FILLED now");
    IS("PTTL V", "800");
}

static void a_fill_of_nothing_hands_the_load_on(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    (void)tell("SET V apple PX 500");
    wait_in_line("AB");
    SAYS(fill, FETCH "A nothing 0 .", "FREE now | B< G B 71 F+1 K");
    IS("GET K", "B");
    IS("GET V", "-"); /* that is not what the load has found */
    (void)tell("SET M _ PX 500");
    (void)tell("SET V apple PX 500");
    SAYS(fill, FETCH "B nothing 0 .", "FREE now");
    IS("GET K", "-");
    IS("EXISTS V M", "0"); /* nor is it what the mark says */
}

static void a_value_that_cannot_be_stored_hands_the_load_on(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    wait_in_line("AB");
    SAYS(fill, FETCH "A value 0 apple", "FREE now | B< G B 71 F+1 K"); /* no expiry of 0 */
    IS("GET V", "-");
    SAYS(fill, FETCH "B absent 0 .", "FREE now");
    IS("GET M", "-");
    IS("GET K", "-");
}

static void a_fill_without_the_lock_stores_nothing(void **state)
{
    (void)state;
    (void)tell("SET K B PX 500");
    SAYS(fill, FETCH "A value 800 apple", "REFUSED now");
    (void)tell("DEL K");
    SAYS(fill, FETCH "A value 800 apple", "REFUSED now");
    (void)tell("HSET K a b");
    SAYS(fill, FETCH "A value 800 apple", "REFUSED now");
    IS("GET V", "-");
}

static void the_first_256_are_told_of_a_value(void **state)
{
    (void)state;
    char line[120];
    (void)tell("SET K A PX 500");
    for (int i = 0; i < 257; i++) {
        (void)snprintf(line, sizeof line, "ZADD Q %d hf1:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:%d:0123456789abcdef:host:1", i, i);
        (void)tell(line);
    }
    (void)hft_script(FETCH "A value 800 apple", hfi_script_fill);
    IS("ZRANGE Q 0 -1", "hf1:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb:256:0123456789abcdef:host:1");
}

static void to_forget_ends_the_load_under_way(void **state)
{
    (void)state;
    (void)tell("SET V apple PX 500");
    (void)tell("SET M 1 PX 500");
    SAYS(forget, FETCH, "DONE now");
    IS("GET V", "-");
    IS("GET M", "-");
    (void)tell("SET K A PX 500");
    SAYS(forget, FETCH, "DONE now | A< B A -");
    IS("GET K", "-");
    (void)tell("SET K A PX 500");
    wait_in_line("B");
    SAYS(forget, FETCH, "DONE now | A< B A - | B< G B 70 F+1 K");
    IS("GET K", "B");
    (void)tell("SET K X PX 500");
    SAYS(forget, FETCH, "DONE now");
    IS("GET K", "-");
    (void)tell("HSET K a b");
    SAYS(forget, FETCH, "DONE now");
    IS("HGET K a", "b");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, hft_scripts_begin)
    const struct CMUnitTest tests[] = {
        TEST(a_value_that_lives_long_enough_is_the_answer_of_a_fetch),
        TEST(a_value_that_is_to_be_replaced_is_not_read),
        TEST(that_there_is_none_is_the_answer_where_there_is_no_value),
        TEST(a_missing_value_is_to_be_loaded),
        TEST(data_of_another_type_are_not_loaded),
        TEST(data_that_became_another_type_during_the_load_are_left_alone),
        TEST(a_fill_stores_frees_and_notifies_the_waiters),
        TEST(a_fill_that_there_is_none_takes_the_old_value_away),
        TEST(a_value_that_is_still_good_gets_another_end),
        TEST(one_that_is_not_there_any_more_is_missing_and_the_lease_goes_on),
        TEST(one_that_has_been_replaced_is_missing_too),
        TEST(a_full_server_lets_a_value_go_on),
        TEST(a_fill_of_nothing_hands_the_load_on),
        TEST(a_value_that_cannot_be_stored_hands_the_load_on),
        TEST(a_fill_without_the_lock_stores_nothing),
        TEST(the_first_256_are_told_of_a_value),
        TEST(to_forget_ends_the_load_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
