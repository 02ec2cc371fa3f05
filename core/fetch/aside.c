/* SPDX-License-Identifier: MIT */
/* aside.c - see aside.h: jobs, and the calls that wait for them. The threads are in loader.c. */
#include "core/fetch/aside_private.h"
#include "core/context/callback.h"
#include "core/context/wait.h"
#include "base/perturb.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static unsigned long hash_of(const void *object, unsigned long seed)
{
    (void)seed;
    return (unsigned long)((const struct hfi_aside_job *)object)->key.hash;
}

static bool is_same(const void *a, const void *b)
{
    const struct hfi_name *x = &((const struct hfi_aside_job *)a)->key, *y = &((const struct hfi_aside_job *)b)->key;
    return x->size == y->size && memcmp(x->text, y->text, x->size) == 0;
}

bool hfi_aside_open(hf_client *client, int loaders, hfi_aside_run *run)
{
    if (loaders == HF_OFF)
        return true;
    struct hfi_aside *aside = calloc(1, sizeof *aside + (size_t)loaders * sizeof aside->loaders[0]);
    if (aside == NULL || !hfi_set_open(&aside->jobs, 16, hash_of, is_same)) {
        free(aside);
        return false;
    }
    aside->client = client;
    aside->run = run;
    aside->queue.loaders = loaders;
    hfi_mutex_init(&aside->mutex, HFI_RANK_INNER);
    hfi_list_init(&aside->lists[HFI_REFRESH]);
    hfi_list_init(&aside->lists[HFI_LOAD]);
    hfi_list_init(&aside->running);
    hfi_list_init(&aside->idle);
    hfi_park_init(&aside->ended);
    for (int i = 0; i < loaders; i++) {
        aside->loaders[i].aside = aside;
        hfi_list_init(&aside->loaders[i].link);
        hfi_park_init(&aside->loaders[i].park);
    }
    client->aside = aside;
    return true;
}

void hfi_aside_free(hf_client *client)
{
    struct hfi_aside *aside = client->aside;
    if (aside == NULL)
        return;
    hfi_set_close(&aside->jobs);
    hfi_mutex_destroy(&aside->mutex);
    free(aside);
    client->aside = NULL;
}

/* ---- the end of a job ---- */

/* Once, whatever becomes of the job. No mutex held: free_arg is the program's. */
void hfi_aside_end_copy(hf_client *client, struct hfi_aside_job *job)
{
    struct hfi_callback callback;
    void *copy = job->options.arg;
    job->options.arg = NULL;
    if (copy == NULL)
        return;
    if (job->options.copy_arg == NULL) {
        free(copy);
    } else if (job->options.free_arg != NULL) {
        hfi_callback_begin(&callback, client, NULL);
        job->options.free_arg(copy);
        hfi_callback_end(&callback);
    }
}

void hfi_aside_drop(hf_client *client, struct hfi_aside_job *job)
{
    hfi_aside_end_copy(client, job);
    hfi_body_unref(job->old);
    hf_value_free(job->value);
    free(job);
}

/* Gives the result to all who wait. Mutex held. */
static void answer_locked(struct hfi_aside_job *job)
{
    const hf_value *value = job->value;
    while (!hfi_list_is_empty(&job->waiters)) {
        struct hfi_aside_waiter *waiter = hfi_list_first(&job->waiters, struct hfi_aside_waiter, link);
        hfi_list_remove(&waiter->link);
        /* Who has come since the value was seen may have read that there is none, because it was forgotten since. */
        bool is_too_late = job->is_late || waiter->joined_ns >= job->came_ns;
        waiter->status = job->status == HF_OK && is_too_late && !waiter->is_owner ? HF_BUSY : job->status;
        if (waiter->status == HF_OK) {
            waiter->body = hfi_value_body(value);
            hfi_body_ref(waiter->body);
            waiter->source = value->source;
            waiter->stored = value->stored;
            waiter->fresh_ms = value->fresh_ms;
            waiter->stale_ms = job->options.stale_ms;
        }
        waiter->error = job->error;
        waiter->done = true;
        hfi_park_wake(&waiter->park);
    }
}

/* The job is no longer in a list, and is not found by its key any more. Mutex held. */
static void remove_locked(struct hfi_aside *aside, struct hfi_aside_job *job)
{
    HFI_ASSERT_HELD(&aside->mutex);
    if (job->state != HFI_JOB_RUNS)
        aside->queue.queued--;
    hfi_list_remove(&job->link);
    hfi_set_remove(&aside->jobs, job->key.hash, job);
    answer_locked(job);
}

