/* SPDX-License-Identifier: MIT */
/* stopped_test.c - threads that are stopped between two steps for longer than anything that depends on the second
 * one. (Linked so that hfi_perturb is the one below.) */
#include "core/policy/fence.h"
#include "tests/scene/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *stop_at; /* this mark, once; NULL: nowhere */
static int64_t stop_for;
static struct sim_process *failing;

void __wrap_hfi_perturb(const char *place);

void __wrap_hfi_perturb(const char *place)
{
    if (stop_at == NULL || strcmp(place, stop_at) != 0)
        return;
    stop_at = NULL;
    sim_stop(stop_for);
}

static void count_losses(hf_lease *lease, const hf_event *event, void *count)
{
    (void)lease;
    if (event->kind == HF_EVENT_LOST && event->reason == HF_REASON_EXPIRED)
        ++*(int *)count;
}

/* A lease of 3 s whose renewal has been answered, while the thread that moves its V forward is stopped for 2.5 s. */
static hf_lease *taken_and_stopped(struct sim_process *process, int *losses)
{
    hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.lease_ms = 3000, .on_event = count_losses, .arg = losses));
    stop_at = "end-to-raise";
    stop_for = 2500 * HFI_MS;
    HFT_UNTIL(stop_at == NULL);
    return lease;
}

/* Its renewal was answered long before V, and raises V long after it. */
static void a_lease_that_was_seen_to_be_over_is_over(void **state)
{
    (void)state;
    int losses = 0;
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = taken_and_stopped(process, &losses);
    assert_true(hft_is_valid(process, lease));
    HFT_UNTIL(!hft_is_valid(process, lease));
    assert_int_equal(losses, 0);
    hft_pass_ms(1000);
    assert_false(hft_is_valid(process, lease));
    assert_int_equal(losses, 1);
    assert_int_equal(hft_stats(process).lost, 1);
    assert_string_equal(hft_key("hf:{n}"), ""); /* nobody has it: it has been given back */
    assert_int_equal(hft_released(process, lease), HF_LOST);
}

/* No thread has looked, and the key was extended in time: no other process can have been granted the lock. */
static void a_lease_that_no_thread_found_over_goes_on(void **state)
{
    (void)state;
    int losses = 0;
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = taken_and_stopped(process, &losses);
    hft_pass_ms(2510);
    assert_true(hft_is_valid(process, lease));
    assert_int_equal(losses, 0);
    assert_int_equal(hft_released(process, lease), HF_OK);
}

/* The thread that raises the counter is stopped before it lists the floor, and a failover lost a second of the
 * counter. A grant 1.5 s after the last floor has the counter raised first; one after 0.8 s is accepted. */
static void a_native_grant_without_a_floor_before_it_is_not_believed(void **state)
{
    (void)state;
    static const int ages_ms[] = {1500, 800};
    for (int i = 0; i < 2; i++) {
        struct hft_actor first, second;
        char text[60];
        (void)hft_scene_begin(NULL);
        struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1));
        assert_int_equal(hft_released(process, hft_must_take(process, "x", NULL)), HF_OK);
        hft_pass_ms(ages_ms[i]);
        if (i == 0) {
            (void)snprintf(text, sizeof text, "SET hf:fence %lld", (long long)(sim_server_us() + 1000000) * HFI_FENCE_BLOCK);
            hft_tell(text);
        }
        stop_at = "floor-to-list";
        stop_for = 50 * HFI_MS;
        hft_take(&first, process, "a", NULL);
        HFT_UNTIL(stop_at == NULL);
        int64_t least = (sim_server_us() + 2000000) * HFI_FENCE_BLOCK;
        hft_take(&second, process, "b", NULL);
        HFT_UNTIL(second.ended != 0);
        assert_int_equal(second.status, HF_OK);
        assert_int_equal(hft_listed(process, "more"), i == 0 ? 1 : 0);
        assert_int_equal(hf_lease_fence(second.lease) > least, i == 0);
        HFT_UNTIL(first.ended != 0);
        assert_int_equal(first.status, HF_OK);
    }
}

/* While the lane was idle the server's clock was corrected, and a failover lost some seconds: the time that the lane
 * was told a minute ago dates no grant. */
static void an_old_time_dates_no_grant(void **state)
{
    (void)state;
    struct hft_actor first, second;
    char text[60];
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1));
    assert_int_equal(hft_released(process, hft_must_take(process, "x", NULL)), HF_OK);
    hft_pass_ms(60000);
    sim_server_step(10000000);
    (void)snprintf(text, sizeof text, "SET hf:fence %lld", (long long)(sim_server_us() - 1000000) * HFI_FENCE_BLOCK);
    hft_tell(text);
    int64_t least = (sim_server_us() + 1000000) * HFI_FENCE_BLOCK;
    stop_at = "floor-to-list";
    stop_for = 50 * HFI_MS;
    hft_take(&first, process, "a", NULL);
    HFT_UNTIL(stop_at == NULL);
    hft_take(&second, process, "b", NULL);
    HFT_UNTIL(second.ended != 0);
    assert_int_equal(second.status, HF_OK);
    assert_true(hf_lease_fence(second.lease) > least);
    HFT_UNTIL(first.ended != 0);
}

