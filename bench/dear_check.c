/* SPDX-License-Identifier: MIT */
/* dear_check.c - are wake-ups dear that are to be, and no others? Each call by itself, once asleep and once not; then
 * hiredis and Holdfast against a server. */
#include "bench/dear.h"
#include "bench/pairs.h"
#include "bench/server.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int ends[2], watched;
static const struct timespec millisecond = {0, 1000000}, none = {0, 0};

static void by_futex(bool sleeps)
{
    uint32_t word = 0;
    (void)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, sleeps ? 0 : 1, &millisecond, NULL, 0);
}

static void by_cond(bool sleeps)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec until = {0, 0};
    if (sleeps) {
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 2000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
    }
    (void)pthread_mutex_lock(&mutex);
    (void)pthread_cond_timedwait(&cond, &mutex, &until);
    (void)pthread_mutex_unlock(&mutex);
}

static void by_poll(bool sleeps)
{
    (void)poll(NULL, 0, sleeps ? 1 : 0);
}

static void by_ppoll(bool sleeps)
{
    (void)ppoll(NULL, 0, sleeps ? &millisecond : &none, NULL);
}

static void by_epoll(bool sleeps)
{
    struct epoll_event event;
    (void)epoll_wait(watched, &event, 1, sleeps ? 1 : 0);
}

static void by_recv(bool sleeps)
{
    char byte;
    (void)recv(ends[0], &byte, 1, sleeps ? 0 : MSG_DONTWAIT);
}

static void by_read(bool sleeps)
{
    char byte = 'x';
    if (!sleeps && write(ends[1], &byte, 1) != 1)
        bench_die("cannot write to a socket");
    if (read(ends[0], &byte, 1) == (sleeps ? 1 : 0))
        bench_die("a socket has what nobody wrote");
}

static const struct check {
    const char *name;
    void (*call)(bool sleeps);
} checks[DEAR_CALLS] = {
    [DEAR_FUTEX] = {"futex", by_futex}, [DEAR_COND] = {"cond", by_cond},    [DEAR_POLL] = {"poll", by_poll},
    [DEAR_PPOLL] = {"ppoll", by_ppoll}, [DEAR_EPOLL] = {"epoll", by_epoll}, [DEAR_RECV] = {"recv", by_recv},
    [DEAR_READ] = {"read", by_read},
};

/* Dear if it sleeps, and nothing else is counted. */
static void check(enum dear_call call, bool sleeps)
{
    long before[DEAR_CALLS], after[DEAR_CALLS];
    bench_dear_counts(before);
    int64_t began = bench_now_ns();
    checks[call].call(sleeps);
    int64_t took = bench_now_ns() - began;
    bench_dear_counts(after);
    for (int i = 0; i < DEAR_CALLS; i++)
        if (after[i] - before[i] != (i == (int)call && sleeps ? 1 : 0))
            bench_die("%s, %s: %ld of %s made dear", checks[call].name, sleeps ? "asleep" : "awake",
                      after[i] - before[i], checks[i].name);
    if (sleeps && took < 1000000 + DEAR_NS)
        bench_die("%s is back after %lld ns", checks[call].name, (long long)took);
}

static void count_turn(const char *whose, bench_turn *turn, struct bench_pairs *pairs)
{
    long before[DEAR_CALLS], after[DEAR_CALLS], all = 0;
    bench_dear_counts(before);
    (void)turn(pairs, 0.1);
    bench_dear_counts(after);
    (void)printf("  %-10s", whose);
    for (int i = 0; i < DEAR_CALLS; i++) {
        (void)printf(" %s %ld", checks[i].name, after[i] - before[i]);
        all += after[i] - before[i];
    }
    (void)printf("\n");
    if (all == 0)
        bench_die("no wake-up of %s was made dear", whose);
}

int main(int argc, char **argv)
{
    struct bench_server server;
    struct bench_pairs pairs;
    const struct timeval limit = {0, 2000};
    if (argc != 1)
        bench_die("dear_check knows no options, not %s", argv[1]);
    bench_dear(argv);
    watched = epoll_create1(EPOLL_CLOEXEC);
    if (watched < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 ||
        setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
        bench_die("no sockets");
    for (int call = 0; call < DEAR_CALLS; call++) {
        check((enum dear_call)call, true);
        check((enum dear_call)call, false);
    }
    (void)printf("each of %d calls is dear after a sleep, and only then; in pairs of 4 threads:\n",
                 DEAR_CALLS);
    bench_server_start(&server, -1);
    bench_pairs_open(&pairs, server.url, server.port, 4);
    count_turn("hiredis", bench_pairs_plain, &pairs);
    count_turn("Holdfast", bench_pairs_ours, &pairs);
    bench_pairs_close(&pairs);
    bench_server_stop(&server);
    return 0;
}
