/* SPDX-License-Identifier: MIT */
/* one_lane.h - a server that saves nothing, a pool, and its first lock lane, for tests that play the lane's roles themselves. */
#ifndef HFT_ONE_LANE_H
#define HFT_ONE_LANE_H

#include "pool/lane_private.h"
#include "tests/support/pool_kit.h"

extern struct hft_server *hft_server;
extern struct hfi_lane *hft_lane;
extern int hft_listener; /* the thread's number */

int hft_lane_start(void **state); /* for cmocka_run_group_tests */
int hft_lane_stop(void **state);

void hft_let_listener_sleep(void); /* without an end, on what is owed, or on nothing: it sends nothing meanwhile */
/* Asserts it, and frees the reply. */
void hft_is_answered(struct hft_call *call);
void hft_thaw_and_have_answers(const pthread_t *threads, struct hft_call *calls, int count); /* each waits for one */
bool hft_takes_read_role(void); /* false: another thread has it */
void hft_give_read_role_back(void);
void hft_have_followers(int count); /* seem to have begun to wait now */

#endif
