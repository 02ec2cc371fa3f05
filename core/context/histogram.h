/* SPDX-License-Identifier: MIT */
/* histogram.h - distribution of wait or hold times, for metrics. Relaxed atomics. */
#ifndef HFI_HISTOGRAM_H
#define HFI_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HFI_BOUNDS 12 /* 1, 3, 10, 30 ms ... 300 s */

struct hfi_histogram {
    _Atomic(uint64_t) counts[HFI_BOUNDS + 1]; /* above the bound before, up to this one; the last: above all */
    _Atomic(uint64_t) sum_ns;
};

/* The bound after `bound`, which is the i-th. */
static inline int64_t hfi_histogram_next(int64_t bound, int i)
{
    return i % 2 == 0 ? 3 * bound : bound / 3 * 10;
}

void hfi_histogram_add(struct hfi_histogram *histogram, int64_t ns);
/* Adds `count` times, each at most the first bound; sum_ns is their sum. */
void hfi_histogram_add_short(struct hfi_histogram *histogram, uint64_t count, int64_t sum_ns);

#endif
