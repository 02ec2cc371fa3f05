/* SPDX-License-Identifier: MIT */
/* alarm.h - core's timers in the watchdog: an alarm has a handler for its expiry, and a tick batches the commands of
 * the alarms that are due into few scripts. */
#ifndef HFI_ALARM_H
#define HFI_ALARM_H

#include "watchdog/watchdog.h"

struct hf_client;
struct hfi_renewals;
struct hfi_rechecks;

struct hfi_tick {
    int64_t now; /* stamp of its commands: read before any of them was listed */
    struct hfi_renewals *renewals;
    struct hfi_rechecks *rechecks;
};

struct hfi_alarm {
    struct hfi_timer timer;
    /* Called in the watchdog's thread with no mutex held. */
    void (*ring)(struct hfi_alarm *alarm, struct hfi_tick *tick);
};

/* hfi_due_fn of the client's watchdog; self is the client. */
void hfi_alarm_due(void *self, struct hfi_timer *const *timers, size_t count, int64_t now_ns);

#endif
