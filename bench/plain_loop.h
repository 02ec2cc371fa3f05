/* SPDX-License-Identifier: MIT */
/* plain_loop.h - the yardstick, the usual first solution: a connection a thread, SET NX PX, a release script. */
#ifndef BENCH_PLAIN_LOOP_H
#define BENCH_PLAIN_LOOP_H

#include <stdbool.h>

struct bench_plain;

struct bench_plain *bench_plain_open(int port, const char *key);
bool bench_plain_take(struct bench_plain *plain); /* false: somebody else has it */
void bench_plain_give(struct bench_plain *plain);
void bench_plain_ping(struct bench_plain *plain);
const char *bench_plain_sha(const struct bench_plain *plain);
void bench_plain_close(struct bench_plain *plain);

#endif
