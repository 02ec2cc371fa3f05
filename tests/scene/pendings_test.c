/* SPDX-License-Identifier: MIT */
/* pendings_test.c - when a pending is decided and what it has asked by then, to the tenth of a millisecond. */
#include "tests/scene/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct start { /* a pending, in a process whose threads make one call each */
    struct sim_process *process;
    const char *name;
    hf_lock_options options;
    hf_pending *pending;
    hf_lease *lease;
    hf_status status;
    int dones;
    int64_t began, returned, told; /* true time */
};

static void note_done(hf_pending *pending, void *arg)
{
    struct start *start = arg;
    start->dones += pending == start->pending;
    start->told = sim.now;
}

static void begin(void *arg)
{
    struct start *start = arg;
    start->began = sim.now;
    start->status = hf_lock_acquire_start(start->process->client, start->name, &start->options, note_done, start,
                                          &start->pending, NULL);
    start->returned = sim.now;
}

static void take(void *arg)
{
    struct start *start = arg;
    start->status = hf_pending_take(start->pending, &start->lease, NULL);
}

static void must_start(struct start *start, struct sim_process *process, const char *name, const hf_lock_options *options)
{
    *start = (struct start){.process = process, .name = name, .options = *options};
    hft_run(process, begin, start);
    assert_int_equal(start->status, HF_OK);
    assert_int_equal(start->returned, start->began); /* nothing in it waits */
}

static hf_status taken(struct start *start)
{
    hft_run(start->process, take, start);
    return start->status;
}

static void the_next_in_the_queue_is_told_one_message_after_the_release(void **state)
{
    (void)state;
    struct sim_process *a = hft_process(NULL), *b = hft_process(NULL);
    struct start next;
    hf_lease *lease = hft_must_take(a, "n", HF_LOCK(.wait_ms = 5000));
    must_start(&next, b, "n", HF_LOCK(.wait_ms = HF_FOREVER));
    hft_pass_ms(100);
    assert_int_equal(next.dones, 0);
    int64_t released = sim.now;
    assert_int_equal(hft_released(a, lease), HF_OK);
    HFT_UNTIL(next.dones == 1);
    assert_in_range(next.told - released, 2 * HFT_TRIP_NS, 3 * HFI_MS);
    hft_pass_ms(60000); /* renewed six leases long, though nobody asks for it */
    assert_int_equal(taken(&next), HF_OK);
    assert_true(hft_is_valid(b, next.lease));
    assert_int_equal(next.dones, 1);
    assert_int_equal(hft_released(b, next.lease), HF_OK);
    assert_string_equal(hft_key("hf:{n}"), "");
}

static void wait_ms_is_over_when_it_is_over_and_the_place_is_left(void **state)
{
    (void)state;
    struct sim_process *a = hft_process(NULL), *b = hft_process(NULL);
    struct start next;
    hf_lease *lease = hft_must_take(a, "n", HF_LOCK(.wait_ms = 5000));
    must_start(&next, b, "n", HF_LOCK(.wait_ms = 700));
    HFT_UNTIL(next.dones == 1);
    assert_in_range(next.told - next.began, 700 * HFI_MS, 707 * HFI_MS);
    assert_int_equal(hft_stats(b).waiting, 0);
    assert_int_equal(taken(&next), HF_TIMEOUT);
    hft_pass_ms(5);
    assert_string_equal(hft_answered("ZRANGE hf:queue:{n}:hf:{n} 0 -1"), "");
    assert_int_equal(hft_released(a, lease), HF_OK);
}

