/* SPDX-License-Identifier: MIT */
/* crew.h - threads, or child processes, that all do the same for a while. */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <stdint.h>
#include <sys/types.h>

#define BENCH_CREW_MAX 10000

/* One step of thread `index`; returns how many sections, pairs or hits that was. */
typedef long bench_step(int index, void *arg);

/* All threads step for a tenth of the time and 10 ms as a warm-up, then are counted. Returns steps a second;
 * `shares`, if not NULL, gets each thread's count. More than a thousand threads have stacks of 32 KiB. */
double bench_crew(int threads, double seconds, bench_step *step, void *arg, long *shares);

/* A child process that runs `run` and exits with its result. Fork before this process has a client. */
pid_t bench_fork(int (*run)(void *arg), void *arg);
void bench_join(pid_t child); /* dies unless the child exited with 0 */

void *bench_shared(size_t size); /* zeroed memory that children share */

#endif
