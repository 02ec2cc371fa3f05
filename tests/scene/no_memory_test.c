/* SPDX-License-Identifier: MIT */
/* no_memory_test.c - no memory for a command: the caller gets an error, no lease is lost that could be kept, and all
 * goes on when there is memory again. (Linked so that malloc, hfi_command_script and hfi_command_script_begin are
 * those below.) */
#include "core/lock/lock.h"
#include "core/protocol/scripts.h"
#include "core/lock/table.h"
#include "tests/scene/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct hfi_script *none_for; /* commands of this script; NULL: there is memory for all */
static int refused;
static size_t last_size, batch_size; /* sizes of the last allocation, and of the last one before a renewal's command */
static bool none_for_batches;
static int batches_refused;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    last_size = size;
    if (!none_for_batches || size != batch_size)
        return __real_malloc(size);
    batches_refused++;
    return NULL;
}

struct hfi_command *__real_hfi_command_script(const struct hfi_script *script, int keys, int argc, const char *const *argv,
                                              const size_t *sizes);
struct hfi_command *__wrap_hfi_command_script(const struct hfi_script *script, int keys, int argc, const char *const *argv,
                                              const size_t *sizes);

struct hfi_command *__wrap_hfi_command_script(const struct hfi_script *script, int keys, int argc, const char *const *argv,
                                              const size_t *sizes)
{
    if (script != none_for)
        return __real_hfi_command_script(script, keys, argc, argv, sizes);
    refused++;
    return NULL;
}

struct hfi_command *__real_hfi_command_script_begin(const struct hfi_script *script, int keys, int argc, size_t room);
struct hfi_command *__wrap_hfi_command_script_begin(const struct hfi_script *script, int keys, int argc, size_t room);

struct hfi_command *__wrap_hfi_command_script_begin(const struct hfi_script *script, int keys, int argc, size_t room)
{
    if (script == hfi_script_renew)
        batch_size = last_size;
    if (script != none_for)
        return __real_hfi_command_script_begin(script, keys, argc, room);
    refused++;
    return NULL;
}

static int begin(void **state)
{
    none_for = NULL;
    none_for_batches = false;
    refused = batches_refused = 0;
    return hft_scene_begin(state);
}

static void a_renewal_is_tried_again(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    hf_lease *leases[3];
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++)
        leases[i] = hft_must_take(process, names[i], HF_LOCK(.lease_ms = 3000));
    none_for = hfi_script_renew;
    HFT_UNTIL(refused >= 3);
    assert_int_equal(hft_stats(process).renewals, 0);
    none_for = NULL;
    HFT_UNTIL(hft_stats(process).renewals == 3);
    for (int i = 0; i < 3; i++) {
        assert_true(hft_is_valid(process, leases[i]));
        assert_int_equal(hft_released(process, leases[i]), HF_OK);
    }
    assert_int_equal(hft_close(process), HF_OK);
}

static void without_memory_to_collect_them_renewals_are_tried_again(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.lease_ms = 3000));
    HFT_UNTIL(hft_stats(process).renewals == 1);
    int sent = hft_listed(process, "renew");
    none_for_batches = true;
    HFT_UNTIL(batches_refused >= 3);
    assert_int_equal(hft_listed(process, "renew"), sent);
    none_for_batches = false;
    HFT_UNTIL(hft_stats(process).renewals == 2);
    assert_true(hft_is_valid(process, lease));
    assert_int_equal(hft_released(process, lease), HF_OK);
}

/* Is the lock that had this token still in the client's memory? */
static bool is_remembered(struct sim_process *process, const char *token, const char *name)
{
    sim.self = process;
    struct hfi_lock *lock = hfi_table_by_grant(process->client, strtoull(token + 37, NULL, 16));
    bool same = lock != NULL && lock->keys.name_size == strlen(name) && memcmp(hfi_keys_name(&lock->keys), name, strlen(name)) == 0;
    if (lock != NULL)
        hfi_table_unref(lock);
    sim.self = NULL;
    return same;
}

