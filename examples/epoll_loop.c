/* SPDX-License-Identifier: MIT */
/*
 * epoll_loop.c - one thread, one epoll, two hundred jobs that want five locks, and a clock that ticks all the time. The
 * client's descriptor stands in the epoll beside the program's own; hf_client_dispatch calls `done` and on_event, so
 * nothing here needs a mutex. No job of a name runs beside another, one is called off, and one gives up in time.
 */
#include <holdfast/holdfast.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { JOBS = 200, NAMES = 5 };

struct job {
    hf_pending *pending;
    hf_lease   *lease; /* while it runs */
    int         name;
};
static struct job jobs[JOBS + 2];
static int over, wrong, canceled, timed_out, running[NAMES + 1];

/* The answer to a job's question, in the loop's thread. */
static void on_done(hf_pending *pending, void *arg)
{
    struct job *job = arg;
    hf_error error;
    hf_status status = hf_pending_take(pending, &job->lease, &error);
    job->pending = NULL;
    if (status == HF_OK) {
        wrong += running[job->name]++ != 0;
        return; /* it runs until the next tick */
    }
    timed_out += status == HF_TIMEOUT;
    if (status != HF_TIMEOUT)
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
    over++;
}

static int start(hf_client *client, struct job *job, int name, int64_t wait_ms)
{
    char text[32];
    hf_error error;
    (void)snprintf(text, sizeof text, "job:%d", name);
    job->name = name;
    if (hf_lock_acquire_start(client, text, HF_LOCK(.wait_ms = wait_ms), on_done, job, &job->pending, &error) == HF_OK)
        return 0;
    (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
    return 1;
}

/* Every millisecond: what runs has done its work. post_release does not wait for the server. */
static void on_tick(void)
{
    for (int i = 0; i < JOBS; i++) {
        if (jobs[i].lease == NULL)
            continue;
        running[jobs[i].name]--;
        wrong += hf_lease_post_release(jobs[i].lease, NULL) != HF_OK;
        jobs[i].lease = NULL;
        over++;
    }
}

static void call_off(struct job *job)
{
    canceled += hf_pending_take(job->pending, &job->lease, NULL) == HF_CANCELED;
    job->pending = NULL;
    over++;
}

int main(void)
{
    hf_error error;
    hf_client *client;
    hf_lease *held;
    int loop = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct itimerspec each_ms = {{0, 1000000}, {0, 1000000}};
    if (loop < 0 || timer < 0 || timerfd_settime(timer, 0, &each_ms, NULL) != 0)
        return 1;
    if (hf_client_open(NULL, HF_CLIENT(.dispatch = HF_DISPATCH_CALLER), &client, &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
        return 1;
    }
    int fd = hf_client_fd(client);
    if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN, .data.fd = fd}) != 0 ||
        epoll_ctl(loop, EPOLL_CTL_ADD, timer, &(struct epoll_event){.events = EPOLLIN, .data.fd = timer}) != 0 ||
        hf_lock_acquire(client, "job:5", HF_LOCK(.wait_ms = 5000), &held, &error) != HF_OK) /* before the loop begins */
        return 1;
    for (int i = 0; i < JOBS; i++)
        if (start(client, &jobs[i], i % NAMES, 60000) != 0)
            return 1;
    if (start(client, &jobs[JOBS], NAMES, 50) != 0 || start(client, &jobs[JOBS + 1], NAMES, HF_FOREVER) != 0)
        return 1;
    call_off(&jobs[JOBS + 1]);
    while (over < JOBS + 2) {
        struct epoll_event ready[2];
        uint64_t ticks;
        int count = epoll_wait(loop, ready, 2, 10000);
        if (count == 0)
            return 1;
        for (int i = 0; i < count; i++) {
            if (ready[i].data.fd == fd)
                (void)hf_client_dispatch(client);
            else if (read(timer, &ticks, sizeof ticks) > 0)
                on_tick();
        }
    }
    (void)hf_lease_release(held, NULL);
    (void)hf_client_close(client, NULL);
    (void)printf("%d jobs, %d beside another of its name; %d called off, %d gave up in time\n", JOBS, wrong, canceled,
                 timed_out);
    (void)close(timer);
    (void)close(loop);
    return wrong == 0 && canceled == 1 && timed_out == 1 ? 0 : 1;
}
