/* SPDX-License-Identifier: MIT */
/* memory.h - what this process has of real memory. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stddef.h>

double bench_resident_bytes(void);                   /* smaps_rollup's Rss */
double bench_touched_bytes(void *from, size_t size); /* of a mapping, by mincore */

#endif
