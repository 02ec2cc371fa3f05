/* SPDX-License-Identifier: MIT */
/* scripts_look_test.c - the script that only reads: the holder of a lock, its remaining time, the number of waiters. */
#include "tests/scene/script_stand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define LOOK "2 K Q"

static void who_holds_a_lock_how_long_and_how_many_wait(void **state)
{
    (void)state;
    SAYS(look, LOOK, "FREE");
    (void)tell("SET K A PX 500");
    SAYS(look, LOOK, "HELD A 500 0");
    wait_in_line("BC");
    SAYS(look, LOOK, "HELD A 500 2");
    (void)tell("SET K X");
    SAYS(look, LOOK, "HELD X -1 2");
    (void)tell("DEL K");
    SAYS(look, LOOK, "FREE"); /* whoever waits */
}

static void a_key_of_another_type_is_named(void **state)
{
    (void)state;
    (void)tell("HSET K a b");
    SAYS(look, LOOK, "FOREIGN lock");
    (void)tell("DEL K");
    (void)tell("SET K A PX 500");
    (void)tell("SET Q X");
    SAYS(look, LOOK, "HELD A 500 0"); /* nobody can wait by this queue */
}

static void what_may_not_be_looked_at_is_not_called_free(void **state)
{
    (void)state;
    hft_forbid("GET", "K");
    SAYS(look, LOOK, NO_RIGHT);
    (void)tell("SET K A PX 500");
    SAYS(look, LOOK, NO_RIGHT);
    hft_forbid("ZCARD", NULL);
    wait_in_line("B");
    SAYS(look, LOOK, "HELD A 500 0"); /* the holder is worth more than the number */
}

static void a_full_server_answers_a_look(void **state)
{
    (void)state;
    (void)tell("SET K A PX 500");
    wait_in_line("B");
    hft_fill_memory(true);
    SAYS(look, LOOK, "HELD A 500 1");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, hft_scripts_begin)
    const struct CMUnitTest tests[] = {
        TEST(who_holds_a_lock_how_long_and_how_many_wait),
        TEST(a_key_of_another_type_is_named),
        TEST(what_may_not_be_looked_at_is_not_called_free),
        TEST(a_full_server_answers_a_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
