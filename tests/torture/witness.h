/* SPDX-License-Identifier: MIT */
/* witness.h - a process that hears what sentinels publish, and sees for how long after it clients stay connected to the
 * former primary. */
#ifndef HFT_WITNESS_H
#define HFT_WITNESS_H

#include "tests/support/fleet.h"

#include <stdatomic.h>

#define HFT_SWITCHES_MOST 4096
#define HFT_WATCHED_MOST  8

struct hft_witness { /* in memory that both processes have */
    pid_t pid;
    _Atomic(int) port;     /* of the primary that is about to be left; 0: nothing is watched */
    pid_t clients[HFT_WATCHED_MOST];
    int client_count;
    _Atomic(int) switches, lates;
    int64_t switched_ns[HFT_SWITCHES_MOST]; /* when +switch-master was heard first, by CLOCK_BOOTTIME */
    int64_t late_ns[HFT_SWITCHES_MOST * HFT_WATCHED_MOST]; /* how long after it one of them was still there */
};

struct hft_witness *hft_witness_start(const struct hft_fleet *fleet);
/* The server at this port is about to be deposed, and these processes are its clients. False: not all of them are, so nothing
 * is watched. */
bool hft_witness_watch(struct hft_witness *witness, int port, const pid_t *clients, int count);
/* False: there was no switch yet, or some of them are still there. */
bool hft_witness_is_done(const struct hft_witness *witness);
void hft_witness_end(struct hft_witness *witness); /* what it has seen stays */

#endif
