/* SPDX-License-Identifier: MIT */
/* loader.c - the loader threads: started when they are needed, idle until they are called, and what ends them. */
#include "core/fetch/aside_private.h"
#include "base/perturb.h"
#include "base/thread.h"

/* Its loader has ended the thread, which the program must not do: the job ends, and another thread takes the place. */
static void left(void *arg)
{
    struct hfi_loader *loader = arg;
    struct hfi_aside *aside = loader->aside;
    struct hfi_aside_job *job = loader->job;
    hfi_thread_leave_behind(pthread_self());
    if (job != NULL)
        hfi_aside_end_copy(aside->client, job); /* first: at the end of the next lines the client may be freed */
    hfi_mutex_lock(&aside->mutex);
    loader->taken = false;
    aside->queue.threads--;
    if (job != NULL)
        hfi_aside_finish(aside, job);
    hfi_loaders_serve(aside);
    hfi_mutex_unlock(&aside->mutex);
    if (job != NULL)
        hfi_aside_drop(NULL, job);
}

/* Mutex held, and released while it sleeps. NULL: the thread is to end. */
static struct hfi_aside_job *take_locked(struct hfi_aside *aside, struct hfi_loader *loader)
{
    while (hfi_list_is_empty(&aside->lists[HFI_LOAD]) && hfi_list_is_empty(&aside->lists[HFI_REFRESH])) {
        if (aside->stops)
            return NULL;
        uint32_t epoch = hfi_park_epoch(&loader->park);
        if (hfi_list_is_empty(&loader->link)) { /* whoever calls it takes it out */
            hfi_list_prepend(&aside->idle, &loader->link);
            aside->queue.idle++;
        }
        hfi_mutex_unlock(&aside->mutex);
        (void)hfi_park_wait(&loader->park, epoch, HFI_NEVER);
        hfi_mutex_lock(&aside->mutex);
    }
    enum hfi_load_kind list = hfi_load_queue_next(!hfi_list_is_empty(&aside->lists[HFI_LOAD]));
    struct hfi_aside_job *job = hfi_list_first(&aside->lists[list], struct hfi_aside_job, link);
    hfi_list_remove(&job->link);
    hfi_list_append(&aside->running, &job->link);
    aside->queue.queued--;
    job->state = HFI_JOB_RUNS;
    job->since_ns = hfi_now(aside->client->clock);
    return job;
}

static void work_on(struct hfi_loader *loader)
{
    struct hfi_aside *aside = loader->aside;
    hfi_mutex_lock(&aside->mutex);
    while ((loader->job = take_locked(aside, loader)) != NULL) {
        struct hfi_aside_job *job = loader->job;
        hfi_mutex_unlock(&aside->mutex);
        HFI_PERTURB("taken-to-run");
        aside->run(aside->client, job);
        hfi_mutex_lock(&aside->mutex);
        loader->job = NULL;
        hfi_aside_finish(aside, job);
        hfi_mutex_unlock(&aside->mutex);
        hfi_aside_drop(aside->client, job);
        hfi_mutex_lock(&aside->mutex);
    }
    hfi_mutex_unlock(&aside->mutex);
}

static void *work(void *arg)
{
    (void)hfi_thread_shield(); /* as in a call: a loader is not canceled in the middle */
    pthread_cleanup_push(left, arg);
    work_on(arg);
    pthread_cleanup_pop(0);
    hfi_thread_unshield();
    return NULL;
}

static void start_locked(struct hfi_aside *aside)
{
    struct hfi_loader *loader = aside->loaders;
    while (loader->taken)
        loader++;
    loader->job = NULL;
    if (hfi_thread_start(&loader->thread, "hf-loader", work, loader) != 0)
        return;
    loader->taken = true;
    aside->queue.threads++;
}

void hfi_loaders_serve(struct hfi_aside *aside)
{
    if (aside->queue.queued > 0 && aside->queue.idle > 0) {
        struct hfi_loader *loader = hfi_list_first(&aside->idle, struct hfi_loader, link);
        hfi_list_remove(&loader->link);
        aside->queue.idle--;
        hfi_park_wake(&loader->park);
    } else if (hfi_load_queue_needs_thread(&aside->queue)) {
        start_locked(aside);
    }
}

void hfi_aside_stop(hf_client *client)
{
    struct hfi_aside *aside = client->aside;
    if (aside == NULL)
        return;
    hfi_mutex_lock(&aside->mutex);
    aside->stops = true;
    for (int i = 0; i < aside->queue.loaders; i++)
        hfi_park_wake(&aside->loaders[i].park);
    while (!hfi_list_is_empty(&aside->running)) {
        uint32_t epoch = hfi_park_epoch(&aside->ended);
        hfi_mutex_unlock(&aside->mutex);
        (void)hfi_park_wait(&aside->ended, epoch, HFI_NEVER);
        hfi_mutex_lock(&aside->mutex);
    }
    hfi_mutex_unlock(&aside->mutex);
    for (int i = 0; i < aside->queue.loaders; i++) /* who is taken now neither runs a job nor leaves */
        if (aside->loaders[i].taken) {
            (void)pthread_join(aside->loaders[i].thread, NULL);
            aside->loaders[i].taken = false;
        }
}
