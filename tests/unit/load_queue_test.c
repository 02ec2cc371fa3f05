/* SPDX-License-Identifier: MIT */
/* load_queue_test.c - which loads have a place in a loader thread's queue, and when one is tried again; jitter. */
#include "core/policy/freshness.h"
#include "core/policy/load_queue.h"

#include <holdfast/error.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS INT64_C(1000000)

static void a_key_has_one_job_and_a_full_queue_takes_no_other(void **state)
{
    (void)state;
    struct hfi_load_queue queue = {.loaders = 2, .queued = 127};
    assert_int_equal(hfi_load_queue_place(&queue, HFI_REFRESH, false, 0, 5 * MS), HFI_LOAD_NEW);
    assert_int_equal(hfi_load_queue_place(&queue, HFI_LOAD, false, 0, 5 * MS), HFI_LOAD_NEW);
    assert_int_equal(hfi_load_queue_place(&queue, HFI_LOAD, true, 0, 5 * MS), HFI_LOAD_JOINED);
    queue.queued = 128; /* 64 for each thread */
    assert_int_equal(hfi_load_queue_place(&queue, HFI_REFRESH, false, 0, 5 * MS), HFI_LOAD_FULL);
    assert_int_equal(hfi_load_queue_place(&queue, HFI_LOAD, false, 0, 5 * MS), HFI_LOAD_FULL);
    assert_int_equal(hfi_load_queue_place(&queue, HFI_REFRESH, true, 0, 5 * MS), HFI_LOAD_JOINED);
    queue.closed = true;
    assert_int_equal(hfi_load_queue_place(&queue, HFI_LOAD, true, 0, 5 * MS), HFI_LOAD_CLOSED);
}

static void a_refresh_pauses_after_a_failure_and_a_load_does_not(void **state)
{
    (void)state;
    struct hfi_load_queue queue = {.loaders = 1};
    assert_int_equal(hfi_load_queue_place(&queue, HFI_REFRESH, false, 100 * MS, 100 * MS - 1), HFI_LOAD_PAUSED);
    assert_int_equal(hfi_load_queue_place(&queue, HFI_REFRESH, false, 100 * MS, 100 * MS), HFI_LOAD_NEW);
    assert_int_equal(hfi_load_queue_place(&queue, HFI_LOAD, false, 100 * MS, 1 * MS), HFI_LOAD_NEW);
    assert_int_equal(hfi_load_queue_place(&queue, HFI_REFRESH, true, 100 * MS, 1 * MS), HFI_LOAD_JOINED); /* it runs */
}

static void the_pause_is_for_failures_alone(void **state)
{
    (void)state;
    static const hf_status none[] = {HF_OK, HF_BUSY, HF_TIMEOUT, HF_CANCELED, HF_CLOSED};
    static const hf_status some[] = {HF_LOAD_FAILED, HF_UNAVAILABLE, HF_UNKNOWN, HF_NOMEM, HF_INVALID};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_int_equal(hfi_load_queue_not_before(none[i], 1000, 7 * MS), 0);
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        assert_int_equal(hfi_load_queue_not_before(some[i], 1000, 7 * MS), 1007 * MS);
        assert_int_equal(hfi_load_queue_not_before(some[i], HF_OFF, 7 * MS), 0);
    }
}

static void a_thread_is_started_when_all_are_busy_and_no_more_than_there_may_be(void **state)
{
    (void)state;
    struct hfi_load_queue queue = {.loaders = 2};
    assert_false(hfi_load_queue_needs_thread(&queue)); /* nothing to do */
    queue.queued = 1;
    assert_true(hfi_load_queue_needs_thread(&queue));
    queue.threads = 1;
    assert_true(hfi_load_queue_needs_thread(&queue));
    queue.idle = 1;
    assert_false(hfi_load_queue_needs_thread(&queue));
    queue.idle = 0;
    queue.threads = 2;
    assert_false(hfi_load_queue_needs_thread(&queue));
}

static void who_waits_comes_before_a_refresh(void **state)
{
    (void)state;
    assert_int_equal(hfi_load_queue_next(true), HFI_LOAD);
    assert_int_equal(hfi_load_queue_next(false), HFI_REFRESH);
}

static void a_ttl_is_only_ever_shortened(void **state)
{
    (void)state;
    assert_int_equal(hfi_freshness_shortened(60000, 0, 0.999), 60000);
    assert_int_equal(hfi_freshness_shortened(60000, 0.1, 0), 60000);
    assert_int_equal(hfi_freshness_shortened(60000, 0.1, 0.5), 57000);
    assert_int_equal(hfi_freshness_shortened(1000, 0.9, 0.5), 550);
    assert_int_equal(hfi_freshness_shortened(1, 0.9, 0.999999), 1);
    assert_int_equal(hfi_freshness_shortened(10, 0.9, 0.9999999), 2); /* never nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_one_job_and_a_full_queue_takes_no_other),
        cmocka_unit_test(a_refresh_pauses_after_a_failure_and_a_load_does_not),
        cmocka_unit_test(the_pause_is_for_failures_alone),
        cmocka_unit_test(a_thread_is_started_when_all_are_busy_and_no_more_than_there_may_be),
        cmocka_unit_test(who_waits_comes_before_a_refresh),
        cmocka_unit_test(a_ttl_is_only_ever_shortened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
