/* SPDX-License-Identifier: MIT */
/* release.c - hf_lease_release, hf_lease_post_release. */
#include "core/lock/retire.h"
#include "core/lock/event_sink.h"
#include "core/lock/grants.h"
#include "core/lock/lock_order.h"
#include "core/lock/perform.h"
#include "core/lock/table.h"
#include "base/perturb.h"
#include "base/rare.h"

#include <stdlib.h>

/* Mutex held. */
static void note_hold(struct hfi_lock *lock, int64_t ns)
{
    if (ns > HFI_MS) {
        hfi_histogram_add(&lock->client->holds, ns);
        return;
    }
    if (lock->short_holds == UINT32_MAX || lock->short_ns > UINT32_MAX - HFI_MS)
        hfi_lock_tell_holds(lock);
    lock->short_holds++;
    lock->short_ns += (uint32_t)ns;
}

static bool give_up(struct hfi_lock *lock, int32_t permits, struct hfi_step *step)
{
    bool quietly = atomic_load(&lock->client->closing);
    return lock->keys.use == HFI_SEMAPHORE ? hfi_grants_release(lock, permits, quietly, step)
                                           : hfi_entry_release(&lock->entry, permits, quietly, step);
}

/* True: what is given up goes back to the server, which will answer; else it stays in this process. */
static bool asks_server(const struct hfi_step *step)
{
    bool asks = false;
    for (int i = 0; i < step->count; i++)
        asks = asks || step->at[i].kind == HFI_GIVE_BACK || step->at[i].kind == HFI_SHRINK;
    return asks;
}

/* Detaches the handle from its lock, if it is the holder. The lock's reference then passes to the caller (counted in
 * *references). True: the lease was valid. Its release is listed and `releaser` receives the answer, or the lease stays
 * in this process (releaser->done, HF_OK). Mutex held. */
static bool leave(struct hfi_lock *lock, hf_lease *lease, struct hfi_releaser *releaser, int *references)
{
    hf_client *client = lock->client;
    struct hfi_step step;
    int64_t now = hfi_now(client->clock);
    note_hold(lock, now - lease->since_ns);
    if (!lease->holds)
        return false;
    hfi_step_init(&step, now, 0);
    bool was_valid = now < atomic_load(lease->end);
    /* P3: V is withdrawn before anything is listed, and before another thread may get the lease. */
    hfi_handle_withdraw(lease);
    HFI_PERTURB("withdrawn-to-released");
    hfi_handle_part(lock, lease);
    ++*references;
    hfi_handle_end(lease);
    if (was_valid && give_up(lock, lease->permits, &step)) {
        if (releaser != NULL && !asks_server(&step)) {
            releaser->done = true;
            releaser->status = HF_OK;
        }
    } else {
        was_valid = false;
        hf_reason reason = hfi_lease_over(&lock->entry.held.times, now);
        atomic_store(&lease->reason, (uint8_t)reason);
        atomic_store(&lease->condition, HF_LEASE_LOST);
        hfi_handle_found_lost(lease, reason);
        hfi_entry_lost(&lock->entry, reason, &step);
    }
    hfi_lock_perform(lock, &step, was_valid ? releaser : NULL); /* after a loss no answer is awaited */
    return was_valid;
}

static HFI_RARE hf_status explain(const hf_lease *lease, const struct hfi_releaser *releaser, hf_error *error)
{
    char what[HFI_TITLE];
    hfi_keys_title(&lease->lock->keys, what);
    if (releaser->status == HF_LOST) {
        hf_reason reason = releaser->revoked ? HF_REASON_REVOKED : HF_REASON_GONE;
        hfi_handle_found_lost(lease, reason);
        return hfi_fail(error, HF_LOST,
                        releaser->revoked ? "roll back, or let the fence decide"
                                          : "roll back, or let the fence decide; look at eviction and failover of the server",
                        "%s was no longer ours at the server: %s", what, hf_reason_text(reason));
    }
    if (releaser->why->status != HF_OK)
        hfi_fail(error, HF_UNKNOWN, releaser->why->hint, "%s stays until its lease ends or the server lets it go: %s",
                 what, releaser->why->message);
    else
        hfi_fail(error, HF_UNKNOWN, "nothing to do: it is released when the server answers again, or ends by itself",
                 "the server did not confirm the release of %s", what);
    hfi_fail_server(error, hfi_pool_server_name(lease->client->pool));
    return HF_UNKNOWN;
}

