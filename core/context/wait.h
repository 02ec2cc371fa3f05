/* SPDX-License-Identifier: MIT */
/* wait.h - how a call waits. What ends a wait early (deadline, cancel, the client's close) is checked before every
 * sleep, the first included: it may have happened before the wait began. */
#ifndef HFI_WAIT_H
#define HFI_WAIT_H

#include "base/mutex.h"
#include "core/context/cancel.h"
#include "pool/lane.h"

struct hfi_wait { /* on the waiting thread's stack */
    hf_client *client;
    hf_cancel *cancel;     /* NULL: none */
    int64_t until_ns;      /* HFI_NEVER: no end */
    struct hfi_park *park; /* woken by the awaited event, by a cancel, and by close */
    bool is_hurried;       /* waits for a server's answer: close shortens the time for it, but does not end the wait */
    struct hfi_canceled place;
};

/* From begin to end the cancel wakes the park. Both take cancel_mutex: of ours the caller may hold only a mutex of
 * HFI_RANK_OUTER (base/mutex.h). */
void hfi_wait_begin(struct hfi_wait *wait, hf_client *client, hf_cancel *cancel, struct hfi_park *park, int64_t until_ns);
void hfi_wait_end(struct hfi_wait *wait);

/* HF_OK: the wait goes on. Else CANCELED, CLOSED or TIMEOUT. */
hf_status hfi_wait_is_over(const struct hfi_wait *wait, int64_t now);
/* One sleep. The epoch must have been read before any condition was checked. `lane`: the thread may read its replies
 * meanwhile; NULL: it waits for none. */
void hfi_wait_sleep(const struct hfi_wait *wait, uint32_t epoch, struct hfi_lane *lane);
/* Sleeps until *done: HF_OK; else why the wait ended first. The mutex is held on entry and on return; *done is set, and
 * the park woken, under it. */
hf_status hfi_wait_for(const struct hfi_wait *wait, const bool *done, struct hfi_mutex *mutex, struct hfi_lane *lane);

#endif
