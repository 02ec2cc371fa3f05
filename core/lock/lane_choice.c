/* SPDX-License-Identifier: MIT */
/* lane_choice.c - see lane_choice.h. All that could be in flight keeps a reference to the lock: leases, questions, releases that
 * are still owed. So the name's commands keep their order where the caller has the only one. */
#include "core/lock/lane_choice.h"
#include "base/rare.h"
#include "core/lock/table.h"

/* A name that is taken alone and shared has two locks, and one key: the lane of the other one, if it may have something in flight. */
static HFI_RARE struct hfi_lane *lane_of_other_kind(const struct hfi_lock *lock)
{
    struct hfi_name name = hfi_keys_name_as(&lock->keys, lock->keys.use == HFI_MUTEX ? HFI_SHARED : HFI_MUTEX);
    return hfi_table_lane_in_use(lock->client, &name);
}

void hfi_lane_choose(struct hfi_lock *lock, int count)
{
    HFI_ASSERT_HELD(lock->mutex);
    bool moves = lock->keys.use != HFI_FETCH && lock->keys.use != HFI_SEMAPHORE; /* a value's goes by its key; grants share theirs */
    if (!moves || !hfi_entry_is_idle(&lock->entry) || !hfi_table_is_alone(lock, count))
        return;
    bool has_kinds = lock->keys.use != HFI_DIALECT && atomic_load_explicit(&lock->client->shares, memory_order_relaxed);
    struct hfi_lane *lane = has_kinds ? lane_of_other_kind(lock) : NULL;
    atomic_store(&lock->lane, lane != NULL ? lane : hfi_pool_choose_lane(lock->client->pool));
}

void hfi_lane_choose_only(struct hfi_lock *lock)
{
    hfi_mutex_lock(lock->mutex);
    hfi_lane_choose(lock, 1);
    hfi_mutex_unlock(lock->mutex);
}
