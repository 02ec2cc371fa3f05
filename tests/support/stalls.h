/* SPDX-License-Identifier: MIT */
/* stalls.h - how long threads of a process were ready to run and got no CPU. A promise in time holds for threads that run:
 * this tells a test which rounds the scheduler has spoilt. Seen from outside, by what the kernel counts for each thread. */
#ifndef HFT_STALLS_H
#define HFT_STALLS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { HFT_STALLS_THREADS = 16 };

struct hft_stalls {
    pid_t pid;
    const char *prefix; /* of the names of those threads */
    pthread_t thread;
    _Atomic(bool) over;
    int64_t longest_ms;
    struct hft_stalled {
        int tid;
        unsigned long long turns; /* how often it got a CPU */
        int64_t since_ms;         /* ready since then without one more; 0: it is not */
    } threads[HFT_STALLS_THREADS];
};

void    hft_stalls_begin(struct hft_stalls *stalls, pid_t pid, const char *prefix);
int64_t hft_stalls_end(struct hft_stalls *stalls); /* the longest one, as far as it was seen */

#endif