static void note_outcome_locked(struct hfi_aside *aside, const struct hfi_aside_job *job)
{
    int64_t not_before_ns =
        hfi_load_queue_not_before(job->status, job->options.retry_ms, hfi_now(aside->client->clock));
    if (not_before_ns != 0 || aside->pauses[job->key.hash % HFI_PAUSES].hash == job->key.hash) {
        aside->pauses[job->key.hash % HFI_PAUSES].hash = job->key.hash;
        aside->pauses[job->key.hash % HFI_PAUSES].not_before_ns = not_before_ns;
    }
}

void hfi_aside_finish(struct hfi_aside *aside, struct hfi_aside_job *job)
{
    note_outcome_locked(aside, job);
    remove_locked(aside, job);
    hfi_park_wake(&aside->ended);
}

/* ---- the calls ---- */

static struct hfi_aside_job *find_locked(struct hfi_aside *aside, const struct hfi_name *key)
{
    struct hfi_aside_job like = {.key = *key};
    return hfi_set_find(&aside->jobs, key->hash, &like);
}

static struct hfi_aside_job *make_locked(struct hfi_aside *aside, const struct hfi_aside_order *order, int64_t now)
{
    struct hfi_aside_job *job = calloc(1, sizeof *job + order->key->size + 1);
    if (job == NULL)
        return NULL;
    memcpy(job->text, order->key->text, order->key->size);
    job->key = *order->key;
    job->key.text = job->text;
    hfi_list_init(&job->link);
    hfi_list_init(&job->waiters);
    job->kind = order->kind;
    job->posted_ns = job->since_ns = now;
    job->options = *order->options;
    job->options.arg = NULL;
    job->options.cancel = NULL;
    job->options.where = HF_LOAD_HERE;
    job->left_ms = order->left_ms;
    job->came_ns = HFI_NEVER;
    job->is_read = order->is_read;
    job->near = order->near;
    if (!hfi_set_add(&aside->jobs, job->key.hash, job)) {
        free(job);
        return NULL;
    }
    job->old = order->old;
    if (job->old != NULL)
        hfi_body_ref(job->old);
    aside->queue.queued++;
    return job;
}

static void join_locked(struct hfi_aside_job *job, struct hfi_aside_waiter *waiter, bool is_owner, int64_t now)
{
    if (waiter == NULL)
        return;
    waiter->job = job;
    waiter->done = false;
    waiter->is_owner = is_owner;
    waiter->joined_ns = now;
    waiter->body = NULL;
    hfi_list_init(&waiter->link);
    hfi_park_init(&waiter->park);
    hfi_list_append(&job->waiters, &waiter->link);
}

/* A caller that has nothing comes to a refresh that no thread has begun: it is a load now. */
static void raise_locked(struct hfi_aside *aside, struct hfi_aside_job *job, enum hfi_load_kind kind)
{
    if (kind != HFI_LOAD || job->kind == HFI_LOAD || job->state == HFI_JOB_RUNS)
        return;
    job->kind = HFI_LOAD;
    if (job->state != HFI_JOB_QUEUED)
        return;
    hfi_list_remove(&job->link);
    hfi_list_append(&aside->lists[HFI_LOAD], &job->link);
}

static hf_status copy_arg(hf_client *client, struct hfi_aside_job *job, void *arg)
{
    struct hfi_callback callback;
    if (arg == NULL)
        return HF_OK;
    if (job->options.copy_arg != NULL) {
        hfi_callback_begin(&callback, client, NULL);
        job->options.arg = job->options.copy_arg(arg);
        hfi_callback_end(&callback);
    } else if ((job->options.arg = malloc(job->options.arg_size)) != NULL) {
        memcpy(job->options.arg, arg, job->options.arg_size);
    }
    return job->options.arg != NULL ? HF_OK
                                    : hfi_fail(&job->error, HF_NOMEM, "", "no memory for the copy of arg that a loader thread needs");
}

