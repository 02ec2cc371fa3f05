/* SPDX-License-Identifier: MIT */
/* fetch_acquire.c - a caller that finds nothing fresh: it gets the lease, or the value of another caller's load. */
#include "core/fetch/fetch.h"
#include "core/fetch/read_lane.h"
#include "core/fetch/shared.h"
#include "core/lock/handle.h"
#include "core/lock/lock_order.h"
#include "core/lock/perform.h"
#include "core/lock/table.h"
#include "core/lock/trouble.h"
#include "base/thread.h"

hf_status hfi_fetch_begin_wait(struct hfi_fetch *f, hf_error *error)
{
    hf_client *client = f->client;
    if (f->job != NULL) /* the calls that wait for the job are counted */
        return HF_OK;
    if (hfi_counted(client, waiting) >= client->max_waiters)
        return hfi_fail(error, HF_LIMIT, "raise max_waiters, or fetch with fewer threads",
                        "max_waiters (%zu) calls wait already", client->max_waiters);
    hfi_count(client, waiting);
    return HF_OK;
}

void hfi_fetch_end_wait(struct hfi_fetch *f)
{
    if (f->job == NULL)
        hfi_uncount(f->client, waiting);
}

hf_status hfi_fetch_need_lock(struct hfi_fetch *f, hf_error *error)
{
    if (f->lock != NULL)
        return HF_OK;
    hf_status status = hfi_table_get(f->client, f->key, &f->lock, error);
    if (status != HF_OK)
        return status;
    hfi_mutex_lock(f->lock->mutex);
    bool has_room = hfi_shared_of(f->lock) != NULL;
    hfi_mutex_unlock(f->lock->mutex);
    hfi_read_lane_claim(f->client, f->key->hash);
    if (has_room)
        return HF_OK;
    hfi_fetch_drop_lock(f);
    return hfi_fail(error, HF_NOMEM, "", "no memory to fetch");
}

void hfi_fetch_drop_lock(struct hfi_fetch *f)
{
    if (f->lock == NULL)
        return;
    hfi_read_lane_yield(f->client, f->key->hash);
    hfi_table_unref(f->lock);
    f->lock = NULL;
}

#define ROUNDED_MS 2 /* two clocks that count milliseconds: the very value found lives so much longer at most */

/* Sets how long data must live to be an answer. Data that lives longer than the value found is a newer load; after a
 * miss, any fresh data will do. One acquire, perhaps repeated, serves all waiters: it carries their lowest demand. */
static void note_enough(const struct hfi_fetch *f)
{
    struct hfi_shared *shared = f->lock->shared;
    int64_t stale_ms = f->options->stale_ms;
    int64_t enough = f->found != NULL && f->left_ms > stale_ms ? f->left_ms + ROUNDED_MS : stale_ms;
    if (f->lock->entry.remote == HFI_NOTHING || enough < shared->enough_ms)
        shared->enough_ms = enough;
}

struct share { /* one caller's copy of the value that has come to the lock */
    struct hfi_body *body; /* a reference; NULL: nothing */
    hf_source source;
    int64_t came_ns, left_ms, fresh_ms;
    bool stored;
};

/* Freshness depends on the caller: stale_ms is its own option. Mutex held. */
static void share(const struct hfi_fetch *f, struct share *share)
{
    const struct hfi_shared *shared = f->lock->shared;
    *share = (struct share){shared->body, shared->loaded_here ? HF_SHARED : HF_CACHED, shared->came_ns, shared->left_ms, 0, shared->stored};
    if (share->body == NULL)
        return;
    hfi_body_ref(share->body);
    if (!share->stored)
        share->fresh_ms = shared->ttl_ms;
    else if (share->left_ms >= 0)
        share->fresh_ms = share->left_ms - (share->body->absent ? 0 : f->options->stale_ms);
    if (share->stored && share->fresh_ms < 0)
        share->source = HF_STALE;
}

/* Why the caller gets neither a lease nor a value. Mutex held. */
static hf_status explain(struct hfi_fetch *f, const struct hfi_waiter *waiter, hf_error *error)
{
    struct hfi_lock *lock = f->lock;
    if (waiter->verdict == HFI_GOT_VALUE)
        return hfi_fail(error, HF_NOMEM, "", "no memory for a value");
    f->refused = waiter->status == HF_UNAVAILABLE && lock->refused;
    if (waiter->status != HF_LOAD_FAILED)
        return hfi_lock_explain(lock, waiter->status, error);
    if (error != NULL)
        *error = lock->shared->failure;
    return lock->shared->failure.status;
}

