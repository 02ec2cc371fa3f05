/* SPDX-License-Identifier: MIT */
/*
 * uv_loop.c - the same for libuv: the client's descriptor is one uv_poll_t of the loop, and everything that the library
 * has to say comes in the loop's thread. A job holds its lease over several timers; if the lease is lost, its timer is
 * stopped there and then. At the end an operator breaks one lease to show that.
 */
#include <holdfast/holdfast.h>
#include <stdio.h>
#include <uv.h>

enum { JOBS = 20, STEPS = 5 };

struct job {
    uv_timer_t timer;
    hf_lease  *lease;
    int        steps;
};
static hf_client *client;
static uv_poll_t dispatcher;
static struct job jobs[JOBS], endless;
static int finished, undone, beside, working;

static void end_of(struct job *job)
{
    (void)uv_timer_stop(&job->timer);
    uv_close((uv_handle_t *)&job->timer, NULL);
    (void)hf_lease_post_release(job->lease, NULL);
}

static void step(uv_timer_t *timer)
{
    struct job *job = timer->data;
    if (++job->steps < STEPS || job == &endless)
        return;
    working--;
    end_of(job);
    if (++finished == JOBS) /* as an operator would: the endless one is told */
        (void)hf_lock_break(client, "uv:endless", NULL, NULL);
}

static void on_event(hf_lease *lease, const hf_event *event, void *arg)
{
    (void)lease;
    if (event->kind != HF_EVENT_LOST)
        return;
    undone++; /* here the work is rolled back */
    end_of(arg);
    (void)uv_poll_stop(&dispatcher);
    uv_close((uv_handle_t *)&dispatcher, NULL); /* nothing is left: uv_run returns */
}

static void on_done(hf_pending *pending, void *arg)
{
    struct job *job = arg;
    hf_error error;
    if (hf_pending_take(pending, &job->lease, &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
        uv_stop(uv_default_loop());
        return;
    }
    if (job != &endless)
        beside += working++ != 0;
    (void)uv_timer_start(&job->timer, step, 1, 1);
}

static void dispatch(uv_poll_t *handle, int status, int events)
{
    (void)handle, (void)status, (void)events;
    (void)hf_client_dispatch(client);
}

static hf_status start(struct job *job, const char *name, hf_error *error)
{
    hf_pending *pending; /* `done` brings it along */
    (void)uv_timer_init(uv_default_loop(), &job->timer);
    job->timer.data = job;
    return hf_lock_acquire_start(client, name, HF_LOCK(.wait_ms = 30000, .on_event = on_event, .arg = job), on_done, job,
                                 &pending, error);
}

int main(void)
{
    hf_error error;
    hf_status status = hf_client_open(NULL, HF_CLIENT(.dispatch = HF_DISPATCH_CALLER), &client, &error);
    if (status == HF_OK)
        status = start(&endless, "uv:endless", &error);
    for (int i = 0; i < JOBS && status == HF_OK; i++)
        status = start(&jobs[i], "uv:job", &error);
    if (status != HF_OK) {
        (void)fprintf(stderr, "%s\n%s\n", error.message, error.hint);
        return 1;
    }
    if (uv_poll_init(uv_default_loop(), &dispatcher, hf_client_fd(client)) != 0 ||
        uv_poll_start(&dispatcher, UV_READABLE, dispatch) != 0)
        return 1;
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    (void)hf_client_close(client, NULL);
    (void)printf("%d jobs of %d steps, %d beside another; %d told of its loss and undone\n", finished, STEPS, beside, undone);
    return finished == JOBS && beside == 0 && undone == 1 ? 0 : 1;
}
