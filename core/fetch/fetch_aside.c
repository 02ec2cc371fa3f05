/* SPDX-License-Identifier: MIT */
/* fetch_aside.c - loads in loader threads (aside.h): the caller's side, which has no command to send and no lease, and the
 * thread's side, which does what a caller's thread does elsewhere. */
#include "core/fetch/fetch.h"
#include "core/fetch/aside.h"
#include "core/lock/lock_order.h"
#include "core/lock/table.h"
#include "base/rare.h"
#include "base/thread.h"

/* ---- the caller's side ---- */

static hf_status post(struct hfi_fetch *f, enum hfi_load_kind kind, struct hfi_aside_waiter *waiter, hf_error *error)
{
    bool is_old = kind == HFI_REFRESH;
    struct hfi_near_reading near = f->near;
    if (is_old) /* for begin() */
        near.stamp_ns = f->end_from_ns != 0 ? f->end_from_ns - f->left_ms * HFI_MS : 0;
    const struct hfi_aside_order order = {f->key, kind, f->options, is_old ? f->found : NULL, f->left_ms, !is_old && !f->again, near};
    return hfi_aside_post(f->client, &order, waiter, error);
}

/* What the job brought, as this call sees it: it may not be the one that the job was made for. */
static hf_status give(struct hfi_fetch *f, const struct hfi_aside_waiter *waiter, hf_value **value, hf_error *error)
{
    int64_t fresh_ms = waiter->fresh_ms;
    hf_source source = waiter->source;
    if (!waiter->is_owner) {
        if (waiter->stored && !waiter->body->absent && fresh_ms != 0) /* 0: it has no end */
            fresh_ms += waiter->stale_ms - f->options->stale_ms;
        if (source == HF_LOADED)
            source = HF_SHARED;
        if (waiter->stored && fresh_ms < 0)
            source = HF_STALE;
    }
    hf_status status = hfi_fetch_answer(f, waiter->body, source, waiter->stored, fresh_ms, value, error);
    hfi_body_unref(waiter->body);
    return status;
}

HFI_RARE hf_status hfi_fetch_refresh_aside(struct hfi_fetch *f, int64_t soft_ms, hf_value **value, hf_error *error)
{
    struct hfi_aside_waiter waiter;
    if (soft_ms == 0 || hfi_fetch_begin_wait(f, error) != HF_OK) {
        (void)post(f, HFI_REFRESH, NULL, NULL);
        return HF_BUSY;
    }
    hf_status status = post(f, HFI_REFRESH, &waiter, error);
    if (status == HF_OK)
        status = hfi_aside_wait(f->client, &waiter, f->options->cancel, hfi_after_ms(hfi_now(f->client->clock), soft_ms));
    hfi_fetch_end_wait(f);
    if (status == HF_OK)
        status = waiter.status;
    return status == HF_OK ? give(f, &waiter, value, error) : status;
}

hf_status hfi_fetch_explain(const struct hfi_fetch *f, hf_status status, hf_error *error)
{
    char key[160];
    (void)hfi_quote(key, sizeof key, f->key->text, f->key->size);
    switch ((int)status) {
    case HF_BUSY:
        (void)hfi_fail(error, status, "call again: a loader thread has it", "%s is not there yet", key);
        break;
    case HF_TIMEOUT:
        (void)hfi_fail(error, status, "call again, or allow a longer wait_ms: the load goes on",
                       "%s was not loaded within wait_ms", key);
        break;
    case HF_CLOSED:
        return hfi_fail(error, status, "", "the client was closed while %s was fetched", key);
    default:
        return status;
    }
    hfi_fail_retry(error, -1);
    return status;
}

/* BUSY: the job that this call waited for was not a load for all who wait, as a refresh is that found somebody else at it. */
static hf_status wait_for_a_load(struct hfi_fetch *f, int64_t until_ns, hf_value **value, hf_error *error)
{
    struct hfi_aside_waiter waiter;
    hf_status status = post(f, HFI_LOAD, &waiter, error);
    if (status != HF_OK)
        return status;
    status = hfi_aside_wait(f->client, &waiter, f->options->cancel, until_ns);
    if (status != HF_OK)
        return hfi_fetch_explain(f, status, error);
    if (waiter.status == HF_OK)
        return give(f, &waiter, value, error);
    if (waiter.status == HF_BUSY || waiter.status == HF_CANCELED || waiter.status == HF_TIMEOUT)
        return HF_BUSY;
    if (error != NULL)
        *error = waiter.error;
    return waiter.status;
}