/* Its lease would be over, or nearly: what was granted goes back, and the entry asks once more by itself. */
static void a_grant_that_comes_too_late_is_given_back_and_asked_for_again(void **state)
{
    (void)state;
    struct sim_process *a = hft_process(HF_CLIENT(.command_ms = 4000, .lanes = 1));
    struct start late;
    assert_int_equal(hft_released(a, hft_must_take(a, "n", HF_LOCK(.wait_ms = 5000))), HF_OK);
    int released = hft_listed(a, "release");
    must_start(&late, a, "n", HF_LOCK(.lease_ms = 500, .wait_ms = 10000));
    hft_stall_down(hft_lock_wire(a), 1000);
    HFT_UNTIL(late.dones == 1);
    assert_true(late.told - late.began >= 1000 * HFI_MS);
    assert_true(hft_listed(a, "release") > released);
    assert_int_equal(taken(&late), HF_OK);
    assert_true(hft_is_valid(a, late.lease));
    assert_int_equal(hft_released(a, late.lease), HF_OK);
    hft_pass_ms(1000);
    assert_string_equal(hft_key("hf:{n}"), "");
}

static void what_is_granted_to_one_that_was_canceled_goes_back_when_the_answer_comes(void **state)
{
    (void)state;
    struct sim_process *a = hft_process(NULL);
    struct start asks;
    must_start(&asks, a, "n", HF_LOCK(.wait_ms = 10000));
    assert_int_equal(taken(&asks), HF_CANCELED);
    assert_null(asks.lease);
    hft_pass_ms(5);
    assert_true(hft_ran("release") > 0);
    assert_string_equal(hft_key("hf:{n}"), "");
    assert_int_equal(asks.dones, 0);
    assert_int_equal(hft_stats(a).waiting, 0);
}

/* The first of three leaves: its process keeps its place, and the next in it is asked for with the next one's lease. */
static void another_of_its_process_keeps_the_place(void **state)
{
    (void)state;
    struct sim_process *a = hft_process(NULL), *b = hft_process(NULL), *c = hft_process(NULL);
    struct start first, second, far;
    hf_lease *lease = hft_must_take(a, "n", HF_LOCK(.wait_ms = 5000));
    must_start(&first, b, "n", HF_LOCK(.wait_ms = HF_FOREVER));
    hft_pass_ms(10);
    must_start(&far, c, "n", HF_LOCK(.wait_ms = HF_FOREVER));
    hft_pass_ms(10);
    must_start(&second, b, "n", HF_LOCK(.wait_ms = HF_FOREVER));
    assert_int_equal(taken(&first), HF_CANCELED);
    hft_pass_ms(10);
    assert_int_equal(hft_released(a, lease), HF_OK);
    HFT_UNTIL(second.dones == 1);
    assert_int_equal(far.dones, 0);
    assert_int_equal(taken(&second), HF_OK);
    assert_int_equal(hft_released(b, second.lease), HF_OK);
    HFT_UNTIL(far.dones == 1);
    assert_int_equal(taken(&far), HF_OK);
    assert_int_equal(hft_released(c, far.lease), HF_OK);
}

static void a_close_tells_each_and_takes_back_what_nobody_took(void **state)
{
    (void)state;
    struct sim_process *a = hft_process(NULL), *b = hft_process(NULL);
    struct start granted, waits;
    hf_lease *lease = hft_must_take(b, "theirs", HF_LOCK(.wait_ms = 5000));
    must_start(&granted, a, "n", HF_LOCK(.wait_ms = HF_FOREVER));
    must_start(&waits, a, "theirs", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL(granted.dones == 1);
    assert_int_equal(hft_close(a), HF_OK);
    assert_int_equal(waits.dones, 1);
    assert_string_equal(hft_key("hf:{n}"), "");
    assert_string_equal(hft_answered("ZRANGE hf:queue:{theirs}:hf:{theirs} 0 -1"), "");
    assert_int_equal(taken(&granted), HF_CLOSED);
    assert_int_equal(taken(&waits), HF_CLOSED);
    assert_null(granted.lease);
    assert_int_equal(hft_released(b, lease), HF_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, hft_scene_begin, hft_scene_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_next_in_the_queue_is_told_one_message_after_the_release),
        TEST(wait_ms_is_over_when_it_is_over_and_the_place_is_left),
        TEST(a_grant_that_comes_too_late_is_given_back_and_asked_for_again),
        TEST(what_is_granted_to_one_that_was_canceled_goes_back_when_the_answer_comes),
        TEST(another_of_its_process_keeps_the_place),
        TEST(a_close_tells_each_and_takes_back_what_nobody_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
