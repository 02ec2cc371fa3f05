/* SPDX-License-Identifier: MIT */
/* dear.h - wake-ups that are dear: this program again, from its beginning, with the library of dear_wakeups.c loaded in
 * front of all others. Children of it have it too, but for the server. */
#ifndef BENCH_DEAR_H
#define BENCH_DEAR_H

#include "bench/dear_wakeups.h"

void bench_dear(char **argv); /* returns where the library is loaded */
void bench_dear_counts(long counts[DEAR_CALLS]);
void bench_dear_print(void);

#endif
