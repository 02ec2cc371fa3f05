/* SPDX-License-Identifier: MIT */
/* alarm.h - core's timers in the watchdog: an alarm has a handler for its expiry. */
#ifndef HFI_ALARM_H
#define HFI_ALARM_H

#include "watchdog/watchdog.h"

struct hfi_renewals;
struct hfi_rechecks;

struct hfi_tick { /* one call of the watchdog: tick.c */
    int64_t now; /* stamp of its commands: read before any of them was listed */
    struct hfi_renewals *renewals, *of_permits, *in_dialect;
    struct hfi_rechecks *rechecks;
};

struct hfi_alarm {
    struct hfi_timer timer;
    /* Called in the watchdog's thread with no mutex held. */
    void (*ring)(struct hfi_alarm *alarm, struct hfi_tick *tick);
};

#endif
