/* SPDX-License-Identifier: MIT */
/* lock_lanes.h - the lock lanes and the value lanes of a client. */
#ifndef HFT_LOCK_LANES_H
#define HFT_LOCK_LANES_H

#include <holdfast/holdfast.h>

/* As if so many more threads waited for replies on that lock lane; fewer: a negative number. */
void hft_lane_waits(hf_client *client, int lane, int threads);
bool hft_lane_is_up(hf_client *client, int lane);
void     hft_value_lane_waits(hf_client *client, int lane, int threads);
bool     hft_value_lane_is_up(hf_client *client, int lane);
void     hft_value_lane_met_another(hf_client *client, int lane); /* as if it was connected to another run of the server */
uint64_t hft_value_lane_commands(hf_client *client, int lane); /* so many were sent by it */
/* As if who reads on the first lock lane, or on the first value lane, looked for replies, or slept; till the next one does either. */
void hft_readers_look(hf_client *client, bool at_locks, bool at_values);
void hft_reader_sleeps(hf_client *client); /* as if one slept on the first lock lane, where it has looked till now */
/* All that the first command has dialled, the client's own channel too: no descriptor is to come. */
bool hft_is_connected(hf_client *client);
/* The number of the lane that this lock has now; -1: no memory. */
int hft_lane_of(hf_client *client, const char *name);

#endif
