/* SPDX-License-Identifier: MIT */
/* place.h - the CPUs that client and server have, and whether others want them too. */
#ifndef BENCH_PLACE_H
#define BENCH_PLACE_H

#include "bench/server.h"

#include <stdbool.h>

enum bench_place { BENCH_UNPINNED, BENCH_APART, BENCH_ON_ONE_CPU, BENCH_BUSY, BENCH_PLACES };

const char *bench_place_name(enum bench_place place);
bool bench_has_place(enum bench_place place); /* one CPU is not apart */
/* Call it while no client is open: threads stay where they were started. Ends what the last place began. */
void bench_place(struct bench_server *server, enum bench_place place);

#endif
