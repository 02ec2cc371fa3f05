/* SPDX-License-Identifier: MIT */
/* objections.c - see objections.h. */
#include "tests/sim/objections.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct sim_oracle oracle;
int objections;
static char objection[300];

static void object(const char *what)
{
    objections++;
    (void)strncpy(objection, what, sizeof objection - 1);
}

int begin(void **state)
{
    (void)state;
    objections = 0;
    sim_oracle_begin(&oracle, object);
    return 0;
}

void assert_objects(const char *promise, const char *words)
{
    assert_int_equal(objections, 1);
    assert_int_equal(objection[0], '[');
    assert_int_equal(strncmp(objection + 1, promise, strlen(promise)), 0);
    assert_non_null(strstr(objection, words));
    objections = 0;
}
