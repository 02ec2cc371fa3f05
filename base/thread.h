/* SPDX-License-Identifier: MIT */
/* thread.h - starts threads that are named and block all signals, so that the program's signals stay its own; and
 * state of the calling thread. Replaced by the simulator, whose threads are not the kernel's. */
#ifndef HFI_THREAD_H
#define HFI_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* 0, or an errno: no thread was started. The name has at most 15 bytes. */
int hfi_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);

/* For a thread that hangs in a call which cannot be interrupted: detach it instead of joining it. It will return into
 * our code, so this keeps the library loaded until the process ends, even after dlclose. */
void hfi_thread_leave_behind(pthread_t thread);

/* The calling thread's kernel id, for tgkill. Never cached: in a fork child the cached id would be the parent's. */
int hfi_thread_id(void);
long hfi_thread_sleeps(void); /* how often the calling thread has given up its CPU in order to wait */
#define HFI_THREADS (UINT64_C(1) << 63) /* smaller numbers are the .owner values that programs choose */
/* The calling thread's number, by which owners are compared: above HFI_THREADS, and never reused in this process,
 * unlike a kernel id. */
uint64_t hfi_thread_number(void);
/* One pointer per thread, initially NULL: the stack of callbacks that the thread is in (core/context/callback.c). */
void **hfi_thread_own(void);
#ifdef HFI_CHECKED
struct hfi_held *hfi_thread_held(void); /* the mutexes that the calling thread holds: base/mutex.h */
#endif
/* Between shield and unshield, which may nest, pthread_cancel is deferred: our calls are not cancellation points.
 * False: this thread is in a function that may not call us; unshield is still required. */
bool hfi_thread_shield(void);
void hfi_thread_unshield(void);
/* Between forbid and permit, which may nest, the thread is in a function that may not call us: the log function. */
void hfi_thread_forbid(void);
void hfi_thread_permit(void);

#endif
