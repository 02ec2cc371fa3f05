/* SPDX-License-Identifier: MIT */
/* verdict.h - reads the ledger and the server after a run, and says whether the promises were kept. */
#ifndef HFT_VERDICT_H
#define HFT_VERDICT_H

#include "tests/torture/faults.h"
#include "tests/torture/wire.h"

/* A dead holder's name has its heir after at most lease + guard + slack_ms. */
int64_t hft_longest_wait_ns(const struct hft_plan *plan);

/* Prints what was wrong, if anything, and one line of numbers. `wire` NULL: nobody listened. True: all kept. */
bool hft_verdict(struct hft_fleet *fleet, struct hft_wire *wire, int64_t ran_ns);

#endif
