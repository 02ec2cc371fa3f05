/* SPDX-License-Identifier: MIT */
/* one_lane.c - see one_lane.h. */
#include "tests/support/one_lane.h"
#include "tests/support/fds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

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

void hft_is_answered(struct hft_call *call)
{
    assert_int_equal(call->outcome, HFI_ANSWERED);
    hft_call_done(call);
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
