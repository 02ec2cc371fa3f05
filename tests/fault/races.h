/* SPDX-License-Identifier: MIT */
/* races.h - what the races share: a random number generator for one thread, and the end that every race has to come
 * to. */
#ifndef HFT_RACES_H
#define HFT_RACES_H

#include "tests/fault/fault.h"

int hft_die(unsigned *rng, int sides); /* 0 .. sides - 1 */
/* Keeps the processor for up to so long, or gives it away: others come in between, now here, now there. */
void hft_dawdle(unsigned *rng, int most_us);

/* Nothing is held or waited for by these clients, and nothing stands at the server but the fence counter and what a
 * fetch has stored. */
void hft_check_quiet(struct hft_run *run, struct hft_server *server, hf_client *const *clients, int count);

#endif
