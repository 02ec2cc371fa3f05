/* SPDX-License-Identifier: MIT */
/* waits.h - the waits of a client that may be part of a deadlock: those of owners that hold a lock of this client, since an
 * owner that holds nothing keeps nobody waiting. */
#ifndef HFI_WAITS_H
#define HFI_WAITS_H

#include "core/lock/alarm.h"
#include "core/lock/lock.h"

struct hfi_listed_wait {
    struct hfi_lock *lock; /* what is waited for; a reference */
    uint64_t owner, number, nonce;
    int64_t  start_us;     /* estimated server time of its begin */
    int      passed;       /* probes that it has passed on */
};

struct hfi_waits { /* of a client; NULL: deadlock_ms is 0 */
    hf_client *client;
    int64_t every_ns;       /* how old a wait is when it is listed */
    struct hfi_alarm alarm; /* armed while calls wait: it is time to look */
    _Atomic(bool) armed;
    uint64_t numbers;       /* given to waits; the watchdog's thread only */
    _Atomic(int) questions; /* in flight: who holds the lock that a wait waits for? */
    struct hfi_mutex mutex; /* guards the rest */
    bool over;
    int  count, turn;       /* turn: the first wait of the list, so that none is always the last */
    struct hfi_listed_wait *waits;
};

/* NULL: no memory. `ring` is called when the alarm is due, and looks. */
struct hfi_waits *hfi_waits_new(hf_client *client, int64_t every_ns, void (*ring)(struct hfi_alarm *alarm, struct hfi_tick *tick));
/* For close, before pool and watchdog end: the list is empty and the alarm silent from now on. NULL is a no-op. */
void hfi_waits_end(struct hfi_waits *waits);
void hfi_waits_free(struct hfi_waits *waits); /* NULL is a no-op */

/* A call begins to wait, and is counted as waiting. The lock's mutex may be held. NULL is a no-op. */
void hfi_waits_begin(struct hfi_waits *waits, int64_t now);
/* Makes the list anew, and arms the alarm if any call waits. In the watchdog's thread, no mutex held; each lock's mutex is
 * held while its waiters are looked at. */
void hfi_waits_look(struct hfi_waits *waits);

/* The i-th wait of the list, which begins elsewhere after each look; the i-th of this owner. True: *wait, with a reference to
 * its lock that the caller drops. */
bool hfi_waits_at(struct hfi_waits *waits, int i, struct hfi_listed_wait *wait);
bool hfi_waits_of(struct hfi_waits *waits, uint64_t owner, int i, struct hfi_listed_wait *wait);
/* Counts a probe that this wait passes on. False: it has done so too often since the last look. */
bool hfi_waits_pass(struct hfi_waits *waits, uint64_t number, int most);
/* The waiter with this number; NULL: it waits no more. The lock's mutex is held. */
struct hfi_acquirer *hfi_waits_find(struct hfi_lock *lock, uint64_t number);

#endif
