/* SPDX-License-Identifier: MIT */
/* alarm.c - one tick of the watchdog: runs the alarms that are due, then sends the renewals and re-checks they
 * collected. */
#include "core/lock/alarm.h"
#include "core/lock/recheck.h"
#include "core/lock/renew.h"

void hfi_alarm_due(void *self, struct hfi_timer *const *timers, size_t count, int64_t now_ns)
{
    struct hfi_renewals renewals;
    struct hfi_rechecks rechecks;
    struct hfi_tick tick = {now_ns, &renewals, &rechecks};
    hfi_renewals_init(&renewals, self, now_ns);
    hfi_rechecks_init(&rechecks, self, now_ns);
    for (size_t i = 0; i < count; i++) {
        struct hfi_alarm *alarm = hfi_container_of(timers[i], struct hfi_alarm, timer);
        alarm->ring(alarm, &tick);
        hfi_renewals_send(&renewals, HFI_RENEW_MOST);
    }
    hfi_renewals_send(&renewals, 1);
    hfi_rechecks_send(&rechecks);
}
