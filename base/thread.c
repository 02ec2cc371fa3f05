/* SPDX-License-Identifier: MIT */
/* thread.c - see thread.h. */
#include "base/thread.h"
#include "base/mutex.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int hfi_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg)
{
    /* A new thread inherits its creator's signal mask: block all signals here, so that it never has one open. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(thread, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0)
        (void)pthread_setname_np(*thread, name);
    return failed;
}

void hfi_thread_leave_behind(pthread_t thread)
{
    static const char here = 0;
    Dl_info us;
    if (dladdr(&here, &us) != 0)
        (void)dlopen(us.dli_fname, RTLD_NOW | RTLD_NOLOAD); /* a reference that is never dropped */
    (void)pthread_detach(thread);
}

int hfi_thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

long hfi_thread_sleeps(void)
{
    struct rusage use;
    return getrusage(RUSAGE_THREAD, &use) == 0 ? use.ru_nvcsw : 0;
}

uint64_t hfi_thread_number(void)
{
    static _Atomic(uint64_t) numbers = HFI_THREADS;
    static _Thread_local uint64_t own;
    if (own == 0)
        own = atomic_fetch_add(&numbers, 1) + 1;
    return own;
}

void **hfi_thread_own(void)
{
    static _Thread_local void *own;
    return &own;
}

#ifdef HFI_CHECKED
struct hfi_held *hfi_thread_held(void)
{
    static _Thread_local struct hfi_held held;
    return &held;
}
#endif

static _Thread_local struct {
    int depth;
    int before; /* PTHREAD_CANCEL_ENABLE or _DISABLE: as the caller has it */
    int forbidden;
} shield;

bool hfi_thread_shield(void)
{
    bool may_call = shield.forbidden == 0; /* before the call: behind it the variable would be looked up again */
    if (shield.depth++ == 0)
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &shield.before);
    return may_call;
}

void hfi_thread_unshield(void)
{
    int ours;
    if (--shield.depth == 0)
        (void)pthread_setcancelstate(shield.before, &ours);
}

void hfi_thread_forbid(void)
{
    shield.forbidden++;
}

void hfi_thread_permit(void)
{
    shield.forbidden--;
}
