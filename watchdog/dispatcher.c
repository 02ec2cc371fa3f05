/* SPDX-License-Identifier: MIT */
/* dispatcher.c - posted jobs and chores: two queues under one mutex, each with a thread that runs it. */
#include "watchdog/dispatcher.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/park.h"
#include "base/perturb.h"
#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CHORES_END_NS (200 * HFI_MS)

struct hfi_dispatcher {
    struct hfi_mutex mutex;  /* guards all below; no job runs under it */
    struct hfi_list posted; /* of struct hfi_job, oldest first */
    size_t posted_count;
    struct hfi_list chores;
    struct hfi_park work;   /* woken when a job is queued or the dispatcher ends */
    struct hfi_park done;   /* woken when a posted job has returned, and at chores_over */
    bool runs;              /* a posted job is running */
    bool caller_runs, has_call_thread, has_chore_thread, ends;
    bool chores_over; /* the chore thread is about to end */
    bool left_behind; /* the chore thread did not end in time */
    bool let_go;      /* freed by its owner: a chore thread left behind then has the last reference */
    pthread_t call_thread, chore_thread;
    int fd; /* CALLER: readable while `posted` is not empty */
};

/* The eventfd is written or read at each change of `posted` between empty and not empty. */
static void put_locked(struct hfi_dispatcher *dispatcher, struct hfi_job *job)
{
    bool was_empty = hfi_list_is_empty(&dispatcher->posted);
    hfi_list_append(&dispatcher->posted, &job->link);
    dispatcher->posted_count++;
    if (was_empty && dispatcher->fd >= 0)
        hfi_event_set(dispatcher->fd);
}

static void take_locked(struct hfi_dispatcher *dispatcher, struct hfi_job *job)
{
    hfi_list_remove(&job->link);
    dispatcher->posted_count--;
    if (hfi_list_is_empty(&dispatcher->posted) && dispatcher->fd >= 0)
        hfi_event_clear(dispatcher->fd);
}

/* Runs the jobs that are posted now, and not those that they post: a callback that begins the next acquire may have it
 * decided at once, again and again. Returns 0 while another thread runs them, and inside a job. */
static size_t run_posted_locked(struct hfi_dispatcher *dispatcher)
{
    size_t ran = 0, most = dispatcher->posted_count;
    while (ran < most && !dispatcher->runs && !hfi_list_is_empty(&dispatcher->posted)) {
        struct hfi_job *job = hfi_list_first(&dispatcher->posted, struct hfi_job, link);
        take_locked(dispatcher, job);
        dispatcher->runs = true;
        hfi_mutex_unlock(&dispatcher->mutex);
        HFI_PERTURB("call-to-run");
        job->run(job);
        hfi_mutex_lock(&dispatcher->mutex);
        dispatcher->runs = false;
        hfi_park_wake(&dispatcher->done);
        ran++;
    }
    return ran;
}

/* False: until_ns has passed. */
static bool sleep_locked(struct hfi_dispatcher *dispatcher, struct hfi_park *park, int64_t until_ns)
{
    uint32_t epoch = hfi_park_epoch(park);
    hfi_mutex_unlock(&dispatcher->mutex);
    HFI_PERTURB("dispatcher-to-sleep");
    bool woken = hfi_park_wait(park, epoch, until_ns);
    hfi_mutex_lock(&dispatcher->mutex);
    return woken;
}

static void dispatcher_free(struct hfi_dispatcher *dispatcher)
{
    if (dispatcher->fd >= 0)
        (void)close(dispatcher->fd);
    hfi_mutex_destroy(&dispatcher->mutex);
    free(dispatcher);
}

static void *run_calls(void *arg)
{
    struct hfi_dispatcher *dispatcher = arg;
    hfi_mutex_lock(&dispatcher->mutex);
    for (;;) {
        if (run_posted_locked(dispatcher) > 0)
            continue;
        if (dispatcher->ends && hfi_list_is_empty(&dispatcher->posted))
            break;
        (void)sleep_locked(dispatcher, &dispatcher->work, HFI_NEVER);
    }
    hfi_mutex_unlock(&dispatcher->mutex);
    return NULL;
}

static void *run_chores(void *arg)
{
    struct hfi_dispatcher *dispatcher = arg;
    hfi_mutex_lock(&dispatcher->mutex);
    for (;;) {
        if (!hfi_list_is_empty(&dispatcher->chores)) {
            struct hfi_job *job = hfi_list_first(&dispatcher->chores, struct hfi_job, link);
            hfi_list_remove(&job->link);
            hfi_mutex_unlock(&dispatcher->mutex);
            job->run(job);
            hfi_mutex_lock(&dispatcher->mutex);
        } else if (dispatcher->ends) {
            break;
        } else {
            (void)sleep_locked(dispatcher, &dispatcher->work, HFI_NEVER);
        }
    }
    dispatcher->chores_over = true;
    hfi_park_wake(&dispatcher->done);
    bool last = dispatcher->left_behind && dispatcher->let_go;
    hfi_mutex_unlock(&dispatcher->mutex);
    if (last)
        dispatcher_free(dispatcher);
    return NULL;
}

