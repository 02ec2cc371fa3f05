/* SPDX-License-Identifier: MIT */
/* scripts_many_test.c - the script that takes several locks, all or none. Their keys: K with Q and W, then V with M. */
#include "tests/scene/script_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define TWO "6 K Q W F V M "

static void free_names_are_taken_with_a_block_of_fences_each(void **state)
{
    (void)state;
    SAYS(take_many, TWO "now 500 A B", "GRANTED now F+2");
    IS("GET K", "A");
    IS("GET V", "B");
    IS("PTTL K", "500");
    IS("PTTL V", "500");
}

static void one_that_is_held_or_waited_for_leaves_all_free(void **state)
{
    (void)state;
    (void)tell("SET V C PX 500");
    SAYS(take_many, TWO "now 500 A B", "BUSY now 2");
    IS("GET K", "-");
    (void)tell("DEL V");
    (void)tell("ZADD M 1 C");
    SAYS(take_many, TWO "now 500 A B", "BUSY now 2");
    IS("GET K", "-");
    (void)tell("DEL M");
    wait_in_line("C");
    SAYS(take_many, TWO "now 500 A B", "BUSY now 1");
    IS("GET V", "-");
    (void)tell("DEL Q");
    (void)tell("HSET K a b"); /* another program's key, whatever its type */
    SAYS(take_many, TWO "now 500 A B", "BUSY now 1");
    IS("GET V", "-");
}

static void a_late_question_takes_nothing(void **state)
{
    (void)state;
    SAYS(take_many, TWO "0 500 A B", "LATE now");
    IS("GET K", "-");
}

static void a_counter_that_is_behind_is_put_ahead_for_all_blocks(void **state)
{
    (void)state;
    (void)tell("DEL F");
    SAYS(take_many, TWO "now 500 A B", "GRANTED now F+2");
    (void)tell("DEL F");
    SAYS(fence_floor, "1 F 0 0", "now F+0");
    (void)tell("INCRBY F -2048"); /* now the second block would be ahead, the first behind */
    (void)tell("DEL K V");
    SAYS(take_many, TWO "now 500 A B", "GRANTED now F+3");
}

static void without_a_counter_nothing_is_taken(void **state)
{
    (void)state;
    (void)tell("SET F X");
    SAYS(take_many, TWO "now 500 A B", "FOREIGN now fence");
    IS("GET K", "-");
    IS("GET V", "-");
}

static void a_full_server_gives_all_of_them(void **state)
{
    (void)state;
    hft_fill_memory(true);
    SAYS(take_many, TWO "now 500 A B", "GRANTED now F+2");
    IS("GET V", "B");
}

static void a_right_that_is_missing_takes_nothing(void **state)
{
    static const char *const rights[] = {"EXISTS", "PEXPIRE", "INCRBY"};
    for (int i = 0; i < 3; i++) {
        (void)hft_scripts_begin(state);
        hft_forbid(rights[i], NULL);
        SAYS(take_many, TWO "now 500 A B", NO_RIGHT);
        hft_forbid(NULL, NULL);
        IS("GET K", "-");
        IS("GET V", "-");
    }
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup(test, hft_scripts_begin)
    const struct CMUnitTest tests[] = {
        CASE(free_names_are_taken_with_a_block_of_fences_each),
        CASE(one_that_is_held_or_waited_for_leaves_all_free),
        CASE(a_late_question_takes_nothing),
        CASE(a_counter_that_is_behind_is_put_ahead_for_all_blocks),
        CASE(without_a_counter_nothing_is_taken),
        CASE(a_full_server_gives_all_of_them),
        CASE(a_right_that_is_missing_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
