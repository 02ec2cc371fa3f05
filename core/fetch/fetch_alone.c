/* SPDX-License-Identifier: MIT */
/* fetch_alone.c - hf_fetch when the server is away: serves the value that this process saw last, or runs one load for
 * all its threads. A server that is there but refuses writes grants no lease and stores nothing. Then only the load
 * serves: the value is missing there, perhaps because another process deleted it, so the one seen last is not used. */
#include "core/fetch/fetch.h"
#include "core/policy/freshness.h"
#include "core/fetch/shared.h"
#include "core/lock/trouble.h"
#include "core/context/wait.h"

/* Waits until the load ends, a cancel or close ends the wait, or until_ns. The guest is in shared->parked on entry, so
 * that it is woken, and not on return. HF_OK: the load has ended. */
static hf_status wait_for(struct hfi_fetch *f, struct hfi_guest *guest, int64_t until_ns, hf_error *error)
{
    struct hfi_lock *lock = f->lock;
    struct hfi_wait wait;
    hf_status status = hfi_fetch_begin_wait(f, error);
    bool waits = status == HF_OK;
    if (waits) {
        hfi_wait_begin(&wait, f->client, f->options->cancel, &guest->park, until_ns);
        hfi_mutex_lock(lock->mutex);
        status = hfi_wait_for(&wait, &guest->done, lock->mutex, NULL);
        hfi_mutex_unlock(lock->mutex);
        hfi_wait_end(&wait);
        hfi_fetch_end_wait(f);
    }
    hfi_mutex_lock(lock->mutex);
    hfi_list_remove(&guest->link);
    hfi_mutex_unlock(lock->mutex);
    return guest->done ? HF_OK : status;
}

static hf_status explain(struct hfi_fetch *f, hf_status status, hf_error *error)
{
    if (status == HF_OK || status == HF_LIMIT) /* error is filled already */
        return status;
    hfi_mutex_lock(f->lock->mutex);
    status = hfi_lock_explain(f->lock, status, error);
    hfi_mutex_unlock(f->lock->mutex);
    return status;
}

/* Waits for the load of another thread of this process. The lock's mutex is held on entry, not on return. *none: that
 * thread gave up before it loaded. */
static hf_status share_load(struct hfi_fetch *f, bool *none, hf_value **value, hf_error *error)
{
    struct hfi_guest guest = {.done = false};
    if (f->options->wait_ms == HF_OFF) {
        hfi_mutex_unlock(f->lock->mutex);
        return explain(f, HF_BUSY, error);
    }
    hfi_park_init(&guest.park);
    hfi_list_append(&f->lock->shared->parked, &guest.link);
    hfi_mutex_unlock(f->lock->mutex);
    hf_status status = wait_for(f, &guest, f->alone_until_ns, error);
    *none = status == HF_OK && guest.status != HF_OK && guest.failure.status == HF_OK;
    if (status == HF_TIMEOUT)
        return hfi_fetch_explain(f, status, error);
    if (status != HF_OK || *none)
        return explain(f, status, error);
    if (guest.status == HF_OK)
        status = hfi_fetch_answer(f, guest.body, HF_LOCAL, false, guest.fresh_ms, value, error);
    else if (error != NULL)
        *error = guest.failure;
    hfi_body_unref(guest.body);
    return guest.status == HF_OK ? status : guest.status;
}

/* Reserves this client's next turn to load. UNAVAILABLE: the turn would come later than this call may wait. */
static hf_status take_turn(struct hfi_fetch *f, int64_t now, int64_t *begin_ns, hf_error *error)
{
    char quoted[160];
    int64_t last = atomic_load(&f->client->local_turn), turn;
    do {
        turn = hfi_freshness_local(last, now);
        *begin_ns = hfi_freshness_local_at(turn);
        if (*begin_ns > f->alone_until_ns) {
            (void)hfi_fail(error, HF_UNAVAILABLE, "raise local_bytes, that more is remembered, or wait_ms",
                           "cannot load %s: without the server this client loads %d values a second, and these are others'",
                           hfi_quote(quoted, sizeof quoted, f->key->text, f->key->size), HFI_LOCAL_LOADS);
            hfi_fail_retry(error, (*begin_ns - now) / HFI_MS);
            return HF_UNAVAILABLE;
        }
    } while (!atomic_compare_exchange_weak(&f->client->local_turn, &last, turn));
    return HF_OK;
}

