/* SPDX-License-Identifier: MIT */
/* fds.h - the open descriptors and the running threads of this process, for tests that nothing is left. */
#ifndef HFT_FDS_H
#define HFT_FDS_H

#include <stdbool.h>

int  hft_open_descriptors(void);
int  hft_running_threads(void);
long hft_resident_kib(void);
/* Waits until the count is at most that. A thing that has ended is counted a moment longer: a joined thread is in
 * /proc until the kernel is done with it, and a name lookup that nobody waits for has files open. False: not within
 * 20 s. */
bool hft_comes_down_to(int (*count)(void), int most);
int  hft_thread_named(const char *name); /* the id of the newest one; 0: there is none */
bool hft_is_asleep(int tid); /* in a system call that waits */
long hft_thread_ticks(int tid); /* CPU time that it has used, in clock ticks */

#endif
