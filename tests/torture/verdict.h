/* SPDX-License-Identifier: MIT */
/* verdict.h - reads the ledger and the server after a run, and judges whether the promises were kept. */
#ifndef HFT_VERDICT_H
#define HFT_VERDICT_H

#include "tests/torture/faults.h"
#include "tests/torture/wire.h"

/* A dead holder's name has its next holder after at most lease + guard + slack_ms. */
int64_t hft_longest_wait_ns(const struct hft_plan *plan);

/* Prints the violations, if any, and one line of numbers. `wire` NULL: no MONITOR ran. True: all promises were kept. */
bool hft_verdict(struct hft_crowd *crowd, struct hft_wire *wire, int64_t ran_ns);

#endif
