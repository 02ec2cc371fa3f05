/* SPDX-License-Identifier: MIT */
/*
 * lost_lease.c - a daemon with a thread per request, whose workers sleep in poll() and recv() when their leases are
 * lost. The first has the lease's descriptor in its poll(). The second has only recv(): a signal, sent to its very
 * thread, interrupts it. Both undo their work; the delay is measured against hf_lease_is_valid.
 */
#include <errno.h>
#include <holdfast/holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { POLLER, RECEIVER, WORKERS, IN_TIME_MS = 50 };
static const char *const names[WORKERS] = {"request:1", "request:2"};

struct worker {
    pthread_t thread;
    int       kind, sockets[2]; /* the worker's end, and the silent client's */
    hf_lease *lease;
    double    lost_at_ms;
    _Atomic double undone_at_ms;
};
static hf_client *client;
static atomic_int ready;
static _Thread_local volatile sig_atomic_t my_socket;

static double now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Ends a recv() that waits, and one that is about to: the moment of the signal must not matter. */
static void on_lost(int signal)
{
    int saved = errno;
    (void)signal;
    (void)shutdown(my_socket, SHUT_RD);
    errno = saved;
}

static void *serve(void *arg)
{
    struct worker *worker = arg;
    char byte;
    hf_error error;
    my_socket = worker->sockets[0];
    hf_status status = hf_lock_acquire(client, names[worker->kind],
                                       HF_LOCK(.lease_ms = 2000, .wait_ms = 10000, .event_fd = true,
                                               .signal = worker->kind == RECEIVER ? SIGUSR1 : 0),
                                       &worker->lease, &error);
    if (status != HF_OK)
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
    (void)atomic_fetch_add(&ready, 1);
    if (status != HF_OK)
        return NULL;
    if (worker->kind == POLLER) {
        struct pollfd fds[] = {{.fd = worker->sockets[0], .events = POLLIN},
                               {.fd = hf_lease_event_fd(worker->lease), .events = POLLIN}};
        while (hf_lease_is_valid(worker->lease))
            (void)poll(fds, 2, -1);
    } else {
        while (hf_lease_is_valid(worker->lease))
            (void)recv(worker->sockets[0], &byte, 1, 0);
    }
    atomic_store(&worker->undone_at_ms, now_ms()); /* here the work is rolled back */
    return NULL;
}

int main(void)
{
    hf_error error;
    struct worker workers[WORKERS] = {0};
    (void)sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_lost}, NULL); /* no SA_RESTART */
    if (hf_client_open(NULL, NULL, &client, &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
        return 1;
    }
    for (int i = 0; i < WORKERS; i++) {
        workers[i].kind = i;
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, workers[i].sockets) != 0 ||
            pthread_create(&workers[i].thread, NULL, serve, &workers[i]) != 0)
            return 1;
    }
    while (atomic_load(&ready) < WORKERS)
        (void)poll(NULL, 0, 1);
    for (int i = 0; i < WORKERS; i++) /* an operator takes both locks away */
        if (workers[i].lease == NULL || hf_lock_break(client, names[i], NULL, &error) != HF_OK)
            return 1;
    for (int left = WORKERS; left > 0;) {
        for (int i = 0; i < WORKERS; i++)
            if (workers[i].lost_at_ms == 0 && !hf_lease_is_valid(workers[i].lease)) {
                workers[i].lost_at_ms = now_ms();
                left--;
            }
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    int in_time = 0;
    for (int i = 0; i < WORKERS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        double late_ms = atomic_load(&workers[i].undone_at_ms) - workers[i].lost_at_ms;
        late_ms = late_ms < 0 ? 0 : late_ms;
        in_time += late_ms <= IN_TIME_MS;
        const char *reason = hf_reason_text(hf_lease_reason(workers[i].lease));
        (void)printf("%s in %s: lost (%s), rolled back %.1f ms later\n", names[i],
                     i == POLLER ? "poll()" : "recv()", reason, late_ms);
        in_time -= hf_lease_release(workers[i].lease, NULL) != HF_LOST; /* it must say so too */
    }
    (void)hf_client_close(client, NULL);
    return in_time == WORKERS ? 0 : 1;
}