/* The acquire arrives 1.5 s after the handshake's floor, and a failover lost half of what that had raised the
 * counter by. Its round trip, the first one, is no measure of how long the road is. */
static void a_stall_is_not_the_length_of_the_road(void **state)
{
    (void)state;
    struct hft_actor one;
    char text[60];
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1, .command_ms = 5000));
    (void)snprintf(text, sizeof text, "SET hf:fence %lld", (long long)(sim_server_us() + 1000000) * HFI_FENCE_BLOCK);
    hft_tell(text);
    int64_t least = (sim_server_us() + 2000000) * HFI_FENCE_BLOCK;
    hft_stall_up(hft_lock_wire(process), 1500);
    hft_take(&one, process, "x", NULL);
    HFT_UNTIL(one.ended != 0);
    assert_int_equal(one.status, HF_OK);
    assert_int_equal(hft_listed(process, "more"), 1);
    assert_true(hf_lease_fence(one.lease) > least);
}

static hf_status fail_to_load(hf_loading *loading, void *arg)
{
    (void)loading;
    (void)arg;
    sim_server_refuse(SIM_NO_DISK);
    return HF_LOAD_FAILED;
}

static void fetch_in_vain(void *name)
{
    hf_value *value = NULL;
    assert_int_not_equal(hf_fetch(failing->client, name, HF_FETCH(.load = fail_to_load), &value, NULL), HF_OK);
}

/* The thread of a retirement's alarm stops between the mutex and the flush, and the answer ends retirement and lock
 * meanwhile. (AddressSanitizer sees what it does then.) */
static void an_alarm_whose_lock_is_gone_flushes_its_lane(void **state)
{
    (void)state;
    static char name[] = "k", other[] = "other";
    failing = hft_process(HF_CLIENT(.lanes = 1, .command_ms = 200));
    hft_run(failing, fetch_in_vain, name);
    hft_pass_ms(20);
    sim_server_refuse(SIM_TAKES_ALL);
    stop_at = "closing-rings";
    stop_for = HFI_MS;
    HFT_UNTIL(stop_at == NULL);
    stop_at = "left-to-flush";
    stop_for = 100 * HFI_MS;
    HFT_UNTIL(stop_at == NULL);
    hft_run(failing, fetch_in_vain, other); /* flushes the same lane */
    sim_server_refuse(SIM_TAKES_ALL);
    hft_pass_ms(10);
    assert_string_equal(hft_key("hf:fetch:{k}"), "");
    hft_pass_ms(500);
}

static bool is_over(const struct hft_actor *actor)
{
    return actor->ended != 0;
}

/* Two threads of one task wait. The lease of the first one is over before it looks at it; by then the second one holds
 * the lock, and the first one re-enters that lease. */
static void a_lease_that_came_too_late_and_a_re_entry(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.owner = 8));
    struct hft_actor first, second;
    hft_take(&first, process, "n", HF_LOCK(.owner = 7, .reentrant = true, .wait_ms = 20000, .max_hold_ms = 200));
    hft_pass_ms(10);
    hft_take(&second, process, "n", HF_LOCK(.owner = 7, .reentrant = true, .wait_ms = 20000));
    hft_pass_ms(10);
    stop_at = "given-to-look";
    stop_for = 1000 * HFI_MS;
    assert_int_equal(hft_released(process, lease), HF_OK);
    HFT_UNTIL(is_over(&second));
    assert_false(is_over(&first));
    HFT_UNTIL(is_over(&first));
    assert_int_equal(second.status, HF_OK);
    assert_int_equal(first.status, HF_OK);
    assert_ptr_equal(first.lease, second.lease);
    assert_int_equal(hft_released(process, first.lease), HF_OK);
    assert_true(hft_is_valid(process, second.lease)); /* held once more */
    assert_int_equal(hft_released(process, second.lease), HF_OK);
    assert_int_equal(hft_close(process), HF_OK);
    assert_string_equal(hft_key("hf:{n}"), "");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_scene_begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(a_lease_that_was_seen_to_be_over_is_over),
        TEST(a_lease_that_came_too_late_and_a_re_entry),
        TEST(a_lease_that_no_thread_found_over_goes_on),
        TEST(a_native_grant_without_a_floor_before_it_is_not_believed),
        TEST(an_old_time_dates_no_grant),
        TEST(an_alarm_whose_lock_is_gone_flushes_its_lane),
        TEST(a_stall_is_not_the_length_of_the_road),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
