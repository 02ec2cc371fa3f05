/* SPDX-License-Identifier: MIT */
/* histogram.h - how long waits or holds took, for metrics. Most are shorter than the first bound: how many of these there
 * were follows from how many there were in all, which is counted elsewhere. Relaxed atomics, for people. */
#ifndef HFI_HISTOGRAM_H
#define HFI_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HFI_BOUNDS 12 /* 1, 3, 10 ms ... 300 s */

struct hfi_histogram {
    _Atomic(uint64_t) longer[HFI_BOUNDS]; /* than this bound, and not than the next */
    _Atomic(uint64_t) sum_ns;
};

int64_t hfi_histogram_bound_ms(int bound);
/* One that took took_ns; sum_ns is its time and that of short ones before it that were not told. */
void    hfi_histogram_add(struct hfi_histogram *histogram, int64_t took_ns, int64_t sum_ns);

#endif
