/* SPDX-License-Identifier: MIT */
/* crew.c - see crew.h. */
#include "bench/crew.h"

#include "bench/harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct crew {
    bench_step *step;
    void *arg;
    pthread_mutex_t gate; /* shut till all are there: those that worked already would keep the CPU from who starts the others */
    _Atomic(bool) stop;
};

struct hand {
    _Alignas(64) _Atomic(long) done;
    struct crew *crew;
    pthread_t thread;
    int index;
};

static void *work(void *arg)
{
    struct hand *me = arg;
    long done = 0;
    (void)pthread_mutex_lock(&me->crew->gate);
    (void)pthread_mutex_unlock(&me->crew->gate);
    while (!atomic_load_explicit(&me->crew->stop, memory_order_relaxed)) {
        done += me->crew->step(me->index, me->crew->arg);
        atomic_store_explicit(&me->done, done, memory_order_relaxed);
    }
    return NULL;
}

double bench_crew(int threads, double seconds, bench_step *step, void *arg, long *shares)
{
    static struct hand hands[BENCH_CREW_MAX];
    static long before[BENCH_CREW_MAX];
    pthread_attr_t attributes;
    struct crew crew = {.step = step, .arg = arg, .gate = PTHREAD_MUTEX_INITIALIZER};
    for (int i = 0; i < threads; i++) {
        hands[i].crew = &crew;
        hands[i].index = i;
        atomic_store(&hands[i].done, 0);
    }
    (void)pthread_attr_init(&attributes);
    if (threads > 1024)
        (void)pthread_attr_setstacksize(&attributes, 32 * 1024);
    (void)pthread_mutex_lock(&crew.gate);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&hands[i].thread, &attributes, work, &hands[i]) != 0)
            bench_die("cannot start thread %d", i);
    (void)pthread_attr_destroy(&attributes);
    (void)pthread_mutex_unlock(&crew.gate);
    bench_sleep(seconds / 10 + 0.01);
    int64_t began = bench_now_ns();
    for (int i = 0; i < threads; i++)
        before[i] = atomic_load_explicit(&hands[i].done, memory_order_relaxed);
    bench_sleep(seconds);
    long all = 0;
    for (int i = 0; i < threads; i++) {
        long mine = atomic_load_explicit(&hands[i].done, memory_order_relaxed) - before[i];
        all += mine;
        if (shares != NULL)
            shares[i] = mine;
    }
    int64_t ended = bench_now_ns();
    atomic_store(&crew.stop, true);
    for (int i = 0; i < threads; i++)
        (void)pthread_join(hands[i].thread, NULL);
    return (double)all * 1e9 / (double)(ended - began);
}

pid_t bench_fork(int (*run)(void *arg), void *arg)
{
    (void)fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        bench_die("cannot fork");
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, 9);
        _exit(run(arg));
    }
    return child;
}

void bench_join(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        bench_die("a child failed");
}

void *bench_shared(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        bench_die("no memory to share");
    return memory;
}
