/* SPDX-License-Identifier: MIT */
/* bare_loop.h - what our commands cost by themselves: a blocking connection that sends the bytes which the library has sent for one acquire
 * and one release, and does nothing else. What it lacks to the plain loop no client of these commands can have; what we lack to it
 * is ours. */
#ifndef BENCH_BARE_LOOP_H
#define BENCH_BARE_LOOP_H

struct bench_bare;

struct bench_bare *bench_bare_open(const char *url, int port, const char *name);
void bench_bare_pair(struct bench_bare *bare);
void bench_bare_close(struct bench_bare *bare);

#endif