/* Without the server, processes do not share loads, and the origin cannot serve a load from every process of a fleet:
 * the rate is limited. A thread that gives up while it waits returns its turn. */
static hf_status wait_for_turn(struct hfi_fetch *f, hf_error *error)
{
    struct hfi_guest me = {.done = false};
    int64_t now = hfi_now(f->client->clock), begin_ns;
    hf_status status = take_turn(f, now, &begin_ns, error);
    if (status != HF_OK || begin_ns <= now)
        return status;
    hfi_park_init(&me.park);
    hfi_mutex_lock(f->lock->mutex);
    hfi_list_append(&f->lock->shared->parked, &me.link);
    hfi_mutex_unlock(f->lock->mutex);
    status = wait_for(f, &me, begin_ns, error);
    if (status == HF_TIMEOUT)
        return HF_OK;
    (void)atomic_fetch_sub(&f->client->local_turn, hfi_freshness_local(0, 0));
    return explain(f, status, error);
}

/* Runs the one load of this process, and gives its result to all guests. */
static hf_status load_here(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    struct hfi_lock *lock = f->lock;
    struct hf_loading loading = {.body = NULL};
    hf_status turn = wait_for_turn(f, error), status = turn;
    if (turn == HF_OK)
        status = hfi_fetch_load(f, NULL, &loading);
    if (status == HF_OK)
        hfi_fetch_remember_load(f, &loading, -1);
    int64_t fresh_ms = status == HF_OK ? hfi_loading_fresh_ms(&loading) : 0;
    hfi_mutex_lock(lock->mutex);
    hfi_shared_end_load(lock->shared, status, loading.body, fresh_ms, &loading.failure);
    hfi_mutex_unlock(lock->mutex);
    if (status == HF_OK)
        status = hfi_fetch_answer(f, loading.body, HF_LOCAL, false, fresh_ms, value, error);
    else if (turn == HF_OK && error != NULL)
        *error = loading.failure;
    hfi_loading_done(&loading);
    return status;
}

static hf_status load(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    bool none = true;
    hf_status status = hfi_fetch_need_lock(f, error);
    int64_t now = hfi_now(f->client->clock);
    f->alone_until_ns = f->options->wait_ms == HF_OFF ? now : hfi_after_ms(now, f->options->wait_ms);
    while (status == HF_OK && none) {
        hfi_mutex_lock(f->lock->mutex);
        if (f->lock->shared->loading) {
            status = share_load(f, &none, value, error);
            continue;
        }
        f->lock->shared->loading = true;
        hfi_mutex_unlock(f->lock->mutex);
        return load_here(f, value, error);
    }
    return status;
}

/* fresh_ms of the value last seen, 0 or less: without the server it counts as stale even if its time is not over. */
static int64_t stale_for_ms(const struct hfi_fetch *f)
{
    if (f->seen.end_ns == 0 || f->seen.end_ns == HFI_NEVER)
        return 0;
    int64_t fresh_ms = (f->seen.end_ns - hfi_now(f->client->clock)) / HFI_MS - f->options->stale_ms;
    return fresh_ms < 0 ? fresh_ms : 0;
}

hf_status hfi_fetch_alone(struct hfi_fetch *f, hf_value **value, hf_error *error)
{
    f->came_ns = HFI_NEVER; /* for all who wait: it may be of any age */
    if (f->seen.body == NULL) /* a local load may have ended while we found out */
        hfi_local_look(f->client, f->key, &f->seen);
    if (f->seen.body != NULL && !f->refused)
        return hfi_fetch_answer(f, f->seen.body, HF_STALE, f->seen.stored, stale_for_ms(f), value, error);
    if (f->options->when_down == HF_FAIL)
        return error->status = HF_UNAVAILABLE;
    return load(f, value, error);
}
