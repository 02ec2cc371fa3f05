/* SPDX-License-Identifier: MIT */
/* on_one.h - processes with some workers each, all on one lock. */
#ifndef BENCH_ON_ONE_H
#define BENCH_ON_ONE_H

#include "bench/server.h"

#include <stdbool.h>

/* Sections a second of all processes: with Holdfast, or with plain loops that ask again every millisecond. */
double bench_on_one(const struct bench_server *server, int processes, int workers, bool plainly,
                    double seconds);

#endif