static hf_status answer(const hf_lease *lease, const struct hfi_releaser *releaser, hf_error *error)
{
    return releaser->status == HF_OK ? HF_OK : explain(lease, releaser, error);
}

/* Waits for the answer to the release of a lease that has left its lock. Mutex held, on return too. */
static void await_answer(struct hfi_lock *lock, struct hfi_releaser *releaser)
{
    while (!releaser->done) {
        uint32_t epoch = hfi_park_epoch(&releaser->park);
        hfi_mutex_unlock(lock->mutex);
        HFI_PERTURB("release-to-wait");
        hfi_park_let_go();
        hfi_lane_flush_to_wait(lock->lane);
        (void)hfi_lane_wait(lock->lane, &releaser->park, epoch, HFI_NEVER);
        hfi_mutex_lock(lock->mutex);
        hfi_park_hold();
    }
}

/* *references: the references that the caller has to drop; 0 if a re-entrant owner still holds the lease. */
static hf_status give_back(hf_lease *lease, bool wait, int *references, hf_error *error)
{
    struct hfi_lock *lock = lease->lock;
    hf_error why;
    struct hfi_releaser releaser = {.done = false, .status = HF_OK, .why = &why};
    hf_status status = HF_OK;
    why.status = HF_OK;
    hfi_park_init(&releaser.park);
    hfi_mutex_lock(lock->mutex);
    if (lease->depth > 0) {
        lease->depth--;
        *references = 0;
        status = hf_lease_is_valid(lease) ? HF_OK : hfi_handle_lost(lease, error); /* unlocked, it may be freed */
        hfi_mutex_unlock(lock->mutex);
        return status;
    }
    hfi_park_hold();
    bool wanted = lock->entry.remote_waiters; /* another process waits: send the release now */
    bool was_valid = leave(lock, lease, wait ? &releaser : NULL, references);
    if (was_valid && wait)
        await_answer(lock, &releaser);
    hfi_mutex_unlock(lock->mutex);
    hfi_park_let_go();
    if (wait)
        hfi_lane_flush(lock->lane);
    else if (wanted)
        hfi_lane_flush_posted(lock->lane);
    else
        hfi_lane_flush_soon(lock->lane);
    if (!was_valid)
        status = hfi_handle_lost(lease, error);
    else if (wait)
        status = answer(lease, &releaser, error);
    return status;
}

/* The release of a multilock's part: begun for all parts, then sent for all, then each answer is awaited. */
struct parting {
    struct hfi_releaser releaser;
    hf_error why;
    bool was_valid;
};

static HFI_RARE void begin_parting(struct hfi_part *at, bool wait, struct parting *parting)
{
    hf_lease *part = at->lease;
    struct hfi_lock *lock = part->lock;
    parting->why.status = HF_OK;
    parting->releaser = (struct hfi_releaser){.done = false, .status = HF_OK, .why = &parting->why};
    at->references = 1;
    hfi_park_init(&parting->releaser.park);
    hfi_mutex_lock(lock->mutex);
    part->whole = NULL; /* from here on nothing is told of the whole */
    parting->was_valid = leave(lock, part, wait ? &parting->releaser : NULL, &at->references);
    hfi_mutex_unlock(lock->mutex);
}

static HFI_RARE hf_status end_parting(hf_lease *part, bool wait, struct parting *parting, hf_error *error)
{
    struct hfi_lock *lock = part->lock;
    if (!parting->was_valid)
        return hfi_handle_lost(part, error);
    if (!wait)
        return HF_OK;
    hfi_mutex_lock(lock->mutex);
    hfi_park_hold();
    await_answer(lock, &parting->releaser);
    hfi_mutex_unlock(lock->mutex);
    hfi_park_let_go();
    return answer(part, &parting->releaser, error);
}

