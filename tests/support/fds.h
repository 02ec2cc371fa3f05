/* SPDX-License-Identifier: MIT */
/* fds.h - what this process has open and its threads do just now, for tests that say "and nothing is left". */
#ifndef HFT_FDS_H
#define HFT_FDS_H

#include <stdbool.h>

int  hft_open_descriptors(void);
int  hft_running_threads(void);
long hft_resident_kib(void);
int  hft_thread_named(const char *name); /* the id of the newest one; 0: there is none */
bool hft_is_asleep(int tid); /* in a system call that waits */

#endif
