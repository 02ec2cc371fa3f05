/* SPDX-License-Identifier: MIT */
/* histogram.c - see histogram.h. */
#include "core/histogram.h"
#include "base/clock.h"

int64_t hfi_histogram_bound_ms(int bound)
{
    int64_t ms = bound % 2 == 0 ? 1 : 3;
    for (; bound > 1; bound -= 2)
        ms *= 10;
    return ms;
}

void hfi_histogram_add(struct hfi_histogram *histogram, int64_t took_ns, int64_t sum_ns)
{
    int bound = HFI_BOUNDS - 1;
    while (bound >= 0 && took_ns <= hfi_histogram_bound_ms(bound) * HFI_MS)
        bound--;
    if (bound >= 0)
        (void)atomic_fetch_add_explicit(&histogram->longer[bound], 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&histogram->sum_ns, (uint64_t)sum_ns, memory_order_relaxed);
}
