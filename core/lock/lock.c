/* SPDX-License-Identifier: MIT */
/* lock.c - see lock.h. */
#include "core/lock/lock.h"
#include "base/perturb.h"
#include "base/rare.h"

#include <stdlib.h>
#include <string.h>

#ifndef HFI_CHECKED
_Static_assert(sizeof(struct hfi_lock) <= 472, "`bench held` has a goal: what only some locks have is not in all");
#endif

static hf_status make(hf_client *client, const struct hfi_name *name, struct hfi_lane *lane, struct hfi_lock **made, hf_error *error)
{
    struct hfi_keys keys;
    void *memory;
    bool is_grant = name->use == HFI_SEMAPHORE;
    size_t size = sizeof(struct hfi_lock) + (is_grant ? sizeof(struct hfi_grant) : 0);
    hf_status status = hfi_keys_make_behind(size, &memory, client->key_template, name, &keys, error);
    if (status != HF_OK)
        return status;
    struct hfi_lock *lock = memory;
    memset(lock, 0, size);
    lock->keys = keys;
    lock->client = client;
    lock->lane = lane;
    lock->alarm.ring = client->lock_ops->ring;
    lock->alarm_at = HFI_NEVER;
    if (is_grant) {
        lock->grant->home = lock;
        lock->grant->last_shrinking = &lock->grant->shrinkings;
    }
    hfi_entry_init(&lock->entry, &client->rules[name->use], name->hash);
    *made = lock;
    return HF_OK;
}

HFI_RARE hf_status hfi_lock_new(hf_client *client, const struct hfi_name *name, struct hfi_lock **made, hf_error *error)
{
    struct hfi_lane *lane = name->use == HFI_FETCH ? hfi_pool_lane(client->pool, HFI_VALUE_LANE, name->hash)
                                                   : hfi_pool_choose_lane(client->pool);
    return make(client, name, lane, made, error);
}

HFI_RARE struct hfi_lock *hfi_lock_beside(struct hfi_lock *home)
{
    struct hfi_lock *lock;
    struct hfi_name name = hfi_keys_name_as(&home->keys, HFI_SEMAPHORE);
    if (make(home->client, &name, home->lane, &lock, NULL) != HF_OK)
        return NULL;
    lock->slot = home->slot;
    lock->slot_id = home->slot_id;
    lock->grant->home = home;
    lock->mutex = home->mutex;
    atomic_store(&lock->grant->beside, hfi_lock_next(home));
    atomic_store(&home->grant->beside, lock);
    return lock;
}

struct hfi_lock *hfi_lock_of_grant(struct hfi_lock *home, uint64_t grant)
{
    struct hfi_lock *lock = home;
    while (lock != NULL && lock->token.grant != grant)
        lock = hfi_lock_next(lock);
    return lock != NULL ? lock : home;
}

void hfi_lock_overtake(struct hfi_lock *lock, const struct hfi_shrinking *until, uint64_t grant, int32_t keep,
                       enum hfi_overtaken how)
{
    struct hfi_shrinking *first = lock->keys.use == HFI_SEMAPHORE ? lock->grant->shrinkings : NULL;
    for (struct hfi_shrinking *at = first; at != until; at = at->next)
        if (at->grant == grant && at->keep >= keep && at->overtaken < how)
            at->overtaken = how;
}

void hfi_lock_tell_holds(struct hfi_lock *lock)
{
    if (lock->short_holds > 0)
        hfi_histogram_add_short(&lock->client->holds, lock->short_holds, lock->short_ns);
    lock->short_holds = 0;
    lock->short_ns = 0;
}

static void free_one(struct hfi_lock *lock)
{
    hfi_lock_tell_holds(lock);
    if (lock->shared != NULL)
        lock->client->fetch_ops->free(lock->shared);
    free(lock->trouble);
    free(lock);
}

void hfi_lock_free(struct hfi_lock *lock)
{
    for (struct hfi_lock *next; lock != NULL; lock = next) {
        next = hfi_lock_next(lock);
        free_one(lock);
    }
}

int64_t hfi_lock_enter(struct hfi_lock *lock)
{
    hfi_mutex_lock(lock->mutex);
    HFI_PERTURB("mutex-to-clock");
    return hfi_now(lock->client->clock);
}

void hfi_lock_leave(struct hfi_lock *lock)
{
    struct hfi_lane *lane = lock->lane; /* the lock may be freed once the mutex is unlocked: an answer drops its last reference */
    hfi_mutex_unlock(lock->mutex);
    HFI_PERTURB("left-to-flush");
    hfi_lane_flush(lane);
}

void hfi_lock_may_live(struct hfi_lock *lock, int64_t ms)
{
    _Atomic(int64_t) *longest_ms = &lock->client->longest_ms;
    int64_t longest = atomic_load_explicit(longest_ms, memory_order_relaxed);
    if (ms > lock->may_live_ms)
        lock->may_live_ms = (uint32_t)ms;
    while (ms > longest && !atomic_compare_exchange_weak(longest_ms, &longest, ms))
        ;
}
