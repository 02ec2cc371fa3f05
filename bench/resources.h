/* SPDX-License-Identifier: MIT */
/* resources.h - whether this machine has the resources that a question needs, checked before it starts. */
#ifndef BENCH_RESOURCES_H
#define BENCH_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>

/* False: `why` says what is lacking, and where it is limited. */
bool bench_can_have(long threads, long files, long megabytes, char *why, size_t room);

#endif
