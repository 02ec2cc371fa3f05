/* SPDX-License-Identifier: MIT */
/* fetch_fill.c - the caller that has the lease: it loads, stores, and gives the value to the waiters of this
 * process. */
#include "core/fetch/fetch.h"
#include "core/context/call.h"
#include "core/fetch/read_lane.h"
#include "core/fetch/shared.h"
#include "core/lock/handle.h"
#include "core/lock/perform.h"
#include "core/lock/table.h"
#include "core/context/wait.h"
#include "core/protocol/wire.h"
#include "base/perturb.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tag's mark is kept at the server for a day. */
#define TAGGED_LOAD_MOST_MS (23 * 3600 * INT64_C(1000))

struct hfi_filler { /* freed by the thread that waits for the fill's answer, or by filled() if abandoned */
    struct hfi_lock *lock; /* its mutex guards all fields; the command has a reference to it */
    hf_lease *lease;
    uint64_t hash;         /* of the key */
    struct hfi_body *body; /* a reference */
    int64_t kept_ms, ttl_ms;
    int64_t came_ns; /* when it was answered */
    struct hfi_park park;
    bool done, abandoned, stored, refused;
    bool missing; /* the server has it no more: it is to be sent */
};

/* How long the server shall keep the value; 0: not stored. */
static int64_t kept_ms(const struct hfi_fetch *f, const struct hf_loading *loading)
{
    if (loading->untagged || (loading->tags.count > 0 && loading->took_ms > TAGGED_LOAD_MOST_MS))
        return 0;
    if (loading->body->absent)
        return loading->absent_ms;
    if (loading->ttl_ms == HF_OFF || loading->body->size > f->client->max_value_bytes)
        return 0;
    return loading->ttl_ms + f->options->stale_ms;
}

static void forget(struct hfi_filler *filler)
{
    hfi_body_unref(filler->body);
    free(filler);
}

static void changed(const struct hfi_lock *lock)
{
    const struct hfi_name key = hfi_keys_name_as(&lock->keys, HFI_FETCH);
    hfi_local_changed(lock->client, &key);
}

/* The load is over for everybody here: the waiters have its value. */
static void end_load(const struct hfi_filler *filler, int64_t now, bool give_it_back, struct hfi_step *step)
{
    struct hfi_lock *lock = filler->lock;
    hfi_shared_put(lock->shared, filler->body, now, filler->kept_ms, filler->ttl_ms, filler->stored);
    lock->shared->loaded_here = true;
    hfi_handle_part(lock, filler->lease);
    hfi_handle_end(filler->lease);
    hfi_handle_unref(filler->lease); /* the lock's reference */
    hfi_entry_filled(&lock->entry, give_it_back, step);
}

static void filled(struct hfi_command *command)
{
    struct hfi_filler *filler = command->self;
    struct hfi_lock *lock = filler->lock;
    struct hfi_step step;
    struct hfi_script_reply said = {"", 0, 0};
    if (command->outcome == HFI_ANSWERED)
        said = hfi_wire_script_reply(command->reply);
    bool known = said.now_us != 0;
    changed(lock); /* before its loader, or anybody, can have seen it stored */
    HFI_PERTURB("fill-answered");
    int64_t now = hfi_lock_enter(lock);
    hfi_step_init(&step, now, 0);
    filler->came_ns = now;
    filler->stored = strcmp(said.word, "FILLED") == 0;
    filler->refused = strcmp(said.word, "REFUSED") == 0;
    filler->missing = strcmp(said.word, "MISSING") == 0;
    bool goes_on = filler->missing && !filler->abandoned;
    if (lock->holder == filler->lease && filler->refused)
        hfi_entry_lost(&lock->entry, HF_REASON_GONE, &step); /* the waiters ask again */
    else if (lock->holder == filler->lease && !goes_on) /* an acquire may come after the fill (P5) */
        end_load(filler, now, !known || filler->missing || lock->in_doubt, &step);
    hfi_lock_perform(lock, &step, NULL);
    filler->done = true;
    bool abandoned = filler->abandoned;
    hfi_read_lane_yield(lock->client, filler->hash);
    hfi_park_wake(&filler->park);
    hfi_lock_leave(lock);
    if (abandoned) {
        (void)hf_lease_post_release(filler->lease, NULL);
        forget(filler);
    }
    hfi_table_unref(lock); /* the waiting thread may have dropped its own reference */
}

