/* SPDX-License-Identifier: MIT */
/* cached_test.c - what one lease leaves for the next one is somebody's, once, also while the client closes. (Linked so that
 * hfi_perturb is the one below.) */
#include "tests/scene/scene.h"
#include "core/context/cached.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static hf_client client;
static _Atomic(void *) slot;
static char one, other;
static enum { STAYS, CLOSES_AND_EMPTIES, CLOSES } at_mark;
static void *emptied;

void __wrap_hfi_perturb(const char *place);

void __wrap_hfi_perturb(const char *place)
{
    if (strcmp(place, "memory-cached") != 0 || at_mark == STAYS)
        return;
    atomic_store(&client.closing, true);
    if (at_mark == CLOSES_AND_EMPTIES)
        emptied = hfi_cached_take(&slot);
}

static int begin(void **state)
{
    (void)state;
    atomic_store(&client.closing, false);
    atomic_store(&slot, NULL);
    at_mark = STAYS;
    emptied = NULL;
    return 0;
}

static void what_is_left_is_taken_once(void **state)
{
    (void)state;
    assert_null(hfi_cached_take(&slot));
    assert_null(hfi_cached_leave(&client, &slot, &one));
    assert_ptr_equal(hfi_cached_take(&slot), &one);
    assert_null(hfi_cached_take(&slot));
}

static void a_slot_has_room_for_one(void **state)
{
    (void)state;
    assert_null(hfi_cached_leave(&client, &slot, &one));
    assert_ptr_equal(hfi_cached_leave(&client, &slot, &other), &other);
    assert_ptr_equal(hfi_cached_take(&slot), &one);
}

static void nothing_is_left_with_a_client_that_closes(void **state)
{
    (void)state;
    atomic_store(&client.closing, true);
    assert_ptr_equal(hfi_cached_leave(&client, &slot, &one), &one);
    assert_null(atomic_load(&slot));
}

static void a_close_that_comes_between(void **state)
{
    (void)state;
    at_mark = CLOSES_AND_EMPTIES; /* the slots are emptied with it in one of them */
    assert_null(hfi_cached_leave(&client, &slot, &one));
    assert_ptr_equal(emptied, &one);
    assert_null(atomic_load(&slot));

    (void)begin(state);
    at_mark = CLOSES; /* they were emptied before it came */
    assert_ptr_equal(hfi_cached_leave(&client, &slot, &one), &one);
    assert_null(atomic_load(&slot));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, begin)
    const struct CMUnitTest tests[] = {
        TEST(what_is_left_is_taken_once),
        TEST(a_slot_has_room_for_one),
        TEST(nothing_is_left_with_a_client_that_closes),
        TEST(a_close_that_comes_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
