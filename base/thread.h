/* SPDX-License-Identifier: MIT */
/* thread.h - a thread of ours: named, and deaf to all signals, so that the program's signals stay its own. */
#ifndef HFI_THREAD_H
#define HFI_THREAD_H

#include <pthread.h>

/* 0, or why there is no thread (an errno). The name has at most 15 bytes. */
int hfi_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);

#endif