static enum hfi_filling filling_of(const struct hf_loading *loading, int64_t kept)
{
    if (kept <= 0)
        return HFI_FILL_NOTHING;
    if (loading->body->absent)
        return HFI_FILL_ABSENT;
    return loading->same && loading->old_from_ms > 0 ? HFI_FILL_SAME : HFI_FILL_VALUE;
}

/* Copies the value into the command without the mutex: it may be long. NULL: the lease is lost, or no memory. */
static struct hfi_command *fill_command(struct hfi_lock *lock, const hf_lease *lease, const struct hf_loading *loading,
                                        int64_t kept)
{
    struct hfi_fill fill = {filling_of(loading, kept), kept, NULL, 0, &loading->tags, hf_lease_fence(lease)};
    struct hfi_token token = {0};
    char old[80];
    if (fill.what == HFI_FILL_VALUE) {
        fill.data = loading->body->data;
        fill.size = loading->body->size;
    } else if (fill.what == HFI_FILL_SAME) {
        fill.data = old;
        fill.size = (size_t)snprintf(old, sizeof old, "%zu,%" PRId64 ",%" PRId64, loading->old->size, loading->old_from_ms,
                                     loading->old_till_ms);
    }
    hfi_mutex_lock(lock->mutex);
    if (lock->holder == lease)
        token = lock->token;
    hfi_mutex_unlock(lock->mutex);
    return token.grant == 0 ? NULL : hfi_wire_fill(&lock->client->identity, &lock->keys, token, &fill);
}

static void list_locked(struct hfi_filler *filler, struct hfi_command *command, int64_t now)
{
    struct hfi_lock *lock = filler->lock;
    hfi_table_ref(lock);
    hfi_read_lane_claim(lock->client, filler->hash);
    changed(lock);
    HFI_PERTURB("fill-to-list");
    hfi_call_list(lock->client, lock->lane, command, filled, filler, now);
}

/* Lists the fill; takes over the command. NULL: the value is not stored, because V has passed, another caller has
 * loaded since, or there is no memory. Nor is it while an acquire of this lock has no answer yet: should somebody break the lease
 * and store what is newer before the two reach the server, the acquire would take the key by the same token again, for the fill to
 * store what was loaded before. Mutex held. */
static struct hfi_filler *begin_locked(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading,
                                   struct hfi_command *command, int64_t now)
{
    struct hfi_lock *lock = f->lock;
    struct hfi_filler *filler = NULL;
    if (command != NULL && lock->holder == lease && lock->questions == 0 && hf_lease_is_valid(lease))
        filler = calloc(1, sizeof *filler);
    if (filler == NULL) {
        hfi_command_unref(command);
        return NULL;
    }
    int64_t kept = kept_ms(f, loading);
    *filler = (struct hfi_filler){.lock = lock, .lease = lease, .hash = f->key->hash, .body = loading->body, .kept_ms = kept};
    filler->ttl_ms = hfi_loading_fresh_ms(loading);
    hfi_body_ref(filler->body);
    hfi_park_init(&filler->park);
    hfi_handle_withdraw(lease); /* P3 */
    HFI_PERTURB("withdrawn-to-filled");
    list_locked(filler, command, now);
    return filler;
}

/* False: cancelled, and filled() now owns the filler and the lease. */
static bool wait_for(struct hfi_fetch *f, struct hfi_filler *filler)
{
    struct hfi_lock *lock = f->lock;
    struct hfi_wait wait;
    hfi_wait_begin(&wait, f->client, f->options->cancel, &filler->park, HFI_NEVER); /* the command's until_ns ends it */
    wait.is_hurried = true;
    hfi_mutex_lock(lock->mutex);
    (void)hfi_wait_for(&wait, &filler->done, lock->mutex, lock->lane);
    hfi_mutex_unlock(lock->mutex);
    hfi_wait_end(&wait); /* before the park may be freed */
    hfi_mutex_lock(lock->mutex);
    bool done = filler->done;
    filler->abandoned = !done;
    hfi_mutex_unlock(lock->mutex);
    return done;
}

