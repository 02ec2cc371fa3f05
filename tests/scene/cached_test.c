/* SPDX-License-Identifier: MIT */
/* cached_test.c - what one lease leaves for the next one is somebody's, once, also while the client closes; and an acquire
 * that takes it and gets no lease gives it back. (Linked so that hfi_perturb is the one below.) */
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

static int begin_scene(void **state)
{
    (void)begin(state);
    return hft_scene_begin(state);
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

/* ---- a handle that an acquire takes in advance ---- */

static int left(hf_client *of)
{
    int count = 0;
    for (int i = 0; i < HFI_CACHED; i++)
        count += atomic_load(&of->cached[i].handle) != NULL;
    return count;
}

static struct {
    hf_status first, beside, busy, again, next;
    bool same;
    int before, during, after_busy, after_again, at_last;
} seen;

static void look(void *arg)
{
    hf_client *own = arg;
    hf_lease *lease = NULL, *beside = NULL, *again = NULL;
    seen.before = left(own);
    seen.first = hf_lock_acquire(own, "n", HF_LOCK(.wait_ms = 1000, .reentrant = true), &lease, NULL);
    seen.beside = hf_lock_acquire(own, "beside", HF_LOCK(.wait_ms = 1000), &beside, NULL);
    seen.during = left(own);
    (void)hf_lease_release(beside, NULL);
    seen.busy = hf_lock_acquire(own, "taken", HF_LOCK(.wait_ms = 0), &beside, NULL);
    seen.after_busy = left(own);
    seen.again = hf_lock_acquire(own, "n", HF_LOCK(.wait_ms = 1000, .reentrant = true), &again, NULL);
    seen.same = again == lease;
    seen.after_again = left(own);
    (void)hf_lease_release(again, NULL);
    seen.next = hf_lock_acquire(own, "beside", HF_LOCK(.wait_ms = 1000), &beside, NULL);
    seen.at_last = left(own);
    (void)hf_lease_release(beside, NULL);
    (void)hf_lease_release(lease, NULL);
}

static void who_gets_no_lease_gives_the_handle_back(void **state)
{
    (void)state;
    struct sim_process *holder = hft_process(NULL), *process = hft_process(NULL);
    hf_lease *taken = hft_must_take(holder, "taken", HF_LOCK(.wait_ms = 1000));
    hft_run(process, look, process->client);
    assert_int_equal(seen.first, HF_OK);
    assert_int_equal(seen.beside, HF_OK);
    assert_int_equal(seen.next, HF_OK);
    assert_int_equal(seen.before, 0);
    assert_int_equal(seen.during, 0); /* both leases have theirs */
    assert_int_equal(seen.busy, HF_BUSY);
    assert_int_equal(seen.after_busy, 1);
    assert_int_equal(seen.again, HF_OK);
    assert_true(seen.same);
    assert_int_equal(seen.after_again, 1);
    assert_int_equal(seen.at_last, 0); /* it was the next lease's */
    assert_int_equal(hft_released(holder, taken), HF_OK);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, begin)
    const struct CMUnitTest tests[] = {
        TEST(what_is_left_is_taken_once),
        TEST(a_slot_has_room_for_one),
        TEST(nothing_is_left_with_a_client_that_closes),
        TEST(a_close_that_comes_between),
        cmocka_unit_test_setup_teardown(who_gets_no_lease_gives_the_handle_back, begin_scene, hft_scene_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