static hf_status give_share(struct hfi_fetch *f, struct share *share, hf_value **value, hf_error *error)
{
    f->came_ns = share->came_ns;
    if (share->stored && share->body->absent) /* else the thread that loaded it decides whether to remember it */
        hfi_fetch_remember_absent(f, &share->body, share->left_ms);
    else if (share->stored)
        hfi_fetch_remember(f, &share->body, share->left_ms, 0, true);
    hf_status status = hfi_fetch_answer(f, share->body, share->source, share->stored, share->fresh_ms, value, error);
    hfi_body_unref(share->body);
    return status;
}

/* Mutex held. */
static void ask_locked(struct hfi_fetch *f, bool once, struct hfi_fetch_asking *asking)
{
    const hf_fetch_options *o = f->options;
    struct hfi_lock *lock = f->lock;
    struct hfi_step step;
    asking->options = (hf_lock_options){.size = sizeof asking->options,
                                        .lease_ms = o->lease_ms,
                                        .wait_ms = once ? 0 : 1,
                                        .max_hold_ms = o->max_load_ms == HF_FOREVER ? 0 : o->max_load_ms,
                                        .stop_ms = o->lease_ms / 10 > 50 ? o->lease_ms / 10 : 50};
    hfi_acquirer_init(&asking->acquirer, lock, &asking->options);
    note_enough(f);
    int64_t now = hfi_now(f->client->clock);
    hfi_step_init(&step, now, 0);
    hfi_entry_arrive(&lock->entry, &asking->acquirer.waiter, &step);
    hfi_lock_perform(lock, &step, NULL);
    asking->acquirer.for_others = !once;
    asking->acquirer.others_ms = o->wait_ms;
    asking->until_ns = hfi_after_ms(now, f->client->command_ms + 500);
}

/* Waits no longer than one question takes (once), or until wait_ms after another load is known to run. Mutex held on entry,
 * not on return. */
static hf_status wait_for_verdict(struct hfi_fetch *f, struct hfi_fetch_asking *asking, hf_lease **lease, hf_value **value, hf_error *error)
{
    struct hfi_lock *lock = f->lock;
    struct hfi_acquirer *acquirer = &asking->acquirer;
    struct share shared = {0};
    hf_status status = HF_OK;
    hfi_acquirer_wait(acquirer, asking->until_ns, f->options->cancel);
    if (acquirer->waiter.verdict == HFI_GOT_LEASE)
        hfi_table_ref(lock); /* the handle's reference */
    else if (acquirer->waiter.verdict == HFI_GOT_VALUE)
        share(f, &shared);
    if (acquirer->waiter.verdict != HFI_GOT_LEASE && shared.body == NULL)
        status = explain(f, &acquirer->waiter, error);
    hfi_lock_leave(lock);
    if (acquirer->waiter.verdict == HFI_GOT_LEASE) {
        hfi_count(f->client, acquired_remotely);
        hfi_histogram_add(&f->client->waits, acquirer->lease->since_ns - f->since_ns);
        if (f->client->order != NULL)
            hfi_lock_order_held(acquirer->lease, NULL);
        *lease = acquirer->lease;
    }
    return shared.body != NULL ? give_share(f, &shared, value, error) : status;
}

void hfi_fetch_try_begin(struct hfi_fetch *f, struct hfi_fetch_asking *asking)
{
    hfi_mutex_lock(f->lock->mutex);
    ask_locked(f, true, asking);
    hfi_mutex_unlock(f->lock->mutex);
}

hf_status hfi_fetch_try_end(struct hfi_fetch *f, struct hfi_fetch_asking *asking, hf_lease **lease, hf_value **value, hf_error *error)
{
    hfi_mutex_lock(f->lock->mutex);
    return wait_for_verdict(f, asking, lease, value, error);
}

hf_status hfi_fetch_acquire(struct hfi_fetch *f, bool once, hf_lease **lease, hf_value **value, hf_error *error)
{
    struct hfi_fetch_asking asking;
    if (f->client->order != NULL && !once) /* a try for a refresh has a value in hand and waits for nobody */
        hfi_lock_order_wanted(f->lock, hfi_thread_number(), NULL);
    hfi_mutex_lock(f->lock->mutex);
    ask_locked(f, once, &asking);
    return wait_for_verdict(f, &asking, lease, value, error);
}
