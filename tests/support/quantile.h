/* SPDX-License-Identifier: MIT */
/* quantile.h - what a test says of many measured times. */
#ifndef HFT_QUANTILE_H
#define HFT_QUANTILE_H

#include <stdint.h>

/* Sorts the numbers and returns the q-th quantile (0 .. 1; 1: the largest). 0 if there are none. */
int64_t hft_quantile(int64_t *numbers, int count, double q);

#endif
