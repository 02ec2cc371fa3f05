/* SPDX-License-Identifier: MIT */
/* bare_loop.h - what our commands cost by themselves: a blocking connection sends the bytes that the library has sent for one acquire and
 * one release, and nothing else is done. Every client that sends them is as far behind the plain loop as this one; the rest is ours. */
#ifndef BENCH_BARE_LOOP_H
#define BENCH_BARE_LOOP_H

struct bench_bare;

struct bench_bare *bench_bare_open(const char *url, int port, const char *name);
void bench_bare_pair(struct bench_bare *bare);
/* Sends so many pairs in one piece, one piece ahead of the replies that it reads: the server is never without work. */
void bench_bare_batch(struct bench_bare *bare, int pairs);
void bench_bare_close(struct bench_bare *bare);

#endif
