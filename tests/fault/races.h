/* SPDX-License-Identifier: MIT */
/* races.h - shared by the races: a random number generator for one thread, and the quiet state in which every race
 * ends. */
#ifndef HFT_RACES_H
#define HFT_RACES_H

#include "tests/fault/fault.h"

int hft_die(unsigned *rng, int sides); /* 0 .. sides - 1 */
/* Keeps the processor for up to most_us, or yields it: other threads interleave at ever other places. */
void hft_random_delay(unsigned *rng, int most_us);

/* Checks that these clients hold nothing and wait for nothing, and that the server has no key but the fence counter
 * and the stored values of fetches. */
void hft_check_quiet(struct hft_run *run, struct hft_server *server, hf_client *const *clients, int count);

#endif