HFI_RARE hf_status hfi_fetch_load_aside(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    f->went_aside = true;
    hf_status status = HF_OK;
    if (f->options->wait_ms == HF_OFF) {
        status = post(f, HFI_LOAD, NULL, error);
        return status == HF_OK ? hfi_fetch_explain(f, HF_BUSY, error) : status;
    }
    if (f->client->order != NULL)
        status = hfi_fetch_need_lock(f, error);
    if (status == HF_OK)
        status = hfi_fetch_begin_wait(f, error);
    if (status != HF_OK)
        return status;
    if (f->client->order != NULL)
        hfi_lock_order_wanted(f->lock, hfi_thread_number(), NULL);
    int64_t until_ns = hfi_after_ms(f->since_ns, f->options->wait_ms);
    do
        status = wait_for_a_load(f, until_ns, value, error);
    while (status == HF_BUSY);
    hfi_fetch_end_wait(f);
    return status;
}

/* ---- the thread's side ---- */

static void begin(struct hfi_fetch *f, hf_client *client, struct hfi_aside_job *job)
{
    int64_t now = hfi_now(client->clock);
    *f = (struct hfi_fetch){.client = client, .key = &job->key, .options = &job->options, .job = job, .left_ms = -2,
                            .is_read = job->is_read, .near = job->near, .since_ns = now, .began_ns = now, .came_ns = HFI_NEVER};
    f->lane = f->reads = hfi_pool_lane(client->pool, HFI_VALUE_LANE, job->key.hash);
    if (job->kind == HFI_LOAD) {
        hfi_aside_begin_seek(client, job);
        return;
    }
    int64_t waited_ms = (now - job->posted_ns) / HFI_MS;
    f->left_ms = job->left_ms > waited_ms ? job->left_ms - waited_ms : 0;
    f->end_from_ns = job->near.stamp_ns != 0 ? hfi_after_ms(job->near.stamp_ns, job->left_ms) : 0;
    f->end_till_ns = hfi_after_ms(job->posted_ns, job->left_ms);
    f->found = job->old;
    hfi_body_ref(f->found);
    hfi_local_look(client, f->key, &f->seen);
}

static void end(struct hfi_fetch *f)
{
    hf_client *client = f->client;
    hfi_aside_end_seek(client, f->job);
    f->job->is_late = f->is_late;
    f->job->came_ns = f->came_ns;
    hfi_body_unref(f->found);
    hfi_body_unref(f->seen.body);
    hfi_fetch_drop_lock(f);
    hfi_client_leave(client);
}

/* The program's loader has ended this thread. */
static HFI_RARE void left(void *arg)
{
    struct hfi_fetch *f = arg;
    char key[160];
    f->job->status = hfi_fail(&f->job->error, HF_LOAD_FAILED, "a loader has to return: pthread_exit is forbidden in it",
                              "the loader of %s ended its thread", hfi_quote(key, sizeof key, f->key->text, f->key->size));
    hfi_fetch_abandon(f, &f->job->error);
    end(f);
}

void hfi_fetch_run(hf_client *client, struct hfi_aside_job *job)
{
    struct hfi_fetch f;
    job->status = hfi_client_enter(client, &job->error); /* as a call: a close waits for it */
    if (job->status != HF_OK)
        return;
    begin(&f, client, job);
    pthread_cleanup_push(left, &f);
    job->status = job->kind == HFI_LOAD ? hfi_fetch_attempts(&f, &job->value, &job->error)
                                        : hfi_fetch_reload(&f, &job->value, &job->error);
    if (job->status == HF_CANCELED && job->kind == HFI_LOAD) { /* nobody waits any more: as if nobody had */
        hfi_aside_end_seek(client, job);
        job->options.wait_ms = HF_OFF;
        job->status = hfi_fetch_attempts(&f, &job->value, &job->error);
    }
    pthread_cleanup_pop(0);
    end(&f);
}
