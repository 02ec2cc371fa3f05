/* SPDX-License-Identifier: MIT */
/* lock_lanes.h - the lock lanes of a client. */
#ifndef HFT_LOCK_LANES_H
#define HFT_LOCK_LANES_H

#include <holdfast/holdfast.h>

/* As if so many more threads waited for replies on that lock lane; fewer: a negative number. */
void hft_lane_waits(hf_client *client, int lane, int threads);
bool hft_lane_is_up(hf_client *client, int lane);
bool hft_first_lanes_are_up(hf_client *client); /* those that the first command has dialled: no descriptor is to come */
/* The number of the lane that this lock has now; -1: no memory. */
int hft_lane_of(hf_client *client, const char *name);

#endif