/* The end of the handle, whatever became of the lease. */
static void drop(hf_lease *lease, int references)
{
    hf_client *client = lease->client;
    struct hfi_lock *lock = lease->lock;
    hfi_handle_stop_events(lease);
    HFI_PERTURB("release-to-drop");
    if (client->order != NULL)
        hfi_lock_order_released(lease);
    hfi_count(client, released);
    hfi_table_unref(lock);
    hfi_handle_drop(lease, references);
}

/* LOST tells the caller to undo, so it comes first; of equals the first. */
static HFI_RARE bool is_worse(hf_status one, hf_status other)
{
    static const hf_status order[] = {HF_OK, HF_CLOSED, HF_UNKNOWN, HF_LOST};
    int grades[2] = {0, 0};
    for (int i = 0; i < 4; i++) {
        grades[0] = order[i] == one ? i : grades[0];
        grades[1] = order[i] == other ? i : grades[1];
    }
    return grades[0] > grades[1];
}

/* As a lock's lease: once its release has begun, nothing is told any more. */
static HFI_RARE void fall_silent(struct hfi_parts *parts)
{
    hfi_mutex_lock(&parts->mutex);
    parts->over = true;
    hfi_mutex_unlock(&parts->mutex);
}

/* Without memory each part is waited for before the next one goes. */
static HFI_RARE hf_status give_back_parts(hf_lease *whole, bool wait, hf_error *error)
{
    struct hfi_parts *parts = whole->parts;
    struct parting *partings = wait ? calloc((size_t)parts->count, sizeof *partings) : NULL;
    hf_status worst = HF_OK;
    hf_error why;
    fall_silent(parts);
    hfi_handle_withdraw(whole);
    for (int i = 0; partings != NULL && i < parts->count; i++)
        begin_parting(&parts->at[i], true, &partings[i]);
    for (int i = 0; partings != NULL && i < parts->count; i++)
        hfi_lane_flush(parts->at[i].lease->lock->lane);
    for (int i = 0; i < parts->count; i++) {
        struct parting alone, *parting = partings != NULL ? &partings[i] : &alone;
        if (partings == NULL) {
            begin_parting(&parts->at[i], wait, parting);
            hfi_lane_flush_posted(parts->at[i].lease->lock->lane);
        }
        hf_status status = end_parting(parts->at[i].lease, wait, parting, &why);
        if (is_worse(status, worst))
            worst = hfi_fail_by(error, status, &why);
    }
    free(partings);
    return worst;
}

/* The parts live until no callback looks at the whole any more. */
static HFI_RARE void end_whole(hf_lease *whole)
{
    struct hfi_lock *lock = whole->lock;
    hfi_handle_stop_events(whole);
    for (int i = 0; i < whole->parts->count; i++)
        drop(whole->parts->at[i].lease, whole->parts->at[i].references);
    hfi_table_unref(lock);
    hfi_handle_drop(whole, 1);
}

static hf_status release(hf_lease *lease, bool wait, hf_error *error)
{
    if (lease == NULL)
        return HF_OK;
    hf_client *client = lease->client;
    if (hfi_client_is_forked(client)) {
        if (lease->depth > 0) /* without the mutex: another thread of the parent may have held it at the fork */
            lease->depth--;
        else
            hfi_handle_forked(lease);
        return hfi_fail(error, HF_FORKED, "the parent still holds it", "the lease belongs to the parent process");
    }
    bool entered = hfi_client_enter(client, NULL) == HF_OK;
    if (!entered)
        hfi_client_ref(client); /* the lease's reference may be the last; close waits for calls that were let in */
    int references = 1;
    bool of_many = lease->parts != NULL; /* read now: a re-entered lease is another thread's once it is given back here */
    hf_status status =
        of_many ? give_back_parts(lease, wait && entered, error) : give_back(lease, wait && entered, &references, error);
    if (of_many)
        end_whole(lease);
    else if (references > 0)
        drop(lease, references);
    if (entered)
        hfi_client_leave(client);
    else
        hfi_client_unref(client);
    return status;
}

hf_status hf_lease_release(hf_lease *lease, hf_error *error)
{
    return release(lease, true, error);
}

hf_status hf_lease_post_release(hf_lease *lease, hf_error *error)
{
    return release(lease, false, error);
}
