/* SPDX-License-Identifier: MIT */
/* versions_test.c - do the books of values object to what is too old? They are told wrong histories, and right ones. */
#include "tests/sim/versions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NEVER INT64_MAX

static struct sim_versions versions;
static int objections;
static char objection[300];

static void object(const char *what)
{
    objections++;
    (void)strncpy(objection, what, sizeof objection - 1);
}

static int begin(void **state)
{
    (void)state;
    objections = 0;
    sim_versions_begin(&versions, object);
    return 0;
}

static void assert_good(int64_t number, int64_t least, int64_t own)
{
    sim_versions_given(&versions, 0, number, "NEAR", least, own);
    assert_int_equal(objections, 0);
}

static void assert_objects(int64_t number, int64_t least, int64_t own, const char *promise)
{
    sim_versions_given(&versions, 0, number, "NEAR", least, own);
    assert_int_equal(objections, 1);
    assert_non_null(strstr(objection, promise));
    objections = 0;
}

static void what_was_replaced_too_long_ago_is_seen(void **state)
{
    (void)state;
    sim_versions_is(&versions, 0, 1, NEVER, 100);
    assert_good(1, 90, -1);
    assert_good(1, 5000, -1);
    sim_versions_is(&versions, 0, 2, NEVER, 200);
    assert_good(1, 200, -1);
    assert_objects(1, 201, -1, "no-old-value");
    assert_good(2, 201, -1);
}

static void what_nobody_has_written_is_seen(void **state)
{
    (void)state;
    sim_versions_is(&versions, 0, 1, NEVER, 100);
    sim_versions_is(&versions, 1, 2, NEVER, 100);
    assert_objects(2, 0, -1, "no-old-value"); /* that is another page's */
    assert_objects(SIM_NONE_MARK, 0, -1, "no-old-value");
    assert_int_equal(sim_versions_since(&versions, 0, 2), -1);
    assert_int_equal(sim_versions_since(&versions, 1, 2), 100);
}

static void an_end_counts_when_it_is_due_and_not_when_it_is_noticed(void **state)
{
    (void)state;
    sim_versions_is(&versions, 0, 1, 150, 100);
    sim_versions_is(&versions, 0, SIM_NO_VALUE, NEVER, 900);
    assert_good(1, 150, -1);
    assert_objects(1, 151, -1, "no-old-value");
    sim_versions_is(&versions, 0, 2, 1150, 1000);
    sim_versions_is(&versions, 0, 2, 1050, 1010); /* it is to end earlier */
    sim_versions_is(&versions, 0, SIM_NO_VALUE, NEVER, 2000);
    assert_objects(2, 1051, -1, "no-old-value");
    sim_versions_is(&versions, 0, 3, 9000, 3000);
    sim_versions_is(&versions, 0, SIM_NO_VALUE, NEVER, 3100); /* it was deleted long before its end */
    assert_objects(3, 3101, -1, "no-old-value");
}

static void what_a_failover_brings_back_is_there_again(void **state)
{
    (void)state;
    sim_versions_is(&versions, 0, 1, NEVER, 100);
    sim_versions_is(&versions, 0, 2, NEVER, 200);
    sim_versions_is(&versions, 0, 1, NEVER, 300);
    assert_good(1, 4000, -1);
    assert_good(2, 300, -1);
    assert_objects(2, 301, -1, "no-old-value");
}

static void what_its_process_has_replaced_is_seen_at_once(void **state)
{
    (void)state;
    sim_versions_is(&versions, 0, 1, NEVER, 100);
    sim_versions_is(&versions, 0, SIM_NONE_MARK, NEVER, 200);
    assert_good(1, 150, 199);
    assert_objects(1, 150, 200, "own-writes-seen");
    assert_good(SIM_NONE_MARK, 150, 200);
    sim_versions_is(&versions, 0, 3, NEVER, 300);
    assert_objects(SIM_NONE_MARK, 150, 300, "own-writes-seen");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_was_replaced_too_long_ago_is_seen, begin),
        cmocka_unit_test_setup(what_nobody_has_written_is_seen, begin),
        cmocka_unit_test_setup(an_end_counts_when_it_is_due_and_not_when_it_is_noticed, begin),
        cmocka_unit_test_setup(what_a_failover_brings_back_is_there_again, begin),
        cmocka_unit_test_setup(what_its_process_has_replaced_is_seen_at_once, begin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
