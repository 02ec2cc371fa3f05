/* SPDX-License-Identifier: MIT */
/* crew.h - threads that all do the same for a while, and children that do. */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <stdint.h>
#include <sys/types.h>

#define BENCH_CREW_MAX 10000

/* One step of thread `index`: how many sections, pairs, hits that was. */
typedef long bench_step(int index, void *arg);

/* All of them step for a tenth of the time and 10 ms unseen, then are counted. Steps a second; `shares`, if not NULL,
 * gets each thread's count. Beyond a thousand they have stacks of 32 KiB. */
double bench_crew(int threads, double seconds, bench_step *step, void *arg, long *shares);

/* A child process that runs `run` and exits with what it returned. Fork before this process has a client. */
pid_t bench_fork(int (*run)(void *arg), void *arg);
void bench_join(pid_t child); /* dies unless the child exited with 0 */

void *bench_shared(size_t size); /* zeroed memory that children share */

#endif
