/* SPDX-License-Identifier: MIT */
/* histogram.h - durations, counted in buckets that are 1.6 % wide, whatever their size (the idea of HDR histograms).
 * One writer each; merge them to read. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define BENCH_BUCKETS (64 * 42)

struct bench_histogram {
    uint64_t count;
    int64_t most_ns; /* exact */
    uint32_t buckets[BENCH_BUCKETS];
};

void bench_record(struct bench_histogram *histogram, int64_t ns);
void bench_merge(struct bench_histogram *into, const struct bench_histogram *from);
int64_t bench_percentile(const struct bench_histogram *histogram, double percent); /* ns; 0 if empty */

#endif
