/* SPDX-License-Identifier: MIT */
/* one_lane.c - see one_lane.h. */
#include "tests/support/one_lane.h"
#include "tests/support/fds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define GRACES_NS (5 * HFI_MS) /* the listener looks for a reply that nobody waits for long before */

struct hft_server *hft_server;
struct hfi_lane *hft_lane;
int hft_listener;

static struct hft_pool kit;

int hft_lane_start(void **state)
{
    hf_error error;
    (void)state;
    hft_server = hft_server_start("save \"\"");
    hft_pool_init(&kit, hft_server);
    if (hft_pool_open(&kit, NULL, &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        return -1;
    }
    hft_lane = hfi_pool_lane(kit.pool, HFI_LOCK_LANE, 0);
    hft_listener = hft_thread_named("hf-listener");
    return 0;
}

int hft_lane_stop(void **state)
{
    (void)state;
    hft_pool_close(&kit);
    hft_server_stop(hft_server);
    return 0;
}

void hft_let_listener_sleep(void)
{
    int64_t since_ns = hft_now();
    HFT_UNTIL(hft_now() - since_ns > GRACES_NS && atomic_load(&hft_lane->watch) != HFI_LOOKS_SOON && hft_is_asleep(hft_listener));
}

void hft_is_answered(struct hft_call *call)
{
    assert_int_equal(call->outcome, HFI_ANSWERED);
    hft_call_done(call);
}

void hft_thaw_and_have_answers(const pthread_t *threads, struct hft_call *calls, int count)
{
    hft_server_thaw(hft_server);
    for (int i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
        hft_is_answered(&calls[i]);
    }
}

bool hft_takes_read_role(void)
{
    hfi_lane_lock(hft_lane);
    bool takes = !hft_lane->reading;
    hft_lane->reading = true;
    hfi_lane_unlock(hft_lane);
    return takes;
}

void hft_give_read_role_back(void)
{
    hfi_lane_lock(hft_lane);
    hft_lane->reading = false;
    hfi_lane_unlock(hft_lane);
}

void hft_have_followers(int count)
{
    struct hfi_followers *all = &hft_lane->deployment->followers;
    uint32_t period = hfi_followers_join(all, hft_now());
    for (uint32_t at = period; at <= period + 1; at++) /* it may end meanwhile */
        atomic_store(&all->periods[at % 2], (uint64_t)at << 32 | (uint32_t)count);
}
