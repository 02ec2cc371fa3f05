/* SPDX-License-Identifier: MIT */
/* perturb.c - the marks of base/perturb.h in the stress build: a thread that passes one goes on, yields, spins or
 * sleeps, by a random number generator of its own. HF_STRESS_SEED (1) and the order in which threads first passed a
 * mark fix its numbers; the schedule is the kernel's all the same. HF_STRESS_PLACES names a file to which a program
 * appends at its exit the marks that it passed: a mark that is never passed perturbs nothing. */
#include "base/perturb.h"
#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PLACES 256 /* a power of two, far more than there are */

static uint64_t seed = 1;
static _Atomic(uint64_t) threads;
static _Atomic(const char *) passed[PLACES];

static void note(const char *place)
{
    size_t at = ((uintptr_t)place >> 2) * 31 % PLACES;
    for (int i = 0; i < PLACES; i++, at = (at + 1) % PLACES) {
        const char *there = atomic_load_explicit(&passed[at], memory_order_relaxed);
        if (there == place)
            return;
        if (there == NULL && atomic_compare_exchange_strong(&passed[at], &there, place))
            return;
    }
}

static void spin_ns(int64_t length)
{
    struct timespec begin, now;
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < length);
}

void hfi_perturb(const char *place)
{
    static _Thread_local uint64_t rng;
    int before = errno;
    if (rng == 0)
        rng = seed * UINT64_C(0x9e3779b97f4a7c15) + ++threads;
    uint64_t die = hfi_rng_next(&rng);
    unsigned chance = die % 256, length = (unsigned)(die >> 32);
    note(place);
    if (chance < 1) { /* rarely, and long enough for a whole hand-off elsewhere */
        (void)nanosleep(&(struct timespec){0, length % 1000000}, NULL);
    } else if (chance < 6) {
        (void)nanosleep(&(struct timespec){0, length % 50000}, NULL);
    } else if (chance < 40) {
        spin_ns(length % 8000);
    } else if (chance < 96) {
        (void)syscall(SYS_sched_yield); /* tests count calls of sched_yield() */
    }
    errno = before;
}

__attribute__((constructor)) static void begin(void)
{
    const char *given = getenv("HF_STRESS_SEED");
    if (given != NULL)
        seed = strtoull(given, NULL, 10);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("HF_STRESS_PLACES");
    int fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    for (size_t i = 0; fd >= 0 && i < PLACES; i++) {
        const char *place = atomic_load(&passed[i]);
        char line[64] = "";
        if (place == NULL)
            continue;
        (void)strncpy(line, place, sizeof line - 2);
        line[strlen(line)] = '\n';
        (void)!write(fd, line, strlen(line));
    }
    if (fd >= 0)
        (void)close(fd);
}
