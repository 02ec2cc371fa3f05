/* SPDX-License-Identifier: MIT */
/* lane_choice.c - see lane_choice.h. All that could be in flight keeps a reference to the lock: leases, questions, releases that
 * are still owed. So the name's commands keep their order where the caller has the only one. */
#include "core/lock/lane_choice.h"
#include "core/lock/table.h"

void hfi_lane_choose(struct hfi_lock *lock, int count)
{
    HFI_ASSERT_HELD(lock->mutex);
    bool moves = lock->keys.use != HFI_FETCH && lock->keys.use != HFI_SEMAPHORE; /* a value's goes by its key; grants share theirs */
    if (moves && hfi_entry_is_idle(&lock->entry) && hfi_table_is_alone(lock, count))
        atomic_store(&lock->lane, hfi_pool_choose_lane(lock->client->pool));
}
