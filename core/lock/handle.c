/* SPDX-License-Identifier: MIT */
/* handle.c - see handle.h; also the functions of lease.h that need no server. */
#include "core/lock/handle.h"
#include "base/descriptor.h"
#include "base/perturb.h"
#include "base/rare.h"
#include "core/context/cached.h"
#include "core/lock/lock.h"

#include <holdfast/semaphore.h>

#include <stdlib.h>

#ifndef HFI_CHECKED
_Static_assert(sizeof(hf_lease) <= 120, "`bench held` has a goal: malloc's chunk is of 128 bytes");
#endif

#define FOUND_OVER (-1) /* stored in place of a V that has passed */

static _Atomic(void *) *cached_of(hf_client *client, uint64_t owner)
{
    return &client->cached[owner % HFI_CACHED].handle;
}

static void free_handle(hf_client *client, hf_lease *lease)
{
    hfi_wiped_give(client->wiped, lease->end);
    free(lease);
    hfi_client_unref(client);
}

/* With its V word and its client reference. */
static hf_lease *make_handle(hf_client *client)
{
    hf_lease *lease = malloc(sizeof *lease);
    _Atomic(int64_t) *end = lease != NULL ? hfi_wiped_take(client->wiped) : NULL;
    if (end != NULL) {
        hfi_client_ref(client);
        lease->end = end;
        return lease;
    }
    free(lease);
    return NULL;
}

static void give_handle(hf_client *client, hf_lease *lease)
{
    lease = hfi_cached_leave(client, cached_of(client, atomic_load(&lease->owner)), lease);
    if (lease != NULL)
        free_handle(client, lease);
}

HFI_RARE void hfi_handle_free_cached(hf_client *client)
{
    for (int i = 0; i < HFI_CACHED; i++) {
        hf_lease *lease = hfi_cached_take(&client->cached[i].handle);
        if (lease != NULL)
            free_handle(client, lease);
    }
}

static hf_lease *fill_in(hf_lease *lease, hf_client *client, const hf_lock_options *options, uint64_t owner)
{
    if (lease == NULL)
        return NULL;
    *lease = (hf_lease){.client = client, .end = lease->end, .permits = 1, .reentrant = options->reentrant};
    hfi_list_init(&lease->beside);
    atomic_init(&lease->references, 2);
    atomic_init(&lease->condition, HF_LEASE_HELD);
    atomic_init(&lease->event_fd, -1);
    atomic_init(&lease->owner, owner);
    return lease;
}

hf_lease *hfi_handle_left(hf_client *client, const hf_lock_options *options, uint64_t owner)
{
    return fill_in(hfi_cached_take(cached_of(client, owner)), client, options, owner);
}

hf_lease *hfi_handle_new(hf_client *client, const hf_lock_options *options, uint64_t owner)
{
    hf_lease *lease = hfi_handle_left(client, options, owner);
    return lease != NULL ? lease : fill_in(make_handle(client), client, options, owner);
}

void hfi_handle_ref(hf_lease *lease)
{
    atomic_fetch_add(&lease->references, 1);
}

void hfi_handle_unref(hf_lease *lease)
{
    hfi_handle_drop(lease, 1);
}

/* If the caller has all remaining references, no other thread can obtain one and the subtraction is not needed. */
void hfi_handle_drop(hf_lease *lease, int count)
{
    hf_client *client = lease->client;
    if (atomic_load(&lease->references) != count && atomic_fetch_sub(&lease->references, count) != count)
        return;
    int fd = atomic_load(&lease->event_fd);
    if (fd >= 0)
        hfi_descriptor_close(fd);
    if (lease->sink != NULL)
        client->lock_ops->free_sink(lease->sink);
    if (lease->parts != NULL) {
        hfi_mutex_destroy(&lease->parts->mutex);
        free(lease->parts);
    }
    give_handle(client, lease);
}

void hfi_handle_join(struct hfi_lock *lock, hf_lease *lease)
{
    HFI_ASSERT_HELD(lock->mutex);
    if (lock->holder != NULL)
        hfi_list_append(&lock->holder->beside, &lease->beside);
    else
        lock->holder = lease;
    lease->holds = true;
}