hf_status hfi_dispatcher_start(bool caller_runs, struct hfi_dispatcher **out, hf_error *error)
{
    *out = NULL;
    struct hfi_dispatcher *dispatcher = calloc(1, sizeof *dispatcher);
    if (dispatcher == NULL)
        return hfi_fail(error, HF_NOMEM, NULL, "no memory for the dispatcher");
    hfi_mutex_init(&dispatcher->mutex, HFI_RANK_LEAF);
    hfi_list_init(&dispatcher->posted);
    hfi_list_init(&dispatcher->chores);
    hfi_park_init(&dispatcher->work);
    hfi_park_init(&dispatcher->done);
    dispatcher->caller_runs = caller_runs;
    dispatcher->fd = -1;
    int failed = 0;
    if (caller_runs) {
        dispatcher->fd = hfi_descriptor_event();
        failed = dispatcher->fd < 0 ? errno : 0;
    } else {
        failed = hfi_thread_start(&dispatcher->call_thread, "hf-dispatcher", run_calls, dispatcher);
        dispatcher->has_call_thread = failed == 0;
    }
    if (failed != 0) {
        dispatcher_free(dispatcher);
        (void)hfi_fail(error, HF_NOMEM, "raise the limit on threads and descriptors (ulimit -u, ulimit -n)",
                       "cannot start the dispatcher: no %s", caller_runs ? "eventfd" : "thread");
        hfi_fail_errno(error, failed);
        return HF_NOMEM;
    }
    *out = dispatcher;
    return HF_OK;
}

/* A name lookup can hang for long and cannot be interrupted: then its thread is left behind. */
static void end_chores(struct hfi_dispatcher *dispatcher)
{
    int64_t until_ns = hfi_now(&hfi_boottime) + CHORES_END_NS;
    bool in_time = true;
    hfi_mutex_lock(&dispatcher->mutex);
    while (dispatcher->has_chore_thread && !dispatcher->chores_over && in_time)
        in_time = sleep_locked(dispatcher, &dispatcher->done, until_ns);
    pthread_t thread = dispatcher->chore_thread;
    bool has_thread = dispatcher->has_chore_thread;
    bool left_behind = dispatcher->left_behind = has_thread && !dispatcher->chores_over;
    hfi_mutex_unlock(&dispatcher->mutex);
    if (left_behind)
        hfi_thread_leave_behind(thread);
    else if (has_thread)
        (void)pthread_join(thread, NULL);
}

void hfi_dispatcher_stop(struct hfi_dispatcher *dispatcher)
{
    if (dispatcher == NULL)
        return;
    hfi_mutex_lock(&dispatcher->mutex);
    dispatcher->ends = true;
    hfi_park_wake(&dispatcher->work);
    hfi_mutex_unlock(&dispatcher->mutex);
    if (dispatcher->has_call_thread)
        (void)pthread_join(dispatcher->call_thread, NULL);

    /* CALLER: run what the user's threads have not, after the job that one of them may be running. */
    hfi_mutex_lock(&dispatcher->mutex);
    while (dispatcher->runs || !hfi_list_is_empty(&dispatcher->posted)) {
        if (dispatcher->runs)
            (void)sleep_locked(dispatcher, &dispatcher->done, HFI_NEVER);
        else
            (void)run_posted_locked(dispatcher);
    }
    hfi_mutex_unlock(&dispatcher->mutex);
    end_chores(dispatcher);
}

void hfi_dispatcher_free(struct hfi_dispatcher *dispatcher)
{
    if (dispatcher == NULL)
        return;
    hfi_mutex_lock(&dispatcher->mutex);
    dispatcher->let_go = true;
    bool last = !dispatcher->left_behind || dispatcher->chores_over;
    hfi_mutex_unlock(&dispatcher->mutex);
    if (last)
        dispatcher_free(dispatcher);
}

void hfi_dispatcher_post(struct hfi_dispatcher *dispatcher, struct hfi_job *job)
{
    hfi_mutex_lock(&dispatcher->mutex);
    put_locked(dispatcher, job);
    if (!dispatcher->caller_runs)
        hfi_park_wake(&dispatcher->work);
    hfi_mutex_unlock(&dispatcher->mutex);
}

bool hfi_dispatcher_chore(struct hfi_dispatcher *dispatcher, struct hfi_job *job)
{
    hfi_mutex_lock(&dispatcher->mutex);
    if (!dispatcher->has_chore_thread && !dispatcher->ends)
        dispatcher->has_chore_thread =
            hfi_thread_start(&dispatcher->chore_thread, "hf-chores", run_chores, dispatcher) == 0;
    bool taken = dispatcher->has_chore_thread && !dispatcher->ends;
    if (taken) {
        hfi_list_append(&dispatcher->chores, &job->link);
        hfi_park_wake(&dispatcher->work);
    }
    hfi_mutex_unlock(&dispatcher->mutex);
    return taken;
}

bool hfi_dispatcher_withdraw(struct hfi_dispatcher *dispatcher, struct hfi_job *job)
{
    hfi_mutex_lock(&dispatcher->mutex);
    bool listed = !hfi_list_is_empty(&job->link);
    if (listed)
        take_locked(dispatcher, job);
    hfi_mutex_unlock(&dispatcher->mutex);
    return listed;
}

void hfi_dispatcher_forked(struct hfi_dispatcher *dispatcher)
{
    if (dispatcher->fd >= 0)
        (void)close(dispatcher->fd);
    dispatcher->fd = -1;
}

int hfi_dispatcher_fd(struct hfi_dispatcher *dispatcher)
{
    return dispatcher->fd;
}

size_t hfi_dispatcher_run(struct hfi_dispatcher *dispatcher)
{
    if (!dispatcher->caller_runs)
        return 0;
    hfi_mutex_lock(&dispatcher->mutex);
    size_t ran = run_posted_locked(dispatcher);
    hfi_mutex_unlock(&dispatcher->mutex);
    return ran;
}
