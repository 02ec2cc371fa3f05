/* SPDX-License-Identifier: MIT */
/* child.h - a process of a test's own, which does not outlive the test. */
#ifndef HFT_CHILD_H
#define HFT_CHILD_H

#include <sys/types.h>

/* fork(). The child is killed when the thread that made it ends. No process to be had: the program ends and says so. */
pid_t hft_fork(void);

#endif
