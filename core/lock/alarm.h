/* SPDX-License-Identifier: MIT */
/* alarm.h - what core arms in the watchdog: a timer that knows what it rings for, and what one tick collects into few
 * scripts. */
#ifndef HFI_ALARM_H
#define HFI_ALARM_H

#include "watchdog/watchdog.h"

struct hf_client;
struct hfi_renewals;
struct hfi_rechecks;

struct hfi_tick {
    int64_t now; /* read before any of its commands was listed: their stamp */
    struct hfi_renewals *renewals;
    struct hfi_rechecks *rechecks;
};

struct hfi_alarm {
    struct hfi_timer timer;
    /* In the watchdog's thread, no mutex held. */
    void (*ring)(struct hfi_alarm *alarm, struct hfi_tick *tick);
};

/* hfi_due_fn of the client's watchdog; self is the client. */
void hfi_alarm_due(void *self, struct hfi_timer *const *timers, size_t count, int64_t now_ns);

#endif
