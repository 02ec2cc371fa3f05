/* SPDX-License-Identifier: MIT */
/* histogram.c - see histogram.h. Below 64 ns a bucket is a nanosecond; above, each power of two has 64 of them. */
#include "bench/histogram.h"

static int bucket_of(int64_t ns)
{
    if (ns < 64)
        return ns < 0 ? 0 : (int)ns;
    int shift = 57 - __builtin_clzll((uint64_t)ns);
    int bucket = 64 * shift + (int)(ns >> shift);
    return bucket < BENCH_BUCKETS ? bucket : BENCH_BUCKETS - 1;
}

static int64_t middle_of(int bucket)
{
    if (bucket < 128)
        return bucket;
    int shift = bucket / 64 - 1;
    return ((int64_t)(64 + bucket % 64) << shift) + ((int64_t)1 << shift) / 2;
}

void bench_record(struct bench_histogram *histogram, int64_t ns)
{
    histogram->buckets[bucket_of(ns)]++;
    histogram->count++;
    if (ns > histogram->most_ns)
        histogram->most_ns = ns;
}

void bench_merge(struct bench_histogram *into, const struct bench_histogram *from)
{
    for (int i = 0; i < BENCH_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
    into->count += from->count;
    if (from->most_ns > into->most_ns)
        into->most_ns = from->most_ns;
}

int64_t bench_percentile(const struct bench_histogram *histogram, double percent)
{
    uint64_t wanted = (uint64_t)((double)histogram->count * percent / 100), seen = 0;
    for (int i = 0; i < BENCH_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > wanted)
            return middle_of(i) < histogram->most_ns ? middle_of(i) : histogram->most_ns;
    }
    return histogram->most_ns;
}
