/* SPDX-License-Identifier: MIT */
/* fds.h - what this process has open and its threads do just now, for tests that say "and nothing is left". */
#ifndef HFT_FDS_H
#define HFT_FDS_H

#include <stdbool.h>

int  hft_open_descriptors(void);
int  hft_running_threads(void);
long hft_resident_kib(void);
/* Waits until the count is no more than that. What has ended is counted a moment longer: a joined thread is in /proc until
 * the kernel is done with it, a name lookup that nobody waits for has files open. False: not within 20 s. */
bool hft_comes_down_to(int (*count)(void), int most);
int  hft_thread_named(const char *name); /* the id of the newest one; 0: there is none */
bool hft_is_asleep(int tid); /* in a system call that waits */

#endif