/* The job's copy is made: it waits for a thread now. Else it is dropped, and all who wait for it are told. */
static hf_status queue_job(struct hfi_aside *aside, struct hfi_aside_job *job, hf_status status, hf_error *error)
{
    hfi_mutex_lock(&aside->mutex);
    if (status == HF_OK && aside->queue.closed) {
        status = hfi_fail(&job->error, HF_CLOSED, "", "the client was closed before a thread could load");
    } else if (status == HF_OK) {
        job->state = HFI_JOB_QUEUED;
        hfi_list_append(&aside->lists[job->kind], &job->link);
        hfi_loaders_serve(aside);
        if (aside->queue.threads == 0)
            status = hfi_fail(&job->error, HF_NOMEM, "raise the limit on threads (ulimit -u)", "cannot start a loader thread");
    }
    job->status = status;
    if (status != HF_OK)
        remove_locked(aside, job);
    hfi_mutex_unlock(&aside->mutex);
    if (status == HF_OK)
        return HF_OK;
    if (error != NULL)
        *error = job->error;
    hfi_aside_drop(aside->client, job);
    return status;
}

hf_status hfi_aside_post(hf_client *client, const struct hfi_aside_order *order, struct hfi_aside_waiter *waiter,
                         hf_error *error)
{
    struct hfi_aside *aside = client->aside;
    uint64_t hash = order->key->hash;
    hf_status status = HF_OK;
    hfi_mutex_lock(&aside->mutex);
    int64_t now = hfi_now(client->clock);
    struct hfi_aside_job *job = find_locked(aside, order->key);
    int64_t not_before_ns = aside->pauses[hash % HFI_PAUSES].hash == hash ? aside->pauses[hash % HFI_PAUSES].not_before_ns : 0;
    enum hfi_load_place place = hfi_load_queue_place(&aside->queue, order->kind, job != NULL, not_before_ns, now);
    if (place == HFI_LOAD_JOINED) {
        raise_locked(aside, job, order->kind);
        hfi_loaders_serve(aside); /* for the one that waits longest, where no thread could be started before */
    } else if (place == HFI_LOAD_NEW) {
        job = make_locked(aside, order, now);
    }
    bool joins = place == HFI_LOAD_JOINED || place == HFI_LOAD_NEW; /* else the caller returns, and its waiter is gone */
    if (joins && job != NULL)
        join_locked(job, waiter, place == HFI_LOAD_NEW, now);
    hfi_mutex_unlock(&aside->mutex);
    switch (place) {
    case HFI_LOAD_JOINED:
        return HF_OK;
    case HFI_LOAD_PAUSED:
        return HF_BUSY;
    case HFI_LOAD_FULL:
        hfi_count(client, loads_refused);
        return hfi_fail(error, HF_LIMIT, "raise loaders", "%zu loads wait for one of the %d loader threads already",
                        (size_t)aside->queue.loaders * HFI_LOADS_QUEUED, aside->queue.loaders);
    case HFI_LOAD_CLOSED:
        return hfi_fail(error, HF_CLOSED, "", "the client was closed before a thread could load");
    case HFI_LOAD_NEW:
        break;
    }
    if (job == NULL)
        return hfi_fail(error, HF_NOMEM, "", "no memory to load aside");
    HFI_PERTURB("made-to-copy");
    status = copy_arg(client, job, order->options->arg);
    return queue_job(aside, job, status, error);
}

hf_status hfi_aside_wait(hf_client *client, struct hfi_aside_waiter *waiter, hf_cancel *cancel, int64_t until_ns)
{
    struct hfi_aside *aside = client->aside;
    struct hfi_wait wait;
    hfi_wait_begin(&wait, client, cancel, &waiter->park, until_ns);
    hfi_mutex_lock(&aside->mutex);
    hf_status status = hfi_wait_for(&wait, &waiter->done, &aside->mutex, NULL);
    hfi_mutex_unlock(&aside->mutex);
    hfi_wait_end(&wait);
    hfi_mutex_lock(&aside->mutex);
    if (waiter->done) {
        status = HF_OK;
    } else {
        hfi_list_remove(&waiter->link);
        if (hfi_list_is_empty(&waiter->job->waiters))
            hf_cancel_fire(waiter->job->cancel); /* the job may wait for somebody else's load: no more */
    }
    hfi_mutex_unlock(&aside->mutex);
    return status;
}

