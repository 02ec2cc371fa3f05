/* SPDX-License-Identifier: MIT */
/* histogram.c - see histogram.h. */
#include "core/context/histogram.h"
#include "base/clock.h"

static void add(struct hfi_histogram *histogram, int bound, uint64_t count, int64_t sum_ns)
{
    (void)atomic_fetch_add_explicit(&histogram->counts[bound], count, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&histogram->sum_ns, (uint64_t)sum_ns, memory_order_relaxed);
}

void hfi_histogram_add(struct hfi_histogram *histogram, int64_t ns)
{
    int bound = 0;
    for (int64_t most = HFI_MS; bound < HFI_BOUNDS && ns > most; bound++)
        most = hfi_histogram_next(most, bound);
    add(histogram, bound, 1, ns);
}

void hfi_histogram_add_short(struct hfi_histogram *histogram, uint64_t count, int64_t sum_ns)
{
    add(histogram, 0, count, sum_ns);
}