/* What should have gone on is not what the server has: now its bytes are sent, under the same lease. False: as wait_for. */
static bool send_missing(struct hfi_fetch *f, struct hfi_filler *filler, struct hf_loading *loading)
{
    struct hfi_lock *lock = f->lock;
    struct hfi_step step;
    loading->old_from_ms = 0;
    struct hfi_command *command = fill_command(lock, filler->lease, loading, filler->kept_ms);
    int64_t now = hfi_lock_enter(lock);
    if (lock->holder == filler->lease && lock->questions == 0 && command != NULL) {
        filler->done = false;
        list_locked(filler, command, now);
        hfi_lock_leave(lock);
        return wait_for(f, filler);
    }
    hfi_command_unref(command);
    hfi_step_init(&step, now, 0);
    filler->refused = lock->holder != filler->lease;
    if (!filler->refused)
        end_load(filler, now, true, &step);
    hfi_lock_perform(lock, &step, NULL);
    hfi_lock_leave(lock);
    return true;
}

struct hfi_filler *hfi_fetch_fill_begin(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading)
{
    struct hfi_command *command = fill_command(f->lock, lease, loading, kept_ms(f, loading));
    int64_t now = hfi_lock_enter(f->lock);
    struct hfi_filler *filler = begin_locked(f, lease, loading, command, now);
    hfi_mutex_unlock(f->lock->mutex);
    return filler;
}

/* Waits for the answer, and releases the lease. True: it is stored. *refused: it was discarded. */
static bool end_fill(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading, struct hfi_filler *filler, bool *refused)
{
    *refused = filler == NULL;
    if (filler != NULL && (!wait_for(f, filler) || (filler->missing && !send_missing(f, filler, loading))))
        return false;
    (void)hf_lease_post_release(lease, NULL); /* the fill has ended it already, or it is lost */
    if (filler == NULL)
        return false;
    bool stored = filler->stored;
    *refused = filler->refused;
    f->came_ns = filler->came_ns;
    forget(filler);
    return stored;
}

/* If the lease is lost, the waiters stay, for another load. */
void hfi_fetch_fail(struct hfi_fetch *f, hf_lease *lease, const hf_error *failure)
{
    struct hfi_lock *lock = f->lock;
    struct hfi_step step;
    int64_t now = hfi_lock_enter(lock);
    hfi_step_init(&step, now, 0);
    if (lock->holder == lease && hf_lease_is_valid(lease)) {
        lock->shared->failure = *failure;
        hfi_entry_refuse_all(&lock->entry, HF_LOAD_FAILED, &step);
    }
    hfi_lock_perform(lock, &step, NULL);
    hfi_mutex_unlock(lock->mutex);
    (void)hf_lease_post_release(lease, NULL);
}

hf_status hfi_fetch_fill(struct hfi_fetch *f, hf_lease *lease, hf_value **value, hf_error *error)
{
    struct hf_loading loading;
    hf_status status = hfi_fetch_load(f, lease, &loading);
    if (status != HF_OK) {
        hfi_fetch_fail(f, lease, &loading.failure);
        if (error != NULL)
            *error = loading.failure;
        hfi_loading_done(&loading);
        return status;
    }
    struct hfi_filler *filler = hfi_fetch_fill_begin(f, lease, &loading);
    hfi_lane_flush(f->lock->lane);
    return hfi_fetch_fill_end(f, lease, &loading, filler, value, error);
}

hf_status hfi_fetch_fill_end(struct hfi_fetch *f, hf_lease *lease, struct hf_loading *loading, struct hfi_filler *filler,
                             hf_value **value, hf_error *error)
{
    bool refused, stored = end_fill(f, lease, loading, filler, &refused);
    f->is_late = refused;
    if (!refused)
        hfi_fetch_remember_load(f, loading, stored ? kept_ms(f, loading) : -1);
    hf_status status = hfi_fetch_answer(f, loading->body, HF_LOADED, stored, hfi_loading_fresh_ms(loading), value, error);
    hfi_loading_done(loading);
    return status;
}
