/* SPDX-License-Identifier: MIT */
/* wakes_test.c - every wake-up that core owes a thread comes, 12,000 times in one process of each kind: one that is
 * lost once in 10,000 shows as a call that takes longer than its answer. */
#include "tests/scene/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 12000

struct worker { /* a thread that makes the same calls again and again */
    struct sim_process *process;
    hf_lock_options options;
    hf_cancel *cancel;
    int rounds;
    int64_t holds, rests; /* ns */
    hf_status expected;
    int64_t longest_take, longest_release; /* ns */
    int wrong;                             /* calls that said something else */
    bool over;
};

static void longest(int64_t *most, int64_t since)
{
    if (sim.now - since > *most)
        *most = sim.now - since;
}

static void work(void *arg)
{
    struct worker *worker = arg;
    for (int i = 0; i < worker->rounds; i++) {
        hf_lease *lease;
        int64_t began = sim.now;
        hf_status status = hf_lock_acquire(worker->process->client, "n", &worker->options, &lease, NULL);
        longest(&worker->longest_take, began);
        worker->wrong += status != worker->expected;
        sim_sleep(worker->holds);
        began = sim.now;
        if (status == HF_OK)
            worker->wrong += hf_lease_release(lease, NULL) != HF_OK;
        longest(&worker->longest_release, began);
        sim_sleep(worker->rests);
    }
    worker->over = true;
}

static void start(struct worker *worker, struct sim_process *process, const hf_lock_options *options, hf_status expected)
{
    *worker = (struct worker){.process = process,
                              .options = *options,
                              .rounds = ROUNDS,
                              .holds = HFI_MS / 20,
                              .rests = HFI_MS / 20,
                              .expected = expected};
    sim_thread_start(process, work, worker);
}

/* All are through, and no call took longer than that. */
static void finish(struct worker *workers, int count, double take_ms, double release_ms)
{
    for (int i = 0; i < count; i++) {
        for (int64_t until = sim.now + 3600 * 1000 * HFI_MS; !workers[i].over && sim.now < until;)
            hft_pass_ms(100);
        assert_true(workers[i].over);
        assert_int_equal(workers[i].wrong, 0);
        print_message("longest: acquire %.2f ms, release %.2f ms\n", (double)workers[i].longest_take / HFI_MS,
                      (double)workers[i].longest_release / HFI_MS);
        assert_true((double)workers[i].longest_take < take_ms * HFI_MS);
        assert_true((double)workers[i].longest_release < release_ms * HFI_MS);
    }
}

/* A round trip, a wake, and the first time a connection that is made. */
static void an_acquire_is_woken_by_its_answer(void **state)
{
    (void)state;
    struct worker alone;
    start(&alone, hft_process(NULL), HF_LOCK(.lease_ms = 60000), HF_OK);
    finish(&alone, 1, 4, 1);
}

static void a_busy_try_is_woken_by_its_answer(void **state)
{
    (void)state;
    struct worker other;
    (void)hft_must_take(hft_process(NULL), "n", HF_LOCK(.lease_ms = 60000));
    start(&other, hft_process(NULL), HF_LOCK(.wait_ms = 0), HF_BUSY);
    finish(&other, 1, 4, 1);
}

static void a_thread_is_woken_by_the_one_before_it(void **state)
{
    (void)state;
    struct worker workers[3];
    struct sim_process *process = hft_process(NULL);
    for (int i = 0; i < 3; i++)
        start(&workers[i], process, HF_LOCK(.lease_ms = 60000, .wait_ms = HF_FOREVER), HF_OK);
    finish(workers, 3, 4, 1);
}

/* Another arriving thread would wake it too, so none arrives: a thread that has released rests for longer than the
 * other may wait. */
static void a_thread_that_is_called_is_woken(void **state)
{
    (void)state;
    struct worker workers[2];
    struct sim_process *process = hft_process(NULL);
    for (int i = 0; i < 2; i++) {
        start(&workers[i], process, HF_LOCK(.lease_ms = 60000, .wait_ms = HF_FOREVER), HF_OK);
        workers[i].holds = 3 * HFI_MS;
        workers[i].rests = 2 * HFI_MS;
    }
    finish(workers, 2, 4.5, 1);
}

static void a_process_is_woken_by_the_one_before_it(void **state)
{
    (void)state;
    struct worker workers[2];
    for (int i = 0; i < 2; i++)
        start(&workers[i], hft_process(NULL), HF_LOCK(.lease_ms = 60000, .wait_ms = HF_FOREVER), HF_OK);
    finish(workers, 2, 4, 1);
}

static void fire(void *what, int64_t number)
{
    struct worker *worker = what;
    if (worker->over)
        return;
    hf_cancel_fire(worker->cancel);
    sim_at(sim.now + 2 * HFI_MS, sim.self, fire, worker, number + 1);
}

static void wait_and_be_cancelled(void *arg)
{
    struct worker *worker = arg;
    worker->wrong += hf_cancel_open(worker->process->client, &worker->cancel, NULL) != HF_OK;
    worker->options.cancel = worker->cancel;
    sim_at(sim.now + HFI_MS, sim.self, fire, worker, 0);
    for (int i = 0; i < worker->rounds; i++) {
        hf_lease *lease;
        int64_t began = sim.now;
        worker->wrong += hf_lock_acquire(worker->process->client, "n", &worker->options, &lease, NULL) != HF_CANCELED;
        longest(&worker->longest_take, began);
        hf_cancel_reset(worker->cancel);
        sim_sleep(HFI_MS / 20);
    }
    worker->over = true;
}

static void a_waiter_is_woken_by_its_cancel(void **state)
{
    (void)state;
    (void)hft_must_take(hft_process(NULL), "n", HF_LOCK(.lease_ms = 60000));
    struct worker worker = {.process = hft_process(NULL),
                            .options = *HF_LOCK(.wait_ms = HF_FOREVER),
                            .rounds = ROUNDS};
    sim_thread_start(worker.process, wait_and_be_cancelled, &worker);
    finish(&worker, 1, 4, 1);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(an_acquire_is_woken_by_its_answer), TEST(a_busy_try_is_woken_by_its_answer),
        TEST(a_thread_is_woken_by_the_one_before_it),         TEST(a_thread_that_is_called_is_woken),
        TEST(a_process_is_woken_by_the_one_before_it),        TEST(a_waiter_is_woken_by_its_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
