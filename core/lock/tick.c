/* SPDX-License-Identifier: MIT */
/* tick.c - see tick.h. */
#include "core/lock/tick.h"
#include "core/lock/perform.h"
#include "core/lock/recheck.h"
#include "core/lock/renew.h"
#include "core/lock/table.h"
#include "core/lock/timer.h"
#include "base/perturb.h"
#include "base/rare.h"

/* Adds the entry's renewal or re-check to the batches of this tick. Their stamp is the tick's time, which is older than
 * each decision. True: a re-check was added and has taken the caller's reference. */
static bool collect(struct hfi_lock *lock, enum hfi_batch batch, struct hfi_step *step, struct hfi_tick *tick)
{
    if (batch == HFI_BATCH_RENEWAL) {
        struct hfi_renew_params params = hfi_entry_renew_params(&lock->entry, tick->now);
        hfi_lock_may_live(lock, params.ttl_ms);
        bool alone = lock->keys.use == HFI_DIALECT;
        hfi_renewals_add(alone ? tick->in_dialect : lock->keys.use == HFI_SEMAPHORE ? tick->of_permits : tick->renewals, lock, &params);
    } else if (batch == HFI_BATCH_RECHECK) {
        if (hfi_rechecks_add(tick->rechecks, lock))
            return true;
        hfi_entry_answered(&lock->entry, &(struct hfi_answer){.kind = HFI_ASK_ALONE}, step);
    }
    return false;
}

HFI_RARE void hfi_tick_ring(struct hfi_alarm *alarm, struct hfi_tick *tick)
{
    struct hfi_lock *lock = hfi_container_of(alarm, struct hfi_lock, alarm);
    struct hfi_step step;
    int64_t rtt = hfi_lane_rtt_ns(lock->lane);
    HFI_PERTURB("alarm-to-entry");
    int64_t now = hfi_lock_enter(lock);
    hfi_step_init(&step, now, rtt);
    lock->alarm_at = HFI_NEVER;
    bool taken = collect(lock, hfi_entry_on_timer(&lock->entry, &step), &step, tick);
    hfi_lock_perform(lock, &step, NULL);
    hfi_mutex_unlock(lock->mutex);
    if (taken)
        return; /* the lane is flushed with the batch */
    hfi_lane_flush(lock->lane);
    hfi_table_unref(lock);
}

void hfi_tick_due(void *self, struct hfi_timer *const *timers, size_t count, int64_t now_ns)
{
    struct hfi_renewals renewals, of_permits, in_dialect;
    struct hfi_rechecks rechecks;
    struct hfi_tick tick = {now_ns, &renewals, &of_permits, &in_dialect, &rechecks};
    hfi_renewals_init(&renewals, self, now_ns);
    hfi_renewals_init(&of_permits, self, now_ns);
    hfi_renewals_init(&in_dialect, self, now_ns);
    hfi_rechecks_init(&rechecks, self, now_ns);
    for (size_t i = 0; i < count; i++) {
        struct hfi_alarm *alarm = hfi_container_of(timers[i], struct hfi_alarm, timer);
        alarm->ring(alarm, &tick);
        hfi_renewals_send(&renewals, HFI_RENEW_MOST);
        hfi_renewals_send(&of_permits, HFI_RENEW_MOST);
        hfi_renewals_send(&in_dialect, 1);
    }
    hfi_renewals_send(&renewals, 1);
    hfi_renewals_send(&of_permits, 1);
    hfi_rechecks_send(&rechecks);
}

static void renew_one(struct hfi_lock *lock, void *arg)
{
    (void)arg;
    hfi_mutex_lock(lock->mutex);
    hfi_entry_renew_now(&lock->entry);
    hfi_lock_set_timer(lock);
    hfi_mutex_unlock(lock->mutex);
}

void hfi_tick_renew_all(hf_client *client)
{
    hfi_table_each(client, renew_one, NULL);
}
