/* SPDX-License-Identifier: MIT */
/* load.c - runs the loader, learns what it costs, and says for how long its value is good. */
#include "core/fetch/fetch.h"
#include "core/fetch/aside.h"
#include "core/fetch/shared.h"
#include "core/lock/server_time.h"
#include "core/policy/freshness.h"
#include "base/random.h"

void hfi_fetch_remember_load(struct hfi_fetch *f, struct hf_loading *loading, int64_t left_ms)
{
    bool kept = loading->body->absent ? loading->absent_ms > 0 : loading->ttl_ms != HF_OFF;
    if (kept)
        hfi_fetch_remember(f, &loading->body, left_ms < 0 ? -2 : left_ms, loading->took_ms, left_ms >= 0);
    else
        hfi_local_forget(f->client, f->key); /* the remembered value is no longer the last one seen */
}

/* Values that were loaded together are not to end together. */
static void shorten(const struct hfi_fetch *f, struct hf_loading *loading)
{
    uint64_t rng = (uint64_t)hfi_now(f->client->clock) ^ f->key->hash;
    double u = (double)(hfi_rng_next(&rng) >> 11) / 9007199254740992.0; /* [0, 1) */
    if (loading->ttl_ms != HF_OFF)
        loading->ttl_ms = hfi_freshness_shortened(loading->ttl_ms, f->options->jitter, u);
    if (loading->absent_ms > 0)
        loading->absent_ms = hfi_freshness_shortened(loading->absent_ms, f->options->jitter, u);
}

void hfi_fetch_load_begin(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading)
{
    *loading = (struct hf_loading){.client = f->client,
                                   .key = hfi_keys_name(&f->lock->keys),
                                   .key_size = f->lock->keys.name_size,
                                   .lease = lease,
                                   .ttl_ms = f->options->ttl_ms,
                                   .absent_ms = f->options->negative_ttl_ms,
                                   .is_aside = f->job != NULL,
                                   .old = f->found != NULL ? f->found : f->seen.body};
    if (f->found != NULL && f->end_from_ns > 0 && f->lock != NULL) /* by the acquire's answer, which is new */
        hfi_server_time_between(f->client, hfi_lane_index(f->lock->lane), f->end_from_ns, f->end_till_ns, &loading->old_from_ms,
                                &loading->old_till_ms);
    if (loading->old != NULL && loading->old->absent)
        loading->old = NULL;
}

void hfi_fetch_load_end(struct hfi_fetch *f, struct hf_loading *loading, hf_status status)
{
    hfi_count(f->client, loads);
    if (f->job != NULL)
        hfi_count(f->client, loads_aside);
    if (status == HF_OK) /* if two threads update the mean at once, one load is not counted: harmless */
        atomic_store(&f->client->load_ms, hfi_freshness_mean_ms(atomic_load(&f->client->load_ms), loading->took_ms));
    else
        hfi_count(f->client, load_failures);
    if (status == HF_OK && loading->same)
        hfi_count(f->client, loads_same);
    shorten(f, loading);
}

hf_status hfi_fetch_load(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading)
{
    const hf_fetch_options *o = f->options;
    hfi_fetch_load_begin(f, lease, loading);
    if (f->job != NULL)
        hfi_aside_end_seek(f->client, f->job); /* from here on it goes on, whoever waits */
    f->lease = lease;
    f->is_loading = true;
    hf_status status = hfi_loading_run(loading, o->load, o->load_many, o->arg);
    f->is_loading = false;
    hfi_fetch_load_end(f, loading, status);
    return status;
}

void hfi_fetch_abandon(struct hfi_fetch *f, const hf_error *failure)
{
    if (!f->is_loading)
        return;
    hfi_count(f->client, loads);
    hfi_count(f->client, loads_aside);
    hfi_count(f->client, load_failures);
    if (f->lease != NULL) {
        hfi_fetch_fail(f, f->lease, failure);
        return;
    }
    hfi_mutex_lock(f->lock->mutex);
    hfi_shared_end_load(f->lock->shared, failure->status, NULL, 0, failure);
    hfi_mutex_unlock(f->lock->mutex);
}
