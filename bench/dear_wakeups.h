/* SPDX-License-Identifier: MIT */
/* dear_wakeups.h - what dear_wakeups.c counts, for those who find it with dlsym. */
#ifndef BENCH_DEAR_WAKEUPS_H
#define BENCH_DEAR_WAKEUPS_H

#define DEAR_NS     80000
#define DEAR_COUNTS "dear_wakeups_counts"

enum dear_call { DEAR_FUTEX, DEAR_COND, DEAR_POLL, DEAR_PPOLL, DEAR_EPOLL, DEAR_RECV, DEAR_READ, DEAR_CALLS };

/* So far, of this process and those that it forked. */
typedef void dear_counts(long counts[DEAR_CALLS]);

#endif