static void a_lock_whose_renewal_was_not_sent_can_be_forgotten(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c"};
    struct sim_process *process = hft_process(NULL);
    hf_lease *leases[3];
    char tokens[3][160], name[20];
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "hf:{%s}", names[i]);
        leases[i] = hft_must_take(process, names[i], HF_LOCK(.lease_ms = 3000));
        (void)snprintf(tokens[i], sizeof tokens[i], "%s", hft_key(name));
        assert_true(is_remembered(process, tokens[i], names[i]));
    }
    none_for = hfi_script_renew;
    HFT_UNTIL(refused >= 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hft_released(process, leases[i]), HF_OK);
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(name, sizeof name, "x%d", i);
        assert_int_equal(hft_released(process, hft_must_take(process, name, NULL)), HF_OK);
    }
    for (int i = 0; i < 3; i++)
        assert_false(is_remembered(process, tokens[i], names[i]));
}

static void a_release_is_unknown_and_made_up_for(void **state)
{
    (void)state;
    struct hft_actor giver;
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.lease_ms = 60000));
    none_for = hfi_script_release;
    hft_give_back(&giver, process, lease);
    HFT_UNTIL(giver.ended != 0);
    assert_int_equal(giver.status, HF_UNKNOWN);
    assert_true(giver.ended - giver.began < 5 * HFI_MS); /* nobody waits for an answer to what was not asked */
    hft_pass_ms(1000);
    assert_in_range(refused, 3, 3); /* at the pace of re-checks */
    assert_string_not_equal(hft_key("hf:{n}"), "");
    none_for = NULL;
    hft_pass_ms(401);
    assert_string_equal(hft_key("hf:{n}"), "");
    assert_int_equal(hft_close(process), HF_OK);
}

static void without_a_floor_it_asks_all_the_same(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(HF_CLIENT(.lanes = 1)); /* no handshake to come, which has one too */
    none_for = hfi_script_fence_floor;
    for (int i = 0; i < 5; i++) {
        hf_lease *lease = hft_must_take(process, "n", NULL);
        assert_int_equal(hft_released(process, lease), HF_OK);
        hft_pass_ms(1000);
    }
    assert_true(refused >= 4);
    assert_int_equal(hft_close(process), HF_OK);
}

static void without_memory_a_try_gets_an_error_and_a_wait_goes_on(void **state)
{
    (void)state;
    struct hft_actor waiter;
    struct sim_process *holder = hft_process(NULL), *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(holder, "n", NULL);
    none_for = hfi_script_acquire;
    hft_take(&waiter, process, "n", HF_LOCK(.wait_ms = 5000));
    HFT_UNTIL(refused >= 2);
    assert_int_equal(waiter.ended, 0);
    none_for = NULL;
    assert_int_equal(hft_released(holder, lease), HF_OK);
    HFT_UNTIL(waiter.ended != 0);
    assert_int_equal(waiter.status, HF_OK);
    assert_int_equal(hft_released(process, waiter.lease), HF_OK);
}

static void downgrade(void *arg)
{
    hf_error error;
    assert_int_equal(hf_lease_downgrade(arg, &error), HF_NOMEM);
}

static void without_memory_a_lease_is_not_downgraded(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.linger_ms = 10000));
    none_for = hfi_script_downgrade;
    hft_run(process, downgrade, lease);
    int releases = hft_listed(process, "release");
    assert_int_equal(hft_released(process, lease), HF_OK);
    assert_int_equal(hft_listed(process, "release"), releases); /* it lingers */
}

static void without_more_fences_threads_go_on_with_those_they_have(void **state)
{
    (void)state;
    struct sim_process *process = hft_process(NULL);
    none_for = hfi_script_more;
    for (int i = 0; i < 3000; i++) {
        hf_lease *lease = hft_must_take(process, "n", HF_LOCK(.linger_ms = 10000));
        assert_int_equal(hft_released(process, lease), HF_OK);
    }
    assert_true(refused > 0 && refused < 100);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, hft_scene_end)
    const struct CMUnitTest tests[] = {
        TEST(a_renewal_is_tried_again),
        TEST(without_memory_to_collect_them_renewals_are_tried_again),
        TEST(a_lock_whose_renewal_was_not_sent_can_be_forgotten),
        TEST(a_release_is_unknown_and_made_up_for),
        TEST(without_a_floor_it_asks_all_the_same),
        TEST(without_memory_a_try_gets_an_error_and_a_wait_goes_on),
        TEST(without_memory_a_lease_is_not_downgraded),
        TEST(without_more_fences_threads_go_on_with_those_they_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