void hfi_handle_part(struct hfi_lock *lock, hf_lease *lease)
{
    HFI_ASSERT_HELD(lock->mutex);
    if (lock->holder == lease)
        lock->holder = hfi_list_is_empty(&lease->beside) ? NULL : hfi_list_first(&lease->beside, hf_lease, beside);
    hfi_list_remove(&lease->beside);
    lease->holds = false;
}

hf_lease *hfi_handle_next(const struct hfi_lock *lock, const hf_lease *holder)
{
    hf_lease *next = hfi_container_of(holder->beside.next, hf_lease, beside);
    return next != lock->holder ? next : NULL;
}

void hfi_handle_begin(hf_lease *lease, int64_t end, int64_t fence, int64_t hold_end, int64_t now)
{
    lease->hold_end = hold_end;
    lease->fence = fence;
    lease->since_ns = now;
    atomic_store_explicit(lease->end, end, memory_order_release);
}

bool hfi_handle_move_end(hf_lease *lease, int64_t end, int64_t now)
{
    int64_t before = atomic_load(lease->end);
    HFI_PERTURB("end-to-raise");
    while (before > now && before < end && !atomic_compare_exchange_weak(lease->end, &before, end))
        ;
    return before != FOUND_OVER;
}

void hfi_handle_withdraw(hf_lease *lease)
{
    atomic_store_explicit(lease->end, 0, memory_order_release); /* visible before all this thread publishes later */
}

void hfi_handle_end(hf_lease *lease)
{
    if (atomic_load(&lease->condition) == HF_LEASE_AT_RISK)
        hfi_uncount(lease->client, at_risk);
}

/* A reader that finds V past stores FOUND_OVER. A thread that read the clock earlier and was then stopped cannot raise
 * V any more. */
static inline int64_t left_of_one(const hf_lease *lease)
{
    int64_t now = hfi_now(lease->client->clock), end = atomic_load(lease->end);
    while (end <= now && end > 0 && !atomic_compare_exchange_weak(lease->end, &end, FOUND_OVER))
        ;
    return end > now ? end - now : 0;
}

/* A multilock's own V says only that it was not withdrawn. */
static inline int64_t left_ns(const hf_lease *lease)
{
    int64_t left = left_of_one(lease);
    for (int i = 0; lease->parts != NULL && left > 0 && i < lease->parts->count; i++) {
        int64_t part = left_of_one(lease->parts->at[i].lease);
        left = part < left ? part : left;
    }
    return left;
}

bool hf_lease_is_valid(const hf_lease *lease)
{
    return lease != NULL && left_ns(lease) > 0;
}

int64_t hf_lease_remaining_ms(const hf_lease *lease)
{
    return lease != NULL ? left_ns(lease) / HFI_MS : 0;
}

int64_t hf_lease_fence(const hf_lease *lease)
{
    return lease != NULL ? lease->fence : 0;
}

HFI_RARE hf_lease_condition hf_lease_state(const hf_lease *lease)
{
    if (!hf_lease_is_valid(lease))
        return HF_LEASE_LOST;
    return (hf_lease_condition)atomic_load(&lease->condition);
}

HFI_RARE hf_reason hf_lease_reason(const hf_lease *lease)
{
    if (lease == NULL)
        return HF_REASON_NONE;
    if (hfi_client_is_forked(lease->client))
        return HF_REASON_FORKED;
    /* V may have passed before the watchdog announced it. */
    if (atomic_load(&lease->condition) != HF_LEASE_LOST && !hf_lease_is_valid(lease))
        return hfi_now(lease->client->clock) >= lease->hold_end ? HF_REASON_MAX_HOLD : HF_REASON_EXPIRED;
    return (hf_reason)atomic_load(&lease->reason);
}

HFI_RARE int hf_lease_permits(const hf_lease *lease)
{
    return lease != NULL ? lease->permits : 0;
}

HFI_RARE const char *hf_lease_name(const hf_lease *lease)
{
    return lease != NULL ? hfi_keys_name(&lease->lock->keys) : "";
}
