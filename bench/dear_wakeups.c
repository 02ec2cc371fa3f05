/* SPDX-License-Identifier: MIT */
/* dear_wakeups.c - a library to preload: each return from a sleep in a futex, in poll, ppoll or epoll, or in recv or
 * read of a socket takes 80 us longer, as on a machine whose idle CPUs wake up late. A thread that did not sleep pays
 * nothing: the kernel counts each thread's voluntary switches. Sleeps in a mutex are left out: the thread would spend
 * the 80 us as its holder. */
#include "bench/dear_wakeups.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static struct {
    __typeof__(&syscall) syscall;
    __typeof__(&pthread_cond_wait) cond_wait;
    __typeof__(&pthread_cond_timedwait) cond_timedwait;
    __typeof__(&poll) poll;
    __typeof__(&ppoll) ppoll;
    __typeof__(&epoll_wait) epoll_wait;
    __typeof__(&epoll_pwait) epoll_pwait;
    __typeof__(&recv) recv;
    __typeof__(&read) read;
} next;
static _Atomic(long) *counts; /* forked children count here too */

/* A constructor; a function that another constructor calls before it calls it too. */
__attribute__((constructor)) static void find_next(void)
{
    if (counts != NULL)
        return;
    *(void **)&next.syscall = dlsym(RTLD_NEXT, "syscall");
    *(void **)&next.cond_wait = dlsym(RTLD_NEXT, "pthread_cond_wait");
    *(void **)&next.cond_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    *(void **)&next.poll = dlsym(RTLD_NEXT, "poll");
    *(void **)&next.ppoll = dlsym(RTLD_NEXT, "ppoll");
    *(void **)&next.epoll_wait = dlsym(RTLD_NEXT, "epoll_wait");
    *(void **)&next.epoll_pwait = dlsym(RTLD_NEXT, "epoll_pwait");
    *(void **)&next.recv = dlsym(RTLD_NEXT, "recv");
    *(void **)&next.read = dlsym(RTLD_NEXT, "read");
    counts =
        mmap(NULL, DEAR_CALLS * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED)
        _exit(127);
}

EXPORTED dear_counts dear_wakeups_counts;

void dear_wakeups_counts(long out[DEAR_CALLS])
{
    for (int i = 0; i < DEAR_CALLS; i++)
        out[i] = atomic_load(&counts[i]);
}

static long sleeps(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static long before(void)
{
    find_next();
    return sleeps();
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pay(enum dear_call call)
{
    int64_t until = now_ns() + DEAR_NS;
    (void)atomic_fetch_add(&counts[call], 1);
    while (now_ns() < until)
        ;
}

static void after(enum dear_call call, long slept_before)
{
    int error = errno;
    if (sleeps() != slept_before)
        pay(call);
    errno = error;
}

static void after_bytes(enum dear_call call, long slept_before, int fd)
{
    int error = errno;
    struct stat file;
    if (sleeps() != slept_before && fstat(fd, &file) == 0 && S_ISSOCK(file.st_mode))
        pay(call);
    errno = error;
}

EXPORTED long syscall(long number, ...)
{
    va_list list;
    long words[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(list, long);
    va_end(list);
    find_next();
    int command = (int)words[1] & FUTEX_CMD_MASK;
    bool waits = number == SYS_futex && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET);
    long slept = waits ? sleeps() : 0;
    long result = next.syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
    if (waits)
        after(DEAR_FUTEX, slept);
    return result;
}

/* The wake-up comes before the mutex is had again, so nobody else is to wait for it. */
static void after_cond(long slept_before, pthread_mutex_t *mutex)
{
    if (sleeps() == slept_before)
        return;
    (void)pthread_mutex_unlock(mutex);
    pay(DEAR_COND);
    (void)pthread_mutex_lock(mutex);
}

EXPORTED int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    long slept = before();
    int result = next.cond_wait(cond, mutex);
    after_cond(slept, mutex);
    return result;
}

EXPORTED int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                    const struct timespec *until)
{
    long slept = before();
    int result = next.cond_timedwait(cond, mutex, until);
    after_cond(slept, mutex);
    return result;
}

EXPORTED int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    long slept = before();
    int result = next.poll(fds, count, timeout);
    after(DEAR_POLL, slept);
    return result;
}

EXPORTED int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    long slept = before();
    int result = next.ppoll(fds, count, timeout, mask);
    after(DEAR_PPOLL, slept);
    return result;
}

EXPORTED int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
    long slept = before();
    int result = next.epoll_wait(epoll, events, most, timeout);
    after(DEAR_EPOLL, slept);
    return result;
}

EXPORTED int epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout, const sigset_t *mask)
{
    long slept = before();
    int result = next.epoll_pwait(epoll, events, most, timeout, mask);
    after(DEAR_EPOLL, slept);
    return result;
}

/* A look that never sleeps costs what it did. */
EXPORTED ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    find_next();
    bool looks = (flags & MSG_DONTWAIT) != 0;
    long slept = looks ? 0 : sleeps();
    ssize_t result = next.recv(fd, bytes, size, flags);
    if (!looks)
        after_bytes(DEAR_RECV, slept, fd);
    return result;
}

EXPORTED ssize_t read(int fd, void *bytes, size_t size)
{
    long slept = before();
    ssize_t result = next.read(fd, bytes, size);
    after_bytes(DEAR_READ, slept, fd);
    return result;
}
