/* SPDX-License-Identifier: MIT */
/* holds_test.c - holds that are too short to be told one by one are all told in the end, however long they are together. */
#include "tests/scene/scene.h"
#include "core/context/context.h"
#include "core/lock/lock.h"
#include "core/lock/table.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ROUNDS 6000

struct holder {
    hf_client *client;
    int64_t held_ns;
    int wrong;
};

static void tell(struct hfi_lock *lock, void *arg)
{
    (void)arg;
    hfi_lock_tell_holds(lock);
}

static void hold_shortly(void *arg)
{
    struct holder *holder = arg;
    for (int i = 0; i < ROUNDS; i++) {
        hf_lease *lease;
        holder->wrong += hf_lock_acquire(holder->client, "n", HF_LOCK(.linger_ms = 1000), &lease, NULL) != HF_OK;
        int64_t since = sim.now;
        sim_sleep(HFI_MS * 9 / 10);
        holder->held_ns += sim.now - since;
        holder->wrong += hf_lease_release(lease, NULL) != HF_OK;
    }
    hfi_table_each(holder->client, tell, NULL);
}

static void short_holds_add_up(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    struct holder holder = {.client = process->client};
    hft_run(process, hold_shortly, &holder);
    assert_int_equal(holder.wrong, 0);
    assert_true(holder.held_ns > UINT32_MAX);
    int64_t told_ns = (int64_t)atomic_load(&holder.client->holds.sum_ns);
    assert_true(told_ns >= holder.held_ns);
    assert_true(told_ns < holder.held_ns + holder.held_ns / 100);
    assert_int_equal(atomic_load(&holder.client->holds.counts[0]), ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(short_holds_add_up, hft_scene_begin, hft_scene_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