void hfi_aside_begin_seek(hf_client *client, struct hfi_aside_job *job)
{
    hf_cancel *cancel;
    job->options.wait_ms = HF_OFF;
    if (hf_cancel_open(client, &cancel, NULL) != HF_OK)
        return;
    hfi_mutex_lock(&client->aside->mutex);
    if (!hfi_list_is_empty(&job->waiters)) {
        job->cancel = job->options.cancel = cancel;
        job->options.wait_ms = HF_FOREVER;
    }
    hfi_mutex_unlock(&client->aside->mutex);
    if (job->options.cancel == NULL)
        hf_cancel_close(cancel);
}

void hfi_aside_end_seek(hf_client *client, struct hfi_aside_job *job)
{
    hf_cancel *cancel = job->options.cancel;
    hfi_mutex_lock(&client->aside->mutex);
    job->cancel = job->options.cancel = NULL;
    hfi_mutex_unlock(&client->aside->mutex);
    hf_cancel_close(cancel);
}

/* ---- close ---- */

static void wake_waiters_locked(struct hfi_aside_job *job)
{
    for (struct hfi_list *at = job->waiters.next; at != &job->waiters; at = at->next)
        hfi_park_wake(&hfi_container_of(at, struct hfi_aside_waiter, link)->park);
}

void hfi_aside_close(hf_client *client)
{
    struct hfi_aside *aside = client->aside;
    struct hfi_list dropped;
    if (aside == NULL)
        return;
    hfi_list_init(&dropped);
    hfi_mutex_lock(&aside->mutex);
    aside->queue.closed = true;
    for (int kind = HFI_REFRESH; kind <= HFI_LOAD; kind++)
        while (!hfi_list_is_empty(&aside->lists[kind])) {
            struct hfi_aside_job *job = hfi_list_first(&aside->lists[kind], struct hfi_aside_job, link);
            job->status = hfi_fail(&job->error, HF_CLOSED, "", "the client was closed before a thread could load");
            remove_locked(aside, job);
            hfi_list_append(&dropped, &job->link);
        }
    for (struct hfi_list *at = aside->running.next; at != &aside->running; at = at->next)
        wake_waiters_locked(hfi_container_of(at, struct hfi_aside_job, link));
    hfi_mutex_unlock(&aside->mutex);
    while (!hfi_list_is_empty(&dropped)) {
        struct hfi_aside_job *job = hfi_list_first(&dropped, struct hfi_aside_job, link);
        hfi_list_remove(&job->link);
        hfi_aside_drop(client, job);
    }
}

/* ---- for people to read ---- */

size_t hfi_aside_queued(const hf_client *client)
{
    struct hfi_aside *aside = client->aside;
    if (aside == NULL)
        return 0;
    hfi_mutex_lock(&aside->mutex);
    size_t queued = aside->queue.queued;
    hfi_mutex_unlock(&aside->mutex);
    return queued;
}

struct line {
    char name[160];
    const char *what;
    int64_t ms;
    int waiting;
};

static size_t list_locked(struct hfi_aside *aside, const struct hfi_list *list, const char *what, struct line *lines, size_t room)
{
    size_t count = 0;
    int64_t now = hfi_now(aside->client->clock);
    for (const struct hfi_list *at = list->next; at != list && count < room; at = at->next, count++) {
        const struct hfi_aside_job *job = hfi_container_of(at, struct hfi_aside_job, link);
        (void)hfi_quote(lines[count].name, sizeof lines[count].name, job->key.text, job->key.size);
        lines[count].what = what;
        lines[count].ms = (now - job->since_ns) / HFI_MS;
        lines[count].waiting = hfi_list_length(&job->waiters);
    }
    return count;
}

void hfi_aside_dump(const hf_client *client, FILE *out)
{
    enum { LINES = 1000 };
    struct hfi_aside *aside = client->aside;
    struct line *lines = aside != NULL ? calloc(LINES, sizeof *lines) : NULL;
    if (lines == NULL)
        return;
    hfi_mutex_lock(&aside->mutex);
    size_t count = list_locked(aside, &aside->running, "loading", lines, LINES);
    count += list_locked(aside, &aside->lists[HFI_LOAD], "queued", lines + count, LINES - count);
    count += list_locked(aside, &aside->lists[HFI_REFRESH], "queued", lines + count, LINES - count);
    hfi_mutex_unlock(&aside->mutex);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "aside %-40s %-7s for %" PRId64 " ms, %d waiting here\n", lines[i].name, lines[i].what, lines[i].ms,
                lines[i].waiting);
    free(lines);
}
