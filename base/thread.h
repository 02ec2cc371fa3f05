/* SPDX-License-Identifier: MIT */
/* thread.h - a thread of ours: named, and deaf to all signals, so that the program's signals stay its own. And what
 * belongs to the calling thread. Replaced by the simulator, whose threads are not the kernel's. */
#ifndef HFI_THREAD_H
#define HFI_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* 0, or why there is no thread (an errno). The name has at most 15 bytes. */
int hfi_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);

/* For one that hangs in a call which nobody can end: detached instead of joined. It will come back to our code, so that
 * code stays loaded until the process ends, whatever the program does with dlclose. */
void hfi_thread_leave_behind(pthread_t thread);

/* The calling thread's kernel id, for tgkill. Asked for every time: kept, it would be the parent's in a fork child. */
int hfi_thread_id(void);
#define HFI_THREADS (UINT64_C(1) << 63) /* below are the numbers that programs choose for their tasks */
/* The calling thread's number: above HFI_THREADS, and never another thread's of this process, as a kernel id is when it
 * comes again. Whose something is, is asked by this. */
uint64_t hfi_thread_number(void);
/* One pointer of the calling thread's own, NULL at first: the callbacks it is in (core/context/callback.c). */
void **hfi_thread_own(void);
/* Between the two, which may nest, pthread_cancel has to wait: our calls are no cancellation points. False: this thread
 * is in a function that may not call us; unshield is owed all the same. */
bool hfi_thread_shield(void);
void hfi_thread_unshield(void);
/* Between the two, which may nest, the thread is in such a function. */
void hfi_thread_forbid(void);
void hfi_thread_permit(void);

#endif
