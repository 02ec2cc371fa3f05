/* SPDX-License-Identifier: MIT */
/* histogram.h - how long waits or holds took, for metrics. Relaxed atomics, for people. */
#ifndef HFI_HISTOGRAM_H
#define HFI_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HFI_BOUNDS 12 /* 1, 3, 10, 30 ms ... 300 s */

struct hfi_histogram {
    _Atomic(uint64_t) counts[HFI_BOUNDS + 1]; /* not longer than this bound, and than the one before; the last: than none */
    _Atomic(uint64_t) sum_ns;
};

/* The bound behind `bound`, the `i`-th. */
static inline int64_t hfi_histogram_next(int64_t bound, int i)
{
    return i % 2 == 0 ? 3 * bound : bound / 3 * 10;
}

void hfi_histogram_add(struct hfi_histogram *histogram, int64_t ns);
/* Several that are not longer than the first bound, all together so long. */
void hfi_histogram_add_short(struct hfi_histogram *histogram, uint64_t count, int64_t sum_ns);

#endif
